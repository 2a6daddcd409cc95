//! Anonymous units: logical units of a randomly preconditioned drive that have no physical address
//! until the host touches them.
//!
//! After writes that preferred no unit, logical units are exchangeable. A superblock therefore only
//! counts its untouched units, and the place of a unit is drawn when it is touched. After skewed
//! preconditioning, units are exchangeable within their class. Memory grows with touched units
//! only.

use crate::collection::{Copied, Copy, below};
use crate::ftl::{Ftl, Placement, State};

/// Map entry of a trimmed mapping unit on a drive where entry 0 marks a unit that was never
/// touched.
pub(crate) const TRIMMED: u32 = u32::MAX;

/// Counts of untouched mapping units by superblock and class.
#[derive(Debug, Clone)]
pub(crate) struct Anonymous {
    /// Classes from the hottest to the coldest. Each begins at the logical unit where the previous
    /// one ends.
    classes: Vec<Class>,
    /// Untouched mapping units of all classes, by superblock.
    counts: Vec<u32>,
    total: u32,
    /// Copies of untouched mapping units in progress, and the number of these whose unit was
    /// touched meanwhile (`dead`).
    under_way: u32,
    dead: u32,
    /// Offset in the victim at which the next copy is read.
    copied_to: u32,
}

/// Class of untouched mapping units with the same write rate.
#[derive(Debug, Clone)]
struct Class {
    /// End (exclusive) of the logical units in this class.
    end: u32,
    counts: Vec<u32>,
    /// Partial sums of `counts` (Fenwick tree): a draw takes logarithmic time in the number of
    /// superblocks.
    sums: Vec<u32>,
    total: u32,
    under_way: u32,
    dead: u32,
}

impl Class {
    fn add(&mut self, superblock: u32, more: i32) {
        add(&mut self.counts[superblock as usize], more);
        add(&mut self.total, more);
        let mut index = superblock as usize + 1;
        while index < self.sums.len() {
            add(&mut self.sums[index], more);
            index += index & index.wrapping_neg();
        }
    }

    /// Returns the superblock that holds the untouched mapping unit with a given number.
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

    /// Returns the number of untouched mapping units in the victim for which no copy was issued.
    fn copies_left(&self, superblock: u32) -> u32 {
        self.counts[superblock as usize] - (self.under_way - self.dead)
    }
}

/// Hashes a number over all bits (SplitMix64).
fn spread(number: u64) -> u64 {
    let mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

fn add(count: &mut u32, more: i32) {
    *count = count.checked_add_signed(more).expect("counts are of units");
}

impl Anonymous {
    /// Creates empty counts for classes that end at these logical units.
    pub(crate) fn new(superblocks: u32, ends: &[u32]) -> Self {
        let class = |&end: &u32| Class {
            end,
            counts: vec![0; superblocks as usize],
            sums: vec![0; superblocks as usize + 1],
            total: 0,
            under_way: 0,
            dead: 0,
        };
        Self {
            classes: ends.iter().map(class).collect(),
            counts: vec![0; superblocks as usize],
            total: 0,
            under_way: 0,
            dead: 0,
            copied_to: 0,
        }
    }

    fn add(&mut self, class: usize, superblock: u32, more: i32) {
        add(&mut self.counts[superblock as usize], more);
        add(&mut self.total, more);
        self.classes[class].add(superblock, more);
    }

    /// Returns the number of logical units in the preconditioning.
    fn filled(&self) -> u32 {
        self.classes.last().map_or(0, |last| last.end)
    }

    fn class_of(&self, logical: u32) -> usize {
        self.classes.partition_point(|class| class.end <= logical)
    }

    /// Returns the class of the item with a given number, when class sizes are `of` each class.
    fn class_at(&self, mut number: u32, of: impl Fn(&Class) -> u32) -> usize {
        let is_of = |class: &Class| {
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
        self.anonymous.as_ref().map_or(0, |it| it.total)
    }

    /// Reports whether a mapping unit is mapped, but has no physical place until it is
    /// [located](Self::locate).
    ///
    /// # Panics
    /// If the drive has no such unit.
    pub fn is_untouched(&self, logical: u32) -> bool {
        (self.anonymous.as_ref())
            .is_some_and(|it| logical < it.filled() && self.map.get(logical) == 0)
    }

    pub(crate) fn untouched_in(&self, superblock: u32) -> u32 {
        (self.anonymous.as_ref()).map_or(0, |it| it.counts[superblock as usize])
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
        let physical = self.untouched_place(superblock);
        self.reverse[physical as usize] = logical + 1;
        self.map.set(logical, physical + 1);
        let (word, bit) = self.bit(physical);
        self.valid[word] |= bit;
        self.programmed_unit(physical);
        self.collect_also(Copy {
            logical,
            from: physical,
        });
        Some(physical)
    }

    /// Returns a pseudo-random place for an untouched mapping unit, derived from its address. Each
    /// read gets the same place until the unit is touched. The unit's superblock remains
    /// undetermined, because reads need only a die and a page.
    ///
    /// # Panics
    /// If the unit is not [untouched](Self::is_untouched).
    pub fn drawn_place(&self, logical: u32) -> u32 {
        assert!(self.is_untouched(logical), "unit {logical} has a place");
        let geometry = &self.specification.geometry;
        let fixed = self.features.fixed_superblocks();
        let drawn = spread(spread(self.specification.seed) ^ u64::from(logical));
        let share = |bits: u32, bound: u32| ((u64::from(bits) * u64::from(bound)) >> 32) as u32;
        let superblock = fixed + share((drawn >> 32) as u32, geometry.superblocks - fixed);
        let number = share(drawn as u32, self.data_units);
        superblock * self.units + self.offset_by(geometry.program_units, number)
    }

    /// Invalidates an untouched mapping unit in a superblock drawn for it.
    pub(crate) fn drop_untouched(&mut self, logical: u32) {
        let superblock = self.touch(logical);
        self.lose_valid(superblock);
    }

    /// Draws the superblock of an untouched mapping unit, and marks the unit as touched. The
    /// superblock may be a victim whose units are being copied.
    fn touch(&mut self, logical: u32) -> u32 {
        let random = &mut self.random;
        let anonymous = self.anonymous.as_mut().expect("the drive has such units");
        let number = anonymous.class_of(logical);
        let class = &mut anonymous.classes[number];
        let superblock = class.superblock_of(below(random, class.total));
        if self.superblocks[superblock as usize].state == State::Victim {
            let alive = class.under_way - class.dead;
            let is_under_way = below(random, class.counts[superblock as usize]) < alive;
            class.dead += u32::from(is_under_way);
            anonymous.dead += u32::from(is_under_way);
        }
        anonymous.add(number, superblock, -1);
        superblock
    }

    /// Returns a place in the superblock that no touched mapping unit has used.
    fn untouched_place(&mut self, superblock: u32) -> u32 {
        let capacity = self.capacity(superblock);
        let start = below(&mut self.random, capacity);
        (0..capacity)
            .map(|step| self.offset_of(superblock, (start + step) % capacity))
            .filter(|&offset| self.has_place(superblock, offset))
            .map(|offset| superblock * self.units + offset)
            .find(|&physical| self.reverse[physical as usize] == 0)
            .expect("an untouched unit has a place")
    }

    /// Returns the number of untouched mapping units in the victim for which no copy was issued.
    pub(crate) fn untouched_copies_left(&self, superblock: u32) -> u32 {
        self.anonymous.as_ref().map_or(0, |it| {
            it.counts[superblock as usize] - (it.under_way - it.dead)
        })
    }

    /// Issues up to `most` copies of untouched mapping units of the victim, and returns their
    /// number.
    pub(crate) fn untouched_copies(
        &mut self,
        superblock: u32,
        most: u32,
        copies: &mut Vec<Copy>,
    ) -> u32 {
        let left = self.untouched_copies_left(superblock);
        let capacity = self.capacity(superblock);
        let count = left.min(most);
        let first = self.anonymous.as_ref().map_or(0, |it| it.copied_to);
        // Spread over what is left of the superblock, whatever their class: all dies read.
        let number = |index: u32| {
            let further = u64::from(index) * u64::from(capacity - first);
            (first + (further / u64::from(left.max(1))) as u32).min(capacity - 1)
        };
        copies.extend((0..count).map(|index| Copy {
            logical: Copy::ANONYMOUS,
            from: superblock * self.units + self.offset_of(superblock, number(index)),
        }));
        let Some(anonymous) = &mut self.anonymous else {
            return 0;
        };
        anonymous.copied_to = if count == left { 0 } else { number(count) };
        for index in 0..count {
            let drawn = below(&mut self.random, left - index);
            let class = anonymous.class_at(drawn, |it| it.copies_left(superblock));
            anonymous.classes[class].under_way += 1;
        }
        anonymous.under_way += count;
        count
    }

    /// Completes the copy of an untouched mapping unit, which has been programmed.
    pub(crate) fn untouched_copied(&mut self, superblock: u32, placement: Placement) -> Copied {
        self.programmed_unit(placement.physical);
        let random = &mut self.random;
        let anonymous = self.anonymous.as_mut().expect("the drive has such units");
        // Which of the copies under way this is is as open as where its unit was.
        let drawn = below(random, anonymous.under_way);
        let number = anonymous.class_at(drawn, |it| it.under_way);
        let class = &mut anonymous.classes[number];
        let is_dead = below(random, class.under_way) < class.dead;
        class.under_way -= 1;
        anonymous.under_way -= 1;
        if is_dead {
            class.dead -= 1;
            anonymous.dead -= 1;
            return Copied::Dead;
        }
        anonymous.add(number, superblock, -1);
        anonymous.add(number, placement.superblock, 1);
        self.lose_valid(superblock);
        self.gain_valid(placement.superblock);
        Copied::Switched
    }

    pub(crate) fn forget_untouched_copies(&mut self) {
        if let Some(anonymous) = &mut self.anonymous {
            (anonymous.under_way, anonymous.dead) = (0, 0);
            anonymous.copied_to = 0;
            for class in &mut anonymous.classes {
                (class.under_way, class.dead) = (0, 0);
            }
        }
    }

    /// Adds untouched mapping units of each class to a superblock that has places for them.
    pub(crate) fn add_untouched(&mut self, superblock: u32, counts: &[u32]) {
        let anonymous = self.anonymous.as_mut().expect("the drive has such units");
        for (class, &count) in counts.iter().enumerate() {
            anonymous.add(class, superblock, count as i32);
        }
        let valid: u32 = counts.iter().sum();
        self.superblocks[superblock as usize].valid += valid;
        self.mapped += u64::from(valid);
    }
}
