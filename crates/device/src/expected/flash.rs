//! Measurement of the catalogue's expected figures (`expected/`) on a single flash drive.

use super::one;
use crate::flash::device::Flash;
use crate::flash::specification::FlashSpecification;
use crate::{ClosedLoop, Command, Completion, Device, Drive, Operation};
use diskperf_catalogue::FlashFigure;
use diskperf_ftl::ProgrammedUnits;
use diskperf_sim::{RandomStream, RandomStreams, Time};

/// Seed of the random positions for reads and writes.
pub const SEED: u64 = 27;
const READ: Operation = Operation::Read;
const WRITE: Operation = Operation::Write { fua: false };
/// Mapping units of 4 KiB in a gibibyte.
const GIBIBYTE: u64 = 1 << 18;
/// Size of a sequential request, in mapping units.
const CALL_UNITS: u32 = 32;
const CALL_MB: f64 = 0.131_072;
const SYNCED: u64 = 2000;
const ROOM: &str = "depths and places were checked";
/// Number of writes measured in the steady state. They cause garbage collection of ten superblocks
/// or more.
const STEADY: u64 = 300_000;
/// Divisor of the superblock size for steady-state experiments. Write amplification depends on
/// shares alone, so a drive of a quarter of the size reaches the same steady state in a quarter of
/// the writes.
const PARTS: u32 = 4;

/// Experiment with a flash drive, from which one or more figures derive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
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
    Mixed,
}

impl From<FlashFigure> for Experiment {
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
            FlashFigure::MixedIops | FlashFigure::MixedReadP99Us => Self::Mixed,
        }
    }
}

/// Result of an experiment with a flash drive.
pub enum Measured {
    /// Measured requests, served one by one or in a closed loop.
    Requests(Stretch),
    /// Steady state of random writes.
    Steady {
        /// Write rate, in writes per second.
        iops: f64,
        /// Write amplification: mapping units programmed per unit that the host wrote.
        amplification: f64,
    },
}

impl Measured {
    /// Returns a figure of this experiment, in the figure's unit.
    ///
    /// # Panics
    ///
    /// When the figure belongs to another experiment.
    pub fn figure(&self, figure: FlashFigure) -> f64 {
        match (figure, self) {
            (FlashFigure::SteadyWriteIops, Self::Steady { iops, .. }) => *iops,
            (FlashFigure::SteadyAmplification, Self::Steady { amplification, .. }) => {
                *amplification
            }
            (_, Self::Steady { .. }) => panic!("{figure:?} is no figure of a steady state"),
            (figure, Self::Requests(of)) => match figure {
                FlashFigure::RandomReadUs | FlashFigure::CachedReadUs => of.mean_us(),
                FlashFigure::RandomWriteUs => of.seconds * 1e6 / of.done as f64,
                FlashFigure::MixedReadP99Us => of.p99_us(),
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
pub fn measured(
    specification: &FlashSpecification,
    experiment: Experiment,
    depth: u32,
) -> Measured {
    let requests = match experiment {
        Experiment::RandomReads => random_reads(specification, 0, depth),
        Experiment::CachedReads => random_reads(specification, GIBIBYTE, depth),
        Experiment::RandomWrites => {
            let mut drive = drive(specification);
            let units = drive.device().sectors();
            let next = |draws: &mut RandomStream, _| (WRITE, draws.draw_below(units), 1);
            stretch(&mut drive, depth, (0, 2000), next)
        }
        Experiment::SteadyWrites => {
            let (iops, amplification) = steady_writes(specification, depth);
            return Measured::Steady {
                iops,
                amplification,
            };
        }
        Experiment::SequentialReads => {
            let mut drive = drive(specification);
            fill(&mut drive, GIBIBYTE);
            let next = |_: &mut RandomStream, call: u64| {
                let unit = call * u64::from(CALL_UNITS) % GIBIBYTE;
                (READ, unit, CALL_UNITS)
            };
            stretch(&mut drive, depth, (500, 8000), next)
        }
        Experiment::SequentialWrites => {
            let mut drive = drive(specification);
            let next =
                |_: &mut RandomStream, call: u64| (WRITE, call * u64::from(CALL_UNITS), CALL_UNITS);
            stretch(&mut drive, depth, (6000, 10_000), next)
        }
        Experiment::SyncedWrites => synced(specification),
        Experiment::Mixed => mixed(specification, depth),
    };
    Measured::Requests(requests)
}

/// Creates the idle, preconditioned drive with which experiments begin.
///
/// # Panics
///
/// When the specification contradicts itself.
pub fn drive(specification: &FlashSpecification) -> Drive {
    let retries = RandomStreams::new(SEED).named_stream("retries");
    let flash = Flash::new(specification, (SEED, retries));
    let flash = flash.unwrap_or_else(|error| panic!("{error}"));
    Drive::new(Device::Flash(Box::new(flash)))
}

/// Measures random reads of single mapping units. They cover the first `written` units, which are
/// written first, or the whole preconditioned drive if `written` is 0.
fn random_reads(specification: &FlashSpecification, written: u64, depth: u32) -> Stretch {
    let mut drive = drive(specification);
    let units = match written {
        0 => drive.device().sectors(),
        _ => written,
    };
    fill(&mut drive, written);
    let next = |draws: &mut RandomStream, _| (READ, draws.draw_below(units), 1);
    stretch(&mut drive, depth, (1000, 40_000), next)
}

/// Returns the write rate (writes per second) and write amplification of random writes in the
/// steady state.
fn steady_writes(specification: &FlashSpecification, depth: u32) -> (f64, f64) {
    let specification = divided(specification, PARTS);
    let mut drive = drive(&specification);
    let units = drive.device().sectors();
    let mut draws = RandomStreams::new(SEED).named_stream("places");
    let next = || Command {
        operation: WRITE,
        sector: draws.draw_below(units),
        sectors: 1,
    };
    let mut asked = ClosedLoop::start(&mut drive, depth, next).expect(ROOM);
    // At least so many, and on to the end of a collection.
    let mut write = |least: u64| {
        let (mut erases, mut done) = (u64::MAX, 0);
        while done < least || erases > 0 && traffic(asked.drive()).erase_count == erases {
            asked.next();
            done += 1;
            if done == least {
                erases = traffic(asked.drive()).erase_count;
            }
        }
        (done, asked.drive().now(), traffic(asked.drive()))
    };
    // What the buffer and the cache take is over then, and collection is even.
    let (_, begun, before) = write(300_000 + cache_units(&specification));
    let (writes, ended, after) = write(STEADY);
    let (since, seconds) = (after.traffic_since(&before), (ended - begun).as_seconds());
    // So few collections leave more room, or less, than they found, which changes what is
    // copied by several percent. What the victims had left does not hang on that.
    let emptied = since.erase_count * u64::from(specification.layer_superblock_units());
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

fn traffic(drive: &Drive) -> ProgrammedUnits {
    *drive.device().flash().expect("a flash drive").traffic()
}

fn mixed(specification: &FlashSpecification, depth: u32) -> Stretch {
    let specification = divided(specification, PARTS);
    let mut drive = drive(&specification);
    let units = drive.device().sectors();
    let next = |draws: &mut RandomStream, _| {
        let operation = if draws.draw_with_probability(0.7) {
            READ
        } else {
            WRITE
        };
        (operation, draws.draw_below(units), 1)
    };
    let before = 600_000 + 4 * cache_units(&specification);
    stretch(&mut drive, depth, (before, 3 * STEADY), next)
}

fn synced(specification: &FlashSpecification) -> Stretch {
    let mut drive = drive(specification);
    let units = drive.device().sectors();
    let mut draws = RandomStreams::new(SEED).named_stream("places");
    for _ in 0..SYNCED {
        one(&mut drive, WRITE, draws.draw_below(units), 1);
        if drive.device().keeps_writes() {
            one(&mut drive, Operation::Flush, 0, 0);
        }
    }
    Stretch {
        seconds: drive.now().as_seconds(),
        read_us: Vec::new(),
        done: SYNCED,
    }
}

/// Writes the first `units` mapping units of the drive sequentially, and then leaves it idle for a
/// moment.
fn fill(drive: &mut Drive, units: u64) {
    if units == 0 {
        return;
    }
    let calls = units / u64::from(CALL_UNITS);
    let next = |_: &mut RandomStream, call: u64| {
        let unit = call % calls * u64::from(CALL_UNITS);
        (WRITE, unit, CALL_UNITS)
    };
    stretch(drive, CALL_UNITS, (0, calls), next);
    // Not so long that the cache is folded.
    drive.run_for(Time::from_millis(500));
}

/// Returns the specification with superblocks divided by `parts`, and with the same shares of
/// capacity.
pub fn divided(of: &FlashSpecification, parts: u32) -> FlashSpecification {
    let mut specification = of.clone();
    specification.geometry.word_lines /= parts;
    specification.times.erase.0 /= u64::from(parts);
    specification.map_cache_pages = specification
        .map_cache_pages
        .map(|pages| (pages / parts).max(1));
    let layer = &mut specification.layer;
    layer.logical_units /= parts;
    layer.filled /= parts;
    specification
}

/// Returns the capacity of the fixed part of the SLC cache, in mapping units.
fn cache_units(of: &FlashSpecification) -> u64 {
    let geometry = &of.geometry;
    let pages = geometry.dies() * geometry.planes * geometry.word_lines;
    let superblocks = of.cache.map_or(0, |cache| cache.fixed_superblocks);
    u64::from(pages * geometry.page_units()) * u64::from(superblocks)
}

/// Duration and read times of a measured series of requests.
pub struct Stretch {
    seconds: f64,
    read_us: Vec<f64>,
    done: u64,
}

/// Measures requests in a closed loop: `before` completions as warm-up, then `count`. The drive is
/// idle at the end. `next` generates each request by its number.
fn stretch(
    drive: &mut Drive,
    depth: u32,
    (before, count): (u64, u64),
    mut next: impl FnMut(&mut RandomStream, u64) -> (Operation, u64, u32),
) -> Stretch {
    let mut draws = RandomStreams::new(SEED).named_stream("places");
    let mut numbers = 0..;
    let next = || {
        let (operation, sector, sectors) = next(&mut draws, numbers.next().expect("no end"));
        Command {
            operation,
            sector,
            sectors,
        }
    };
    let mut asked = ClosedLoop::start(drive, depth, next).expect(ROOM);
    asked.by_ref().take(before as usize).for_each(drop);
    let begun = asked.drive().now();
    let completions = asked.by_ref().take(count as usize);
    let read_us = |of: Completion| (of.operation == READ).then(|| of.latency().0 as f64 / 1000.0);
    let mut read_us: Vec<f64> = completions
        .filter_map(|of| read_us(of.expect(ROOM)))
        .collect();
    let seconds = (asked.drive().now() - begun).as_seconds();
    while drive.next_completion().is_some() {}
    read_us.sort_by(f64::total_cmp);
    Stretch {
        seconds,
        read_us,
        done: count,
    }
}

impl Stretch {
    fn mean_us(&self) -> f64 {
        self.read_us.iter().sum::<f64>() / self.read_us.len() as f64
    }

    fn p99_us(&self) -> f64 {
        self.read_us[self.read_us.len() * 99 / 100]
    }

    fn iops(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    fn mb_per_s(&self) -> f64 {
        self.iops() * CALL_MB
    }
}
