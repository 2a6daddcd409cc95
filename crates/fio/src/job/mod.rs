//! Job of a job file: all options that define its workload, resolved with fio's defaults and rules.

mod access;
mod course;
mod iolog;
mod storage;

pub use access::{
    AccessPattern, BlockSizeChoice, BlockSizes, DistributionZone, FileService, FileServiceOrder,
    OffsetDistribution, OffsetSequencer, RandomAccess, RandomGenerator, ReadWriteMode,
    WeightedSize, WritePointers, ZoneMode, Zones,
};
pub use course::{
    ArrivalProcess, DirectionReporting, EndedJobs, ErrorKind, IgnoredErrnos, IgnoredErrors,
    JobDurations, JobOrder, LatencyTarget, RateLimit, ReportOptions, SteadyLimit, SteadyMetric,
    SteadyState, ThinkEvent, ThinkTime, Verification, VerifiedTrims, Verify,
};
pub use iolog::{Iolog, SkippedKinds};
pub use storage::{
    Amount, CpuLoad, CpuMode, DedupeMode, EngineKind, EngineOptions, FileAllocation, FileLock,
    IoEngine, JobFiles, RangeSync, SubmitMode, SyncFlag, SyncOptions, TargetArea, WrittenData,
    ZonedAmounts,
};

use std::collections::{BTreeMap, BTreeSet};

use crate::number::UnitBase;
use diskperf_diagnostics::{Problem, SourceSpan};

/// Option with one value each for reads, writes and trims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// Value of the option for reads.
    pub read: T,
    /// Value of the option for writes.
    pub write: T,
    /// Value of the option for trims.
    pub trim: T,
}

/// Direction of an I/O: read, write or trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Read: transfer of data from the target.
    Read,
    /// Write: transfer of data to the target.
    Write,
    /// Trim: discard of blocks of the target.
    Trim,
}

impl Direction {
    /// Reads, writes and trims, in fio's order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];
}

impl<T> PerDirection<T> {
    /// Returns the option's value for one direction: read, write or trim.
    pub fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// Returns the option's value for one direction (read, write or trim) for modification.
    pub fn get_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }

    /// Returns the same value for reads, writes and trims.
    pub fn uniform(value: T) -> PerDirection<T>
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

/// Job option that has no effect on the measured results, and is therefore ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// fio's name of the ignored option.
    pub key: String,
    /// Place of the ignored option in the job file.
    pub place: SourceSpan,
    /// Reason why the option has no effect here.
    pub reason: &'static str,
}

/// Section of a job file, combined with the global sections above it. `order.clones` workers run
/// the job in parallel.
#[derive(Clone, Debug, PartialEq)]
pub struct JobDefinition {
    /// Name of the job: the value of `name=`, or the name of its section.
    pub name: String,
    /// Name of the job's section. fio names files after the section, even if `name=` differs.
    pub section: String,
    /// Place in the job file where the section starts.
    pub place: SourceSpan,
    /// Text of the option `description`.
    pub description: Option<String>,
    /// Index of the reporting group, from 0. Each `stonewall` or `new_group` starts another group.
    pub group: u32,
    /// Index of the job that `wait_for` names. That job ends before this one starts.
    pub awaited_job: Option<usize>,
    /// Options of the section alone, without global sections: fio's name and the value after
    /// substitution, which is empty for an option without a value.
    pub options_as_written: Vec<(String, String)>,
    /// Options that have no effect on the measured results.
    pub ignored: Vec<Ignored>,
    /// Meaning of size suffixes (`kb_base`).
    pub unit_base: UnitBase,
    /// Files that the job uses.
    pub files: JobFiles,
    /// Size and offset of the region of the files that the job uses, and its number of passes.
    pub target: TargetArea,
    /// Access pattern: directions and order of offsets.
    pub pattern: AccessPattern,
    /// Block sizes of the I/Os.
    pub blocks: BlockSizes,
    /// Options for random offsets and seeds.
    pub random: RandomAccess,
    /// Zone mode (`zonemode`) and zone sizes.
    pub zones: Zones,
    /// Options for sequential-write zones (`zonemode=zbd`).
    pub write_pointers: WritePointers,
    /// I/O engine and its options.
    pub engine: EngineOptions,
    /// Options that make written data durable.
    pub sync: SyncOptions,
    /// Content of the data that the job writes.
    pub data: WrittenData,
    /// Run time, warm-up and start delay of the job.
    pub durations: JobDurations,
    /// Clones of the job and its order relative to other jobs.
    pub order: JobOrder,
    /// Rate limits of the job.
    pub rate: RateLimit,
    /// Think time of the job: pauses between its I/Os.
    pub think: ThinkTime,
    /// Latency target and the search for a queue depth that meets it.
    pub latency: LatencyTarget,
    /// Steady-state detection, which can end the job.
    pub steady: SteadyState,
    /// Verification of written data.
    pub verify: Verify,
    /// Errors that do not end the job.
    pub errors: IgnoredErrors,
    /// I/O logs that the job writes or replays.
    pub iolog: Iolog,
    /// Contents of the job's report.
    pub report: ReportOptions,
    /// Places of the options that define the job, including those of global sections, by fio's
    /// name.
    pub(crate) places: BTreeMap<&'static str, SourceSpan>,
}

impl JobDefinition {
    /// Creates a job with fio's defaults.
    pub(crate) fn new(section: &str, place: &SourceSpan) -> JobDefinition {
        JobDefinition {
            name: section.to_owned(),
            section: section.to_owned(),
            place: place.clone(),
            description: None,
            group: 0,
            awaited_job: None,
            options_as_written: Vec::new(),
            ignored: Vec::new(),
            unit_base: UnitBase::default(),
            files: JobFiles::default(),
            target: TargetArea::default(),
            pattern: AccessPattern::default(),
            blocks: BlockSizes::default(),
            random: RandomAccess::default(),
            zones: Zones::default(),
            write_pointers: WritePointers::default(),
            engine: EngineOptions::default(),
            sync: SyncOptions::default(),
            data: WrittenData::default(),
            durations: JobDurations::default(),
            order: JobOrder::default(),
            rate: RateLimit::default(),
            think: ThinkTime::default(),
            latency: LatencyTarget::default(),
            steady: SteadyState::default(),
            verify: Verify::default(),
            errors: IgnoredErrors::default(),
            iolog: Iolog::default(),
            report: ReportOptions::default(),
            places: BTreeMap::new(),
        }
    }

    /// Returns the place of an option, by fio's name of the option, or the start of the section if
    /// no line gives the option.
    pub fn option_place(&self, key: &str) -> &SourceSpan {
        self.places.get(key).unwrap_or(&self.place)
    }

    /// Reports whether the job file sets an option, by fio's name of the option.
    pub fn has_option(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// Reports whether two jobs define the same workload. Order, notation and options without
    /// effect are ignored.
    pub fn has_same_workload(&self, other: &JobDefinition) -> bool {
        let as_written_in_other = JobDefinition {
            place: other.place.clone(),
            places: other.places.clone(),
            description: other.description.clone(),
            options_as_written: other.options_as_written.clone(),
            ignored: other.ignored.clone(),
            ..self.clone()
        };
        as_written_in_other == *other
    }

    /// Returns the options that two jobs write differently, including global sections and except
    /// options without effect: fio's name and both values, `None` where a job does not set the
    /// option.
    pub fn differing_options<'j>(
        &'j self,
        other: &'j JobDefinition,
    ) -> Vec<(&'static str, [Option<&'j str>; 2])> {
        let keys: BTreeSet<&'static str> = self
            .places
            .keys()
            .chain(other.places.keys())
            .copied()
            .collect();
        let value =
            |of: &'j JobDefinition, key| of.places.get(key).map(|place| place.as_str().trim());
        keys.into_iter()
            .filter(|key| *key != "description")
            .map(|key| (key, [value(self, key), value(other, key)]))
            .filter(|(_, [one, other])| one != other)
            .collect()
    }

    /// Creates an error about an option that cannot be obeyed. The title names the problem, the
    /// label goes below the option, and the help says what to write instead.
    pub fn option_error(&self, key: &str, title: &str, label: &str, help: &str) -> Problem {
        let problem = Problem::error(title).at(self.option_place(key), label);
        problem.help(help)
    }

    /// Returns the smallest block size of the job's directions, in bytes.
    pub fn block_bytes_min(&self) -> u64 {
        let directions = self.pattern.access.directions().iter();
        let smallest = directions.map(|&direction| self.blocks.choice(direction).bounds_bytes().0);
        smallest.min().unwrap_or(4096).max(1)
    }

    /// Returns the largest block size of the job's directions, in bytes.
    pub fn block_bytes_max(&self) -> u64 {
        let directions = self.pattern.access.directions().iter();
        let largest = directions.map(|&direction| self.blocks.choice(direction).bounds_bytes().1);
        largest.max().unwrap_or(4096).max(1)
    }

    /// Returns the largest block that the job reads or writes, in bytes; 0 if the job only trims.
    pub fn transfer_bytes_max(&self) -> u64 {
        let directions = self.pattern.access.directions().iter();
        let moving = directions.filter(|direction| **direction != Direction::Trim);
        let largest = moving.map(|&direction| self.blocks.choice(direction).bounds_bytes().1);
        largest.max().unwrap_or(0)
    }

    /// Returns the unit of the random map in bytes: the smallest block size of all directions. As
    /// in fio, directions that the job does not use count too.
    pub fn map_unit_bytes(&self) -> u64 {
        let smallest =
            Direction::ALL.map(|direction| self.blocks.choice(direction).bounds_bytes().0);
        smallest.into_iter().min().unwrap_or(4096).max(1)
    }

    /// Returns the remaining bytes that justify another pass: the largest block size of all
    /// directions. As in fio, directions that the job does not use count too.
    pub fn pass_remainder_bytes_min(&self) -> u64 {
        let largest =
            Direction::ALL.map(|direction| self.blocks.choice(direction).bounds_bytes().1);
        largest.into_iter().max().unwrap_or(4096).max(1)
    }

    /// Tests whether `blockalign` differs from the smallest block of a direction. fio then keeps no
    /// random map.
    fn has_unequal_alignment(&self) -> bool {
        Direction::ALL.into_iter().any(|direction| {
            let align_bytes = *self.blocks.offset_align_bytes.get(direction);
            align_bytes > 0 && align_bytes != self.blocks.choice(direction).bounds_bytes().0
        })
    }

    /// Reports whether each pass starts at the beginning of the files. As in fio, a pass with
    /// `do_verify=0` continues after the previous one, whether or not the job verifies, unless
    /// `loops` or `time_based` is set.
    pub fn restarts_each_pass(&self) -> bool {
        self.verify.reads_back || self.target.loops > 1 || self.durations.is_time_based
    }

    /// Reports whether newly created files get their full length before the job starts.
    pub fn lays_out_files(&self) -> bool {
        if self.engine.engine == IoEngine::Filecreate {
            return false;
        }
        let is_laid_out =
            self.pattern.access.includes(Direction::Read) || self.files.is_overwritten;
        is_laid_out
            || match self.files.allocation {
                FileAllocation::Native | FileAllocation::Posix | FileAllocation::Truncate => {
                    !self.files.creates_on_open
                }
                FileAllocation::None | FileAllocation::KeepSize => false,
            }
    }

    /// Reports whether passes repeat until `io_size` bytes are done. As in fio, an `io_size` in
    /// percent does not cause further passes.
    pub fn repeats_passes(&self) -> bool {
        let is_absolute = matches!(self.target.io_size, Some(Amount::Bytes(_)));
        is_absolute && !self.files.is_appended
    }

    /// Reports whether the job uses each block once before it uses any block again.
    pub fn has_random_map(&self) -> bool {
        !self.random.has_no_map
            && self.pattern.sequence_length == 1
            && !self.has_unequal_alignment()
            && *self
                .random
                .distribution
                .get(self.pattern.access.first_direction())
                == OffsetDistribution::Uniform
    }
}
