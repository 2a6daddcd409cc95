//! Calibration procedure: fits a drive in stages, each of which builds on the previous ones.

mod arrivals;
mod buffer;
mod constants;
mod platter;

use crate::affine::{self, PREDECESSOR_KEYS};
use crate::angles::{self, Angles, Reference, Stretches, scan_mean_direction, wrapped};
use crate::arrival::{self, FittedArrival, ObservedArrival, SeekCircumstances, TERM_NAMES};
use crate::entry;
use crate::guard::{self, PREDICTED_US_MAX, Stage};
use crate::parameter::Parameter;
use crate::phase_step::PhaseStep;
use crate::places::{Beyond, Placed, place_all};
use crate::proposal::{
    bytes_per_s, mean_sectors_per_track, merge_overheads, ms, put_angles, put_arrivals,
    shift_overhead,
};
use crate::remains::{Remains, classify_errors};
use crate::replay::{Replayed, ServedRequest, replay, replay_each, us};
use crate::rules::{ChosenReadCache, ReadCacheJudge};
use crate::score::Score;
use diskperf_device::disk::cache::{
    KeepAfterRead, KeepAfterWrite, ReadAheadScope, ReadAheadTrigger, WriteCacheSpecification,
};
use diskperf_device::disk::device::{AnswerSource, Disk, DiskSpecification};
use diskperf_device::disk::mechanism::Mechanism;
use diskperf_device::disk::overheads::{OverheadByState, PrecedingState};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_diskspecs::phase::{self, Assumed, Phase, Think};
use diskperf_diskspecs::trace::{Operation, Request};
use diskperf_diskspecs::{Drive, FastWrite};

/// Options of a calibration, mostly for checks of the procedure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// First part of the trace to fit to, as a share; at most the first half.
    pub fitted_share: f64,
    /// Forced position of the pauses; `None` determines it from the trace.
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

/// Reason why a drive cannot be calibrated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalibrationError {
    /// Request that exceeds the drive's capacity.
    Beyond(Beyond),
    /// Drive files that specify a disk outside the capabilities of the model.
    Drive {
        /// Description of the problem with the drive's files.
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

/// Result of a calibration: a disk fitted to part of its trace, with the replay of the whole trace.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Number of requests in the trace.
    pub requests: usize,
    /// Number of requests in the fitted part of the trace.
    pub fitted_requests: usize,
    /// Rotational phase in the fitted part; `None` if hardly any two requests share a cylinder.
    pub phase: Option<Phase>,
    /// Position of the pauses in the trace.
    pub think: Think,
    /// Rotation period at the speed given in the files, in microseconds.
    pub nominal_period_us: f64,
    /// Disk as specified by the drive's files.
    pub filed: DiskSpecification,
    /// Fitted disk. The score and the replay were made with it.
    pub fitted: DiskSpecification,
    /// Last stage of the fit that was kept. Later stages were worse on held-out requests.
    pub stage: Stage,
    /// Fitted parameters with their intervals.
    pub parameters: Vec<Parameter>,
    /// Score of the fitted disk on the second half of the trace.
    pub score: Score,
    /// Score of the files' disk on the second half, with only the pauses and the period fitted.
    pub unfitted: Score,
    /// Replay of the whole trace, by request.
    pub replayed: Vec<Replayed>,
    /// Agreement (R) of the fitted requests that waited for the platter with the angles found; 1 if
    /// all agree.
    pub r: f64,
    /// Phase jumps among the fitted requests.
    pub phase_steps: Vec<PhaseStep>,
    /// Number of reads in the second half that the buffer answered: on the real drive, judged by
    /// their times, and in the model.
    pub buffer_reads: (usize, usize),
    /// Requests of the second half whose error exceeds half a millisecond, by cause.
    pub remains: Remains,
}

/// Fits a drive to the first part of its trace and replays the whole trace.
///
/// # Errors
///
/// [`CalibrationError`]: a request beyond the drive's capacity, or files that specify no valid
/// disk.
pub fn calibrate(
    drive: &Drive,
    requests: &[Request],
    options: Options,
) -> Result<Calibration, CalibrationError> {
    let filed = entry::specification(drive)?;
    let device = Disk::new(&filed, RotationAngle::ZERO);
    let device = device.map_err(|error| CalibrationError::Drive {
        why: error.to_string(),
    })?;
    let mechanism = device.mechanism();
    let all = place_all(mechanism.layout(), requests).map_err(CalibrationError::Beyond)?;
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
    let given = FitInput {
        filed: &filed,
        mechanism,
        start: &start,
        think,
        phase: lock,
        crossing_us: drive.read_sector_ms() * 1e3,
    };
    // The period that a scan finds is refined by the angles, whatever else is kept of the fit.
    let turning = lock.map(|_| RotationFit::new(&given, fitted));
    let mut refined = start.clone();
    if let Some(turning) = &turning {
        refined.mechanism.period_ns = turning.period_ns;
    }
    let given = FitInput {
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
        .filter(|one| matches!(one.answer, AnswerSource::Buffer | AnswerSource::ReadAhead));
    Ok(Calibration {
        nominal_period_us: nominal_us,
        r: turning.as_ref().map_or(work.r, |turning| turning.r),
        phase_steps: turning.map_or_else(Vec::new, |turning| turning.steps),
        buffer_reads: (held.count(), modelled.count()),
        remains: classify_errors(&work.disk, &all, half, think, is_fast),
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

/// Rotation of the spindle as the angles of all requests show it.
struct RotationFit {
    period_ns: f64,
    period: Option<Parameter>,
    r: f64,
    steps: Vec<PhaseStep>,
}

impl RotationFit {
    fn new(given: &FitInput<'_>, placed: &[Placed]) -> RotationFit {
        let found = fit(given, placed, Stage::Angles, |_, _| ());
        let mut parameters = found.parameters.iter();
        let period = parameters.find(|one| one.name == "spindle.period_us");
        RotationFit {
            period_ns: found.disk.mechanism.period_ns,
            period: period.cloned(),
            r: found.r,
            steps: found.stretches.steps(&found.completions_us()),
        }
    }
}

/// Scores the second half of a trace, replayed in a closed loop on a disk that contains all
/// requested blocks.
///
/// # Panics
///
/// If the specification contradicts itself, or a request exceeds the disk's capacity.
pub fn score(disk: &DiskSpecification, requests: &[Request], think: Think) -> Score {
    let device = Disk::new(disk, RotationAngle::ZERO).unwrap_or_else(|error| panic!("{error}"));
    let all = place_all(device.mechanism().layout(), requests);
    let all = all.unwrap_or_else(|beyond| panic!("{beyond}"));
    let half = all.len() / 2;
    Score::of(&pairs(&all[half..], &replay(disk, &all, think)[half..]))
}

/// Returns pairs of measured and modelled service times.
pub(crate) fn pairs(placed: &[Placed], replayed: &[Replayed]) -> Vec<(f64, f64)> {
    let measured = placed.iter().map(|placed| placed.request.service_us);
    let modelled = replayed.iter().map(|replayed| replayed.service_us);
    measured.zip(modelled).collect()
}

/// Inputs of a fit: disk specifications, pause position and rotational phase.
pub(crate) struct FitInput<'g> {
    /// Disk and actuator as specified by the files.
    pub(crate) filed: &'g DiskSpecification,
    pub(crate) mechanism: &'g Mechanism,
    /// Disk of the files with the rotation period of the trace.
    pub(crate) start: &'g DiskSpecification,
    pub(crate) think: Think,
    /// Rotational phase; `None` if the trace does not show one.
    pub(crate) phase: Option<Phase>,
    /// Transfer time of a block on the bus according to the files, in microseconds.
    pub(crate) crossing_us: f64,
}

/// Relative error that the transfer time of a block may have.
const SLOPE_ERROR_SHARE: f64 = 0.02;
/// Number of rounds that alternate between the transfer time of a block and the time limit of
/// buffer reads.
const CROSSING_ROUNDS: usize = 3;

/// Fits up to the given stage and passes the disk of each stage to `show`.
pub(crate) fn fit<'w>(
    given: &'w FitInput<'w>,
    placed: &'w [Placed],
    last: Stage,
    mut show: impl FnMut(Stage, &DiskSpecification),
) -> FitState<'w> {
    let mut work = FitState {
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
                merge_overheads(&mut work.disk);
                work.fit_means([true; 3]);
            }
            Stage::Angles => {
                // Which reads the buffer answered is seen by the time of a block, which is
                // seen by these.
                for _ in 0..CROSSING_ROUNDS {
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

/// State of a fit in progress, with the disk and the parameters fitted so far.
pub(crate) struct FitState<'w> {
    given: &'w FitInput<'w>,
    placed: &'w [Placed],
    pub(crate) disk: DiskSpecification,
    pub(crate) parameters: Vec<Parameter>,
    /// Constants fitted to the mean service time, until a later stage replaces them.
    means: Vec<Parameter>,
    /// Transfer time of a block to the host, in microseconds.
    crossing_us: f64,
    /// Time from a write's last sector to its completion, minus that of a read, in microseconds.
    write_end_us: f64,
    limit_us: f64,
    pub(crate) r: f64,
    stretches: Stretches,
}

impl FitState<'_> {
    fn period_us(&self) -> f64 {
        self.disk.mechanism.period_ns / 1e3
    }

    fn is_write_through(&self) -> bool {
        self.disk.write_cache.is_none()
    }

    fn put_parameter(&mut self, name: impl Into<String>, value: f64, error: f64) {
        self.parameters.push(Parameter::around(name, value, error));
    }

    fn put_chosen_parameter(&mut self, name: &str, value: impl Into<f64>) {
        self.parameters.push(Parameter::exact(name, value.into()));
    }

    /// Returns the service time without the bus transfer of the blocks, in microseconds.
    fn time_to_sector_us(&self, placed: &Placed) -> f64 {
        placed.request.service_us - f64::from(placed.request.blocks) * self.crossing_us
    }

    pub(crate) fn is_fast(&self, placed: &Placed) -> bool {
        self.time_to_sector_us(placed) < self.limit_us
    }

    fn completions_us(&self) -> Vec<f64> {
        let requests: Vec<Request> = self.placed.iter().map(|placed| placed.request).collect();
        phase::completions_us(&requests, self.given.think)
    }

    /// Returns the number of requests that a replay predicts within the tolerance.
    fn count_predicted(&self, disk: &DiskSpecification) -> usize {
        let replayed = replay(disk, self.placed, self.given.think);
        let pairs = pairs(self.placed, &replayed);
        let met = |pair: &&(f64, f64)| (pair.0 - pair.1).abs() <= PREDICTED_US_MAX;
        pairs.iter().filter(met).count()
    }

    /// Returns the difference in predicted requests that two replays may have by chance.
    fn chance_predicted(&self) -> usize {
        (self.placed.len() as f64).sqrt() as usize
    }

    /// Selects the middle of the disks that predict the most requests, if the gain exceeds chance.
    fn choose(
        &mut self,
        disks: Vec<DiskSpecification>,
        name: &str,
        value: impl Fn(&DiskSpecification) -> f64,
    ) {
        let found: Vec<usize> = disks
            .iter()
            .map(|disk| self.count_predicted(disk))
            .collect();
        let most = found.iter().copied().max().unwrap_or(0);
        if most <= self.count_predicted(&self.disk) + self.chance_predicted() {
            return;
        }
        let as_good: Vec<usize> = (0..disks.len())
            .filter(|index| found[*index] + self.chance_predicted() / 4 >= most)
            .collect();
        let ends = [as_good[0], as_good[as_good.len() - 1]];
        self.disk = disks[as_good[as_good.len() / 2]].clone();
        let ends = (value(&disks[ends[0]]), value(&disks[ends[1]]));
        let chosen = Parameter::within(name, value(&self.disk), ends);
        self.parameters.push(chosen);
    }
}
