//! Names of a directory: in the inode, in one block, or in data blocks behind a leaf of hashes.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::xfs::directory_block::{DATA_HEADER_BYTES, DirectoryBlock, FreeRegion, entry_bytes};
use crate::xfs::directory_node::HashLeaf;
use crate::xfs::geometry::BLOCK_BYTES;

/// Bytes of the header of names in an inode.
const SHORT_HEADER_BYTES: u64 = 6;
/// Bytes of a name in an inode, without the name.
const SHORT_ENTRY_BYTES: u64 = 8;
/// Offset of the first entry behind `.` and `..` in the first data block.
const FIRST_ENTRY_OFFSET: u64 = DATA_HEADER_BYTES + 32;
/// Bytes of a hash with the address of its entry.
pub(super) const HASH_BYTES: u64 = 8;
/// Bytes of the tail of a directory of one block.
pub(super) const BLOCK_TAIL_BYTES: u64 = 8;
/// Bytes of the header of a leaf.
pub(super) const LEAF_HEADER_BYTES: u64 = 64;
/// Block of the directory's file that holds the leaf.
pub(super) const LEAF_BLOCK: u64 = (32 << 30) / BLOCK_BYTES;

/// Form in which the names are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectoryForm {
    /// In the inode behind its core.
    Short,
    /// In one block with its hashes.
    Block,
    /// In data blocks, with their hashes in a leaf.
    Leaf,
    /// In data blocks, with their hashes in leaves below a node.
    Node,
}

/// Place of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryPlace {
    /// Block of the directory's file.
    pub(super) block: u64,
    /// Offset in the block.
    pub(super) offset: u64,
}

/// Hash of a name, by which it is found. Removed ones stay as stale entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct HashEntry {
    pub(super) hash: u32,
    /// Place of the name; `None` once it was removed.
    pub(super) place: Option<EntryPlace>,
}

/// Bytes of a block of the directory's file that changed.
#[derive(Clone, Debug)]
pub(super) struct ChangedBytes {
    /// Block of the directory's file.
    pub(super) block: u64,
    /// Bytes in the block.
    pub(super) bytes: Range<u64>,
}

/// Consequences of a change of names, in blocks of the directory's file.
#[derive(Clone, Debug, Default)]
pub(super) struct DirectoryChange {
    /// Blocks that the directory's file does not have yet.
    pub(super) allocated: Vec<u64>,
    /// Bytes that the transaction logs, in blocks that are there or new.
    pub(super) logged: Vec<ChangedBytes>,
    /// Blocks that hold no names any more.
    pub(super) freed: Vec<u64>,
}

/// The names need more hashes or data blocks than one node holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LeafFull;

/// Names of a directory.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) form: DirectoryForm,
    /// Bytes that the inode has for names.
    fork_bytes: u64,
    pub(super) places: BTreeMap<String, EntryPlace>,
    /// Data blocks; `None` where one was freed.
    pub(super) blocks: Vec<Option<DirectoryBlock>>,
    pub(super) hashes: Vec<HashEntry>,
    /// Leaves below a node.
    pub(super) leaves: Vec<HashLeaf>,
    /// Blocks of leaves and the node that were ever made.
    pub(super) hash_blocks: u64,
}

impl Directory {
    /// Returns a directory without names, whose inode has `fork_bytes` for them.
    pub(super) fn new(fork_bytes: u64) -> Self {
        Self {
            form: DirectoryForm::Short,
            fork_bytes,
            places: BTreeMap::new(),
            blocks: Vec::new(),
            hashes: Vec::new(),
            leaves: Vec::new(),
            hash_blocks: 0,
        }
    }

    /// Bytes of the names in the inode; none where they are in blocks.
    pub(super) fn inline_bytes(&self) -> u64 {
        if self.form == DirectoryForm::Short {
            self.short_bytes()
        } else {
            0
        }
    }

    fn short_bytes(&self) -> u64 {
        let entries = self
            .places
            .keys()
            .map(|name| SHORT_ENTRY_BYTES + name.len() as u64);
        SHORT_HEADER_BYTES + entries.sum::<u64>()
    }

    /// Adds a name, or gives a name that is there to another file.
    pub(super) fn insert(&mut self, name: &str) -> Result<DirectoryChange, LeafFull> {
        let mut change = DirectoryChange::default();
        if let Some(place) = self.places.get(name) {
            if self.form != DirectoryForm::Short {
                let bytes = place.offset..place.offset + entry_bytes(name);
                change.logged.push(ChangedBytes {
                    block: place.block,
                    bytes,
                });
            }
            return Ok(change);
        }
        if self.form == DirectoryForm::Short {
            let end = |(name, place): (&String, &EntryPlace)| place.offset + entry_bytes(name);
            let offset = self
                .places
                .iter()
                .map(end)
                .max()
                .unwrap_or(FIRST_ENTRY_OFFSET);
            let short_bytes = self.short_bytes() + SHORT_ENTRY_BYTES + name.len() as u64;
            if short_bytes <= self.fork_bytes {
                self.places
                    .insert(name.to_owned(), EntryPlace { block: 0, offset });
                return Ok(change);
            }
            self.short_to_block(&mut change);
        }
        if self.form == DirectoryForm::Block && !self.insert_in_block(name, &mut change) {
            self.block_to_leaf(&mut change);
        }
        let has_name = self.places.contains_key(name);
        if self.form == DirectoryForm::Leaf && !has_name && !self.insert_in_leaf(name, &mut change)
        {
            self.leaf_to_node(&mut change);
        }
        if self.form == DirectoryForm::Node && !self.places.contains_key(name) {
            self.insert_in_node(name, &mut change)?;
        }
        self.take_logged(&mut change);
        Ok(change)
    }

    /// Removes a name, and what its removal leaves without use.
    pub(super) fn remove(&mut self, name: &str) -> DirectoryChange {
        let mut change = DirectoryChange::default();
        let Some(place) = self.places.remove(name) else {
            return change;
        };
        if self.form == DirectoryForm::Short {
            return change;
        }
        let mut has_longer_region = false;
        if let Some(block) = &mut self.blocks[place.block as usize] {
            let longest = block.longest();
            block.make_free(place.offset, entry_bytes(name));
            has_longer_region = block.longest() > longest;
        }
        if self.form == DirectoryForm::Node {
            self.remove_from_node(place, has_longer_region, &mut change);
            self.take_logged(&mut change);
            return change;
        }
        let index = self
            .hashes
            .iter()
            .position(|entry| entry.place == Some(place));
        let index = index.expect("each name has a hash");
        self.hashes[index].place = None;
        self.log_hashes(index..index + 1, &mut change);
        if self.form == DirectoryForm::Leaf {
            if has_longer_region {
                self.log_best(place.block, &mut change);
            }
            self.drop_empty_blocks(&mut change);
            self.leaf_to_block(&mut change);
        }
        if self.form == DirectoryForm::Block && self.short_bytes() <= self.fork_bytes {
            self.block_to_short(&mut change);
        }
        self.take_logged(&mut change);
        change
    }

    /// Offset of the first hash in a directory of one block.
    pub(super) fn hashes_offset(&self) -> u64 {
        BLOCK_BYTES - BLOCK_TAIL_BYTES - HASH_BYTES * self.hashes.len() as u64
    }

    pub(super) fn log_hashes(&mut self, hashes: Range<usize>, change: &mut DirectoryChange) {
        let span = |start: u64| {
            start + HASH_BYTES * hashes.start as u64..start + HASH_BYTES * hashes.end as u64
        };
        if self.form == DirectoryForm::Leaf {
            let bytes = span(LEAF_HEADER_BYTES);
            change.logged.push(ChangedBytes {
                block: LEAF_BLOCK,
                bytes,
            });
            change.logged.push(ChangedBytes {
                block: LEAF_BLOCK,
                bytes: 0..LEAF_HEADER_BYTES,
            });
        } else {
            let bytes = span(self.hashes_offset());
            change.logged.push(ChangedBytes { block: 0, bytes });
            let tail = BLOCK_BYTES - BLOCK_TAIL_BYTES..BLOCK_BYTES;
            change.logged.push(ChangedBytes {
                block: 0,
                bytes: tail,
            });
        }
    }

    fn take_logged(&mut self, change: &mut DirectoryChange) {
        for (block, data) in self.blocks.iter_mut().enumerate() {
            let changed = data.iter_mut().flat_map(DirectoryBlock::take_changed);
            change.logged.extend(changed.map(|bytes| ChangedBytes {
                block: block as u64,
                bytes,
            }));
        }
    }

    fn short_to_block(&mut self, change: &mut DirectoryChange) {
        self.form = DirectoryForm::Block;
        change.allocated.push(0);
        let mut block = DirectoryBlock::new();
        block.take(DATA_HEADER_BYTES..FIRST_ENTRY_OFFSET);
        block.note(DATA_HEADER_BYTES..FIRST_ENTRY_OFFSET);
        self.hashes = [".", ".."]
            .iter()
            .enumerate()
            .map(|(index, name)| HashEntry {
                hash: hash_of(name),
                place: Some(EntryPlace {
                    block: 0,
                    offset: DATA_HEADER_BYTES + 16 * index as u64,
                }),
            })
            .collect();
        for (name, place) in &self.places {
            let bytes = place.offset..place.offset + entry_bytes(name);
            block.take(bytes.clone());
            block.note(bytes);
            self.hashes.push(HashEntry {
                hash: hash_of(name),
                place: Some(*place),
            });
        }
        self.hashes.sort_by_key(|entry| entry.hash);
        block.take(self.hashes_offset()..BLOCK_BYTES);
        self.blocks = vec![Some(block)];
        self.log_hashes(0..self.hashes.len(), change);
    }

    fn block_to_short(&mut self, change: &mut DirectoryChange) {
        self.form = DirectoryForm::Short;
        self.hashes.clear();
        self.blocks.clear();
        change.logged.clear();
        change.freed.push(0);
        let mut offset = FIRST_ENTRY_OFFSET;
        let mut in_order: Vec<(u64, String)> = self
            .places
            .iter()
            .map(|(name, place)| (place.offset, name.clone()))
            .collect();
        in_order.sort();
        for (old, name) in in_order {
            offset = offset.max(old);
            self.places
                .insert(name.clone(), EntryPlace { block: 0, offset });
            offset += entry_bytes(&name);
        }
    }

    /// Adds a name to a directory of one block. Returns whether it fits.
    fn insert_in_block(&mut self, name: &str, change: &mut DirectoryChange) -> bool {
        let length = entry_bytes(name);
        let hashes_offset = self.hashes_offset();
        let stale = self.hashes.iter().any(|entry| entry.place.is_none());
        let Some(block) = self.blocks[0].as_mut() else {
            return false;
        };
        let largest = block.largest();
        let before_hashes = block.free_before(hashes_offset);
        let region = if stale {
            largest.first().filter(|region| region.length >= length)
        } else {
            if before_hashes.is_none_or(|region| region.length < HASH_BYTES) {
                return false;
            }
            let fits = |region: &&FreeRegion| {
                let reserved = if Some(**region) == before_hashes {
                    HASH_BYTES
                } else {
                    0
                };
                region.length >= length + reserved
            };
            largest.iter().take(2).find(fits)
        };
        let Some(region) = region.copied() else {
            return false;
        };
        let bytes = region.offset..region.offset + length;
        if !stale {
            block.take(hashes_offset - HASH_BYTES..hashes_offset);
        }
        block.take(bytes.clone());
        block.note(bytes);
        let place = EntryPlace {
            block: 0,
            offset: region.offset,
        };
        self.places.insert(name.to_owned(), place);
        let entry = HashEntry {
            hash: hash_of(name),
            place: Some(place),
        };
        let moved = insert_hash(&mut self.hashes, entry, true);
        self.log_hashes(moved, change);
        true
    }
}

/// Puts a hash before the first that is not below it, over the nearest stale one if there is any. Returns the hashes that
/// moved: without a stale one, those below if the table grows downwards, else those above.
pub(super) fn insert_hash(
    hashes: &mut Vec<HashEntry>,
    entry: HashEntry,
    grows_down: bool,
) -> Range<usize> {
    let position = hashes.partition_point(|other| other.hash < entry.hash);
    let is_stale = |index: &usize| hashes[*index].place.is_none();
    let below = (0..position).rev().find(is_stale);
    let above = (position..hashes.len()).find(is_stale);
    match (below, above) {
        (Some(below), above)
            if above.is_none_or(|above| position - below - 1 < above - position) =>
        {
            hashes.remove(below);
            hashes.insert(position - 1, entry);
            below..position
        }
        (_, Some(above)) => {
            hashes.remove(above);
            hashes.insert(position, entry);
            position..above + 1
        }
        _ => {
            hashes.insert(position, entry);
            if grows_down {
                0..position + 1
            } else {
                position..hashes.len()
            }
        }
    }
}

/// Hash of a name by which a directory sorts.
pub(super) fn hash_of(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let chunks = bytes.chunks_exact(4);
    let rest = chunks.remainder();
    let fold = |part: &[u8]| {
        part.iter()
            .fold(0_u32, |hash, byte| (hash << 7) ^ u32::from(*byte))
    };
    let hash = chunks.fold(0_u32, |hash, chunk| fold(chunk) ^ hash.rotate_left(28));
    if rest.is_empty() {
        hash
    } else {
        fold(rest) ^ hash.rotate_left(7 * rest.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds names until `count` are there.
    fn directory(count: usize) -> Directory {
        let mut directory = Directory::new(336);
        for index in 0..count {
            directory
                .insert(&format!("f{index}"))
                .expect("one node holds the names");
        }
        directory
    }

    #[test]
    fn names_move_to_a_block_a_leaf_and_a_node_as_they_grow() {
        for (count, form) in [
            (30, DirectoryForm::Short),
            (31, DirectoryForm::Block),
            (160, DirectoryForm::Block),
            (400, DirectoryForm::Leaf),
            (600, DirectoryForm::Node),
            (2000, DirectoryForm::Node),
        ] {
            assert_eq!(directory(count).form, form, "{count} names");
        }
    }

    #[test]
    fn removal_of_all_names_returns_to_the_inode() {
        let mut names = directory(400);
        for index in 0..400 {
            names.remove(&format!("f{index}"));
        }
        assert_eq!(names.form, DirectoryForm::Short);
        assert_eq!(names.inline_bytes(), SHORT_HEADER_BYTES);
    }

    #[test]
    fn a_name_that_reuses_a_stale_hash_logs_few_bytes() {
        let mut directory = directory(100);
        directory.remove("f50");
        let change = directory.insert("f50").expect("it fits");
        let bytes: u64 = change
            .logged
            .iter()
            .map(|changed| changed.bytes.end - changed.bytes.start)
            .sum();
        assert!(bytes < 256, "{bytes} bytes");
    }
}
