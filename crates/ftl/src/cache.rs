//! SLC cache (one bit per cell) of the translation layer: its free space, and its folding into the
//! main area.

use crate::frontier::Writer;
use crate::ftl::{Ftl, State};
use crate::traffic::Cause;

impl Ftl {
    /// Reports whether a superblock is programmed as SLC cache, with one bit per cell.
    pub fn is_cache(&self, superblock: u32) -> bool {
        self.superblocks[superblock as usize].cached
    }

    /// Returns the writer of the next mapping unit that the host writes to `stream`: the SLC cache
    /// if the drive has one with free space, else the stream itself.
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

    /// Tests whether another superblock may join the SLC cache.
    fn may_join(&self) -> bool {
        !self.are_few_free() && self.dynamic < self.dynamic_limit()
    }

    fn are_few_free(&self) -> bool {
        self.free_superblocks() <= self.specification.soft_free
    }

    /// Tests whether an erase alone would let another superblock join the SLC cache. Trimmed and
    /// overwritten mapping units are also cache space, and may be all that remains to be freed if
    /// nothing is written to the main area.
    pub(crate) fn wants_erase(&self) -> bool {
        self.features.cache.is_some()
            && self.are_few_free()
            && self.buckets.has_empty()
            && self.dynamic < self.dynamic_limit()
    }

    /// Returns the capacity of the SLC cache with the present number of mapped units, in mapping
    /// units, as if the cache were empty.
    pub fn cache_units(&self) -> u64 {
        let Some(cache) = self.features.cache else {
            return 0;
        };
        let superblocks = cache.fixed_superblocks + self.dynamic_limit();
        u64::from(superblocks) * u64::from(self.data_units / cache.bits)
    }

    /// Returns the number of mapping units that the SLC cache accepts before it must be folded;
    /// `None` without a cache.
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

    /// Returns the number of full superblocks in the SLC cache, which can be folded.
    pub fn cached_superblocks(&self) -> u32 {
        self.cached.len() as u32
    }

    /// Returns the maximum number of superblocks that may join the SLC cache: as many as the
    /// unmapped units would fill. Cached data need no place elsewhere until they are folded.
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

    /// Tests whether a superblock has joined the SLC cache from the main area, and so will leave it
    /// again.
    pub(crate) fn is_lent(&self, superblock: u32) -> bool {
        superblock >= self.features.fixed_superblocks() && self.is_cache(superblock)
    }

    /// Opens a superblock for the SLC cache; `None` when the cache is full.
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

    /// Begins to fold the superblock of the SLC cache that was closed first, with copies as in
    /// garbage collection. Returns `None` when no superblock is full, or when a collection is in
    /// progress.
    pub fn begin_folding(&mut self) -> Option<u32> {
        if self.collection.is_some() {
            return None;
        }
        let superblock = self.cached.pop_front()?;
        self.begin(superblock, Cause::Folding);
        Some(superblock)
    }

    /// Removes and returns a superblock of the SLC cache that must be folded now, because writes to
    /// the main area need the space that it borrowed.
    pub(crate) fn overdrawn(&mut self) -> Option<u32> {
        if self.dynamic == 0 || self.dynamic <= self.dynamic_limit() {
            return None;
        }
        let fixed = self.features.fixed_superblocks();
        let index = self.cached.iter().position(|&it| it >= fixed)?;
        self.cached.remove(index)
    }

    /// Frees an erased superblock of the SLC cache.
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

    /// Returns a superblock to the SLC cache after its folding was abandoned.
    pub(crate) fn recache(&mut self, superblock: u32) {
        self.superblocks[superblock as usize].state = State::Cached;
        self.cached.push_front(superblock);
    }
}
