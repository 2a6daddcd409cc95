//! Places of ext4's metadata on the device, as mke2fs 1.47 lays them out.

use std::collections::BTreeMap;
use std::ops::Range;

use super::layout::GroupPlaces;
use super::options::Ext4MakeOptions;
use super::used_blocks::UsedBlocks;
use crate::block::MetadataKind;
use crate::file_system::FileSystemError;

/// Groups whose metadata lies together (flex_bg).
pub(super) const FLEX_GROUPS: u64 = 16;
/// Bytes of a group descriptor with the feature 64bit.
const DESCRIPTOR_BYTES: u64 = 64;
/// Bytes of an inode.
const INODE_BYTES: u64 = 256;
/// Inode of the root directory.
pub(super) const ROOT_INODE: u64 = 2;
/// First inode that is not reserved; lost+found has it.
pub(super) const FIRST_INODE: u64 = 11;
/// Bytes of lost+found, which mke2fs allocates.
const LOST_AND_FOUND_BYTES: u64 = 16 << 10;
/// Blocks that lost+found has at most.
const DIRECT_BLOCKS: u64 = 12;
/// Blocks that a last group must have beside its metadata, or it is left out.
const LAST_GROUP_BLOCKS_MIN: u64 = 50;
/// Smallest file system that gets a journal, in blocks.
const JOURNALLED_BLOCKS_MIN: u64 = 2048;
/// Share of the journal that an area for fast commits adds to it.
const FAST_COMMIT_SHARE: u64 = 64;
/// Longest extent of written blocks.
const EXTENT_BLOCKS_MAX: u64 = 32768;
/// Extents that an inode holds without a block for more.
const INODE_EXTENTS: usize = 4;
/// Bytes below which mke2fs makes a file system of the type `floppy`.
const FLOPPY_BYTES_END: u64 = 3 << 20;
/// Bytes below which mke2fs makes a file system of the type `small`.
const SMALL_BYTES_END: u64 = 512 << 20;
/// Bytes from which mke2fs makes a file system of the type `big`.
const BIG_BYTES_MIN: u64 = 4 << 40;

/// Blocks of fixed metadata behind a first one.
#[derive(Clone, Copy, Debug)]
struct FixedBlocks {
    end: u64,
    kind: MetadataKind,
}

/// Layout of a file system.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub(super) block_bytes: u64,
    pub(super) blocks: u64,
    pub(super) first_data_block: u64,
    pub(super) blocks_per_group: u64,
    pub(super) groups: u64,
    pub(super) inodes_per_group: u64,
    pub(super) inodes_per_block: u64,
    pub(super) root_block: u64,
    /// Blocks of the journal with its area for fast commits; none without a journal.
    pub(super) journal: Vec<Range<u64>>,
    /// Blocks at the end of the journal for fast commits.
    pub(super) fast_commit_blocks: u64,
    descriptor_blocks: u64,
    reserved_descriptor_blocks: u64,
    /// Places of each group's metadata.
    pub(super) places: Vec<GroupPlaces>,
    /// Fixed metadata by its first block.
    fixed: BTreeMap<u64, FixedBlocks>,
    used: UsedBlocks,
}

impl Geometry {
    /// Returns the layout that mke2fs makes on a device of `bytes`.
    pub(super) fn new(bytes: u64, options: &Ext4MakeOptions) -> Result<Self, FileSystemError> {
        let block_bytes = options.block_bytes_on(bytes);
        let refuse = |remedy| FileSystemError::Unsupported {
            file_system: "ext4",
            call: format!("a device of {bytes} bytes with blocks of {block_bytes} bytes"),
            remedy,
        };
        if !matches!(block_bytes, 1024 | 2048 | 4096) {
            return Err(refuse("use blocks of 1024, 2048 or 4096 bytes"));
        }
        let blocks = bytes / block_bytes;
        if blocks > u64::from(u32::MAX) {
            return Err(refuse(
                "use less than 2^32 blocks, which are 16 TiB of 4 KiB",
            ));
        }
        let bytes_per_inode = match bytes {
            0..FLOPPY_BYTES_END => 8192,
            FLOPPY_BYTES_END..SMALL_BYTES_END => 4096,
            SMALL_BYTES_END..BIG_BYTES_MIN => 16384,
            _ => 32768,
        };
        let mut geometry = Self {
            block_bytes,
            blocks,
            first_data_block: u64::from(block_bytes == 1024),
            blocks_per_group: 8 * block_bytes,
            groups: 0,
            inodes_per_group: 0,
            inodes_per_block: block_bytes / INODE_BYTES,
            root_block: 0,
            journal: Vec::new(),
            fast_commit_blocks: 0,
            descriptor_blocks: 0,
            reserved_descriptor_blocks: 0,
            places: Vec::new(),
            fixed: BTreeMap::new(),
            used: UsedBlocks::default(),
        };
        geometry
            .divide(blocks * block_bytes / bytes_per_inode)
            .and_then(|()| geometry.place(options))
            .ok_or_else(|| refuse("use a larger device, or larger blocks"))?;
        Ok(geometry)
    }

    /// Divides the device into groups with a share of the inodes. A last group that has no room for
    /// data is left out; groups shrink where one would get more inodes than its bitmap has bits.
    /// `None`: the metadata has no room.
    fn divide(&mut self, inodes: u64) -> Option<()> {
        let device_blocks = self.blocks;
        loop {
            let data_blocks = self.blocks.checked_sub(self.first_data_block)?;
            self.groups = data_blocks.div_ceil(self.blocks_per_group);
            if self.groups == 0 {
                return None;
            }
            if inodes.div_ceil(self.groups) > 8 * self.block_bytes {
                self.blocks_per_group = self.blocks_per_group.checked_sub(8)?;
                self.blocks = device_blocks;
                continue;
            }
            // Whole blocks of the table first, and then a multiple of eight for the bitmap.
            self.inodes_per_group = inodes
                .max(FIRST_INODE + 1)
                .div_ceil(self.groups)
                .next_multiple_of(self.inodes_per_block)
                .max(8)
                / 8
                * 8;
            if self.inodes_per_group * self.groups < FIRST_INODE {
                return None;
            }
            let per_block = self.block_bytes / DESCRIPTOR_BYTES;
            self.descriptor_blocks = self.groups.div_ceil(per_block);
            let grown = (self.blocks * 1024).min(u64::from(u32::MAX)) - self.first_data_block;
            self.reserved_descriptor_blocks = grown
                .div_ceil(self.blocks_per_group)
                .div_ceil(per_block)
                .saturating_sub(self.descriptor_blocks)
                .min(self.block_bytes / 4);
            let tables = 2 + self.inode_table_blocks();
            let backup = 1 + self.descriptor_blocks + self.reserved_descriptor_blocks;
            if backup + tables > self.blocks_per_group {
                return None;
            }
            let rest = data_blocks % self.blocks_per_group;
            let is_backup = has_backup(self.groups - 1);
            let metadata = tables + if is_backup { backup } else { 0 };
            if rest == 0 || rest >= metadata + LAST_GROUP_BLOCKS_MIN {
                return Some(());
            }
            if self.groups == 1 {
                return (rest >= metadata).then_some(());
            }
            self.blocks -= rest;
        }
    }

    /// Places all that mke2fs allocates. `None`: it has no room.
    fn place(&mut self, options: &Ext4MakeOptions) -> Option<()> {
        for group in (0..self.groups).filter(|group| has_backup(*group)) {
            let first = self.group_first(group);
            let end = first + 1 + self.descriptor_blocks + self.reserved_descriptor_blocks;
            self.used.mark(first..end);
        }
        self.places = vec![GroupPlaces::default(); self.groups as usize];
        for first in (0..self.groups).step_by(FLEX_GROUPS as usize) {
            self.place_flex_group(first..(first + FLEX_GROUPS).min(self.groups))?;
        }
        self.root_block = self.take_first(self.first_data_block, 1)?;
        for _ in 0..(LOST_AND_FOUND_BYTES / self.block_bytes).min(DIRECT_BLOCKS) {
            self.take_first(self.first_data_block, 1)?;
        }
        // The resize inode's block is sought behind the first inode table.
        let table_end = self.places[0].inode_table + self.inode_table_blocks();
        self.take_first(table_end, 1)?;
        if options.has_journal && self.blocks >= JOURNALLED_BLOCKS_MIN {
            self.place_journal(options.has_fast_commit)?;
        }
        Some(())
    }

    /// Places the block bitmaps of a flex group, then its inode bitmaps, then its inode tables, each
    /// behind the one before, around what is used.
    fn place_flex_group(&mut self, groups: Range<u64>) -> Option<()> {
        let mut next = self.group_first(groups.start);
        let members = groups.start as usize..groups.end as usize;
        // mke2fs leaves room for sixteen bitmaps where a flex group has one member.
        let spacing = if members.len() == 1 { FLEX_GROUPS } else { 1 };
        for (kind, blocks) in [
            (MetadataKind::BlockBitmap, 1),
            (MetadataKind::InodeBitmap, 1),
            (MetadataKind::InodeTable, self.inode_table_blocks()),
        ] {
            for index in members.clone() {
                let place = self.take_first(next, blocks)?;
                let end = place + blocks;
                next = place + blocks.max(spacing);
                self.fixed.insert(place, FixedBlocks { end, kind });
                let places = &mut self.places[index];
                match kind {
                    MetadataKind::BlockBitmap => places.block_bitmap = place,
                    MetadataKind::InodeBitmap => places.inode_bitmap = place,
                    _ => places.inode_table = place,
                }
            }
        }
        Some(())
    }

    /// Takes the first `length` free blocks together at or after `from`, or from the start on.
    fn take_first(&mut self, from: u64, length: u64) -> Option<u64> {
        let place = self
            .used
            .find(from..self.blocks, length)
            .or_else(|| self.used.find(self.first_data_block..self.blocks, length))?;
        self.used.mark(place..place + length);
        Some(place)
    }

    /// Blocks of a group that mke2fs has not used.
    pub(super) fn free_blocks(&self, group: u64) -> u64 {
        let first = self.group_first(group);
        let end = first + self.group_blocks(group);
        self.used.free_in(first..end)
    }

    /// Group from which mke2fs seeks blocks of the journal: the freest in the middle of the device,
    /// behind the metadata of a flex group.
    fn journal_group(&self) -> u64 {
        let middle = (self.blocks - self.first_data_block) / 2;
        let mut first = middle.saturating_sub(self.first_data_block) / self.blocks_per_group;
        let start = if first > FLEX_GROUPS {
            first = first / FLEX_GROUPS * FLEX_GROUPS;
            first = (first..self.groups)
                .find(|group| self.free_blocks(*group) > 0)
                .unwrap_or(0);
            first
        } else {
            first.saturating_sub(1)
        };
        let mut best = start;
        for group in start + 1..=(first + 1).min(self.groups - 1) {
            if self.free_blocks(group) > self.free_blocks(best) {
                best = group;
            }
        }
        best
    }

    fn place_journal(&mut self, has_fast_commit: bool) -> Option<()> {
        let blocks = journal_blocks(self.blocks);
        if has_fast_commit {
            self.fast_commit_blocks = blocks / FAST_COMMIT_SHARE;
        }
        let mut from = self.group_first(self.journal_group());
        let mut left = blocks + self.fast_commit_blocks;
        let mut extents = 0;
        while left > 0 {
            let run = self
                .used
                .first_run(from..self.blocks)
                .or_else(|| self.used.first_run(self.first_data_block..self.blocks))?;
            let length = (run.end - run.start).min(left).min(EXTENT_BLOCKS_MAX);
            let run = run.start..run.start + length;
            from = run.end;
            left -= length;
            self.used.mark(run.clone());
            extents += 1;
            match self.journal.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => self.journal.push(run),
            }
        }
        if extents > INODE_EXTENTS {
            self.take_first(self.journal[0].start, 1)?;
        }
        Some(())
    }

    /// Blocks that mke2fs allocated, by group and offset in it.
    pub(super) fn used_by_mkfs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.used.ranges()
    }

    /// Whether a group's bitmap needs no block on the device: it holds at most copies of the
    /// superblock and descriptors (BLOCK_UNINIT).
    pub(super) fn has_computed_bitmap(&self, group: u64) -> bool {
        let backup = if has_backup(group) {
            1 + self.descriptor_blocks + self.reserved_descriptor_blocks
        } else {
            0
        };
        let used = self.group_blocks(group) - self.free_blocks(group);
        !group.is_multiple_of(FLEX_GROUPS) && group + 1 != self.groups && used == backup
    }

    pub(super) fn inode_table_blocks(&self) -> u64 {
        self.inodes_per_group.div_ceil(self.inodes_per_block)
    }

    /// Order of the largest chunk of free blocks that is kept track of.
    pub(super) fn chunk_order_max(&self) -> u32 {
        self.block_bytes.ilog2() + 1
    }

    pub(super) fn group_first(&self, group: u64) -> u64 {
        self.first_data_block + group * self.blocks_per_group
    }

    pub(super) fn group_of_block(&self, block: u64) -> u64 {
        (block - self.first_data_block) / self.blocks_per_group
    }

    pub(super) fn group_blocks(&self, group: u64) -> u64 {
        self.blocks_per_group
            .min(self.blocks - self.group_first(group))
    }

    pub(super) fn group_of_inode(&self, inode: u64) -> u64 {
        (inode - 1) / self.inodes_per_group
    }

    pub(super) fn superblock(&self) -> u64 {
        self.first_data_block
    }

    pub(super) fn descriptor_block(&self, group: u64) -> u64 {
        self.first_data_block + 1 + group / (self.block_bytes / DESCRIPTOR_BYTES)
    }

    pub(super) fn block_bitmap(&self, group: u64) -> u64 {
        self.places[group as usize].block_bitmap
    }

    pub(super) fn inode_bitmap(&self, group: u64) -> u64 {
        self.places[group as usize].inode_bitmap
    }

    /// Block of the inode table that holds an inode.
    pub(super) fn inode_block(&self, inode: u64) -> u64 {
        let table = self.places[self.group_of_inode(inode) as usize].inode_table;
        table + (inode - 1) % self.inodes_per_group / self.inodes_per_block
    }

    /// Kind of a block of fixed metadata. `None`: its content changes its kind.
    pub(super) fn kind(&self, block: u64) -> Option<MetadataKind> {
        if block == self.superblock() {
            return Some(MetadataKind::Superblock);
        }
        if block > self.first_data_block && block <= self.first_data_block + self.descriptor_blocks
        {
            return Some(MetadataKind::GroupDescriptors);
        }
        let (_, fixed) = self.fixed.range(..=block).next_back()?;
        (block < fixed.end).then_some(fixed.kind)
    }
}

/// Blocks of the journal that mke2fs makes in a file system of `blocks`.
fn journal_blocks(blocks: u64) -> u64 {
    match blocks >> 15 {
        0 => 1024,
        1..8 => 4096,
        8..16 => 8192,
        16..128 => 16384,
        128..256 => 32768,
        256..512 => 65536,
        512..1024 => 131_072,
        _ => 262_144,
    }
}

/// Whether a group holds a copy of the superblock and descriptors (sparse_super).
fn has_backup(group: u64) -> bool {
    let is_power = |base: u64| {
        let mut power = 1;
        while power < group {
            power *= base;
        }
        power == group
    };
    group <= 1 || is_power(3) || is_power(5) || is_power(7)
}

#[cfg(test)]
mod tests;
