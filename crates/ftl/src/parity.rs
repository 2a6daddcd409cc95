//! Parity across dies: in each stripe of program units of a row, one holds parity, which can
//! rebuild the others when a die or block fails. The die with parity rotates by row.

use crate::ftl::{Ftl, Placement};

/// Position of parity in superblocks. Offsets count all mapping units of a superblock, numbers
/// count data units only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parity {
    /// Number of program units per stripe, one of which is parity.
    stripe: u32,
    dies: u32,
}

impl Parity {
    pub(crate) fn new(stripe: u32, dies: u32) -> Self {
        Self { stripe, dies }
    }

    /// Returns the position in a stripe that holds parity in this row.
    fn turn(&self, row: u32) -> u32 {
        self.stripe - 1 - row % self.stripe
    }

    fn is_parity(&self, row: u32, die: u32) -> bool {
        die % self.stripe == self.turn(row)
    }

    /// Returns the number of dies that hold data in a row.
    fn data_dies(&self) -> u32 {
        self.dies / self.stripe * (self.stripe - 1)
    }

    /// Converts the number of a data program unit to its program unit in the superblock.
    fn program(&self, number: u32) -> u32 {
        let (row, index) = (number / self.data_dies(), number % self.data_dies());
        let (group, place) = (index / (self.stripe - 1), index % (self.stripe - 1));
        let behind = u32::from(place >= self.turn(row));
        row * self.dies + group * self.stripe + place + behind
    }

    /// Converts a program unit in the superblock to its number among data program units; `None` for
    /// parity.
    fn number(&self, program: u32) -> Option<u32> {
        let (row, die) = (program / self.dies, program % self.dies);
        let (group, place) = (die / self.stripe, die % self.stripe);
        let behind = u32::from(place > self.turn(row));
        let index = group * (self.stripe - 1) + place - behind;
        (!self.is_parity(row, die)).then_some(row * self.data_dies() + index)
    }
}

impl Ftl {
    /// Returns the offset in a superblock of its data unit with a given number.
    pub(crate) fn offset_of(&self, superblock: u32, number: u32) -> u32 {
        self.offset_by(self.program_units(superblock), number)
    }

    /// Returns the offset of a data unit with a given number, for programs of `program_units`
    /// mapping units.
    pub(crate) fn offset_by(&self, program_units: u32, number: u32) -> u32 {
        let Some(parity) = &self.parity else {
            return number;
        };
        parity.program(number / program_units) * program_units + number % program_units
    }

    /// Returns the number of the data unit at an offset; `None` for parity.
    pub(crate) fn number_of(&self, superblock: u32, offset: u32) -> Option<u32> {
        let Some(parity) = &self.parity else {
            return Some(offset);
        };
        let program_units = self.program_units(superblock);
        let program = parity.number(offset / program_units)?;
        Some(program * program_units + offset % program_units)
    }

    /// Tests whether the program unit in a row of a die holds parity.
    pub(crate) fn is_parity(&self, row: u32, die: u32) -> bool {
        (self.parity).is_some_and(|parity| parity.is_parity(row, die))
    }

    /// Queues a parity program for the device.
    pub(crate) fn owe_parity(&mut self, superblock: u32, row: u32, die: u32) {
        let program_units = self.program_units(superblock);
        self.traffic.parity += u64::from(program_units);
        let program = row * self.specification.geometry.dies + die;
        let last = (program + 1) * program_units - 1;
        let placement = self.placement_at(superblock, last);
        self.parity_due.push_back(placement);
    }

    /// Queues the parity program units that directly follow a full program unit, in a superblock
    /// whose dies take turns.
    pub(crate) fn owe_parity_behind(&mut self, placement: Placement) {
        if self.parity.is_none() || !placement.full {
            return;
        }
        let Placement { die, row, .. } = placement;
        let (mut row, mut die) = self.next_program(row, die);
        while row < self.specification.geometry.rows && self.is_parity(row, die) {
            self.owe_parity(placement.superblock, row, die);
            (row, die) = self.next_program(row, die);
        }
    }

    fn next_program(&self, row: u32, die: u32) -> (u32, u32) {
        match die + 1 == self.specification.geometry.dies {
            true => (row + 1, 0),
            false => (row, die + 1),
        }
    }

    /// Removes and returns the next parity program that the device must perform; `None` if none is
    /// due. Each is returned once, and needs no report when it is done.
    pub fn take_parity(&mut self) -> Option<Placement> {
        self.parity_due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_one_parity_of_each_stripe_in_turn() {
        for (stripe, dies) in [(2, 2), (2, 6), (4, 8), (16, 32), (8, 8)] {
            let parity = Parity::new(stripe, dies);
            let rows = 2 * stripe;
            let mut expected = 0;
            let mut loads = vec![0; dies as usize];
            for program in 0..rows * dies {
                match parity.number(program) {
                    Some(number) => {
                        assert_eq!(number, expected);
                        assert_eq!(parity.program(number), program);
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
