//! Whether a trace holds the phase of the drive's spindle.
//!
//! When a request ends shows where the platter was. Two requests on one cylinder end apart
//! by whole revolutions and the angle between their blocks, however long lay between
//! them: if the pauses are put where they were, and the period is the drive's own. Both
//! are found as those that make it so.

mod pairs;
mod phasor;
mod scan;
mod significance;

use crate::layout::Layout;
use crate::trace::Request;
use pairs::References;
pub use phasor::Phasor;
use scan::{Lock, Search};
use significance::FALSE_ALARM_MAX;

/// Where a trace's pauses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Think {
    /// A line's pause is between the completion before it and its issue.
    Before,
    /// A line's pause is between its completion and the next issue.
    After,
}

/// What is assumed of the drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// A revolution at the nominal speed, in microseconds.
    pub period_us: f64,
    /// A sector of a read to the host, in microseconds; where it is 0 or wrong, a better
    /// one is found up to twice the time of a sector under the head.
    pub transfer_us: f64,
    /// Whether writes end on the medium, so that they show the phase too.
    pub write_through: bool,
}

/// What a trace shows of the spindle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Where the pauses are; nothing if the trace does not show it.
    pub think: Option<Think>,
    /// The better placement's length of the mean direction of pairs on one cylinder, however
    /// far apart: 1 if all agree, near 0 by chance.
    pub r: f64,
    /// `r` with the pauses in the other place.
    pub r_otherwise: f64,
    /// `r` of pairs that are close in time: what decides the place.
    pub r_close: f64,
    /// `r_close` with the pauses in the other place. Issues that a clock made agree with one
    /// another too, so this alone may be above chance.
    pub r_close_otherwise: f64,
    /// What `r` would rarely exceed by chance, with as many trials.
    pub chance: f64,
    /// What `r_close` would rarely exceed by chance: below it there is no phase.
    pub chance_close: f64,
    /// Upper bound of the probability that requests without a phase agree as well as this,
    /// over all periods, skews and places that were tried.
    pub false_alarm: f64,
    /// How many requests show it.
    pub references: usize,
    /// How many pairs of them the period is from.
    pub pairs: usize,
    /// The period, in microseconds.
    pub period_us: f64,
    /// Its standard error, in microseconds, if requests are independent.
    pub period_error_us: f64,
    /// How much longer it is than the nominal one, in parts per million.
    pub ppm: f64,
    /// A sector of a read to the host, in microseconds.
    pub transfer_us: f64,
    /// The slope of a line's pause on the service time before it: -1 if pauses were
    /// scheduled to fill a time and stand before their requests, 0 if not.
    pub slope: f64,
}

/// Finds the pauses' place and the period; nothing if hardly two requests are near each
/// other.
///
/// The period is searched over ±2 % of the nominal one, with skews that are not the files'.
/// Pairs of requests of one zone show it, so a zone's origin does not matter; pairs that are
/// an eighth of the trace apart at most, so neither do a few jumps of the phase.
pub fn find(layout: &Layout, requests: &[Request], assumed: &Assumed) -> Option<Phase> {
    let references = References::new(layout, requests, assumed);
    let locked = |think: Think| {
        let completions_us = completions_us(requests, think);
        Search {
            references: &references,
            completions_us: &completions_us,
            assumed,
        }
        .lock()
    };
    let (before, after) = (locked(Think::Before)?, locked(Think::After)?);
    let (think, best, other) = match before.r_close >= after.r_close {
        true => (Think::Before, before, after),
        false => (Think::After, after, before),
    };
    let is_significant = |lock: &Lock| lock.log_false_alarm <= (FALSE_ALARM_MAX / 2.0).ln();
    // Issues that a clock made agree with one another in the wrong place, too.
    let shows =
        is_significant(&best) && (!is_significant(&other) || best.r_close > 2.0 * other.r_close);
    Some(Phase {
        think: shows.then_some(think),
        r: best.r,
        r_close: best.r_close,
        r_otherwise: other.r,
        r_close_otherwise: other.r_close,
        chance: best.chance,
        chance_close: best.chance_close,
        false_alarm: (best.log_false_alarm.exp() * 2.0).min(1.0),
        references: best.references,
        pairs: best.pairs,
        period_us: best.period_us,
        period_error_us: best.period_error_us,
        ppm: (best.period_us / assumed.period_us - 1.0) * 1e6,
        transfer_us: best.transfer_us,
        slope: slope(requests),
    })
}

/// When each request is complete, in microseconds from the first one's issue.
pub fn completions_us(requests: &[Request], think: Think) -> Vec<f64> {
    let mut now_us = 0.0;
    let mut completions = Vec::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        if think == Think::Before && index > 0 {
            now_us += request.think_us;
        }
        now_us += request.service_us;
        completions.push(now_us);
        if think == Think::After {
            now_us += request.think_us;
        }
    }
    completions
}

/// The slope of think times on the service times before them; 0 if those are all the same.
pub fn slope(requests: &[Request]) -> f64 {
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
