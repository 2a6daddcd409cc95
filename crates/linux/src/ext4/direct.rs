//! Reads and writes past the page cache (O_DIRECT).

use super::Ext4;
use super::allocator::BlockRun;
use super::mapping::Purpose;
use super::writeback::Writeback;
use crate::block::{BioContent, BioFlags, BioOperation, FileId};
use crate::effect::CallContext;
use crate::file_system::FileSystemError;
use crate::operation::ByteRange;
use crate::page_cache::{PAGE_BYTES, pages_of};

/// Blocks of the longest mapping of a direct write.
const MAPPING_BLOCKS_MAX: u64 = 4096;

impl Ext4 {
    pub(super) fn read_past_cache(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let size = self.inode(file).size;
        let end = range.end().min(size);
        if range.offset < end {
            let length = end - range.offset;
            self.write_range(context, file, ByteRange { length, ..range })?;
            context.effects.wait();
            let block_bytes = self.geometry.block_bytes;
            let blocks = range.offset / block_bytes..end.div_ceil(block_bytes);
            let flags = BioFlags {
                sync: true,
                ..BioFlags::default()
            };
            self.submit_reads(context, file, blocks, flags);
            context.effects.wait();
        }
        self.touch_access(context, file);
        Ok(())
    }

    /// Writes the dirty pages of a range, for somebody who waits.
    pub(super) fn write_range(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        self.write_pages(context, file, pages_of(range), Writeback::Sync)
    }

    /// Writes past the cache; returns whether the data is durable by FUA.
    pub(super) fn write_past_cache(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_sync: bool,
    ) -> Result<bool, FileSystemError> {
        self.touch(context, file);
        let inode = self.inode(file);
        let is_extending = range.end() > inode.disk_size || range.end() > inode.size;
        if is_extending {
            self.add_orphan(context, file);
        }
        self.write_range(context, file, range)?;
        context.effects.wait();
        self.inode_mut(file).cache.drop_clean(pages_of(range));
        let is_dirty = self.has_uncommitted_data_change(file);
        let has_durable_writes = self.limits.has_fua || !self.limits.has_write_cache;
        let may_use_fua = data_sync && has_durable_writes && !is_dirty;
        let is_overwrite = self.submit_direct(context, file, range, may_use_fua)?;
        context.effects.wait();
        self.convert_written(context)?;
        if is_extending {
            let inode = self.inode_mut(file);
            inode.size = inode.size.max(range.end());
            inode.disk_size = inode.disk_size.max(range.end());
            self.dirty_inode(context, file);
            if self.inode(file).links > 0 {
                self.remove_orphan(context, file);
            }
        }
        Ok(may_use_fua && is_overwrite)
    }

    /// Submits a direct write, mapping by mapping; returns whether all was an overwrite.
    fn submit_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        may_use_fua: bool,
    ) -> Result<bool, FileSystemError> {
        let block_bytes = self.geometry.block_bytes;
        let end = range.end().div_ceil(block_bytes);
        let mut block = range.offset / block_bytes;
        let mut is_overwrite = true;
        context.effects.push(crate::effect::Effect::PlugStart);
        while block < end {
            let length = (end - block).min(MAPPING_BLOCKS_MAX);
            let (extent, is_new) = self.map_direct(context, file, block, length)?;
            is_overwrite &= !is_new;
            let part = length.min(extent.end() - block);
            let place = BlockRun {
                physical: extent.physical_at(block),
                length: part,
            };
            let fua = may_use_fua && !is_new;
            let flags = BioFlags {
                sync: true,
                fua,
                ..BioFlags::default()
            };
            let content = BioContent::Data {
                file,
                offset: block * block_bytes,
            };
            let mut bio = self.bio(BioOperation::Write, content, place, flags);
            bio.segments = u32::try_from(bio.bytes().div_ceil(PAGE_BYTES)).unwrap_or(u32::MAX);
            context.effects.submit(bio);
            block += part;
        }
        context.effects.push(crate::effect::Effect::PlugFinish);
        Ok(is_overwrite)
    }

    /// Maps blocks for a direct write; returns the extent, and whether the mapping is new. Space
    /// inside the file is unwritten until the data is on the device.
    fn map_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        block: u64,
        length: u64,
    ) -> Result<(super::extents::FileExtent, bool), FileSystemError> {
        let is_beyond_end = block * self.geometry.block_bytes >= self.inode(file).size;
        match self.inode(file).extents.find(block) {
            Some(extent) if !extent.is_unwritten => Ok((extent, false)),
            Some(extent) => {
                let end = extent.end().min(block + length);
                if is_beyond_end {
                    self.convert_around(context, file, block, end)?;
                } else {
                    self.split_extents(context, file, block, end)?;
                    self.conversions.push(super::Conversion {
                        file,
                        start: block,
                        end,
                    });
                }
                let extent = self
                    .inode(file)
                    .extents
                    .find(block)
                    .expect("it was just there");
                Ok((extent, true))
            }
            None => {
                let purpose = if is_beyond_end {
                    Purpose::Written
                } else {
                    Purpose::BeforeData
                };
                let extent = self.allocate(context, file, block, length, purpose)?;
                if !is_beyond_end {
                    let end = extent.end();
                    self.conversions.push(super::Conversion {
                        file,
                        start: block,
                        end,
                    });
                }
                Ok((extent, true))
            }
        }
    }

    /// Whether fdatasync of a file would have to commit.
    pub(super) fn has_uncommitted_data_change(&self, file: FileId) -> bool {
        let id = self.inode(file).data_sync_id;
        self.journal
            .as_ref()
            .is_some_and(|journal| !journal.is_committed(id))
    }
}
