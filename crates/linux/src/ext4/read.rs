//! Buffered reads, prefetch and the dropping of pages.

use std::ops::Range;

use super::Ext4;
use super::allocator::BlockRun;
use super::writeback::Writeback;
use crate::block::{BioContent, BioFlags, BioOperation, FileId};
use crate::effect::CallContext;
use crate::file_system::FileSystemError;
use crate::operation::ByteRange;
use crate::page_cache::{PAGE_BYTES, PageCache, pages_of};
use crate::read_ahead::{ReadAhead, ReadWindow};

/// Age at which a read renews the time of access even if the file did not change (relatime).
const ACCESS_TIME_AGE_NS: u64 = 24 * 3600 * 1_000_000_000;

impl Ext4 {
    pub(super) fn read_buffered(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &mut ReadAhead,
    ) {
        let size = self.inode(file).size;
        self.read_windows(context, file, |cache, read| {
            read_ahead.read(cache, range, size, &mut |cache, window| read(cache, window));
        });
        context.effects.wait();
        self.touch_access(context, file);
    }

    pub(super) fn read_advised(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &ReadAhead,
    ) {
        let size = self.inode(file).size;
        self.read_windows(context, file, |cache, read| {
            read_ahead.read_advised(cache, range, size, &mut |cache, window| read(cache, window));
        });
    }

    /// Collects the windows that a read asks for, and submits their blocks that have data.
    fn read_windows(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        run: impl FnOnce(&mut PageCache, &mut dyn FnMut(&mut PageCache, ReadWindow)),
    ) {
        let mut windows = Vec::new();
        let cache = &mut self.inode_mut(file).cache;
        let per_page = cache.blocks_per_page();
        run(cache, &mut |cache, window| {
            cache.set_up_to_date(window.pages.start * per_page..window.pages.end * per_page);
            windows.push(window);
        });
        for window in windows {
            let flags = BioFlags {
                read_ahead: window.is_read_ahead,
                ..BioFlags::default()
            };
            let blocks = window.pages.start * per_page..window.pages.end * per_page;
            self.submit_reads(context, file, blocks, flags);
        }
    }

    /// Reads the blocks of a range that have data on the device.
    pub(super) fn submit_reads(
        &self,
        context: &mut CallContext<'_>,
        file: FileId,
        blocks: Range<u64>,
        flags: BioFlags,
    ) {
        let block_bytes = self.geometry.block_bytes;
        let inode = self.inode(file);
        // Pages are read whole, up to the end of the last extent.
        let extents = inode.extents.iter().filter(|extent| !extent.is_unwritten);
        for extent in extents {
            let start = extent.logical.max(blocks.start);
            let end = extent
                .end()
                .min(blocks.end)
                .min(inode.size.div_ceil(block_bytes));
            if start < end {
                let content = BioContent::Data {
                    file,
                    offset: start * block_bytes,
                };
                let run = BlockRun {
                    physical: extent.physical_at(start),
                    length: end - start,
                };
                context
                    .effects
                    .submit(self.bio(BioOperation::Read, content, run, flags));
            }
        }
    }

    /// Renews the time of access, where relatime says so.
    pub(super) fn touch_access(&mut self, context: &CallContext<'_>, file: FileId) {
        if !self.options.mount.has_access_times {
            return;
        }
        let tick = self.host.tick_ns(context.now_ns);
        let is_lazy = self.options.mount.is_lazy_time;
        let inode = self.inode_mut(file);
        let accessed = inode.accessed_ns.unwrap_or(0);
        let is_old = tick >= accessed.saturating_add(ACCESS_TIME_AGE_NS);
        let is_due = Some(accessed) <= inode.modified_ns || Some(accessed) <= inode.changed_ns;
        if (!is_due && !is_old) || inode.accessed_ns == Some(tick) {
            return;
        }
        inode.accessed_ns = Some(tick);
        self.list_dirty(context, file);
        if is_lazy {
            self.inode_mut(file).has_lazy_time = true;
        } else {
            self.dirty_inode(context, file);
        }
    }

    /// Writes the dirty pages of a range, and drops pages that are clean then.
    pub(super) fn write_and_drop(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let first = range.offset.div_ceil(PAGE_BYTES);
        let end = range.end() / PAGE_BYTES;
        self.write_pages(context, file, pages_of(range), Writeback::Async)?;
        let inode = self.inode_mut(file);
        inode.cache.drop_clean(first..end.max(first));
        Ok(())
    }
}
