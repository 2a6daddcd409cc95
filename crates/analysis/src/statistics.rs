//! Medians, quantiles and intervals that show the certainty of a figure.
//!
//! Everything is computed from the repetitions *in the order of running*, because their order shows
//! how far they share a drift (see [`drift`]). Logarithms are used throughout: speeds are positive
//! and their errors are relative, so an interval on logarithms can never reach below zero.

pub mod bootstrap;
pub mod drift;
pub mod interleaved;
pub mod separate;
pub mod shape;
pub mod steady;
pub mod student;

use serde::{Serialize, Serializer};

/// Default confidence of intervals.
pub const CONFIDENCE_LEVEL: f64 = 0.95;

/// Minimum number of values for which the median gets a bootstrap interval.
const BOOTSTRAP_VALUE_COUNT_MIN: usize = 6;

/// Method by which an interval was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IntervalMethod {
    /// Expanded percentile bootstrap of the median, see [`bootstrap`].
    BootstrapMedian,
    /// Student's t on the logarithms, for two to five values. It assumes that they are log-normal,
    /// and is wide because few values say little.
    StudentLog,
    /// Comparison of the medians of two separate runs, see [`separate`].
    SeparateRuns,
    /// Comparison over the blocks of an A/B measurement, see [`interleaved`].
    InterleavedBlocks,
    /// Exact value of a model: in virtual time nothing disturbs a repetition, and a rerun is the
    /// same to the last byte.
    ExactValue,
}

impl IntervalMethod {
    /// Returns the name of the method in JSON and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::BootstrapMedian => "bootstrap of the median",
            Self::StudentLog => "Student t on logarithms",
            Self::SeparateRuns => "Student t on the medians of quarters of two runs",
            Self::InterleavedBlocks => "sign test in sequence over interleaved blocks",
            Self::ExactValue => "exact, in virtual time",
        }
    }
}

impl Serialize for IntervalMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Interval that contains the true value with a stated confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConfidenceInterval {
    /// Lower end of the interval, in the unit of the figure.
    #[serde(rename = "low")]
    pub min: f64,
    /// Upper end of the interval, in the unit of the figure.
    #[serde(rename = "high")]
    pub max: f64,
    /// Confidence of the interval, between 0 and 1.
    pub confidence: f64,
    /// Method by which the interval was computed.
    pub method: IntervalMethod,
    /// Factor by which the interval was widened for the drift that the repetitions share; 1 where
    /// none was seen.
    #[serde(rename = "widened_by")]
    pub widening_factor: f64,
}

impl ConfidenceInterval {
    /// Creates the interval of a modelled figure, which consists of the figure itself.
    pub fn exact_value(value: f64) -> Self {
        Self {
            min: value,
            max: value,
            confidence: 1.0,
            method: IntervalMethod::ExactValue,
            widening_factor: 1.0,
        }
    }

    /// Returns the width of the interval as a share of the figure `point`, for a stopping rule.
    /// Infinite for a figure that is not positive.
    pub fn relative_width(&self, point: f64) -> f64 {
        if point > 0.0 {
            (self.max - self.min) / point
        } else {
            f64::INFINITY
        }
    }

    /// Tests whether `value` lies within the interval.
    pub fn contains(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }

    /// Returns the interval of exponentials of `center + [low, high]`, widened around `center`.
    fn exponentiate_interval(center: f64, low: f64, high: f64, widened_by: f64) -> (f64, f64) {
        (
            libm::exp(center + (low - center) * widened_by),
            libm::exp(center + (high - center) * widened_by),
        )
    }
}

/// Returns the value below which the share `q` (0 to 1) of the values lies, linearly interpolated
/// between order statistics (type 7 of Hyndman and Fan 1996). `None` for no values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    let share = place - below as f64;
    Some(sorted[below] + (sorted[above] - sorted[below]) * share)
}

/// Returns the median: the middle value, or the mean of the middle two. `None` for no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    match n {
        0 => None,
        n if n % 2 == 1 => Some(sorted[n / 2]),
        n => Some(0.5 * (sorted[n / 2 - 1] + sorted[n / 2])),
    }
}

/// Returns the smallest value; `None` for no values.
pub fn minimum(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

/// Returns the arithmetic mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the unbiased variance, with divisor n - 1; `None` for fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// Returns the standard deviation, with divisor n - 1; `None` for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    variance(values).map(f64::sqrt)
}

fn insert_in_order(sorted: &mut Vec<f64>, value: f64) {
    let place = sorted.partition_point(|one| one.total_cmp(&value).is_lt());
    sorted.insert(place, value);
}

/// Returns the natural logarithms, from the portable mathematical library so that the same values
/// give the same bits on every machine. `None` if a value is not positive and finite.
fn take_logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values
        .iter()
        .map(|&value| (value.is_finite() && value > 0.0).then(|| libm::log(value)))
        .collect()
}

/// Interval with the estimate that it surrounds, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CenteredInterval {
    /// Estimate that the interval surrounds: a median, a mean or a difference.
    pub center: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

pub(crate) fn are_all_equal(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0] == pair[1])
}

/// Returns the 95 % interval of the median of positive `values`, in the order of running.
///
/// Six or more values get a bootstrap; two to five get Student's t on the logarithms, as
/// [`ConfidenceInterval::method`] shows. `None` for fewer than two values, where one is not positive and
/// finite, or where they differ so much that the upper end overflows. Both intervals are widened
/// for drift.
pub fn median_interval(values: &[f64]) -> Option<ConfidenceInterval> {
    let logs = take_logarithms(values)?;
    let method = match values.len() {
        0 | 1 => return None,
        n if n < BOOTSTRAP_VALUE_COUNT_MIN => IntervalMethod::StudentLog,
        _ => IntervalMethod::BootstrapMedian,
    };
    let widened_by = drift::widening_factor(&[&logs]);
    let (low, high) = if are_all_equal(values) {
        (values[0], values[0])
    } else {
        let CenteredInterval { center, low, high } = match method {
            IntervalMethod::StudentLog => student::mean_interval(&logs, CONFIDENCE_LEVEL)?,
            _ => bootstrap::median_interval(&logs, CONFIDENCE_LEVEL)?,
        };
        ConfidenceInterval::exponentiate_interval(center, low, high, widened_by)
    };
    high.is_finite().then_some(ConfidenceInterval {
        min: low,
        max: high,
        confidence: CONFIDENCE_LEVEL,
        method,
        widening_factor: widened_by,
    })
}

#[cfg(test)]
mod tests;
