//! Entries of the map. A bit per page of entries tells whether any of them was written, so that a
//! lookup of an unwritten entry touches no memory of its own.

/// Number of map entries in a page of memory.
const ENTRIES_PER_PAGE: usize = 1024;

/// Map entry of each logical unit: the physical unit + 1, or 0.
#[derive(Debug, Clone)]
pub(crate) struct MapEntries {
    /// Map entries in a zeroed allocation, which uses memory only where entries are written.
    entries: Vec<u32>,
    written_pages: Vec<u64>,
}

impl MapEntries {
    /// Creates a map of `count` entries, all 0.
    pub(crate) fn new(count: u32) -> Self {
        let pages = (count as usize).div_ceil(ENTRIES_PER_PAGE);
        Self {
            entries: vec![0; count as usize],
            written_pages: vec![0; pages.div_ceil(64)],
        }
    }

    pub(crate) fn count(&self) -> u32 {
        self.entries.len() as u32
    }

    #[inline]
    pub(crate) fn get(&self, logical: u32) -> u32 {
        assert!(logical < self.count(), "no unit {logical}");
        let page = logical as usize / ENTRIES_PER_PAGE;
        match self.written_pages[page / 64] >> (page % 64) & 1 {
            0 => 0,
            _ => self.entries[logical as usize],
        }
    }

    #[inline]
    pub(crate) fn set(&mut self, logical: u32, entry: u32) {
        let page = logical as usize / ENTRIES_PER_PAGE;
        self.written_pages[page / 64] |= 1 << (page % 64);
        self.entries[logical as usize] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_what_was_written_last() {
        let mut entries = MapEntries::new(3000);
        for (logical, entry) in [(0, 7), (1023, 8), (1024, 9), (2999, 10), (0, 0)] {
            entries.set(logical, entry);
            assert_eq!(entries.get(logical), entry);
        }
        let others = (0..3000).filter(|logical| ![1023, 1024, 2999].contains(logical));
        assert!(others.into_iter().all(|logical| entries.get(logical) == 0));
        assert_eq!(entries.count(), 3000);
    }
}
