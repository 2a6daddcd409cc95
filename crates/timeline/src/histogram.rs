//! Latency histogram: log-linear (HDR), three significant digits, from one
//! nanosecond to thirteen days, so that no call can saturate it.

use crate::units::Nanoseconds;
use hdrhistogram::Histogram as Hdr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest latency that is told apart: 2^50 ns, thirteen days.
const HIGHEST_NS: u64 = 1 << 50;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies of one kind of call. Recording never allocates.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Hdr<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram, with all its memory.
    pub fn new() -> Self {
        let counts = Hdr::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants that hdrhistogram accepts");
        Self { counts }
    }

    /// Counts one call.
    #[inline]
    pub fn record(&mut self, latency: Nanoseconds) {
        self.counts.saturating_record(latency.0);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.counts
            .add(&other.counts)
            .expect("all histograms have the same bounds");
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.reset();
    }

    /// How many calls were counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The latency below which `percentile` (0 to 100) of the calls lie.
    pub fn percentile(&self, percentile: f64) -> Nanoseconds {
        Nanoseconds(self.counts.value_at_percentile(percentile))
    }

    /// Mean latency in nanoseconds; 0 of no calls.
    pub fn mean_ns(&self) -> f64 {
        self.counts.mean()
    }

    /// The shortest latency; 0 of no calls.
    pub fn min(&self) -> Nanoseconds {
        Nanoseconds(self.counts.min())
    }

    /// The longest latency; 0 of no calls.
    pub fn max(&self) -> Nanoseconds {
        Nanoseconds(self.counts.max())
    }

    /// The occupied buckets as (latency in ns, count), in ascending order.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }
}

/// A histogram travels as its occupied buckets, `[[latency_ns, count], ...]`,
/// which any other program can read.
impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Self::new();
        for (latency_ns, count) in Vec::<(u64, u64)>::deserialize(deserializer)? {
            histogram.counts.saturating_record_n(latency_ns, count);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_fit_and_nanoseconds_are_told_apart() {
        let mut histogram = Histogram::new();
        let ten_hours = 36_000_000_000_000;
        for latency in [1, 2, 1000, ten_hours] {
            histogram.record(Nanoseconds(latency));
        }
        assert_eq!(histogram.count(), 4);
        assert_eq!(histogram.percentile(25.0).0, 1);
        assert_eq!(histogram.percentile(50.0).0, 2);
        let error = histogram.percentile(99.99).0 as f64 / ten_hours as f64 - 1.0;
        assert!(error.abs() < 1e-3, "{error}");
    }

    #[test]
    fn a_travelled_histogram_is_the_same() {
        let mut histogram = Histogram::new();
        for i in 0..10_000_u64 {
            histogram.record(Nanoseconds(i * i));
        }
        let text = serde_json::to_string(&histogram).unwrap();
        let back: Histogram = serde_json::from_str(&text).unwrap();
        assert_eq!(back.count(), histogram.count());
        for percentile in [0.0, 50.0, 99.0, 99.9, 99.99, 100.0] {
            assert_eq!(
                back.percentile(percentile),
                histogram.percentile(percentile)
            );
        }
    }
}
