//! Invariants of a translation layer, and their check.

use crate::ftl::Ftl;

/// Broken invariant of the translation layer's tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// The physical unit of this logical unit belongs to another one, or is not valid.
    Inverse(u32),
    /// The valid count of a superblock differs from its bitmap.
    Count {
        /// Index of the superblock with the wrong count.
        superblock: u32,
        /// Valid count that the superblock keeps.
        counted: u32,
        /// Number of set bits in the superblock's bitmap.
        bits: u32,
    },
    /// The number of valid mapping units differs from the number of mapped ones.
    Mapped {
        /// Number of valid mapping units in all superblocks.
        valid: u64,
        /// Number of mapped logical units.
        mapped: u64,
    },
}

impl std::fmt::Display for Broken {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inverse(value) => write!(
                formatter,
                "logical unit {value}: its physical unit is another's, or invalid"
            ),
            Self::Count {
                superblock,
                counted,
                bits,
            } => write!(
                formatter,
                "superblock {superblock}: {counted} units counted valid, {bits} bits set"
            ),
            Self::Mapped { valid, mapped } => {
                write!(formatter, "{valid} valid units, {mapped} mapped")
            }
        }
    }
}

impl std::error::Error for Broken {}

impl Ftl {
    /// Checks the invariants on all mapping units: map and reverse map are inverse, valid counts
    /// agree with the bitmap, and the number of valid units is that of mapped ones.
    ///
    /// # Errors
    /// With the first broken invariant.
    pub fn check(&self) -> Result<(), Broken> {
        for logical in 0..self.map.count() {
            let Some(physical) = self.entry(logical).checked_sub(1) else {
                continue;
            };
            let (superblock, offset) = self.division.superblock(physical);
            let word = self.valid[(superblock * self.words + offset / 64) as usize];
            if self.owner(physical) != logical + 1 || word >> (offset % 64) & 1 == 0 {
                return Err(Broken::Inverse(logical));
            }
        }
        let mut valid = 0;
        for (superblock, words) in (0..).zip(self.valid.chunks(self.words as usize)) {
            let set: u32 = words.iter().map(|word| word.count_ones()).sum();
            let bits = set + self.untouched_in(superblock);
            let counted = self.superblocks[superblock as usize].valid;
            if bits != counted {
                return Err(Broken::Count {
                    superblock,
                    counted,
                    bits,
                });
            }
            valid += u64::from(bits);
        }
        let mapped = (0..self.map.count())
            .filter(|&logical| self.is_untouched(logical) || self.entry(logical) != 0)
            .count() as u64;
        if valid != mapped || mapped != self.mapped {
            return Err(Broken::Mapped {
                valid,
                mapped: self.mapped,
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
            .map(|block| u64::from(block.written));
        written.sum()
    }

    /// Returns the number of closed superblocks for each valid count.
    pub fn valid_histogram(&self) -> Vec<u32> {
        let mut histogram = vec![0; self.units as usize + 1];
        for block in &self.superblocks {
            if block.state == crate::ftl::State::Closed {
                histogram[block.valid as usize] += 1;
            }
        }
        histogram
    }
}
