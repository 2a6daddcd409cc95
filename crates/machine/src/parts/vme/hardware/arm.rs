//! Scheduling of a drive's arm: its current work, and the commands that wait for it.

use super::adaptive::CommandHistory;
use super::stream::{ReadStream, read_ahead_limit};
use super::{StreamOrigin, Vme, VmeCommand, VmeEvent};
use crate::hardware::marking::{mark_arm_move, mark_media_transfer, rotational_wait_stage};
use crate::hardware::mechanism::ArmMove;
use crate::hardware::{HardwareParts, SimulationContext};
use diskperf_device::moment;
use diskperf_sim::Time;
use diskperf_timeline::{Deadline, Stage};
use std::collections::VecDeque;

/// State of one drive on the controller.
#[derive(Default)]
pub(super) struct VmeDriveState {
    pub(super) waiting_commands: VecDeque<VmeCommand>,
    pub(super) arm_state: Option<ArmState>,
    /// Generation of the arm's current work. Events of earlier work carry another generation and
    /// are ignored.
    pub(super) arm_generation: u32,
    /// Sector at which the last read stream of a sequence ended. None if the arm has moved since.
    pub(super) last_stream_end: Option<u64>,
    /// Range of sectors of the last read stream that stays in the cache only until the next stream.
    uncached_range: Option<(u64, u64)>,
    /// End of the last read of the drive, as a sector number.
    pub(super) sequence_end: u64,
    /// Whether the last read of the drive began at the end of the read before it.
    pub(super) is_in_sequence: bool,
    /// Command history for an adaptive controller.
    pub(super) command_history: CommandHistory,
}

/// Current work of a drive's arm.
pub(super) enum ArmState {
    /// Arm that reads a stream of sectors.
    Reading(ReadStream),
    /// Arm that is at or on its way to the start of a write, until enough data to write have been
    /// fetched.
    Seeking(VmeCommand),
    /// Arm that writes the data of a command.
    Writing(VmeCommand),
}

impl Vme {
    /// Reports whether read-ahead for a command gives way to a waiting write.
    pub(super) fn yields_to_write(&self, drive_index: usize, command: &VmeCommand) -> bool {
        let mut waiting = self.drive_states[drive_index].waiting_commands.iter();
        !command.cache_policy.holds_arm() && waiting.any(|command| command.is_write)
    }

    /// Ends read-ahead in favour of a waiting write, as soon as no command needs the stream.
    pub(super) fn schedule_read_ahead_end(
        &mut self,
        context: &SimulationContext<'_>,
        drive_index: usize,
    ) {
        let unit = &self.drive_states[drive_index];
        let Some(ArmState::Reading(stream)) = &unit.arm_state else {
            return;
        };
        if !stream.holds_arm {
            let at = stream.needed_until_time.max(context.now());
            let event = VmeEvent::ReadAheadEnd(drive_index as u8, unit.arm_generation);
            self.id.schedule_event(context, at, event);
        }
    }

    pub(super) fn handle_end_read_ahead(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        generation: u32,
    ) {
        let now = context.now();
        if self.drive_states[drive_index].arm_generation != generation {
            return;
        }
        self.cache_passed_sectors(drive_index, now);
        let Some(ArmState::Reading(stream)) = &self.drive_states[drive_index].arm_state else {
            return;
        };
        if stream.needed_until_time > now {
            self.schedule_read_ahead_end(context, drive_index);
            return;
        }
        if now >= stream.stream_end() {
            return;
        }
        parts.drives[self.drives.mechanism_id_at(drive_index)].truncate_last_transfer(now);
        self.end_stream(drive_index);
        self.start_arm(context, parts, drive_index);
    }

    /// Frees the arm at the end of a stream. Its sectors are kept until the next stream, or longer.
    fn end_stream(&mut self, drive_index: usize) {
        self.next_generation(drive_index);
        let unit = &mut self.drive_states[drive_index];
        if let Some(ArmState::Reading(stream)) = unit.arm_state.take() {
            let cached_count = &stream.sector_end_times[..stream.cached_count];
            let last = cached_count.last().map(|(sector, _)| sector + 1);
            unit.last_stream_end = last.filter(|_| !stream.is_full_track);
            if let (Some((_, end)), Some(last)) = (&mut unit.uncached_range, last) {
                *end = last.max(*end);
            }
        }
    }

    pub(super) fn handle_arm_done(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        generation: u32,
    ) {
        if self.drive_states[drive_index].arm_generation != generation {
            return;
        }
        self.cache_passed_sectors(drive_index, context.now());
        match self.drive_states[drive_index].arm_state {
            Some(ArmState::Reading(_)) => {
                self.end_stream(drive_index);
                self.start_arm(context, parts, drive_index);
                if self.config.caching.is_track_cache() {
                    self.read_next_track(context, parts, drive_index);
                }
            }
            Some(ArmState::Seeking(command)) => {
                self.start_writing(context, parts, drive_index, command)
            }
            Some(ArmState::Writing(command)) => {
                self.next_generation(drive_index);
                self.drive_states[drive_index].arm_state = None;
                self.schedule_finish(context, &command);
                self.start_arm(context, parts, drive_index);
            }
            None => {}
        }
    }

    /// Starts the next command of the arm, if the arm is free.
    pub(super) fn start_arm(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
    ) {
        while self.drive_states[drive_index].arm_state.is_none() {
            let Some(mut command) = self.next_command(parts, drive_index) else {
                return;
            };
            let request = &mut parts.submitted_requests[command.id];
            let now = moment(context.now()).max(request.spans.marked_until());
            request.book_stage(Stage::ControllerQueue, now);
            if command.is_write {
                self.start_write(context, parts, drive_index, command);
                continue;
            }
            // While it waited, what it wants may have been read for another.
            self.serve_cached(context, parts, drive_index, &mut command);
            if command.next_sector == command.end_sector {
                self.schedule_finish(context, &command);
            } else if self.config.caching.is_track_cache() {
                self.start_track(
                    context,
                    parts,
                    drive_index,
                    command.next_sector,
                    Some(&command),
                );
                self.serve_from_stream(context, parts, drive_index, command, StreamOrigin::OwnRead);
            } else {
                let limit = match self.yields_to_write(drive_index, &command) {
                    true => command.end_sector,
                    false => {
                        let drive = &parts.drives[self.drives.mechanism_id_at(drive_index)];
                        read_ahead_limit(drive.geometry(), &command)
                    }
                };
                let count = (limit - command.next_sector) as u32;
                self.start_stream(
                    context,
                    parts,
                    drive_index,
                    command.next_sector,
                    count,
                    &command,
                );
                self.serve_from_stream(context, parts, drive_index, command, StreamOrigin::OwnRead);
            }
        }
    }

    /// Takes the next waiting command: the first one, or with a sorting policy the nearest of the
    /// same direction (read or write), upwards from the arm.
    fn next_command(
        &mut self,
        parts: &HardwareParts<'_>,
        drive_index: usize,
    ) -> Option<VmeCommand> {
        let unit = &mut self.drive_states[drive_index];
        let first = unit.waiting_commands.front()?;
        if unit.waiting_commands.len() > 1 {
            let class = parts.submitted_requests[first.id].hint;
            self.statistics[class as usize].policy_choice_count += 1;
        }
        let sorts = match first.is_write {
            true => first.cache_policy.sorts_writes,
            false => first.cache_policy.sorts_reads,
        };
        if !sorts {
            return unit.waiting_commands.pop_front();
        }
        let drive = &parts.drives[self.drives.mechanism_id_at(drive_index)];
        let here = drive.cylinder();
        let cylinders = drive.geometry().cylinders();
        let write = first.is_write;
        let way = |command: &VmeCommand| {
            let cylinder = drive.geometry().locate_sector(command.next_sector).cylinder;
            (cylinder + cylinders - here) % cylinders
        };
        let (best, _) = unit
            .waiting_commands
            .iter()
            .enumerate()
            .filter(|(_, command)| command.is_write == write)
            .min_by_key(|(_, command)| way(command))?;
        unit.waiting_commands.remove(best)
    }

    /// Starts to read consecutive sectors, for a command or as read-ahead.
    pub(super) fn start_stream(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        first: u64,
        count: u32,
        command: &VmeCommand,
    ) {
        let now = context.now();
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let ready_since = drive.last_transfer_end();
        let passage = drive.transfer_sectors(now, first, count, false);
        let passes = drive.sector_end_times();
        let period = drive.spindle().revolution_time();
        // What is read ahead is nobody's way.
        if command.next_sector == first && command.next_sector < command.end_sector {
            let starts_at = now + passage.time_to_first_sector();
            mark_positioning(
                parts,
                command,
                TrackPositioning {
                    now,
                    arm_move: passage.move_to_track,
                    ready_since,
                    starts_at,
                    revolution_time: period,
                },
            );
        }
        let sectors: Vec<(u64, Time)> = (first..).zip(passes).collect();
        let stream = ReadStream {
            sector_end_times: sectors,
            cached_count: 0,
            is_full_track: false,
            is_cached: command.cache_policy.searches_cache,
            needed_until_time: now,
            holds_arm: command.cache_policy.holds_arm(),
        };
        let ends_at = stream.stream_end();
        let goes_on = self.drive_states[drive_index].last_stream_end == Some(first);
        if !goes_on {
            self.evict_unsaved(drive_index);
        }
        let unit = &mut self.drive_states[drive_index];
        if !command.cache_policy.caches_reads && unit.uncached_range.is_none() {
            unit.uncached_range = Some((first, first));
        }
        unit.last_stream_end = None;
        self.set_arm_state(context, drive_index, ArmState::Reading(stream), ends_at);
    }

    /// Removes the sectors of earlier read streams from the cache, if their policy was not to keep
    /// read sectors.
    fn evict_unsaved(&mut self, drive_index: usize) {
        let unit = &mut self.drive_states[drive_index];
        if let Some((first, end)) = unit.uncached_range.take() {
            self.cache.remove_extent(drive_index, first, end);
        }
    }

    /// Starts to read a whole track, for a command or as read-ahead.
    pub(super) fn start_track(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        sector: u64,
        command: Option<&VmeCommand>,
    ) {
        let now = context.now();
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let ready_since = drive.last_transfer_end();
        let period = drive.spindle().revolution_time();
        let read = drive.read_track(now, sector);
        if let Some(command) = command {
            mark_positioning(
                parts,
                command,
                TrackPositioning {
                    now,
                    arm_move: read.move_to_track,
                    ready_since,
                    starts_at: read.read_start,
                    revolution_time: period,
                },
            );
        }
        let stream = ReadStream {
            sector_end_times: read.sector_end_times,
            cached_count: 0,
            is_full_track: true,
            is_cached: true,
            needed_until_time: now,
            // A track is read to its end.
            holds_arm: true,
        };
        let ends_at = stream.stream_end();
        self.drive_states[drive_index].last_stream_end = None;
        self.set_arm_state(context, drive_index, ArmState::Reading(stream), ends_at);
    }

    fn start_write(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        command: VmeCommand,
    ) {
        let now = context.now();
        self.drive_states[drive_index].last_stream_end = None;
        if !self.config.caching.is_track_cache() {
            // Nothing that is kept may be older than what is on the drive.
            if !command.cache_policy.caches_writes {
                self.cache
                    .remove_extent(drive_index, command.next_sector, command.end_sector);
            }
        }
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let target = drive.geometry().locate_sector(command.next_sector);
        let before_last = (command.end_sector - command.next_sector - 1) as u32;
        let media = drive.time_of_slots(target.cylinder, before_last);
        // The medium does not wait for memory: writing begins when the last
        // sector will be there in time.
        let in_time = Time(command.data_ready_at.0.saturating_sub(media.0));
        let start_allowed_at = in_time.max(command.start_allowed_at);
        if start_allowed_at <= now {
            self.start_writing(context, parts, drive_index, command);
            return;
        }
        let arm = drive.seek_to_cylinder(target.cylinder, true);
        let starts_at = (now + arm.total_time()).max(start_allowed_at);
        let transfer = &mut parts.submitted_requests[command.id];
        mark_arm_move(transfer, now, arm);
        transfer.book_stage(Stage::BusTransfer, moment(starts_at));
        self.set_arm_state(context, drive_index, ArmState::Seeking(command), starts_at);
    }

    fn start_writing(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        mut command: VmeCommand,
    ) {
        let now = context.now();
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let ready_since = drive.last_transfer_end();
        let period = drive.spindle().revolution_time();
        let count = (command.end_sector - command.next_sector) as u32;
        let passage = drive.transfer_sectors(now, command.next_sector, count, true);
        let starts_at = now + passage.time_to_first_sector();
        let ends_at = now + passage.total_time();
        mark_positioning(
            parts,
            &command,
            TrackPositioning {
                now,
                arm_move: passage.move_to_track,
                ready_since,
                starts_at,
                revolution_time: period,
            },
        );
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        mark_media_transfer(&mut parts.submitted_requests[command.id], drive, ends_at);
        assert!(
            command.data_ready_at <= ends_at,
            "what is written has been fetched before"
        );
        command.data_ready_at = ends_at;
        self.set_arm_state(context, drive_index, ArmState::Writing(command), ends_at);
    }
}

/// Positioning of a drive's arm and platters before a media transfer.
#[derive(Clone, Copy)]
struct TrackPositioning {
    now: Time,
    arm_move: ArmMove,
    /// End of the transfer before. None for the first transfer of the drive.
    ready_since: Option<Time>,
    /// Start of the media transfer.
    starts_at: Time,
    revolution_time: Time,
}

fn mark_positioning(
    parts: &mut HardwareParts<'_>,
    command: &VmeCommand,
    positioning: TrackPositioning,
) {
    let TrackPositioning {
        now,
        arm_move,
        ready_since,
        starts_at,
        revolution_time,
    } = positioning;
    let transfer = &mut parts.submitted_requests[command.id];
    // What the cache held of it may still be on the bus.
    if Time(transfer.spans.marked_until().0) > now {
        let marked = transfer.spans.marked_until();
        transfer.book_stage(Stage::RotationalLatency, moment(starts_at).max(marked));
        return;
    }
    mark_arm_move(transfer, now, arm_move);
    let late = rotational_wait_stage(
        transfer,
        ready_since,
        revolution_time,
        starts_at,
        arm_move,
        Deadline::TransferCommand,
    );
    transfer.book_stage(late, moment(starts_at));
}
