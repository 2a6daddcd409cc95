//! Latency recorders and histograms. A recorder allocates all its memory at the start, so that
//! timed calls do not wait for it. The histogram that it produces is only as large as the data.

use crate::Nanoseconds;
use hdrhistogram::Histogram as Hdr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest latency that recorders distinguish: 2^50 ns, thirteen days.
const LATENCY_NS_MAX: u64 = 1 << 50;

/// Relative resolution of a latency recorder, in significant digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    ThreeSignificantDigits,
    TwoSignificantDigits,
}

impl Precision {
    fn significant_digits(self) -> u8 {
        match self {
            Self::ThreeSignificantDigits => 3,
            Self::TwoSignificantDigits => 2,
        }
    }

    /// Returns the number of leading bits that distinguish buckets: the bits of 2 * 10^digits.
    fn bucket_bits(self) -> u32 {
        match self {
            Self::ThreeSignificantDigits => 11,
            Self::TwoSignificantDigits => 8,
        }
    }
}

/// Recorder that counts call latencies in log-linear (HDR) buckets, to three significant digits, or
/// two in a coarse one. It covers one nanosecond to thirteen days, so that no call saturates it.
/// Only a recorder made by [`LatencyRecorder::new_growing`] allocates while it records.
#[derive(Clone, Debug)]
pub struct LatencyRecorder {
    bucket_counts: BucketCounts,
}

#[derive(Clone, Debug)]
enum BucketCounts {
    FixedBuckets(Hdr<u64>),
    /// Numbers of calls in the buckets that were used, by the highest latency of each bucket.
    GrowingBuckets(BTreeMap<u64, u64>, Precision),
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::with_fixed_buckets(Precision::ThreeSignificantDigits)
    }
}

impl LatencyRecorder {
    fn with_fixed_buckets(precision: Precision) -> Self {
        let counts = Hdr::new_with_bounds(1, LATENCY_NS_MAX, precision.significant_digits())
            .expect("the bounds are constants that hdrhistogram accepts");
        Self {
            bucket_counts: BucketCounts::FixedBuckets(counts),
        }
    }

    /// Returns a recorder with two significant digits, an eighth as large, for the intervals of a
    /// time series.
    pub fn new_coarse() -> Self {
        Self::with_fixed_buckets(Precision::TwoSignificantDigits)
    }

    /// Returns a recorder that allocates memory only for the latencies that it meets. It suits
    /// calls in virtual time, which do not wait for an allocation: there are many short-lived
    /// recorders, and all but some dozens of the buckets of [`Self::default`] would stay empty.
    pub fn new_growing() -> Self {
        Self {
            bucket_counts: BucketCounts::GrowingBuckets(
                BTreeMap::new(),
                Precision::ThreeSignificantDigits,
            ),
        }
    }

    /// Returns a recorder with two significant digits that allocates memory only for the latencies
    /// that it meets.
    pub fn new_coarse_growing() -> Self {
        Self {
            bucket_counts: BucketCounts::GrowingBuckets(
                BTreeMap::new(),
                Precision::TwoSignificantDigits,
            ),
        }
    }

    /// Counts one call in the bucket of its latency.
    #[inline]
    pub fn record_latency(&mut self, latency: Nanoseconds) {
        let latency_ns = latency.0.min(LATENCY_NS_MAX);
        match &mut self.bucket_counts {
            BucketCounts::FixedBuckets(counts) => counts
                .record(latency_ns)
                .expect("the highest latency has a place"),
            BucketCounts::GrowingBuckets(counts, precision) => {
                *counts
                    .entry(bucket_latency_max(latency_ns, *precision))
                    .or_default() += 1;
            }
        }
    }

    /// Removes all counts and keeps the memory that was allocated at the start.
    pub fn clear(&mut self) {
        match &mut self.bucket_counts {
            // Its memory is some pages, all of which this writes.
            BucketCounts::FixedBuckets(counts) if counts.is_empty() => {}
            BucketCounts::FixedBuckets(counts) => counts.reset(),
            BucketCounts::GrowingBuckets(counts, _) => counts.clear(),
        }
    }

    /// Returns the recorded latencies as a histogram.
    pub fn to_histogram(&self) -> Histogram {
        let mut buckets = Vec::new();
        self.append_to(&mut buckets);
        Histogram { buckets }
    }

    /// Appends the recorded buckets to `buckets` as (latency in ns, count), in ascending order of
    /// latency.
    pub fn append_to(&self, buckets: &mut Vec<(u64, u64)>) {
        let bucket = |bucket: hdrhistogram::iterators::IterationValue<u64>| {
            (bucket.value_iterated_to(), bucket.count_at_value())
        };
        match &self.bucket_counts {
            BucketCounts::FixedBuckets(counts) if counts.is_empty() => {}
            BucketCounts::FixedBuckets(counts) => {
                buckets.extend(counts.iter_recorded().map(bucket))
            }
            BucketCounts::GrowingBuckets(counts, _) => {
                buckets.extend(counts.iter().map(|(highest, count)| (*highest, *count)));
            }
        }
    }
}

/// Returns the highest latency of the bucket that contains `latency_ns`, as HDR histograms with
/// that many significant digits define it: the leading bits of a latency select its bucket.
fn bucket_latency_max(latency_ns: u64, precision: Precision) -> u64 {
    let unit_bits =
        (u64::BITS - latency_ns.leading_zeros()).saturating_sub(precision.bucket_bits());
    latency_ns | ((1 << unit_bits) - 1)
}

/// Histogram of latencies with their counts, in ascending order of latency. Its serialized form,
/// `[[latency_ns, count], ...]`, is readable by any other program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Histogram {
    buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// Returns a histogram without calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let mut merged = std::mem::take(&mut self.buckets);
        merged.extend_from_slice(&other.buckets);
        *self = merged.into();
    }

    /// Returns the number of calls in the histogram.
    pub fn latency_count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Reports whether the histogram has enough calls for a percentile (0 to 100). With fewer than
    /// 1 / (1 - p) calls, such as 1,000 for 99.9, the percentile equals the longest latency.
    pub fn can_estimate(&self, percentile: f64) -> bool {
        // 100 - 99.99 is not exact.
        self.latency_count() as f64 * (100.0 - percentile) >= 99.999
    }

    /// Returns the smallest latency that at least `percentile` (0 to 100) of the calls do not
    /// exceed; zero if there are no calls.
    pub fn percentile(&self, percentile: f64) -> Nanoseconds {
        let wanted = (self.latency_count() as f64 * percentile / 100.0)
            .ceil()
            .max(1.0);
        let mut seen = 0;
        for (latency_ns, count) in &self.buckets {
            seen += count;
            if seen as f64 >= wanted {
                return Nanoseconds(*latency_ns);
            }
        }
        self.latency_max()
    }

    /// Reports whether the histogram has no calls.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Returns the mean latency in nanoseconds; 0 if there are no calls.
    pub fn mean_ns(&self) -> f64 {
        let sum: f64 = self
            .buckets
            .iter()
            .map(|(latency_ns, count)| *latency_ns as f64 * *count as f64)
            .sum();
        sum / self.latency_count().max(1) as f64
    }

    /// Returns the shortest latency; zero if there are no calls.
    pub fn latency_min(&self) -> Nanoseconds {
        Nanoseconds(
            self.buckets
                .first()
                .map_or(0, |(latency_ns, _)| *latency_ns),
        )
    }

    /// Returns the longest latency; zero if there are no calls.
    pub fn latency_max(&self) -> Nanoseconds {
        Nanoseconds(self.buckets.last().map_or(0, |(latency_ns, _)| *latency_ns))
    }

    /// Returns the buckets as (latency in ns, count), in ascending order of latency.
    pub fn buckets(&self) -> &[(u64, u64)] {
        &self.buckets
    }
}

/// Builds a histogram from (latency in ns, count) pairs in any order.
impl From<Vec<(u64, u64)>> for Histogram {
    fn from(mut buckets: Vec<(u64, u64)>) -> Self {
        buckets.sort_unstable_by_key(|(latency_ns, _)| *latency_ns);
        buckets.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = earlier.1.saturating_add(later.1);
            }
            same
        });
        buckets.retain(|(_, count)| *count > 0);
        Self { buckets }
    }
}

impl From<Histogram> for Vec<(u64, u64)> {
    fn from(histogram: Histogram) -> Self {
        histogram.buckets
    }
}

/// Builds a histogram from single latencies.
impl FromIterator<Nanoseconds> for Histogram {
    fn from_iter<I: IntoIterator<Item = Nanoseconds>>(latencies: I) -> Self {
        latencies
            .into_iter()
            .map(|latency| (latency.0, 1))
            .collect::<Vec<_>>()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_fit_and_nanoseconds_are_told_apart() {
        let mut recorder = LatencyRecorder::default();
        let ten_hours = 36_000_000_000_000;
        for latency in [1, 2, 1000, ten_hours] {
            recorder.record_latency(Nanoseconds(latency));
        }
        let histogram = recorder.to_histogram();
        assert_eq!(histogram.latency_count(), 4);
        assert_eq!(histogram.percentile(25.0).0, 1);
        assert_eq!(histogram.percentile(50.0).0, 2);
        let error = histogram.percentile(99.99).0 as f64 / ten_hours as f64 - 1.0;
        assert!(error.abs() < 1e-3, "{error}");
    }

    #[test]
    fn a_percentile_takes_calls_to_tell() {
        for (percentile, least) in [(50.0, 2), (90.0, 10), (99.0, 100), (99.99, 10_000)] {
            let of = |calls: u64| -> Histogram { (1..=calls).map(Nanoseconds).collect() };
            assert!(!of(least - 1).can_estimate(percentile), "{percentile}");
            let enough = of(least);
            assert!(enough.can_estimate(percentile), "{percentile}");
            assert!(
                enough.percentile(percentile) < enough.latency_max(),
                "{percentile}"
            );
        }
    }

    #[test]
    fn one_that_grows_counts_the_same() {
        let fine = (LatencyRecorder::default(), LatencyRecorder::new_growing());
        let coarse = (
            LatencyRecorder::new_coarse(),
            LatencyRecorder::new_coarse_growing(),
        );
        for (mut fixed, mut growing) in [fine, coarse] {
            for round in 0..2 {
                for power in 0..64 {
                    let latency = Nanoseconds((1_u64 << power) + 977 * round);
                    fixed.record_latency(latency);
                    growing.record_latency(latency);
                }
                assert_eq!(
                    fixed.to_histogram(),
                    growing.to_histogram(),
                    "round {round}"
                );
                fixed.clear();
                growing.clear();
                assert_eq!(fixed.to_histogram(), Histogram::new());
                assert_eq!(growing.to_histogram(), Histogram::new());
            }
        }
    }

    #[test]
    fn a_coarse_one_errs_by_less_than_a_hundredth() {
        for power in 0..50 {
            let latency = (1_u64 << power) + (1 << power) / 3;
            let mut recorder = LatencyRecorder::new_coarse();
            recorder.record_latency(Nanoseconds(latency));
            let error = recorder.to_histogram().latency_max().0 as f64 / latency as f64 - 1.0;
            assert!((0.0..0.01).contains(&error), "{latency}: {error}");
        }
    }

    #[test]
    fn merged_and_travelled_histograms_are_the_same() {
        let (mut even, mut odd, mut all) = (
            LatencyRecorder::default(),
            LatencyRecorder::default(),
            LatencyRecorder::default(),
        );
        for i in 0..10_000_u64 {
            let half = if i % 2 == 0 { &mut even } else { &mut odd };
            half.record_latency(Nanoseconds(i * i));
            all.record_latency(Nanoseconds(i * i));
        }
        let mut merged = even.to_histogram();
        merged.merge(&odd.to_histogram());
        assert_eq!(merged, all.to_histogram());
        let text = serde_json::to_string(&merged).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), merged);
    }

    #[test]
    fn of_no_calls_everything_is_zero() {
        let none = Histogram::new();
        assert_eq!(
            (none.latency_count(), none.latency_min(), none.latency_max()),
            (0, Nanoseconds(0), Nanoseconds(0))
        );
        assert_eq!(
            (none.percentile(50.0), none.mean_ns()),
            (Nanoseconds(0), 0.0)
        );
    }
}
