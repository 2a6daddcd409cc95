//! Units of a random past without addresses: after uniform writes logical units are
//! exchangeable, so a superblock counts those that the host has not touched since, and
//! where one of them is is drawn when it is touched. Memory is used by what is touched.

use crate::collection::{Copied, Copy, below};
use crate::ftl::{Ftl, Placement, State};

/// The entry of a unit that was trimmed, where 0 is that of one never touched.
pub(crate) const TRIMMED: u32 = u32::MAX;

/// Untouched units by superblock.
#[derive(Debug, Clone)]
pub(crate) struct Anonymous {
    counts: Vec<u32>,
    /// Partial sums of `counts` (Fenwick): a draw takes the logarithm of superblocks.
    sums: Vec<u32>,
    total: u32,
    /// Logical units below this one were in the past.
    filled: u32,
    /// Copies of untouched units, and those of them that were touched meanwhile.
    under_way: u32,
    dead: u32,
    /// Where in the victim the next copy is read.
    copied_to: u32,
}

impl Anonymous {
    pub(crate) fn new(superblocks: u32, filled: u32) -> Self {
        Self {
            counts: vec![0; superblocks as usize],
            sums: vec![0; superblocks as usize + 1],
            total: 0,
            filled,
            under_way: 0,
            dead: 0,
            copied_to: 0,
        }
    }

    fn add(&mut self, superblock: u32, more: i32) {
        let add = |count: &mut u32| {
            *count = count.checked_add_signed(more).expect("counts are of units");
        };
        add(&mut self.counts[superblock as usize]);
        add(&mut self.total);
        let mut index = superblock as usize + 1;
        while index < self.sums.len() {
            add(&mut self.sums[index]);
            index += index & index.wrapping_neg();
        }
    }

    /// The superblock of the untouched unit of this number.
    fn superblock_of(&self, mut number: u32) -> u32 {
        let mut index = 0;
        let mut step = self.sums.len().next_power_of_two() / 2;
        while step > 0 {
            if index + step < self.sums.len() && self.sums[index + step] <= number {
                index += step;
                number -= self.sums[index];
            }
            step /= 2;
        }
        index as u32
    }
}

impl Ftl {
    /// Units that the host has not touched since a random past.
    pub fn untouched_units(&self) -> u32 {
        self.anonymous.as_ref().map_or(0, |it| it.total)
    }

    /// Whether a unit is mapped, but has no place until it is [located](Self::locate).
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn is_untouched(&self, logical: u32) -> bool {
        (self.anonymous.as_ref())
            .is_some_and(|it| logical < it.filled && self.map[logical as usize] == 0)
    }

    pub(crate) fn untouched_in(&self, superblock: u32) -> u32 {
        (self.anonymous.as_ref()).map_or(0, |it| it.counts[superblock as usize])
    }

    /// A map entry as it is where every unit has a place; 0: unmapped.
    pub(crate) fn entry(&self, logical: u32) -> u32 {
        match self.map[logical as usize] {
            TRIMMED => 0,
            entry => entry,
        }
    }

    /// The entry of an unmapped unit of this drive.
    pub(crate) fn unmapped(&self) -> u32 {
        if self.anonymous.is_some() { TRIMMED } else { 0 }
    }

    /// The physical unit that a read of `logical` senses, as [`read`](Self::read); a unit
    /// that has none yet is given one.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn locate(&mut self, logical: u32) -> Option<u32> {
        if !self.is_untouched(logical) {
            return self.read(logical);
        }
        let superblock = self.draw();
        let physical = self.untouched_place(superblock);
        self.touch(superblock);
        self.reverse[physical as usize] = logical + 1;
        self.map[logical as usize] = physical + 1;
        let (word, bit) = self.bit(physical);
        self.valid[word] |= bit;
        self.programmed_unit(physical);
        self.collect_also(Copy {
            logical,
            from: physical,
        });
        Some(physical)
    }

    /// Makes an untouched unit invalid where it was.
    pub(crate) fn drop_untouched(&mut self) {
        let superblock = self.draw();
        self.touch(superblock);
        self.lose_valid(superblock);
    }

    fn draw(&mut self) -> u32 {
        let anonymous = self.anonymous.as_ref().expect("the drive has such units");
        let number = below(&mut self.random, anonymous.total);
        anonymous.superblock_of(number)
    }

    /// An untouched unit of the superblock is touched: it may be one under way.
    fn touch(&mut self, superblock: u32) {
        let is_victim = self.superblocks[superblock as usize].state == State::Victim;
        let anonymous = self.anonymous.as_mut().expect("the drive has such units");
        if is_victim {
            let alive = anonymous.under_way - anonymous.dead;
            let count = anonymous.counts[superblock as usize];
            anonymous.dead += u32::from(below(&mut self.random, count) < alive);
        }
        anonymous.add(superblock, -1);
    }

    /// A place of the superblock that no touched unit has had.
    fn untouched_place(&mut self, superblock: u32) -> u32 {
        let capacity = self.capacity(superblock);
        let start = below(&mut self.random, capacity);
        (0..capacity)
            .map(|step| (start + step) % capacity)
            .filter(|&offset| self.has_place(superblock, offset))
            .map(|offset| superblock * self.units + offset)
            .find(|&physical| self.reverse[physical as usize] == 0)
            .expect("an untouched unit has a place")
    }

    /// Untouched units of the victim that no copy was handed out of.
    pub(crate) fn untouched_copies_left(&self, superblock: u32) -> u32 {
        self.anonymous.as_ref().map_or(0, |it| {
            it.counts[superblock as usize] - (it.under_way - it.dead)
        })
    }

    /// Hands out up to `most` copies of untouched units.
    pub(crate) fn untouched_copies(
        &mut self,
        superblock: u32,
        most: u32,
        copies: &mut Vec<Copy>,
    ) -> u32 {
        let left = self.untouched_copies_left(superblock);
        let capacity = self.capacity(superblock);
        let Some(anonymous) = &mut self.anonymous else {
            return 0;
        };
        let count = left.min(most);
        // Spread over what is left of the superblock, as they are: all dies read.
        let first = anonymous.copied_to;
        let offset = |index: u32| {
            let further = u64::from(index) * u64::from(capacity - first);
            (first + (further / u64::from(left.max(1))) as u32).min(capacity - 1)
        };
        copies.extend((0..count).map(|index| Copy {
            logical: Copy::ANONYMOUS,
            from: superblock * self.units + offset(index),
        }));
        anonymous.copied_to = if count == left { 0 } else { offset(count) };
        anonymous.under_way += count;
        count
    }

    /// A copy of an untouched unit was programmed.
    pub(crate) fn untouched_copied(&mut self, superblock: u32, placement: Placement) -> Copied {
        self.programmed_unit(placement.physical);
        let anonymous = self.anonymous.as_mut().expect("the drive has such units");
        let is_dead = below(&mut self.random, anonymous.under_way) < anonymous.dead;
        anonymous.under_way -= 1;
        if is_dead {
            anonymous.dead -= 1;
            return Copied::Dead;
        }
        anonymous.add(superblock, -1);
        anonymous.add(placement.superblock, 1);
        self.lose_valid(superblock);
        self.gain_valid(placement.superblock);
        Copied::Switched
    }

    pub(crate) fn forget_untouched_copies(&mut self) {
        if let Some(anonymous) = &mut self.anonymous {
            (anonymous.under_way, anonymous.dead) = (0, 0);
            anonymous.copied_to = 0;
        }
    }

    /// Fills and closes the next superblock with so many untouched units.
    pub(crate) fn close_untouched(&mut self, valid: u32) {
        let superblock = self
            .open(0, 0, crate::Cause::Host)
            .expect("the reserve is left free");
        self.frontiers[0] = None;
        self.clock += u64::from(self.units);
        let block = &mut self.superblocks[superblock as usize];
        block.written = self.units;
        block.valid = valid;
        self.mapped += u64::from(valid);
        let anonymous = self.anonymous.as_mut().expect("the drive has such units");
        anonymous.add(superblock, valid as i32);
        self.close_if_full(superblock);
    }
}
