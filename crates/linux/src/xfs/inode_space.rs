//! Inodes of an allocation group: chunks, their trees, and the lists of unlinked inodes.

use std::collections::BTreeMap;

use crate::xfs::free_space::{FreeSpace, SpaceRequest, TreeFull};
use crate::xfs::geometry::{
    BLOCK_BYTES, CHUNK_BLOCKS, CHUNK_INODES, FreeExtent, INODE_BYTES, XfsGeometry,
};
use crate::xfs::log::Log;
use crate::xfs::log_items::InodeNumber;
use crate::xfs::short_tree::log_changed_records;

/// Index of the first inode of the chunk that mkfs.xfs makes.
const FIRST_CHUNK: u64 = 128;
/// Inodes that mkfs.xfs uses: the root directory, and two of the real-time section.
const MKFS_INODES: u64 = 3;
/// Chunks whose records fit into a leaf of the tree of inodes. More are not modelled.
const CHUNKS_MAX: usize = 252;
/// Bytes of a record of the trees of inodes.
const RECORD_BYTES: u64 = 16;
/// Offset of the counts in the group's inode header, and their length.
const COUNTS: std::ops::Range<u64> = 16..36;
/// Offset of the lists of unlinked inodes in the group's inode header.
const UNLINKED_OFFSET: u64 = 40;
/// Lists of unlinked inodes of a group.
const UNLINKED_LISTS: u64 = 64;
/// Offset in an inode of the number of the next unlinked inode.
const NEXT_UNLINKED_OFFSET: u64 = 96;

/// Record of a chunk in the trees of inodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkRecord {
    /// Index of the first inode.
    first: u64,
    /// Free inodes, as bits.
    free: u64,
}

/// Inodes of one allocation group.
#[derive(Clone, Debug)]
pub(super) struct InodeSpace {
    group: u64,
    /// Free inodes of each chunk, as bits, by the index of its first inode.
    chunks: BTreeMap<u64, u64>,
    newest_chunk: Option<u64>,
    /// Unlinked inodes that are not freed, newest last, by list.
    unlinked: BTreeMap<u64, Vec<u64>>,
}

impl InodeSpace {
    /// Returns the inodes of a new group. mkfs.xfs makes one chunk, in the first group.
    pub(super) fn new(group: u64) -> Self {
        let mut chunks = BTreeMap::new();
        if group == 0 {
            chunks.insert(FIRST_CHUNK, u64::MAX << MKFS_INODES);
        }
        let newest_chunk = chunks.keys().next().copied();
        Self {
            group,
            chunks,
            newest_chunk,
            unlinked: BTreeMap::new(),
        }
    }

    /// Number of the root directory.
    pub(super) fn root() -> InodeNumber {
        InodeNumber {
            group: 0,
            index: FIRST_CHUNK,
        }
    }

    /// Blocks that mkfs.xfs takes for the first chunk.
    pub(super) fn first_chunk_blocks() -> FreeExtent {
        FreeExtent {
            first: block_of(FIRST_CHUNK),
            length: CHUNK_BLOCKS,
        }
    }

    /// First blocks of the chunks, in the group.
    #[cfg(test)]
    pub(super) fn chunk_blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.chunks.keys().map(|first| block_of(*first))
    }

    /// Whether a chunk has a free inode.
    pub(super) fn has_free(&self) -> bool {
        self.chunks.values().any(|free| *free != 0)
    }

    /// Allocates the free inode nearest to `parent`, a number in this group or `None`. Makes a
    /// chunk if none has a free inode. Returns `None` if there is no space.
    pub(super) fn allocate(
        &mut self,
        geometry: &XfsGeometry,
        log: &mut Log,
        space: &mut FreeSpace,
        parent: Option<u64>,
    ) -> Result<Option<InodeNumber>, TreeFull> {
        if !self.has_free() && !self.add_chunk(geometry, log, space)? {
            return Ok(None);
        }
        let Some(chunk) = self.choose_chunk(parent) else {
            return Ok(None);
        };
        let before = self.clone();
        let free = self
            .chunks
            .get_mut(&chunk)
            .expect("the chunk was chosen from these");
        let bit = u64::from(free.trailing_zeros());
        *free &= !(1 << bit);
        self.log_changes(geometry, log, &before);
        Ok(Some(InodeNumber {
            group: self.group,
            index: chunk + bit,
        }))
    }

    fn choose_chunk(&self, parent: Option<u64>) -> Option<u64> {
        let with_free = || {
            self.chunks
                .iter()
                .filter(|(_, free)| **free != 0)
                .map(|(first, _)| *first)
        };
        let Some(parent) = parent else {
            let newest = self.newest_chunk.filter(|chunk| self.chunks[chunk] != 0);
            return newest.or_else(|| with_free().next());
        };
        let left = with_free().take_while(|first| *first <= parent).last();
        let right = with_free().find(|first| *first >= parent);
        match (left, right) {
            (Some(left), _) if parent < left + CHUNK_INODES => Some(left),
            (Some(left), Some(right)) if parent - left + CHUNK_INODES - 1 > right - parent => {
                Some(right)
            }
            (left, right) => left.or(right),
        }
    }

    fn add_chunk(
        &mut self,
        geometry: &XfsGeometry,
        log: &mut Log,
        space: &mut FreeSpace,
    ) -> Result<bool, TreeFull> {
        if self.chunks.len() >= CHUNKS_MAX {
            return Err(TreeFull);
        }
        let behind_newest = self.newest_chunk.map(|newest| FreeExtent {
            first: block_of(newest) + CHUNK_BLOCKS,
            length: CHUNK_BLOCKS,
        });
        let near_root = SpaceRequest {
            target: self.root_block(geometry),
            length_min: CHUNK_BLOCKS,
            length_max: CHUNK_BLOCKS,
            alignment: CHUNK_BLOCKS,
            is_user_data: false,
        };
        let found = behind_newest
            .filter(|extent| space.is_free(*extent))
            .or_else(|| space.find_near(near_root));
        let Some(extent) = found else {
            return Ok(false);
        };
        space.allocate(geometry, log, extent)?;
        let before = self.clone();
        let first = extent.first * BLOCK_BYTES / INODE_BYTES;
        self.chunks.insert(first, u64::MAX);
        self.newest_chunk = Some(first);
        let clusters = geometry.chunk_clusters(self.group, first);
        log.add_inode_chunk(
            InodeNumber {
                group: self.group,
                index: first,
            },
            &clusters,
        );
        self.log_changes(geometry, log, &before);
        Ok(true)
    }

    fn root_block(&self, geometry: &XfsGeometry) -> u64 {
        let sector = geometry.inode_root(self.group).sector;
        (sector - geometry.block_sector(self.group * geometry.group_blocks))
            / geometry.block_sector(1)
    }

    /// Gives an inode back.
    pub(super) fn free(&mut self, geometry: &XfsGeometry, log: &mut Log, index: u64) {
        let before = self.clone();
        let (first, free) = self
            .chunks
            .range_mut(..=index)
            .next_back()
            .expect("the inode lies in a chunk");
        *free |= 1 << (index - first);
        self.log_changes(geometry, log, &before);
    }

    fn log_changes(&self, geometry: &XfsGeometry, log: &mut Log, before: &Self) {
        log.add_buffer(geometry.inode_header(self.group), COUNTS);
        let records = |space: &Self| -> Vec<ChunkRecord> {
            space
                .chunks
                .iter()
                .map(|(first, free)| ChunkRecord {
                    first: *first,
                    free: *free,
                })
                .collect()
        };
        log_changed_records(
            log,
            (geometry.inode_root(self.group), RECORD_BYTES),
            &records(before),
            &records(self),
        );
        let with_free = |space: &Self| -> Vec<ChunkRecord> {
            records(space)
                .into_iter()
                .filter(|record| record.free != 0)
                .collect()
        };
        log_changed_records(
            log,
            (geometry.free_inode_root(self.group), RECORD_BYTES),
            &with_free(before),
            &with_free(self),
        );
    }

    /// Adds an inode without names to the lists that recovery frees.
    pub(super) fn add_unlinked(&mut self, geometry: &XfsGeometry, log: &mut Log, index: u64) {
        let list = self.unlinked.entry(index % UNLINKED_LISTS).or_default();
        if !list.is_empty() {
            log_next_unlinked(geometry, log, self.group, index);
        }
        list.push(index);
        self.log_unlinked(geometry, log, index);
    }

    /// Takes an inode off the lists of unlinked inodes.
    pub(super) fn remove_unlinked(&mut self, geometry: &XfsGeometry, log: &mut Log, index: u64) {
        let list = self.unlinked.entry(index % UNLINKED_LISTS).or_default();
        let Some(position) = list.iter().position(|entry| *entry == index) else {
            return;
        };
        list.remove(position);
        if position > 0 {
            log_next_unlinked(geometry, log, self.group, index);
        }
        match list.get(position).copied() {
            Some(previous) => log_next_unlinked(geometry, log, self.group, previous),
            None => self.log_unlinked(geometry, log, index),
        }
    }

    fn log_unlinked(&self, geometry: &XfsGeometry, log: &mut Log, index: u64) {
        let offset = UNLINKED_OFFSET + index % UNLINKED_LISTS * 4;
        log.add_buffer(geometry.inode_header(self.group), offset..offset + 4);
    }
}

/// Block of the group that holds an inode.
pub(super) fn block_of(index: u64) -> u64 {
    index * INODE_BYTES / BLOCK_BYTES
}

fn log_next_unlinked(geometry: &XfsGeometry, log: &mut Log, group: u64, index: u64) {
    let cluster = geometry.inode_cluster(group, index);
    let first = cluster.sector - geometry.block_sector(group * geometry.group_blocks);
    let offset = index * INODE_BYTES - first * crate::block::SECTOR_BYTES + NEXT_UNLINKED_OFFSET;
    log.add_buffer(cluster, offset..offset + 4);
}
