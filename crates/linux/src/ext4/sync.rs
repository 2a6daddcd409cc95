//! fsync, fdatasync, syncfs and the timers.

use super::Ext4;
use super::allocator::BlockRun;
use super::writeback::Writeback;
use crate::block::{Bio, BioContent, BioFlags, BioOperation, FileId};
use crate::effect::{CallContext, Task};
use crate::file_system::FileSystemError;
use crate::operation::ByteRange;
use crate::version::KernelVersion;

impl Ext4 {
    pub(super) fn sync_file(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_only: bool,
    ) -> Result<(), FileSystemError> {
        if !data_only && std::mem::take(&mut self.inode_mut(file).has_lazy_time) {
            self.dirty_inode(context, file);
        }
        self.write_range(context, file, range)?;
        context.effects.wait();
        if self.journal.is_none() {
            self.sync_without_journal(context, file, data_only);
            return Ok(());
        }
        let is_old = self.host.version < KernelVersion::V6_12;
        if self.is_full_journal() && is_old {
            return self.commit(context);
        }
        let inode = self.inode(file);
        let id = if data_only {
            inode.data_sync_id
        } else {
            inode.sync_id
        };
        let needs_flush = self.needs_flush(id);
        self.sync_transaction(context, id)?;
        if needs_flush {
            self.flush(context);
        }
        Ok(())
    }

    pub(super) fn flush(&self, context: &mut CallContext<'_>) {
        context.effects.submit(Bio::flush());
        context.effects.wait();
    }

    /// Writes the blocks of a file's metadata home, and flushes.
    fn sync_without_journal(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        data_only: bool,
    ) {
        let block = self.geometry.inode_block(self.inode(file).number);
        let is_old = self.host.version < KernelVersion::V6_12;
        let inode = self.inode(file);
        let is_marked = if data_only {
            inode.is_listed_data_changed
        } else {
            inode.is_listed_changed
        };
        if (is_marked || !is_old) && self.dirty_blocks.remove(&block) {
            self.write_home(context, &[block], true);
        }
        if self.options.mount.has_barriers && (is_marked || !is_old) {
            self.flush(context);
        }
    }

    pub(super) fn sync_names(
        &mut self,
        context: &mut CallContext<'_>,
        directory: FileId,
    ) -> Result<(), FileSystemError> {
        if self.journal.is_some() {
            // fsync of a directory commits whatever runs.
            return self.commit(context);
        }
        self.sync_without_journal(context, directory, false);
        Ok(())
    }

    /// Writes the dirty data of all files, the inode that is dirty for the longest time first.
    pub(super) fn write_all_data(
        &mut self,
        context: &mut CallContext<'_>,
        is_due: impl Fn(&super::Inode) -> bool,
    ) -> Result<(), FileSystemError> {
        let mut files: Vec<(u64, FileId)> = self
            .inodes
            .iter()
            .filter(|(_, inode)| is_due(inode))
            .filter_map(|(file, inode)| Some((inode.dirty_order?, *file)))
            .collect();
        files.sort_unstable();
        for (_, file) in files {
            self.write_pages(context, file, Self::ALL_PAGES, Writeback::Async)?;
            let inode = self.inode_mut(file);
            inode.dirty_order = None;
            inode.is_listed_changed = false;
            inode.is_listed_data_changed = false;
        }
        Ok(())
    }

    pub(super) fn sync_everything(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        let task = context.effects.switch(Task::Flusher);
        self.write_all_data(context, |_| true)?;
        context.effects.switch(task);
        // The commit is asked for here and waited for below; dirty metadata goes home meanwhile.
        self.write_dirty_blocks(context, false);
        let lazy: Vec<FileId> = self
            .inodes
            .iter()
            .filter(|(_, inode)| inode.has_lazy_time)
            .map(|(file, _)| *file)
            .collect();
        for file in lazy {
            self.inode_mut(file).has_lazy_time = false;
            self.dirty_inode(context, file);
        }
        self.write_journalled_home(context)?;
        let running = self.journal.as_ref().and_then(|journal| journal.running());
        let must_flush = running.is_none() && self.options.mount.has_barriers;
        self.commit(context)?;
        if must_flush {
            self.flush(context);
        }
        self.write_dirty_blocks(context, true);
        context.effects.wait();
        Ok(())
    }

    /// In data=journal on newer kernels, commits the data of all files and writes it home; the
    /// transaction that this starts is empty.
    fn write_journalled_home(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        if !self.is_data_journalled() || self.host.version < KernelVersion::V6_12 {
            return Ok(());
        }
        let files: Vec<FileId> = self
            .inodes
            .keys()
            .filter(|file| self.has_journalled_data(**file) || self.inode(**file).cache.has_dirty())
            .copied()
            .collect();
        for file in files {
            self.write_range(context, file, ByteRange::ALL)?;
            context.effects.wait();
            self.inode_mut(file).dirty_order = None;
            self.running_id(context);
        }
        Ok(())
    }

    /// Writes metadata home, ascending.
    pub(super) fn write_dirty_blocks(&mut self, context: &mut CallContext<'_>, is_sync: bool) {
        self.flusher.forget_metadata();
        let blocks: Vec<u64> = std::mem::take(&mut self.dirty_blocks).into_iter().collect();
        self.write_home(context, &blocks, is_sync);
    }

    pub(super) fn write_home(&self, context: &mut CallContext<'_>, blocks: &[u64], is_sync: bool) {
        let flags = BioFlags {
            sync: is_sync,
            metadata: true,
            ..BioFlags::default()
        };
        context.effects.push(crate::effect::Effect::PlugStart);
        for block in blocks {
            let content = BioContent::Metadata(self.kind(*block));
            let run = BlockRun {
                physical: *block,
                length: 1,
            };
            context
                .effects
                .submit(self.bio(BioOperation::Write, content, run, flags));
        }
        context.effects.push(crate::effect::Effect::PlugFinish);
    }
}
