//! Layout of a file system as tools show it.

use std::ops::Range;

use super::geometry::Geometry;
use super::options::Ext4MakeOptions;
use crate::file_system::FileSystemError;

/// Places of the metadata of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupPlaces {
    /// Block with the bitmap of the group's blocks.
    pub block_bitmap: u64,
    /// Block with the bitmap of the group's inodes.
    pub inode_bitmap: u64,
    /// First block of the group's inode table.
    pub inode_table: u64,
}

/// Layout that mke2fs makes, as `dumpe2fs` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ext4Layout {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Blocks of the file system.
    pub blocks: u64,
    /// Blocks that nothing uses.
    pub free_blocks: u64,
    /// Inodes of each group.
    pub inodes_per_group: u64,
    /// Places of each group's metadata.
    pub groups: Vec<GroupPlaces>,
    /// Runs of blocks of the journal; none without a journal.
    pub journal: Vec<Range<u64>>,
}

impl Ext4Layout {
    /// Returns the layout on a device of `bytes`.
    ///
    /// # Errors
    /// If no layout of that size is modelled.
    pub fn new(bytes: u64, options: &Ext4MakeOptions) -> Result<Self, FileSystemError> {
        let geometry = Geometry::new(bytes, options)?;
        let groups = 0..geometry.groups;
        Ok(Self {
            block_bytes: geometry.block_bytes,
            blocks: geometry.blocks,
            free_blocks: groups.map(|group| geometry.free_blocks(group)).sum(),
            inodes_per_group: geometry.inodes_per_group,
            groups: geometry.places.clone(),
            journal: geometry.journal,
        })
    }
}
