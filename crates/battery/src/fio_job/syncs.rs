//! When a sync is due.

use super::stream::Io;
use diskperf_fio::Direction;
use diskperf_fio::job::Sync;
use diskperf_system::Operation;

/// When a sync is due: after so many writes, and again behind a read that follows the sync,
/// as in fio.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syncs {
    fsync_every: u64,
    fdatasync_every: u64,
    writes: u64,
    was_last: bool,
}

impl Syncs {
    pub(super) fn new(sync: &Sync) -> Self {
        Self {
            fsync_every: sync.fsync_every.into(),
            fdatasync_every: sync.fdatasync_every.into(),
            writes: 0,
            was_last: false,
        }
    }

    /// An I/O was issued.
    pub(super) fn count(&mut self, io: &Io) {
        self.was_last = false;
        self.writes += u64::from(io.direction == Direction::Write);
    }

    /// What is due before the next I/O.
    pub(super) fn due(&self) -> Option<Operation> {
        let is_due = |every: u64| every > 0 && self.writes.is_multiple_of(every);
        if self.writes == 0 || self.was_last {
            return None;
        }
        if is_due(self.fsync_every) {
            return Some(Operation::Fsync);
        }
        is_due(self.fdatasync_every).then_some(Operation::Fdatasync)
    }

    /// A pass begins, before which no sync was the last.
    pub(super) fn begin_pass(&mut self) {
        self.was_last = false;
    }

    /// It was issued.
    pub(super) fn issued(&mut self) {
        self.was_last = true;
    }
}
