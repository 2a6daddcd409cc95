//! Read-ahead of an open file: which pages a buffered read makes the kernel read, and when.

use std::ops::Range;

use crate::operation::{ByteRange, FileAdvice};
use crate::page_cache::{Folio, PAGE_BYTES, PageCache};

/// Folios that a read copies before it looks at the cache again.
const BATCH_FOLIOS_MAX: usize = 31;
/// Pages of the largest folio that read-ahead makes, as a power of two.
const ORDER_MAX: u32 = 9;

/// Pages that the file system must read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadWindow {
    /// Pages of the window; those cached before are left out.
    pub pages: Range<u64>,
    /// Whether the reads are flagged as read-ahead.
    pub is_read_ahead: bool,
}

/// Access pattern that a program announced by fadvise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    Normal,
    Sequential,
    Random,
}

/// Read-ahead state of an open file, in pages.
#[derive(Clone, Debug)]
pub struct ReadAhead {
    start: u64,
    size: u64,
    async_size: u64,
    order: u32,
    /// End of the last read in bytes; `None` before the first.
    previous_end: Option<u64>,
    /// Read-ahead of the device when the file was opened.
    device_pages: u64,
    /// Longest request of the device.
    request_pages_max: u64,
    cuts_window: bool,
    /// Whether a miss right behind the window makes the next one, as before 6.12.
    continues_window: bool,
    pattern: Pattern,
}

impl ReadAhead {
    /// Returns the state of a file that was just opened.
    #[must_use]
    pub fn new(read_ahead_kib: u32, max_sectors_kib: u32, cuts_window: bool) -> Self {
        Self {
            start: 0,
            size: 0,
            async_size: 0,
            order: 0,
            previous_end: None,
            device_pages: u64::from(read_ahead_kib) * 1024 / PAGE_BYTES,
            request_pages_max: u64::from(max_sectors_kib) * 1024 / PAGE_BYTES,
            cuts_window,
            continues_window: false,
            pattern: Pattern::Normal,
        }
    }

    /// Makes a miss right behind the window start the next one, as before 6.12.
    #[must_use]
    pub fn with_continued_windows(mut self, continues_window: bool) -> Self {
        self.continues_window = continues_window;
        self
    }

    fn pages_max(&self) -> u64 {
        if self.pattern == Pattern::Sequential {
            2 * self.device_pages
        } else {
            self.device_pages
        }
    }

    /// Takes the advice of a program about its accesses.
    pub fn advise(&mut self, advice: FileAdvice) {
        match advice {
            FileAdvice::Normal => self.pattern = Pattern::Normal,
            FileAdvice::Sequential => self.pattern = Pattern::Sequential,
            FileAdvice::Random => self.pattern = Pattern::Random,
            FileAdvice::WillNeed | FileAdvice::DontNeed => {}
        }
    }

    /// Reads `range` of a file of `file_bytes` through its cache. Calls `read` for each window
    /// that is not cached; the pages are in the cache afterwards, and `read` makes them up to date.
    pub fn read(
        &mut self,
        cache: &mut PageCache,
        range: ByteRange,
        file_bytes: u64,
        read: &mut impl FnMut(&mut PageCache, ReadWindow),
    ) {
        let end = range.end().min(file_bytes);
        let mut position = range.offset;
        while position < end {
            let page = position / PAGE_BYTES;
            let end_page = end.div_ceil(PAGE_BYTES);
            let mut batch = gather(cache, page, end_page);
            if batch.is_empty() {
                self.read_missing(cache, page, end_page - page, file_bytes, read);
                batch = gather(cache, page, end_page);
            }
            let Some(last) = batch.last().copied() else {
                add_single_pages(cache, page..page + 1, None);
                read(
                    cache,
                    ReadWindow {
                        pages: page..page + 1,
                        is_read_ahead: false,
                    },
                );
                continue;
            };
            if last.is_read_ahead_mark {
                cache.set_read_ahead_mark(last.first_page, false);
                let requested = end_page.saturating_sub(last.first_page);
                self.read_next(cache, last, requested, file_bytes, read);
            }
            for folio in &batch {
                for missing in folio.first_page.max(page)..folio.end_page().min(end_page) {
                    if !cache.is_page_up_to_date(missing) {
                        read(
                            cache,
                            ReadWindow {
                                pages: missing..missing + 1,
                                is_read_ahead: false,
                            },
                        );
                    }
                }
            }
            position = end.min(last.end_page() * PAGE_BYTES);
        }
        if range.offset < end {
            self.previous_end = Some(end);
        }
    }

    /// Reads `range` at once as POSIX_FADV_WILLNEED does, limited to one request or window.
    pub fn read_advised(
        &self,
        cache: &mut PageCache,
        range: ByteRange,
        file_bytes: u64,
        read: &mut impl FnMut(&mut PageCache, ReadWindow),
    ) {
        let first = range.offset / PAGE_BYTES;
        let end = range.end().min(file_bytes).div_ceil(PAGE_BYTES);
        let limit = self.request_pages_max.max(self.device_pages);
        submit_pages(cache, first..end.min(first + limit), None, read);
    }

    /// Starts a window at a page that is not cached.
    fn read_missing(
        &mut self,
        cache: &mut PageCache,
        page: u64,
        requested: u64,
        file_bytes: u64,
        read: &mut impl FnMut(&mut PageCache, ReadWindow),
    ) {
        let file_pages = file_bytes.div_ceil(PAGE_BYTES);
        if self.device_pages == 0 || self.pattern == Pattern::Random {
            let limit = if self.device_pages == 0 {
                1
            } else {
                requested.min(self.request_pages_max.max(self.device_pages))
            };
            submit_pages(cache, page..file_pages.min(page + limit), None, read);
            return;
        }
        let mut max = self.pages_max();
        if requested > max && self.request_pages_max > max {
            max = requested.min(self.request_pages_max);
        }
        let end = self.start + self.size;
        if self.continues_window
            && page > 0
            && self.size > 0
            && (page == end || page == end - self.async_size)
        {
            self.continue_window(page, max);
            self.submit(cache, file_pages, read);
            return;
        }
        let previous_page = self.previous_end.map(|end| end / PAGE_BYTES);
        let is_sequential = previous_page.is_some_and(|previous| page.wrapping_sub(previous) <= 1);
        if page == 0 || requested > max || is_sequential {
            self.start = page;
            self.size = initial_window(requested, max);
            self.async_size = if self.size > requested {
                self.size - requested
            } else {
                self.size / 2
            };
        } else {
            let mut history = cached_before(cache, page, max);
            if history <= requested {
                submit_pages(cache, page..file_pages.min(page + requested), None, read);
                return;
            }
            if history >= page {
                history *= 2;
            }
            self.start = page;
            self.size = (history + requested).min(max);
            self.async_size = 1;
        }
        self.order = 0;
        self.submit(cache, file_pages, read);
    }

    /// Starts the next window at a miss, joined with the one behind it if its own first page would
    /// start that at once.
    fn continue_window(&mut self, page: u64, max: u64) {
        self.start += self.size;
        self.size = next_window(self.size, max);
        self.async_size = self.size;
        self.order = 0;
        if page != self.start {
            return;
        }
        let next = next_window(self.size, max);
        if self.size + next <= max {
            self.async_size = next;
            self.size += next;
        } else {
            self.size = max;
            self.async_size = max / 2;
        }
    }

    /// Starts the next window, when a read meets the folio that is marked.
    fn read_next(
        &mut self,
        cache: &mut PageCache,
        marked: Folio,
        requested: u64,
        file_bytes: u64,
        read: &mut impl FnMut(&mut PageCache, ReadWindow),
    ) {
        if self.device_pages == 0 {
            return;
        }
        let mut max = self.pages_max();
        if requested > max && self.request_pages_max > max {
            max = requested.min(self.request_pages_max);
        }
        let expected = (self.start + self.size).saturating_sub(self.async_size);
        if marked.first_page == expected / marked.pages * marked.pages {
            self.start += self.size;
            self.size = self.size.max(next_window(self.size, max));
        } else {
            let mut start = marked.first_page + 1;
            while cache.is_cached(start) {
                start += 1;
                if start - marked.first_page > max {
                    return;
                }
            }
            self.start = start;
            self.size = next_window(start - marked.first_page + requested, max);
        }
        self.order += 2;
        if self.cuts_window {
            let alignment = 1_u64 << self.order.min(max.trailing_zeros());
            let end = (self.start + self.size) / alignment * alignment;
            if end > self.start {
                self.size = end - self.start;
            }
        }
        self.async_size = self.size;
        self.submit(cache, file_bytes.div_ceil(PAGE_BYTES), read);
    }

    /// Adds the folios of the window to the cache and reads them.
    fn submit(
        &mut self,
        cache: &mut PageCache,
        file_pages: u64,
        read: &mut impl FnMut(&mut PageCache, ReadWindow),
    ) {
        let window = self.start..file_pages.min(self.start + self.size);
        let mark = (self.start + self.size).saturating_sub(self.async_size);
        self.order = self.order.min(self.size.max(1).ilog2()).min(ORDER_MAX);
        let order = self.order;
        if !cache.has_large_folios() || order == 0 {
            submit_pages(cache, window, Some(mark), read);
            return;
        }
        let mut page = window.start;
        while page < window.end {
            let mut folio_order = order.min(page.trailing_zeros());
            while folio_order > 0 && page + (1 << folio_order) > window.end {
                folio_order -= 1;
            }
            let pages = 1_u64 << folio_order;
            if (page..page + pages).any(|page| cache.is_cached(page)) {
                break;
            }
            let is_read_ahead_mark = (page..page + pages).contains(&mark);
            cache.insert_folio(Folio {
                first_page: page,
                pages,
                is_read_ahead_mark,
            });
            page += pages;
        }
        if page > window.start {
            read(
                cache,
                ReadWindow {
                    pages: window.start..page,
                    is_read_ahead: true,
                },
            );
        }
        submit_pages(cache, page..window.end, Some(mark), read);
    }
}

/// Returns folios from `page` to `end`, up to and with one that is marked or not up to date.
fn gather(cache: &PageCache, page: u64, end: u64) -> Vec<Folio> {
    let mut batch = Vec::new();
    let mut next = page;
    while next < end && batch.len() < BATCH_FOLIOS_MAX {
        let Some(folio) = cache.folio_at(next) else {
            break;
        };
        batch.push(folio);
        next = folio.end_page();
        if folio.is_read_ahead_mark || !cache.is_page_up_to_date(folio.first_page.max(page)) {
            break;
        }
    }
    batch
}

fn add_single_pages(cache: &mut PageCache, pages: Range<u64>, mark: Option<u64>) {
    for page in pages {
        let is_read_ahead_mark = mark == Some(page);
        cache.insert_folio(Folio {
            first_page: page,
            pages: 1,
            is_read_ahead_mark,
        });
    }
}

/// Adds the pages that are not cached one by one, and reads each run of them.
fn submit_pages(
    cache: &mut PageCache,
    pages: Range<u64>,
    mark: Option<u64>,
    read: &mut impl FnMut(&mut PageCache, ReadWindow),
) {
    let mut page = pages.start;
    while page < pages.end {
        if cache.is_cached(page) {
            page += 1;
            continue;
        }
        let first = page;
        while page < pages.end && !cache.is_cached(page) {
            page += 1;
        }
        add_single_pages(cache, first..page, mark);
        read(
            cache,
            ReadWindow {
                pages: first..page,
                is_read_ahead: true,
            },
        );
    }
}

/// Number of cached pages right before `page`, up to `max`.
fn cached_before(cache: &PageCache, page: u64, max: u64) -> u64 {
    (1..=max.min(page))
        .take_while(|distance| cache.is_cached(page - distance))
        .count() as u64
}

fn initial_window(requested: u64, max: u64) -> u64 {
    let rounded = requested.next_power_of_two();
    if rounded <= max / 32 {
        rounded * 4
    } else if rounded <= max / 4 {
        rounded * 2
    } else {
        max
    }
}

fn next_window(current: u64, max: u64) -> u64 {
    if current < max / 16 {
        current * 4
    } else if current <= max / 2 {
        current * 2
    } else {
        max
    }
}
