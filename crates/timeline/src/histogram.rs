//! Latencies: a recorder with all its memory from the start, for the calls
//! that are being timed, and the histogram that it leaves, which is as small
//! as what was recorded.

use crate::Nanoseconds;
use hdrhistogram::Histogram as Hdr;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest latency that is told apart: 2^50 ns, thirteen days.
const HIGHEST_NS: u64 = 1 << 50;

/// How finely latencies are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    /// To three significant digits.
    Fine,
    /// To two.
    Coarse,
}

impl Precision {
    fn significant_digits(self) -> u8 {
        match self {
            Self::Fine => 3,
            Self::Coarse => 2,
        }
    }

    /// As many bits as 2 * 10^digits takes, at least.
    fn bucket_bits(self) -> u32 {
        match self {
            Self::Fine => 11,
            Self::Coarse => 8,
        }
    }
}

/// Counts latencies while calls are timed: log-linear (HDR), three significant
/// digits, from one nanosecond to thirteen days, so that no call saturates it; a
/// coarse one tells two digits. Recording never allocates, but in a
/// [`LatencyRecorder::growing`] one.
#[derive(Clone, Debug)]
pub struct LatencyRecorder {
    counts: Counts,
}

#[derive(Clone, Debug)]
enum Counts {
    Fixed(Hdr<u64>),
    /// Buckets by the highest latency of each.
    Growing(BTreeMap<u64, u64>, Precision),
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self::fixed(Precision::Fine)
    }
}

impl LatencyRecorder {
    fn fixed(precision: Precision) -> Self {
        let counts = Hdr::new_with_bounds(1, HIGHEST_NS, precision.significant_digits())
            .expect("the bounds are constants that hdrhistogram accepts");
        Self {
            counts: Counts::Fixed(counts),
        }
    }

    /// One of two significant digits, an eighth as large: for the intervals of a
    /// course over time.
    pub fn coarse() -> Self {
        Self::fixed(Precision::Coarse)
    }

    /// One with memory for what it has met alone. For calls in virtual time, which
    /// do not wait for it: there are many recorders, each short-lived, and all but
    /// some dozens of [`Self::default`]'s buckets would stay empty.
    pub fn growing() -> Self {
        Self {
            counts: Counts::Growing(BTreeMap::new(), Precision::Fine),
        }
    }

    /// [`Self::coarse`], with memory for what it has met alone.
    pub fn coarse_growing() -> Self {
        Self {
            counts: Counts::Growing(BTreeMap::new(), Precision::Coarse),
        }
    }

    /// Counts one call.
    #[inline]
    pub fn record(&mut self, latency: Nanoseconds) {
        let latency_ns = latency.0.min(HIGHEST_NS);
        match &mut self.counts {
            Counts::Fixed(counts) => counts
                .record(latency_ns)
                .expect("the highest latency has a place"),
            Counts::Growing(counts, precision) => {
                *counts.entry(bucket_of(latency_ns, *precision)).or_default() += 1;
            }
        }
    }

    /// Forgets everything, and keeps the memory that it had from the start.
    pub fn clear(&mut self) {
        match &mut self.counts {
            // Its memory is some pages, all of which this writes.
            Counts::Fixed(counts) if counts.is_empty() => {}
            Counts::Fixed(counts) => counts.reset(),
            Counts::Growing(counts, _) => counts.clear(),
        }
    }

    /// What was recorded.
    pub fn histogram(&self) -> Histogram {
        let mut buckets = Vec::new();
        self.append_to(&mut buckets);
        Histogram { buckets }
    }

    /// Appends what was recorded, as (latency in ns, count) in ascending order.
    pub fn append_to(&self, buckets: &mut Vec<(u64, u64)>) {
        let bucket = |bucket: hdrhistogram::iterators::IterationValue<u64>| {
            (bucket.value_iterated_to(), bucket.count_at_value())
        };
        match &self.counts {
            Counts::Fixed(counts) if counts.is_empty() => {}
            Counts::Fixed(counts) => buckets.extend(counts.iter_recorded().map(bucket)),
            Counts::Growing(counts, _) => {
                buckets.extend(counts.iter().map(|(highest, count)| (*highest, *count)));
            }
        }
    }
}

/// The highest latency of the bucket that a latency is in, as HDR histograms of so
/// many significant digits have them: its highest bits tell buckets apart.
fn bucket_of(latency_ns: u64, precision: Precision) -> u64 {
    let unit_bits =
        (u64::BITS - latency_ns.leading_zeros()).saturating_sub(precision.bucket_bits());
    latency_ns | ((1 << unit_bits) - 1)
}

/// Latencies with their counts, in ascending order. It travels as
/// `[[latency_ns, count], ...]`, which any other program can read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Histogram {
    buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// Of no calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        let mut merged = std::mem::take(&mut self.buckets);
        merged.extend_from_slice(&other.buckets);
        *self = merged.into();
    }

    /// How many calls were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Whether there are calls enough to tell a percentile (0 to 100): fewer than
    /// 1 / (1 - p), as 1,000 for 99.9, give no more than the longest again.
    pub fn tells(&self, percentile: f64) -> bool {
        // 100 - 99.99 is not exact.
        self.count() as f64 * (100.0 - percentile) >= 99.999
    }

    /// The smallest latency that at least `percentile` (0 to 100) of the calls
    /// do not exceed; zero of no calls.
    pub fn percentile(&self, percentile: f64) -> Nanoseconds {
        let wanted = (self.count() as f64 * percentile / 100.0).ceil().max(1.0);
        let mut seen = 0;
        for (latency_ns, count) in &self.buckets {
            seen += count;
            if seen as f64 >= wanted {
                return Nanoseconds(*latency_ns);
            }
        }
        self.max()
    }

    /// Whether it holds no latency.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Mean latency in nanoseconds; 0 of no calls.
    pub fn mean_ns(&self) -> f64 {
        let sum: f64 = self
            .buckets
            .iter()
            .map(|(latency_ns, count)| *latency_ns as f64 * *count as f64)
            .sum();
        sum / self.count().max(1) as f64
    }

    /// The shortest latency; zero of no calls.
    pub fn min(&self) -> Nanoseconds {
        Nanoseconds(
            self.buckets
                .first()
                .map_or(0, |(latency_ns, _)| *latency_ns),
        )
    }

    /// The longest latency; zero of no calls.
    pub fn max(&self) -> Nanoseconds {
        Nanoseconds(self.buckets.last().map_or(0, |(latency_ns, _)| *latency_ns))
    }

    /// (latency in ns, count), in ascending order.
    pub fn buckets(&self) -> &[(u64, u64)] {
        &self.buckets
    }
}

/// From (latency in ns, count) in any order.
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

/// Of single latencies.
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
            recorder.record(Nanoseconds(latency));
        }
        let histogram = recorder.histogram();
        assert_eq!(histogram.count(), 4);
        assert_eq!(histogram.percentile(25.0).0, 1);
        assert_eq!(histogram.percentile(50.0).0, 2);
        let error = histogram.percentile(99.99).0 as f64 / ten_hours as f64 - 1.0;
        assert!(error.abs() < 1e-3, "{error}");
    }

    #[test]
    fn a_percentile_takes_calls_to_tell() {
        for (percentile, least) in [(50.0, 2), (90.0, 10), (99.0, 100), (99.99, 10_000)] {
            let of = |calls: u64| -> Histogram { (1..=calls).map(Nanoseconds).collect() };
            assert!(!of(least - 1).tells(percentile), "{percentile}");
            let enough = of(least);
            assert!(enough.tells(percentile), "{percentile}");
            assert!(enough.percentile(percentile) < enough.max(), "{percentile}");
        }
    }

    #[test]
    fn one_that_grows_counts_the_same() {
        let fine = (LatencyRecorder::default(), LatencyRecorder::growing());
        let coarse = (LatencyRecorder::coarse(), LatencyRecorder::coarse_growing());
        for (mut fixed, mut growing) in [fine, coarse] {
            for round in 0..2 {
                for power in 0..64 {
                    let latency = Nanoseconds((1_u64 << power) + 977 * round);
                    fixed.record(latency);
                    growing.record(latency);
                }
                assert_eq!(fixed.histogram(), growing.histogram(), "round {round}");
                fixed.clear();
                growing.clear();
                assert_eq!(fixed.histogram(), Histogram::new());
                assert_eq!(growing.histogram(), Histogram::new());
            }
        }
    }

    #[test]
    fn a_coarse_one_errs_by_less_than_a_hundredth() {
        for power in 0..50 {
            let latency = (1_u64 << power) + (1 << power) / 3;
            let mut recorder = LatencyRecorder::coarse();
            recorder.record(Nanoseconds(latency));
            let error = recorder.histogram().max().0 as f64 / latency as f64 - 1.0;
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
            half.record(Nanoseconds(i * i));
            all.record(Nanoseconds(i * i));
        }
        let mut merged = even.histogram();
        merged.merge(&odd.histogram());
        assert_eq!(merged, all.histogram());
        let text = serde_json::to_string(&merged).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), merged);
    }

    #[test]
    fn of_no_calls_everything_is_zero() {
        let none = Histogram::new();
        assert_eq!(
            (none.count(), none.min(), none.max()),
            (0, Nanoseconds(0), Nanoseconds(0))
        );
        assert_eq!(
            (none.percentile(50.0), none.mean_ns()),
            (Nanoseconds(0), 0.0)
        );
    }
}
