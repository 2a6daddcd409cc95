//! Result of a search for better settings: the points that were run, the best of them, the cliffs
//! between them, and the safe point if the best one is on a cliff.

mod cliffs;
mod goal;
mod samples;
mod spread;

pub use cliffs::{CLIFF_STEP_RATIO_MAX, CliffLossRange, ParameterCliff, parse_number};
pub use goal::{P99_CALLS_MIN, ProgramFigures, TuningGoal, ValueUncertainty, p99_range};
pub use samples::{PointVisit, VisitSamples};
pub use spread::{SeedSpread, ValueRange};

use crate::comparison::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// Search for better settings, with all points that it tried. A point is one combination of
/// parameter values.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningResult {
    /// Suite or program that the search ran.
    pub suite: String,
    /// Target that the search ran on.
    pub target: String,
    /// Goal that the search optimizes.
    pub goal: TuningGoal,
    /// Names of the programs, in the order of running.
    pub programs: Vec<String>,
    /// Parameters that the search varied, each with its values.
    pub parameters: Vec<TunedParameter>,
    /// Combinations that were tried, sorted by their value indices.
    pub points: BTreeMap<GridPoint, PointOutcome>,
    /// Figures of the target with its current settings, by program.
    pub today_figures: Vec<ProgramFigures>,
    /// Method of the search, with the number of combinations it tried.
    pub method: SearchMethod,
    /// Results of the best and of today's settings over seeds and phases; absent where the search
    /// was ended before.
    pub seed_spread: Option<SeedSpread>,
    /// Measurements on real storage, where noise matters.
    pub samples: Option<VisitSamples>,
    /// Notes to the reader about the search.
    pub notes: Vec<String>,
}

/// Point of a search, as the index of the chosen value for each parameter.
pub type GridPoint = Vec<usize>;

/// Parameter of a search, with the values that may be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TunedParameter {
    /// Path of the parameter in the catalogue: `drive.interleave`.
    pub path: String,
    /// Values of the parameter in the given order.
    pub values: Vec<String>,
    /// Whether the values are ordered numbers, so that each has neighbours.
    #[serde(rename = "ordered")]
    pub is_ordered: bool,
    /// Value of the target's current settings, if they contain one.
    #[serde(rename = "today")]
    pub today_value: Option<String>,
    /// Index of the target's current value, if it may be tried.
    #[serde(rename = "today_place")]
    pub today_value_index: Option<usize>,
}

/// Outcome of one combination of parameter values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PointOutcome {
    /// The combination ran, with these figures of each program.
    #[serde(rename = "ran")]
    Measured(Vec<ProgramFigures>),
    /// The combination is impossible, for this reason: no such computer, or no such run of it.
    Impossible(String),
}

/// Method of the search, with the numbers of combinations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchMethod {
    /// Search strategy: every combination, or some.
    #[serde(rename = "search")]
    pub kind: SearchKind,
    /// Number of all possible combinations of the values.
    #[serde(rename = "combinations")]
    pub combination_count: u64,
    /// Number of combinations that the search tried.
    #[serde(rename = "tried")]
    pub tried_count: u64,
    /// Number of tried combinations that are impossible: no such computer or no such run.
    #[serde(rename = "impossible")]
    pub impossible_count: u64,
    /// Number of tried combinations that were added after the search, for the cliff.
    #[serde(rename = "around")]
    pub neighbour_count: u64,
    /// Number of tried combinations whose results came from the store.
    #[serde(rename = "from_store")]
    pub from_store_count: u64,
    /// Maximum number of combinations that the search may try.
    #[serde(rename = "budget")]
    pub run_budget: u64,
    /// Bytes that each program moved, by program.
    pub size_bytes: Vec<u64>,
    /// Repetitions of each program, and the number of first ones that do not count.
    #[serde(rename = "repetitions")]
    pub repetition_range: (u32, u32),
    /// Seed of all random choices of the search.
    pub seed: u64,
}

/// Strategies of a search: exhaustive, or coordinate descent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// Exhaustive search, which tries every combination.
    Exhaustive,
    /// Search by coordinate descent from several starts.
    Descent {
        /// Number of runs at a quarter and at half of the size, which found the starts.
        screened: u64,
        /// Number of starting points of the descent.
        starts: u64,
    },
}

/// Step from a point to a neighbouring value of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ParameterStep {
    /// Path of the parameter that the step changes.
    pub path: String,
    /// Value of the parameter at the point.
    #[serde(rename = "from")]
    pub from_value: String,
    /// Neighbouring value of the parameter, above or below.
    #[serde(rename = "to")]
    pub to_value: String,
    /// Gain of the step as a share of the point's value; absent where the step leads to an
    /// impossible point.
    pub gain: Option<f64>,
    /// Whether the step leads down a cliff.
    #[serde(rename = "cliff")]
    pub is_cliff: bool,
}

/// Standing of the point with the best figure, relative to the target's current settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BestStanding {
    /// The point is better: runs with other seeds confirm it, or none were made.
    Better,
    /// The point is the unchanged target, or gives the same figure.
    AsGoodAsToday,
    /// The point has the best figure, but runs with other seeds do not confirm it.
    Unproven,
}

impl BestStanding {
    /// Returns the name of the point with the best figure in tables: `best` or `candidate`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Better | Self::AsGoodAsToday => "best",
            Self::Unproven => "candidate",
        }
    }
}

/// Relative difference below which two points of a search are equally good. The first of equal
/// points is the best.
pub const EQUAL_GAIN_SHARE_MAX: f64 = 0.001;

/// Minimum loss of a step that counts as a cliff, as a share beyond the loss that the surrounding
/// steps predict.
pub const CLIFF_LOSS_SHARE_MIN: f64 = 0.1;

/// Maximum cost of safe settings, as a share of the fall from the best point.
pub const SAFE_LOSS_SHARE_MAX: f64 = 0.5;

/// Maximum number of impossible values between two neighbouring values of a parameter.
const IMPOSSIBLE_VALUES_MAX: usize = 64;

impl PointOutcome {
    /// Returns the figures of a point that ran.
    pub fn measured_figures(&self) -> Option<&[ProgramFigures]> {
        match self {
            Self::Measured(figures) => Some(figures),
            Self::Impossible(_) => None,
        }
    }
}

impl TuningResult {
    /// Returns the goal's value for a point, if it ran.
    pub fn goal_value(&self, places: &[usize]) -> Option<f64> {
        let figures = self.points.get(places)?.measured_figures()?;
        self.goal.value_of_programs(figures)
    }

    /// Returns the goal's value for the target's current settings.
    pub fn today_value(&self) -> Option<f64> {
        self.goal.value_of_programs(&self.today_figures)
    }

    /// Returns the share of a point's read bytes that were never written on a modelled flash drive:
    /// the largest of its programs.
    pub fn unwritten_share(&self, places: &[usize]) -> Option<f64> {
        unwritten_share_max(self.points.get(places)?.measured_figures()?)
    }

    /// Returns the share of read bytes that were never written with the target's current settings,
    /// on a modelled flash drive.
    pub fn today_unwritten_share(&self) -> Option<f64> {
        unwritten_share_max(&self.today_figures)
    }

    /// Returns the best point that was tried; of equal ones the first. `None` where no point could
    /// be run.
    pub fn best_point(&self) -> Option<&GridPoint> {
        match &self.samples {
            None => self.first_best_point(self.points.keys()),
            // Points that left early were measured in other rounds: only what they are
            // beside today's in the same rounds can be compared.
            Some(_) => {
                let gain = |places: &GridPoint| self.gain_over_today(places);
                let most = self.points.keys().filter_map(gain).reduce(f64::max)?;
                let as_good = |gain: f64| most - gain <= EQUAL_GAIN_SHARE_MAX;
                let mut points = self.points.keys();
                points.find(|places| gain(places).is_some_and(as_good))
            }
        }
    }

    /// Judges the point with the best figure: by the rounds on real storage, or by other seeds and
    /// phases of a model.
    pub fn standing_of_best(&self, best: &GridPoint) -> BestStanding {
        if let Some(samples) = &self.samples {
            return match samples
                .compare_with_today(best)
                .map(|judged| judged.verdict)
            {
                None => BestStanding::AsGoodAsToday,
                Some(Verdict::Faster) => BestStanding::Better,
                Some(_) => BestStanding::Unproven,
            };
        }
        let as_good = |gain: f64| gain <= EQUAL_GAIN_SHARE_MAX;
        if self.gain_over_today(best).is_some_and(as_good) {
            return BestStanding::AsGoodAsToday;
        }
        let spread = self.seed_spread.as_ref();
        match spread.and_then(|spread| spread.shows_gain(self.goal)) {
            Some(false) => BestStanding::Unproven,
            Some(true) | None => BestStanding::Better,
        }
    }

    /// Reports whether an unproven point is worth a mention: it gains over today's settings, and no
    /// other point has a better figure. On real storage, points that left early were measured in
    /// other rounds, so that the point with the best gain need not have the best figure.
    pub fn is_leading(&self, best: &GridPoint) -> bool {
        let gains = self.gain_over_today(best).is_some_and(|gain| gain > 0.0);
        gains && self.first_best_point(self.points.keys()) == Some(best)
    }

    /// Returns the name of the point with the best figure or gain in tables: `best`, `candidate`, or
    /// `top gain` for an unproven point that does not lead.
    pub fn label_of_best(&self, best: &GridPoint) -> &'static str {
        match self.standing_of_best(best) {
            BestStanding::Unproven if !self.is_leading(best) => "top gain",
            standing => standing.label(),
        }
    }

    /// Tests whether a point is the target with its current settings.
    pub fn is_today(&self, places: &[usize]) -> bool {
        let mut keys = self.parameters.iter().zip(places);
        keys.all(|(key, place)| key.today_value_index == Some(*place))
    }

    /// Returns the gain of a point over the target's current settings, as a share. Points measured
    /// in rounds use the ratio of their verdict.
    pub fn gain_over_today(&self, places: &[usize]) -> Option<f64> {
        match &self.samples {
            Some(samples) if samples.point_visits.get(places)? == &samples.today_visits => {
                Some(0.0)
            }
            Some(samples) => Some(samples.compare_with_today(places)?.ratio? - 1.0),
            None => Some(
                self.goal
                    .gain(self.today_value()?, self.goal_value(places)?),
            ),
        }
    }

    fn first_best_point<'p>(
        &self,
        points: impl Iterator<Item = &'p GridPoint> + Clone,
    ) -> Option<&'p GridPoint>
    where
        Self: 'p,
    {
        let values = || {
            let all = points.clone();
            all.filter_map(|places| Some((places, self.goal_value(places)?)))
        };
        let better = |best: f64, (_, value): (&GridPoint, f64)| self.goal.better_value(best, value);
        let (_, first) = values().next()?;
        let most = values().fold(first, better);
        let as_good =
            |(_, value): &(&GridPoint, f64)| self.goal.gain(most, *value) >= -EQUAL_GAIN_SHARE_MAX;
        values().find(as_good).map(|(places, _)| places)
    }

    /// Formats the settings of a point: `drive.interleave=3, filesystem.gap_blocks=2`.
    pub fn describe_settings(&self, places: &[usize]) -> String {
        let setting = |(key, place): (&TunedParameter, &usize)| {
            format!("{}={}", key.path, key.values[*place])
        };
        let settings: Vec<String> = self.parameters.iter().zip(places).map(setting).collect();
        settings.join(", ")
    }

    /// Returns the neighbours of a point, with the index of the parameter: the next value and the
    /// one before of each ordered parameter. Values known to be impossible are skipped, where
    /// something lies behind them.
    pub fn list_neighbours(&self, places: &[usize]) -> Vec<(usize, GridPoint)> {
        let mut neighbours = Vec::new();
        for (number, key) in self.parameters.iter().enumerate() {
            let below = (0..places[number]).rev().collect();
            let above = (places[number] + 1..key.values.len()).collect();
            let sides: [Vec<usize>; 2] = [below, above];
            for side in sides.iter().filter(|_| key.is_ordered) {
                let beside = side.iter().take(IMPOSSIBLE_VALUES_MAX).map(|place| {
                    let mut beside = places.to_vec();
                    beside[number] = *place;
                    beside
                });
                let possible = |beside: &GridPoint| {
                    !matches!(self.points.get(beside), Some(PointOutcome::Impossible(_)))
                };
                let chosen = beside.clone().find(possible);
                neighbours.extend(chosen.or(beside.clone().next()).map(|one| (number, one)));
            }
        }
        neighbours
    }

    /// Returns the steps from a point to those of its neighbours that were tried.
    pub fn list_steps(&self, places: &[usize]) -> Vec<ParameterStep> {
        if self.goal_value(places).is_none() {
            return Vec::new();
        }
        let cliffs = self.find_cliffs();
        let neighbours = self.list_neighbours(places).into_iter();
        let step = |(number, beside): (usize, GridPoint)| {
            self.points.get(&beside)?;
            let key = &self.parameters[number];
            Some(ParameterStep {
                path: key.path.clone(),
                from_value: key.values[places[number]].clone(),
                to_value: key.values[beside[number]].clone(),
                gain: self.gain_between(places, &beside).map(|(gain, _)| gain),
                is_cliff: is_cliff_step(&cliffs, places, &beside),
            })
        };
        neighbours.filter_map(step).collect()
    }

    /// Returns the point one step away from every cliff that a point is on; `None` where there is
    /// no cliff, or no step away.
    pub fn step_away_from_cliffs(&self, places: &[usize]) -> Option<GridPoint> {
        let cliffs = self.find_cliffs();
        let neighbours = self.list_neighbours(places);
        let falls = |beside: &GridPoint| is_cliff_step(&cliffs, places, beside);
        let mut away = places.to_vec();
        for (number, beside) in neighbours.iter().filter(|(_, beside)| falls(beside)) {
            let opposite = neighbours
                .iter()
                .find(|(other, one)| other == number && one != beside && !falls(one));
            if let Some((_, one)) = opposite {
                away[*number] = one[*number];
            }
        }
        (away != places).then_some(away)
    }

    /// Tests whether a point is at the edge of a cliff.
    pub fn is_on_cliff(&self, places: &[usize]) -> bool {
        is_top_of_cliff(&self.find_cliffs(), places)
    }

    /// Returns the worst value among a point and its neighbours, if all of them are known.
    pub fn worst_neighbour_gain(&self, places: &[usize]) -> Option<f64> {
        let mut worst = self.goal_value(places)?;
        for (_, beside) in self.list_neighbours(places) {
            self.points.get(&beside)?;
            if let Some(value) = self.goal_value(&beside) {
                worst = self.goal.worse_value(worst, value);
            }
        }
        Some(worst)
    }

    /// Returns the safe point, where the best one is on a cliff.
    ///
    /// Among the points on no cliff whose neighbours are known, it is the one with the best worst
    /// neighbour. `None` where it would cost a large part of the fall that it avoids.
    pub fn safe_point(&self) -> Option<&GridPoint> {
        let best = self.best_point()?;
        let fall = self.worst_neighbour_gain(best)?;
        let cliffs = self.find_cliffs();
        if !is_top_of_cliff(&cliffs, best) {
            return None;
        }
        let gain = |from, to| self.goal.gain(from, to);
        let at_best = self.goal_value(best)?;
        let most_cost = SAFE_LOSS_SHARE_MAX * gain(at_best, fall);
        let mut safe: Option<(&GridPoint, f64, f64)> = None;
        for places in self.points.keys() {
            let (Some(value), Some(worst)) =
                (self.goal_value(places), self.worst_neighbour_gain(places))
            else {
                continue;
            };
            if is_top_of_cliff(&cliffs, places) || gain(at_best, value) < most_cost {
                continue;
            }
            let better = safe.is_none_or(|(other, other_value, other_worst)| {
                // Of equal ones the better, and of those the nearer.
                let nearer = step_distance(places, best) < step_distance(other, best);
                let by_worst = gain(other_worst, worst);
                let by_value = gain(other_value, value);
                by_worst > EQUAL_GAIN_SHARE_MAX
                    || (by_worst >= -EQUAL_GAIN_SHARE_MAX
                        && (by_value > EQUAL_GAIN_SHARE_MAX
                            || (by_value >= -EQUAL_GAIN_SHARE_MAX && nearer)))
            });
            if better {
                safe = Some((places, value, worst));
            }
        }
        let (places, _, worst) = safe?;
        (gain(fall, worst) > EQUAL_GAIN_SHARE_MAX).then_some(places)
    }

    /// Returns the parameters that changed nothing, in any pair of points that differ only in them.
    /// There must be such a pair.
    pub fn parameters_without_effect(&self) -> Vec<&str> {
        let idle = |number: &usize| {
            let mut seen: BTreeMap<GridPoint, &PointOutcome> = BTreeMap::new();
            let mut pairs = false;
            for (places, outcome) in &self.points {
                let mut others = places.clone();
                others[*number] = 0;
                match seen.get(&others) {
                    Some(first) if *first != outcome => return false,
                    Some(_) => pairs = true,
                    None => drop(seen.insert(others, outcome)),
                }
            }
            pairs
        };
        let numbers = (0..self.parameters.len()).filter(idle);
        numbers
            .map(|number| self.parameters[number].path.as_str())
            .collect()
    }

    /// Returns the parameters whose best value is the first or the last that was tried, with that
    /// value. A better value may lie beyond.
    pub fn parameters_at_range_end(&self) -> Vec<RangeEndValue<'_>> {
        let Some(best) = self.best_point() else {
            return Vec::new();
        };
        let ends = self.parameters.iter().zip(best);
        let at_end = ends.filter(|(key, place)| {
            let last = key.values.len() - 1;
            key.is_ordered && last > 0 && (**place == 0 || **place == last)
        });
        at_end
            .map(|(key, place)| RangeEndValue {
                path: &key.path,
                value: &key.values[*place],
            })
            .collect()
    }
}

/// Best value of a parameter, at the end of the range that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeEndValue<'r> {
    /// Path of the parameter.
    pub path: &'r str,
    /// First or last value that was tried.
    pub value: &'r str,
}

fn is_cliff_step(cliffs: &[ParameterCliff], from: &[usize], to: &[usize]) -> bool {
    let mut cliffs = cliffs.iter();
    cliffs.any(|cliff| cliff.top_point == from && cliff.bottom_point == to)
}

fn is_top_of_cliff(cliffs: &[ParameterCliff], places: &[usize]) -> bool {
    cliffs.iter().any(|cliff| cliff.top_point == places)
}

/// Returns the number of steps between two points of a search.
pub fn step_distance(from: &[usize], to: &[usize]) -> usize {
    let apart = from.iter().zip(to).map(|(from, to)| from.abs_diff(*to));
    apart.sum()
}

fn unwritten_share_max(figures: &[ProgramFigures]) -> Option<f64> {
    let shares = figures.iter().filter_map(|one| one.unwritten_share);
    shares.reduce(f64::max)
}

#[cfg(test)]
pub(crate) mod tests;
