//! How far apart the uses of a block are, and what a cache of any size would miss: SHARDS
//! (Waldspurger and others 2015), of a fixed size and adjusted.

use super::histogram::Counts;
use serde::Serialize;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

/// A block is sampled if its hash is below a threshold; all of this are.
const ALL: u64 = 1 << 24;

/// A hash of a block that is the same everywhere: splitmix64.
fn hash(block: u64) -> u64 {
    let mut of = block.wrapping_add(0x9e37_79b9_7f4a_7c15);
    of = (of ^ (of >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    of = (of ^ (of >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    of ^ (of >> 31)
}

/// What is known of a block that is sampled.
#[derive(Clone, Copy, Debug)]
struct Known {
    slot: u32,
    uses: u64,
    is_read: bool,
    is_written: bool,
}

/// Blocks are hashed already.
#[derive(Clone, Copy, Debug, Default)]
struct Hashed(u64);

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

/// Distances between uses, of a sample of the blocks.
#[derive(Debug)]
pub(super) struct Reuse {
    most_blocks: usize,
    threshold: u64,
    known: HashMap<u64, Known, BuildHasherDefault<Hashed>>,
    by_hash: BinaryHeap<(u64, u64)>,
    /// Blocks by the order of their last use: how many there are up to a slot (Fenwick 1994).
    tree: Vec<u32>,
    block_of: Vec<u64>,
    next_slot: u32,
    distances: Counts,
    first_uses: f64,
    /// Uses of all blocks.
    uses: u64,
}

const NO_BLOCK: u64 = u64::MAX;

impl Reuse {
    /// Of at most so many blocks.
    pub(super) fn new(most_blocks: usize) -> Self {
        let slots = most_blocks * 4;
        Self {
            most_blocks,
            threshold: ALL,
            known: HashMap::default(),
            by_hash: BinaryHeap::new(),
            tree: vec![0; slots + 1],
            block_of: vec![NO_BLOCK; slots],
            next_slot: 0,
            distances: Counts::default(),
            first_uses: 0.0,
            uses: 0,
        }
    }

    fn rate(&self) -> f64 {
        self.threshold as f64 / ALL as f64
    }

    /// A block is used.
    #[inline]
    pub(super) fn touch(&mut self, block: u64, write: bool) {
        self.uses += 1;
        let hash = hash(block) % ALL;
        if hash < self.threshold {
            self.touch_sampled(block, hash, write);
        }
    }

    fn touch_sampled(&mut self, block: u64, hash: u64, write: bool) {
        if self.next_slot as usize == self.block_of.len() {
            self.renumber();
        }
        let slot = self.next_slot;
        self.next_slot += 1;
        let blocks = self.known.len() as u64;
        let is_new = match self.known.get_mut(&block) {
            Some(known) => {
                let last = std::mem::replace(&mut known.slot, slot);
                known.uses += 1;
                known.is_read |= !write;
                known.is_written |= write;
                let after = blocks - u64::from(sum(&self.tree, last));
                let distance = (after as f64 / self.rate()).round() as u64;
                self.distances.add(distance, 1.0);
                self.set(last, false);
                self.block_of[last as usize] = NO_BLOCK;
                false
            }
            None => true,
        };
        if is_new {
            self.first_uses += 1.0;
            self.by_hash.push((hash, block));
            let known = Known {
                slot,
                uses: 1,
                is_read: !write,
                is_written: write,
            };
            self.known.insert(block, known);
        }
        self.set(slot, true);
        self.block_of[slot as usize] = block;
        while self.known.len() > self.most_blocks {
            self.lower();
        }
    }

    /// The blocks with the largest hash are not sampled any more.
    fn lower(&mut self) {
        let Some((largest, _)) = self.by_hash.peek().copied() else {
            return;
        };
        let by = largest as f64 / self.threshold as f64;
        self.threshold = largest;
        self.distances.scale(by);
        self.first_uses *= by;
        while self
            .by_hash
            .peek()
            .is_some_and(|(hash, _)| *hash >= largest)
        {
            let (_, block) = self.by_hash.pop().expect("a block");
            if let Some(known) = self.known.remove(&block) {
                self.set(known.slot, false);
                self.block_of[known.slot as usize] = NO_BLOCK;
            }
        }
    }

    fn set(&mut self, slot: u32, is_there: bool) {
        let mut at = slot as usize + 1;
        while at < self.tree.len() {
            self.tree[at] = match is_there {
                true => self.tree[at] + 1,
                false => self.tree[at] - 1,
            };
            at += at & at.wrapping_neg();
        }
    }

    /// Blocks get the first slots, in the order of their last use.
    fn renumber(&mut self) {
        let used: Vec<u64> = self
            .block_of
            .iter()
            .copied()
            .filter(|of| *of != NO_BLOCK)
            .collect();
        self.tree.fill(0);
        self.block_of.fill(NO_BLOCK);
        for (slot, block) in used.iter().enumerate() {
            self.block_of[slot] = *block;
            if let Some(known) = self.known.get_mut(block) {
                known.slot = slot as u32;
            }
            self.set(slot as u32, true);
        }
        self.next_slot = used.len() as u32;
    }

    /// What was found.
    pub(super) fn finish(self, block_bytes: u64) -> ReuseSummary {
        let rate = self.rate();
        // How much more or less often than its share the sample was used is of its hottest
        // blocks, whose distances are the shortest: all caches have them.
        let all = (self.uses as f64 * rate).max(f64::MIN_POSITIVE);
        let blocks = self.known.len() as f64 / rate;
        let point = |cache_blocks: u64| MissRatio {
            cache_bytes: cache_blocks * block_bytes,
            share: ((self.distances.at_least(cache_blocks as f64) + self.first_uses) / all)
                .min(1.0),
        };
        let of = |which: fn(&Known) -> bool| {
            let count = self.known.values().filter(|known| which(known)).count();
            count as f64 / rate
        };
        ReuseSummary {
            sampled_share: rate,
            block_bytes,
            footprint_blocks: blocks,
            read_blocks: of(|known| known.is_read),
            written_blocks: of(|known| known.is_written),
            both_blocks: of(|known| known.is_read && known.is_written),
            first_use_share: (self.first_uses / all).min(1.0),
            hottest_percent_share: hottest(self.known.values().map(|known| known.uses).collect()),
            miss_ratios: sizes(blocks).into_iter().map(point).collect(),
        }
    }
}

/// Blocks up to a slot.
fn sum(tree: &[u32], slot: u32) -> u32 {
    let mut at = slot as usize + 1;
    let mut sum = 0;
    while at > 0 {
        sum += tree[at];
        at -= at & at.wrapping_neg();
    }
    sum
}

/// The share of the uses that the hottest hundredth of the blocks has.
fn hottest(mut uses: Vec<u64>) -> f64 {
    uses.sort_unstable_by(|a, b| b.cmp(a));
    let count = uses.len().div_ceil(100);
    let sum = |of: &[u64]| of.iter().sum::<u64>() as f64;
    sum(&uses[..count]) / sum(&uses).max(1.0)
}

/// Sizes of caches, four in each power of two, up to one that holds all.
fn sizes(blocks: f64) -> Vec<u64> {
    let mut all = BTreeMap::new();
    let mut octave = 1u64;
    loop {
        for quarter in 4..8 {
            all.insert(octave * quarter / 4, ());
            if octave as f64 * f64::from(quarter as u32) / 4.0 >= blocks {
                return all.into_keys().collect();
            }
        }
        octave *= 2;
    }
}

/// How blocks are used again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReuseSummary {
    /// The share of the blocks that was looked at; 1 is exact.
    pub sampled_share: f64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Distinct blocks.
    pub footprint_blocks: f64,
    /// Distinct blocks that were read.
    pub read_blocks: f64,
    /// Distinct blocks that were written.
    pub written_blocks: f64,
    /// Distinct blocks that were both.
    pub both_blocks: f64,
    /// The share of the uses of blocks that are the first.
    pub first_use_share: f64,
    /// The share of the uses that the hottest hundredth of the blocks has.
    pub hottest_percent_share: f64,
    /// What a cache that drops what is unused for longest would miss, by its size.
    pub miss_ratios: Vec<MissRatio>,
}

/// A cache of a size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MissRatio {
    /// What it holds.
    pub cache_bytes: u64,
    /// The share of the uses of blocks that it misses, first uses included.
    pub share: f64,
}
