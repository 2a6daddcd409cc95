//! Commits of the journal.

use std::collections::BTreeMap;

use super::allocator::BlockRun;
use super::geometry::Geometry;
use super::journal::{Journal, Transaction, TransactionId};
use super::writeback::Writeback;
use super::{DataMode, Ext4};
use crate::block::{Bio, BioContent, BioFlags, BioOperation, MetadataKind};
use crate::effect::{CallContext, Effect, Task};
use crate::file_system::FileSystemError;
use crate::page_cache::PAGE_BYTES;

impl Ext4 {
    /// Commits the running transaction, if there is one, and waits.
    pub(super) fn commit(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let Some(transaction) = journal.begin_commit() else {
            return Ok(());
        };
        let must_write_superblock = journal.leave_empty();
        let task = context.effects.switch(Task::Journal);
        if must_write_superblock {
            self.write_journal_superblock(context, BioFlags::default());
        }
        if let Some(journal) = &mut self.journal {
            let (blocks, data) = (&self.dirty_blocks, &self.dirty_data_blocks);
            journal.drop_finished(|block| {
                transaction.blocks.contains(&block)
                    || blocks.contains(&block)
                    || data.contains(&block)
            });
        }
        self.write_ordered(context, &transaction)?;
        let start = self.journal.as_ref().map_or(0, Journal::head);
        let blocks_max = self.transaction_blocks_max();
        let moves_tail = self
            .journal
            .as_mut()
            .is_some_and(|journal| journal.move_tail_to_oldest(blocks_max));
        self.write_commit(context, &transaction);
        if moves_tail {
            let fua = self.options.mount.has_barriers;
            self.write_journal_superblock(
                context,
                BioFlags {
                    fua,
                    ..BioFlags::default()
                },
            );
        }
        if let Some(journal) = &mut self.journal {
            journal.end_commit(&transaction, start);
        }
        self.finish_commit(context, transaction);
        context.effects.switch(task);
        context.effects.wait();
        Ok(())
    }

    /// Commits the running transaction if `id` is not committed.
    pub(super) fn commit_up_to(
        &mut self,
        context: &mut CallContext<'_>,
        id: TransactionId,
    ) -> Result<(), FileSystemError> {
        let is_needed = self
            .journal
            .as_ref()
            .is_some_and(|journal| !journal.is_committed(id));
        if is_needed {
            self.commit(context)
        } else {
            Ok(())
        }
    }

    /// Makes `id` durable: by a fast commit if that is possible, else by a full one.
    pub(super) fn sync_transaction(
        &mut self,
        context: &mut CallContext<'_>,
        id: TransactionId,
    ) -> Result<(), FileSystemError> {
        let durable = self.options.mount.has_barriers;
        let Some(journal) = &mut self.journal else {
            return Ok(());
        };
        let is_fast = self.options.make.has_fast_commit
            && self.options.mount.data != DataMode::Journal
            && !journal.is_committed(id);
        // One block holds the changes of some twenty files.
        match is_fast.then(|| journal.take_fast_block()).flatten() {
            None => self.commit_up_to(context, id),
            Some(run) => {
                let flags = BioFlags {
                    preflush: durable,
                    fua: durable,
                    sync: true,
                    metadata: true,
                    read_ahead: false,
                };
                let bio = self.journal_bio(run, flags);
                context.effects.submit(bio);
                context.effects.wait();
                Ok(())
            }
        }
    }

    /// Writes the journal's superblock and waits.
    pub(super) fn write_journal_superblock(&self, context: &mut CallContext<'_>, flags: BioFlags) {
        let Some(journal) = &self.journal else { return };
        let flags = BioFlags {
            sync: true,
            metadata: true,
            ..flags
        };
        let content = BioContent::Metadata(MetadataKind::JournalSuperblock);
        let run = BlockRun {
            physical: journal.superblock(),
            length: 1,
        };
        context
            .effects
            .submit(self.bio(BioOperation::Write, content, run, flags));
        context.effects.wait();
    }

    /// Writes the data that must be on the device before the transaction.
    fn write_ordered(
        &mut self,
        context: &mut CallContext<'_>,
        transaction: &Transaction,
    ) -> Result<(), FileSystemError> {
        let per_page = PAGE_BYTES / self.geometry.block_bytes;
        for (file, blocks) in &transaction.ordered {
            if self.inodes.contains_key(file) {
                let pages = blocks.start / per_page..blocks.end.div_ceil(per_page);
                self.write_pages(context, *file, pages, Writeback::Commit)?;
            }
        }
        if !transaction.ordered.is_empty() {
            context.effects.wait();
        }
        Ok(())
    }

    /// Writes the transaction's blocks, and then its commit block.
    fn write_commit(&mut self, context: &mut CallContext<'_>, transaction: &Transaction) {
        let mount = self.options.mount;
        let Some(journal) = &mut self.journal else {
            return;
        };
        let blocks = journal.commit_size(transaction).blocks();
        let runs = journal.take_blocks(blocks);
        let commit = journal.take_blocks(1);
        let plain = BioFlags {
            sync: true,
            metadata: true,
            ..BioFlags::default()
        };
        let is_durable = mount.has_barriers && !mount.is_async_commit;
        let last = BioFlags {
            preflush: is_durable,
            fua: is_durable,
            ..plain
        };
        context.effects.push(Effect::PlugStart);
        for run in runs {
            let bio = self.journal_bio(run, plain);
            context.effects.submit(bio);
        }
        if !mount.is_async_commit {
            context.effects.push(Effect::PlugFinish);
            context.effects.wait();
        }
        for run in commit {
            let bio = self.journal_bio(run, last);
            context.effects.submit(bio);
        }
        if mount.is_async_commit {
            context.effects.push(Effect::PlugFinish);
        }
        context.effects.wait();
        if mount.is_async_commit && mount.has_barriers {
            context.effects.submit(Bio::flush());
            context.effects.wait();
        }
    }

    pub(super) fn journal_bio(&self, run: BlockRun, flags: BioFlags) -> Bio {
        self.bio(BioOperation::Write, BioContent::Journal, run, flags)
    }

    /// Blocks of the transaction have to go home now; freed blocks may be given away.
    fn finish_commit(&mut self, context: &mut CallContext<'_>, transaction: Transaction) {
        let mut data = BTreeMap::new();
        for (file, blocks) in &transaction.data {
            let Some(inode) = self.inodes.get(file) else {
                continue;
            };
            for block in blocks {
                if let Some(extent) = inode.extents.find(*block) {
                    data.insert(extent.physical_at(*block), (*file, *block));
                }
            }
        }
        // The commit looks at its blocks from the last on.
        for physical in transaction.order.iter().rev() {
            if let Some((file, block)) = data.get(physical) {
                self.inode_mut(*file).cache.set_dirty(*block..*block + 1);
                self.list_dirty(context, *file);
            }
        }
        self.dirty_data_blocks.extend(data.keys());
        if !transaction.blocks.is_empty() {
            self.flusher.note_metadata(&self.host, context.now_ns);
        }
        let is_home = |block: &&u64| !data.contains_key(*block);
        self.dirty_blocks
            .extend(transaction.blocks.iter().filter(is_home));
        for run in join_runs(transaction.freed, &self.geometry) {
            if self.options.mount.discards {
                self.discard(context, run);
            }
            self.allocator.release(run);
        }
    }

    /// Whether a flush by itself must follow when no commit is needed for `id`.
    pub(super) fn needs_flush(&self, id: TransactionId) -> bool {
        let is_committed = self
            .journal
            .as_ref()
            .is_none_or(|journal| journal.is_committed(id));
        self.options.mount.has_barriers && is_committed
    }

    /// Whether data goes through the journal, so that the transaction itself has it.
    pub(super) fn is_full_journal(&self) -> bool {
        self.options.mount.data == DataMode::Journal
    }
}

/// Sorts runs and joins those that touch and lie in one group.
fn join_runs(mut runs: Vec<BlockRun>, geometry: &Geometry) -> Vec<BlockRun> {
    runs.sort_by_key(|run| run.physical);
    let mut joined: Vec<BlockRun> = Vec::new();
    let group = |run: &BlockRun| geometry.group_of_block(run.physical);
    for run in runs {
        match joined.last_mut() {
            Some(last)
                if last.physical + last.length == run.physical && group(last) == group(&run) =>
            {
                last.length += run.length;
            }
            _ => joined.push(run),
        }
    }
    joined
}
