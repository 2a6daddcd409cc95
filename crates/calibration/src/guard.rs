//! How much of a fit is kept: the most that is not worse on requests that are held out.

use crate::fit::{Given, fit, pairs};
use crate::places::Placed;
use crate::replay::replay;
use crate::score::Score;

/// Steps of a fit. Each has all that those before it have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The files' numbers, with the pauses and the period of the trace.
    Files,
    /// Constants of reads and writes by their mean.
    Constants,
    /// The time of a block on the bus, the period, and the angles.
    Angles,
    /// The rule of the read cache, and the constants of what does not wait for the platter.
    Cache,
    /// Overheads and seeks of what does.
    Arrivals,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 5] = [
        Stage::Files,
        Stage::Constants,
        Stage::Angles,
        Stage::Cache,
        Stage::Arrivals,
    ];
}

/// The share of the requests that are fitted to; the others are held out.
const FITTED_SHARE: f64 = 0.7;
/// Fewer requests that are held out decide nothing.
const HELD_OUT_MIN: usize = 100;
/// Requests off by less are met, in microseconds.
pub(crate) const MET_US: f64 = 500.0;
/// A demerit that grows by less is no worse, in milliseconds.
const DEMERIT_MS: f64 = 0.01;

/// The last stage that is kept.
pub(crate) fn stage(given: &Given<'_>, placed: &[Placed]) -> Stage {
    let last = match given.phase {
        Some(_) => Stage::Arrivals,
        // Arrivals are seen by the sectors that they miss.
        None => Stage::Cache,
    };
    let fitted = (placed.len() as f64 * FITTED_SHARE) as usize;
    if placed.len() - fitted < HELD_OUT_MIN {
        return Stage::Files;
    }
    let mut best: Option<(Stage, HeldOut)> = None;
    fit(given, &placed[..fitted], last, |stage, disk| {
        let replayed = replay(disk, placed, given.think);
        let found = HeldOut::new(&pairs(&placed[fitted..], &replayed[fitted..]));
        if best.as_ref().is_none_or(|(_, best)| found.is_better(best)) {
            best = Some((stage, found));
        }
    });
    best.map_or(Stage::Files, |best| best.0)
}

/// Requests that nothing was fitted to, replayed.
struct HeldOut {
    /// Whether each is met within half a millisecond.
    met: Vec<bool>,
    score: Score,
}

impl HeldOut {
    fn new(pairs: &[(f64, f64)]) -> HeldOut {
        let met = |(measured, modelled): &(f64, f64)| (measured - modelled).abs() <= MET_US;
        HeldOut {
            met: pairs.iter().map(met).collect(),
            score: Score::of(pairs),
        }
    }

    /// Whether more requests are met without larger errors of the others, or as many and the
    /// distributions are nearer; what differs by chance is no difference.
    fn is_better(&self, than: &HeldOut) -> bool {
        let both = || self.met.iter().zip(&than.met);
        let gained = both().filter(|(own, other)| **own && !**other).count() as f64;
        let lost = both().filter(|(own, other)| !**own && **other).count() as f64;
        // Of requests that one of the two meets, each meets half by chance.
        let chance = 2.0 * (gained + lost).sqrt();
        let (own, other) = (&self.score, &than.score);
        let has_smaller_errors = own.rms_per_request_ms <= other.rms_per_request_ms;
        match gained - lost {
            more if more > 0.0 && has_smaller_errors => true,
            more if more.abs() > chance => false,
            _ => own.demerit_ms < other.demerit_ms - DEMERIT_MS,
        }
    }
}
