//! Conversion between host sectors and medium sectors.

use strength_reduce::StrengthReducedU64;

/// Number of host sectors in one sector of the medium.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediumSectors(StrengthReducedU64);

impl MediumSectors {
    pub(super) fn new(sectors: u32) -> Self {
        Self(StrengthReducedU64::new(u64::from(sectors)))
    }

    #[inline]
    pub(super) fn sectors_per_medium_sector(self) -> u64 {
        self.0.get()
    }

    #[inline]
    pub(super) fn round_down(self, sector: u64) -> u64 {
        sector / self.0
    }

    /// Returns the end (exclusive) of the medium sectors that hold host sectors up to `end`.
    #[inline]
    pub(super) fn round_up(self, end: u64) -> u64 {
        (end + (self.sectors_per_medium_sector() - 1)) / self.0
    }

    #[inline]
    pub(super) fn is_boundary(self, sector: u64) -> bool {
        sector % self.0 == 0
    }
}
