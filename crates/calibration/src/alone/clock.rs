//! Spindle as a clock: its rotation period, and the places in the trace where time is missing.
//!
//! Dropped lines of a trace take their time with them, so the rotational phase changes there.
//! Windows of neighbouring sectors follow a line ([`super::lines`]) whose origin jumps at these
//! places, in all windows together.

use super::lines::{BlockLine, Point, mean_direction, strongest_line, wrapped};
use super::observed::Observation;
use super::period::TRACK_DENSITIES;
use std::f64::consts::TAU;
use std::ops::Range;

/// Number of time blocks of a trace that may each have their own angular origin.
const WINDOW_BLOCKS: usize = 8;
const WINDOW_POINTS: usize = 90;
/// Number of windows that determine the rotation period.
const WINDOW_COUNT: usize = 4;
/// Half width of the search around the coarse rate, in revolutions per microsecond.
const RATE_RANGE: f64 = 2.5e-7;

/// Rotation rate of a spindle, and phase corrections along the trace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Clock {
    /// Rotation rate of the spindle, in revolutions per microsecond.
    pub(super) rate: f64,
    /// Standard error of the rotation rate.
    pub(super) rate_error: f64,
    /// Segments of the trace with constant phase: index of the first request, and the angle to
    /// subtract.
    pub(super) stretches: Vec<(usize, f64)>,
    /// Power of the windows that determined the rate, relative to chance.
    pub(super) power: f64,
    pub(super) chance: f64,
}

impl Clock {
    /// Returns the platter angle at the completion of a request, in revolutions.
    pub(super) fn angle(&self, one: &Observation) -> f64 {
        let reached = self
            .stretches
            .iter()
            .rev()
            .find(|(index, _)| *index <= one.index);
        self.rate * one.completion_us - reached.map_or(0.0, |(_, angle)| *angle)
    }
}

impl Clock {
    /// Returns the duration of the longest segment with constant phase, in microseconds.
    pub(super) fn longest_stretch_us(&self, observations: &[Observation]) -> f64 {
        let end = |number: usize| {
            let next = self
                .stretches
                .get(number + 1)
                .map_or(observations.len(), |next| next.0);
            observations
                .get(next.saturating_sub(1))
                .map_or(1.0, |one| one.completion_us)
        };
        let start = |index: usize| observations.get(index).map_or(0.0, |one| one.completion_us);
        let durations = self.stretches.iter().enumerate();
        durations
            .map(|(number, (index, _))| end(number) - start(*index))
            .fold(1.0, f64::max)
    }
}

/// Window of neighbouring sectors: its points in the order of time, and their time blocks.
struct Window {
    observations: Vec<Observation>,
    blocks: Vec<Range<usize>>,
    span: f64,
}

/// Maximum distance in sectors of successive requests that count as one observation. Such requests
/// agree at any rate near the true one.
const CLUSTER_SECTORS: f64 = 1000.0;
const CLUSTER_REQUESTS: usize = 40;

/// Returns one request of each cluster of neighbouring requests.
fn exclude_clusters(media: &[Observation]) -> Vec<Observation> {
    let mut kept: Vec<Observation> = Vec::new();
    for one in media {
        let recent = kept.iter().rev();
        let mut recent = recent.take_while(|other| one.index - other.index <= CLUSTER_REQUESTS);
        if !recent.any(|other| (other.first - one.first).abs() <= CLUSTER_SECTORS) {
            kept.push(*one);
        }
    }
    kept
}

fn windows(media: &[Observation], requests: usize) -> Vec<Window> {
    let mut sorted = exclude_clusters(media);
    sorted.sort_by(|a, b| a.end().total_cmp(&b.end()));
    let window = |chunk: &[Observation]| {
        let span = chunk[chunk.len() - 1].end() - chunk[0].end();
        let mut observations = chunk.to_vec();
        observations.sort_by_key(|one| one.index);
        let block = |one: &Observation| one.index * WINDOW_BLOCKS / requests.max(1);
        let mut blocks = Vec::new();
        let mut start = 0;
        for number in 1..=observations.len() {
            let ends = number == observations.len()
                || block(&observations[number]) != block(&observations[start]);
            if ends {
                blocks.push(start..number);
                start = number;
            }
        }
        Window {
            observations,
            blocks,
            span,
        }
    };
    sorted
        .chunks(WINDOW_POINTS)
        .filter(|chunk| chunk.len() == WINDOW_POINTS)
        .map(window)
        .collect()
}

fn points(window: &Window, rate: f64) -> Vec<Point> {
    let point = |one: &Observation| Point {
        sector: one.end(),
        angle: rate * one.completion_us,
    };
    window.observations.iter().map(point).collect()
}

fn excess_power(line: &BlockLine) -> f64 {
    line.power - (WINDOW_BLOCKS as f64 + libm::log(line.trials.max(1.0)))
}

/// Finds the rotation period near a coarse one, and the phase jumps. `requests` is the number of
/// requests in the trace.
pub(super) fn find(media: &[Observation], requests: usize, coarse: f64) -> Option<Clock> {
    let mut windows = windows(media, requests);
    if windows.is_empty() {
        return None;
    }
    windows.sort_by(|a, b| a.span.total_cmp(&b.span));
    let duration_us = media.last().map_or(1.0, |one| one.completion_us);
    let step = WINDOW_BLOCKS as f64 / (3.0 * duration_us);
    let steps = (RATE_RANGE / step).ceil() as i64;
    let few = &windows[..windows.len().min(WINDOW_COUNT)];
    let try_rate = |rate: f64| {
        let lines: Vec<BlockLine> = few
            .iter()
            .map(|one| strongest_line(&points(one, rate), &one.blocks, TRACK_DENSITIES))
            .collect();
        (
            lines.iter().map(|line| line.power).sum::<f64>(),
            rate,
            lines,
        )
    };
    let tried = (-steps..=steps).map(|number| try_rate(coarse + step * number as f64));
    let (power, rate, lines) = tried.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let trials = lines
        .iter()
        .map(|line| libm::log(line.trials.max(1.0)) + WINDOW_BLOCKS as f64);
    let chance = trials.sum::<f64>() + libm::log(steps as f64);
    let lines: Vec<BlockLine> = windows
        .iter()
        .map(|one| strongest_line(&points(one, rate), &one.blocks, TRACK_DENSITIES))
        .collect();
    let mut clear: Vec<(&Window, BlockLine)> = windows
        .iter()
        .zip(lines)
        .filter(|(_, line)| excess_power(line) > 6.0)
        .collect();
    clear.sort_by(|a, b| excess_power(&b.1).total_cmp(&excess_power(&a.1)));
    if clear.is_empty() {
        return None;
    }
    let mut clock = Clock {
        rate,
        rate_error: 0.0,
        stretches: vec![(0, 0.0)],
        power,
        chance,
    };
    // A rate that is off drifts: a small step is no jump until the rate is right.
    for jump_min in [0.2, 0.12, 0.08] {
        clock.stretches = track_phase(&align_windows(&clear, clock.rate, requests), jump_min);
        (clock.rate, clock.rate_error) = refine_rate(&clear, &clock);
    }
    // The last angles belong to the last rate.
    clock.stretches = track_phase(&align_windows(&clear, clock.rate, requests), JUMP_MIN);
    Some(clock)
}

/// Returns the residual angles of all windows after removal of their origins, each with its request
/// index.
fn align_windows(clear: &[(&Window, BlockLine)], rate: f64, requests: usize) -> Vec<(usize, f64)> {
    let residuals = |(window, line): &(&Window, BlockLine)| -> Vec<(usize, f64)> {
        let of = |one: &Observation| {
            (
                one.index,
                wrapped(rate * one.completion_us - line.rate * one.end()),
            )
        };
        window.observations.iter().map(of).collect()
    };
    let all: Vec<Vec<(usize, f64)>> = clear.iter().map(residuals).collect();
    let block = |index: usize| index * WINDOW_BLOCKS * 2 / requests.max(1);
    let mut origins = vec![0.0; all.len()];
    let mut shifts = [0.0; WINDOW_BLOCKS * 2 + 1];
    for round in 0..12 {
        // The clearest window is alone first; the others join it one after the other.
        let used = (1 + round * all.len() / 4).min(all.len());
        for (number, shift) in shifts.iter_mut().enumerate() {
            let of_block = all[..used]
                .iter()
                .zip(&origins)
                .flat_map(|(window, origin)| {
                    let inside = window.iter().filter(|(index, _)| block(*index) == number);
                    inside.map(move |(_, angle)| angle - origin)
                });
            let (r, angle) = mean_direction(of_block);
            if r > 0.0 {
                *shift = angle;
            }
        }
        for (window, origin) in all
            .iter()
            .zip(origins.iter_mut())
            .skip(usize::from(round == 0))
        {
            let left = window
                .iter()
                .map(|(index, angle)| angle - shifts[block(*index)]);
            *origin = mean_direction(left).1;
        }
    }
    let mut together: Vec<(usize, f64)> = all
        .iter()
        .zip(&origins)
        .flat_map(|(window, origin)| {
            window
                .iter()
                .map(move |(index, angle)| (*index, angle - origin))
        })
        .collect();
    together.sort_by_key(|(index, _)| *index);
    together
}

/// Number of discrete phases for tracking the angle.
const PHASE_STEPS: usize = 48;
/// Logarithm of the odds against a phase jump, and against a step to the next phase.
const JUMP_COST: f64 = 14.0;
/// Concentration parameter of the request angles around the rotational phase; skews spread the
/// angles.
const PHASE_CONCENTRATION: f64 = 3.0;
/// Expected share of request angles that follow no rotational phase.
const STRAY_SHARE: f64 = 0.15;
/// Smallest phase jump that differs from spindle drift, in revolutions.
const JUMP_MIN: f64 = 0.08;

/// Tracks the phase along the trace and returns the segments between its jumps.
fn track_phase(aligned: &[(usize, f64)], jump_min: f64) -> Vec<(usize, f64)> {
    let norm = 4.88; // Bessel function of order 0 at the concentration.
    let emission = |angle: f64, phase: usize| {
        let cos = libm::cos(TAU * (angle - phase as f64 / PHASE_STEPS as f64));
        libm::log((1.0 - STRAY_SHARE) * libm::exp(PHASE_CONCENTRATION * cos) / norm + STRAY_SHARE)
    };
    let mut scores = vec![0.0; PHASE_STEPS];
    let mut from: Vec<Vec<usize>> = Vec::new();
    for (_, angle) in aligned {
        let (best, top) = best_index(&scores);
        let mut came = Vec::with_capacity(PHASE_STEPS);
        let mut next = Vec::with_capacity(PHASE_STEPS);
        for (phase, stays) in scores.iter().enumerate() {
            let (source, score) = match *stays >= top - JUMP_COST {
                true => (phase, *stays),
                false => (best, top - JUMP_COST),
            };
            came.push(source);
            next.push(score + emission(*angle, phase));
        }
        from.push(came);
        scores = next;
    }
    let (mut phase, _) = best_index(&scores);
    let mut starts = vec![0];
    for number in (0..aligned.len()).rev() {
        let source = from[number][phase];
        if source != phase && number > 0 {
            starts.push(number);
        }
        phase = source;
    }
    starts.sort_unstable();
    starts.dedup();
    starts.push(aligned.len());
    let angle = |start: usize, end: usize| {
        mean_direction(aligned[start..end].iter().map(|(_, angle)| *angle)).1
    };
    // What is too small for a jump, and outliers that lie together, join what was before.
    let mut number = 1;
    while number + 1 < starts.len() {
        let (before, here, end) = (starts[number - 1], starts[number], starts[number + 1]);
        let near_before = &aligned[before.max(here.saturating_sub(STRETCH_WINDOWS_MIN * 4))..here];
        let near_after = &aligned[here..end.min(here + STRETCH_WINDOWS_MIN * 4)];
        let direction = |part: &[(usize, f64)]| mean_direction(part.iter().map(|one| one.1)).1;
        let step = wrapped(direction(near_after) - direction(near_before)).abs();
        match step < jump_min || end - here < STRETCH_WINDOWS_MIN {
            true => drop(starts.remove(number)),
            false => number += 1,
        }
    }
    let stretch = |pair: &[usize]| {
        let index = if pair[0] == 0 { 0 } else { aligned[pair[0]].0 };
        (index, angle(pair[0], pair[1]))
    };
    starts.windows(2).map(stretch).collect()
}

/// Minimum number of points in a segment with constant phase.
const STRETCH_WINDOWS_MIN: usize = 20;

fn best_index(scores: &[f64]) -> (usize, f64) {
    scores
        .iter()
        .enumerate()
        .fold((0, f64::MIN), |best, (number, score)| {
            if *score > best.1 {
                (number, *score)
            } else {
                best
            }
        })
}

/// Refines the rotation rate so that the windows' angles agree between jumps; returns the rate and
/// its standard error.
fn refine_rate(clear: &[(&Window, BlockLine)], clock: &Clock) -> (f64, f64) {
    let starts: Vec<usize> = clock.stretches.iter().map(|(index, _)| *index).collect();
    let stretch = |index: usize| starts.partition_point(|start| *start <= index);
    let power = |rate: f64| {
        let of = |(window, line): &(&Window, BlockLine)| {
            let mut sums = vec![(0.0, 0.0, 0.0); starts.len() + 1];
            for one in &window.observations {
                let (sin, cos) =
                    libm::sincos(TAU * (rate * one.completion_us - line.rate * one.end()));
                let sum = &mut sums[stretch(one.index)];
                *sum = (sum.0 + cos, sum.1 + sin, sum.2 + 1.0);
            }
            let squares = sums.iter().filter(|sum| sum.2 > 0.0);
            squares
                .map(|(re, im, count)| (re * re + im * im) / count)
                .sum::<f64>()
        };
        clear.iter().map(of).sum::<f64>()
    };
    let last = clear
        .iter()
        .flat_map(|(window, _)| window.observations.last());
    let span_us = last.map(|one| one.completion_us).fold(1.0, f64::max);
    let step = 1.0 / (20.0 * span_us);
    let around = (-40..=40).map(|number| clock.rate + step * f64::from(number));
    let best = around
        .map(|rate| (power(rate), rate))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (mut best, mut step) = (best.unwrap_or((0.0, clock.rate)), step);
    for _ in 0..8 {
        step /= 2.0;
        for rate in [best.1 - step, best.1 + step] {
            let other = (power(rate), rate);
            if other.0 > best.0 {
                best = other;
            }
        }
    }
    // The power is twice the logarithm of the likelihood, over the variance of an angle.
    let delta = 1.0 / (20.0 * span_us);
    let curve = 2.0 * best.0 - power(best.1 - delta) - power(best.1 + delta);
    let count = clear
        .iter()
        .map(|(window, _)| window.observations.len())
        .sum::<usize>() as f64;
    let lost = (count - best.0).max(0.01 * count) / count;
    let error = if curve > 0.0 {
        delta * (lost / curve).sqrt()
    } else {
        f64::INFINITY
    };
    (best.1, error)
}
