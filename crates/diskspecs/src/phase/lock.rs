//! The search for the period, from pairs close in time to pairs far apart.

use std::f64::consts::TAU;

use super::Assumed;
use super::pairs::{Pair, References};

/// Gaps to begin with, in microseconds: half a second.
const FIRST_GAP_US: f64 = 5e5;
/// Pairs that are rarer than this show nothing: too many periods would fit them.
const WIDEST_FIRST_GAP_US: f64 = 3.2e7;
/// The period is within two per cent of the nominal one.
const WIDTH: f64 = 0.02;
/// A step of a scan turns the widest pair by so many revolutions.
const STEP: f64 = 0.04;
/// At most about so many pairs are looked at.
const MOST_PAIRS: usize = 8192;
/// Fewer pairs show nothing: the gap is doubled first.
const FEWEST_PAIRS: usize = 64;
/// Transfer times that are tried.
const TRANSFERS: usize = 64;
/// Groups are left out by so many parts to find the period's error.
const PARTS: usize = 8;

/// The period that was found, and how well.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lock {
    pub(super) period_us: f64,
    pub(super) period_error_us: f64,
    pub(super) transfer_us: f64,
    pub(super) r: f64,
    pub(super) r_close: f64,
    pub(super) references: usize,
    pub(super) pairs: usize,
    pub(super) close_pairs: usize,
    pub(super) trials: usize,
}

/// One placement of the pauses.
pub(super) struct Scan<'r> {
    references: &'r References,
    completions_us: &'r [f64],
    assumed: &'r Assumed,
    /// From the first completion to the last.
    span_us: f64,
    /// The widest gap of the first pairs, and those.
    first_gap_us: f64,
    first: Vec<Pair>,
}

impl<'r> Scan<'r> {
    /// Nothing if there are too few pairs at any gap.
    pub(super) fn new(
        references: &'r References,
        completions_us: &'r [f64],
        assumed: &'r Assumed,
    ) -> Option<Scan<'r>> {
        let span_us = completions_us.last()? - completions_us.first()?;
        let mut gap_us = FIRST_GAP_US;
        loop {
            let pairs = references.pairs(completions_us, gap_us, MOST_PAIRS);
            if pairs.len() >= FEWEST_PAIRS {
                return Some(Scan {
                    references,
                    completions_us,
                    assumed,
                    span_us,
                    first_gap_us: gap_us,
                    first: pairs,
                });
            }
            if gap_us >= span_us || gap_us >= WIDEST_FIRST_GAP_US {
                return None;
            }
            gap_us *= 2.0;
        }
    }

    /// Finds the period.
    pub(super) fn lock(&self) -> Option<Lock> {
        let nominal_us = self.assumed.period_us;
        let step = STEP * nominal_us / self.first_gap_us;
        let scan =
            |transfer_us: f64| best_period(&self.first, nominal_us, transfer_us, WIDTH, step);
        let mut trials = 2 * (2.0 * WIDTH / step) as usize + 2 * TRANSFERS;
        let period_us = scan(self.assumed.transfer_us);
        let transfer_us = self.best_transfer(&self.first, period_us);
        let mut period_us = scan(transfer_us);
        let close = direction(&self.first, period_us, transfer_us);
        let mut held = (self.first_gap_us, self.first.clone(), period_us);
        let (mut gap_us, mut last, mut holds) = (self.first_gap_us, close, true);
        // Wider pairs show the period more exactly, as long as they still agree.
        while gap_us < self.span_us {
            let width = 0.3 * nominal_us / gap_us;
            gap_us = (2.0 * gap_us).min(self.span_us);
            let wider = self
                .references
                .pairs(self.completions_us, gap_us, MOST_PAIRS);
            let step = STEP * nominal_us / gap_us;
            period_us = best_period(&wider, period_us, transfer_us, width, step);
            trials += (2.0 * width / step) as usize;
            last = direction(&wider, period_us, transfer_us);
            holds &= last.0 >= 0.5 * close.0;
            if holds {
                held = (gap_us, wider, period_us);
            }
        }
        let (gap_us, pairs, period_us) = held;
        let transfer_us = self.best_transfer(&pairs, period_us);
        let fine = STEP * nominal_us / gap_us;
        let period_us = best_period(&pairs, period_us, transfer_us, fine, fine / 50.0);
        Some(Lock {
            period_us,
            period_error_us: self.period_error_us(&pairs, period_us, transfer_us, fine),
            transfer_us,
            r: last.0.hypot(last.1),
            r_close: close.0.hypot(close.1),
            references: self.references.count(),
            pairs: pairs.len(),
            close_pairs: self.first.len(),
            trials,
        })
    }

    /// The transfer time with the highest mean cosine: pairs of unequal lengths show it.
    fn best_transfer(&self, pairs: &[Pair], period_us: f64) -> f64 {
        let sector_us = self.assumed.transfer_us.max(self.assumed.period_us / 200.0);
        let score = |transfer_us: f64| direction(pairs, period_us, transfer_us).0;
        let coarse = best(0.0, 2.0 * sector_us, TRANSFERS, score);
        let step = 2.0 * sector_us / TRANSFERS as f64;
        best((coarse - step).max(0.0), coarse + step, TRANSFERS, score)
    }

    /// The jackknife over groups: how the period changes without some of them.
    fn period_error_us(&self, pairs: &[Pair], period_us: f64, transfer_us: f64, width: f64) -> f64 {
        let without = |part: usize| {
            let rest: Vec<Pair> = pairs
                .iter()
                .filter(|pair| pair.group % PARTS != part)
                .copied()
                .collect();
            best_period(&rest, period_us, transfer_us, width, width / 50.0)
        };
        let periods: Vec<f64> = (0..PARTS).map(without).collect();
        let mean = periods.iter().sum::<f64>() / PARTS as f64;
        let squares: f64 = periods.iter().map(|period| (period - mean).powi(2)).sum();
        (squares * (PARTS - 1) as f64 / PARTS as f64).sqrt()
    }
}

/// The mean cosine and sine of what is left of pairs when whole revolutions and the angle
/// between their blocks are taken off.
fn direction(pairs: &[Pair], period_us: f64, transfer_us: f64) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for pair in pairs {
        let turns = (pair.gap_us - pair.blocks * transfer_us) / period_us - pair.angle;
        let (sine, cosine) = (TAU * turns.fract()).sin_cos();
        sums = (sums.0 + cosine, sums.1 + sine);
    }
    let count = pairs.len().max(1) as f64;
    (sums.0 / count, sums.1 / count)
}

/// The period around one with the highest mean cosine; the width and the step are shares
/// of it.
fn best_period(pairs: &[Pair], around_us: f64, transfer_us: f64, width: f64, step: f64) -> f64 {
    let steps = (2.0 * width / step).ceil().clamp(2.0, 10_000.0) as usize;
    let (low, high) = (around_us * (1.0 - width), around_us * (1.0 + width));
    best(low, high, steps, |period_us| {
        direction(pairs, period_us, transfer_us).0
    })
}

/// Where in a range a score is highest.
fn best(low: f64, high: f64, steps: usize, score: impl Fn(f64) -> f64) -> f64 {
    let at = |step: usize| low + (high - low) * step as f64 / steps as f64;
    let scores = (0..=steps).map(|step| (at(step), score(at(step))));
    let best = scores.max_by(|a, b| a.1.total_cmp(&b.1));
    best.map_or(low, |best| best.0)
}
