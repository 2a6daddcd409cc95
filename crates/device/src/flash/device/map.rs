//! Map cache of a drive whose memory does not hold the entire map: page reads before a host read
//! can continue, and write-back of changed pages.

use super::super::places::Place;
use super::programs::Author;
use super::reads::Reader;
use super::*;
use diskperf_ftl::{Lookup, MapCache, Writer};

/// Mapping units per map page, with entries of 4 bytes each.
pub(super) const PAGE_UNITS: u32 = UNIT_BYTES / 4;

/// Map pages in memory, and changed pages that wait for write-back.
#[derive(Clone, Debug)]
pub(super) struct Map {
    cache: MapCache,
    /// Changed pages that have left the cache and wait for write-back.
    owed: Vec<u32>,
    /// Scratch list of map pages that a command misses.
    missing: Vec<u32>,
}

impl Map {
    pub(super) fn new(pages: u32, logical_units: u32) -> Self {
        Self {
            cache: MapCache::new(pages, PAGE_UNITS, logical_units),
            owed: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Tests whether map pages wait for write-back.
    pub(super) fn has_work(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Returns the number of map-cache hits and misses.
    pub(super) fn counts(&self) -> (u64, u64) {
        let (hits, misses, _) = self.cache.counts();
        (hits, misses)
    }

    /// Looks up the map pages of a range of mapping units, and lists the misses in `missing`.
    fn look_up(&mut self, (first, units): (u32, u32), change: bool) {
        self.missing.clear();
        if units == 0 {
            return;
        }
        for page in first / PAGE_UNITS..=(first + units - 1) / PAGE_UNITS {
            let logical = first.max(page * PAGE_UNITS);
            if let Lookup::Miss { written_back } = self.cache.look_up_entry(logical, change) {
                self.missing.push(page);
                self.owed.extend(written_back);
            }
        }
    }
}

impl Flash {
    /// Returns the number of map-cache hits and misses; `None` if the entire map is in memory.
    pub fn map_look_ups(&self) -> Option<(u64, u64)> {
        self.map.as_ref().map(|map| map.counts())
    }

    /// Reads the map pages that a host read misses, and returns whether the read waits for any.
    pub(super) fn reads_map(&mut self, now: Time, id: RequestId, units: (u32, u32)) -> bool {
        self.read_pages(now, units, Some(id));
        self.commands[id.place()].left > 0
    }

    /// Changes entries of the map. Missing pages are read in the background.
    pub(super) fn change_map(&mut self, now: Time, units: (u32, u32)) {
        self.read_pages(now, units, None);
    }

    fn read_pages(&mut self, now: Time, units: (u32, u32), reader: Option<RequestId>) {
        let Some(map) = &mut self.map else { return };
        map.look_up(units, reader.is_none());
        let missing = std::mem::take(&mut map.missing);
        for page in &missing {
            let place = self.map_place(*page);
            let op = self.new_read(now, Reader::Map(reader), place);
            let die = &mut self.dies[place.die as usize];
            match reader {
                Some(id) => {
                    die.reads.push_back(op);
                    self.commands[id.place()].left += 1;
                }
                None => die.own_reads.push_back(op),
            }
            self.stop_for_reads(now, place.die);
            self.serve(now, place.die);
        }
        if let Some(map) = &mut self.map {
            map.missing = missing;
        }
    }

    /// Returns the place of a map page. A page not written during the run has a pseudo-random
    /// place.
    fn map_place(&self, page: u32) -> Place {
        let written = self
            .ftl
            .read_system(self.specification.journal.pages + page);
        if let Some(physical) = written {
            return self.place(physical);
        }
        let geometry = &self.specification.geometry;
        // Neighbours are on different dies, as they were written after one another.
        let spread = page.wrapping_mul(0x9e37_79b9);
        Place {
            die: page % geometry.dies(),
            plane: spread % geometry.planes,
            page: 0,
            cached: false,
            word_line: spread % (geometry.blocks * geometry.word_lines),
        }
    }

    /// Queues a program of map pages for write-back once they fill it, and returns whether it did.
    pub(super) fn assign_map(&mut self, now: Time) -> bool {
        let program_units = self.specification.geometry.program_units() as usize;
        let owes = (self.map.as_ref()).is_some_and(|map| map.owed.len() >= program_units);
        if !owes || self.holds_host() {
            return false;
        }
        let Some(die) = self.free_die(Writer::LayerOwn) else {
            return false;
        };
        self.ftl.prefer_die(die);
        let number = self.new_program(Author::Map, die);
        let map = self.map.as_mut().expect("it owes pages");
        let first = self.specification.journal.pages;
        let mut last = None;
        for page in map.owed.drain(..program_units) {
            let placed = self.ftl.write_system(first + page);
            last = Some(placed.expect("a superblock was free for the map"));
        }
        self.put(now, number, last);
        true
    }
}
