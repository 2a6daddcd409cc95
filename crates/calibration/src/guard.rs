//! Selection of the stage of a fit to keep: the last one that is not worse on held-out requests.

use crate::fit::{FitInput, fit, pairs};
use crate::places::Placed;
use crate::replay::replay;
use crate::score::Score;

/// Stage of a fit. Each stage includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Stage 0: numbers of the drive's files, with the pauses and the rotation period of the trace.
    Files,
    /// Stage that adds constants of reads and writes, which match the mean service times.
    Constants,
    /// Stage that adds the block transfer time, the rotation period and the sector angles.
    Angles,
    /// Stage that adds the read cache rule and constants of requests that do not wait for the
    /// platter.
    Cache,
    /// Stage that adds overheads and seek times of requests that wait for the platter.
    Arrivals,
}

impl Stage {
    /// All stages of a fit, in order.
    pub const ALL: [Stage; 5] = [
        Stage::Files,
        Stage::Constants,
        Stage::Angles,
        Stage::Cache,
        Stage::Arrivals,
    ];
}

/// Share of the requests that are fitted to; the others are held out.
const FITTED_SHARE: f64 = 0.7;
const HELD_OUT_MIN: usize = 100;
/// Largest error of a correctly predicted request, in microseconds.
pub(crate) const PREDICTED_US_MAX: f64 = 500.0;
/// Tolerated increase of the demerit, in milliseconds.
const DEMERIT_MS: f64 = 0.01;

/// Returns the last stage of the fit to keep.
pub(crate) fn stage(given: &FitInput<'_>, placed: &[Placed]) -> Stage {
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
        if best
            .as_ref()
            .is_none_or(|(_, best)| found.is_better_than(best))
        {
            best = Some((stage, found));
        }
    });
    best.map_or(Stage::Files, |best| best.0)
}

struct HeldOut {
    /// Whether each request is predicted within half a millisecond.
    met: Vec<bool>,
    score: Score,
}

impl HeldOut {
    fn new(pairs: &[(f64, f64)]) -> HeldOut {
        let met =
            |(measured, modelled): &(f64, f64)| (measured - modelled).abs() <= PREDICTED_US_MAX;
        HeldOut {
            met: pairs.iter().map(met).collect(),
            score: Score::of(pairs),
        }
    }

    /// Tests whether this replay is better: more predicted requests without larger errors of the
    /// others, or equally many and closer distributions. Differences within chance do not count.
    fn is_better_than(&self, than: &HeldOut) -> bool {
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
