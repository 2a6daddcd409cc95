//! SLC cache (one bit per cell) of the translation layer: its free space, and its folding into the
//! main area.

use crate::frontier::Writer;
use crate::ftl::{Ftl, SuperblockState};
use crate::traffic::ProgramCause;

impl Ftl {
    /// Reports whether a superblock is programmed as SLC cache, with one bit per cell.
    pub fn is_slc_superblock(&self, superblock: u32) -> bool {
        self.superblocks[superblock as usize].is_slc
    }

    /// Returns the writer of the next mapping unit that the host writes to `stream`: the SLC cache
    /// if the drive has one with free space, else the stream itself.
    pub fn next_writer(&self, stream: u32) -> Writer {
        match self.features.slc_cache {
            Some(_) if self.is_cache_accepting() => Writer::SlcCache,
            Some(_) | None => Writer::Host(stream),
        }
    }

    fn is_cache_accepting(&self) -> bool {
        let has_open = self.open_superblocks[self.cache_frontier()].is_some();
        has_open || !self.fixed_cache_free.is_empty() || self.may_lend_to_cache()
    }

    /// Tests whether another superblock may join the SLC cache.
    fn may_lend_to_cache(&self) -> bool {
        !self.are_free_superblocks_scarce()
            && self.lent_superblocks < self.dynamic_superblocks_max()
    }

    fn are_free_superblocks_scarce(&self) -> bool {
        self.free_superblocks() <= self.specification.soft_free_superblocks
    }

    /// Tests whether an erase alone would let another superblock join the SLC cache. Trimmed and
    /// overwritten mapping units are also cache space, and may be all that remains to be freed if
    /// nothing is written to the main area.
    pub(crate) fn wants_erase_for_cache(&self) -> bool {
        self.features.slc_cache.is_some()
            && self.are_free_superblocks_scarce()
            && self.closed_superblocks.has_empty()
            && self.lent_superblocks < self.dynamic_superblocks_max()
    }

    /// Returns the capacity of the SLC cache with the present number of mapped units, in mapping
    /// units, as if the cache were empty.
    pub fn cache_capacity_units(&self) -> u64 {
        let Some(cache) = self.features.slc_cache else {
            return 0;
        };
        let superblocks = cache.fixed_superblocks + self.dynamic_superblocks_max();
        u64::from(superblocks) * u64::from(self.superblock_data_units / cache.bits_per_cell)
    }

    /// Returns the number of mapping units that the SLC cache accepts before it must be folded;
    /// `None` without a cache.
    pub fn cache_free_units(&self) -> Option<u64> {
        let cache = self.features.slc_cache?;
        let room = self.superblock_units / cache.bits_per_cell;
        let open = self.open_superblocks[self.cache_frontier()];
        let left = open.map_or(0, |open| {
            room.saturating_sub(self.superblocks[open as usize].placed_count)
        });
        let spare =
            (self.free_superblocks()).saturating_sub(self.specification.soft_free_superblocks);
        let joining = self
            .dynamic_superblocks_max()
            .saturating_sub(self.lent_superblocks)
            .min(spare);
        let whole = self.fixed_cache_free.len() as u64 + u64::from(joining);
        Some(u64::from(left) + whole * u64::from(room))
    }

    /// Returns the number of full superblocks in the SLC cache, which can be folded.
    pub fn foldable_superblocks(&self) -> u32 {
        self.full_cache_superblocks.len() as u32
    }

    /// Returns the maximum number of superblocks that may join the SLC cache: as many as the
    /// unmapped units would fill. Cached data need no place elsewhere until they are folded.
    fn dynamic_superblocks_max(&self) -> u32 {
        let Some(cache) = self.features.slc_cache else {
            return 0;
        };
        let logical = u64::from(self.specification.logical_units) + self.system_mapped_count;
        let unmapped = logical - (self.mapped_count - self.lent_valid_count);
        cache
            .dynamic_superblocks
            .min((unmapped / u64::from(self.superblock_data_units)) as u32)
    }

    /// Tests whether a superblock has joined the SLC cache from the main area, and so will leave it
    /// again.
    pub(crate) fn is_lent_to_cache(&self, superblock: u32) -> bool {
        superblock >= self.features.fixed_superblocks() && self.is_slc_superblock(superblock)
    }

    /// Opens a superblock for the SLC cache; `None` when the cache is full.
    pub(crate) fn open_cache_superblock(&mut self, frontier: usize, stream: u32) -> Option<u32> {
        let superblock = match self.fixed_cache_free.pop_first() {
            Some((_, fixed)) => fixed,
            None => {
                if !self.may_lend_to_cache() {
                    return None;
                }
                self.lent_superblocks += 1;
                self.free_by_erase_count.pop_first()?.1
            }
        };
        self.superblocks[superblock as usize].is_slc = true;
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
        let superblock = self.full_cache_superblocks.pop_front()?;
        self.begin_collection_of(superblock, ProgramCause::Folding);
        Some(superblock)
    }

    /// Removes and returns a superblock of the SLC cache that must be folded now, because writes to
    /// the main area need the space that it borrowed.
    pub(crate) fn take_overdrawn_superblock(&mut self) -> Option<u32> {
        if self.lent_superblocks == 0 || self.lent_superblocks <= self.dynamic_superblocks_max() {
            return None;
        }
        let fixed = self.features.fixed_superblocks();
        let index = self
            .full_cache_superblocks
            .iter()
            .position(|&it| it >= fixed)?;
        self.full_cache_superblocks.remove(index)
    }

    /// Frees an erased superblock of the SLC cache.
    pub(crate) fn free_cache_superblock(&mut self, superblock: u32) {
        let block = &mut self.superblocks[superblock as usize];
        if superblock < self.features.fixed_superblocks() {
            self.fixed_cache_free
                .insert((block.erase_count, superblock));
            return;
        }
        block.is_slc = false;
        self.lent_superblocks -= 1;
        self.free_by_erase_count
            .insert((block.erase_count, superblock));
    }

    /// Returns a superblock to the SLC cache after its folding was abandoned.
    pub(crate) fn return_to_cache(&mut self, superblock: u32) {
        self.superblocks[superblock as usize].state = SuperblockState::Cached;
        self.full_cache_superblocks.push_front(superblock);
    }
}
