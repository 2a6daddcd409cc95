//! From fitted arrivals and constants to what the firmware takes and how the arm moves.
//!
//! A fitted arrival is a sum: the files' seek, a constant, and what was before, where the arm
//! is, and how far it goes. The modelled disk has the same terms as times of their own, none
//! of which is negative; what all of them have in common is the firmware's.

use super::Numbers;
use crate::import::entry::Entry;
use diskperf_calibration::{SEEK_NAMES, added_to_seek_us};
use diskperf_diskspecs::Drive;

/// What the layer says of firmware, arm and link besides its speed.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Keys and times in us; signed ones are those that may be negative.
    times_us: Vec<(&'static str, f64)>,
    signed_us: Vec<(&'static str, f64)>,
    /// Of the link, for what is written.
    write_bytes_per_s: Option<u64>,
    /// Distances in cylinders and times in ms.
    seeks: Vec<(&'static str, Vec<Vec<f64>>)>,
}

/// The terms of an arrival, in us, as the modelled disk has them.
#[derive(Clone, Copy, Debug)]
struct Terms {
    constant: f64,
    after_write: f64,
    reading_ahead: f64,
    same_track: f64,
    /// With the files' time.
    head_switch: f64,
    inward: f64,
    block: f64,
    /// What is taken off each seek, since all seeks have it in common.
    off_seeks: f64,
}

/// Seek tables have a point at least at each distance that is so many times the one before:
/// between the points of the fit times are straight over the logarithm of the distance.
const STEP: f64 = 1.2;

impl Arrivals {
    /// Of what was fitted, where sectors take so long to pass.
    pub(super) fn of(drive: &Drive, numbers: &Numbers<'_>, sector_us: f64) -> Self {
        let mut all = Self::default();
        let firmware = drive.firmware.unwrap_or_default();
        let link_us = firmware.data_preparation_ms * firmware.overhead_scale * 1e3;
        // The fit's constants have what a transfer takes besides in them.
        let least_us = ["buffer.", "early_write."].map(|kind| numbers.least(kind, ".fixed_us"));
        let least_us = least_us.into_iter().flatten().fold(f64::INFINITY, f64::min);
        let reads = Terms::of(drive, numbers, "read");
        let of_reads = reads.map_or(f64::INFINITY, |of| of.constant - sector_us);
        let link_us = link_us.min(least_us).min(of_reads).max(0.0);
        if least_us.is_finite() || reads.is_some() {
            all.times_us.push(("link_overhead_ms", link_us));
            all.times_us.push(("link_reconnect_ms", 0.0));
            all.times_us.push(("read_completion_ms", 0.0));
        }
        all.hits(numbers, link_us);
        all.early_writes(numbers, link_us);
        if let Some(reads) = reads {
            all.reads(drive, numbers, reads.earlier(link_us + sector_us));
            if let Some(writes) = Terms::of(drive, numbers, "write") {
                let writes = writes.earlier(link_us + sector_us);
                // What each sector has to be there before the platter: the link is as much
                // slower, and its data come by the time that the firmware takes for them.
                let write_us = sector_us + writes.block.max(0.0);
                let rate = 512e6 / write_us;
                all.write_bytes_per_s = Some(rate.round() as u64);
                all.writes(drive, numbers, (writes, reads));
            }
            if let Some(end_us) = numbers.get("bus.write_end_us") {
                let end_us = end_us + link_us + sector_us;
                all.times_us.push(("write_completion_ms", end_us));
            }
        }
        all
    }

    fn hits(&mut self, numbers: &Numbers<'_>, link_us: f64) {
        let mut put = |key, name: &str| {
            let time = numbers.get(&format!("buffer.{name}.fixed_us"));
            self.times_us.extend(time.map(|us| (key, us - link_us)));
            time
        };
        let sequential = put("read_hit_sequential_ms", "contiguous_to_read");
        put("read_hit_reading_ahead_ms", "reading_ahead");
        let after_write = put("read_hit_after_write_ms", "after_write");
        // A drive that answers nothing else from its buffer shows no other time.
        if put("read_hit_ms", "after_read").is_none()
            && let Some(us) = sequential
        {
            self.times_us.push(("read_hit_ms", us - link_us));
            if after_write.is_none() {
                self.times_us
                    .push(("read_hit_after_write_ms", us - link_us));
            }
        }
    }

    fn early_writes(&mut self, numbers: &Numbers<'_>, link_us: f64) {
        let mut any = false;
        for (key, name) in [
            ("write_ms", "after_read"),
            ("write_after_write_ms", "after_write"),
            ("write_sequential_ms", "contiguous_to_write"),
            ("write_reading_ahead_ms", "reading_ahead"),
        ] {
            if let Some(us) = numbers.get(&format!("early_write.{name}.fixed_us")) {
                self.times_us.push((key, us - link_us));
                any = true;
            }
        }
        if any {
            self.times_us.push(("write_completion_ms", 0.0));
        }
    }

    fn reads(&mut self, drive: &Drive, numbers: &Numbers<'_>, of: Terms) {
        self.times_us.extend([
            ("read_miss_ms", of.constant),
            ("read_miss_after_write_ms", of.constant + of.after_write),
            ("same_track_ms", of.same_track),
            ("head_switch_ms", of.head_switch),
        ]);
        if numbers.has("arrival.read.reading_ahead_us") {
            let time = of.constant + of.reading_ahead;
            self.times_us.push(("read_miss_reading_ahead_ms", time));
        }
        self.signed_us.push(("seek_inward_ms", of.inward));
        let rows = seeks(drive, numbers, "read", of.off_seeks);
        self.seeks.push(("seek_table", rows));
    }

    /// Of writes that are on the medium when they are done.
    fn writes(&mut self, drive: &Drive, numbers: &Numbers<'_>, (of, reads): (Terms, Terms)) {
        self.times_us.extend([
            ("write_ms", of.constant),
            ("write_after_write_ms", of.constant + of.after_write),
            ("write_same_track_ms", of.same_track),
            ("write_sector_ms", of.block),
        ]);
        if numbers.has("arrival.write.reading_ahead_us") {
            let time = of.constant + of.reading_ahead;
            self.times_us.push(("write_reading_ahead_ms", time));
        }
        // What a write's change of the head takes longer than a read's: its settling, which
        // seeks of writes have too.
        let settle = of.head_switch - reads.head_switch;
        self.signed_us.push(("write_settle_ms", settle));
        self.signed_us.push(("write_seek_inward_ms", of.inward));
        let rows = seeks(drive, numbers, "write", of.off_seeks + settle);
        self.seeks.push(("write_seek_table", rows));
    }

    pub(super) fn write(self, entry: &mut Entry) {
        // To the nanosecond.
        let ms = |us: f64| (us * 1e3).round() / 1e6;
        if let Some(rate) = self.write_bytes_per_s {
            entry.integer("link_write_bytes_per_s", rate);
        }
        for (key, us) in self.times_us {
            entry.number(key, ms(us.max(0.0)));
        }
        for (key, us) in self.signed_us {
            entry.number(key, ms(us));
        }
        for (key, rows) in self.seeks {
            entry.rows(key, "cylinders, ms", &rows);
        }
    }
}

impl Terms {
    fn of(drive: &Drive, numbers: &Numbers<'_>, kind: &str) -> Option<Self> {
        let number = |name: &str| numbers.get(&format!("arrival.{kind}.{name}"));
        let term = |name: &str| number(name).unwrap_or(0.0);
        let constant = number("constant_us")?;
        let seeks: Vec<f64> = SEEK_NAMES.iter().filter_map(|name| number(name)).collect();
        // The fit has one sum of both: that seeks are those of the files, on average, is
        // what tells them apart.
        let mean = seeks.iter().sum::<f64>() / seeks.len().max(1) as f64;
        // Less than nothing on a track is more on all others.
        let same_track = term("same_track_us") - mean;
        let common = mean + same_track.min(0.0);
        let mechanics = &drive.model.mechanics;
        let settle_ms = match kind {
            "write" => mechanics.write_settle_ms,
            _ => 0.0,
        };
        let filed_us = (mechanics.head_switch_ms + settle_ms) * 1e3;
        Some(Self {
            constant: constant + common,
            after_write: term("after_write_us"),
            reading_ahead: term("reading_ahead_us"),
            same_track: same_track.max(0.0),
            head_switch: filed_us + term("head_switch_us") - common,
            inward: term("inward_us"),
            block: term("block_us"),
            off_seeks: common,
        })
    }

    /// The same, where all is so much earlier.
    fn earlier(self, us: f64) -> Self {
        Self {
            constant: self.constant - us,
            ..self
        }
    }
}

/// A table of the files' seek times, with what was fitted, and less so much.
fn seeks(drive: &Drive, numbers: &Numbers<'_>, kind: &str, less_us: f64) -> Vec<Vec<f64>> {
    let (seek, cylinders) = (&drive.model.mechanics.seek, drive.model.cylinders);
    let settle_ms = match kind {
        "write" => drive.model.mechanics.write_settle_ms,
        _ => 0.0,
    };
    let added_ms = |distance: u32| {
        let number = |name: &str| numbers.get(&format!("arrival.{kind}.{name}"));
        added_to_seek_us(|name| number(name).unwrap_or(0.0), distance) / 1e3
    };
    let time_ms = |distance: u32| {
        let filed_ms = seek.time_ms(distance, cylinders) + settle_ms;
        let time_ms = filed_ms + added_ms(distance) - less_us / 1e3;
        (time_ms.max(0.0) * 1e6).round() / 1e6
    };
    let last = cylinders.saturating_sub(1).max(1);
    let mut distances = std::collections::BTreeSet::from([last]);
    if let diskperf_diskspecs::Seek::Table(table) = seek {
        distances.extend(table.points().iter().map(|(cylinders, _)| *cylinders));
    }
    let mut distance = 1;
    while distance < last {
        distances.insert(distance);
        distance = (f64::from(distance) * STEP)
            .ceil()
            .max(f64::from(distance + 1)) as u32;
    }
    let taken = distances
        .into_iter()
        .filter(|distance| (1..=last).contains(distance));
    taken
        .map(|distance| vec![f64::from(distance), time_ms(distance)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_calibration::{Interval, Parameter};
    use diskperf_diskspecs::{Files, import};

    fn drive() -> Drive {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../diskspecs/tests/data");
        let files = Files::Disk {
            search: vec![folder.into()],
        };
        let found = import("small.parv", &files).expect("a drive");
        found.drives.into_iter().next().expect("one")
    }

    fn of(numbers: &[(&str, f64)]) -> Arrivals {
        let parameter = |(name, value): &(&str, f64)| Parameter {
            name: (*name).to_owned(),
            value: *value,
            interval: Interval {
                low: *value,
                high: *value,
            },
        };
        let parameters: Vec<Parameter> = numbers.iter().map(parameter).collect();
        Arrivals::of(&drive(), &Numbers::new(&parameters), SECTOR_US)
    }

    const SECTOR_US: f64 = 50.0;

    fn time(of: &Arrivals, key: &str) -> f64 {
        let all = of.times_us.iter().chain(&of.signed_us);
        let found = all.rev().find(|(name, _)| *name == key);
        found.unwrap_or_else(|| panic!("{key}: {of:?}")).1
    }

    fn seek_us(of: &Arrivals, key: &str, cylinders: f64) -> f64 {
        let (_, rows) = of.seeks.iter().find(|(name, _)| *name == key).expect(key);
        let row = rows.iter().find(|row| row[0] == cylinders);
        row.expect("a distance")[1] * 1e3
    }

    fn near(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 0.01, "{found} {wanted}");
    }

    /// However a sum is divided, it is the same: over a cylinder, on the track, to another
    /// head, for reads and writes; and no time is negative.
    #[test]
    fn what_is_divided_adds_up() {
        let mechanics = drive().model.mechanics;
        for same_track in [-2500.0, 700.0] {
            let of = of(&[
                ("arrival.read.constant_us", 3000.0),
                ("arrival.read.after_write_us", 40.0),
                ("arrival.read.same_track_us", same_track),
                ("arrival.read.head_switch_us", 90.0),
                ("arrival.read.inward_us", -30.0),
                ("arrival.read.seek_of_1_us", -120.0),
                ("arrival.read.seek_of_4_us", 60.0),
                ("arrival.write.constant_us", 4000.0),
                ("arrival.write.head_switch_us", -200.0),
                ("arrival.write.seek_of_1_us", 80.0),
            ]);
            let read = time(&of, "read_miss_ms");
            let filed_us = mechanics.seek.time_ms(1, 4) * 1e3;
            let over_one = read + seek_us(&of, "seek_table", 1.0);
            near(over_one, 3000.0 + filed_us - 120.0 - SECTOR_US);
            let on_track = read + time(&of, "same_track_ms");
            near(on_track, 3000.0 + same_track - SECTOR_US);
            let switch_us = mechanics.head_switch_ms * 1e3;
            let to_head = read + time(&of, "head_switch_ms");
            near(to_head, 3000.0 + switch_us + 90.0 - SECTOR_US);
            near(time(&of, "read_miss_after_write_ms"), read + 40.0);
            near(time(&of, "seek_inward_ms"), -30.0);
            let (write, settle) = (time(&of, "write_ms"), time(&of, "write_settle_ms"));
            let settle_us = mechanics.write_settle_ms * 1e3;
            let to_head = write + time(&of, "head_switch_ms") + settle;
            near(to_head, 4000.0 + switch_us + settle_us - 200.0 - SECTOR_US);
            let over_one = write + seek_us(&of, "write_seek_table", 1.0) + settle;
            near(over_one, 4000.0 + filed_us + settle_us + 80.0 - SECTOR_US);
            assert!(of.times_us.iter().all(|(_, us)| *us >= 0.0), "{of:?}");
        }
    }

    /// A drive that answers only what follows the last read shows one time for all hits.
    #[test]
    fn hits_that_were_not_seen_are_as_those_that_were() {
        let of = of(&[("buffer.contiguous_to_read.fixed_us", 1275.0)]);
        near(
            time(&of, "read_hit_ms"),
            time(&of, "read_hit_sequential_ms"),
        );
        near(
            time(&of, "read_hit_ms") + time(&of, "link_overhead_ms"),
            1275.0,
        );
    }
}
