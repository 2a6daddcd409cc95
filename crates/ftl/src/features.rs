//! What a drive does beside mapping and collecting.

use crate::specification::{Impossible, Specification};

/// Which die takes the next program unit of a frontier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Allocation {
    /// The dies in turn.
    #[default]
    InTurn,
    /// The one that the device [prefers](crate::Ftl::prefer_die), if its rows of the open
    /// superblock are not used up; else the one with the fewest rows used.
    NextFree,
}

/// A part of the drive that holds one bit a cell, and takes the host's writes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlcCache {
    /// Bits of a cell elsewhere: 3 (TLC) or 4 (QLC). A superblock of the cache holds
    /// this many times less.
    pub bits: u32,
    /// Superblocks that are always of the cache, and hold nothing else.
    pub fixed_superblocks: u32,
    /// The most superblocks that join it while the drive has unmapped units.
    pub dynamic_superblocks: u32,
}

/// What a drive does beside mapping and collecting; by default nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Units that the layer writes for itself: pages of its map, a ring of journal pages.
    pub system_units: u32,
    /// Which die takes what is written next.
    pub allocation: Allocation,
    /// A cache of one bit a cell.
    pub cache: Option<SlcCache>,
    /// Program units of a row of dies of which one is parity, which holds no data.
    pub parity: Option<u32>,
    /// Keep account of what survives a power cut; memory for what changed since the last
    /// journal.
    pub power_cuts: bool,
    /// Units of a random past have no addresses until the host touches them; memory for
    /// what is touched.
    pub anonymous: bool,
}

impl Features {
    /// Frontiers beside those of the specification: the layer's own, the cache's.
    pub(crate) fn frontiers(&self) -> u32 {
        u32::from(self.system_units > 0) + u32::from(self.cache.is_some())
    }

    /// Units of so many that hold data.
    pub(crate) fn data_units(&self, units: u32) -> u32 {
        match self.parity {
            None => units,
            Some(stripe) => units / stripe * (stripe - 1),
        }
    }

    pub(crate) fn fixed_superblocks(&self) -> u32 {
        self.cache.map_or(0, |cache| cache.fixed_superblocks)
    }

    pub(crate) fn check(&self, specification: &Specification) -> Result<(), Impossible> {
        let dies = specification.geometry.dies;
        if let Some(stripe) = (self.parity).filter(|&it| it < 2 || !dies.is_multiple_of(it)) {
            return Err(Impossible::UnevenParity { stripe, dies });
        }
        let Some(cache) = &self.cache else {
            return Ok(());
        };
        let program_units = specification.geometry.program_units;
        if cache.bits < 2 {
            return Err(Impossible::FewBits(cache.bits));
        }
        if !program_units.is_multiple_of(cache.bits) {
            return Err(Impossible::UnevenCache {
                program_units,
                bits: cache.bits,
            });
        }
        Ok(())
    }
}
