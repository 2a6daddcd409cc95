//! Map cache of a drive whose memory does not hold the entire map: page reads before a host read
//! can continue, and write-back of changed pages.

use super::super::places::PagePosition;
use super::programs::ProgramOrigin;
use super::reads::ReadOrigin;
use super::*;
use diskperf_ftl::{Lookup, MapCache, Writer};

/// Mapping units per map page, with entries of 4 bytes each.
pub(super) const PAGE_UNITS: u32 = UNIT_BYTES / 4;

/// Map pages in memory, and changed pages that wait for write-back.
#[derive(Clone, Debug)]
pub(super) struct MapReads {
    cache: MapCache,
    /// Changed pages that have left the cache and wait for write-back.
    pages_to_program: Vec<u32>,
    /// Scratch list of map pages that a command misses.
    missing_pages: Vec<u32>,
}

impl MapReads {
    pub(super) fn new(pages: u32, logical_units: u32) -> Self {
        Self {
            cache: MapCache::new(pages, PAGE_UNITS, logical_units),
            pages_to_program: Vec::new(),
            missing_pages: Vec::new(),
        }
    }

    /// Tests whether map pages wait for write-back.
    pub(super) fn has_work(&self) -> bool {
        !self.pages_to_program.is_empty()
    }

    pub(super) fn hits_and_misses(&self) -> (u64, u64) {
        let counts = self.cache.counts();
        (counts.hit_count, counts.miss_count)
    }

    /// Looks up the map pages of a range of mapping units, and lists the misses in `missing`.
    fn look_up_pages(&mut self, (first, units): (u32, u32), change: bool) {
        self.missing_pages.clear();
        if units == 0 {
            return;
        }
        for page in first / PAGE_UNITS..=(first + units - 1) / PAGE_UNITS {
            let logical = first.max(page * PAGE_UNITS);
            if let Lookup::Miss { written_back } = self.cache.look_up_entry(logical, change) {
                self.missing_pages.push(page);
                self.pages_to_program.extend(written_back);
            }
        }
    }
}

impl Flash {
    /// Returns the number of map-cache hits and misses; `None` if the entire map is in memory.
    pub fn map_look_ups(&self) -> Option<(u64, u64)> {
        self.map_cache.as_ref().map(|map| map.hits_and_misses())
    }

    /// Reads the map pages that a host read misses, and returns whether the read waits for any.
    pub(super) fn begin_map_read(&mut self, now: Time, id: RequestId, units: (u32, u32)) -> bool {
        self.read_map_pages(now, units, Some(id));
        self.commands_by_slot[id.slot()].units_left > 0
    }

    /// Changes entries of the map. Missing pages are read in the background.
    pub(super) fn mark_map_changed(&mut self, now: Time, units: (u32, u32)) {
        self.read_map_pages(now, units, None);
    }

    fn read_map_pages(&mut self, now: Time, units: (u32, u32), reader: Option<RequestId>) {
        let Some(map) = &mut self.map_cache else {
            return;
        };
        map.look_up_pages(units, reader.is_none());
        let missing = std::mem::take(&mut map.missing_pages);
        for page in &missing {
            let place = self.locate_map_page(*page);
            let op = self.create_read(now, ReadOrigin::Map(reader), place);
            let die = &mut self.dies[place.die as usize];
            match reader {
                Some(id) => {
                    die.host_reads.push_back(op);
                    self.commands_by_slot[id.slot()].units_left += 1;
                }
                None => die.own_reads.push_back(op),
            }
            self.suspend_for_reads(now, place.die);
            self.start_die_work(now, place.die);
        }
        if let Some(map) = &mut self.map_cache {
            map.missing_pages = missing;
        }
    }

    /// Returns the place of a map page. A page not written during the run has a pseudo-random
    /// place.
    fn locate_map_page(&self, page: u32) -> PagePosition {
        let written = self
            .translation_layer
            .read_system(self.specification.journal.page_count + page);
        if let Some(physical) = written {
            return self.locate_physical(physical);
        }
        let geometry = &self.specification.geometry;
        // Neighbours are on different dies, as they were written after one another.
        let spread = page.wrapping_mul(0x9e37_79b9);
        PagePosition {
            die: page % geometry.die_count(),
            plane: spread % geometry.planes_per_die,
            page_in_plane: 0,
            is_in_slc_cache: false,
            word_line: spread % (geometry.blocks_per_plane * geometry.word_lines_per_block),
        }
    }

    /// Queues a program of map pages for write-back once they fill it, and returns whether it did.
    pub(super) fn assign_map_program(&mut self, now: Time) -> bool {
        let program_units = self.specification.geometry.program_units() as usize;
        let owes = (self.map_cache.as_ref())
            .is_some_and(|map| map.pages_to_program.len() >= program_units);
        if !owes || self.blocks_host() {
            return false;
        }
        let Some(die) = self.find_free_die(Writer::LayerOwn) else {
            return false;
        };
        self.translation_layer.prefer_die(die);
        let number = self.new_program(ProgramOrigin::MapPage, die);
        let map = self.map_cache.as_mut().expect("it owes pages");
        let first = self.specification.journal.page_count;
        let mut last = None;
        for page in map.pages_to_program.drain(..program_units) {
            let placed = self.translation_layer.write_system(first + page);
            last = Some(placed.expect("a superblock was free for the map"));
        }
        self.queue_program(now, number, last);
        true
    }
}
