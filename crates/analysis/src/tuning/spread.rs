//! Reruns of the best and of today's settings with other seeds and spindle phases.

use super::{EQUAL_GAIN_SHARE_MAX, TuningGoal};
use crate::statistics::median_interval;
use serde::Serialize;

/// Goal's value in each rerun. Values of the same seed and phase have the same index.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SeedSpread {
    /// Number of seeds that the reruns used.
    #[serde(rename = "seeds")]
    pub seed_count: u32,
    /// Number of initial spindle angles for each seed; 1 without a spindle.
    #[serde(rename = "phases")]
    pub phase_count: u32,
    /// Goal's values with the best settings.
    #[serde(rename = "best")]
    pub best_values: Vec<f64>,
    /// Goal's values with the target's current settings.
    #[serde(rename = "today")]
    pub today_values: Vec<f64>,
    /// Goal's values with the safe settings, where the best ones are on a cliff.
    #[serde(rename = "safe")]
    pub safe_values: Vec<f64>,
}

/// Minimum, median and maximum of a goal's values over seeds and phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ValueRange {
    /// Minimum of the given values.
    #[serde(rename = "least")]
    pub min: f64,
    /// Median of the given values.
    pub median: f64,
    /// Maximum of the given values.
    #[serde(rename = "most")]
    pub max: f64,
}

impl ValueRange {
    /// Computes the extent of some values; `None` for none.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let median = crate::statistics::median(values)?;
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Self {
            min: least,
            median,
            max: most,
        })
    }
}

impl SeedSpread {
    /// Returns the gains of the best over today's settings, seed by seed and phase by phase.
    pub fn gains(&self, goal: TuningGoal) -> Vec<f64> {
        let pairs = self.today_values.iter().zip(&self.best_values);
        pairs
            .map(|(today, best)| goal.gain(*today, *best))
            .collect()
    }

    /// Tests whether the pairs show that the best settings are better: the 95 % interval of the
    /// median gain lies above 0. `None` for a single pair, which is that of the search itself.
    pub fn shows_gain(&self, goal: TuningGoal) -> Option<bool> {
        let gains = self.gains(goal);
        if gains.len() < 2 {
            return None;
        }
        let ratios: Vec<f64> = gains.iter().map(|gain| 1.0 + gain).collect();
        let interval = median_interval(&ratios);
        Some(interval.is_some_and(|interval| interval.min > 1.0 + EQUAL_GAIN_SHARE_MAX))
    }
}
