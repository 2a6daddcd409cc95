//! From blocks of a file to blocks of the device: lookup, allocation, conversion.

use std::ops::Range;

use super::allocator::{BlockRun, DataRequest};
use super::extents::{ExtentTree, FileExtent, TreeChange};
use super::geometry::FLEX_GROUPS;
use super::{Conversion, Ext4};
use crate::block::{BioContent, BioFlags, BioOperation, FileId};
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileSystemError};

/// Blocks of the longest extent that one allocation makes.
const EXTENT_BLOCKS_MAX: u64 = 32767;

/// Bytes of unwritten space that are zeroed in place of a split (`extent_max_zeroout_kb`).
const ZEROED_BYTES_MAX: u64 = 32 << 10;

/// Purpose of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Blocks of data that is written in one transaction with them.
    Written,
    /// Blocks that are unwritten until the data is on the device.
    BeforeData,
    /// Exactly the blocks requested, unwritten (fallocate).
    Exact,
    /// Unwritten blocks of a request that is too long for one extent (fallocate).
    Window,
}

impl Ext4 {
    /// Block of the device near which a file's block goes.
    fn goal(&self, file: FileId, logical: u64) -> u64 {
        let inode = self.inode(file);
        let near = inode
            .extents
            .at_or_before(logical)
            .or_else(|| inode.extents.after(logical));
        match near {
            Some(extent) if logical >= extent.logical => {
                extent.physical + (logical - extent.logical)
            }
            Some(extent) => extent.physical.saturating_sub(extent.logical - logical),
            None => self.inode_goal(file),
        }
        .min(self.geometry.blocks - 1)
        .max(self.geometry.first_data_block)
    }

    /// First block for a file without blocks: files begin in the second group of a flex group.
    fn inode_goal(&self, file: FileId) -> u64 {
        let inode = self.inode(file);
        let mut group = self.geometry.group_of_inode(inode.number) / FLEX_GROUPS * FLEX_GROUPS;
        if inode.kind == FileKind::Regular && group + 1 < self.geometry.groups {
            group += 1;
        }
        self.geometry.group_first(group)
    }

    /// Runs `change` on a file's extents with an allocator of tree blocks, and journals what it did.
    pub(super) fn change_extents<T>(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        edit: impl FnOnce(
            &mut ExtentTree,
            &mut TreeChange,
            &mut dyn FnMut() -> Option<u64>,
        ) -> Option<T>,
    ) -> Result<T, FileSystemError> {
        let goal = self.inode_goal(file);
        let empty = ExtentTree::new(self.geometry.block_bytes);
        let mut tree = std::mem::replace(&mut self.inode_mut(file).extents, empty);
        let mut change = TreeChange::default();
        let mut allocated: Vec<BlockRun> = Vec::new();
        let allocator = &mut self.allocator;
        let result = edit(&mut tree, &mut change, &mut || {
            let run = allocator.allocate_metadata(goal)?;
            allocated.push(run);
            Some(run.physical)
        });
        self.inode_mut(file).extents = tree;
        for run in allocated {
            let group = self.geometry.group_of_block(run.physical);
            self.dirty_group(context, group, true);
        }
        self.apply_tree_change(context, &change);
        self.dirty_inode(context, file);
        result.ok_or_else(|| FileSystemError::Unsupported {
            file_system: "ext4",
            call: "a tree of extents of more than two levels".to_owned(),
            remedy: "write larger pieces, or fewer files",
        })
    }

    /// Allocates blocks for a hole at `logical`, at most `length`; returns the extent that is there.
    pub(super) fn allocate(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        logical: u64,
        length: u64,
        purpose: Purpose,
    ) -> Result<FileExtent, FileSystemError> {
        let goal = self.goal(file, logical);
        let inode = self.inode(file);
        let right = inode.extents.after(logical);
        let room = right.map_or(u64::MAX, |right| right.logical - logical);
        let request = DataRequest {
            logical,
            length: length.min(room).min(EXTENT_BLOCKS_MAX),
            goal,
            left: inode.extents.at_or_before(logical),
            right,
            file_bytes: inode.size,
            is_open_for_writing: inode.writers > 0,
            has_no_preallocation: purpose == Purpose::Exact,
        };
        let reserves = &mut self.inodes.get_mut(&file).expect("it exists").reserves;
        let run = self
            .allocator
            .allocate_data(&request, reserves)
            .ok_or_else(|| self.no_space())?;
        let group = self.geometry.group_of_block(run.physical);
        self.dirty_group(context, group, true);
        let is_unwritten = purpose != Purpose::Written;
        let extent = FileExtent {
            logical,
            physical: run.physical,
            length: run.length,
            is_unwritten,
        };
        // What waits for its data is merged only when it is written.
        let may_merge = purpose != Purpose::BeforeData;
        self.change_extents(context, file, |tree, change, allocate| {
            tree.insert(extent, may_merge, change, &mut || allocate())
        })?;
        self.note_data_change(context, file);
        Ok(extent)
    }

    /// Splits a file's extents at the ends of a range.
    pub(super) fn split_extents(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        start: u64,
        end: u64,
    ) -> Result<(), FileSystemError> {
        let is_inside = |logical: u64| {
            let extent = self.inode(file).extents.find(logical);
            extent.is_some_and(|extent| extent.logical < logical)
        };
        for edge in [start, end] {
            if is_inside(edge) {
                self.change_extents(context, file, |tree, change, allocate| {
                    tree.split_at(edge, change, &mut || allocate())
                })?;
                return self.split_extents(context, file, start, end);
            }
        }
        Ok(())
    }

    /// Marks a range of blocks as written, or as unwritten.
    pub(super) fn set_unwritten(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        start: u64,
        end: u64,
        is_unwritten: bool,
    ) -> Result<(), FileSystemError> {
        self.split_extents(context, file, start, end)?;
        self.change_extents(context, file, |tree, change, _| {
            tree.set_unwritten(start, end, is_unwritten, change);
            Some(())
        })?;
        self.note_data_change(context, file);
        Ok(())
    }

    /// Marks a range of an unwritten extent as written. What little is left of the extent before or
    /// behind it is zeroed, in place of a split.
    pub(super) fn convert_around(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        start: u64,
        end: u64,
    ) -> Result<(), FileSystemError> {
        let inode = self.inode(file);
        let extent = inode
            .extents
            .find(start)
            .expect("the range is in an extent");
        let left = start
            .checked_sub(1)
            .and_then(|left| inode.extents.find(left));
        let extends_left = left.is_some_and(|left| {
            start == extent.logical
                && !left.is_unwritten
                && left.physical + left.length == extent.physical
        });
        let block_bytes = self.geometry.block_bytes;
        let file_end = inode.disk_size.div_ceil(block_bytes).max(end);
        let blocks_max = ZEROED_BYTES_MAX / block_bytes;
        let (mut first, mut last) = (start, end);
        if !extends_left && end < extent.end() && extent.end() <= file_end {
            if extent.end() - start <= blocks_max {
                self.zero_blocks(context, file, end..extent.end());
                last = extent.end();
            }
            if last - extent.logical < blocks_max && start > extent.logical {
                self.zero_blocks(context, file, extent.logical..start);
                first = extent.logical;
            }
        }
        self.set_unwritten(context, file, first, last, false)
    }

    /// Writes zeroes to blocks of a file, and waits.
    fn zero_blocks(&self, context: &mut CallContext<'_>, file: FileId, blocks: Range<u64>) {
        let extent = self
            .inode(file)
            .extents
            .find(blocks.start)
            .expect("the blocks exist");
        let content = BioContent::Data {
            file,
            offset: blocks.start * self.geometry.block_bytes,
        };
        let run = BlockRun {
            physical: extent.physical_at(blocks.start),
            length: blocks.end - blocks.start,
        };
        let flags = BioFlags::default();
        context
            .effects
            .submit(self.bio(BioOperation::WriteZeroes, content, run, flags));
        context.effects.wait();
    }

    /// Removes a range of blocks and frees them.
    pub(super) fn remove_blocks(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        start: u64,
        end: u64,
    ) -> Result<(), FileSystemError> {
        let touches = |extent: &&FileExtent| extent.logical < end && extent.end() > start;
        if !self
            .inode(file)
            .extents
            .iter()
            .any(|extent| touches(&extent))
        {
            return Ok(());
        }
        self.split_extents(context, file, end, end)?;
        let removed = self.change_extents(context, file, |tree, change, _| {
            Some(tree.remove(start, end, change))
        })?;
        let is_journalled = self.is_data_journalled();
        for extent in removed {
            if is_journalled {
                for block in extent.physical..extent.physical + extent.length {
                    self.forget(context, block, false);
                }
            }
            let run = BlockRun {
                physical: extent.physical,
                length: extent.length,
            };
            self.free_blocks(context, run, false);
        }
        Ok(())
    }

    /// Marks the blocks written whose data is on the device: what the worker does after I/O.
    pub(super) fn convert_written(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        for Conversion { file, start, end } in std::mem::take(&mut self.conversions) {
            let task = context.effects.switch(crate::effect::Task::Worker);
            if self.inodes.contains_key(&file) {
                self.set_unwritten(context, file, start, end, false)?;
            }
            context.effects.switch(task);
        }
        Ok(())
    }
}
