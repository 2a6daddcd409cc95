//! Judgement of two arms measured in interleaved blocks, after every block.
//!
//! A block is one repetition of A and one of B, one after the other, in an order that a fair coin
//! decides. If the arms are alike, the sign of ln(t_B / t_A) in each block is a fair coin whatever
//! came before. Then 2^n / ((n + 1) C(n, S)), with S positive signs of n, is a martingale of mean 1
//! and ever exceeds 1 / alpha with a probability of at most alpha (Ville 1939). One may therefore
//! look after each block and stop at will. Drift, modes, bursts and autocorrelation are in both
//! repetitions of a block or are turned by its coin, and cannot break the bound.
//!
//! Inverted, the test gives an interval that holds at all times together (a confidence sequence;
//! Howard and Ramdas, "Sequential estimation of quantiles", Bernoulli 28, 2022). Because the
//! intervals of all times hold together, so does their intersection.
//!
//! The median of blocks that ended because they differed overstates the difference: the measurement
//! stops sooner where chance enlarges it. Blocks after the verdict, in a number that does not
//! depend on their results, have no such bias, and their median alone is the size of the
//! difference.

use super::{insert_in_order, median_of_sorted};

/// Maximum probability that any row of an A/A measurement is ever called different.
pub const ERROR_PROBABILITY: f64 = 0.01;

/// Minimum difference that counts in practice, however surely a smaller one was measured: 1 %.
pub const PRACTICAL_EFFECT_MIN: f64 = 0.01;

/// Minimum number of blocks from which the effect of the order is estimated and removed.
const ORDER_BLOCK_COUNT_MIN: usize = 8;

/// Minimum share of the blocks that must agree on the sign of the order's effect.
const ORDER_AGREEMENT_SHARE_MIN: f64 = 0.75;

/// Minimum number of blocks after the verdict for the size of a difference.
pub const SIZE_BLOCK_COUNT_MIN: usize = 5;

/// Returns the number of blocks after a verdict that measure the size of the difference, given the
/// number that decided: as many again, made odd so that one of them is the median.
pub fn size_block_count(deciding: usize) -> usize {
    deciding | 1
}

/// Settings by which the difference of two arms is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecisionLimits {
    /// Smallest change that matters, as a share above 0. Smaller changes need not be distinguished
    /// from none.
    pub effect_share_min: f64,
}

impl Default for DecisionLimits {
    fn default() -> Self {
        Self {
            effect_share_min: 0.03,
        }
    }
}

/// Verdict of the blocks, with an error bound that holds for all looks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceVerdict {
    /// Arm B takes longer than A.
    Slower,
    /// Arm B takes less time than A.
    Faster,
    /// The difference is smaller than the smallest that matters.
    NoDifference,
}

/// Estimate of ln(t_B / t_A) with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RatioEstimate {
    /// Median of ln(t_B / t_A) over the blocks, within the interval.
    pub ln_ratio: f64,
    /// Lower end of the interval of ln(t_B / t_A).
    pub ln_ratio_min: f64,
    /// Upper end of the interval of ln(t_B / t_A).
    pub ln_ratio_max: f64,
}

/// Blocks of one row so far, with the interval that they establish.
#[derive(Clone, Debug)]
pub struct ConfidenceSequence {
    ln_alpha: f64,
    /// Logarithm of the smallest change that matters.
    ln_effect_min: f64,
    /// Logarithm of the practical floor, below which a difference never counts.
    ln_practical_floor: f64,
    /// Values of ln(t_B / t_A) without the effect of the order, in ascending order.
    corrected_ln_ratios: Vec<f64>,
    /// Values of ln(t_second / t_first), in ascending order.
    signed_ln_ratios: Vec<f64>,
    /// Number of order statistics outside the interval at either end; 0 while no interval is known.
    order_statistic_rank: usize,
    confidence_bounds: Option<LogRatioBounds>,
    /// Values of `corrected` from blocks that ran after the verdict, in ascending
    /// order; absent before the first of these.
    ratios_after_verdict: Option<Vec<f64>>,
}

/// Interval of ln(t_B / t_A).
#[derive(Clone, Copy, Debug, PartialEq)]
struct LogRatioBounds {
    ln_ratio_min: f64,
    ln_ratio_max: f64,
}

impl LogRatioBounds {
    /// Returns the intersection with a later interval; the later interval where they are disjoint,
    /// which happens when the difference itself has changed.
    fn intersect(self, later: Self) -> Self {
        let common = Self {
            ln_ratio_min: self.ln_ratio_min.max(later.ln_ratio_min),
            ln_ratio_max: self.ln_ratio_max.min(later.ln_ratio_max),
        };
        match common.ln_ratio_min <= common.ln_ratio_max {
            true => common,
            false => later,
        }
    }
}

impl ConfidenceSequence {
    /// Creates an empty sequence for one of `rows` rows that are judged together.
    pub fn new(rows: usize, limits: DecisionLimits) -> Self {
        let delta = libm::log1p(limits.effect_share_min.max(f64::EPSILON));
        Self {
            ln_alpha: libm::log(ERROR_PROBABILITY / rows.max(1) as f64),
            ln_effect_min: delta,
            ln_practical_floor: libm::log1p(PRACTICAL_EFFECT_MIN).min(delta),
            corrected_ln_ratios: Vec::new(),
            signed_ln_ratios: Vec::new(),
            order_statistic_rank: 0,
            confidence_bounds: None,
            ratios_after_verdict: None,
        }
    }

    /// Makes the blocks from here on measure the size of the difference. The caller must not stop
    /// by their results.
    pub fn begin_size_phase(&mut self) {
        self.ratios_after_verdict.get_or_insert_default();
    }

    /// Adds the rates of both arms in the next block, in the order of running. A block in which
    /// either arm has no rate is left out.
    pub fn add_block_rates(&mut self, a: f64, b: f64, b_second: bool) {
        // The times for one unit are the inverse of the rates.
        let ln_ratio = libm::log(a / b);
        if ln_ratio.is_finite() {
            self.add_ratio(ln_ratio, b_second);
        }
    }

    fn add_ratio(&mut self, ln_ratio: f64, b_second: bool) {
        let sign = if b_second { 1.0 } else { -1.0 };
        // From the past alone, or the coin of this block would no longer be fair.
        let order = self.order_correction();
        let corrected = ln_ratio - sign * order;
        insert_in_order(&mut self.corrected_ln_ratios, corrected);
        if let Some(after_verdict) = &mut self.ratios_after_verdict {
            insert_in_order(after_verdict, corrected);
        }
        insert_in_order(&mut self.signed_ln_ratios, sign * ln_ratio);
        self.order_statistic_rank = next_order_statistic_rank(
            self.corrected_ln_ratios.len(),
            self.order_statistic_rank,
            self.ln_alpha,
        );
        self.intersect_bounds();
    }

    /// Narrows the interval of the difference by the blocks so far.
    fn intersect_bounds(&mut self) {
        let Some(lowest) = self.order_statistic_rank.checked_sub(1) else {
            return;
        };
        let now = LogRatioBounds {
            ln_ratio_min: self.corrected_ln_ratios[lowest],
            ln_ratio_max: self.corrected_ln_ratios
                [self.corrected_ln_ratios.len() - self.order_statistic_rank],
        };
        let earlier = self.confidence_bounds.unwrap_or(now);
        self.confidence_bounds = Some(earlier.intersect(now));
    }

    fn order_correction(&self) -> f64 {
        let n = self.signed_ln_ratios.len();
        let negative = self.signed_ln_ratios.partition_point(|one| *one < 0.0);
        let positive = n - self.signed_ln_ratios.partition_point(|one| *one <= 0.0);
        let agreed = negative.max(positive) as f64 >= ORDER_AGREEMENT_SHARE_MIN * n as f64;
        match n >= ORDER_BLOCK_COUNT_MIN && agreed {
            true => median_of_sorted(&self.signed_ln_ratios).unwrap_or(0.0),
            false => 0.0,
        }
    }

    /// Counts the blocks that were added so far.
    pub fn block_count(&self) -> usize {
        self.corrected_ln_ratios.len()
    }

    /// Returns the estimate of the arms' difference; `None` while the blocks are too few.
    pub fn estimate(&self) -> Option<RatioEstimate> {
        let LogRatioBounds {
            ln_ratio_min: low,
            ln_ratio_max: high,
        } = self.confidence_bounds?;
        Some(RatioEstimate {
            ln_ratio: self.median_ln_ratio()?.clamp(low, high),
            ln_ratio_min: low,
            ln_ratio_max: high,
        })
    }

    /// Returns the size of the difference as ln(t_B / t_A), without the bias of a measurement that
    /// stops where it finds one. It is the median of the blocks after the verdict, or of all blocks
    /// where those are too few. `None` without a block.
    ///
    /// Bounds that hold do not separate the median from the truth, so that limiting it to them
    /// leaves it unbiased.
    pub fn effect_size(&self) -> Option<f64> {
        let unbiased = self.ratios_after_verdict.as_deref();
        let unbiased = unbiased.filter(|blocks| blocks.len() >= SIZE_BLOCK_COUNT_MIN);
        let size = median_of_sorted(unbiased.unwrap_or(&self.corrected_ln_ratios))?;
        Some(
            self.confidence_bounds
                .map_or(size, |it| size.clamp(it.ln_ratio_min, it.ln_ratio_max)),
        )
    }

    /// Returns the median of ln(t_B / t_A); `None` without a block.
    pub fn median_ln_ratio(&self) -> Option<f64> {
        median_of_sorted(&self.corrected_ln_ratios)
    }

    /// Returns the verdict on the arms' difference; `None` while it is open.
    pub fn verdict(&self) -> Option<SequenceVerdict> {
        let RatioEstimate {
            ln_ratio,
            ln_ratio_min: low,
            ln_ratio_max: high,
        } = self.estimate()?;
        let matters = ln_ratio.abs() >= self.ln_practical_floor;
        match (low > 0.0, high < 0.0) {
            (true, _) if matters => Some(SequenceVerdict::Slower),
            (_, true) if matters => Some(SequenceVerdict::Faster),
            _ if low > -self.ln_effect_min && high < self.ln_effect_min => {
                Some(SequenceVerdict::NoDifference)
            }
            _ => None,
        }
    }

    /// Reports whether B's rate is lower than A's by more than the share `limit` (0 to 1).
    ///
    /// `true` if it is surely lower, and by more than the limit in [size](Self::size); `false` if
    /// it is surely not that much lower; `None` while it is open. A limit on a comparison judges by
    /// the same numbers. Blocks that measure the size may reopen an earlier answer.
    pub fn is_slowdown_above(&self, limit: f64) -> Option<bool> {
        let estimate = self.estimate()?;
        // Rates are the inverse of times.
        let bound = -libm::log1p(-limit);
        let is_beyond = self.effect_size().is_some_and(|size| size > bound);
        if self.verdict() == Some(SequenceVerdict::Slower) && is_beyond {
            return Some(true);
        }
        (estimate.ln_ratio_max <= bound).then_some(false)
    }

    /// Returns the median of ln(t_second / t_first), the effect of the order; `None` without a
    /// block.
    pub fn order_effect(&self) -> Option<f64> {
        median_of_sorted(&self.signed_ln_ratios)
    }
}

/// Returns the number of order statistics outside the interval at either end for `n` signs, given
/// the number for n - 1 signs, which is no larger.
fn next_order_statistic_rank(n: usize, mut rank: usize, ln_alpha: f64) -> usize {
    let ln_gamma = |one: usize| libm::lgamma(one as f64);
    let bound = ln_alpha + n as f64 * std::f64::consts::LN_2;
    let ways = |k: usize| {
        libm::log((n + 1) as f64) + ln_gamma(n + 1) - ln_gamma(k + 1) - ln_gamma(n - k + 1)
    };
    while 2 * rank < n && ways(rank) <= bound {
        rank += 1;
    }
    rank
}

#[cfg(test)]
mod tests;
