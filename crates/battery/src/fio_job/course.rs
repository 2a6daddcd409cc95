//! The loop that does a clone's I/Os: as many under way as the job says, with its syncs,
//! its pauses and its ends.

mod waits;

use super::duplicates::Duplicates;
use super::iolog::Iolog;
use super::pace::{Rates, Times, Turn};
use super::pauses::Pauses;
use super::script::{Cursor, Step};
use super::search::{DepthSearch, SearchStep};
use super::state::LoadedState;
use super::stream::{Next, Stream};
use super::syncs::DueSync;
use super::trims::Trims;
use super::watch::Watch;
use super::{FioJob, locks};
use crate::blocks::remove_file;
use crate::ring::slots::Slots;
use crate::program::ProgramError;
use crate::random::Draws;
use crate::verify::Verifier;
use crate::worker::Worker;
use diskperf_fio::job::{Engine, EngineKind};
use diskperf_fio::{Direction, Job};
use diskperf_system::{File, Operation, Spans, Submission, System};
use diskperf_timeline::Nanoseconds;
use waits::{sleep_until, wait_for_job};

/// The random stream that the delay of a clone is drawn from.
const DELAY_STREAM: u128 = 15;

/// A clone at work.
pub(super) struct Course<'a> {
    pub(super) system: &'a mut System,
    pub(super) worker: &'a Worker,
    pub(super) program: &'a FioJob,
    pub(super) job: &'a Job,
    pub(super) files: Vec<(File, String)>,
    pub(super) stream: Stream<'a>,
    rates: Rates,
    pub(super) times: Times,
    watch: Watch,
    /// The log that it repeats in place of its stream.
    script: Option<Cursor>,
    /// The log that it writes.
    iolog: Option<Iolog>,
    /// The data of its writes, where a share of it is there already.
    pub(super) duplicates: Option<Duplicates>,
    pub(super) slots: Slots,
    /// Where blocks are verified.
    pub(super) verifier: Option<Verifier>,
    /// Blocks that are to be trimmed among the writes.
    pub(super) trims: Option<Trims>,
    /// Whether a write found no space, which ends a job that fills the device.
    is_full: bool,
    /// How far another run wrote what is verified.
    pub(super) loaded_state: Option<LoadedState>,
    /// Time of writes and of what reads them back, and the start of the one that is on.
    pub(super) spans: Spans,
    pub(super) span_start: Nanoseconds,
    /// Syncs that are not complete.
    syncs_under_way: u32,
    /// Whether it is over before its amount is done and its time has passed: it is steady,
    /// or its depth is found.
    is_steady: bool,
    /// Whether another job may end this one.
    may_be_ended: bool,
    /// CPU time after each I/O.
    think: Nanoseconds,
    pauses: Pauses,
    search: Option<DepthSearch>,
    /// Step of the search that is to be taken when nothing is in flight.
    search_step: SearchStep,
    /// Put into slots and not submitted yet.
    unsubmitted: u32,
}

/// Why no more I/Os are put into slots.
enum Halt {
    /// The slots are full.
    Full,
    /// The next one is not due before this moment.
    Until(Nanoseconds),
    /// Time has passed, and the job may have come to its end.
    Waited,
    /// Other jobs of the flow go first: the notices that workers had given each other by then.
    OtherJobs(u64),
    /// All that is under way ends first.
    Drain,
    /// The job is over.
    Over,
}

impl<'a> Course<'a> {
    /// Waits for the job that the clone's job waits for, opens its files, and waits for its
    /// start, from which its rates and its ends count.
    pub(super) async fn start(
        (system, worker): (&'a mut System, &'a Worker),
        program: &'a FioJob,
    ) -> Result<Self, ProgramError> {
        let job = &*program.job;
        // The delay counts from the start of the first step, as in fio.
        let due = system.now() + delay(job, worker).since(worker.company.elapsed_before());
        let may_be_ended = worker.company.may_be_ended();
        let has_waited = wait_for_job((&mut *system, worker), job).await?;
        let files = program.open((&mut *system, worker)).await?;
        sleep_until((&mut *system, worker), due).await?;
        // Opening files takes longer than many requests: 50 ms each on a computer of 1978.
        system.restart_measuring()?;
        if !worker.company.must_end() {
            worker.company.start();
        }
        let start = system.now();
        let names = program.of(worker).iter().map(|file| file.path.clone());
        let iolog = Iolog::begin(job, (worker.index, names.collect()), start)?;
        let script = program.script.as_ref();
        let mut course = Self {
            system,
            worker,
            program,
            job,
            stream: Stream::new(job, program.of(worker), (&worker.company, worker.seed)),
            rates: Rates::new(job, (start, worker.seed)),
            times: Times::new(job, start),
            watch: Watch::new(job, start, &worker.company),
            script: script.map(|script| Cursor::new(script, job, start)),
            iolog,
            duplicates: Duplicates::new(job, program.amount_bytes(), worker.seed),
            slots: program.slots(worker, &files),
            files,
            verifier: super::read_back::verifier(program, worker),
            trims: Trims::new(job, worker.seed),
            is_full: false,
            loaded_state: LoadedState::load(job, worker)?,
            spans: Spans::default(),
            span_start: start,
            syncs_under_way: 0,
            is_steady: false,
            may_be_ended,
            think: worker.think,
            pauses: Pauses::new(job, start),
            search: DepthSearch::of(job, super::depth(job), start),
            search_step: SearchStep::None,
            unsubmitted: 0,
        };
        if has_waited {
            // The cache holds what the other job left there.
            course.drop_all_cached().await?;
        }
        Ok(course)
    }

    pub(super) async fn run(&mut self) -> Result<(), ProgramError> {
        if super::read_back::verifies_only(self.job) {
            self.verify_only().await?;
            return self.end().await;
        }
        if self.job.files.only_created {
            return self.end().await;
        }
        if self.job.engine.engine.kind() == EngineKind::Processor {
            self.use_processor().await?;
            return self.end().await;
        }
        loop {
            let now = self.system.now();
            let halt = self.fill(now).await?;
            self.submit().await?;
            match halt {
                Halt::Waited => {}
                Halt::OtherJobs(notices) => self.wait_for_flow(notices).await?,
                Halt::Full => self.reap_to_refill().await?,
                Halt::Until(due) => {
                    let wake = self.times.end.map_or(due, |end| end.min(due));
                    // With nothing under way too, this waits until then.
                    self.reap((1, usize::MAX), Some(wake)).await?;
                }
                Halt::Drain => {
                    self.drain().await?;
                    self.sync_at_end().await?;
                    self.verify_pass().await?;
                    if !self.stream.begin_pass() {
                        return self.end().await;
                    }
                    self.begin_pass().await?;
                }
                Halt::Over => {
                    self.drain().await?;
                    self.sync_at_end().await?;
                    self.verify_pass().await?;
                    return self.end().await;
                }
            }
        }
    }

    /// Fills the slots with what is to be issued now.
    async fn fill(&mut self, now: Nanoseconds) -> Result<Halt, ProgramError> {
        if self.search_step != SearchStep::None {
            self.take_search_step().await?;
            return Ok(Halt::Waited);
        }
        while self.has_room() {
            if self.is_over(now) {
                return Ok(Halt::Over);
            }
            if let Some(script) = &mut self.script {
                match script.step(now) {
                    Step::Issue {
                        operation,
                        place,
                        intended,
                    } => self.put(operation, place, intended).await?,
                    Step::Wait(due) => return Ok(Halt::Until(due)),
                    Step::End => return Ok(Halt::Over),
                }
                continue;
            }
            if let Some(due) = self.stream.sync() {
                match self.sync(due).await? {
                    true => return Ok(Halt::Waited),
                    false => continue,
                }
            }
            let drawn = self.stream.draw_direction();
            let (direction, intended) = match self.rates.turn(drawn, self.job, now) {
                Turn::Issue(direction, intended) => (direction, intended),
                Turn::Wait(due) => return Ok(Halt::Until(due)),
            };
            if let Some(halt) = self.take_flow_turn().await? {
                return Ok(halt);
            }
            let io = match self.stream.next(direction) {
                Next::Io(io) if !self.is_covered(io.file, io.offset_bytes) => {
                    return Ok(Halt::Over);
                }
                Next::Io(io) => io,
                Next::EndOfPass => return Ok(Halt::Drain),
            };
            while let Some(file) = self.stream.begun_again() {
                self.drop_cached(file).await?;
            }
            if self.stream.take_drain() {
                self.drain().await?;
            }
            self.rates.issued(&io);
            let place = (io.file, io.offset_bytes, io.bytes);
            self.wait_for_overlap(place).await?;
            if self.job.engine.serialize_overlap && self.is_over(self.system.now()) {
                return Ok(Halt::Over);
            }
            let guard = match locks(self.job) {
                true => self.lock_file(&io).await?,
                false => None,
            };
            if locks(self.job) && guard.is_none() {
                return Ok(Halt::Over);
            }
            self.put(operation(io.direction), place, intended).await?;
            let is_before_its_write =
                io.direction == Direction::Trim && self.job.pattern.access.does(Direction::Write);
            if is_before_its_write || guard.is_some() {
                self.drain().await?;
            }
            let was_locked = guard.is_some();
            if let Some(guard) = guard {
                self.unlock_file(guard);
            }
            let trimmed = self.trim_written(&io).await?;
            let read_back = self.verify_backlog().await? || trimmed;
            let has_waited = read_back || is_before_its_write || was_locked;
            if self.pause(io.direction).await? || has_waited {
                return Ok(Halt::Waited);
            }
        }
        Ok(Halt::Full)
    }

    /// Whether another I/O may be in flight.
    fn has_room(&self) -> bool {
        let in_flight = self.slots.in_use();
        let depth = self.search.as_ref().map(DepthSearch::depth);
        !self.slots.are_full() && depth.is_none_or(|depth| in_flight < depth as usize)
    }

    /// Takes the step of the search for a depth that waits for what is in flight.
    async fn take_search_step(&mut self) -> Result<(), ProgramError> {
        self.drain().await?;
        if self.search_step == SearchStep::LastWindow {
            self.stream.forget_amounts();
            self.system.restart_measuring()?;
        }
        self.search_step = SearchStep::None;
        let now = self.system.now();
        if let Some(search) = &mut self.search {
            search.begin(now);
        }
        Ok(())
    }

    /// Issues a sync, and returns whether it waited. The sync of libaio is a call that
    /// returns when it is done; all that is in flight goes on meanwhile.
    async fn sync(&mut self, due: DueSync) -> Result<bool, ProgramError> {
        let is_of_range = matches!(due.operation, Operation::SyncRange(_));
        if is_of_range && due.range.is_empty() {
            return Ok(false);
        }
        // What no request can hold is all to the end of the file.
        let bytes = u32::try_from(due.range.end - due.range.start).unwrap_or(0);
        let place = match is_of_range {
            true => (due.file, due.range.start, bytes),
            false => (due.file, 0, 0),
        };
        self.put(due.operation, place, None).await?;
        if self.job.engine.engine == Engine::Libaio {
            self.submit().await?;
            while self.syncs_under_way > 0 {
                self.reap((1, usize::MAX), None).await?;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// Gives a request a slot, and submits as many at once as the job says.
    pub(super) async fn put(
        &mut self,
        operation: Operation,
        (file, offset_bytes, bytes): (usize, u64, u32),
        intended: Option<Nanoseconds>,
    ) -> Result<(), ProgramError> {
        let request = Submission {
            operation,
            file: self.files[file].0,
            offset_bytes,
            bytes,
            slot: 0,
            intended,
        };
        if let Some(log) = &mut self.iolog {
            log.issued(self.system.now(), file, &request)?;
        }
        let request = self.slots.put(request);
        self.prepare_data(request, file);
        self.syncs_under_way += u32::from(is_sync(operation));
        self.unsubmitted += 1;
        if self.unsubmitted >= self.job.engine.batch {
            self.submit().await?;
        }
        Ok(())
    }

    pub(super) async fn submit(&mut self) -> Result<(), ProgramError> {
        self.unsubmitted = 0;
        self.slots.submit(self.system, None).await
    }

    /// Makes all durable at the end of a pass, which counts in its time.
    async fn sync_at_end(&mut self) -> Result<(), ProgramError> {
        let sync = &self.job.sync;
        let writes = self.job.pattern.access.does(Direction::Write);
        let has_data = !self.job.engine.engine.is_of_names();
        if writes && has_data && (sync.fsync_at_end || sync.fsync_on_close) {
            for (file, _) in &self.files {
                self.system.fsync(*file).await?;
            }
        }
        Ok(())
    }

    /// What comes between two passes: files that are made anew, and whose cache is dropped.
    async fn begin_pass(&mut self) -> Result<(), ProgramError> {
        if let Some(verifier) = &mut self.verifier
            && self.job.random.repeatable
        {
            verifier.restart_seeds();
        }
        if self.job.files.unlink_each_loop {
            for (file, path) in std::mem::take(&mut self.files) {
                self.system.close(file).await?;
                remove_file(self.system, self.worker.medium, &path).await?;
            }
            self.files = self.program.open((&mut *self.system, self.worker)).await?;
            let opened = (&mut self.slots, &*self.files);
            self.program.place_files(self.worker, opened);
        }
        self.drop_all_cached().await
    }

    async fn drop_all_cached(&mut self) -> Result<(), ProgramError> {
        for file in 0..self.files.len() {
            self.drop_cached(file).await?;
        }
        Ok(())
    }

    /// Drops a file's cache where the job does so each time that it begins with it.
    async fn drop_cached(&mut self, file: usize) -> Result<(), ProgramError> {
        let has_data = !self.job.engine.engine.is_of_names();
        if has_data && self.job.files.invalidate && !self.worker.direct {
            self.system.drop_clean(&self.files[file].1).await?;
        }
        Ok(())
    }

    /// What comes when the last pass is done.
    async fn end(&mut self) -> Result<(), ProgramError> {
        self.tell_verified()?;
        if let Some(log) = self.iolog.take() {
            log.end(self.system.now())?;
        }
        let found = self.search.as_ref();
        if let Some(search) = found {
            self.system.used_slots(0, search.depth().into());
        }
        let outcomes = [self.watch.outcome(), found.map(DepthSearch::outcome)];
        let outcomes: Vec<String> = outcomes.into_iter().flatten().collect();
        if !outcomes.is_empty() {
            self.system.say_of_end(outcomes.join("; "));
        }
        Ok(())
    }
}

fn is_sync(operation: Operation) -> bool {
    match operation {
        Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => true,
        Operation::Read | Operation::Write | Operation::Discard => false,
    }
}

fn operation(direction: Direction) -> Operation {
    match direction {
        Direction::Read => Operation::Read,
        Direction::Write => Operation::Write,
        Direction::Trim => Operation::Discard,
    }
}

/// How long a clone waits before it starts.
fn delay(job: &Job, worker: &Worker) -> Nanoseconds {
    let (least_us, most_us) = job.times.start_delay_us;
    let room_us = most_us.saturating_sub(least_us);
    let mut random = Draws::new(worker.seed, DELAY_STREAM);
    let drawn_us = match room_us {
        0 => 0,
        room_us => random.below(room_us + 1),
    };
    Nanoseconds((least_us + drawn_us).saturating_mul(1000))
}
