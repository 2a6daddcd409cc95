//! Differences between two runs that are not consequences of other differences.

use super::{DrivePart, SuspectedComponent};
use crate::explanation::words;

/// Difference between two runs, with the part of the computer that it belongs to.
pub(super) struct CandidateCause {
    pub(super) suspect: SuspectedComponent,
    /// Part of the drive that the cause belongs to, for a drive with firmware.
    pub(super) part: Option<DrivePart>,
    /// Certainty that the difference is a cause (see [`CauseRank`]), then its size among causes of equal
    /// rank.
    pub(super) rank_and_log_ratio: (CauseRank, f64),
    /// Description of the difference for the user.
    pub(super) evidence: String,
}

impl CandidateCause {
    pub(super) fn with_part(mut self, part: DrivePart) -> Self {
        self.part = Some(part);
        self
    }

    /// Tests whether the cause lies in the construction of a drive.
    pub(super) fn is_shape_difference(&self) -> bool {
        self.rank_and_log_ratio.0 == CauseRank::Shape
    }

    /// Tests whether the cause is unlikely to be a consequence of another one.
    pub(super) fn has_certain_rank(&self) -> bool {
        self.rank_and_log_ratio.0 >= CauseRank::Unit
    }
}

/// Certainty that a difference is a cause. A difference can only be a consequence of one with a
/// higher rank, listed further down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CauseRank {
    /// Lowest rank of a cause: a difference that may well be a consequence of another.
    Hint,
    /// Rank of a difference in a limit, such as a maximum number of requests in flight. The maximum
    /// may be lower for other reasons.
    Limit,
    /// Rank of a difference in the duration of one routine or one command.
    Unit,
    /// Rank of a difference in the duration of all routines, or in the choice of requests.
    Policy,
    /// Rank of a difference in the positions of blocks, which also determine the transfer sizes and
    /// depend on the drive.
    Layout,
    /// Highest rank of a cause: a difference in the construction of the drive.
    Shape,
}

/// Minimum absolute logarithm of the ratio of two values that counts as a difference between runs.
const EQUAL_LOG_RATIO_MAX: f64 = 0.015;
/// Ratio assumed for a cost that occurs in only one of two runs.
const RATIO_MAX: f64 = 20.0;

pub(super) fn new_cause(
    suspect: SuspectedComponent,
    weight: (CauseRank, f64),
    evidence: String,
) -> CandidateCause {
    CandidateCause {
        suspect,
        part: None,
        rank_and_log_ratio: weight,
        evidence,
    }
}

/// Returns the absolute logarithm of the ratio of two values, if they differ. A missing value
/// counts as 0.
pub(super) fn log_ratio_if_different(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a.unwrap_or(0.0), b.unwrap_or(0.0));
    let most = RATIO_MAX.ln();
    let size = match (a > 0.0, b > 0.0) {
        (true, true) => (b / a).ln().clamp(-most, most).abs(),
        (false, false) => 0.0,
        (true, false) | (false, true) => most,
    };
    (size > EQUAL_LOG_RATIO_MAX).then_some(size)
}

/// Minimum number of samples from which the diagnosis draws a conclusion.
pub(super) const SAMPLE_COUNT_MIN: usize = 20;
/// Coefficient of the Kolmogorov-Smirnov test at 1 %: two samples of one distribution exceed it by
/// chance once in a hundred times.
const KOLMOGOROV_SMIRNOV_COEFFICIENT: f64 = 1.63;

/// Returns the largest distance between the distributions of two sorted samples, unless chance
/// explains it.
pub(super) fn distribution_distance(a: &[u64], b: &[u64]) -> Option<f64> {
    let (of_a, of_b) = (a.len() as f64, b.len() as f64);
    if a.len().min(b.len()) < SAMPLE_COUNT_MIN {
        return None;
    }
    let below = |of: &[u64], value: u64| of.partition_point(|one| *one <= value) as f64;
    let apart = |value: &u64| (below(a, *value) / of_a - below(b, *value) / of_b).abs();
    let most = a.iter().chain(b).map(apart).max_by(f64::total_cmp)?;
    (most > KOLMOGOROV_SMIRNOV_COEFFICIENT * ((of_a + of_b) / (of_a * of_b)).sqrt()).then_some(most)
}

/// Describes the durations of the same thing in two runs.
pub(super) fn describe_both_values(what: &str, a: Option<f64>, b: Option<f64>) -> String {
    let told = |ns: Option<f64>| ns.map_or_else(|| "nothing".to_owned(), words::format_time_ms);
    format!(
        "{what} takes {} in one run and {} in the other",
        told(a),
        told(b)
    )
}
