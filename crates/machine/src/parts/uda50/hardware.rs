//! UDA50 controller of DEC: commands in a ring, one processor shared by all drives, and a buffer
//! large enough to hold a whole block before the UNIBUS transfers it.
//!
//! The steps per drive are: decode the command; for a write, fetch data over the bus until the rest
//! will arrive in time for the media; seek, wait and transfer; for a read, send the data over the
//! bus during and after the media transfer; finish; report to the host. Unless decoding overlaps,
//! the next command of a drive is decoded after the previous one is finished.

use crate::controllers::Controller;
use crate::hardware::drives::MechanismIds;
use crate::hardware::marking::{mark_media_transfer, transfer_and_mark};
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{RandomStream, TaskId, Time};
use diskperf_timeline::trace::CountedBusy;
use diskperf_timeline::{Deadline, Stage};
use std::collections::VecDeque;

/// Order in which a drive's commands are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOrder {
    /// Execution in the order of arrival.
    ArrivalOrder,
    /// Execution in the order of seek distance: the command with the nearest cylinder comes first.
    NearestFirst,
}

/// Parameters of a UDA50: buffer, credits, processing times and order of execution.
#[derive(Clone, Debug)]
pub struct Uda50Config {
    /// Size of the buffer for all drives, in sectors.
    pub buffer_sectors: u32,
    /// Maximum number of commands that the host may have in flight.
    pub command_credits: u32,
    /// Time of the controller's processor to decode a command, before its transfer.
    pub decode_time: Time,
    /// Time of the controller's processor to finish a command, after its transfer.
    pub finish_time: Time,
    /// Time of the controller's processor to finish a command, per sector of the command.
    pub finish_time_per_sector: Time,
    /// Variation of the three processing times, as a share of their mean.
    pub time_spread_share: f64,
    /// Order of execution; see [`CommandOrder`].
    pub command_order: CommandOrder,
    /// Whether a drive's next command is decoded while another one is executed.
    pub overlaps_decode: bool,
}

/// State of a UDA50 controller: its queues, its processor, its buffer and its bus transfers.
pub struct Uda50 {
    id: ComponentId<Uda50>,
    config: Uda50Config,
    drives: MechanismIds,
    drive_queues: Vec<Uda50DriveQueues>,
    engine_jobs: VecDeque<EngineJob>,
    is_engine_busy: bool,
    engine_busy_time: Time,
    /// Transfers that wait for the bus, in order; the first one may be in progress.
    bus_queue: VecDeque<(RequestId, Time)>,
    is_bus_busy: bool,
    free_buffer_sectors: u32,
    completed_commands: VecDeque<RequestId>,
    outstanding_count: u32,
    spread_stream: RandomStream,
    interrupt_handler: Option<TaskId>,
}

#[derive(Clone, Default)]
struct Uda50DriveQueues {
    queued_commands: VecDeque<RequestId>,
    /// Commands that are decoded and ready for the drive. Writes have fetched enough of their data.
    ready_commands: VecDeque<RequestId>,
    in_flight_count: u32,
    is_transferring: bool,
}

#[derive(Clone, Copy, Debug)]
enum EngineJob {
    DecodeCommand(RequestId),
    FinishCommand(RequestId),
}

/// Event that a UDA50 schedules.
#[derive(Clone, Copy, Debug)]
pub enum Uda50Event {
    /// End of the current job of the controller's processor.
    EngineJobEnd,
    /// Arrival of a drive's transfer at its first sector.
    FirstSectorStart(RequestId),
    /// End of the last sector of a drive's transfer.
    LastSectorEnd(RequestId),
    /// Time at which enough data of a write is in the buffer to start the drive.
    SectorsBuffered(RequestId),
    /// End of the current transfer over the bus.
    BusTransferEnd,
}

impl Controller for Uda50 {
    type ControllerEvent = Uda50Event;

    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        event: Self::ControllerEvent,
    ) {
        match event {
            Uda50Event::EngineJobEnd => self.handle_engine_done(context, parts),
            Uda50Event::FirstSectorStart(id) => self.handle_first_sector(context, parts, id),
            Uda50Event::LastSectorEnd(id) => self.handle_last_sector(context, parts, id),
            Uda50Event::SectorsBuffered(id) => self.handle_buffered(context, parts, id),
            Uda50Event::BusTransferEnd => self.handle_bus_done(context, parts),
        }
    }

    fn connect_interrupt(&mut self, interrupt: TaskId) {
        self.interrupt_handler = Some(interrupt);
    }

    fn has_pending_interrupt(&self, _: &HardwareParts<'_>) -> bool {
        !self.completed_commands.is_empty()
    }

    fn busy_time(&self, _now: Time) -> Option<(CountedBusy, Time)> {
        Some((CountedBusy::Processor, self.engine_busy_time))
    }
}

impl Uda50 {
    /// Returns an idle UDA50 with its drives.
    pub fn new(
        id: ComponentId<Self>,
        config: Uda50Config,
        drives: MechanismIds,
        spread_stream: RandomStream,
    ) -> Self {
        Self {
            id,
            free_buffer_sectors: config.buffer_sectors,
            config,
            drive_queues: vec![Uda50DriveQueues::default(); drives.mechanism_count()],
            drives,
            engine_jobs: VecDeque::new(),
            is_engine_busy: false,
            engine_busy_time: Time::ZERO,
            bus_queue: VecDeque::new(),
            is_bus_busy: false,
            completed_commands: VecDeque::new(),
            outstanding_count: 0,
            spread_stream,
            interrupt_handler: None,
        }
    }

    /// Reports whether the host may submit another command. One credit is reserved for attention
    /// messages.
    pub fn accepts_commands(&self) -> bool {
        self.outstanding_count + 1 < self.config.command_credits
    }

    /// Takes the next completed command, if any.
    pub fn take_completion(&mut self) -> Option<RequestId> {
        self.completed_commands.pop_front()
    }

    /// Accepts a command into the controller's command ring.
    ///
    /// # Panics
    ///
    /// If the host has no credit left.
    pub fn accept_command(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        assert!(self.accepts_commands(), "a command without a credit");
        self.outstanding_count += 1;
        let drive_index = self
            .drives
            .index_of_drive(parts.submitted_requests[id].device);
        self.drive_queues[drive_index].queued_commands.push_back(id);
        self.decode_next(context, parts, drive_index);
    }

    fn decode_next(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
    ) {
        let limit = if self.config.overlaps_decode {
            u32::MAX
        } else {
            1
        };
        let unit = &self.drive_queues[drive_index];
        if unit.in_flight_count >= limit {
            return;
        }
        let Some(next) = self.choose_next(&unit.queued_commands, drive_index, parts) else {
            return;
        };
        let id = unit.queued_commands[next];
        let sectors = self.buffer_share(parts.submitted_requests[id].sectors);
        if sectors > self.free_buffer_sectors {
            return;
        }
        let unit = &mut self.drive_queues[drive_index];
        unit.queued_commands.remove(next);
        unit.in_flight_count += 1;
        self.free_buffer_sectors -= sectors;
        let request = &mut parts.submitted_requests[id];
        request.book_stage(Stage::ControllerQueue, moment(context.now()));
        self.engine_jobs.push_back(EngineJob::DecodeCommand(id));
        self.start_engine_job(context, parts);
    }

    /// Returns the buffer space of a transfer, in sectors. A transfer larger than the buffer uses
    /// all of it.
    fn buffer_share(&self, sectors: u32) -> u32 {
        sectors.min(self.config.buffer_sectors)
    }

    fn start_engine_job(&mut self, context: &SimulationContext<'_>, parts: &mut HardwareParts<'_>) {
        let (false, Some(job)) = (self.is_engine_busy, self.engine_jobs.front().copied()) else {
            return;
        };
        let (id, mean) = match job {
            EngineJob::DecodeCommand(id) => (id, self.config.decode_time),
            EngineJob::FinishCommand(id) => {
                let sectors = u64::from(parts.submitted_requests[id].sectors);
                let per_sector = self.config.finish_time_per_sector.0 * sectors;
                (id, self.config.finish_time + Time(per_sector))
            }
        };
        let request = &mut parts.submitted_requests[id];
        request.book_stage(Stage::ControllerQueue, moment(context.now()));
        let cost = self
            .spread_stream
            .draw_spread(mean, self.config.time_spread_share);
        self.is_engine_busy = true;
        self.engine_busy_time += cost;
        self.id
            .schedule_event(context, context.now() + cost, Uda50Event::EngineJobEnd);
    }

    fn handle_engine_done(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
    ) {
        self.is_engine_busy = false;
        let job = self
            .engine_jobs
            .pop_front()
            .expect("the processor had a job");
        let (EngineJob::DecodeCommand(id) | EngineJob::FinishCommand(id)) = job;
        let transfer = &mut parts.submitted_requests[id];
        transfer.book_stage(Stage::Command, moment(context.now()));
        let drive_index = self.drives.index_of_drive(transfer.device);
        match job {
            EngineJob::DecodeCommand(_) if transfer.is_write() => {
                self.queue_bus_transfer(context, parts, id, Time::ZERO)
            }
            EngineJob::DecodeCommand(_) => {
                self.drive_queues[drive_index].ready_commands.push_back(id);
                self.start_next_transfer(context, parts, drive_index);
            }
            EngineJob::FinishCommand(_) => self.handle_finished(context, parts, id),
        }
        self.start_engine_job(context, parts);
    }

    fn handle_finished(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        let transfer = &parts.submitted_requests[id];
        let drive_index = self.drives.index_of_drive(transfer.device);
        self.free_buffer_sectors += self.buffer_share(transfer.sectors);
        self.drive_queues[drive_index].in_flight_count -= 1;
        self.outstanding_count -= 1;
        self.completed_commands.push_back(id);
        let task = self.interrupt_handler.expect("the interrupt is connected");
        context.sim.wake_task(task);
        // Buffer has come free for whoever lacked it.
        for drive_index in 0..self.drive_queues.len() {
            self.decode_next(context, parts, drive_index);
        }
    }

    fn start_next_transfer(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
    ) {
        if self.drive_queues[drive_index].is_transferring {
            return;
        }
        let Some(next) = self.choose_next(
            &self.drive_queues[drive_index].ready_commands,
            drive_index,
            parts,
        ) else {
            return;
        };
        let unit = &mut self.drive_queues[drive_index];
        let id = unit
            .ready_commands
            .remove(next)
            .expect("it is in the queue");
        unit.is_transferring = true;
        let now = context.now();
        let transfer = &mut parts.submitted_requests[id];
        transfer.book_stage(Stage::ControllerQueue, moment(now));
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let all = (transfer.sector, transfer.sectors);
        let late = Deadline::TransferCommand;
        let (first, passage) = transfer_and_mark(transfer, drive, now, all, late);
        let ends_at = now + passage.total_time();
        self.id
            .schedule_event(context, first, Uda50Event::FirstSectorStart(id));
        self.id
            .schedule_event(context, ends_at, Uda50Event::LastSectorEnd(id));
    }

    /// Starts the bus transfer of a read when its first sector begins to pass.
    fn handle_first_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        let transfer = &parts.submitted_requests[id];
        if transfer.is_write() {
            return;
        }
        let drive = &parts.drives[self.drives.mechanism_id_for_request(transfer)];
        let ends_at = drive.last_transfer_end().expect("the drive transfers");
        self.queue_bus_transfer(context, parts, id, ends_at);
    }

    fn handle_last_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        let transfer = &mut parts.submitted_requests[id];
        let drive_index = self.drives.index_of_drive(transfer.device);
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        mark_media_transfer(transfer, drive, context.now());
        if transfer.is_write() {
            self.queue_finish(context, parts, id);
        }
        self.drive_queues[drive_index].is_transferring = false;
        self.start_next_transfer(context, parts, drive_index);
    }

    fn queue_finish(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        self.engine_jobs.push_back(EngineJob::FinishCommand(id));
        self.start_engine_job(context, parts);
    }

    /// Queues a transfer for the bus. Its last sector cannot be sent before `not_before`, when that
    /// sector has been read.
    fn queue_bus_transfer(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
        not_before: Time,
    ) {
        self.bus_queue.push_back((id, not_before));
        self.start_bus_transfer(context, parts);
    }

    fn start_bus_transfer(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
    ) {
        let (false, Some((id, not_before))) = (self.is_bus_busy, self.bus_queue.front().copied())
        else {
            return;
        };
        self.is_bus_busy = true;
        let now = context.now();
        let transfer = &mut parts.submitted_requests[id];
        if transfer.is_write() || now > not_before {
            transfer.book_stage(Stage::BusWait, moment(now));
        }
        let sector_bytes = u64::from(
            parts.drives[self.drives.mechanism_id_for_request(transfer)]
                .geometry()
                .sector_bytes(),
        );
        let one = parts.bus.transfer_time(sector_bytes);
        let all = parts
            .bus
            .transfer_time(sector_bytes * u64::from(transfer.sectors));
        let ends_at = (now + all).max(not_before + one);
        if transfer.is_write() {
            let drive = &parts.drives[self.drives.mechanism_id_for_request(transfer)];
            let media = drive.time_of_slots(drive.cylinder(), transfer.sectors);
            // The slower bus needs this much of a start; the buffer takes up
            // the difference.
            let lead = Time(all.0.saturating_sub(media.0)) + one;
            self.id.schedule_event(
                context,
                now + lead.min(all),
                Uda50Event::SectorsBuffered(id),
            );
        }
        parts.bus.start_stream(
            context,
            bytes_per_s(transfer.sectors, sector_bytes, ends_at - now),
        );
        self.id
            .schedule_event(context, ends_at, Uda50Event::BusTransferEnd);
        self.bus_queue.front_mut().expect("it is there").1 = now;
    }

    fn handle_bus_done(&mut self, context: &SimulationContext<'_>, parts: &mut HardwareParts<'_>) {
        let (id, since) = self.bus_queue.pop_front().expect("the bus was in use");
        self.is_bus_busy = false;
        let now = context.now();
        let transfer = &mut parts.submitted_requests[id];
        let sector_bytes = u64::from(
            parts.drives[self.drives.mechanism_id_for_request(transfer)]
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
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        let transfer = &mut parts.submitted_requests[id];
        transfer.book_stage(Stage::BusTransfer, moment(context.now()));
        let drive_index = self.drives.index_of_drive(transfer.device);
        self.drive_queues[drive_index].ready_commands.push_back(id);
        self.start_next_transfer(context, parts, drive_index);
    }

    /// Chooses the next command from a drive's queue in the configured order. Returns its position
    /// in the queue.
    fn choose_next(
        &self,
        queue: &VecDeque<RequestId>,
        drive_index: usize,
        parts: &HardwareParts<'_>,
    ) -> Option<usize> {
        match self.config.command_order {
            CommandOrder::ArrivalOrder => (!queue.is_empty()).then_some(0),
            CommandOrder::NearestFirst => {
                let drive = &parts.drives[self.drives.mechanism_id_at(drive_index)];
                let cylinder = |sector| drive.geometry().locate_sector(sector).cylinder;
                let distance = |id: &RequestId| {
                    cylinder(parts.submitted_requests[*id].sector).abs_diff(drive.cylinder())
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
