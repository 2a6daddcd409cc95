//! Space of files: fallocate, punch, zero, truncate.

use super::Ext4;
use super::mapping::Purpose;
use crate::block::FileId;
use crate::effect::CallContext;
use crate::file_system::FileSystemError;
use crate::operation::{ByteRange, FallocateMode};
use crate::page_cache::PAGE_BYTES;
use crate::version::KernelVersion;

/// Blocks of the largest request that is allocated as it is.
const EXACT_BLOCKS_MAX: u64 = 32767;

impl Ext4 {
    pub(super) fn change_space(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        mode: FallocateMode,
        range: ByteRange,
        is_sync: bool,
    ) -> Result<(), FileSystemError> {
        match mode {
            FallocateMode::Extend | FallocateMode::KeepSize => {
                self.touch(context, file);
                let block_bytes = self.geometry.block_bytes;
                let start = range.offset / block_bytes;
                let end = range.end().div_ceil(block_bytes);
                let new_size = (mode == FallocateMode::Extend).then_some(range.end());
                self.allocate_range(context, file, start, end, new_size)?;
                if is_sync && self.journal.is_some() {
                    let id = self.inode(file).sync_id;
                    self.sync_transaction(context, id)?;
                }
                Ok(())
            }
            FallocateMode::PunchHole => self.punch(context, file, range),
            FallocateMode::ZeroRange => self.zero(context, file, range, is_sync),
        }
    }

    /// Allocates the holes of a range as unwritten.
    fn allocate_range(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        start: u64,
        end: u64,
        new_size: Option<u64>,
    ) -> Result<(), FileSystemError> {
        let purpose = if end - start <= EXACT_BLOCKS_MAX {
            Purpose::Exact
        } else {
            Purpose::Window
        };
        let tick = self.host.tick_ns(context.now_ns);
        let block_bytes = self.geometry.block_bytes;
        let mut block = start;
        while block < end {
            let next = match self.inode(file).extents.find(block) {
                Some(extent) => extent.end().min(end),
                None => {
                    let length = self.delayed_run(file, block, end);
                    self.allocate(context, file, block, length, purpose)?.end()
                }
            };
            block = next;
            let old_size = self.inode(file).size;
            let inode = self.inode_mut(file);
            inode.changed_ns = Some(tick);
            if let Some(size) = new_size.map(|size| size.min(block * block_bytes)) {
                if size > inode.size {
                    inode.size = size;
                    inode.modified_ns = Some(tick);
                }
                inode.disk_size = inode.disk_size.max(size);
                if size > old_size && self.host.version >= KernelVersion::V6_12 {
                    self.zero_edge(context, file, old_size);
                }
            }
            self.dirty_inode(context, file);
            self.note_data_change(context, file);
        }
        Ok(())
    }

    /// Blocks from `block` on that are alike: all delayed, or none.
    fn delayed_run(&self, file: FileId, block: u64, end: u64) -> u64 {
        let cache = &self.inode(file).cache;
        let is_delayed = cache.is_delayed(block);
        let differs = |next: &u64| cache.is_delayed(*next) != is_delayed;
        (block..end).find(differs).unwrap_or(end) - block
    }

    fn punch(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let is_old = self.host.version < KernelVersion::V6_12;
        if is_old && self.inode(file).cache.has_dirty() {
            self.write_range(context, file, range)?;
            context.effects.wait();
        }
        if !is_old {
            self.touch(context, file);
        }
        let size = self.inode(file).size;
        if range.offset >= size {
            return Ok(());
        }
        if is_old {
            self.touch(context, file);
        }
        let end = range
            .end()
            .min(size.next_multiple_of(PAGE_BYTES).max(range.offset));
        let end = if range.end() > size { end } else { range.end() };
        let hole = ByteRange {
            offset: range.offset,
            length: end - range.offset,
        };
        self.settle_size(context, file, hole);
        self.drop_range(context, file, hole)?;
        self.zero_edges(context, file, hole);
        let block_bytes = self.geometry.block_bytes;
        let (start, stop) = (hole.offset.div_ceil(block_bytes), end / block_bytes);
        if stop > start {
            self.discard_reserves(file);
            self.remove_blocks(context, file, start, stop)?;
        }
        let tick = self.host.tick_ns(context.now_ns);
        let inode = self.inode_mut(file);
        inode.modified_ns = Some(tick);
        inode.changed_ns = Some(tick);
        self.dirty_inode(context, file);
        self.note_data_change(context, file);
        self.end_handle(context, self.options.mount.is_sync)
    }

    fn zero(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        is_sync: bool,
    ) -> Result<(), FileSystemError> {
        let is_old = self.host.version < KernelVersion::V6_12;
        if is_old && self.is_data_journalled() {
            self.commit(context)?;
        }
        self.touch(context, file);
        let block_bytes = self.geometry.block_bytes;
        let end = range.end();
        let inode = self.inode(file);
        let new_size = (end > inode.size || end > inode.disk_size).then_some(end);
        let has_edges =
            !range.offset.is_multiple_of(block_bytes) || !end.is_multiple_of(block_bytes);
        if has_edges {
            let (first, last) = (range.offset / block_bytes, end.div_ceil(block_bytes));
            self.allocate_range(context, file, first, last, new_size)?;
        }
        self.settle_size(context, file, range);
        self.drop_range(context, file, range)?;
        let (start, stop) = (range.offset.div_ceil(block_bytes), end / block_bytes);
        if stop > start {
            self.make_unwritten(context, file, start, stop)?;
            self.allocate_range(context, file, start, stop, new_size)?;
        }
        if has_edges {
            self.zero_edges(context, file, range);
            let inode = self.inode_mut(file);
            if let Some(size) = new_size {
                inode.size = inode.size.max(size);
                inode.disk_size = inode.disk_size.max(size);
            }
            self.dirty_inode(context, file);
            self.note_data_change(context, file);
            return self.end_handle(context, is_sync);
        }
        Ok(())
    }

    /// Makes the written blocks of a range unwritten.
    fn make_unwritten(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        start: u64,
        end: u64,
    ) -> Result<(), FileSystemError> {
        let written: Vec<_> = self
            .inode(file)
            .extents
            .iter()
            .filter(|extent| !extent.is_unwritten && extent.logical < end && extent.end() > start)
            .map(|extent| extent.logical.max(start)..extent.end().min(end))
            .collect();
        for part in written {
            self.set_unwritten(context, file, part.start, part.end, true)?;
        }
        Ok(())
    }

    /// Moves the size on the device up to the file's, where a range that reaches the end loses
    /// pages that would have done it.
    fn settle_size(&mut self, context: &mut CallContext<'_>, file: FileId, range: ByteRange) {
        let inode = self.inode_mut(file);
        if range.offset <= inode.size && range.end() >= inode.size && inode.disk_size < inode.size {
            inode.disk_size = inode.size;
            self.dirty_inode(context, file);
        }
    }

    /// Drops the pages of the whole blocks of a range. Data in the journal goes home first.
    fn drop_range(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        if self.is_data_journalled() && self.host.version >= KernelVersion::V6_12 {
            self.write_range(context, file, range)?;
            context.effects.wait();
        }
        let block_bytes = self.geometry.block_bytes;
        let start = range.offset.next_multiple_of(block_bytes);
        let end = range.end() / block_bytes * block_bytes;
        if end > start {
            self.drop_blocks(
                file,
                ByteRange {
                    offset: start,
                    length: end - start,
                },
            );
        }
        Ok(())
    }

    /// Removes pages of whole blocks, with what was dirty or delayed.
    fn drop_blocks(&mut self, file: FileId, range: ByteRange) {
        let block_bytes = self.geometry.block_bytes;
        let blocks = range.offset / block_bytes..range.end().div_ceil(block_bytes);
        let limit = self.inode(file).cache.end_block();
        let inode = self.inode_mut(file);
        let delayed = (blocks.start..blocks.end.min(limit))
            .filter(|block| inode.cache.is_delayed(*block))
            .count() as u64;
        inode.delayed_blocks -= delayed;
        inode.cache.truncate(range);
    }

    /// Zeroes the parts of a range that are no whole blocks.
    fn zero_edges(&mut self, context: &mut CallContext<'_>, file: FileId, range: ByteRange) {
        let block_bytes = self.geometry.block_bytes;
        self.zero_edge(context, file, range.offset);
        let (first, last) = (range.offset / block_bytes, range.end() / block_bytes);
        if last != first || range.offset.is_multiple_of(block_bytes) {
            self.zero_edge(context, file, range.end());
        }
    }

    pub(super) fn discard_reserves(&mut self, file: FileId) {
        let mut reserves = std::mem::take(&mut self.inode_mut(file).reserves);
        self.allocator.discard_preallocations(&mut reserves);
    }

    pub(super) fn set_size(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        size: u64,
    ) -> Result<(), FileSystemError> {
        let old_size = self.inode(file).size;
        let tick = self.host.tick_ns(context.now_ns);
        if size < old_size {
            self.add_orphan(context, file);
        }
        if size > old_size && self.host.version >= KernelVersion::V6_12 {
            self.zero_edge(context, file, old_size);
        }
        let inode = self.inode_mut(file);
        inode.modified_ns = Some(tick);
        inode.changed_ns = Some(tick);
        inode.is_listed_changed = true;
        inode.is_listed_data_changed = true;
        inode.has_lazy_time = false;
        if size != old_size {
            inode.disk_size = size;
            inode.size = size;
            self.dirty_inode(context, file);
        }
        if size <= old_size {
            self.shrink(context, file)?;
        }
        self.list_dirty(context, file);
        self.dirty_inode(context, file);
        Ok(())
    }

    /// Frees what lies beyond the end of a file.
    fn shrink(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        let size = self.inode(file).size;
        let block_bytes = self.geometry.block_bytes;
        let end = size.next_multiple_of(block_bytes);
        let pages = self.inode(file).cache.end_block() * block_bytes;
        if pages > end {
            self.drop_blocks(
                file,
                ByteRange {
                    offset: end,
                    length: pages - end,
                },
            );
        }
        if size == 0 {
            self.inode_mut(file).must_allocate_on_close = true;
        }
        self.zero_edge(context, file, size);
        self.add_orphan(context, file);
        self.discard_reserves(file);
        self.dirty_inode(context, file);
        self.remove_blocks(context, file, end / block_bytes, u64::from(u32::MAX))?;
        if self.inode(file).links > 0 {
            self.remove_orphan(context, file);
        }
        self.dirty_inode(context, file);
        self.end_handle(context, self.options.mount.is_sync)
    }

    /// Whether the running transaction has data of a file.
    pub(super) fn has_journalled_data(&self, file: FileId) -> bool {
        let running = self.journal.as_ref().and_then(|journal| journal.running());
        running.is_some_and(|transaction| transaction.data.contains_key(&file))
    }
}
