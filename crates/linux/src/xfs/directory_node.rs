//! Directories with several leaves of hashes below a node, and a block of free space.

use crate::xfs::directory::{
    ChangedBytes, Directory, DirectoryChange, DirectoryForm, EntryPlace, HASH_BYTES, HashEntry,
    LEAF_BLOCK, LEAF_HEADER_BYTES, LeafFull, hash_of, insert_hash,
};
use crate::xfs::directory_block::{DirectoryBlock, entry_bytes};
use crate::xfs::geometry::BLOCK_BYTES;

/// Block of the directory's file that holds the free space of data blocks.
const FREE_BLOCK: u64 = (64 << 30) / BLOCK_BYTES;
/// Bytes of the headers of the node and of the block of free space.
const HEADER_BYTES: u64 = 64;
/// Bytes of the longest free region of a data block.
const BEST_BYTES: u64 = 2;
/// Hashes of a leaf, and leaves of a node. More are not modelled.
const ENTRIES_MAX: usize = ((BLOCK_BYTES - LEAF_HEADER_BYTES) / HASH_BYTES) as usize;
/// Data blocks whose free space one block holds. More are not modelled.
const DATA_BLOCKS_MAX: usize = ((BLOCK_BYTES - HEADER_BYTES) / BEST_BYTES) as usize;

/// Leaf of hashes below the node, or alone in its place.
#[derive(Clone, Debug)]
pub(super) struct HashLeaf {
    /// Block of the directory's file.
    block: u64,
    /// Hashes in ascending order.
    hashes: Vec<HashEntry>,
}

impl Directory {
    /// Gives the leaf the form that stands below a node, and the free space a block of its own.
    pub(super) fn leaf_to_node(&mut self, change: &mut DirectoryChange) {
        self.form = DirectoryForm::Node;
        change.allocated.push(FREE_BLOCK);
        change.log(
            FREE_BLOCK,
            0,
            HEADER_BYTES + BEST_BYTES * self.blocks.len() as u64,
        );
        change.log(LEAF_BLOCK, 0, HEADER_BYTES);
        let hashes = std::mem::take(&mut self.hashes);
        self.leaves = vec![HashLeaf {
            block: LEAF_BLOCK,
            hashes,
        }];
        self.hash_blocks = 1;
    }

    pub(super) fn insert_in_node(
        &mut self,
        name: &str,
        change: &mut DirectoryChange,
    ) -> Result<(), LeafFull> {
        let length = entry_bytes(name);
        let has_space = |block: &Option<DirectoryBlock>| {
            block
                .as_ref()
                .is_some_and(|block| block.longest() >= length)
        };
        let found = self.blocks.iter().rposition(has_space);
        let index = match found {
            Some(index) => index,
            None => self.add_node_data_block(change)?,
        };
        let block = self.blocks[index].get_or_insert_default();
        let longest = block.longest();
        let offset = block.largest()[0].offset;
        block.take(offset..offset + length);
        block.note(offset..offset + length);
        if block.longest() != longest {
            log_free_space(index as u64, change);
        }
        let place = EntryPlace {
            block: index as u64,
            offset,
        };
        self.places.insert(name.to_owned(), place);
        self.insert_in_leaves(
            HashEntry {
                hash: hash_of(name),
                place: Some(place),
            },
            change,
        )
    }

    fn add_node_data_block(&mut self, change: &mut DirectoryChange) -> Result<usize, LeafFull> {
        let gap = self.blocks.iter().position(Option::is_none);
        let index = gap.unwrap_or(self.blocks.len());
        if index >= DATA_BLOCKS_MAX {
            return Err(LeafFull);
        }
        if gap.is_none() {
            self.blocks.push(None);
        }
        self.blocks[index] = Some(DirectoryBlock::new());
        change.allocated.push(index as u64);
        change.log(FREE_BLOCK, 0, HEADER_BYTES);
        log_free_space(index as u64, change);
        Ok(index)
    }

    fn insert_in_leaves(
        &mut self,
        entry: HashEntry,
        change: &mut DirectoryChange,
    ) -> Result<(), LeafFull> {
        let is_at_most = |leaf: &HashLeaf| {
            leaf.hashes
                .last()
                .is_some_and(|last| entry.hash <= last.hash)
        };
        let mut at = self
            .leaves
            .iter()
            .position(is_at_most)
            .unwrap_or(self.leaves.len() - 1);
        let is_stale = |entry: &HashEntry| entry.place.is_none();
        let hashes = &self.leaves[at].hashes;
        if hashes.len() >= ENTRIES_MAX && !hashes.iter().any(is_stale) {
            at = self.split_leaf(at, entry.hash, change)?;
        }
        let has_node = self.leaves.len() > 1;
        let HashLeaf { block, hashes } = &mut self.leaves[at];
        let last = hashes.last().map(|last| last.hash);
        let moved = insert_hash(hashes, entry, false);
        change.log(*block, 0, LEAF_HEADER_BYTES);
        change.log_hashes(*block, moved);
        if has_node && hashes.last().map(|last| last.hash) != last {
            change.log_hashes(LEAF_BLOCK, at..at + 1);
        }
        Ok(())
    }

    /// Moves the upper half of a full leaf to a new one. Returns the index of the leaf that takes
    /// `hash`. The first split makes the node, in the block of the leaf that was the only one.
    fn split_leaf(
        &mut self,
        at: usize,
        hash: u32,
        change: &mut DirectoryChange,
    ) -> Result<usize, LeafFull> {
        if self.leaves.len() >= ENTRIES_MAX {
            return Err(LeafFull);
        }
        let block = self.add_hash_block(change);
        let left = &mut self.leaves[at];
        let position = left.hashes.partition_point(|other| other.hash < hash);
        let middle = left.hashes.len() / 2;
        let hashes = left.hashes.split_off(middle);
        change.log(left.block, 0, LEAF_HEADER_BYTES);
        change.log(block, 0, LEAF_HEADER_BYTES);
        change.log_hashes(block, 0..hashes.len());
        self.leaves.insert(at + 1, HashLeaf { block, hashes });
        if let Some(next) = self.leaves.get(at + 2) {
            change.log(next.block, 0, LEAF_HEADER_BYTES);
        }
        if self.leaves.len() == 2 {
            let moved = self.add_hash_block(change);
            self.leaves[0].block = moved;
            change.log(moved, 0, LEAF_HEADER_BYTES);
            change.log_hashes(moved, 0..middle);
        }
        change.log(LEAF_BLOCK, 0, HEADER_BYTES);
        change.log_hashes(LEAF_BLOCK, at..self.leaves.len());
        Ok(if position <= middle { at } else { at + 1 })
    }

    fn add_hash_block(&mut self, change: &mut DirectoryChange) -> u64 {
        let block = LEAF_BLOCK + self.hash_blocks;
        self.hash_blocks += 1;
        change.allocated.push(block);
        block
    }

    /// Makes the hash of a removed name stale, and frees its data block if that is empty. Leaves
    /// that become short are not joined.
    pub(super) fn remove_from_node(
        &mut self,
        place: EntryPlace,
        has_longer_region: bool,
        change: &mut DirectoryChange,
    ) {
        for HashLeaf { block, hashes } in &mut self.leaves {
            let Some(index) = hashes.iter().position(|entry| entry.place == Some(place)) else {
                continue;
            };
            hashes[index].place = None;
            change.log(*block, 0, LEAF_HEADER_BYTES);
            change.log_hashes(*block, index..index + 1);
        }
        let index = place.block as usize;
        if has_longer_region {
            log_free_space(place.block, change);
        }
        if self.blocks[index]
            .as_ref()
            .is_some_and(DirectoryBlock::is_empty)
        {
            self.blocks[index] = None;
            change.freed.push(place.block);
            change.log(FREE_BLOCK, 0, HEADER_BYTES);
        }
    }
}

/// Logs the longest free region of a data block.
fn log_free_space(block: u64, change: &mut DirectoryChange) {
    change.log(FREE_BLOCK, HEADER_BYTES + BEST_BYTES * block, BEST_BYTES);
}

impl DirectoryChange {
    fn log(&mut self, block: u64, offset: u64, length: u64) {
        let bytes = offset..offset + length;
        self.logged.push(ChangedBytes { block, bytes });
    }

    /// Logs entries of a leaf or of the node.
    fn log_hashes(&mut self, block: u64, entries: std::ops::Range<usize>) {
        let offset = LEAF_HEADER_BYTES + HASH_BYTES * entries.start as u64;
        self.log(block, offset, HASH_BYTES * entries.len() as u64);
    }
}
