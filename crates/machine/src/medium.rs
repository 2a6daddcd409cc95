//! What is written on the drives.

use crate::written::{Known, Written};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::{Rc, Weak};
use twox_hash::XxHash3_64;

/// Contents of a block, which several places may share.
pub(crate) type Page = Rc<[u8]>;

/// The contents of a partition, block by block. A block that was never
/// written is zeroes.
pub(crate) struct Medium {
    block_bytes: u32,
    fragment_bytes: u32,
    /// In chunks, each of which is there once something of it was written.
    chunks: Vec<Option<Chunk>>,
    /// Bytes of the blocks that were made here, of parts of them: what is written
    /// whole is shared with who wrote it.
    made_bytes: u64,
    /// Blocks that were made last, by a hash of their contents: who writes the same again
    /// and again, as a load does from its buffers, shares them.
    last_made: BTreeMap<u64, Weak<[u8]>>,
    /// What a block is that a part of is written first.
    zeroes: Page,
}

/// Places of neighbouring blocks.
type Chunk = Box<[Option<Page>]>;

/// Blocks of a chunk.
const CHUNK_BLOCKS: usize = 512;

/// Blocks that are remembered by their contents.
const MOST_LAST_MADE: usize = 2048;

/// What the place of a block takes in a chunk that is there.
pub(crate) const PLACE_BYTES: u64 = size_of::<Option<Page>>() as u64;

/// What a volume takes of so many blocks before anything is written to it.
pub(crate) fn empty_bytes(blocks: u64) -> u64 {
    blocks.div_ceil(CHUNK_BLOCKS as u64) * size_of::<Option<Chunk>>() as u64
}

impl Medium {
    pub(crate) fn new(fragments: u64, (block_bytes, fragment_bytes): (u32, u32)) -> Self {
        let blocks = fragments * u64::from(fragment_bytes) / u64::from(block_bytes) + 1;
        Self {
            block_bytes,
            fragment_bytes,
            chunks: vec![None; (blocks as usize).div_ceil(CHUNK_BLOCKS)],
            made_bytes: 0,
            last_made: BTreeMap::new(),
            zeroes: vec![0; block_bytes as usize].into(),
        }
    }

    /// See [`Medium::made_bytes`].
    pub(crate) fn made_bytes(&self) -> u64 {
        self.made_bytes
    }

    fn place(&self, fragment: u32) -> (usize, usize) {
        // Both sizes are powers of two.
        let shift = (self.block_bytes / self.fragment_bytes).trailing_zeros();
        let within = fragment & ((1 << shift) - 1);
        (
            (fragment >> shift) as usize,
            (within * self.fragment_bytes) as usize,
        )
    }

    /// Puts the first `bytes` of a page at a fragment.
    pub(crate) fn write(&mut self, fragment: u32, bytes: u32, page: &Page) {
        let (first, offset) = self.place(fragment);
        if offset == 0 && bytes == self.block_bytes && page.len() == bytes as usize {
            *self.block(first) = Some(Rc::clone(page));
            return;
        }
        self.write_bytes(self.byte_of(fragment), &page[..bytes as usize]);
    }

    fn byte_of(&self, fragment: u32) -> u64 {
        u64::from(fragment) * u64::from(self.fragment_bytes)
    }

    /// The bytes from an offset on.
    pub(crate) fn read_bytes(&self, offset: u64, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let (block, within) = self.place_of_byte(offset + done as u64);
            let run = (self.block_bytes as usize - within).min(into.len() - done);
            let part = &mut into[done..done + run];
            match self.page(block) {
                Some(page) => part.copy_from_slice(&page[within..within + run]),
                None => part.fill(0),
            }
            done += run;
        }
    }

    /// Puts bytes at an offset.
    pub(crate) fn write_bytes(&mut self, offset: u64, data: &[u8]) {
        let mut done = 0;
        while done < data.len() {
            let (block, within) = self.place_of_byte(offset + done as u64);
            let run = (self.block_bytes as usize - within).min(data.len() - done);
            if run == self.block_bytes as usize {
                self.write_whole(block, &data[done..done + run]);
                done += run;
                continue;
            }
            if self.page(block).is_none() {
                self.made_bytes += u64::from(self.block_bytes);
                *self.block(block) = Some(Rc::clone(&self.zeroes));
            }
            let page = self.block(block).as_mut().expect("it was just put there");
            // In place, unless others have it too.
            Rc::make_mut(page)[within..within + run].copy_from_slice(&data[done..done + run]);
            done += run;
        }
    }

    /// Makes a range of bytes zeroes, without memory for what was never written.
    pub(crate) fn forget(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let (block, within) = self.place_of_byte(at);
            let whole = u64::from(self.block_bytes);
            let run = (whole - within as u64).min(range.end - at);
            if self.page(block).is_none() {
                // Nothing was written there.
            } else if run == whole {
                let before = self.block(block).take();
                if before.is_some_and(|page| Rc::strong_count(&page) == 1) {
                    self.made_bytes = self.made_bytes.saturating_sub(whole);
                }
            } else {
                self.write_bytes(at, &vec![0; run as usize]);
            }
            at += run;
        }
    }

    /// Puts a whole block, which may be one that was made before.
    fn write_whole(&mut self, block: usize, contents: &[u8]) {
        let hash = XxHash3_64::oneshot(contents);
        let made = self.last_made.get(&hash).and_then(Weak::upgrade);
        if let Some(page) = made.filter(|page| page[..] == *contents) {
            *self.block(block) = Some(page);
            return;
        }
        let page: Page = contents.into();
        if self.last_made.len() >= MOST_LAST_MADE {
            self.last_made.clear();
        }
        self.last_made.insert(hash, Rc::downgrade(&page));
        let before = self.block(block).replace(page);
        // What others have too is still there.
        let is_in_its_place = before.is_some_and(|page| Rc::strong_count(&page) == 1);
        if !is_in_its_place {
            self.made_bytes += u64::from(self.block_bytes);
        }
    }

    /// What was written to a block, if anything was.
    #[inline]
    fn page(&self, block: usize) -> Option<&Page> {
        self.chunks[block / CHUNK_BLOCKS].as_ref()?[block % CHUNK_BLOCKS].as_ref()
    }

    /// The place of a block that is written to.
    #[inline]
    fn block(&mut self, block: usize) -> &mut Option<Page> {
        let chunk = &mut self.chunks[block / CHUNK_BLOCKS];
        let chunk = chunk.get_or_insert_with(|| vec![None; CHUNK_BLOCKS].into_boxed_slice());
        &mut chunk[block % CHUNK_BLOCKS]
    }

    fn place_of_byte(&self, offset: u64) -> (usize, usize) {
        let block = u64::from(self.block_bytes);
        ((offset / block) as usize, (offset % block) as usize)
    }

    /// The `bytes` at a fragment.
    pub(crate) fn read(&self, fragment: u32, bytes: u32) -> Page {
        let (first, offset) = self.place(fragment);
        let whole = offset == 0 && bytes == self.block_bytes;
        if let (true, Some(page)) = (whole, self.page(first)) {
            return Rc::clone(page);
        }
        let mut contents = vec![0; bytes as usize];
        self.read_bytes(self.byte_of(fragment), &mut contents);
        contents.into()
    }
}

/// Pages that many blocks share: zeroes, and what programs write again and
/// again.
#[derive(Default)]
pub(crate) struct Pages {
    zeroes: Vec<Page>,
    recent: Vec<Option<Made>>,
    changed: Vec<Option<Change>>,
}

/// A page that was made of what a program wrote.
struct Made {
    page: Page,
    /// Where the program keeps that, by which it is known again.
    known: Option<Known>,
}

/// A page that came of another when a part of it was written. Both are kept,
/// and so neither changes any more.
struct Change {
    from: Page,
    start: usize,
    bytes: usize,
    made: Made,
}

/// Pages and changes remembered; a power of two.
const REMEMBERED: usize = 1024;

impl Pages {
    /// A page of zeroes.
    pub(crate) fn zeroes(&mut self, bytes: u32) -> Page {
        let bytes = bytes as usize;
        if let Some(page) = self.zeroes.iter().find(|page| page.len() == bytes) {
            return Rc::clone(page);
        }
        let page: Page = vec![0; bytes].into();
        self.zeroes.push(Rc::clone(&page));
        page
    }

    /// A page with these contents; the one that was made last time, if they
    /// are the same.
    pub(crate) fn of(&mut self, data: Written<'_>) -> Page {
        if self.recent.is_empty() {
            self.recent.resize_with(REMEMBERED, || None);
        }
        let slot = &mut self.recent[place(&data, data.len())];
        let same = |last: &mut Made| last.page.len() == data.len() && last.is(0..data.len(), data);
        if !slot.as_mut().is_some_and(same) {
            *slot = Some(Made::of(data.bytes().into(), data));
        }
        let made = slot.as_ref().expect("it was put there if it was not");
        Rc::clone(&made.page)
    }

    /// Writes a part of a page. A large part of a page that others share makes
    /// the page that it made last time, if it is the same again.
    pub(crate) fn change(&mut self, page: &mut Page, start: usize, data: Written<'_>) {
        let part = start..start + data.len();
        if let Some(own) = Rc::get_mut(page) {
            own[part].copy_from_slice(&data);
            return;
        }
        let make = |page: &Page| {
            let mut contents: Page = Rc::from(&page[..]);
            let own = Rc::get_mut(&mut contents).expect("nobody shares what was just made");
            own[part.clone()].copy_from_slice(&data);
            contents
        };
        if data.len() < page.len() / LARGE_PART {
            *page = make(page);
            return;
        }
        if self.changed.is_empty() {
            self.changed.resize_with(REMEMBERED, || None);
        }
        let slot = &mut self.changed[place(&data, Rc::as_ptr(page).addr() ^ start)];
        if !(slot.as_mut()).is_some_and(|last| last.is(page, start, data)) {
            *slot = Some(Change {
                from: Rc::clone(page),
                start,
                bytes: data.len(),
                made: Made::of(make(page), data),
            });
        }
        let last = slot.as_ref().expect("it was put there if it was not");
        *page = Rc::clone(&last.made.page);
    }
}

/// What is smaller than a page by more than this is copied as it comes:
/// remembering a page for each few bytes would be no gain.
const LARGE_PART: usize = 4;

impl Made {
    fn of(page: Page, data: Written<'_>) -> Self {
        let known = data.known();
        Self { page, known }
    }

    /// Whether this part of the page is these data; they need not be compared if they
    /// are known.
    fn is(&mut self, part: Range<usize>, data: Written<'_>) -> bool {
        let known = self.known.as_ref().is_some_and(|known| known.is(data));
        if !known && self.page[part] == *data {
            self.known = data.known();
            return true;
        }
        known
    }
}

impl Change {
    fn is(&mut self, from: &Page, start: usize, data: Written<'_>) -> bool {
        Rc::ptr_eq(&self.from, from)
            && (self.start, self.bytes) == (start, data.len())
            && self.made.is(start..start + data.len(), data)
    }
}

/// Where something with this data is remembered, if it is.
fn place(data: &[u8], besides: usize) -> usize {
    let mut hash = besides as u64;
    for word in [data.first_chunk::<8>(), data.last_chunk::<8>()] {
        let word = word.map_or(0, |bytes| u64::from_le_bytes(*bytes));
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    (hash >> 48) as usize % REMEMBERED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(bytes: usize, with: u8) -> Page {
        vec![with; bytes].into()
    }

    #[test]
    fn the_same_change_makes_the_same_page() {
        let mut pages = Pages::default();
        let zeroes = pages.zeroes(8192);
        let made: Vec<Page> = (0..3)
            .map(|_| {
                let mut page = Rc::clone(&zeroes);
                pages.change(&mut page, 0, Written::from(&[7; 4096]));
                pages.change(&mut page, 4096, Written::from(&[9; 4096]));
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
        let mut pages = Pages::default();
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
            pages.change(&mut page, start, Written::from(&data[..]));
            assert_eq!(*page, *expected);
        }
    }

    #[test]
    fn a_page_of_ones_own_is_changed_in_place() {
        let mut page = filled(4096, 1);
        let at = Rc::as_ptr(&page);
        Pages::default().change(&mut page, 512, Written::from(&[2; 2048]));
        assert_eq!(Rc::as_ptr(&page), at);
        assert_eq!((page[511], page[512], page[2559], page[2560]), (1, 2, 2, 1));
    }
}
