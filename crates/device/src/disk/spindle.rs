//! Rotation with a true period and a true phase, in integers: one multiplication gives
//! the angle of any moment, and nothing accumulates.

use diskperf_sim::Time;
use std::ops::{Add, Sub};
use strength_reduce::StrengthReducedU64;

/// An angle, or a turn of less than a revolution, in parts of 2^64 of a revolution. Sums
/// wrap, as angles do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn(pub u64);

/// 2^64, the parts of a revolution.
const REVOLUTION: f64 = 18_446_744_073_709_551_616.0;

impl Turn {
    /// No turn at all.
    pub const ZERO: Self = Self(0);

    /// A number of revolutions, less the whole ones; a negative one turns back.
    ///
    /// # Panics
    ///
    /// When it is not finite.
    pub fn of_revolutions(revolutions: f64) -> Self {
        assert!(revolutions.is_finite(), "a turn by {revolutions}");
        // 2^64 itself, of a share that rounds to a whole one, saturates.
        Self((revolutions.rem_euclid(1.0) * REVOLUTION) as u64)
    }

    /// In revolutions, from 0 to 1.
    pub fn revolutions(self) -> f64 {
        self.0 as f64 / REVOLUTION
    }

    /// As many times as far.
    #[inline]
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.wrapping_mul(count))
    }
}

impl Add for Turn {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

impl Sub for Turn {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

/// The period of a spindle that the arithmetic holds for, in ns: 60,000 to 60 revolutions
/// a minute.
pub const PERIOD_NS: std::ops::RangeInclusive<f64> = 1e6..=1e9;

/// How a disk turns.
#[derive(Clone, Copy, Debug)]
pub struct Spindle {
    /// Parts of 2^64 of a revolution per nanosecond.
    rate: StrengthReducedU64,
    /// The angle at time zero.
    phase: Turn,
    period: Time,
}

/// A sector that began to pass less than this ago is still caught: moments are whole
/// nanoseconds, and what follows at once must not be missed by the fraction of one.
const CAUGHT_NS: u64 = 2;

impl Spindle {
    /// A spindle of this period, which is at this angle at time zero. The period holds to
    /// some parts in 10^12.
    ///
    /// # Panics
    ///
    /// When the period is outside [`PERIOD_NS`].
    pub fn new(period_ns: f64, phase: Turn) -> Self {
        assert!(
            PERIOD_NS.contains(&period_ns),
            "a revolution of {period_ns} ns"
        );
        Self {
            rate: StrengthReducedU64::new((REVOLUTION / period_ns + 0.5) as u64),
            phase,
            period: Time((period_ns + 0.5) as u64),
        }
    }

    /// A spindle of this nominal speed.
    ///
    /// # Panics
    ///
    /// When its period is outside [`PERIOD_NS`].
    pub fn of_rpm(rpm: f64, phase: Turn) -> Self {
        Self::new(60e9 / rpm, phase)
    }

    /// The same spindle, turned so that it is at this angle at some moment.
    #[must_use]
    pub fn turned_to(self, now: Time, angle: Turn) -> Self {
        let turned = Turn(now.0.wrapping_mul(self.rate.get()));
        Self {
            phase: angle - turned,
            ..self
        }
    }

    /// The time of one revolution, to the nearest whole nanosecond.
    pub fn period(&self) -> Time {
        self.period
    }

    /// The same, exactly.
    pub fn exact_period_ns(&self) -> f64 {
        REVOLUTION / self.rate.get() as f64
    }

    /// The angle at a moment.
    #[inline]
    pub fn angle(&self, now: Time) -> Turn {
        self.phase + Turn(now.0.wrapping_mul(self.rate.get()))
    }

    /// From `now` until `angle` comes by: less than a revolution, and nothing if it is
    /// there or was up to two nanoseconds ago.
    #[inline]
    pub fn until(&self, now: Time, angle: Turn) -> Time {
        let ahead = angle - self.angle(now);
        if ahead.0.wrapping_neg() <= CAUGHT_NS * self.rate.get() {
            return Time::ZERO;
        }
        self.turning(ahead.0)
    }

    /// How long this many parts take to pass whose first passes now: to the first whole
    /// nanosecond at which all of them have. A revolution less one part is the most.
    #[inline]
    pub fn passing(&self, now: Time, first: Turn, parts: u64) -> Time {
        let begun = self.angle(now) - first;
        let left = match begun.0 as i64 {
            0.. => parts.saturating_sub(begun.0),
            _ => parts.saturating_add(begun.0.wrapping_neg()),
        };
        self.turning(left)
    }

    /// How long a turn takes, to the next whole nanosecond.
    #[inline]
    pub fn turning(&self, parts: u64) -> Time {
        match parts {
            0 => Time::ZERO,
            _ => Time((parts - 1) / self.rate + 1),
        }
    }
}
