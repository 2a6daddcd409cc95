//! Tree of a file whose extents do not fit into the inode: a root there, and one leaf.

use crate::block::{FileId, MetadataKind};
use crate::file_system::FileSystemError;
use crate::xfs::Xfs;
use crate::xfs::extent_list::XfsExtent;
use crate::xfs::free_space::BusyExtent;
use crate::xfs::geometry::FreeExtent;
use crate::xfs::inode::{EXTENT_RECORD_BYTES, INLINE_EXTENTS_MAX};
use crate::xfs::inode_space::block_of;

/// Bytes of the header of a tree's block.
const TREE_HEADER_BYTES: u64 = 72;
/// Records of a leaf. Files in more extents are not modelled.
const LEAF_RECORDS_MAX: u64 = 251;
/// Bytes of the root in the log: its header, and a key and a pointer.
pub(super) const ROOT_BYTES: u64 = TREE_HEADER_BYTES + 16;

/// Leaf of a file's extents.
#[derive(Clone, Debug)]
pub(super) struct XfsExtentTree {
    block: u64,
    records: Vec<XfsExtent>,
}

impl XfsExtentTree {
    /// Block of the device that holds the leaf.
    #[cfg(test)]
    pub(super) fn block(&self) -> u64 {
        self.block
    }
}

impl Xfs {
    /// Brings the tree of a file up to its extents: makes it, logs what changed, or frees it.
    pub(super) fn log_extent_tree(&mut self, file: FileId) -> Result<(), FileSystemError> {
        let extents = &self.inode(file).extents;
        let count = extents.allocated_count();
        if count > LEAF_RECORDS_MAX {
            let call = format!("a file in {count} extents");
            return Err(Self::unsupported(
                call,
                "write it in larger pieces, or preallocate it",
            ));
        }
        let records: Vec<XfsExtent> = extents
            .as_slice()
            .iter()
            .filter(|extent| !extent.is_delayed())
            .copied()
            .collect();
        match (self.inode(file).tree.clone(), count > INLINE_EXTENTS_MAX) {
            (None, false) => {}
            (Some(tree), false) => self.free_extent_tree(file, &tree)?,
            (None, true) => {
                let block = self.allocate_tree_block(file)?;
                self.log_leaf(
                    file,
                    XfsExtentTree {
                        block,
                        records: Vec::new(),
                    },
                    records,
                );
            }
            (Some(tree), true) => self.log_leaf(file, tree, records),
        }
        Ok(())
    }

    fn allocate_tree_block(&mut self, file: FileId) -> Result<u64, FileSystemError> {
        let geometry = self.geometry;
        let number = self.inode(file).number;
        let target = number.group * geometry.group_blocks + block_of(number.index);
        let (group, extent) = self.find_space(target, 1, false)?;
        self.groups[group as usize]
            .space
            .allocate(&geometry, &mut self.log, extent)?;
        Ok(group * geometry.group_blocks + extent.first)
    }

    fn free_extent_tree(
        &mut self,
        file: FileId,
        tree: &XfsExtentTree,
    ) -> Result<(), FileSystemError> {
        let geometry = self.geometry;
        self.inode_mut(file).tree = None;
        self.log
            .cancel_buffer(geometry.block(tree.block, MetadataKind::ExtentTree));
        let first = tree.block % geometry.group_blocks;
        let extent = FreeExtent { first, length: 1 };
        let group = (tree.block / geometry.group_blocks) as usize;
        let freed = BusyExtent {
            extent,
            held_data: true,
        };
        Ok(self.groups[group]
            .space
            .free(&geometry, &mut self.log, freed)?)
    }

    /// Logs the records of the leaf that differ, and its header where their number does.
    fn log_leaf(&mut self, file: FileId, mut tree: XfsExtentTree, records: Vec<XfsExtent>) {
        let buffer = self.geometry.block(tree.block, MetadataKind::ExtentTree);
        for (index, record) in records.iter().enumerate() {
            if tree.records.get(index) != Some(record) {
                let start = TREE_HEADER_BYTES + index as u64 * EXTENT_RECORD_BYTES;
                self.log
                    .add_buffer(buffer, start..start + EXTENT_RECORD_BYTES);
            }
        }
        if tree.records.len() != records.len() {
            self.log.add_buffer(buffer, 0..TREE_HEADER_BYTES);
        }
        tree.records = records;
        self.inode_mut(file).tree = Some(tree);
    }
}
