//! Selection of the stage of a fit to keep: the last one that is not worse on held-out requests.

use crate::fit::{FitInput, run_fit, service_time_pairs};
use crate::places::LocatedRequest;
use crate::replay::replay_requests;
use crate::score::{Predictions, Score};

/// Stage of a fit. Each stage includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FitStage {
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

impl FitStage {
    /// All stages of a fit, in order.
    pub const ALL: [FitStage; 5] = [
        FitStage::Files,
        FitStage::Constants,
        FitStage::Angles,
        FitStage::Cache,
        FitStage::Arrivals,
    ];
}

/// Share of the requests that are fitted to; the others are held out.
const GUARD_FITTED_SHARE: f64 = 0.7;
const HELD_OUT_REQUESTS_MIN: usize = 100;
/// Tolerated increase of the demerit, in milliseconds.
const DEMERIT_INCREASE_MS_MAX: f64 = 0.01;

/// Returns the last stage of the fit to keep.
pub(crate) fn select_stage(given: &FitInput<'_>, placed: &[LocatedRequest]) -> FitStage {
    let last = match given.phase {
        Some(_) => FitStage::Arrivals,
        // Arrivals are seen by the sectors that they miss.
        None => FitStage::Cache,
    };
    let fitted = (placed.len() as f64 * GUARD_FITTED_SHARE) as usize;
    if placed.len() - fitted < HELD_OUT_REQUESTS_MIN {
        return FitStage::Files;
    }
    let mut stages: Vec<(FitStage, HeldOutResult)> = Vec::new();
    run_fit(given, &placed[..fitted], last, |stage, disk| {
        let replayed = replay_requests(disk, placed, given.think_position);
        let pairs = service_time_pairs(&placed[fitted..], &replayed[fitted..]);
        stages.push((stage, HeldOutResult::new(&pairs)));
    });
    let (files, fits) = stages.split_first().expect("the stage of the files");
    let mut best = files;
    for one in fits {
        if one.1.is_better_than(&best.1) && one.1.is_worth_fitting(&files.1) {
            best = one;
        }
    }
    best.0
}

struct HeldOutResult {
    predictions: Predictions,
    score: Score,
}

impl HeldOutResult {
    fn new(pairs: &[(f64, f64)]) -> HeldOutResult {
        HeldOutResult {
            predictions: Predictions::new(pairs),
            score: Score::from_pairs(pairs),
        }
    }

    /// Tests whether this replay is better: more predicted requests without larger errors of the
    /// others, or equally many and closer distributions. Differences within chance do not count.
    fn is_better_than(&self, than: &HeldOutResult) -> bool {
        let gain = self.predictions.gain_over(&than.predictions);
        let (own, other) = (&self.score, &than.score);
        match gain.excess() {
            more if more > 0.0 && own.request_rms_ms <= other.request_rms_ms => true,
            more if more.abs() > gain.chance() => false,
            _ => own.demerit_ms < other.demerit_ms - DEMERIT_INCREASE_MS_MAX,
        }
    }

    /// Tests whether this replay is better than that of the files by more than chance, and its
    /// distribution no more distant.
    fn is_worth_fitting(&self, files: &HeldOutResult) -> bool {
        let gain = self.predictions.gain_over(&files.predictions);
        let nearer_ms = files.score.demerit_ms - self.score.demerit_ms;
        nearer_ms > DEMERIT_INCREASE_MS_MAX
            || (gain.excess() > gain.chance() && nearer_ms >= -DEMERIT_INCREASE_MS_MAX)
    }
}
