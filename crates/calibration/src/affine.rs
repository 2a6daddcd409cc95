//! Service times of requests that do not wait for the platter, modelled as a constant plus a time
//! per block.

use crate::linear::NormalEquations;
use diskperf_device::disk::overheads::PrecedingState;

/// Service time as a linear function of the number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LinearCost {
    /// Constant part of the service time, in microseconds.
    pub fixed_us: f64,
    /// Service time per block, in microseconds.
    pub block_us: f64,
}

/// Circumstances for which the drive model has a separate constant, with their parameter names.
pub(crate) const PREDECESSOR_KEYS: [(PrecedingState, &str); 4] = [
    (PrecedingState::AfterRead, "after_read"),
    (PrecedingState::AfterWrite, "after_write"),
    (PrecedingState::Sequential, "sequential"),
    (PrecedingState::ReadingAhead, "reading_ahead"),
];

const POINTS_MIN: usize = 12;
const OUTLIER_ROUNDS_MAX: usize = 8;
/// Limit of the points that count, as a multiple of the distance that a share of them is within.
#[derive(Clone, Copy)]
pub(crate) struct OutlierScale {
    share: f64,
    factor: f64,
}
/// Three standard deviations of a normal distribution.
pub(crate) const MEDIAN_SCALE: OutlierScale = OutlierScale {
    share: 0.5,
    factor: 4.45,
};
/// Three standard deviations of a normal distribution, where up to three quarters of the requests
/// waited for something else.
pub(crate) const QUARTER_SCALE: OutlierScale = OutlierScale {
    share: 0.25,
    factor: 9.4,
};
/// Keeps all lengths of requests, where most have one.
const FOUR_FIFTHS_SCALE: OutlierScale = OutlierScale {
    share: 0.8,
    factor: 3.0,
};
/// Largest difference of service times that count as equal, in microseconds.
const AGREEMENT_US_MAX: f64 = 5.0;

/// Fits service time as a line over the number of blocks, after removing outliers, and returns the
/// errors. Returns `None` if there are too few points.
pub(crate) fn fit_linear_cost(
    points: &[(f64, f64)],
    crossing_us: f64,
) -> Option<(LinearCost, [f64; 2])> {
    solve_linear_cost(points, crossing_us, (2, FOUR_FIFTHS_SCALE))
}

/// Fits the constant part of service times whose time per block is known, and returns its error.
pub(crate) fn fit_constant(
    points: &[(f64, f64)],
    block_us: f64,
    scale: OutlierScale,
) -> Option<(f64, f64)> {
    let found = solve_linear_cost(points, block_us, (1, scale));
    found.map(|(line, errors)| (line.fixed_us, errors[0]))
}

/// Returns the middle of the quarter of the sorted values that lie closest together.
fn densest_value(sorted: &[f64]) -> f64 {
    let quarter = sorted.len().div_ceil(4);
    let width = |of: &&[f64]| of[quarter - 1] - of[0];
    let densest = sorted.windows(quarter);
    let densest = densest.min_by(|a, b| width(a).total_cmp(&width(b)));
    densest.map_or(0.0, |values| values[quarter / 2])
}

/// Fits a line to service times with one unknown (the constant) or two (also the slope).
fn solve_linear_cost(
    points: &[(f64, f64)],
    block_us: f64,
    (unknowns, scale): (usize, OutlierScale),
) -> Option<(LinearCost, [f64; 2])> {
    if points.len() < POINTS_MIN {
        return None;
    }
    // Most requests have one length: without the bus's slope the others seem outliers.
    let mut times: Vec<f64> = points
        .iter()
        .map(|point| point.1 - block_us * point.0)
        .collect();
    times.sort_by(f64::total_cmp);
    // Requests that waited for something else take any longer time. The time per block needs all
    // lengths, and the constant only the requests that agree.
    let fixed_us = match unknowns {
        1 => densest_value(&times),
        _ => times[times.len() / 2],
    };
    let mut line = LinearCost { fixed_us, block_us };
    let mut errors = [0.0; 2];
    for _ in 0..OUTLIER_ROUNDS_MAX {
        let residual = |&(blocks, time): &(f64, f64)| time - line.fixed_us - line.block_us * blocks;
        let mut off: Vec<f64> = points.iter().map(|point| residual(point).abs()).collect();
        off.sort_by(f64::total_cmp);
        let within = (off.len() as f64 * scale.share) as usize;
        let limit = scale.factor * off[within].max(AGREEMENT_US_MAX);
        let mut normal = NormalEquations::new(unknowns);
        let (mut squares, mut count) = (0.0, 0usize);
        for point in points.iter().filter(|point| residual(point).abs() <= limit) {
            match unknowns {
                1 => normal.add(&[(0, 1.0)], point.1 - block_us * point.0, 1.0),
                _ => normal.add(&[(0, 1.0), (1, point.0)], point.1, 1.0),
            }
            (squares, count) = (squares + residual(point).powi(2), count + 1);
        }
        let solved = normal.solve();
        let deviation = (squares / count.max(1) as f64).sqrt();
        line = LinearCost {
            fixed_us: solved.values[0],
            block_us: solved.values.get(1).copied().unwrap_or(block_us),
        };
        let error = |unknown: usize| {
            let variance = solved.variances.get(unknown);
            deviation * variance.map_or(0.0, |variance| variance.sqrt())
        };
        errors = [error(0), error(1)];
    }
    Some((line, errors))
}
