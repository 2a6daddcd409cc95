//! Result of a search for better settings: the points that were run, the best of them, the cliffs
//! between them, and the safe point if the best one is on a cliff.

mod cliffs;
mod goal;
mod samples;
mod spread;

pub use cliffs::{CLIFF_STEP_RATIO_MAX, Cliff, number};
pub use goal::{Doubt, Figures, Goal, P99_CALLS_MIN, p99_range};
pub use samples::{Samples, Visit};
pub use spread::{Extent, Spread};

use crate::comparison::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// Search for better settings, with all points that it tried. A point is one combination of
/// parameter values.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// Suite or program that the search ran.
    pub suite: String,
    /// Target that the search ran on.
    pub target: String,
    /// Goal that the search optimizes.
    pub goal: Goal,
    /// Names of the programs, in the order of running.
    pub programs: Vec<String>,
    /// Parameters that the search varied, each with its values.
    pub keys: Vec<Key>,
    /// Combinations that were tried, sorted by their value indices.
    pub points: BTreeMap<Places, Outcome>,
    /// Figures of the target with its current settings, by program.
    pub today: Vec<Figures>,
    /// Method of the search, with the number of combinations it tried.
    pub method: Method,
    /// Results of the best and of today's settings over seeds and phases; absent where the search
    /// was ended before.
    pub spread: Option<Spread>,
    /// Measurements on real storage, where noise matters.
    pub samples: Option<Samples>,
    /// Notes to the reader about the search.
    pub notes: Vec<String>,
}

/// Point of a search, as the index of the chosen value for each parameter.
pub type Places = Vec<usize>;

/// Parameter of a search, with the values that may be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// Path of the parameter in the catalogue: `drive.interleave`.
    pub path: String,
    /// Values of the parameter in the given order.
    pub values: Vec<String>,
    /// Whether the values are ordered numbers, so that each has neighbours.
    pub ordered: bool,
    /// Value of the target's current settings, if they contain one.
    pub today: Option<String>,
    /// Index of the target's current value, if it may be tried.
    pub today_place: Option<usize>,
}

/// Outcome of one combination of parameter values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The combination ran, with these figures of each program.
    Ran(Vec<Figures>),
    /// The combination is impossible, for this reason: no such computer, or no such run of it.
    Impossible(String),
}

/// Method of the search, with the numbers of combinations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// Search strategy: every combination, or some.
    pub search: Searched,
    /// Number of all possible combinations of the values.
    pub combinations: u64,
    /// Number of combinations that the search tried.
    pub tried: u64,
    /// Number of tried combinations that are impossible: no such computer or no such run.
    pub impossible: u64,
    /// Number of tried combinations that were added after the search, for the cliff.
    pub around: u64,
    /// Number of tried combinations whose results came from the store.
    pub from_store: u64,
    /// Maximum number of combinations that the search may try.
    pub budget: u64,
    /// Bytes that each program moved, by program.
    pub size_bytes: Vec<u64>,
    /// Repetitions of each program, and the number of first ones that do not count.
    pub repetitions: (u32, u32),
    /// Seed of all random choices of the search.
    pub seed: u64,
}

/// Strategies of a search: exhaustive, or coordinate descent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Searched {
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
pub struct Step {
    /// Path of the parameter that the step changes.
    pub path: String,
    /// Value of the parameter at the point.
    pub from: String,
    /// Neighbouring value of the parameter, above or below.
    pub to: String,
    /// Gain of the step as a share of the point's value; absent where the step leads to an
    /// impossible point.
    pub gain: Option<f64>,
    /// Whether the step leads down a cliff.
    pub cliff: bool,
}

/// Standing of the point with the best figure, relative to the target's current settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The point is better: runs with other seeds confirm it, or none were made.
    Better,
    /// The point is the unchanged target, or gives the same figure.
    AsGood,
    /// The point has the best figure, but runs with other seeds do not confirm it.
    Unproven,
}

impl Standing {
    /// Returns the name of the point with the best figure in tables: `best` or `candidate`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Better | Self::AsGood => "best",
            Self::Unproven => "candidate",
        }
    }
}

/// Relative difference below which two points of a search are equally good. The first of equal
/// points is the best.
pub const EQUAL_SHARE: f64 = 0.001;

/// Minimum loss of a step that counts as a cliff, as a share beyond the loss that the surrounding
/// steps predict.
pub const CLIFF_SHARE: f64 = 0.1;

/// Maximum cost of safe settings, as a share of the fall from the best point.
pub const SAFE_SHARE: f64 = 0.5;

/// Maximum number of impossible values between two neighbouring values of a parameter.
const IMPOSSIBLE_VALUES_MAX: usize = 64;

impl Outcome {
    /// Returns the figures of a point that ran.
    pub fn figures(&self) -> Option<&[Figures]> {
        match self {
            Self::Ran(figures) => Some(figures),
            Self::Impossible(_) => None,
        }
    }
}

impl Tuned {
    /// Returns the goal's value for a point, if it ran.
    pub fn value(&self, places: &[usize]) -> Option<f64> {
        let figures = self.points.get(places)?.figures()?;
        self.goal.value(figures)
    }

    /// Returns the goal's value for the target's current settings.
    pub fn today_value(&self) -> Option<f64> {
        self.goal.value(&self.today)
    }

    /// Returns the share of a point's read bytes that were never written on a modelled flash drive:
    /// the largest of its programs.
    pub fn unwritten_share(&self, places: &[usize]) -> Option<f64> {
        unwritten_share_max(self.points.get(places)?.figures()?)
    }

    /// Returns the share of read bytes that were never written with the target's current settings,
    /// on a modelled flash drive.
    pub fn today_unwritten_share(&self) -> Option<f64> {
        unwritten_share_max(&self.today)
    }

    /// Returns the best point that was tried; of equal ones the first. `None` where no point could
    /// be run.
    pub fn best(&self) -> Option<&Places> {
        match &self.samples {
            None => self.first_best_point(self.points.keys()),
            // Points that left early were measured in other rounds: only what they are
            // beside today's in the same rounds can be compared.
            Some(_) => {
                let gain = |places: &Places| self.gain_over_today(places);
                let most = self.points.keys().filter_map(gain).reduce(f64::max)?;
                let as_good = |gain: f64| most - gain <= EQUAL_SHARE;
                let mut points = self.points.keys();
                points.find(|places| gain(places).is_some_and(as_good))
            }
        }
    }

    /// Judges the point with the best figure: by the rounds on real storage, or by other seeds and
    /// phases of a model.
    pub fn standing(&self, best: &Places) -> Standing {
        if let Some(samples) = &self.samples {
            return match samples.against_today(best).map(|judged| judged.verdict) {
                None => Standing::AsGood,
                Some(Verdict::Faster) => Standing::Better,
                Some(_) => Standing::Unproven,
            };
        }
        let as_good = |gain: f64| gain <= EQUAL_SHARE;
        if self.gain_over_today(best).is_some_and(as_good) {
            return Standing::AsGood;
        }
        let spread = self.spread.as_ref();
        match spread.and_then(|spread| spread.shows_gain(self.goal)) {
            Some(false) => Standing::Unproven,
            Some(true) | None => Standing::Better,
        }
    }

    /// Tests whether a point is the target with its current settings.
    pub fn is_today(&self, places: &[usize]) -> bool {
        let mut keys = self.keys.iter().zip(places);
        keys.all(|(key, place)| key.today_place == Some(*place))
    }

    /// Returns the gain of a point over the target's current settings, as a share. Points measured
    /// in rounds use the ratio of their verdict.
    pub fn gain_over_today(&self, places: &[usize]) -> Option<f64> {
        match &self.samples {
            Some(samples) if samples.points.get(places)? == &samples.today => Some(0.0),
            Some(samples) => Some(samples.against_today(places)?.ratio? - 1.0),
            None => Some(self.goal.gain(self.today_value()?, self.value(places)?)),
        }
    }

    fn first_best_point<'p>(
        &self,
        points: impl Iterator<Item = &'p Places> + Clone,
    ) -> Option<&'p Places>
    where
        Self: 'p,
    {
        let values = || {
            let all = points.clone();
            all.filter_map(|places| Some((places, self.value(places)?)))
        };
        let better = |best: f64, (_, value): (&Places, f64)| self.goal.better_of(best, value);
        let (_, first) = values().next()?;
        let most = values().fold(first, better);
        let as_good = |(_, value): &(&Places, f64)| self.goal.gain(most, *value) >= -EQUAL_SHARE;
        values().find(as_good).map(|(places, _)| places)
    }

    /// Formats the settings of a point: `drive.interleave=3, filesystem.gap_blocks=2`.
    pub fn settings(&self, places: &[usize]) -> String {
        let setting = |(key, place): (&Key, &usize)| format!("{}={}", key.path, key.values[*place]);
        let settings: Vec<String> = self.keys.iter().zip(places).map(setting).collect();
        settings.join(", ")
    }

    /// Returns the neighbours of a point, with the index of the parameter: the next value and the
    /// one before of each ordered parameter. Values known to be impossible are skipped, where
    /// something lies behind them.
    pub fn neighbours(&self, places: &[usize]) -> Vec<(usize, Places)> {
        let mut neighbours = Vec::new();
        for (number, key) in self.keys.iter().enumerate() {
            let below = (0..places[number]).rev().collect();
            let above = (places[number] + 1..key.values.len()).collect();
            let sides: [Vec<usize>; 2] = [below, above];
            for side in sides.iter().filter(|_| key.ordered) {
                let beside = side.iter().take(IMPOSSIBLE_VALUES_MAX).map(|place| {
                    let mut beside = places.to_vec();
                    beside[number] = *place;
                    beside
                });
                let possible = |beside: &Places| {
                    !matches!(self.points.get(beside), Some(Outcome::Impossible(_)))
                };
                let chosen = beside.clone().find(possible);
                neighbours.extend(chosen.or(beside.clone().next()).map(|one| (number, one)));
            }
        }
        neighbours
    }

    /// Returns the steps from a point to those of its neighbours that were tried.
    pub fn steps(&self, places: &[usize]) -> Vec<Step> {
        if self.value(places).is_none() {
            return Vec::new();
        }
        let cliffs = self.cliffs();
        let neighbours = self.neighbours(places).into_iter();
        let step = |(number, beside): (usize, Places)| {
            self.points.get(&beside)?;
            let key = &self.keys[number];
            Some(Step {
                path: key.path.clone(),
                from: key.values[places[number]].clone(),
                to: key.values[beside[number]].clone(),
                gain: self.gain_between(places, &beside).map(|(gain, _)| gain),
                cliff: is_fall(&cliffs, places, &beside),
            })
        };
        neighbours.filter_map(step).collect()
    }

    /// Returns the point one step away from every cliff that a point is on; `None` where there is
    /// no cliff, or no step away.
    pub fn away_from_cliffs(&self, places: &[usize]) -> Option<Places> {
        let cliffs = self.cliffs();
        let neighbours = self.neighbours(places);
        let falls = |beside: &Places| is_fall(&cliffs, places, beside);
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
    pub fn on_cliff(&self, places: &[usize]) -> bool {
        is_on_top(&self.cliffs(), places)
    }

    /// Returns the worst value among a point and its neighbours, if all of them are known.
    pub fn worst_beside(&self, places: &[usize]) -> Option<f64> {
        let mut worst = self.value(places)?;
        for (_, beside) in self.neighbours(places) {
            self.points.get(&beside)?;
            if let Some(value) = self.value(&beside) {
                worst = self.goal.worse_of(worst, value);
            }
        }
        Some(worst)
    }

    /// Returns the safe point, where the best one is on a cliff.
    ///
    /// Among the points on no cliff whose neighbours are known, it is the one with the best worst
    /// neighbour. `None` where it would cost a large part of the fall that it avoids.
    pub fn safe(&self) -> Option<&Places> {
        let best = self.best()?;
        let fall = self.worst_beside(best)?;
        let cliffs = self.cliffs();
        if !is_on_top(&cliffs, best) {
            return None;
        }
        let gain = |from, to| self.goal.gain(from, to);
        let at_best = self.value(best)?;
        let most_cost = SAFE_SHARE * gain(at_best, fall);
        let mut safe: Option<(&Places, f64, f64)> = None;
        for places in self.points.keys() {
            let (Some(value), Some(worst)) = (self.value(places), self.worst_beside(places)) else {
                continue;
            };
            if is_on_top(&cliffs, places) || gain(at_best, value) < most_cost {
                continue;
            }
            let better = safe.is_none_or(|(other, other_value, other_worst)| {
                // Of equal ones the better, and of those the nearer.
                let nearer = distance(places, best) < distance(other, best);
                let by_worst = gain(other_worst, worst);
                let by_value = gain(other_value, value);
                by_worst > EQUAL_SHARE
                    || (by_worst >= -EQUAL_SHARE
                        && (by_value > EQUAL_SHARE || (by_value >= -EQUAL_SHARE && nearer)))
            });
            if better {
                safe = Some((places, value, worst));
            }
        }
        let (places, _, worst) = safe?;
        (gain(fall, worst) > EQUAL_SHARE).then_some(places)
    }

    /// Returns the parameters that changed nothing, in any pair of points that differ only in them.
    /// There must be such a pair.
    pub fn parameters_without_effect(&self) -> Vec<&str> {
        let idle = |number: &usize| {
            let mut seen: BTreeMap<Places, &Outcome> = BTreeMap::new();
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
        let numbers = (0..self.keys.len()).filter(idle);
        numbers
            .map(|number| self.keys[number].path.as_str())
            .collect()
    }

    /// Returns the parameters whose best value is the first or the last that was tried, with that
    /// value. A better value may lie beyond.
    pub fn parameters_at_range_end(&self) -> Vec<(&str, &str)> {
        let Some(best) = self.best() else {
            return Vec::new();
        };
        let ends = self.keys.iter().zip(best);
        let at_end = ends.filter(|(key, place)| {
            let last = key.values.len() - 1;
            key.ordered && last > 0 && (**place == 0 || **place == last)
        });
        at_end
            .map(|(key, place)| (key.path.as_str(), key.values[*place].as_str()))
            .collect()
    }
}

fn is_fall(cliffs: &[Cliff], from: &[usize], to: &[usize]) -> bool {
    let mut cliffs = cliffs.iter();
    cliffs.any(|cliff| cliff.top == from && cliff.bottom == to)
}

fn is_on_top(cliffs: &[Cliff], places: &[usize]) -> bool {
    cliffs.iter().any(|cliff| cliff.top == places)
}

/// Returns the number of steps between two points of a search.
pub fn distance(from: &[usize], to: &[usize]) -> usize {
    let apart = from.iter().zip(to).map(|(from, to)| from.abs_diff(*to));
    apart.sum()
}

fn unwritten_share_max(figures: &[Figures]) -> Option<f64> {
    let shares = figures.iter().filter_map(|one| one.unwritten_share);
    shares.reduce(f64::max)
}

#[cfg(test)]
pub(crate) mod tests;
