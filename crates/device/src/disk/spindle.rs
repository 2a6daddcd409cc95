//! Rotation of a spindle with exact period and phase, in integers. One multiplication gives the
//! angle at any time, and no error accumulates.

use diskperf_sim::Time;
use std::ops::{Add, Sub};
use strength_reduce::StrengthReducedU64;

/// Angle, or rotation by less than a revolution, in parts of 2^64 of a revolution. Sums wrap
/// around, as angles do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RotationAngle(pub u64);

/// Parts of a revolution in the unit of [`RotationAngle`]: 2^64.
const UNITS_PER_REVOLUTION: f64 = 18_446_744_073_709_551_616.0;

impl RotationAngle {
    /// Angle of zero, and rotation by nothing.
    pub const ZERO: Self = Self(0);

    /// Converts a number of revolutions to an angle, without the whole revolutions. A negative
    /// number turns back.
    ///
    /// # Panics
    ///
    /// When the number is not finite.
    pub fn from_revolutions(revolutions: f64) -> Self {
        assert!(revolutions.is_finite(), "a turn by {revolutions}");
        // 2^64 itself, of a share that rounds to a whole one, saturates.
        Self((revolutions.rem_euclid(1.0) * UNITS_PER_REVOLUTION) as u64)
    }

    /// Returns the angle in revolutions, from 0 to 1.
    pub fn to_revolutions(self) -> f64 {
        self.0 as f64 / UNITS_PER_REVOLUTION
    }

    /// Returns the angle multiplied by `count`, modulo a revolution.
    #[inline]
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.wrapping_mul(count))
    }
}

impl Add for RotationAngle {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

impl Sub for RotationAngle {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

/// Valid range of a spindle's period, in ns: 60,000 to 60 revolutions per minute.
pub const PERIOD_NS_RANGE: std::ops::RangeInclusive<f64> = 1e6..=1e9;

/// Rotation of a disk: period, and angle at time zero.
#[derive(Clone, Copy, Debug)]
pub struct Spindle {
    /// Angular speed, in parts of 2^64 of a revolution per nanosecond.
    angle_per_ns: StrengthReducedU64,
    /// Angle of the platters at time zero.
    phase_angle: RotationAngle,
    revolution_time: Time,
}

/// Tolerance for a sector that has just begun to pass, in ns. Times are whole nanoseconds, and
/// rounding must not make a contiguous sector miss its revolution.
const CATCH_TOLERANCE_NS: u64 = 2;

impl Spindle {
    /// Creates a spindle with a given period, at angle `phase` at time zero. The period is exact to
    /// some parts in 10^12.
    ///
    /// # Panics
    ///
    /// When the period is outside [`PERIOD_NS_RANGE`].
    pub fn new(period_ns: f64, phase: RotationAngle) -> Self {
        assert!(
            PERIOD_NS_RANGE.contains(&period_ns),
            "a revolution of {period_ns} ns"
        );
        Self {
            angle_per_ns: StrengthReducedU64::new((UNITS_PER_REVOLUTION / period_ns + 0.5) as u64),
            phase_angle: phase,
            revolution_time: Time((period_ns + 0.5) as u64),
        }
    }

    /// Creates a spindle with a nominal speed in revolutions per minute, at angle `phase` at time
    /// zero.
    ///
    /// # Panics
    ///
    /// When the period is outside [`PERIOD_NS_RANGE`].
    pub fn from_rpm(rpm: f64, phase: RotationAngle) -> Self {
        Self::new(60e9 / rpm, phase)
    }

    /// Returns the spindle rotated so that it is at `angle` at time `now`.
    #[must_use]
    pub fn with_angle_at(self, now: Time, angle: RotationAngle) -> Self {
        let turned = RotationAngle(now.0.wrapping_mul(self.angle_per_ns.get()));
        Self {
            phase_angle: angle - turned,
            ..self
        }
    }

    /// Returns the time of one revolution, to the nearest nanosecond.
    pub fn revolution_time(&self) -> Time {
        self.revolution_time
    }

    /// Returns the time of one revolution that the spindle's integer speed yields, in ns with
    /// fraction.
    pub fn exact_period_ns(&self) -> f64 {
        UNITS_PER_REVOLUTION / self.angle_per_ns.get() as f64
    }

    /// Returns the angle of the spindle at time `now`.
    #[inline]
    pub fn angle_at(&self, now: Time) -> RotationAngle {
        self.phase_angle + RotationAngle(now.0.wrapping_mul(self.angle_per_ns.get()))
    }

    /// Returns the time from `now` until `angle` comes by: less than a revolution. Returns 0 if the
    /// angle came by within the last two nanoseconds.
    #[inline]
    pub fn time_until(&self, now: Time, angle: RotationAngle) -> Time {
        let ahead = angle - self.angle_at(now);
        if ahead.0.wrapping_neg() <= CATCH_TOLERANCE_NS * self.angle_per_ns.get() {
            return Time::ZERO;
        }
        self.turning_time(ahead.0)
    }

    /// Returns the time until an arc of `parts` has passed that begins at angle `first`, when
    /// `first` passes now. Rounds up to a whole nanosecond. The maximum is a revolution less one
    /// part.
    #[inline]
    pub fn passing_times(&self, now: Time, first: RotationAngle, parts: u64) -> Time {
        let begun = self.angle_at(now) - first;
        let left = match begun.0 as i64 {
            0.. => parts.saturating_sub(begun.0),
            _ => parts.saturating_add(begun.0.wrapping_neg()),
        };
        self.turning_time(left)
    }

    /// Returns the time of a rotation by `parts` of 2^64 of a revolution, rounded up to a whole
    /// nanosecond.
    #[inline]
    pub fn turning_time(&self, parts: u64) -> Time {
        match parts {
            0 => Time::ZERO,
            _ => Time((parts - 1) / self.angle_per_ns + 1),
        }
    }
}
