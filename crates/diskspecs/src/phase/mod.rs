//! Detection of the spindle's rotational phase in a trace.
//!
//! The completion time of a request reveals the position of the platter. Two requests on one
//! cylinder end a number of whole revolutions plus the angle between their blocks apart, however
//! much time is between them. This holds only if the pauses are placed correctly and the rotation
//! period is right. The search finds the pause position and the period that make it hold.

mod pairs;
mod phasor;
mod scan;
mod significance;

use crate::layout::BlockLayout;
use crate::trace::ValidationRequest;
use pairs::AngleReferences;
pub use phasor::Phasor;
use scan::{PeriodEstimate, PeriodSearch};
use significance::FALSE_ALARM_MAX;

/// Position of the pauses in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkPosition {
    /// Before: the pause of a line is between the preceding completion and its issue.
    BeforeRequest,
    /// After: the pause of a line is between its completion and the next issue.
    AfterRequest,
}

/// Assumptions about the drive for the phase search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhaseAssumptions {
    /// Rotation period at nominal speed, in microseconds.
    pub period_us: f64,
    /// Transfer time of a sector from the drive to the host for a read, in microseconds. If it is 0
    /// or wrong, the search finds a better one, up to twice the time of a sector under the head.
    pub transfer_us: f64,
    /// Whether writes complete on the medium and thus reveal the phase, too.
    pub has_write_through: bool,
}

/// Rotational phase that a trace reveals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RotationalPhase {
    /// Position of the pauses; `None` if the trace does not show it.
    pub think_position: Option<ThinkPosition>,
    /// Agreement of all pairs on one cylinder for the better pause position: the length of their
    /// mean direction. 1 if all agree, and near 0 by chance.
    pub agreement: f64,
    /// Agreement `r` for the other pause position.
    pub agreement_other_position: f64,
    /// Agreement of the pairs that are close in time, which decides the pause position.
    pub agreement_close: f64,
    /// Agreement `r_close` for the other pause position. Issue times that follow a clock also agree
    /// with one another, so this alone may exceed chance.
    pub agreement_close_other_position: f64,
    /// Value that `r` rarely exceeds by chance with the same number of trials.
    pub chance_agreement: f64,
    /// Value that `r_close` rarely exceeds by chance. A lower `r_close` means no phase.
    pub chance_agreement_close: f64,
    /// Upper bound of the probability that requests without a phase agree this well, over all
    /// periods, skews and pause positions tried.
    pub false_alarm_probability: f64,
    /// Number of requests that reveal the phase.
    pub reference_count: usize,
    /// Number of pairs of requests that determine the period.
    pub pair_count: usize,
    /// Rotation period, in microseconds.
    pub period_us: f64,
    /// Standard error of the period in microseconds, assuming independent requests.
    pub period_error_us: f64,
    /// Excess of the period over the nominal one, in parts per million.
    pub period_excess_ppm: f64,
    /// Transfer time of a sector from the drive to the host for a read, in microseconds.
    pub transfer_us: f64,
    /// Regression slope of a line's pause on the preceding service time. It is -1 if pauses were
    /// scheduled to fill a fixed time and precede their requests, and 0 if not.
    pub think_slope: f64,
}

/// Finds the pause position and the rotation period; `None` if hardly any two requests are near
/// each other.
///
/// The search covers ±2 % of the nominal period, with skews that may differ from those of the
/// files. It uses pairs of requests of one zone, so the origin of a zone does not matter. The pairs
/// are at most an eighth of the trace apart, so a few jumps of the phase do not matter either.
pub fn find_phase(
    layout: &BlockLayout,
    requests: &[ValidationRequest],
    assumed: &PhaseAssumptions,
) -> Option<RotationalPhase> {
    let references = AngleReferences::new(layout, requests, assumed);
    let locked = |think: ThinkPosition| {
        let completions_us = completions_us(requests, think);
        PeriodSearch {
            references: &references,
            completions_us: &completions_us,
            assumptions: assumed,
        }
        .find_period()
    };
    let (before, after) = (
        locked(ThinkPosition::BeforeRequest)?,
        locked(ThinkPosition::AfterRequest)?,
    );
    let (think, best, other) = match before.agreement_close >= after.agreement_close {
        true => (ThinkPosition::BeforeRequest, before, after),
        false => (ThinkPosition::AfterRequest, after, before),
    };
    let is_significant =
        |lock: &PeriodEstimate| lock.log_false_alarm_probability <= (FALSE_ALARM_MAX / 2.0).ln();
    // Issues that a clock made agree with one another in the wrong place, too.
    let shows = is_significant(&best)
        && (!is_significant(&other) || best.agreement_close > 2.0 * other.agreement_close);
    Some(RotationalPhase {
        think_position: shows.then_some(think),
        agreement: best.agreement,
        agreement_close: best.agreement_close,
        agreement_other_position: other.agreement,
        agreement_close_other_position: other.agreement_close,
        chance_agreement: best.chance_agreement,
        chance_agreement_close: best.chance_agreement_close,
        false_alarm_probability: (best.log_false_alarm_probability.exp() * 2.0).min(1.0),
        reference_count: best.reference_count,
        pair_count: best.pair_count,
        period_us: best.period_us,
        period_error_us: best.period_error_us,
        period_excess_ppm: (best.period_us / assumed.period_us - 1.0) * 1e6,
        transfer_us: best.transfer_us,
        think_slope: think_time_slope(requests),
    })
}

/// Returns the completion times of all requests, in microseconds since the issue of the first one.
pub fn completions_us(requests: &[ValidationRequest], think: ThinkPosition) -> Vec<f64> {
    let mut now_us = 0.0;
    let mut completions = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        if think == ThinkPosition::BeforeRequest && index > 0 {
            now_us += request.think_us;
        }
        now_us += request.service_us;
        completions.push(now_us);
        if think == ThinkPosition::AfterRequest {
            now_us += request.think_us;
        }
    }
    completions
}

/// Returns the regression slope of think times on the preceding service times; 0 if all those are
/// equal.
pub fn think_time_slope(requests: &[ValidationRequest]) -> f64 {
    let pairs = requests
        .windows(2)
        .map(|pair| (pair[0].service_us, pair[1].think_us));
    let count = pairs.len().max(1) as f64;
    let sums = pairs
        .clone()
        .fold((0.0, 0.0), |sums, (s, t)| (sums.0 + s, sums.1 + t));
    let (mean_s, mean_t) = (sums.0 / count, sums.1 / count);
    let (mut product, mut square) = (0.0, 0.0);
    for (s, t) in pairs {
        product += (s - mean_s) * (t - mean_t);
        square += (s - mean_s) * (s - mean_s);
    }
    if square > 0.0 { product / square } else { 0.0 }
}
