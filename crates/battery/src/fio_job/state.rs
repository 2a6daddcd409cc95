//! State of an interrupted job: how far it wrote, for the run that verifies it.

use super::clone::JobClone;
use super::read_back::verifies_only;
use super::{depth, writes};
use crate::program::ProgramError;
use crate::ring::Ring;
use crate::worker::{Medium, Worker};
use diskperf_fio::verify::{CompletedWrite, STATE_VERSION, VerifyState};
use diskperf_fio::{Direction, Job};
use diskperf_system::{System, begin_log, read_small_file};
use std::io::Write;

/// Largest state: that of 4096 I/Os in flight, with room.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// State of another run, as far as it was followed.
pub(super) struct LoadedState {
    state: VerifyState,
    /// Blocks that were asked for.
    asked: u64,
}

/// Number of a clone in its file, from 0.
fn index(job: &Job, worker: &Worker) -> u64 {
    u64::from(job.verify.clones_before + worker.index)
}

impl LoadedState {
    /// Reads the state of a clone, where its job asks for it.
    ///
    /// # Errors
    ///
    /// If there is none, or it cannot be used.
    pub(super) fn load(job: &Job, worker: &Worker) -> Result<Option<Self>, ProgramError> {
        if !job.verify.state_load || (writes(job) && !verifies_only(job)) {
            return Ok(None);
        }
        let path = VerifyState::file_name(&job.name, index(job, worker));
        let missed = |why: String| {
            let name = &job.name;
            ProgramError::Missed(format!(
                "[{name}]: verify_state_load: {why}; run the job that writes with verify_state_save=1 in this directory, or remove verify_state_load"
            ))
        };
        let bytes = read_small_file(&path, STATE_BYTES_MAX).map_err(missed)?;
        let state = VerifyState::decode(&bytes);
        let state = state.map_err(|why| missed(format!("{path}: {why}")))?;
        Ok(Some(Self { state, asked: 0 }))
    }

    /// Whether the next block of the job was written. Nothing is known of what follows one that
    /// was not.
    pub(super) fn covers_next(&mut self, file: usize, offset_bytes: u64) -> bool {
        let number = self.asked;
        self.asked += 1;
        let file = file as u64;
        self.state
            .covers(number, CompletedWrite { file, offset_bytes })
    }

    /// Writes and depth of a run of fio whose order of random offsets is its own.
    pub(super) fn in_other_order(&self, job: &Job) -> Option<(u64, u64)> {
        let is_other = job.pattern.access.is_random() && self.state.is_drawn_by_fio;
        is_other.then(|| (self.state.writes, self.state.depth.into()))
    }
}

impl JobClone<'_> {
    /// Writes the state of a job that verifies what it writes: where it asks for it, or was
    /// ended before it came to its end.
    pub(super) fn save_state(
        &self,
        ring: &Ring<'_>,
        is_interrupted: bool,
    ) -> Result<(), ProgramError> {
        let (Some(verifier), job) = (&ring.verifier, self.job) else {
            return Ok(());
        };
        let writes = job.pattern.access.does(Direction::Write) && !verifies_only(job);
        let is_interrupted = is_interrupted || self.is_past_its_end(ring.system);
        // Files in a folder are removed when the run ends, and a modelled drive ends with it:
        // nobody can verify them later.
        let is_modelled = matches!(ring.system, System::Model(_));
        let is_left = self.worker.medium != Medium::Directory && !is_modelled;
        if !writes || !job.verify.state_save.unwrap_or(is_interrupted && is_left) {
            return Ok(());
        }
        let index = index(job, self.worker);
        let state = verifier.state(&job.name, (index, ring.files.len() as u32));
        let path = VerifyState::file_name(&job.name, index);
        let failed = |why: String| ProgramError::Trace(format!("verify_state_save: {why}"));
        let mut file = begin_log(&path, &STATE_VERSION.to_le_bytes()).map_err(failed)?;
        let written = file.write_all(&state.encode());
        written.map_err(|error| failed(format!("{path}: {error}")))
    }
}

/// Writes that a state of this job names.
pub(super) fn state_depth(job: &Job) -> u32 {
    depth(job)
}
