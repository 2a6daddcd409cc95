//! Counts by value, in bins of a fixed share of the value.

use serde::Serialize;

/// Bins in each power of two: a value is known to a 128th.
const BITS: u32 = 6;
const BINS: usize = 1 << BITS;

/// Counts of whole numbers.
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

/// The first value of a bin, and the one behind its last.
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
    /// Counts a value so often.
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

    /// Of all values.
    pub(super) fn total(&self) -> f64 {
        self.total
    }

    pub(super) fn mean(&self) -> f64 {
        self.sum / self.total.max(f64::MIN_POSITIVE)
    }

    /// All counts are of so much less.
    pub(super) fn scale(&mut self, by: f64) {
        self.bins.iter_mut().for_each(|count| *count *= by);
        self.total *= by;
        self.sum *= by;
    }

    /// The value that this share of all does not exceed; the middle of its bin.
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

    /// The count of values that are at least this: of the bin that it lies in, the share.
    pub(super) fn at_least(&self, value: f64) -> f64 {
        let of = |(bin, count): (usize, &f64)| {
            let (first, end) = range(bin);
            count * ((end - value) / (end - first)).clamp(0.0, 1.0)
        };
        self.bins.iter().enumerate().map(of).sum()
    }

    /// The quantile, where there are values enough to tell it.
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

    /// Counts by powers of two: the first value of each, and its count.
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

/// Whether so many values tell a quantile: at least one of them lies above it.
pub(super) fn tells(share: f64, count: f64) -> bool {
    const ROUNDING: f64 = 1e-6;
    count * (1.0 - share) + ROUNDING >= 1.0
}

/// Of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// Half of all are not above it.
    pub p50: f64,
    /// Nine of ten are not above it; `None` of fewer than ten.
    pub p90: Option<f64>,
    /// 99 of a hundred are not above it; `None` of fewer than a hundred.
    pub p99: Option<f64>,
    /// 999 of a thousand are not above it; `None` of fewer than a thousand.
    pub p999: Option<f64>,
    /// The largest.
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
