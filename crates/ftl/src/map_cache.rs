//! Map cache: the part of the map in the controller's memory, on drives that do not hold all of it.

const NO_PAGE: u32 = u32::MAX;

/// Result of a lookup in the map cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The map page was in memory.
    Hit,
    /// The map page must be read from flash.
    Miss {
        /// Changed page that must be written back first, to make space.
        written_back: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy)]
struct MapPage {
    newer_page: u32,
    older_page: u32,
    is_cached: bool,
    is_dirty: bool,
}

/// Numbers of lookups by result, and of pages written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapCacheCounts {
    /// Lookups whose map page was in memory.
    pub hit_count: u64,
    /// Lookups whose map page had to be read from flash.
    pub miss_count: u64,
    /// Changed pages that were written back to make space.
    pub written_back_count: u64,
}

/// LRU cache of map pages in memory.
#[derive(Debug, Clone)]
pub struct MapCache {
    pages: Vec<MapPage>,
    newest_page: u32,
    oldest_page: u32,
    cached_page_count: u32,
    capacity_pages: u32,
    units_per_page: u32,
    hit_count: u64,
    miss_count: u64,
    written_back_count: u64,
}

impl MapCache {
    /// Creates an empty cache of `room` pages, each with the entries of `units_per_page` mapping
    /// units, for a map of `logical_units` units.
    ///
    /// # Panics
    /// If `room` or `units_per_page` is 0.
    pub fn new(room: u32, units_per_page: u32, logical_units: u32) -> Self {
        assert!(room > 0 && units_per_page > 0);
        let absent = MapPage {
            newer_page: NO_PAGE,
            older_page: NO_PAGE,
            is_cached: false,
            is_dirty: false,
        };
        Self {
            pages: vec![absent; logical_units.div_ceil(units_per_page) as usize],
            newest_page: NO_PAGE,
            oldest_page: NO_PAGE,
            cached_page_count: 0,
            capacity_pages: room,
            units_per_page,
            hit_count: 0,
            miss_count: 0,
            written_back_count: 0,
        }
    }

    /// Looks up the map entry of a mapping unit, and marks its page as changed if `change` is set.
    ///
    /// # Panics
    /// If the map has no such unit.
    pub fn look_up_entry(&mut self, logical: u32, change: bool) -> Lookup {
        let page = self.page_of(logical);
        let lookup = if self.pages[page as usize].is_cached {
            self.hit_count += 1;
            self.unlink_page(page);
            Lookup::Hit
        } else {
            self.miss_count += 1;
            let written_back = self.make_room();
            self.cached_page_count += 1;
            Lookup::Miss { written_back }
        };
        self.link_newest(page);
        self.pages[page as usize].is_dirty |= change;
        lookup
    }

    /// Returns the map page that holds a mapping unit's entry.
    pub fn page_of(&self, logical: u32) -> u32 {
        logical / self.units_per_page
    }

    /// Returns the number of pages of the entire map.
    pub fn page_count(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Marks a page as written back, so that memory and flash agree.
    ///
    /// # Panics
    /// If the map has no such page.
    pub fn mark_written(&mut self, page: u32) {
        self.pages[page as usize].is_dirty = false;
    }

    /// Iterates over the pages in memory that are newer than those in flash, in ascending order.
    pub fn dirty_pages(&self) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.pages)
            .filter(|(_, page)| page.is_dirty)
            .map(|(index, _)| index)
    }

    /// Returns the numbers of hits, misses and written-back pages since the cache was created.
    pub fn counts(&self) -> MapCacheCounts {
        MapCacheCounts {
            hit_count: self.hit_count,
            miss_count: self.miss_count,
            written_back_count: self.written_back_count,
        }
    }

    /// Drops the least recently used page if the cache is full, and returns that page if it was
    /// changed.
    fn make_room(&mut self) -> Option<u32> {
        if self.cached_page_count < self.capacity_pages {
            return None;
        }
        let oldest = self.oldest_page;
        self.unlink_page(oldest);
        self.cached_page_count -= 1;
        let page = &mut self.pages[oldest as usize];
        let changed = std::mem::take(&mut page.is_dirty);
        self.written_back_count += u64::from(changed);
        changed.then_some(oldest)
    }

    fn link_newest(&mut self, page: u32) {
        self.pages[page as usize] = MapPage {
            newer_page: NO_PAGE,
            older_page: self.newest_page,
            is_cached: true,
            ..self.pages[page as usize]
        };
        match self.newest_page {
            NO_PAGE => self.oldest_page = page,
            newest => self.pages[newest as usize].newer_page = page,
        }
        self.newest_page = page;
    }

    fn unlink_page(&mut self, page: u32) {
        let MapPage {
            newer_page: newer,
            older_page: older,
            ..
        } = self.pages[page as usize];
        match newer {
            NO_PAGE => self.newest_page = older,
            newer => self.pages[newer as usize].older_page = older,
        }
        match older {
            NO_PAGE => self.oldest_page = newer,
            older => self.pages[older as usize].newer_page = newer,
        }
        self.pages[page as usize].is_cached = false;
    }
}
