//! Rotation as an absolute angle, computed from the time in integers so that
//! nothing accumulates.

use diskperf_sim::Time;

/// An angle, in parts of [`CIRCLE`] of a revolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Angle(u64);

/// One revolution: at one hundredth of a revolution per minute, one
/// nanosecond turns a drive by one part.
pub const CIRCLE: u64 = 6_000_000_000_000;

impl Angle {
    /// No turn at all.
    pub const ZERO: Self = Self(0);

    /// Where a slot starts, of a track divided into `slots`.
    #[inline]
    pub fn of_slot(slot: u32, slots: u32) -> Self {
        Self(
            (CIRCLE / u64::from(slots)) * u64::from(slot)
                + (CIRCLE % u64::from(slots)) * u64::from(slot) / u64::from(slots),
        )
    }

    /// A share of a revolution, in parts of 2^32.
    pub fn of_share(share: u32) -> Self {
        Self(((u128::from(CIRCLE) * u128::from(share)) >> 32) as u64)
    }
}

/// How a drive turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// Revolutions per minute, times a hundred.
    speed: u64,
    /// The angle at time zero.
    phase: u64,
}

/// The fastest spindle that the arithmetic holds for.
pub const FASTEST_RPM: f64 = 30_000.0;

impl Rotation {
    /// A spindle of this speed, in hundredths of a revolution per minute, at
    /// this angle at time zero.
    ///
    /// # Panics
    ///
    /// When it stands still or turns faster than [`FASTEST_RPM`].
    pub fn new(hundredths_of_rpm: u64, phase: Angle) -> Self {
        assert!(
            hundredths_of_rpm > 0 && hundredths_of_rpm <= (FASTEST_RPM * 100.0) as u64,
            "a spindle of {hundredths_of_rpm}/100 revolutions per minute"
        );
        Self {
            speed: hundredths_of_rpm,
            phase: phase.0 % CIRCLE,
        }
    }

    /// The time of one revolution, to the next whole nanosecond.
    pub fn period(&self) -> Time {
        Time(CIRCLE.div_ceil(self.speed))
    }

    /// The angle at a moment.
    #[inline]
    pub fn angle(&self, now: Time) -> Angle {
        // After CIRCLE nanoseconds every speed in hundredths has made a whole
        // number of revolutions, and below that the product fits.
        let turned = (now.0 % CIRCLE) * self.speed % CIRCLE;
        let angle = turned + self.phase;
        Angle(if angle >= CIRCLE {
            angle - CIRCLE
        } else {
            angle
        })
    }

    /// From `now` until `angle` comes by: less than a revolution, and nothing
    /// if it is there.
    #[inline]
    pub fn until(&self, now: Time, angle: Angle) -> Time {
        self.between(self.angle(now), angle)
    }

    /// How long it turns from one angle to the next time it is at another.
    #[inline]
    pub fn between(&self, from: Angle, to: Angle) -> Time {
        let turn = if to.0 >= from.0 {
            to.0 - from.0
        } else {
            to.0 + CIRCLE - from.0
        };
        Time(turn.div_ceil(self.speed))
    }

    /// How long `count` of a track's `slots` take to pass.
    #[inline]
    pub fn slots(&self, count: u32, slots: u32) -> Time {
        let parts = u128::from(CIRCLE) * u128::from(count);
        let per = u128::from(self.speed) * u128::from(slots);
        // Whole revolutions and more occur in long transfers only.
        match u64::try_from(parts) {
            Ok(parts) => Time(parts.div_ceil(self.speed * u64::from(slots))),
            Err(_) => Time(parts.div_ceil(per) as u64),
        }
    }

    /// Which slot is under the heads.
    #[inline]
    pub fn slot_at(&self, now: Time, slots: u32) -> u32 {
        let angle = u128::from(self.angle(now).0);
        ((angle * u128::from(slots)) / u128::from(CIRCLE)) as u32
    }
}
