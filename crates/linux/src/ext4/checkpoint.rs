//! Checkpoints: transactions go home, and the log gets free space.

use super::Ext4;
use crate::block::BioFlags;
use crate::effect::CallContext;
use crate::file_system::FileSystemError;
use crate::version::KernelVersion;

impl Ext4 {
    pub(super) fn transaction_blocks_max(&self) -> u64 {
        let is_old = self.host.version < KernelVersion::V6_12;
        self.journal
            .as_ref()
            .map_or(0, |journal| journal.transaction_blocks_max(is_old))
    }

    /// Checkpoints until the log has room for a transaction, as each change does that comes first.
    pub(super) fn make_log_space(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        let needed = self.transaction_blocks_max();
        while self
            .journal
            .as_ref()
            .is_some_and(|journal| journal.space_left() < needed)
        {
            if !self.checkpoint_oldest(context)? {
                break;
            }
        }
        Ok(())
    }

    /// Frees space of the log: moves its tail, or brings its oldest transaction home. Returns
    /// whether there was anything to do.
    fn checkpoint_oldest(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<bool, FileSystemError> {
        if self.move_tail(context) {
            return Ok(true);
        }
        let Some(journal) = &self.journal else {
            return Ok(false);
        };
        let Some(blocks) = journal.oldest_blocks() else {
            return Ok(false);
        };
        let is_running = |block: &u64| {
            journal
                .running()
                .is_some_and(|transaction| transaction.blocks.contains(block))
        };
        if blocks.iter().any(is_running) {
            self.commit(context)?;
            return Ok(true);
        }
        let mut dirty: Vec<u64> = blocks
            .iter()
            .copied()
            .filter(|block| self.dirty_blocks.contains(block))
            .collect();
        dirty.sort_unstable();
        self.write_home(context, &dirty, true);
        context.effects.wait();
        for block in &dirty {
            self.dirty_blocks.remove(block);
        }
        if let Some(journal) = &mut self.journal {
            journal.drop_oldest();
        }
        self.move_tail(context);
        Ok(true)
    }

    /// Moves the tail of the log to its oldest transaction, behind a flush.
    fn move_tail(&mut self, context: &mut CallContext<'_>) -> bool {
        let fua = self.options.mount.has_barriers;
        if !self
            .journal
            .as_mut()
            .is_some_and(|journal| journal.move_tail_to_oldest(0))
        {
            return false;
        }
        if fua {
            self.flush(context);
        }
        self.write_journal_superblock(
            context,
            BioFlags {
                fua,
                ..BioFlags::default()
            },
        );
        true
    }

    /// Brings all transactions home, one by one.
    pub(super) fn empty_log(
        &mut self,
        context: &mut CallContext<'_>,
    ) -> Result<(), FileSystemError> {
        while self
            .journal
            .as_ref()
            .is_some_and(|journal| journal.oldest_blocks().is_some())
        {
            self.checkpoint_oldest(context)?;
        }
        Ok(())
    }
}
