//! Changes of a file's size and space: truncation, fallocate, and blocks behind the end.

use std::ops::Range;

use crate::block::FileId;
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileSystemError};
use crate::operation::{ByteRange, FallocateMode};
use crate::page_cache::{PAGE_BYTES, pages_of};
use crate::version::KernelVersion;
use crate::xfs::Xfs;
use crate::xfs::data::blocks_of;
use crate::xfs::free_space::BusyExtent;
use crate::xfs::geometry::{BLOCK_BYTES, FreeExtent};
use crate::xfs::inode::InodeChange;

impl Xfs {
    /// Zeroes a range where it holds data; holes and unwritten blocks read as zeroes already.
    /// Returns whether pages were zeroed.
    pub(super) fn zero(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<bool, FileSystemError> {
        if range.length == 0 {
            return Ok(false);
        }
        let mut has_zeroed = false;
        let mut rest = range;
        let to_block_end = range.offset.next_multiple_of(BLOCK_BYTES) - range.offset;
        let first_block = range.offset / BLOCK_BYTES;
        let is_dirty_edge = to_block_end > 0 && self.inode(file).cache.is_dirty(first_block);
        if self.version >= KernelVersion::V6_18 && is_dirty_edge {
            let length = to_block_end.min(range.length);
            self.zero_pages(context, file, ByteRange { length, ..range });
            has_zeroed = true;
            rest = ByteRange {
                offset: range.offset + length,
                length: range.length - length,
            };
        }
        let mut may_flush = self.version >= KernelVersion::V6_12
            && blocks_of(rest).any(|block| self.inode(file).cache.is_dirty(block));
        let mut offset = rest.offset;
        while offset < rest.end() {
            let left = ByteRange {
                offset,
                length: rest.end() - offset,
            };
            let block = offset / BLOCK_BYTES;
            let extent = self.inode(file).extents.at_or_after(block);
            let here = extent.filter(|extent| extent.first <= block);
            let end = match (here, extent) {
                (Some(extent), _) => extent.end() * BLOCK_BYTES,
                (None, Some(next)) => next.first * BLOCK_BYTES,
                (None, None) => rest.end(),
            };
            let length = end.min(rest.end()) - offset;
            match here {
                Some(extent) if extent.is_delayed() && block >= self.end_block(file) => {
                    self.allocate_extent(file, extent.first..extent.end(), true)?;
                    continue;
                }
                Some(extent) if extent.is_delayed() || extent.is_written() => {
                    self.zero_pages(context, file, ByteRange { offset, length });
                    has_zeroed = true;
                }
                _ if may_flush => {
                    may_flush = false;
                    self.write_back(context, file, pages_of(left), true)?;
                    context.effects.wait();
                    continue;
                }
                _ => {}
            }
            offset += length;
        }
        if has_zeroed {
            self.note_dirty(context, file);
        }
        Ok(has_zeroed)
    }

    fn zero_pages(&mut self, context: &mut CallContext<'_>, file: FileId, range: ByteRange) {
        let mut offset = range.offset;
        while offset < range.end() {
            let folio = self
                .inode_mut(file)
                .cache
                .folio_for_write(offset, range.end() - offset);
            let end = range.end().min(folio.end_page() * PAGE_BYTES);
            for page in pages_of(ByteRange {
                offset,
                length: end - offset,
            }) {
                let is_partial = page * PAGE_BYTES < offset || (page + 1) * PAGE_BYTES > end;
                if is_partial && !self.inode(file).cache.is_page_up_to_date(page) {
                    self.read_page(context, file, page);
                }
                self.inode_mut(file).cache.set_dirty(page..page + 1);
            }
            offset = end;
        }
    }

    fn end_block(&self, file: FileId) -> u64 {
        self.inode(file).size.div_ceil(BLOCK_BYTES)
    }

    /// Sets the size of a file (ftruncate, O_TRUNC, and fallocate that extends).
    pub(super) fn set_size(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        size: u64,
    ) -> Result<(), FileSystemError> {
        let inode = self.inode(file);
        let old_size = inode.size;
        let now = context.host.tick_ns(context.now_ns);
        if size == 0 && old_size == 0 && inode.extents.as_slice().is_empty() {
            self.inode_mut(file).times.changed_ns = now;
            self.log_inode(file, InodeChange::Core)?;
            self.end_change(context);
            return Ok(());
        }
        let has_zeroed = self.zero_edge(context, file, size)?;
        self.inode_mut(file).cache.truncate(ByteRange {
            offset: size,
            length: u64::MAX - size,
        });
        self.inode_mut(file).size = size;
        let disk_size = self.inode(file).disk_size;
        if size > disk_size && (has_zeroed || old_size != disk_size) {
            let range = ByteRange {
                offset: disk_size,
                length: size - disk_size,
            };
            self.write_back(context, file, pages_of(range), true)?;
            context.effects.wait();
        }
        let inode = self.inode_mut(file);
        inode.disk_size = size;
        inode.times.changed_ns = now;
        self.log_inode(file, InodeChange::Core)?;
        if size <= old_size {
            self.remove_blocks(file, &(size.div_ceil(BLOCK_BYTES)..u64::MAX), true)?;
            self.inode_mut(file).was_truncated = true;
        }
        self.end_change(context);
        Ok(())
    }

    /// Zeroes what a new size would expose, or leave in the last block. Before 6.12, the kernel
    /// writes the block at the new end first.
    fn zero_edge(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        size: u64,
    ) -> Result<bool, FileSystemError> {
        let old_size = self.inode(file).size;
        if size > old_size {
            return self.zero(
                context,
                file,
                ByteRange {
                    offset: old_size,
                    length: size - old_size,
                },
            );
        }
        if self.version < KernelVersion::V6_12 {
            let page = size / PAGE_BYTES;
            self.write_back(context, file, page..page + 1, true)?;
            context.effects.wait();
        }
        let length = size.next_multiple_of(BLOCK_BYTES) - size;
        self.zero(
            context,
            file,
            ByteRange {
                offset: size,
                length,
            },
        )
    }

    /// Frees the blocks of a file in `blocks`, which `held_data` or lay behind the end. Logs the
    /// inode if any had a place on the device.
    pub(super) fn remove_blocks(
        &mut self,
        file: FileId,
        blocks: &Range<u64>,
        held_data: bool,
    ) -> Result<(), FileSystemError> {
        let geometry = self.geometry;
        let removed = self.inode_mut(file).extents.remove(blocks);
        let mut has_freed = false;
        for extent in removed.iter().rev() {
            let Some(block) = extent.block() else {
                continue;
            };
            has_freed = true;
            let group = block / geometry.group_blocks;
            let first = block % geometry.group_blocks;
            self.metadata_reads.need_space(&geometry, group);
            let freed = FreeExtent {
                first,
                length: extent.length,
            };
            let held_data = held_data && extent.is_written();
            let freed = BusyExtent {
                extent: freed,
                held_data,
            };
            self.groups[group as usize]
                .space
                .free(&geometry, &mut self.log, freed)?;
        }
        if has_freed {
            self.log_inode(file, InodeChange::Fork)?;
        }
        Ok(())
    }

    /// Whether blocks behind the end of the file are there that nobody asked for.
    pub(super) fn has_blocks_behind_end(&self, file: FileId) -> bool {
        let inode = self.inode(file);
        let has_delayed = inode.extents.has_delayed();
        let is_empty = inode.size == 0 && inode.cache.cached_pages() == 0 && !has_delayed;
        if inode.kind != FileKind::Regular || is_empty || (inode.is_preallocated && !has_delayed) {
            return false;
        }
        has_delayed || inode.extents.at_or_after(self.end_block(file)).is_some()
    }

    /// Frees the blocks behind the end of the file; of preallocated files, delayed ones alone.
    pub(super) fn free_blocks_behind_end(&mut self, file: FileId) -> Result<(), FileSystemError> {
        let behind_end = self.end_block(file)..u64::MAX;
        if self.inode(file).is_preallocated {
            let inode = self.inode_mut(file);
            for extent in inode.extents.within(&behind_end) {
                if extent.is_delayed() {
                    inode.extents.remove(&(extent.first..extent.end()));
                }
            }
            return Ok(());
        }
        self.remove_blocks(file, &behind_end, false)?;
        self.log_inode(file, InodeChange::Core)
    }

    /// Closes a descriptor: writes what follows a truncation, and frees blocks behind the end at
    /// the first close. From 6.12 on, only closes of writers count.
    pub(super) fn release(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        was_writer: bool,
    ) -> Result<(), FileSystemError> {
        let inode = self.inode_mut(file);
        if std::mem::take(&mut inode.was_truncated) {
            inode.was_released = false;
            if inode.extents.has_delayed() {
                self.write_back(context, file, 0..u64::MAX / PAGE_BYTES, false)?;
            }
        }
        let is_old = self.version < KernelVersion::V6_12;
        let inode = self.inode(file);
        let counts = inode.is_linked && (is_old || was_writer) && !inode.was_released;
        if !counts || !self.has_blocks_behind_end(file) {
            return Ok(());
        }
        self.free_blocks_behind_end(file)?;
        let inode = self.inode_mut(file);
        inode.was_released = !is_old || inode.extents.has_delayed();
        Ok(())
    }

    /// Allocates, punches or zeroes a range.
    pub(super) fn change_space(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        mode: FallocateMode,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        self.note_change(context, file)?;
        if matches!(mode, FallocateMode::PunchHole | FallocateMode::ZeroRange) {
            self.punch(context, file, range)?;
        }
        if mode == FallocateMode::PunchHole {
            return Ok(());
        }
        self.preallocate(file, range)?;
        let extends = mode != FallocateMode::KeepSize && range.end() > self.inode(file).size;
        if extends {
            self.set_size(context, file, range.end())?;
        }
        Ok(())
    }

    /// Fills the holes of a range with unwritten blocks.
    fn preallocate(&mut self, file: FileId, range: ByteRange) -> Result<(), FileSystemError> {
        let blocks = blocks_of(range);
        let mut block = blocks.start;
        while block < blocks.end {
            let next = self.inode(file).extents.at_or_after(block);
            block = match next {
                Some(extent) if extent.first <= block && !extent.is_delayed() => extent.end(),
                Some(extent) if extent.first <= block => {
                    self.allocate_delayed(file, extent, &(block..blocks.end))?;
                    block
                }
                next => {
                    let end = next.map_or(blocks.end, |extent| extent.first.min(blocks.end));
                    block + self.allocate_extent(file, block..end, false)?
                }
            };
            self.inode_mut(file).is_preallocated = true;
            self.log_inode(file, InodeChange::Core)?;
        }
        Ok(())
    }

    /// Removes a range: writes its dirty pages, drops them, frees its blocks, and zeroes what is
    /// left of the blocks at its edges.
    fn punch(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let pages = pages_of(range);
        self.write_back(context, file, pages.clone(), true)?;
        context.effects.wait();
        let offset = pages.start * PAGE_BYTES;
        let length = pages.end * PAGE_BYTES - offset;
        self.inode_mut(file)
            .cache
            .truncate(ByteRange { offset, length });
        let whole = range.offset.div_ceil(BLOCK_BYTES)..range.end() / BLOCK_BYTES;
        if whole.start < whole.end {
            self.remove_blocks(file, &whole, true)?;
        }
        let size = self.inode(file).size;
        if range.offset >= size {
            return Ok(());
        }
        let end = range.end().min(size);
        self.zero(
            context,
            file,
            ByteRange {
                offset: range.offset,
                length: end - range.offset,
            },
        )?;
        if end >= size && !end.is_multiple_of(PAGE_BYTES) {
            let last = end / PAGE_BYTES;
            self.write_back(context, file, last..u64::MAX / PAGE_BYTES, true)?;
            context.effects.wait();
        }
        Ok(())
    }
}
