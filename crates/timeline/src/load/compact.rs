//! Compact serialized form of histograms. Without it, the histograms of each interval and operation
//! would be most of a stored run.
//!
//! Each latency is the highest of a log-linear bucket. The `bits` leading bits of a latency select
//! its bucket, and buckets are numbered in ascending order. The form is a list of numbers: `bits`,
//! then the counts of successive buckets from number 0 on. A negative number -n skips n empty
//! buckets. If latencies fit no such buckets, `bits` is 64 and the bucket number is the latency.

use crate::histogram::Histogram;
use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

/// Possible values of `bits`: those of recorders with two and three significant digits, and 64,
/// which fits any latency.
const BIT_WIDTHS: [u32; 3] = [8, 11, u64::BITS];

pub(crate) fn serialize<S: Serializer>(
    histogram: &Histogram,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    use serde::ser::Error;
    let numbers = encode(histogram).ok_or_else(|| S::Error::custom("a count exceeds 2^63"))?;
    numbers.serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Histogram, D::Error> {
    let numbers = Vec::<i64>::deserialize(deserializer)?;
    decode(&numbers).map_err(D::Error::custom)
}

/// Encodes a histogram; an empty list if it has no calls. `None` if a count exceeds 63 bits.
fn encode(histogram: &Histogram) -> Option<Vec<i64>> {
    let buckets = histogram.buckets();
    if buckets.is_empty() {
        return Some(Vec::new());
    }
    let fits = |bits: &u32| {
        let mut latencies = buckets.iter().map(|(latency_ns, _)| *latency_ns);
        latencies.all(|latency_ns| {
            latency_max(bucket_number(latency_ns, *bits), *bits) == Some(latency_ns)
        })
    };
    let bits = BIT_WIDTHS.into_iter().find(fits).unwrap_or(u64::BITS);
    let mut numbers = vec![i64::from(bits)];
    let mut next = 0;
    for (latency_ns, count) in buckets {
        let number = bucket_number(*latency_ns, bits);
        let mut empty: u64 = number - next;
        while empty > 0 {
            let passed = i64::try_from(empty).unwrap_or(i64::MAX);
            numbers.push(-passed);
            empty -= passed.unsigned_abs();
        }
        numbers.push(i64::try_from(*count).ok()?);
        next = number.saturating_add(1);
    }
    Some(numbers)
}

fn decode(numbers: &[i64]) -> Result<Histogram, &'static str> {
    let Some((bits, counts)) = numbers.split_first() else {
        return Ok(Histogram::new());
    };
    let bits = u32::try_from(*bits).unwrap_or(0);
    if !(1..=u64::BITS).contains(&bits) {
        return Err("a histogram has from 1 to 64 bits");
    }
    let mut buckets = Vec::new();
    let mut next: u64 = 0;
    for number in counts {
        match number {
            0 => return Err("a histogram counts nothing in a bucket"),
            1.. => {
                let latency_ns = latency_max(next, bits).ok_or("a bucket exceeds 2^64 ns")?;
                buckets.push((latency_ns, number.unsigned_abs()));
                next = next.saturating_add(1);
            }
            _ => next = next.saturating_add(number.unsigned_abs()),
        }
    }
    Ok(buckets.into())
}

fn bucket_number(latency_ns: u64, bits: u32) -> u64 {
    let length = u64::BITS - latency_ns.leading_zeros();
    let shift = length.saturating_sub(bits);
    (u64::from(shift) << (bits - 1)) + (latency_ns >> shift)
}

/// Returns the highest latency of a bucket; `None` if it exceeds 64 bits.
fn latency_max(number: u64, bits: u32) -> Option<u64> {
    let shift = (number >> (bits - 1)).saturating_sub(1);
    if bits + u32::try_from(shift).ok()? > u64::BITS {
        return None;
    }
    let top = number - (shift << (bits - 1));
    Some((top << shift) | ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanoseconds;
    use crate::{LatencyRecorder, SeriesPoint};
    use proptest::prelude::*;

    /// What HDR of two significant digits has: eight bits.
    fn coarse(latency_ns: u64) -> u64 {
        latency_max(bucket_number(latency_ns, 8), 8).unwrap()
    }

    fn comes_back(histogram: &Histogram) -> usize {
        let point = SeriesPoint {
            response_times: histogram.clone(),
            ..SeriesPoint::default()
        };
        let text = serde_json::to_string(&point).unwrap();
        assert_eq!(serde_json::from_str::<SeriesPoint>(&text).unwrap(), point);
        text.len()
    }

    proptest! {
        #[test]
        fn any_histogram_comes_back(buckets in prop::collection::vec((any::<u64>(), 1..1_u64 << 63), 0..40)) {
            comes_back(&buckets.into());
        }

        #[test]
        fn recorded_ones_come_back(latencies in prop::collection::vec(0..1_u64 << 50, 0..200)) {
            let mut recorder = LatencyRecorder::new_growing();
            latencies.iter().for_each(|ns| recorder.record_latency(Nanoseconds(*ns)));
            let fine = recorder.to_histogram();
            prop_assert!(encode(&fine).unwrap().first().is_none_or(|bits| *bits <= 11));
            comes_back(&fine);
            let coarse: Histogram = latencies.iter().map(|ns| Nanoseconds(coarse(*ns))).collect();
            prop_assert!(encode(&coarse).unwrap().first().is_none_or(|bits| *bits == 8));
            comes_back(&coarse);
        }

        #[test]
        fn arbitrary_numbers_are_read_or_refused(numbers in prop::collection::vec(any::<i64>(), 0..9)) {
            let _ = decode(&numbers);
        }
    }

    #[test]
    fn buckets_are_numbered_without_a_gap() {
        for bits in [1, 8, 11, 64] {
            let found: Vec<u64> = (0..4000).map_while(|it| latency_max(it, bits)).collect();
            assert!(found.is_sorted_by(|one, next| one < next), "{bits}");
            for (expected, latency_ns) in (0..).zip(found) {
                assert_eq!(bucket_number(latency_ns, bits), expected, "{bits} bits");
            }
        }
    }

    #[test]
    fn a_minute_of_dense_intervals_is_small() {
        // 100,000 requests a second that lie over five octaves, as those of a busy
        // flash drive: every bucket from 64 us to 2 ms has some.
        let buckets: Vec<(u64, u64)> = (65_536..2_097_152)
            .step_by(256)
            .map(|latency_ns| (coarse(latency_ns), 14))
            .collect();
        let histogram: Histogram = buckets.into();
        assert_eq!(histogram.buckets().len(), 5 * 128);
        let minute_bytes = 60 * comes_back(&histogram);
        assert!(minute_bytes < 200_000, "{minute_bytes}");
    }

    #[test]
    fn what_is_none_is_refused() {
        for (numbers, why) in [
            (vec![0, 1], "bits"),
            (vec![65, 1], "bits"),
            (vec![8, 0], "nothing"),
            (vec![8, -10_000, 1], "exceeds 2^64 ns"),
        ] {
            let error = decode(&numbers).unwrap_err();
            assert!(error.contains(why), "{numbers:?}: {error}");
        }
    }
}
