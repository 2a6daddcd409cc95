//! A job: every option that says what is done, with fio's defaults, as fio resolves it.

mod access;
mod course;
mod iolog;
mod storage;

pub use access::{
    Access, Blocks, Distribution, FileService, FileServiceOrder, Generator, Pattern, Random,
    Sequencer, Sizes, Weighted, WritePointers, Zone, ZoneMode, Zones,
};
pub use course::{
    Criterion, ErrorKind, ErrorNumbers, ErrorPolicy, ExitScope, Latency, Order, Rate, RateProcess,
    Report, Steady, SteadyLimit, Think, ThinkOn, Times, Unified, Verification, VerifiedTrims,
    Verify,
};
pub use iolog::{Iolog, Skips};
pub use storage::{
    Allocation, Amount, Cpu, CpuMode, Data, DedupeMode, Engine, EngineKind, EngineOptions,
    FileLock, Files, InZones, RangeSync, SubmitMode, Sync, SyncFlag, Target,
};

use std::collections::{BTreeMap, BTreeSet};

use crate::number::Base;
use diskperf_diagnostics::{Place, Problem};

/// What is asked for by direction: reads, writes, trims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
    /// Of trims.
    pub trim: T,
}

/// What an I/O does with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// From the target.
    Read,
    /// To the target.
    Write,
    /// Discards.
    Trim,
}

impl Direction {
    /// All of them, in fio's order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];
}

impl<T> PerDirection<T> {
    /// That of one direction.
    pub fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// That of one direction, to change it.
    pub fn get_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }

    /// The same for all.
    pub fn all(value: T) -> PerDirection<T>
    where
        T: Clone,
    {
        PerDirection {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}

/// An option that changes nothing of what is measured here, and so is not obeyed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// fio's name of the option.
    pub key: String,
    /// Where it stands.
    pub place: Place,
    /// Why it does nothing here.
    pub why: &'static str,
}

/// One section of a job file with all that the globals above it say. `order.clones` of it
/// run at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// `name=`, or the section's.
    pub name: String,
    /// The section's: fio names files after it, whatever `name=` says.
    pub section: String,
    /// Where the section begins.
    pub place: Place,
    /// `description`.
    pub description: Option<String>,
    /// The reporting group, from 0: one more at each `stonewall` or `new_group`.
    pub group: u32,
    /// The job of this file, by its index, that `wait_for` names: it ends before this one
    /// starts.
    pub waits_for: Option<usize>,
    /// What the section itself says, globals left out: fio's name of each option, and the
    /// value after substitution; "" for a bare one.
    pub options_as_written: Vec<(String, String)>,
    /// What is not obeyed because it does not matter.
    pub ignored: Vec<Ignored>,
    /// `kb_base`.
    pub base: Base,
    /// Which files.
    pub files: Files,
    /// How much of them.
    pub target: Target,
    /// Reads or writes, and where the next one is.
    pub pattern: Pattern,
    /// How large they are.
    pub blocks: Blocks,
    /// What is random.
    pub random: Random,
    /// `zonemode` and its sizes.
    pub zones: Zones,
    /// Options of `zonemode=zbd`.
    pub write_pointers: WritePointers,
    /// How they are submitted.
    pub engine: EngineOptions,
    /// When data must be durable.
    pub sync: Sync,
    /// What the written data is.
    pub data: Data,
    /// How long.
    pub times: Times,
    /// Which jobs before, beside, and after.
    pub order: Order,
    /// How fast at most.
    pub rate: Rate,
    /// Pauses.
    pub think: Think,
    /// The search for the depth that a latency allows.
    pub latency: Latency,
    /// When the job is steady, and so ends.
    pub steady: Steady,
    /// Whether data are read back and compared.
    pub verify: Verify,
    /// What happens on an error.
    pub errors: ErrorPolicy,
    /// Which logs of I/O it writes and repeats.
    pub iolog: Iolog,
    /// What is reported.
    pub report: Report,
    /// Where the options stand that made it so, globals included.
    pub(crate) places: BTreeMap<&'static str, Place>,
}

impl Job {
    /// A job with fio's defaults.
    pub(crate) fn new(section: &str, place: &Place) -> Job {
        Job {
            name: section.to_owned(),
            section: section.to_owned(),
            place: place.clone(),
            description: None,
            group: 0,
            waits_for: None,
            options_as_written: Vec::new(),
            ignored: Vec::new(),
            base: Base::default(),
            files: Files::default(),
            target: Target::default(),
            pattern: Pattern::default(),
            blocks: Blocks::default(),
            random: Random::default(),
            zones: Zones::default(),
            write_pointers: WritePointers::default(),
            engine: EngineOptions::default(),
            sync: Sync::default(),
            data: Data::default(),
            times: Times::default(),
            order: Order::default(),
            rate: Rate::default(),
            think: Think::default(),
            latency: Latency::default(),
            steady: Steady::default(),
            verify: Verify::default(),
            errors: ErrorPolicy::default(),
            iolog: Iolog::default(),
            report: Report::default(),
            places: BTreeMap::new(),
        }
    }

    /// Where an option stands, by fio's name of it; where the section begins if it stands
    /// nowhere.
    pub fn place_of(&self, key: &str) -> &Place {
        self.places.get(key).unwrap_or(&self.place)
    }

    /// Whether an option is given, by fio's name of it.
    pub fn says(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// Whether it does the same as another job: wherever and however its options are written,
    /// and whatever it says that does not matter.
    pub fn does_the_same_as(&self, other: &Job) -> bool {
        let as_written_in_other = Job {
            place: other.place.clone(),
            places: other.places.clone(),
            description: other.description.clone(),
            options_as_written: other.options_as_written.clone(),
            ignored: other.ignored.clone(),
            ..self.clone()
        };
        as_written_in_other == *other
    }

    /// The options that two jobs do not write alike, globals included, but for what does not
    /// matter: fio's name of each, and what either has; nothing where it has none.
    pub fn options_apart<'j>(
        &'j self,
        other: &'j Job,
    ) -> Vec<(&'static str, [Option<&'j str>; 2])> {
        let keys: BTreeSet<&'static str> = self
            .places
            .keys()
            .chain(other.places.keys())
            .copied()
            .collect();
        let value = |of: &'j Job, key| of.places.get(key).map(|place| place.written().trim());
        keys.into_iter()
            .filter(|key| *key != "description")
            .map(|key| (key, [value(self, key), value(other, key)]))
            .filter(|(_, [one, other])| one != other)
            .collect()
    }

    /// That an option of this job, by fio's name of it, cannot be obeyed: what cannot be,
    /// what the caret says at the option, and what to write instead.
    pub fn refuse(&self, key: &str, title: &str, label: &str, help: &str) -> Problem {
        let problem = Problem::error(title).at(self.place_of(key), label);
        problem.help(help)
    }

    /// The least bytes of an I/O of any of its directions.
    pub fn smallest_block_bytes(&self) -> u64 {
        let directions = self.pattern.access.directions().iter();
        let smallest = directions.map(|&direction| self.blocks.sizes(direction).bounds().0);
        smallest.min().unwrap_or(4096).max(1)
    }

    /// The most bytes of an I/O of any of its directions.
    pub fn largest_block_bytes(&self) -> u64 {
        let directions = self.pattern.access.directions().iter();
        let largest = directions.map(|&direction| self.blocks.sizes(direction).bounds().1);
        largest.max().unwrap_or(4096).max(1)
    }

    /// Largest block that is read or written, in bytes; 0 where data are only discarded.
    pub fn largest_transfer_bytes(&self) -> u64 {
        let directions = self.pattern.access.directions().iter();
        let moving = directions.filter(|direction| **direction != Direction::Trim);
        let largest = moving.map(|&direction| self.blocks.sizes(direction).bounds().1);
        largest.max().unwrap_or(0)
    }

    /// Bytes of a unit of the random map: the least of any direction, as in fio, also of
    /// those that the job does not do.
    pub fn map_unit_bytes(&self) -> u64 {
        let smallest = Direction::ALL.map(|direction| self.blocks.sizes(direction).bounds().0);
        smallest.into_iter().min().unwrap_or(4096).max(1)
    }

    /// Bytes that are left at least when another pass follows: the most of any direction, as
    /// in fio, also of those that the job does not do.
    pub fn pass_bytes_min(&self) -> u64 {
        let largest = Direction::ALL.map(|direction| self.blocks.sizes(direction).bounds().1);
        largest.into_iter().max().unwrap_or(4096).max(1)
    }

    /// Whether `blockalign` is another step than the smallest block of a direction: fio keeps
    /// no random map then.
    fn is_aligned_apart(&self) -> bool {
        Direction::ALL.into_iter().any(|direction| {
            let align_bytes = *self.blocks.align.get(direction);
            align_bytes > 0 && align_bytes != self.blocks.sizes(direction).bounds().0
        })
    }

    /// Whether a pass begins at the front of the files again. As in fio, it goes on behind the
    /// last one with `do_verify=0`, whether or not data are verified, unless there are `loops`.
    pub fn begins_again(&self) -> bool {
        self.verify.read_back || self.target.loops > 1 || self.times.time_based
    }

    /// Whether the files that it makes have their length before it starts.
    pub fn lays_files_out(&self) -> bool {
        if self.engine.engine == Engine::Filecreate {
            return false;
        }
        let is_laid_out = self.pattern.access.does(Direction::Read) || self.files.overwrite;
        is_laid_out
            || match self.files.allocation {
                Allocation::Native | Allocation::Posix | Allocation::Truncate => {
                    !self.files.create_on_open
                }
                Allocation::None | Allocation::Keep => false,
            }
    }

    /// Whether passes follow until `io_size` is done: as in fio not where it is a percentage, of
    /// which a pass does what there is.
    pub fn goes_round(&self) -> bool {
        let is_absolute = matches!(self.target.io_size, Some(Amount::Bytes(_)));
        is_absolute && !self.files.appends
    }

    /// Whether each block is taken once before any is taken twice.
    pub fn has_random_map(&self) -> bool {
        !self.random.no_map
            && self.pattern.sequence == 1
            && !self.is_aligned_apart()
            && *self.random.distribution.get(self.pattern.access.first()) == Distribution::Uniform
    }
}
