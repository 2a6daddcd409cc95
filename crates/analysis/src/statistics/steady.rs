//! Whether storage is steady: SNIA's test of the last rounds, and what fio's is made of.
//!
//! SNIA (SSS PTS): over five rounds, the largest value is above the smallest by 20 % of
//! their mean at most, and the best line through them changes by 10 % of the mean at most
//! across the window. fio's `steadystate` looks at other figures of a window: how far any
//! sample is from the mean, and the slope of a single sample.

use diskperf_timeline::SteadyRule;

/// What values in a row, one of each round, are tested by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Their mean.
    pub mean: f64,
    /// By how much the largest is above the smallest.
    pub range: f64,
    /// By how much any differs from the mean, at most.
    pub deviation: f64,
    /// By how much the least-squares line rises from one to the next.
    pub slope: f64,
    /// How many there are.
    pub count: usize,
}

impl Window {
    /// `None` of fewer than two values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let largest = values.iter().copied().fold(f64::MIN, f64::max);
        let smallest = values.iter().copied().fold(f64::MAX, f64::min);
        let middle = (count - 1) as f64 / 2.0;
        let places = (0..count).map(|place| place as f64 - middle);
        let moment: f64 = places
            .clone()
            .zip(values)
            .map(|(x, y)| x * (y - mean))
            .sum();
        let squares: f64 = places.map(|x| x * x).sum();
        Some(Self {
            mean,
            range: largest - smallest,
            deviation: (largest - mean).max(mean - smallest),
            slope: moment / squares,
            count,
        })
    }

    /// By how much the line changes from the first value to the last.
    pub fn drift(&self) -> f64 {
        self.slope * (self.count - 1) as f64
    }

    /// Whether the values are steady by a rule's limits.
    pub fn is_within(&self, rule: &SteadyRule) -> bool {
        self.mean > 0.0
            && self.range <= rule.excursion_share * self.mean
            && self.drift().abs() <= rule.slope_share * self.mean
    }
}

/// Whether the last rounds are steady: their rates, in the order of running. Fewer than a
/// window has are not.
pub fn is_steady(rates: &[f64], rule: &SteadyRule) -> bool {
    let first = rates.len().checked_sub(rule.window as usize);
    let window = first.and_then(|first| Window::of(&rates[first..]));
    window.is_some_and(|window| window.is_within(rule))
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
            assert_eq!(is_steady(&rates, &SteadyRule::SNIA), steady, "{rates:?}");
        }
    }

    #[test]
    fn limits_and_windows_can_be_others() {
        let rising = [100.0, 103.0, 106.0, 109.0, 112.0];
        let rule = |window, excursion_share, slope_share| SteadyRule {
            window,
            excursion_share,
            slope_share,
        };
        assert!(is_steady(&rising, &rule(5, 0.2, 0.12)));
        assert!(is_steady(&rising, &rule(3, 0.06, 0.06)));
        assert!(!is_steady(&rising, &rule(3, 0.05, 0.06)));
        assert!(!is_steady(&rising, &rule(6, 1.0, 1.0)));
    }

    #[test]
    fn a_window_has_what_both_tests_ask_for() {
        let window = Window::of(&[2.0, 4.0, 6.0, 12.0]).unwrap();
        let expected = Window {
            mean: 6.0,
            range: 10.0,
            deviation: 6.0,
            slope: 3.2,
            count: 4,
        };
        assert_eq!(window, expected);
        assert!((window.drift() - 9.6).abs() < 1e-12);
        assert_eq!(Window::of(&[1.0]), None);
    }
}
