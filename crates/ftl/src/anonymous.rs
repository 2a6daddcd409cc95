//! Anonymous units: logical units of a randomly preconditioned drive that have no physical address
//! until the host touches them.
//!
//! After writes that preferred no unit, logical units are exchangeable. A superblock therefore only
//! counts its untouched units, and the place of a unit is drawn when it is touched. After skewed
//! preconditioning, units are exchangeable within their class. Memory grows with touched units
//! only.

use crate::collection::{CopyOutcome, UnitCopy, draw_below};
use crate::ftl::{Ftl, Placement, SuperblockState};

/// Map entry of a trimmed mapping unit on a drive where entry 0 marks a unit that was never
/// touched.
pub(crate) const TRIMMED_ENTRY: u32 = u32::MAX;

/// Counts of untouched mapping units by superblock and class.
#[derive(Debug, Clone)]
pub(crate) struct UntouchedUnits {
    /// Classes from the hottest to the coldest. Each begins at the logical unit where the previous
    /// one ends.
    classes: Vec<UntouchedClass>,
    /// Untouched mapping units of all classes, by superblock.
    counts_by_superblock: Vec<u32>,
    unit_count: u32,
    /// Copies of untouched mapping units in progress, and the number of these whose unit was
    /// touched meanwhile (`dead`).
    copies_in_flight: u32,
    obsolete_copies: u32,
    /// Offset in the victim at which the next copy is read.
    next_copy_offset: u32,
}

/// Class of untouched mapping units with the same write rate.
#[derive(Debug, Clone)]
struct UntouchedClass {
    /// End (exclusive) of the logical units in this class.
    logical_end: u32,
    counts_by_superblock: Vec<u32>,
    /// Partial sums of `counts` (Fenwick tree): a draw takes logarithmic time in the number of
    /// superblocks.
    fenwick_sums: Vec<u32>,
    unit_count: u32,
    copies_in_flight: u32,
    obsolete_copies: u32,
}

impl UntouchedClass {
    fn change_count(&mut self, superblock: u32, more: i32) {
        add_signed(&mut self.counts_by_superblock[superblock as usize], more);
        add_signed(&mut self.unit_count, more);
        let mut index = superblock as usize + 1;
        while index < self.fenwick_sums.len() {
            add_signed(&mut self.fenwick_sums[index], more);
            index += index & index.wrapping_neg();
        }
    }

    /// Returns the superblock that holds the untouched mapping unit with a given number.
    fn find_superblock(&self, mut number: u32) -> u32 {
        let mut index = 0;
        let mut step = self.fenwick_sums.len().next_power_of_two() / 2;
        while step > 0 {
            if index + step < self.fenwick_sums.len() && self.fenwick_sums[index + step] <= number {
                index += step;
                number -= self.fenwick_sums[index];
            }
            step /= 2;
        }
        index as u32
    }

    /// Returns the number of untouched mapping units in the victim for which no copy was issued.
    fn remaining_copies(&self, superblock: u32) -> u32 {
        self.counts_by_superblock[superblock as usize]
            - (self.copies_in_flight - self.obsolete_copies)
    }
}

/// Hashes a number over all bits (SplitMix64).
fn hash_bits(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

fn add_signed(count: &mut u32, more: i32) {
    *count = count.checked_add_signed(more).expect("counts are of units");
}

impl UntouchedUnits {
    /// Creates empty counts for classes that end at these logical units.
    pub(crate) fn new(superblocks: u32, ends: &[u32]) -> Self {
        let class = |&end: &u32| UntouchedClass {
            logical_end: end,
            counts_by_superblock: vec![0; superblocks as usize],
            fenwick_sums: vec![0; superblocks as usize + 1],
            unit_count: 0,
            copies_in_flight: 0,
            obsolete_copies: 0,
        };
        Self {
            classes: ends.iter().map(class).collect(),
            counts_by_superblock: vec![0; superblocks as usize],
            unit_count: 0,
            copies_in_flight: 0,
            obsolete_copies: 0,
            next_copy_offset: 0,
        }
    }

    fn change_count(&mut self, class: usize, superblock: u32, more: i32) {
        add_signed(&mut self.counts_by_superblock[superblock as usize], more);
        add_signed(&mut self.unit_count, more);
        self.classes[class].change_count(superblock, more);
    }

    fn preconditioned_units(&self) -> u32 {
        self.classes.last().map_or(0, |last| last.logical_end)
    }

    fn class_of_logical(&self, logical: u32) -> usize {
        self.classes
            .partition_point(|class| class.logical_end <= logical)
    }

    /// Returns the class of the item with a given number, when class sizes are `of` each class.
    fn find_class_by_rank(&self, mut number: u32, of: impl Fn(&UntouchedClass) -> u32) -> usize {
        let is_of = |class: &UntouchedClass| {
            let count = of(class);
            let is = number < count;
            number = number.saturating_sub(count);
            is
        };
        (self.classes.iter().position(is_of)).expect("counts of classes add up")
    }
}

impl Ftl {
    /// Returns the number of mapping units that the host has not touched since random
    /// preconditioning.
    pub fn untouched_units(&self) -> u32 {
        self.untouched.as_ref().map_or(0, |it| it.unit_count)
    }

    /// Reports whether a mapping unit is mapped, but has no physical place until it is
    /// [located](Self::locate).
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn is_untouched(&self, logical: u32) -> bool {
        (self.untouched.as_ref())
            .is_some_and(|it| logical < it.preconditioned_units() && self.map.get(logical) == 0)
    }

    pub(crate) fn untouched_count_in(&self, superblock: u32) -> u32 {
        (self.untouched.as_ref()).map_or(0, |it| it.counts_by_superblock[superblock as usize])
    }

    /// Returns the physical unit that a read of `logical` senses, as [`read`](Self::read) does.
    /// Assigns a place to a unit that has none yet.
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn locate(&mut self, logical: u32) -> Option<u32> {
        if !self.is_untouched(logical) {
            return self.read(logical);
        }
        let superblock = self.touch(logical);
        let physical = self.find_untouched_physical(superblock);
        self.reverse[physical as usize] = logical + 1;
        self.map.set(logical, physical + 1);
        let (word, bit) = self.valid_bit(physical);
        self.valid_bitmap[word] |= bit;
        self.complete_unit_program(physical);
        self.queue_located_copy(UnitCopy {
            logical,
            source_physical: physical,
        });
        Some(physical)
    }

    /// Returns a pseudo-random place for an untouched mapping unit, derived from its address. Each
    /// read gets the same place until the unit is touched. The unit's superblock remains
    /// undetermined, because reads need only a die and a page.
    ///
    /// # Panics
    /// If the unit is not [untouched](Self::is_untouched).
    pub fn draw_physical_unit(&self, logical: u32) -> u32 {
        assert!(self.is_untouched(logical), "unit {logical} has a place");
        let geometry = &self.specification.geometry;
        let fixed = self.features.fixed_superblocks();
        let drawn = hash_bits(hash_bits(self.specification.seed) ^ u64::from(logical));
        let share = |bits: u32, bound: u32| ((u64::from(bits) * u64::from(bound)) >> 32) as u32;
        let superblock = fixed + share((drawn >> 32) as u32, geometry.superblock_count - fixed);
        let number = share(drawn as u32, self.superblock_data_units);
        superblock * self.superblock_units
            + self.offset_of_data_unit_by_program(geometry.units_per_program, number)
    }

    /// Invalidates an untouched mapping unit in a superblock drawn for it.
    pub(crate) fn drop_untouched(&mut self, logical: u32) {
        let superblock = self.touch(logical);
        self.decrement_valid_count(superblock);
    }

    /// Draws the superblock of an untouched mapping unit, and marks the unit as touched. The
    /// superblock may be a victim whose units are being copied.
    fn touch(&mut self, logical: u32) -> u32 {
        let random = &mut self.random;
        let anonymous = self.untouched.as_mut().expect("the drive has such units");
        let number = anonymous.class_of_logical(logical);
        let class = &mut anonymous.classes[number];
        let superblock = class.find_superblock(draw_below(random, class.unit_count));
        if self.superblocks[superblock as usize].state == SuperblockState::Victim {
            let alive = class.copies_in_flight - class.obsolete_copies;
            let is_under_way =
                draw_below(random, class.counts_by_superblock[superblock as usize]) < alive;
            class.obsolete_copies += u32::from(is_under_way);
            anonymous.obsolete_copies += u32::from(is_under_way);
        }
        anonymous.change_count(number, superblock, -1);
        superblock
    }

    /// Returns a place in the superblock that no touched mapping unit has used.
    fn find_untouched_physical(&mut self, superblock: u32) -> u32 {
        let capacity = self.capacity_units(superblock);
        let start = draw_below(&mut self.random, capacity);
        (0..capacity)
            .map(|step| self.offset_of_data_unit(superblock, (start + step) % capacity))
            .filter(|&offset| self.is_unit_placed(superblock, offset))
            .map(|offset| superblock * self.superblock_units + offset)
            .find(|&physical| self.reverse[physical as usize] == 0)
            .expect("an untouched unit has a place")
    }

    /// Returns the number of untouched mapping units in the victim for which no copy was issued.
    pub(crate) fn remaining_untouched_copies(&self, superblock: u32) -> u32 {
        self.untouched.as_ref().map_or(0, |it| {
            it.counts_by_superblock[superblock as usize]
                - (it.copies_in_flight - it.obsolete_copies)
        })
    }

    /// Issues up to `most` copies of untouched mapping units of the victim, and returns their
    /// number.
    pub(crate) fn issue_untouched_copies(
        &mut self,
        superblock: u32,
        most: u32,
        copies: &mut Vec<UnitCopy>,
    ) -> u32 {
        let left = self.remaining_untouched_copies(superblock);
        let capacity = self.capacity_units(superblock);
        let count = left.min(most);
        let first = self.untouched.as_ref().map_or(0, |it| it.next_copy_offset);
        // Spread over what is left of the superblock, whatever their class: all dies read.
        let number = |index: u32| {
            let further = u64::from(index) * u64::from(capacity - first);
            (first + (further / u64::from(left.max(1))) as u32).min(capacity - 1)
        };
        copies.extend((0..count).map(|index| UnitCopy {
            logical: UnitCopy::NO_LOGICAL,
            source_physical: superblock * self.superblock_units
                + self.offset_of_data_unit(superblock, number(index)),
        }));
        let Some(anonymous) = &mut self.untouched else {
            return 0;
        };
        anonymous.next_copy_offset = if count == left { 0 } else { number(count) };
        for index in 0..count {
            let drawn = draw_below(&mut self.random, left - index);
            let class = anonymous.find_class_by_rank(drawn, |it| it.remaining_copies(superblock));
            anonymous.classes[class].copies_in_flight += 1;
        }
        anonymous.copies_in_flight += count;
        count
    }

    /// Completes the copy of an untouched mapping unit, which has been programmed.
    pub(crate) fn complete_untouched_copy(
        &mut self,
        superblock: u32,
        placement: Placement,
    ) -> CopyOutcome {
        self.complete_unit_program(placement.physical);
        let random = &mut self.random;
        let anonymous = self.untouched.as_mut().expect("the drive has such units");
        // Which of the copies under way this is is as open as where its unit was.
        let drawn = draw_below(random, anonymous.copies_in_flight);
        let number = anonymous.find_class_by_rank(drawn, |it| it.copies_in_flight);
        let class = &mut anonymous.classes[number];
        let is_dead = draw_below(random, class.copies_in_flight) < class.obsolete_copies;
        class.copies_in_flight -= 1;
        anonymous.copies_in_flight -= 1;
        if is_dead {
            class.obsolete_copies -= 1;
            anonymous.obsolete_copies -= 1;
            return CopyOutcome::Obsolete;
        }
        anonymous.change_count(number, superblock, -1);
        anonymous.change_count(number, placement.superblock, 1);
        self.decrement_valid_count(superblock);
        self.increment_valid_count(placement.superblock);
        CopyOutcome::Switched
    }

    pub(crate) fn discard_untouched_copies(&mut self) {
        if let Some(anonymous) = &mut self.untouched {
            (anonymous.copies_in_flight, anonymous.obsolete_copies) = (0, 0);
            anonymous.next_copy_offset = 0;
            for class in &mut anonymous.classes {
                (class.copies_in_flight, class.obsolete_copies) = (0, 0);
            }
        }
    }

    /// Adds untouched mapping units of each class to a superblock that has places for them.
    pub(crate) fn add_untouched(&mut self, superblock: u32, counts: &[u32]) {
        let anonymous = self.untouched.as_mut().expect("the drive has such units");
        for (class, &count) in counts.iter().enumerate() {
            anonymous.change_count(class, superblock, count as i32);
        }
        let valid: u32 = counts.iter().sum();
        self.superblocks[superblock as usize].valid_count += valid;
        self.mapped_count += u64::from(valid);
    }
}
