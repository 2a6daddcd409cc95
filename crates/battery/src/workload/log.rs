//! A write-ahead log: records behind each other in a file, made durable by a sync.

use crate::blocks::{ensure_file, pause, remove_file};
use crate::load::SyncCall;
use crate::load::slots::Slots;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{File, Operation, Submission, System};

/// The file of a log.
pub(crate) struct LogFile {
    pub(crate) path: String,
    /// Of the whole log: behind its end, records begin at its front again.
    pub(crate) bytes: u64,
    /// Whether it is there from the start.
    pub(crate) preallocated: bool,
}

impl LogFile {
    /// Makes it, or sees that it is not there.
    pub(crate) async fn prepare(
        &self,
        (system, worker): (&mut System, &Worker),
    ) -> Result<(), ProgramError> {
        match self.preallocated {
            true => ensure_file(system, worker, &self.path, self.bytes).await,
            false => remove_file(system, worker.medium, &self.path).await,
        }
    }
}

/// A log that is being written, by the worker's ring.
pub(crate) struct Log {
    file: File,
    path: String,
    bytes: u64,
    sync_call: SyncCall,
    next_bytes: u64,
    records: Vec<Submission>,
}

impl Log {
    /// A log in an open file, of so many bytes at most.
    pub(crate) fn new((file, path): (File, String), bytes: u64, sync_call: SyncCall) -> Self {
        Self {
            file,
            path,
            bytes,
            sync_call,
            next_bytes: 0,
            records: Vec::new(),
        }
    }

    /// Adds a record to the next commit.
    pub(crate) fn append(&mut self, bytes: u32) {
        if self.next_bytes + u64::from(bytes) > self.bytes {
            self.next_bytes = 0;
        }
        self.records.push(Submission {
            operation: Operation::Write,
            file: self.file,
            offset_bytes: self.next_bytes,
            bytes,
            slot: 0,
            intended: None,
        });
        self.next_bytes += u64::from(bytes);
    }

    /// Writes the records, syncs, and counts the commit. Nothing else may be under way.
    pub(crate) async fn commit(
        &mut self,
        (system, worker): (&mut System, &Worker),
        slots: &mut Slots,
    ) -> Result<(), ProgramError> {
        let begin = system.now();
        let sync = Submission {
            operation: self.sync_call.operation(),
            offset_bytes: 0,
            bytes: 0,
            ..self.records[0]
        };
        slots.carry_out((system, &self.path), &self.records).await?;
        slots.carry_out((system, &self.path), &[sync]).await?;
        let bytes = self.records.iter().map(|record| u64::from(record.bytes));
        system.count_commit(bytes.sum(), system.now().since(begin));
        self.records.clear();
        pause(system, worker.think).await
    }
}
