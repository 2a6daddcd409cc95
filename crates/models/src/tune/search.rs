//! Choice of the combinations to run: all of them, or those that coordinate descent visits from
//! several starts.
//!
//! The search knows nothing about machines. It requests merits in batches, whose points may run in
//! parallel. Its next request depends only on the merits, so that it is the same for any number of
//! threads.

use crate::error::LaboratoryError;
use diskperf_analysis::tuning::{EQUAL_GAIN_SHARE_MAX, GridPoint, SearchKind};
use diskperf_machine::{RandomStream, RandomStreams};
use std::collections::{BTreeMap, BTreeSet};

/// Search space: all combinations of the values of several keys.
#[derive(Clone, Debug)]
pub(super) struct SearchSpace {
    /// Number of values of each key.
    pub(super) value_counts: Vec<usize>,
    /// Whether the values of each key are numbers in order.
    pub(super) is_ordered: Vec<bool>,
    /// Point of the target's current settings, or the one nearest to it.
    pub(super) today_point: GridPoint,
}

/// Share of the full size that a point is run at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RunShare {
    Quarter,
    Half,
    Full,
}

/// Executor of points. The merit of a better point is greater; that of an impossible point is
/// `None`.
pub(super) trait PointEvaluator {
    /// Returns the merits of these points, in their order.
    fn rate_points(
        &mut self,
        points: &[GridPoint],
        share: RunShare,
    ) -> Result<Vec<Option<f64>>, LaboratoryError>;
}

/// Maximum length of a line of which every value is tried. On a longer line, only values at
/// distances of 1, 2, 4, 8, ... from the current point are tried.
const LINE_LENGTH_MAX: usize = 9;

/// Number of consecutive starts without an improvement that ends the search.
const FRUITLESS_STARTS_MAX: u64 = 8;

/// Minimum budget for a screening of start points, which uses a quarter of it.
const SCREENING_BUDGET_MIN: u64 = 48;

impl SearchSpace {
    /// Number of combinations, or the maximum of `u64` if there are more.
    pub(super) fn combination_count(&self) -> u64 {
        let lengths = self.value_counts.iter().map(|length| *length as u64);
        lengths.fold(1, u64::saturating_mul)
    }

    fn all_points(&self) -> Vec<GridPoint> {
        all_grid_points(&self.value_counts)
    }

    /// Returns the points to compare with a point along one key, near ones first.
    fn line_of_points(&self, from: &GridPoint, key: usize) -> Vec<GridPoint> {
        let (here, length) = (from[key], self.value_counts[key]);
        let mut others: Vec<usize> = if self.is_ordered[key] && length > LINE_LENGTH_MAX {
            let reaches = (0..usize::BITS).map(|power| 1_usize << power);
            let reaches = reaches.take_while(|reach| *reach < length);
            let both = |reach: usize| [here.checked_sub(reach), here.checked_add(reach)];
            reaches.flat_map(both).flatten().collect()
        } else {
            (0..length).collect()
        };
        others.retain(|place| *place != here && *place < length);
        others.sort_by_key(|place| (place.abs_diff(here), *place));
        let at = |place: usize| {
            let mut point = from.clone();
            point[key] = place;
            point
        };
        others.into_iter().map(at).collect()
    }

    /// Draws points that are spread over all values of each key: a Latin hypercube.
    fn draw_spread_points(&self, count: usize, random: &mut RandomStream) -> Vec<GridPoint> {
        let mut points = vec![vec![0; self.value_counts.len()]; count];
        for (key, length) in self.value_counts.iter().enumerate() {
            let mut order: Vec<usize> = (0..count).collect();
            for place in (1..count).rev() {
                order.swap(place, random.draw_below(place as u64 + 1) as usize);
            }
            for (point, stratum) in points.iter_mut().zip(order) {
                point[key] = stratum * length / count;
            }
        }
        points
    }

    fn draw_point(&self, random: &mut RandomStream) -> GridPoint {
        let lengths = self.value_counts.iter();
        lengths
            .map(|length| random.draw_below(*length as u64) as usize)
            .collect()
    }
}

/// Returns all combinations of keys with these numbers of values. The last key varies fastest.
pub fn all_grid_points(lengths: &[usize]) -> Vec<GridPoint> {
    let mut all: Vec<GridPoint> = vec![Vec::new()];
    for length in lengths {
        let longer = |places: &GridPoint| {
            let places = places.clone();
            (0..*length).map(move |place| [&places[..], &[place]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Searches with at most `budget` runs, and returns the method used.
///
/// # Errors
///
/// Returns the errors of the evaluation.
pub(super) fn search_space(
    space: &SearchSpace,
    budget: u64,
    seed: u64,
    evaluate: &mut dyn PointEvaluator,
) -> Result<SearchKind, LaboratoryError> {
    if space.combination_count() <= budget {
        evaluate.rate_points(&space.all_points(), RunShare::Full)?;
        return Ok(SearchKind::Exhaustive);
    }
    let mut descent = CoordinateDescent {
        space,
        runs_left: budget - screening_runs(budget),
        known_merits: BTreeMap::new(),
        evaluate,
        random: RandomStreams::new(seed).named_stream("tune"),
    };
    descent.run_descent(budget)
}

/// Number of runs for the screening of start points: two thirds at a quarter of the size, the
/// others at half of it.
fn screening_runs(budget: u64) -> u64 {
    match budget >= SCREENING_BUDGET_MIN {
        true => budget / 12 * 3,
        false => 0,
    }
}

struct CoordinateDescent<'a> {
    space: &'a SearchSpace,
    runs_left: u64,
    known_merits: BTreeMap<GridPoint, Option<f64>>,
    evaluate: &'a mut dyn PointEvaluator,
    random: RandomStream,
}

impl CoordinateDescent<'_> {
    fn run_descent(&mut self, budget: u64) -> Result<SearchKind, LaboratoryError> {
        let mut found = self.descend_from(self.space.today_point.clone())?;
        let mut starts = 1;
        let runs = screening_runs(budget);
        let screened = self.screen_points(runs)?;
        let mut promising = screened.into_iter();
        let mut vain = 0;
        while self.runs_left > 0 && vain < FRUITLESS_STARTS_MAX {
            let start = match promising.next() {
                Some(start) => start,
                None => self.space.draw_point(&mut self.random),
            };
            starts += 1;
            let end = self.descend_from(start)?;
            if is_better(end, found) {
                (found, vain) = (end, 0);
            } else {
                vain += 1;
            }
        }
        Ok(SearchKind::Descent {
            screened: runs,
            starts,
        })
    }

    /// Screens start points by successive halving. Many points run at a quarter of the size, and
    /// the better half of them at half of it. The better half of those are the start points.
    fn screen_points(&mut self, runs: u64) -> Result<Vec<GridPoint>, LaboratoryError> {
        let mut points = self
            .space
            .draw_spread_points(runs as usize / 3 * 2, &mut self.random);
        for share in [RunShare::Quarter, RunShare::Half] {
            let merits = self.evaluate.rate_points(&points, share)?;
            let mut ranked: Vec<(Option<f64>, GridPoint)> =
                merits.into_iter().zip(points).collect();
            // Stable, so that of equal ones the first stays first.
            ranked.sort_by(|(left, _), (right, _)| {
                let merit = |value: &Option<f64>| value.unwrap_or(f64::NEG_INFINITY);
                merit(right).total_cmp(&merit(left))
            });
            let half = ranked.len() / 2;
            points = ranked
                .into_iter()
                .take(half)
                .map(|(_, point)| point)
                .collect();
        }
        let mut seen = BTreeSet::new();
        points.retain(|point| seen.insert(point.clone()));
        Ok(points)
    }

    /// Descends from a start point until no other value of a single key is better, or until the
    /// budget ends.
    fn descend_from(&mut self, start: GridPoint) -> Result<Option<f64>, LaboratoryError> {
        let mut here = start;
        let mut merit = self.rate_points(std::slice::from_ref(&here))?[0];
        let keys = self.space.value_counts.len();
        let (mut key, mut settled) = (0, 0);
        while settled < keys && self.runs_left > 0 {
            let line = self.space.line_of_points(&here, key);
            let merits = self.rate_points(&line)?;
            let mut best: Option<(Option<f64>, &GridPoint)> = None;
            for (found, point) in merits.iter().zip(&line) {
                if is_better(*found, best.map_or(merit, |(merit, _)| merit)) {
                    best = Some((*found, point));
                }
            }
            match best {
                // A long line is looked at again, from nearer.
                Some((found, point)) => {
                    (merit, here) = (found, point.clone());
                    settled = 0;
                    if line.len() + 1 == self.space.value_counts[key] {
                        key = (key + 1) % keys;
                        settled = 1;
                    }
                }
                None => {
                    settled += 1;
                    key = (key + 1) % keys;
                }
            }
        }
        Ok(merit)
    }

    /// Returns the merits of points at full size. Known points cost nothing; points beyond the
    /// budget count as impossible.
    fn rate_points(&mut self, points: &[GridPoint]) -> Result<Vec<Option<f64>>, LaboratoryError> {
        let mut wanted: Vec<GridPoint> = Vec::new();
        for point in points {
            if !self.known_merits.contains_key(point) && !wanted.contains(point) {
                wanted.push(point.clone());
            }
        }
        wanted.truncate(usize::try_from(self.runs_left).unwrap_or(usize::MAX));
        self.runs_left -= wanted.len() as u64;
        if !wanted.is_empty() {
            let merits = self.evaluate.rate_points(&wanted, RunShare::Full)?;
            self.known_merits.extend(wanted.into_iter().zip(merits));
        }
        let known = |point: &GridPoint| self.known_merits.get(point).copied().flatten();
        Ok(points.iter().map(known).collect())
    }
}

fn is_better(merit: Option<f64>, than: Option<f64>) -> bool {
    match (merit, than) {
        (Some(merit), Some(than)) => merit > than * (1.0 + EQUAL_GAIN_SHARE_MAX),
        (Some(_), None) => true,
        (None, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merits by a formula, and what was asked for.
    struct Formula<F> {
        merit: F,
        asked: Vec<(RunShare, GridPoint)>,
    }

    impl<F: Fn(&GridPoint) -> Option<f64>> PointEvaluator for Formula<F> {
        fn rate_points(
            &mut self,
            points: &[GridPoint],
            share: RunShare,
        ) -> Result<Vec<Option<f64>>, LaboratoryError> {
            let asked = points.iter().map(|point| (share, point.clone()));
            self.asked.extend(asked);
            Ok(points.iter().map(&self.merit).collect())
        }
    }

    fn run<F: Fn(&GridPoint) -> Option<f64>>(
        lengths: &[usize],
        budget: u64,
        merit: F,
    ) -> (SearchKind, Vec<(RunShare, GridPoint)>) {
        let space = SearchSpace {
            value_counts: lengths.to_vec(),
            is_ordered: vec![true; lengths.len()],
            today_point: vec![0; lengths.len()],
        };
        let asked = Vec::new();
        let mut formula = Formula { merit, asked };
        let how = search_space(&space, budget, 7, &mut formula).unwrap();
        (how, formula.asked)
    }

    fn hill(peak: &[usize]) -> impl Fn(&GridPoint) -> Option<f64> {
        let peak = peak.to_vec();
        move |places| {
            let apart = places
                .iter()
                .zip(&peak)
                .map(|(place, peak)| place.abs_diff(*peak));
            Some(1000.0 / (1.0 + apart.sum::<usize>() as f64))
        }
    }

    fn full_best(
        asked: &[(RunShare, GridPoint)],
        merit: impl Fn(&GridPoint) -> Option<f64>,
    ) -> GridPoint {
        let full = asked.iter().filter(|(share, _)| *share == RunShare::Full);
        let merits = full.filter_map(|(_, places)| Some((merit(places)?, places)));
        let best = merits.max_by(|(left, _), (right, _)| left.total_cmp(right));
        best.unwrap().1.clone()
    }

    #[test]
    fn few_combinations_are_all_run_once_in_order() {
        let (how, asked) = run(&[2, 3], 6, hill(&[1, 1]));
        assert_eq!(how, SearchKind::Exhaustive);
        let points: Vec<_> = asked.into_iter().map(|(_, places)| places).collect();
        assert_eq!(
            points,
            [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]].map(|places| places.to_vec())
        );
    }

    #[test]
    fn a_hill_of_a_million_points_is_climbed_with_two_hundred() {
        for peak in [[13, 77, 50], [99, 0, 3], [0, 0, 0]] {
            let (how, asked) = run(&[100, 100, 100], 200, hill(&peak));
            assert!(matches!(how, SearchKind::Descent { .. }));
            assert!(asked.len() <= 200, "{}", asked.len());
            assert_eq!(full_best(&asked, hill(&peak)), peak);
        }
    }

    /// The higher of two peaks is narrow, and far from where the target is.
    #[test]
    fn restarts_find_the_higher_of_two_peaks() {
        let two = |places: &GridPoint| {
            let near = hill(&[5, 5])(places)?;
            let far = 2.0 * hill(&[80, 60])(places)?;
            Some(near.max(far))
        };
        let (_, asked) = run(&[100, 100], 300, two);
        assert_eq!(full_best(&asked, two), [80, 60]);
    }

    #[test]
    fn it_goes_around_what_is_impossible() {
        let walled = |places: &GridPoint| match places[0] % 7 == 3 || places[1] > 30 {
            true => None,
            false => hill(&[40, 25])(places),
        };
        let (_, asked) = run(&[60, 60], 400, walled);
        assert_eq!(full_best(&asked, walled), [40, 25]);
        // Nothing but walls: it ends all the same.
        let (_, asked) = run(&[1000, 1000], 50, |_: &GridPoint| None);
        assert!(asked.len() <= 50);
    }

    #[test]
    fn the_budget_is_kept_and_the_search_repeats_itself() {
        for budget in [1, 2, 10, 47, 48, 100, 999] {
            let (_, asked) = run(&[50, 50, 4], budget, hill(&[20, 30, 1]));
            assert!(asked.len() as u64 <= budget, "{budget}: {}", asked.len());
            assert_eq!(asked, run(&[50, 50, 4], budget, hill(&[20, 30, 1])).1);
            // No point at one size twice.
            let full: Vec<_> = asked
                .iter()
                .filter(|(share, _)| *share == RunShare::Full)
                .collect();
            let distinct: BTreeSet<_> = full.iter().collect();
            assert_eq!(distinct.len(), full.len());
        }
    }
}
