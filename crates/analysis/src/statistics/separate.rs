//! Comparison of two runs made one after the other, which is weak evidence.
//!
//! No formula that looks inside the runs can see what all repetitions of one run share and the
//! other run lacks: the position of the files, the neighbours of the hour. Identical runs on shared
//! machines differed in their medians by 10 to 18 % (standard deviation), with a neighbour by 22 to
//! 68 %.
//!
//! The slow part of that variation shows within a run as well: the medians of its four quarters
//! differ. Their spread, never less than a floor, stands for the spread of whole runs. It is not
//! divided by the root of four, since slow noise does not average out.

use super::student::student_quantile;
use super::{median, minimum, standard_deviation, take_logarithms};

/// Minimum number of repetitions in each run for a firm verdict.
pub const VERDICT_REPETITION_COUNT_MIN: usize = 16;

/// Default noise between whole runs, as the standard deviation of the logarithm.
pub const ERROR_FLOOR_DEFAULT: f64 = 0.05;

/// Minimum noise between whole runs, however alike earlier ones were, as the standard deviation of
/// the logarithm.
const DIFFERENCE_MIN: f64 = 0.02;

/// Minimum number of earlier runs from which the noise between runs is estimated.
pub const HISTORY_RUN_COUNT_MIN: usize = 8;

/// Probability that any row of two like runs is called different.
pub const ERROR_PROBABILITY: f64 = 0.01;

/// Number of parts into which a run is divided.
const QUARTER_COUNT: usize = 4;

/// Degrees of freedom of two variances from four values each.
const STUDENT_DEGREES_OF_FREEDOM: f64 = 6.0;

/// Distance as a logarithm at which a run counts as disturbed. A run whose median lies this far
/// above its fastest repetition was disturbed for half of its time. Two differences this far apart,
/// of the medians and of the fastest repetitions, contradict each other.
pub const DISTURBED_QUARTER_DEVIATION_MIN: f64 = 0.10;

/// Comparison of two runs by their medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeparateEstimate {
    /// Difference of the runs as ln(t_other / t_base); above 0 the other is slower.
    pub ln_difference: f64,
    /// Half the width of the interval around the difference.
    pub ln_half_width: f64,
    /// Reason against a firm verdict, if there is one.
    pub undecided_reason: Option<SeparateDoubt>,
}

/// Reason against a firm verdict on two separate runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeparateDoubt {
    /// A run has fewer than [`VERDICT_REPETITION_COUNT_MIN`] repetitions.
    TooFewRepetitions,
    /// The base run was disturbed for half of its time.
    BaseDisturbed,
    /// The other run was disturbed for half of its time.
    OtherDisturbed,
    /// The medians and the fastest repetitions of the runs disagree.
    FastestQuartersDisagree,
}

impl SeparateEstimate {
    /// Compares the rates of the kept repetitions, in the order of running, as one of `rows` rows
    /// that are judged together.
    ///
    /// `floor` is the minimum noise between whole runs, see [`floor`]. `None` where either run has
    /// fewer than four rates, or one that is not positive and finite.
    pub fn from_runs(base: &[f64], other: &[f64], rows: usize, floor: f64) -> Option<Self> {
        if base.len().min(other.len()) < QUARTER_COUNT {
            return None;
        }
        // Of the medians that are shown, and not of those of the logarithms.
        let difference = libm::log(median(base)? / median(other)?);
        let few = base.len().min(other.len()) < VERDICT_REPETITION_COUNT_MIN;
        let (base, other) = (log_durations(base)?, log_durations(other)?);
        let spread = |of: &[f64]| Some(quarter_mean_deviation(of)?.powi(2));
        let variance = (spread(&base)? + spread(&other)?) / 2.0;
        let t = student_quantile(
            1.0 - ERROR_PROBABILITY / 2.0 / rows.max(1) as f64,
            STUDENT_DEGREES_OF_FREEDOM,
        );
        let half_width = t * std::f64::consts::SQRT_2 * variance.sqrt().max(floor);
        let above_fastest = |of: &[f64]| Some(median(of)? - minimum(of)?);
        let fastest = minimum(&other)? - minimum(&base)?;
        let doubt = if few {
            Some(SeparateDoubt::TooFewRepetitions)
        } else if above_fastest(&base)? >= DISTURBED_QUARTER_DEVIATION_MIN {
            Some(SeparateDoubt::BaseDisturbed)
        } else if above_fastest(&other)? >= DISTURBED_QUARTER_DEVIATION_MIN {
            Some(SeparateDoubt::OtherDisturbed)
        } else if (fastest - difference).abs() >= DISTURBED_QUARTER_DEVIATION_MIN {
            Some(SeparateDoubt::FastestQuartersDisagree)
        } else {
            None
        };
        Some(Self {
            ln_difference: difference,
            ln_half_width: half_width,
            undecided_reason: doubt,
        })
    }

    /// Tests whether the interval excludes equality of the runs.
    pub fn excludes_equality(&self) -> bool {
        self.ln_difference.abs() > self.ln_half_width
    }

    /// Returns the largest difference within the interval, as a share.
    pub fn unresolved_difference_max(&self) -> f64 {
        libm::expm1(self.ln_difference.abs() + self.ln_half_width)
    }
}

/// Returns the logarithms of the times for one unit of work, given the rates.
fn log_durations(rates: &[f64]) -> Option<Vec<f64>> {
    let logs = take_logarithms(rates)?;
    Some(logs.into_iter().map(|one| -one).collect())
}

/// Returns the minimum noise between whole runs, given the median rates of earlier runs of the same
/// thing.
pub fn error_floor(earlier_medians: &[f64]) -> f64 {
    let known =
        take_logarithms(earlier_medians).filter(|known| known.len() >= HISTORY_RUN_COUNT_MIN);
    match known.and_then(|known| standard_deviation(&known)) {
        Some(deviation) => deviation.max(DIFFERENCE_MIN),
        None => ERROR_FLOOR_DEFAULT,
    }
}

/// Returns the standard deviation of the medians of four successive parts. Where four does not
/// divide the number of values, the first parts are longer by one.
fn quarter_mean_deviation(values: &[f64]) -> Option<f64> {
    let (least, longer) = (values.len() / QUARTER_COUNT, values.len() % QUARTER_COUNT);
    let mut rest = values;
    let mut medians = Vec::with_capacity(QUARTER_COUNT);
    for number in 0..QUARTER_COUNT {
        let (part, after) = rest.split_at(least + usize::from(number < longer));
        medians.push(median(part)?);
        rest = after;
    }
    standard_deviation(&medians)
}

#[cfg(test)]
mod tests;
