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

pub use policy::{AHEAD_SECTORS_MAX, Policy};

use crate::controllers::Controller;
use crate::hardware::cache::{CacheStatistics, SectorCache};
use crate::hardware::drives::Mechanisms;
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use adaptive::Rehearsal;
use arm::{ArmState, VmeDriveState};
use diskperf_device::{AccessHint, RequestId, moment};
use diskperf_sim::{Stream, Streams, TaskId, Time};
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
    pub caching: Caching,
    /// Procedure of the controller for format and verify of a drive. None if it is unknown.
    pub maintenance: Option<Maintenance>,
}

impl VmeConfig {
    /// Returns substitute parameters for a controller that is refused.
    pub(crate) fn with_unpublished_costs() -> Self {
        Self {
            command_delay: Time::ZERO,
            command_poll_interval: Time::ZERO,
            move_time_per_sector: Time::ZERO,
            write_lead_sectors: 1,
            caching: Caching::None,
            maintenance: None,
        }
    }
}

/// Procedure of a controller and its maintenance program to format and verify a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// Time between two track operations of a format or verify.
    pub track_command: Time,
    /// Whether each track is read after it has been formatted.
    pub format_check: bool,
    /// Kind of verify pass after a format.
    pub verify: VerifyPass,
}

/// Kind of verify pass over a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyPass {
    /// Verify by reading: the board reads the track.
    Read,
    /// Pattern test: the host generates a pattern, which is written, read back and compared.
    Pattern,
}

/// Caching scheme of a controller for read and written sectors.
#[derive(Clone, Debug)]
pub enum Caching {
    /// Controller without a sector cache.
    None,
    /// Track cache. A read miss reads the whole track, starting at any sector, and sequential reads
    /// prefetch the next track.
    Tracks {
        /// Capacity of the cache, in sectors.
        capacity_sectors: u32,
        /// Whether every write clears the cache.
        flushed_by_writes: bool,
    },
    /// Sector cache with a policy that the driver gives with each command.
    Sectors {
        /// Capacity of the cache, in sectors.
        capacity_sectors: u32,
        /// Cache policy of each class of requests, by [`AccessHint`].
        policies: [Policy; 3],
        /// Whether the controller adapts the policies itself and ignores the given ones.
        adaptive: bool,
    },
    /// Sector cache of a rehearsal, in which past commands are executed again to evaluate policies.
    Rehearsed {
        /// Capacity of the cache, in sectors.
        capacity_sectors: u32,
        /// Cache policy of each request of the rehearsal, by the index of the request.
        policies: Vec<Policy>,
    },
}

impl Caching {
    fn capacity_sectors(&self) -> u32 {
        match self {
            Self::None => 0,
            Self::Tracks {
                capacity_sectors, ..
            }
            | Self::Sectors {
                capacity_sectors, ..
            }
            | Self::Rehearsed {
                capacity_sectors, ..
            } => *capacity_sectors,
        }
    }

    fn policy(&self, id: RequestId, hint: AccessHint) -> Policy {
        match self {
            Self::None => Policy::default(),
            Self::Tracks { .. } => Policy {
                search: true,
                save_reads: true,
                ..Policy::default()
            },
            Self::Sectors { policies, .. } => policies[hint as usize],
            Self::Rehearsed { policies, .. } => policies[id.slot()],
        }
    }

    fn is_adaptive(&self) -> bool {
        matches!(self, Self::Sectors { adaptive: true, .. })
    }

    fn is_track_cache(&self) -> bool {
        matches!(self, Self::Tracks { .. })
    }
}

/// State of a VMEbus controller.
pub struct Vme {
    id: Id<Vme>,
    config: VmeConfig,
    cache: SectorCache,
    drives: Mechanisms,
    units: Vec<VmeDriveState>,
    engine_free_at: Time,
    /// Transfers in progress over the bus, with their rates in bytes per second.
    bus_transfers: Vec<(RequestId, u64)>,
    completed: VecDeque<RequestId>,
    outstanding: u32,
    statistics: [CacheStatistics; 3],
    poll_stream: Stream,
    interrupt: Option<TaskId>,
}

/// Event that a VMEbus controller schedules.
#[derive(Clone, Copy, Debug)]
pub enum VmeEvent {
    /// End of the decoding of a command.
    Decoded(RequestId),
    /// Start of a command's data transfer over the bus, with its rate in bytes per second.
    BusTransferStart(RequestId, u32),
    /// End of a command: all of its data are in memory or on the drive.
    Finished(RequestId),
    /// End of the arm's current work, given by the place of the drive and the generation of that
    /// work.
    ArmDone(u8, u32),
    /// Request to end the arm's read-ahead as soon as no command needs it, given by the place of
    /// the drive and the generation of that work.
    EndReadAhead(u8, u32),
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
    write: bool,
    policy: Policy,
}

impl Controller for Vme {
    type Event = VmeEvent;

    fn handle(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event) {
        match event {
            VmeEvent::Decoded(id) => self.handle_decoded(context, parts, id),
            VmeEvent::BusTransferStart(id, rate) => {
                parts.bus.start_stream(context, u64::from(rate));
                self.bus_transfers.push((id, u64::from(rate)));
            }
            VmeEvent::Finished(id) => self.handle_finished(context, parts, id),
            VmeEvent::ArmDone(drive_index, generation) => {
                self.handle_arm_done(context, parts, usize::from(drive_index), generation);
            }
            VmeEvent::EndReadAhead(drive_index, generation) => {
                self.handle_end_read_ahead(context, parts, usize::from(drive_index), generation);
            }
        }
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        !self.completed.is_empty()
    }

    fn cache_statistics(&self) -> Option<[CacheStatistics; 3]> {
        let keeps = !matches!(self.config.caching, Caching::None);
        keeps.then_some(self.statistics)
    }

    fn rehearsed_events(&self) -> u64 {
        let of_units = self.units.iter().map(|unit| unit.history.rehearsed_events);
        of_units.sum()
    }
}

impl Vme {
    /// Returns an idle VMEbus controller with its drives. `number` is its number among all
    /// controllers.
    pub fn new(
        (id, number): (Id<Self>, usize),
        config: VmeConfig,
        drives: Mechanisms,
        streams: Streams,
    ) -> Self {
        Self {
            id,
            poll_stream: streams.stream(&format!("controller.{number}.poll")),
            cache: SectorCache::new(config.caching.capacity_sectors()),
            config,
            units: (0..drives.count())
                .map(|_| VmeDriveState::default())
                .collect(),
            drives,
            engine_free_at: Time::ZERO,
            bus_transfers: Vec::new(),
            completed: VecDeque::new(),
            outstanding: 0,
            statistics: [CacheStatistics::default(); 3],
            interrupt: None,
        }
    }

    /// Number of commands that the host has submitted and not yet reaped.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// Reaps a completed command, if any.
    pub fn take_done(&mut self) -> Option<RequestId> {
        let completed = self.completed.pop_front()?;
        self.outstanding -= 1;
        Some(completed)
    }

    /// Accepts a command from the driver.
    pub fn command(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        self.outstanding += 1;
        self.record_arrival(context.now(), parts, id);
        let start = context.now().max(self.engine_free_at);
        let late = self.poll_stream.within(self.config.command_poll_interval);
        let decoded = start + late + self.config.command_delay;
        self.engine_free_at = decoded;
        let request = &mut parts.requests[id];
        request.book_stage(Stage::ControllerQueue, moment(start));
        request.book_stage(Stage::Command, moment(decoded));
        self.id.schedule(context, decoded, VmeEvent::Decoded(id));
    }

    fn handle_decoded(&mut self, context: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        let transfer = &parts.requests[id];
        let drive_index = self.drives.index_of(transfer.device);
        let command = VmeCommand {
            id,
            next_sector: transfer.sector,
            end_sector: transfer.end(),
            data_ready_at: context.now(),
            start_allowed_at: context.now(),
            write: transfer.is_write(),
            policy: self.policy(parts, drive_index, id),
        };
        if command.write {
            self.write(context, parts, drive_index, command);
        } else {
            self.read(context, parts, drive_index, command);
        }
    }

    fn policy(&mut self, parts: &Parts<'_>, drive_index: usize, id: RequestId) -> Policy {
        if self.config.caching.is_adaptive() {
            return self.units[drive_index].history.policy(id);
        }
        let class = parts.requests[id].hint;
        self.config.caching.policy(id, class)
    }

    fn record_arrival(&mut self, now: Time, parts: &Parts<'_>, id: RequestId) {
        if !self.config.caching.is_adaptive() {
            return;
        }
        let transfer = &parts.requests[id];
        let drive_index = self.drives.index_of(transfer.device);
        let rehearsal = Rehearsal {
            config: &self.config,
            drive: &parts.drives[self.drives.mechanism_at(drive_index)],
            bus: parts.bus,
            events: Cell::new(0),
            measured: RefCell::default(),
        };
        let history = &mut self.units[drive_index].history;
        history.record_arrival(now, id, transfer, &rehearsal);
    }

    /// Executes a read: cached sectors, then sectors that are passing, then the rest.
    fn read(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        drive_index: usize,
        mut command: VmeCommand,
    ) {
        let now = context.now();
        self.cache_passed_sectors(drive_index, now);
        let first = command.next_sector;
        let follows = self.units[drive_index].sequence_end == first;
        self.units[drive_index].in_sequence = follows;
        self.units[drive_index].sequence_end = command.end_sector;
        let cached = self.serve_cached(context, parts, drive_index, &mut command);
        let class = parts.requests[command.id].hint;
        let count = &mut self.statistics[class as usize];
        count.reads += 1;
        count.sectors += command.end_sector - first;
        count.sectors_held += cached;
        let passing = self.is_passing(context, drive_index, &command);
        self.statistics[class as usize].hits +=
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
            self.units[drive_index].waiting.push_back(command);
            self.start_arm(context, parts, drive_index);
        }
    }

    /// Sends the cached sectors at the start of a read to memory. Returns their number.
    fn serve_cached(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        drive_index: usize,
        command: &mut VmeCommand,
    ) -> u64 {
        if !command.policy.search {
            return 0;
        }
        let cached = self
            .cache
            .cached_prefix(drive_index, command.next_sector, command.end_sector);
        if cached == 0 {
            return 0;
        }
        self.cache.touch(
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
        let request = &mut parts.requests[command.id];
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
    fn write(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        drive_index: usize,
        mut command: VmeCommand,
    ) {
        self.cache_passed_sectors(drive_index, context.now());
        let class = parts.requests[command.id].hint;
        self.statistics[class as usize].writes += 1;
        match &self.config.caching {
            Caching::Tracks {
                flushed_by_writes: true,
                ..
            } => self.cache.clear(),
            _ => {
                self.cache
                    .remove(drive_index, command.next_sector, command.end_sector);
            }
        }
        if command.policy.save_writes {
            self.cache
                .insert(drive_index, command.next_sector, command.end_sector);
        }
        let sectors = command.end_sector - command.next_sector;
        let start = context.now().max(self.engine_free_at);
        let sector_bytes = parts.drives[self.drives.mechanism_at(drive_index)]
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
        self.units[drive_index].waiting.push_back(command);
        self.schedule_read_ahead_end(context, drive_index);
        self.start_arm(context, parts, drive_index);
    }

    fn schedule_data_transfer(
        &mut self,
        context: &Surroundings<'_>,
        parts: &Parts<'_>,
        id: RequestId,
        sectors: u64,
        from: Time,
        to: Time,
    ) {
        let drive = &parts.drives[self.drives.mechanism_for(&parts.requests[id])];
        let bytes = sectors * u64::from(drive.geometry().sector_bytes());
        let span = (to - from).0.max(1);
        let rate = (u128::from(bytes) * 1_000_000_000 / u128::from(span)) as u32;
        self.id
            .schedule(context, from, VmeEvent::BusTransferStart(id, rate));
    }

    fn schedule_finish(&mut self, context: &Surroundings<'_>, command: &VmeCommand) {
        self.id.schedule(
            context,
            command.data_ready_at,
            VmeEvent::Finished(command.id),
        );
    }

    fn handle_finished(
        &mut self,
        context: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        id: RequestId,
    ) {
        self.bus_transfers.retain(|(of, rate)| {
            if *of == id {
                parts.bus.end_stream(context, *rate);
            }
            *of != id
        });
        if self.config.caching.is_adaptive() {
            let drive_index = self.drives.index_of(parts.requests[id].device);
            self.units[drive_index]
                .history
                .record_end(context.now(), id);
        }
        self.completed.push_back(id);
        context
            .sim
            .wake(self.interrupt.expect("its interrupt is connected"));
    }

    /// Starts a new generation of arm work, so that scheduled events of earlier work are ignored.
    /// Returns the generation's number.
    fn next_generation(&mut self, drive_index: usize) -> u32 {
        let unit = &mut self.units[drive_index];
        unit.generation = unit.generation.wrapping_add(1);
        unit.generation
    }

    fn set_arm(
        &mut self,
        context: &Surroundings<'_>,
        drive_index: usize,
        arm: ArmState,
        until: Time,
    ) {
        let generation = self.next_generation(drive_index);
        self.units[drive_index].arm = Some(arm);
        let event = VmeEvent::ArmDone(drive_index as u8, generation);
        self.id.schedule(context, until, event);
    }
}
