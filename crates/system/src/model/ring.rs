//! Ring of a worker on a modelled computer: see [`diskperf_machine::RingRequest`].

use super::{ModelWorker, to_nanoseconds};
use crate::ring::record::{CompletedRequest, LoadRecorder};
use crate::{
    CallKind, CommittedTransaction, Error, File, IoCompletion, IoOperation, NameCall,
    ReadBackProgress, ReadWriteSpans, Result, RingOptions, Submission,
};
use diskperf_machine::{RingCompletion, RingOperation, RingRequest, RingSize, Session, Time};
use diskperf_timeline::load::Engine;
use diskperf_timeline::{CapProbe, Nanoseconds, VerifiedBlocks};

/// Ring of slots with a worker's requests in flight.
pub(super) struct ModelRing {
    /// Request in flight of each slot; `None` for an idle slot.
    in_flight_slots: Vec<Option<InFlightRequest>>,
    /// Contents of each idle slot's buffer; empty for a ring without contents.
    slot_buffers: Vec<Vec<u8>>,
    requests: Vec<RingRequest>,
    completions: Vec<RingCompletion>,
}

/// Submitted request that has not completed.
#[derive(Clone, Copy)]
struct InFlightRequest {
    operation: IoOperation,
    /// Start of the call that submitted the request.
    submit_start: Nanoseconds,
    submit_call_time: Nanoseconds,
    intended_start: Option<Nanoseconds>,
}

impl InFlightRequest {
    /// Returns the time from which the response time counts: the intended start in open loop, else
    /// the submission.
    fn response_start(&self) -> Nanoseconds {
        self.intended_start.unwrap_or(self.submit_start)
    }
}

/// Name of the ring in its error messages.
const RING_NAME: &str = "ring";

impl ModelWorker {
    pub(crate) async fn open_ring(&mut self, options: RingOptions, files: &[File]) -> Result<()> {
        self.check_stop_requested()?;
        self.close_ring().await?;
        let size = RingSize {
            queue_depth: options.queue_depth,
            buffer_bytes: options.buffer_bytes,
        };
        let files: Vec<usize> = files.iter().map(|file| file.0).collect();
        let opened = self.session.open_ring(size, &files).await;
        opened.map_err(|errno| Error::call_failed(CallKind::RingSetup, RING_NAME, errno))?;
        self.open_ring = Some(ModelRing {
            in_flight_slots: vec![None; options.queue_depth as usize],
            slot_buffers: match options.has_verifiable_contents {
                true => vec![vec![0; options.buffer_bytes as usize]; options.queue_depth as usize],
                false => Vec::new(),
            },
            requests: Vec::with_capacity(options.queue_depth as usize),
            completions: Vec::with_capacity(options.queue_depth as usize),
        });
        // A second ring of a timed part adds to what the first one measured.
        if self.measurement.load_recorder.is_none() || !self.measurement.is_running() {
            let recorder = LoadRecorder::new_growing(
                Engine::Model,
                options.queue_depth,
                options.series_interval,
            );
            self.measurement.load_recorder = Some(recorder);
        }
        Ok(())
    }

    /// Returns the buffer of a slot; `None` for a ring without contents.
    pub(crate) fn ring_buffer(&mut self, slot: u32) -> Option<&mut [u8]> {
        let slots = self
            .open_ring
            .as_ref()
            .map(|ring| &ring.in_flight_slots[..]);
        let of = slots.and_then(|slots| slots.get(slot as usize));
        assert!(
            matches!(of, Some(None)),
            "slot {slot} is under way, or there is none"
        );
        let buffer = self
            .open_ring
            .as_mut()?
            .slot_buffers
            .get_mut(slot as usize)?;
        Some(&mut buffer[..])
    }

    pub(crate) async fn submit_requests(&mut self, submissions: &[Submission]) -> Result<()> {
        self.check_stop_requested()?;
        let started = self.now();
        let ring = self.open_ring.as_mut().ok_or_else(no_ring_error)?;
        let requests = submissions.iter().map(|submission| RingRequest {
            operation: to_ring_operation(submission.operation),
            file_number: submission.file.0,
            offset_bytes: submission.offset_bytes,
            bytes: submission.bytes,
            slot: submission.slot,
        });
        ring.requests.clear();
        ring.requests.extend(requests);
        for submission in submissions {
            lend_buffer(&self.session, &mut ring.slot_buffers, submission.slot);
        }
        let submitted = self.session.submit_requests(&ring.requests).await;
        submitted.map_err(|errno| Error::call_failed(CallKind::RingSetup, RING_NAME, errno))?;
        let submit = to_nanoseconds(self.session.current_time()).since(started);
        for submission in submissions {
            ring.in_flight_slots[submission.slot as usize] = Some(InFlightRequest {
                operation: submission.operation,
                submit_start: started,
                submit_call_time: submit,
                intended_start: submission.intended_start,
            });
            if submission.operation == IoOperation::Write {
                let open = self
                    .open_files
                    .get(submission.file.0)
                    .and_then(Option::as_ref);
                self.measurement
                    .mark_written(open.and_then(|open| open.drive_number));
            }
            if let (Some(intended), Some(load)) = (
                submission.intended_start,
                &mut self.measurement.load_recorder,
            ) {
                load.record_lag(started.since(intended));
            }
        }
        Ok(())
    }

    pub(crate) async fn reap_requests(
        &mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
        completions: &mut Vec<IoCompletion>,
    ) -> Result<Nanoseconds> {
        self.check_stop_requested()?;
        let until = until.map(|until| Time(until.0));
        self.take_completions(at_least, until, |completion| completions.push(completion))
            .await?;
        self.check_stop_requested()?;
        Ok(self.now())
    }

    /// Waits as [`ModelWorker::reap_requests`] does, counts the completions, and passes them to `on_completion`.
    async fn take_completions(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        mut on_completion: impl FnMut(IoCompletion),
    ) -> Result<()> {
        let ring = self.open_ring.as_mut().ok_or_else(no_ring_error)?;
        ring.completions.clear();
        let reaped = self
            .session
            .reap_completions(at_least, until, &mut ring.completions);
        let reaped = reaped.await;
        reaped.map_err(|errno| Error::call_failed(CallKind::RingSetup, RING_NAME, errno))?;
        let now = to_nanoseconds(self.session.current_time());
        self.measurement.advance_series(now);
        for RingCompletion { slot, result } in ring.completions.drain(..) {
            lend_buffer(&self.session, &mut ring.slot_buffers, slot);
            let issued = ring.in_flight_slots[slot as usize].take();
            let issued = issued.expect("what completes was submitted");
            let response = now.since(issued.response_start());
            if let Ok(bytes) = result {
                self.measurement.count_request(CompletedRequest {
                    operation: issued.operation,
                    bytes: u64::from(bytes),
                    response_time: response,
                    submit_call_time: issued.submit_call_time,
                    completion_time: now.since(issued.submit_start + issued.submit_call_time),
                });
            }
            let result = result.map_err(Into::into);
            on_completion(IoCompletion {
                slot,
                byte_count_or_errno: result,
                response_time: response,
            });
        }
        Ok(())
    }

    pub(crate) fn report_commits_in_series(&mut self) {
        if let Some(load) = &mut self.measurement.load_recorder {
            load.report_commits_in_series();
        }
    }

    pub(crate) fn count_commit(&mut self, commit: CommittedTransaction) {
        let since_start = self.now().since(self.measurement.start_time());
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_commit(commit, since_start);
        }
    }

    pub(crate) fn count_uncommitted(&mut self, intended: Nanoseconds) {
        let waited = self.now().since(intended);
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_unfinished_commit(waited);
        }
    }

    pub(crate) fn record_slot_use(&mut self, slot_waits: u64, in_flight_max: u64) {
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_slot_use(slot_waits, in_flight_max);
        }
    }

    pub(crate) fn count_ignored_error(&mut self, errno: crate::Errno) {
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_ignored_error(errno.number());
        }
    }

    pub(crate) fn set_end_note(&mut self, text: String) {
        if let Some(load) = &mut self.measurement.load_recorder {
            load.set_end_note(text);
        }
    }

    pub(crate) fn record_cap_probe(&mut self, probe: CapProbe) {
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_cap_probe(probe);
        }
    }

    pub(crate) fn record_read_write_spans(&mut self, spans: ReadWriteSpans) {
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_read_write_spans(spans);
        }
    }

    pub(crate) fn publish_read_back_progress(&self, progress: ReadBackProgress) {
        self.measurement.progress.set_read_back_progress(progress);
    }

    pub(crate) fn count_verified(&mut self, verified: VerifiedBlocks) {
        match (
            &mut self.measurement.ended_measure,
            &mut self.measurement.load_recorder,
        ) {
            (Some(ended), _) => ended.count_verified(verified),
            (None, Some(load)) => load.count_verified(verified),
            (None, None) => {}
        }
    }

    pub(crate) fn begin_name_call_series(&mut self, interval: Nanoseconds) {
        self.measurement.load_recorder = Some(LoadRecorder::new_for_name_calls(interval));
    }

    pub(crate) fn count_name_call(&mut self, call: NameCall, bytes: u64, duration: Nanoseconds) {
        let since_start = self.now().since(self.measurement.start_time());
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_call(call, bytes, duration, since_start);
        }
    }

    pub(crate) fn count_request(
        &mut self,
        operation: IoOperation,
        bytes: u64,
        duration: Nanoseconds,
    ) {
        let now = self.now();
        self.measurement.advance_series(now);
        self.measurement.count_request(CompletedRequest {
            operation,
            bytes,
            response_time: duration,
            submit_call_time: Nanoseconds::ZERO,
            completion_time: duration,
        });
    }

    pub(crate) fn count_unissued(&mut self, operation: IoOperation, intended: Nanoseconds) {
        let waited = self.now().since(intended);
        if let Some(load) = &mut self.measurement.load_recorder {
            load.record_unfinished(operation, waited);
        }
    }

    pub(crate) fn restart_measuring(&mut self) -> Result<()> {
        let origin = self.measurement.run_origin();
        self.start_measuring(origin)
    }

    /// Waits for the requests in flight, and discards their completions.
    pub(super) async fn drain_ring(&mut self) -> Result<()> {
        while self.session.in_flight_count() > 0 {
            self.take_completions(usize::MAX, None, |_| ()).await?;
        }
        Ok(())
    }

    /// Counts the requests of open loop that had arrived and are incomplete at the end, with the
    /// time that they have waited.
    pub(super) fn count_unfinished(&mut self, ended: Nanoseconds) {
        let (Some(ring), Some(load)) = (&self.open_ring, &mut self.measurement.load_recorder)
        else {
            return;
        };
        for issued in ring.in_flight_slots.iter().flatten() {
            if let Some(intended) = issued.intended_start {
                load.record_unfinished(issued.operation, ended.since(intended));
            }
        }
    }

    pub(crate) async fn close_ring(&mut self) -> Result<()> {
        if self.open_ring.is_some() {
            self.drain_ring().await?;
            self.session.close_ring().await;
            self.open_ring = None;
        }
        Ok(())
    }
}

/// Swaps the contents of a slot's buffer between the program and the kernel; only one of them has
/// the contents.
fn lend_buffer(session: &Session, buffers: &mut [Vec<u8>], slot: u32) {
    if let Some(own) = buffers.get_mut(slot as usize)
        && let Some(contents) = session.ring_contents(slot)
    {
        std::mem::swap(own, &mut contents.borrow_mut());
    }
}

fn no_ring_error() -> Error {
    Error::call_failed(CallKind::RingSetup, RING_NAME, crate::Errno::Invalid)
}

/// Converts an operation to that of a modelled kernel, which has one way to sync a file.
fn to_ring_operation(operation: IoOperation) -> RingOperation {
    match operation {
        IoOperation::Read => RingOperation::Read,
        IoOperation::Write => RingOperation::Write,
        IoOperation::Fsync | IoOperation::Fdatasync | IoOperation::SyncRange(_) => {
            RingOperation::Fsync
        }
        IoOperation::DiscardRange => RingOperation::Discard,
    }
}
