//! Places of ext4's metadata on the device, as mke2fs 1.47 lays them out.

use std::ops::Range;

use crate::block::MetadataKind;

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
    pub(super) journal: Range<u64>,
    descriptor_blocks: u64,
    reserved_descriptor_blocks: u64,
    /// First block of the bitmaps of each flex group.
    flex_firsts: Vec<u64>,
    /// Blocks that mke2fs allocated.
    used: Vec<Range<u64>>,
}

impl Geometry {
    pub(super) fn new(bytes: u64, block_bytes: u64, has_journal: bool) -> Self {
        let blocks = bytes / block_bytes;
        let first_data_block = u64::from(block_bytes == 1024);
        let blocks_per_group = 8 * block_bytes;
        let groups = (blocks - first_data_block).div_ceil(blocks_per_group);
        let bytes_per_inode = if bytes < 512 << 20 { 4096 } else { 16384 };
        let inodes_per_block = block_bytes / INODE_BYTES;
        let inodes_per_group = (bytes / bytes_per_inode)
            .div_ceil(groups)
            .next_multiple_of(inodes_per_block.max(8));
        let per_block = block_bytes / DESCRIPTOR_BYTES;
        let descriptor_blocks = groups.div_ceil(per_block);
        let grown = (blocks * 1024)
            .min(u64::from(u32::MAX))
            .div_ceil(blocks_per_group);
        let reserved_descriptor_blocks =
            (grown.div_ceil(per_block) - descriptor_blocks).min(block_bytes / 4);
        let mut geometry = Self {
            block_bytes,
            blocks,
            first_data_block,
            blocks_per_group,
            groups,
            inodes_per_group,
            inodes_per_block,
            root_block: 0,
            journal: 0..0,
            descriptor_blocks,
            reserved_descriptor_blocks,
            flex_firsts: Vec::new(),
            used: Vec::new(),
        };
        geometry.place(has_journal);
        geometry
    }

    fn place(&mut self, has_journal: bool) {
        for group in 0..self.groups {
            let first = self.group_first(group);
            let mut end = first;
            if has_backup(group) {
                end += 1 + self.descriptor_blocks + self.reserved_descriptor_blocks;
            }
            if group.is_multiple_of(FLEX_GROUPS) {
                self.flex_firsts.push(end);
                let members = FLEX_GROUPS.min(self.groups - group);
                end += members * (2 + self.inode_table_blocks());
            }
            if group == 0 {
                self.root_block = end;
                // Root directory, lost+found, and the block of the resize inode.
                end += 1 + (LOST_AND_FOUND_BYTES / self.block_bytes).min(DIRECT_BLOCKS) + 1;
            }
            if end > first {
                self.used.push(first..end);
            }
        }
        if has_journal {
            let blocks = match self.blocks {
                0..32768 => 1024,
                32768..262_144 => 4096,
                262_144..524_288 => 8192,
                _ => 16384,
            };
            // mke2fs seeks from the middle of the groups, or behind a flex group's metadata.
            let group = if self.groups <= FLEX_GROUPS {
                self.groups / 2
            } else {
                FLEX_GROUPS + 1
            };
            let first = self.group_first(group);
            self.journal = first..first + blocks;
            self.used.push(self.journal.clone());
        }
    }

    /// Blocks that mke2fs allocated, by group and offset in it.
    pub(super) fn used_by_mkfs(&self) -> &[Range<u64>] {
        &self.used
    }

    /// Whether a group's bitmap needs no block on the device: it holds at most copies of the
    /// superblock and descriptors (BLOCK_UNINIT).
    pub(super) fn has_computed_bitmap(&self, group: u64) -> bool {
        let range = self.group_first(group)..self.group_first(group + 1);
        let overlaps_journal = self.journal.start < range.end && range.start < self.journal.end;
        !group.is_multiple_of(FLEX_GROUPS) && group + 1 != self.groups && !overlaps_journal
    }

    pub(super) fn inode_table_blocks(&self) -> u64 {
        self.inodes_per_group / self.inodes_per_block
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

    fn flex_first(&self, group: u64) -> u64 {
        self.flex_firsts[(group / FLEX_GROUPS) as usize]
    }

    fn flex_members(&self, group: u64) -> u64 {
        FLEX_GROUPS.min(self.groups - group / FLEX_GROUPS * FLEX_GROUPS)
    }

    pub(super) fn block_bitmap(&self, group: u64) -> u64 {
        self.flex_first(group) + group % FLEX_GROUPS
    }

    pub(super) fn inode_bitmap(&self, group: u64) -> u64 {
        self.flex_first(group) + self.flex_members(group) + group % FLEX_GROUPS
    }

    /// Block of the inode table that holds an inode.
    pub(super) fn inode_block(&self, inode: u64) -> u64 {
        let group = self.group_of_inode(inode);
        let table = self.flex_first(group)
            + 2 * self.flex_members(group)
            + group % FLEX_GROUPS * self.inode_table_blocks();
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
        for (flex, first) in self.flex_firsts.iter().enumerate() {
            let members = self.flex_members(flex as u64 * FLEX_GROUPS);
            let offset = block.wrapping_sub(*first);
            if offset < members {
                return Some(MetadataKind::BlockBitmap);
            } else if offset < 2 * members {
                return Some(MetadataKind::InodeBitmap);
            } else if offset < members * (2 + self.inode_table_blocks()) {
                return Some(MetadataKind::InodeTable);
            }
        }
        None
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
mod tests {
    use super::Geometry;

    #[test]
    fn mke2fs_lays_out_512_mib_as_on_the_device() {
        let large = Geometry::new(512 << 20, 4096, true);
        assert_eq!(large.used_by_mkfs()[0], 0..2127);
        assert_eq!(large.journal, 65536..69632);
        assert_eq!((large.groups, large.inodes_per_group), (4, 8192));
        let small = Geometry::new(512 << 20, 1024, true);
        assert_eq!(small.used_by_mkfs()[0], 1..2356);
        assert_eq!(small.journal, 139_265..155_649);
    }
}
