//! Optional features of a translation layer beside mapping and garbage collection.

use crate::specification::{ImpossibleSpecification, Specification};

/// Choice of the die for the next program unit of a write frontier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DieAllocation {
    /// The dies take turns for program units (round robin).
    #[default]
    RoundRobin,
    /// The die that the device [prefers](crate::Ftl::prefer_die), if the open superblock has a row
    /// left on it; else the die with the fewest rows used.
    PreferredDie,
}

/// SLC cache: a part of the drive with one bit per cell, which takes host writes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlcCache {
    /// Bits per cell in the main area: 3 (TLC) or 4 (QLC). A superblock of the cache holds this
    /// many times less.
    pub bits_per_cell: u32,
    /// Number of superblocks that always belong to the SLC cache, and hold nothing else.
    pub fixed_superblocks: u32,
    /// Maximum number of superblocks that join the SLC cache while the drive has unmapped units.
    pub dynamic_superblocks: u32,
}

/// Optional features of a translation layer. All are off by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Number of mapping units that the layer writes for itself: pages of its map, and a ring of
    /// journal pages.
    pub system_units: u32,
    /// Choice of the die for the next write.
    pub allocation: DieAllocation,
    /// SLC cache, if the drive has one.
    pub slc_cache: Option<SlcCache>,
    /// Number of program units per parity stripe in a row of dies, of which one holds parity.
    /// `None` disables parity.
    pub parity_stripe_programs: Option<u32>,
    /// Whether the layer tracks what survives a power cut. Needs memory for changes since the last
    /// journal.
    pub tracks_power_cuts: bool,
    /// Whether mapping units of random preconditioning have no addresses until the host touches
    /// them. Needs memory for touched units only.
    pub anonymous_precondition: bool,
}

impl Features {
    /// Returns the number of write frontiers that the features add: the layer's own, and that of
    /// the SLC cache.
    pub(crate) fn added_frontier_count(&self) -> u32 {
        u32::from(self.system_units > 0) + u32::from(self.slc_cache.is_some())
    }

    /// Returns how many of `units` physical units hold data rather than parity.
    pub(crate) fn data_units(&self, units: u32) -> u32 {
        match self.parity_stripe_programs {
            None => units,
            Some(stripe) => units / stripe * (stripe - 1),
        }
    }

    pub(crate) fn fixed_superblocks(&self) -> u32 {
        self.slc_cache.map_or(0, |cache| cache.fixed_superblocks)
    }

    pub(crate) fn check(
        &self,
        specification: &Specification,
    ) -> Result<(), ImpossibleSpecification> {
        let dies = specification.geometry.die_count;
        if let Some(stripe) =
            (self.parity_stripe_programs).filter(|&it| it < 2 || !dies.is_multiple_of(it))
        {
            return Err(ImpossibleSpecification::UnevenParity { stripe, dies });
        }
        let Some(cache) = &self.slc_cache else {
            return Ok(());
        };
        let program_units = specification.geometry.units_per_program;
        if cache.bits_per_cell < 2 {
            return Err(ImpossibleSpecification::TooFewBitsPerCell(
                cache.bits_per_cell,
            ));
        }
        if !program_units.is_multiple_of(cache.bits_per_cell) {
            return Err(ImpossibleSpecification::UnevenCache {
                program_units,
                bits: cache.bits_per_cell,
            });
        }
        Ok(())
    }
}
