//! Conversion of fitted results into parameters of the drive model.
//!
//! A fitted arrival time is a sum: the files' seek time, a constant, and terms for the preceding
//! operation, the actuator position and the seek distance. The drive model has the same terms as
//! separate times, none of which may be negative. Their common part is assigned to the firmware.

use crate::angles::AngleSource;
use crate::arrival::{ArrivalCorrection, FittedArrival, SEEK_TERMS, added_to_seek_us, term_index};
use crate::replay::us_from_time;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::disk::link::ReadDelivery;
use diskperf_device::disk::mechanism::Mechanism;
use diskperf_device::disk::overheads::OverheadByState;
use diskperf_device::disk::seek::SeekSpecification;

pub(crate) const BLOCK_BYTES: f64 = 512.0;
/// Maximum ratio of successive distances in a seek table. Between the points of the fit, times are
/// linear in the logarithm of the distance.
const SEEK_POINT_RATIO: f64 = 1.2;

/// Converts microseconds to milliseconds with nanosecond resolution, as the catalogue stores them.
pub(crate) fn rounded_ms(us: f64) -> f64 {
    (us * 1e3).round() / 1e6
}

/// Converts microseconds to milliseconds; a negative time becomes 0.
fn nonnegative_ms(us: f64) -> f64 {
    rounded_ms(us.max(0.0))
}

/// Converts the transfer time of a block to a rate in whole bytes per second, as the catalogue
/// stores it.
pub(crate) fn bytes_per_s(block_us: f64) -> f64 {
    (BLOCK_BYTES * 1e6 / block_us).round()
}

/// Moves all firmware times into the command constants, which a trace can show. Transfer,
/// reselection and read completion then take no time of their own.
pub(crate) fn merge_overheads(disk: &mut DiskSpecification) {
    let link_ms = disk.link.overhead_ms;
    let overheads = &mut disk.overheads;
    for (after, end_ms) in [
        (&mut overheads.read_hit_ms, overheads.read_completion_ms),
        (&mut overheads.read_miss_ms, overheads.read_completion_ms),
        (&mut overheads.write_ms, 0.0),
    ] {
        shift_overhead(after, (link_ms + end_ms) * 1e3);
    }
    overheads.read_completion_ms = 0.0;
    (disk.link.overhead_ms, disk.link.reconnect_ms) = (0.0, 0.0);
    if let ReadDelivery::Reconnected { share } = &mut disk.link.read_delivery {
        *share = 0.0;
    }
}

/// Adds a time in microseconds to all constants of a kind of command; results below 0 become 0.
pub(crate) fn shift_overhead(after: &mut OverheadByState, by_us: f64) {
    let shifted = |time: f64| nonnegative_ms(time * 1e3 + by_us);
    *after = OverheadByState {
        after_read_ms: shifted(after.after_read_ms),
        after_write_ms: shifted(after.after_write_ms),
        sequential_ms: after.sequential_ms.map(shifted),
        reading_ahead_ms: after.reading_ahead_ms.map(shifted),
    };
}

/// Stores skews and zone origins in the layout. The fit places a sector where its data start to
/// cross the link, which is after it has passed. The platter angle is one sector less, and that is
/// a different angle in each zone.
pub(crate) fn propose_angles(disk: &mut DiskSpecification, angles: &AngleSource) {
    let layout = &mut disk.mechanism.layout;
    let other_tracks = f64::from(layout.surface_count - 1);
    for (number, zone) in layout.zones.iter_mut().enumerate() {
        if let AngleSource::Fitted(skews) = angles {
            zone.track_skew_rev = skews.track_skew.rem_euclid(1.0);
            // From a cylinder's last track to the next one's first; the fit counts from the
            // first.
            let across = skews.cylinder_skew - other_tracks * skews.track_skew;
            zone.cylinder_skew_rev = across.rem_euclid(1.0);
            zone.origin_rev = skews.zone_origins[number];
            zone.range_skew_rev = skews.spare_range_steps[number].rem_euclid(1.0);
        }
        zone.origin_rev -= 1.0 / f64::from(zone.sectors_per_track);
    }
}

/// Returns the mean number of sectors per track, weighted by the number of tracks.
pub(crate) fn mean_sectors_per_track(disk: &DiskSpecification) -> f64 {
    let layout = &disk.mechanism.layout;
    let (mut sectors, mut tracks) = (0.0, 0.0);
    for zone in &layout.zones {
        let count = f64::from(zone.last_cylinder - zone.first_cylinder) + 1.0;
        sectors += count * f64::from(zone.sectors_per_track);
        tracks += count;
    }
    for extent in &layout.extents {
        sectors += f64::from(extent.sectors_per_track);
        tracks += 1.0;
    }
    (sectors / tracks).max(1.0)
}

/// Terms of an arrival time in the form of the drive model, in microseconds.
#[derive(Clone, Copy, Debug)]
struct ArrivalTerms {
    constant_us: f64,
    after_write_us: f64,
    /// Additional arrival time during read-ahead, in microseconds; absent if no request shows it.
    reading_ahead_us: Option<f64>,
    same_track_us: f64,
    /// Head switch time, including that of the files.
    head_switch_us: f64,
    inward_us: f64,
    block_us: f64,
    /// Time subtracted from each seek because it is common to all seeks.
    seek_offset_us: f64,
}

impl ArrivalTerms {
    fn new(of: &FittedArrival, filed_head_switch_us: f64) -> ArrivalTerms {
        let term = |name: &str| of.correction.weights_us[term_index(name)];
        let is_seen = |name: &str| of.errors_us[term_index(name)] > 0.0;
        let seeks = SEEK_TERMS.filter(|index| of.errors_us[*index] > 0.0);
        let seeks: Vec<f64> = seeks.map(|index| of.correction.weights_us[index]).collect();
        // The fit has one sum of both: that seeks are those of the files, on average, is
        // what tells them apart.
        let mean = seeks.iter().sum::<f64>() / seeks.len().max(1) as f64;
        // Less than nothing on a track is more on all others.
        let same_track = term("same_track_us") - mean;
        let common = mean + same_track.min(0.0);
        ArrivalTerms {
            constant_us: term("constant_us") + common,
            after_write_us: term("after_write_us"),
            reading_ahead_us: is_seen("reading_ahead_us").then(|| term("reading_ahead_us")),
            same_track_us: same_track.max(0.0),
            head_switch_us: filed_head_switch_us + term("head_switch_us") - common,
            inward_us: term("inward_us"),
            block_us: term("block_us"),
            seek_offset_us: common,
        }
    }

    fn command_overhead(&self) -> OverheadByState {
        let constant = self.constant_us;
        OverheadByState {
            after_read_ms: nonnegative_ms(constant),
            after_write_ms: nonnegative_ms(constant + self.after_write_us),
            sequential_ms: None,
            reading_ahead_ms: self
                .reading_ahead_us
                .map(|us| nonnegative_ms(constant + us)),
        }
    }
}

/// Stores arrival times of reads in a disk. `filed` has the files' seek times.
pub(crate) fn propose_read_arrivals(
    disk: &mut DiskSpecification,
    filed: (&DiskSpecification, &Mechanism),
    read: &FittedArrival,
) {
    let filed_mechanism = &filed.0.mechanism;
    let reads = ArrivalTerms::new(read, filed_mechanism.head_switch_ms * 1e3);
    disk.overheads.read_miss_ms = reads.command_overhead();
    let mechanism = &mut disk.mechanism;
    mechanism.same_track_ms[0] = nonnegative_ms(reads.same_track_us);
    mechanism.head_switch_ms = nonnegative_ms(reads.head_switch_us);
    mechanism.inward_ms[0] = rounded_ms(reads.inward_us);
    mechanism.seek = fitted_seeks(filed, &read.correction, false, reads.seek_offset_us);
}

/// Stores arrival times of writes in a disk that completes writes on the medium and has the arrival
/// times of reads.
pub(crate) fn propose_write_arrivals(
    disk: &mut DiskSpecification,
    filed: (&DiskSpecification, &Mechanism),
    write: &FittedArrival,
) {
    let filed_mechanism = &filed.0.mechanism;
    let sector_us = disk.mechanism.period_ns / 1e3 / mean_sectors_per_track(disk);
    let mechanism = &mut disk.mechanism;
    let with_settle_ms = filed_mechanism.head_switch_ms + filed_mechanism.write_settle_ms;
    let writes = ArrivalTerms::new(write, with_settle_ms * 1e3);
    // What each sector has to be there before the platter: the link is as much slower, and
    // its data come by the time that the firmware takes for them.
    let rate = bytes_per_s(sector_us + writes.block_us.max(0.0));
    disk.link.write_bytes_per_s = Some(rate);
    disk.overheads.write_ms = writes.command_overhead();
    disk.overheads.write_sector_ms = nonnegative_ms(writes.block_us);
    // What a write's change of the head takes longer than a read's: its settling, which
    // seeks of writes have too.
    let settle = writes.head_switch_us - mechanism.head_switch_ms * 1e3;
    mechanism.same_track_ms[1] = nonnegative_ms(writes.same_track_us);
    mechanism.write_settle_ms = rounded_ms(settle);
    mechanism.inward_ms[1] = rounded_ms(writes.inward_us);
    let off = writes.seek_offset_us + settle;
    mechanism.write_seek = Some(fitted_seeks(filed, &write.correction, true, off));
}

/// Stores the arrival times of reads as those of writes, which settle for the time of the files.
pub(crate) fn propose_common_arrivals(disk: &mut DiskSpecification, filed: &DiskSpecification) {
    let mechanism = &mut disk.mechanism;
    mechanism.write_settle_ms = filed.mechanism.write_settle_ms;
    mechanism.same_track_ms[1] = mechanism.same_track_ms[0];
    mechanism.inward_ms[1] = mechanism.inward_ms[0];
}

/// Returns a seek table from the files' seek times plus the fitted corrections, minus a common
/// time.
fn fitted_seeks(
    (filed, arm): (&DiskSpecification, &Mechanism),
    arrival: &ArrivalCorrection,
    write: bool,
    seek_offset_us: f64,
) -> SeekSpecification {
    let settle_us = match write {
        true => filed.mechanism.write_settle_ms * 1e3,
        false => 0.0,
    };
    let time = |distance: u32| {
        let filed_us = us_from_time(arm.seek_curve().time_between(0, distance, write)) + settle_us;
        let time_us = filed_us + added_to_seek_us(arrival, distance) - seek_offset_us;
        (distance, nonnegative_ms(time_us))
    };
    let last = arm.layout().cylinder_count().saturating_sub(1).max(1);
    let mut distances = std::collections::BTreeSet::from([last]);
    if let SeekSpecification::Table { points } = &filed.mechanism.seek {
        distances.extend(points.iter().map(|(cylinders, _)| *cylinders));
    }
    let mut distance = 1;
    while distance < last {
        distances.insert(distance);
        let next = (f64::from(distance) * SEEK_POINT_RATIO).ceil();
        distance = next.max(f64::from(distance + 1)) as u32;
    }
    let points = distances.range(1..=last).map(|distance| time(*distance));
    SeekSpecification::Table {
        points: points.collect(),
    }
}
