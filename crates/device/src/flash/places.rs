//! Physical place of a mapping unit: its die, plane and page.

use super::specification::FlashGeometry;
use strength_reduce::StrengthReducedU32;

/// Physical page that holds a mapping unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PagePosition {
    pub(super) die: u32,
    pub(super) plane: u32,
    /// Index of the page within its word line.
    pub(super) page_in_plane: u32,
    /// Whether the page is in the SLC cache (one bit per cell).
    pub(super) is_in_slc_cache: bool,
    /// Index of the word line within its plane of the die.
    pub(super) word_line: u32,
}

/// Divisors that convert numbers of physical units to places.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlashAddressMap {
    superblock_units: StrengthReducedU32,
    program_units: StrengthReducedU32,
    cache_program_units: StrengthReducedU32,
    dies: StrengthReducedU32,
    channels: StrengthReducedU32,
    page_units: StrengthReducedU32,
    planes: StrengthReducedU32,
    rows_per_superblock: u32,
}

impl FlashAddressMap {
    pub(super) fn new(geometry: &FlashGeometry) -> Self {
        let program_units = geometry.program_units();
        let superblock_units = geometry.die_count() * program_units * geometry.word_lines_per_block;
        let reduced = StrengthReducedU32::new;
        Self {
            superblock_units: reduced(superblock_units),
            program_units: reduced(program_units),
            cache_program_units: reduced(program_units / geometry.pages_per_word_line),
            dies: reduced(geometry.die_count()),
            channels: reduced(geometry.channel_count),
            page_units: reduced(geometry.page_units()),
            planes: reduced(geometry.planes_per_die),
            rows_per_superblock: geometry.word_lines_per_block,
        }
    }

    /// Returns the channel of a die. Dies are numbered round-robin over channels.
    #[inline]
    pub(super) fn channel_of_die(&self, die: u32) -> u32 {
        die % self.channels
    }

    #[inline]
    pub(super) fn superblock_of(&self, physical: u32) -> u32 {
        physical / self.superblock_units
    }

    /// Returns the place of a mapping unit on in-place media, whose units are distributed
    /// round-robin over dies.
    pub(super) fn locate_in_place(&self, logical: u32) -> PagePosition {
        let (word_line, die) = StrengthReducedU32::div_rem(logical, self.dies);
        PagePosition {
            die,
            plane: 0,
            page_in_plane: 0,
            is_in_slc_cache: false,
            word_line,
        }
    }

    /// Returns the place of a physical unit. `cached` tells whether its superblock is in the SLC
    /// cache. The units of a program fill one page on each plane before the next page of the word
    /// line.
    #[inline]
    pub(super) fn locate(&self, physical: u32, cached: bool) -> PagePosition {
        let (superblock, offset) = StrengthReducedU32::div_rem(physical, self.superblock_units);
        let program_units = match cached {
            true => self.cache_program_units,
            false => self.program_units,
        };
        let (program, index) = StrengthReducedU32::div_rem(offset, program_units);
        let (row, die) = StrengthReducedU32::div_rem(program, self.dies);
        let (page, plane) = StrengthReducedU32::div_rem(index / self.page_units, self.planes);
        PagePosition {
            die,
            plane,
            page_in_plane: page,
            is_in_slc_cache: cached,
            word_line: superblock * self.rows_per_superblock + row,
        }
    }
}
