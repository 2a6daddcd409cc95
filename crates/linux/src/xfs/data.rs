//! Data between the page cache and the device: places, bios, and the ends of I/O.

use std::ops::Range;

use crate::block::{Bio, BioContent, BioFlags, BioOperation, FileId};
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileSystemError};
use crate::operation::ByteRange;
use crate::page_cache::PageCache;
use crate::read_ahead::ReadAhead;
use crate::version::KernelVersion;
use crate::xfs::Xfs;
use crate::xfs::extent_list::{ExtentPlace, XfsExtent};
use crate::xfs::free_space::SpaceRequest;
use crate::xfs::geometry::{BLOCK_BYTES, FreeExtent};
use crate::xfs::inode::InodeChange;
use crate::xfs::inode_space::block_of;

/// Segments of a bio at most.
const BIO_SEGMENTS_MAX: u32 = 256;
/// Gap between extents of a file, in lengths of the new one, up to which the allocator keeps it.
const GAP_LENGTHS_MAX: u64 = 4;
/// Time after which a read renews the time of access in any case.
const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Blocks that hold a range of bytes.
pub(super) fn blocks_of(range: ByteRange) -> Range<u64> {
    range.offset / BLOCK_BYTES..range.end().div_ceil(BLOCK_BYTES)
}

impl Xfs {
    /// Writes the dirty pages of folios that hold `pages`, outside any plug. The end of the I/O
    /// marks unwritten blocks as written and moves the size in the log. Any such call on a file
    /// with dirty pages makes the next close forget a truncation before it.
    pub(super) fn write_back(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        pages: Range<u64>,
        is_sync: bool,
    ) -> Result<(), FileSystemError> {
        let inode = self.inode_mut(file);
        inode.was_truncated &= !inode.cache.has_dirty();
        let end_block = inode.size.div_ceil(BLOCK_BYTES);
        let mut dirty = self.inode(file).cache.dirty_blocks(pages);
        dirty.retain(|block| *block < end_block);
        if dirty.is_empty() {
            return Ok(());
        }
        let mut pieces: Vec<XfsExtent> = Vec::new();
        for block in dirty {
            let extent = self.place_block(file, block)?;
            let piece = extent
                .trim(&(block..block + 1))
                .expect("the extent holds the block");
            match pieces.last_mut() {
                Some(last) if continues(*last, piece) => last.length += 1,
                _ => pieces.push(piece),
            }
        }
        let flags = BioFlags {
            sync: is_sync,
            ..BioFlags::default()
        };
        let inode = self.inode(file);
        let bios: Vec<Bio> = pieces
            .iter()
            .flat_map(|piece| {
                self.data_bios(&inode.cache, file, *piece, BioOperation::Write, flags)
            })
            .collect();
        self.metadata_reads.submit(context.effects);
        bios.into_iter().for_each(|bio| context.effects.submit(bio));
        self.has_written_back = true;
        for piece in pieces {
            self.inode_mut(file)
                .cache
                .clear_dirty(piece.first..piece.end());
            let offset = piece.first * BLOCK_BYTES;
            self.end_write(
                file,
                ByteRange {
                    offset,
                    length: piece.length * BLOCK_BYTES,
                },
            )?;
        }
        Ok(())
    }

    /// Extent that holds a block of the file, with a place on the device.
    fn place_block(&mut self, file: FileId, block: u64) -> Result<XfsExtent, FileSystemError> {
        loop {
            let extent = self
                .inode(file)
                .extents
                .at(block)
                .expect("dirty blocks are reserved");
            if !extent.is_delayed() {
                return Ok(extent);
            }
            self.allocate_extent(file, extent.first..extent.end(), true)?;
        }
    }

    /// Allocates blocks from the start of `blocks` on, unwritten. Returns how many.
    pub(super) fn allocate_extent(
        &mut self,
        file: FileId,
        blocks: Range<u64>,
        is_delayed: bool,
    ) -> Result<u64, FileSystemError> {
        let length = blocks.end - blocks.start;
        let target = self.target_block(file, &blocks, is_delayed);
        let is_user_data = self.inode(file).kind == FileKind::Regular;
        let (group, extent) = self.find_space(target, length, is_user_data)?;
        let geometry = self.geometry;
        self.metadata_reads.need_space(&geometry, group);
        self.groups[group as usize]
            .space
            .allocate(&geometry, &mut self.log, extent)?;
        let block = group * geometry.group_blocks + extent.first;
        let place = ExtentPlace::Allocated {
            block,
            is_unwritten: true,
        };
        let new = XfsExtent {
            first: blocks.start,
            length: extent.length,
            place,
        };
        self.inode_mut(file).extents.insert(new);
        self.log_inode(file, InodeChange::Fork)?;
        Ok(extent.length)
    }

    /// Block of the device near which blocks of a file are wanted: where a neighbour in the file
    /// lets them continue, or at the file's inode.
    fn target_block(&self, file: FileId, blocks: &Range<u64>, is_delayed: bool) -> u64 {
        let geometry = &self.geometry;
        let group_of = |block: u64| block / geometry.group_blocks;
        let is_same_group =
            |block: u64, other: u64| group_of(block) == group_of(other) && block < geometry.blocks;
        let inode = self.inode(file);
        let length = blocks.end - blocks.start;
        let before = inode.extents.before(blocks.start).and_then(|extent| {
            let end = extent.block()? + extent.length;
            let gap = blocks.start - extent.end();
            is_same_group(end, extent.block()?).then_some((end, gap))
        });
        let after = inode
            .extents
            .at_or_after(blocks.start)
            .filter(|_| !is_delayed);
        let is_at_end = after.is_none() && !is_delayed;
        let before = before.map(|(end, gap)| {
            let is_near = is_at_end || gap <= GAP_LENGTHS_MAX * length;
            if is_near && is_same_group(end + gap, end.saturating_sub(1)) {
                (end + gap, gap)
            } else {
                (end, 2 * gap)
            }
        });
        let after = after.and_then(|extent| {
            let start = extent.block()?;
            let gap = extent.first - blocks.start;
            if gap <= GAP_LENGTHS_MAX * length && start >= gap && is_same_group(start - gap, start)
            {
                Some((start - gap, gap))
            } else if start >= length && is_same_group(start - length, start) {
                Some((start - length, 2 * gap - length))
            } else {
                Some((start, 2 * gap))
            }
        });
        match (before, after) {
            (Some(before), Some(after)) if before.1 <= after.1 => before.0,
            (_, Some(after)) => after.0,
            (Some(before), None) => before.0,
            (None, None) => {
                inode.number.group * geometry.group_blocks + block_of(inode.number.index)
            }
        }
    }

    /// Free extent near a block of the device, in its group or the next one that has the length.
    pub(super) fn find_space(
        &self,
        target: u64,
        length: u64,
        is_user_data: bool,
    ) -> Result<(u64, FreeExtent), FileSystemError> {
        let count = self.groups.len() as u64;
        let start = target / self.geometry.group_blocks;
        let order = (0..count).map(|step| (start + step) % count);
        let longest = order
            .clone()
            .map(|group| self.groups[group as usize].space.longest());
        let length_min = longest.max().unwrap_or(0).clamp(1, length);
        for group in order {
            let in_group = if group == start {
                target % self.geometry.group_blocks
            } else {
                0
            };
            let request = SpaceRequest {
                target: in_group,
                length_min,
                length_max: length,
                alignment: 1,
                is_user_data,
            };
            if let Some(extent) = self.groups[group as usize].space.find_near(request) {
                return Ok((group, extent));
            }
        }
        Err(self.no_space())
    }

    /// Notes that bytes of a file are on the device.
    pub(super) fn end_write(
        &mut self,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let inode = self.inode_mut(file);
        let has_converted = inode.extents.mark_written(&blocks_of(range));
        let end = range.end().min(inode.size);
        let has_grown = end > inode.disk_size;
        inode.disk_size = inode.disk_size.max(end);
        if has_converted {
            self.log_inode(file, InodeChange::Fork)
        } else if has_grown {
            self.log_inode(file, InodeChange::Core)
        } else {
            Ok(())
        }
    }

    /// Bios for a run of blocks of a file with places on the device.
    pub(super) fn data_bios(
        &self,
        cache: &PageCache,
        file: FileId,
        piece: XfsExtent,
        operation: BioOperation,
        flags: BioFlags,
    ) -> Vec<Bio> {
        let Some(start) = piece.block() else {
            return Vec::new();
        };
        let mut bios: Vec<Bio> = Vec::new();
        let mut block = piece.first;
        while block < piece.end() {
            let folio_end = cache
                .folio_at(block)
                .map_or(block + 1, |folio| folio.end_page());
            let end = folio_end.min(piece.end());
            let sectors = self.geometry.block_sector(end - block);
            match bios.last_mut() {
                Some(bio) if bio.segments < BIO_SEGMENTS_MAX => {
                    bio.sectors += sectors;
                    bio.segments += 1;
                }
                _ => bios.push(Bio {
                    operation,
                    content: BioContent::Data {
                        file,
                        offset: block * BLOCK_BYTES,
                    },
                    sector: self.geometry.block_sector(start + block - piece.first),
                    sectors,
                    segments: 1,
                    flags,
                }),
            }
            block = end;
        }
        bios
    }

    /// Reads through the page cache by the rules of read-ahead.
    pub(super) fn read_cached(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &mut ReadAhead,
        is_advised: bool,
    ) {
        let mut inode = self
            .files
            .remove(&file)
            .expect("the caller names a file that exists");
        let mut windows = Vec::new();
        let mut note = |cache: &mut PageCache, window: crate::read_ahead::ReadWindow| {
            cache.set_up_to_date(window.pages.clone());
            windows.push(window);
        };
        if is_advised {
            read_ahead.read_advised(&mut inode.cache, range, inode.size, &mut note);
        } else {
            read_ahead.read(&mut inode.cache, range, inode.size, &mut note);
        }
        for window in windows {
            let flags = BioFlags {
                read_ahead: window.is_read_ahead,
                ..BioFlags::default()
            };
            for piece in inode.extents.within(&window.pages) {
                if piece.is_written() {
                    let bios = self.data_bios(&inode.cache, file, piece, BioOperation::Read, flags);
                    bios.into_iter().for_each(|bio| context.effects.submit(bio));
                }
            }
        }
        context.effects.wait();
        self.files.insert(file, inode);
    }

    /// Reads one page of a file, which a partial write needs.
    pub(super) fn read_page(&mut self, context: &mut CallContext<'_>, file: FileId, page: u64) {
        let inode = self.inode(file);
        let extent = inode.extents.at(page).filter(|extent| extent.is_written());
        let piece = extent.and_then(|extent| extent.trim(&(page..page + 1)));
        if let Some(piece) = piece {
            let flags = BioFlags {
                sync: true,
                ..BioFlags::default()
            };
            let bios = self.data_bios(&inode.cache, file, piece, BioOperation::Read, flags);
            bios.into_iter().for_each(|bio| context.effects.submit(bio));
            context.effects.wait();
        }
        self.inode_mut(file).cache.set_up_to_date(page..page + 1);
    }

    /// Notes a read in the time of access, as `relatime` says.
    pub(super) fn note_access(
        &mut self,
        context: &CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        if !self.options.mount.has_access_times {
            return Ok(());
        }
        let now = context.host.tick_ns(context.now_ns);
        let times = &mut self.inode_mut(file).times;
        let is_stale = times.accessed_ns <= times.changed_ns || now >= times.accessed_ns + DAY_NS;
        if !is_stale || times.accessed_ns == now {
            return Ok(());
        }
        times.accessed_ns = now;
        self.log_times(file, self.options.mount.is_lazy_time)
    }

    /// Notes a change of data in the time stamps.
    pub(super) fn note_change(
        &mut self,
        context: &CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        let now = context.host.tick_ns(context.now_ns);
        let times = &mut self.inode_mut(file).times;
        if times.changed_ns == now {
            return Ok(());
        }
        times.changed_ns = now;
        let is_lazy = self.options.mount.is_lazy_time && self.version < KernelVersion::V6_18;
        self.log_times(file, is_lazy)
    }

    /// Logs time stamps, or notes them in memory. 6.18 does so with the time of access alone.
    fn log_times(&mut self, file: FileId, is_lazy: bool) -> Result<(), FileSystemError> {
        if is_lazy {
            self.inode_mut(file).has_lazy_times = true;
            return Ok(());
        }
        self.log_inode(file, InodeChange::Times)
    }
}

/// Whether a block continues a piece in the file and on the device, in one state.
fn continues(piece: XfsExtent, next: XfsExtent) -> bool {
    let is_next_block = piece.block().map(|block| block + piece.length) == next.block();
    piece.end() == next.first && is_next_block && piece.is_written() == next.is_written()
}
