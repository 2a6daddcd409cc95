//! Histogram with bins of a constant relative width.

use serde::Serialize;

/// Binary logarithm of the number of bins per power of two. Values are known to within a 128th.
const BITS: u32 = 6;
const BINS: usize = 1 << BITS;

/// Histogram of whole numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    bins: Vec<f64>,
    total: f64,
    sum: f64,
    most: u64,
}

fn bin(value: u64) -> usize {
    let exponent = value.checked_ilog2().unwrap_or(0);
    match exponent < BITS {
        true => value as usize,
        false => {
            let within = (value >> (exponent - BITS)) as usize - BINS;
            BINS + (exponent - BITS) as usize * BINS + within
        }
    }
}

/// Returns the first value of a bin, and the first value after the bin.
fn range(bin: usize) -> (f64, f64) {
    if bin < BINS {
        return (bin as f64, bin as f64 + 1.0);
    }
    let (octave, within) = ((bin - BINS) / BINS, (bin - BINS) % BINS);
    let width = (1u128 << octave) as f64;
    let first = (BINS + within) as f64 * width;
    (first, first + width)
}

impl Counts {
    /// Counts a value `times` times.
    #[inline]
    pub(super) fn add(&mut self, value: u64, times: f64) {
        let bin = bin(value);
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0.0);
        }
        self.bins[bin] += times;
        self.total += times;
        self.sum += value as f64 * times;
        self.most = self.most.max(value);
    }

    /// Returns the sum of all counts.
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.total.max(f64::MIN_POSITIVE)
    }

    /// Multiplies all counts by a factor.
    pub(super) fn scale(&mut self, by: f64) {
        self.bins.iter_mut().for_each(|count| *count *= by);
        self.total *= by;
        self.sum *= by;
    }

    /// Returns the value that the given share of all values does not exceed, as the middle of its
    /// bin.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.total;
        let mut below = 0.0;
        for (bin, count) in self.bins.iter().enumerate() {
            below += count;
            if below >= wanted && *count > 0.0 {
                let (first, end) = range(bin);
                let middle = if bin < BINS {
                    first
                } else {
                    (first + end) / 2.0
                };
                return middle.min(self.most as f64);
            }
        }
        self.most as f64
    }

    /// Returns the number of values of at least `value`. The bin of `value` counts in proportion.
    pub(super) fn at_least(&self, value: f64) -> f64 {
        let of = |(bin, count): (usize, &f64)| {
            let (first, end) = range(bin);
            count * ((end - value) / (end - first)).clamp(0.0, 1.0)
        };
        self.bins.iter().enumerate().map(of).sum()
    }

    /// Returns the quantile, or `None` if there are too few values to determine it.
    fn told_quantile(&self, share: f64) -> Option<f64> {
        tells(share, self.total).then(|| self.quantile(share))
    }

    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        (self.total > 0.0).then(|| Quantiles {
            mean: self.mean(),
            p50: self.quantile(0.5),
            p90: self.told_quantile(0.9),
            p99: self.told_quantile(0.99),
            p999: self.told_quantile(0.999),
            most: self.most as f64,
        })
    }

    /// Returns the counts by powers of two, as pairs of first value and count.
    pub(super) fn octaves(&self) -> Vec<(u64, f64)> {
        let mut all: Vec<(u64, f64)> = Vec::new();
        for (bin, count) in self
            .bins
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0.0)
        {
            let (first, _) = range(bin);
            let octave = match first as u64 {
                0 => 0,
                value => 1 << value.ilog2(),
            };
            match all.last_mut() {
                Some((last, sum)) if *last == octave => *sum += count,
                _ => all.push((octave, *count)),
            }
        }
        all
    }
}

/// Reports whether `count` values determine a quantile: at least one value lies above it.
pub(super) fn tells(share: f64, count: f64) -> bool {
    const ROUNDING: f64 = 1e-6;
    count * (1.0 - share) + ROUNDING >= 1.0
}

/// Quantiles of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// Mean of the values.
    pub mean: f64,
    /// Median of the values.
    pub p50: f64,
    /// 90th percentile. `None` for fewer than ten values.
    pub p90: Option<f64>,
    /// 99th percentile. `None` for fewer than a hundred values.
    pub p99: Option<f64>,
    /// 99.9th percentile. `None` for fewer than a thousand values.
    pub p999: Option<f64>,
    /// Maximum value.
    pub most: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_narrow_and_follow_each_other() {
        let mut last = 0;
        for value in (0..100_000).chain([1 << 40, u64::MAX]) {
            let found = bin(value);
            let (first, end) = range(found);
            assert!(found >= last && first <= value as f64 && (value as f64) <= end);
            assert!(end - first <= 1.0f64.max(first / 63.0), "{value}");
            last = found;
        }
    }
}
