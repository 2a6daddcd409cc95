//! Chains: the stages of an operation from its start to its end, each instant once.

use crate::activities::Period;
use crate::identity::{CallKind, FunctionAddress, KernelDevice, OperationNumber, ThreadId};
use diskperf_spans::{Nanoseconds, Stage};

/// Purpose that a part of an operation's time serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Work of the calling task itself.
    Call,
    /// Read of data or metadata from a device.
    Read,
    /// Write of file data.
    Data,
    /// Write of blocks to the log of a journal.
    LogBlocks,
    /// Write of the block that makes a transaction valid, with the flushes around it.
    CommitBlock,
    /// Work of a journal's thread for the transaction that is waited for.
    Commit,
    /// Work of a journal's thread for an earlier transaction.
    EarlierCommit,
    /// Write of metadata in place.
    Metadata,
    /// Flush of a device that the file system asks for after its data.
    Flush,
    /// Work of a kernel worker.
    Worker,
    /// Work of another task, which holds a lock or does what is waited for.
    OtherTask,
}

impl Purpose {
    /// Every purpose, in the order in which tables list them.
    pub const ALL: [Self; 11] = [
        Self::Call,
        Self::Read,
        Self::Data,
        Self::LogBlocks,
        Self::CommitBlock,
        Self::Commit,
        Self::EarlierCommit,
        Self::Metadata,
        Self::Flush,
        Self::Worker,
        Self::OtherTask,
    ];

    /// Returns the name of the purpose for documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Read => "read",
            Self::Data => "data_write",
            Self::LogBlocks => "log_blocks",
            Self::CommitBlock => "commit_block",
            Self::Commit => "commit",
            Self::EarlierCommit => "earlier_commit",
            Self::Metadata => "metadata_write",
            Self::Flush => "flush",
            Self::Worker => "kernel_worker",
            Self::OtherTask => "other_task",
        }
    }
}

/// Part of a chain: one stage, with the task and the device that it happens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainLink {
    /// Start of the link: the end of the one before.
    pub start: Nanoseconds,
    /// End of the link.
    pub end: Nanoseconds,
    /// Stage that spent the time.
    pub stage: Stage,
    /// Purpose of the time.
    pub purpose: Purpose,
    /// Task whose state or request this is.
    pub thread: ThreadId,
    /// Device that served the request; `None` outside requests.
    pub device: Option<KernelDevice>,
    /// Function of the work item that the task ran; `None` outside work items.
    pub function: Option<FunctionAddress>,
}

impl ChainLink {
    /// Returns the length of the link.
    pub fn duration(&self) -> Nanoseconds {
        self.end.since(self.start)
    }

    fn continues(&self, earlier: &Self) -> bool {
        earlier.end == self.start
            && Self {
                start: earlier.start,
                end: earlier.end,
                ..*self
            } == *earlier
    }
}

/// Operation of a task: one system call on files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOperation {
    /// Number of the operation.
    pub number: OperationNumber,
    /// Task that made the call.
    pub thread: ThreadId,
    /// Kind of the call.
    pub call: CallKind,
    /// Start of the operation.
    pub start: Nanoseconds,
    /// End of the operation.
    pub end: Nanoseconds,
}

/// Chain of stages of one period of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Links in order of time, each of which starts at the end of the one before.
    links: Vec<ChainLink>,
    /// Whether events were lost in the period, or some that must be there are missing.
    pub is_incomplete: bool,
}

impl Chain {
    /// Builds the chain of a period from its links.
    ///
    /// # Panics
    ///
    /// If the links do not tile the period.
    pub(crate) fn from_links(period: Period, links: Vec<ChainLink>, is_incomplete: bool) -> Self {
        let mut merged: Vec<ChainLink> = Vec::with_capacity(links.len());
        let mut at = period.start;
        for link in links {
            assert!(
                link.start == at && link.end >= at,
                "a link of {:?} is from {:?} to {:?}, and the one before ends at {at:?}",
                link.stage,
                link.start,
                link.end
            );
            at = link.end;
            match merged.last_mut() {
                _ if link.start == link.end => {}
                Some(last) if link.continues(last) => last.end = link.end,
                _ => merged.push(link),
            }
        }
        assert!(
            at == period.end,
            "the links end at {at:?}, not at {:?}",
            period.end
        );
        Self {
            links: merged,
            is_incomplete,
        }
    }

    /// Returns the links in order of time.
    pub fn links(&self) -> &[ChainLink] {
        &self.links
    }

    /// Returns the time between the start and the end of the chain.
    pub fn duration(&self) -> Nanoseconds {
        self.links.iter().map(ChainLink::duration).sum()
    }
}
