//! State of a worker's writes that tells another run how far the worker came: fio's verification
//! state.

use super::Verifier;
use super::record::BlockPlace;
use diskperf_fio::verify::{CompletedWrite, VerifyState};
use std::collections::VecDeque;

/// Number of issued writes kept in addition to those that a saved state lists, before old ones are
/// dropped.
const SPARE: usize = 1024;

/// Progress of a worker's writes.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteProgress {
    /// Number of the first write in `issued`.
    first: u64,
    /// Writes that a saved state may list, in the order of issue. The flag tells whether the write
    /// is complete.
    issued: VecDeque<(BlockPlace, bool)>,
    /// Maximum number of writes in flight, which is also the number that a saved state lists.
    depth: usize,
}

impl WriteProgress {
    pub(super) fn issue(&mut self, place: BlockPlace) {
        if self.issued.len() >= 2 * self.depth + SPARE {
            let complete = self.complete_count();
            let spare = complete.saturating_sub(self.depth);
            self.issued.drain(..spare);
            self.first += spare as u64;
        }
        self.issued.push_back((place, false));
    }

    pub(super) fn complete(&mut self, number: u64) {
        let index = number.checked_sub(self.first);
        let write = index.and_then(|index| self.issued.get_mut(index as usize));
        if let Some((_, is_complete)) = write {
            *is_complete = true;
        }
    }

    /// Returns the number of writes before the first incomplete one.
    fn complete_count(&self) -> usize {
        let first = self.issued.iter().position(|(_, is_complete)| !is_complete);
        first.unwrap_or(self.issued.len())
    }
}

impl Verifier {
    /// Sets how many writes are kept: as many as a saved state of this queue depth lists.
    pub(crate) fn keep_progress(&mut self, depth: u32) {
        self.progress.depth = depth as usize;
    }

    /// Returns the state of the worker's writes, up to the first incomplete one.
    pub(crate) fn state(&self, name: &str, (index, files): (u64, u32)) -> VerifyState {
        let progress = &self.progress;
        let complete = progress.complete_count();
        let from = complete.saturating_sub(progress.depth);
        let last = progress.issued.range(from..complete).rev();
        VerifyState {
            depth: progress.depth as u32,
            files,
            writes: progress.first + complete as u64,
            index,
            name: name.to_owned(),
            completed: last
                .map(|(place, _)| CompletedWrite {
                    file: place.file as u64,
                    offset_bytes: place.offset_bytes,
                })
                .collect(),
            is_drawn_by_fio: false,
        }
    }
}
