//! Scheduling of a drive's arm: its current work, and the commands that wait for it.

use super::adaptive::Watch;
use super::stream::{Stream, ahead_limit};
use super::{Command, Served, Vme, VmeEvent};
use crate::hardware::marking::{late_stage, mark_move, mark_passing};
use crate::hardware::mechanism::Move;
use crate::hardware::{Parts, Surroundings};
use diskperf_device::moment;
use diskperf_sim::Time;
use diskperf_timeline::{Deadline, Stage};
use std::collections::VecDeque;

/// State of one drive on the controller.
#[derive(Default)]
pub(super) struct Unit {
    /// Decoded commands that wait for the arm of the drive.
    pub(super) waiting: VecDeque<Command>,
    pub(super) arm: Option<Arm>,
    /// Generation of the arm's current work. Events of earlier work carry another generation and
    /// are ignored.
    pub(super) generation: u32,
    /// Sector at which the last read stream of a sequence ended. None if the arm has moved since.
    pub(super) tail: Option<u64>,
    /// Range of sectors of the last read stream that stays in the cache only until the next stream.
    unsaved: Option<(u64, u64)>,
    /// End of the last read of the drive, as a sector number.
    pub(super) sequence_end: u64,
    /// Whether the last read of the drive began at the end of the read before it.
    pub(super) in_sequence: bool,
    /// Command history for an adaptive controller.
    pub(super) watch: Watch,
}

/// Current work of a drive's arm.
pub(super) enum Arm {
    /// Arm that reads a stream of sectors.
    Read(Stream),
    /// Arm that is at or on its way to the start of a write, until enough data to write have been
    /// fetched.
    Seek(Command),
    /// Arm that writes the data of a command.
    Write(Command),
}

impl Vme {
    /// Reports whether read-ahead for a command gives way to a waiting write.
    pub(super) fn yields(&self, place: usize, command: &Command) -> bool {
        let mut waiting = self.units[place].waiting.iter();
        !command.policy.keeps_arm() && waiting.any(|command| command.write)
    }

    /// Ends read-ahead in favour of a waiting write, as soon as no command needs the stream.
    pub(super) fn make_way(&mut self, around: &Surroundings<'_>, place: usize) {
        let unit = &self.units[place];
        let Some(Arm::Read(stream)) = &unit.arm else {
            return;
        };
        if !stream.keeps_arm {
            let at = stream.needed.max(around.now());
            let event = VmeEvent::LeaveOff(place as u8, unit.generation);
            self.id.schedule(around, at, event);
        }
    }

    pub(super) fn leave_off(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, generation): (usize, u32),
    ) {
        let now = around.now();
        if self.units[place].generation != generation {
            return;
        }
        self.absorb(place, now);
        let Some(Arm::Read(stream)) = &self.units[place].arm else {
            return;
        };
        if stream.needed > now {
            self.make_way(around, place);
            return;
        }
        if now >= stream.ends() {
            return;
        }
        parts.drives[self.drives.at(place)].cut_short(now);
        self.stream_over(place);
        self.start_arm(around, parts, place);
    }

    /// Frees the arm at the end of a stream. Its sectors are kept until the next stream, or longer.
    fn stream_over(&mut self, place: usize) {
        self.next_generation(place);
        let unit = &mut self.units[place];
        if let Some(Arm::Read(stream)) = unit.arm.take() {
            let absorbed = &stream.sectors[..stream.absorbed];
            let last = absorbed.last().map(|(sector, _)| sector + 1);
            unit.tail = last.filter(|_| !stream.whole_track);
            if let (Some((_, end)), Some(last)) = (&mut unit.unsaved, last) {
                *end = last.max(*end);
            }
        }
    }

    pub(super) fn arm_done(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, generation): (usize, u32),
    ) {
        if self.units[place].generation != generation {
            return;
        }
        self.absorb(place, around.now());
        match self.units[place].arm {
            Some(Arm::Read(_)) => {
                self.stream_over(place);
                self.start_arm(around, parts, place);
                if self.config.caching.by_tracks() {
                    self.read_next_track(around, parts, place);
                }
            }
            Some(Arm::Seek(command)) => self.start_writing(around, parts, (place, command)),
            Some(Arm::Write(command)) => {
                self.next_generation(place);
                self.units[place].arm = None;
                self.finish(around, &command);
                self.start_arm(around, parts, place);
            }
            None => {}
        }
    }

    /// Starts the next command of the arm, if the arm is free.
    pub(super) fn start_arm(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        place: usize,
    ) {
        while self.units[place].arm.is_none() {
            let Some(mut command) = self.next_command(parts, place) else {
                return;
            };
            let request = &mut parts.requests[command.id];
            let now = moment(around.now()).max(request.spans.marked());
            request.mark(Stage::ControllerQueue, now);
            if command.write {
                self.start_write(around, parts, (place, command));
                continue;
            }
            // While it waited, what it wants may have been read for another.
            self.serve_held(around, parts, (place, &mut command));
            if command.next == command.end {
                self.finish(around, &command);
            } else if self.config.caching.by_tracks() {
                self.start_track(around, parts, (place, command.next), Some(&command));
                self.follow(around, parts, (place, command), Served::ForIt);
            } else {
                let limit = match self.yields(place, &command) {
                    true => command.end,
                    false => {
                        let drive = &parts.drives[self.drives.at(place)];
                        ahead_limit(drive.geometry(), &command)
                    }
                };
                let count = (limit - command.next) as u32;
                self.start_stream(around, parts, (place, command.next, count), &command);
                self.follow(around, parts, (place, command), Served::ForIt);
            }
        }
    }

    /// Takes the next waiting command: the first one, or with a sorting policy the nearest of the
    /// same direction (read or write), upwards from the arm.
    fn next_command(&mut self, parts: &Parts<'_>, place: usize) -> Option<Command> {
        let unit = &mut self.units[place];
        let first = unit.waiting.front()?;
        if unit.waiting.len() > 1 {
            let class = parts.requests[first.id].hint;
            self.statistics[class as usize].choices += 1;
        }
        let sorts = match first.write {
            true => first.policy.sort_writes,
            false => first.policy.sort_reads,
        };
        if !sorts {
            return unit.waiting.pop_front();
        }
        let drive = &parts.drives[self.drives.at(place)];
        let here = drive.cylinder();
        let cylinders = drive.geometry().cylinders();
        let write = first.write;
        let way = |command: &Command| {
            let cylinder = drive.geometry().locate(command.next).cylinder;
            (cylinder + cylinders - here) % cylinders
        };
        let (best, _) = unit
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, command)| command.write == write)
            .min_by_key(|(_, command)| way(command))?;
        unit.waiting.remove(best)
    }

    /// Starts to read consecutive sectors, for a command or as read-ahead.
    pub(super) fn start_stream(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, first, count): (usize, u64, u32),
        command: &Command,
    ) {
        let now = around.now();
        let drive = &mut parts.drives[self.drives.at(place)];
        let since = drive.last_transfer();
        let passage = drive.transfer(now, first, count, false);
        let passes = drive.sectors_pass();
        let period = drive.spindle().period();
        // What is read ahead is nobody's way.
        if command.next == first && command.next < command.end {
            let begins = now + passage.to_first_sector();
            mark_way(
                parts,
                command,
                (now, passage.to_track),
                (since, begins, period),
            );
        }
        let sectors: Vec<(u64, Time)> = (first..).zip(passes).collect();
        let stream = Stream {
            sectors,
            absorbed: 0,
            whole_track: false,
            kept: command.policy.search,
            needed: now,
            keeps_arm: command.policy.keeps_arm(),
        };
        let ends = stream.ends();
        let goes_on = self.units[place].tail == Some(first);
        if !goes_on {
            self.forget_unsaved(place);
        }
        let unit = &mut self.units[place];
        if !command.policy.save_reads && unit.unsaved.is_none() {
            unit.unsaved = Some((first, first));
        }
        unit.tail = None;
        self.set_arm(around, place, Arm::Read(stream), ends);
    }

    /// Removes the sectors of earlier read streams from the cache, if their policy was not to keep
    /// read sectors.
    fn forget_unsaved(&mut self, place: usize) {
        let unit = &mut self.units[place];
        if let Some((first, end)) = unit.unsaved.take() {
            self.cache.remove(place, first, end);
        }
    }

    /// Starts to read a whole track, for a command or as read-ahead.
    pub(super) fn start_track(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, sector): (usize, u64),
        command: Option<&Command>,
    ) {
        let now = around.now();
        let drive = &mut parts.drives[self.drives.at(place)];
        let since = drive.last_transfer();
        let period = drive.spindle().period();
        let read = drive.read_track(now, sector);
        if let Some(command) = command {
            mark_way(
                parts,
                command,
                (now, read.to_track),
                (since, read.begins, period),
            );
        }
        let stream = Stream {
            sectors: read.sectors,
            absorbed: 0,
            whole_track: true,
            kept: true,
            needed: now,
            // A track is read to its end.
            keeps_arm: true,
        };
        let ends = stream.ends();
        self.units[place].tail = None;
        self.set_arm(around, place, Arm::Read(stream), ends);
    }

    fn start_write(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, command): (usize, Command),
    ) {
        let now = around.now();
        self.units[place].tail = None;
        if !self.config.caching.by_tracks() {
            // Nothing that is kept may be older than what is on the drive.
            if !command.policy.save_writes {
                self.cache.remove(place, command.next, command.end);
            }
        }
        let drive = &mut parts.drives[self.drives.at(place)];
        let target = drive.geometry().locate(command.next);
        let before_last = (command.end - command.next - 1) as u32;
        let media = drive.slots_time(target.cylinder, before_last);
        // The medium does not wait for memory: writing begins when the last
        // sector will be there in time.
        let in_time = Time(command.ready.0.saturating_sub(media.0));
        let enough = in_time.max(command.enough);
        if enough <= now {
            self.start_writing(around, parts, (place, command));
            return;
        }
        let arm = drive.seek(target.cylinder, true);
        let begins = (now + arm.total()).max(enough);
        let transfer = &mut parts.requests[command.id];
        mark_move(transfer, now, arm);
        transfer.mark(Stage::BusTransfer, moment(begins));
        self.set_arm(around, place, Arm::Seek(command), begins);
    }

    fn start_writing(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, mut command): (usize, Command),
    ) {
        let now = around.now();
        let drive = &mut parts.drives[self.drives.at(place)];
        let since = drive.last_transfer();
        let period = drive.spindle().period();
        let count = (command.end - command.next) as u32;
        let passage = drive.transfer(now, command.next, count, true);
        let begins = now + passage.to_first_sector();
        let ends = now + passage.total();
        mark_way(
            parts,
            &command,
            (now, passage.to_track),
            (since, begins, period),
        );
        let drive = &mut parts.drives[self.drives.at(place)];
        mark_passing(&mut parts.requests[command.id], drive, ends);
        assert!(
            command.ready <= ends,
            "what is written has been fetched before"
        );
        command.ready = ends;
        self.set_arm(around, place, Arm::Write(command), ends);
    }
}

fn mark_way(
    parts: &mut Parts<'_>,
    command: &Command,
    (now, arm): (Time, Move),
    (since, begins, period): (Option<Time>, Time, Time),
) {
    let transfer = &mut parts.requests[command.id];
    // What the cache held of it may still be on the bus.
    if Time(transfer.spans.marked().0) > now {
        let marked = transfer.spans.marked();
        transfer.mark(Stage::RotationalLatency, moment(begins).max(marked));
        return;
    }
    mark_move(transfer, now, arm);
    let late = late_stage(
        transfer,
        since,
        period,
        begins,
        arm,
        Deadline::TransferCommand,
    );
    transfer.mark(late, moment(begins));
}
