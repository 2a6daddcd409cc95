//! Histogram with bins of a constant relative width.

use serde::Serialize;

/// Binary logarithm of the number of bins per power of two. Values are known to within a 128th.
const MANTISSA_BITS: u32 = 6;
const BINS_PER_OCTAVE: usize = 1 << MANTISSA_BITS;

#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    bin_counts: Vec<f64>,
    total_count: f64,
    value_sum: f64,
    value_max: u64,
}

fn bin_index(value: u64) -> usize {
    let exponent = value.checked_ilog2().unwrap_or(0);
    match exponent < MANTISSA_BITS {
        true => value as usize,
        false => {
            let within = (value >> (exponent - MANTISSA_BITS)) as usize - BINS_PER_OCTAVE;
            BINS_PER_OCTAVE + (exponent - MANTISSA_BITS) as usize * BINS_PER_OCTAVE + within
        }
    }
}

/// Returns the first value of a bin, and the first value after the bin.
fn bin_range(bin: usize) -> (f64, f64) {
    if bin < BINS_PER_OCTAVE {
        return (bin as f64, bin as f64 + 1.0);
    }
    let (octave, within) = (
        (bin - BINS_PER_OCTAVE) / BINS_PER_OCTAVE,
        (bin - BINS_PER_OCTAVE) % BINS_PER_OCTAVE,
    );
    let width = (1u128 << octave) as f64;
    let first = (BINS_PER_OCTAVE + within) as f64 * width;
    (first, first + width)
}

impl Histogram {
    #[inline]
    pub(super) fn add(&mut self, value: u64, times: f64) {
        let bin = bin_index(value);
        if bin >= self.bin_counts.len() {
            self.bin_counts.resize(bin + 1, 0.0);
        }
        self.bin_counts[bin] += times;
        self.total_count += times;
        self.value_sum += value as f64 * times;
        self.value_max = self.value_max.max(value);
    }

    pub(super) fn total_count(&self) -> f64 {
        self.total_count
    }

    pub(super) fn mean(&self) -> f64 {
        self.value_sum / self.total_count.max(f64::MIN_POSITIVE)
    }

    pub(super) fn scale(&mut self, by: f64) {
        self.bin_counts.iter_mut().for_each(|count| *count *= by);
        self.total_count *= by;
        self.value_sum *= by;
    }

    /// Returns the value that the given share of all values does not exceed, as the middle of its
    /// bin.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.total_count;
        let mut below = 0.0;
        for (bin, count) in self.bin_counts.iter().enumerate() {
            below += count;
            if below >= wanted && *count > 0.0 {
                let (first, end) = bin_range(bin);
                let middle = if bin < BINS_PER_OCTAVE {
                    first
                } else {
                    (first + end) / 2.0
                };
                return middle.min(self.value_max as f64);
            }
        }
        self.value_max as f64
    }

    /// Returns the number of values of at least `value`. The bin of `value` counts in proportion.
    pub(super) fn count_at_least(&self, value: f64) -> f64 {
        let of = |(bin, count): (usize, &f64)| {
            let (first, end) = bin_range(bin);
            count * ((end - value) / (end - first)).clamp(0.0, 1.0)
        };
        self.bin_counts.iter().enumerate().map(of).sum()
    }

    /// Returns the quantile, or `None` if there are too few values to determine it.
    fn determined_quantile(&self, share: f64) -> Option<f64> {
        is_quantile_determined(share, self.total_count).then(|| self.quantile(share))
    }

    pub(super) fn quantiles(&self) -> Option<Quantiles> {
        (self.total_count > 0.0).then(|| Quantiles {
            mean: self.mean(),
            p50: self.quantile(0.5),
            p90: self.determined_quantile(0.9),
            p99: self.determined_quantile(0.99),
            p999: self.determined_quantile(0.999),
            value_max: self.value_max as f64,
        })
    }

    /// Returns the counts by powers of two, as pairs of first value and count.
    pub(super) fn octave_counts(&self) -> Vec<(u64, f64)> {
        let mut all: Vec<(u64, f64)> = Vec::new();
        for (bin, count) in self
            .bin_counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0.0)
        {
            let (first, _) = bin_range(bin);
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
pub(super) fn is_quantile_determined(share: f64, count: f64) -> bool {
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
    /// Largest of the recorded values.
    #[serde(rename = "most")]
    pub value_max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_narrow_and_follow_each_other() {
        let mut last = 0;
        for value in (0..100_000).chain([1 << 40, u64::MAX]) {
            let found = bin_index(value);
            let (first, end) = bin_range(found);
            assert!(found >= last && first <= value as f64 && (value as f64) <= end);
            assert!(end - first <= 1.0f64.max(first / 63.0), "{value}");
            last = found;
        }
    }
}
