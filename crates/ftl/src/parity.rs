//! Parity across dies: of each so many program units of a row one holds what rebuilds the
//! others when a die or a block of it fails. Rows take turns in which die has it.

use crate::ftl::{Ftl, Placement};

/// Where parity is in a superblock; offsets count all its units, numbers those of data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parity {
    /// Program units of a stripe, one of them parity.
    stripe: u32,
    dies: u32,
}

impl Parity {
    pub(crate) fn new(stripe: u32, dies: u32) -> Self {
        Self { stripe, dies }
    }

    /// The place of a stripe that has parity in this row.
    fn turn(&self, row: u32) -> u32 {
        self.stripe - 1 - row % self.stripe
    }

    fn is_parity(&self, row: u32, die: u32) -> bool {
        die % self.stripe == self.turn(row)
    }

    /// Dies that have data in a row.
    fn data_dies(&self) -> u32 {
        self.dies / self.stripe * (self.stripe - 1)
    }

    /// The program unit in a superblock of a program unit of data.
    fn program(&self, number: u32) -> u32 {
        let (row, index) = (number / self.data_dies(), number % self.data_dies());
        let (group, place) = (index / (self.stripe - 1), index % (self.stripe - 1));
        let behind = u32::from(place >= self.turn(row));
        row * self.dies + group * self.stripe + place + behind
    }

    /// The inverse; none of parity.
    fn number(&self, program: u32) -> Option<u32> {
        let (row, die) = (program / self.dies, program % self.dies);
        let (group, place) = (die / self.stripe, die % self.stripe);
        let behind = u32::from(place > self.turn(row));
        let index = group * (self.stripe - 1) + place - behind;
        (!self.is_parity(row, die)).then_some(row * self.data_dies() + index)
    }
}

impl Ftl {
    /// The offset in a superblock of its unit of data of this number.
    pub(crate) fn offset_of(&self, superblock: u32, number: u32) -> u32 {
        self.offset_by(self.program_units(superblock), number)
    }

    /// The same where one program fills so many units.
    pub(crate) fn offset_by(&self, program_units: u32, number: u32) -> u32 {
        let Some(parity) = &self.parity else {
            return number;
        };
        parity.program(number / program_units) * program_units + number % program_units
    }

    /// The number of the unit of data at an offset; none of parity.
    pub(crate) fn number_of(&self, superblock: u32, offset: u32) -> Option<u32> {
        let Some(parity) = &self.parity else {
            return Some(offset);
        };
        let program_units = self.program_units(superblock);
        let program = parity.number(offset / program_units)?;
        Some(program * program_units + offset % program_units)
    }

    /// Whether a program unit of a superblock holds parity.
    pub(crate) fn is_parity(&self, row: u32, die: u32) -> bool {
        (self.parity).is_some_and(|parity| parity.is_parity(row, die))
    }

    /// A program unit of parity is due.
    pub(crate) fn owe_parity(&mut self, superblock: u32, row: u32, die: u32) {
        let program_units = self.program_units(superblock);
        self.traffic.parity += u64::from(program_units);
        let program = row * self.specification.geometry.dies + die;
        let last = (program + 1) * program_units - 1;
        let placement = self.placement_at(superblock, last);
        self.parity_due.push_back(placement);
    }

    /// Parity of a superblock whose dies take turns, once the unit before it is placed.
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

    /// A program unit of parity that the device is to program, where the features have
    /// parity: the layer has come to it. Each is given once, and nothing is to be told when
    /// it is done.
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
