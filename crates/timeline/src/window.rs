//! Values in a row, and how steady they are: what SNIA's test of rounds and fio's of seconds
//! are both made of.
//!
//! SNIA looks at the range of the values and at how far their best line rises over all of
//! them; fio's `steadystate` at how far any value is from the mean, or at how far the line
//! rises from one value to the next.

use crate::SteadyRule;

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
