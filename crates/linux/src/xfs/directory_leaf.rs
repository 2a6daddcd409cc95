//! Directories with data blocks behind a leaf of hashes.

use crate::xfs::directory::{
    BLOCK_TAIL_BYTES, ChangedBytes, Directory, DirectoryChange, DirectoryForm, EntryPlace,
    HASH_BYTES, HashEntry, LEAF_BLOCK, LEAF_HEADER_BYTES, hash_of, insert_hash,
};
use crate::xfs::directory_block::{DirectoryBlock, entry_bytes};
use crate::xfs::geometry::BLOCK_BYTES;

/// Bytes of the tail of a leaf.
const LEAF_TAIL_BYTES: u64 = 4;
/// Bytes in a leaf for the longest free region of a data block.
const BEST_BYTES: u64 = 2;

impl Directory {
    /// Logs the longest free region of a data block in the leaf.
    pub(super) fn log_best(&self, block: u64, change: &mut DirectoryChange) {
        let bests = BLOCK_BYTES - LEAF_TAIL_BYTES - BEST_BYTES * self.blocks.len() as u64;
        let offset = bests + BEST_BYTES * block;
        change.logged.push(ChangedBytes {
            block: LEAF_BLOCK,
            bytes: offset..offset + BEST_BYTES,
        });
    }

    pub(super) fn block_to_leaf(&mut self, change: &mut DirectoryChange) {
        let hashes_offset = self.hashes_offset();
        self.form = DirectoryForm::Leaf;
        change.allocated.push(LEAF_BLOCK);
        self.hashes.retain(|entry| entry.place.is_some());
        if let Some(block) = self.blocks[0].as_mut() {
            block.make_free(hashes_offset, BLOCK_BYTES - hashes_offset);
        }
        self.log_hashes(0..self.hashes.len(), change);
        let tail = BLOCK_BYTES - LEAF_TAIL_BYTES..BLOCK_BYTES;
        change.logged.push(ChangedBytes {
            block: LEAF_BLOCK,
            bytes: tail,
        });
        self.log_best(0, change);
    }

    /// Adds a name to a directory with one leaf. Returns whether it fits.
    pub(super) fn insert_in_leaf(&mut self, name: &str, change: &mut DirectoryChange) -> bool {
        let length = entry_bytes(name);
        let has_space = |block: &Option<DirectoryBlock>| {
            block
                .as_ref()
                .is_some_and(|block| block.longest() >= length)
        };
        let found = self.blocks.iter().position(has_space);
        let has_stale = self.hashes.iter().any(|entry| entry.place.is_none());
        let new_hash = if has_stale { 0 } else { HASH_BYTES };
        let new_best = if found.is_none() { BEST_BYTES } else { 0 };
        let used = LEAF_HEADER_BYTES
            + HASH_BYTES * self.hashes.len() as u64
            + BEST_BYTES * self.blocks.len() as u64
            + LEAF_TAIL_BYTES;
        if used + new_hash + new_best > BLOCK_BYTES {
            return false;
        }
        let index = found.unwrap_or_else(|| self.add_data_block(change));
        let block = self.blocks[index].get_or_insert_default();
        let longest = block.longest();
        let offset = block.largest()[0].offset;
        block.take(offset..offset + length);
        block.note(offset..offset + length);
        let place = EntryPlace {
            block: index as u64,
            offset,
        };
        if block.longest() != longest {
            self.log_best(place.block, change);
        }
        self.places.insert(name.to_owned(), place);
        let entry = HashEntry {
            hash: hash_of(name),
            place: Some(place),
        };
        let moved = insert_hash(&mut self.hashes, entry, false);
        self.log_hashes(moved, change);
        true
    }

    /// Adds a data block in the first gap. Returns its index.
    fn add_data_block(&mut self, change: &mut DirectoryChange) -> usize {
        let gap = self.blocks.iter().position(Option::is_none);
        let index = gap.unwrap_or_else(|| {
            self.blocks.push(None);
            let bests = BEST_BYTES * self.blocks.len() as u64;
            let bytes = BLOCK_BYTES - LEAF_TAIL_BYTES - bests..BLOCK_BYTES;
            change.logged.push(ChangedBytes {
                block: LEAF_BLOCK,
                bytes,
            });
            self.blocks.len() - 1
        });
        self.blocks[index] = Some(DirectoryBlock::new());
        change.allocated.push(index as u64);
        index
    }

    pub(super) fn drop_empty_blocks(&mut self, change: &mut DirectoryChange) {
        for index in 1..self.blocks.len() {
            if self.blocks[index]
                .as_ref()
                .is_some_and(DirectoryBlock::is_empty)
            {
                self.blocks[index] = None;
                change.freed.push(index as u64);
                change
                    .logged
                    .retain(|changed| changed.block != index as u64);
                self.log_best(index as u64, change);
            }
        }
        while self.blocks.last().is_some_and(Option::is_none) {
            self.blocks.pop();
        }
    }

    /// Joins the leaf with the only data block, if its last free region takes the hashes.
    pub(super) fn leaf_to_block(&mut self, change: &mut DirectoryChange) {
        let live = self
            .hashes
            .iter()
            .filter(|entry| entry.place.is_some())
            .count() as u64;
        let needed = BLOCK_TAIL_BYTES + HASH_BYTES * live;
        let [Some(block)] = self.blocks.as_mut_slice() else {
            return;
        };
        if block
            .free_before(BLOCK_BYTES)
            .is_none_or(|region| region.length < needed)
        {
            return;
        }
        block.take(BLOCK_BYTES - needed..BLOCK_BYTES);
        self.form = DirectoryForm::Block;
        self.hashes.retain(|entry| entry.place.is_some());
        change.freed.push(LEAF_BLOCK);
        change.logged.retain(|changed| changed.block != LEAF_BLOCK);
        self.log_hashes(0..self.hashes.len(), change);
    }
}
