//! The procedure, in the order in which each step needs the ones before it.

use crate::affine::{self, BEFORE};
use crate::angles::{self, Angles, Reference, Stretches, scan_mean_direction, wrapped};
use crate::arrival::{self, Circumstances, FittedArrival, NAMES, Seen};
use crate::entry;
use crate::guard::{self, MET_US, Stage};
use crate::parameter::{Interval, Parameter};
use crate::phase_step::PhaseStep;
use crate::places::{Beyond, Placed, placed};
use crate::proposal::{
    bytes_per_s, gather_overheads, mean_sectors_per_track, ms, put_angles, put_arrivals, shift,
};
use crate::remains::{Remains, remains};
use crate::replay::{Replayed, Served, follow, replay, us};
use crate::rules::{Chosen, Judge};
use crate::score::Score;
use diskperf_device::disk::cache::{
    AfterRead, AfterWrite, ReadAhead, ReadAheadAfter, WriteCacheSpecification,
};
use diskperf_device::disk::device::{Answer, Disk, DiskSpecification};
use diskperf_device::disk::mechanism::Mechanism;
use diskperf_device::disk::overheads::{After, Before};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_device::disk::spindle::Turn;
use diskperf_diskspecs::phase::{self, Assumed, Phase, Think};
use diskperf_diskspecs::trace::{Operation, Request};
use diskperf_diskspecs::{Drive, FastWrite};

/// What may be asked for beside the whole procedure: checks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The first part of a trace that is fitted to: at most the first half.
    pub fitted_share: f64,
    /// Pauses that are put here whatever the trace shows.
    pub think: Option<Think>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fitted_share: 0.5,
            think: None,
        }
    }
}

/// Why a drive cannot be fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalibrationError {
    /// A request that is not on the drive.
    Beyond(Beyond),
    /// Files that describe no disk that the device can be.
    Drive {
        /// What is wrong with it.
        why: String,
    },
}

impl std::fmt::Display for CalibrationError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CalibrationError::Beyond(beyond) => beyond.fmt(out),
            CalibrationError::Drive { why } => write!(out, "the drive cannot be modelled: {why}"),
        }
    }
}

impl std::error::Error for CalibrationError {}

/// A drive whose disk was fitted to a part of its trace, and replayed.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// All requests of the trace.
    pub requests: usize,
    /// How many of them were fitted to.
    pub fitted_requests: usize,
    /// What the part showed of the spindle; nothing if hardly two requests share a cylinder.
    pub phase: Option<Phase>,
    /// Where the pauses are.
    pub think: Think,
    /// A revolution at the speed that the files have.
    pub nominal_period_us: f64,
    /// The disk as the files have it.
    pub filed: DiskSpecification,
    /// The disk that was fitted: it was stepped for `score` and `replayed`.
    pub fitted: DiskSpecification,
    /// How much of the fit was kept: more was worse on requests that were held out.
    pub stage: Stage,
    /// What was fitted.
    pub parameters: Vec<Parameter>,
    /// Of the second half, with what was fitted.
    pub score: Score,
    /// Of the second half, as the files are, with the pauses and the period alone.
    pub unfitted: Score,
    /// Of the whole trace.
    pub replayed: Vec<Replayed>,
    /// R of the requests that were fitted to and waited for the platter, with the angles that
    /// were found: 1 if all agree.
    pub r: f64,
    /// Jumps of the phase among the requests that were fitted to.
    pub phase_steps: Vec<PhaseStep>,
    /// Of the second half: reads that the drive answered from its buffer, by their times, and
    /// that the device did.
    pub buffer_reads: (usize, usize),
    /// Of the second half: what is off by more than half a millisecond.
    pub remains: Remains,
}

/// Fits a drive to the first part of its trace, and replays the whole of it.
///
/// # Errors
///
/// [`CalibrationError`]: a request that is not on the drive, or a drive that is no disk.
pub fn calibrate(
    drive: &Drive,
    requests: &[Request],
    options: Options,
) -> Result<Calibration, CalibrationError> {
    let filed = entry::specification(drive)?;
    let device = Disk::new(&filed, Turn::ZERO);
    let device = device.map_err(|error| CalibrationError::Drive {
        why: error.to_string(),
    })?;
    let mechanism = device.mechanism();
    let all = placed(mechanism.layout(), requests).map_err(CalibrationError::Beyond)?;
    let half = all.len() / 2;
    let share = options.fitted_share.clamp(0.0, 0.5);
    let fitted = &all[..((all.len() as f64 * share) as usize).min(half)];
    let nominal_us = filed.mechanism.period_ns / 1e3;
    let firmware = drive.firmware.unwrap_or_default();
    let assumed = Assumed {
        period_us: nominal_us,
        transfer_us: drive.read_sector_ms() * 1e3,
        write_through: firmware.cache.fast_write == FastWrite::None,
    };
    let phase = phase::find(&drive.model.layout, &requests[..fitted.len()], &assumed);
    let seen = phase.and_then(|phase| phase.think);
    // Without a phase the pauses are where the form's reader has them.
    let think = options.think.or(seen).unwrap_or(Think::After);
    let lock =
        phase.filter(|_| seen.is_some() && options.think.is_none_or(|forced| Some(forced) == seen));
    let mut start = filed.clone();
    if let Some(phase) = phase.filter(|_| seen.is_some()) {
        start.mechanism.period_ns = phase.period_us * 1e3;
    }
    let given = Given {
        filed: &filed,
        mechanism,
        start: &start,
        think,
        phase: lock,
        crossing_us: drive.read_sector_ms() * 1e3,
    };
    // The period that a scan finds is refined by the angles, whatever else is kept of the fit.
    let turning = lock.map(|_| Turning::new(&given, fitted));
    let mut refined = start.clone();
    if let Some(turning) = &turning {
        refined.mechanism.period_ns = turning.period_ns;
    }
    let given = Given {
        start: &refined,
        ..given
    };
    let stage = guard::stage(&given, fitted);
    let work = fit(&given, fitted, stage, |_, _| ());
    let mut parameters = work.parameters.clone();
    if let Some(turning) = turning.as_ref().filter(|_| stage < Stage::Angles) {
        parameters.extend(turning.period.clone());
    }
    let score = |disk: &DiskSpecification| {
        let replayed = replay(disk, &all, think);
        (Score::of(&pairs(&all[half..], &replayed[half..])), replayed)
    };
    let is_fast = |placed: &Placed| work.is_fast(placed);
    let (fitted_score, replayed) = score(&work.disk);
    let held = all[half..].iter().filter(|placed| is_fast(placed));
    let held = held.filter(|placed| placed.request.operation == Operation::Read);
    let modelled = replayed[half..]
        .iter()
        .filter(|one| matches!(one.answer, Answer::Buffer | Answer::ReadAhead));
    Ok(Calibration {
        nominal_period_us: nominal_us,
        r: turning.as_ref().map_or(work.r, |turning| turning.r),
        phase_steps: turning.map_or_else(Vec::new, |turning| turning.steps),
        buffer_reads: (held.count(), modelled.count()),
        remains: remains(&work.disk, &all, half, think, is_fast),
        requests: all.len(),
        fitted_requests: fitted.len(),
        phase,
        think,
        stage,
        score: fitted_score,
        unfitted: score(&refined).0,
        parameters,
        replayed,
        fitted: work.disk.clone(),
        filed: filed.clone(),
    })
}

/// What the angles of all requests show of the spindle.
struct Turning {
    period_ns: f64,
    period: Option<Parameter>,
    r: f64,
    steps: Vec<PhaseStep>,
}

impl Turning {
    fn new(given: &Given<'_>, placed: &[Placed]) -> Turning {
        let found = fit(given, placed, Stage::Angles, |_, _| ());
        let mut parameters = found.parameters.iter();
        let period = parameters.find(|one| one.name == "spindle.period_us");
        Turning {
            period_ns: found.disk.mechanism.period_ns,
            period: period.cloned(),
            r: found.r,
            steps: found.stretches.steps(&found.completions_us()),
        }
    }
}

/// Figures of the second half of a trace, replayed in a closed loop on a disk that has all its
/// requests.
///
/// # Panics
///
/// When the specification contradicts itself, or a request is not on the disk.
pub fn score(disk: &DiskSpecification, requests: &[Request], think: Think) -> Score {
    let device = Disk::new(disk, Turn::ZERO).unwrap_or_else(|error| panic!("{error}"));
    let all = placed(device.mechanism().layout(), requests);
    let all = all.unwrap_or_else(|beyond| panic!("{beyond}"));
    let half = all.len() / 2;
    Score::of(&pairs(&all[half..], &replay(disk, &all, think)[half..]))
}

/// Measured and modelled service times.
pub(crate) fn pairs(placed: &[Placed], replayed: &[Replayed]) -> Vec<(f64, f64)> {
    let measured = placed.iter().map(|placed| placed.request.service_us);
    let modelled = replayed.iter().map(|replayed| replayed.service_us);
    measured.zip(modelled).collect()
}

/// What a fit begins with.
pub(crate) struct Given<'g> {
    /// The files' disk, and its arm.
    pub(crate) filed: &'g DiskSpecification,
    pub(crate) mechanism: &'g Mechanism,
    /// The files' disk with the period that the trace shows.
    pub(crate) start: &'g DiskSpecification,
    pub(crate) think: Think,
    /// The phase, if the trace shows one.
    pub(crate) phase: Option<Phase>,
    /// A block on the bus by the files.
    pub(crate) crossing_us: f64,
}

/// Times of a change of the head and of settling that are tried.
const SWITCH_STEPS: u32 = 30;
const SWITCH_STEP_MS: f64 = 0.1;
/// A part of a revolution, and the share of writes whose times lie in it only if these do not
/// wait for the platter: of those that do, such a part has as large a share as it is itself.
const EARLY_WINDOW_REV: f64 = 0.25;
const EARLY_SHARE: f64 = 0.5;
/// The error that a block's time may have, as a share of it.
const SLOPE_ERROR_SHARE: f64 = 0.02;
/// As often the time of a block and the limit of reads from the buffer are found in turn.
const ROUNDS_OF_CROSSING: usize = 3;

/// Fits up to a stage; shows the disk of each stage.
pub(crate) fn fit<'w>(
    given: &'w Given<'w>,
    placed: &'w [Placed],
    last: Stage,
    mut show: impl FnMut(Stage, &DiskSpecification),
) -> Work<'w> {
    let mut work = Work {
        given,
        placed,
        disk: given.start.clone(),
        parameters: Vec::new(),
        means: Vec::new(),
        crossing_us: given.phase.map_or(given.crossing_us, |of| of.transfer_us),
        write_end_us: 0.0,
        limit_us: 0.0,
        r: given.phase.map_or(0.0, |phase| phase.r),
        stretches: Stretches::default(),
    };
    work.limit_us = work.buffer_limit_us(Operation::Read);
    for stage in Stage::ALL.into_iter().filter(|stage| *stage <= last) {
        match stage {
            Stage::Files => {}
            Stage::Constants => {
                gather_overheads(&mut work.disk);
                work.fit_means([true; 3]);
            }
            Stage::Angles => {
                // Which reads the buffer answered is seen by the time of a block, which is
                // seen by these.
                for _ in 0..ROUNDS_OF_CROSSING {
                    work.fit_crossing();
                    work.limit_us = work.buffer_limit_us(Operation::Read);
                }
                work.find_angles();
                work.fit_means([true; 3]);
                work.choose_zero_latency();
            }
            Stage::Cache => {
                work.fit_write_cache();
                work.fit_cache();
                work.fit_constants();
                work.fit_write_room();
                let through = work.disk.write_cache.is_none();
                work.fit_means([true, false, through]);
            }
            Stage::Arrivals => {
                work.fit_arrivals();
                work.choose_zero_latency();
                work.choose_switches();
            }
        }
        show(stage, &work.disk);
    }
    work.parameters.append(&mut work.means);
    work
}

/// A fit on its way.
pub(crate) struct Work<'w> {
    given: &'w Given<'w>,
    placed: &'w [Placed],
    pub(crate) disk: DiskSpecification,
    pub(crate) parameters: Vec<Parameter>,
    /// Constants that are fitted to the mean, until a later step replaces them.
    means: Vec<Parameter>,
    /// A block to the host, in microseconds.
    crossing_us: f64,
    /// From a write's last sector to its completion, less what a read needs.
    write_end_us: f64,
    limit_us: f64,
    pub(crate) r: f64,
    stretches: Stretches,
}

impl Work<'_> {
    fn period_us(&self) -> f64 {
        self.disk.mechanism.period_ns / 1e3
    }

    fn is_write_through(&self) -> bool {
        self.disk.write_cache.is_none()
    }

    fn number(&mut self, name: String, value: f64, error: f64) {
        self.parameters.push(Parameter {
            name,
            value,
            interval: Interval::around(value, error),
        });
    }

    /// A service time without the blocks' time on the bus.
    fn until_sector_us(&self, placed: &Placed) -> f64 {
        placed.request.service_us - f64::from(placed.request.blocks) * self.crossing_us
    }

    pub(crate) fn is_fast(&self, placed: &Placed) -> bool {
        self.until_sector_us(placed) < self.limit_us
    }

    /// Constants of reads from the medium, of reads from the buffer, and of writes: those whose
    /// mean service time is the measured one.
    fn fit_means(&mut self, kinds: [bool; 3]) {
        const ROUNDS: usize = 4;
        let names = ["read_miss", "read_hit", "write"];
        let mut shifts_us = [0.0; 3];
        let mut errors_us = [0.0; 3];
        for _ in 0..ROUNDS {
            let replayed = replay(&self.disk, self.placed, self.given.think);
            let off = |kind: usize| {
                let own = self.placed.iter().zip(&replayed).filter(|(placed, one)| {
                    kind == match (placed.request.operation, one.answer) {
                        (Operation::Write, _) => 2,
                        (_, Answer::Medium) => 0,
                        _ => 1,
                    }
                });
                let off = own.map(|(placed, one)| placed.request.service_us - one.service_us);
                mean(off)
            };
            let found = [0, 1, 2].map(off);
            for kind in (0..3).filter(|kind| kinds[*kind]) {
                let Some((by_us, error_us)) = found[kind] else {
                    continue;
                };
                let overheads = &mut self.disk.overheads;
                let after = match kind {
                    0 => &mut overheads.read_miss,
                    1 => &mut overheads.read_hit,
                    _ => &mut overheads.write,
                };
                shift(after, by_us);
                shifts_us[kind] += by_us;
                errors_us[kind] = error_us;
            }
        }
        self.means.clear();
        for kind in (0..3).filter(|kind| kinds[*kind] && errors_us[*kind] > 0.0) {
            self.means.push(Parameter {
                name: format!("mean.{}_us", names[kind]),
                value: shifts_us[kind],
                interval: Interval::around(shifts_us[kind], errors_us[kind]),
            });
        }
    }

    /// Completions as they were measured.
    fn completions_us(&self) -> Vec<f64> {
        let requests: Vec<Request> = self.placed.iter().map(|placed| placed.request).collect();
        phase::completions_us(&requests, self.given.think)
    }

    /// A block's time on the bus: what a longer read from the buffer takes longer, else a longer
    /// write that is reported early, else what makes the phases of reads from the medium agree.
    fn fit_crossing(&mut self) {
        let phase = self.given.phase;
        let slope = |operation: Operation, limit_us: f64| {
            let is_fast = |placed: &&Placed| {
                placed.request.operation == operation && self.until_sector_us(placed) < limit_us
            };
            let point =
                |placed: &Placed| (f64::from(placed.request.blocks), placed.request.service_us);
            let fast: Vec<(f64, f64)> = self.placed.iter().filter(is_fast).map(point).collect();
            let line = affine::fit(&fast, self.crossing_us);
            line.filter(|(line, errors)| errors[1] < SLOPE_ERROR_SHARE * line.block_us)
        };
        // A bus carries what is written as fast as what is read, unless reads tell otherwise.
        let by_writes = || slope(Operation::Write, self.buffer_limit_us(Operation::Write));
        let (value, error) = match (
            slope(Operation::Read, self.limit_us).or_else(by_writes),
            phase,
        ) {
            (Some((line, errors)), _) => (line.block_us, errors[1]),
            (None, Some(phase)) => (phase.transfer_us, 0.0),
            (None, None) => return,
        };
        self.crossing_us = value;
        self.disk.link.bytes_per_s = bytes_per_s(value);
        if !self.is_write_through() {
            self.disk.link.write_bytes_per_s = Some(bytes_per_s(value));
        }
        self.parameters
            .retain(|one| one.name != "bus.read_block_us");
        self.number("bus.read_block_us".to_owned(), value, error);
    }

    fn find_angles(&mut self) {
        let completions_us = self.completions_us();
        let half_us = self.period_us() / 2.0;
        let references = |operation: Operation| {
            let waited = |(placed, _): &(&Placed, &f64)| {
                placed.request.operation == operation
                    && placed.pieces.len() == 1
                    && self.until_sector_us(placed) > half_us
            };
            let reference = |(placed, completion_us): (&Placed, &f64)| Reference {
                place: *placed.first(),
                completion_us: *completion_us,
                blocks: placed.request.blocks.into(),
            };
            let all = self.placed.iter().zip(&completions_us);
            all.filter(waited)
                .map(reference)
                .collect::<Vec<Reference>>()
        };
        if self.given.phase.is_none() {
            return;
        }
        let layout = &self.given.filed.mechanism.layout;
        let (zones, surfaces) = (layout.zones.len(), layout.surfaces);
        let reads = references(Operation::Read);
        let start = (self.period_us(), self.crossing_us);
        let found = angles::find(&reads, zones, surfaces, start);
        let writes = references(Operation::Write);
        self.r = found.r;
        self.stretches = found.stretches;
        self.disk.mechanism.period_ns = found.period_us * 1e3;
        put_angles(&mut self.disk, &found.angles);
        self.parameters.extend(found.parameters);
        if self.is_write_through() {
            self.find_write_end(&found.angles, &reads, &writes);
        }
    }

    /// What a write needs from its last sector to its completion, less what a read does: the
    /// difference of their mean directions.
    fn find_write_end(&mut self, angles: &Angles, reads: &[Reference], writes: &[Reference]) {
        let (period_us, crossing_us) = (self.period_us(), self.crossing_us);
        let begun = reads.iter().map(|read| {
            read.passed_rev(period_us, crossing_us)
                - angles.of(&read.place)
                - self.stretches.turned_at(read.completion_us)
        });
        let ended = writes.iter().map(|write| {
            let sectors = write.blocks / f64::from(write.place.sectors_per_track);
            write.completion_us / period_us
                - angles.of(&write.place)
                - sectors
                - self.stretches.turned_at(write.completion_us)
        });
        let (Some(read), Some(write)) = (scan_mean_direction(begun), scan_mean_direction(ended))
        else {
            return;
        };
        let later_us = wrapped(write.0 - read.0) * period_us;
        let error_us = (-2.0 * write.1.ln()).max(0.0).sqrt() / std::f64::consts::TAU * period_us
            / (writes.len() as f64).sqrt();
        self.write_end_us = later_us;
        let sector_us = period_us / mean_sectors_per_track(&self.disk);
        self.disk.overheads.write_completion_ms = ms((later_us + sector_us).max(0.0));
        self.number("bus.write_end_us".to_owned(), later_us, error_us);
    }

    /// Between reads from the buffer and those that waited for the platter hardly any time
    /// was measured: the middle of the emptiest stretch below half a revolution.
    fn buffer_limit_us(&self, operation: Operation) -> f64 {
        const BINS: usize = 200;
        let half_us = self.period_us() / 2.0;
        let mut bins = [0usize; BINS];
        for placed in self
            .placed
            .iter()
            .filter(|placed| placed.request.operation == operation)
        {
            let bin = (self.until_sector_us(placed) / half_us * BINS as f64).max(0.0) as usize;
            if let Some(count) = bins.get_mut(bin) {
                *count += 1;
            }
        }
        // Behind the most frequent time: that of the buffer, if there is one.
        let mode = bins
            .iter()
            .enumerate()
            .max_by_key(|bin| bin.1)
            .map_or(0, |bin| bin.0);
        const WIDTH: usize = 6;
        let within = |from: usize| bins[from..from + WIDTH].iter().sum::<usize>();
        let emptiest = (mode..BINS - WIDTH).min_by_key(|&from| within(from));
        // Reads that all wait for the platter come evenly over a revolution: no stretch of it
        // is empty, and none of them is from the buffer.
        let reads = self
            .placed
            .iter()
            .filter(|placed| placed.request.operation == operation);
        let evenly = reads.count() * WIDTH / (2 * BINS);
        match emptiest {
            Some(from) if 5 * within(from) <= evenly => {
                (from + WIDTH / 2) as f64 / BINS as f64 * half_us
            }
            _ => 0.0,
        }
    }

    /// Requests that a replay meets.
    fn met(&self, disk: &DiskSpecification) -> usize {
        let replayed = replay(disk, self.placed, self.given.think);
        let pairs = pairs(self.placed, &replayed);
        let met = |pair: &&(f64, f64)| (pair.0 - pair.1).abs() <= MET_US;
        pairs.iter().filter(met).count()
    }

    /// A number of requests by which two replays may differ by chance.
    fn chance(&self) -> usize {
        (self.placed.len() as f64).sqrt() as usize
    }

    /// Times of a change of the head, and of a write's settling, by the requests of several
    /// tracks: whether those meet the next track's first sector, or miss it by a revolution.
    /// Seeks of writes with their settling stay as long as they are.
    fn choose_switches(&mut self) {
        let steps = || (0..=SWITCH_STEPS).map(|step| f64::from(step) * SWITCH_STEP_MS);
        let heads = steps().map(|head_switch_ms| {
            let mut disk = self.disk.clone();
            disk.mechanism.head_switch_ms = head_switch_ms;
            disk
        });
        self.choose(heads.collect(), "switch.head_ms", |disk| {
            disk.mechanism.head_switch_ms
        });
        if !self.is_write_through() {
            return;
        }
        let settles = steps().map(|settle_ms| {
            let mut disk = self.disk.clone();
            let more_ms = settle_ms - disk.mechanism.write_settle_ms;
            disk.mechanism.write_settle_ms = settle_ms;
            if let Some(SeekSpecification::Table { points }) = &mut disk.mechanism.write_seek {
                for (_, time_ms) in points {
                    *time_ms = ms((*time_ms - more_ms).max(0.0) * 1e3);
                }
            }
            disk
        });
        self.choose(settles.collect(), "switch.write_settle_ms", |disk| {
            disk.mechanism.write_settle_ms
        });
    }

    /// Takes the middle of the disks that meet most requests, if these are more than by chance.
    fn choose(
        &mut self,
        disks: Vec<DiskSpecification>,
        name: &str,
        value: impl Fn(&DiskSpecification) -> f64,
    ) {
        let found: Vec<usize> = disks.iter().map(|disk| self.met(disk)).collect();
        let most = found.iter().copied().max().unwrap_or(0);
        if most <= self.met(&self.disk) + self.chance() {
            return;
        }
        let as_good: Vec<usize> = (0..disks.len())
            .filter(|index| found[*index] + self.chance() / 4 >= most)
            .collect();
        let ends = [as_good[0], as_good[as_good.len() - 1]];
        self.disk = disks[as_good[as_good.len() / 2]].clone();
        self.parameters.push(Parameter {
            name: name.to_owned(),
            value: value(&self.disk),
            interval: Interval {
                low: value(&disks[ends[0]]),
                high: value(&disks[ends[1]]),
            },
        });
    }

    /// Whether reads and writes begin anywhere inside their sectors of a track, as more requests
    /// say than the files'.
    fn choose_zero_latency(&mut self) {
        let mut best = (self.met(&self.disk), self.disk.clone());
        let chance = self.chance();
        for (reads, writes) in [(false, false), (true, false), (false, true), (true, true)] {
            let mut other = self.disk.clone();
            other.mechanism.zero_latency_reads = reads;
            other.mechanism.zero_latency_writes = writes;
            let met = self.met(&other);
            if met > best.0 + chance {
                best = (met, other);
            }
        }
        self.disk = best.1;
        let mechanism = &self.disk.mechanism;
        let chosen = [
            ("zero_latency.reads", mechanism.zero_latency_reads),
            ("zero_latency.writes", mechanism.zero_latency_writes),
        ];
        self.parameters
            .retain(|one| !one.name.starts_with("zero_latency."));
        for (name, value) in chosen {
            let value = f64::from(value);
            self.parameters.push(Parameter {
                name: name.to_owned(),
                value,
                interval: Interval::exact(value),
            });
        }
    }

    /// Whether the disk reports writes before they are on the medium: those that wait for the
    /// platter are spread over a revolution at least.
    fn fit_write_cache(&mut self) {
        let writes = self.placed.iter();
        let writes = writes.filter(|one| one.request.operation == Operation::Write);
        let mut times_us: Vec<f64> = writes.map(|write| self.until_sector_us(write)).collect();
        if times_us.is_empty() {
            return;
        }
        times_us.sort_by(f64::total_cmp);
        let window_us = EARLY_WINDOW_REV * self.period_us();
        let within = |(index, from_us): (usize, &f64)| {
            times_us.partition_point(|time_us| *time_us <= from_us + window_us) - index
        };
        let within = times_us.iter().enumerate().map(within).max().unwrap_or(0);
        let is_early = within as f64 > EARLY_SHARE * times_us.len() as f64;
        match (&mut self.disk.write_cache, is_early) {
            (Some(cache), true) => cache.appending_only = false,
            (cache @ None, true) => {
                let room = self.disk.read_cache.segment_sectors.max(1);
                *cache = Some(WriteCacheSpecification {
                    most_sectors: room.into(),
                    most_extents: 1,
                    high_water_share: 0.0,
                    idle_ms: 0.0,
                    most_destaged_sectors: room,
                    read_hits: true,
                    appending_only: false,
                });
            }
            (cache, false) => *cache = None,
        }
        let value = f64::from(is_early);
        self.parameters.push(Parameter {
            name: "cache.early_writes".to_owned(),
            value,
            interval: Interval::exact(value),
        });
    }

    fn fit_cache(&mut self) {
        let layout = &self.disk.mechanism.layout;
        let zones = layout.zones.iter().map(|zone| zone.sectors_per_track);
        let extents = layout.extents.iter().map(|of| of.sectors_per_track);
        let track = zones.chain(extents).max().unwrap_or(1);
        let is_fast = |placed: &Placed| self.is_fast(placed);
        let judge = Judge {
            disk: &self.disk,
            placed: self.placed,
            think: self.given.think,
            is_fast: &is_fast,
        };
        let chosen = judge.best(&self.given.filed.read_cache, track);
        self.parameters.extend(cache_parameters(&chosen));
        self.disk.read_cache = chosen.rule;
    }

    /// Constants of what does not wait for the platter.
    fn fit_constants(&mut self) {
        let mut hits: [Vec<(f64, f64)>; 4] = Default::default();
        let mut writes: [Vec<(f64, f64)>; 4] = Default::default();
        let is_write_through = self.is_write_through();
        let mut last: Option<Request> = None;
        follow(
            &self.disk,
            self.placed,
            self.given.think,
            |placed, served| {
                let request = &placed.request;
                let point = (f64::from(request.blocks), request.service_us);
                let before = before(last.as_ref(), request, served) as usize;
                match request.operation {
                    Operation::Read if self.is_fast(placed) => hits[before].push(point),
                    // A write may wait until the one before it is on the medium.
                    Operation::Write if !is_write_through && !served.seen.arm_is_busy => {
                        writes[before].push(point);
                    }
                    _ => {}
                }
                last = Some(*request);
            },
        );
        if let Some(after) = self.constants("buffer", &hits, self.crossing_us) {
            self.disk.overheads.read_hit = after;
        }
        let all: Vec<(f64, f64)> = writes.iter().flatten().copied().collect();
        let line = affine::fit(&all, self.crossing_us);
        let mut block_us = self.crossing_us;
        if let Some((line, errors)) =
            line.filter(|(line, errors)| errors[1] < SLOPE_ERROR_SHARE * line.block_us)
        {
            block_us = line.block_us;
            self.disk.link.write_bytes_per_s = Some(bytes_per_s(block_us));
            self.number("bus.write_block_us".to_owned(), block_us, errors[1]);
        }
        if let Some(after) = self.constants("early_write", &writes, block_us) {
            self.disk.overheads.write = after;
            self.disk.overheads.write_completion_ms = 0.0;
        }
    }

    /// How many runs of sectors the buffer takes of writes before one has to wait: as many as
    /// most writes agree with.
    fn fit_write_room(&mut self) {
        const EXTENTS: [u32; 4] = [1, 2, 4, 16];
        let Some(filed) = self.disk.write_cache.clone() else {
            return;
        };
        let met = |disk: &DiskSpecification| {
            let mut met = 0usize;
            follow(disk, self.placed, self.given.think, |placed, served| {
                let off_us = (served.service_us - placed.request.service_us).abs();
                let is_write = placed.request.operation == Operation::Write;
                met += usize::from(is_write && off_us <= MET_US);
            });
            met
        };
        let mut best = (met(&self.disk), filed.clone());
        for extents in EXTENTS {
            let room = u64::from(extents) * u64::from(filed.most_destaged_sectors);
            let other = WriteCacheSpecification {
                most_extents: extents,
                most_sectors: room.max(filed.most_sectors),
                ..filed.clone()
            };
            let disk = DiskSpecification {
                write_cache: Some(other.clone()),
                ..self.disk.clone()
            };
            let met = met(&disk);
            if met > best.0 {
                best = (met, other);
            }
        }
        let value = f64::from(best.1.most_extents);
        self.parameters.push(Parameter {
            name: "cache.write_extents".to_owned(),
            value,
            interval: Interval::exact(value),
        });
        self.disk.write_cache = Some(best.1);
    }

    /// Constants by what was before, of requests whose blocks take so long; absent where
    /// there are too few. Circumstances that hardly occur have the constant of all.
    fn constants(
        &mut self,
        kind: &str,
        points: &[Vec<(f64, f64)>; 4],
        block_us: f64,
    ) -> Option<After> {
        let all: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
        let (common_us, _) = affine::fit_constant(&all, block_us)?;
        let mut found = [None; 4];
        for (before, name) in BEFORE {
            let own = affine::fit_constant(&points[before as usize], block_us);
            found[before as usize] = own.map(|own| ms(own.0.max(0.0)));
            if let Some((fixed_us, error_us)) = own {
                self.number(format!("{kind}.{name}.fixed_us"), fixed_us, error_us);
            }
        }
        let common_ms = ms(common_us.max(0.0));
        Some(After {
            after_read_ms: found[Before::Read as usize].unwrap_or(common_ms),
            after_write_ms: found[Before::Write as usize].unwrap_or(common_ms),
            sequential_ms: found[Before::Sequential as usize],
            reading_ahead_ms: found[Before::ReadingAhead as usize],
        })
    }

    /// When the arm arrives: what makes the requests that waited for the platter likeliest.
    fn fit_arrivals(&mut self) {
        let (reads, writes) = self.seen();
        let read = arrival::fit(&reads, self.period_us());
        let write = match self.is_write_through() && !writes.is_empty() {
            true => Some(arrival::fit(&writes, self.period_us())),
            false => None,
        };
        let filed = (self.given.filed, self.given.mechanism);
        put_arrivals(&mut self.disk, filed, (&read, write.as_ref()));
        self.means.clear();
        self.parameters.extend(arrival_parameters("read", &read));
        if let Some(write) = &write {
            self.parameters.extend(arrival_parameters("write", write));
        }
    }

    /// Reads and writes that waited for the platter, with the arm where the device had it.
    fn seen(&self) -> (Vec<Seen>, Vec<Seen>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut arm = self.given.mechanism.clone();
        let mut last: Option<Operation> = None;
        follow(
            &self.disk,
            self.placed,
            self.given.think,
            |placed, served| {
                let request = &placed.request;
                let after_write = last == Some(Operation::Write);
                last = Some(request.operation);
                let is_write = request.operation == Operation::Write;
                let Some(circumstances) = circumstances(&mut arm, placed, served, after_write)
                else {
                    return;
                };
                if is_write && self.is_write_through() {
                    let sectors =
                        f64::from(request.blocks) / f64::from(placed.first().sectors_per_track);
                    let platter_us = sectors * self.period_us() + self.write_end_us;
                    writes.push(Seen {
                        circumstances,
                        until_sector_us: request.service_us - platter_us,
                    });
                } else if !is_write && !self.is_fast(placed) {
                    reads.push(Seen {
                        circumstances,
                        until_sector_us: self.until_sector_us(placed),
                    });
                }
            },
        );
        (reads, writes)
    }
}

/// What the arrival of a request depends on, if the device moved its arm for all of it and at
/// once. `arm` has the files' seeks.
fn circumstances(
    arm: &mut Mechanism,
    placed: &Placed,
    served: &Served,
    after_write: bool,
) -> Option<Circumstances> {
    let access = served.seen.access.filter(|access| access.is_one_run)?;
    if served.seen.arm_is_busy || served.seen.answer != Answer::Medium {
        return None;
    }
    let is_write = placed.request.operation == Operation::Write;
    let (cylinder, head) = access.from;
    arm.place_arm(cylinder, head);
    Some(Circumstances {
        filed_us: us(arm.way_to(&access.to, is_write)),
        distance_cylinders: cylinder.abs_diff(access.to.cylinder),
        is_inward: access.to.cylinder > cylinder,
        switches_head: access.to.head != head,
        after_write,
        is_reading_ahead: served.seen.reads_ahead,
        blocks: if is_write { placed.request.blocks } else { 0 },
    })
}

/// What the device's firmware goes by.
fn before(last: Option<&Request>, request: &Request, served: &Served) -> Before {
    let follows = |last: &Request| {
        last.operation == request.operation
            && last.first_block + u64::from(last.blocks) == request.first_block
    };
    match last {
        _ if served.seen.reads_ahead => Before::ReadingAhead,
        Some(last) if follows(last) => Before::Sequential,
        Some(last) if last.operation == Operation::Write => Before::Write,
        _ => Before::Read,
    }
}

/// A mean and its standard error; nothing of none.
fn mean(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0usize);
    for value in values {
        (sum, squares, count) = (sum + value, squares + value * value, count + 1);
    }
    let n = count as f64;
    let mean = sum / n;
    (count > 1).then(|| (mean, ((squares / n - mean * mean).max(0.0) / n).sqrt()))
}

fn cache_parameters(chosen: &Chosen) -> Vec<Parameter> {
    let rule = &chosen.rule;
    let exact = |name: &str, value: f64| Parameter {
        name: format!("cache.{name}"),
        value,
        interval: Interval::exact(value),
    };
    let flag = |name: &str, value: bool| exact(name, f64::from(value));
    let mut all = vec![
        exact("segments", rule.segments.into()),
        flag("keeps_behind", rule.after_read == AfterRead::All),
        flag("write_clears_all", rule.after_write == AfterWrite::DropsAll),
        flag("keeps_written", rule.keep_written),
        flag(
            "only_contiguous",
            rule.read_ahead_after == ReadAheadAfter::SequentialRead,
        ),
        flag("goes_on", rule.read_ahead_after_hit),
        flag("keeps_passing", rule.keep_passing_sectors),
    ];
    let (tracks, cylinders, is_limited) = match rule.read_ahead {
        ReadAhead::None | ReadAhead::Limit => (None, None, true),
        ReadAhead::TrackEnd => (Some(0.0), None, true),
        ReadAhead::CylinderEnd => (None, Some(1.0), true),
        ReadAhead::WholeTrack => (Some(1.0), None, false),
        ReadAhead::NextTrackEnd => (Some(2.0), None, false),
    };
    all.extend(tracks.map(|tracks| exact("tracks", tracks)));
    all.extend(cylinders.map(|cylinders| exact("cylinders", cylinders)));
    let blocks = match rule.read_ahead {
        ReadAhead::None => 0,
        _ => rule.most_ahead_sectors.unwrap_or(0),
    };
    if is_limited {
        all.push(Parameter {
            name: "cache.read_ahead_blocks".to_owned(),
            value: blocks.into(),
            interval: Interval {
                low: chosen.limits.0.into(),
                high: chosen.limits.1.into(),
            },
        });
    }
    all
}

fn arrival_parameters(kind: &str, fitted: &FittedArrival) -> Vec<Parameter> {
    let all = NAMES
        .iter()
        .zip(fitted.arrival.weights_us)
        .zip(fitted.errors_us);
    let shown = all.filter(|(_, error)| *error > 0.0);
    shown
        .map(|((name, value), error)| Parameter {
            name: format!("arrival.{kind}.{name}"),
            value,
            interval: Interval::around(value, error),
        })
        .collect()
}
