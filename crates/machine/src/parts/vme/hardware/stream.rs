//! Read streams of the arm: sectors with the time when each has passed.

use super::arm::ArmState;
use super::{StreamOrigin, Vme, VmeCommand, VmeEvent};
use crate::hardware::marking::mark_media_transfer;
use crate::hardware::mechanism::DiskGeometry;
use crate::hardware::{HardwareParts, SimulationContext};
use diskperf_device::disk::layout::SectorPosition;
use diskperf_device::moment;
use diskperf_sim::Time;
use diskperf_timeline::Stage;

/// Read stream in progress, which serves commands and reads ahead of them.
#[derive(Clone, Debug)]
pub(super) struct ReadStream {
    /// Sectors in the order of passing, with the time when each has passed.
    pub(super) sector_end_times: Vec<(u64, Time)>,
    /// Number of the stream's sectors that have passed and been entered into the cache.
    pub(super) cached_count: usize,
    /// Whether the stream is a full-track read that starts at any sector, not a sequence.
    pub(super) is_full_track: bool,
    /// Whether passing sectors are entered into the cache.
    pub(super) is_cached: bool,
    /// Time until which some command needs the read stream.
    pub(super) needed_until_time: Time,
    /// Whether waiting writes must wait for the end of the read stream.
    pub(super) holds_arm: bool,
}

impl ReadStream {
    /// Returns the time at which the last sector of the stream passes.
    pub(super) fn stream_end(&self) -> Time {
        self.sector_end_times
            .last()
            .map_or(Time::ZERO, |(_, passes)| *passes)
    }

    fn end_sector(&self) -> u64 {
        self.sector_end_times
            .last()
            .map_or(0, |(sector, _)| sector + 1)
    }

    fn pass_time(&self, sector: u64) -> Option<Time> {
        let (first, _) = self.sector_end_times.first()?;
        let found = match self.is_full_track {
            true => self
                .sector_end_times
                .iter()
                .find(|(other, _)| *other == sector),
            false => self
                .sector_end_times
                .get(sector.checked_sub(*first)? as usize),
        };
        found.map(|(_, passes)| *passes)
    }
}

/// Returns the sector at which read-ahead of a command stops.
pub(super) fn read_ahead_limit(geometry: &DiskGeometry, command: &VmeCommand) -> u64 {
    let policy = command.cache_policy;
    let end = command.end_sector;
    if !policy.searches_cache || policy.read_ahead_sectors == 0 {
        return end;
    }
    let last = geometry.locate_sector(end - 1);
    let most = (end + u64::from(policy.read_ahead_sectors)).min(geometry.sector_count());
    let allowed = |drive_index: &SectorPosition| {
        (policy.reads_ahead_across_heads || drive_index.is_on_same_track(&last))
            && (policy.reads_ahead_across_cylinders || drive_index.cylinder == last.cylinder)
    };
    let mut limit = end;
    while limit < most {
        let run = geometry.run_from_sector(limit);
        if !allowed(&run.position) {
            return limit;
        }
        // What lies side by side is on one track.
        limit += u64::from(run.sector_count);
    }
    most
}

impl Vme {
    pub(super) fn cache_passed_sectors(&mut self, drive_index: usize, now: Time) {
        let unit = &mut self.drive_states[drive_index];
        let Some(ArmState::Reading(stream)) = &mut unit.arm_state else {
            return;
        };
        let from = stream.cached_count;
        let passed = stream.sector_end_times[from..]
            .iter()
            .take_while(|(_, passes)| *passes <= now)
            .count();
        stream.cached_count += passed;
        if !stream.is_cached {
            return;
        }
        let passed = &stream.sector_end_times[from..from + passed];
        for run in passed.chunk_by(|(one, _), (next, _)| one + 1 == *next) {
            let end = run[0].0 + run.len() as u64;
            self.cache.insert_extent(drive_index, run[0].0, end);
        }
    }

    /// Reports whether the next sector of a command is still to pass in the current stream.
    pub(super) fn is_passing(
        &self,
        context: &SimulationContext<'_>,
        drive_index: usize,
        command: &VmeCommand,
    ) -> bool {
        match &self.drive_states[drive_index].arm_state {
            Some(ArmState::Reading(stream))
                if command.cache_policy.searches_cache
                    && command.next_sector < command.end_sector =>
            {
                let now = context.now();
                stream
                    .pass_time(command.next_sector)
                    .is_some_and(|passes| passes > now)
            }
            _ => false,
        }
    }

    /// Serves a read command from the current stream, and extends the stream for it.
    pub(super) fn serve_from_stream(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        mut command: VmeCommand,
        origin: StreamOrigin,
    ) {
        let Some(ArmState::Reading(stream)) = &self.drive_states[drive_index].arm_state else {
            panic!("a command follows what is being read")
        };
        let whole_track = stream.is_full_track;
        // Where it takes from what was read ahead, and where from the drive.
        let own_from = match origin {
            StreamOrigin::OwnRead => command.next_sector,
            StreamOrigin::OtherRead if whole_track => command.end_sector,
            StreamOrigin::OtherRead => stream.end_sector(),
        };
        if !whole_track {
            self.extend_read_stream(context, parts, drive_index, &command);
        }
        let Some(ArmState::Reading(stream)) = &mut self.drive_states[drive_index].arm_state else {
            panic!("a command follows what is being read")
        };
        let mut passes: Vec<(Time, bool)> = (command.next_sector..command.end_sector)
            .map_while(|sector| Some((stream.pass_time(sector)?, sector >= own_from)))
            .collect();
        let taken = passes.len() as u64;
        passes.sort_unstable();
        let (last, _) = *passes.last().expect("its first sector passes");
        stream.needed_until_time = stream.needed_until_time.max(last);
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let sector_bytes = u64::from(drive.geometry().sector_bytes());
        let over_bus = parts.bus.transfer_time(sector_bytes);
        let from = passes[0].0.max(command.data_ready_at);
        for (passed, own) in passes {
            let moved = command.data_ready_at.max(passed);
            if own {
                command.data_ready_at = moved + over_bus;
            } else {
                command.data_ready_at = moved + self.config.move_time_per_sector;
                self.engine_free_at = self.engine_free_at.max(command.data_ready_at);
            }
        }
        command.next_sector += taken;
        let transfer = &mut parts.submitted_requests[command.id];
        let media_end = moment(last).max(transfer.spans.marked_until());
        mark_media_transfer(transfer, drive, Time(media_end.0));
        transfer.book_stage(
            Stage::BusTransfer,
            moment(command.data_ready_at).max(media_end),
        );
        self.schedule_data_transfer(
            context,
            parts,
            command.id,
            taken,
            from,
            command.data_ready_at,
        );
        if command.next_sector == command.end_sector {
            self.schedule_finish(context, &command);
        } else {
            // The rest is on the next track.
            self.drive_states[drive_index]
                .waiting_commands
                .push_front(command);
        }
    }

    fn extend_read_stream(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        command: &VmeCommand,
    ) {
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let yields_to_write = self.yields_to_write(drive_index, command);
        let limit = match yields_to_write {
            true => command.end_sector,
            false => read_ahead_limit(drive.geometry(), command),
        };
        let Some(ArmState::Reading(stream)) = &mut self.drive_states[drive_index].arm_state else {
            panic!("only what is being read goes on")
        };
        let end = stream.end_sector();
        if limit <= end {
            return;
        }
        let first = stream.sector_end_times[0].0;
        let passes = drive.extend_transfer((limit - first) as u32);
        stream.sector_end_times.extend((end..limit).zip(passes));
        let ends_at = stream.stream_end();
        assert!(
            drive.last_transfer_end() == Some(ends_at),
            "a stream ends when its last sector has passed"
        );
        let generation = self.next_generation(drive_index);
        self.id.schedule_event(
            context,
            ends_at,
            VmeEvent::ArmMoveEnd(drive_index as u8, generation),
        );
        if yields_to_write {
            self.schedule_read_ahead_end(context, drive_index);
        }
    }

    /// Continues read-ahead after a read was served from the cache, if the arm is still at the end
    /// of the stream.
    pub(super) fn read_ahead(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        command: VmeCommand,
    ) {
        if self.config.caching.is_track_cache() {
            self.read_next_track(context, parts, drive_index);
            return;
        }
        let unit = &self.drive_states[drive_index];
        let limit = read_ahead_limit(
            parts.drives[self.drives.mechanism_id_at(drive_index)].geometry(),
            &command,
        );
        match &unit.arm_state {
            Some(ArmState::Reading(stream)) => {
                let goes_on = (command.end_sector..=limit).contains(&stream.end_sector());
                if goes_on && !self.yields_to_write(drive_index, &command) {
                    self.extend_read_stream(context, parts, drive_index, &command);
                }
            }
            Some(ArmState::Seeking(_) | ArmState::Writing(_)) => {}
            None => {
                let from = unit.last_stream_end.filter(|last_stream_end| {
                    (command.end_sector..limit).contains(last_stream_end)
                });
                if let (Some(from), true) = (from, unit.waiting_commands.is_empty()) {
                    let count = (limit - from) as u32;
                    self.start_stream(context, parts, drive_index, from, count, &command);
                }
            }
        }
    }

    /// Starts to prefetch the next track after sequential reads, if the arm is free.
    pub(super) fn read_next_track(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
    ) {
        let unit = &self.drive_states[drive_index];
        if !unit.is_in_sequence || unit.arm_state.is_some() || !unit.waiting_commands.is_empty() {
            return;
        }
        let geometry = parts.drives[self.drives.mechanism_id_at(drive_index)].geometry();
        let from = unit.sequence_end;
        if from == geometry.sector_count() {
            return;
        }
        let track = geometry.sectors_per_track(geometry.locate_sector(from).cylinder);
        let most = (from + u64::from(track)).min(geometry.sector_count());
        let next = from + self.cache.cached_prefix(drive_index, from, most);
        if next < most {
            self.start_track(context, parts, drive_index, next, None);
        }
    }
}
