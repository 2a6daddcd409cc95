//! Reuse distances of blocks, and the miss ratio of a cache of any size. The method is SHARDS
//! (Waldspurger and others 2015), of fixed size and adjusted.

use super::histogram::Histogram;
use super::stack::{ByBlock, LruStack, hash_block};
use serde::Serialize;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

/// Range of the block hashes. A block is sampled if its hash is below a threshold, which is this
/// value while all blocks are sampled.
const HASH_RANGE: u64 = 1 << 24;

/// Record of a sampled block.
#[derive(Clone, Copy, Debug, Default)]
struct SampledBlock {
    use_count: u64,
    is_read: bool,
    is_written: bool,
}

/// Reuse distances of a sample of the blocks.
#[derive(Debug)]
pub(super) struct ReuseStatistics {
    sampled_blocks_max: usize,
    hash_threshold: u64,
    sampled_blocks: ByBlock<SampledBlock>,
    sampled_hashes: BinaryHeap<(u64, u64)>,
    lru_stack: LruStack,
    distance_histogram: Histogram,
    first_use_count: f64,
    use_count: u64,
    /// Most recently used blocks. `None` as long as all blocks are sampled.
    recent_blocks: Option<RecentBlocks>,
}

/// All of the most recently used blocks. A sample cannot show distances as short as the gaps
/// between its blocks.
#[derive(Debug)]
struct RecentBlocks {
    lru_stack: LruStack,
    distance_histogram: Histogram,
}

impl RecentBlocks {
    fn use_block(&mut self, block: u64, most_blocks: usize) {
        if let Some(distance) = self.lru_stack.use_block(block) {
            self.distance_histogram.add(distance, 1.0);
        }
        if self.lru_stack.len() > most_blocks {
            self.lru_stack.remove_oldest();
        }
    }
}

impl ReuseStatistics {
    /// Creates a sample of at most `most_blocks` blocks.
    pub(super) fn new(most_blocks: usize) -> Self {
        Self {
            sampled_blocks_max: most_blocks,
            hash_threshold: HASH_RANGE,
            sampled_blocks: ByBlock::default(),
            sampled_hashes: BinaryHeap::new(),
            lru_stack: LruStack::new(most_blocks),
            distance_histogram: Histogram::default(),
            first_use_count: 0.0,
            use_count: 0,
            recent_blocks: None,
        }
    }

    pub(super) fn use_count(&self) -> u64 {
        self.use_count
    }

    fn sampling_rate(&self) -> f64 {
        self.hash_threshold as f64 / HASH_RANGE as f64
    }

    pub(super) fn add_uses(&mut self, space: u64, blocks: Range<u64>, write: bool) {
        // Of a long range, a block in the middle has more blocks before it than are followed,
        // and so was not used near; and the last ones are all that stay.
        let followed = self.sampled_blocks_max as u64;
        let middle = blocks.start.saturating_add(followed)..blocks.end.saturating_sub(followed);
        for block in blocks {
            self.add_use(space ^ block, write, !middle.contains(&block));
        }
    }

    #[inline]
    fn add_use(&mut self, block: u64, write: bool, is_followed: bool) {
        self.use_count += 1;
        if let Some(near) = self.recent_blocks.as_mut().filter(|_| is_followed) {
            near.use_block(block, self.sampled_blocks_max);
        }
        let hash = hash_block(block) % HASH_RANGE;
        if hash < self.hash_threshold {
            self.add_sampled_use(block, hash, write);
        }
    }

    fn add_sampled_use(&mut self, block: u64, hash: u64, write: bool) {
        let known = self.sampled_blocks.entry(block).or_default();
        known.use_count += 1;
        known.is_read |= !write;
        known.is_written |= write;
        match self.lru_stack.use_block(block) {
            Some(after) => {
                let distance = (after as f64 / self.sampling_rate()).round() as u64;
                self.distance_histogram.add(distance, 1.0);
            }
            None => {
                self.first_use_count += 1.0;
                self.sampled_hashes.push((hash, block));
            }
        }
        while self.sampled_blocks.len() > self.sampled_blocks_max {
            self.lower_threshold();
        }
    }

    /// Drops the blocks with the largest hash from the sample and lowers the threshold.
    fn lower_threshold(&mut self) {
        let Some((largest, _)) = self.sampled_hashes.peek().copied() else {
            return;
        };
        if self.recent_blocks.is_none() {
            self.recent_blocks = Some(self.start_recent_blocks());
        }
        let by = largest as f64 / self.hash_threshold as f64;
        self.hash_threshold = largest;
        self.distance_histogram.scale(by);
        self.first_use_count *= by;
        while self
            .sampled_hashes
            .peek()
            .is_some_and(|(hash, _)| *hash >= largest)
        {
            let (_, block) = self.sampled_hashes.pop().expect("a block");
            self.sampled_blocks.remove(&block);
            self.lru_stack.remove(block);
        }
    }

    /// Returns the most recently used blocks and their distances, which are all known as long as
    /// all blocks are sampled.
    fn start_recent_blocks(&self) -> RecentBlocks {
        let mut stack = self.lru_stack.clone();
        stack.remove_oldest();
        RecentBlocks {
            lru_stack: stack,
            distance_histogram: self.distance_histogram.clone(),
        }
    }

    /// Returns the number of uses that miss in a cache of `cache_blocks` blocks, according to the
    /// sample.
    fn sampled_miss_count(&self, cache_blocks: u64) -> f64 {
        self.distance_histogram.count_at_least(cache_blocks as f64) + self.first_use_count
    }

    /// Returns the share of uses that miss in a cache of `cache_blocks` blocks. It is exact up to
    /// the number of blocks that are all followed. Of the misses there, a larger cache has the
    /// share that it has in the sample.
    fn miss_share(&self, cache_blocks: u64) -> f64 {
        let uses = (self.use_count as f64).max(1.0);
        let Some(near) = &self.recent_blocks else {
            return self.sampled_miss_count(cache_blocks) / uses;
        };
        let followed = self.sampled_blocks_max as u64;
        let blocks = cache_blocks.min(followed);
        let hits = near.distance_histogram.total_count()
            - near.distance_histogram.count_at_least(blocks as f64);
        let misses = (1.0 - hits / uses).max(0.0);
        match cache_blocks <= followed {
            true => misses,
            false => {
                let of = self.sampled_miss_count(followed).max(f64::MIN_POSITIVE);
                misses * self.sampled_miss_count(cache_blocks) / of
            }
        }
    }

    pub(super) fn finish(self, block_bytes: u64) -> ReuseSummary {
        let rate = self.sampling_rate();
        let blocks = self.sampled_blocks.len() as f64 / rate;
        let point = |cache_blocks: u64| MissRatio {
            cache_bytes: cache_blocks * block_bytes,
            share: self.miss_share(cache_blocks).min(1.0),
        };
        let of = |which: fn(&SampledBlock) -> bool| {
            let count = self
                .sampled_blocks
                .values()
                .filter(|known| which(known))
                .count();
            count as f64 / rate
        };
        ReuseSummary {
            sampled_share: rate,
            block_bytes,
            footprint_blocks: blocks,
            read_blocks: of(|known| known.is_read),
            written_blocks: of(|known| known.is_written),
            read_and_written_blocks: of(|known| known.is_read && known.is_written),
            first_use_share: self.miss_share(u64::MAX).min(1.0),
            hottest_percent_share: hottest_percent_share(
                self.sampled_blocks
                    .values()
                    .map(|known| known.use_count)
                    .collect(),
                self.use_count as f64 * rate,
            ),
            miss_ratios: curve_cache_blocks(blocks).into_iter().map(point).collect(),
        }
    }
}

/// Returns the share of `all` uses that address the hottest hundredth of the blocks: one minus the
/// share of the other blocks. The exact number of all uses corrects that of the others, as far as
/// the two vary together from sample to sample (a regression estimator, Cochran 1977, chapter 7). A
/// single block that is much hotter than all others is in the sample or not, and says nothing on
/// the others.
fn hottest_percent_share(mut uses: Vec<u64>, all: f64) -> f64 {
    if uses.is_empty() {
        return 0.0;
    }
    uses.sort_unstable_by(|a, b| b.cmp(a));
    let hot = uses.len().div_ceil(100);
    let sum = |of: &[u64]| of.iter().map(|uses| *uses as f64).sum::<f64>();
    let squares = |of: &[u64]| of.iter().map(|uses| (*uses as f64).powi(2)).sum::<f64>();
    let together = squares(&uses[hot..]) / squares(&uses);
    let others = sum(&uses[hot..]) + together * (all - sum(&uses));
    (1.0 - others / all).clamp(0.0, 1.0)
}

/// Returns the cache sizes of the miss-ratio curve, four for each power of two, up to a cache that
/// holds all blocks.
fn curve_cache_blocks(blocks: f64) -> Vec<u64> {
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

/// Summary of the reuse of blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReuseSummary {
    /// Share of the blocks that was sampled. With 1, the summary is exact.
    pub sampled_share: f64,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Number of distinct blocks.
    pub footprint_blocks: f64,
    /// Number of distinct blocks that were read.
    pub read_blocks: f64,
    /// Number of distinct blocks that were written.
    pub written_blocks: f64,
    /// Number of distinct blocks that were both read and written.
    #[serde(rename = "both_blocks")]
    pub read_and_written_blocks: f64,
    /// Share of block uses that are the first use of a block.
    pub first_use_share: f64,
    /// Share of block uses that address the hottest hundredth of the blocks.
    pub hottest_percent_share: f64,
    /// Miss ratios of an LRU cache, by cache size.
    pub miss_ratios: Vec<MissRatio>,
}

/// Miss ratio of a cache of one size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MissRatio {
    /// Capacity of the cache in bytes.
    pub cache_bytes: u64,
    /// Share of block uses that miss, including first uses.
    pub share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_its_blocks_one_by_one() {
        let ranges: Vec<Range<u64>> = (0..400u64)
            .map(|number| (hash_block(number) % 3000, hash_block(!number) % 500))
            .map(|(first, blocks)| first..first + blocks)
            .collect();
        let (mut whole, mut single) = (ReuseStatistics::new(64), ReuseStatistics::new(64));
        for range in ranges {
            whole.add_uses(0, range.clone(), false);
            range.for_each(|block| single.add_use(block, false, true));
        }
        assert!(
            whole.recent_blocks.is_some(),
            "more blocks than are followed"
        );
        assert_eq!(whole.finish(4096), single.finish(4096));
    }
}
