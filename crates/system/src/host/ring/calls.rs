//! Calls of a program on its ring, and the worker's measure of them.

use super::super::clock::monotonic;
use super::super::usage::{HelperThreads, HelperUsage};
use super::super::worker::{Control, Host, OpenFile, publish_progress_now_and_then};
use super::files::RingFiles;
use super::{EngineNote, GIVE_UP_AFTER, ReapedRequest, Ring, RingRecord, modifies_data};
use crate::ring::record::{CompletedRequest, LoadRecorder};
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
        let record = log.map(|log| RingRecord::new(log, options.depth, &files));
        let ring = Box::new(Ring::new(options, files, self.control.clock)?);
        // A second ring of a timed part adds to what the first one measured.
        let is_first = self.load.is_none() || !self.is_measuring;
        if is_first {
            let recorder = LoadRecorder::new(ring.engine_name(), options.depth, options.interval);
            self.load = Some(Box::new(recorder));
        }
        self.engine_note = ring.note().cloned();
        self.ring = Some(ring);
        self.ring_record = record;
        let is_counted = self.measure.calls > 0;
        if is_first && self.is_measuring && !is_counted {
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
            return Err(no_ring_error());
        };
        if let Some(moment) = moment {
            ring.spin_until(moment);
        }
        if let Some(record) = &mut self.ring_record {
            record.record_submissions(submissions);
        }
        ring.submit(submissions, |lag| load.record_lag(lag))
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
            let now = self.reap_completions(completions)?;
            let ring = self.ring.as_mut().ok_or_else(no_ring_error)?;
            let reaped = completions.len() - had;
            let is_time = until.is_some_and(|until| now >= until);
            let wanted = match until {
                None => at_least.saturating_sub(reaped).min(ring.in_flight()),
                Some(_) => at_least.saturating_sub(reaped),
            };
            if wanted > 0 && !is_time {
                ring.wait(wanted, until)?;
            } else if reaped > 0 || polled || ring.in_flight() == 0 {
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
    fn reap_completions(&mut self, completions: &mut Vec<Completion>) -> Result<Nanoseconds> {
        let (Some(ring), Some(load)) = (&mut self.ring, &mut self.load) else {
            return Err(no_ring_error());
        };
        let mut counter = CompletionCounter {
            control: &self.control,
            files: &mut self.files,
            measure: &mut self.measure,
            load,
            timed_part_start: self.is_measuring.then_some(self.started.time),
        };
        let mut record = self.ring_record.as_mut();
        ring.reap_all(|reaped, now| {
            counter.count_completion(&reaped, now);
            if let Some(record) = &mut record {
                record.record_completion(reaped.submission.slot, reaped.result, now);
            }
            completions.push(reaped.completion());
        })
    }

    pub(crate) fn judge_by_commits(&mut self) {
        if let Some(load) = &mut self.load {
            load.judge_by_commits();
        }
    }

    pub(crate) fn count_commit(&mut self, commit: Commit) {
        if let Some(load) = &mut self.load {
            load.record_commit(commit, monotonic().since(self.started.time));
        }
    }

    pub(crate) fn count_uncommitted(&mut self, intended: Nanoseconds) {
        if let Some(load) = &mut self.load {
            load.record_unfinished_commit(monotonic().since(intended));
        }
    }

    pub(crate) fn used_slots(&mut self, slot_waits: u64, in_flight_max: u64) {
        if let Some(load) = &mut self.load {
            load.used_slots(slot_waits, in_flight_max);
        }
    }

    pub(crate) fn count_error(&mut self, errno: crate::Errno) {
        if let Some(load) = &mut self.load {
            load.record_ignored_error(errno.number());
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
        match (&mut self.ended_measure, &mut self.load) {
            (Some(ended), _) => ended.count_verified(verified),
            (None, Some(load)) => load.count_verified(verified),
            (None, None) => {}
        }
    }

    pub(crate) fn count_calls(&mut self, interval: Nanoseconds) {
        self.load = Some(Box::new(LoadRecorder::for_calls(interval)));
    }

    pub(crate) fn count_call(&mut self, call: NameCall, bytes: u64, duration: Nanoseconds) {
        if let Some(load) = &mut self.load {
            let since_start = monotonic().since(self.started.time);
            load.record_call(call, bytes, duration, since_start);
        }
    }

    pub(crate) fn count_request(
        &mut self,
        operation: Operation,
        bytes: u64,
        duration: Nanoseconds,
    ) {
        let now = monotonic();
        let (Some(load), true) = (&mut self.load, self.is_measuring) else {
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
        load.record_completion(CompletedRequest {
            operation,
            bytes,
            response: duration,
            submit: Nanoseconds::ZERO,
            completion: duration,
        });
        publish_progress_now_and_then(&self.control, &self.measure);
    }

    pub(crate) fn count_unissued(&mut self, operation: Operation, intended: Nanoseconds) {
        if let Some(load) = &mut self.load {
            load.record_unfinished(operation, monotonic().since(intended));
        }
    }

    pub(crate) fn restart_measuring(&mut self) -> Result<()> {
        self.start_measuring(self.started.origin)
    }

    pub(crate) fn close_ring(&mut self) -> Result<()> {
        let mut completions = Vec::new();
        let mut latest = monotonic();
        while let Some(ring) = &self.ring {
            let in_flight = ring.in_flight();
            if in_flight == 0 {
                break;
            }
            let slice = monotonic() + super::WAIT_SLICE;
            completions.clear();
            let now = self.reap(in_flight, Some(slice), &mut completions)?;
            if !completions.is_empty() {
                latest = now;
            } else if now.since(latest) > GIVE_UP_AFTER {
                return Err(self.abandon_ring());
            }
        }
        self.save_helper_usage();
        self.ring = None;
        Ok(())
    }

    /// Gives up a ring whose device never completes its requests, and returns the error that names
    /// them.
    #[cold]
    fn abandon_ring(&mut self) -> Error {
        let stuck = self.ring.as_mut().map(|ring| {
            ring.give_up();
            ring.describe_in_flight()
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
            Some(load) if self.ring.is_some() || load.is_for_calls() => load.restart(),
            load => *load = None,
        }
    }

    /// Returns the measure of the timed part's requests. Incomplete requests of open loop count
    /// with the time that they have waited until now.
    pub(in super::super) fn take_load(&mut self, now: Nanoseconds) -> Option<LoadMeasure> {
        let load = self.load.as_mut()?;
        for (submission, start) in self.ring.iter().flat_map(|ring| ring.in_flight_requests()) {
            if submission.intended.is_some() {
                load.record_unfinished(submission.operation, now.since(start));
            }
        }
        let mut measure = load.take_measure(now.since(self.started.time));
        measure.engine_note = self.engine_note.as_ref().map(|note| note.text.clone());
        if self.ring.is_none() {
            self.load = None;
        }
        Some(measure)
    }

    /// Returns the usage of the helper threads, for a worker with a ring.
    pub(in super::super) fn helpers(&self) -> HelperThreads {
        match self.ring {
            Some(_) => HelperThreads::read(rustix::thread::gettid()),
            None => HelperThreads::default(),
        }
    }

    pub(in super::super) fn helpers_since_start(&self) -> HelperUsage {
        self.ended_helpers + self.helpers().since(&self.started.helpers)
    }

    /// Saves the helpers' usage before the ring is closed.
    fn save_helper_usage(&mut self) {
        if self.ring.is_some() && self.is_measuring {
            self.ended_helpers = self.helpers_since_start();
            self.started.helpers = HelperThreads::default();
        }
    }
}

/// Counters and recorders that a completion updates.
struct CompletionCounter<'a> {
    control: &'a Control,
    files: &'a mut [Option<OpenFile>],
    measure: &'a mut WorkerMeasure,
    load: &'a mut LoadRecorder,
    /// Start of the timed part; `None` outside of it.
    timed_part_start: Option<Nanoseconds>,
}

impl CompletionCounter<'_> {
    /// Counts a completed request of the timed part. Failed requests do not count, as with failed
    /// calls.
    #[inline]
    fn count_completion(&mut self, reaped: &ReapedRequest, now: Nanoseconds) {
        let (Ok(bytes), Some(timed_part_start)) = (reaped.result, self.timed_part_start) else {
            return;
        };
        let Submission {
            operation, file, ..
        } = reaped.submission;
        let mut bytes = u64::from(bytes);
        match operation {
            Operation::Read => self.measure.read_bytes += bytes,
            Operation::Write => self.measure.written_bytes += bytes,
            Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => {
                self.measure.metadata_calls += 1;
            }
            // The kernel answers 0 for all of it.
            Operation::Discard => bytes = u64::from(reaped.submission.bytes),
        }
        if matches!(operation, Operation::Read | Operation::Write) {
            self.measure.calls += 1;
            publish_progress_now_and_then(self.control, self.measure);
        }
        if modifies_data(operation)
            && let Some(Some(open)) = self.files.get_mut(file.0)
        {
            open.is_dirty = open.stores_data;
        }
        self.load.advance(now.since(timed_part_start));
        self.load.record_completion(CompletedRequest {
            operation,
            bytes,
            response: reaped.response,
            submit: reaped.submit,
            completion: reaped.completion,
        });
    }
}

#[cold]
fn no_ring_error() -> Error {
    Error::failed(Call::Ring, "a ring that is not open", Errno::BadFile)
}
