//! Cliffs: steps along one parameter that lose more than the surrounding steps predict.
//!
//! A curve is expected to continue as before. A response time that doubles with each doubling of
//! the queue depth has no cliff. Nor is the knee of a rate a cliff, where it grows in proportion up
//! to a level: a fall that continues behind a step, no faster than in proportion to the parameter,
//! is a slope. Values and figures are taken as logarithms.
//!
//! A random wiggle is no cliff either. The noise is first deducted from the fall of a step: the
//! spread of repetitions, or the sampling error of a percentile, at both ends of the step and of
//! its neighbours. The top may be that much worse, the foot that much better. Where the noise is
//! unknown, no cliff is named.
//!
//! Between distant values anything may happen. An equally deep fall there is a wide step, not a
//! cliff, until values between them are tried.

use super::{CLIFF_LOSS_SHARE_MIN, GridPoint, TunedParameter, TuningResult, ValueUncertainty};
use crate::comparison::Verdict;
use crate::statistics::median;
use diskperf_timeline::units::parse_size;
use std::collections::BTreeMap;

/// Range of the losses that make a step a cliff, over all steps with a known uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CliffLossRange {
    /// Minimum loss beyond the predicted one, as a share.
    pub loss_share_min: f64,
    /// Maximum loss beyond the predicted one, as a share.
    pub loss_share_max: f64,
}

/// Cliff of a search: a step along one parameter that loses much.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterCliff {
    /// Index of the parameter along which the step leads.
    pub parameter_index: usize,
    /// Settings at the edge of the cliff, as value indices.
    pub top_point: GridPoint,
    /// Settings at the foot of the cliff, as value indices, where much is lost.
    pub bottom_point: GridPoint,
    /// Gain of the step down the cliff, as a share; below zero.
    pub gain: f64,
    /// Gain that the surrounding steps predict, as a share: zero or below.
    pub expected_gain: f64,
    /// Whether the values are so far apart that there may be a slope between them.
    is_wide_step: bool,
}

/// Maximum ratio of two neighbouring values that distinguishes a cliff from a slope. Sweeps that
/// double a parameter satisfy it.
pub const CLIFF_STEP_RATIO_MAX: f64 = 2.0;

/// Number of steps on each side that predict the loss of a step.
const STEPS_AROUND: usize = 3;

/// Slope of a figure that is halved where the parameter is doubled.
const PROPORTIONAL_SLOPE: f64 = 1.0;

impl TuningResult {
    /// Returns all cliffs between points that were tried, in the order of the parameters and of
    /// their values.
    pub fn find_cliffs(&self) -> Vec<ParameterCliff> {
        let mut cliffs = self.find_falls();
        cliffs.retain(|fall| !fall.is_wide_step);
        cliffs
    }

    /// Returns the steps that lose as much as a cliff, between values too far apart to distinguish
    /// it from a slope ([`CLIFF_STEP_RATIO_MAX`]), in the order of [`TuningResult::find_cliffs`].
    pub fn find_wide_steps(&self) -> Vec<ParameterCliff> {
        let mut steps = self.find_falls();
        steps.retain(|fall| fall.is_wide_step);
        steps
    }

    fn find_falls(&self) -> Vec<ParameterCliff> {
        let ordered =
            (0..self.parameters.len()).filter(|number| self.parameters[*number].is_ordered);
        let sweeps_of_parameter = ordered.flat_map(|number| {
            let sweeps_of_parameter = self.list_sweeps(number).into_iter();
            sweeps_of_parameter.map(move |points| (number, points))
        });
        sweeps_of_parameter
            .flat_map(|(number, points)| self.find_cliffs_of_sweep(number, &points))
            .collect()
    }

    /// Formats the settings of the parameters that a cliff does not change.
    pub fn describe_other_settings(&self, cliff: &ParameterCliff) -> String {
        let keys = self.parameters.iter().zip(&cliff.top_point).enumerate();
        let others = keys.filter(|(number, _)| *number != cliff.parameter_index);
        let setting = |(_, (key, place)): (_, (&TunedParameter, &usize))| {
            format!("{}={}", key.path, key.values[*place])
        };
        others.map(setting).collect::<Vec<String>>().join(", ")
    }

    /// Returns the gain from one point to another as a share, and whether a loss is proven beyond
    /// noise.
    pub(super) fn gain_between(&self, from: &[usize], to: &[usize]) -> Option<(f64, bool)> {
        let Some(samples) = &self.samples else {
            return Some((
                self.goal.gain(self.goal_value(from)?, self.goal_value(to)?),
                true,
            ));
        };
        let judged = samples.compare_points(from, to)?;
        Some((judged.ratio? - 1.0, judged.verdict == Verdict::Slower))
    }

    /// Returns the uncertainty of a point's value, as a logarithm. It is 0 for points measured in
    /// rounds, where steps have verdicts of their own.
    fn uncertainty_of_point(&self, places: &[usize]) -> ValueUncertainty {
        let figures = self
            .points
            .get(places)
            .and_then(|one| one.measured_figures());
        match (&self.samples, figures) {
            (Some(_), _) => ValueUncertainty::symmetric(0.0),
            (None, Some(figures)) => self.goal.uncertainty_of_programs(figures),
            (None, None) => ValueUncertainty::default(),
        }
    }

    /// Counts the points with an unknown downward uncertainty, from which no cliff can be named.
    pub fn uncertain_parameter_count(&self) -> usize {
        let ran = self.points.keys();
        let ran = ran.filter(|places| self.goal_value(places).is_some());
        let doubtful =
            ran.filter(|places| self.uncertainty_of_point(places).worse_factor.is_none());
        doubtful.count()
    }

    /// Returns the losses beyond the predicted one that make a step a cliff, over all steps with a known uncertainty.
    pub fn cliff_loss_range(&self) -> Option<CliffLossRange> {
        let mut falls = Vec::new();
        for number in
            (0..self.parameters.len()).filter(|number| self.parameters[*number].is_ordered)
        {
            for points in self.list_sweeps(number) {
                let doubts: Vec<ValueUncertainty> = points
                    .iter()
                    .map(|one| self.uncertainty_of_point(one))
                    .collect();
                let gain = |place: usize| self.gain_between(&points[place], &points[place + 1]);
                let steps = 0..points.len().saturating_sub(1);
                falls.extend(steps.filter_map(|place| {
                    let doubt = uncertainty_on_side(&doubts, place, gain(place)?.0 < 0.0)?;
                    Some(1.0 - (1.0 - CLIFF_LOSS_SHARE_MIN) * libm::exp(-doubt))
                }));
            }
        }
        Some(CliffLossRange {
            loss_share_min: falls.iter().copied().reduce(f64::min)?,
            loss_share_max: falls.into_iter().reduce(f64::max)?,
        })
    }

    /// Returns sequences of neighbouring points that differ in one parameter only, in the order of
    /// its values. Impossible points are skipped; a value that was not tried ends a sequence.
    fn list_sweeps(&self, number: usize) -> Vec<Vec<GridPoint>> {
        let mut lines: BTreeMap<GridPoint, Vec<&GridPoint>> = BTreeMap::new();
        for places in self.points.keys() {
            let mut others = places.clone();
            others[number] = 0;
            lines.entry(others).or_default().push(places);
        }
        let mut sweeps_of_parameter = Vec::new();
        for line in lines.into_values() {
            let beside = |left: &&GridPoint, right: &&GridPoint| right[number] == left[number] + 1;
            for tried in line.chunk_by(beside) {
                let possible = tried
                    .iter()
                    .filter(|places| self.goal_value(places).is_some());
                sweeps_of_parameter.push(possible.map(|places| (*places).clone()).collect());
            }
        }
        sweeps_of_parameter
    }

    fn find_cliffs_of_sweep(&self, number: usize, points: &[GridPoint]) -> Vec<ParameterCliff> {
        let Some(scale) = self.parameters[number].parameter_scale() else {
            return Vec::new();
        };
        let step = |pair: &[GridPoint]| {
            let (gain, _) = self.gain_between(&pair[0], &pair[1])?;
            let width = scale[pair[1][number]] - scale[pair[0][number]];
            Some((libm::log1p(gain), width.abs()))
        };
        let steps: Option<Vec<(f64, f64)>> = points.windows(2).map(step).collect();
        let steps = steps.unwrap_or_default();
        let slopes: Vec<f64> = steps.iter().map(|(rise, width)| rise / width).collect();
        let doubts: Vec<ValueUncertainty> = points
            .iter()
            .map(|one| self.uncertainty_of_point(one))
            .collect();
        let cliff = |(place, (rise, width)): (usize, &(f64, f64))| {
            let expected = -expected_log_slope(&slopes, place) * width;
            let fall = (rise.abs() - uncertainty_on_side(&doubts, place, *rise < 0.0)?).max(0.0);
            let beyond = libm::expm1(-fall - expected);
            let (top, bottom) = match *rise < 0.0 {
                true => (&points[place], &points[place + 1]),
                false => (&points[place + 1], &points[place]),
            };
            if beyond > -CLIFF_LOSS_SHARE_MIN {
                return None;
            }
            let (gain, sure) = self.gain_between(top, bottom)?;
            // A factor as it is written, and not a rounding more. Values between that cannot
            // be have been listed as well.
            let (from, to) = (points[place][number], points[place + 1][number]);
            let is_wide =
                |pair: &[f64]| (pair[1] - pair[0]).abs() > libm::log(CLIFF_STEP_RATIO_MAX) + 1e-9;
            let wide = scale[from..=to].windows(2).any(is_wide);
            sure.then(|| ParameterCliff {
                parameter_index: number,
                top_point: top.clone(),
                bottom_point: bottom.clone(),
                gain,
                // No minus before nothing.
                expected_gain: libm::expm1(expected) + 0.0,
                is_wide_step: wide,
            })
        };
        steps.iter().enumerate().filter_map(cliff).collect()
    }
}

/// Returns the uncertainty of a step that falls forwards or backwards, as a logarithm: its top may
/// be worse, its foot better, and the ends of the neighbouring steps either, as far as that is
/// known.
fn uncertainty_on_side(doubts: &[ValueUncertainty], place: usize, forwards: bool) -> Option<f64> {
    let (top, foot) = match forwards {
        true => (doubts[place], doubts[place + 1]),
        false => (doubts[place + 1], doubts[place]),
    };
    let ends = [top.worse_factor?, foot.better_factor?];
    let most = ends[0].max(ends[1]);
    let before = place.checked_sub(1).map(|place| doubts[place]);
    let beside = [before, doubts.get(place + 2).copied()];
    let beside = beside.into_iter().flatten();
    let beside = beside.map(|doubt| match (doubt.worse_factor, doubt.larger_factor()) {
        (Some(_), Some(doubt)) => doubt,
        (_, known) => known.unwrap_or(most).max(most),
    });
    let squares = ends.into_iter().chain(beside).map(|doubt| doubt * doubt);
    Some(squares.sum::<f64>().sqrt())
}

/// Returns the expected slope of a step: that of the curve before its edge, or that behind it up to
/// proportion.
fn expected_log_slope(slopes: &[f64], place: usize) -> f64 {
    let direction = slopes[place].signum();
    let falling = |slope: &f64| slope * direction;
    let left: Vec<f64> = slopes[..place].iter().rev().map(falling).collect();
    let right: Vec<f64> = slopes[place + 1..].iter().map(falling).collect();
    let (before, behind) = match direction < 0.0 {
        true => (left, right),
        false => (right, left),
    };
    let expected = match (extrapolated_slope(&before), median_slope(&behind)) {
        (Some(before), behind) => before.max(behind.unwrap_or(0.0).min(PROPORTIONAL_SLOPE)),
        // The edge is the end of the sweep: it may always have gone on like this.
        (None, _) => extrapolated_slope(&behind).unwrap_or(0.0),
    };
    expected.max(0.0)
}

fn median_slope(slopes: &[f64]) -> Option<f64> {
    median(&slopes[..slopes.len().min(STEPS_AROUND)])
}

/// Returns the next slope of a curve that continues, or continues to bend, as before. The first
/// slope is the nearest.
fn extrapolated_slope(slopes: &[f64]) -> Option<f64> {
    let bent = match slopes {
        [nearest, second, ..] => 2.0 * nearest - second,
        _ => f64::NEG_INFINITY,
    };
    median_slope(slopes).map(|middle| middle.max(bent))
}

impl TunedParameter {
    /// Returns the values on a logarithmic scale, if they are numbers. A range that begins at zero
    /// or below is moved so that its least value is its first step.
    fn parameter_scale(&self) -> Option<Vec<f64>> {
        let values: Option<Vec<f64>> = self
            .values
            .iter()
            .map(|value| parse_number(value))
            .collect();
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

/// Parses a value as a number: `8K` is 8192, as in a setting.
pub fn parse_number(text: &str) -> Option<f64> {
    let plain: Option<f64> = text.replace('_', "").parse().ok();
    plain
        .filter(|number| number.is_finite())
        .or_else(|| parse_size(text).ok().map(|bytes| bytes as f64))
}

#[cfg(test)]
mod tests;
