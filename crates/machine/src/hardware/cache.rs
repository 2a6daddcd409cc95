//! Sector cache of a controller: runs of sectors, with eviction of the least recently used.

use std::collections::VecDeque;

/// Cache statistics of one class of accesses since the computer was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Read commands of this class of accesses.
    pub read_count: u64,
    /// Cache hits: reads that needed no new work of the arm.
    pub hit_count: u64,
    /// Sectors of all read commands of this class of accesses.
    pub read_sectors: u64,
    /// Sectors of reads that were in the cache when the command was decoded.
    pub read_sectors_cached: u64,
    /// Write commands of this class of accesses.
    pub write_count: u64,
    /// Number of times that the arm chose among several waiting commands, counted by the class of
    /// the first one.
    pub policy_choice_count: u64,
}

/// Run of consecutive sectors of one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedExtent {
    drive: usize,
    first_sector: u64,
    end_sector: u64,
}

/// Sector cache with a fixed capacity. Each sector is in one run only.
#[derive(Clone, Debug)]
pub(crate) struct SectorCache {
    capacity_sectors: u64,
    cached_sectors: u64,
    /// Cached runs of sectors, the least recently used first.
    extents_by_recency: VecDeque<CachedExtent>,
}

impl SectorCache {
    pub(crate) fn new(capacity_sectors: u32) -> Self {
        Self {
            capacity_sectors: u64::from(capacity_sectors),
            cached_sectors: 0,
            extents_by_recency: VecDeque::new(),
        }
    }

    /// Returns the number of cached sectors in `first..end` that follow `first` without a gap.
    pub(crate) fn cached_prefix(&self, drive: usize, first: u64, end: u64) -> u64 {
        let mut at = first;
        while at < end {
            let holds = |run: &&CachedExtent| {
                run.drive == drive && run.first_sector <= at && at < run.end_sector
            };
            match self.extents_by_recency.iter().rev().find(holds) {
                Some(run) => at = run.end_sector.min(end),
                None => break,
            }
        }
        at - first
    }

    pub(crate) fn mark_recently_used(&mut self, drive: usize, first: u64, end: u64) {
        let mut touched = self.remove_extent(drive, first, end);
        for run in touched.drain(..) {
            self.push_extent(run);
        }
    }

    /// Inserts sectors into the cache, and evicts the least recently used if the cache is full.
    pub(crate) fn insert_extent(&mut self, drive: usize, first: u64, end: u64) {
        self.remove_extent(drive, first, end);
        if first < end {
            self.push_extent(CachedExtent {
                drive,
                first_sector: first,
                end_sector: end,
            });
        }
        while self.cached_sectors > self.capacity_sectors {
            let excess = self.cached_sectors - self.capacity_sectors;
            let oldest = &mut self.extents_by_recency[0];
            let length = oldest.end_sector - oldest.first_sector;
            if length <= excess {
                self.cached_sectors -= length;
                self.extents_by_recency.pop_front();
            } else {
                oldest.first_sector += excess;
                self.cached_sectors -= excess;
            }
        }
    }

    fn push_extent(&mut self, run: CachedExtent) {
        self.cached_sectors += run.end_sector - run.first_sector;
        match self.extents_by_recency.back_mut() {
            Some(last) if last.drive == run.drive && last.end_sector == run.first_sector => {
                last.end_sector = run.end_sector
            }
            _ => self.extents_by_recency.push_back(run),
        }
    }

    /// Removes sectors from the cache. Returns the runs that were cached.
    pub(crate) fn remove_extent(
        &mut self,
        drive: usize,
        first: u64,
        end: u64,
    ) -> Vec<CachedExtent> {
        let mut removed = Vec::new();
        let overlaps = |run: &CachedExtent| {
            run.drive == drive && run.first_sector < end && first < run.end_sector && first < end
        };
        if !self.extents_by_recency.iter().any(overlaps) {
            return removed;
        }
        let mut kept = VecDeque::with_capacity(self.extents_by_recency.len() + 1);
        for run in self.extents_by_recency.drain(..) {
            if !overlaps(&run) {
                kept.push_back(run);
                continue;
            }
            let common = CachedExtent {
                drive,
                first_sector: run.first_sector.max(first),
                end_sector: run.end_sector.min(end),
            };
            self.cached_sectors -= common.end_sector - common.first_sector;
            removed.push(common);
            for (first, end) in [
                (run.first_sector, common.first_sector),
                (common.end_sector, run.end_sector),
            ] {
                if first < end {
                    kept.push_back(CachedExtent {
                        drive,
                        first_sector: first,
                        end_sector: end,
                    });
                }
            }
        }
        self.extents_by_recency = kept;
        removed
    }

    /// Removes all sectors from the cache.
    pub(crate) fn clear(&mut self) {
        self.extents_by_recency.clear();
        self.cached_sectors = 0;
    }

    /// Number of sectors in the controller's cache.
    #[cfg(test)]
    pub(crate) fn cached_sectors(&self) -> u64 {
        self.cached_sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_goes_over_adjacent_runs_and_stops_at_a_gap() {
        let mut cache = SectorCache::new(100);
        cache.insert_extent(0, 10, 20);
        cache.insert_extent(0, 30, 40);
        cache.insert_extent(0, 20, 25);
        assert_eq!(cache.cached_prefix(0, 12, 40), 13);
        assert_eq!(cache.cached_prefix(0, 12, 15), 3);
        assert_eq!(cache.cached_prefix(0, 26, 40), 0);
        assert_eq!(cache.cached_prefix(1, 12, 15), 0);
    }

    #[test]
    fn the_least_recently_used_sectors_are_evicted_first() {
        let mut cache = SectorCache::new(30);
        cache.insert_extent(0, 0, 10);
        cache.insert_extent(0, 100, 110);
        cache.insert_extent(0, 200, 210);
        cache.mark_recently_used(0, 0, 10);
        cache.insert_extent(0, 300, 305);
        assert_eq!(cache.cached_prefix(0, 0, 10), 10);
        assert_eq!(cache.cached_prefix(0, 100, 110), 0);
        assert_eq!(cache.cached_prefix(0, 105, 110), 5);
        assert_eq!(cache.cached_sectors(), 30);
    }

    #[test]
    fn a_sector_is_cached_once() {
        let mut cache = SectorCache::new(1000);
        for first in [0, 5, 3, 50, 45] {
            cache.insert_extent(0, first, first + 10);
        }
        assert_eq!(cache.cached_sectors(), 15 + 15);
        cache.remove_extent(0, 4, 6);
        assert_eq!(cache.cached_sectors(), 28);
        assert_eq!(cache.cached_prefix(0, 0, 20), 4);
        cache.clear();
        assert_eq!(cache.cached_sectors(), 0);
    }
}
