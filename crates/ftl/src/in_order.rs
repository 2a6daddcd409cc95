//! Sequential preconditioning: until a mapping unit is written again, its place follows from its
//! number, so map and reverse map need no memory for it.

use crate::anonymous::TRIMMED;
use crate::ftl::Ftl;

impl Ftl {
    /// Writes the first `filled` mapping units sequentially.
    pub(crate) fn write_in_order(&mut self, filled: u32) {
        let whole = filled / self.data_units;
        for index in 0..whole {
            self.close_in_order(index);
        }
        self.in_order = whole * self.data_units;
        for logical in self.in_order..filled {
            self.place_of_past(0, Some(logical));
        }
    }

    /// Fills the next superblock with the next mapping units in order, and closes it.
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
        self.clock += u64::from(self.data_units);
        let block = &mut self.superblocks[superblock as usize];
        block.written = self.data_units;
        block.valid = self.data_units;
        block.in_order = true;
        self.mark_all_valid(superblock);
        self.mapped += u64::from(self.data_units);
        self.close_if_full(superblock);
    }

    fn mark_all_valid(&mut self, superblock: u32) {
        if self.parity.is_some() {
            for number in 0..self.data_units {
                let offset = self.offset_of(superblock, number);
                let (word, bit) = self.bit(superblock * self.units + offset);
                self.valid[word] |= bit;
            }
            return;
        }
        let first = superblock as usize * self.words as usize;
        for word in 0..self.words {
            let bits = (self.units - word * 64).min(64);
            self.valid[first + word as usize] = u64::MAX >> (64 - bits);
        }
    }

    /// Returns the physical unit at which sequential preconditioning wrote a logical unit.
    fn in_order_place(&self, logical: u32) -> u32 {
        let before = self.features.fixed_superblocks();
        if self.parity.is_none() {
            return before * self.units + logical;
        }
        let superblock = before + logical / self.data_units;
        superblock * self.units + self.offset_of(superblock, logical % self.data_units)
    }

    /// Returns the map entry of a logical unit, including units of sequential preconditioning: the
    /// physical unit + 1, or 0 if unmapped.
    pub(crate) fn entry(&self, logical: u32) -> u32 {
        match self.map.get(logical) {
            TRIMMED => 0,
            0 if logical < self.in_order => self.in_order_place(logical) + 1,
            entry => entry,
        }
    }

    /// Returns the map entry that marks an unmapped unit on this drive. It may differ from the
    /// entry of a mapping unit that was never touched.
    pub(crate) fn unmapped(&self) -> u32 {
        match self.anonymous.is_some() || self.in_order > 0 {
            true => TRIMMED,
            false => 0,
        }
    }

    /// Returns the logical unit that sequential preconditioning wrote at a physical unit: the
    /// inverse of [`in_order_place`](Self::in_order_place). Returns `None` for other units.
    fn in_order_owner(&self, physical: u32) -> Option<u32> {
        let (superblock, offset) = self.division.superblock(physical);
        if !self.superblocks[superblock as usize].in_order {
            return None;
        }
        let number = self.number_of(superblock, offset)?;
        Some((superblock - self.features.fixed_superblocks()) * self.data_units + number)
    }

    /// Returns the logical unit + 1 that was programmed at a physical unit; 0 if none, or if the
    /// unit has no address.
    pub(crate) fn owner(&self, physical: u32) -> u32 {
        match self.reverse[physical as usize] {
            0 => self
                .in_order_owner(physical)
                .map_or(0, |logical| logical + 1),
            owner => owner,
        }
    }
}
