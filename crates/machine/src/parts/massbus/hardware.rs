//! MASSBUS adaptor, or an SMD controller compatible with one. Several drives may seek and search
//! simultaneously, but only one drive transfers data. The channel is held from the transfer command
//! until the last sector.

use crate::controllers::Controller;
use crate::hardware::drives::MechanismIds;
use crate::hardware::marking::{mark_arm_move, mark_media_transfer, rotational_wait_stage};
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use diskperf_device::WhatIf;
use diskperf_device::{RequestId, moment};
use diskperf_sim::{RandomStream, RandomStreams, TaskId, Time};
use diskperf_timeline::trace::CountedBusy;
use diskperf_timeline::{Deadline, Stage};

/// Condition under which a drive may report that it has found its sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttentionTiming {
    /// Search report whenever the sector passes.
    WhileTransferring,
    /// Search report only when the sector passes while no other drive transfers, because a
    /// controller does not monitor searches during a transfer.
    WhenIdle,
}

/// Parameters of a MASSBUS adaptor: search behaviour, command times and late data.
#[derive(Clone, Debug)]
pub struct MassbusConfig {
    /// Condition of a search report; see [`AttentionTiming`].
    pub attention_timing: AttentionTiming,
    /// Poll interval per drive, for a controller whose own processor polls the drives for search
    /// commands. A search starts up to one interval per attached drive later. Zero if searches are
    /// wired.
    pub search_poll_time_per_drive: Time,
    /// Time from the poll that finds a search command until the controller's processor acts on it.
    pub search_command_delay: Time,
    /// Time from a command until the arm or the channel acts on it.
    pub command_delay: Time,
    /// Whether a read sector is sent to memory only after it has been read completely and checked,
    /// while the next sector passes. A read then ends one sector after its last sector has passed.
    pub reads_whole_sectors: bool,
    /// Probability that a sector's memory access is late while a process runs, which writes through
    /// its cache at every turn. Interrupt handlers move little data outside the cache.
    pub data_late_probability: f64,
    /// Factor on the probability of a late sector while no process runs, for written sectors. Read
    /// data need only be passed on, but written data must arrive in time.
    pub data_late_idle_share: f64,
    /// Whether a repeated transfer may fail again. Always true, except in a counterfactual run in
    /// which a repetition costs no time and could fail forever.
    pub repeats_data_late: bool,
}

impl MassbusConfig {
    /// Returns the configuration for a counterfactual run. Data are never late if deadlines are
    /// met, and a search report does not wait for the channel if deadlines are met or if there is
    /// no rotational latency.
    pub(crate) fn with_counterfactual(&self, what_if: WhatIf) -> Self {
        let mut config = self.clone();
        if what_if.meets_deadlines {
            config.data_late_probability = 0.0;
        }
        if what_if.no_rotational_latency {
            config.repeats_data_late = false;
        }
        if what_if.meets_deadlines || what_if.no_rotational_latency {
            config.attention_timing = AttentionTiming::WhileTransferring;
        }
        config
    }
}

/// State of a MASSBUS adaptor.
pub struct Massbus {
    id: ComponentId<Massbus>,
    config: MassbusConfig,
    drives: MechanismIds,
    active_transfer: Option<ActiveTransfer>,
    /// Transfer that has ended and that the driver has not yet reaped.
    completion: Option<MassbusCompletion>,
    /// Whether each drive has found its searched sector and reports it to the driver (attention
    /// flag).
    pending_attention: Vec<bool>,
    active_searches: Vec<Option<ActiveSearch>>,
    /// Start and end of the last use of the channel.
    last_channel_use: (Time, Time),
    channel_busy_time: Time,
    data_late_stream: RandomStream,
    poll_stream: RandomStream,
    interrupt_handler: Option<TaskId>,
    data_late_error_count: u64,
}

#[derive(Clone, Copy, Debug)]
struct ActiveTransfer {
    request_id: RequestId,
    bytes_per_s: u64,
    transfer_start: Time,
    /// Time at which the first sector begins to pass under the head.
    first_sector_start: Time,
    last_sector_end: Time,
    /// Delay from the end of a sector under the head until it is in memory.
    memory_delay: Time,
    sector_count: u32,
    time_per_sector: Time,
    may_be_late: bool,
    is_transferring: bool,
}

/// Ended transfer of the adaptor, with its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MassbusCompletion {
    /// Request that the ended transfer belongs to.
    pub request_id: RequestId,
    /// Whether a sector was late, so that the transfer ended there.
    pub is_data_late: bool,
}

#[derive(Clone, Copy, Debug)]
struct ActiveSearch {
    request_id: RequestId,
    slot: u32,
    /// Time at which the searched sector first passed. None before that.
    first_found_at: Option<Time>,
}

/// Event that a MASSBUS adaptor schedules.
#[derive(Clone, Copy, Debug)]
pub enum MassbusEvent {
    /// Arrival of a drive at its searched sector, given by the drive's place on the adaptor.
    SectorFound(u8),
    /// Start of the first sector of the adaptor's transfer.
    FirstSector,
    /// End of a sector whose data may be late.
    LateSectorCheck {
        /// Number of the sector in the transfer, counted from 1.
        number: u32,
        /// Random draw; the sector is late if the draw is below the current probability.
        draw: f64,
    },
    /// End of the last sector of the adaptor's transfer.
    LastSector,
}

impl Controller for Massbus {
    type ControllerEvent = MassbusEvent;

    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        event: Self::ControllerEvent,
    ) {
        match event {
            MassbusEvent::SectorFound(drive_index) => {
                self.handle_sector_found(context, parts, usize::from(drive_index))
            }
            MassbusEvent::FirstSector => self.handle_first_sector(context, parts),
            MassbusEvent::LateSectorCheck { number, draw } => {
                self.handle_sector(context, parts, number, draw)
            }
            MassbusEvent::LastSector => self.handle_last_sector(context, parts, false),
        }
    }

    fn connect_interrupt(&mut self, interrupt: TaskId) {
        self.interrupt_handler = Some(interrupt);
    }

    fn has_pending_interrupt(&self, _: &HardwareParts<'_>) -> bool {
        self.completion.is_some() || self.pending_attention.contains(&true)
    }

    fn busy_time(&self, now: Time) -> Option<(CountedBusy, Time)> {
        Some((CountedBusy::Channel, self.channel_busy_until(now)))
    }
}

impl Massbus {
    /// Returns an idle MASSBUS adaptor with its drives. `number` is its number among all
    /// controllers.
    pub fn new(
        (id, number): (ComponentId<Self>, usize),
        config: MassbusConfig,
        drives: MechanismIds,
        streams: RandomStreams,
    ) -> Self {
        let count = drives.mechanism_count();
        Self {
            id,
            config,
            drives,
            active_transfer: None,
            completion: None,
            pending_attention: vec![false; count],
            active_searches: vec![None; count],
            last_channel_use: (Time::ZERO, Time::ZERO),
            channel_busy_time: Time::ZERO,
            data_late_stream: streams.named_stream(&format!("controller.{number}.data_late")),
            poll_stream: streams.named_stream(&format!("controller.{number}.poll")),
            interrupt_handler: None,
            data_late_error_count: 0,
        }
    }

    /// Drives attached to the adaptor.
    pub fn drives(&self) -> &MechanismIds {
        &self.drives
    }

    /// Reports whether the channel can accept a transfer.
    pub fn is_idle(&self) -> bool {
        self.active_transfer.is_none() && self.completion.is_none()
    }

    /// Returns the time for which the channel was held, up to now.
    pub fn channel_busy_until(&self, now: Time) -> Time {
        let holding = self
            .active_transfer
            .map_or(Time::ZERO, |transfer| now - transfer.transfer_start);
        self.channel_busy_time + holding
    }

    /// Number of late sectors so far.
    pub fn data_late_error_count(&self) -> u64 {
        self.data_late_error_count
    }

    /// Takes the transfer that has ended, if any.
    pub fn take_completion(&mut self) -> Option<MassbusCompletion> {
        self.completion.take()
    }

    /// Takes the first attention flag of a drive that has found its sector, and returns the drive's
    /// place. None if no flag is set.
    pub fn take_attention(&mut self) -> Option<usize> {
        let drive_index = self.pending_attention.iter().position(|raised| *raised)?;
        self.pending_attention[drive_index] = false;
        Some(drive_index)
    }

    /// Commands a drive to seek to the transfer's cylinder and to report when `slot` passes there.
    pub fn start_search(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
        slot: u32,
    ) {
        let transfer = &mut parts.submitted_requests[id];
        let drive_index = self.drives.index_of_drive(transfer.device);
        let drive = &mut parts.drives[self.drives.mechanism_id_at(drive_index)];
        let cylinder = drive.geometry().locate_sector(transfer.sector).cylinder;
        // Where the round of the polling stands when a command comes, nobody
        // knows.
        let round = self.config.search_poll_time_per_drive.0 * self.drives.mechanism_count() as u64;
        let noticed = self.poll_stream.draw_within(Time(round)) + self.config.search_command_delay;
        let commanded = context.now() + self.config.command_delay + noticed;
        transfer.book_stage(Stage::Command, moment(commanded));
        let arm = drive.seek_to_cylinder(cylinder, transfer.is_write());
        mark_arm_move(transfer, commanded, arm);
        let arrived = commanded + arm.total_time();
        let ready_since = drive.last_transfer_end();
        let found = arrived + drive.wait_for_slot(arrived, slot, (arm, ready_since));
        let stage = rotational_wait_stage(
            transfer,
            ready_since,
            drive.spindle().revolution_time(),
            found,
            arm,
            Deadline::Search,
        );
        transfer.book_stage(stage, moment(found));
        let search = &mut self.active_searches[drive_index];
        assert!(search.is_none(), "a drive that searches was told to search");
        *search = Some(ActiveSearch {
            request_id: id,
            slot,
            first_found_at: None,
        });
        self.id
            .schedule_event(context, found, MassbusEvent::SectorFound(drive_index as u8));
    }

    /// Starts a transfer and holds the channel. `searched` is the time at which the drive found the
    /// sector before it, if it was commanded to search.
    ///
    /// # Panics
    ///
    /// If the channel is already held.
    pub fn start_transfer(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
        searched: Option<Time>,
        repeated: bool,
    ) {
        assert!(self.is_idle(), "one transfer at a time holds the channel");
        let now = context.now();
        let commanded = now + self.config.command_delay;
        let transfer = &mut parts.submitted_requests[id];
        transfer.book_stage(Stage::Command, moment(commanded));
        let drive = &mut parts.drives[self.drives.mechanism_id_for_request(transfer)];
        let ready_since = searched.or(drive.last_transfer_end());
        let all = (transfer.sector, transfer.sectors);
        let passage =
            drive.transfer_with_ready_time(commanded, all, transfer.is_write(), ready_since);
        mark_arm_move(transfer, commanded, passage.move_to_track);
        let first_sector = commanded + passage.time_to_first_sector();
        let stage = if repeated {
            Stage::MissedRevolution(Deadline::DataLate)
        } else {
            let missed = rotational_wait_stage(
                transfer,
                ready_since,
                drive.spindle().revolution_time(),
                first_sector,
                passage.move_to_track,
                Deadline::TransferCommand,
            );
            self.attribute_to_channel(missed, first_sector, drive.spindle().revolution_time())
        };
        transfer.book_stage(stage, moment(first_sector));
        let passed_at = commanded + passage.total_time();
        let bytes = u64::from(transfer.sectors) * u64::from(drive.geometry().sector_bytes());
        let per_sector = Time((passed_at - first_sector).0 / u64::from(transfer.sectors));
        let memory_delay = match self.config.reads_whole_sectors && !transfer.is_write() {
            true => per_sector,
            false => Time::ZERO,
        };
        self.active_transfer = Some(ActiveTransfer {
            request_id: id,
            bytes_per_s: bytes * 1_000_000_000 / (passed_at - first_sector).0.max(1),
            transfer_start: now,
            first_sector_start: first_sector,
            last_sector_end: passed_at,
            memory_delay,
            sector_count: transfer.sectors,
            time_per_sector: per_sector,
            may_be_late: self.config.data_late_probability > 0.0
                && (!repeated || self.config.repeats_data_late),
            is_transferring: false,
        });
        self.id.schedule_event(
            context,
            first_sector + memory_delay,
            MassbusEvent::FirstSector,
        );
    }

    /// Returns the stage of a missed transfer command, changed to a held channel if another drive
    /// held the channel when the sector passed.
    fn attribute_to_channel(&self, stage: Stage, first_sector: Time, period: Time) -> Stage {
        let missed = Stage::MissedRevolution(Deadline::TransferCommand);
        let (taken, freed) = self.last_channel_use;
        match first_sector.0.checked_sub(period.0) {
            Some(passed_at) if stage == missed && (taken.0..freed.0).contains(&passed_at) => {
                Stage::MissedRevolution(Deadline::ChannelHeld)
            }
            _ => stage,
        }
    }

    fn handle_sector_found(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
    ) {
        let now = context.now();
        let search = self.active_searches[drive_index]
            .as_mut()
            .expect("the drive searches");
        let transfer = &mut parts.submitted_requests[search.request_id];
        if search.first_found_at.replace(now).is_some() {
            let last_channel_use = Stage::MissedRevolution(Deadline::ChannelHeld);
            transfer.book_stage(last_channel_use, moment(now));
        }
        if self.config.attention_timing == AttentionTiming::WhenIdle
            && self.active_transfer.is_some()
        {
            // It is not noticed; the sector comes round again.
            let slot = search.slot;
            let drive = &parts.drives[self.drives.mechanism_id_for_request(transfer)];
            let again = now + Time(1);
            let again = again + drive.time_until_slot(again, slot);
            self.id
                .schedule_event(context, again, MassbusEvent::SectorFound(drive_index as u8));
            return;
        }
        self.active_searches[drive_index] = None;
        self.pending_attention[drive_index] = true;
        self.raise_interrupt(context);
    }

    fn handle_first_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
    ) {
        let channel = self.active_transfer.as_mut().expect("the channel is held");
        channel.is_transferring = true;
        parts.bus.start_stream(context, channel.bytes_per_s);
        self.schedule_sectors_from(context, 1);
    }

    /// Schedules the next event of the transfer from this sector on: the next sector that may be
    /// late, or the last sector. The buffer holds a single sector, so a sector is late if the
    /// memory, shared with the processor, does not accept or supply it in time. Whether it is late
    /// depends on whether a process has the processor when it has passed.
    fn schedule_sectors_from(&mut self, context: &SimulationContext<'_>, number: u32) {
        let channel = self.active_transfer.expect("the channel is held");
        let may_be_late = channel.may_be_late;
        let mut last = number..channel.sector_count.max(2);
        let risk = last.find_map(|number| {
            let draw = may_be_late.then(|| self.data_late_stream.draw_share())?;
            (draw < self.config.data_late_probability).then_some((number, draw))
        });
        match risk {
            Some((number, draw)) => {
                let passing = Time(channel.time_per_sector.0 * u64::from(number));
                let at = channel.first_sector_start + passing + channel.memory_delay;
                self.id
                    .schedule_event(context, at, MassbusEvent::LateSectorCheck { number, draw });
            }
            None => {
                let at = channel.last_sector_end + channel.memory_delay;
                self.id
                    .schedule_event(context, at, MassbusEvent::LastSector);
            }
        }
    }

    fn handle_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        number: u32,
        draw: f64,
    ) {
        let channel = self.active_transfer.expect("the channel is held");
        let write = parts.submitted_requests[channel.request_id].is_write();
        let idle = match write {
            true => self.config.data_late_probability * self.config.data_late_idle_share,
            false => 0.0,
        };
        if context.processors.has_process() || draw < idle {
            self.data_late_error_count += 1;
            self.handle_last_sector(context, parts, true);
        } else {
            self.schedule_sectors_from(context, number + 1);
        }
    }

    fn handle_last_sector(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        data_late: bool,
    ) {
        let now = context.now();
        let channel = self.active_transfer.take().expect("the channel is held");
        assert!(
            channel.is_transferring,
            "the last sector came before the first"
        );
        parts.bus.end_stream(context, channel.bytes_per_s);
        self.channel_busy_time += now - channel.transfer_start;
        self.last_channel_use = (channel.transfer_start, now);
        let transfer = &mut parts.submitted_requests[channel.request_id];
        let drive = &mut parts.drives[self.drives.mechanism_id_for_request(transfer)];
        if data_late {
            drive.truncate_last_transfer(now);
            let late = Stage::MissedRevolution(Deadline::DataLate);
            transfer.book_stage(late, moment(now));
        } else {
            mark_media_transfer(transfer, drive, channel.last_sector_end);
            if channel.memory_delay > Time::ZERO {
                transfer.book_stage(Stage::BusTransfer, moment(now));
            }
        }
        self.completion = Some(MassbusCompletion {
            request_id: channel.request_id,
            is_data_late: data_late,
        });
        self.raise_interrupt(context);
    }

    fn raise_interrupt(&self, context: &SimulationContext<'_>) {
        let task = self
            .interrupt_handler
            .expect("the adaptor's interrupt is connected");
        context.sim.wake_task(task);
    }
}
