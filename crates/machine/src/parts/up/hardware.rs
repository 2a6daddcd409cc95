//! SMD controller on a UNIBUS: one transfer at a time, searches only while it is idle, and a buffer
//! of a few sectors between the drive and the UNIBUS, which may delay the controller.
//!
//! A sector is lost if it begins to pass while the buffer is full, or if it must be written and is
//! not in the buffer. The data are then late, and the transfer ends there.

use crate::controllers::Controller;
use crate::hardware::drives::MechanismIds;
use crate::hardware::marking::{mark_arm_move, mark_media_transfer, rotational_wait_stage};
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{RandomStream, RandomStreams, TaskId, Time};
use diskperf_timeline::trace::CountedBusy;
use diskperf_timeline::{Deadline, Stage};

/// Parameters of an up controller: buffer, command time and bus wait.
#[derive(Clone, Debug)]
pub struct UpHardwareConfig {
    /// Size of the buffer, in sectors.
    pub buffer_sectors: u32,
    /// Time from a command until the arm or the transfer acts on it.
    pub command_delay: Time,
    /// Maximum wait of the controller for the bus, per sector. The wait is random, uniform up to
    /// this maximum.
    pub bus_grant_delay_max: Time,
}

/// State of an up controller.
pub struct Up {
    id: ComponentId<Up>,
    config: UpHardwareConfig,
    drives: MechanismIds,
    active_transfer: Option<ActiveUpTransfer>,
    /// Transfer that has ended and that the driver has not yet reaped.
    completion: Option<UpCompletion>,
    /// Whether each drive has found its searched sector and reports it to the driver (attention
    /// flag).
    pending_attention: Vec<bool>,
    busy_time: Time,
    bus_grant_stream: RandomStream,
    interrupt_handler: Option<TaskId>,
}

#[derive(Clone, Copy, Debug)]
struct ActiveUpTransfer {
    request: RequestId,
    transfer_start: Time,
    bytes_per_s: u64,
    last_timely_sector_end: Time,
    transfer_end: Time,
    is_data_late: bool,
}

/// Ended transfer of the controller, with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpCompletion {
    /// Request that the ended transfer belongs to.
    pub request: RequestId,
    /// Whether a sector was late, so that the transfer ended there.
    pub is_data_late: bool,
}

/// Event that an up controller schedules.
#[derive(Clone, Copy, Debug)]
pub enum UpEvent {
    /// Arrival of a drive at its searched sector, given by the drive's place on the controller.
    SectorFound(u8),
    /// Start of a transfer's data movement over the bus.
    BusTransferStart,
    /// End of a transfer, complete or cut short by late data.
    TransferEnd,
}

impl Controller for Up {
    type ControllerEvent = UpEvent;

    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        event: UpEvent,
    ) {
        match event {
            UpEvent::SectorFound(drive_index) => {
                self.pending_attention[usize::from(drive_index)] = true;
                self.raise_interrupt(context);
            }
            UpEvent::BusTransferStart => {
                let transfer = self.active_transfer.expect("a transfer is under way");
                parts.bus.start_stream(context, transfer.bytes_per_s);
            }
            UpEvent::TransferEnd => self.end_transfer(context, parts),
        }
    }

    fn connect_interrupt(&mut self, interrupt: TaskId) {
        self.interrupt_handler = Some(interrupt);
    }

    fn has_pending_interrupt(&self, _: &HardwareParts<'_>) -> bool {
        self.completion.is_some() || self.pending_attention.contains(&true)
    }

    fn busy_time(&self, now: Time) -> Option<(CountedBusy, Time)> {
        let in_progress = self
            .active_transfer
            .map_or(Time::ZERO, |one| now - one.transfer_start);
        Some((CountedBusy::Channel, self.busy_time + in_progress))
    }
}

impl Up {
    /// Returns an idle up controller with its drives. `number` is its number among all controllers.
    pub fn new(
        (id, number): (ComponentId<Self>, usize),
        config: UpHardwareConfig,
        drives: MechanismIds,
        streams: RandomStreams,
    ) -> Self {
        Self {
            id,
            config,
            pending_attention: vec![false; drives.mechanism_count()],
            drives,
            active_transfer: None,
            completion: None,
            busy_time: Time::ZERO,
            bus_grant_stream: streams.named_stream(&format!("controller.{number}.grants")),
            interrupt_handler: None,
        }
    }

    /// Drives attached to the controller.
    pub fn drives(&self) -> &MechanismIds {
        &self.drives
    }

    /// Reports whether the controller can accept a transfer or a search.
    pub fn is_idle(&self) -> bool {
        self.active_transfer.is_none() && self.completion.is_none()
    }

    /// Takes the transfer that has ended, if any.
    pub fn take_completion(&mut self) -> Option<UpCompletion> {
        self.completion.take()
    }

    /// Takes the first attention flag of a drive that has found its sector, and returns the drive.
    /// None if no flag is set.
    pub fn take_attention(&mut self) -> Option<usize> {
        let drive_index = self.pending_attention.iter().position(|raised| *raised)?;
        self.pending_attention[drive_index] = false;
        Some(self.drives.drive_index(drive_index))
    }

    /// Commands a drive to seek to a request's cylinder and to report when `slot` passes there.
    ///
    /// # Panics
    ///
    /// If a transfer is in progress, which a search would disturb.
    pub fn start_search(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
        slot: u32,
    ) {
        assert!(self.active_transfer.is_none(), "a search while data moves");
        let request = &mut parts.submitted_requests[id];
        let drive_index = self.drives.index_of_drive(request.device);
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let cylinder = drive.geometry().locate_sector(request.sector).cylinder;
        let commanded = context.now() + self.config.command_delay;
        request.book_stage(Stage::Command, moment(commanded));
        let arm = drive.seek_to_cylinder(cylinder, request.is_write());
        mark_arm_move(request, commanded, arm);
        let arrived = commanded + arm.total_time();
        let since = drive.last_transfer_end();
        let found = arrived + drive.wait_for_slot(arrived, slot, (arm, since));
        let period = drive.spindle().revolution_time();
        let stage = rotational_wait_stage(request, since, period, found, arm, Deadline::Search);
        request.book_stage(stage, moment(found));
        self.id
            .schedule_event(context, found, UpEvent::SectorFound(drive_index as u8));
    }

    /// Starts a transfer. `searched` is the time at which the drive found the sector before it, if
    /// it was commanded to search. `repeated` is whether data were late the last time.
    ///
    /// # Panics
    ///
    /// If a transfer is in progress.
    pub fn start_transfer(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
        searched: Option<Time>,
        repeated: bool,
    ) {
        assert!(self.is_idle(), "one transfer at a time");
        let request = &mut parts.submitted_requests[id];
        let drive = &mut parts.drives[self.drives.mechanism_id_for_request(request)];
        let sector_bytes = u64::from(drive.geometry().sector_bytes());
        let over_bus = parts.bus.transfer_time(sector_bytes);
        let mut commanded = context.now() + self.config.command_delay;
        if request.is_write() {
            // The first sector is there before the drive is started.
            commanded += over_bus;
        }
        request.book_stage(Stage::Command, moment(commanded));
        let since = searched.or(drive.last_transfer_end());
        let all = (request.sector, request.sectors);
        let passage = drive.transfer_with_ready_time(commanded, all, request.is_write(), since);
        mark_arm_move(request, commanded, passage.move_to_track);
        let first = commanded + passage.time_to_first_sector();
        let stage = match repeated {
            true => Stage::MissedRevolution(Deadline::DataLate),
            false => {
                let late = Deadline::TransferCommand;
                let period = drive.spindle().revolution_time();
                rotational_wait_stage(request, since, period, first, passage.move_to_track, late)
            }
        };
        request.book_stage(stage, moment(first));
        let write = request.is_write();
        let passes = drive.sector_end_times();
        let slot = drive.time_of_slots(drive.cylinder(), 1);
        let moved = self.bus_transfer_times(&passes, slot, commanded, over_bus, write);
        let late = moved.len() < passes.len();
        let passed_at = passes[moved.len().max(1) - 1];
        let ends_at = match (write, late) {
            (false, false) => moved.last().map_or(passed_at, |at| passed_at.max(*at)),
            (true, false) | (_, true) => passed_at,
        };
        let bytes = sector_bytes * moved.len() as u64;
        self.active_transfer = Some(ActiveUpTransfer {
            request: id,
            transfer_start: context.now(),
            bytes_per_s: bytes * 1_000_000_000 / (ends_at - first).0.max(1),
            last_timely_sector_end: passed_at,
            transfer_end: ends_at,
            is_data_late: late,
        });
        self.id
            .schedule_event(context, first, UpEvent::BusTransferStart);
        self.id
            .schedule_event(context, ends_at, UpEvent::TransferEnd);
    }

    /// Returns the time at which the data of each sector have moved over the bus, up to the first
    /// lost sector. `passes` holds the time at which each sector has passed, and `slot` the time of
    /// one sector. Words move while a sector passes; the buffer limits how far they may be behind
    /// or ahead of it.
    fn bus_transfer_times(
        &mut self,
        passes: &[Time],
        slot: Time,
        from: Time,
        sector_bus_time: Time,
        write: bool,
    ) -> Vec<Time> {
        let buffer = self.config.buffer_sectors as usize;
        let starts_at = |number: usize| {
            let starts_at = Time(passes[number].0.saturating_sub(slot.0));
            // Not by the fraction that rounding took before the one before it.
            number
                .checked_sub(1)
                .map_or(starts_at, |before| starts_at.max(passes[before]))
        };
        let mut moved: Vec<Time> = Vec::with_capacity(passes.len());
        for (number, passed_at) in passes.iter().enumerate() {
            // The sector whose room in the buffer this one takes.
            let before = number.checked_sub(buffer);
            if !write && before.is_some_and(|before| moved[before] > starts_at(number)) {
                return moved;
            }
            // What is written was fetched before the command, as far as there is room.
            let (may, least) = match (write, before) {
                (false, _) => (starts_at(number), *passed_at),
                (true, Some(before)) => (starts_at(before), passes[before]),
                (true, None) => (from, from),
            };
            let last = moved.last().copied().unwrap_or(from);
            let wait = self
                .bus_grant_stream
                .draw_within(self.config.bus_grant_delay_max);
            let at = match write && number == 0 {
                true => from,
                false => (last.max(may) + wait + sector_bus_time).max(least),
            };
            if write && at > *passed_at {
                return moved;
            }
            moved.push(at);
        }
        moved
    }

    fn end_transfer(&mut self, context: &SimulationContext<'_>, parts: &mut HardwareParts<'_>) {
        let transfer = self
            .active_transfer
            .take()
            .expect("a transfer is under way");
        parts.bus.end_stream(context, transfer.bytes_per_s);
        self.busy_time += context.now() - transfer.transfer_start;
        let request = &mut parts.submitted_requests[transfer.request];
        let drive = &mut parts.drives[self.drives.mechanism_id_for_request(request)];
        if transfer.is_data_late {
            drive.truncate_last_transfer(transfer.last_timely_sector_end);
            let late = Stage::MissedRevolution(Deadline::DataLate);
            request.book_stage(late, moment(transfer.transfer_end));
        } else {
            mark_media_transfer(request, drive, transfer.last_timely_sector_end);
            request.book_stage(Stage::BusTransfer, moment(transfer.transfer_end));
        }
        self.completion = Some(UpCompletion {
            request: transfer.request,
            is_data_late: transfer.is_data_late,
        });
        self.raise_interrupt(context);
    }

    fn raise_interrupt(&self, context: &SimulationContext<'_>) {
        let task = self.interrupt_handler.expect("its interrupt is connected");
        context.sim.wake_task(task);
    }
}
