//! Writes of a worker by which another run knows how far it came: fio's state of verification.

use super::Verifier;
use super::record::BlockPlace;
use diskperf_fio::verify::{CompletedWrite, VerifyState};
use std::collections::VecDeque;

/// Issued writes that are kept behind those that a state names, before they are dropped.
const SPARE: usize = 1024;

/// Progress of a worker's writes.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteProgress {
    /// Number of the first write in `issued`.
    first: u64,
    /// Writes that may be in a state, in the order in which they were issued, and whether each
    /// is complete.
    issued: VecDeque<(BlockPlace, bool)>,
    /// Writes that were issued together, at most.
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

    /// Writes before the first that is not complete.
    fn complete_count(&self) -> usize {
        let first = self.issued.iter().position(|(_, is_complete)| !is_complete);
        first.unwrap_or(self.issued.len())
    }
}

impl Verifier {
    /// Keeps as many writes as a state of this depth names.
    pub(crate) fn keep_progress(&mut self, depth: u32) {
        self.progress.depth = depth as usize;
    }

    /// The state of the worker's writes: those before the first that is not complete.
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
