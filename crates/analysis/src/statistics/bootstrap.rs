//! Bootstrap interval of the median.
//!
//! The *expanded percentile* interval of Hesterberg ("What Teachers Should
//! Know About the Bootstrap", The American Statistician 69, 2015). The plain
//! percentile interval of a median is too narrow in small samples (simulated:
//! it covers 87 % instead of 95 % for seven values, because it jumps from one
//! order statistic to the next); the expanded one takes quantiles further out,
//! by the ratio of Student's t to the normal distribution and of the two
//! divisors n and n - 1, and covers 95 to 99 % for six to twenty values.
//! BCa is no remedy: its acceleration rests on the jackknife, which is
//! inconsistent for a median (Efron 1979).

use super::student::{normal_cdf, student_quantile};
use super::{median_of_sorted, quantile_of_sorted};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Seed of every resampling. It is fixed, so that a stored run always prints
/// the same interval.
pub const SEED: u64 = 1983;

/// Resamples: the outermost quantile that is read, at six values, has 24 of
/// them beyond it.
const RESAMPLES: usize = 10_000;

/// (median, low, high). `None` of fewer than two values.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<(f64, f64, f64)> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let center = median_of_sorted(&sorted)?;
    let mut generator = Pcg64Mcg::seed_from_u64(SEED);
    let mut resample = vec![0.0; n];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for place in &mut resample {
            // A multiplied 32-bit number is uniform to within n / 2^32.
            let index = (u64::from(generator.next_u32()) * n as u64) >> 32;
            *place = sorted[index as usize];
        }
        resample.sort_unstable_by(f64::total_cmp);
        medians.push(median_of_sorted(&resample)?);
    }
    medians.sort_unstable_by(f64::total_cmp);
    let tail = expanded_tail(n, confidence);
    Some((
        center,
        quantile_of_sorted(&medians, tail)?,
        quantile_of_sorted(&medians, 1.0 - tail)?,
    ))
}

/// The share of the resampled medians that lies beyond each end.
fn expanded_tail(n: usize, confidence: f64) -> f64 {
    let n = n as f64;
    let t = student_quantile(0.5 + 0.5 * confidence, n - 1.0);
    normal_cdf(-t * (n / (n - 1.0)).sqrt())
}
