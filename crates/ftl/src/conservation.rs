//! What is always true of a translation layer.

use crate::ftl::Ftl;

/// A law that the layer's arrays break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A logical unit's physical one is not its own, or not valid.
    Inverse(u32),
    /// A superblock's count is not that of its bits.
    Count {
        /// The superblock.
        superblock: u32,
        /// Its count.
        counted: u32,
        /// Its bits.
        bits: u32,
    },
    /// Valid units are not the mapped ones.
    Mapped {
        /// Units counted valid.
        valid: u64,
        /// Units mapped.
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
    /// Looks at every unit: map and reverse map are inverse, counts are those of the
    /// bitmap, and valid units are the mapped ones.
    ///
    /// # Errors
    /// With the first law that is broken.
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

    /// Units that have a place, valid or not: programmed and not erased since, if all that
    /// was placed is programmed.
    pub fn placed_units(&self) -> u64 {
        let written = self
            .superblocks
            .iter()
            .map(|block| u64::from(block.written));
        written.sum()
    }

    /// For each count, the closed superblocks with so many valid units.
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
