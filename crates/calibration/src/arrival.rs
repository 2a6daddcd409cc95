//! Arrival of the head over its track: command overhead, seek and settling, measured from the start
//! of a request.
//!
//! A trace shows an arrival only through the sectors that it misses, because less than a revolution
//! passes between the arrival and the first sector. The estimate is the arrival time that makes the
//! trace most likely.

use crate::linear::{NormalEquations, Solution};
use libm::erf;
use std::f64::consts::{PI, SQRT_2};

/// Seek distances in cylinders at which the correction to the files' seek times is fitted. Between
/// them it is linear in the logarithm of the distance.
const SEEK_KNOTS: [f64; 7] = [1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0];
const SEEK_KNOT_INDEX: usize = 7;
pub(crate) const ARRIVAL_TERM_COUNT: usize = SEEK_KNOT_INDEX + SEEK_KNOTS.len();
pub(crate) const TERM_NAMES: &[&str; ARRIVAL_TERM_COUNT] = &[
    "constant_us",
    "after_write_us",
    "same_track_us",
    "head_switch_us",
    "inward_us",
    "reading_ahead_us",
    "block_us",
    "seek_of_1_us",
    "seek_of_4_us",
    "seek_of_16_us",
    "seek_of_64_us",
    "seek_of_256_us",
    "seek_of_1024_us",
    "seek_of_4096_us",
];

/// Returns the correction to the files' seek time for a distance in cylinders, in microseconds.
pub(crate) fn added_to_seek_us(arrival: &ArrivalCorrection, distance_cylinders: u32) -> f64 {
    let seek = SeekCircumstances {
        distance_cylinders: distance_cylinders.max(1),
        ..SeekCircumstances::default()
    };
    let numbers = seek.term_factors().into_iter().zip(arrival.weights_us);
    let seeks = numbers.skip(SEEK_KNOT_INDEX);
    seeks.map(|(factor, weight)| factor * weight).sum()
}

/// Indices of the terms that [`added_to_seek_us`] sums.
pub(crate) const SEEK_TERMS: std::ops::Range<usize> = SEEK_KNOT_INDEX..ARRIVAL_TERM_COUNT;

/// Returns the index of a term by its name.
///
/// # Panics
///
/// If the term does not exist.
pub(crate) fn term_index(name: &str) -> usize {
    let found = TERM_NAMES.iter().position(|other| *other == name);
    found.unwrap_or_else(|| panic!("no number of an arrival is called {name}"))
}

/// Circumstances of a request that determine its arrival time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SeekCircumstances {
    /// Seek time or head switch time from the drive's files, in microseconds.
    pub(crate) specified_us: f64,
    pub(crate) distance_cylinders: u32,
    pub(crate) is_inward: bool,
    pub(crate) switches_head: bool,
    pub(crate) follows_write: bool,
    pub(crate) is_reading_ahead: bool,
    /// Blocks that must reach the drive before the seek, for a write.
    pub(crate) block_count: u32,
}

impl SeekCircumstances {
    fn term_factors(&self) -> [f64; ARRIVAL_TERM_COUNT] {
        let mut factors = [0.0; ARRIVAL_TERM_COUNT];
        factors[0] = 1.0;
        factors[1] = f64::from(self.follows_write);
        let stays = self.distance_cylinders == 0;
        factors[2] = f64::from(stays && !self.switches_head);
        factors[3] = f64::from(stays && self.switches_head);
        factors[4] = f64::from(!stays && self.is_inward);
        factors[5] = f64::from(self.is_reading_ahead);
        factors[6] = f64::from(self.block_count);
        if !stays {
            let distance = f64::from(self.distance_cylinders).min(SEEK_KNOTS[SEEK_KNOTS.len() - 1]);
            let above = SEEK_KNOTS
                .partition_point(|&knot| knot <= distance)
                .min(SEEK_KNOTS.len() - 1);
            let (low, high) = (SEEK_KNOTS[above - 1].ln(), SEEK_KNOTS[above].ln());
            let share = ((distance.ln() - low) / (high - low)).clamp(0.0, 1.0);
            factors[SEEK_KNOT_INDEX + above - 1] = 1.0 - share;
            factors[SEEK_KNOT_INDEX + above] = share;
        }
        factors
    }
}

/// Corrections to the files' seek times, in microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ArrivalCorrection {
    /// Weight of each term, in microseconds per unit of its factor.
    pub(crate) weights_us: [f64; ARRIVAL_TERM_COUNT],
}

/// Request that waited for the platter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedArrival {
    pub(crate) circumstances: SeekCircumstances,
    /// Time from the start of the request until its first sector is under the head, in
    /// microseconds.
    pub(crate) time_to_sector_us: f64,
}

/// Fitted arrival times with their standard errors.
#[derive(Clone, Debug)]
pub(crate) struct FittedArrival {
    pub(crate) correction: ArrivalCorrection,
    /// Standard errors in microseconds; 0 for a term that no request shows.
    pub(crate) errors_us: [f64; ARRIVAL_TERM_COUNT],
}

impl FittedArrival {
    /// Returns the arrival times with the files' times for staying on a track and for switching
    /// heads.
    pub(crate) fn with_specified_switches(&self) -> FittedArrival {
        self.without_terms(|name| ["same_track_us", "head_switch_us"].contains(&name))
    }

    /// Returns the arrival times with all seek and switch times of the files.
    pub(crate) fn with_specified_seeks(&self) -> FittedArrival {
        self.without_terms(|name| !["constant_us", "after_write_us"].contains(&name))
    }

    fn without_terms(&self, is_specified: impl Fn(&str) -> bool) -> FittedArrival {
        let mut arrival = self.clone();
        for (index, _) in TERM_NAMES
            .iter()
            .enumerate()
            .filter(|(_, name)| is_specified(name))
        {
            (
                arrival.correction.weights_us[index],
                arrival.errors_us[index],
            ) = (0.0, 0.0);
        }
        arrival
    }
}

/// Share of requests that no arrival time explains: retries, recalibrations, or a wrong assumption
/// about the actuator position.
const OUTLIER_SHARE: f64 = 0.02;
/// Successive values of the assumed jitter, in microseconds. A wide jitter guides the first steps.
const JITTERS_US: [f64; 7] = [800.0, 500.0, 300.0, 200.0, 140.0, 100.0, 80.0];
/// Assumed jitter of an arrival time from request to request, in microseconds: the last value of
/// the narrowing.
pub(crate) const JITTER_US: f64 = JITTERS_US[JITTERS_US.len() - 1];
const NEWTON_STEPS_MAX: usize = 10;
/// Standard deviation of the prior around the files' seek times, in microseconds.
const PRIOR_US: f64 = 1500.0;
/// Range of constants for the first guess, in steps.
const CONSTANT_TRIALS: std::ops::Range<i32> = -20..80;
const CONSTANT_TRIAL_STEP_US: f64 = 100.0;

/// Fits the most likely arrival times of the head over its track.
pub(crate) fn fit_arrival(seen: &[ObservedArrival], period_us: f64) -> FittedArrival {
    let rows: Vec<ArrivalRow<'_>> = seen
        .iter()
        .map(|seen| ArrivalRow {
            factors: seen.circumstances.term_factors(),
            observed: seen,
        })
        .collect();
    let fit = ArrivalFit { rows, period_us };
    let mut weights = fit.initial_weights();
    let mut errors_us = [0.0; ARRIVAL_TERM_COUNT];
    for jitter_us in JITTERS_US {
        let mut reached = fit.log_likelihood(&weights, jitter_us);
        for _ in 0..NEWTON_STEPS_MAX {
            let solution = fit.newton_step(&weights, jitter_us);
            for (error, variance) in errors_us.iter_mut().zip(&solution.variances) {
                *error = variance.sqrt();
            }
            let total =
                |weights: &[f64; ARRIVAL_TERM_COUNT]| fit.log_likelihood(weights, jitter_us);
            match improve_weights(&weights, &solution.values, reached, total) {
                Some((next, value)) => (weights, reached) = (next, value),
                None => break,
            }
        }
    }
    for (index, error) in errors_us.iter_mut().enumerate() {
        // What is as uncertain as before the requests was not seen in them.
        let is_seen = fit.rows.iter().any(|row| row.factors[index] != 0.0);
        if !is_seen || *error > 0.95 * PRIOR_US {
            (weights[index], *error) = (0.0, 0.0);
        }
    }
    FittedArrival {
        correction: ArrivalCorrection {
            weights_us: weights,
        },
        errors_us,
    }
}

struct ArrivalRow<'s> {
    factors: [f64; ARRIVAL_TERM_COUNT],
    observed: &'s ObservedArrival,
}

struct ArrivalFit<'s> {
    rows: Vec<ArrivalRow<'s>>,
    period_us: f64,
}

impl ArrivalFit<'_> {
    /// Returns the time from the arrival to the first sector, in microseconds.
    fn lateness_us(row: &ArrivalRow<'_>, weights: &[f64; ARRIVAL_TERM_COUNT]) -> f64 {
        let arrival_us =
            row.observed.circumstances.specified_us + dot_product(&row.factors, weights);
        row.observed.time_to_sector_us - arrival_us
    }

    fn log_likelihood(&self, weights: &[f64; ARRIVAL_TERM_COUNT], jitter_us: f64) -> f64 {
        let of_one = |row: &ArrivalRow<'_>| {
            let after_us = Self::lateness_us(row, weights);
            likelihood(after_us, self.period_us, jitter_us).0.ln()
        };
        let prior = |weight: &f64| (weight / PRIOR_US).powi(2) / 2.0;
        self.rows.iter().map(of_one).sum::<f64>() - weights[1..].iter().map(prior).sum::<f64>()
    }

    /// Returns the most likely constant with all other terms 0.
    fn initial_weights(&self) -> [f64; ARRIVAL_TERM_COUNT] {
        let with_constant = |step: i32| {
            let mut weights = [0.0; ARRIVAL_TERM_COUNT];
            weights[0] = f64::from(step) * CONSTANT_TRIAL_STEP_US;
            weights
        };
        let tried = CONSTANT_TRIALS.map(with_constant);
        let scored = tried.map(|weights| (self.log_likelihood(&weights, JITTERS_US[0]), weights));
        let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or([0.0; ARRIVAL_TERM_COUNT], |best| best.1)
    }

    /// Returns a step toward the maximum likelihood. The outer product of the gradients
    /// approximates the curvature.
    fn newton_step(&self, weights: &[f64; ARRIVAL_TERM_COUNT], jitter_us: f64) -> Solution {
        let mut normal = NormalEquations::new(ARRIVAL_TERM_COUNT);
        for row in &self.rows {
            let after_us = Self::lateness_us(row, weights);
            let (probability, slope) = likelihood(after_us, self.period_us, jitter_us);
            let gradient = slope / probability;
            if gradient != 0.0 {
                let factors = row.factors.iter().enumerate();
                let known = factors.filter(|(_, factor)| **factor != 0.0);
                let row: Vec<(usize, f64)> =
                    known.map(|(i, factor)| (i, factor * gradient)).collect();
                normal.add(&row, 1.0, 1.0);
            }
        }
        for (index, weight) in weights.iter().enumerate().skip(1) {
            let share = PRIOR_US.recip();
            normal.add(&[(index, share)], -weight * share, 1.0);
        }
        normal.solve()
    }
}

/// Halves a step until it improves the likelihood.
fn improve_weights(
    weights: &[f64; ARRIVAL_TERM_COUNT],
    step: &[f64],
    reached: f64,
    total: impl Fn(&[f64; ARRIVAL_TERM_COUNT]) -> f64,
) -> Option<([f64; ARRIVAL_TERM_COUNT], f64)> {
    let mut share = 1.0;
    while share > 0.01 {
        let mut next = *weights;
        for (weight, step) in next.iter_mut().zip(step) {
            *weight += share * step;
        }
        let value = total(&next);
        if value > reached + 1e-6 {
            return Some((next, value));
        }
        share /= 2.0;
    }
    None
}

fn dot_product(a: &[f64; ARRIVAL_TERM_COUNT], b: &[f64; ARRIVAL_TERM_COUNT]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Returns the likelihood that the sector passes at this time after the arrival, and its derivative
/// with respect to a later arrival.
fn likelihood(after_us: f64, period_us: f64, jitter_us: f64) -> (f64, f64) {
    let (near, far) = (after_us / jitter_us, (after_us - period_us) / jitter_us);
    let within = normal_cumulative(near) - normal_cumulative(far);
    let slope = (normal_density(far) - normal_density(near)) / jitter_us;
    // An outlier may be anywhere among a few revolutions.
    let likely = OUTLIER_SHARE / 4.0 + (1.0 - OUTLIER_SHARE) * within;
    (likely, (1.0 - OUTLIER_SHARE) * slope)
}

fn normal_cumulative(x: f64) -> f64 {
    0.5 * (1.0 + erf(x / SQRT_2))
}

fn normal_density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
}
