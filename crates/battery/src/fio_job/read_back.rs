//! Verification of a fio job: written blocks are read back and checked.

use super::clone::JobClone;
use super::state::state_depth;
use super::stream::NextIo;
use super::{FileMaker, FioJob};
use crate::program::ProgramError;
use crate::ring::{IoRing, RingStep};
use crate::verify::dump::DumpFiles;
use crate::verify::survey::{BlockSearch, FilePart};
use crate::verify::{ReadBackDisplay, VerificationRules, Verifier};
use crate::worker::Worker;
use diskperf_fio::job::Verification;
use diskperf_fio::verify::{BlockLayout, header_interval_of_job};
use diskperf_fio::{Direction, JobDefinition};
use diskperf_system::{Errno, System};
use std::collections::BTreeSet;

/// Number of recorded writes after which `verify_only` lets a request to stop the run take effect.
const WRITES_PER_STOP_CHECK: u64 = 1 << 16;

/// Creates the verifier of a clone, or returns `None` if its job verifies nothing.
pub(super) fn new_verifier(program: &FioJob, worker: &Worker) -> Option<Verifier> {
    let job = &*program.job;
    let plan = VerificationRules {
        block_layout: BlockLayout::from_job(job)?,
        are_differences_fatal: job.verify.ends_on_mismatch,
        only_counts_differences: job.errors.ignores_verify_errors,
        checks_reads: !job.pattern.access.includes(Direction::Write),
        trims_to_zero: job.verify.verified_trims.must_be_zero,
        is_only_writer: program.is_only_writer(),
        has_random_offsets: job.pattern.access.is_random(),
        thread_number: job.verify.preceding_clones + worker.worker_index + 1,
        job_randseed: job.random.seed,
        dump_files: job.verify.dumps_mismatches.then(|| DumpFiles {
            base_names: program
                .planned_files_of_clone(worker)
                .iter()
                .map(|file| file_name_of_path(&file.path))
                .collect(),
        }),
    };
    let mut verifier = Verifier::new(plan);
    verifier.keep_progress(state_depth(job));
    Some(verifier)
}

/// Creates the search for blocks that another program wrote in an order of its own. Returns `None`
/// if every order leaves the same blocks.
fn new_block_search(program: &FioJob, worker: &Worker, verifier: &Verifier) -> Option<BlockSearch> {
    let job = &*program.job;
    let size = job.blocks.choice(Direction::Write).single_bytes();
    let unit_bytes = match size {
        Some(bytes) => bytes,
        None => header_interval_of_job(job) as u64,
    };
    let files = program.planned_files_of_clone(worker);
    let parts = files.iter().map(|file| FilePart {
        start_bytes: file.region.offset_bytes,
        unit_count: file.region.blocks(unit_bytes),
    });
    let parts: Vec<FilePart> = parts.collect();
    let units: u64 = parts.iter().map(|part| part.unit_count).sum();
    let is_whole = verifier.unread_count() >= units;
    let is_random = job.pattern.access.is_random();
    let has_map = job.has_random_map() && job.random.random_percent.write == 100;
    let is_same_in_each_order = match is_random {
        true => is_whole && has_map,
        false => is_whole || files.len() == 1,
    };
    let only_writes = job.pattern.access.directions() == [Direction::Write];
    let is_alone = program.is_only_writer();
    match size.is_some() && only_writes && is_alone && is_same_in_each_order {
        true => None,
        false => Some(BlockSearch::new(unit_bytes as u32, size.is_some(), parts)),
    }
}

fn file_name_of_path(path: &str) -> String {
    let last = path.trim_end_matches('/').rsplit('/').next();
    last.unwrap_or(path).to_owned()
}

/// Reports whether a job only compares existing data with the data that it would write, and writes
/// nothing (`verify_only`).
pub(super) fn verifies_only(job: &JobDefinition) -> bool {
    let writes = job.pattern.access.includes(Direction::Write);
    writes && job.verify.only_verifies && job.verify.kind != Verification::None
}

impl FioJob {
    /// Reports whether no other clone or section writes to the blocks of a clone.
    fn is_only_writer(&self) -> bool {
        let beside = |made: &FileMaker| *made == FileMaker::ConcurrentJob;
        let parts = self.clone_files.iter().flatten();
        let parts = parts.map(|file| (&file.path, file.region.offset_bytes));
        let apart: BTreeSet<_> = parts.clone().collect();
        !self.file_makers.values().any(beside) && apart.len() == parts.count()
    }

    /// Checks that a file exists whose blocks are to be verified.
    ///
    /// # Errors
    ///
    /// Fails if the file is absent or too short.
    pub(super) async fn check_file_exists(
        &self,
        system: &mut System,
        (path, bytes): (&str, u64),
    ) -> Result<(), ProgramError> {
        let name = &self.job.name;
        let found = match system.stat(path).await {
            Ok(length) if length >= bytes => return Ok(()),
            Ok(length) => format!("has {length} bytes instead of {bytes}"),
            Err(error) if error.errno() == Some(Errno::NoEntry) => "is not there".to_owned(),
            Err(error) => return Err(error.into()),
        };
        Err(ProgramError::ThresholdMissed(format!(
            "[{name}]: nothing to verify: {path} {found}; name a file or a device that was written"
        )))
    }
}

impl JobClone<'_> {
    /// Reports whether the job's time has ended, or another job has ended this job.
    pub(super) fn has_ended(&self, system: &System) -> bool {
        let is_late = |end| system.now() >= end;
        self.worker.worker_group.must_end() || self.time_limits.time_limit_end.is_some_and(is_late)
    }

    /// Reports whether the loaded state of another run covers a block as written. Without such a
    /// state, all blocks count as written.
    pub(super) fn is_covered_by_state(&mut self, file: usize, offset_bytes: u64) -> bool {
        let job = self.job;
        match &mut self.loaded_state {
            Some(loaded) if loaded.first_write_number_and_depth(job).is_none() => {
                loaded.covers_next_block(file, offset_bytes)
            }
            Some(_) | None => true,
        }
    }

    /// Reads all written blocks that were not read since back from storage: after a sync, and past
    /// the page cache or with the page cache dropped. The end of the job's time also ends the
    /// reading.
    pub(super) async fn verify_pass(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        let Some(verifier) = &ring.verifier else {
            return Ok(());
        };
        let count = verifier.unread_count();
        if !self.job.verify.reads_back || count == 0 || self.has_ended(ring.target_system) {
            return Ok(());
        }
        self.phase_spans.write_span =
            self.phase_spans.write_span + ring.target_system.now().since(self.phase_start);
        for (file, path) in &ring.open_files {
            if !self.job.verify.only_verifies {
                ring.target_system.fsync(*file).await?;
            }
            if !self.worker.direct_io {
                ring.target_system.drop_clean_pages(path).await?;
            }
        }
        let verifier = ring.verifier.as_ref().expect("it reads back");
        let shown = verifier.begin_read_back(ring.target_system);
        let start = ring.target_system.now();
        self.read_back_blocks(ring, count, Some(shown)).await?;
        let verifier = ring.verifier.as_mut().expect("it reads back");
        if verifier.unread_count() == 0 && verifier.begin_unit_search()? {
            let shown = verifier.show_blocks_to_read(ring.target_system);
            self.read_back_blocks(ring, u64::MAX, Some(shown)).await?;
        }
        self.phase_start = ring.target_system.now();
        self.phase_spans.read_span = self.phase_spans.read_span + self.phase_start.since(start);
        Ok(())
    }

    /// Returns the number of blocks to read back now, within the pass, once `verify_backlog` blocks
    /// are written. `None` if no reading is due.
    pub(super) fn backlog_batch(&self, ring: &IoRing<'_>) -> Option<u64> {
        let verify = &self.job.verify;
        let unread = ring.verifier.as_ref().map_or(0, Verifier::unread_count);
        let is_due = verify.backlog > 0 && verify.reads_back && unread >= verify.backlog;
        let batch = verify.backlog_batch.map_or(verify.backlog, u64::from);
        is_due.then_some(batch.max(1))
    }

    /// Reads `count` blocks back. `shown` is `None` within a pass; after a pass it shows the
    /// progress.
    pub(super) async fn read_back_blocks(
        &mut self,
        ring: &mut IoRing<'_>,
        count: u64,
        shown: Option<ReadBackDisplay>,
    ) -> Result<(), ProgramError> {
        let mut left = count;
        let next = |clone: &mut Self, ring: &mut IoRing<'_>| {
            let goes_on = left > 0 && !clone.has_ended(ring.target_system);
            let Some(verifier) = &mut ring.verifier else {
                return Ok(None);
            };
            let unread = goes_on.then(|| verifier.next_unread()).flatten();
            if let Some(shown) = shown {
                shown.show_remaining(ring.target_system, verifier);
            }
            if let Some(unread) = &unread {
                left -= 1;
                clone
                    .io_stream
                    .count_read_back(unread.bytes(), shown.is_none());
            }
            Ok(unread.map(RingStep::ReadBack))
        };
        self.issue_all(ring, usize::MAX, next).await
    }

    /// Carries out `verify_only`: determines the blocks that the job would write, pass after pass,
    /// and compares them with the existing data.
    pub(super) async fn verify_only(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        self.record_writes_of_other_run(ring).await?;
        let verifier = ring.verifier.as_mut().expect("it verifies");
        let loaded = self.loaded_state.as_ref();
        match loaded.and_then(|loaded| loaded.first_write_number_and_depth(self.job)) {
            Some(writes) => verifier.expect_part_of_other_run(writes),
            None => {
                let survey = new_block_search(self.fio_job, self.worker, verifier);
                verifier.expect_other_run(self.job.verify.backlog > 0, survey);
            }
        }
        self.verify_pass(ring).await
    }

    async fn record_writes_of_other_run(
        &mut self,
        ring: &mut IoRing<'_>,
    ) -> Result<(), ProgramError> {
        let files = self.fio_job.planned_files_of_clone(self.worker).iter();
        let lengths_bytes: u64 = files.map(|file| file.region.length_bytes).sum();
        let (mut bytes, mut writes) = (0_u64, 0_u64);
        let mut unread_bytes = Vec::new();
        // By time there is no last pass.
        while !(self.job.durations.is_time_based && bytes >= lengths_bytes) {
            let direction = self.io_stream.draw_direction();
            let next = self.io_stream.next_io(direction);
            match next {
                NextIo::Io(io) if io.direction == Direction::Write => {
                    if !self.is_covered_by_state(io.file_index, io.offset_bytes) {
                        break;
                    }
                    let verifier = ring.verifier.as_mut().expect("it verifies");
                    verifier.record_other_write(io.file_index, (io.offset_bytes, io.bytes));
                    unread_bytes.push(io.bytes);
                    writes += 1;
                }
                NextIo::Io(_) => {}
                NextIo::PassEnd => {
                    // fio reads each pass back before the next.
                    for bytes in unread_bytes.drain(..) {
                        self.io_stream.count_read_back(bytes, false);
                    }
                    if !self.io_stream.begin_pass() {
                        break;
                    }
                    let verifier = ring.verifier.as_mut().expect("it verifies");
                    verifier.restart_seeds();
                }
            }
            if let NextIo::Io(io) = next {
                bytes += u64::from(io.bytes);
            }
            if writes.is_multiple_of(WRITES_PER_STOP_CHECK) {
                // Whoever wants the run to end is heard by each call.
                ring.target_system
                    .sleep_until(ring.target_system.now())
                    .await?;
            }
        }
        Ok(())
    }

    /// Reports the number of blocks that were read back, whatever ended the job.
    pub(super) fn count_verified(&self, ring: &mut IoRing<'_>) {
        let Some(verifier) = &ring.verifier else {
            return;
        };
        let verify = &self.job.verify;
        let only_writes = self.job.pattern.access.directions() == [Direction::Write];
        if only_writes
            && !verify.only_verifies
            && verify.backlog == 0
            && self.phase_spans.read_span.0 > 0
        {
            ring.target_system.record_read_write_spans(self.phase_spans);
        }
        if verify.reads_back || self.job.pattern.access.first_direction() == Direction::Read {
            ring.target_system.count_verified(verifier.take_verified());
        }
    }
}
