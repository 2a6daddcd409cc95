//! The page cache of one file: which folios are there, and which blocks of their pages are up to
//! date, dirty, and without a place on the device.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::operation::ByteRange;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;
/// Pages of the largest folio, as a power of two.
const FOLIO_ORDER_MAX: u32 = 9;

/// Folio: adjacent pages that are one object of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Folio {
    /// First page of the folio in the file.
    pub first_page: u64,
    /// Number of pages, a power of two.
    pub pages: u64,
    /// Whether a read of it starts the next read-ahead.
    pub is_read_ahead_mark: bool,
}

impl Folio {
    /// Returns the first page after the folio.
    #[must_use]
    pub fn end_page(self) -> u64 {
        self.first_page + self.pages
    }
}

/// Returns the pages that hold a range of bytes.
pub(crate) fn pages_of(range: ByteRange) -> Range<u64> {
    range.offset / PAGE_BYTES..range.end().div_ceil(PAGE_BYTES)
}

/// States of the blocks of one page: a bit for each block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageBlocks {
    up_to_date: u8,
    dirty: u8,
    delayed: u8,
}

/// Page cache of one file.
#[derive(Clone, Debug)]
pub struct PageCache {
    block_bytes: u64,
    has_large_folios: bool,
    folios: BTreeMap<u64, Folio>,
    pages: BTreeMap<u64, PageBlocks>,
    /// Pages with dirty blocks, so that nobody searches the clean ones.
    dirty_pages: BTreeSet<u64>,
}

impl PageCache {
    /// Returns an empty cache of a file whose blocks have `block_bytes`, at most a page.
    #[must_use]
    pub fn new(block_bytes: u64, has_large_folios: bool) -> Self {
        assert!(PAGE_BYTES.is_multiple_of(block_bytes) && PAGE_BYTES / block_bytes <= 8);
        Self {
            block_bytes,
            has_large_folios,
            folios: BTreeMap::new(),
            pages: BTreeMap::new(),
            dirty_pages: BTreeSet::new(),
        }
    }

    /// Blocks in a page.
    #[must_use]
    pub fn blocks_per_page(&self) -> u64 {
        PAGE_BYTES / self.block_bytes
    }

    /// Whether folios of more than one page are made.
    #[must_use]
    pub fn has_large_folios(&self) -> bool {
        self.has_large_folios
    }

    /// Returns the folio that holds a page.
    #[must_use]
    pub fn folio_at(&self, page: u64) -> Option<Folio> {
        let (_, folio) = self.folios.range(..=page).next_back()?;
        (page < folio.end_page()).then_some(*folio)
    }

    /// Whether a page is cached.
    #[must_use]
    pub fn is_cached(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// First block after the last cached page; 0 if none is cached.
    #[must_use]
    pub fn end_block(&self) -> u64 {
        self.pages
            .keys()
            .next_back()
            .map_or(0, |page| (page + 1) * self.blocks_per_page())
    }

    /// Number of pages cached.
    #[must_use]
    pub fn cached_pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Adds an empty folio; none of its pages may be cached.
    pub fn insert_folio(&mut self, folio: Folio) {
        for page in folio.first_page..folio.end_page() {
            let previous = self.pages.insert(page, PageBlocks::default());
            assert!(previous.is_none(), "a page is in one folio");
        }
        self.folios.insert(folio.first_page, folio);
    }

    /// Sets or clears the mark that starts read-ahead.
    pub fn set_read_ahead_mark(&mut self, first_page: u64, is_read_ahead_mark: bool) {
        if let Some(folio) = self.folios.get_mut(&first_page) {
            folio.is_read_ahead_mark = is_read_ahead_mark;
        }
    }

    /// Returns the folio that a write of `length` bytes at `offset` goes to, and adds it if it is
    /// not cached: the largest that is aligned and not longer than the write.
    pub fn folio_for_write(&mut self, offset: u64, length: u64) -> Folio {
        let page = offset / PAGE_BYTES;
        if let Some(folio) = self.folio_at(page) {
            return folio;
        }
        let mut order = 0;
        if self.has_large_folios {
            order = (length / PAGE_BYTES).max(1).ilog2().min(FOLIO_ORDER_MAX);
            order = order.min(page.trailing_zeros());
            while order > 0 && (page..page + (1 << order)).any(|page| self.is_cached(page)) {
                order -= 1;
            }
        }
        let folio = Folio {
            first_page: page,
            pages: 1 << order,
            is_read_ahead_mark: false,
        };
        self.insert_folio(folio);
        folio
    }

    fn mask(&self, page: u64, blocks: &Range<u64>) -> u8 {
        let per_page = self.blocks_per_page();
        let first = page * per_page;
        (0..per_page)
            .filter(|bit| blocks.contains(&(first + bit)))
            .fold(0, |mask, bit| mask | 1 << bit)
    }

    fn update(&mut self, blocks: Range<u64>, change: impl Fn(&mut PageBlocks, u8)) {
        if blocks.is_empty() {
            return;
        }
        let per_page = self.blocks_per_page();
        for page in blocks.start / per_page..blocks.end.div_ceil(per_page) {
            let mask = self.mask(page, &blocks);
            if let Some(state) = self.pages.get_mut(&page) {
                let was_dirty = state.dirty != 0;
                change(state, mask);
                match (was_dirty, state.dirty != 0) {
                    (false, true) => _ = self.dirty_pages.insert(page),
                    (true, false) => _ = self.dirty_pages.remove(&page),
                    _ => {}
                }
            }
        }
    }

    /// Marks blocks of cached pages up to date.
    pub fn set_up_to_date(&mut self, blocks: Range<u64>) {
        self.update(blocks, |state, mask| state.up_to_date |= mask);
    }

    /// Marks blocks of cached pages dirty and up to date.
    pub fn set_dirty(&mut self, blocks: Range<u64>) {
        self.update(blocks, |state, mask| {
            state.dirty |= mask;
            state.up_to_date |= mask;
        });
    }

    /// Marks blocks as written back.
    pub fn clear_dirty(&mut self, blocks: Range<u64>) {
        self.update(blocks, |state, mask| state.dirty &= !mask);
    }

    /// Marks blocks as reserved and without a place on the device.
    pub fn set_delayed(&mut self, blocks: Range<u64>) {
        self.update(blocks, |state, mask| state.delayed |= mask);
    }

    /// Marks blocks as placed.
    pub fn clear_delayed(&mut self, blocks: Range<u64>) {
        self.update(blocks, |state, mask| state.delayed &= !mask);
    }

    fn has_bit(&self, block: u64, bits: impl Fn(&PageBlocks) -> u8) -> bool {
        let per_page = self.blocks_per_page();
        let state = self.pages.get(&(block / per_page));
        state.is_some_and(|state| bits(state) & (1 << (block % per_page)) != 0)
    }

    /// Whether a block is cached and up to date.
    #[must_use]
    pub fn is_up_to_date(&self, block: u64) -> bool {
        self.has_bit(block, |state| state.up_to_date)
    }

    /// Whether a block is dirty.
    #[must_use]
    pub fn is_dirty(&self, block: u64) -> bool {
        self.has_bit(block, |state| state.dirty)
    }

    /// Whether a block is reserved and without a place on the device.
    #[must_use]
    pub fn is_delayed(&self, block: u64) -> bool {
        self.has_bit(block, |state| state.delayed)
    }

    /// Whether all blocks of a page are up to date.
    #[must_use]
    pub fn is_page_up_to_date(&self, page: u64) -> bool {
        let all = (1_u16 << self.blocks_per_page()) - 1;
        self.pages
            .get(&page)
            .is_some_and(|state| u16::from(state.up_to_date) == all)
    }

    /// Whether a page has a dirty block.
    #[must_use]
    pub fn is_page_dirty(&self, page: u64) -> bool {
        self.dirty_pages.contains(&page)
    }

    /// Whether any page is dirty.
    #[must_use]
    pub fn has_dirty(&self) -> bool {
        !self.dirty_pages.is_empty()
    }

    /// Returns the dirty blocks of all folios that have a page in `pages`, ascending. Folios are
    /// written whole.
    #[must_use]
    pub fn dirty_blocks(&self, pages: Range<u64>) -> Vec<u64> {
        if pages.is_empty() {
            return Vec::new();
        }
        let start = self
            .folio_at(pages.start)
            .map_or(pages.start, |folio| folio.first_page);
        let end = self
            .folio_at(pages.end - 1)
            .map_or(pages.end, Folio::end_page);
        let per_page = self.blocks_per_page();
        self.dirty_pages
            .range(start..end)
            .flat_map(|page| {
                let dirty = self.pages[page].dirty;
                let bits = (0..per_page).filter(move |bit| dirty & (1 << bit) != 0);
                bits.map(move |bit| page * per_page + bit)
            })
            .collect()
    }

    /// Drops folios that lie inside `pages` and have no dirty page.
    pub fn drop_clean(&mut self, pages: Range<u64>) {
        let candidates = self
            .folios
            .range(pages.start..pages.end)
            .map(|(_, folio)| *folio);
        let clean: Vec<Folio> = candidates
            .filter(|folio| folio.end_page() <= pages.end)
            .filter(|folio| {
                !(folio.first_page..folio.end_page()).any(|page| self.is_page_dirty(page))
            })
            .collect();
        for folio in clean {
            self.remove_folio(folio);
        }
    }

    fn remove_folio(&mut self, folio: Folio) {
        self.folios.remove(&folio.first_page);
        for page in folio.first_page..folio.end_page() {
            self.pages.remove(&page);
            self.dirty_pages.remove(&page);
        }
    }

    /// Removes the bytes of `range`: folios inside it are dropped with what was dirty, and a clean
    /// folio that lies partly inside is split. A dirty one cannot be; its blocks inside become
    /// clean.
    pub fn truncate(&mut self, range: ByteRange) {
        let whole = range.offset.div_ceil(PAGE_BYTES)..range.end() / PAGE_BYTES;
        let edges = [range.offset / PAGE_BYTES, range.end() / PAGE_BYTES];
        for edge in edges.into_iter().filter(|_| range.length > 0) {
            if let Some(folio) = self.folio_at(edge) {
                self.split_folio(folio, &whole, edge);
            }
        }
        if whole.start < whole.end {
            let inside: Vec<Folio> = self
                .folios
                .range(whole.clone())
                .map(|(_, folio)| *folio)
                .filter(|folio| folio.end_page() <= whole.end)
                .collect();
            for folio in inside {
                self.remove_folio(folio);
            }
        }
        let blocks = range.offset.div_ceil(self.block_bytes)..range.end() / self.block_bytes;
        for folio in edges.map(|edge| self.folio_at(edge)).into_iter().flatten() {
            let per_page = self.blocks_per_page();
            let first = folio.first_page * per_page;
            let inside = blocks.start.max(first)..blocks.end.min(folio.end_page() * per_page);
            self.update(inside, |state, mask| {
                state.dirty &= !mask;
                state.delayed &= !mask;
            });
        }
    }

    /// Splits a clean folio that is only partly inside `pages` around page `edge`: into that page
    /// and folios of halves, quarters and so on. (From 6.15 on; 6.12 splits into pages.)
    fn split_folio(&mut self, folio: Folio, pages: &Range<u64>, edge: u64) {
        let is_inside = pages.start <= folio.first_page && folio.end_page() <= pages.end;
        let is_dirty = (folio.first_page..folio.end_page()).any(|page| self.is_page_dirty(page));
        if is_inside || is_dirty {
            return;
        }
        let mut rest = Folio {
            is_read_ahead_mark: false,
            ..folio
        };
        while rest.pages > 1 {
            rest.pages /= 2;
            let mut other = rest;
            if edge < rest.end_page() {
                other.first_page = rest.end_page();
            } else {
                rest.first_page = rest.end_page();
            }
            self.folios.insert(other.first_page, other);
        }
        self.folios.insert(rest.first_page, rest);
    }
}
