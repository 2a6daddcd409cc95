//! Storage of the data that simulated programs write to drives.

use crate::written::{KeptContentIdentity, WriteData};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::{Rc, Weak};
use twox_hash::XxHash3_64;

/// Contents of a block, called a page. Several locations may share it.
pub(crate) type Page = Rc<[u8]>;

/// Contents of a partition, block by block. A block that was never written reads as zeroes.
pub(crate) struct PartitionContents {
    block_bytes: u32,
    fragment_bytes: u32,
    /// Chunks of blocks. None for a chunk in which no block was ever written.
    chunks: Vec<Option<MediumChunk>>,
    /// Memory of the blocks that were allocated for the medium, in bytes. Whole blocks that are
    /// shared with their writer do not count.
    allocated_bytes: u64,
    /// Recently allocated blocks, by a hash of their contents. Repeated writes of the same
    /// contents, as from a load's buffers, share a block.
    recent_blocks: BTreeMap<u64, Weak<[u8]>>,
    zero_page: Page,
}

/// Blocks with consecutive numbers. None for a block that was never written.
type MediumChunk = Box<[Option<Page>]>;

const BLOCKS_PER_CHUNK: usize = 512;

/// Number of recent blocks that are remembered by their contents.
const REMEMBERED_BLOCKS_MAX: usize = 2048;

/// Memory of a block's entry in an allocated chunk, in bytes.
pub(crate) const BLOCK_ENTRY_BYTES: u64 = size_of::<Option<Page>>() as u64;

/// Returns the memory of a volume with `blocks` blocks before the first write, in bytes.
pub(crate) fn empty_bytes(blocks: u64) -> u64 {
    blocks.div_ceil(BLOCKS_PER_CHUNK as u64) * size_of::<Option<MediumChunk>>() as u64
}

impl PartitionContents {
    pub(crate) fn new(fragments: u64, (block_bytes, fragment_bytes): (u32, u32)) -> Self {
        let blocks = fragments * u64::from(fragment_bytes) / u64::from(block_bytes) + 1;
        Self {
            block_bytes,
            fragment_bytes,
            chunks: vec![None; (blocks as usize).div_ceil(BLOCKS_PER_CHUNK)],
            allocated_bytes: 0,
            recent_blocks: BTreeMap::new(),
            zero_page: vec![0; block_bytes as usize].into(),
        }
    }

    /// Memory of the blocks that were allocated for the medium, in bytes. Whole blocks that are
    /// shared with their writer do not count.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.allocated_bytes
    }

    fn block_position(&self, fragment: u32) -> (usize, usize) {
        // Both sizes are powers of two.
        let shift = (self.block_bytes / self.fragment_bytes).trailing_zeros();
        let within = fragment & ((1 << shift) - 1);
        (
            (fragment >> shift) as usize,
            (within * self.fragment_bytes) as usize,
        )
    }

    /// Writes the first `bytes` bytes of a page to a fragment.
    pub(crate) fn write_fragments(&mut self, fragment: u32, bytes: u32, page: &Page) {
        let (first, offset) = self.block_position(fragment);
        if offset == 0 && bytes == self.block_bytes && page.len() == bytes as usize {
            *self.block_page_mut(first) = Some(Rc::clone(page));
            return;
        }
        self.write_bytes(self.fragment_offset(fragment), &page[..bytes as usize]);
    }

    fn fragment_offset(&self, fragment: u32) -> u64 {
        u64::from(fragment) * u64::from(self.fragment_bytes)
    }

    pub(crate) fn read_bytes(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let (block, within) = self.byte_position(offset + done as u64);
            let run = (self.block_bytes as usize - within).min(into.len() - done);
            let part = &mut into[done..done + run];
            match self.block_page(block) {
                Some(page) => part.copy_from_slice(&page[within..within + run]),
                None => part.fill(0),
            }
            done += run;
        }
    }

    pub(crate) fn write_bytes(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let (block, within) = self.byte_position(offset + done as u64);
            let run = (self.block_bytes as usize - within).min(data.len() - done);
            if run == self.block_bytes as usize {
                self.write_block(block, &data[done..done + run]);
                done += run;
                continue;
            }
            if self.block_page(block).is_none() {
                self.allocated_bytes += u64::from(self.block_bytes);
                *self.block_page_mut(block) = Some(Rc::clone(&self.zero_page));
            }
            let page = self
                .block_page_mut(block)
                .as_mut()
                .expect("the block was allocated above");
            // In place, unless others have it too.
            Rc::make_mut(page)[within..within + run].copy_from_slice(&data[done..done + run]);
            done += run;
        }
    }

    /// Sets a range of bytes to zeroes. Blocks that were never written use no memory afterwards.
    pub(crate) fn zero_range(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let (block, within) = self.byte_position(at);
            let whole = u64::from(self.block_bytes);
            let run = (whole - within as u64).min(range.end - at);
            if self.block_page(block).is_none() {
                // Nothing was written there.
            } else if run == whole {
                let before = self.block_page_mut(block).take();
                if before.is_some_and(|page| Rc::strong_count(&page) == 1) {
                    self.allocated_bytes = self.allocated_bytes.saturating_sub(whole);
                }
            } else {
                self.write_bytes(at, &vec![0; run as usize]);
            }
            at += run;
        }
    }

    /// Writes a whole block. Identical recent contents are shared.
    fn write_block(&mut self, block: usize, contents: &[u8]) {
        let hash = XxHash3_64::oneshot(contents);
        let made = self.recent_blocks.get(&hash).and_then(Weak::upgrade);
        if let Some(page) = made.filter(|page| page[..] == *contents) {
            *self.block_page_mut(block) = Some(page);
            return;
        }
        let page: Page = contents.into();
        if self.recent_blocks.len() >= REMEMBERED_BLOCKS_MAX {
            self.recent_blocks.clear();
        }
        self.recent_blocks.insert(hash, Rc::downgrade(&page));
        let before = self.block_page_mut(block).replace(page);
        // What others have too is still there.
        let is_in_its_place = before.is_some_and(|page| Rc::strong_count(&page) == 1);
        if !is_in_its_place {
            self.allocated_bytes += u64::from(self.block_bytes);
        }
    }

    #[inline]
    fn block_page(&self, block: usize) -> Option<&Page> {
        self.chunks[block / BLOCKS_PER_CHUNK].as_ref()?[block % BLOCKS_PER_CHUNK].as_ref()
    }

    #[inline]
    fn block_page_mut(&mut self, block: usize) -> &mut Option<Page> {
        let chunk = &mut self.chunks[block / BLOCKS_PER_CHUNK];
        let chunk = chunk.get_or_insert_with(|| vec![None; BLOCKS_PER_CHUNK].into_boxed_slice());
        &mut chunk[block % BLOCKS_PER_CHUNK]
    }

    fn byte_position(&self, offset: u64) -> (usize, usize) {
        let block = u64::from(self.block_bytes);
        ((offset / block) as usize, (offset % block) as usize)
    }

    /// Reads the first `bytes` bytes from the start of a fragment on.
    pub(crate) fn read_fragments(&self, fragment: u32, bytes: u32) -> Page {
        let (first, offset) = self.block_position(fragment);
        let whole = offset == 0 && bytes == self.block_bytes;
        if let (true, Some(page)) = (whole, self.block_page(first)) {
            return Rc::clone(page);
        }
        let mut contents = vec![0; bytes as usize];
        self.read_bytes(self.fragment_offset(fragment), &mut contents);
        contents.into()
    }
}

/// Cache of pages that many blocks share: zeroes, and data that programs write repeatedly.
#[derive(Default)]
pub(crate) struct PageCache {
    zero_pages: Vec<Page>,
    recent_data: Vec<Option<DataPage>>,
    recent_changes: Vec<Option<PageChange>>,
}

/// Page that was created from data of a program.
struct DataPage {
    page: Page,
    /// Identity of the program's data, by which a repeated write is recognized without comparison.
    source_identity: Option<KeptContentIdentity>,
}

/// Page that was created from another page by a partial write. Both pages are kept, so that neither
/// changes any more.
struct PageChange {
    source_page: Page,
    start_offset: usize,
    bytes: usize,
    result: DataPage,
}

/// Number of pages and changes that are remembered for sharing; a power of two.
const REMEMBERED_PAGES_MAX: usize = 1024;

impl PageCache {
    pub(crate) fn zero_page(&mut self, bytes: u32) -> Page {
        let bytes = bytes as usize;
        if let Some(page) = self.zero_pages.iter().find(|page| page.len() == bytes) {
            return Rc::clone(page);
        }
        let page: Page = vec![0; bytes].into();
        self.zero_pages.push(Rc::clone(&page));
        page
    }

    /// Returns a page with the given contents. Repeated contents return the same page if it is
    /// still remembered.
    pub(crate) fn page_of_data(&mut self, data: WriteData<'_>) -> Page {
        if self.recent_data.is_empty() {
            self.recent_data.resize_with(REMEMBERED_PAGES_MAX, || None);
        }
        let slot = &mut self.recent_data[slot_of_data(&data, data.len())];
        let same = |last: &mut DataPage| {
            last.page.len() == data.len() && last.matches_data(0..data.len(), data)
        };
        if !slot.as_mut().is_some_and(same) {
            *slot = Some(DataPage::from_data(data.as_bytes().into(), data));
        }
        let made = slot.as_ref().expect("the slot was filled above");
        Rc::clone(&made.page)
    }

    /// Writes a part of a page. If the page is shared and the part is large, the result of a
    /// repeated identical change is shared, too.
    pub(crate) fn change_page(&mut self, page: &mut Page, start: usize, data: WriteData<'_>) {
        let part = start..start + data.len();
        if let Some(own) = Rc::get_mut(page) {
            own[part].copy_from_slice(&data);
            return;
        }
        let make = |page: &Page| {
            let mut contents: Page = Rc::from(&page[..]);
            let own = Rc::get_mut(&mut contents).expect("a new page has one owner");
            own[part.clone()].copy_from_slice(&data);
            contents
        };
        if data.len() < page.len() / REMEMBERED_PART_DIVISOR {
            *page = make(page);
            return;
        }
        if self.recent_changes.is_empty() {
            self.recent_changes
                .resize_with(REMEMBERED_PAGES_MAX, || None);
        }
        let slot = &mut self.recent_changes[slot_of_data(&data, Rc::as_ptr(page).addr() ^ start)];
        if !(slot.as_mut()).is_some_and(|last| last.matches_change(page, start, data)) {
            *slot = Some(PageChange {
                source_page: Rc::clone(page),
                start_offset: start,
                bytes: data.len(),
                result: DataPage::from_data(make(page), data),
            });
        }
        let last = slot.as_ref().expect("the slot was filled above");
        *page = Rc::clone(&last.result.page);
    }
}

/// Divisor of the page size below which a partial write is copied without being remembered.
/// Remembering a page for every few bytes would not pay.
const REMEMBERED_PART_DIVISOR: usize = 4;

impl DataPage {
    fn from_data(page: Page, data: WriteData<'_>) -> Self {
        let known = data.content_identity();
        Self {
            page,
            source_identity: known,
        }
    }

    /// Reports whether this part of the page equals the data. Data with a known identity need no
    /// comparison.
    fn matches_data(&mut self, part: Range<usize>, data: WriteData<'_>) -> bool {
        let known = self
            .source_identity
            .as_ref()
            .is_some_and(|known| known.is_same_content(data));
        if !known && self.page[part] == *data {
            self.source_identity = data.content_identity();
            return true;
        }
        known
    }
}

impl PageChange {
    fn matches_change(&mut self, from: &Page, start: usize, data: WriteData<'_>) -> bool {
        Rc::ptr_eq(&self.source_page, from)
            && (self.start_offset, self.bytes) == (start, data.len())
            && self.result.matches_data(start..start + data.len(), data)
    }
}

/// Returns the slot in which a page with this data is remembered.
fn slot_of_data(data: &[u8], besides: usize) -> usize {
    let mut hash = besides as u64;
    for word in [data.first_chunk::<8>(), data.last_chunk::<8>()] {
        let word = word.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (hash >> 48) as usize % REMEMBERED_PAGES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(bytes: usize, with: u8) -> Page {
        vec![with; bytes].into()
    }

    #[test]
    fn the_same_change_makes_the_same_page() {
        let mut pages = PageCache::default();
        let zeroes = pages.zero_page(8192);
        let made: Vec<Page> = (0..3)
            .map(|_| {
                let mut page = Rc::clone(&zeroes);
                pages.change_page(&mut page, 0, WriteData::from(&[7; 4096]));
                pages.change_page(&mut page, 4096, WriteData::from(&[9; 4096]));
                page
            })
            .collect();
        assert!(made[0][..4096].iter().all(|byte| *byte == 7));
        assert!(made[0][4096..].iter().all(|byte| *byte == 9));
        assert!(Rc::ptr_eq(&made[0], &made[1]) && Rc::ptr_eq(&made[1], &made[2]));
        assert_eq!(*zeroes, *filled(8192, 0), "a page that is shared stays");
    }

    #[test]
    fn other_data_another_place_and_another_page_make_other_pages() {
        let mut pages = PageCache::default();
        let (zeroes, ones) = (filled(8192, 0), filled(8192, 1));
        // First and last bytes alike: what is remembered is found, and
        // compared.
        let mut middle = vec![7; 4096];
        middle[2000] = 8;
        for (from, start, data) in [
            (&zeroes, 0, &vec![7; 4096]),
            (&zeroes, 0, &middle),
            (&zeroes, 4096, &middle),
            (&ones, 4096, &middle),
            (&ones, 100, &vec![3; 10]),
            (&zeroes, 0, &vec![7; 4096]),
        ] {
            let mut expected = from.to_vec();
            expected[start..start + data.len()].copy_from_slice(data);
            let mut page = Rc::clone(from);
            pages.change_page(&mut page, start, WriteData::from(&data[..]));
            assert_eq!(*page, *expected);
        }
    }

    #[test]
    fn a_page_of_ones_own_is_changed_in_place() {
        let mut page = filled(4096, 1);
        let at = Rc::as_ptr(&page);
        PageCache::default().change_page(&mut page, 512, WriteData::from(&[2; 2048]));
        assert_eq!(Rc::as_ptr(&page), at);
        assert_eq!((page[511], page[512], page[2559], page[2560]), (1, 2, 2, 1));
    }
}
