//! Virtual time of a simulation.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Point in virtual time or duration, in whole nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// Start of every simulation, and duration of zero.
    pub const ZERO: Self = Self(0);
    /// Largest time, which is never reached.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns a duration of a whole number of milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000_000)
    }

    /// Returns the duration in milliseconds, for display.
    pub fn as_millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the duration in seconds, for rates and for display.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.6} ms", self.as_millis())
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Self;
    /// Subtracts a time.
    ///
    /// # Panics
    ///
    /// If `other` is the later time, because time does not run backwards.
    fn sub(self, other: Self) -> Self {
        match self.0.checked_sub(other.0) {
            Some(span) => Self(span),
            None => panic!("{other} is later than {self}"),
        }
    }
}

impl std::iter::Sum for Time {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}
