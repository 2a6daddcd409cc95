//! Activities of tasks that events delimit: work items, commits of journals, throttling, reclaim.

use crate::context::Origin;
use crate::identity::{CommitStep, FunctionAddress, ThreadId, TransactionId, WorkAddress};
use diskperf_spans::Nanoseconds;
use std::collections::{BTreeMap, HashMap};

/// Time from a start to an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// Start of the period.
    pub start: Nanoseconds,
    /// End of the period.
    pub end: Nanoseconds,
}

/// Execution of a work item by a worker of the kernel.
#[derive(Clone, Debug)]
pub(crate) struct WorkItem {
    /// Address of the work item.
    pub(crate) work: WorkAddress,
    /// Function of the work item.
    pub(crate) function: FunctionAddress,
    /// Worker that runs the item.
    pub(crate) thread: ThreadId,
    /// Queueing of the item; `None` where it was not recorded.
    pub(crate) queued: Option<QueuedWork>,
    /// Start and end of the execution.
    pub(crate) period: Period,
}

/// Queueing of a work item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuedWork {
    /// Time at which the item was queued.
    pub(crate) time: Nanoseconds,
    /// Origin that queued the item.
    pub(crate) origin: Origin,
}

/// Commit of a journal's transaction.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    /// Thread of the journal.
    pub(crate) thread: ThreadId,
    /// Number of the transaction.
    pub(crate) transaction: TransactionId,
    /// Steps of the commit, with their starts.
    pub(crate) steps: Vec<(CommitStep, Nanoseconds)>,
}

impl Commit {
    /// Returns the start of the commit's first recorded step.
    pub(crate) fn started_at(&self) -> Nanoseconds {
        self.steps[0].1
    }

    /// Returns the time at which the transaction was durable; `None` if the recording ended before.
    pub(crate) fn ended_at(&self) -> Option<Nanoseconds> {
        let end = self.steps.iter().find(|step| step.0 == CommitStep::End)?;
        Some(end.1)
    }
}

/// Activities of all tasks, in one pass over the events.
#[derive(Debug, Default)]
pub(crate) struct ActivityTracker {
    pub(crate) work_items: Vec<WorkItem>,
    queued_work: HashMap<WorkAddress, QueuedWork>,
    pub(crate) current_work: HashMap<ThreadId, usize>,
    pub(crate) commits: Vec<Commit>,
    current_commits: HashMap<ThreadId, usize>,
    /// Times at which each task was about to sleep since too many pages were dirty.
    pub(crate) dirty_throttles: BTreeMap<ThreadId, Vec<Nanoseconds>>,
    reclaim_starts: HashMap<ThreadId, Nanoseconds>,
    /// Reclaims of memory by each task.
    pub(crate) reclaims: BTreeMap<ThreadId, Vec<Period>>,
}

/// End of what has not ended in the recording.
const NEVER: Nanoseconds = Nanoseconds(u64::MAX);

impl ActivityTracker {
    pub(crate) fn queue_work(&mut self, work: WorkAddress, queued: QueuedWork) {
        self.queued_work.insert(work, queued);
    }

    pub(crate) fn start_work(
        &mut self,
        time: Nanoseconds,
        thread: ThreadId,
        (work, function): (WorkAddress, FunctionAddress),
    ) {
        self.end_work(time, thread);
        self.work_items.push(WorkItem {
            work,
            function,
            thread,
            queued: self.queued_work.remove(&work),
            period: Period {
                start: time,
                end: NEVER,
            },
        });
        self.current_work.insert(thread, self.work_items.len() - 1);
    }

    pub(crate) fn end_work(&mut self, time: Nanoseconds, thread: ThreadId) {
        if let Some(index) = self.current_work.remove(&thread) {
            self.work_items[index].period.end = time;
        }
    }

    pub(crate) fn record_commit_step(
        &mut self,
        time: Nanoseconds,
        thread: ThreadId,
        (transaction, step): (TransactionId, CommitStep),
    ) {
        let current = self.current_commits.get(&thread);
        let index = current.filter(|index| self.commits[**index].transaction == transaction);
        let index = index.copied().unwrap_or_else(|| {
            self.commits.push(Commit {
                thread,
                transaction,
                steps: Vec::new(),
            });
            self.commits.len() - 1
        });
        self.commits[index].steps.push((step, time));
        self.current_commits.insert(thread, index);
    }

    pub(crate) fn record_dirty_throttle(&mut self, time: Nanoseconds, thread: ThreadId) {
        self.dirty_throttles.entry(thread).or_default().push(time);
    }

    pub(crate) fn begin_reclaim(&mut self, time: Nanoseconds, thread: ThreadId) {
        self.reclaim_starts.insert(thread, time);
    }

    pub(crate) fn end_reclaim(&mut self, time: Nanoseconds, thread: ThreadId) {
        if let Some(start) = self.reclaim_starts.remove(&thread) {
            let period = Period { start, end: time };
            self.reclaims.entry(thread).or_default().push(period);
        }
    }
}
