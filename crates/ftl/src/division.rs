//! Physical units to superblocks, dies and rows, for each unit that is programmed: a
//! division by a number that is known takes a multiplication.

use strength_reduce::StrengthReducedU32;

use crate::specification::Geometry;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Division {
    units: StrengthReducedU32,
    program_units: StrengthReducedU32,
    dies: StrengthReducedU32,
}

impl Division {
    /// Of a geometry whose counts are at least 1.
    pub(crate) fn new(geometry: &Geometry) -> Self {
        Self {
            units: StrengthReducedU32::new(geometry.superblock_units()),
            program_units: StrengthReducedU32::new(geometry.program_units),
            dies: StrengthReducedU32::new(geometry.dies),
        }
    }

    /// The superblock of a physical unit, and its offset there.
    pub(crate) fn superblock(&self, physical: u32) -> (u32, u32) {
        StrengthReducedU32::div_rem(physical, self.units)
    }

    /// The program unit of an offset, and its place in it, where cells hold all their bits.
    pub(crate) fn program(&self, offset: u32) -> (u32, u32) {
        StrengthReducedU32::div_rem(offset, self.program_units)
    }

    /// The row and the die of a program unit.
    pub(crate) fn die(&self, program: u32) -> (u32, u32) {
        StrengthReducedU32::div_rem(program, self.dies)
    }
}
