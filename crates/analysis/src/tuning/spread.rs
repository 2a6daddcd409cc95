//! Best and today's settings, run again with other seeds and spindle phases.

use super::{EQUAL_SHARE, Goal};
use crate::statistics::median_interval;
use serde::Serialize;

/// What counted in each run, those of one seed and phase at the same place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// How many seeds.
    pub seeds: u32,
    /// How many angles of the spindles at the start, for each seed; 1 without a spindle.
    pub phases: u32,
    /// With the best settings.
    pub best: Vec<f64>,
    /// With the target's own.
    pub today: Vec<f64>,
    /// With the safe ones, where the best are on a cliff.
    pub safe: Vec<f64>,
}

/// The least, the middle and the most of some values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extent {
    /// The least.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The most.
    pub most: f64,
}

impl Extent {
    /// Of some values; nothing of none.
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
    /// What the best gain over today's, seed by seed and phase by phase.
    pub fn gains(&self, goal: Goal) -> Vec<f64> {
        let pairs = self.today.iter().zip(&self.best);
        pairs
            .map(|(today, best)| goal.gain(*today, *best))
            .collect()
    }

    /// Whether the pairs show that the best are better: the 95 % interval of the median gain
    /// lies above none. `None` of a single pair, which is the search's own.
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
