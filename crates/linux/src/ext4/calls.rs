//! The system calls that ext4 serves.

use super::Ext4;
use super::writeback::Writeback;
use crate::block::FileId;
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileName, FileSystemCalls, FileSystemError};
use crate::operation::{ByteRange, FallocateMode, SyncRangeFlags};
use crate::page_cache::pages_of;
use crate::read_ahead::ReadAhead;

type Outcome<T = ()> = Result<T, FileSystemError>;

impl FileSystemCalls for Ext4 {
    fn size(&self, file: FileId) -> u64 {
        self.inode(file).size
    }

    fn create(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
        kind: FileKind,
    ) -> Outcome {
        self.make_log_space(context)?;
        self.create_file(context, entry, file, kind)
    }

    fn unlink(&mut self, context: &mut CallContext<'_>, entry: &FileName, file: FileId) -> Outcome {
        self.make_log_space(context)?;
        self.unlink_file(context, entry, file)
    }

    fn rename(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        from: &FileName,
        to: &FileName,
        replaced: Option<FileId>,
    ) -> Outcome {
        self.make_log_space(context)?;
        self.rename_file(context, file, from, to, replaced)
    }

    fn evict(&mut self, context: &mut CallContext<'_>, file: FileId) -> Outcome {
        self.make_log_space(context)?;
        self.evict_file(context, file)
    }

    fn open(&mut self, context: &mut CallContext<'_>, file: FileId, is_writer: bool) {
        self.inode_mut(file).writers += u32::from(is_writer);
        // The first open after the mount notes the mount's path in the superblock.
        if !std::mem::replace(&mut self.has_sampled_mount, true) {
            self.dirty_superblock(context);
        }
    }

    fn close(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        was_writer: bool,
        writers: u32,
    ) -> Outcome {
        if std::mem::take(&mut self.inode_mut(file).must_allocate_on_close) {
            self.flush_delayed(context, file)?;
        }
        if was_writer && writers == 0 && self.inode(file).delayed_blocks == 0 {
            self.discard_reserves(file);
        }
        self.inode_mut(file).writers = writers;
        Ok(())
    }

    fn read(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &mut ReadAhead,
    ) -> Outcome {
        self.read_buffered(context, file, range, read_ahead);
        Ok(())
    }

    fn read_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Outcome {
        if self.is_data_journalled() {
            // The flag is dropped; each such read has read-ahead of its own.
            let limits = &self.limits;
            let mut read_ahead = ReadAhead::new(
                limits.read_ahead_kib,
                limits.max_sectors_kib,
                self.host.version.cuts_read_ahead(),
            );
            self.read_buffered(context, file, range, &mut read_ahead);
            return Ok(());
        }
        self.read_past_cache(context, file, range)
    }

    fn write(&mut self, context: &mut CallContext<'_>, file: FileId, range: ByteRange) -> Outcome {
        self.make_log_space(context)?;
        self.write_buffered(context, file, range)
    }

    fn write_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_sync: bool,
    ) -> Outcome<bool> {
        self.make_log_space(context)?;
        if self.is_data_journalled() {
            self.write_buffered(context, file, range)?;
            return Ok(false);
        }
        self.write_past_cache(context, file, range, data_sync)
    }

    fn sync(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_only: bool,
    ) -> Outcome {
        self.sync_file(context, file, range, data_only)
    }

    fn sync_directory(&mut self, context: &mut CallContext<'_>, directory: FileId) -> Outcome {
        self.sync_names(context, directory)
    }

    fn sync_all(&mut self, context: &mut CallContext<'_>) -> Outcome {
        self.sync_everything(context)
    }

    fn sync_range(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        flags: SyncRangeFlags,
    ) -> Outcome {
        if flags.write {
            let is_waited = flags.wait_before && flags.wait_after;
            let mode = if is_waited {
                Writeback::Sync
            } else {
                Writeback::Async
            };
            self.write_pages(context, file, pages_of(range), mode)?;
        }
        if flags.wait_after {
            context.effects.wait();
        }
        Ok(())
    }

    fn drop_pages(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Outcome {
        self.write_and_drop(context, file, range)
    }

    fn prefetch(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &ReadAhead,
    ) -> Outcome {
        self.read_advised(context, file, range, read_ahead);
        Ok(())
    }

    fn fallocate(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        mode: FallocateMode,
        range: ByteRange,
        is_sync: bool,
    ) -> Outcome {
        self.make_log_space(context)?;
        self.change_space(context, file, mode, range, is_sync)
    }

    fn truncate(&mut self, context: &mut CallContext<'_>, file: FileId, size: u64) -> Outcome {
        self.make_log_space(context)?;
        self.set_size(context, file, size)
    }

    fn trim(&mut self, context: &mut CallContext<'_>) -> Outcome {
        self.trim_groups(context);
        Ok(())
    }

    fn unmount(&mut self, context: &mut CallContext<'_>) -> Outcome {
        self.leave(context)
    }

    fn advance(&mut self, context: &mut CallContext<'_>) -> Outcome {
        self.run_timers(context)
    }

    fn next_timer_ns(&self) -> Option<u64> {
        self.next_due_ns()
    }

    fn is_sync(&self) -> bool {
        self.options.mount.is_sync
    }
}
