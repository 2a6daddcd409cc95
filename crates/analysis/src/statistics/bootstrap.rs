//! Bootstrap interval of the median.
//!
//! It is the *expanded percentile* interval of Hesterberg ("What Teachers Should Know About the
//! Bootstrap", The American Statistician 69, 2015). The plain percentile interval of a median is
//! too narrow in small samples (simulated: it covers 87 % instead of 95 % for seven values, because
//! it jumps from one order statistic to the next). The expanded one takes quantiles further out, by
//! the ratio of Student's t to the normal distribution and of the two divisors n and n - 1, and
//! covers 95 to 99 % for six to twenty values. BCa is no remedy: its acceleration rests on the
//! jackknife, which is inconsistent for a median (Efron 1979).

use super::CenteredInterval;
use super::student::{normal_cdf, student_quantile};
use super::{median_of_sorted, quantile_of_sorted};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

/// Seed of every resampling. It is fixed, so that a stored run always prints
/// the same interval.
pub const RESAMPLING_SEED: u64 = 1983;

/// Number of resamples. At six values the outermost quantile in use has 24 of them beyond it.
const RESAMPLE_COUNT: usize = 10_000;

/// Returns the interval of the median; `None` for fewer than two values.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<CenteredInterval> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let center = median_of_sorted(&sorted)?;
    let medians = resample_medians(&sorted);
    let tail = expanded_tail_probability(n, confidence);
    Some(CenteredInterval {
        center,
        low: quantile_of_sorted(&medians, tail)?,
        high: quantile_of_sorted(&medians, 1.0 - tail)?,
    })
}

/// Returns the medians of all resamples, in ascending order.
///
/// A resample of sorted values is a count for each of them. Its median is one of the values or the
/// mean of two, so only the pairs that occur need sorting.
fn resample_medians(sorted: &[f64]) -> Vec<f64> {
    let n = sorted.len();
    let mut generator = Pcg64Mcg::seed_from_u64(RESAMPLING_SEED);
    let mut counts = vec![0_usize; n];
    let mut pairs: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for _ in 0..RESAMPLE_COUNT {
        counts.fill(0);
        for _ in 0..n {
            // A multiplied 32-bit number is uniform to within n / 2^32.
            let place = (u64::from(generator.next_u32()) * n as u64) >> 32;
            counts[place as usize] += 1;
        }
        *pairs.entry(middle_indices(&counts)).or_default() += 1;
    }
    let middle = |low: usize, high: usize| 0.5 * (sorted[low] + sorted[high]);
    let mut medians: Vec<(f64, usize)> = pairs
        .into_iter()
        .map(|((low, high), times)| (middle(low, high), times))
        .collect();
    medians.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
    medians
        .into_iter()
        .flat_map(|(median, times)| std::iter::repeat_n(median, times))
        .collect()
}

/// Returns the positions of the two middle values of a resample, given how often each value is in
/// it; twice the same for an odd number.
fn middle_indices(counts: &[usize]) -> (usize, usize) {
    let (n, mut seen) = (counts.len(), 0);
    let mut low = None;
    for (place, count) in counts.iter().enumerate() {
        seen += count;
        if low.is_none() && seen > (n - 1) / 2 {
            low = Some(place);
        }
        if let (Some(low), true) = (low, seen > n / 2) {
            return (low, place);
        }
    }
    unreachable!("the counts add up to n")
}

/// Returns the share of the resampled medians beyond each end of the interval.
fn expanded_tail_probability(n: usize, confidence: f64) -> f64 {
    let n = n as f64;
    let t = student_quantile(0.5 + 0.5 * confidence, n - 1.0);
    normal_cdf(-t * (n / (n - 1.0)).sqrt())
}
