//! Reruns of the best and of today's settings with other seeds and spindle phases.

use super::{EQUAL_SHARE, Goal};
use crate::statistics::median_interval;
use serde::Serialize;

/// Goal's value in each rerun. Values of the same seed and phase have the same index.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Number of seeds that the reruns used.
    pub seeds: u32,
    /// Number of initial spindle angles for each seed; 1 without a spindle.
    pub phases: u32,
    /// Goal's values with the best settings.
    pub best: Vec<f64>,
    /// Goal's values with the target's current settings.
    pub today: Vec<f64>,
    /// Goal's values with the safe settings, where the best ones are on a cliff.
    pub safe: Vec<f64>,
}

/// Minimum, median and maximum of a goal's values over seeds and phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// Minimum of the given values.
    pub least: f64,
    /// Median of the given values.
    pub median: f64,
    /// Maximum of the given values.
    pub most: f64,
}

impl Extent {
    /// Computes the extent of some values; `None` for none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let median = crate::statistics::median(values)?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self {
            least,
            median,
            most,
        })
    }
}

impl Spread {
    /// Returns the gains of the best over today's settings, seed by seed and phase by phase.
    pub fn gains(&self, goal: Goal) -> Vec<f64> {
        let pairs = self.today.iter().zip(&self.best);
        pairs
            .map(|(today, best)| goal.gain(*today, *best))
            .collect()
    }

    /// Tests whether the pairs show that the best settings are better: the 95 % interval of the
    /// median gain lies above 0. `None` for a single pair, which is that of the search itself.
    pub fn shows_gain(&self, goal: Goal) -> Option<bool> {
        let gains = self.gains(goal);
        if gains.len() < 2 {
            return None;
        }
        let ratios: Vec<f64> = gains.iter().map(|gain| 1.0 + gain).collect();
        let interval = median_interval(&ratios);
        Some(interval.is_some_and(|interval| interval.low > 1.0 + EQUAL_SHARE))
    }
}
