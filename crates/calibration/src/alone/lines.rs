//! Spectral lines of the platter angle as a function of the sector number.
//!
//! In a zone, the angle at which a sector passes the head advances by one revolution plus the skew
//! per track, so it is a sawtooth of constant pitch over the sectors. The strongest line of `exp(2
//! pi i angle)` lies at (1 + skew) / (sectors per track), whichever sectors the trace requested.

use std::f64::consts::TAU;

/// Sector of a request, and the angle at which it passed the head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SectorAngle {
    pub(super) sector: f64,
    /// Platter angle in revolutions since the start of the trace, including whole revolutions.
    pub(super) angle: f64,
}

/// Line of angles: `angle = origin + rate * sector`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TrackLine {
    /// Slope of the angle, in revolutions per sector.
    pub(super) revolutions_per_sector: f64,
    /// Angle of sector 0, in revolutions.
    pub(super) origin_angle: f64,
    /// Agreement of the points with the line: length of the mean residual vector, 1 if all angles
    /// agree.
    pub(super) agreement: f64,
}

impl TrackLine {
    /// Returns the difference between an angle and the line, in revolutions from -0.5 to 0.5.
    pub(super) fn residual(&self, point: &SectorAngle) -> f64 {
        wrap_angle(point.angle - self.origin_angle - self.revolutions_per_sector * point.sector)
    }
}

/// Wraps an angle to the range from -0.5 to 0.5 revolutions.
pub(super) fn wrap_angle(angle: f64) -> f64 {
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
    pub(super) revolutions_per_sector: f64,
    /// Sum of the blocks' squared resultants, each divided by its number of points. It is close to
    /// the number of blocks by chance, and close to the number of points if all angles agree.
    pub(super) power: f64,
    /// Number of independent rates that were tried.
    pub(super) trial_count: f64,
}

/// Finds the strongest line between two rates. `blocks` are the indices of points that share an
/// origin.
pub(super) fn strongest_line(
    points: &[SectorAngle],
    blocks: &[std::ops::Range<usize>],
    (low, high): (f64, f64),
) -> BlockLine {
    let (first, span) = first_and_span(points);
    let step = 1.0 / (3.0 * span);
    let steps = ((high - low) / step).ceil().max(1.0) as usize;
    let mut best = BlockLine {
        revolutions_per_sector: low,
        power: 0.0,
        trial_count: (high - low) * span,
    };
    let mut wheel = PhasorBank::new(points, first, low, step);
    for number in 0..=steps {
        let power = wheel.power(blocks);
        if power > best.power {
            (best.power, best.revolutions_per_sector) = (power, low + step * number as f64);
        }
        wheel.advance();
    }
    best
}

/// Returns the first sector of the points and the distance of the last one from it.
pub(super) fn first_and_span(points: &[SectorAngle]) -> (f64, f64) {
    let sectors = || points.iter().map(|point| point.sector);
    let first = sectors().fold(f64::MAX, f64::min);
    (first, (sectors().fold(f64::MIN, f64::max) - first).max(1.0))
}

/// Unit vectors of all points, advanced as the rate increases.
struct PhasorBank {
    real_parts: Vec<f64>,
    imaginary_parts: Vec<f64>,
    step_real_parts: Vec<f64>,
    step_imaginary_parts: Vec<f64>,
}

impl PhasorBank {
    fn new(points: &[SectorAngle], first: f64, rate: f64, step: f64) -> Self {
        let vector = |angle: f64| libm::sincos(TAU * angle);
        let begin = |point: &SectorAngle| vector(point.angle - rate * (point.sector - first));
        let turn = |point: &SectorAngle| vector(-step * (point.sector - first));
        let (im, re) = points.iter().map(begin).unzip();
        let (turn_im, turn_re) = points.iter().map(turn).unzip();
        Self {
            real_parts: re,
            imaginary_parts: im,
            step_real_parts: turn_re,
            step_imaginary_parts: turn_im,
        }
    }

    fn power(&self, blocks: &[std::ops::Range<usize>]) -> f64 {
        let block = |range: &std::ops::Range<usize>| {
            let re: f64 = self.real_parts[range.clone()].iter().sum();
            let im: f64 = self.imaginary_parts[range.clone()].iter().sum();
            (re * re + im * im) / range.len().max(1) as f64
        };
        blocks.iter().map(block).sum()
    }

    fn advance(&mut self) {
        let turns = self.step_real_parts.iter().zip(&self.step_imaginary_parts);
        let vectors = self
            .real_parts
            .iter_mut()
            .zip(self.imaginary_parts.iter_mut());
        for ((re, im), (turn_re, turn_im)) in vectors.zip(turns) {
            (*re, *im) = (*re * turn_re - *im * turn_im, *re * turn_im + *im * turn_re);
        }
    }
}

/// Finds the maximum of the line near a rate.
pub(super) fn refine_line(points: &[SectorAngle], rate: f64, step: f64) -> TrackLine {
    let at = |rate: f64| {
        let angles = points.iter().map(|point| point.angle - rate * point.sector);
        let (r, origin) = mean_direction(angles);
        TrackLine {
            revolutions_per_sector: rate,
            origin_angle: origin,
            agreement: r,
        }
    };
    let (mut best, mut step) = (at(rate), step);
    for _ in 0..12 {
        step /= 2.0;
        for other in [
            at(best.revolutions_per_sector - step),
            at(best.revolutions_per_sector + step),
        ] {
            if other.agreement > best.agreement {
                best = other;
            }
        }
    }
    best
}
