//! Read streams of the arm: sectors with the time when each has passed.

use super::arm::Arm;
use super::{Command, Served, Vme, VmeEvent};
use crate::hardware::marking::mark_passing;
use crate::hardware::mechanism::Geometry;
use crate::hardware::{Parts, Surroundings};
use diskperf_device::disk::layout::Place;
use diskperf_device::moment;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Read stream in progress, which serves commands and reads ahead of them.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// Sectors in the order of passing, with the time when each has passed.
    pub(super) sectors: Vec<(u64, Time)>,
    /// Number of the stream's sectors that have passed and been entered into the cache.
    pub(super) absorbed: usize,
    /// Whether the stream is a full-track read that starts at any sector, not a sequence.
    pub(super) whole_track: bool,
    /// Whether passing sectors are entered into the cache.
    pub(super) kept: bool,
    /// Time until which some command needs the read stream.
    pub(super) needed: Time,
    /// Whether waiting writes must wait for the end of the read stream.
    pub(super) keeps_arm: bool,
}

impl Stream {
    /// Returns the time at which the last sector of the stream passes.
    pub(super) fn ends(&self) -> Time {
        self.sectors
            .last()
            .map_or(Time::ZERO, |(_, passes)| *passes)
    }

    fn end_sector(&self) -> u64 {
        self.sectors.last().map_or(0, |(sector, _)| sector + 1)
    }

    fn passes(&self, sector: u64) -> Option<Time> {
        let (first, _) = self.sectors.first()?;
        let found = match self.whole_track {
            true => self.sectors.iter().find(|(other, _)| *other == sector),
            false => self.sectors.get(sector.checked_sub(*first)? as usize),
        };
        found.map(|(_, passes)| *passes)
    }
}

/// Returns the sector at which read-ahead of a command stops.
pub(super) fn ahead_limit(geometry: &Geometry, command: &Command) -> u64 {
    let policy = command.policy;
    let end = command.end;
    if !policy.search || policy.ahead_sectors == 0 {
        return end;
    }
    let last = geometry.locate(end - 1);
    let most = (end + u64::from(policy.ahead_sectors)).min(geometry.sectors());
    let allowed = |place: &Place| {
        (policy.across_heads || place.same_track(&last))
            && (policy.across_cylinders || place.cylinder == last.cylinder)
    };
    let mut limit = end;
    while limit < most {
        let run = geometry.run(limit);
        if !allowed(&run.place) {
            return limit;
        }
        // What lies side by side is on one track.
        limit += u64::from(run.sectors);
    }
    most
}

impl Vme {
    /// Enters the sectors of a stream that have passed into the cache.
    pub(super) fn absorb(&mut self, place: usize, now: Time) {
        let unit = &mut self.units[place];
        let Some(Arm::Read(stream)) = &mut unit.arm else {
            return;
        };
        let from = stream.absorbed;
        let passed = stream.sectors[from..]
            .iter()
            .take_while(|(_, passes)| *passes <= now)
            .count();
        stream.absorbed += passed;
        if !stream.kept {
            return;
        }
        let passed = &stream.sectors[from..from + passed];
        for run in passed.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
            let end = run[0].0 + run.len() as u64;
            self.cache.insert(place, run[0].0, end);
        }
    }

    /// Reports whether the next sector of a command is still to pass in the current stream.
    pub(super) fn is_passing(
        &self,
        around: &Surroundings<'_>,
        place: usize,
        command: &Command,
    ) -> bool {
        match &self.units[place].arm {
            Some(Arm::Read(stream)) if command.policy.search && command.next < command.end => {
                let now = around.now();
                stream
                    .passes(command.next)
                    .is_some_and(|passes| passes > now)
            }
            _ => false,
        }
    }

    /// Serves a read command from the current stream, and extends the stream for it.
    pub(super) fn follow(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, mut command): (usize, Command),
        served: Served,
    ) {
        let Some(Arm::Read(stream)) = &self.units[place].arm else {
            panic!("a command follows what is being read")
        };
        let whole_track = stream.whole_track;
        // Where it takes from what was read ahead, and where from the drive.
        let own_from = match served {
            Served::ForIt => command.next,
            Served::FromOthers if whole_track => command.end,
            Served::FromOthers => stream.end_sector(),
        };
        if !whole_track {
            self.extend(around, parts, (place, &command));
        }
        let Some(Arm::Read(stream)) = &mut self.units[place].arm else {
            panic!("a command follows what is being read")
        };
        let mut passes: Vec<(Time, bool)> = (command.next..command.end)
            .map_while(|sector| Some((stream.passes(sector)?, sector >= own_from)))
            .collect();
        let taken = passes.len() as u64;
        passes.sort_unstable();
        let (last, _) = *passes.last().expect("its first sector passes");
        stream.needed = stream.needed.max(last);
        let drive = &mut parts.drives[self.drives.at(place)];
        let sector_bytes = u64::from(drive.geometry().sector_bytes());
        let over_bus = parts.bus.time(sector_bytes);
        let from = passes[0].0.max(command.ready);
        for (passed, own) in passes {
            let moved = command.ready.max(passed);
            if own {
                command.ready = moved + over_bus;
            } else {
                command.ready = moved + self.config.move_per_sector;
                self.engine_free = self.engine_free.max(command.ready);
            }
        }
        command.next += taken;
        let transfer = &mut parts.requests[command.id];
        let media_end = moment(last).max(transfer.spans.marked());
        mark_passing(transfer, drive, Time(media_end.0));
        transfer.mark(Stage::BusTransfer, moment(command.ready).max(media_end));
        self.move_data(around, parts, (command.id, taken), (from, command.ready));
        if command.next == command.end {
            self.finish(around, &command);
        } else {
            // The rest is on the next track.
            self.units[place].waiting.push_front(command);
        }
    }

    fn extend(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, command): (usize, &Command),
    ) {
        let drive = &mut parts.drives[self.drives.at(place)];
        let yields = self.yields(place, command);
        let limit = match yields {
            true => command.end,
            false => ahead_limit(drive.geometry(), command),
        };
        let Some(Arm::Read(stream)) = &mut self.units[place].arm else {
            panic!("only what is being read goes on")
        };
        let end = stream.end_sector();
        if limit <= end {
            return;
        }
        let first = stream.sectors[0].0;
        let passes = drive.lengthen((limit - first) as u32);
        stream.sectors.extend((end..limit).zip(passes));
        let ends = stream.ends();
        assert!(
            drive.last_transfer() == Some(ends),
            "a stream ends when its last sector has passed"
        );
        let generation = self.next_generation(place);
        self.id
            .schedule(around, ends, VmeEvent::ArmDone(place as u8, generation));
        if yields {
            self.make_way(around, place);
        }
    }

    /// Continues read-ahead after a read was served from the cache, if the arm is still at the end
    /// of the stream.
    pub(super) fn read_ahead(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, command): (usize, Command),
    ) {
        if self.config.caching.by_tracks() {
            self.read_next_track(around, parts, place);
            return;
        }
        let unit = &self.units[place];
        let limit = ahead_limit(parts.drives[self.drives.at(place)].geometry(), &command);
        match &unit.arm {
            Some(Arm::Read(stream)) => {
                let goes_on = (command.end..=limit).contains(&stream.end_sector());
                if goes_on && !self.yields(place, &command) {
                    self.extend(around, parts, (place, &command));
                }
            }
            Some(Arm::Seek(_) | Arm::Write(_)) => {}
            None => {
                let from = unit.tail.filter(|tail| (command.end..limit).contains(tail));
                if let (Some(from), true) = (from, unit.waiting.is_empty()) {
                    let count = (limit - from) as u32;
                    self.start_stream(around, parts, (place, from, count), &command);
                }
            }
        }
    }

    /// Starts to prefetch the next track after sequential reads, if the arm is free.
    pub(super) fn read_next_track(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        place: usize,
    ) {
        let unit = &self.units[place];
        if !unit.in_sequence || unit.arm.is_some() || !unit.waiting.is_empty() {
            return;
        }
        let geometry = parts.drives[self.drives.at(place)].geometry();
        let from = unit.sequence_end;
        if from == geometry.sectors() {
            return;
        }
        let track = geometry.sectors_per_track(geometry.locate(from).cylinder);
        let most = (from + u64::from(track)).min(geometry.sectors());
        let next = from + self.cache.prefix(place, from, most);
        if next < most {
            self.start_track(around, parts, (place, next), None);
        }
    }
}
