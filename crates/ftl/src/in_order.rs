//! Sequential preconditioning: until a mapping unit is written again, its place follows from its
//! number, so map and reverse map need no memory for it.

use crate::anonymous::TRIMMED_ENTRY;
use crate::ftl::Ftl;

impl Ftl {
    /// Writes the first `filled` mapping units sequentially.
    pub(crate) fn precondition_in_order(&mut self, filled: u32) {
        let whole = filled / self.superblock_data_units;
        for index in 0..whole {
            self.fill_superblock_in_order(index);
        }
        self.in_order_end = whole * self.superblock_data_units;
        for logical in self.in_order_end..filled {
            self.place_preconditioned_unit(0, Some(logical));
        }
    }

    /// Fills the next superblock with the next mapping units in order, and closes it.
    fn fill_superblock_in_order(&mut self, index: u32) {
        let superblock = self
            .open_superblock(0, 0, crate::ProgramCause::Host)
            .expect("the spare was checked");
        assert_eq!(
            superblock,
            index + self.features.fixed_superblocks(),
            "superblocks of a past in order are in order"
        );
        self.open_superblocks[0] = None;
        self.placed_clock += u64::from(self.superblock_data_units);
        let block = &mut self.superblocks[superblock as usize];
        block.placed_count = self.superblock_data_units;
        block.valid_count = self.superblock_data_units;
        block.is_in_order = true;
        self.mark_all_valid(superblock);
        self.mapped_count += u64::from(self.superblock_data_units);
        self.close_if_full(superblock);
    }

    fn mark_all_valid(&mut self, superblock: u32) {
        if self.parity.is_some() {
            for number in 0..self.superblock_data_units {
                let offset = self.offset_of_data_unit(superblock, number);
                let (word, bit) = self.valid_bit(superblock * self.superblock_units + offset);
                self.valid_bitmap[word] |= bit;
            }
            return;
        }
        let first = superblock as usize * self.bitmap_words_per_superblock as usize;
        for word in 0..self.bitmap_words_per_superblock {
            let bits = (self.superblock_units - word * 64).min(64);
            self.valid_bitmap[first + word as usize] = u64::MAX >> (64 - bits);
        }
    }

    /// Returns the physical unit at which sequential preconditioning wrote a logical unit.
    fn in_order_physical(&self, logical: u32) -> u32 {
        let before = self.features.fixed_superblocks();
        if self.parity.is_none() {
            return before * self.superblock_units + logical;
        }
        let superblock = before + logical / self.superblock_data_units;
        superblock * self.superblock_units
            + self.offset_of_data_unit(superblock, logical % self.superblock_data_units)
    }

    /// Returns the map entry of a logical unit, including units of sequential preconditioning: the
    /// physical unit + 1, or 0 if unmapped.
    pub(crate) fn effective_entry(&self, logical: u32) -> u32 {
        match self.map.get(logical) {
            TRIMMED_ENTRY => 0,
            0 if logical < self.in_order_end => self.in_order_physical(logical) + 1,
            entry => entry,
        }
    }

    /// Returns the map entry that marks an unmapped unit on this drive. It may differ from the
    /// entry of a mapping unit that was never touched.
    pub(crate) fn unmapped_entry(&self) -> u32 {
        match self.untouched.is_some() || self.in_order_end > 0 {
            true => TRIMMED_ENTRY,
            false => 0,
        }
    }

    /// Returns the logical unit that sequential preconditioning wrote at a physical unit: the
    /// inverse of [`in_order_physical`](Self::in_order_physical). Returns `None` for other units.
    fn in_order_logical(&self, physical: u32) -> Option<u32> {
        let (superblock, offset) = self.division.split_by_superblock(physical);
        if !self.superblocks[superblock as usize].is_in_order {
            return None;
        }
        let number = self.data_unit_at_offset(superblock, offset)?;
        Some((superblock - self.features.fixed_superblocks()) * self.superblock_data_units + number)
    }

    /// Returns the logical unit + 1 that was programmed at a physical unit; 0 if none, or if the
    /// unit has no address.
    pub(crate) fn reverse_entry(&self, physical: u32) -> u32 {
        match self.reverse[physical as usize] {
            0 => self
                .in_order_logical(physical)
                .map_or(0, |logical| logical + 1),
            owner => owner,
        }
    }
}
