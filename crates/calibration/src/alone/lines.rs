//! Spectral lines of the platter angle as a function of the sector number.
//!
//! In a zone, the angle at which a sector passes the head advances by one revolution plus the skew
//! per track, so it is a sawtooth of constant pitch over the sectors. The strongest line of `exp(2
//! pi i angle)` lies at (1 + skew) / (sectors per track), whichever sectors the trace requested.

use std::f64::consts::TAU;

/// Sector of a request, and the angle at which it passed the head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Number of the sector on the drive.
    pub(super) sector: f64,
    /// Platter angle in revolutions since the start of the trace, including whole revolutions.
    pub(super) angle: f64,
}

/// Line of angles: `angle = origin + rate * sector`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Line {
    /// Slope of the angle, in revolutions per sector.
    pub(super) rate: f64,
    /// Angle of sector 0, in revolutions.
    pub(super) origin: f64,
    /// Agreement of the points with the line: length of the mean residual vector, 1 if all angles
    /// agree.
    pub(super) r: f64,
}

impl Line {
    /// Returns the difference between an angle and the line, in revolutions from -0.5 to 0.5.
    pub(super) fn residual(&self, point: &Point) -> f64 {
        wrapped(point.angle - self.origin - self.rate * point.sector)
    }
}

/// Wraps an angle to the range from -0.5 to 0.5 revolutions.
pub(super) fn wrapped(angle: f64) -> f64 {
    angle - angle.round()
}

/// Returns the length and direction of the mean of unit vectors at these angles.
pub(super) fn mean_direction(angles: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut re, mut im, mut count) = (0.0, 0.0, 0.0);
    for angle in angles {
        let (sin, cos) = libm::sincos(TAU * angle);
        re += cos;
        im += sin;
        count += 1.0;
    }
    if count == 0.0 {
        return (0.0, 0.0);
    }
    (libm::hypot(re, im) / count, libm::atan2(im, re) / TAU)
}

/// Line of angles whose origin may change between time blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct BlockLine {
    /// Slope of the angle, in revolutions per sector.
    pub(super) rate: f64,
    /// Sum of the blocks' squared resultants, each divided by its number of points. It is close to
    /// the number of blocks by chance, and close to the number of points if all angles agree.
    pub(super) power: f64,
    /// Number of independent rates that were tried.
    pub(super) trials: f64,
}

/// Finds the strongest line between two rates. `blocks` are the indices of points that share an
/// origin.
pub(super) fn strongest_line(
    points: &[Point],
    blocks: &[std::ops::Range<usize>],
    (low, high): (f64, f64),
) -> BlockLine {
    let (first, span) = first_and_span(points);
    let step = 1.0 / (3.0 * span);
    let steps = ((high - low) / step).ceil().max(1.0) as usize;
    let mut best = BlockLine {
        rate: low,
        power: 0.0,
        trials: (high - low) * span,
    };
    let mut wheel = PhasorBank::new(points, first, low, step);
    for number in 0..=steps {
        let power = wheel.power(blocks);
        if power > best.power {
            (best.power, best.rate) = (power, low + step * number as f64);
        }
        wheel.advance();
    }
    best
}

/// Returns the first sector of the points and the distance of the last one from it.
pub(super) fn first_and_span(points: &[Point]) -> (f64, f64) {
    let sectors = || points.iter().map(|point| point.sector);
    let first = sectors().fold(f64::MAX, f64::min);
    (first, (sectors().fold(f64::MIN, f64::max) - first).max(1.0))
}

/// Unit vectors of all points, advanced as the rate increases.
struct PhasorBank {
    re: Vec<f64>,
    im: Vec<f64>,
    turn_re: Vec<f64>,
    turn_im: Vec<f64>,
}

impl PhasorBank {
    fn new(points: &[Point], first: f64, rate: f64, step: f64) -> Self {
        let vector = |angle: f64| libm::sincos(TAU * angle);
        let begin = |point: &Point| vector(point.angle - rate * (point.sector - first));
        let turn = |point: &Point| vector(-step * (point.sector - first));
        let (im, re) = points.iter().map(begin).unzip();
        let (turn_im, turn_re) = points.iter().map(turn).unzip();
        Self {
            re,
            im,
            turn_re,
            turn_im,
        }
    }

    fn power(&self, blocks: &[std::ops::Range<usize>]) -> f64 {
        let block = |range: &std::ops::Range<usize>| {
            let re: f64 = self.re[range.clone()].iter().sum();
            let im: f64 = self.im[range.clone()].iter().sum();
            (re * re + im * im) / range.len().max(1) as f64
        };
        blocks.iter().map(block).sum()
    }

    fn advance(&mut self) {
        let turns = self.turn_re.iter().zip(&self.turn_im);
        let vectors = self.re.iter_mut().zip(self.im.iter_mut());
        for ((re, im), (turn_re, turn_im)) in vectors.zip(turns) {
            (*re, *im) = (*re * turn_re - *im * turn_im, *re * turn_im + *im * turn_re);
        }
    }
}

/// Finds the maximum of the line near a rate.
pub(super) fn refine_line(points: &[Point], rate: f64, step: f64) -> Line {
    let at = |rate: f64| {
        let angles = points.iter().map(|point| point.angle - rate * point.sector);
        let (r, origin) = mean_direction(angles);
        Line { rate, origin, r }
    };
    let (mut best, mut step) = (at(rate), step);
    for _ in 0..12 {
        step /= 2.0;
        for other in [at(best.rate - step), at(best.rate + step)] {
            if other.r > best.r {
                best = other;
            }
        }
    }
    best
}
