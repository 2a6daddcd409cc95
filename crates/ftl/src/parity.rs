//! Parity across dies: in each stripe of program units of a row, one holds parity, which can
//! rebuild the others when a die or block fails. The die with parity rotates by row.

use crate::ftl::{Ftl, Placement};

/// Position of parity in superblocks. Offsets count all mapping units of a superblock, numbers
/// count data units only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParityLayout {
    /// Number of program units per stripe, one of which is parity.
    stripe_programs: u32,
    die_count: u32,
}

impl ParityLayout {
    pub(crate) fn new(stripe: u32, dies: u32) -> Self {
        Self {
            stripe_programs: stripe,
            die_count: dies,
        }
    }

    /// Returns the position in a stripe that holds parity in this row.
    fn parity_position_in_row(&self, row: u32) -> u32 {
        self.stripe_programs - 1 - row % self.stripe_programs
    }

    fn is_parity_program(&self, row: u32, die: u32) -> bool {
        die % self.stripe_programs == self.parity_position_in_row(row)
    }

    fn data_dies_per_row(&self) -> u32 {
        self.die_count / self.stripe_programs * (self.stripe_programs - 1)
    }

    /// Converts the number of a data program unit to its program unit in the superblock.
    fn data_program_to_program(&self, number: u32) -> u32 {
        let (row, index) = (
            number / self.data_dies_per_row(),
            number % self.data_dies_per_row(),
        );
        let (group, place) = (
            index / (self.stripe_programs - 1),
            index % (self.stripe_programs - 1),
        );
        let behind = u32::from(place >= self.parity_position_in_row(row));
        row * self.die_count + group * self.stripe_programs + place + behind
    }

    /// Converts a program unit in the superblock to its number among data program units; `None` for
    /// parity.
    fn program_to_data_program(&self, program: u32) -> Option<u32> {
        let (row, die) = (program / self.die_count, program % self.die_count);
        let (group, place) = (die / self.stripe_programs, die % self.stripe_programs);
        let behind = u32::from(place > self.parity_position_in_row(row));
        let index = group * (self.stripe_programs - 1) + place - behind;
        (!self.is_parity_program(row, die)).then_some(row * self.data_dies_per_row() + index)
    }
}

impl Ftl {
    pub(crate) fn offset_of_data_unit(&self, superblock: u32, number: u32) -> u32 {
        self.offset_of_data_unit_by_program(self.program_units(superblock), number)
    }

    /// Returns the offset of a data unit with a given number, for programs of `program_units`
    /// mapping units.
    pub(crate) fn offset_of_data_unit_by_program(&self, program_units: u32, number: u32) -> u32 {
        let Some(parity) = &self.parity else {
            return number;
        };
        parity.data_program_to_program(number / program_units) * program_units
            + number % program_units
    }

    /// Returns the number of the data unit at an offset; `None` for parity.
    pub(crate) fn data_unit_at_offset(&self, superblock: u32, offset: u32) -> Option<u32> {
        let Some(parity) = &self.parity else {
            return Some(offset);
        };
        let program_units = self.program_units(superblock);
        let program = parity.program_to_data_program(offset / program_units)?;
        Some(program * program_units + offset % program_units)
    }

    pub(crate) fn is_parity_program(&self, row: u32, die: u32) -> bool {
        (self.parity).is_some_and(|parity| parity.is_parity_program(row, die))
    }

    /// Queues a parity program for the device.
    pub(crate) fn queue_parity(&mut self, superblock: u32, row: u32, die: u32) {
        let program_units = self.program_units(superblock);
        self.traffic.parity_units += u64::from(program_units);
        let program = row * self.specification.geometry.die_count + die;
        let last = (program + 1) * program_units - 1;
        let placement = self.placement_at(superblock, last);
        self.parity_due.push_back(placement);
    }

    /// Queues the parity program units that directly follow a full program unit, in a superblock
    /// whose dies take turns.
    pub(crate) fn queue_parity_after(&mut self, placement: Placement) {
        if self.parity.is_none() || !placement.completes_program {
            return;
        }
        let Placement { die, row, .. } = placement;
        let (mut row, mut die) = self.next_program_position(row, die);
        while row < self.specification.geometry.rows_per_superblock
            && self.is_parity_program(row, die)
        {
            self.queue_parity(placement.superblock, row, die);
            (row, die) = self.next_program_position(row, die);
        }
    }

    fn next_program_position(&self, row: u32, die: u32) -> (u32, u32) {
        match die + 1 == self.specification.geometry.die_count {
            true => (row + 1, 0),
            false => (row, die + 1),
        }
    }

    /// Removes and returns the next parity program that the device must perform; `None` if none is
    /// due. Each is returned once, and needs no report when it is done.
    pub fn take_due_parity(&mut self) -> Option<Placement> {
        self.parity_due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_one_parity_of_each_stripe_in_turn() {
        for (stripe, dies) in [(2, 2), (2, 6), (4, 8), (16, 32), (8, 8)] {
            let parity = ParityLayout::new(stripe, dies);
            let rows = 2 * stripe;
            let mut expected = 0;
            let mut loads = vec![0; dies as usize];
            for program in 0..rows * dies {
                match parity.program_to_data_program(program) {
                    Some(number) => {
                        assert_eq!(number, expected);
                        assert_eq!(parity.data_program_to_program(number), program);
                        expected += 1;
                    }
                    None => loads[(program % dies) as usize] += 1,
                }
            }
            assert_eq!(expected * stripe, rows * dies * (stripe - 1));
            assert!(loads.iter().all(|&load| load == 2), "{loads:?}");
        }
    }
}
