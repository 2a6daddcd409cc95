//! Durability of changes: fsync, syncfs, unmounting, and the workers that run by time.

use crate::block::{Bio, BioContent, BioFlags, BioOperation, FileId};
use crate::effect::{CallContext, Effect, Task};
use crate::file_system::FileSystemError;
use crate::operation::ByteRange;
use crate::page_cache::{PAGE_BYTES, pages_of};
use crate::version::KernelVersion;
use crate::xfs::geometry::MetadataBuffer;
use crate::xfs::inode::InodeChange;
use crate::xfs::{DirtyFile, LOG_WORKER_PERIOD_NS, Xfs, discard};

/// Period of the flusher (`vm.dirty_writeback_centisecs`).
const FLUSHER_PERIOD_NS: u64 = 5_000_000_000;
/// Age at which the flusher writes dirty pages (`vm.dirty_expire_centisecs`).
const DIRTY_EXPIRE_NS: u64 = 30_000_000_000;

impl Xfs {
    /// Makes a file durable: its data, then the log if it holds changes of the inode, else a flush.
    pub(super) fn sync_file(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_only: bool,
    ) -> Result<(), FileSystemError> {
        if !data_only && self.inode(file).has_lazy_times {
            self.log_inode(file, InodeChange::Times)?;
        }
        self.write_back(context, file, pages_of(range), true)?;
        context.effects.wait();
        let has_sticky_mark = self.has_sticky_sync_mark();
        let checkpoint = self.log.checkpoint();
        let inode = self.inode_mut(file);
        inode.was_truncated = false;
        let needs_log = if data_only {
            inode.needs_data_sync(checkpoint, has_sticky_mark)
        } else {
            inode.is_pinned(checkpoint)
        };
        if needs_log {
            inode.note_synced();
            self.force_log(context);
        } else {
            context.effects.submit(Bio::flush());
            context.effects.wait();
        }
        Ok(())
    }

    /// Writes all dirty data, then the log.
    pub(super) fn sync_file_system(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        let dirty_files = std::mem::take(&mut self.dirty_files);
        self.flush_files(context, &dirty_files)?;
        self.flusher_ns = None;
        context.effects.wait();
        let lazy = self.files.iter().filter(|(_, inode)| inode.has_lazy_times);
        for file in lazy.map(|(file, _)| *file).collect::<Vec<_>>() {
            self.log_inode(file, InodeChange::Times)?;
        }
        self.force_log(context);
        Ok(())
    }

    /// Writes everything home: data, the log, inodes that were inactive, metadata in place, two
    /// records of the superblock that cover the log, and the record of the unmount.
    pub(super) fn leave(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        self.sync_file_system(context)?;
        let files: Vec<FileId> = self.files.keys().copied().collect();
        for file in files {
            if self.inode(file).is_linked {
                self.inactivate(file)?;
            }
        }
        self.run_inactive()?;
        self.force_log(context);
        self.write_metadata(context, u64::MAX);
        self.log.needs_cover();
        self.write_cover(context);
        while self.log.needs_cover() {
            self.write_cover(context);
        }
        self.log.write_unmount_record(context.effects);
        context.effects.submit(Bio::flush());
        context.effects.wait();
        Ok(())
    }

    fn write_cover(&mut self, context: &mut CallContext<'_>) {
        self.log.add_superblock();
        self.force_log(context);
        self.write_metadata(context, u64::MAX);
    }

    /// Writes metadata in place that was logged at or before `place`, ascending on the device.
    pub(super) fn write_metadata(&mut self, context: &mut CallContext<'_>, place: u64) {
        let caller = context.effects.switch(Task::Worker);
        let due = self.log.take_metadata(place);
        for MetadataBuffer {
            sector,
            sectors,
            kind,
        } in &due
        {
            context.effects.submit(Bio {
                operation: BioOperation::Write,
                content: BioContent::Metadata(*kind),
                sector: *sector,
                sectors: *sectors,
                segments: 1,
                flags: BioFlags {
                    metadata: true,
                    ..BioFlags::default()
                },
            });
        }
        context.effects.wait();
        context.effects.switch(caller);
        for inode in self.files.values_mut() {
            let cluster = self
                .geometry
                .inode_cluster(inode.number.group, inode.number.index);
            if due.binary_search(&cluster).is_ok() {
                inode.note_written_in_place();
            }
        }
    }

    /// Discards all free extents, in each group the longest first. 6.18 takes the last group in
    /// the order of blocks, because a trim of the whole device ends before the last block.
    pub(super) fn discard_free(&mut self, context: &mut CallContext<'_>) {
        self.force_log(context);
        for (group, members) in self.groups.iter().enumerate() {
            let is_last = group + 1 == self.groups.len();
            let mut extents = members.space.by_length();
            let mut tree = self.geometry.by_count_root(group as u64);
            extents.reverse();
            if is_last && self.version >= KernelVersion::V6_18 {
                tree = self.geometry.by_block_root(group as u64);
                extents.sort_by_key(|extent| extent.first);
            }
            self.metadata_reads.need(tree);
            self.metadata_reads.submit(context.effects);
            for extent in extents {
                let discard = discard(&self.geometry, group as u64, extent);
                context.effects.submit(discard);
            }
        }
        context.effects.wait();
    }

    /// Starts the flusher's timer if it does not run.
    pub(super) fn start_flusher(&mut self, now_ns: u64) {
        self.flusher_ns.get_or_insert(now_ns + FLUSHER_PERIOD_NS);
    }

    /// Earliest time at which a worker has something to do.
    pub(super) fn next_worker_ns(&self) -> u64 {
        let inactive = self.inactive.iter().map(|waiting| waiting.due_ns);
        let timers = inactive.chain(self.flusher_ns);
        timers.min().unwrap_or(u64::MAX).min(self.log_worker_ns)
    }

    /// Runs the workers that are due.
    pub(super) fn run_workers(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        let now_ns = context.now_ns;
        if self.inactive.iter().any(|waiting| waiting.due_ns <= now_ns) {
            self.run_inactive()?;
        }
        self.metadata_reads.submit(context.effects);
        if self.flusher_ns.is_some_and(|due| due <= now_ns) {
            self.run_flusher(context)?;
        }
        if self.log_worker_ns <= now_ns {
            self.log_worker_ns = now_ns + LOG_WORKER_PERIOD_NS;
            if self.log.needs_cover() {
                self.write_cover(context);
            } else {
                self.force_log(context);
                self.write_metadata(context, u64::MAX);
            }
        }
        Ok(())
    }

    /// Writes files as the flusher does, in one plug.
    fn flush_files(
        &mut self,
        context: &mut CallContext<'_>,
        files: &[DirtyFile],
    ) -> Result<(), FileSystemError> {
        if files.is_empty() {
            return Ok(());
        }
        let caller = context.effects.switch(Task::Flusher);
        context.effects.push(Effect::PlugStart);
        for dirty in files {
            self.inode_mut(dirty.file).is_on_dirty_list = false;
            self.write_back(context, dirty.file, 0..u64::MAX / PAGE_BYTES, false)?;
        }
        context.effects.push(Effect::PlugFinish);
        context.effects.switch(caller);
        Ok(())
    }

    /// Writes files that have been dirty for long, and sets the flusher's next run. Before 6.12, a
    /// device to which no page was written has no share of the dirty pages that are allowed, so
    /// that the first run writes all.
    fn run_flusher(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        let now_ns = context.now_ns;
        let writes_all = self.version < KernelVersion::V6_12 && !self.has_written_back;
        let is_old = |since_ns: u64| writes_all || since_ns + DIRTY_EXPIRE_NS <= now_ns;
        let due = self
            .dirty_files
            .iter()
            .filter(|dirty| is_old(dirty.since_ns));
        let due: Vec<DirtyFile> = due.copied().collect();
        self.flush_files(context, &due)?;
        self.dirty_files.retain(|dirty| !is_old(dirty.since_ns));
        let has_dirty = !self.dirty_files.is_empty();
        self.flusher_ns = has_dirty.then_some(now_ns + FLUSHER_PERIOD_NS);
        Ok(())
    }
}
