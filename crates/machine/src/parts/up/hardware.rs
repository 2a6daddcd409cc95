//! The controller: one transfer at a time, arms that search while it is idle, and a
//! buffer of a few sectors between a drive that does not wait and a UNIBUS that may let
//! it wait.
//!
//! A sector that begins to pass while the buffer is full, or that is to be written and
//! is not in the buffer, is lost: data is late, and the transfer ends there.

use crate::controllers::Controller;
use crate::hardware::drives::Mechanisms;
use crate::hardware::marking::{late_stage, mark_move, mark_passing};
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{Stream, Streams, TaskId, Time};
use diskperf_timeline::trace::Counted;
use diskperf_timeline::{Deadline, Stage};

/// How such a controller is built.
#[derive(Clone, Debug)]
pub struct UpHardwareConfig {
    /// Sectors that it buffers.
    pub buffer_sectors: u32,
    /// From a command to the arm, or the transfer, acting on it.
    pub command: Time,
    /// How long the bus lets it wait for the data of a sector: up to this much.
    pub grant: Time,
}

/// The controller's state.
pub struct Up {
    id: Id<Up>,
    config: UpHardwareConfig,
    drives: Mechanisms,
    transfer: Option<Transfer>,
    /// A transfer that has ended, until the driver has seen it.
    done: Option<Done>,
    /// Of each drive: whether it has found its sector.
    attention: Vec<bool>,
    busy: Time,
    grants: Stream,
    interrupt: Option<TaskId>,
}

/// What it is doing.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    request: RequestId,
    since: Time,
    /// How fast data moves over the bus, in bytes per second.
    rate: u64,
    /// When the last sector that is not late has passed, and when all is over.
    passed: Time,
    ends: Time,
    data_late: bool,
}

/// A transfer that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Which.
    pub request: RequestId,
    /// Whether a sector was late, and nothing after it was transferred.
    pub data_late: bool,
}

/// What the controller schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum UpEvent {
    /// A drive, by its place, is at the sector that it was to search.
    Found(u8),
    /// Data begins to move over the bus.
    Moves,
    /// The transfer is over.
    End,
}

impl Controller for Up {
    type Event = UpEvent;

    fn handle(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, event: UpEvent) {
        match event {
            UpEvent::Found(place) => {
                self.attention[usize::from(place)] = true;
                self.raise(around);
            }
            UpEvent::Moves => {
                let transfer = self.transfer.expect("a transfer is under way");
                parts.bus.start(around, transfer.rate);
            }
            UpEvent::End => self.end(around, parts),
        }
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        self.done.is_some() || self.attention.contains(&true)
    }

    fn busy(&self, now: Time) -> Option<(Counted, Time)> {
        let under_way = self.transfer.map_or(Time::ZERO, |one| now - one.since);
        Some((Counted::Channel, self.busy + under_way))
    }
}

impl Up {
    /// An idle controller with these drives, of this number among all.
    pub fn new(
        (id, number): (Id<Self>, usize),
        config: UpHardwareConfig,
        drives: Mechanisms,
        streams: Streams,
    ) -> Self {
        Self {
            id,
            config,
            attention: vec![false; drives.count()],
            drives,
            transfer: None,
            done: None,
            busy: Time::ZERO,
            grants: streams.stream(&format!("controller.{number}.grants")),
            interrupt: None,
        }
    }

    /// The drives that are configured on it.
    pub fn drives(&self) -> &Mechanisms {
        &self.drives
    }

    /// Whether it can take a transfer, or a search.
    pub fn is_idle(&self) -> bool {
        self.transfer.is_none() && self.done.is_none()
    }

    /// The transfer that has ended, once.
    pub fn take_done(&mut self) -> Option<Done> {
        self.done.take()
    }

    /// The first drive that has found its sector, once.
    pub fn take_attention(&mut self) -> Option<usize> {
        let place = self.attention.iter().position(|raised| *raised)?;
        self.attention[place] = false;
        Some(self.drives.drive(place))
    }

    /// Has a drive move to a request's cylinder and say when `slot` comes by there.
    ///
    /// # Panics
    ///
    /// When a transfer is under way, which a search would disturb.
    pub fn search(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (id, slot): (RequestId, u32),
    ) {
        assert!(self.transfer.is_none(), "a search while data moves");
        let request = &mut parts.requests[id];
        let place = self.drives.place(request.device);
        let drive = &mut parts.drives[self.drives.at(place)];
        let cylinder = drive.geometry().locate(request.sector).cylinder;
        let commanded = around.now() + self.config.command;
        request.mark(Stage::Command, moment(commanded));
        let arm = drive.seek(cylinder, request.is_write());
        mark_move(request, commanded, arm);
        let arrived = commanded + arm.total();
        let since = drive.last_transfer();
        let found = arrived + drive.await_slot(arrived, slot, (arm, since));
        let period = drive.spindle().period();
        let stage = late_stage(request, since, period, found, arm, Deadline::Search);
        request.mark(stage, moment(found));
        self.id.schedule(around, found, UpEvent::Found(place as u8));
    }

    /// Transfers. `searched` tells when the drive found the sector before it, if it was
    /// told to search; `repeated`, whether data was late the last time.
    ///
    /// # Panics
    ///
    /// When a transfer is under way.
    pub fn transfer(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (id, searched, repeated): (RequestId, Option<Time>, bool),
    ) {
        assert!(self.is_idle(), "one transfer at a time");
        let request = &mut parts.requests[id];
        let drive = &mut parts.drives[self.drives.of(request)];
        let sector_bytes = u64::from(drive.geometry().sector_bytes());
        let over_bus = parts.bus.time(sector_bytes);
        let mut commanded = around.now() + self.config.command;
        if request.is_write() {
            // The first sector is there before the drive is started.
            commanded += over_bus;
        }
        request.mark(Stage::Command, moment(commanded));
        let since = searched.or(drive.last_transfer());
        let all = (request.sector, request.sectors);
        let passage = drive.transfer_watched(commanded, all, request.is_write(), since);
        mark_move(request, commanded, passage.to_track);
        let first = commanded + passage.to_first_sector();
        let stage = match repeated {
            true => Stage::MissedRevolution(Deadline::DataLate),
            false => {
                let late = Deadline::TransferCommand;
                let period = drive.spindle().period();
                late_stage(request, since, period, first, passage.to_track, late)
            }
        };
        request.mark(stage, moment(first));
        let write = request.is_write();
        let passes = drive.sectors_pass();
        let slot = drive.slots_time(drive.cylinder(), 1);
        let moved = self.moved((&passes, slot), (commanded, over_bus), write);
        let late = moved.len() < passes.len();
        let passed = passes[moved.len().max(1) - 1];
        let ends = match (write, late) {
            (false, false) => moved.last().map_or(passed, |at| passed.max(*at)),
            (true, false) | (_, true) => passed,
        };
        let bytes = sector_bytes * moved.len() as u64;
        self.transfer = Some(Transfer {
            request: id,
            since: around.now(),
            rate: bytes * 1_000_000_000 / (ends - first).0.max(1),
            passed,
            ends,
            data_late: late,
        });
        self.id.schedule(around, first, UpEvent::Moves);
        self.id.schedule(around, ends, UpEvent::End);
    }

    /// When the data of each sector has moved over the bus, up to the first that is
    /// lost: of sectors that have passed at these moments, each in `slot`. Words move
    /// while a sector passes; the buffer is what they may be behind, or ahead, of it.
    fn moved(
        &mut self,
        (passes, slot): (&[Time], Time),
        (from, over_bus): (Time, Time),
        write: bool,
    ) -> Vec<Time> {
        let buffer = self.config.buffer_sectors as usize;
        let begins = |number: usize| {
            let begins = Time(passes[number].0.saturating_sub(slot.0));
            // Not by the fraction that rounding took before the one before it.
            number
                .checked_sub(1)
                .map_or(begins, |before| begins.max(passes[before]))
        };
        let mut moved: Vec<Time> = Vec::with_capacity(passes.len());
        for (number, passed) in passes.iter().enumerate() {
            // The sector whose room in the buffer this one takes.
            let before = number.checked_sub(buffer);
            if !write && before.is_some_and(|before| moved[before] > begins(number)) {
                return moved;
            }
            // What is written was fetched before the command, as far as there is room.
            let (may, least) = match (write, before) {
                (false, _) => (begins(number), *passed),
                (true, Some(before)) => (begins(before), passes[before]),
                (true, None) => (from, from),
            };
            let last = moved.last().copied().unwrap_or(from);
            let wait = self.grants.within(self.config.grant);
            let at = match write && number == 0 {
                true => from,
                false => (last.max(may) + wait + over_bus).max(least),
            };
            if write && at > *passed {
                return moved;
            }
            moved.push(at);
        }
        moved
    }

    fn end(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let transfer = self.transfer.take().expect("a transfer is under way");
        parts.bus.stop(around, transfer.rate);
        self.busy += around.now() - transfer.since;
        let request = &mut parts.requests[transfer.request];
        let drive = &mut parts.drives[self.drives.of(request)];
        if transfer.data_late {
            drive.cut_short(transfer.passed);
            let late = Stage::MissedRevolution(Deadline::DataLate);
            request.mark(late, moment(transfer.ends));
        } else {
            mark_passing(request, drive, transfer.passed);
            request.mark(Stage::BusTransfer, moment(transfer.ends));
        }
        self.done = Some(Done {
            request: transfer.request,
            data_late: transfer.data_late,
        });
        self.raise(around);
    }

    fn raise(&self, around: &Surroundings<'_>) {
        let task = self.interrupt.expect("its interrupt is connected");
        around.sim.wake(task);
    }
}
