//! Calibration procedure: fits a drive in stages, each of which builds on the previous ones.

mod arrivals;
mod buffer;
mod constants;
mod platter;

use crate::affine::{self, PREDECESSOR_KEYS};
use crate::angles::{
    self, AngleSource, PhaseSegments, PlatterReference, ReferenceTiming, densest_direction,
    wrap_revolutions,
};
use crate::arrival::{self, FittedArrival, ObservedArrival, SeekCircumstances, TERM_NAMES};
use crate::entry;
use crate::guard::{self, FitStage};
use crate::parameter::FittedParameter;
use crate::phase_step::PhaseStep;
use crate::places::{LocatedRequest, RequestBeyondCapacity, locate_requests};
use crate::proposal::{
    bytes_per_s, merge_overheads, propose_angles, propose_common_arrivals, propose_read_arrivals,
    propose_write_arrivals, rounded_ms, shift_overhead,
};
use crate::remains::{RemainingErrors, classify_errors};
use crate::replay::{ReplayedRequest, ServedRequest, replay_each, replay_requests, us_from_time};
use crate::rules::{ChosenReadCache, ReadCacheSearch};
use crate::score::{Predictions, Score};
use diskperf_device::disk::cache::{
    KeepAfterRead, KeepAfterWrite, ReadAheadScope, ReadAheadTrigger, WriteCacheSpecification,
};
use diskperf_device::disk::device::{AnswerSource, Disk, DiskSpecification};
use diskperf_device::disk::mechanism::Mechanism;
use diskperf_device::disk::overheads::{OverheadByState, PrecedingState};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_diskspecs::phase::{self, PhaseAssumptions, RotationalPhase, ThinkPosition};
use diskperf_diskspecs::trace::{ValidationOperation, ValidationRequest};
use diskperf_diskspecs::{FastWriteSupport, SpecifiedDrive};

/// Options of a calibration, mostly for checks of the procedure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitOptions {
    /// First part of the trace to fit to, as a share; at most the first half.
    pub fitted_share: f64,
    /// Forced position of the pauses; `None` determines it from the trace.
    pub think_position: Option<ThinkPosition>,
}

impl Default for FitOptions {
    fn default() -> FitOptions {
        FitOptions {
            fitted_share: 0.5,
            think_position: None,
        }
    }
}

/// Reason why a drive cannot be calibrated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalibrationError {
    /// Request that exceeds the drive's capacity.
    BeyondCapacity(RequestBeyondCapacity),
    /// Drive files that specify a disk outside the capabilities of the model.
    InvalidDrive {
        /// Description of the problem with the drive's files.
        why: String,
    },
}

impl std::fmt::Display for CalibrationError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CalibrationError::BeyondCapacity(beyond) => beyond.fmt(out),
            CalibrationError::InvalidDrive { why } => {
                write!(out, "the drive cannot be modelled: {why}")
            }
        }
    }
}

impl std::error::Error for CalibrationError {}

/// Result of a calibration: a disk fitted to part of its trace, with the replay of the whole trace.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Number of requests in the trace.
    pub request_count: usize,
    /// Number of requests in the fitted part of the trace.
    pub fitted_request_count: usize,
    /// Rotational phase in the fitted part; `None` if hardly any two requests share a cylinder.
    pub phase: Option<RotationalPhase>,
    /// Position of the pauses in the trace.
    pub think_position: ThinkPosition,
    /// Rotation period at the speed given in the files, in microseconds.
    pub nominal_period_us: f64,
    /// Disk as specified by the drive's files.
    pub specified_disk: DiskSpecification,
    /// Fitted disk. The score and the replay were made with it.
    pub fitted_disk: DiskSpecification,
    /// Last stage of the fit that was kept. Later stages were worse on held-out requests.
    pub last_stage: FitStage,
    /// Fitted parameters with their intervals.
    pub parameters: Vec<FittedParameter>,
    /// Score of the fitted disk on the second half of the trace.
    pub fitted_score: Score,
    /// Score of the files' disk on the second half, with only the pauses and the period fitted.
    pub specified_score: Score,
    /// Replay of the whole trace, by request.
    pub replayed_requests: Vec<ReplayedRequest>,
    /// Agreement (R) of the fitted requests that waited for the platter with the angles found; 1 if
    /// all agree.
    pub agreement: f64,
    /// Phase jumps among the fitted requests.
    pub phase_steps: Vec<PhaseStep>,
    /// Number of reads in the second half that the buffer answered: on the real drive, judged by
    /// their times, and in the model.
    pub buffer_read_counts: (usize, usize),
    /// Requests of the second half whose error exceeds half a millisecond, by cause.
    pub remaining_errors: RemainingErrors,
}

/// Fits a drive to the first part of its trace and replays the whole trace.
///
/// # Errors
///
/// [`CalibrationError`]: a request beyond the drive's capacity, or files that specify no valid
/// disk.
pub fn calibrate(
    drive: &SpecifiedDrive,
    requests: &[ValidationRequest],
    options: FitOptions,
) -> Result<Calibration, CalibrationError> {
    let filed = entry::drive_specification(drive)?;
    let device = Disk::new(&filed, RotationAngle::ZERO);
    let device = device.map_err(|error| CalibrationError::InvalidDrive {
        why: error.to_string(),
    })?;
    let mechanism = device.mechanism();
    let all =
        locate_requests(mechanism.layout(), requests).map_err(CalibrationError::BeyondCapacity)?;
    let half = all.len() / 2;
    let share = options.fitted_share.clamp(0.0, 0.5);
    let fitted = &all[..((all.len() as f64 * share) as usize).min(half)];
    let nominal_us = filed.mechanism.period_ns / 1e3;
    let firmware = drive.firmware.unwrap_or_default();
    let assumed = PhaseAssumptions {
        period_us: nominal_us,
        transfer_us: drive.read_sector_ms() * 1e3,
        has_write_through: firmware.buffer.fast_write == FastWriteSupport::None,
    };
    let phase = phase::find_phase(&drive.model.layout, &requests[..fitted.len()], &assumed);
    let seen = phase.and_then(|phase| phase.think_position);
    // Without a phase the pauses are where the form's reader has them.
    let think = options
        .think_position
        .or(seen)
        .unwrap_or(ThinkPosition::AfterRequest);
    let lock = phase.filter(|_| {
        seen.is_some()
            && options
                .think_position
                .is_none_or(|forced| Some(forced) == seen)
    });
    let mut start = filed.clone();
    if let Some(phase) = phase.filter(|_| seen.is_some()) {
        start.mechanism.period_ns = phase.period_us * 1e3;
    }
    let given = FitInput {
        specified_disk: &filed,
        mechanism,
        initial_disk: &start,
        think_position: think,
        phase: lock,
        link_block_us: drive.read_sector_ms() * 1e3,
    };
    // The period that a scan finds is refined by the angles, whatever else is kept of the fit.
    let turning = lock.map(|_| RotationFit::new(&given, fitted));
    let mut refined = start.clone();
    if let Some(turning) = &turning {
        refined.mechanism.period_ns = turning.period_ns;
    }
    let given = FitInput {
        initial_disk: &refined,
        ..given
    };
    let stage = guard::select_stage(&given, fitted);
    let work = run_fit(&given, fitted, stage, |_, _| ());
    let mut parameters = work.parameters.clone();
    if let Some(turning) = turning.as_ref().filter(|_| stage < FitStage::Angles) {
        parameters.extend(turning.period.clone());
    }
    let score = |disk: &DiskSpecification| {
        let replayed = replay_requests(disk, &all, think);
        (
            Score::from_pairs(&service_time_pairs(&all[half..], &replayed[half..])),
            replayed,
        )
    };
    let is_fast = |placed: &LocatedRequest| work.is_fast(placed);
    let (fitted_score, replayed) = score(&work.disk);
    let held = all[half..].iter().filter(|placed| is_fast(placed));
    let held = held.filter(|placed| placed.request.operation == ValidationOperation::Read);
    let modelled = replayed[half..].iter().filter(|one| {
        matches!(
            one.cache_answer,
            AnswerSource::Buffer | AnswerSource::ReadAhead
        )
    });
    Ok(Calibration {
        nominal_period_us: nominal_us,
        agreement: turning
            .as_ref()
            .map_or(work.agreement, |turning| turning.agreement),
        phase_steps: turning.map_or_else(Vec::new, |turning| turning.phase_steps),
        buffer_read_counts: (held.count(), modelled.count()),
        remaining_errors: classify_errors(&work.disk, &all, half, think, is_fast),
        request_count: all.len(),
        fitted_request_count: fitted.len(),
        phase,
        think_position: think,
        last_stage: stage,
        fitted_score,
        specified_score: score(&refined).0,
        parameters,
        replayed_requests: replayed,
        fitted_disk: work.disk.clone(),
        specified_disk: filed.clone(),
    })
}

/// Rotation of the spindle as the angles of all requests show it.
struct RotationFit {
    period_ns: f64,
    period: Option<FittedParameter>,
    agreement: f64,
    phase_steps: Vec<PhaseStep>,
}

impl RotationFit {
    fn new(given: &FitInput<'_>, placed: &[LocatedRequest]) -> RotationFit {
        let found = run_fit(given, placed, FitStage::Angles, |_, _| ());
        let mut parameters = found.parameters.iter();
        let period = parameters.find(|one| one.name == "spindle.period_us");
        RotationFit {
            period_ns: found.disk.mechanism.period_ns,
            period: period.cloned(),
            agreement: found.agreement,
            phase_steps: found.phase_segments.phase_steps(&found.completions_us()),
        }
    }
}

/// Scores the second half of a trace, replayed in a closed loop on a disk that contains all
/// requested blocks.
///
/// # Panics
///
/// If the specification contradicts itself, or a request exceeds the disk's capacity.
pub fn score_disk(
    disk: &DiskSpecification,
    requests: &[ValidationRequest],
    think: ThinkPosition,
) -> Score {
    let device = Disk::new(disk, RotationAngle::ZERO).unwrap_or_else(|error| panic!("{error}"));
    let all = locate_requests(device.mechanism().layout(), requests);
    let all = all.unwrap_or_else(|beyond| panic!("{beyond}"));
    let half = all.len() / 2;
    Score::from_pairs(&service_time_pairs(
        &all[half..],
        &replay_requests(disk, &all, think)[half..],
    ))
}

pub(crate) fn service_time_pairs(
    placed: &[LocatedRequest],
    replayed: &[ReplayedRequest],
) -> Vec<(f64, f64)> {
    let measured = placed.iter().map(|placed| placed.request.service_us);
    let modelled = replayed.iter().map(|replayed| replayed.service_us);
    measured.zip(modelled).collect()
}

/// Inputs of a fit: disk specifications, pause position and rotational phase.
pub(crate) struct FitInput<'g> {
    /// Disk and actuator as specified by the files.
    pub(crate) specified_disk: &'g DiskSpecification,
    pub(crate) mechanism: &'g Mechanism,
    /// Disk of the files with the rotation period of the trace.
    pub(crate) initial_disk: &'g DiskSpecification,
    pub(crate) think_position: ThinkPosition,
    /// Rotational phase; `None` if the trace does not show one.
    pub(crate) phase: Option<RotationalPhase>,
    /// Transfer time of a block on the bus according to the files, in microseconds.
    pub(crate) link_block_us: f64,
}

/// Relative error that the transfer time of a block may have.
const SLOPE_ERROR_SHARE_MAX: f64 = 0.02;
/// Number of rounds that alternate between the transfer time of a block and the time limit of
/// buffer reads.
const LINK_FIT_ROUNDS: usize = 3;

/// Fits up to the given stage and passes the disk of each stage to `show`.
pub(crate) fn run_fit<'w>(
    given: &'w FitInput<'w>,
    placed: &'w [LocatedRequest],
    last: FitStage,
    mut show: impl FnMut(FitStage, &DiskSpecification),
) -> FitState<'w> {
    let mut work = FitState {
        input: given,
        requests: placed,
        disk: given.initial_disk.clone(),
        parameters: Vec::new(),
        mean_parameters: Vec::new(),
        link_block_us: given.phase.map_or(given.link_block_us, |of| of.transfer_us),
        is_link_known: false,
        write_end_us: 0.0,
        fast_request_us_max: 0.0,
        agreement: given.phase.map_or(0.0, |phase| phase.agreement),
        phase_segments: PhaseSegments::default(),
    };
    work.fast_request_us_max = work.find_buffer_limit_us(ValidationOperation::Read);
    for stage in FitStage::ALL.into_iter().filter(|stage| *stage <= last) {
        match stage {
            FitStage::Files => {}
            FitStage::Constants => {
                merge_overheads(&mut work.disk);
                work.fit_means([true; 3]);
            }
            FitStage::Angles => {
                // Which reads the buffer answered is seen by the time of a block, which is
                // seen by these.
                for _ in 0..LINK_FIT_ROUNDS {
                    work.fit_link_transfer();
                    work.fast_request_us_max = work.find_buffer_limit_us(ValidationOperation::Read);
                }
                work.find_angles();
                work.fast_request_us_max = work.find_buffer_limit_us(ValidationOperation::Read);
                work.fit_means([true; 3]);
                work.choose_zero_latency();
                work.choose_link_transfer();
            }
            FitStage::Cache => {
                work.fit_write_cache();
                work.fit_cache();
                work.fit_constants();
                work.choose_partial_hits();
                work.fit_write_buffer();
                // Which writes waited is seen by the buffer, which is seen by the constants.
                work.fit_constants();
                let through = work.disk.write_cache.is_none();
                work.fit_means([true, false, through]);
            }
            FitStage::Arrivals => {
                work.fit_arrivals();
                if !work.is_write_through() {
                    work.fit_write_buffer();
                    work.fit_constants();
                }
            }
        }
        show(stage, &work.disk);
    }
    work.parameters.append(&mut work.mean_parameters);
    work
}

/// Disk with the parameters that were fitted to it.
struct FitCandidate {
    disk: DiskSpecification,
    parameters: Vec<FittedParameter>,
}

/// State of a fit in progress, with the disk and the parameters fitted so far.
pub(crate) struct FitState<'w> {
    input: &'w FitInput<'w>,
    requests: &'w [LocatedRequest],
    pub(crate) disk: DiskSpecification,
    pub(crate) parameters: Vec<FittedParameter>,
    /// Constants fitted to the mean service time, until a later stage replaces them.
    mean_parameters: Vec<FittedParameter>,
    /// Transfer time of a block to the host, in microseconds.
    link_block_us: f64,
    /// Whether requests that do not wait for the platter show `link_block_us`.
    is_link_known: bool,
    /// Time from a write's last sector to its completion, minus that of a read, in microseconds.
    write_end_us: f64,
    fast_request_us_max: f64,
    pub(crate) agreement: f64,
    phase_segments: PhaseSegments,
}

impl FitState<'_> {
    fn period_us(&self) -> f64 {
        self.disk.mechanism.period_ns / 1e3
    }

    fn is_write_through(&self) -> bool {
        self.disk.write_cache.is_none()
    }

    fn add_parameter(&mut self, name: impl Into<String>, value: f64, error: f64) {
        self.replace_parameter(FittedParameter::with_standard_error(name, value, error));
    }

    fn add_chosen_parameter(&mut self, name: &str, value: impl Into<f64>) {
        self.replace_parameter(FittedParameter::exact(name, value.into()));
    }

    /// Adds a parameter in the place of an earlier value.
    fn replace_parameter(&mut self, parameter: FittedParameter) {
        self.parameters.retain(|one| one.name != parameter.name);
        self.parameters.push(parameter);
    }

    /// Returns the service time without the bus transfer of the blocks, in microseconds.
    fn time_to_sector_us(&self, placed: &LocatedRequest) -> f64 {
        placed.request.service_us - f64::from(placed.request.block_count) * self.link_block_us
    }

    pub(crate) fn is_fast(&self, placed: &LocatedRequest) -> bool {
        self.time_to_sector_us(placed) < self.fast_request_us_max
    }

    fn completions_us(&self) -> Vec<f64> {
        let requests: Vec<ValidationRequest> =
            self.requests.iter().map(|placed| placed.request).collect();
        phase::completions_us(&requests, self.input.think_position)
    }

    /// Replays the fitted requests on a disk.
    fn predict(&self, disk: &DiskSpecification) -> Predictions {
        let replayed = replay_requests(disk, self.requests, self.input.think_position);
        Predictions::new(&service_time_pairs(self.requests, &replayed))
    }

    /// Selects the candidate that predicts the most requests, if the gain over those before it
    /// exceeds chance.
    fn choose_fit(&mut self, candidates: Vec<FitCandidate>) {
        let mut best: Option<Predictions> = None;
        for candidate in candidates {
            let found = self.predict(&candidate.disk);
            let is_better = |best: &Predictions| found.gain_over(best).exceeds_chance();
            if best.as_ref().is_none_or(is_better) {
                best = Some(found);
                (self.disk, self.parameters) = (candidate.disk, candidate.parameters);
            }
        }
    }

    /// Selects the disk that predicts the most requests, if it predicts more than the current one
    /// and the gain exceeds chance.
    fn choose_disk(&mut self, disks: Vec<DiskSpecification>) {
        let disks = std::iter::once(self.disk.clone()).chain(disks);
        let candidate = |disk| FitCandidate {
            disk,
            parameters: self.parameters.clone(),
        };
        self.choose_fit(disks.map(candidate).collect());
    }

    /// Selects the middle of the disks that predict the most requests, if the gain exceeds chance.
    fn choose_setting(
        &mut self,
        disks: Vec<DiskSpecification>,
        name: &str,
        value: impl Fn(&DiskSpecification) -> f64,
    ) {
        let found: Vec<Predictions> = disks.iter().map(|disk| self.predict(disk)).collect();
        let Some(best) = found.iter().max_by_key(|found| found.count()) else {
            return;
        };
        let current = self.predict(&self.disk);
        if !best.gain_over(&current).exceeds_chance() {
            return;
        }
        let as_good: Vec<usize> = (0..disks.len())
            .filter(|index| !best.gain_over(&found[*index]).exceeds_chance())
            .collect();
        let ends = [as_good[0], as_good[as_good.len() - 1]];
        self.disk = disks[as_good[as_good.len() / 2]].clone();
        let ends = (value(&disks[ends[0]]), value(&disks[ends[1]]));
        let chosen = FittedParameter::with_interval(name, value(&self.disk), ends);
        self.replace_parameter(chosen);
    }
}
