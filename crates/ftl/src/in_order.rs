//! A past that was written in order: until a unit is written again its place follows from
//! its number, so that the map and its inverse need no memory for it.

use crate::anonymous::TRIMMED;
use crate::ftl::Ftl;

impl Ftl {
    /// Writes the first `filled` units in order.
    pub(crate) fn write_in_order(&mut self, filled: u32) {
        let whole = filled / self.units;
        for index in 0..whole {
            self.close_in_order(index);
        }
        self.in_order = whole * self.units;
        for logical in self.in_order..filled {
            self.place_of_past(0, Some(logical));
        }
    }

    /// Fills and closes the next superblock with the next units in order.
    fn close_in_order(&mut self, index: u32) {
        let superblock = self
            .open(0, 0, crate::Cause::Host)
            .expect("the spare was checked");
        assert_eq!(
            superblock,
            index + self.features.fixed_superblocks(),
            "superblocks of a past in order are in order"
        );
        self.frontiers[0] = None;
        self.clock += u64::from(self.units);
        let block = &mut self.superblocks[superblock as usize];
        block.written = self.units;
        block.valid = self.units;
        block.in_order = true;
        let first = superblock as usize * self.words as usize;
        for word in 0..self.words {
            let bits = (self.units - word * 64).min(64);
            self.valid[first + word as usize] = u64::MAX >> (64 - bits);
        }
        self.mapped += u64::from(self.units);
        self.close_if_full(superblock);
    }

    /// Physical units before those of a past in order.
    fn before_in_order(&self) -> u32 {
        self.features.fixed_superblocks() * self.units
    }

    /// A map entry as it is where every unit has a place: the physical unit + 1; 0:
    /// unmapped.
    pub(crate) fn entry(&self, logical: u32) -> u32 {
        match self.map[logical as usize] {
            TRIMMED => 0,
            0 if logical < self.in_order => self.before_in_order() + logical + 1,
            entry => entry,
        }
    }

    /// The entry of an unmapped unit of this drive, which may differ from that of one that
    /// was never touched.
    pub(crate) fn unmapped(&self) -> u32 {
        match self.anonymous.is_some() || self.in_order > 0 {
            true => TRIMMED,
            false => 0,
        }
    }

    fn is_in_order(&self, physical: u32) -> bool {
        let (superblock, _) = self.division.superblock(physical);
        self.superblocks[superblock as usize].in_order
    }

    /// The logical unit + 1 that was programmed at a physical one; 0: nothing, or one
    /// without address.
    pub(crate) fn owner(&self, physical: u32) -> u32 {
        match self.reverse[physical as usize] {
            0 if self.is_in_order(physical) => physical - self.before_in_order() + 1,
            owner => owner,
        }
    }
}
