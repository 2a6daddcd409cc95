//! Test for steadiness of storage: SNIA's test of the last rounds.
//!
//! SNIA (SSS PTS): over five rounds, the largest value is above the smallest by at most 20 % of
//! their mean, and the best line through them changes by at most 10 % of the mean across the
//! window.

use diskperf_timeline::{SteadyRule, SteadyWindow};

/// Tests whether the last rounds are steady, given their rates in the order of running. Fewer
/// rounds than a window are not steady.
pub fn is_steady(rates: &[f64], rule: &SteadyRule) -> bool {
    let first = rates.len().checked_sub(rule.window_rounds as usize);
    let window = first.and_then(|first| SteadyWindow::from_values(&rates[first..]));
    window.is_some_and(|window| window.satisfies_rule(rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_rounds_are_steady_within_both_limits() {
        for (rates, steady) in [
            (vec![100.0, 104.0, 98.0, 101.0, 99.0], true),
            // The slope is 11.3 % of the mean.
            (vec![100.0, 103.0, 106.0, 109.0, 112.0], false),
            (vec![112.0, 109.0, 106.0, 103.0, 100.0], false),
            // The range is 23.8 %.
            (vec![100.0, 100.0, 125.0, 100.0, 100.0], false),
            // What came before the window does not count.
            (vec![900.0, 500.0, 100.0, 104.0, 98.0, 101.0, 99.0], true),
            (vec![100.0, 104.0, 98.0, 101.0], false),
            (vec![0.0; 5], false),
            (Vec::new(), false),
        ] {
            assert_eq!(
                is_steady(&rates, &SteadyRule::SNIA_RULE),
                steady,
                "{rates:?}"
            );
        }
    }

    #[test]
    fn limits_and_windows_can_be_others() {
        let rising = [100.0, 103.0, 106.0, 109.0, 112.0];
        let rule = |window, excursion_share, slope_share| SteadyRule {
            window_rounds: window,
            excursion_share,
            slope_share,
        };
        assert!(is_steady(&rising, &rule(5, 0.2, 0.12)));
        assert!(is_steady(&rising, &rule(3, 0.06, 0.06)));
        assert!(!is_steady(&rising, &rule(3, 0.05, 0.06)));
        assert!(!is_steady(&rising, &rule(6, 1.0, 1.0)));
    }
}
