//! Writes: reservation of blocks with preallocation, and direct I/O.

use std::ops::Range;

use crate::block::{BioFlags, BioOperation, FileId};
use crate::effect::CallContext;
use crate::file_system::FileSystemError;
use crate::operation::ByteRange;
use crate::page_cache::{PAGE_BYTES, pages_of};
use crate::version::KernelVersion;
use crate::xfs::data::blocks_of;
use crate::xfs::extent_list::{ExtentPlace, XfsExtent};
use crate::xfs::geometry::BLOCK_BYTES;
use crate::xfs::{DirtyFile, Xfs};

/// Bytes that one reservation covers at most.
const RESERVATION_BYTES_MAX: u64 = 1024 * PAGE_BYTES;
/// Granule and least length of preallocation, unless `allocsize=` says otherwise.
const PREALLOCATION_BYTES: u64 = 64 * 1024;
/// Blocks of an extent at most.
const EXTENT_BLOCKS_MAX: u64 = (1 << 21) - 1;

impl Xfs {
    /// Writes to the page cache and reserves blocks.
    pub(super) fn write_cached(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        if range.length == 0 {
            return Ok(());
        }
        self.begin_write(context, file, range)?;
        let mut offset = range.offset;
        while offset < range.end() {
            let reserved = self.reserve_at(
                file,
                ByteRange {
                    offset,
                    length: range.end() - offset,
                },
            );
            self.fill_pages(
                context,
                file,
                ByteRange {
                    offset,
                    length: reserved - offset,
                },
            );
            offset = reserved;
        }
        self.note_dirty(context, file);
        Ok(())
    }

    /// Zeroes what lies between the end of the file and a write behind it, and notes the time.
    fn begin_write(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let size = self.inode(file).size;
        if range.offset > size {
            self.zero(
                context,
                file,
                ByteRange {
                    offset: size,
                    length: range.offset - size,
                },
            )?;
        }
        self.note_change(context, file)
    }

    /// Copies bytes into pages, which it reads first where they are written in part.
    fn fill_pages(&mut self, context: &mut CallContext<'_>, file: FileId, range: ByteRange) {
        let mut offset = range.offset;
        while offset < range.end() {
            let folio = self
                .inode_mut(file)
                .cache
                .folio_for_write(offset, range.end() - offset);
            let end = range.end().min(folio.end_page() * PAGE_BYTES);
            let is_partial = [
                (offset, !offset.is_multiple_of(PAGE_BYTES)),
                (end - 1, !end.is_multiple_of(PAGE_BYTES)),
            ];
            for (byte, is_partial) in is_partial {
                let page = byte / PAGE_BYTES;
                let inode = self.inode(file);
                if is_partial
                    && page * PAGE_BYTES < inode.size
                    && !inode.cache.is_page_up_to_date(page)
                {
                    self.read_page(context, file, page);
                }
            }
            let inode = self.inode_mut(file);
            inode
                .cache
                .set_dirty(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES));
            inode.size = inode.size.max(end);
            offset = end;
        }
    }

    /// Notes that a file has dirty pages, for syncfs and the flusher.
    pub(super) fn note_dirty(&mut self, context: &CallContext<'_>, file: FileId) {
        if !std::mem::replace(&mut self.inode_mut(file).is_on_dirty_list, true) {
            let since_ns = context.now_ns;
            self.dirty_files.push(DirtyFile { file, since_ns });
            self.start_flusher(since_ns);
        }
    }

    /// Reserves blocks for the start of a write, and more behind the end of the file. Returns the
    /// offset up to which blocks are there.
    fn reserve_at(&mut self, file: FileId, range: ByteRange) -> u64 {
        let inode = self.inode(file);
        let block = range.offset / BLOCK_BYTES;
        let next = inode.extents.at_or_after(block);
        if let Some(extent) = next.filter(|extent| extent.first <= block) {
            return range.end().min(extent.end() * BLOCK_BYTES);
        }
        let count = range.length.min(RESERVATION_BYTES_MAX);
        let end = (range.offset + count).div_ceil(BLOCK_BYTES);
        let mut reserved = end;
        match next {
            Some(extent) => reserved = reserved.min(extent.first),
            None if range.offset + count > inode.size => {
                reserved += self.preallocation(
                    file,
                    ByteRange {
                        length: count,
                        ..range
                    },
                    end,
                );
            }
            None => {}
        }
        let length = (reserved - block).min(EXTENT_BLOCKS_MAX);
        let extent = XfsExtent {
            first: block,
            length,
            place: ExtentPlace::Delayed,
        };
        self.inode_mut(file).extents.insert(extent);
        range.end().min(end.min(reserved) * BLOCK_BYTES)
    }

    /// Blocks to reserve behind `end` of a write that extends the file.
    fn preallocation(&self, file: FileId, range: ByteRange, end: u64) -> u64 {
        let granule = self
            .options
            .mount
            .allocation_bytes
            .unwrap_or(PREALLOCATION_BYTES);
        let least = granule / BLOCK_BYTES;
        let blocks = match self.options.mount.allocation_bytes {
            Some(_) => least,
            None => self.dynamic_preallocation(file, range, least),
        };
        if blocks == 0 {
            return 0;
        }
        let last_granule = (range.end() - 1) / granule * granule;
        (last_granule / BLOCK_BYTES + blocks).saturating_sub(end)
    }

    /// Preallocation that doubles what the file has before the write in one piece.
    fn dynamic_preallocation(&self, file: FileId, range: ByteRange, least: u64) -> u64 {
        let inode = self.inode(file);
        let block = range.offset / BLOCK_BYTES;
        if inode.size < PREALLOCATION_BYTES {
            return 0;
        }
        let Some(mut first) = inode
            .extents
            .before(block)
            .filter(|extent| extent.end() >= block)
        else {
            return least;
        };
        let mut length = first.length;
        while let Some(before) = inode.extents.before(first.first) {
            let is_contiguous = before.end() == first.first
                && before
                    .block()
                    .is_some_and(|start| Some(start + before.length) == first.block());
            if length > EXTENT_BLOCKS_MAX / 2 || !is_contiguous {
                break;
            }
            length += before.length;
            first = before;
        }
        let mut blocks = 2 * length;
        if blocks > EXTENT_BLOCKS_MAX {
            blocks = block;
        }
        self.limit_preallocation(blocks, least)
    }

    /// Cuts preallocation where space is short, and to a power of two.
    fn limit_preallocation(&self, blocks: u64, least: u64) -> u64 {
        let free = self.free_blocks();
        let percent = free * 100 / self.geometry.blocks;
        let shift = if percent < 5 { 2 + (4 - percent) } else { 0 };
        let mut blocks = blocks.min(EXTENT_BLOCKS_MAX + 1) >> shift;
        if blocks > 0 {
            blocks = (1 << blocks.ilog2()).min(EXTENT_BLOCKS_MAX);
        }
        while blocks > 0 && blocks >= free {
            blocks >>= 4;
        }
        blocks.max(least)
    }

    /// Free blocks that are not reserved.
    fn free_blocks(&self) -> u64 {
        let free: u64 = self.groups.iter().map(|group| group.space.blocks()).sum();
        let delayed = self
            .files
            .values()
            .map(|inode| inode.extents.delayed_blocks());
        free.saturating_sub(delayed.sum())
    }

    /// Writes past the page cache. Returns whether the write is durable by FUA.
    pub(super) fn write_past_cache(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_sync: bool,
    ) -> Result<bool, FileSystemError> {
        check_alignment(range)?;
        if range.length == 0 {
            return Ok(false);
        }
        self.begin_write(context, file, range)?;
        self.write_back(context, file, pages_of(range), true)?;
        context.effects.wait();
        self.inode_mut(file).cache.drop_clean(pages_of(range));
        let pieces = self.place_range(file, range)?;
        let has_sticky_mark = self.has_sticky_sync_mark();
        let inode = self.inode(file);
        let is_overwrite =
            range.end() <= inode.size && pieces.iter().all(|piece| piece.is_written());
        let is_clean = !inode.needs_data_sync(self.log.checkpoint(), has_sticky_mark);
        let fua = data_sync && self.limits.has_fua && is_overwrite && is_clean;
        let flags = BioFlags {
            sync: true,
            fua,
            ..BioFlags::default()
        };
        let bios: Vec<_> = pieces
            .iter()
            .flat_map(|piece| {
                self.data_bios(&inode.cache, file, *piece, BioOperation::Write, flags)
            })
            .collect();
        self.metadata_reads.submit(context.effects);
        context
            .effects
            .plugged(|effects| bios.into_iter().for_each(|bio| effects.submit(bio)));
        context.effects.wait();
        let inode = self.inode_mut(file);
        inode.size = inode.size.max(range.end());
        self.end_write(file, range)?;
        Ok(fua)
    }

    /// Extents of a range with places on the device; what has none gets unwritten blocks.
    fn place_range(
        &mut self,
        file: FileId,
        range: ByteRange,
    ) -> Result<Vec<XfsExtent>, FileSystemError> {
        let blocks = blocks_of(range);
        let mut pieces = Vec::new();
        let mut block = blocks.start;
        while block < blocks.end {
            match self.inode(file).extents.at_or_after(block) {
                Some(extent) if extent.first <= block && extent.is_delayed() => {
                    self.allocate_delayed(file, extent, &(block..blocks.end))?;
                }
                Some(extent) if extent.first <= block => {
                    pieces.extend(extent.trim(&(block..blocks.end)));
                    block = extent.end();
                }
                next => {
                    let end = next.map_or(blocks.end, |extent| extent.first.min(blocks.end));
                    self.allocate_extent(file, block..end, false)?;
                }
            }
        }
        Ok(pieces)
    }

    /// Allocates the part of a delayed extent that a call concerns; before 6.12, all of it.
    pub(super) fn allocate_delayed(
        &mut self,
        file: FileId,
        extent: XfsExtent,
        blocks: &Range<u64>,
    ) -> Result<(), FileSystemError> {
        let part = extent
            .trim(blocks)
            .filter(|_| self.version >= KernelVersion::V6_12);
        let part = part.unwrap_or(extent);
        self.allocate_extent(file, part.first..part.end(), true)?;
        Ok(())
    }

    /// Reads past the page cache.
    pub(super) fn read_past_cache(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        check_alignment(range)?;
        self.note_access(context, file)?;
        self.write_back(context, file, pages_of(range), true)?;
        context.effects.wait();
        let inode = self.inode(file);
        let end = range.end().min(inode.size).div_ceil(BLOCK_BYTES);
        let flags = BioFlags {
            sync: true,
            ..BioFlags::default()
        };
        for piece in inode.extents.within(&(range.offset / BLOCK_BYTES..end)) {
            if piece.is_written() {
                let bios = self.data_bios(&inode.cache, file, piece, BioOperation::Read, flags);
                bios.into_iter().for_each(|bio| context.effects.submit(bio));
            }
        }
        context.effects.wait();
        Ok(())
    }

    /// Whether fdatasync counts changes until it forces the log itself.
    pub(super) fn has_sticky_sync_mark(&self) -> bool {
        self.version < KernelVersion::V6_18
    }
}

/// Refuses direct I/O that is not aligned to blocks.
fn check_alignment(range: ByteRange) -> Result<(), FileSystemError> {
    if range.offset.is_multiple_of(BLOCK_BYTES) && range.length.is_multiple_of(BLOCK_BYTES) {
        return Ok(());
    }
    let call = format!("direct I/O of {} bytes at {}", range.length, range.offset);
    Err(Xfs::unsupported(call, "use multiples of 4096 bytes"))
}
