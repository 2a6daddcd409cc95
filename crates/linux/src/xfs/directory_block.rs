//! Free space inside a data block of a directory.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::xfs::geometry::BLOCK_BYTES;

/// Bytes of a data block's header, which holds its largest free regions.
pub(super) const DATA_HEADER_BYTES: u64 = 64;
/// Bytes at the start of a free region that the log holds.
const FREE_HEADER_BYTES: u64 = 4;
/// Bytes at the end of a free region or of an entry that point to its start.
const TAG_BYTES: u64 = 2;

/// Bytes of an entry: number, length, name, type and tag, to a multiple of 8.
pub(super) fn entry_bytes(name: &str) -> u64 {
    (12 + name.len() as u64).next_multiple_of(8)
}

/// Free regions of a data block, and the bytes of it that changed.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectoryBlock {
    free: BTreeMap<u64, u64>,
    changed: Vec<Range<u64>>,
}

impl DirectoryBlock {
    /// Returns a block without entries.
    pub(super) fn new() -> Self {
        let mut block = Self::default();
        block.make_free(DATA_HEADER_BYTES, BLOCK_BYTES - DATA_HEADER_BYTES);
        block
    }

    /// Lengths of the largest free regions, with their offsets, longest first.
    pub(super) fn largest(&self) -> Vec<FreeRegion> {
        let regions = self.free.iter().map(|(offset, length)| FreeRegion {
            offset: *offset,
            length: *length,
        });
        let mut regions: Vec<FreeRegion> = regions.collect();
        regions.sort_by_key(|region| (std::cmp::Reverse(region.length), region.offset));
        regions
    }

    /// Length of the largest free region.
    pub(super) fn longest(&self) -> u64 {
        self.free.values().copied().max().unwrap_or(0)
    }

    /// Free region that ends at an offset.
    pub(super) fn free_before(&self, end: u64) -> Option<FreeRegion> {
        let (offset, length) = self.free.range(..end).next_back()?;
        (offset + length == end).then_some(FreeRegion {
            offset: *offset,
            length: *length,
        })
    }

    /// Whether the block has no entries.
    pub(super) fn is_empty(&self) -> bool {
        self.longest() == BLOCK_BYTES - DATA_HEADER_BYTES
    }

    /// Takes bytes out of a free region.
    pub(super) fn take(&mut self, bytes: Range<u64>) {
        let before = self.free.range(..=bytes.start).next_back();
        let (offset, length) = before
            .map(|(offset, length)| (*offset, *length))
            .expect("it is free");
        self.free.remove(&offset);
        if offset < bytes.start {
            self.set_free(offset, bytes.start - offset);
        }
        if bytes.end < offset + length {
            self.set_free(bytes.end, offset + length - bytes.end);
        }
        self.note_header();
    }

    /// Gives bytes back, joined with the free regions around them.
    pub(super) fn make_free(&mut self, offset: u64, length: u64) {
        let mut region = FreeRegion { offset, length };
        if let Some(before) = self.free_before(offset) {
            self.free.remove(&before.offset);
            region = FreeRegion {
                offset: before.offset,
                length: before.length + length,
            };
        }
        if let Some(after) = self.free.remove(&(offset + length)) {
            region.length += after;
        }
        self.set_free(region.offset, region.length);
        self.note_header();
    }

    fn set_free(&mut self, offset: u64, length: u64) {
        self.free.insert(offset, length);
        self.changed.push(offset..offset + FREE_HEADER_BYTES);
        self.changed
            .push(offset + length - TAG_BYTES..offset + length);
    }

    fn note_header(&mut self) {
        self.changed.push(0..DATA_HEADER_BYTES);
    }

    /// Notes bytes that changed.
    pub(super) fn note(&mut self, bytes: Range<u64>) {
        self.changed.push(bytes);
    }

    /// Takes the bytes that changed since the last call.
    pub(super) fn take_changed(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.changed)
    }
}

/// Free region of a data block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeRegion {
    /// Offset in the block.
    pub(super) offset: u64,
    /// Length in bytes, at least 8.
    pub(super) length: u64,
}
