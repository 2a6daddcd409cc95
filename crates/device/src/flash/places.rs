//! Physical place of a mapping unit: its die, plane and page.

use super::specification::FlashGeometry;
use strength_reduce::StrengthReducedU32;

/// Physical page that holds a mapping unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) die: u32,
    pub(super) plane: u32,
    /// Index of the page within its word line.
    pub(super) page: u32,
    /// Whether the page is in the SLC cache (one bit per cell).
    pub(super) cached: bool,
    /// Index of the word line within its plane of the die.
    pub(super) word_line: u32,
}

/// Divisors that convert numbers of physical units to places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    superblock_units: StrengthReducedU32,
    program_units: StrengthReducedU32,
    cache_program_units: StrengthReducedU32,
    dies: StrengthReducedU32,
    channels: StrengthReducedU32,
    page_units: StrengthReducedU32,
    planes: StrengthReducedU32,
    rows: u32,
}

impl Places {
    pub(super) fn new(geometry: &FlashGeometry) -> Self {
        let program_units = geometry.program_units();
        let superblock_units = geometry.dies() * program_units * geometry.word_lines;
        let reduced = StrengthReducedU32::new;
        Self {
            superblock_units: reduced(superblock_units),
            program_units: reduced(program_units),
            cache_program_units: reduced(program_units / geometry.pages_per_word_line),
            dies: reduced(geometry.dies()),
            channels: reduced(geometry.channels),
            page_units: reduced(geometry.page_units()),
            planes: reduced(geometry.planes),
            rows: geometry.word_lines,
        }
    }

    /// Returns the channel of a die. Dies are numbered round-robin over channels.
    #[inline]
    pub(super) fn channel(&self, die: u32) -> u32 {
        die % self.channels
    }

    /// Returns the superblock of a physical unit.
    #[inline]
    pub(super) fn superblock(&self, physical: u32) -> u32 {
        physical / self.superblock_units
    }

    /// Returns the place of a mapping unit on in-place media, whose units are distributed
    /// round-robin over dies.
    pub(super) fn in_place(&self, logical: u32) -> Place {
        let (word_line, die) = StrengthReducedU32::div_rem(logical, self.dies);
        Place {
            die,
            plane: 0,
            page: 0,
            cached: false,
            word_line,
        }
    }

    /// Returns the place of a physical unit. `cached` tells whether its superblock is in the SLC
    /// cache. The units of a program fill one page on each plane before the next page of the word
    /// line.
    #[inline]
    pub(super) fn of(&self, physical: u32, cached: bool) -> Place {
        let (superblock, offset) = StrengthReducedU32::div_rem(physical, self.superblock_units);
        let program_units = match cached {
            true => self.cache_program_units,
            false => self.program_units,
        };
        let (program, index) = StrengthReducedU32::div_rem(offset, program_units);
        let (row, die) = StrengthReducedU32::div_rem(program, self.dies);
        let (page, plane) = StrengthReducedU32::div_rem(index / self.page_units, self.planes);
        Place {
            die,
            plane,
            page,
            cached,
            word_line: superblock * self.rows + row,
        }
    }
}
