//! Calls of a program on its ring, and the worker's measure of them.

use super::super::clock::monotonic;
use super::super::usage::{HelperUsage, Helpers};
use super::super::worker::{Control, Host, OpenFile, show_progress_now_and_then};
use super::files::RingFiles;
use super::{EngineNote, GIVE_UP_AFTER, Ring, RingRecord, Taken, changes};
use crate::ring::record::{Done, LoadRecorder};
use crate::{
    Call, Commit, Completion, Errno, Error, File, NameCall, Operation, ReadBackProgress, Result,
    RingOptions, Spans, Submission,
};
use diskperf_timeline::{LoadMeasure, Nanoseconds, Verified, WorkerMeasure};

impl Host {
    pub(crate) fn open_ring(&mut self, options: RingOptions, files: &[File]) -> Result<()> {
        self.check_stop()?;
        self.close_ring()?;
        let files = RingFiles::new(files, &self.files)?;
        let log = self.ports.ring_log.as_ref();
        let record = log.map(|log| RingRecord::of(log, options.depth, &files));
        let ring = Box::new(Ring::new(options, files, self.control.clock)?);
        // A second ring of a timed part adds to what the first one measured.
        let is_first = self.load.is_none() || !self.measuring;
        if is_first {
            let recorder = LoadRecorder::new(ring.engine_name(), options.depth, options.interval);
            self.load = Some(Box::new(recorder));
        }
        self.engine_note = ring.note().cloned();
        self.ring = Some(ring);
        self.ring_record = record;
        let is_counted = self.measure.calls > 0;
        if is_first && self.measuring && !is_counted {
            // Filling the buffers of a ring takes tens of milliseconds, which are none of storage.
            self.restart_measuring()?;
        }
        Ok(())
    }

    /// Returns the note why requests of the latest ring were not submitted in the best way:
    /// io_uring is unavailable, or does not get the memory that it needs. `None` if they were.
    pub fn engine_note(&self) -> Option<&EngineNote> {
        self.engine_note.as_ref()
    }

    pub(crate) fn ring_buffer(&mut self, slot: u32) -> Option<&mut [u8]> {
        Some(self.ring.as_mut()?.buffer(slot))
    }

    #[inline]
    pub(crate) fn submit(&mut self, submissions: &[Submission]) -> Result<()> {
        self.submit_at(None, submissions)
    }

    #[inline]
    pub(crate) fn submit_at(
        &mut self,
        moment: Option<Nanoseconds>,
        submissions: &[Submission],
    ) -> Result<()> {
        self.control.check()?;
        let (Some(ring), Some(load)) = (&mut self.ring, &mut self.load) else {
            return Err(no_ring());
        };
        if let Some(moment) = moment {
            ring.look_until(moment);
        }
        if let Some(record) = &mut self.ring_record {
            record.submitted(submissions);
        }
        ring.submit(submissions, |lag| load.issued_late_by(lag))
    }

    #[inline]
    pub(crate) fn reap(
        &mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
        completions: &mut Vec<Completion>,
    ) -> Result<Nanoseconds> {
        let had = completions.len();
        let mut polled = false;
        loop {
            self.control.check()?;
            let now = self.take(completions)?;
            let ring = self.ring.as_mut().ok_or_else(no_ring)?;
            let taken = completions.len() - had;
            let is_time = until.is_some_and(|until| now >= until);
            let wanted = match until {
                None => at_least.saturating_sub(taken).min(ring.under_way()),
                Some(_) => at_least.saturating_sub(taken),
            };
            if wanted > 0 && !is_time {
                ring.wait(wanted, until)?;
            } else if taken > 0 || polled || ring.under_way() == 0 {
                return Ok(now);
            } else {
                // Nothing was waited for: what the kernel kept for this thread is complete.
                ring.poll()?;
                polled = true;
            }
        }
    }

    /// Reaps all completions of the ring without waiting, and counts them in the worker's measure.
    #[inline]
    fn take(&mut self, completions: &mut Vec<Completion>) -> Result<Nanoseconds> {
        let (Some(ring), Some(load)) = (&mut self.ring, &mut self.load) else {
            return Err(no_ring());
        };
        let mut account = Account {
            control: &self.control,
            files: &mut self.files,
            measure: &mut self.measure,
            load,
            timed_from: self.measuring.then_some(self.started.time),
        };
        let mut record = self.ring_record.as_mut();
        ring.take(|taken, now| {
            account.count(&taken, now);
            if let Some(record) = &mut record {
                record.taken(taken.submission.slot, taken.result, now);
            }
            completions.push(taken.completion());
        })
    }

    pub(crate) fn judge_by_commits(&mut self) {
        if let Some(load) = &mut self.load {
            load.judge_by_commits();
        }
    }

    pub(crate) fn count_commit(&mut self, commit: Commit) {
        if let Some(load) = &mut self.load {
            load.committed(commit, monotonic().since(self.started.time));
        }
    }

    pub(crate) fn count_uncommitted(&mut self, intended: Nanoseconds) {
        if let Some(load) = &mut self.load {
            load.uncommitted(monotonic().since(intended));
        }
    }

    pub(crate) fn used_slots(&mut self, held_up: u64, deepest: u64) {
        if let Some(load) = &mut self.load {
            load.used_slots(held_up, deepest);
        }
    }

    pub(crate) fn count_error(&mut self, errno: crate::Errno) {
        if let Some(load) = &mut self.load {
            load.passed_over(errno.number());
        }
    }

    pub(crate) fn say_of_end(&mut self, text: String) {
        if let Some(load) = &mut self.load {
            load.say_of_end(text);
        }
    }

    pub(crate) fn count_spans(&mut self, spans: Spans) {
        if let Some(load) = &mut self.load {
            load.count_spans(spans);
        }
    }

    pub(crate) fn show_read_back(&self, progress: ReadBackProgress) {
        self.control.progress.set_read_back(progress);
    }

    pub(crate) fn count_verified(&mut self, verified: Verified) {
        match (&mut self.ended, &mut self.load) {
            (Some(ended), _) => ended.count_verified(verified),
            (None, Some(load)) => load.count_verified(verified),
            (None, None) => {}
        }
    }

    pub(crate) fn count_calls(&mut self, interval: Nanoseconds) {
        self.load = Some(Box::new(LoadRecorder::of_calls(interval)));
    }

    pub(crate) fn count_call(&mut self, call: NameCall, bytes: u64, took: Nanoseconds) {
        if let Some(load) = &mut self.load {
            let since_start = monotonic().since(self.started.time);
            load.called(call, bytes, took, since_start);
        }
    }

    pub(crate) fn count_request(&mut self, operation: Operation, bytes: u64, took: Nanoseconds) {
        let now = monotonic();
        let (Some(load), true) = (&mut self.load, self.measuring) else {
            return;
        };
        match operation {
            Operation::Read => self.measure.read_bytes += bytes,
            Operation::Write => self.measure.written_bytes += bytes,
            Operation::Fsync
            | Operation::Fdatasync
            | Operation::SyncRange(_)
            | Operation::Discard => {}
        }
        self.measure.calls += 1;
        load.advance(now.since(self.started.time));
        load.completed(Done {
            operation,
            bytes,
            response: took,
            submit: Nanoseconds::ZERO,
            completion: took,
        });
        show_progress_now_and_then(&self.control, &self.measure);
    }

    pub(crate) fn count_unissued(&mut self, operation: Operation, intended: Nanoseconds) {
        if let Some(load) = &mut self.load {
            load.unfinished(operation, monotonic().since(intended));
        }
    }

    pub(crate) fn restart_measuring(&mut self) -> Result<()> {
        self.start_measuring(self.started.origin)
    }

    pub(crate) fn close_ring(&mut self) -> Result<()> {
        let mut completions = Vec::new();
        let mut latest = monotonic();
        while let Some(ring) = &self.ring {
            let under_way = ring.under_way();
            if under_way == 0 {
                break;
            }
            let slice = monotonic() + super::WAIT_SLICE;
            completions.clear();
            let now = self.reap(under_way, Some(slice), &mut completions)?;
            if !completions.is_empty() {
                latest = now;
            } else if now.since(latest) > GIVE_UP_AFTER {
                return Err(self.give_ring_up());
            }
        }
        self.end_helpers();
        self.ring = None;
        Ok(())
    }

    /// Gives up a ring whose device never completes its requests, and returns the error that names
    /// them.
    #[cold]
    fn give_ring_up(&mut self) -> Error {
        let stuck = self.ring.as_mut().map(|ring| {
            ring.give_up();
            ring.stuck()
        });
        self.ring = None;
        let what = format!("of {}, which do not complete", stuck.unwrap_or_default());
        Error::failed(Call::Ring, what, Errno::TimedOut)
    }
}

impl Host {
    /// Restarts the measure of requests at the start of the timed part.
    pub(in super::super) fn restart_load(&mut self) {
        self.ended_helpers = HelperUsage::default();
        match &mut self.load {
            Some(load) if self.ring.is_some() || load.is_of_calls() => load.restart(),
            load => *load = None,
        }
    }

    /// Returns the measure of the timed part's requests. Incomplete requests of open loop count
    /// with the time that they have waited until now.
    pub(in super::super) fn take_load(&mut self, now: Nanoseconds) -> Option<LoadMeasure> {
        let load = self.load.as_mut()?;
        for (submission, start) in self.ring.iter().flat_map(|ring| ring.each_under_way()) {
            if submission.intended.is_some() {
                load.unfinished(submission.operation, now.since(start));
            }
        }
        let mut measure = load.take(now.since(self.started.time));
        measure.engine_note = self.engine_note.as_ref().map(|note| note.text.clone());
        if self.ring.is_none() {
            self.load = None;
        }
        Some(measure)
    }

    /// Returns the usage of the helper threads, for a worker with a ring.
    pub(in super::super) fn helpers(&self) -> Helpers {
        match self.ring {
            Some(_) => Helpers::of(rustix::thread::gettid()),
            None => Helpers::default(),
        }
    }

    pub(in super::super) fn helpers_since_start(&self) -> HelperUsage {
        self.ended_helpers + self.helpers().since(&self.started.helpers)
    }

    /// Saves the helpers' usage before the ring is closed.
    fn end_helpers(&mut self) {
        if self.ring.is_some() && self.measuring {
            self.ended_helpers = self.helpers_since_start();
            self.started.helpers = Helpers::default();
        }
    }
}

/// Counters and recorders that a completion updates.
struct Account<'a> {
    control: &'a Control,
    files: &'a mut [Option<OpenFile>],
    measure: &'a mut WorkerMeasure,
    load: &'a mut LoadRecorder,
    /// Start of the timed part; `None` outside of it.
    timed_from: Option<Nanoseconds>,
}

impl Account<'_> {
    /// Counts a completed request of the timed part. Failed requests do not count, as with failed
    /// calls.
    #[inline]
    fn count(&mut self, taken: &Taken, now: Nanoseconds) {
        let (Ok(bytes), Some(timed_from)) = (taken.result, self.timed_from) else {
            return;
        };
        let Submission {
            operation, file, ..
        } = taken.submission;
        let mut bytes = u64::from(bytes);
        match operation {
            Operation::Read => self.measure.read_bytes += bytes,
            Operation::Write => self.measure.written_bytes += bytes,
            Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => {
                self.measure.metadata_calls += 1;
            }
            // The kernel answers 0 for all of it.
            Operation::Discard => bytes = u64::from(taken.submission.bytes),
        }
        if matches!(operation, Operation::Read | Operation::Write) {
            self.measure.calls += 1;
            show_progress_now_and_then(self.control, self.measure);
        }
        if changes(operation)
            && let Some(Some(open)) = self.files.get_mut(file.0)
        {
            open.dirty = open.keeps_data;
        }
        self.load.advance(now.since(timed_from));
        self.load.completed(Done {
            operation,
            bytes,
            response: taken.response,
            submit: taken.submit,
            completion: taken.completion,
        });
    }
}

#[cold]
fn no_ring() -> Error {
    Error::failed(Call::Ring, "a ring that is not open", Errno::BadFile)
}
