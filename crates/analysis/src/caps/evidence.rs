//! Evidence for a cap: ratios of rates that are one, and windows that differ by less than chance.

use super::{CappedUnit, NoCapReason};
use crate::statistics::interleaved::{ConfidenceSequence, DecisionLimits};
use crate::statistics::{mean, median, variance};
use diskperf_timeline::{ProbeWindow, ProbedLoad};

/// Largest deviation of a ratio from one for rates that are the same.
const RATIO_TOLERANCE: f64 = 0.02;

/// Rows among which the error probability of 1 % is divided: 0.25 % for each ratio, so that a device
/// passes the two that a cap needs with 0.5 % at most.
const RATIO_ROWS: usize = 4;

/// Share of the windows that must be near their median.
const NEAR_MEDIAN_SHARE_MIN: f64 = 0.8;

/// Distance from the median of windows that are near it.
const NEAR_MEDIAN: f64 = 0.01;

/// Largest variance of counts divided by their mean. Independent completions have 1.
const DISPERSION_MAX: f64 = 0.2;

/// Variance of the 80 % of a normal distribution that are nearest to its middle, as a share of its
/// variance: 1 - 2 z f(z) / 0.8, with z the quantile of 90 % and f the density.
const CENTRAL_VARIANCE_SHARE: f64 = 0.4377;

/// Relation of the rate of one load to that of the base load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ConstantRatio {
    /// The rates are the same within the tolerance.
    Same,
    /// The rates have another ratio.
    Other(f64),
    /// The rounds vary too much, or are too few.
    Unknown,
}

impl ConstantRatio {
    /// Judges the ratio of a load's rate to the base load's, over the rounds of the windows.
    pub(super) fn judge(windows: &[ProbeWindow], load: ProbedLoad, unit: CappedUnit) -> Self {
        let limits = DecisionLimits {
            effect_share_min: RATIO_TOLERANCE,
        };
        let mut sequence = ConfidenceSequence::new(RATIO_ROWS, limits);
        for round in windows.chunks_exact(ProbedLoad::ALL.len()) {
            let place = |of| round.iter().position(|one| one.load == of);
            let (Some(base), Some(other)) = (place(ProbedLoad::Base), place(load)) else {
                continue;
            };
            let [base_rate, other_rate] = [base, other].map(|index| unit.rate(&round[index]));
            sequence.add_block_rates(base_rate, other_rate, other > base);
        }
        let Some(estimate) = sequence.estimate() else {
            return Self::Unknown;
        };
        let tolerance = libm::log1p(RATIO_TOLERANCE);
        // The sequence compares times, the inverses of rates.
        if estimate.ln_ratio_min > -tolerance && estimate.ln_ratio_max < tolerance {
            Self::Same
        } else if estimate.ln_ratio.abs() > tolerance
            && (estimate.ln_ratio_min > 0.0 || estimate.ln_ratio_max < 0.0)
        {
            Self::Other(libm::exp(-estimate.ln_ratio))
        } else {
            Self::Unknown
        }
    }
}

/// Regularity of the rate over windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Regularity {
    share_near_median: f64,
    dispersion: f64,
}

impl Regularity {
    /// Measures windows of all loads, whose rates in the unit of a cap are the same.
    pub(super) fn measure(windows: &[ProbeWindow], unit: CappedUnit) -> Self {
        let rates: Vec<f64> = windows.iter().map(|one| unit.rate(one)).collect();
        let middle = median(&rates).unwrap_or(0.0);
        let is_near = |rate: &&f64| (*rate - middle).abs() <= NEAR_MEDIAN * middle;
        let near = rates.iter().filter(is_near).count();
        let of_loads = ProbedLoad::ALL.map(|load| {
            let windows = windows.iter().filter(|one| one.load == load);
            measure_dispersion(&windows.copied().collect::<Vec<_>>())
        });
        let known: Vec<f64> = of_loads.into_iter().flatten().collect();
        Self {
            share_near_median: near as f64 / rates.len().max(1) as f64,
            dispersion: mean(&known).unwrap_or(0.0),
        }
    }

    /// Fails unless the rate is as regular as that of a cap.
    pub(super) fn require(self) -> Result<(), NoCapReason> {
        let Self {
            share_near_median,
            dispersion,
        } = self;
        match share_near_median >= NEAR_MEDIAN_SHARE_MIN && dispersion <= DISPERSION_MAX {
            true => Ok(()),
            false => Err(NoCapReason::Irregular {
                share_near_median,
                dispersion,
            }),
        }
    }
}

/// Returns the variance of the counts of requests divided by their mean, from the 80 % of the windows
/// that are nearest to the median, so that a stall of the machine does not decide. `None` for fewer
/// than five windows.
fn measure_dispersion(windows: &[ProbeWindow]) -> Option<f64> {
    let mut rates: Vec<f64> = windows
        .iter()
        .map(|one| CappedUnit::Requests.rate(one))
        .collect();
    let middle = median(&rates)?;
    rates.sort_by(|one, other| (one - middle).abs().total_cmp(&(other - middle).abs()));
    rates.truncate(rates.len() * 4 / 5);
    let durations: Vec<f64> = windows.iter().map(|one| one.duration.seconds()).collect();
    if rates.len() < 4 || middle <= 0.0 {
        return None;
    }
    let count_variance_share = variance(&rates)? * median(&durations)? / middle;
    Some(count_variance_share / CENTRAL_VARIANCE_SHARE)
}
