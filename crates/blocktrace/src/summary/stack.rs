//! LRU stack: blocks in the order of their last use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes a block number with splitmix64, which gives the same result on every machine.
pub(super) fn hash(block: u64) -> u64 {
    let mut of = block.wrapping_add(0x9e37_79b9_7f4a_7c15);
    of = (of ^ (of >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    of = (of ^ (of >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    of ^ (of >> 31)
}

/// Hasher of maps that are keyed by block number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, block: u64) {
        self.0 = hash(block);
    }
}

/// Map from block numbers to values.
pub(super) type ByBlock<T> = HashMap<u64, T, BuildHasherDefault<Hashed>>;

const NO_BLOCK: u64 = u64::MAX;

/// LRU stack of Mattson and others (1970). Each use takes the next slot. A tree of sums (Fenwick
/// 1994) gives the number of blocks in all slots up to a given one.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    slot_of: ByBlock<u32>,
    tree: Vec<u32>,
    block_of: Vec<u64>,
    next_slot: u32,
    /// Slot before which no slot holds a block.
    oldest_slot: u32,
}

impl Stack {
    /// Creates a stack for `most_blocks` blocks. It may temporarily hold one more, until another is
    /// removed.
    pub(super) fn new(most_blocks: usize) -> Self {
        let slots = most_blocks * 4;
        Self {
            slot_of: ByBlock::default(),
            tree: vec![0; slots + 1],
            block_of: vec![NO_BLOCK; slots],
            next_slot: 0,
            oldest_slot: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slot_of.len()
    }

    /// Moves a block to the top of the stack. Returns the number of other blocks used since its
    /// last use, or `None` if the block was not in the stack.
    pub(super) fn touch(&mut self, block: u64) -> Option<u64> {
        if self.next_slot as usize == self.block_of.len() {
            self.renumber();
        }
        let slot = self.next_slot;
        self.next_slot += 1;
        let blocks = self.len() as u64;
        let last = self.slot_of.insert(block, slot);
        let distance = last.map(|last| {
            let distance = blocks - u64::from(self.up_to(last));
            self.clear(last);
            distance
        });
        self.fill(slot, block);
        distance
    }

    pub(super) fn remove(&mut self, block: u64) {
        if let Some(slot) = self.slot_of.remove(&block) {
            self.clear(slot);
        }
    }

    /// Removes the least recently used block.
    pub(super) fn remove_oldest(&mut self) {
        let from = self.oldest_slot as usize;
        let held = self.block_of[from..]
            .iter()
            .position(|block| *block != NO_BLOCK);
        if let Some(after) = held {
            self.oldest_slot += after as u32;
            self.remove(self.block_of[from + after]);
        }
    }

    fn fill(&mut self, slot: u32, block: u64) {
        self.block_of[slot as usize] = block;
        self.each_sum(slot, |sum| *sum += 1);
    }

    fn clear(&mut self, slot: u32) {
        self.block_of[slot as usize] = NO_BLOCK;
        self.each_sum(slot, |sum| *sum -= 1);
    }

    /// Changes all sums of the tree that include a slot.
    fn each_sum(&mut self, slot: u32, change: impl Fn(&mut u32)) {
        let mut at = slot as usize + 1;
        while at < self.tree.len() {
            change(&mut self.tree[at]);
            at += at & at.wrapping_neg();
        }
    }

    /// Returns the number of blocks in the slots up to a given one.
    fn up_to(&self, slot: u32) -> u32 {
        let mut at = slot as usize + 1;
        let mut sum = 0;
        while at > 0 {
            sum += self.tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }

    /// Moves all blocks to the first slots, in the order of their last use.
    fn renumber(&mut self) {
        let held = self.block_of.iter().copied();
        let held: Vec<u64> = held.filter(|block| *block != NO_BLOCK).collect();
        self.tree.fill(0);
        self.block_of.fill(NO_BLOCK);
        for (slot, block) in held.iter().enumerate() {
            self.slot_of.insert(*block, slot as u32);
            self.fill(slot as u32, *block);
        }
        self.next_slot = held.len() as u32;
        self.oldest_slot = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance of each use, with the oldest taken out of more than so many; of a list.
    fn listed(uses: &[u64], most: usize) -> Vec<Option<u64>> {
        let mut list: Vec<u64> = Vec::new();
        let distance = |block: &u64| {
            let found = list.iter().position(|held| held == block);
            found.map(|at| list.remove(at));
            list.insert(0, *block);
            list.truncate(most);
            found.map(|at| at as u64)
        };
        uses.iter().map(distance).collect()
    }

    #[test]
    fn distances_are_those_of_a_list() {
        for most in [1, 2, 7, 40] {
            let uses: Vec<u64> = (0..3000u64).map(|use_| hash(use_) % 50).collect();
            let mut stack = Stack::new(most);
            let of = |block: &u64| {
                let distance = stack.touch(*block);
                if stack.len() > most {
                    stack.remove_oldest();
                }
                distance
            };
            let found: Vec<Option<u64>> = uses.iter().map(of).collect();
            assert_eq!(found, listed(&uses, most), "{most} blocks");
        }
    }
}
