//! Spindle as a clock: its rotation period, and the places in the trace where time is missing.
//!
//! Dropped lines of a trace take their time with them, so the rotational phase changes there.
//! Windows of neighbouring sectors follow a line ([`super::lines`]) whose origin jumps at these
//! places, in all windows together.

use super::lines::{BlockLine, SectorAngle, mean_direction, strongest_line, wrap_angle};
use super::observed::ObservedRequest;
use super::period::TRACK_DENSITIES;
use std::f64::consts::TAU;
use std::ops::Range;

/// Number of time blocks of a trace that may each have their own angular origin.
const WINDOW_BLOCKS: usize = 8;
const WINDOW_POINTS_MIN: usize = 90;
/// Number of windows that determine the rotation period.
const WINDOW_COUNT: usize = 4;
/// Half width of the search around the coarse rate, in revolutions per microsecond.
const RATE_RANGE: f64 = 2.5e-7;

/// Rotation rate of a spindle, and phase corrections along the trace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SpindleRotation {
    /// Rotation rate of the spindle, in revolutions per microsecond.
    pub(super) revolutions_per_us: f64,
    pub(super) rate_standard_error: f64,
    /// Segments of the trace with constant phase: index of the first request, and the angle to
    /// subtract.
    pub(super) phase_segments: Vec<(usize, f64)>,
    /// Power of the windows that determined the rate, relative to chance.
    pub(super) window_power: f64,
    pub(super) chance_power: f64,
}

impl SpindleRotation {
    /// Returns the platter angle at the completion of a request, in revolutions.
    pub(super) fn completion_angle(&self, one: &ObservedRequest) -> f64 {
        let reached = self
            .phase_segments
            .iter()
            .rev()
            .find(|(index, _)| *index <= one.request_index);
        self.revolutions_per_us * one.completion_us - reached.map_or(0.0, |(_, angle)| *angle)
    }
}

impl SpindleRotation {
    /// Returns the duration of the longest segment with constant phase, in microseconds.
    pub(super) fn longest_segment_us(&self, observations: &[ObservedRequest]) -> f64 {
        let end = |number: usize| {
            let next = self
                .phase_segments
                .get(number + 1)
                .map_or(observations.len(), |next| next.0);
            observations
                .get(next.saturating_sub(1))
                .map_or(1.0, |one| one.completion_us)
        };
        let start = |index: usize| observations.get(index).map_or(0.0, |one| one.completion_us);
        let durations = self.phase_segments.iter().enumerate();
        durations
            .map(|(number, (index, _))| end(number) - start(*index))
            .fold(1.0, f64::max)
    }
}

/// Window of neighbouring sectors: its points in the order of time, and their time blocks.
struct SectorWindow {
    observations: Vec<ObservedRequest>,
    time_blocks: Vec<Range<usize>>,
    sector_span: f64,
}

/// Maximum distance in sectors of successive requests that count as one observation. Such requests
/// agree at any rate near the true one.
const CLUSTER_SECTORS: f64 = 1000.0;
const CLUSTER_REQUESTS: usize = 40;

/// Returns one request of each cluster of neighbouring requests.
fn exclude_clusters(media: &[ObservedRequest]) -> Vec<ObservedRequest> {
    let mut kept: Vec<ObservedRequest> = Vec::new();
    for one in media {
        let recent = kept.iter().rev();
        let mut recent =
            recent.take_while(|other| one.request_index - other.request_index <= CLUSTER_REQUESTS);
        if !recent.any(|other| (other.first_sector - one.first_sector).abs() <= CLUSTER_SECTORS) {
            kept.push(*one);
        }
    }
    kept
}

fn sector_windows(media: &[ObservedRequest], requests: usize) -> Vec<SectorWindow> {
    let mut sorted = exclude_clusters(media);
    sorted.sort_by(|a, b| a.end_sector().total_cmp(&b.end_sector()));
    let window = |chunk: &[ObservedRequest]| {
        let span = chunk[chunk.len() - 1].end_sector() - chunk[0].end_sector();
        let mut observations = chunk.to_vec();
        observations.sort_by_key(|one| one.request_index);
        let block = |one: &ObservedRequest| one.request_index * WINDOW_BLOCKS / requests.max(1);
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
        SectorWindow {
            observations,
            time_blocks: blocks,
            sector_span: span,
        }
    };
    sorted
        .chunks(WINDOW_POINTS_MIN)
        .filter(|chunk| chunk.len() == WINDOW_POINTS_MIN)
        .map(window)
        .collect()
}

fn window_points(window: &SectorWindow, rate: f64) -> Vec<SectorAngle> {
    let point = |one: &ObservedRequest| SectorAngle {
        sector: one.end_sector(),
        angle: rate * one.completion_us,
    };
    window.observations.iter().map(point).collect()
}

fn excess_power(line: &BlockLine) -> f64 {
    line.power - (WINDOW_BLOCKS as f64 + libm::log(line.trial_count.max(1.0)))
}

/// Finds the rotation period near a coarse one, and the phase jumps. `requests` is the number of
/// requests in the trace.
pub(super) fn find_rotation(
    media: &[ObservedRequest],
    requests: usize,
    coarse: f64,
) -> Option<SpindleRotation> {
    let mut windows = sector_windows(media, requests);
    if windows.is_empty() {
        return None;
    }
    windows.sort_by(|a, b| a.sector_span.total_cmp(&b.sector_span));
    let duration_us = media.last().map_or(1.0, |one| one.completion_us);
    let step = WINDOW_BLOCKS as f64 / (3.0 * duration_us);
    let steps = (RATE_RANGE / step).ceil() as i64;
    let few = &windows[..windows.len().min(WINDOW_COUNT)];
    let try_rate = |rate: f64| {
        let lines: Vec<BlockLine> = few
            .iter()
            .map(|one| strongest_line(&window_points(one, rate), &one.time_blocks, TRACK_DENSITIES))
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
        .map(|line| libm::log(line.trial_count.max(1.0)) + WINDOW_BLOCKS as f64);
    let chance = trials.sum::<f64>() + libm::log(steps as f64);
    let lines: Vec<BlockLine> = windows
        .iter()
        .map(|one| strongest_line(&window_points(one, rate), &one.time_blocks, TRACK_DENSITIES))
        .collect();
    let mut clear: Vec<(&SectorWindow, BlockLine)> = windows
        .iter()
        .zip(lines)
        .filter(|(_, line)| excess_power(line) > 6.0)
        .collect();
    clear.sort_by(|a, b| excess_power(&b.1).total_cmp(&excess_power(&a.1)));
    if clear.is_empty() {
        return None;
    }
    let mut clock = SpindleRotation {
        revolutions_per_us: rate,
        rate_standard_error: 0.0,
        phase_segments: vec![(0, 0.0)],
        window_power: power,
        chance_power: chance,
    };
    // A rate that is off drifts: a small step is no jump until the rate is right.
    for jump_min in [0.2, 0.12, 0.08] {
        clock.phase_segments = segment_phase(
            &align_windows(&clear, clock.revolutions_per_us, requests),
            jump_min,
        );
        (clock.revolutions_per_us, clock.rate_standard_error) = refine_rate(&clear, &clock);
    }
    // The last angles belong to the last rate.
    clock.phase_segments = segment_phase(
        &align_windows(&clear, clock.revolutions_per_us, requests),
        JUMP_MIN,
    );
    Some(clock)
}

/// Returns the residual angles of all windows after removal of their origins, each with its request
/// index.
fn align_windows(
    clear: &[(&SectorWindow, BlockLine)],
    rate: f64,
    requests: usize,
) -> Vec<(usize, f64)> {
    let residuals = |(window, line): &(&SectorWindow, BlockLine)| -> Vec<(usize, f64)> {
        let of = |one: &ObservedRequest| {
            (
                one.request_index,
                wrap_angle(
                    rate * one.completion_us - line.revolutions_per_sector * one.end_sector(),
                ),
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
const PHASE_OUTLIER_SHARE: f64 = 0.15;
/// Smallest phase jump that differs from spindle drift, in revolutions.
const JUMP_MIN: f64 = 0.08;

/// Tracks the phase along the trace and returns the segments between its jumps.
fn segment_phase(aligned: &[(usize, f64)], jump_min: f64) -> Vec<(usize, f64)> {
    let norm = 4.88; // Bessel function of order 0 at the concentration.
    let emission = |angle: f64, phase: usize| {
        let cos = libm::cos(TAU * (angle - phase as f64 / PHASE_STEPS as f64));
        libm::log(
            (1.0 - PHASE_OUTLIER_SHARE) * libm::exp(PHASE_CONCENTRATION * cos) / norm
                + PHASE_OUTLIER_SHARE,
        )
    };
    let mut scores = vec![0.0; PHASE_STEPS];
    let mut from: Vec<Vec<usize>> = Vec::new();
    for (_, angle) in aligned {
        let (best, top) = argmax(&scores);
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
    let (mut phase, _) = argmax(&scores);
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
        let near_before = &aligned[before.max(here.saturating_sub(SEGMENT_WINDOWS_MIN * 4))..here];
        let near_after = &aligned[here..end.min(here + SEGMENT_WINDOWS_MIN * 4)];
        let direction = |part: &[(usize, f64)]| mean_direction(part.iter().map(|one| one.1)).1;
        let step = wrap_angle(direction(near_after) - direction(near_before)).abs();
        match step < jump_min || end - here < SEGMENT_WINDOWS_MIN {
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
const SEGMENT_WINDOWS_MIN: usize = 20;

fn argmax(scores: &[f64]) -> (usize, f64) {
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
fn refine_rate(clear: &[(&SectorWindow, BlockLine)], clock: &SpindleRotation) -> (f64, f64) {
    let starts: Vec<usize> = clock
        .phase_segments
        .iter()
        .map(|(index, _)| *index)
        .collect();
    let stretch = |index: usize| starts.partition_point(|start| *start <= index);
    let power = |rate: f64| {
        let of = |(window, line): &(&SectorWindow, BlockLine)| {
            let mut sums = vec![(0.0, 0.0, 0.0); starts.len() + 1];
            for one in &window.observations {
                let (sin, cos) = libm::sincos(
                    TAU * (rate * one.completion_us
                        - line.revolutions_per_sector * one.end_sector()),
                );
                let sum = &mut sums[stretch(one.request_index)];
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
    let around = (-40..=40).map(|number| clock.revolutions_per_us + step * f64::from(number));
    let best = around
        .map(|rate| (power(rate), rate))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let (mut best, mut step) = (best.unwrap_or((0.0, clock.revolutions_per_us)), step);
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
