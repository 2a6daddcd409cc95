//! Clone of a fio job: it issues the job's I/Os on a ring, and does the work between I/Os and after
//! them.

mod source;
mod waits;

use super::FioJob;
use super::duplicates::Duplicates;
use super::iolog::IologWriter;
use super::pace::{RateLimits, TimeLimits};
use super::pauses::ThinkPauses;
use super::read_back::verifies_only;
use super::script::LogCursor;
use super::search::{DepthSearch, SearchStep};
use super::state::LoadedState;
use super::stream::{FileIo, IoStream};
use super::trims::Trims;
use super::watch::JobMonitor;
use crate::blocks::remove_file;
use crate::file_locks::FileGuard;
use crate::program::ProgramError;
use crate::random::RandomDraws;
use crate::ring::IoRing;
use crate::worker::Worker;
use diskperf_fio::job::EngineKind;
use diskperf_fio::{Direction, JobDefinition};
use diskperf_system::{IoOperation, ReadWriteSpans, System};
use diskperf_timeline::Nanoseconds;
use source::{DrawnIo, HaltReason};
use waits::{sleep_until, wait_for_job};

const START_DELAY_STREAM: u128 = 15;

/// Clone of a fio job while it runs.
pub(super) struct JobClone<'a> {
    pub(super) worker: &'a Worker,
    pub(super) fio_job: &'a FioJob,
    pub(super) job: &'a JobDefinition,
    pub(super) io_stream: IoStream<'a>,
    rate_limits: RateLimits,
    pub(super) time_limits: TimeLimits,
    monitor: JobMonitor,
    /// Position in the I/O log that the job repeats instead of drawing I/Os.
    log_cursor: Option<LogCursor>,
    /// I/O log that the job writes (`write_iolog`).
    iolog_writer: Option<IologWriter>,
    /// Source of write data for a job whose data repeats in part. `None` unless the job asks for
    /// duplicates.
    pub(super) duplicates: Option<Duplicates>,
    /// Trims that the job mixes into its writes.
    pub(super) verified_trims: Option<Trims>,
    /// Whether a write failed for lack of space, which ends a job that fills the device.
    is_device_full: bool,
    /// Progress of an earlier run whose writes this job verifies.
    pub(super) loaded_state: Option<LoadedState>,
    /// Time spent in writes and in reading them back. `phase_start` is the start of the current one
    /// of the two.
    pub(super) phase_spans: ReadWriteSpans,
    pub(super) phase_start: Nanoseconds,
    syncs_in_flight: u32,
    /// Whether the job ends before its amount of I/O and its time are used up, because it reached
    /// its steady state or found its queue depth.
    is_steady: bool,
    may_be_ended_by_others: bool,
    think_pauses: ThinkPauses,
    depth_search: Option<DepthSearch>,
    /// Step of the queue depth search that starts once nothing is in flight.
    pending_search_step: SearchStep,
    /// Time at which the next I/O is decided.
    last_clock_reading: Nanoseconds,
    /// I/O that was drawn and waits to be issued.
    drawn_io: Option<DrawnIo>,
    /// Last issued I/O, until the follow-up to it is decided.
    last_issued: Option<FileIo>,
    file_lock: Option<FileGuard>,
    /// Whether the clone reaps completions and issues nothing. This starts when all slots are full,
    /// and ends when few enough requests are in flight to fill them again.
    is_refilling: bool,
    halt_reason: Option<HaltReason>,
}

impl<'a> JobClone<'a> {
    /// Starts a clone: waits for the job that `wait_for` names, opens the files, and waits for the
    /// start delay. Rates and time limits count from then.
    pub(super) async fn start_clone<'s>(
        (system, worker): (&'s mut System, &'a Worker),
        program: &'a FioJob,
    ) -> Result<(Self, IoRing<'s>), ProgramError> {
        let job = &*program.job;
        // The delay counts from the start of the first step, as in fio.
        let due = system.now()
            + draw_start_delay(job, worker).since(worker.worker_group.elapsed_before());
        let may_be_ended = worker.worker_group.may_be_ended_by_others();
        let has_waited = wait_for_job((&mut *system, worker), job).await?;
        let files = program.open_file((&mut *system, worker)).await?;
        sleep_until((&mut *system, worker), due).await?;
        // Opening files takes longer than many requests: 50 ms each on a computer of 1978.
        system.restart_measuring()?;
        if !worker.worker_group.must_end() {
            worker.worker_group.record_start();
        }
        let start = system.now();
        let names = program
            .planned_files_of_clone(worker)
            .iter()
            .map(|file| file.path.clone());
        let iolog = IologWriter::begin_log(job, (worker.worker_index, names.collect()), start)?;
        let script = program.io_log.as_ref();
        let mut ring = IoRing::new(system, program.new_slots(worker, &files), files);
        ring.think_time = worker.think_time;
        ring.verifier = super::read_back::new_verifier(program, worker);
        let clone = Self {
            worker,
            fio_job: program,
            job,
            io_stream: IoStream::new(
                job,
                program.planned_files_of_clone(worker),
                (&worker.worker_group, worker.random_seed),
            ),
            rate_limits: RateLimits::new(job, (start, worker.random_seed)),
            time_limits: TimeLimits::new(job, start),
            monitor: JobMonitor::new(job, start, &worker.worker_group),
            log_cursor: script.map(|script| LogCursor::new(script, job, start)),
            iolog_writer: iolog,
            duplicates: Duplicates::new(job, program.io_bytes_total(), worker.random_seed),
            verified_trims: Trims::new(job, worker.random_seed),
            is_device_full: false,
            loaded_state: LoadedState::load_state(job, worker)?,
            phase_spans: ReadWriteSpans::default(),
            phase_start: start,
            syncs_in_flight: 0,
            is_steady: false,
            may_be_ended_by_others: may_be_ended,
            think_pauses: ThinkPauses::new(job, start),
            depth_search: DepthSearch::from_job(job, super::queue_depth(job), start),
            pending_search_step: SearchStep::ContinueWindow,
            last_clock_reading: start,
            drawn_io: None,
            last_issued: None,
            file_lock: None,
            is_refilling: false,
            halt_reason: None,
        };
        if has_waited {
            // The cache holds what the other job left there.
            clone.drop_page_cache_of_all(&mut ring).await?;
        }
        Ok((clone, ring))
    }

    pub(super) async fn run_clone(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        let outcome = self.run_to_end(ring).await;
        self.count_verified(ring);
        outcome
    }

    async fn run_to_end(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        if verifies_only(self.job) {
            self.verify_only(ring).await?;
        } else if !self.job.files.creates_only {
            match self.job.engine.engine.kind() {
                EngineKind::Processor => self.use_processor(ring.target_system).await?,
                _ => self.issue_passes(ring).await?,
            }
        }
        self.finish_clone(ring)
    }

    /// Issues the I/Os of all passes, and does the work between I/Os.
    async fn issue_passes(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        loop {
            self.last_clock_reading = ring.target_system.now();
            ring.run_source(self).await?;
            match self.halt_reason.take() {
                Some(HaltReason::DrainForZoneChange) | None => {}
                Some(HaltReason::DropPageCache(file)) => self.drop_page_cache(ring, file).await?,
                Some(HaltReason::DepthSearch) => self.begin_search_step(ring.target_system)?,
                Some(HaltReason::WaitForFlow(notices)) => {
                    self.await_notice(ring.target_system, notices).await?;
                    let now = ring.target_system.now();
                    self.run_checks(ring.target_system, now)?;
                }
                Some(HaltReason::FlowSleep) => {
                    let sleep_us = u64::from(self.job.order.flow_sleep_us);
                    let end = ring.target_system.now() + Nanoseconds(sleep_us * 1000);
                    self.pass_time_until(ring.target_system, end, true).await?;
                }
                Some(HaltReason::LockFile) => self.lock_file(ring.target_system).await?,
                Some(HaltReason::FollowUp { direction, trims }) => {
                    self.do_follow_up(ring, direction, trims).await?;
                }
                Some(HaltReason::PauseForThinkTime(direction)) => {
                    self.pause_for_think_time(ring.target_system, direction)
                        .await?
                }
                Some(HaltReason::PassEnd) => {
                    self.end_pass(ring).await?;
                    if !self.io_stream.begin_pass() {
                        return Ok(());
                    }
                    self.begin_pass(ring).await?;
                }
                Some(HaltReason::JobEnd) => return self.end_pass(ring).await,
            }
        }
    }

    fn begin_search_step(&mut self, system: &mut System) -> Result<(), ProgramError> {
        if self.pending_search_step == SearchStep::LastWindow {
            self.io_stream.reset_amounts();
            system.restart_measuring()?;
        }
        self.pending_search_step = SearchStep::ContinueWindow;
        if let Some(search) = &mut self.depth_search {
            search.begin_window(system.now());
        }
        Ok(())
    }

    /// Does the work that follows an I/O, with nothing in flight: unlocks the file, trims, reads
    /// back, pauses.
    async fn do_follow_up(
        &mut self,
        ring: &mut IoRing<'_>,
        direction: Direction,
        trims: Vec<FileIo>,
    ) -> Result<(), ProgramError> {
        self.unlock_file(ring.target_system);
        self.issue_trims(ring, trims).await?;
        if let Some(count) = self.backlog_batch(ring) {
            self.read_back_blocks(ring, count, None).await?;
        }
        match self.think_pauses.count_io(ring.target_system.now()) {
            true => {
                self.pause_for_think_time(ring.target_system, direction)
                    .await
            }
            false => Ok(()),
        }
    }

    /// Makes the writes of a pass durable and verifies them by reading.
    async fn end_pass(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        self.sync_at_end(ring).await?;
        self.verify_pass(ring).await
    }

    /// Makes all writes durable at the end of a pass. The time counts as part of the pass.
    async fn sync_at_end(&self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        let sync = &self.job.sync;
        let writes = self.job.pattern.access.includes(Direction::Write);
        let has_data = !self.job.engine.engine.acts_on_names();
        if writes && has_data && (sync.syncs_at_end || sync.syncs_on_close) {
            for (file, _) in &ring.open_files {
                ring.target_system.fsync(*file).await?;
            }
        }
        Ok(())
    }

    /// Prepares the next pass: creates the files again if the job asks for it, and drops their page
    /// cache.
    async fn begin_pass(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        if let Some(verifier) = &mut ring.verifier
            && self.job.random.is_repeatable
        {
            verifier.restart_seeds();
        }
        if self.job.files.unlinks_each_loop {
            for (file, path) in std::mem::take(&mut ring.open_files) {
                ring.target_system.close(file).await?;
                remove_file(ring.target_system, self.worker.medium, &path).await?;
            }
            ring.open_files = self
                .fio_job
                .open_file((&mut *ring.target_system, self.worker))
                .await?;
            let opened = (&mut ring.slots, &*ring.open_files);
            self.fio_job.set_file_starts(self.worker, opened);
        }
        self.drop_page_cache_of_all(ring).await
    }

    async fn drop_page_cache_of_all(&self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        for file in 0..ring.open_files.len() {
            self.drop_page_cache(ring, file).await?;
        }
        Ok(())
    }

    /// Drops the page cache of a file, if the job does so whenever it starts the file again.
    async fn drop_page_cache(
        &self,
        ring: &mut IoRing<'_>,
        file: usize,
    ) -> Result<(), ProgramError> {
        let has_data = !self.job.engine.engine.acts_on_names();
        if has_data && self.job.files.invalidates_cache && !self.worker.direct_io {
            ring.target_system
                .drop_clean_pages(&ring.open_files[file].1)
                .await?;
        }
        Ok(())
    }

    /// Finishes the clone after the last pass: judges outstanding verifications, ends the I/O log,
    /// and reports the outcome.
    fn finish_clone(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        if let Some(verifier) = &mut ring.verifier {
            verifier.evaluate_differences()?;
        }
        if let Some(log) = self.iolog_writer.take() {
            log.finish_log(ring.target_system.now())?;
        }
        let found = self.depth_search.as_ref();
        if let Some(search) = found {
            ring.target_system
                .record_slot_use(0, search.current_depth().into());
        }
        let outcomes = [
            self.monitor.describe_outcome(),
            found.map(DepthSearch::describe_outcome),
        ];
        let outcomes: Vec<String> = outcomes.into_iter().flatten().collect();
        if !outcomes.is_empty() {
            ring.target_system.set_end_note(outcomes.join("; "));
        }
        Ok(())
    }
}

fn is_sync_operation(operation: IoOperation) -> bool {
    match operation {
        IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => true,
        IoOperation::Read | IoOperation::Write | IoOperation::DiscardRange => false,
    }
}

fn operation_of_direction(direction: Direction) -> IoOperation {
    match direction {
        Direction::Read => IoOperation::Read,
        Direction::Write => IoOperation::Write,
        Direction::Trim => IoOperation::DiscardRange,
    }
}

fn draw_start_delay(job: &JobDefinition, worker: &Worker) -> Nanoseconds {
    let (least_us, most_us) = job.durations.start_delay_us;
    let room_us = most_us.saturating_sub(least_us);
    let mut random = RandomDraws::new(worker.random_seed, START_DELAY_STREAM);
    let drawn_us = match room_us {
        0 => 0,
        room_us => random.draw_below(room_us + 1),
    };
    Nanoseconds((least_us + drawn_us).saturating_mul(1000))
}
