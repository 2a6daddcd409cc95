//! Times and durations in whole nanoseconds.

/// Point in time or duration, in whole nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Nanoseconds(pub u64);

impl Nanoseconds {
    /// Duration of zero nanoseconds.
    pub const ZERO: Self = Self(0);

    /// Reports whether the duration is zero.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns a duration of a whole number of milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000_000)
    }

    /// Returns the duration in seconds, for rates and for display.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the duration since an earlier time, or zero if `earlier` is the later of the two.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add for Nanoseconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl std::iter::Sum for Nanoseconds {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, |total, span| total + span)
    }
}
