//! The ratio of two samples of speeds, with its interval.
//!
//! The Hodges-Lehmann shift of the logarithms: the median of all pairwise
//! ratios. Its interval inverts the Mann-Whitney test and so assumes nothing
//! about the shape of the distributions but that the two are the same up to a
//! factor, and one wild repetition cannot move it (Hodges and Lehmann 1963;
//! Lehmann, "Nonparametrics", 1975, section 2.4).

use super::student::{normal_quantile, welch_interval};
use super::{Interval, Method, all_equal, drift, logarithms, median_of_sorted};

/// Samples smaller than this on either side use Welch's t.
pub const MANN_WHITNEY_FROM: usize = 4;

/// Up to this product of the sample sizes the distribution of the Mann-Whitney
/// statistic is counted exactly; above it the normal approximation with
/// continuity correction is at most one rank wider.
const EXACT_UP_TO: usize = 2_500;

/// How many times as fast one sample is as another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The estimate: other over base.
    pub point: f64,
    /// Its interval.
    pub interval: Interval,
}

/// The ratio of `other` to `base`, both positive and in the order of running.
///
/// Mann-Whitney where both have four values and enough of them for the
/// confidence, else Welch's t on the logarithms; widened for drift. `None`
/// where either has fewer than two values, or one that is not positive and
/// finite.
pub fn ratio(base: &[f64], other: &[f64], confidence: f64) -> Option<Ratio> {
    if base.len() < 2 || other.len() < 2 {
        return None;
    }
    let (base_logs, other_logs) = (logarithms(base)?, logarithms(other)?);
    let widened_by = drift::widening(&[&base_logs, &other_logs]);
    if all_equal(base) && all_equal(other) {
        // Exact, where the way through logarithms would lose the last digit.
        let point = other[0] / base[0];
        return Some(Ratio {
            point,
            interval: Interval {
                low: point,
                high: point,
                confidence,
                method: Method::WelchLog,
                widened_by: 1.0,
            },
        });
    }
    let (method, (center, low, high)) =
        match hodges_lehmann(&base_logs, &other_logs, 1.0 - confidence) {
            Some(shift) => (Method::HodgesLehmann, shift),
            None => (
                Method::WelchLog,
                welch_interval(&base_logs, &other_logs, confidence)?,
            ),
        };
    let (low, high) = Interval::of_logarithms(center, low, high, widened_by);
    Some(Ratio {
        point: libm::exp(center),
        interval: Interval {
            low,
            high,
            confidence,
            method,
            widened_by,
        },
    })
}

/// (shift, low, high). `None` where the samples are too small for a two-sided
/// error of `alpha`.
fn hodges_lehmann(base: &[f64], other: &[f64], alpha: f64) -> Option<(f64, f64, f64)> {
    let (n, m) = (base.len(), other.len());
    if n.min(m) < MANN_WHITNEY_FROM {
        return None;
    }
    let rank = mann_whitney_rank(n, m, alpha);
    if rank == 0 {
        return None;
    }
    let mut differences: Vec<f64> = other
        .iter()
        .flat_map(|y| base.iter().map(move |x| y - x))
        .collect();
    differences.sort_unstable_by(f64::total_cmp);
    Some((
        median_of_sorted(&differences)?,
        differences[rank - 1],
        differences[n * m - rank],
    ))
}

/// The rank, counted from 1 and from either end, of the pairwise difference
/// that bounds the interval: the smallest u with P(U <= u) > alpha / 2. 0 if
/// even the outermost differences do not give the confidence.
pub fn mann_whitney_rank(n: usize, m: usize, alpha: f64) -> usize {
    if n * m > EXACT_UP_TO {
        let product = (n * m) as f64;
        let deviation = (product * (n + m + 1) as f64 / 12.0).sqrt();
        let bound = 0.5 * product + normal_quantile(0.5 * alpha) * deviation - 0.5;
        return if bound < 0.0 { 0 } else { bound as usize + 1 };
    }
    let mut cumulated = 0.0;
    for (u, probability) in mann_whitney_distribution(n, m).iter().enumerate() {
        cumulated += probability;
        if cumulated > 0.5 * alpha {
            return u;
        }
    }
    n * m
}

/// P(U = u) for u = 0 ..= n m, if the two samples are alike. Which sample the
/// largest value belongs to gives the recurrence
/// P(n, m, u) = n/(n+m) P(n-1, m, u-m) + m/(n+m) P(n, m-1, u).
fn mann_whitney_distribution(n: usize, m: usize) -> Vec<f64> {
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]; m + 1];
    for i in 1..=n {
        row[0] = vec![1.0];
        for j in 1..=m {
            let mut next = vec![0.0; i * j + 1];
            let first = i as f64 / (i + j) as f64;
            for (u, probability) in row[j].iter().enumerate() {
                next[u + j] += first * probability;
            }
            for (u, probability) in row[j - 1].iter().enumerate() {
                next[u] += (1.0 - first) * probability;
            }
            row[j] = next;
        }
    }
    row.swap_remove(m)
}
