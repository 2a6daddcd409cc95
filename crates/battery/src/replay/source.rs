//! Source of requests that issues a trace's requests by its schedule.

use super::RequestIterator;
use super::schedule::{ReplayAction, ReplaySchedule};
use crate::program::ProgramError;
use crate::ring::slots::{CompletedRequest, Slots};
use crate::ring::{IoRing, RequestSource, RingStep};
use diskperf_blocktrace as blocktrace;
use diskperf_system::{File, IoOperation, Submission};
use diskperf_timeline::{Nanoseconds, ReplayPace};

/// Time before a request is due from which a worker on real storage polls the clock instead of
/// sleeping, because a sleeping worker wakes up late.
const POLL_LEAD: Nanoseconds = Nanoseconds::from_millis(1);

/// Time before a due request from which a worker with nothing in flight polls only the clock.
const CLOCK_ONLY_POLL_LEAD: Nanoseconds = Nanoseconds(100_000);

pub(super) struct TraceSource {
    target_file: File,
    /// Open file with O_DSYNC for writes that were durable in the trace. `None` if they are not
    /// made durable.
    durable_file: Option<File>,
    replay_schedule: ReplaySchedule,
    /// Due time of the requests that have slots already and are submitted at that time.
    prepared_due: Option<Nanoseconds>,
    /// Number of the request that is about to get a slot.
    next_request_number: u64,
    request_number_by_slot: Vec<u64>,
    were_slots_full: bool,
    /// Time at which a slot became free after all slots had been in use.
    slot_freed_at: Option<Nanoseconds>,
    /// Requests that were due before a slot became free. `in_flight_max` is the maximum number in
    /// flight.
    slot_delay_count: u64,
    in_flight_max: usize,
}

impl TraceSource {
    pub(super) fn new(
        ring: &IoRing<'_>,
        (file, durable): (File, Option<File>),
        pace: ReplayPace,
        begins: Option<Nanoseconds>,
        requests: RequestIterator,
    ) -> Self {
        // Memory for many slots takes milliseconds: the trace begins after that.
        let numbers = vec![0; ring.slots.slot_count()];
        let schedule = ReplaySchedule::new(pace, requests, (ring.target_system.now(), begins));
        Self {
            target_file: file,
            durable_file: durable,
            replay_schedule: schedule,
            prepared_due: None,
            next_request_number: 0,
            request_number_by_slot: numbers,
            were_slots_full: false,
            slot_freed_at: None,
            slot_delay_count: 0,
            in_flight_max: 0,
        }
    }

    /// Waits until the next request is due or a request completes.
    fn wait_for_due_or_completion(
        &mut self,
        ring: &mut IoRing<'_>,
        due: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        let ahead = due.since(ring.last_clock_reading);
        match ring.target_system.may_wake_late() {
            false => Ok(RingStep::reap_step(1, Some(due))),
            true if ahead > POLL_LEAD => Ok(RingStep::reap_step(
                1,
                Some(Nanoseconds(due.0 - POLL_LEAD.0)),
            )),
            // What is due already goes first.
            true if !ring.slots.unsubmitted_requests().is_empty() => {
                Ok(RingStep::SubmitBatch(None))
            }
            true if self.replay_schedule.depends_on_clock_only() => {
                self.prepared_due = Some(due);
                self.next_step(ring)
            }
            true => Ok(RingStep::reap_step(0, Some(due))),
        }
    }

    /// Polls the clock until the prepared requests are due, and submits them without further work.
    fn poll_and_submit(&mut self, ring: &IoRing<'_>, due: Nanoseconds) -> RingStep {
        let in_flight = ring.slots.in_use_count() - ring.slots.unsubmitted_requests().len();
        // In the end nothing can complete, and there is but the clock to be looked at.
        if ring.last_clock_reading < due
            && (in_flight > 0 || due.since(ring.last_clock_reading) > CLOCK_ONLY_POLL_LEAD)
        {
            return RingStep::PollUntil(due);
        }
        self.prepared_due = None;
        self.update_in_flight_max(&ring.slots);
        RingStep::SubmitBatch(Some(due))
    }

    /// Updates the maximum number of requests in flight, including those about to be submitted.
    fn update_in_flight_max(&mut self, slots: &Slots) {
        self.in_flight_max = self.in_flight_max.max(slots.in_use_count());
    }

    fn new_submission(
        &mut self,
        record: &blocktrace::TraceRecord,
        due: Option<Nanoseconds>,
    ) -> Result<Submission, ProgramError> {
        let is_durable = record.fua && record.operation == blocktrace::TracedOperation::Write;
        let durable = self.durable_file.filter(|_| is_durable);
        let free = self.slot_freed_at;
        let is_held_up = free.is_some_and(|free| due.is_some_and(|due| due < free));
        self.slot_delay_count += u64::from(is_held_up);
        Ok(Submission {
            operation: to_system_operation(record.operation),
            file: durable.unwrap_or(self.target_file),
            offset_bytes: record.offset_bytes,
            bytes: request_bytes(record)?,
            slot: 0,
            intended_start: due,
        })
    }
}

impl RequestSource for TraceSource {
    fn next_step(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError> {
        if self.prepared_due.is_none() {
            self.update_in_flight_max(&ring.slots);
        }
        if std::mem::take(&mut self.were_slots_full) {
            self.slot_freed_at = Some(ring.last_clock_reading);
        }
        let turn = match ring.slots.is_full() {
            true => None,
            false => Some(
                self.replay_schedule
                    .next_action(self.prepared_due.unwrap_or(ring.last_clock_reading))?,
            ),
        };
        match (turn, self.prepared_due) {
            (
                Some(ReplayAction::IssueRequest {
                    number,
                    record,
                    due,
                }),
                _,
            ) => {
                self.next_request_number = number;
                Ok(RingStep::PutRequest(0, self.new_submission(&record, due)?))
            }
            (_, Some(due)) => Ok(self.poll_and_submit(ring, due)),
            (Some(ReplayAction::WaitUntil(due)), None) => {
                self.wait_for_due_or_completion(ring, due)
            }
            (Some(ReplayAction::AwaitCompletion), None) => Ok(RingStep::reap_step(1, None)),
            (Some(ReplayAction::EndOfTrace), None) => {
                if ring.slots.in_use_count() == 0 {
                    let in_flight_max = self.in_flight_max as u64;
                    ring.target_system
                        .record_slot_use(self.slot_delay_count, in_flight_max);
                }
                Ok(RingStep::drain_step(&ring.slots))
            }
            (None, None) => {
                self.were_slots_full = true;
                Ok(RingStep::reap_step(1, None))
            }
        }
    }

    fn prepare_request(&mut self, _ring: &mut IoRing<'_>, request: &Submission) {
        self.request_number_by_slot[request.slot as usize] = self.next_request_number;
    }

    fn complete_request(
        &mut self,
        ring: &mut IoRing<'_>,
        done: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        let number = self.request_number_by_slot[done.request.slot as usize];
        self.replay_schedule
            .record_completion(number, ring.last_clock_reading);
        Ok(())
    }
}

fn request_bytes(record: &blocktrace::TraceRecord) -> Result<u32, ProgramError> {
    u32::try_from(record.length_bytes).map_err(|_| {
        ProgramError::TraceFailed(format!(
            "a request of {} bytes exceeds the maximum length of a call",
            record.length_bytes
        ))
    })
}

fn to_system_operation(of: blocktrace::TracedOperation) -> IoOperation {
    match of {
        blocktrace::TracedOperation::Read => IoOperation::Read,
        blocktrace::TracedOperation::Write => IoOperation::Write,
        blocktrace::TracedOperation::Flush => IoOperation::Fdatasync,
        blocktrace::TracedOperation::Discard => IoOperation::DiscardRange,
        blocktrace::TracedOperation::WriteZeroes => {
            unreachable!("what writes zeroes without data is not made")
        }
    }
}
