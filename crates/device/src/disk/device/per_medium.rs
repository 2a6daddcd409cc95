//! Sectors of the host on those of the medium.

use strength_reduce::StrengthReducedU64;

/// How many sectors of the host are on one of the medium.
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

    /// The sector of the medium that a sector of the host is on.
    #[inline]
    pub(super) fn down(self, sector: u64) -> u64 {
        sector / self.0
    }

    /// The sector of the medium behind those that sectors of the host up to here are on.
    #[inline]
    pub(super) fn up(self, end: u64) -> u64 {
        (end + (self.get() - 1)) / self.0
    }

    /// Whether a sector of the medium begins with this one of the host.
    #[inline]
    pub(super) fn begins(self, sector: u64) -> bool {
        sector % self.0 == 0
    }
}
