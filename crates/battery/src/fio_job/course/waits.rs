//! The waits of a clone. Each ends with the job at the latest, and where the job is to be
//! looked at.

use super::super::search::SearchStep;
use super::super::stream::Io;
use super::{Course, Halt, is_sync};
use crate::blocks::pause;
use crate::file_locks::FileGuard;
use crate::program::ProgramError;
use crate::ring::slots::Completed;
use crate::worker::Worker;
use diskperf_fio::job::{ErrorKind, FileLock};
use diskperf_fio::{Direction, Job};
use diskperf_system::{Errno, File, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// Time in which a job that waits notices that another one ended it; fio takes as long.
const LOOK_EVERY: Nanoseconds = Nanoseconds::from_millis(10);

impl Course<'_> {
    /// Takes the turn for an I/O of the job's flow; where other jobs go first, returns why
    /// the job waits.
    pub(super) async fn take_flow_turn(&mut self) -> Result<Option<Halt>, ProgramError> {
        if self.job.order.flow == 0 {
            return Ok(None);
        }
        let notices = self.system.notices();
        if self.worker.company.take_turn() {
            self.system.give_notice();
            return Ok(None);
        }
        if self.job.order.flow_sleep_us == 0 {
            return Ok(Some(Halt::OtherJobs(notices)));
        }
        self.drain().await?;
        let sleep = Nanoseconds(u64::from(self.job.order.flow_sleep_us) * 1000);
        self.pass_until(self.system.now() + sleep, true).await?;
        Ok(Some(Halt::Waited))
    }

    /// Waits until another job of the flow has issued an I/O or ended, at most until the end
    /// of the job. With I/O of its own in flight, the job looks again when one completes.
    pub(super) async fn wait_for_flow(&mut self, notices: u64) -> Result<(), ProgramError> {
        if self.slots.in_use() > 0 {
            return self.reap((1, usize::MAX), self.times.end).await;
        }
        let wakes = [self.times.end, self.next_look()];
        let wake = wakes.into_iter().flatten().min();
        self.system.await_notice(notices, wake).await?;
        self.look(self.system.now())
    }

    /// Waits for what is in flight that overlaps an I/O, where the job has these in order.
    pub(super) async fn wait_for_overlap(
        &mut self,
        (file, offset_bytes, bytes): (usize, u64, u32),
    ) -> Result<(), ProgramError> {
        if !self.job.engine.serialize_overlap {
            return Ok(());
        }
        let request = Submission {
            operation: Operation::Read,
            file: self.files[file].0,
            offset_bytes,
            bytes,
            slot: 0,
            intended: None,
        };
        while self.slots.overlap(&request) {
            self.submit().await?;
            self.reap((1, usize::MAX), None).await?;
        }
        Ok(())
    }

    /// Takes the lock of an I/O's file, when it is this worker's turn. Returns nothing where
    /// the job ends before.
    pub(super) async fn lock_file(&mut self, io: &Io) -> Result<Option<FileGuard>, ProgramError> {
        let shares = self.job.files.lock == FileLock::ReadWrite && io.direction == Direction::Read;
        // Areas of a device have locks of their own.
        let name = super::super::name(&self.program.of(self.worker)[io.file]);
        let wait = self.worker.company.locks().wait_for(&name);
        let guard = loop {
            let notices = self.system.notices();
            if let Some(guard) = wait.try_lock(shares) {
                break Some(guard);
            }
            let now = self.system.now();
            self.look(now)?;
            if self.is_over(now) {
                break None;
            }
            let wakes = [self.times.end, self.next_look()];
            let wake = wakes.into_iter().flatten().min();
            self.system.await_notice(notices, wake).await?;
        };
        // The next one that waits may share the lock, or has a turn that this worker gave up.
        drop(wait);
        self.system.give_notice();
        Ok(guard)
    }

    /// Frees the lock of a file, and lets the next worker that waits for it have it.
    pub(super) fn unlock_file(&self, guard: FileGuard) {
        drop(guard);
        self.system.give_notice();
    }

    /// Takes as many as the job takes at once, until so few are under way that it fills the
    /// slots again.
    pub(super) async fn reap_to_refill(&mut self) -> Result<(), ProgramError> {
        let engine = &self.job.engine;
        let low = engine.depth_low.unwrap_or(u32::MAX) as usize;
        let least = engine.complete_min.max(1) as usize;
        // Without a most, fio takes as many as the least.
        let most = engine.complete_max.map_or(least, |most| most as usize);
        loop {
            let under_way = self.slots.in_use();
            self.reap((least.min(under_way), most.max(least)), None)
                .await?;
            let left = self.slots.in_use();
            if left == 0 || (left <= low && !self.slots.are_full()) {
                return Ok(());
            }
        }
    }

    /// Waits for all that is under way, one after the other: fio takes the last ones together,
    /// so that each of them seems to last until the slowest is complete.
    pub(in super::super) async fn drain(&mut self) -> Result<(), ProgramError> {
        self.submit().await?;
        while self.slots.in_use() > 0 {
            self.reap((1, usize::MAX), None).await?;
        }
        Ok(())
    }

    /// Waits until so many completed, at most until a moment, the end of the ramp or the
    /// next look at the clone; takes so many of them at most, and writes the rests of short
    /// writes.
    pub(in super::super) async fn reap(
        &mut self,
        (at_least, at_most): (usize, usize),
        until: Option<Nanoseconds>,
    ) -> Result<(), ProgramError> {
        let until = until.into_iter().chain(self.next_look()).min();
        let now = self.slots.reap(self.system, at_least, until).await?;
        for _ in 0..at_most {
            let Some(completed) = self.slots.take()? else {
                break;
            };
            self.complete(&completed)?;
            pause(self.system, self.think).await?;
        }
        if let Some(verifier) = &mut self.verifier {
            verifier.move_rests(self.system, self.slots.waiting());
        }
        self.slots.submit(self.system, None).await?;
        self.look(now)
    }

    fn complete(&mut self, completed: &Completed) -> Result<(), ProgramError> {
        let request = &completed.request;
        let path = || path_of(&self.files, request.file);
        self.watch.completed(request, completed.response, path)?;
        let is_io = !is_sync(request.operation);
        if let Some(search) = self.search.as_mut().filter(|_| is_io)
            && self.search_step == SearchStep::None
        {
            self.search_step = search.completed(completed.response);
            if self.search_step == SearchStep::Failed {
                return Err(self.watch.no_depth(request, completed.response, path()));
            }
        }
        let has_failed = match completed.result {
            Err(failure) if self.passes_over(request.operation, failure.errno) => true,
            _ => {
                completed.check(|| path_of(&self.files, request.file))?;
                false
            }
        };
        self.syncs_under_way -= u32::from(is_sync(request.operation));
        let Some(verifier) = &mut self.verifier else {
            return Ok(());
        };
        let path = |file: usize| self.files[file].1.clone();
        match has_failed {
            true => verifier.fail(request.slot),
            false => verifier.complete(self.system, request.slot, path)?,
        }
        Ok(())
    }

    /// Returns whether the job goes on although a request failed with an error.
    fn passes_over(&mut self, operation: Operation, errno: Errno) -> bool {
        let has_no_space = matches!(errno, Errno::NoSpace | Errno::Quota);
        if self.job.files.fills && has_no_space && operation == Operation::Write {
            self.is_full = true;
            return true;
        }
        let errors = &self.job.errors;
        let passes_over = errors.passes_over(error_kind(operation), errno.number());
        if passes_over {
            self.system.count_error(errno);
        }
        passes_over
    }

    /// Sees what time has brought: the end of the ramp, and what may end the job early.
    pub(super) fn look(&mut self, now: Nanoseconds) -> Result<(), ProgramError> {
        self.is_steady |= self.watch.look(now)?;
        if let Some(search) = self
            .search
            .as_mut()
            .filter(|_| self.search_step == SearchStep::None)
        {
            match search.look(now) {
                SearchStep::Next => search.begin(now),
                SearchStep::Done => self.is_steady = true,
                step => self.search_step = step,
            }
        }
        if self.times.ramp.is_some_and(|end| now >= end) {
            self.times.ramp = None;
            self.span_start = now;
            self.stream.forget_amounts();
            self.system.restart_measuring()?;
        }
        Ok(())
    }

    /// The moment at which the job is to be looked at next, whatever it waits for.
    pub(super) fn next_look(&self) -> Option<Nanoseconds> {
        let of_others = self.may_be_ended.then(|| self.system.now() + LOOK_EVERY);
        let of_search = self.search.as_ref().map(|search| search.due());
        let of_search = of_search.filter(|due| *due > self.system.now());
        let moments = [self.times.ramp, self.watch.due(), of_others, of_search];
        moments.into_iter().flatten().min()
    }

    /// Whether the job issues nothing more, because its time is over or it was ended early.
    pub(in super::super) fn is_over(&self, now: Nanoseconds) -> bool {
        self.is_steady
            || self.is_full
            || self.worker.company.must_end()
            || self.times.end.is_some_and(|end| now >= end)
    }

    /// Passes time until a moment, at most until the end of the job: sleeping, or in use of
    /// the processor.
    pub(in super::super) async fn pass_until(
        &mut self,
        moment: Nanoseconds,
        sleeps: bool,
    ) -> Result<(), ProgramError> {
        loop {
            let now = self.system.now();
            self.look(now)?;
            if now >= moment || self.is_over(now) {
                return Ok(());
            }
            let wakes = [Some(moment), self.times.end, self.next_look()];
            let wake = wakes.into_iter().flatten().min().unwrap_or(moment);
            match sleeps {
                true => self.system.sleep_until(wake).await?,
                false => self.system.compute(wake.since(now)).await?,
            }
        }
    }

    /// Pauses when there were as many I/Os as the job says, with none in flight, and not
    /// beyond the end of the job. Returns whether it paused.
    pub(super) async fn pause(&mut self, direction: Direction) -> Result<bool, ProgramError> {
        let think = &self.job.think;
        if think.time_us == 0 || !self.pauses.follow(self.system.now()) {
            return Ok(false);
        }
        self.drain().await?;
        let begin = self.system.now();
        let after = |microseconds: u32| begin + Nanoseconds(u64::from(microseconds) * 1000);
        let (spun, ended) = (
            after(think.spin_us.min(think.time_us)),
            after(think.time_us),
        );
        self.pass_until(spun, false).await?;
        self.pass_until(ended, true).await?;
        if self.job.rate.ignore_think {
            let paused = self.system.now().since(begin);
            self.rates.forgive(direction, paused);
        }
        Ok(true)
    }
}

/// Waits for all clones of the job that `wait_for` names, unless another job ends this one
/// before. Returns whether there was anything to wait for.
pub(super) async fn wait_for_job(
    (system, worker): (&mut System, &Worker),
    job: &Job,
) -> Result<bool, ProgramError> {
    let Some(name) = &job.order.wait_for else {
        return Ok(false);
    };
    let company = &worker.company;
    let may_be_ended = company.may_be_ended();
    let mut has_waited = false;
    loop {
        let notices = system.notices();
        if company.must_end() || !company.is_in_progress(name) {
            return Ok(has_waited);
        }
        has_waited = true;
        let look = may_be_ended.then(|| system.now() + LOOK_EVERY);
        system.await_notice(notices, look).await?;
    }
}

/// Sleeps until a moment, unless another job ends this one before.
pub(super) async fn sleep_until(
    (system, worker): (&mut System, &Worker),
    moment: Nanoseconds,
) -> Result<(), ProgramError> {
    let may_be_ended = worker.company.may_be_ended();
    loop {
        let now = system.now();
        if now >= moment || worker.company.must_end() {
            return Ok(());
        }
        let wake = match may_be_ended {
            true => moment.min(now + LOOK_EVERY),
            false => moment,
        };
        system.sleep_until(wake).await?;
    }
}

/// Path of an open file.
fn path_of(files: &[(File, String)], file: File) -> String {
    let named = files.iter().find(|(open, _)| *open == file);
    named.map_or_else(String::new, |(_, path)| path.clone())
}

/// The kind of error that fio counts those of an operation as.
fn error_kind(operation: Operation) -> ErrorKind {
    match operation {
        Operation::Read => ErrorKind::Read,
        Operation::Write
        | Operation::Discard
        | Operation::Fsync
        | Operation::Fdatasync
        | Operation::SyncRange(_) => ErrorKind::Write,
    }
}
