//! State of a worker's writes that tells another run how far the worker came: fio's verification
//! state.

use super::Verifier;
use super::record::BlockPosition;
use diskperf_fio::verify::{CompletedWrite, VerifyState};
use std::collections::VecDeque;

/// Number of issued writes kept in addition to those that a saved state lists, before old ones are
/// dropped.
const EXTRA_WRITES_MAX: usize = 1024;

/// Progress of a worker's writes.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteProgress {
    /// Number of the first write in `issued_writes`.
    first_write_number: u64,
    /// Writes that a saved state may list, in the order of issue. The flag tells whether the write
    /// is complete.
    issued_writes: VecDeque<(BlockPosition, bool)>,
    /// Maximum number of writes in flight, which is also the number that a saved state lists.
    queue_depth: usize,
}

impl WriteProgress {
    pub(super) fn record_issue(&mut self, place: BlockPosition) {
        if self.issued_writes.len() >= 2 * self.queue_depth + EXTRA_WRITES_MAX {
            let complete = self.completed_count();
            let spare = complete.saturating_sub(self.queue_depth);
            self.issued_writes.drain(..spare);
            self.first_write_number += spare as u64;
        }
        self.issued_writes.push_back((place, false));
    }

    pub(super) fn record_completion(&mut self, number: u64) {
        let index = number.checked_sub(self.first_write_number);
        let write = index.and_then(|index| self.issued_writes.get_mut(index as usize));
        if let Some((_, is_complete)) = write {
            *is_complete = true;
        }
    }

    /// Returns the number of writes before the first incomplete one.
    fn completed_count(&self) -> usize {
        let first = self
            .issued_writes
            .iter()
            .position(|(_, is_complete)| !is_complete);
        first.unwrap_or(self.issued_writes.len())
    }
}

impl Verifier {
    /// Sets how many writes are kept: as many as a saved state of this queue depth lists.
    pub(crate) fn keep_progress(&mut self, depth: u32) {
        self.write_progress.queue_depth = depth as usize;
    }

    /// Returns the state of the worker's writes, up to the first incomplete one.
    pub(crate) fn to_verify_state(&self, name: &str, (index, files): (u64, u32)) -> VerifyState {
        let progress = &self.write_progress;
        let complete = progress.completed_count();
        let from = complete.saturating_sub(progress.queue_depth);
        let last = progress.issued_writes.range(from..complete).rev();
        VerifyState {
            queue_depth: progress.queue_depth as u32,
            file_count: files,
            write_count: progress.first_write_number + complete as u64,
            worker_index: index,
            job_name: name.to_owned(),
            completed_writes: last
                .map(|(place, _)| CompletedWrite {
                    file_number: place.file_index as u64,
                    offset_bytes: place.offset_bytes,
                })
                .collect(),
            has_fio_generator: false,
        }
    }
}
