//! UDA50 controller of DEC: commands in a ring, one processor shared by all drives, and a buffer
//! large enough to hold a whole block before the UNIBUS transfers it.
//!
//! The steps per drive are: decode the command; for a write, fetch data over the bus until the rest
//! will arrive in time for the media; seek, wait and transfer; for a read, send the data over the
//! bus during and after the media transfer; finish; report to the host. Unless decoding overlaps,
//! the next command of a drive is decoded after the previous one is finished.

use crate::controllers::Controller;
use crate::hardware::drives::Mechanisms;
use crate::hardware::marking::{go_for, mark_passing};
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{Stream, TaskId, Time};
use diskperf_timeline::trace::Counted;
use diskperf_timeline::{Deadline, Stage};
use std::collections::VecDeque;

/// Order in which a drive's commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Execution in the order of arrival.
    Arrival,
    /// Execution in the order of seek distance: the command with the nearest cylinder comes first.
    Nearest,
}

/// Parameters of a UDA50: buffer, credits, processing times and order of execution.
#[derive(Clone, Debug)]
pub struct Uda50Config {
    /// Size of the buffer for all drives, in sectors.
    pub buffer_sectors: u32,
    /// Maximum number of commands that the host may have in flight.
    pub credits: u32,
    /// Time of the controller's processor to decode a command, before its transfer.
    pub decode: Time,
    /// Time of the controller's processor to finish a command, after its transfer.
    pub finish: Time,
    /// Time of the controller's processor to finish a command, per sector of the command.
    pub finish_per_sector: Time,
    /// Variation of the three processing times, as a share of their mean.
    pub spread: f64,
    /// Order of execution; see [`Order`].
    pub order: Order,
    /// Whether a drive's next command is decoded while another one is executed.
    pub overlap_decode: bool,
}

/// State of a UDA50 controller: its queues, its processor, its buffer and its bus transfers.
pub struct Uda50 {
    id: Id<Uda50>,
    config: Uda50Config,
    drives: Mechanisms,
    units: Vec<Unit>,
    engine: VecDeque<Job>,
    engine_working: bool,
    engine_busy: Time,
    /// Transfers that wait for the bus, in order; the first one may be in progress.
    bus: VecDeque<(RequestId, Time)>,
    bus_working: bool,
    buffer_free: u32,
    done: VecDeque<RequestId>,
    outstanding: u32,
    spread: Stream,
    interrupt: Option<TaskId>,
}

#[derive(Clone, Default)]
struct Unit {
    queued: VecDeque<RequestId>,
    /// Commands that are decoded and ready for the drive. Writes have fetched enough of their data.
    ready: VecDeque<RequestId>,
    in_flight: u32,
    moving: bool,
}

#[derive(Clone, Copy, Debug)]
enum Job {
    Decode(RequestId),
    Finish(RequestId),
}

/// Event that a UDA50 schedules.
#[derive(Clone, Copy, Debug)]
pub enum Uda50Event {
    /// End of the current job of the controller's processor.
    EngineDone,
    /// Arrival of a drive's transfer at its first sector.
    FirstSector(RequestId),
    /// End of the last sector of a drive's transfer.
    LastSector(RequestId),
    /// Time at which enough data of a write is in the buffer to start the drive.
    Buffered(RequestId),
    /// End of the current transfer over the bus.
    BusDone,
}

impl Controller for Uda50 {
    type Event = Uda50Event;

    fn handle(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event) {
        match event {
            Uda50Event::EngineDone => self.engine_done(around, parts),
            Uda50Event::FirstSector(id) => self.first_sector(around, parts, id),
            Uda50Event::LastSector(id) => self.last_sector(around, parts, id),
            Uda50Event::Buffered(id) => self.buffered(around, parts, id),
            Uda50Event::BusDone => self.bus_done(around, parts),
        }
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        !self.done.is_empty()
    }

    fn busy(&self, _now: Time) -> Option<(Counted, Time)> {
        Some((Counted::Processor, self.engine_busy))
    }
}

impl Uda50 {
    /// Returns an idle UDA50 with its drives.
    pub fn new(id: Id<Self>, config: Uda50Config, drives: Mechanisms, spread: Stream) -> Self {
        Self {
            id,
            buffer_free: config.buffer_sectors,
            config,
            units: vec![Unit::default(); drives.count()],
            drives,
            engine: VecDeque::new(),
            engine_working: false,
            engine_busy: Time::ZERO,
            bus: VecDeque::new(),
            bus_working: false,
            done: VecDeque::new(),
            outstanding: 0,
            spread,
            interrupt: None,
        }
    }

    /// Reports whether the host may submit another command. One credit is reserved for attention
    /// messages.
    pub fn takes_commands(&self) -> bool {
        self.outstanding + 1 < self.config.credits
    }

    /// Takes the next completed command, if any.
    pub fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    /// Accepts a command into the controller's command ring.
    ///
    /// # Panics
    ///
    /// If the host has no credit left.
    pub fn command(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        assert!(self.takes_commands(), "a command without a credit");
        self.outstanding += 1;
        let place = self.drives.place(parts.requests[id].device);
        self.units[place].queued.push_back(id);
        self.decode_next(around, parts, place);
    }

    fn decode_next(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, place: usize) {
        let limit = if self.config.overlap_decode {
            u32::MAX
        } else {
            1
        };
        let unit = &self.units[place];
        if unit.in_flight >= limit {
            return;
        }
        let Some(next) = self.choose(&unit.queued, place, parts) else {
            return;
        };
        let id = unit.queued[next];
        let sectors = self.buffer_share(parts.requests[id].sectors);
        if sectors > self.buffer_free {
            return;
        }
        let unit = &mut self.units[place];
        unit.queued.remove(next);
        unit.in_flight += 1;
        self.buffer_free -= sectors;
        let request = &mut parts.requests[id];
        request.mark(Stage::ControllerQueue, moment(around.now()));
        self.engine.push_back(Job::Decode(id));
        self.work(around, parts);
    }

    /// Returns the buffer space of a transfer, in sectors. A transfer larger than the buffer uses
    /// all of it.
    fn buffer_share(&self, sectors: u32) -> u32 {
        sectors.min(self.config.buffer_sectors)
    }

    fn work(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let (false, Some(job)) = (self.engine_working, self.engine.front().copied()) else {
            return;
        };
        let (id, mean) = match job {
            Job::Decode(id) => (id, self.config.decode),
            Job::Finish(id) => {
                let sectors = u64::from(parts.requests[id].sectors);
                let per_sector = self.config.finish_per_sector.0 * sectors;
                (id, self.config.finish + Time(per_sector))
            }
        };
        let request = &mut parts.requests[id];
        request.mark(Stage::ControllerQueue, moment(around.now()));
        let cost = self.spread.spread(mean, self.config.spread);
        self.engine_working = true;
        self.engine_busy += cost;
        self.id
            .schedule(around, around.now() + cost, Uda50Event::EngineDone);
    }

    fn engine_done(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>) {
        self.engine_working = false;
        let job = self.engine.pop_front().expect("the processor had a job");
        let (Job::Decode(id) | Job::Finish(id)) = job;
        let transfer = &mut parts.requests[id];
        transfer.mark(Stage::Command, moment(around.now()));
        let place = self.drives.place(transfer.device);
        match job {
            Job::Decode(_) if transfer.is_write() => self.over_bus(around, parts, id, Time::ZERO),
            Job::Decode(_) => {
                self.units[place].ready.push_back(id);
                self.move_next(around, parts, place);
            }
            Job::Finish(_) => self.finished(around, parts, id),
        }
        self.work(around, parts);
    }

    fn finished(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        let transfer = &parts.requests[id];
        let place = self.drives.place(transfer.device);
        self.buffer_free += self.buffer_share(transfer.sectors);
        self.units[place].in_flight -= 1;
        self.outstanding -= 1;
        self.done.push_back(id);
        let task = self.interrupt.expect("the interrupt is connected");
        around.sim.wake(task);
        // Buffer has come free for whoever lacked it.
        for place in 0..self.units.len() {
            self.decode_next(around, parts, place);
        }
    }

    fn move_next(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, place: usize) {
        if self.units[place].moving {
            return;
        }
        let Some(next) = self.choose(&self.units[place].ready, place, parts) else {
            return;
        };
        let unit = &mut self.units[place];
        let id = unit.ready.remove(next).expect("it is in the queue");
        unit.moving = true;
        let now = around.now();
        let transfer = &mut parts.requests[id];
        transfer.mark(Stage::ControllerQueue, moment(now));
        let drive = &mut parts.drives[self.drives.at(place)];
        let all = (transfer.sector, transfer.sectors);
        let late = Deadline::TransferCommand;
        let (first, passage) = go_for((transfer, drive), now, all, late);
        let ends = now + passage.total();
        self.id.schedule(around, first, Uda50Event::FirstSector(id));
        self.id.schedule(around, ends, Uda50Event::LastSector(id));
    }

    /// Starts the bus transfer of a read when its first sector begins to pass.
    fn first_sector(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        let transfer = &parts.requests[id];
        if transfer.is_write() {
            return;
        }
        let drive = &parts.drives[self.drives.of(transfer)];
        let ends = drive.last_transfer().expect("the drive transfers");
        self.over_bus(around, parts, id, ends);
    }

    fn last_sector(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        let transfer = &mut parts.requests[id];
        let place = self.drives.place(transfer.device);
        let drive = &mut parts.drives[self.drives.at(place)];
        mark_passing(transfer, drive, around.now());
        if transfer.is_write() {
            self.finish(around, parts, id);
        }
        self.units[place].moving = false;
        self.move_next(around, parts, place);
    }

    fn finish(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        self.engine.push_back(Job::Finish(id));
        self.work(around, parts);
    }

    /// Queues a transfer for the bus. Its last sector cannot be sent before `not_before`, when that
    /// sector has been read.
    fn over_bus(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
        not_before: Time,
    ) {
        self.bus.push_back((id, not_before));
        self.use_bus(around, parts);
    }

    fn use_bus(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let (false, Some((id, not_before))) = (self.bus_working, self.bus.front().copied()) else {
            return;
        };
        self.bus_working = true;
        let now = around.now();
        let transfer = &mut parts.requests[id];
        if transfer.is_write() || now > not_before {
            transfer.mark(Stage::BusWait, moment(now));
        }
        let sector_bytes = u64::from(
            parts.drives[self.drives.of(transfer)]
                .geometry()
                .sector_bytes(),
        );
        let one = parts.bus.time(sector_bytes);
        let all = parts.bus.time(sector_bytes * u64::from(transfer.sectors));
        let ends = (now + all).max(not_before + one);
        if transfer.is_write() {
            let drive = &parts.drives[self.drives.of(transfer)];
            let media = drive.slots_time(drive.cylinder(), transfer.sectors);
            // The slower bus needs this much of a start; the buffer takes up
            // the difference.
            let lead = Time(all.0.saturating_sub(media.0)) + one;
            self.id
                .schedule(around, now + lead.min(all), Uda50Event::Buffered(id));
        }
        parts
            .bus
            .start(around, bus_rate(transfer.sectors, sector_bytes, ends - now));
        self.id.schedule(around, ends, Uda50Event::BusDone);
        self.bus.front_mut().expect("it is there").1 = now;
    }

    fn bus_done(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let (id, since) = self.bus.pop_front().expect("the bus was in use");
        self.bus_working = false;
        let now = around.now();
        let transfer = &mut parts.requests[id];
        let sector_bytes = u64::from(
            parts.drives[self.drives.of(transfer)]
                .geometry()
                .sector_bytes(),
        );
        parts.bus.stop(
            around,
            bus_rate(transfer.sectors, sector_bytes, now - since),
        );
        if !transfer.is_write() {
            transfer.mark(Stage::BusTransfer, moment(now));
            self.finish(around, parts, id);
        }
        self.use_bus(around, parts);
    }

    fn buffered(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        let transfer = &mut parts.requests[id];
        transfer.mark(Stage::BusTransfer, moment(around.now()));
        let place = self.drives.place(transfer.device);
        self.units[place].ready.push_back(id);
        self.move_next(around, parts, place);
    }

    /// Chooses the next command from a drive's queue in the configured order. Returns its position
    /// in the queue.
    fn choose(
        &self,
        queue: &VecDeque<RequestId>,
        place: usize,
        parts: &Parts<'_>,
    ) -> Option<usize> {
        match self.config.order {
            Order::Arrival => (!queue.is_empty()).then_some(0),
            Order::Nearest => {
                let drive = &parts.drives[self.drives.at(place)];
                let cylinder = |sector| drive.geometry().locate(sector).cylinder;
                let distance = |id: &RequestId| {
                    cylinder(parts.requests[*id].sector).abs_diff(drive.cylinder())
                };
                // The first of equals: `min_by_key` keeps the earlier one.
                (0..queue.len()).min_by_key(|next| distance(&queue[*next]))
            }
        }
    }
}

fn bus_rate(sectors: u32, sector_bytes: u64, span: Time) -> u64 {
    u64::from(sectors) * sector_bytes * 1_000_000_000 / span.0.max(1)
}
