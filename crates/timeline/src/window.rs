//! Statistics of a series of values for tests of steady state: SNIA's test over rounds and fio's
//! over seconds.
//!
//! SNIA limits the range of the values and the total rise of their best-fit line. fio's
//! `steadystate` limits the deviation of any value from the mean, or the rise of the line from one
//! value to the next.

use crate::SteadyRule;

/// Statistics of consecutive values, one for each round, that decide on steady state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyWindow {
    /// Mean of the values in the window.
    pub mean_value: f64,
    /// Difference between the largest and the smallest value.
    pub value_range: f64,
    /// Maximum difference between a value and the mean.
    pub mean_deviation: f64,
    /// Rise of the least-squares line from one value to the next.
    pub slope_per_round: f64,
    /// Number of values in the window.
    pub value_count: usize,
}

impl SteadyWindow {
    /// Returns the statistics of the values; `None` for fewer than two values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
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
            mean_value: mean,
            value_range: largest - smallest,
            mean_deviation: (largest - mean).max(mean - smallest),
            slope_per_round: moment / squares,
            value_count: count,
        })
    }

    /// Returns the change of the least-squares line from the first value to the last.
    pub fn drift_over_window(&self) -> f64 {
        self.slope_per_round * (self.value_count - 1) as f64
    }

    /// Reports whether the values are within the limits of a rule for steady state.
    pub fn satisfies_rule(&self, rule: &SteadyRule) -> bool {
        self.mean_value > 0.0
            && self.value_range <= rule.excursion_share * self.mean_value
            && self.drift_over_window().abs() <= rule.slope_share * self.mean_value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_what_both_tests_ask_for() {
        let window = SteadyWindow::from_values(&[2.0, 4.0, 6.0, 12.0]).unwrap();
        let expected = SteadyWindow {
            mean_value: 6.0,
            value_range: 10.0,
            mean_deviation: 6.0,
            slope_per_round: 3.2,
            value_count: 4,
        };
        assert_eq!(window, expected);
        assert!((window.drift_over_window() - 9.6).abs() < 1e-12);
        assert_eq!(SteadyWindow::from_values(&[1.0]), None);
    }
}
