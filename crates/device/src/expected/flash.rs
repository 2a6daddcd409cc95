//! Measurement of the catalogue's expected figures (`expected/`) on a single flash drive.

use super::serve_one;
use crate::flash::device::Flash;
use crate::flash::specification::FlashSpecification;
use crate::{ClosedLoop, Command, Completion, Device, Drive, Operation};
use diskperf_catalogue::FlashFigure;
use diskperf_ftl::ProgrammedUnits;
use diskperf_sim::{RandomStream, RandomStreams, Time};

/// Seed of the random positions for reads and writes.
pub const LOAD_SEED: u64 = 27;
const READ: Operation = Operation::Read;
const WRITE: Operation = Operation::Write { fua: false };
/// Mapping units of 4 KiB in a gibibyte.
const UNITS_PER_GIBIBYTE: u64 = 1 << 18;
/// Size of a sequential request, in mapping units.
const CALL_UNITS: u32 = 32;
const CALL_MB: f64 = 0.131_072;
const SYNCED_WRITE_COUNT: u64 = 2000;
const CHECKED_MESSAGE: &str = "depths and places were checked";
/// Number of writes measured in the steady state. They cause garbage collection of ten superblocks
/// or more.
const STEADY_WRITE_COUNT: u64 = 300_000;
/// Divisor of the superblock size for steady-state experiments. Write amplification depends on
/// shares alone, so a drive of a quarter of the size reaches the same steady state in a quarter of
/// the writes.
const CAPACITY_DIVISOR: u32 = 4;

/// Experiment with a flash drive, from which one or more figures derive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureExperiment {
    /// Random reads of a preconditioned drive.
    RandomReads,
    /// Random reads of data that were just written.
    CachedReads,
    /// Random writes to a drive that was idle.
    RandomWrites,
    /// Random writes in the steady state.
    SteadyWrites,
    /// Sequential reads of data that were just written.
    SequentialReads,
    /// Sequential writes to a drive that was idle.
    SequentialWrites,
    /// Random writes, each followed by a flush.
    SyncedWrites,
    /// Random reads and writes (70 to 30) in the steady state.
    MixedReadsAndWrites,
}

impl From<FlashFigure> for FigureExperiment {
    fn from(figure: FlashFigure) -> Self {
        match figure {
            FlashFigure::RandomReadUs | FlashFigure::RandomReadIops => Self::RandomReads,
            FlashFigure::CachedReadUs | FlashFigure::CachedReadIops => Self::CachedReads,
            FlashFigure::RandomWriteUs => Self::RandomWrites,
            FlashFigure::SteadyWriteIops | FlashFigure::SteadyAmplification => Self::SteadyWrites,
            FlashFigure::SequentialReadMbPerS => Self::SequentialReads,
            FlashFigure::SequentialWriteMbPerS | FlashFigure::WritePastCacheMbPerS => {
                Self::SequentialWrites
            }
            FlashFigure::SyncedWritesPerS => Self::SyncedWrites,
            FlashFigure::MixedIops | FlashFigure::MixedReadP99Us => Self::MixedReadsAndWrites,
        }
    }
}

/// Result of an experiment with a flash drive.
pub enum ExperimentResult {
    /// Measured requests, served one by one or in a closed loop.
    RequestTimes(LoadMeasurement),
    /// Steady state of random writes.
    SteadyState {
        /// Write rate, in writes per second.
        iops: f64,
        /// Write amplification: mapping units programmed per unit that the host wrote.
        amplification: f64,
    },
}

impl ExperimentResult {
    /// Returns a figure of this experiment, in the figure's unit.
    ///
    /// # Panics
    ///
    /// When the figure belongs to another experiment.
    pub fn figure_value(&self, figure: FlashFigure) -> f64 {
        match (figure, self) {
            (FlashFigure::SteadyWriteIops, Self::SteadyState { iops, .. }) => *iops,
            (FlashFigure::SteadyAmplification, Self::SteadyState { amplification, .. }) => {
                *amplification
            }
            (_, Self::SteadyState { .. }) => panic!("{figure:?} is no figure of a steady state"),
            (figure, Self::RequestTimes(of)) => match figure {
                FlashFigure::RandomReadUs | FlashFigure::CachedReadUs => of.mean_read_us(),
                FlashFigure::RandomWriteUs => of.elapsed_s * 1e6 / of.completed_count as f64,
                FlashFigure::MixedReadP99Us => of.p99_read_us(),
                FlashFigure::SequentialReadMbPerS
                | FlashFigure::SequentialWriteMbPerS
                | FlashFigure::WritePastCacheMbPerS => of.mb_per_s(),
                _ => of.iops(),
            },
        }
    }
}

/// Runs an experiment on a flash drive. The specification must include the settings of
/// [`FlashFigure::settings`] and of the catalogue's file.
///
/// # Panics
///
/// When the specification contradicts itself.
pub fn run_experiment(
    specification: &FlashSpecification,
    experiment: FigureExperiment,
    depth: u32,
) -> ExperimentResult {
    let requests = match experiment {
        FigureExperiment::RandomReads => run_random_reads(specification, 0, depth),
        FigureExperiment::CachedReads => run_random_reads(specification, UNITS_PER_GIBIBYTE, depth),
        FigureExperiment::RandomWrites => {
            let mut drive = build_drive(specification);
            let units = drive.device().sectors();
            let next =
                |draws: &mut RandomStream, _| unit_command(WRITE, draws.draw_below(units), 1);
            run_load(&mut drive, depth, (0, 2000), next)
        }
        FigureExperiment::SteadyWrites => {
            let (iops, amplification) = run_steady_writes(specification, depth);
            return ExperimentResult::SteadyState {
                iops,
                amplification,
            };
        }
        FigureExperiment::SequentialReads => {
            let mut drive = build_drive(specification);
            fill_units(&mut drive, UNITS_PER_GIBIBYTE);
            let next = |_: &mut RandomStream, call: u64| {
                let unit = call * u64::from(CALL_UNITS) % UNITS_PER_GIBIBYTE;
                unit_command(READ, unit, CALL_UNITS)
            };
            run_load(&mut drive, depth, (500, 8000), next)
        }
        FigureExperiment::SequentialWrites => {
            let mut drive = build_drive(specification);
            let next = |_: &mut RandomStream, call: u64| {
                unit_command(WRITE, call * u64::from(CALL_UNITS), CALL_UNITS)
            };
            run_load(&mut drive, depth, (6000, 10_000), next)
        }
        FigureExperiment::SyncedWrites => run_synced_writes(specification),
        FigureExperiment::MixedReadsAndWrites => run_mixed(specification, depth),
    };
    ExperimentResult::RequestTimes(requests)
}

/// Creates the idle, preconditioned drive with which experiments begin.
///
/// # Panics
///
/// When the specification contradicts itself.
pub fn build_drive(specification: &FlashSpecification) -> Drive {
    let retries = RandomStreams::new(LOAD_SEED).named_stream("retries");
    let flash = Flash::new(specification, (LOAD_SEED, retries));
    let flash = flash.unwrap_or_else(|error| panic!("{error}"));
    Drive::new(Device::Flash(Box::new(flash)))
}

/// Measures random reads of single mapping units. They cover the first `written` units, which are
/// written first, or the whole preconditioned drive if `written` is 0.
fn run_random_reads(
    specification: &FlashSpecification,
    written: u64,
    depth: u32,
) -> LoadMeasurement {
    let mut drive = build_drive(specification);
    let units = match written {
        0 => drive.device().sectors(),
        _ => written,
    };
    fill_units(&mut drive, written);
    let next = |draws: &mut RandomStream, _| unit_command(READ, draws.draw_below(units), 1);
    run_load(&mut drive, depth, (1000, 40_000), next)
}

/// Returns the write rate (writes per second) and write amplification of random writes in the
/// steady state.
fn run_steady_writes(specification: &FlashSpecification, depth: u32) -> (f64, f64) {
    let specification = divide_capacity(specification, CAPACITY_DIVISOR);
    let mut drive = build_drive(&specification);
    let units = drive.device().sectors();
    let mut draws = RandomStreams::new(LOAD_SEED).named_stream("places");
    let next = || Command {
        operation: WRITE,
        sector: draws.draw_below(units),
        sectors: 1,
    };
    let mut asked = ClosedLoop::start(&mut drive, depth, next).expect(CHECKED_MESSAGE);
    // At least so many, and on to the end of a collection.
    let mut write = |least: u64| {
        let (mut erases, mut done) = (u64::MAX, 0);
        while done < least || erases > 0 && drive_traffic(asked.drive()).erase_count == erases {
            asked.next();
            done += 1;
            if done == least {
                erases = drive_traffic(asked.drive()).erase_count;
            }
        }
        (done, asked.drive().now(), drive_traffic(asked.drive()))
    };
    // What the buffer and the cache take is over then, and collection is even.
    let (_, begun, before) = write(300_000 + slc_cache_units(&specification));
    let (writes, ended, after) = write(STEADY_WRITE_COUNT);
    let (since, seconds) = (after.traffic_since(&before), (ended - begun).as_seconds());
    // So few collections leave more room, or less, than they found, which changes what is
    // copied by several percent. What the victims had left does not hang on that.
    let emptied = since.erase_count * u64::from(specification.superblock_units());
    if emptied <= since.collection_units {
        return (writes as f64 / seconds, since.write_amplification());
    }
    let by_collection = emptied as f64 / (emptied - since.collection_units) as f64;
    // Map, journal and padding are collected as the host's units are.
    let by_others =
        (since.programmed_units() - since.collection_units) as f64 / since.host_units as f64;
    let amplification = by_collection * by_others;
    let programmed_per_s = since.programmed_units() as f64 / seconds;
    (programmed_per_s / amplification, amplification)
}

fn drive_traffic(drive: &Drive) -> ProgrammedUnits {
    *drive.device().flash().expect("a flash drive").traffic()
}

fn run_mixed(specification: &FlashSpecification, depth: u32) -> LoadMeasurement {
    let specification = divide_capacity(specification, CAPACITY_DIVISOR);
    let mut drive = build_drive(&specification);
    let units = drive.device().sectors();
    let next = |draws: &mut RandomStream, _| {
        let operation = if draws.draw_with_probability(0.7) {
            READ
        } else {
            WRITE
        };
        unit_command(operation, draws.draw_below(units), 1)
    };
    let before = 600_000 + 4 * slc_cache_units(&specification);
    run_load(&mut drive, depth, (before, 3 * STEADY_WRITE_COUNT), next)
}

fn run_synced_writes(specification: &FlashSpecification) -> LoadMeasurement {
    let mut drive = build_drive(specification);
    let units = drive.device().sectors();
    let mut draws = RandomStreams::new(LOAD_SEED).named_stream("places");
    for _ in 0..SYNCED_WRITE_COUNT {
        serve_one(&mut drive, WRITE, draws.draw_below(units), 1);
        if drive.device().has_volatile_cache() {
            serve_one(&mut drive, Operation::Flush, 0, 0);
        }
    }
    LoadMeasurement {
        elapsed_s: drive.now().as_seconds(),
        read_response_us: Vec::new(),
        completed_count: SYNCED_WRITE_COUNT,
    }
}

/// Writes the first `units` mapping units of the drive sequentially, and then leaves it idle for a
/// moment.
fn fill_units(drive: &mut Drive, units: u64) {
    if units == 0 {
        return;
    }
    let calls = units / u64::from(CALL_UNITS);
    let next = |_: &mut RandomStream, call: u64| {
        let unit = call % calls * u64::from(CALL_UNITS);
        unit_command(WRITE, unit, CALL_UNITS)
    };
    run_load(drive, CALL_UNITS, (0, calls), next);
    // Not so long that the cache is folded.
    drive.run_for(Time::from_millis(500));
}

/// Returns the specification with superblocks divided by `parts`, and with the same shares of
/// capacity.
pub fn divide_capacity(of: &FlashSpecification, parts: u32) -> FlashSpecification {
    let mut specification = of.clone();
    specification.geometry.word_lines_per_block /= parts;
    specification.times.erase_time.0 /= u64::from(parts);
    specification.map_cache_pages = specification
        .map_cache_pages
        .map(|pages| (pages / parts).max(1));
    let layer = &mut specification.translation;
    layer.logical_units /= parts;
    layer.filled_share /= parts;
    specification
}

/// Returns the capacity of the fixed part of the SLC cache, in mapping units.
fn slc_cache_units(of: &FlashSpecification) -> u64 {
    let geometry = &of.geometry;
    let pages = geometry.die_count() * geometry.planes_per_die * geometry.word_lines_per_block;
    let superblocks = of.slc_cache.map_or(0, |cache| cache.fixed_superblocks);
    u64::from(pages * geometry.page_units()) * u64::from(superblocks)
}

/// Duration and read times of a measured series of requests.
pub struct LoadMeasurement {
    elapsed_s: f64,
    read_response_us: Vec<f64>,
    completed_count: u64,
}

fn unit_command(operation: Operation, unit: u64, unit_count: u32) -> Command {
    Command {
        operation,
        sector: unit,
        sectors: unit_count,
    }
}

/// Measures requests in a closed loop: `before` completions as warm-up, then `count`. The drive is
/// idle at the end. `next` generates each request by its number.
fn run_load(
    drive: &mut Drive,
    depth: u32,
    (before, count): (u64, u64),
    mut next: impl FnMut(&mut RandomStream, u64) -> Command,
) -> LoadMeasurement {
    let mut draws = RandomStreams::new(LOAD_SEED).named_stream("places");
    let mut numbers = 0..;
    let next = || next(&mut draws, numbers.next().expect("no end"));
    let mut asked = ClosedLoop::start(drive, depth, next).expect(CHECKED_MESSAGE);
    asked.by_ref().take(before as usize).for_each(drop);
    let begun = asked.drive().now();
    let completions = asked.by_ref().take(count as usize);
    let read_us = |of: Completion| (of.operation == READ).then(|| of.latency().0 as f64 / 1000.0);
    let mut read_us: Vec<f64> = completions
        .filter_map(|of| read_us(of.expect(CHECKED_MESSAGE)))
        .collect();
    let seconds = (asked.drive().now() - begun).as_seconds();
    while drive.next_completion().is_some() {}
    read_us.sort_by(f64::total_cmp);
    LoadMeasurement {
        elapsed_s: seconds,
        read_response_us: read_us,
        completed_count: count,
    }
}

impl LoadMeasurement {
    fn mean_read_us(&self) -> f64 {
        self.read_response_us.iter().sum::<f64>() / self.read_response_us.len() as f64
    }

    fn p99_read_us(&self) -> f64 {
        self.read_response_us[self.read_response_us.len() * 99 / 100]
    }

    fn iops(&self) -> f64 {
        self.completed_count as f64 / self.elapsed_s
    }

    fn mb_per_s(&self) -> f64 {
        self.iops() * CALL_MB
    }
}
