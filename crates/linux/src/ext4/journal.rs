//! The journal (jbd2): transactions, the blocks that a commit writes, and checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::allocator::BlockRun;
use crate::block::FileId;

/// Bytes of a tag in a descriptor block with checksums and 64-bit numbers.
const TAG_BYTES: u64 = 16;
/// Bytes of the header of a journal block.
const HEADER_BYTES: u64 = 12;
/// Bytes of the checksum at the end of a journal block.
const TAIL_BYTES: u64 = 4;
/// Bytes of a revoke record.
const REVOKE_BYTES: u64 = 8;

/// Blocks of the log that are never counted as free.
const RESERVED_BLOCKS: u64 = 32;

/// Number of a transaction, ascending from 1.
pub(super) type TransactionId = u64;

/// Transaction: changes that reach the device together.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    pub(super) id: TransactionId,
    pub(super) started_ns: u64,
    /// Blocks of metadata, and of data in data=journal.
    pub(super) blocks: BTreeSet<u64>,
    /// The same blocks, in the order in which they joined.
    pub(super) order: Vec<u64>,
    pub(super) revoked: BTreeSet<u64>,
    /// Blocks of files whose dirty pages are written before the commit.
    pub(super) ordered: BTreeMap<FileId, Range<u64>>,
    /// Blocks of files whose data is in the transaction (data=journal).
    pub(super) data: BTreeMap<FileId, BTreeSet<u64>>,
    /// Blocks that may be given away, and are discarded, after the commit.
    pub(super) freed: Vec<BlockRun>,
}

/// Transaction on the journal with blocks that were not seen to be home.
#[derive(Clone, Debug)]
struct Checkpoint {
    id: TransactionId,
    /// First block of the transaction in the log.
    start: u64,
    /// Blocks in the order in which they joined the transaction.
    blocks: Vec<u64>,
}

/// Place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogTail {
    id: TransactionId,
    block: u64,
}

/// Journal of a mounted file system.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    block_bytes: u64,
    /// Runs of blocks that hold the journal. All places below count its blocks from 0.
    runs: Vec<Range<u64>>,
    area: Range<u64>,
    head: u64,
    /// Blocks behind the log for fast commits; empty without the feature.
    fast_area: Range<u64>,
    fast_head: u64,
    next_id: TransactionId,
    committed: TransactionId,
    /// Oldest transaction of the log, as its superblock says.
    tail: TransactionId,
    /// First block of that transaction.
    tail_block: u64,
    /// Whether the superblock of the journal says that it is empty.
    is_empty: bool,
    running: Option<Transaction>,
    checkpoints: Vec<Checkpoint>,
}

/// Blocks that a commit writes to the journal before its commit block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitSize {
    pub(super) revoke_blocks: u64,
    pub(super) descriptor_blocks: u64,
    pub(super) copies: u64,
}

impl CommitSize {
    pub(super) fn blocks(self) -> u64 {
        self.revoke_blocks + self.descriptor_blocks + self.copies
    }
}

impl Transaction {
    /// Adds a block of metadata, or of data in data=journal.
    pub(super) fn add(&mut self, block: u64) {
        if self.blocks.insert(block) {
            self.order.push(block);
        }
        self.revoked.remove(&block);
    }

    /// Takes a block out.
    pub(super) fn remove(&mut self, block: u64) {
        if self.blocks.remove(&block) {
            self.order.retain(|other| *other != block);
        }
    }

    /// Has the commit write the dirty pages of a file's blocks first.
    pub(super) fn order(&mut self, file: FileId, blocks: Range<u64>) {
        let ordered = self.ordered.entry(file).or_insert_with(|| blocks.clone());
        *ordered = ordered.start.min(blocks.start)..ordered.end.max(blocks.end);
    }
}

impl Journal {
    /// Returns an empty journal in `runs`, whose last `fast_blocks` are for fast commits.
    pub(super) fn new(runs: Vec<Range<u64>>, block_bytes: u64, fast_blocks: u64) -> Self {
        let blocks: u64 = runs.iter().map(|run| run.end - run.start).sum();
        let area = 0..blocks - fast_blocks;
        Self {
            block_bytes,
            runs,
            fast_head: area.end,
            fast_area: area.end..blocks,
            head: 1,
            tail_block: 1,
            area,
            next_id: 1,
            committed: 0,
            tail: 1,
            is_empty: true,
            running: None,
            checkpoints: Vec::new(),
        }
    }

    /// Block of the journal's superblock.
    pub(super) fn superblock(&self) -> u64 {
        self.place(0..1).physical
    }

    /// First blocks of a range of the journal that lie together on the device.
    fn place(&self, mut range: Range<u64>) -> BlockRun {
        for run in &self.runs {
            let length = run.end - run.start;
            if range.start < length {
                return BlockRun {
                    physical: run.start + range.start,
                    length: range.end.min(length) - range.start,
                };
            }
            range = range.start - length..range.end - length;
        }
        unreachable!("the journal holds the range")
    }

    pub(super) fn running(&self) -> Option<&Transaction> {
        self.running.as_ref()
    }

    /// Joins the running transaction, or starts one.
    pub(super) fn join(&mut self, now_ns: u64) -> &mut Transaction {
        let next_id = &mut self.next_id;
        self.running.get_or_insert_with(|| {
            *next_id += 1;
            Transaction {
                id: *next_id - 1,
                started_ns: now_ns,
                blocks: BTreeSet::new(),
                order: Vec::new(),
                revoked: BTreeSet::new(),
                ordered: BTreeMap::new(),
                data: BTreeMap::new(),
                freed: Vec::new(),
            }
        })
    }

    pub(super) fn is_committed(&self, id: TransactionId) -> bool {
        id <= self.committed
    }

    /// Takes the running transaction to commit it.
    pub(super) fn begin_commit(&mut self) -> Option<Transaction> {
        self.running.take()
    }

    /// Returns whether the journal's superblock must be written first, and marks it as in use.
    pub(super) fn leave_empty(&mut self) -> bool {
        std::mem::replace(&mut self.is_empty, false)
    }

    /// Number of blocks of a transaction's commit.
    pub(super) fn commit_size(&self, transaction: &Transaction) -> CommitSize {
        let copies = transaction.blocks.len() as u64;
        let room = self.block_bytes - HEADER_BYTES - TAIL_BYTES;
        // The first tag of a descriptor is followed by the journal's identity of 16 bytes.
        let tags = (room - 16 - TAG_BYTES - 16) / TAG_BYTES + 1;
        let revokes = (room - TAIL_BYTES) / REVOKE_BYTES;
        CommitSize {
            revoke_blocks: (transaction.revoked.len() as u64).div_ceil(revokes),
            descriptor_blocks: copies.div_ceil(tags),
            copies,
        }
    }

    /// Takes `count` blocks of the journal; returns the runs, more where it wraps or has a gap.
    pub(super) fn take_blocks(&mut self, count: u64) -> Vec<BlockRun> {
        let mut runs = Vec::new();
        let mut left = count;
        while left > 0 {
            let end = self.area.end.min(self.head + left);
            let run = self.place(self.head..end);
            self.head += run.length;
            left -= run.length;
            runs.push(run);
            if self.head == self.area.end {
                self.head = self.area.start + 1;
            }
        }
        runs
    }

    /// Notes that a transaction is on the device, and that its blocks have to go home.
    pub(super) fn end_commit(&mut self, transaction: &Transaction, start: u64) {
        self.committed = transaction.id;
        self.fast_head = self.fast_area.start;
        for checkpoint in &mut self.checkpoints {
            checkpoint
                .blocks
                .retain(|block| !transaction.blocks.contains(block));
        }
        self.checkpoints.push(Checkpoint {
            id: transaction.id,
            start,
            blocks: transaction.order.clone(),
        });
        self.checkpoints
            .retain(|checkpoint| !checkpoint.blocks.is_empty());
    }

    /// Takes a block for a fast commit. `None` if none is possible: the feature is off, no full
    /// commit was made since the mount, or the area is full.
    pub(super) fn take_fast_block(&mut self) -> Option<BlockRun> {
        if self.committed == 0 || self.fast_head >= self.fast_area.end {
            return None;
        }
        self.fast_head += 1;
        Some(self.place(self.fast_head - 1..self.fast_head))
    }

    /// Drops a block from all checkpoints, as its content is of no use.
    pub(super) fn forget(&mut self, block: u64) {
        for checkpoint in &mut self.checkpoints {
            checkpoint.blocks.retain(|other| *other != block);
        }
        self.checkpoints
            .retain(|checkpoint| !checkpoint.blocks.is_empty());
    }

    /// Drops the oldest transactions that are all home. Looks at a transaction's blocks from the
    /// first that joined, and stops at one that is busy.
    pub(super) fn drop_finished(&mut self, is_busy: impl Fn(u64) -> bool) {
        while let Some(oldest) = self.checkpoints.first_mut() {
            let busy = oldest.blocks.iter().position(|block| is_busy(*block));
            if let Some(index) = busy {
                oldest.blocks.drain(..index);
                return;
            }
            self.checkpoints.remove(0);
        }
    }

    /// Oldest transaction that the log must keep, and its first block.
    fn oldest(&self) -> LogTail {
        let oldest = self.checkpoints.first();
        let next = LogTail {
            id: self.next_id,
            block: self.head,
        };
        oldest.map_or(next, |oldest| LogTail {
            id: oldest.id,
            block: oldest.start,
        })
    }

    /// Blocks of the log from `from` up to `to`, around its end.
    fn distance(&self, from: u64, to: u64) -> u64 {
        let blocks = self.area.end - self.area.start - 1;
        (to + blocks - from) % blocks
    }

    /// Place of the next block of the log.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    /// Free blocks of the log that a transaction may count on.
    pub(super) fn space_left(&self) -> u64 {
        let blocks = self.area.end - self.area.start - 1;
        let used = self.distance(self.tail_block, self.head);
        (blocks - used).saturating_sub(RESERVED_BLOCKS)
    }

    /// Blocks of the largest transaction: a third of the log, or a quarter before 6.12.
    pub(super) fn transaction_blocks_max(&self, is_old: bool) -> u64 {
        (self.area.end - self.area.start) / if is_old { 4 } else { 3 }
    }

    /// Moves the tail of the log to the oldest transaction, if that frees at least `freed_min`
    /// blocks; returns whether the journal's superblock must be written.
    pub(super) fn move_tail_to_oldest(&mut self, freed_min: u64) -> bool {
        let oldest = self.oldest();
        let freed = self.distance(self.tail_block, oldest.block);
        if oldest.id <= self.tail || freed < freed_min {
            return false;
        }
        self.tail = oldest.id;
        self.tail_block = oldest.block;
        true
    }

    /// Blocks of the oldest transaction of the log. `None`: the log is empty.
    pub(super) fn oldest_blocks(&self) -> Option<&[u64]> {
        self.checkpoints.first().map(|oldest| &oldest.blocks[..])
    }

    /// Drops the oldest transaction, as its blocks are home.
    pub(super) fn drop_oldest(&mut self) {
        self.checkpoints.remove(0);
    }

    /// Marks the journal as empty; returns whether its superblock must be written for it.
    pub(super) fn mark_empty(&mut self) -> bool {
        !std::mem::replace(&mut self.is_empty, true)
    }
}
