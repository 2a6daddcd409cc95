//! Calls of a program on its ring, and the worker's measure of them.

use super::super::clock::monotonic_now;
use super::super::usage::{HelperThreads, HelperUsage};
use super::super::worker::{
    HostOpenFile, HostWorker, WorkerControl, publish_progress_now_and_then,
};
use super::files::RingFiles;
use super::{
    ABANDON_DELAY, EngineNote, HostRing, ReapedRequest, RingRequestRecorder, modifies_data,
};
use crate::ring::record::{CompletedRequest, LoadRecorder};
use crate::{
    CallKind, CommittedTransaction, Errno, Error, File, IoCompletion, IoOperation, NameCall,
    ReadBackProgress, ReadWriteSpans, Result, RingOptions, Submission,
};
use diskperf_timeline::{CapProbe, LoadMeasure, Nanoseconds, VerifiedBlocks, WorkerMeasure};

impl HostWorker {
    pub(crate) fn open_ring(&mut self, options: RingOptions, files: &[File]) -> Result<()> {
        self.check_stop()?;
        self.close_ring()?;
        let files = RingFiles::new(files, &self.open_files)?;
        let log = self.ports.ring_log.as_ref();
        let record = log.map(|log| RingRequestRecorder::new(log, options.queue_depth, &files));
        let ring = Box::new(HostRing::new(
            options,
            files,
            self.worker_control.call_clock,
        )?);
        // A second ring of a timed part adds to what the first one measured.
        let is_first = self.load_recorder.is_none() || !self.is_measuring;
        if is_first {
            let recorder = LoadRecorder::new(
                ring.engine_name(),
                options.queue_depth,
                options.series_interval,
            );
            self.load_recorder = Some(Box::new(recorder));
        }
        self.engine_note = ring.engine_note().cloned();
        self.open_ring = Some(ring);
        self.ring_record = record;
        let is_counted = self.worker_measure.call_count > 0;
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
        Some(self.open_ring.as_mut()?.buffer_of_slot(slot))
    }

    #[inline]
    pub(crate) fn submit_requests(&mut self, submissions: &[Submission]) -> Result<()> {
        self.submit_requests_at(None, submissions)
    }

    #[inline]
    pub(crate) fn submit_requests_at(
        &mut self,
        moment: Option<Nanoseconds>,
        submissions: &[Submission],
    ) -> Result<()> {
        self.worker_control.check_stop_requested()?;
        let (Some(ring), Some(load)) = (&mut self.open_ring, &mut self.load_recorder) else {
            return Err(no_ring_error());
        };
        if let Some(moment) = moment {
            ring.spin_until(moment);
        }
        if let Some(record) = &mut self.ring_record {
            record.record_submissions(submissions);
        }
        ring.submit_requests(submissions, |lag| load.record_lag(lag))
    }

    #[inline]
    pub(crate) fn reap_requests(
        &mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
        completions: &mut Vec<IoCompletion>,
    ) -> Result<Nanoseconds> {
        let had = completions.len();
        let mut polled = false;
        loop {
            self.worker_control.check_stop_requested()?;
            let now = self.reap_completions(completions)?;
            let ring = self.open_ring.as_mut().ok_or_else(no_ring_error)?;
            let reaped = completions.len() - had;
            let is_time = until.is_some_and(|until| now >= until);
            let wanted = match until {
                None => at_least.saturating_sub(reaped).min(ring.in_flight_count()),
                Some(_) => at_least.saturating_sub(reaped),
            };
            if wanted > 0 && !is_time {
                ring.wait_for_completions(wanted, until)?;
            } else if reaped > 0 || polled || ring.in_flight_count() == 0 {
                return Ok(now);
            } else {
                // Nothing was waited for: what the kernel kept for this thread is complete.
                ring.poll_completions()?;
                polled = true;
            }
        }
    }

    /// Reaps all completions of the ring without waiting, and counts them in the worker's measure.
    #[inline]
    fn reap_completions(&mut self, completions: &mut Vec<IoCompletion>) -> Result<Nanoseconds> {
        let (Some(ring), Some(load)) = (&mut self.open_ring, &mut self.load_recorder) else {
            return Err(no_ring_error());
        };
        let mut counter = CompletionCounter {
            control: &self.worker_control,
            open_files: &mut self.open_files,
            worker_measure: &mut self.worker_measure,
            load_recorder: load,
            timed_part_start: self.is_measuring.then_some(self.measure_start.start_time),
        };
        let mut record = self.ring_record.as_mut();
        ring.reap_all(|reaped, now| {
            counter.count_completion(&reaped, now);
            if let Some(record) = &mut record {
                record.record_completion(reaped.submission.slot, reaped.byte_count_or_errno, now);
            }
            completions.push(reaped.to_completion());
        })
    }

    pub(crate) fn report_commits_in_series(&mut self) {
        if let Some(load) = &mut self.load_recorder {
            load.report_commits_in_series();
        }
    }

    pub(crate) fn count_commit(&mut self, commit: CommittedTransaction) {
        if let Some(load) = &mut self.load_recorder {
            load.record_commit(commit, monotonic_now().since(self.measure_start.start_time));
        }
    }

    pub(crate) fn count_uncommitted(&mut self, intended: Nanoseconds) {
        if let Some(load) = &mut self.load_recorder {
            load.record_unfinished_commit(monotonic_now().since(intended));
        }
    }

    pub(crate) fn record_slot_use(&mut self, slot_waits: u64, in_flight_max: u64) {
        if let Some(load) = &mut self.load_recorder {
            load.record_slot_use(slot_waits, in_flight_max);
        }
    }

    pub(crate) fn count_ignored_error(&mut self, errno: crate::Errno) {
        if let Some(load) = &mut self.load_recorder {
            load.record_ignored_error(errno.number());
        }
    }

    pub(crate) fn set_end_note(&mut self, text: String) {
        if let Some(load) = &mut self.load_recorder {
            load.set_end_note(text);
        }
    }

    pub(crate) fn record_cap_probe(&mut self, probe: CapProbe) {
        if let Some(load) = &mut self.load_recorder {
            load.record_cap_probe(probe);
        }
    }

    pub(crate) fn record_read_write_spans(&mut self, spans: ReadWriteSpans) {
        if let Some(load) = &mut self.load_recorder {
            load.record_read_write_spans(spans);
        }
    }

    pub(crate) fn publish_read_back_progress(&self, progress: ReadBackProgress) {
        self.worker_control
            .progress
            .set_read_back_progress(progress);
    }

    pub(crate) fn count_verified(&mut self, verified: VerifiedBlocks) {
        match (&mut self.ended_measure, &mut self.load_recorder) {
            (Some(ended), _) => ended.count_verified(verified),
            (None, Some(load)) => load.count_verified(verified),
            (None, None) => {}
        }
    }

    pub(crate) fn begin_name_call_series(&mut self, interval: Nanoseconds) {
        self.load_recorder = Some(Box::new(LoadRecorder::new_for_name_calls(interval)));
    }

    pub(crate) fn count_name_call(&mut self, call: NameCall, bytes: u64, duration: Nanoseconds) {
        if let Some(load) = &mut self.load_recorder {
            let since_start = monotonic_now().since(self.measure_start.start_time);
            load.record_call(call, bytes, duration, since_start);
        }
    }

    pub(crate) fn count_request(
        &mut self,
        operation: IoOperation,
        bytes: u64,
        duration: Nanoseconds,
    ) {
        let now = monotonic_now();
        let (Some(load), true) = (&mut self.load_recorder, self.is_measuring) else {
            return;
        };
        match operation {
            IoOperation::Read => self.worker_measure.read_bytes += bytes,
            IoOperation::Write => self.worker_measure.written_bytes += bytes,
            IoOperation::Fsync
            | IoOperation::Fdatasync
            | IoOperation::SyncRange(_)
            | IoOperation::DiscardRange => {}
        }
        self.worker_measure.call_count += 1;
        load.advance_series(now.since(self.measure_start.start_time));
        load.record_completion(CompletedRequest {
            operation,
            bytes,
            response_time: duration,
            submit_call_time: Nanoseconds::ZERO,
            completion_time: duration,
        });
        publish_progress_now_and_then(&self.worker_control, &self.worker_measure);
    }

    pub(crate) fn count_unissued(&mut self, operation: IoOperation, intended: Nanoseconds) {
        if let Some(load) = &mut self.load_recorder {
            load.record_unfinished(operation, monotonic_now().since(intended));
        }
    }

    pub(crate) fn restart_measuring(&mut self) -> Result<()> {
        self.start_measuring(self.measure_start.run_origin)
    }

    pub(crate) fn close_ring(&mut self) -> Result<()> {
        let mut completions = Vec::new();
        let mut latest = monotonic_now();
        while let Some(ring) = &self.open_ring {
            let in_flight = ring.in_flight_count();
            if in_flight == 0 {
                break;
            }
            let slice = monotonic_now() + super::WAIT_SLICE_MAX;
            completions.clear();
            let now = self.reap_requests(in_flight, Some(slice), &mut completions)?;
            if !completions.is_empty() {
                latest = now;
            } else if now.since(latest) > ABANDON_DELAY {
                return Err(self.abandon_ring());
            }
        }
        self.save_helper_usage();
        self.open_ring = None;
        Ok(())
    }

    /// Gives up a ring whose device never completes its requests, and returns the error that names
    /// them.
    #[cold]
    fn abandon_ring(&mut self) -> Error {
        let stuck = self.open_ring.as_mut().map(|ring| {
            ring.abandon_requests();
            ring.describe_in_flight()
        });
        self.open_ring = None;
        let what = format!("of {}, which do not complete", stuck.unwrap_or_default());
        Error::call_failed(CallKind::RingSetup, what, Errno::TimedOut)
    }
}

impl HostWorker {
    /// Restarts the measure of requests at the start of the timed part.
    pub(in super::super) fn restart_load(&mut self) {
        self.ended_helper_usage = HelperUsage::default();
        match &mut self.load_recorder {
            Some(load) if self.open_ring.is_some() || load.is_for_name_calls() => {
                load.restart_measurement()
            }
            load => *load = None,
        }
    }

    /// Returns the measure of the timed part's requests. Incomplete requests of open loop count
    /// with the time that they have waited until now.
    pub(in super::super) fn take_load(&mut self, now: Nanoseconds) -> Option<LoadMeasure> {
        let load = self.load_recorder.as_mut()?;
        for (submission, start) in self
            .open_ring
            .iter()
            .flat_map(|ring| ring.in_flight_requests())
        {
            if submission.intended_start.is_some() {
                load.record_unfinished(submission.operation, now.since(start));
            }
        }
        let mut measure = load.take_measure(now.since(self.measure_start.start_time));
        measure.engine_note = self.engine_note.as_ref().map(|note| note.message.clone());
        if self.open_ring.is_none() {
            self.load_recorder = None;
        }
        Some(measure)
    }

    /// Returns the usage of the helper threads, for a worker with a ring.
    pub(in super::super) fn helper_threads(&self) -> HelperThreads {
        match self.open_ring {
            Some(_) => HelperThreads::read_helper_threads(rustix::thread::gettid()),
            None => HelperThreads::default(),
        }
    }

    pub(in super::super) fn helper_usage_since_start(&self) -> HelperUsage {
        self.ended_helper_usage
            + self
                .helper_threads()
                .usage_since(&self.measure_start.helper_threads)
    }

    /// Saves the helpers' usage before the ring is closed.
    fn save_helper_usage(&mut self) {
        if self.open_ring.is_some() && self.is_measuring {
            self.ended_helper_usage = self.helper_usage_since_start();
            self.measure_start.helper_threads = HelperThreads::default();
        }
    }
}

/// Counters and recorders that a completion updates.
struct CompletionCounter<'a> {
    control: &'a WorkerControl,
    open_files: &'a mut [Option<HostOpenFile>],
    worker_measure: &'a mut WorkerMeasure,
    load_recorder: &'a mut LoadRecorder,
    /// Start of the timed part; `None` outside of it.
    timed_part_start: Option<Nanoseconds>,
}

impl CompletionCounter<'_> {
    /// Counts a completed request of the timed part. Failed requests do not count, as with failed
    /// calls.
    #[inline]
    fn count_completion(&mut self, reaped: &ReapedRequest, now: Nanoseconds) {
        let (Ok(bytes), Some(timed_part_start)) =
            (reaped.byte_count_or_errno, self.timed_part_start)
        else {
            return;
        };
        let Submission {
            operation, file, ..
        } = reaped.submission;
        let mut bytes = u64::from(bytes);
        match operation {
            IoOperation::Read => self.worker_measure.read_bytes += bytes,
            IoOperation::Write => self.worker_measure.written_bytes += bytes,
            IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => {
                self.worker_measure.metadata_call_count += 1;
            }
            // The kernel answers 0 for all of it.
            IoOperation::DiscardRange => bytes = u64::from(reaped.submission.bytes),
        }
        if matches!(operation, IoOperation::Read | IoOperation::Write) {
            self.worker_measure.call_count += 1;
            publish_progress_now_and_then(self.control, self.worker_measure);
        }
        if modifies_data(operation)
            && let Some(Some(open)) = self.open_files.get_mut(file.0)
        {
            open.is_dirty = open.stores_data;
        }
        self.load_recorder
            .advance_series(now.since(timed_part_start));
        self.load_recorder.record_completion(CompletedRequest {
            operation,
            bytes,
            response_time: reaped.response_time,
            submit_call_time: reaped.submit_call_time,
            completion_time: reaped.completion_time,
        });
    }
}

#[cold]
fn no_ring_error() -> Error {
    Error::call_failed(
        CallKind::RingSetup,
        "a ring that is not open",
        Errno::BadFile,
    )
}
