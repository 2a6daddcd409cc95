//! Two arms measured in interleaved blocks, judged after every block.
//!
//! A block is one repetition of A and one of B, one after the other, in an order
//! that a fair coin decides. If the arms are alike, the sign of ln(t_B / t_A) in
//! each block is a fair coin whatever came before, so
//! 2^n / ((n + 1) C(n, S)), S the number of positive signs of n, is a martingale
//! of mean 1 and ever exceeds 1 / alpha with a probability of at most alpha
//! (Ville 1939). One may therefore look after each block and stop at will; drift,
//! modes, bursts and autocorrelation are in both repetitions of a block or are
//! turned by its coin, and cannot break the bound. Inverted, the test gives an
//! interval that holds at all times at once (a confidence sequence; Howard and
//! Ramdas, "Sequential estimation of quantiles", Bernoulli 28, 2022). Because the
//! intervals of all times hold together, so does their intersection.
//!
//! The median of blocks that ended because they differed overstates the difference:
//! the measurement stops sooner where chance enlarges it. Blocks that run after the
//! verdict, in a number that does not depend on their results, have no such bias, and
//! the size of the difference is their median alone.

use super::{insert_sorted, median_of_sorted};

/// The probability that any row of an A/A measurement is ever called different.
pub const ERROR: f64 = 0.01;

/// A difference below 1 % is none in practice, however surely it was measured.
pub const PRACTICAL_FLOOR: f64 = 0.01;

/// So many blocks show the order's effect before it is taken out.
const ORDER_FROM: usize = 8;

/// This share of the blocks must agree on the sign of the order's effect.
const ORDER_AGREED: f64 = 0.75;

/// Blocks after the verdict from which the size of a difference may be taken.
pub const SIZE_BLOCKS_MIN: usize = 5;

/// Number of blocks after a verdict that measure the size of the difference, which
/// took so many blocks to be found: as many again, and an odd number, so that one of
/// them is the median.
pub fn size_blocks(deciding: usize) -> usize {
    deciding | 1
}

/// What one wants to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The smallest change that matters, as a share above 0: smaller ones need
    /// not be told from none.
    pub min_effect: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { min_effect: 0.03 }
    }
}

/// What is established, with an error that all looks together keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// B takes longer.
    Slower,
    /// B takes less time.
    Faster,
    /// The difference is smaller than the smallest that matters.
    NoDifference,
}

/// ln(t_B / t_A), and where it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median over the blocks.
    pub ln_ratio: f64,
    /// It is at least this.
    pub low: f64,
    /// It is at most this.
    pub high: f64,
}

/// The blocks of one row so far.
#[derive(Clone, Debug)]
pub struct Sequence {
    ln_alpha: f64,
    /// As logarithms: the smallest change that matters, and the practical floor.
    delta: f64,
    floor: f64,
    /// ln(t_B / t_A) without the effect of the order, in ascending order.
    corrected: Vec<f64>,
    /// ln(second / first), in ascending order.
    order: Vec<f64>,
    /// So many order statistics from either end bound the interval; 0 as long as
    /// nothing can be said.
    rank: usize,
    /// Intersection of the intervals of all times so far.
    bounds: Option<Bounds>,
    /// Values of `corrected` from blocks that ran after the verdict, in ascending
    /// order; absent before the first of these.
    after_verdict: Option<Vec<f64>>,
}

/// An interval of ln(t_B / t_A).
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    low: f64,
    high: f64,
}

impl Bounds {
    /// The part that is common to both; the later interval where there is none, which
    /// is where the difference itself has changed.
    fn narrow(self, later: Self) -> Self {
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
    /// Of one of `rows` rows that are judged together.
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

    /// Has the blocks from here on measure the size of the difference. What calls it
    /// must not stop by their results.
    pub fn begin_size(&mut self) {
        self.after_verdict.get_or_insert_default();
    }

    /// Takes the rates of the next block in the order of running. One in which
    /// either has none says nothing and is left out.
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
        let order = self.order_to_take_out();
        let corrected = ln_ratio - sign * order;
        insert_sorted(&mut self.corrected, corrected);
        if let Some(after_verdict) = &mut self.after_verdict {
            insert_sorted(after_verdict, corrected);
        }
        insert_sorted(&mut self.order, sign * ln_ratio);
        self.rank = next_rank(self.corrected.len(), self.rank, self.ln_alpha);
        self.narrow();
    }

    /// Takes the interval of this time into the bounds.
    fn narrow(&mut self) {
        let Some(lowest) = self.rank.checked_sub(1) else {
            return;
        };
        let now = Bounds {
            low: self.corrected[lowest],
            high: self.corrected[self.corrected.len() - self.rank],
        };
        let earlier = self.bounds.unwrap_or(now);
        self.bounds = Some(earlier.narrow(now));
    }

    fn order_to_take_out(&self) -> f64 {
        let n = self.order.len();
        let negative = self.order.partition_point(|one| *one < 0.0);
        let positive = n - self.order.partition_point(|one| *one <= 0.0);
        let agreed = negative.max(positive) as f64 >= ORDER_AGREED * n as f64;
        match n >= ORDER_FROM && agreed {
            true => median_of_sorted(&self.order).unwrap_or(0.0),
            false => 0.0,
        }
    }

    /// Blocks so far.
    pub fn blocks(&self) -> usize {
        self.corrected.len()
    }

    /// Where the difference lies; `None` as long as the blocks are too few.
    pub fn estimate(&self) -> Option<Estimate> {
        let Bounds { low, high } = self.bounds?;
        Some(Estimate {
            ln_ratio: self.median()?.clamp(low, high),
            low,
            high,
        })
    }

    /// Size of the difference, as ln(t_B / t_A), without the bias of a measurement that
    /// stops where it finds one: the median of the blocks after the verdict, and of all
    /// blocks where those are too few. `None` without a block.
    ///
    /// Bounds that hold do not part the median from the truth, so that keeping it within
    /// them leaves it unbiased.
    pub fn size(&self) -> Option<f64> {
        let unbiased = self.after_verdict.as_deref();
        let unbiased = unbiased.filter(|blocks| blocks.len() >= SIZE_BLOCKS_MIN);
        let size = median_of_sorted(unbiased.unwrap_or(&self.corrected))?;
        Some(self.bounds.map_or(size, |it| size.clamp(it.low, it.high)))
    }

    /// The median of ln(t_B / t_A); `None` without a block.
    pub fn median(&self) -> Option<f64> {
        median_of_sorted(&self.corrected)
    }

    /// What is established; `None` while it is open.
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

    /// Whether B's rate is lower than A's by more than the share `limit` (0 to 1):
    /// surely lower, and by more than that in [size](Self::size), or surely not by that
    /// much; `None` while it is open. A limit on a comparison judges by the same numbers.
    /// Blocks that measure the size may leave open what was answered before them.
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

    /// ln of how much longer the second repetition of a block takes: the median;
    /// `None` without a block.
    pub fn order_effect(&self) -> Option<f64> {
        median_of_sorted(&self.order)
    }
}

/// How many order statistics of `n` signs lie outside the interval at either end,
/// given how many did of n - 1, which are no more.
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
