//! Write-ahead log: consecutive records in a file that a sync makes durable.

use crate::blocks::{ensure_file, pause_for_think_time, remove_file};
use crate::load::SyncCall;
use crate::load::pace::IssuePace;
use crate::program::ProgramError;
use crate::ring::IoRing;
use crate::worker::Worker;
use diskperf_system::{CommittedTransaction, File, IoOperation, Submission, System};
use diskperf_timeline::Nanoseconds;

pub(crate) struct LogFile {
    pub(crate) file_path: String,
    /// Length of the log in bytes. After its end, records continue at its start.
    pub(crate) file_bytes: u64,
    /// Whether the log file has its full length from the start.
    pub(crate) is_preallocated: bool,
}

impl LogFile {
    /// Creates the log file at its full length, or removes it if it must not exist yet.
    pub(crate) async fn prepare(
        &self,
        (system, worker): (&mut System, &Worker),
    ) -> Result<(), ProgramError> {
        match self.is_preallocated {
            true => ensure_file(system, worker, &self.file_path, self.file_bytes).await,
            false => remove_file(system, worker.medium, &self.file_path).await,
        }
    }
}

/// Log that a worker writes through its ring.
pub(crate) struct AppendLog {
    log_file: File,
    /// Index of the log file among the files of the ring.
    file_index: usize,
    file_bytes: u64,
    sync_call: SyncCall,
    next_offset_bytes: u64,
    pending_records: Vec<Submission>,
}

impl AppendLog {
    /// Creates a log of at most `bytes` in an open file. `index` is the file's index among the
    /// files of the ring.
    pub(crate) fn new((file, index): (File, usize), bytes: u64, sync_call: SyncCall) -> Self {
        Self {
            log_file: file,
            file_index: index,
            file_bytes: bytes,
            sync_call,
            next_offset_bytes: 0,
            pending_records: Vec::new(),
        }
    }

    /// Adds a record to the next commit.
    pub(crate) fn append_record(&mut self, bytes: u32) {
        if self.next_offset_bytes + u64::from(bytes) > self.file_bytes {
            self.next_offset_bytes = 0;
        }
        self.pending_records.push(Submission {
            operation: IoOperation::Write,
            file: self.log_file,
            offset_bytes: self.next_offset_bytes,
            bytes,
            slot: 0,
            intended_start: None,
        });
        self.next_offset_bytes += u64::from(bytes);
    }

    /// Writes the records, syncs them, and counts the commit. In an open loop, its latency counts
    /// from its arrival. Nothing else may be in flight.
    pub(crate) async fn commit_records(
        &mut self,
        ring: &mut IoRing<'_>,
        worker: &Worker,
        start: CommitStart,
    ) -> Result<(), ProgramError> {
        let begin = ring.target_system.now();
        let sync = Submission {
            operation: self.sync_call.sync_operation(),
            offset_bytes: 0,
            bytes: 0,
            ..self.pending_records[0]
        };
        ring.issue_all(self.file_index, &self.pending_records)
            .await?;
        ring.issue_all(self.file_index, &[sync]).await?;
        let bytes = self
            .pending_records
            .iter()
            .map(|record| u64::from(record.bytes));
        ring.target_system.count_commit(CommittedTransaction {
            bytes: bytes.sum(),
            response_time: ring
                .target_system
                .now()
                .since(start.arrival_time.unwrap_or(begin)),
            arrival_lag: start.arrival_lag,
        });
        self.pending_records.clear();
        pause_for_think_time(ring.target_system, worker.think_time).await
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitStart {
    /// Arrival time by the clock, or `None` in a closed loop.
    arrival_time: Option<Nanoseconds>,
    /// Time from the arrival to the start of the commit, or `None` in a closed loop.
    arrival_lag: Option<Nanoseconds>,
}

/// Waits until a worker's next commit is due. Returns `None` if there are no more commits. Commits
/// that have arrived by then and are never started count as unfinished.
pub(crate) async fn wait_for_next_commit(
    pace: &mut IssuePace,
    ring: &mut IoRing<'_>,
) -> Result<Option<CommitStart>, ProgramError> {
    loop {
        let now = ring.target_system.now();
        pace.end_ramp(now, ring.target_system)?;
        if let Some(arrival) = pace.next_issue_time(now) {
            let lag = arrival.map(|arrival| now.since(arrival));
            return Ok(Some(CommitStart {
                arrival_time: arrival,
                arrival_lag: lag,
            }));
        }
        let Some(moment) = pace.next_due_time(now) else {
            break;
        };
        // Who would be woken late looks at the clock again and again.
        let at_least = usize::from(!ring.target_system.may_wake_late());
        let slots = &mut ring.slots;
        slots
            .reap_completions(ring.target_system, at_least, Some(moment))
            .await?;
    }
    while let Some(intended) = pace.abandoned_arrival() {
        pace.count_issued(0);
        ring.target_system.count_uncommitted(intended);
    }
    Ok(None)
}
