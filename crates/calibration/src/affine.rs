//! Times that do not wait for the platter: a constant and so much a block.

use crate::linear::Normal;
use diskperf_device::disk::overheads::Before;

/// A time by the number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Affine {
    /// Of any request, in microseconds.
    pub fixed_us: f64,
    /// Of each block, in microseconds.
    pub block_us: f64,
}

/// Circumstances that the device has a constant for.
pub(crate) const BEFORE: [(Before, &str); 4] = [
    (Before::Read, "after_read"),
    (Before::Write, "after_write"),
    (Before::Sequential, "sequential"),
    (Before::ReadingAhead, "reading_ahead"),
];

/// Fewer points show no line.
const POINTS_MIN: usize = 12;
const ROUNDS: usize = 8;
/// Times that differ by less agree, in microseconds.
const AGREE_US: f64 = 5.0;

/// A line through points of blocks and times, and its errors; outliers are trimmed. Nothing
/// if they are few.
pub(crate) fn fit(points: &[(f64, f64)], crossing_us: f64) -> Option<(Affine, [f64; 2])> {
    solve(points, crossing_us, 2)
}

/// The constant of points whose blocks take a known time, and its error.
pub(crate) fn fit_constant(points: &[(f64, f64)], block_us: f64) -> Option<(f64, f64)> {
    let found = solve(points, block_us, 1);
    found.map(|(line, errors)| (line.fixed_us, errors[0]))
}

/// A line of so many unknowns: its constant, and its slope where that is one.
fn solve(points: &[(f64, f64)], block_us: f64, unknowns: usize) -> Option<(Affine, [f64; 2])> {
    if points.len() < POINTS_MIN {
        return None;
    }
    // Most requests have one length: without the bus's slope the others seem outliers.
    let mut times: Vec<f64> = points
        .iter()
        .map(|point| point.1 - block_us * point.0)
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let mut line = Affine {
        fixed_us: median,
        block_us,
    };
    let mut errors = [0.0; 2];
    for _ in 0..ROUNDS {
        let residual = |&(blocks, time): &(f64, f64)| time - line.fixed_us - line.block_us * blocks;
        let mut off: Vec<f64> = points.iter().map(|point| residual(point).abs()).collect();
        off.sort_by(f64::total_cmp);
        // Thrice what four of five points are within.
        let limit = 3.0 * off[off.len() * 4 / 5].max(AGREE_US);
        let mut normal = Normal::new(unknowns);
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
        line = Affine {
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
