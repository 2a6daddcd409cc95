//! Disk controllers for the VMEbus of the mid-1980s: a processor that decodes commands, a sector
//! cache, and bus transfers during the passing of the next sectors.
//!
//! A command is decoded first. Cached sectors of a read are sent over the bus immediately, one by
//! one, by the controller's processor. Sectors that are passing under the heads follow as they
//! pass, and for the rest the read waits for the arm. The arm reads beyond the command as far as
//! the policy allows, and a following read is served from the stream. A write fetches its data
//! before its sectors pass; unlike a read, it ends read-ahead.

mod adaptive;
mod arm;
mod policy;
mod stream;

pub use policy::{CachePolicy, READ_AHEAD_SECTORS_MAX};

use crate::controllers::Controller;
use crate::hardware::cache::{CacheStatistics, SectorCache};
use crate::hardware::drives::MechanismIds;
use crate::hardware::{HardwareParts, SimulationContext};
use crate::id::ComponentId;
use adaptive::Rehearsal;
use arm::{ArmState, VmeDriveState};
use diskperf_device::{AccessHint, RequestId, moment};
use diskperf_sim::{RandomStream, RandomStreams, TaskId, Time};
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Parameters of a VMEbus controller: processing times, write lead, cache and maintenance.
#[derive(Clone, Debug)]
pub struct VmeConfig {
    /// Processor time of the controller per command.
    pub command_delay: Time,
    /// Poll interval of the controller's processor for commands. A command starts up to one
    /// interval later.
    pub command_poll_interval: Time,
    /// Processor time of the controller per sector transferred between cache and memory.
    pub move_time_per_sector: Time,
    /// Number of sectors of a write that the controller fetches before it starts the drive. A
    /// shorter write is fetched completely.
    pub write_lead_sectors: u32,
    /// Caching scheme of the controller.
    pub caching: CachingScheme,
    /// Procedure of the controller for format and verify of a drive. None if it is unknown.
    pub maintenance: Option<MaintenanceCommands>,
}

impl VmeConfig {
    /// Returns substitute parameters for a controller that is refused.
    pub(crate) fn with_unpublished_costs() -> Self {
        Self {
            command_delay: Time::ZERO,
            command_poll_interval: Time::ZERO,
            move_time_per_sector: Time::ZERO,
            write_lead_sectors: 1,
            caching: CachingScheme::NoCache,
            maintenance: None,
        }
    }
}

/// Procedure of a controller and its maintenance program to format and verify a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaintenanceCommands {
    /// Time between two track operations of a format or verify.
    pub track_command_time: Time,
    /// Whether each track is read after it has been formatted.
    pub checks_after_format: bool,
    /// Kind of verify pass after a format.
    pub verify_pass: VerifyPass,
}

/// Kind of verify pass over a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyPass {
    /// Verify by reading: the board reads the track.
    ReadPass,
    /// Pattern test: the host generates a pattern, which is written, read back and compared.
    PatternPass,
}

/// Caching scheme of a controller for read and written sectors.
#[derive(Clone, Debug)]
pub enum CachingScheme {
    /// Controller without a sector cache.
    NoCache,
    /// Track cache. A read miss reads the whole track, starting at any sector, and sequential reads
    /// prefetch the next track.
    TrackCache {
        /// Capacity of the cache, in sectors.
        capacity_sectors: u32,
        /// Whether every write clears the cache.
        flushed_by_writes: bool,
    },
    /// Sector cache with a policy that the driver gives with each command.
    SectorCache {
        /// Capacity of the cache, in sectors.
        capacity_sectors: u32,
        /// Cache policy of each class of requests, by [`AccessHint`].
        policies: [CachePolicy; 3],
        /// Whether the controller adapts the policies itself and ignores the given ones.
        adaptive: bool,
    },
    /// Sector cache of a rehearsal, in which past commands are executed again to evaluate policies.
    RehearsedPolicies {
        /// Capacity of the cache, in sectors.
        capacity_sectors: u32,
        /// Cache policy of each request of the rehearsal, by the index of the request.
        policies: Vec<CachePolicy>,
    },
}

impl CachingScheme {
    fn capacity_sectors(&self) -> u32 {
        match self {
            Self::NoCache => 0,
            Self::TrackCache {
                capacity_sectors, ..
            }
            | Self::SectorCache {
                capacity_sectors, ..
            }
            | Self::RehearsedPolicies {
                capacity_sectors, ..
            } => *capacity_sectors,
        }
    }

    fn policy(&self, id: RequestId, hint: AccessHint) -> CachePolicy {
        match self {
            Self::NoCache => CachePolicy::default(),
            Self::TrackCache { .. } => CachePolicy {
                searches_cache: true,
                caches_reads: true,
                ..CachePolicy::default()
            },
            Self::SectorCache { policies, .. } => policies[hint as usize],
            Self::RehearsedPolicies { policies, .. } => policies[id.slot()],
        }
    }

    fn is_adaptive(&self) -> bool {
        matches!(self, Self::SectorCache { adaptive: true, .. })
    }

    fn is_track_cache(&self) -> bool {
        matches!(self, Self::TrackCache { .. })
    }
}

/// State of a VMEbus controller.
pub struct Vme {
    id: ComponentId<Vme>,
    config: VmeConfig,
    cache: SectorCache,
    drives: MechanismIds,
    drive_states: Vec<VmeDriveState>,
    engine_free_at: Time,
    /// Transfers in progress over the bus, with their rates in bytes per second.
    bus_transfers: Vec<(RequestId, u64)>,
    completed_commands: VecDeque<RequestId>,
    outstanding_count: u32,
    statistics: [CacheStatistics; 3],
    poll_stream: RandomStream,
    interrupt_handler: Option<TaskId>,
}

/// Event that a VMEbus controller schedules.
#[derive(Clone, Copy, Debug)]
pub enum VmeEvent {
    /// End of the decoding of a command.
    CommandDecoded(RequestId),
    /// Start of a command's data transfer over the bus, with its rate in bytes per second.
    BusTransferStart(RequestId, u32),
    /// End of a command: all of its data are in memory or on the drive.
    CommandFinished(RequestId),
    /// End of the arm's current work, given by the place of the drive and the generation of that
    /// work.
    ArmMoveEnd(u8, u32),
    /// Request to end the arm's read-ahead as soon as no command needs it, given by the place of
    /// the drive and the generation of that work.
    ReadAheadEnd(u8, u32),
}

/// Origin of the read stream that serves a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamOrigin {
    /// Read stream that was started for the command itself. Its sectors go from the drive directly
    /// over the bus.
    OwnRead,
    /// Read stream that was started for another command or as read-ahead. Its sectors go through
    /// the cache.
    OtherRead,
}

#[derive(Clone, Copy, Debug)]
struct VmeCommand {
    id: RequestId,
    /// First sector of the command that is not yet served.
    next_sector: u64,
    end_sector: u64,
    /// Time at which the sectors served so far are in memory (read) or fetched from memory (write).
    data_ready_at: Time,
    /// Time at which enough data of a write has been fetched to start the drive.
    start_allowed_at: Time,
    is_write: bool,
    cache_policy: CachePolicy,
}

impl Controller for Vme {
    type ControllerEvent = VmeEvent;

    fn handle(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        event: Self::ControllerEvent,
    ) {
        match event {
            VmeEvent::CommandDecoded(id) => self.handle_decoded(context, parts, id),
            VmeEvent::BusTransferStart(id, rate) => {
                parts.bus.start_stream(context, u64::from(rate));
                self.bus_transfers.push((id, u64::from(rate)));
            }
            VmeEvent::CommandFinished(id) => self.handle_finished(context, parts, id),
            VmeEvent::ArmMoveEnd(drive_index, generation) => {
                self.handle_arm_done(context, parts, usize::from(drive_index), generation);
            }
            VmeEvent::ReadAheadEnd(drive_index, generation) => {
                self.handle_end_read_ahead(context, parts, usize::from(drive_index), generation);
            }
        }
    }

    fn connect_interrupt(&mut self, interrupt: TaskId) {
        self.interrupt_handler = Some(interrupt);
    }

    fn has_pending_interrupt(&self, _: &HardwareParts<'_>) -> bool {
        !self.completed_commands.is_empty()
    }

    fn cache_statistics(&self) -> Option<[CacheStatistics; 3]> {
        let keeps = !matches!(self.config.caching, CachingScheme::NoCache);
        keeps.then_some(self.statistics)
    }

    fn rehearsed_events(&self) -> u64 {
        let of_units = self
            .drive_states
            .iter()
            .map(|unit| unit.command_history.rehearsed_events);
        of_units.sum()
    }
}

impl Vme {
    /// Returns an idle VMEbus controller with its drives. `number` is its number among all
    /// controllers.
    pub fn new(
        (id, number): (ComponentId<Self>, usize),
        config: VmeConfig,
        drives: MechanismIds,
        streams: RandomStreams,
    ) -> Self {
        Self {
            id,
            poll_stream: streams.named_stream(&format!("controller.{number}.poll")),
            cache: SectorCache::new(config.caching.capacity_sectors()),
            config,
            drive_states: (0..drives.mechanism_count())
                .map(|_| VmeDriveState::default())
                .collect(),
            drives,
            engine_free_at: Time::ZERO,
            bus_transfers: Vec::new(),
            completed_commands: VecDeque::new(),
            outstanding_count: 0,
            statistics: [CacheStatistics::default(); 3],
            interrupt_handler: None,
        }
    }

    /// Number of commands that the host has submitted and not yet reaped.
    pub fn outstanding_count(&self) -> u32 {
        self.outstanding_count
    }

    /// Reaps a completed command, if any.
    pub fn take_completion(&mut self) -> Option<RequestId> {
        let completed = self.completed_commands.pop_front()?;
        self.outstanding_count -= 1;
        Some(completed)
    }

    /// Accepts a command from the driver.
    pub fn accept_command(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        self.outstanding_count += 1;
        self.record_arrival(context.now(), parts, id);
        let start = context.now().max(self.engine_free_at);
        let late = self
            .poll_stream
            .draw_within(self.config.command_poll_interval);
        let decoded = start + late + self.config.command_delay;
        self.engine_free_at = decoded;
        let request = &mut parts.submitted_requests[id];
        request.book_stage(Stage::ControllerQueue, moment(start));
        request.book_stage(Stage::Command, moment(decoded));
        self.id
            .schedule_event(context, decoded, VmeEvent::CommandDecoded(id));
    }

    fn handle_decoded(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        let transfer = &parts.submitted_requests[id];
        let drive_index = self.drives.index_of_drive(transfer.device);
        let command = VmeCommand {
            id,
            next_sector: transfer.sector,
            end_sector: transfer.end(),
            data_ready_at: context.now(),
            start_allowed_at: context.now(),
            is_write: transfer.is_write(),
            cache_policy: self.choose_policy(parts, drive_index, id),
        };
        if command.is_write {
            self.start_write_command(context, parts, drive_index, command);
        } else {
            self.start_read(context, parts, drive_index, command);
        }
    }

    fn choose_policy(
        &mut self,
        parts: &HardwareParts<'_>,
        drive_index: usize,
        id: RequestId,
    ) -> CachePolicy {
        if self.config.caching.is_adaptive() {
            return self.drive_states[drive_index].command_history.policy(id);
        }
        let class = parts.submitted_requests[id].hint;
        self.config.caching.policy(id, class)
    }

    fn record_arrival(&mut self, now: Time, parts: &HardwareParts<'_>, id: RequestId) {
        if !self.config.caching.is_adaptive() {
            return;
        }
        let transfer = &parts.submitted_requests[id];
        let drive_index = self.drives.index_of_drive(transfer.device);
        let rehearsal = Rehearsal {
            config: &self.config,
            drive: &parts.drives[self.drives.mechanism_id_at(drive_index)],
            bus: parts.bus,
            event_count: Cell::new(0),
            measured_times: RefCell::default(),
        };
        let history = &mut self.drive_states[drive_index].command_history;
        history.record_arrival(now, id, transfer, &rehearsal);
    }

    /// Executes a read: cached sectors, then sectors that are passing, then the rest.
    fn start_read(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        mut command: VmeCommand,
    ) {
        let now = context.now();
        self.cache_passed_sectors(drive_index, now);
        let first = command.next_sector;
        let follows = self.drive_states[drive_index].sequence_end == first;
        self.drive_states[drive_index].is_in_sequence = follows;
        self.drive_states[drive_index].sequence_end = command.end_sector;
        let cached = self.serve_cached(context, parts, drive_index, &mut command);
        let class = parts.submitted_requests[command.id].hint;
        let count = &mut self.statistics[class as usize];
        count.read_count += 1;
        count.read_sectors += command.end_sector - first;
        count.read_sectors_cached += cached;
        let passing = self.is_passing(context, drive_index, &command);
        self.statistics[class as usize].hit_count +=
            u64::from(command.next_sector == command.end_sector || passing);
        if command.next_sector == command.end_sector {
            self.schedule_finish(context, &command);
            self.read_ahead(context, parts, drive_index, command);
        } else if passing {
            self.serve_from_stream(
                context,
                parts,
                drive_index,
                command,
                StreamOrigin::OtherRead,
            );
        } else {
            self.drive_states[drive_index]
                .waiting_commands
                .push_back(command);
            self.start_arm(context, parts, drive_index);
        }
    }

    /// Sends the cached sectors at the start of a read to memory. Returns their number.
    fn serve_cached(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        command: &mut VmeCommand,
    ) -> u64 {
        if !command.cache_policy.searches_cache {
            return 0;
        }
        let cached = self
            .cache
            .cached_prefix(drive_index, command.next_sector, command.end_sector);
        if cached == 0 {
            return 0;
        }
        self.cache.mark_recently_used(
            drive_index,
            command.next_sector,
            command.next_sector + cached,
        );
        let start = context
            .now()
            .max(self.engine_free_at)
            .max(command.data_ready_at);
        command.data_ready_at = start + Time(self.config.move_time_per_sector.0 * cached);
        self.engine_free_at = command.data_ready_at;
        command.next_sector += cached;
        let request = &mut parts.submitted_requests[command.id];
        request.book_stage(Stage::ControllerQueue, moment(start));
        request.book_stage(Stage::CacheHit, moment(command.data_ready_at));
        self.schedule_data_transfer(
            context,
            parts,
            command.id,
            cached,
            start,
            command.data_ready_at,
        );
        cached
    }

    /// Executes a write: fetches its data, and queues it for the arm.
    fn start_write_command(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        drive_index: usize,
        mut command: VmeCommand,
    ) {
        self.cache_passed_sectors(drive_index, context.now());
        let class = parts.submitted_requests[command.id].hint;
        self.statistics[class as usize].write_count += 1;
        match &self.config.caching {
            CachingScheme::TrackCache {
                flushed_by_writes: true,
                ..
            } => self.cache.clear(),
            _ => {
                self.cache
                    .remove_extent(drive_index, command.next_sector, command.end_sector);
            }
        }
        if command.cache_policy.caches_writes {
            self.cache
                .insert_extent(drive_index, command.next_sector, command.end_sector);
        }
        let sectors = command.end_sector - command.next_sector;
        let start = context.now().max(self.engine_free_at);
        let sector_bytes = parts.drives[self.drives.mechanism_id_at(drive_index)]
            .geometry()
            .sector_bytes();
        let per_sector = self
            .config
            .move_time_per_sector
            .max(parts.bus.transfer_time(u64::from(sector_bytes)));
        command.data_ready_at = start + Time(per_sector.0 * sectors);
        let lead = sectors.min(u64::from(self.config.write_lead_sectors));
        command.start_allowed_at = start + Time(per_sector.0 * lead);
        self.engine_free_at = command.data_ready_at;
        self.schedule_data_transfer(
            context,
            parts,
            command.id,
            sectors,
            start,
            command.data_ready_at,
        );
        self.drive_states[drive_index]
            .waiting_commands
            .push_back(command);
        self.schedule_read_ahead_end(context, drive_index);
        self.start_arm(context, parts, drive_index);
    }

    fn schedule_data_transfer(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &HardwareParts<'_>,
        id: RequestId,
        sectors: u64,
        from: Time,
        to: Time,
    ) {
        let drive = &parts.drives[self
            .drives
            .mechanism_id_for_request(&parts.submitted_requests[id])];
        let bytes = sectors * u64::from(drive.geometry().sector_bytes());
        let span = (to - from).0.max(1);
        let rate = (u128::from(bytes) * 1_000_000_000 / u128::from(span)) as u32;
        self.id
            .schedule_event(context, from, VmeEvent::BusTransferStart(id, rate));
    }

    fn schedule_finish(&mut self, context: &SimulationContext<'_>, command: &VmeCommand) {
        self.id.schedule_event(
            context,
            command.data_ready_at,
            VmeEvent::CommandFinished(command.id),
        );
    }

    fn handle_finished(
        &mut self,
        context: &SimulationContext<'_>,
        parts: &mut HardwareParts<'_>,
        id: RequestId,
    ) {
        self.bus_transfers.retain(|(of, rate)| {
            if *of == id {
                parts.bus.end_stream(context, *rate);
            }
            *of != id
        });
        if self.config.caching.is_adaptive() {
            let drive_index = self
                .drives
                .index_of_drive(parts.submitted_requests[id].device);
            self.drive_states[drive_index]
                .command_history
                .record_end(context.now(), id);
        }
        self.completed_commands.push_back(id);
        context
            .sim
            .wake_task(self.interrupt_handler.expect("its interrupt is connected"));
    }

    /// Starts a new generation of arm work, so that scheduled events of earlier work are ignored.
    /// Returns the generation's number.
    fn next_generation(&mut self, drive_index: usize) -> u32 {
        let unit = &mut self.drive_states[drive_index];
        unit.arm_generation = unit.arm_generation.wrapping_add(1);
        unit.arm_generation
    }

    fn set_arm_state(
        &mut self,
        context: &SimulationContext<'_>,
        drive_index: usize,
        arm: ArmState,
        until: Time,
    ) {
        let generation = self.next_generation(drive_index);
        self.drive_states[drive_index].arm_state = Some(arm);
        let event = VmeEvent::ArmMoveEnd(drive_index as u8, generation);
        self.id.schedule_event(context, until, event);
    }
}
