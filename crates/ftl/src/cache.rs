//! The cache of one bit a cell: what room it has, and folding it into the rest.

use crate::frontier::Writer;
use crate::ftl::{Ftl, State};
use crate::traffic::Cause;

impl Ftl {
    /// Whether a superblock is programmed with one bit a cell.
    pub fn is_cache(&self, superblock: u32) -> bool {
        self.superblocks[superblock as usize].cached
    }

    /// Where the next unit goes that the host writes to `stream`: into the cache, if there is
    /// one that has room.
    pub fn next_writer(&self, stream: u32) -> Writer {
        match self.features.cache {
            Some(_) if self.cache_takes() => Writer::Cache,
            Some(_) | None => Writer::Host(stream),
        }
    }

    fn cache_takes(&self) -> bool {
        let has_open = self.frontiers[self.cache_frontier()].is_some();
        has_open || !self.fixed_free.is_empty() || self.may_join()
    }

    /// Whether another superblock may join the cache.
    fn may_join(&self) -> bool {
        !self.are_few_free() && self.dynamic < self.dynamic_limit()
    }

    fn are_few_free(&self) -> bool {
        self.free_superblocks() <= self.specification.soft_free
    }

    /// Whether an erase alone would let another superblock join the cache. What was trimmed
    /// or overwritten is the cache's room too, and no write to the rest of the drive may
    /// ever ask for it.
    pub(crate) fn wants_erase(&self) -> bool {
        self.features.cache.is_some()
            && self.are_few_free()
            && self.buckets.has_empty()
            && self.dynamic < self.dynamic_limit()
    }

    /// Units that the cache can hold with what is mapped now, folded empty before.
    pub fn cache_units(&self) -> u64 {
        let Some(cache) = self.features.cache else {
            return 0;
        };
        let superblocks = cache.fixed_superblocks + self.dynamic_limit();
        u64::from(superblocks) * u64::from(self.data_units / cache.bits)
    }

    /// Units that the cache takes before something is folded, as things are; none without a
    /// cache.
    pub fn cache_free_units(&self) -> Option<u64> {
        let cache = self.features.cache?;
        let room = self.units / cache.bits;
        let open = self.frontiers[self.cache_frontier()];
        let left = open.map_or(0, |open| {
            room.saturating_sub(self.superblocks[open as usize].written)
        });
        let spare = (self.free_superblocks()).saturating_sub(self.specification.soft_free);
        let joining = self.dynamic_limit().saturating_sub(self.dynamic).min(spare);
        let whole = self.fixed_free.len() as u64 + u64::from(joining);
        Some(u64::from(left) + whole * u64::from(room))
    }

    /// Superblocks of the cache that are full, and can be folded.
    pub fn cached_superblocks(&self) -> u32 {
        self.cached.len() as u32
    }

    /// Superblocks that may join the cache: as many as the unmapped units would fill, as
    /// what the cache holds needs no place elsewhere until it is folded.
    fn dynamic_limit(&self) -> u32 {
        let Some(cache) = self.features.cache else {
            return 0;
        };
        let logical = u64::from(self.specification.logical_units) + self.system_mapped;
        let unmapped = logical - (self.mapped - self.lent_valid);
        cache
            .dynamic_superblocks
            .min((unmapped / u64::from(self.data_units)) as u32)
    }

    /// Whether a superblock joined the cache, and will leave it.
    pub(crate) fn is_lent(&self, superblock: u32) -> bool {
        superblock >= self.features.fixed_superblocks() && self.is_cache(superblock)
    }

    /// Opens a superblock for the cache; none when it has no more room.
    pub(crate) fn open_cache(&mut self, frontier: usize, stream: u32) -> Option<u32> {
        let superblock = match self.fixed_free.pop_first() {
            Some((_, fixed)) => fixed,
            None => {
                if !self.may_join() {
                    return None;
                }
                self.dynamic += 1;
                self.free.pop_first()?.1
            }
        };
        self.superblocks[superblock as usize].cached = true;
        self.begin_superblock(superblock, frontier, stream);
        Some(superblock)
    }

    /// Begins to fold the superblock of the cache that was closed first; its copies are
    /// made as a collection's. None when there is none, or a collection is under way.
    pub fn begin_folding(&mut self) -> Option<u32> {
        if self.collection.is_some() {
            return None;
        }
        let superblock = self.cached.pop_front()?;
        self.begin(superblock, Cause::Folding);
        Some(superblock)
    }

    /// A superblock of the cache that must be folded now: what was written elsewhere has
    /// taken the room that it was lent.
    pub(crate) fn overdrawn(&mut self) -> Option<u32> {
        if self.dynamic == 0 || self.dynamic <= self.dynamic_limit() {
            return None;
        }
        let fixed = self.features.fixed_superblocks();
        let index = self.cached.iter().position(|&it| it >= fixed)?;
        self.cached.remove(index)
    }

    /// Frees an erased superblock of the cache.
    pub(crate) fn free_cache(&mut self, superblock: u32) {
        let block = &mut self.superblocks[superblock as usize];
        if superblock < self.features.fixed_superblocks() {
            self.fixed_free.insert((block.erases, superblock));
            return;
        }
        block.cached = false;
        self.dynamic -= 1;
        self.free.insert((block.erases, superblock));
    }

    /// Puts back what a collection of the cache did not empty.
    pub(crate) fn recache(&mut self, superblock: u32) {
        self.superblocks[superblock as usize].state = State::Cached;
        self.cached.push_front(superblock);
    }
}
