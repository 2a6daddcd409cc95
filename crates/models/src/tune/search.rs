//! Choice of the combinations to run: all of them, or those that coordinate descent visits from
//! several starts.
//!
//! The search knows nothing about machines. It requests merits in batches, whose points may run in
//! parallel. Its next request depends only on the merits, so that it is the same for any number of
//! threads.

use crate::error::LaboratoryError;
use diskperf_analysis::tuning::{EQUAL_SHARE, Places, Searched};
use diskperf_machine::{RandomStream, RandomStreams};
use std::collections::{BTreeMap, BTreeSet};

/// Search space: all combinations of the values of several keys.
#[derive(Clone, Debug)]
pub(super) struct Space {
    /// Number of values of each key.
    pub(super) lengths: Vec<usize>,
    /// Whether the values of each key are numbers in order.
    pub(super) ordered: Vec<bool>,
    /// Point of the target's current settings, or the one nearest to it.
    pub(super) today: Places,
}

/// Share of the full size that a point is run at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    Quarter,
    Half,
    Full,
}

/// Executor of points. The merit of a better point is greater; that of an impossible point is
/// `None`.
pub(super) trait Evaluate {
    /// Returns the merits of these points, in their order.
    fn merits(
        &mut self,
        points: &[Places],
        share: Share,
    ) -> Result<Vec<Option<f64>>, LaboratoryError>;
}

/// Maximum length of a line of which every value is tried. On a longer line, only values at
/// distances of 1, 2, 4, 8, ... from the current point are tried.
const WHOLE_LINE: usize = 9;

/// Number of consecutive starts without an improvement that ends the search.
const STARTS_IN_VAIN: u64 = 8;

/// Minimum budget for a screening of start points, which uses a quarter of it.
const SCREENED_FROM: u64 = 48;

impl Space {
    /// Number of combinations, or the maximum of `u64` if there are more.
    pub(super) fn combinations(&self) -> u64 {
        let lengths = self.lengths.iter().map(|length| *length as u64);
        lengths.fold(1, u64::saturating_mul)
    }

    fn all(&self) -> Vec<Places> {
        all(&self.lengths)
    }

    /// Returns the points to compare with a point along one key, near ones first.
    fn line(&self, from: &Places, key: usize) -> Vec<Places> {
        let (here, length) = (from[key], self.lengths[key]);
        let mut others: Vec<usize> = if self.ordered[key] && length > WHOLE_LINE {
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
    fn spread(&self, count: usize, random: &mut RandomStream) -> Vec<Places> {
        let mut points = vec![vec![0; self.lengths.len()]; count];
        for (key, length) in self.lengths.iter().enumerate() {
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

    fn anywhere(&self, random: &mut RandomStream) -> Places {
        let lengths = self.lengths.iter();
        lengths
            .map(|length| random.draw_below(*length as u64) as usize)
            .collect()
    }
}

/// Returns all combinations of keys with these numbers of values. The last key varies fastest.
pub fn all(lengths: &[usize]) -> Vec<Places> {
    let mut all: Vec<Places> = vec![Vec::new()];
    for length in lengths {
        let longer = |places: &Places| {
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
pub(super) fn search(
    space: &Space,
    budget: u64,
    seed: u64,
    evaluate: &mut dyn Evaluate,
) -> Result<Searched, LaboratoryError> {
    if space.combinations() <= budget {
        evaluate.merits(&space.all(), Share::Full)?;
        return Ok(Searched::Exhaustive);
    }
    let mut descent = Descent {
        space,
        left: budget - screening(budget),
        known: BTreeMap::new(),
        evaluate,
        random: RandomStreams::new(seed).named_stream("tune"),
    };
    descent.carry_out(budget)
}

/// Number of runs for the screening of start points: two thirds at a quarter of the size, the
/// others at half of it.
fn screening(budget: u64) -> u64 {
    match budget >= SCREENED_FROM {
        true => budget / 12 * 3,
        false => 0,
    }
}

struct Descent<'a> {
    space: &'a Space,
    left: u64,
    known: BTreeMap<Places, Option<f64>>,
    evaluate: &'a mut dyn Evaluate,
    random: RandomStream,
}

impl Descent<'_> {
    fn carry_out(&mut self, budget: u64) -> Result<Searched, LaboratoryError> {
        let mut found = self.from(self.space.today.clone())?;
        let mut starts = 1;
        let runs = screening(budget);
        let screened = self.screen(runs)?;
        let mut promising = screened.into_iter();
        let mut vain = 0;
        while self.left > 0 && vain < STARTS_IN_VAIN {
            let start = match promising.next() {
                Some(start) => start,
                None => self.space.anywhere(&mut self.random),
            };
            starts += 1;
            let end = self.from(start)?;
            if better(end, found) {
                (found, vain) = (end, 0);
            } else {
                vain += 1;
            }
        }
        Ok(Searched::Descent {
            screened: runs,
            starts,
        })
    }

    /// Screens start points by successive halving. Many points run at a quarter of the size, and
    /// the better half of them at half of it. The better half of those are the start points.
    fn screen(&mut self, runs: u64) -> Result<Vec<Places>, LaboratoryError> {
        let mut points = self.space.spread(runs as usize / 3 * 2, &mut self.random);
        for share in [Share::Quarter, Share::Half] {
            let merits = self.evaluate.merits(&points, share)?;
            let mut ranked: Vec<(Option<f64>, Places)> = merits.into_iter().zip(points).collect();
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
    fn from(&mut self, start: Places) -> Result<Option<f64>, LaboratoryError> {
        let mut here = start;
        let mut merit = self.merits(std::slice::from_ref(&here))?[0];
        let keys = self.space.lengths.len();
        let (mut key, mut settled) = (0, 0);
        while settled < keys && self.left > 0 {
            let line = self.space.line(&here, key);
            let merits = self.merits(&line)?;
            let mut best: Option<(Option<f64>, &Places)> = None;
            for (found, point) in merits.iter().zip(&line) {
                if better(*found, best.map_or(merit, |(merit, _)| merit)) {
                    best = Some((*found, point));
                }
            }
            match best {
                // A long line is looked at again, from nearer.
                Some((found, point)) => {
                    (merit, here) = (found, point.clone());
                    settled = 0;
                    if line.len() + 1 == self.space.lengths[key] {
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
    fn merits(&mut self, points: &[Places]) -> Result<Vec<Option<f64>>, LaboratoryError> {
        let mut wanted: Vec<Places> = Vec::new();
        for point in points {
            if !self.known.contains_key(point) && !wanted.contains(point) {
                wanted.push(point.clone());
            }
        }
        wanted.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= wanted.len() as u64;
        if !wanted.is_empty() {
            let merits = self.evaluate.merits(&wanted, Share::Full)?;
            self.known.extend(wanted.into_iter().zip(merits));
        }
        let known = |point: &Places| self.known.get(point).copied().flatten();
        Ok(points.iter().map(known).collect())
    }
}

fn better(merit: Option<f64>, than: Option<f64>) -> bool {
    match (merit, than) {
        (Some(merit), Some(than)) => merit > than * (1.0 + EQUAL_SHARE),
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
        asked: Vec<(Share, Places)>,
    }

    impl<F: Fn(&Places) -> Option<f64>> Evaluate for Formula<F> {
        fn merits(
            &mut self,
            points: &[Places],
            share: Share,
        ) -> Result<Vec<Option<f64>>, LaboratoryError> {
            let asked = points.iter().map(|point| (share, point.clone()));
            self.asked.extend(asked);
            Ok(points.iter().map(&self.merit).collect())
        }
    }

    fn run<F: Fn(&Places) -> Option<f64>>(
        lengths: &[usize],
        budget: u64,
        merit: F,
    ) -> (Searched, Vec<(Share, Places)>) {
        let space = Space {
            lengths: lengths.to_vec(),
            ordered: vec![true; lengths.len()],
            today: vec![0; lengths.len()],
        };
        let asked = Vec::new();
        let mut formula = Formula { merit, asked };
        let how = search(&space, budget, 7, &mut formula).unwrap();
        (how, formula.asked)
    }

    fn hill(peak: &[usize]) -> impl Fn(&Places) -> Option<f64> {
        let peak = peak.to_vec();
        move |places| {
            let apart = places
                .iter()
                .zip(&peak)
                .map(|(place, peak)| place.abs_diff(*peak));
            Some(1000.0 / (1.0 + apart.sum::<usize>() as f64))
        }
    }

    fn full_best(asked: &[(Share, Places)], merit: impl Fn(&Places) -> Option<f64>) -> Places {
        let full = asked.iter().filter(|(share, _)| *share == Share::Full);
        let merits = full.filter_map(|(_, places)| Some((merit(places)?, places)));
        let best = merits.max_by(|(left, _), (right, _)| left.total_cmp(right));
        best.unwrap().1.clone()
    }

    #[test]
    fn few_combinations_are_all_run_once_in_order() {
        let (how, asked) = run(&[2, 3], 6, hill(&[1, 1]));
        assert_eq!(how, Searched::Exhaustive);
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
            assert!(matches!(how, Searched::Descent { .. }));
            assert!(asked.len() <= 200, "{}", asked.len());
            assert_eq!(full_best(&asked, hill(&peak)), peak);
        }
    }

    /// The higher of two peaks is narrow, and far from where the target is.
    #[test]
    fn restarts_find_the_higher_of_two_peaks() {
        let two = |places: &Places| {
            let near = hill(&[5, 5])(places)?;
            let far = 2.0 * hill(&[80, 60])(places)?;
            Some(near.max(far))
        };
        let (_, asked) = run(&[100, 100], 300, two);
        assert_eq!(full_best(&asked, two), [80, 60]);
    }

    #[test]
    fn it_goes_around_what_is_impossible() {
        let walled = |places: &Places| match places[0] % 7 == 3 || places[1] > 30 {
            true => None,
            false => hill(&[40, 25])(places),
        };
        let (_, asked) = run(&[60, 60], 400, walled);
        assert_eq!(full_best(&asked, walled), [40, 25]);
        // Nothing but walls: it ends all the same.
        let (_, asked) = run(&[1000, 1000], 50, |_: &Places| None);
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
                .filter(|(share, _)| *share == Share::Full)
                .collect();
            let distinct: BTreeSet<_> = full.iter().collect();
            assert_eq!(distinct.len(), full.len());
        }
    }
}
