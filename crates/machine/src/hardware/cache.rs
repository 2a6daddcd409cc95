//! Sector cache of a controller: runs of sectors, with eviction of the least recently used.

use std::collections::VecDeque;

/// Cache statistics of one class of accesses since the computer was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Read commands of this class of accesses.
    pub reads: u64,
    /// Cache hits: reads that needed no new work of the arm.
    pub hits: u64,
    /// Sectors of all read commands of this class of accesses.
    pub sectors: u64,
    /// Sectors of reads that were in the cache when the command was decoded.
    pub sectors_held: u64,
    /// Write commands of this class of accesses.
    pub writes: u64,
    /// Number of times that the arm chose among several waiting commands, counted by the class of
    /// the first one.
    pub choices: u64,
}

/// Run of consecutive sectors of one drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedRun {
    drive: usize,
    first: u64,
    end: u64,
}

/// Sector cache with a fixed capacity. Each sector is in one run only.
#[derive(Clone, Debug)]
pub(crate) struct SectorCache {
    capacity: u64,
    cached_sectors: u64,
    /// Cached runs of sectors, the least recently used first.
    runs: VecDeque<CachedRun>,
}

impl SectorCache {
    pub(crate) fn new(capacity_sectors: u32) -> Self {
        Self {
            capacity: u64::from(capacity_sectors),
            cached_sectors: 0,
            runs: VecDeque::new(),
        }
    }

    /// Returns the number of cached sectors in `first..end` that follow `first` without a gap.
    pub(crate) fn cached_prefix(&self, drive: usize, first: u64, end: u64) -> u64 {
        let mut at = first;
        while at < end {
            let holds = |run: &&CachedRun| run.drive == drive && run.first <= at && at < run.end;
            match self.runs.iter().rev().find(holds) {
                Some(run) => at = run.end.min(end),
                None => break,
            }
        }
        at - first
    }

    /// Marks sectors as most recently used.
    pub(crate) fn touch(&mut self, drive: usize, first: u64, end: u64) {
        let mut touched = self.remove(drive, first, end);
        for run in touched.drain(..) {
            self.push(run);
        }
    }

    /// Inserts sectors into the cache, and evicts the least recently used if the cache is full.
    pub(crate) fn insert(&mut self, drive: usize, first: u64, end: u64) {
        self.remove(drive, first, end);
        if first < end {
            self.push(CachedRun { drive, first, end });
        }
        while self.cached_sectors > self.capacity {
            let excess = self.cached_sectors - self.capacity;
            let oldest = &mut self.runs[0];
            let length = oldest.end - oldest.first;
            if length <= excess {
                self.cached_sectors -= length;
                self.runs.pop_front();
            } else {
                oldest.first += excess;
                self.cached_sectors -= excess;
            }
        }
    }

    fn push(&mut self, run: CachedRun) {
        self.cached_sectors += run.end - run.first;
        match self.runs.back_mut() {
            Some(last) if last.drive == run.drive && last.end == run.first => last.end = run.end,
            _ => self.runs.push_back(run),
        }
    }

    /// Removes sectors from the cache. Returns the runs that were cached.
    pub(crate) fn remove(&mut self, drive: usize, first: u64, end: u64) -> Vec<CachedRun> {
        let mut removed = Vec::new();
        let overlaps = |run: &CachedRun| {
            run.drive == drive && run.first < end && first < run.end && first < end
        };
        if !self.runs.iter().any(overlaps) {
            return removed;
        }
        let mut kept = VecDeque::with_capacity(self.runs.len() + 1);
        for run in self.runs.drain(..) {
            if !overlaps(&run) {
                kept.push_back(run);
                continue;
            }
            let common = CachedRun {
                drive,
                first: run.first.max(first),
                end: run.end.min(end),
            };
            self.cached_sectors -= common.end - common.first;
            removed.push(common);
            for (first, end) in [(run.first, common.first), (common.end, run.end)] {
                if first < end {
                    kept.push_back(CachedRun { drive, first, end });
                }
            }
        }
        self.runs = kept;
        removed
    }

    /// Removes all sectors from the cache.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
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
        cache.insert(0, 10, 20);
        cache.insert(0, 30, 40);
        cache.insert(0, 20, 25);
        assert_eq!(cache.cached_prefix(0, 12, 40), 13);
        assert_eq!(cache.cached_prefix(0, 12, 15), 3);
        assert_eq!(cache.cached_prefix(0, 26, 40), 0);
        assert_eq!(cache.cached_prefix(1, 12, 15), 0);
    }

    #[test]
    fn the_longest_unused_goes_first() {
        let mut cache = SectorCache::new(30);
        cache.insert(0, 0, 10);
        cache.insert(0, 100, 110);
        cache.insert(0, 200, 210);
        cache.touch(0, 0, 10);
        cache.insert(0, 300, 305);
        assert_eq!(cache.cached_prefix(0, 0, 10), 10);
        assert_eq!(cache.cached_prefix(0, 100, 110), 0);
        assert_eq!(cache.cached_prefix(0, 105, 110), 5);
        assert_eq!(cache.cached_sectors(), 30);
    }

    #[test]
    fn a_sector_is_held_once() {
        let mut cache = SectorCache::new(1000);
        for first in [0, 5, 3, 50, 45] {
            cache.insert(0, first, first + 10);
        }
        assert_eq!(cache.cached_sectors(), 15 + 15);
        cache.remove(0, 4, 6);
        assert_eq!(cache.cached_sectors(), 28);
        assert_eq!(cache.cached_prefix(0, 0, 20), 4);
        cache.clear();
        assert_eq!(cache.cached_sectors(), 0);
    }
}
