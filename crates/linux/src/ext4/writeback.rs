//! Writeback: dirty pages get their blocks and are submitted.

use std::ops::Range;

use super::allocator::BlockRun;
use super::mapping::Purpose;
use super::{Conversion, Ext4};
use crate::block::{BioContent, BioFlags, BioOperation, FileId};
use crate::effect::CallContext;
use crate::file_system::FileSystemError;
use crate::page_cache::PAGE_BYTES;
use crate::version::KernelVersion;

/// Blocks of the longest extent that one handle allocates.
const HANDLE_BLOCKS_MAX: u64 = 2048;

/// Reason for which pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writeback {
    /// Somebody waits for the data (WB_SYNC_ALL).
    Sync,
    /// Nobody waits for the data (WB_SYNC_NONE).
    Async,
    /// A commit writes pages that have blocks, and no others.
    Commit,
}

impl Ext4 {
    /// All pages of a file.
    pub(super) const ALL_PAGES: Range<u64> = 0..u64::MAX / PAGE_BYTES;

    /// Writes the dirty pages of a range, ascending.
    pub(super) fn write_pages(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        pages: Range<u64>,
        mode: Writeback,
    ) -> Result<(), FileSystemError> {
        if mode == Writeback::Sync && self.must_commit_before_writeback(file) {
            let id = self.inode(file).data_sync_id;
            self.sync_transaction(context, id)?;
        }
        let inode = self.inode(file);
        let end = inode.size.div_ceil(self.geometry.block_bytes);
        let mut blocks = inode.cache.dirty_blocks(pages);
        blocks.retain(|block| *block < end);
        if blocks.is_empty() {
            return Ok(());
        }
        context.effects.push(crate::effect::Effect::PlugStart);
        let mut index = 0;
        while index < blocks.len() {
            let run = self.run_at(file, &blocks[index..]);
            index += (run.end - run.start) as usize;
            if self.has_place(file, run.start) {
                self.submit_data(context, file, run, mode);
            } else if mode != Writeback::Commit {
                self.place_and_submit(context, file, run, mode)?;
            }
        }
        context.effects.push(crate::effect::Effect::PlugFinish);
        self.convert_written(context)
    }

    /// Whether data is in the running transaction and goes home when somebody waits for it
    /// (data=journal on newer kernels).
    fn must_commit_before_writeback(&self, file: FileId) -> bool {
        self.is_data_journalled()
            && self.host.version >= KernelVersion::V6_12
            && self.has_journalled_data(file)
    }

    fn has_place(&self, file: FileId, block: u64) -> bool {
        let extent = self.inode(file).extents.find(block);
        extent.is_some_and(|extent| !extent.is_unwritten)
    }

    /// First blocks of a list that are contiguous and in one state; those without a place no more
    /// than one handle allocates.
    fn run_at(&self, file: FileId, blocks: &[u64]) -> Range<u64> {
        let inode = self.inode(file);
        let first = blocks[0];
        let state = |block: u64| {
            let has_place = self.has_place(file, block);
            (has_place, !has_place && inode.cache.is_delayed(block))
        };
        let has_place = self.has_place(file, first);
        let limit = if has_place {
            u64::MAX
        } else {
            HANDLE_BLOCKS_MAX
        };
        let mut end = first + 1;
        for block in &blocks[1..] {
            if *block != end || end - first >= limit || state(*block) != state(first) {
                break;
            }
            end += 1;
        }
        first..end
    }

    /// Allocates blocks for a run and submits it. New blocks stay unwritten until the data is on the
    /// device, where the mount's options allow it.
    fn place_and_submit(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        run: Range<u64>,
        mode: Writeback,
    ) -> Result<(), FileSystemError> {
        let is_unwritten = self.allocates_unwritten();
        let mut start = run.start;
        while start < run.end {
            let end = match self.inode(file).extents.find(start) {
                Some(extent) => {
                    let end = extent.end().min(run.end);
                    if extent.is_unwritten {
                        if is_unwritten {
                            self.split_extents(context, file, start, end)?;
                            self.conversions.push(Conversion { file, start, end });
                        } else {
                            self.convert_around(context, file, start, end)?;
                        }
                    }
                    end
                }
                None => {
                    let length = run.end - start;
                    let purpose = if is_unwritten {
                        Purpose::BeforeData
                    } else {
                        Purpose::Written
                    };
                    let extent = self.allocate(context, file, start, length, purpose)?;
                    let end = extent.end();
                    if is_unwritten {
                        self.conversions.push(Conversion { file, start, end });
                    }
                    end
                }
            };
            self.submit_data(context, file, start..end, mode);
            self.extend_on_device(context, file, end);
            if self.limits.completes_at_submit {
                self.convert_written(context)?;
            }
            start = end;
        }
        Ok(())
    }

    /// Whether new blocks are unwritten until their data is on the device (dioread_nolock).
    pub(super) fn allocates_unwritten(&self) -> bool {
        let is_block_fit =
            self.geometry.block_bytes == PAGE_BYTES || self.host.version >= KernelVersion::V6_12;
        self.options.mount.has_delayed_allocation && !self.is_data_journalled() && is_block_fit
    }

    /// Moves the size on the device up to the end of what has blocks.
    fn extend_on_device(&mut self, context: &mut CallContext<'_>, file: FileId, end: u64) {
        let block_bytes = self.geometry.block_bytes;
        let inode = self.inode_mut(file);
        let size = inode.size.min(end * block_bytes);
        if size > inode.disk_size {
            inode.disk_size = size;
            self.dirty_inode(context, file);
        }
    }

    /// Submits a run of blocks that have places; they are clean then.
    fn submit_data(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        run: Range<u64>,
        mode: Writeback,
    ) {
        let flags = BioFlags {
            sync: mode != Writeback::Async,
            ..BioFlags::default()
        };
        let mut start = run.start;
        while start < run.end {
            let extent = self
                .inode(file)
                .extents
                .find(start)
                .expect("the run has places");
            let end = extent.end().min(run.end);
            let content = BioContent::Data {
                file,
                offset: start * self.geometry.block_bytes,
            };
            let place = BlockRun {
                physical: extent.physical_at(start),
                length: end - start,
            };
            context
                .effects
                .submit(self.bio(BioOperation::Write, content, place, flags));
            for block in place.physical..place.physical + place.length {
                self.dirty_data_blocks.remove(&block);
            }
            start = end;
        }
        let pages = (run.end - run.start) * self.geometry.block_bytes / PAGE_BYTES;
        self.flusher.note_writeout(context.now_ns, pages);
        let inode = self.inode_mut(file);
        let delayed = run
            .clone()
            .filter(|block| inode.cache.is_delayed(*block))
            .count();
        inode.delayed_blocks -= delayed as u64;
        inode.cache.clear_delayed(run.clone());
        inode.cache.clear_dirty(run);
    }

    /// Starts writing delayed blocks, as a rename over a file and the close of a truncated file do.
    pub(super) fn flush_delayed(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        if self.inode(file).delayed_blocks == 0 {
            return Ok(());
        }
        self.write_pages(context, file, Self::ALL_PAGES, Writeback::Async)
    }
}
