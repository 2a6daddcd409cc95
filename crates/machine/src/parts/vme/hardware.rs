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

pub use policy::{MOST_AHEAD_SECTORS, Policy};

use crate::controllers::Controller;
use crate::hardware::cache::{Cache, CacheStatistics};
use crate::hardware::drives::Mechanisms;
use crate::hardware::{Parts, Surroundings};
use crate::id::Id;
use adaptive::Rehearsal;
use arm::{Arm, Unit};
use diskperf_device::{Hint, RequestId, moment};
use diskperf_sim::{Stream, Streams, TaskId, Time};
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Parameters of a VMEbus controller: processing times, write lead, cache and maintenance.
#[derive(Clone, Debug)]
pub struct VmeConfig {
    /// Processor time of the controller per command.
    pub command: Time,
    /// Poll interval of the controller's processor for commands. A command starts up to one
    /// interval later.
    pub command_poll: Time,
    /// Processor time of the controller per sector transferred between cache and memory.
    pub move_per_sector: Time,
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
    pub(crate) fn unknown() -> Self {
        Self {
            command: Time::ZERO,
            command_poll: Time::ZERO,
            move_per_sector: Time::ZERO,
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
        /// Cache policy of each class of requests, by [`Hint`].
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

    fn policy(&self, id: RequestId, hint: Hint) -> Policy {
        match self {
            Self::None => Policy::default(),
            Self::Tracks { .. } => Policy {
                search: true,
                save_reads: true,
                ..Policy::default()
            },
            Self::Sectors { policies, .. } => policies[hint as usize],
            Self::Rehearsed { policies, .. } => policies[id.place()],
        }
    }

    fn adapts(&self) -> bool {
        matches!(self, Self::Sectors { adaptive: true, .. })
    }

    fn by_tracks(&self) -> bool {
        matches!(self, Self::Tracks { .. })
    }
}

/// State of a VMEbus controller.
pub struct Vme {
    id: Id<Vme>,
    config: VmeConfig,
    cache: Cache,
    drives: Mechanisms,
    units: Vec<Unit>,
    engine_free: Time,
    /// Transfers in progress over the bus, with their rates in bytes per second.
    moving: Vec<(RequestId, u64)>,
    done: VecDeque<RequestId>,
    outstanding: u32,
    statistics: [CacheStatistics; 3],
    poll: Stream,
    interrupt: Option<TaskId>,
}

/// Event that a VMEbus controller schedules.
#[derive(Clone, Copy, Debug)]
pub enum VmeEvent {
    /// End of the decoding of a command.
    Decoded(RequestId),
    /// Start of a command's data transfer over the bus, with its rate in bytes per second.
    Moves(RequestId, u32),
    /// End of a command: all of its data are in memory or on the drive.
    Finished(RequestId),
    /// End of the arm's current work, given by the place of the drive and the generation of that
    /// work.
    ArmDone(u8, u32),
    /// Request to end the arm's read-ahead as soon as no command needs it, given by the place of
    /// the drive and the generation of that work.
    LeaveOff(u8, u32),
}

/// Origin of the read stream that serves a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// Read stream that was started for the command itself. Its sectors go from the drive directly
    /// over the bus.
    ForIt,
    /// Read stream that was started for another command or as read-ahead. Its sectors go through
    /// the cache.
    FromOthers,
}

#[derive(Clone, Copy, Debug)]
struct Command {
    id: RequestId,
    /// First sector of the command that is not yet served.
    next: u64,
    end: u64,
    /// Time at which the sectors served so far are in memory (read) or fetched from memory (write).
    ready: Time,
    /// Time at which enough data of a write has been fetched to start the drive.
    enough: Time,
    write: bool,
    policy: Policy,
}

impl Controller for Vme {
    type Event = VmeEvent;

    fn handle(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, event: Self::Event) {
        match event {
            VmeEvent::Decoded(id) => self.decoded(around, parts, id),
            VmeEvent::Moves(id, rate) => {
                parts.bus.start(around, u64::from(rate));
                self.moving.push((id, u64::from(rate)));
            }
            VmeEvent::Finished(id) => self.finished(around, parts, id),
            VmeEvent::ArmDone(place, generation) => {
                self.arm_done(around, parts, (usize::from(place), generation));
            }
            VmeEvent::LeaveOff(place, generation) => {
                self.leave_off(around, parts, (usize::from(place), generation));
            }
        }
    }

    fn connect(&mut self, interrupt: TaskId) {
        self.interrupt = Some(interrupt);
    }

    fn interrupts(&self, _: &Parts<'_>) -> bool {
        !self.done.is_empty()
    }

    fn cache_statistics(&self) -> Option<[CacheStatistics; 3]> {
        let keeps = !matches!(self.config.caching, Caching::None);
        keeps.then_some(self.statistics)
    }

    fn rehearsed_events(&self) -> u64 {
        let of_units = self.units.iter().map(|unit| unit.watch.rehearsed_events);
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
            poll: streams.stream(&format!("controller.{number}.poll")),
            cache: Cache::new(config.caching.capacity_sectors()),
            config,
            units: (0..drives.count()).map(|_| Unit::default()).collect(),
            drives,
            engine_free: Time::ZERO,
            moving: Vec::new(),
            done: VecDeque::new(),
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
        let done = self.done.pop_front()?;
        self.outstanding -= 1;
        Some(done)
    }

    /// Accepts a command from the driver.
    pub fn command(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        self.outstanding += 1;
        self.watch(around.now(), parts, id);
        let start = around.now().max(self.engine_free);
        let late = self.poll.within(self.config.command_poll);
        let decoded = start + late + self.config.command;
        self.engine_free = decoded;
        let request = &mut parts.requests[id];
        request.mark(Stage::ControllerQueue, moment(start));
        request.mark(Stage::Command, moment(decoded));
        self.id.schedule(around, decoded, VmeEvent::Decoded(id));
    }

    fn decoded(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        let transfer = &parts.requests[id];
        let place = self.drives.place(transfer.device);
        let command = Command {
            id,
            next: transfer.sector,
            end: transfer.end(),
            ready: around.now(),
            enough: around.now(),
            write: transfer.is_write(),
            policy: self.policy(parts, (place, id)),
        };
        if command.write {
            self.write(around, parts, (place, command));
        } else {
            self.read(around, parts, (place, command));
        }
    }

    fn policy(&mut self, parts: &Parts<'_>, (place, id): (usize, RequestId)) -> Policy {
        if self.config.caching.adapts() {
            return self.units[place].watch.policy(id);
        }
        let class = parts.requests[id].hint;
        self.config.caching.policy(id, class)
    }

    fn watch(&mut self, now: Time, parts: &Parts<'_>, id: RequestId) {
        if !self.config.caching.adapts() {
            return;
        }
        let transfer = &parts.requests[id];
        let place = self.drives.place(transfer.device);
        let rehearsal = Rehearsal {
            config: &self.config,
            drive: &parts.drives[self.drives.at(place)],
            bus: parts.bus,
            events: Cell::new(0),
            known: RefCell::default(),
        };
        let watch = &mut self.units[place].watch;
        watch.come(now, (id, transfer), &rehearsal);
    }

    /// Executes a read: cached sectors, then sectors that are passing, then the rest.
    fn read(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, mut command): (usize, Command),
    ) {
        let now = around.now();
        self.absorb(place, now);
        let first = command.next;
        let follows = self.units[place].sequence_end == first;
        self.units[place].in_sequence = follows;
        self.units[place].sequence_end = command.end;
        let held = self.serve_held(around, parts, (place, &mut command));
        let class = parts.requests[command.id].hint;
        let count = &mut self.statistics[class as usize];
        count.reads += 1;
        count.sectors += command.end - first;
        count.sectors_held += held;
        let passing = self.is_passing(around, place, &command);
        self.statistics[class as usize].hits += u64::from(command.next == command.end || passing);
        if command.next == command.end {
            self.finish(around, &command);
            self.read_ahead(around, parts, (place, command));
        } else if passing {
            self.follow(around, parts, (place, command), Served::FromOthers);
        } else {
            self.units[place].waiting.push_back(command);
            self.start_arm(around, parts, place);
        }
    }

    /// Sends the cached sectors at the start of a read to memory. Returns their number.
    fn serve_held(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, command): (usize, &mut Command),
    ) -> u64 {
        if !command.policy.search {
            return 0;
        }
        let held = self.cache.prefix(place, command.next, command.end);
        if held == 0 {
            return 0;
        }
        self.cache.touch(place, command.next, command.next + held);
        let start = around.now().max(self.engine_free).max(command.ready);
        command.ready = start + Time(self.config.move_per_sector.0 * held);
        self.engine_free = command.ready;
        command.next += held;
        let request = &mut parts.requests[command.id];
        request.mark(Stage::ControllerQueue, moment(start));
        request.mark(Stage::CacheHit, moment(command.ready));
        self.move_data(around, parts, (command.id, held), (start, command.ready));
        held
    }

    /// Executes a write: fetches its data, and queues it for the arm.
    fn write(
        &mut self,
        around: &Surroundings<'_>,
        parts: &mut Parts<'_>,
        (place, mut command): (usize, Command),
    ) {
        self.absorb(place, around.now());
        let class = parts.requests[command.id].hint;
        self.statistics[class as usize].writes += 1;
        match &self.config.caching {
            Caching::Tracks {
                flushed_by_writes: true,
                ..
            } => self.cache.clear(),
            _ => {
                self.cache.remove(place, command.next, command.end);
            }
        }
        if command.policy.save_writes {
            self.cache.insert(place, command.next, command.end);
        }
        let sectors = command.end - command.next;
        let start = around.now().max(self.engine_free);
        let sector_bytes = parts.drives[self.drives.at(place)]
            .geometry()
            .sector_bytes();
        let per_sector = self
            .config
            .move_per_sector
            .max(parts.bus.time(u64::from(sector_bytes)));
        command.ready = start + Time(per_sector.0 * sectors);
        let lead = sectors.min(u64::from(self.config.write_lead_sectors));
        command.enough = start + Time(per_sector.0 * lead);
        self.engine_free = command.ready;
        self.move_data(around, parts, (command.id, sectors), (start, command.ready));
        self.units[place].waiting.push_back(command);
        self.make_way(around, place);
        self.start_arm(around, parts, place);
    }

    fn move_data(
        &mut self,
        around: &Surroundings<'_>,
        parts: &Parts<'_>,
        (id, sectors): (RequestId, u64),
        (from, to): (Time, Time),
    ) {
        let drive = &parts.drives[self.drives.of(&parts.requests[id])];
        let bytes = sectors * u64::from(drive.geometry().sector_bytes());
        let span = (to - from).0.max(1);
        let rate = (u128::from(bytes) * 1_000_000_000 / u128::from(span)) as u32;
        self.id.schedule(around, from, VmeEvent::Moves(id, rate));
    }

    fn finish(&mut self, around: &Surroundings<'_>, command: &Command) {
        self.id
            .schedule(around, command.ready, VmeEvent::Finished(command.id));
    }

    fn finished(&mut self, around: &Surroundings<'_>, parts: &mut Parts<'_>, id: RequestId) {
        self.moving.retain(|(of, rate)| {
            if *of == id {
                parts.bus.stop(around, *rate);
            }
            *of != id
        });
        if self.config.caching.adapts() {
            let place = self.drives.place(parts.requests[id].device);
            self.units[place].watch.ended(around.now(), id);
        }
        self.done.push_back(id);
        around
            .sim
            .wake(self.interrupt.expect("its interrupt is connected"));
    }

    /// Starts a new generation of arm work, so that scheduled events of earlier work are ignored.
    /// Returns the generation's number.
    fn next_generation(&mut self, place: usize) -> u32 {
        let unit = &mut self.units[place];
        unit.generation = unit.generation.wrapping_add(1);
        unit.generation
    }

    fn set_arm(&mut self, around: &Surroundings<'_>, place: usize, arm: Arm, until: Time) {
        let generation = self.next_generation(place);
        self.units[place].arm = Some(arm);
        let event = VmeEvent::ArmDone(place as u8, generation);
        self.id.schedule(around, until, event);
    }
}
