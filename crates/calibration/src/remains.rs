//! Classification of the requests that a replay mispredicts, by cause.
//!
//! Most errors are whole revolutions: the actuator arrived just before the sector on one side and
//! just after it on the other. For each of them, the replay is repeated with one change to the
//! state that the trace does not show, and the measured time reveals which change applies.

mod suppose;

use crate::arrival::JITTER_US;
use crate::places::LocatedRequest;
use crate::replay::{ServedRequest, SteppedReplay, replay_with_state, us_from_time};
use crate::score::PREDICTED_US_MAX;
use diskperf_device::disk::device::{AnswerSource, DiskSpecification};
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::trace::ValidationOperation;
use suppose::{HiddenState, explain_by_hidden_state};

/// Cause of a prediction error above half a millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictionErrorCause {
    /// Buffer hit on the drive, but not in the model.
    UnpredictedHit,
    /// Buffer hit in the model, but not on the drive.
    UnpredictedMiss,
    /// Whole revolutions: the actuator arrived at nearly the same time as the sector, within the
    /// scatter of arrival times.
    ArrivalNearSector,
    /// Whole revolutions: different buffer contents or read-ahead progress explain the request.
    BufferState,
    /// Whole revolutions: an early-completed write had left the actuator elsewhere, or was destaged
    /// at another time; this explains the request.
    Destage,
    /// Whole revolutions: the actuator was faster or slower than on other seeks of that distance.
    SeekTime,
    /// Pause that started while the replay was off by part of a revolution; this request makes up
    /// for it.
    CarriedOver,
    /// Any other cause, such as a retry or a wrong constant.
    Unexplained,
}

impl PredictionErrorCause {
    /// All causes of prediction errors.
    pub const ALL: [PredictionErrorCause; 8] = [
        PredictionErrorCause::UnpredictedHit,
        PredictionErrorCause::UnpredictedMiss,
        PredictionErrorCause::ArrivalNearSector,
        PredictionErrorCause::BufferState,
        PredictionErrorCause::Destage,
        PredictionErrorCause::SeekTime,
        PredictionErrorCause::CarriedOver,
        PredictionErrorCause::Unexplained,
    ];

    /// Returns a short description of the cause of a prediction error.
    pub fn description(self) -> &'static str {
        match self {
            PredictionErrorCause::UnpredictedHit => "read from the buffer by the drive only",
            PredictionErrorCause::UnpredictedMiss => "read from the buffer by the model only",
            PredictionErrorCause::ArrivalNearSector => "revolution: seek ended at the sector",
            PredictionErrorCause::BufferState => "revolution: buffer state unknown",
            PredictionErrorCause::Destage => "revolution: destage position unknown",
            PredictionErrorCause::SeekTime => "revolution: none of these, so the seek",
            PredictionErrorCause::CarriedOver => "carried over from the request before",
            PredictionErrorCause::Unexplained => "less than a revolution",
        }
    }

    /// Reports whether prediction errors with this cause are whole revolutions.
    pub fn is_revolution(self) -> bool {
        match self {
            PredictionErrorCause::ArrivalNearSector
            | PredictionErrorCause::BufferState
            | PredictionErrorCause::Destage
            | PredictionErrorCause::SeekTime => true,
            PredictionErrorCause::UnpredictedHit
            | PredictionErrorCause::UnpredictedMiss
            | PredictionErrorCause::CarriedOver
            | PredictionErrorCause::Unexplained => false,
        }
    }
}

/// Request whose prediction error exceeds half a millisecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MispredictedRequest {
    /// Index of the request, counted from 1 over the whole trace.
    pub request_index: usize,
    /// Cause of the prediction error.
    pub cause: PredictionErrorCause,
    /// Modelled minus measured service time, in microseconds.
    pub error_us: f64,
    /// Shift of the actuator's arrival that would give the measured revolution, in microseconds;
    /// negative means earlier. Present for errors of whole revolutions.
    pub arrival_error_us: Option<f64>,
}

/// Mispredicted requests with one cause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseTotal {
    /// Cause of the prediction errors.
    pub cause: PredictionErrorCause,
    /// Number of requests whose prediction error has this cause.
    pub request_count: usize,
    /// Number of requests with this cause for which the drive was slower than the model.
    pub drive_slower_count: usize,
    /// Share of the requests with this cause in the total squared error, in percent.
    pub squared_error_percent: f64,
}

/// Prediction errors of a replay above half a millisecond.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RemainingErrors {
    /// Numbers of errors by cause; causes without errors are omitted.
    pub cause_totals: Vec<CauseTotal>,
    /// Mispredicted requests in the order of the trace.
    pub mispredicted: Vec<MispredictedRequest>,
}

/// Number of standard deviations of arrival time within which a seek may end on either side of a
/// sector.
const ARRIVAL_SCATTER_DEVIATIONS: f64 = 3.0;

struct RequestError<'m> {
    request: &'m LocatedRequest,
    served: ServedRequest,
    error_us: f64,
    /// Lead of the replay's clock over the drive's at the arrival of the request, in microseconds.
    replay_lead_us: f64,
    is_fast: bool,
    period_us: f64,
}

/// Finds the prediction errors of a replay from request `first` on.
pub(crate) fn classify_errors(
    disk: &DiskSpecification,
    all: &[LocatedRequest],
    first: usize,
    think: ThinkPosition,
    is_fast: impl Fn(&LocatedRequest) -> bool,
) -> RemainingErrors {
    let (mut off, mut squares_us) = (Vec::new(), 0.0);
    let period_us = disk.mechanism.period_ns / 1e3;
    // How far the replay's clock is ahead of the drive's, which a closed loop keeps until
    // the platter makes it up.
    let (mut replay_lead_us, mut index) = (0.0, 0);
    replay_with_state(disk, all, think, |served, before| {
        let placed = &all[index];
        let error_us = served.service_us - placed.request.service_us;
        if index >= first {
            squares_us += error_us * error_us;
            if error_us.abs() > PREDICTED_US_MAX {
                let missed = RequestError {
                    request: placed,
                    served: *served,
                    error_us,
                    replay_lead_us,
                    is_fast: is_fast(placed),
                    period_us,
                };
                let earlier = &all[index.saturating_sub(1)];
                let (cause, arrival_off_us) = missed.classify_error(disk, earlier, before);
                off.push(MispredictedRequest {
                    request_index: index + 1,
                    cause,
                    error_us,
                    arrival_error_us: arrival_off_us,
                });
            }
        }
        replay_lead_us = wrap_us(replay_lead_us + error_us, period_us);
        index += 1;
    });
    RemainingErrors {
        cause_totals: count_causes(&off, squares_us),
        mispredicted: off,
    }
}

impl RequestError<'_> {
    /// Determines the cause of a prediction error and, for whole revolutions, the shift of the
    /// actuator's arrival. `before` holds the device state at the arrival of the request.
    fn classify_error(
        &self,
        disk: &DiskSpecification,
        earlier: &LocatedRequest,
        before: &mut dyn FnMut() -> SteppedReplay,
    ) -> (PredictionErrorCause, Option<f64>) {
        let arrival_off_us = wrap_us(self.error_us, self.period_us).abs();
        let is_whole =
            arrival_off_us <= PREDICTED_US_MAX && self.error_us.abs() > self.period_us / 2.0;
        let made_up_us = wrap_us(self.replay_lead_us + self.error_us, self.period_us);
        let is_read = self.request.request.operation == ValidationOperation::Read;
        match self.served.observation.answer_source {
            AnswerSource::Media if is_read && self.is_fast => {
                (PredictionErrorCause::UnpredictedHit, None)
            }
            AnswerSource::Buffer | AnswerSource::ReadAhead if is_read && !self.is_fast => {
                (PredictionErrorCause::UnpredictedMiss, None)
            }
            AnswerSource::Media if is_whole => match self.required_shift_us() {
                Some(arrival_off_us)
                    if arrival_off_us.abs() <= ARRIVAL_SCATTER_DEVIATIONS * JITTER_US =>
                {
                    (
                        PredictionErrorCause::ArrivalNearSector,
                        Some(arrival_off_us),
                    )
                }
                needed_us => {
                    let met = explain_by_hidden_state(disk, earlier, self.request, before());
                    let met = met.into_iter().find(|(_, service_us)| {
                        (service_us - self.request.request.service_us).abs() <= PREDICTED_US_MAX
                    });
                    let cause = match met {
                        Some((HiddenState::BufferContents, _)) => PredictionErrorCause::BufferState,
                        Some((HiddenState::PendingDestage, _)) => PredictionErrorCause::Destage,
                        None => PredictionErrorCause::SeekTime,
                    };
                    (cause, needed_us)
                }
            },
            AnswerSource::Media
                if self.replay_lead_us.abs() > PREDICTED_US_MAX
                    && made_up_us.abs() <= PREDICTED_US_MAX =>
            {
                (PredictionErrorCause::CarriedOver, None)
            }
            _ => (PredictionErrorCause::Unexplained, None),
        }
    }

    /// Returns the shift of the actuator's arrival that would give the measured revolution, in
    /// microseconds.
    fn required_shift_us(&self) -> Option<f64> {
        let access = self.served.observation.access?;
        let (arrives_us, first_us) = (
            us_from_time(access.arrival),
            us_from_time(access.first_sector_passing),
        );
        let turns = (self.error_us / self.period_us).round();
        // The sector that was measured passes so many turns before the modelled one: the arm is
        // there by then, and was not yet when it passed the last time.
        let passes_us = first_us - turns * self.period_us;
        Some(match turns > 0.0 {
            true => passes_us - arrives_us,
            false => passes_us - self.period_us - arrives_us,
        })
    }
}

fn count_causes(off: &[MispredictedRequest], squares_us: f64) -> Vec<CauseTotal> {
    let of = |cause: PredictionErrorCause| {
        let own = || off.iter().filter(move |one| one.cause == cause);
        let squares: f64 = own().map(|one| one.error_us * one.error_us).sum();
        CauseTotal {
            cause,
            request_count: own().count(),
            drive_slower_count: own().filter(|one| one.error_us < 0.0).count(),
            squared_error_percent: 100.0 * squares / squares_us.max(f64::MIN_POSITIVE),
        }
    };
    let all = PredictionErrorCause::ALL.map(of);
    all.into_iter()
        .filter(|one| one.request_count > 0)
        .collect()
}

/// Wraps a time to within half a revolution of 0, in microseconds.
fn wrap_us(time_us: f64, period_us: f64) -> f64 {
    time_us - (time_us / period_us).round() * period_us
}
