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

use super::{insert_sorted, median_of_sorted};

/// Maximum probability that any row of an A/A measurement is ever called different.
pub const ERROR: f64 = 0.01;

/// Minimum difference that counts in practice, however surely a smaller one was measured: 1 %.
pub const PRACTICAL_FLOOR: f64 = 0.01;

/// Minimum number of blocks from which the effect of the order is estimated and removed.
const ORDER_BLOCKS_MIN: usize = 8;

/// Minimum share of the blocks that must agree on the sign of the order's effect.
const ORDER_AGREEMENT_SHARE_MIN: f64 = 0.75;

/// Minimum number of blocks after the verdict for the size of a difference.
pub const SIZE_BLOCKS_MIN: usize = 5;

/// Returns the number of blocks after a verdict that measure the size of the difference, given the
/// number that decided: as many again, made odd so that one of them is the median.
pub fn size_blocks(deciding: usize) -> usize {
    deciding | 1
}

/// Settings by which the difference of two arms is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Smallest change that matters, as a share above 0. Smaller changes need not be distinguished
    /// from none.
    pub min_effect: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { min_effect: 0.03 }
    }
}

/// Verdict of the blocks, with an error bound that holds for all looks together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// Arm B takes longer than A.
    Slower,
    /// Arm B takes less time than A.
    Faster,
    /// The difference is smaller than the smallest that matters.
    NoDifference,
}

/// Estimate of ln(t_B / t_A) with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Median of ln(t_B / t_A) over the blocks, within the interval.
    pub ln_ratio: f64,
    /// Lower end of the interval of ln(t_B / t_A).
    pub low: f64,
    /// Upper end of the interval of ln(t_B / t_A).
    pub high: f64,
}

/// Blocks of one row so far, with the interval that they establish.
#[derive(Clone, Debug)]
pub struct Sequence {
    ln_alpha: f64,
    /// Logarithm of the smallest change that matters.
    delta: f64,
    /// Logarithm of the practical floor, below which a difference never counts.
    floor: f64,
    /// Values of ln(t_B / t_A) without the effect of the order, in ascending order.
    corrected: Vec<f64>,
    /// Values of ln(t_second / t_first), in ascending order.
    order: Vec<f64>,
    /// Number of order statistics outside the interval at either end; 0 while no interval is known.
    rank: usize,
    /// Intersection of the intervals of all times so far.
    bounds: Option<Bounds>,
    /// Values of `corrected` from blocks that ran after the verdict, in ascending
    /// order; absent before the first of these.
    after_verdict: Option<Vec<f64>>,
}

/// Interval of ln(t_B / t_A).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// Returns the intersection with a later interval; the later interval where they are disjoint,
    /// which happens when the difference itself has changed.
    fn intersect(self, later: Self) -> Self {
        let common = Self {
            low: self.low.max(later.low),
            high: self.high.min(later.high),
        };
        match common.low <= common.high {
            true => common,
            false => later,
        }
    }
}

impl Sequence {
    /// Creates an empty sequence for one of `rows` rows that are judged together.
    pub fn new(rows: usize, limits: Limits) -> Self {
        let delta = libm::log1p(limits.min_effect.max(f64::EPSILON));
        Self {
            ln_alpha: libm::log(ERROR / rows.max(1) as f64),
            delta,
            floor: libm::log1p(PRACTICAL_FLOOR).min(delta),
            corrected: Vec::new(),
            order: Vec::new(),
            rank: 0,
            bounds: None,
            after_verdict: None,
        }
    }

    /// Makes the blocks from here on measure the size of the difference. The caller must not stop
    /// by their results.
    pub fn begin_size(&mut self) {
        self.after_verdict.get_or_insert_default();
    }

    /// Adds the rates of both arms in the next block, in the order of running. A block in which
    /// either arm has no rate is left out.
    pub fn add_rates(&mut self, a: f64, b: f64, b_second: bool) {
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
        insert_sorted(&mut self.corrected, corrected);
        if let Some(after_verdict) = &mut self.after_verdict {
            insert_sorted(after_verdict, corrected);
        }
        insert_sorted(&mut self.order, sign * ln_ratio);
        self.rank = next_rank(self.corrected.len(), self.rank, self.ln_alpha);
        self.intersect();
    }

    /// Narrows the interval of the difference by the blocks so far.
    fn intersect(&mut self) {
        let Some(lowest) = self.rank.checked_sub(1) else {
            return;
        };
        let now = Bounds {
            low: self.corrected[lowest],
            high: self.corrected[self.corrected.len() - self.rank],
        };
        let earlier = self.bounds.unwrap_or(now);
        self.bounds = Some(earlier.intersect(now));
    }

    fn order_correction(&self) -> f64 {
        let n = self.order.len();
        let negative = self.order.partition_point(|one| *one < 0.0);
        let positive = n - self.order.partition_point(|one| *one <= 0.0);
        let agreed = negative.max(positive) as f64 >= ORDER_AGREEMENT_SHARE_MIN * n as f64;
        match n >= ORDER_BLOCKS_MIN && agreed {
            true => median_of_sorted(&self.order).unwrap_or(0.0),
            false => 0.0,
        }
    }

    /// Counts the blocks that were added so far.
    pub fn blocks(&self) -> usize {
        self.corrected.len()
    }

    /// Returns the estimate of the arms' difference; `None` while the blocks are too few.
    pub fn estimate(&self) -> Option<Estimate> {
        let Bounds { low, high } = self.bounds?;
        Some(Estimate {
            ln_ratio: self.median()?.clamp(low, high),
            low,
            high,
        })
    }

    /// Returns the size of the difference as ln(t_B / t_A), without the bias of a measurement that
    /// stops where it finds one. It is the median of the blocks after the verdict, or of all blocks
    /// where those are too few. `None` without a block.
    ///
    /// Bounds that hold do not separate the median from the truth, so that limiting it to them
    /// leaves it unbiased.
    pub fn size(&self) -> Option<f64> {
        let unbiased = self.after_verdict.as_deref();
        let unbiased = unbiased.filter(|blocks| blocks.len() >= SIZE_BLOCKS_MIN);
        let size = median_of_sorted(unbiased.unwrap_or(&self.corrected))?;
        Some(self.bounds.map_or(size, |it| size.clamp(it.low, it.high)))
    }

    /// Returns the median of ln(t_B / t_A); `None` without a block.
    pub fn median(&self) -> Option<f64> {
        median_of_sorted(&self.corrected)
    }

    /// Returns the verdict on the arms' difference; `None` while it is open.
    pub fn verdict(&self) -> Option<Decided> {
        let Estimate {
            ln_ratio,
            low,
            high,
        } = self.estimate()?;
        let matters = ln_ratio.abs() >= self.floor;
        match (low > 0.0, high < 0.0) {
            (true, _) if matters => Some(Decided::Slower),
            (_, true) if matters => Some(Decided::Faster),
            _ if low > -self.delta && high < self.delta => Some(Decided::NoDifference),
            _ => None,
        }
    }

    /// Reports whether B's rate is lower than A's by more than the share `limit` (0 to 1).
    ///
    /// `true` if it is surely lower, and by more than the limit in [size](Self::size); `false` if
    /// it is surely not that much lower; `None` while it is open. A limit on a comparison judges by
    /// the same numbers. Blocks that measure the size may reopen an earlier answer.
    pub fn is_regression(&self, limit: f64) -> Option<bool> {
        let estimate = self.estimate()?;
        // Rates are the inverse of times.
        let bound = -libm::log1p(-limit);
        let is_beyond = self.size().is_some_and(|size| size > bound);
        if self.verdict() == Some(Decided::Slower) && is_beyond {
            return Some(true);
        }
        (estimate.high <= bound).then_some(false)
    }

    /// Returns the median of ln(t_second / t_first), the effect of the order; `None` without a
    /// block.
    pub fn order_effect(&self) -> Option<f64> {
        median_of_sorted(&self.order)
    }
}

/// Returns the number of order statistics outside the interval at either end for `n` signs, given
/// the number for n - 1 signs, which is no larger.
fn next_rank(n: usize, mut rank: usize, ln_alpha: f64) -> usize {
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
