//! LRU stack: blocks in the order of their last use.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Hashes a block number with splitmix64, which gives the same result on every machine.
pub(super) fn hash_block(block: u64) -> u64 {
    let mut of = block.wrapping_add(0x9e37_79b9_7f4a_7c15);
    of = (of ^ (of >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    of = (of ^ (of >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    of ^ (of >> 31)
}

/// Hasher of maps that are keyed by block number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, block: u64) {
        self.0 = hash_block(block);
    }
}

pub(super) type ByBlock<T> = HashMap<u64, T, BuildHasherDefault<BlockHasher>>;

const NO_BLOCK: u64 = u64::MAX;

/// LRU stack of Mattson and others (1970). Each use takes the next slot. A tree of sums (Fenwick
/// 1994) gives the number of blocks in all slots up to a given one.
#[derive(Clone, Debug)]
pub(super) struct LruStack {
    slot_by_block: ByBlock<u32>,
    sum_tree: Vec<u32>,
    block_by_slot: Vec<u64>,
    next_slot: u32,
    /// Slot before which no slot holds a block.
    oldest_slot: u32,
}

impl LruStack {
    /// Creates a stack for `most_blocks` blocks. It may temporarily hold one more, until another is
    /// removed.
    pub(super) fn new(most_blocks: usize) -> Self {
        let slots = most_blocks * 4;
        Self {
            slot_by_block: ByBlock::default(),
            sum_tree: vec![0; slots + 1],
            block_by_slot: vec![NO_BLOCK; slots],
            next_slot: 0,
            oldest_slot: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slot_by_block.len()
    }

    /// Moves a block to the top of the stack. Returns the number of other blocks used since its
    /// last use, or `None` if the block was not in the stack.
    pub(super) fn use_block(&mut self, block: u64) -> Option<u64> {
        if self.next_slot as usize == self.block_by_slot.len() {
            self.renumber_slots();
        }
        let slot = self.next_slot;
        self.next_slot += 1;
        let blocks = self.len() as u64;
        let last = self.slot_by_block.insert(block, slot);
        let distance = last.map(|last| {
            let distance = blocks - u64::from(self.count_up_to(last));
            self.clear_slot(last);
            distance
        });
        self.fill_slot(slot, block);
        distance
    }

    pub(super) fn remove(&mut self, block: u64) {
        if let Some(slot) = self.slot_by_block.remove(&block) {
            self.clear_slot(slot);
        }
    }

    /// Removes the least recently used block.
    pub(super) fn remove_oldest(&mut self) {
        let from = self.oldest_slot as usize;
        let held = self.block_by_slot[from..]
            .iter()
            .position(|block| *block != NO_BLOCK);
        if let Some(after) = held {
            self.oldest_slot += after as u32;
            self.remove(self.block_by_slot[from + after]);
        }
    }

    fn fill_slot(&mut self, slot: u32, block: u64) {
        self.block_by_slot[slot as usize] = block;
        self.change_sums(slot, |sum| *sum += 1);
    }

    fn clear_slot(&mut self, slot: u32) {
        self.block_by_slot[slot as usize] = NO_BLOCK;
        self.change_sums(slot, |sum| *sum -= 1);
    }

    /// Changes all sums of the tree that include a slot.
    fn change_sums(&mut self, slot: u32, change: impl Fn(&mut u32)) {
        let mut at = slot as usize + 1;
        while at < self.sum_tree.len() {
            change(&mut self.sum_tree[at]);
            at += at & at.wrapping_neg();
        }
    }

    fn count_up_to(&self, slot: u32) -> u32 {
        let mut at = slot as usize + 1;
        let mut sum = 0;
        while at > 0 {
            sum += self.sum_tree[at];
            at -= at & at.wrapping_neg();
        }
        sum
    }

    /// Moves all blocks to the first slots, in the order of their last use.
    fn renumber_slots(&mut self) {
        let held = self.block_by_slot.iter().copied();
        let held: Vec<u64> = held.filter(|block| *block != NO_BLOCK).collect();
        self.sum_tree.fill(0);
        self.block_by_slot.fill(NO_BLOCK);
        for (slot, block) in held.iter().enumerate() {
            self.slot_by_block.insert(*block, slot as u32);
            self.fill_slot(slot as u32, *block);
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
            let uses: Vec<u64> = (0..3000u64).map(|use_| hash_block(use_) % 50).collect();
            let mut stack = LruStack::new(most);
            let of = |block: &u64| {
                let distance = stack.use_block(*block);
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
