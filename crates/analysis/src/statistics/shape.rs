//! Shape of a run's repetitions in the order of running: steady, two modes, a drift, or a shift
//! from one level to another. A median alone would hide it.

use super::{mean, median, take_logarithms};
use serde::Serialize;

/// Minimum number of repetitions that show a shape.
pub const SHAPE_REPETITIONS_MIN: usize = 8;

/// Minimum change of the duration that is reported: 5 %.
const CHANGE_REPORTED_MIN: f64 = 0.05;

/// Minimum distance of two levels of repetitions, in their own standard deviations. The best split
/// of a normal sample of 20 lies under 4 apart, of a uniform one at 3.5.
const MODE_DISTANCE_MIN: f64 = 5.0;

/// Minimum share of the repetitions on the smaller of two levels.
const LEVEL_SHARE_MIN: f64 = 0.15;
/// Minimum number of repetitions on the smaller of two levels.
const LEVEL_COUNT_MIN: usize = 3;

/// Number of standard deviations by which Kendall's rank correlation with time must exceed chance.
const DRIFT_DEVIATIONS_MIN: f64 = 3.3;

/// Shape of a series of repetitions. Levels are in seconds, changes are shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "shape")]
pub enum SeriesShape {
    /// The durations of the repetitions lie around one level.
    Steady,
    /// The durations of the repetitions alternate between two levels.
    #[serde(rename = "two_modes")]
    Bimodal {
        /// Median of the faster repetitions, in seconds.
        fast_s: f64,
        /// Median of the slower repetitions, in seconds.
        slow_s: f64,
        /// Number of repetitions on the slower level.
        slower: usize,
        /// Number of all repetitions in the series.
        of: usize,
    },
    /// The durations of the repetitions shift once from one level to another.
    #[serde(rename = "shift")]
    LevelShift {
        /// First repetition on the new level, counted from 1 among those kept.
        at: usize,
        /// Increase of the duration at the shift, as a share; negative for a decrease.
        change: f64,
    },
    /// The repetitions drift: they become steadily slower, or steadily faster.
    Drift {
        /// Increase of the duration from the first to the last repetition, as a share; negative for
        /// a decrease.
        change: f64,
    },
}

impl SeriesShape {
    /// Determines the shape of repetitions from their durations in seconds, in the order of
    /// running.
    pub fn from_durations(seconds: &[f64]) -> Self {
        let Some(logs) =
            take_logarithms(seconds).filter(|logs| logs.len() >= SHAPE_REPETITIONS_MIN)
        else {
            return Self::Steady;
        };
        find_modes(&logs)
            .or_else(|| find_drift(&logs))
            .unwrap_or(Self::Steady)
    }

    /// Tests whether the durations of the repetitions lie around one level.
    pub fn is_steady(&self) -> bool {
        *self == Self::Steady
    }

    /// Tests whether the durations of the repetitions lie around two levels.
    pub fn is_bimodal(&self) -> bool {
        matches!(self, Self::Bimodal { .. })
    }

    /// Describes the shape of the repetitions; empty for a steady one.
    pub fn label(&self) -> String {
        let slower = |change: f64| if change > 0.0 { "slower" } else { "faster" };
        match *self {
            Self::Steady => String::new(),
            Self::Bimodal {
                fast_s,
                slow_s,
                slower,
                of,
            } => format!(
                "two modes, {:.0} % apart ({slower} of {of} in the slower one)",
                100.0 * (slow_s / fast_s - 1.0)
            ),
            Self::LevelShift { at, change } => format!(
                "shifts at repetition {at}: {:.0} % {} from there on",
                100.0 * change.abs(),
                slower(change)
            ),
            Self::Drift { change } => format!(
                "drifts: {:.0} % {} from the first to the last",
                100.0 * change.abs(),
                slower(change)
            ),
        }
    }
}

/// Finds two levels, if the values lie around two: alternating, or with a single change.
fn find_modes(logs: &[f64]) -> Option<SeriesShape> {
    let bound = find_widest_split(logs)?;
    let (slow, fast): (Vec<f64>, Vec<f64>) = logs.iter().partition(|one| **one > bound);
    let (slow_s, fast_s) = (libm::exp(median(&slow)?), libm::exp(median(&fast)?));
    if slow_s / fast_s < 1.0 + CHANGE_REPORTED_MIN {
        return None;
    }
    let changes = |pair: &[f64]| (pair[0] > bound) != (pair[1] > bound);
    let mut switches = (1..logs.len()).filter(|at| changes(&logs[at - 1..=*at]));
    let shape = match (switches.next(), switches.next()) {
        (Some(at), None) => SeriesShape::LevelShift {
            at: at + 1,
            change: match logs[at] > bound {
                true => slow_s / fast_s - 1.0,
                false => fast_s / slow_s - 1.0,
            },
        },
        _ => SeriesShape::Bimodal {
            fast_s,
            slow_s,
            slower: slow.len(),
            of: logs.len(),
        },
    };
    Some(shape)
}

/// Returns the value that splits the sorted values into two groups, far apart for their own spread;
/// `None` where no such split exists.
fn find_widest_split(logs: &[f64]) -> Option<f64> {
    let mut sorted = logs.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let least = LEVEL_COUNT_MIN.max((LEVEL_SHARE_MIN * n as f64).ceil() as usize);
    let apart = |at: usize| {
        let (below, above) = sorted.split_at(at);
        let between = mean(above)? - mean(below)?;
        let squares = |of: &[f64]| -> Option<f64> {
            let middle = mean(of)?;
            Some(of.iter().map(|one| (one - middle).powi(2)).sum())
        };
        let within = ((squares(below)? + squares(above)?) / (n - 2) as f64).sqrt();
        Some((between / within.max(f64::MIN_POSITIVE), below[at - 1]))
    };
    (least..=n.saturating_sub(least))
        .filter_map(apart)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .filter(|(apart, _)| *apart >= MODE_DISTANCE_MIN)
        .map(|(_, bound)| bound)
}

/// Finds a steady drift, by Kendall's rank correlation with time (Mann 1945) and the median of all
/// slopes (Theil 1950).
fn find_drift(logs: &[f64]) -> Option<SeriesShape> {
    let n = logs.len();
    let mut concordance = 0_i64;
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (from, first) in logs.iter().enumerate() {
        for (to, second) in logs.iter().enumerate().skip(from + 1) {
            concordance += i64::from(second > first) - i64::from(second < first);
            slopes.push((second - first) / (to - from) as f64);
        }
    }
    let count = n as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    let change = libm::expm1(median(&slopes)? * (count - 1.0));
    let sure = concordance.unsigned_abs() as f64 >= DRIFT_DEVIATIONS_MIN * deviation;
    (sure && change.abs() >= CHANGE_REPORTED_MIN).then_some(SeriesShape::Drift { change })
}

/// Maximum number of bars in a strip, which stands on a line beside a name.
pub const STRIP_BARS_MAX: usize = 60;

/// Draws repetitions as a row of bars, the fastest the highest; empty for none. In a long row each
/// bar is the mean of several.
pub fn render_strip(rates: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = rates.len().div_ceil(STRIP_BARS_MAX).max(1);
    let rates: Vec<f64> = rates.chunks(each).filter_map(mean).collect();
    let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let most = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |rate: &f64| {
        // Within 5 % of each other all are as high.
        let span = (most - least).max(CHANGE_REPORTED_MIN * most);
        let height = (rate - (most - span)) / span * (BARS.len() - 1) as f64;
        BARS[(height.round() as usize).min(BARS.len() - 1)]
    };
    rates.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        let wave = |i: usize| 1.0 + 0.01 * [0.0, 1.0, -1.0, 0.5, -0.5][i % 5];
        let series = |of: &dyn Fn(usize) -> f64| (0..20).map(of).collect::<Vec<_>>();
        assert_eq!(
            SeriesShape::from_durations(&series(&wave)),
            SeriesShape::Steady
        );
        assert_eq!(
            SeriesShape::from_durations(&series(&|_| 1.0)),
            SeriesShape::Steady
        );
        assert_eq!(
            SeriesShape::from_durations(&series(&wave)[..7]),
            SeriesShape::Steady
        );
        let modes =
            SeriesShape::from_durations(&series(&|i| wave(i) * if i % 3 == 0 { 1.3 } else { 1.0 }));
        assert_eq!(
            modes.label(),
            "two modes, 30 % apart (7 of 20 in the slower one)"
        );
        let shift =
            SeriesShape::from_durations(&series(&|i| wave(i) * if i < 12 { 1.0 } else { 0.8 }));
        assert_eq!(
            shift.label(),
            "shifts at repetition 13: 20 % faster from there on"
        );
        let drift = SeriesShape::from_durations(&series(&|i| wave(i) * (1.0 + 0.01 * i as f64)));
        assert!(drift.label().starts_with("drifts: 1"), "{}", drift.label());
        // Two wild ones are no mode.
        let wild =
            SeriesShape::from_durations(&series(&|i| wave(i) * if i % 9 == 4 { 2.0 } else { 1.0 }));
        assert_eq!(wild, SeriesShape::Steady);
    }

    #[test]
    fn a_strip_shows_each_repetition() {
        assert_eq!(render_strip(&[]), "");
        assert_eq!(render_strip(&[7.0, 7.0]), "██");
        assert_eq!(render_strip(&[100.0, 50.0, 75.0, 99.0]), "█▁▅█");
        assert_eq!(render_strip(&[100.0, 99.0]), "█▇");
    }

    #[test]
    fn a_strip_is_never_longer_than_a_line() {
        for count in [59, 60, 61, 119, 121, 561, 10_000] {
            let rates: Vec<f64> = (0..count).map(f64::from).collect();
            let drawn = render_strip(&rates);
            let bars = drawn.chars().count();
            assert!((30..=STRIP_BARS_MAX).contains(&bars), "{bars} of {count}");
            assert!(drawn.starts_with('▁') && drawn.ends_with('█'), "{drawn}");
        }
    }
}
