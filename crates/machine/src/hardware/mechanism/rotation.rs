//! Rotation as an absolute angle, computed from the time in integers so that
//! nothing accumulates.

use diskperf_sim::Time;
use strength_reduce::StrengthReducedU64;

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
    pub fn of_slot(slot: u32, slots: impl Into<Slots>) -> Self {
        let slots = slots.into();
        if slot < SLOTS_THAT_FIT {
            return Self(slots.arc * u64::from(slot) / slots.divisor);
        }
        let parts = u128::from(slots.arc) * u128::from(slot);
        Self((parts / u128::from(slots.count())) as u64)
    }

    /// Where a slot ends. Behind the last of a track is the gap before the
    /// index, if it has one.
    #[inline]
    pub fn after_slot(slot: u32, slots: impl Into<Slots>) -> Self {
        Self(Self::of_slot(slot + 1, slots).0 % CIRCLE)
    }

    /// In parts of [`CIRCLE`].
    pub fn parts(self) -> u64 {
        self.0
    }

    /// A share of a revolution, in parts of 2^32.
    pub fn of_share(share: u32) -> Self {
        Self(((u128::from(CIRCLE) * u128::from(share)) >> 32) as u64)
    }
}

/// So many slots' angles, all but one, fit in 64 bits together.
const SLOTS_THAT_FIT: u32 = (u64::MAX / CIRCLE) as u32;

/// How many slots a track is divided into, or tracks a cylinder. Every
/// transfer divides by these, and a processor's division takes as long as ten
/// multiplications.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    divisor: StrengthReducedU64,
    /// What they share of the circle.
    arc: u64,
}

impl Slots {
    /// So many.
    ///
    /// # Panics
    ///
    /// When there are none.
    pub fn new(count: u32) -> Self {
        Self {
            divisor: StrengthReducedU64::new(u64::from(count)),
            arc: CIRCLE,
        }
    }

    /// With a gap between the last of them and the index, as long as this
    /// share of a revolution.
    ///
    /// # Panics
    ///
    /// When that leaves nothing for the slots.
    pub fn with_index_gap(self, share: f64) -> Self {
        assert!((0.0..1.0).contains(&share), "a gap of {share} revolutions");
        let gap = (CIRCLE as f64 * share + 0.5) as u64;
        Self {
            arc: CIRCLE - gap,
            ..self
        }
    }

    /// Whether something lies between the last slot and the index.
    pub fn has_index_gap(self) -> bool {
        self.arc < CIRCLE
    }

    /// How many.
    #[inline]
    pub fn count(self) -> u32 {
        self.divisor.get() as u32
    }

    /// How many wholes `number` makes, and what is left.
    #[inline]
    pub fn divide(self, number: u64) -> (u64, u32) {
        let (wholes, left) = StrengthReducedU64::div_rem(number, self.divisor);
        (wholes, left as u32)
    }
}

impl From<u32> for Slots {
    fn from(count: u32) -> Self {
        Self::new(count)
    }
}

impl PartialEq for Slots {
    fn eq(&self, other: &Self) -> bool {
        (self.count(), self.arc) == (other.count(), other.arc)
    }
}

impl Eq for Slots {}

/// How a drive turns.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// Revolutions per minute, times a hundred.
    speed: StrengthReducedU64,
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
            speed: StrengthReducedU64::new(hundredths_of_rpm),
            phase: phase.0 % CIRCLE,
        }
    }

    /// The same spindle, turned so that it is at this angle at some moment.
    pub fn turned_to(&self, now: Time, angle: Angle) -> Self {
        let turned = (now.0 % CIRCLE) * self.speed.get() % CIRCLE;
        Self {
            phase: (angle.0 + CIRCLE - turned) % CIRCLE,
            ..*self
        }
    }

    /// The time of one revolution, to the next whole nanosecond.
    pub fn period(&self) -> Time {
        self.turning(CIRCLE)
    }

    /// The same, exactly.
    pub fn exact_period_ns(&self) -> f64 {
        CIRCLE as f64 / self.speed.get() as f64
    }

    /// The angle at a moment.
    #[inline]
    pub fn angle(&self, now: Time) -> Angle {
        // After CIRCLE nanoseconds every speed in hundredths has made a whole
        // number of revolutions, and below that the product fits.
        let turned = (now.0 % CIRCLE) * self.speed.get() % CIRCLE;
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
        self.turning(turn)
    }

    /// How long it takes to turn by this much, which is at most a few
    /// revolutions, to the next whole nanosecond.
    #[inline]
    fn turning(&self, turn: u64) -> Time {
        Time((turn + (self.speed.get() - 1)) / self.speed)
    }

    /// How long `count` of a track's `slots` take to pass.
    #[inline]
    pub fn slots(&self, count: u32, slots: impl Into<Slots>) -> Time {
        let slots = slots.into();
        let parts = u128::from(slots.arc) * u128::from(count);
        // Whole revolutions and more occur in long transfers only.
        match u64::try_from(parts + u128::from(slots.count() - 1)) {
            Ok(parts) => self.turning(parts / slots.divisor),
            Err(_) => {
                let per = u128::from(self.speed.get()) * u128::from(slots.count());
                Time(parts.div_ceil(per) as u64)
            }
        }
    }

    /// Which slot is under the heads; the last one still where that is the gap
    /// behind it.
    #[inline]
    pub fn slot_at(&self, now: Time, slots: impl Into<Slots>) -> u32 {
        let slots = slots.into();
        let angle = self.angle(now).0;
        let slot = if slots.arc == CIRCLE && slots.count() <= SLOTS_THAT_FIT {
            (angle * u64::from(slots.count()) / CIRCLE) as u32
        } else {
            (u128::from(angle) * u128::from(slots.count()) / u128::from(slots.arc)) as u32
        };
        slot.min(slots.count() - 1)
    }
}
