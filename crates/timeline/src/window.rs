//! Statistics of a series of values for tests of steady state: SNIA's test over rounds and fio's
//! over seconds.
//!
//! SNIA limits the range of the values and the total rise of their best-fit line. fio's
//! `steadystate` limits the deviation of any value from the mean, or the rise of the line from one
//! value to the next.

use crate::SteadyRule;

/// Statistics of consecutive values, one for each round, that decide on steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Mean of the values in the window.
    pub mean: f64,
    /// Difference between the largest and the smallest value.
    pub range: f64,
    /// Maximum difference between a value and the mean.
    pub deviation: f64,
    /// Rise of the least-squares line from one value to the next.
    pub slope: f64,
    /// Number of values in the window.
    pub count: usize,
}

impl Window {
    /// Returns the statistics of the values; `None` for fewer than two values.
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

    /// Returns the change of the least-squares line from the first value to the last.
    pub fn drift(&self) -> f64 {
        self.slope * (self.count - 1) as f64
    }

    /// Reports whether the values are within the limits of a rule for steady state.
    pub fn is_within(&self, rule: &SteadyRule) -> bool {
        self.mean > 0.0
            && self.range <= rule.excursion_share * self.mean
            && self.drift().abs() <= rule.slope_share * self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
