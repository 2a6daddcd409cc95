//! Times that do not wait for the platter: a constant and so much a block.

use crate::linear::Normal;

/// A time by the number of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Affine {
    /// Of any request, in microseconds.
    pub fixed_us: f64,
    /// Of each block, in microseconds.
    pub block_us: f64,
}

impl Affine {
    /// The time of so many blocks.
    pub(crate) fn at(&self, blocks: u32) -> f64 {
        (self.fixed_us + self.block_us * f64::from(blocks)).max(0.0)
    }
}

/// Which constants hold for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// The request before was a read.
    Read,
    /// The request before was a write.
    Write,
    /// A read, which the request follows on the drive.
    ContiguousRead,
    /// A write, which the request follows on the drive.
    ContiguousWrite,
    /// Any, while the drive still reads ahead.
    ReadingAhead,
}

impl Before {
    pub(crate) const ALL: [Before; 5] = [
        Before::Read,
        Before::Write,
        Before::ContiguousRead,
        Before::ContiguousWrite,
        Before::ReadingAhead,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Before::Read => "after_read",
            Before::Write => "after_write",
            Before::ContiguousRead => "contiguous_to_read",
            Before::ContiguousWrite => "contiguous_to_write",
            Before::ReadingAhead => "reading_ahead",
        }
    }
}

/// Fewer points show no line.
const FEWEST: usize = 12;
const ROUNDS: usize = 8;
/// Times that differ by less agree, in microseconds.
const LEAST_US: f64 = 5.0;

/// A line through points of blocks and times, and its errors; outliers are trimmed. Nothing
/// if they are few.
pub(crate) fn fit(points: &[(f64, f64)], crossing_us: f64) -> Option<(Affine, [f64; 2])> {
    if points.len() < FEWEST {
        return None;
    }
    // Most requests have one length: without the bus's slope the others seem outliers.
    let mut times: Vec<f64> = points
        .iter()
        .map(|point| point.1 - crossing_us * point.0)
        .collect();
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let mut line = Affine {
        fixed_us: median,
        block_us: crossing_us,
    };
    let mut errors = [0.0; 2];
    for _ in 0..ROUNDS {
        let residual = |&(blocks, time): &(f64, f64)| time - line.fixed_us - line.block_us * blocks;
        let mut off: Vec<f64> = points.iter().map(|point| residual(point).abs()).collect();
        off.sort_by(f64::total_cmp);
        // Thrice what four of five points are within.
        let limit = 3.0 * off[off.len() * 4 / 5].max(LEAST_US);
        let mut normal = Normal::new(2);
        let (mut squares, mut count) = (0.0, 0usize);
        for point in points.iter().filter(|point| residual(point).abs() <= limit) {
            normal.add(&[(0, 1.0), (1, point.0)], point.1, 1.0);
            (squares, count) = (squares + residual(point).powi(2), count + 1);
        }
        let solved = normal.solve();
        let deviation = (squares / count.max(1) as f64).sqrt();
        line = Affine {
            fixed_us: solved.values[0],
            block_us: solved.values[1],
        };
        errors = [0, 1].map(|unknown| deviation * solved.variances[unknown].sqrt());
    }
    Some((line, errors))
}
