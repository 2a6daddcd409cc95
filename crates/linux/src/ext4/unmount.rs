//! Unmounting: everything goes home, and the journal is marked empty.

use super::Ext4;
use super::allocator::BlockRun;
use super::journal::Journal;
use crate::block::{BioContent, BioFlags, BioOperation, MetadataKind};
use crate::effect::CallContext;
use crate::file_system::FileSystemError;

/// Kinds of quotas. With delayed allocation each is switched off behind a sync of its own.
const QUOTA_KINDS: usize = 3;

impl Ext4 {
    pub(super) fn leave(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        self.sync_everything(context)?;
        if self.options.mount.has_delayed_allocation {
            for _ in 0..QUOTA_KINDS {
                self.sync_everything(context)?;
            }
        }
        self.commit(context)?;
        self.empty_journal(context)?;
        let durable = self.options.mount.has_barriers;
        let flags = BioFlags {
            sync: true,
            metadata: true,
            fua: durable,
            ..BioFlags::default()
        };
        let content = BioContent::Metadata(MetadataKind::Superblock);
        let run = BlockRun {
            physical: self.geometry.superblock(),
            length: 1,
        };
        context
            .effects
            .submit(self.bio(BioOperation::Write, content, run, flags));
        context.effects.wait();
        Ok(())
    }

    /// Checkpoints all transactions, and marks the journal as empty.
    fn empty_journal(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError> {
        self.empty_log(context)?;
        self.write_dirty_blocks(context, true);
        let fua = self.options.mount.has_barriers;
        if self.journal.as_mut().is_some_and(Journal::mark_empty) {
            let flags = BioFlags {
                fua,
                preflush: fua,
                ..BioFlags::default()
            };
            self.write_journal_superblock(context, flags);
        }
        Ok(())
    }
}
