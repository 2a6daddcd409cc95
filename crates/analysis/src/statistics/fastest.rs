//! The ratio of two samples of speeds by their fastest repetitions.
//!
//! On a machine that is shared, with other programs or with other machines on
//! the same hardware, what disturbs a repetition only makes it slower, and by
//! how much changes from minute to minute. The median of a run moves with it:
//! over 24 identical runs of cached reads on a shared virtual machine, one
//! after the other, its standard deviation was 9.6 %, that of the fastest of
//! ten repetitions 1.8 %; for cached writes 12.7 % and 3.3 %, for rewrites
//! 5.3 % and 0.8 %. The fastest repetition is the one that was disturbed
//! least, and what two runs can be compared by.
//!
//! How near it is to undisturbed, its neighbour says: the fastest is as far from
//! what could be had as the second fastest is from it, on average (Robson and
//! Whitlock, "Estimation of a truncation point", Biometrika 51, 1964).

use super::shift::Ratio;
use super::student::normal_quantile;
use super::{Interval, Method, drift, logarithms};

/// Fewer repetitions than this seldom hold an undisturbed one.
pub const FASTEST_FROM: usize = 6;

/// Standard deviation of the fastest repetition from one run to the next, on
/// the logarithm, beyond what its neighbours show: the larger part of the
/// 0.8 % to 3.3 % above.
const RUN_TO_RUN: f64 = 0.015;

/// The ratio of `other` to `base`, both positive and in the order of running,
/// widened for drift. `None` where
/// either has fewer than [`FASTEST_FROM`] values, or one that is not positive
/// and finite.
pub fn ratio_of_fastest(base: &[f64], other: &[f64], confidence: f64) -> Option<Ratio> {
    if base.len().min(other.len()) < FASTEST_FROM {
        return None;
    }
    let (base, other) = (logarithms(base)?, logarithms(other)?);
    let widened_by = drift::widening(&[&base, &other]);
    let (base, base_deviation) = fastest(base)?;
    let (other, other_deviation) = fastest(other)?;
    let variance = 2.0 * RUN_TO_RUN.powi(2) + base_deviation.powi(2) + other_deviation.powi(2);
    let half = widened_by * normal_quantile(0.5 + confidence / 2.0) * variance.sqrt();
    let shift = other - base;
    Some(Ratio {
        point: libm::exp(shift),
        interval: Interval {
            low: libm::exp(shift - half),
            high: libm::exp(shift + half),
            confidence,
            method: Method::Fastest,
            widened_by,
        },
    })
}

/// The largest of some logarithms, and its standard deviation: the distance to
/// the one below it.
fn fastest(mut logs: Vec<f64>) -> Option<(f64, f64)> {
    logs.sort_by(|left, right| right.total_cmp(left));
    let (first, second) = (*logs.first()?, *logs.get(1)?);
    Some((first, first - second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_repetitions_do_not_count() {
        let quiet = [100.0, 99.8, 99.9, 99.7, 100.0, 99.6];
        let disturbed = [99.9, 60.0, 99.7, 40.0, 99.8, 80.0];
        let same = ratio_of_fastest(&quiet, &disturbed, 0.95).unwrap();
        assert!((same.point - 0.999).abs() < 1e-9, "{same:?}");
        assert!(same.interval.contains(1.0), "{same:?}");
        let slower = disturbed.map(|speed| speed * 0.9);
        let found = ratio_of_fastest(&quiet, &slower, 0.95).unwrap();
        assert!(!found.interval.contains(1.0), "{found:?}");
    }

    #[test]
    fn a_lone_fast_repetition_makes_the_interval_wide() {
        let even = [100.0; 6];
        let lone = [120.0, 100.0, 100.0, 100.0, 100.0, 100.0];
        let found = ratio_of_fastest(&even, &lone, 0.95).unwrap();
        assert!(found.interval.contains(1.0), "{found:?}");
        assert_eq!(ratio_of_fastest(&even[..5], &lone, 0.95), None);
        assert_eq!(ratio_of_fastest(&even, &[0.0; 6], 0.95), None);
    }
}
