//! Buffered writes: pages become dirty, blocks are reserved or allocated.

use std::ops::Range;

use super::allocator::BlockRun;
use super::mapping::Purpose;
use super::{DataMode, Ext4};
use crate::block::{BioContent, BioFlags, BioOperation, FileId};
use crate::effect::CallContext;
use crate::file_system::FileSystemError;
use crate::operation::ByteRange;
use crate::page_cache::PAGE_BYTES;
use crate::version::KernelVersion;

impl Ext4 {
    pub(super) fn write_buffered(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        if range.length == 0 {
            return Ok(());
        }
        self.touch(context, file);
        let mut offset = range.offset;
        while offset < range.end() {
            let cache = &mut self.inode_mut(file).cache;
            let folio = cache.folio_for_write(offset, range.end() - offset);
            let end = range.end().min(folio.end_page() * PAGE_BYTES);
            self.write_folio(
                context,
                file,
                ByteRange {
                    offset,
                    length: end - offset,
                },
            )?;
            offset = end;
        }
        self.list_dirty(context, file);
        Ok(())
    }

    fn write_folio(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let block_bytes = self.geometry.block_bytes;
        let blocks = range.offset / block_bytes..range.end().div_ceil(block_bytes);
        for (edge, is_whole) in [
            (blocks.start, range.offset.is_multiple_of(block_bytes)),
            (blocks.end - 1, range.end().is_multiple_of(block_bytes)),
        ] {
            if !is_whole {
                self.read_edge(context, file, edge);
            }
        }
        for block in blocks.clone() {
            self.prepare_block(context, file, block)?;
        }
        if self.is_data_journalled() {
            self.journal_data(context, file, blocks.clone());
        } else {
            self.inode_mut(file).cache.set_dirty(blocks.clone());
        }
        self.grow(context, file, range, blocks.end - 1);
        Ok(())
    }

    /// Reads a block that is written in part, where it has data on the device.
    pub(super) fn read_edge(&mut self, context: &mut CallContext<'_>, file: FileId, block: u64) {
        let inode = self.inode(file);
        if inode.cache.is_up_to_date(block) {
            return;
        }
        let written = inode
            .extents
            .find(block)
            .filter(|extent| !extent.is_unwritten);
        let is_inside = block * self.geometry.block_bytes < inode.size;
        if let Some(extent) = written.filter(|_| is_inside && !inode.cache.is_delayed(block)) {
            let content = BioContent::Data {
                file,
                offset: block * self.geometry.block_bytes,
            };
            let run = BlockRun {
                physical: extent.physical_at(block),
                length: 1,
            };
            let bio = self.bio(BioOperation::Read, content, run, BioFlags::default());
            context.effects.submit(bio);
            context.effects.wait();
        }
        self.inode_mut(file).cache.set_up_to_date(block..block + 1);
    }

    /// Reserves a block that has no place, or allocates it where there is no delayed allocation.
    fn prepare_block(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        block: u64,
    ) -> Result<(), FileSystemError> {
        let inode = self.inode(file);
        let extent = inode.extents.find(block);
        if self.options.mount.has_delayed_allocation {
            if extent.is_none() && !inode.cache.is_delayed(block) {
                let inode = self.inode_mut(file);
                inode.cache.set_delayed(block..block + 1);
                inode.delayed_blocks += 1;
            }
            return Ok(());
        }
        match extent {
            None => {
                self.allocate(context, file, block, 1, Purpose::Written)?;
            }
            Some(extent) if extent.is_unwritten => {
                self.convert_around(context, file, block, block + 1)?;
            }
            Some(_) => return Ok(()),
        }
        self.order_data(context, file, block..block + 1);
        Ok(())
    }

    /// Has the running transaction write the dirty pages of blocks first (data=ordered).
    pub(super) fn order_data(
        &mut self,
        context: &CallContext<'_>,
        file: FileId,
        blocks: Range<u64>,
    ) {
        if self.options.mount.data == DataMode::Ordered
            && let Some(journal) = &mut self.journal
        {
            journal.join(context.now_ns).order(file, blocks);
        }
    }

    /// Puts data into the running transaction (data=journal).
    pub(super) fn journal_data(
        &mut self,
        context: &CallContext<'_>,
        file: FileId,
        blocks: Range<u64>,
    ) {
        for block in blocks.clone() {
            let Some(extent) = self.inode(file).extents.find(block) else {
                continue;
            };
            self.dirty_block(context, extent.physical_at(block));
            if let Some(journal) = &mut self.journal {
                journal
                    .join(context.now_ns)
                    .data
                    .entry(file)
                    .or_default()
                    .insert(block);
            }
        }
        let cache = &mut self.inode_mut(file).cache;
        cache.clear_dirty(blocks.clone());
        cache.set_up_to_date(blocks);
        self.note_data_change(context, file);
    }

    /// Moves the end of the file, where a write went beyond it.
    fn grow(&mut self, context: &mut CallContext<'_>, file: FileId, range: ByteRange, last: u64) {
        let old_size = self.inode(file).size;
        let has_gap = range.offset > old_size;
        if range.end() > old_size {
            let is_placed = self.is_placed(file, last);
            let inode = self.inode_mut(file);
            inode.size = range.end();
            // A block without a place moves the size on the device at writeback.
            if is_placed {
                inode.disk_size = inode.disk_size.max(range.end());
            }
            let is_old = self.host.version < KernelVersion::V6_12;
            let inode = self.inode_mut(file);
            inode.is_listed_changed |= is_old;
            inode.is_listed_data_changed |= is_old;
            inode.has_lazy_time &= !is_old;
            if is_placed || is_old || has_gap {
                self.dirty_inode(context, file);
            }
        }
        if has_gap && self.host.version >= KernelVersion::V6_12 {
            self.zero_edge(context, file, old_size);
        }
    }

    /// Whether a block has written space on the device.
    fn is_placed(&self, file: FileId, block: u64) -> bool {
        let inode = self.inode(file);
        !self.options.mount.has_delayed_allocation
            || inode
                .extents
                .find(block)
                .is_some_and(|extent| !extent.is_unwritten)
                && !inode.cache.is_delayed(block)
    }

    /// Zeroes a block from `offset` to its end: the block becomes dirty, if it exists and is not
    /// only reserved as zeroes.
    pub(super) fn zero_edge(&mut self, context: &mut CallContext<'_>, file: FileId, offset: u64) {
        let block_bytes = self.geometry.block_bytes;
        if offset.is_multiple_of(block_bytes) {
            return;
        }
        let block = offset / block_bytes;
        let inode = self.inode(file);
        let is_delayed = inode.cache.is_delayed(block);
        let is_mapped = inode
            .extents
            .find(block)
            .is_some_and(|extent| !extent.is_unwritten || inode.cache.is_dirty(block));
        if !is_delayed && !is_mapped {
            return;
        }
        if !self.inode(file).cache.is_cached(offset / PAGE_BYTES) {
            self.inode_mut(file).cache.folio_for_write(offset, 1);
        }
        self.read_edge(context, file, block);
        if self.is_data_journalled() {
            self.journal_data(context, file, block..block + 1);
        } else {
            self.inode_mut(file).cache.set_dirty(block..block + 1);
            if !is_delayed {
                self.order_data(context, file, block..block + 1);
            }
            self.list_dirty(context, file);
        }
    }
}
