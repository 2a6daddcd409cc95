//! Times at which a fio job issues syncs.

use super::stream::FileIo;
use diskperf_fio::Direction;
use diskperf_fio::job::{RangeSync, SyncOptions};
use diskperf_system::{IoOperation, RangeSteps};
use std::ops::Range;

/// Sync to be issued, with the written range of one of the clone's files. fsync and fdatasync cover
/// the whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DueSync {
    pub(super) operation: IoOperation,
    pub(super) file_index: usize,
    pub(super) byte_range: Range<u64>,
}

/// Schedule of syncs. As in fio, a sync is due after a number of writes, and again if a read
/// follows the sync.
#[derive(Clone, Debug)]
pub(super) struct SyncSchedule {
    writes_per_fsync: u64,
    writes_per_fdatasync: u64,
    writes_per_range_sync: u64,
    range_steps: RangeSteps,
    /// Range of each file that was written since its last sync.
    unsynced_ranges: Vec<Option<Range<u64>>>,
    write_count: u64,
    was_last_io_sync: bool,
}

impl SyncSchedule {
    pub(super) fn new(sync: &SyncOptions, file_count: usize) -> Self {
        let RangeSync {
            writes_per_sync: every_writes,
            waits_before: wait_before,
            starts_write: write,
            waits_after: wait_after,
        } = sync.range_sync;
        Self {
            writes_per_fsync: sync.writes_per_fsync.into(),
            writes_per_fdatasync: sync.writes_per_fdatasync.into(),
            writes_per_range_sync: every_writes.into(),
            range_steps: RangeSteps {
                waits_before: wait_before,
                starts_writeback: write,
                waits_after: wait_after,
            },
            unsynced_ranges: vec![None; file_count],
            write_count: 0,
            was_last_io_sync: false,
        }
    }

    /// Counts an issued I/O for the schedule of syncs.
    pub(super) fn count_io(&mut self, io: &FileIo) {
        self.was_last_io_sync = false;
        if io.direction != Direction::Write {
            return;
        }
        self.write_count += 1;
        let (start, end) = (io.offset_bytes, io.offset_bytes + u64::from(io.bytes));
        let written = self.unsynced_ranges[io.file_index].get_or_insert(start..end);
        *written = written.start.min(start)..written.end.max(end);
    }

    /// Returns the sync that is due before the next I/O, if any.
    pub(super) fn due_operation(&self) -> Option<IoOperation> {
        let is_due = |every: u64| every > 0 && self.write_count.is_multiple_of(every);
        if self.write_count == 0 || self.was_last_io_sync {
            return None;
        }
        if is_due(self.writes_per_fsync) {
            return Some(IoOperation::Fsync);
        }
        if is_due(self.writes_per_fdatasync) {
            return Some(IoOperation::Fdatasync);
        }
        is_due(self.writes_per_range_sync).then_some(IoOperation::SyncRange(self.range_steps))
    }

    /// Begins a pass. Its first I/O does not count as following a sync.
    pub(super) fn begin_pass(&mut self) {
        self.was_last_io_sync = false;
    }

    /// Records that a sync of a file is issued, and returns the sync with the range written since
    /// the last one.
    pub(super) fn record_sync(&mut self, operation: IoOperation, file: usize) -> DueSync {
        self.was_last_io_sync = true;
        DueSync {
            operation,
            file_index: file,
            byte_range: self.unsynced_ranges[file].take().unwrap_or_default(),
        }
    }
}
