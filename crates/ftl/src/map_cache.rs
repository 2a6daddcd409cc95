//! Map cache: the part of the map in the controller's memory, on drives that do not hold all of it.

const NONE: u32 = u32::MAX;

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
struct Page {
    newer: u32,
    older: u32,
    held: bool,
    changed: bool,
}

/// LRU cache of map pages in memory.
#[derive(Debug, Clone)]
pub struct MapCache {
    pages: Vec<Page>,
    newest: u32,
    oldest: u32,
    held: u32,
    room: u32,
    units_per_page: u32,
    hits: u64,
    misses: u64,
    written_back: u64,
}

impl MapCache {
    /// Creates an empty cache of `room` pages, each with the entries of `units_per_page` mapping
    /// units, for a map of `logical_units` units.
    ///
    /// # Panics
    /// If `room` or `units_per_page` is 0.
    pub fn new(room: u32, units_per_page: u32, logical_units: u32) -> Self {
        assert!(room > 0 && units_per_page > 0);
        let absent = Page {
            newer: NONE,
            older: NONE,
            held: false,
            changed: false,
        };
        Self {
            pages: vec![absent; logical_units.div_ceil(units_per_page) as usize],
            newest: NONE,
            oldest: NONE,
            held: 0,
            room,
            units_per_page,
            hits: 0,
            misses: 0,
            written_back: 0,
        }
    }

    /// Looks up the map entry of a mapping unit, and marks its page as changed if `change` is set.
    ///
    /// # Panics
    /// If the map has no such unit.
    pub fn look_up(&mut self, logical: u32, change: bool) -> Lookup {
        let page = self.page_of(logical);
        let lookup = if self.pages[page as usize].held {
            self.hits += 1;
            self.unlink(page);
            Lookup::Hit
        } else {
            self.misses += 1;
            let written_back = self.make_room();
            self.held += 1;
            Lookup::Miss { written_back }
        };
        self.link(page);
        self.pages[page as usize].changed |= change;
        lookup
    }

    /// Returns the map page that holds a mapping unit's entry.
    pub fn page_of(&self, logical: u32) -> u32 {
        logical / self.units_per_page
    }

    /// Returns the number of pages of the entire map.
    pub fn pages(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Marks a page as written back, so that memory and flash agree.
    ///
    /// # Panics
    /// If the map has no such page.
    pub fn written(&mut self, page: u32) {
        self.pages[page as usize].changed = false;
    }

    /// Iterates over the pages in memory that are newer than those in flash, in ascending order.
    pub fn changed(&self) -> impl Iterator<Item = u32> + '_ {
        (0..)
            .zip(&self.pages)
            .filter(|(_, page)| page.changed)
            .map(|(index, _)| index)
    }

    /// Returns the numbers of hits, of misses, and of pages written back to make space.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.hits, self.misses, self.written_back)
    }

    /// Drops the least recently used page if the cache is full, and returns that page if it was
    /// changed.
    fn make_room(&mut self) -> Option<u32> {
        if self.held < self.room {
            return None;
        }
        let oldest = self.oldest;
        self.unlink(oldest);
        self.held -= 1;
        let page = &mut self.pages[oldest as usize];
        let changed = std::mem::take(&mut page.changed);
        self.written_back += u64::from(changed);
        changed.then_some(oldest)
    }

    fn link(&mut self, page: u32) {
        self.pages[page as usize] = Page {
            newer: NONE,
            older: self.newest,
            held: true,
            ..self.pages[page as usize]
        };
        match self.newest {
            NONE => self.oldest = page,
            newest => self.pages[newest as usize].newer = page,
        }
        self.newest = page;
    }

    fn unlink(&mut self, page: u32) {
        let Page { newer, older, .. } = self.pages[page as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.pages[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.pages[older as usize].newer = newer,
        }
        self.pages[page as usize].held = false;
    }
}
