//! Disk controllers for the VMEbus of the middle eighties: a processor of their
//! own that decodes commands, memory that keeps sectors, and data that goes
//! over the bus while the next sectors pass.
//!
//! A command is decoded; what the cache holds of a read goes over the bus at
//! once, sector by sector, through the controller's processor; what is passing
//! under the heads follows as it passes; for the rest the read waits for the
//! arm. What the arm reads goes on past the command as far as the policy says,
//! and a read that follows is served from it. A write's data is fetched before
//! its sectors come by; it ends reading ahead, which a read does not.

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

/// How such a controller is built.
#[derive(Clone, Debug)]
pub struct VmeConfig {
    /// Its processor, for each command.
    pub command: Time,
    /// How often its processor looks for commands: it begins up to this much
    /// later.
    pub command_poll: Time,
    /// Its processor, for each sector that goes between the cache and memory.
    pub move_per_sector: Time,
    /// Sectors of a write that it fetches before it starts the drive; all, of a
    /// shorter one.
    pub write_lead_sectors: u32,
    /// What it keeps.
    pub caching: Caching,
    /// How it formats and verifies; none where nothing is known of it.
    pub maintenance: Option<Maintenance>,
}

impl VmeConfig {
    /// What stands for a controller that is refused.
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

/// How a controller and its maintenance program format and verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// Between two operations on tracks.
    pub track_command: Time,
    /// Whether each track is read after it has been formatted.
    pub format_check: bool,
    /// What a verify pass does.
    pub verify: VerifyPass,
}

/// What a verify pass does to each track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerifyPass {
    /// The board reads it.
    Read,
    /// The host makes a pattern, which is written, read back and compared.
    Pattern,
}

/// What a controller keeps of what it reads and writes.
#[derive(Clone, Debug)]
pub enum Caching {
    /// Nothing.
    None,
    /// Tracks: a read that misses reads the whole track, from whatever sector
    /// comes first, and reads in sequence have the next track read ahead.
    Tracks {
        /// Sectors that it has room for.
        capacity_sectors: u32,
        /// Whether any write empties it.
        flushed_by_writes: bool,
    },
    /// Sectors, as the driver says with each command.
    Sectors {
        /// Sectors that it has room for.
        capacity_sectors: u32,
        /// By [`Hint`].
        policies: [Policy; 3],
        /// Whether the controller chooses by itself, whatever these say.
        adaptive: bool,
    },
    /// The same, when commands are carried out again to see what a choice is worth.
    Rehearsed {
        /// Sectors that it has room for.
        capacity_sectors: u32,
        /// By the place of the request.
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

    /// What is done for a request of this kind.
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

/// The controller's state.
pub struct Vme {
    id: Id<Vme>,
    config: VmeConfig,
    cache: Cache,
    drives: Mechanisms,
    /// By the places of the drives.
    units: Vec<Unit>,
    /// Until when its processor has something to do.
    engine_free: Time,
    /// Transfers whose data moves over the bus, and how fast, in bytes per
    /// second.
    moving: Vec<(RequestId, u64)>,
    /// What the host has not been told of.
    done: VecDeque<RequestId>,
    outstanding: u32,
    statistics: [CacheStatistics; 3],
    poll: Stream,
    interrupt: Option<TaskId>,
}

/// What such a controller schedules for itself.
#[derive(Clone, Copy, Debug)]
pub enum VmeEvent {
    /// A command has been decoded.
    Decoded(RequestId),
    /// A command's data begins to move over the bus, at this rate in bytes per
    /// second.
    Moves(RequestId, u32),
    /// A command is finished.
    Finished(RequestId),
    /// The arm of a drive, by its place, has done what it was doing when this
    /// was scheduled.
    ArmDone(u8, u32),
    /// The same is to leave off as soon as no command needs it.
    LeaveOff(u8, u32),
}

/// Whom a stream was begun for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// For the command: its sectors go from the drive over the bus.
    ForIt,
    /// For another, or ahead of one: its sectors go through the cache.
    FromOthers,
}

/// A command that has been decoded and is not finished.
#[derive(Clone, Copy, Debug)]
struct Command {
    id: RequestId,
    /// The first sector that has not been seen to, and the end.
    next: u64,
    end: u64,
    /// When what has been seen to is in memory, or fetched from it.
    ready: Time,
    /// Of a write, when enough has been fetched to start the drive.
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
    /// An idle controller with these drives, of this number among all.
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

    /// Commands that it has been given and that the host has not been told the
    /// end of.
    pub fn outstanding(&self) -> u32 {
        self.outstanding
    }

    /// A command that has ended, once.
    pub fn take_done(&mut self) -> Option<RequestId> {
        let done = self.done.pop_front()?;
        self.outstanding -= 1;
        Some(done)
    }

    /// Takes a command.
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

    /// What is done for a transfer: what its class has, or what the controller
    /// chooses.
    fn policy(&mut self, parts: &Parts<'_>, (place, id): (usize, RequestId)) -> Policy {
        if self.config.caching.adapts() {
            return self.units[place].watch.policy(id);
        }
        let class = parts.requests[id].hint;
        self.config.caching.policy(id, class)
    }

    /// A controller that chooses takes note of a command.
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

    /// A read: what is in the cache, what is passing, and the rest.
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

    /// Sends what the cache holds of a read; how many sectors that is.
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

    /// A write: its data is fetched, and waits for the arm.
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

    /// Data of so many sectors moves over the bus from one moment to another.
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

    /// A command is finished when all of it is in memory.
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

    /// What the arm does now came to nothing more: the number of the next thing
    /// that it does.
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
