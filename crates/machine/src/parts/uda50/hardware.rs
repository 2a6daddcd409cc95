//! UDA50 controller of DEC: commands in a ring, one processor shared by all drives, and a buffer
//! large enough to hold a whole block before the UNIBUS transfers it.
//!
//! The steps per drive are: decode the command; for a write, fetch data over the bus until the rest
//! will arrive in time for the media; seek, wait and transfer; for a read, send the data over the
//! bus during and after the media transfer; finish; report to the host. Unless decoding overlaps,
//! the next command of a drive is decoded after the previous one is finished.

use crate::controllers::Controller;
use crate::hardware::drives::Mechanisms;
use crate::hardware::marking::{mark_media_transfer, transfer_and_mark};
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{Stream, TaskId, Time};
use diskperf_timeline::trace::Counted;
use diskperf_timeline::{Deadline, Stage};
use std::collections::VecDeque;

/// Order in which a drive's commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOrder {
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
    pub decode_time: Time,
    /// Time of the controller's processor to finish a command, after its transfer.
    pub finish_time: Time,
    /// Time of the controller's processor to finish a command, per sector of the command.
    pub finish_time_per_sector: Time,
    /// Variation of the three processing times, as a share of their mean.
    pub spread: f64,
    /// Order of execution; see [`CommandOrder`].
    pub order: CommandOrder,
    /// Whether a drive's next command is decoded while another one is executed.
    pub overlap_decode: bool,
}

/// State of a UDA50 controller: its queues, its processor, its buffer and its bus transfers.
pub struct Uda50 {
    id: Id<Uda50>,
    config: Uda50Config,
    drives: Mechanisms,
    units: Vec<Uda50DriveQueues>,
    engine_jobs: VecDeque<EngineJob>,
    is_engine_busy: bool,
    engine_busy: Time,
    /// Transfers that wait for the bus, in order; the first one may be in progress.
    bus_queue: VecDeque<(RequestId, Time)>,
    is_bus_busy: bool,
    buffer_free: u32,
    completed: VecDeque<RequestId>,
    outstanding: u32,
    spread_stream: Stream,
    interrupt: Option<TaskId>,
}

#[derive(Clone, Default)]
struct Uda50DriveQueues {
    queued: VecDeque<RequestId>,
    /// Commands that are decoded and ready for the drive. Writes have fetched enough of their data.
    ready: VecDeque<RequestId>,
    in_flight: u32,
    is_transferring: bool,
}

#[derive(Clone, Copy, Debug)]
enum EngineJob {
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

    fn handle(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event) {
        match event {
            Uda50Event::EngineDone => self.handle_engine_done(context, parts),
            Uda50Event::FirstSector(id) => self.handle_first_sector(context, parts, id),
            Uda50Event::LastSector(id) => self.handle_last_sector(context, parts, id),
            Uda50Event::Buffered(id) => self.handle_buffered(context, parts, id),
            Uda50Event::BusDone => self.handle_bus_done(context, parts),
        }
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        !self.completed.is_empty()
    }

    fn busy(&self, _now: Time) -> Option<(Counted, Time)> {
        Some((Counted::Processor, self.engine_busy))
    }
}

impl Uda50 {
    /// Returns an idle UDA50 with its drives.
    pub fn new(
        id: Id<Self>,
        config: Uda50Config,
        drives: Mechanisms,
        spread_stream: Stream,
    ) -> Self {
        Self {
            id,
            buffer_free: config.buffer_sectors,
            config,
            units: vec![Uda50DriveQueues::default(); drives.count()],
            drives,
            engine_jobs: VecDeque::new(),
            is_engine_busy: false,
            engine_busy: Time::ZERO,
            bus_queue: VecDeque::new(),
            is_bus_busy: false,
            completed: VecDeque::new(),
            outstanding: 0,
            spread_stream,
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
        self.completed.pop_front()
    }

    /// Accepts a command into the controller's command ring.
    ///
    /// # Panics
    ///
    /// If the host has no credit left.
    pub fn command(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        assert!(self.takes_commands(), "a command without a credit");
        self.outstanding += 1;
        let drive_index = self.drives.index_of(parts.requests[id].device);
        self.units[drive_index].queued.push_back(id);
        self.decode_next(context, parts, drive_index);
    }

    fn decode_next(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        drive_index: usize,
    ) {
        let limit = if self.config.overlap_decode {
            u32::MAX
        } else {
            1
        };
        let unit = &self.units[drive_index];
        if unit.in_flight >= limit {
            return;
        }
        let Some(next) = self.choose_next(&unit.queued, drive_index, parts) else {
            return;
        };
        let id = unit.queued[next];
        let sectors = self.buffer_share(parts.requests[id].sectors);
        if sectors > self.buffer_free {
            return;
        }
        let unit = &mut self.units[drive_index];
        unit.queued.remove(next);
        unit.in_flight += 1;
        self.buffer_free -= sectors;
        let request = &mut parts.requests[id];
        request.book_stage(Stage::ControllerQueue, moment(context.now()));
        self.engine_jobs.push_back(EngineJob::Decode(id));
        self.start_engine_job(context, parts);
    }

    /// Returns the buffer space of a transfer, in sectors. A transfer larger than the buffer uses
    /// all of it.
    fn buffer_share(&self, sectors: u32) -> u32 {
        sectors.min(self.config.buffer_sectors)
    }

    fn start_engine_job(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let (false, Some(job)) = (self.is_engine_busy, self.engine_jobs.front().copied()) else {
            return;
        };
        let (id, mean) = match job {
            EngineJob::Decode(id) => (id, self.config.decode_time),
            EngineJob::Finish(id) => {
                let sectors = u64::from(parts.requests[id].sectors);
                let per_sector = self.config.finish_time_per_sector.0 * sectors;
                (id, self.config.finish_time + Time(per_sector))
            }
        };
        let request = &mut parts.requests[id];
        request.book_stage(Stage::ControllerQueue, moment(context.now()));
        let cost = self.spread_stream.spread(mean, self.config.spread);
        self.is_engine_busy = true;
        self.engine_busy += cost;
        self.id
            .schedule(context, context.now() + cost, Uda50Event::EngineDone);
    }

    fn handle_engine_done(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>) {
        self.is_engine_busy = false;
        let job = self
            .engine_jobs
            .pop_front()
            .expect("the processor had a job");
        let (EngineJob::Decode(id) | EngineJob::Finish(id)) = job;
        let transfer = &mut parts.requests[id];
        transfer.book_stage(Stage::Command, moment(context.now()));
        let drive_index = self.drives.index_of(transfer.device);
        match job {
            EngineJob::Decode(_) if transfer.is_write() => {
                self.queue_bus_transfer(context, parts, id, Time::ZERO)
            }
            EngineJob::Decode(_) => {
                self.units[drive_index].ready.push_back(id);
                self.start_next_transfer(context, parts, drive_index);
            }
            EngineJob::Finish(_) => self.handle_finished(context, parts, id),
        }
        self.start_engine_job(context, parts);
    }

    fn handle_finished(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
    ) {
        let transfer = &parts.requests[id];
        let drive_index = self.drives.index_of(transfer.device);
        self.buffer_free += self.buffer_share(transfer.sectors);
        self.units[drive_index].in_flight -= 1;
        self.outstanding -= 1;
        self.completed.push_back(id);
        let task = self.interrupt.expect("the interrupt is connected");
        context.sim.wake(task);
        // Buffer has come free for whoever lacked it.
        for drive_index in 0..self.units.len() {
            self.decode_next(context, parts, drive_index);
        }
    }

    fn start_next_transfer(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        drive_index: usize,
    ) {
        if self.units[drive_index].is_transferring {
            return;
        }
        let Some(next) = self.choose_next(&self.units[drive_index].ready, drive_index, parts)
        else {
            return;
        };
        let unit = &mut self.units[drive_index];
        let id = unit.ready.remove(next).expect("it is in the queue");
        unit.is_transferring = true;
        let now = context.now();
        let transfer = &mut parts.requests[id];
        transfer.book_stage(Stage::ControllerQueue, moment(now));
        let drive = &mut parts.drives[self.drives.mechanism_at(drive_index)];
        let all = (transfer.sector, transfer.sectors);
        let late = Deadline::TransferCommand;
        let (first, passage) = transfer_and_mark(transfer, drive, now, all, late);
        let ends_at = now + passage.total();
        self.id
            .schedule(context, first, Uda50Event::FirstSector(id));
        self.id
            .schedule(context, ends_at, Uda50Event::LastSector(id));
    }

    /// Starts the bus transfer of a read when its first sector begins to pass.
    fn handle_first_sector(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
    ) {
        let transfer = &parts.requests[id];
        if transfer.is_write() {
            return;
        }
        let drive = &parts.drives[self.drives.mechanism_for(transfer)];
        let ends_at = drive.last_transfer().expect("the drive transfers");
        self.queue_bus_transfer(context, parts, id, ends_at);
    }

    fn handle_last_sector(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
    ) {
        let transfer = &mut parts.requests[id];
        let drive_index = self.drives.index_of(transfer.device);
        let drive = &mut parts.drives[self.drives.mechanism_at(drive_index)];
        mark_media_transfer(transfer, drive, context.now());
        if transfer.is_write() {
            self.queue_finish(context, parts, id);
        }
        self.units[drive_index].is_transferring = false;
        self.start_next_transfer(context, parts, drive_index);
    }

    fn queue_finish(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        self.engine_jobs.push_back(EngineJob::Finish(id));
        self.start_engine_job(context, parts);
    }

    /// Queues a transfer for the bus. Its last sector cannot be sent before `not_before`, when that
    /// sector has been read.
    fn queue_bus_transfer(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
        not_before: Time,
    ) {
        self.bus_queue.push_back((id, not_before));
        self.start_bus_transfer(context, parts);
    }

    fn start_bus_transfer(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let (false, Some((id, not_before))) = (self.is_bus_busy, self.bus_queue.front().copied())
        else {
            return;
        };
        self.is_bus_busy = true;
        let now = context.now();
        let transfer = &mut parts.requests[id];
        if transfer.is_write() || now > not_before {
            transfer.book_stage(Stage::BusWait, moment(now));
        }
        let sector_bytes = u64::from(
            parts.drives[self.drives.mechanism_for(transfer)]
                .geometry()
                .sector_bytes(),
        );
        let one = parts.bus.transfer_time(sector_bytes);
        let all = parts
            .bus
            .transfer_time(sector_bytes * u64::from(transfer.sectors));
        let ends_at = (now + all).max(not_before + one);
        if transfer.is_write() {
            let drive = &parts.drives[self.drives.mechanism_for(transfer)];
            let media = drive.slots_time(drive.cylinder(), transfer.sectors);
            // The slower bus needs this much of a start; the buffer takes up
            // the difference.
            let lead = Time(all.0.saturating_sub(media.0)) + one;
            self.id
                .schedule(context, now + lead.min(all), Uda50Event::Buffered(id));
        }
        parts.bus.start_stream(
            context,
            bytes_per_s(transfer.sectors, sector_bytes, ends_at - now),
        );
        self.id.schedule(context, ends_at, Uda50Event::BusDone);
        self.bus_queue.front_mut().expect("it is there").1 = now;
    }

    fn handle_bus_done(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>) {
        let (id, since) = self.bus_queue.pop_front().expect("the bus was in use");
        self.is_bus_busy = false;
        let now = context.now();
        let transfer = &mut parts.requests[id];
        let sector_bytes = u64::from(
            parts.drives[self.drives.mechanism_for(transfer)]
                .geometry()
                .sector_bytes(),
        );
        parts.bus.end_stream(
            context,
            bytes_per_s(transfer.sectors, sector_bytes, now - since),
        );
        if !transfer.is_write() {
            transfer.book_stage(Stage::BusTransfer, moment(now));
            self.queue_finish(context, parts, id);
        }
        self.start_bus_transfer(context, parts);
    }

    fn handle_buffered(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
    ) {
        let transfer = &mut parts.requests[id];
        transfer.book_stage(Stage::BusTransfer, moment(context.now()));
        let drive_index = self.drives.index_of(transfer.device);
        self.units[drive_index].ready.push_back(id);
        self.start_next_transfer(context, parts, drive_index);
    }

    /// Chooses the next command from a drive's queue in the configured order. Returns its position
    /// in the queue.
    fn choose_next(
        &self,
        queue: &VecDeque<RequestId>,
        drive_index: usize,
        parts: &Parts<'_>,
    ) -> Option<usize> {
        match self.config.order {
            CommandOrder::Arrival => (!queue.is_empty()).then_some(0),
            CommandOrder::Nearest => {
                let drive = &parts.drives[self.drives.mechanism_at(drive_index)];
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

fn bytes_per_s(sectors: u32, sector_bytes: u64, span: Time) -> u64 {
    u64::from(sectors) * sector_bytes * 1_000_000_000 / span.0.max(1)
}
