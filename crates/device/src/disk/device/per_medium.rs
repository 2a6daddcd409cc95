//! Conversion between host sectors and medium sectors.

use strength_reduce::StrengthReducedU64;

/// Number of host sectors in one sector of the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct PerMedium(StrengthReducedU64);

impl PerMedium {
    pub(super) fn new(sectors: u32) -> Self {
        Self(StrengthReducedU64::new(u64::from(sectors)))
    }

    #[inline]
    pub(super) fn get(self) -> u64 {
        self.0.get()
    }

    /// Returns the medium sector that holds a host sector.
    #[inline]
    pub(super) fn down(self, sector: u64) -> u64 {
        sector / self.0
    }

    /// Returns the end (exclusive) of the medium sectors that hold host sectors up to `end`.
    #[inline]
    pub(super) fn up(self, end: u64) -> u64 {
        (end + (self.get() - 1)) / self.0
    }

    /// Tests whether a host sector is the first one of a medium sector.
    #[inline]
    pub(super) fn begins(self, sector: u64) -> bool {
        sector % self.0 == 0
    }
}
