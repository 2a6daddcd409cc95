//! Ring of a worker on a modelled computer: see [`diskperf_machine::RingRequest`].

use super::{Model, nanoseconds};
use crate::ring::record::{CompletedRequest, LoadRecorder};
use crate::{
    Call, Commit, Completion, Error, File, NameCall, Operation, ReadBackProgress, Result,
    RingOptions, Spans, Submission,
};
use diskperf_machine::{RingCompletion, RingOperation, RingRequest, RingSize, Session, Time};
use diskperf_timeline::load::Engine;
use diskperf_timeline::{Nanoseconds, Verified};

/// Ring of slots with a worker's requests in flight.
pub(super) struct Ring {
    /// Request in flight of each slot; `None` for an idle slot.
    slots: Vec<Option<InFlightRequest>>,
    /// Contents of each idle slot's buffer; empty for a ring without contents.
    buffers: Vec<Vec<u8>>,
    requests: Vec<RingRequest>,
    completions: Vec<RingCompletion>,
}

/// Submitted request that has not completed.
#[derive(Clone, Copy)]
struct InFlightRequest {
    operation: Operation,
    /// Start of the call that submitted the request.
    started: Nanoseconds,
    submit: Nanoseconds,
    intended: Option<Nanoseconds>,
}

impl InFlightRequest {
    /// Returns the time from which the response time counts: the intended start in open loop, else
    /// the submission.
    fn response_start(&self) -> Nanoseconds {
        self.intended.unwrap_or(self.started)
    }
}

/// Name of the ring in its error messages.
const RING_NAME: &str = "ring";

impl Model {
    pub(crate) async fn open_ring(&mut self, options: RingOptions, files: &[File]) -> Result<()> {
        self.check()?;
        self.close_ring().await?;
        let size = RingSize {
            depth: options.depth,
            buffer_bytes: options.buffer_bytes,
        };
        let files: Vec<usize> = files.iter().map(|file| file.0).collect();
        let opened = self.session.open_ring(size, &files).await;
        opened.map_err(|errno| Error::failed(Call::Ring, RING_NAME, errno))?;
        self.ring = Some(Ring {
            slots: vec![None; options.depth as usize],
            buffers: match options.has_contents {
                true => vec![vec![0; options.buffer_bytes as usize]; options.depth as usize],
                false => Vec::new(),
            },
            requests: Vec::with_capacity(options.depth as usize),
            completions: Vec::with_capacity(options.depth as usize),
        });
        // A second ring of a timed part adds to what the first one measured.
        if self.measuring.load.is_none() || !self.measuring.is_running() {
            let recorder = LoadRecorder::growing(Engine::Model, options.depth, options.interval);
            self.measuring.load = Some(recorder);
        }
        Ok(())
    }

    /// Returns the buffer of a slot; `None` for a ring without contents.
    pub(crate) fn ring_buffer(&mut self, slot: u32) -> Option<&mut [u8]> {
        let slots = self.ring.as_ref().map(|ring| &ring.slots[..]);
        let of = slots.and_then(|slots| slots.get(slot as usize));
        assert!(
            matches!(of, Some(None)),
            "slot {slot} is under way, or there is none"
        );
        let buffer = self.ring.as_mut()?.buffers.get_mut(slot as usize)?;
        Some(&mut buffer[..])
    }

    pub(crate) async fn submit(&mut self, submissions: &[Submission]) -> Result<()> {
        self.check()?;
        let started = self.now();
        let ring = self.ring.as_mut().ok_or_else(no_ring_error)?;
        let requests = submissions.iter().map(|submission| RingRequest {
            operation: to_ring_operation(submission.operation),
            file: submission.file.0,
            offset: submission.offset_bytes,
            bytes: submission.bytes,
            slot: submission.slot,
        });
        ring.requests.clear();
        ring.requests.extend(requests);
        for submission in submissions {
            lend_buffer(&self.session, &mut ring.buffers, submission.slot);
        }
        let submitted = self.session.submit(&ring.requests).await;
        submitted.map_err(|errno| Error::failed(Call::Ring, RING_NAME, errno))?;
        let submit = nanoseconds(self.session.now()).since(started);
        for submission in submissions {
            ring.slots[submission.slot as usize] = Some(InFlightRequest {
                operation: submission.operation,
                started,
                submit,
                intended: submission.intended,
            });
            if submission.operation == Operation::Write {
                let open = self.files.get(submission.file.0).and_then(Option::as_ref);
                self.measuring
                    .mark_written(open.and_then(|open| open.drive));
            }
            if let (Some(intended), Some(load)) = (submission.intended, &mut self.measuring.load) {
                load.record_lag(started.since(intended));
            }
        }
        Ok(())
    }

    pub(crate) async fn reap(
        &mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
        completions: &mut Vec<Completion>,
    ) -> Result<Nanoseconds> {
        self.check()?;
        let until = until.map(|until| Time(until.0));
        self.take_completions(at_least, until, |completion| completions.push(completion))
            .await?;
        self.check()?;
        Ok(self.now())
    }

    /// Waits as [`Model::reap`] does, counts the completions, and passes them to `on_completion`.
    async fn take_completions(
        &mut self,
        at_least: usize,
        until: Option<Time>,
        mut on_completion: impl FnMut(Completion),
    ) -> Result<()> {
        let ring = self.ring.as_mut().ok_or_else(no_ring_error)?;
        ring.completions.clear();
        let reaped = self.session.reap(at_least, until, &mut ring.completions);
        let reaped = reaped.await;
        reaped.map_err(|errno| Error::failed(Call::Ring, RING_NAME, errno))?;
        let now = nanoseconds(self.session.now());
        self.measuring.advance(now);
        for RingCompletion { slot, result } in ring.completions.drain(..) {
            lend_buffer(&self.session, &mut ring.buffers, slot);
            let issued = ring.slots[slot as usize].take();
            let issued = issued.expect("what completes was submitted");
            let response = now.since(issued.response_start());
            if let Ok(bytes) = result {
                self.measuring.count_request(CompletedRequest {
                    operation: issued.operation,
                    bytes: u64::from(bytes),
                    response,
                    submit: issued.submit,
                    completion: now.since(issued.started + issued.submit),
                });
            }
            let result = result.map_err(Into::into);
            on_completion(Completion {
                slot,
                result,
                response,
            });
        }
        Ok(())
    }

    pub(crate) fn judge_by_commits(&mut self) {
        if let Some(load) = &mut self.measuring.load {
            load.judge_by_commits();
        }
    }

    pub(crate) fn count_commit(&mut self, commit: Commit) {
        let since_start = self.now().since(self.measuring.started());
        if let Some(load) = &mut self.measuring.load {
            load.record_commit(commit, since_start);
        }
    }

    pub(crate) fn count_uncommitted(&mut self, intended: Nanoseconds) {
        let waited = self.now().since(intended);
        if let Some(load) = &mut self.measuring.load {
            load.record_unfinished_commit(waited);
        }
    }

    pub(crate) fn used_slots(&mut self, slot_waits: u64, in_flight_max: u64) {
        if let Some(load) = &mut self.measuring.load {
            load.used_slots(slot_waits, in_flight_max);
        }
    }

    pub(crate) fn count_error(&mut self, errno: crate::Errno) {
        if let Some(load) = &mut self.measuring.load {
            load.record_ignored_error(errno.number());
        }
    }

    pub(crate) fn say_of_end(&mut self, text: String) {
        if let Some(load) = &mut self.measuring.load {
            load.say_of_end(text);
        }
    }

    pub(crate) fn count_spans(&mut self, spans: Spans) {
        if let Some(load) = &mut self.measuring.load {
            load.count_spans(spans);
        }
    }

    pub(crate) fn show_read_back(&self, progress: ReadBackProgress) {
        self.measuring.progress.set_read_back(progress);
    }

    pub(crate) fn count_verified(&mut self, verified: Verified) {
        match (&mut self.measuring.ended_measure, &mut self.measuring.load) {
            (Some(ended), _) => ended.count_verified(verified),
            (None, Some(load)) => load.count_verified(verified),
            (None, None) => {}
        }
    }

    pub(crate) fn count_calls(&mut self, interval: Nanoseconds) {
        self.measuring.load = Some(LoadRecorder::for_calls(interval));
    }

    pub(crate) fn count_call(&mut self, call: NameCall, bytes: u64, duration: Nanoseconds) {
        let since_start = self.now().since(self.measuring.started());
        if let Some(load) = &mut self.measuring.load {
            load.record_call(call, bytes, duration, since_start);
        }
    }

    pub(crate) fn count_request(
        &mut self,
        operation: Operation,
        bytes: u64,
        duration: Nanoseconds,
    ) {
        let now = self.now();
        self.measuring.advance(now);
        self.measuring.count_request(CompletedRequest {
            operation,
            bytes,
            response: duration,
            submit: Nanoseconds::ZERO,
            completion: duration,
        });
    }

    pub(crate) fn count_unissued(&mut self, operation: Operation, intended: Nanoseconds) {
        let waited = self.now().since(intended);
        if let Some(load) = &mut self.measuring.load {
            load.record_unfinished(operation, waited);
        }
    }

    pub(crate) fn restart_measuring(&mut self) -> Result<()> {
        let origin = self.measuring.origin();
        self.start_measuring(origin)
    }

    /// Waits for the requests in flight, and discards their completions.
    pub(super) async fn drain_ring(&mut self) -> Result<()> {
        while self.session.under_way() > 0 {
            self.take_completions(usize::MAX, None, |_| ()).await?;
        }
        Ok(())
    }

    /// Counts the requests of open loop that had arrived and are incomplete at the end, with the
    /// time that they have waited.
    pub(super) fn count_unfinished(&mut self, ended: Nanoseconds) {
        let (Some(ring), Some(load)) = (&self.ring, &mut self.measuring.load) else {
            return;
        };
        for issued in ring.slots.iter().flatten() {
            if let Some(intended) = issued.intended {
                load.record_unfinished(issued.operation, ended.since(intended));
            }
        }
    }

    pub(crate) async fn close_ring(&mut self) -> Result<()> {
        if self.ring.is_some() {
            self.drain_ring().await?;
            self.session.close_ring().await;
            self.ring = None;
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
    Error::failed(Call::Ring, RING_NAME, crate::Errno::Invalid)
}

/// Converts an operation to that of a modelled kernel, which has one way to sync a file.
fn to_ring_operation(operation: Operation) -> RingOperation {
    match operation {
        Operation::Read => RingOperation::Read,
        Operation::Write => RingOperation::Write,
        Operation::Fsync | Operation::Fdatasync | Operation::SyncRange(_) => RingOperation::Fsync,
        Operation::Discard => RingOperation::Discard,
    }
}
