//! State of an interrupted job: it records how far the job wrote, for the run that verifies the
//! data.

use super::clone::JobClone;
use super::read_back::verifies_only;
use super::{queue_depth, writes_data};
use crate::program::ProgramError;
use crate::ring::IoRing;
use crate::worker::{Medium, Worker};
use diskperf_fio::verify::{CompletedWrite, STATE_VERSION, VerifyState};
use diskperf_fio::{Direction, JobDefinition};
use diskperf_system::{System, create_log_file, read_small_file};
use std::io::Write;

/// Maximum size of a state file. It holds the state of 4096 I/Os in flight, with reserve.
const STATE_BYTES_MAX: u64 = 1 << 20;

/// Saved write state of another run, and the progress of this job through it.
pub(super) struct LoadedState {
    verify_state: VerifyState,
    /// Blocks that were looked up in the state so far.
    checked_block_count: u64,
}

/// Returns the index of a clone within the job file, from 0.
fn clone_index(job: &JobDefinition, worker: &Worker) -> u64 {
    u64::from(job.verify.preceding_clones + worker.worker_index)
}

impl LoadedState {
    /// Reads the saved state of a clone. Returns `None` if its job does not ask for it
    /// (`verify_state_load`).
    ///
    /// # Errors
    ///
    /// Fails if there is no state, or if the state is unusable.
    pub(super) fn load_state(
        job: &JobDefinition,
        worker: &Worker,
    ) -> Result<Option<Self>, ProgramError> {
        if !job.verify.loads_state || (writes_data(job) && !verifies_only(job)) {
            return Ok(None);
        }
        let path = VerifyState::file_name(&job.name, clone_index(job, worker));
        let missed = |why: String| {
            let name = &job.name;
            ProgramError::ThresholdMissed(format!(
                "[{name}]: verify_state_load: {why}; run the job that writes with verify_state_save=1 in this directory, or remove verify_state_load"
            ))
        };
        let bytes = read_small_file(&path, STATE_BYTES_MAX).map_err(missed)?;
        let state = VerifyState::decode(&bytes);
        let state = state.map_err(|why| missed(format!("{path}: {why}")))?;
        Ok(Some(Self {
            verify_state: state,
            checked_block_count: 0,
        }))
    }

    /// Reports whether the job's next block was written, as far as the loaded state tells. After
    /// the first block that was not written, nothing is known about the blocks that follow.
    pub(super) fn covers_next_block(&mut self, file: usize, offset_bytes: u64) -> bool {
        let number = self.checked_block_count;
        self.checked_block_count += 1;
        let file = file as u64;
        self.verify_state.includes_write(
            number,
            CompletedWrite {
                file_number: file,
                offset_bytes,
            },
        )
    }

    /// Returns the number of writes and the queue depth of a run by fio itself, which draws random
    /// offsets in an order of its own. `None` if the order is the same.
    pub(super) fn first_write_number_and_depth(&self, job: &JobDefinition) -> Option<(u64, u64)> {
        let is_other = job.pattern.access.is_random() && self.verify_state.has_fio_generator;
        is_other.then(|| {
            (
                self.verify_state.write_count,
                self.verify_state.queue_depth.into(),
            )
        })
    }
}

impl JobClone<'_> {
    /// Writes the state of a job that verifies its writes: if the job asks for it
    /// (`verify_state_save`), or if the job was interrupted on a target that survives the run.
    pub(super) fn save_state(
        &self,
        ring: &IoRing<'_>,
        is_interrupted: bool,
    ) -> Result<(), ProgramError> {
        let (Some(verifier), job) = (&ring.verifier, self.job) else {
            return Ok(());
        };
        let writes = job.pattern.access.includes(Direction::Write) && !verifies_only(job);
        let is_interrupted = is_interrupted || self.has_ended(ring.target_system);
        // Files in a folder are removed when the run ends, and a modelled drive ends with it:
        // nobody can verify them later.
        let is_modelled = matches!(ring.target_system, System::ModelWorker(_));
        let is_left = self.worker.medium != Medium::Directory && !is_modelled;
        if !writes || !job.verify.saves_state.unwrap_or(is_interrupted && is_left) {
            return Ok(());
        }
        let index = clone_index(job, self.worker);
        let state = verifier.to_verify_state(&job.name, (index, ring.open_files.len() as u32));
        let path = VerifyState::file_name(&job.name, index);
        let failed = |why: String| ProgramError::TraceFailed(format!("verify_state_save: {why}"));
        let mut file = create_log_file(&path, &STATE_VERSION.to_le_bytes()).map_err(failed)?;
        let written = file.write_all(&state.encode());
        written.map_err(|error| failed(format!("{path}: {error}")))
    }
}

/// Returns the number of writes that a saved state of this job lists.
pub(super) fn state_depth(job: &JobDefinition) -> u32 {
    queue_depth(job)
}
