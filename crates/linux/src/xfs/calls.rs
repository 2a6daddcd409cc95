//! System calls of XFS.

use crate::block::FileId;
use crate::effect::CallContext;
use crate::file_system::{FileKind, FileName, FileSystemCalls, FileSystemError};
use crate::operation::{ByteRange, FallocateMode, SyncRangeFlags};
use crate::page_cache::{PAGE_BYTES, pages_of};
use crate::read_ahead::ReadAhead;
use crate::xfs::Xfs;

impl FileSystemCalls for Xfs {
    fn size(&self, file: FileId) -> u64 {
        self.inode(file).size
    }

    fn create(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
        kind: FileKind,
    ) -> Result<(), FileSystemError> {
        self.create_file(context, entry, file, kind)
    }

    fn unlink(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        self.remove_name(context, entry, file)
    }

    fn rename(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        from: &FileName,
        to: &FileName,
        replaced: Option<FileId>,
    ) -> Result<(), FileSystemError> {
        self.move_name(context, file, from, to, replaced)
    }

    fn evict(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
    ) -> Result<(), FileSystemError> {
        self.queue_inactive(context, file);
        Ok(())
    }

    fn open(&mut self, _context: &mut CallContext<'_>, _file: FileId, _is_writer: bool) {}

    fn close(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        was_writer: bool,
        _writers: u32,
    ) -> Result<(), FileSystemError> {
        self.release(context, file, was_writer)
    }

    fn read(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &mut ReadAhead,
    ) -> Result<(), FileSystemError> {
        self.read_cached(context, file, range, read_ahead, false);
        self.note_access(context, file)
    }

    fn read_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        self.read_past_cache(context, file, range)
    }

    fn write(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        self.write_cached(context, file, range)?;
        self.metadata_reads.submit(context.effects);
        Ok(())
    }

    fn write_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_sync: bool,
    ) -> Result<bool, FileSystemError> {
        self.write_past_cache(context, file, range, data_sync)
    }

    fn sync(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_only: bool,
    ) -> Result<(), FileSystemError> {
        self.sync_file(context, file, range, data_only)
    }

    fn sync_directory(
        &mut self,
        context: &mut CallContext<'_>,
        directory: FileId,
    ) -> Result<(), FileSystemError> {
        self.force_log_of(context, directory);
        Ok(())
    }

    fn sync_all(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        self.sync_file_system(context)
    }

    fn sync_range(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        flags: SyncRangeFlags,
    ) -> Result<(), FileSystemError> {
        if flags.write {
            let is_sync = flags.wait_before && flags.wait_after;
            self.write_back(context, file, pages_of(range), is_sync)?;
        }
        if flags.wait_before || flags.wait_after {
            context.effects.wait();
        }
        Ok(())
    }

    fn drop_pages(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError> {
        let whole = range.offset.div_ceil(PAGE_BYTES)..range.end() / PAGE_BYTES;
        if whole.start < whole.end {
            self.inode_mut(file).cache.drop_clean(whole);
        }
        self.write_back(context, file, pages_of(range), false)
    }

    fn prefetch(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &ReadAhead,
    ) -> Result<(), FileSystemError> {
        self.read_cached(context, file, range, &mut read_ahead.clone(), true);
        Ok(())
    }

    fn fallocate(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        mode: FallocateMode,
        range: ByteRange,
        is_sync: bool,
    ) -> Result<(), FileSystemError> {
        self.change_space(context, file, mode, range)?;
        self.metadata_reads.submit(context.effects);
        if is_sync || self.options.mount.is_wsync {
            self.force_log_of(context, file);
        }
        Ok(())
    }

    fn truncate(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        size: u64,
    ) -> Result<(), FileSystemError> {
        self.set_size(context, file, size)
    }

    fn trim(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        self.discard_free(context);
        Ok(())
    }

    fn unmount(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        self.leave(context)
    }

    fn advance(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        self.run_workers(context)
    }

    fn next_timer_ns(&self) -> Option<u64> {
        Some(self.next_worker_ns())
    }

    fn is_sync(&self) -> bool {
        false
    }
}
