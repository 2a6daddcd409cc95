//! Cliffs: steps along one parameter that lose more than the steps around them
//! lead one to expect.
//!
//! Who walks down a curve expects that it goes on as it did: the response time that
//! grows with the depth of a queue doubles at each doubling of it, and no step there is
//! a cliff. Nor is the knee of a rate that grows in proportion up to a level: what goes on
//! falling behind a step, no faster than in proportion to the parameter, is a slope.
//! All that is counted in logarithms: of the values, and of what counts.
//!
//! Nor is a wiggle a cliff. What repetitions differ by, and what chance does to a
//! percentile of so many calls, at both ends of a step and at the ends of those beside it,
//! is taken off its fall first: of its top how much worse that may be, of its foot how much
//! better. Where nobody knows that, no cliff is named.
//!
//! And between values that are far apart anything may be: what falls by as much from one of
//! them to the next is a wide step, not a cliff, until values between them are tried.

use super::{CLIFF_SHARE, Doubt, Key, Places, Tuned};
use crate::comparison::Verdict;
use crate::statistics::median;
use diskperf_timeline::units::parse_size;
use std::collections::BTreeMap;

/// A step down a cliff.
#[derive(Clone, Debug, PartialEq)]
pub struct Cliff {
    /// The number of the parameter that it goes along.
    pub key: usize,
    /// The point at its edge.
    pub top: Places,
    /// The point beside it, where much is lost.
    pub bottom: Places,
    /// What the step gains, as a share: below zero.
    pub gain: f64,
    /// What the steps around it lead one to expect of it: zero or below.
    pub expected: f64,
    /// Whether the values are so far apart that it may be a slope between them.
    wide: bool,
}

/// Values further apart than by this factor, with none tried between them, do not tell a cliff
/// from a slope: sweeps that double a parameter do.
pub const WIDEST_FACTOR: f64 = 2.0;

/// So many steps on each side say what a step is expected to lose.
const STEPS_AROUND: usize = 3;

/// The slope of what is halved where the parameter is doubled.
const PROPORTIONAL: f64 = 1.0;

impl Tuned {
    /// All cliffs between points that were tried, in the order of the parameters and
    /// of their values.
    pub fn cliffs(&self) -> Vec<Cliff> {
        let mut cliffs = self.falls();
        cliffs.retain(|fall| !fall.wide);
        cliffs
    }

    /// Steps that lose as much as a cliff does, between values that are too far apart to tell
    /// it from a slope ([`WIDEST_FACTOR`]); in the order of [`Tuned::cliffs`].
    pub fn wide_steps(&self) -> Vec<Cliff> {
        let mut steps = self.falls();
        steps.retain(|fall| fall.wide);
        steps
    }

    fn falls(&self) -> Vec<Cliff> {
        let ordered = (0..self.keys.len()).filter(|number| self.keys[*number].ordered);
        let sweeps = ordered.flat_map(|number| {
            let sweeps = self.sweeps(number).into_iter();
            sweeps.map(move |points| (number, points))
        });
        sweeps
            .flat_map(|(number, points)| self.cliffs_of(number, &points))
            .collect()
    }

    /// The settings of the parameters that a cliff does not go along.
    pub fn other_settings(&self, cliff: &Cliff) -> String {
        let keys = self.keys.iter().zip(&cliff.top).enumerate();
        let others = keys.filter(|(number, _)| *number != cliff.key);
        let setting =
            |(_, (key, place)): (_, (&Key, &usize))| format!("{}={}", key.path, key.values[*place]);
        others.map(setting).collect::<Vec<String>>().join(", ")
    }

    /// What going from one point to another gains, and whether that is no noise.
    pub(super) fn gain_between(&self, from: &[usize], to: &[usize]) -> Option<(f64, bool)> {
        let Some(samples) = &self.samples else {
            return Some((self.goal.gain(self.value(from)?, self.value(to)?), true));
        };
        let judged = samples.beside(from, to)?;
        Some((judged.ratio? - 1.0, judged.verdict == Verdict::Slower))
    }

    /// By how much the logarithm of what counts of a point may be off. Measured in rounds,
    /// steps have a verdict of their own.
    fn doubt(&self, places: &[usize]) -> Doubt {
        let figures = self.points.get(places).and_then(|one| one.figures());
        match (&self.samples, figures) {
            (Some(_), _) => Doubt::both(0.0),
            (None, Some(figures)) => self.goal.doubt(figures),
            (None, None) => Doubt::default(),
        }
    }

    /// Points of which nobody can say how much worse they may be than they were seen, so
    /// that no cliff is named down from them.
    pub fn doubtful(&self) -> usize {
        let ran = self.points.keys();
        let ran = ran.filter(|places| self.value(places).is_some());
        let doubtful = ran.filter(|places| self.doubt(places).worse.is_none());
        doubtful.count()
    }

    /// What a step has to lose, as a share, beyond what is expected of it to be a cliff: the
    /// least and the most of all steps of which that is known.
    pub fn fall_of_a_cliff(&self) -> Option<(f64, f64)> {
        let mut falls = Vec::new();
        for number in (0..self.keys.len()).filter(|number| self.keys[*number].ordered) {
            for points in self.sweeps(number) {
                let doubts: Vec<Doubt> = points.iter().map(|one| self.doubt(one)).collect();
                let gain = |place: usize| self.gain_between(&points[place], &points[place + 1]);
                let steps = 0..points.len().saturating_sub(1);
                falls.extend(steps.filter_map(|place| {
                    let doubt = doubt_of_step(&doubts, place, gain(place)?.0 < 0.0)?;
                    Some(1.0 - (1.0 - CLIFF_SHARE) * libm::exp(-doubt))
                }));
            }
        }
        let least = falls.iter().copied().reduce(f64::min)?;
        Some((least, falls.into_iter().reduce(f64::max)?))
    }

    /// The points that differ in one parameter alone and lie beside each other, in
    /// the order of its values. What is impossible is passed over; where a value was
    /// not tried, a sweep ends.
    fn sweeps(&self, number: usize) -> Vec<Vec<Places>> {
        let mut lines: BTreeMap<Places, Vec<&Places>> = BTreeMap::new();
        for places in self.points.keys() {
            let mut others = places.clone();
            others[number] = 0;
            lines.entry(others).or_default().push(places);
        }
        let mut sweeps = Vec::new();
        for line in lines.into_values() {
            let beside = |left: &&Places, right: &&Places| right[number] == left[number] + 1;
            for tried in line.chunk_by(beside) {
                let possible = tried.iter().filter(|places| self.value(places).is_some());
                sweeps.push(possible.map(|places| (*places).clone()).collect());
            }
        }
        sweeps
    }

    fn cliffs_of(&self, number: usize, points: &[Places]) -> Vec<Cliff> {
        let Some(scale) = self.keys[number].scale() else {
            return Vec::new();
        };
        let step = |pair: &[Places]| {
            let (gain, _) = self.gain_between(&pair[0], &pair[1])?;
            let width = scale[pair[1][number]] - scale[pair[0][number]];
            Some((libm::log1p(gain), width.abs()))
        };
        let steps: Option<Vec<(f64, f64)>> = points.windows(2).map(step).collect();
        let steps = steps.unwrap_or_default();
        let slopes: Vec<f64> = steps.iter().map(|(rise, width)| rise / width).collect();
        let doubts: Vec<Doubt> = points.iter().map(|one| self.doubt(one)).collect();
        let cliff = |(place, (rise, width)): (usize, &(f64, f64))| {
            let expected = -expected_slope(&slopes, place) * width;
            let fall = (rise.abs() - doubt_of_step(&doubts, place, *rise < 0.0)?).max(0.0);
            let beyond = libm::expm1(-fall - expected);
            let (top, bottom) = match *rise < 0.0 {
                true => (&points[place], &points[place + 1]),
                false => (&points[place + 1], &points[place]),
            };
            if beyond > -CLIFF_SHARE {
                return None;
            }
            let (gain, sure) = self.gain_between(top, bottom)?;
            // A factor as it is written, and not a rounding more. Values between that cannot
            // be have been listed as well.
            let (from, to) = (points[place][number], points[place + 1][number]);
            let is_wide =
                |pair: &[f64]| (pair[1] - pair[0]).abs() > libm::log(WIDEST_FACTOR) + 1e-9;
            let wide = scale[from..=to].windows(2).any(is_wide);
            sure.then(|| Cliff {
                key: number,
                top: top.clone(),
                bottom: bottom.clone(),
                gain,
                // No minus before nothing.
                expected: libm::expm1(expected) + 0.0,
                wide,
            })
        };
        steps.iter().enumerate().filter_map(cliff).collect()
    }
}

/// By how much a step that falls forwards, or backwards, may be less than it was seen, and
/// what is expected of it more: its top may be worse, its foot better; and the ends of the
/// steps beside it either, as far as that is known.
fn doubt_of_step(doubts: &[Doubt], place: usize, forwards: bool) -> Option<f64> {
    let (top, foot) = match forwards {
        true => (doubts[place], doubts[place + 1]),
        false => (doubts[place + 1], doubts[place]),
    };
    let ends = [top.worse?, foot.better?];
    let most = ends[0].max(ends[1]);
    let before = place.checked_sub(1).map(|place| doubts[place]);
    let beside = [before, doubts.get(place + 2).copied()];
    let beside = beside.into_iter().flatten();
    let beside = beside.map(|doubt| match (doubt.worse, doubt.either()) {
        (Some(_), Some(doubt)) => doubt,
        (_, known) => known.unwrap_or(most).max(most),
    });
    let squares = ends.into_iter().chain(beside).map(|doubt| doubt * doubt);
    Some(squares.sum::<f64>().sqrt())
}

/// How steeply a step is expected to fall: as the curve did before its edge, or as it
/// does behind it up to proportion.
fn expected_slope(slopes: &[f64], place: usize) -> f64 {
    let direction = slopes[place].signum();
    let falling = |slope: &f64| slope * direction;
    let left: Vec<f64> = slopes[..place].iter().rev().map(falling).collect();
    let right: Vec<f64> = slopes[place + 1..].iter().map(falling).collect();
    let (before, behind) = match direction < 0.0 {
        true => (left, right),
        false => (right, left),
    };
    let expected = match (extrapolated(&before), middle(&behind)) {
        (Some(before), behind) => before.max(behind.unwrap_or(0.0).min(PROPORTIONAL)),
        // The edge is the end of the sweep: it may always have gone on like this.
        (None, _) => extrapolated(&behind).unwrap_or(0.0),
    };
    expected.max(0.0)
}

/// The middle one of the nearest slopes.
fn middle(slopes: &[f64]) -> Option<f64> {
    median(&slopes[..slopes.len().min(STEPS_AROUND)])
}

/// The next slope of a curve that goes on, or bends on, as it did; the nearest is the
/// first.
fn extrapolated(slopes: &[f64]) -> Option<f64> {
    let bent = match slopes {
        [nearest, second, ..] => 2.0 * nearest - second,
        _ => f64::NEG_INFINITY,
    };
    middle(slopes).map(|middle| middle.max(bent))
}

impl Key {
    /// The values on a logarithmic scale, if they are numbers. A range that begins at
    /// zero or below is moved so that its least value is its first step.
    fn scale(&self) -> Option<Vec<f64>> {
        let values: Option<Vec<f64>> = self.values.iter().map(|value| number(value)).collect();
        let values = values?;
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let moved = match sorted[..] {
            [least, next, ..] if least <= 0.0 => next - least - least,
            _ => 0.0,
        };
        Some(
            values
                .iter()
                .map(|value| libm::log(value + moved))
                .collect(),
        )
    }
}

/// A value as a number: `8K` is 8192, as it is where it is set.
pub fn number(text: &str) -> Option<f64> {
    let plain: Option<f64> = text.replace('_', "").parse().ok();
    plain
        .filter(|number| number.is_finite())
        .or_else(|| parse_size(text).ok().map(|bytes| bytes as f64))
}

#[cfg(test)]
mod tests;
