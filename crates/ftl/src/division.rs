//! Conversion of physical units to superblocks, dies and rows. It runs for each programmed unit;
//! division by a known number needs only a multiplication.

use strength_reduce::StrengthReducedU32;

use crate::specification::Geometry;

#[derive(Debug, Clone, Copy)]
pub(crate) struct GeometryDivision {
    superblock_units: StrengthReducedU32,
    program_units: StrengthReducedU32,
    dies: StrengthReducedU32,
}

impl GeometryDivision {
    /// Creates the divisors for a geometry whose counts are at least 1.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            superblock_units: StrengthReducedU32::new(geometry.superblock_units()),
            program_units: StrengthReducedU32::new(geometry.units_per_program),
            dies: StrengthReducedU32::new(geometry.die_count),
        }
    }

    /// Returns the superblock of a physical unit, and the unit's offset in it.
    pub(crate) fn split_by_superblock(&self, physical: u32) -> (u32, u32) {
        StrengthReducedU32::div_rem(physical, self.superblock_units)
    }

    /// Returns the program unit of an offset, and the position in it, outside the SLC cache.
    pub(crate) fn split_by_program(&self, offset: u32) -> (u32, u32) {
        StrengthReducedU32::div_rem(offset, self.program_units)
    }

    /// Returns the row and the die of a program unit.
    pub(crate) fn split_by_die(&self, program: u32) -> (u32, u32) {
        StrengthReducedU32::div_rem(program, self.dies)
    }
}
