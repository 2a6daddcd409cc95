//! Invariants of a translation layer, and their check.

use crate::ftl::Ftl;

/// Broken invariant of the translation layer's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokenInvariant {
    /// The physical unit of this logical unit belongs to another one, or is not valid.
    ReverseMap(u32),
    /// The valid count of a superblock differs from its bitmap.
    ValidCount {
        /// Index of the superblock with the wrong count.
        superblock: u32,
        /// Valid count that the superblock keeps.
        counted: u32,
        /// Number of set bits in the superblock's bitmap.
        bits: u32,
    },
    /// The number of valid mapping units differs from the number of mapped ones.
    MappedCount {
        /// Number of valid mapping units in all superblocks.
        valid: u64,
        /// Number of mapped logical units.
        mapped: u64,
    },
}

impl std::fmt::Display for BrokenInvariant {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ReverseMap(value) => write!(
                formatter,
                "logical unit {value}: its physical unit is another's, or invalid"
            ),
            Self::ValidCount {
                superblock,
                counted,
                bits,
            } => write!(
                formatter,
                "superblock {superblock}: {counted} units counted valid, {bits} bits set"
            ),
            Self::MappedCount { valid, mapped } => {
                write!(formatter, "{valid} valid units, {mapped} mapped")
            }
        }
    }
}

impl std::error::Error for BrokenInvariant {}

impl Ftl {
    /// Checks the invariants on all mapping units: map and reverse map are inverse, valid counts
    /// agree with the bitmap, and the number of valid units is that of mapped ones.
    ///
    /// # Errors
    /// With the first broken invariant.
    pub fn check_invariants(&self) -> Result<(), BrokenInvariant> {
        for logical in 0..self.map.count() {
            let Some(physical) = self.effective_entry(logical).checked_sub(1) else {
                continue;
            };
            let (superblock, offset) = self.division.split_by_superblock(physical);
            let word = self.valid_bitmap
                [(superblock * self.bitmap_words_per_superblock + offset / 64) as usize];
            if self.reverse_entry(physical) != logical + 1 || word >> (offset % 64) & 1 == 0 {
                return Err(BrokenInvariant::ReverseMap(logical));
            }
        }
        let mut valid = 0;
        for (superblock, words) in (0..).zip(
            self.valid_bitmap
                .chunks(self.bitmap_words_per_superblock as usize),
        ) {
            let set: u32 = words.iter().map(|word| word.count_ones()).sum();
            let bits = set + self.untouched_count_in(superblock);
            let counted = self.superblocks[superblock as usize].valid_count;
            if bits != counted {
                return Err(BrokenInvariant::ValidCount {
                    superblock,
                    counted,
                    bits,
                });
            }
            valid += u64::from(bits);
        }
        let mapped = (0..self.map.count())
            .filter(|&logical| self.is_untouched(logical) || self.effective_entry(logical) != 0)
            .count() as u64;
        if valid != mapped || mapped != self.mapped_count {
            return Err(BrokenInvariant::MappedCount {
                valid,
                mapped: self.mapped_count,
            });
        }
        Ok(())
    }

    /// Returns the number of physical units placed since their last erase, valid or not. These are
    /// all programmed units, plus those placed whose program has not ended.
    pub fn placed_units(&self) -> u64 {
        let written = self
            .superblocks
            .iter()
            .map(|block| u64::from(block.placed_count));
        written.sum()
    }

    /// Returns the number of closed superblocks for each valid count.
    pub fn closed_count_by_valid(&self) -> Vec<u32> {
        let mut histogram = vec![0; self.superblock_units as usize + 1];
        for block in &self.superblocks {
            if block.state == crate::ftl::SuperblockState::Closed {
                histogram[block.valid_count as usize] += 1;
            }
        }
        histogram
    }
}
