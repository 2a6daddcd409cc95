//! What a search for better settings found: the points that were run, the best
//! of them, the cliffs between them, and the safe one if the best stands on a cliff.

mod cliffs;
mod goal;
mod samples;
mod spread;

pub use cliffs::{Cliff, WIDEST_FACTOR, number};
pub use goal::{Doubt, FEWEST_CALLS, Figures, Goal, p99_range};
pub use samples::{Samples, Visit};
pub use spread::{Extent, Spread};

use crate::comparison::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// A search, and what it found.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The suite or program.
    pub suite: String,
    /// What it ran on.
    pub target: String,
    /// What is made as good as can be.
    pub goal: Goal,
    /// The programs, in the order of running.
    pub programs: Vec<String>,
    /// The parameters that were varied.
    pub keys: Vec<Key>,
    /// The combinations that were tried, by their places, in that order.
    pub points: BTreeMap<Places, Outcome>,
    /// The target as it is.
    pub today: Vec<Figures>,
    /// How it was searched.
    pub method: Method,
    /// Best and today's over seeds and phases; nothing where the search was
    /// ended before.
    pub spread: Option<Spread>,
    /// What was measured, on real storage, where noise has a say.
    pub samples: Option<Samples>,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// The place of each key's value among those that may be tried.
pub type Places = Vec<usize>;

/// A parameter and the values that may be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// `drive.interleave`.
    pub path: String,
    /// As they were given, in that order.
    pub values: Vec<String>,
    /// Whether they are numbers in order, so that one is beside another.
    pub ordered: bool,
    /// The target's own value, if it says one.
    pub today: Option<String>,
    /// The place of that value, if it may be tried.
    pub today_place: Option<usize>,
}

/// What came of one combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// What each program did.
    Ran(Vec<Figures>),
    /// Why there is no such computer, or no such run of it.
    Impossible(String),
}

/// How the combinations to run were chosen, and how many were.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Method {
    /// Every combination, or some.
    pub search: Searched,
    /// The combinations that there are.
    pub combinations: u64,
    /// Of these, how many were tried.
    pub tried: u64,
    /// Of these, how many there is no computer or no run for.
    pub impossible: u64,
    /// Of the tried ones, how many came after the search, for the cliff.
    pub around: u64,
    /// Of the tried ones, how many came from the store.
    pub from_store: u64,
    /// The most that may be tried.
    pub budget: u64,
    /// What each program moved, in bytes, by program.
    pub size_bytes: Vec<u64>,
    /// Repetitions of each program, and how many of the first do not count.
    pub repetitions: (u32, u32),
    /// Of all random choices.
    pub seed: u64,
}

/// The ways to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Searched {
    /// Every combination.
    Exhaustive,
    /// Coordinate descent from several starts.
    Descent {
        /// Runs at a quarter and at half of the size, which found the starts.
        screened: u64,
        /// From how many starts.
        starts: u64,
    },
}

/// A step from a point to the next value of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The parameter.
    pub path: String,
    /// Its value at the point.
    pub from: String,
    /// The next one, or the one before.
    pub to: String,
    /// What the step gains, as a share of what is there; nothing where it
    /// leads to what is impossible.
    pub gain: Option<f64>,
    /// Whether it leads down a cliff.
    pub cliff: bool,
}

/// Standing of the point with the best figure beside the target as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Runs with other seeds confirm that the point is better, or none were made.
    Better,
    /// The point is the target without a change, or gives the same figure.
    AsGood,
    /// The point has the best figure, and runs with other seeds do not confirm it.
    Unproven,
}

impl Standing {
    /// Name of the point in tables.
    pub fn label(self) -> &'static str {
        match self {
            Self::Better | Self::AsGood => "best",
            Self::Unproven => "candidate",
        }
    }
}

/// Points that differ by less than this share are as good as each other: the
/// first of them is the best.
pub const EQUAL_SHARE: f64 = 0.001;

/// A step that loses this share beyond what the steps around it lead one to expect
/// leads down a cliff.
pub const CLIFF_SHARE: f64 = 0.1;

/// Safe settings cost at most this share of what the fall from the best does.
pub const SAFE_SHARE: f64 = 0.5;

/// So many values may be impossible between two that are beside each other.
const LONGEST_STEP: usize = 64;

impl Outcome {
    /// The figures of a point that ran.
    pub fn figures(&self) -> Option<&[Figures]> {
        match self {
            Self::Ran(figures) => Some(figures),
            Self::Impossible(_) => None,
        }
    }
}

impl Tuned {
    /// What counts of a point, if it ran.
    pub fn value(&self, places: &[usize]) -> Option<f64> {
        let figures = self.points.get(places)?.figures()?;
        self.goal.value(figures)
    }

    /// What counts of the target as it is.
    pub fn today_value(&self) -> Option<f64> {
        self.goal.value(&self.today)
    }

    /// Of a modelled flash drive, the share of what a point read that was never written: that
    /// of the program with the largest.
    pub fn unwritten_share(&self, places: &[usize]) -> Option<f64> {
        largest_unwritten(self.points.get(places)?.figures()?)
    }

    /// The same of the target as it is.
    pub fn today_unwritten_share(&self) -> Option<f64> {
        largest_unwritten(&self.today)
    }

    /// The best point that was tried; of equal ones the first. Nothing where
    /// none could be run.
    pub fn best(&self) -> Option<&Places> {
        match &self.samples {
            None => self.first_best(self.points.keys()),
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

    /// Judges the point with the best figure: by the rounds of real storage, or by other seeds
    /// and phases of a model.
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

    /// Whether a point is the target as it is.
    pub fn is_today(&self, places: &[usize]) -> bool {
        let mut keys = self.keys.iter().zip(places);
        keys.all(|(key, place)| key.today_place == Some(*place))
    }

    /// What a point gains over the target as it is, as a share: where points were
    /// measured in rounds, what its verdict is of.
    pub fn gain_over_today(&self, places: &[usize]) -> Option<f64> {
        match &self.samples {
            Some(samples) if samples.points.get(places)? == &samples.today => Some(0.0),
            Some(samples) => Some(samples.against_today(places)?.ratio? - 1.0),
            None => Some(self.goal.gain(self.today_value()?, self.value(places)?)),
        }
    }

    fn first_best<'p>(&self, points: impl Iterator<Item = &'p Places> + Clone) -> Option<&'p Places>
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

    /// `drive.interleave=3, filesystem.gap_blocks=2`.
    pub fn settings(&self, places: &[usize]) -> String {
        let setting = |(key, place): (&Key, &usize)| format!("{}={}", key.path, key.values[*place]);
        let settings: Vec<String> = self.keys.iter().zip(places).map(setting).collect();
        settings.join(", ")
    }

    /// The points beside one: the next value and the one before of each key
    /// whose values are in order, with the key's number. What is known to be
    /// impossible is passed over, where something lies behind it.
    pub fn neighbours(&self, places: &[usize]) -> Vec<(usize, Places)> {
        let mut neighbours = Vec::new();
        for (number, key) in self.keys.iter().enumerate() {
            let below = (0..places[number]).rev().collect();
            let above = (places[number] + 1..key.values.len()).collect();
            let sides: [Vec<usize>; 2] = [below, above];
            for side in sides.iter().filter(|_| key.ordered) {
                let beside = side.iter().take(LONGEST_STEP).map(|place| {
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

    /// The steps from a point to those of its neighbours that were tried.
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
                cliff: falls(&cliffs, places, &beside),
            })
        };
        neighbours.filter_map(step).collect()
    }

    /// The point a step away from every cliff that a point stands on; nothing
    /// where there is none, or no way.
    pub fn away_from_cliffs(&self, places: &[usize]) -> Option<Places> {
        let cliffs = self.cliffs();
        let neighbours = self.neighbours(places);
        let falls = |beside: &Places| falls(&cliffs, places, beside);
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

    /// Whether a point stands on a cliff: a step from it loses much.
    pub fn on_cliff(&self, places: &[usize]) -> bool {
        stands_on(&self.cliffs(), places)
    }

    /// The worst of a point and of those beside it, if all of them are known.
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

    /// Where the best stands on a cliff, the point that is the best when it is
    /// missed by a step: of those on no cliff whose neighbours are known, the one with
    /// the best of worst neighbours. Nothing where that costs much of what the fall
    /// does.
    pub fn safe(&self) -> Option<&Places> {
        let best = self.best()?;
        let fall = self.worst_beside(best)?;
        let cliffs = self.cliffs();
        if !stands_on(&cliffs, best) {
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
            if stands_on(&cliffs, places) || gain(at_best, value) < most_cost {
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

    /// The keys whose value changed nothing, in no pair of points that differ
    /// in it alone; there must be such a pair.
    pub fn idle_keys(&self) -> Vec<&str> {
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

    /// The keys whose best value is the first or the last that was tried, with
    /// that value: a better one may lie beyond.
    pub fn at_an_end(&self) -> Vec<(&str, &str)> {
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

/// Whether a step leads down a cliff.
fn falls(cliffs: &[Cliff], from: &[usize], to: &[usize]) -> bool {
    let mut cliffs = cliffs.iter();
    cliffs.any(|cliff| cliff.top == from && cliff.bottom == to)
}

/// Whether a step from a point leads down a cliff.
fn stands_on(cliffs: &[Cliff], places: &[usize]) -> bool {
    cliffs.iter().any(|cliff| cliff.top == places)
}

/// How many steps lie between two points.
pub fn distance(from: &[usize], to: &[usize]) -> usize {
    let apart = from.iter().zip(to).map(|(from, to)| from.abs_diff(*to));
    apart.sum()
}

fn largest_unwritten(figures: &[Figures]) -> Option<f64> {
    let shares = figures.iter().filter_map(|one| one.unwritten_share);
    shares.reduce(f64::max)
}

#[cfg(test)]
pub(crate) mod tests;
