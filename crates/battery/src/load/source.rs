//! Source of requests that issues a generator's requests at the pace of a load.

use super::pace::IssuePace;
use super::{Durability, LoadRequest};
use crate::program::ProgramError;
use crate::ring::slots::CompletedRequest;
use crate::ring::{IoRing, RequestSource, RingStep};
use diskperf_system::{File, IoOperation, Submission};
use diskperf_timeline::Nanoseconds;

/// Source of requests to one file. It ends when the wanted bytes are moved or the wanted time has
/// passed.
pub(crate) struct LoadSource<Generate> {
    target_file: File,
    durability_options: Durability,
    issue_pace: IssuePace,
    next_request: Generate,
    /// Writes that have completed since the last sync was issued.
    unsynced_write_count: u64,
}

impl<Generate: FnMut() -> LoadRequest> LoadSource<Generate> {
    pub(crate) fn new(
        (file, durability): (File, Durability),
        pace: IssuePace,
        generate: Generate,
    ) -> Self {
        Self {
            target_file: file,
            durability_options: durability,
            issue_pace: pace,
            next_request: generate,
            unsynced_write_count: 0,
        }
    }

    #[inline]
    fn new_submission(&mut self, now: Nanoseconds) -> Option<Submission> {
        let every = self.durability_options.writes_per_sync;
        let sync = Submission {
            operation: self.durability_options.sync_call.sync_operation(),
            file: self.target_file,
            offset_bytes: 0,
            bytes: 0,
            slot: 0,
            intended_start: None,
        };
        if every > 0 && self.unsynced_write_count >= every && !self.issue_pace.is_issue_over(now) {
            self.unsynced_write_count -= every;
            return Some(sync);
        }
        let intended = self.issue_pace.next_issue_time(now)?;
        let request = (self.next_request)();
        self.issue_pace.count_issued(request.bytes.into());
        Some(Submission {
            operation: operation_of_request(request.is_write),
            offset_bytes: request.offset_bytes,
            bytes: request.bytes,
            intended_start: intended,
            ..sync
        })
    }
}

impl<Generate: FnMut() -> LoadRequest> RequestSource for LoadSource<Generate> {
    #[inline]
    fn next_step(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError> {
        let (slots, now) = (&ring.slots, ring.last_clock_reading);
        if !slots.is_full()
            && let Some(request) = self.new_submission(now)
        {
            return Ok(RingStep::PutRequest(0, request));
        }
        let in_use = slots.in_use_count();
        let next = self.issue_pace.next_due_time(now);
        if in_use == 0 && next.is_none() {
            // Requests that had arrived are given up.
            while let Some(intended) = self.issue_pace.abandoned_arrival() {
                let request = (self.next_request)();
                self.issue_pace.count_issued(request.bytes.into());
                let operation = operation_of_request(request.is_write);
                ring.target_system.count_unissued(operation, intended);
            }
            return Ok(RingStep::LeaveRing);
        }
        // A full ring can wait for nothing but a completion.
        let until = next.filter(|_| !slots.is_full() || self.issue_pace.has_ramp());
        // With nothing in flight it waits for the next arrival, from which the response
        // counts: a worker that would be woken late looks at the clock again and again.
        let at_least = match ring.target_system.may_wake_late() {
            true => in_use.min(1),
            false => 1,
        };
        Ok(RingStep::reap_step(at_least, until))
    }

    #[inline]
    fn complete_request(
        &mut self,
        _: &mut IoRing<'_>,
        done: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        self.unsynced_write_count += u64::from(done.request.operation == IoOperation::Write);
        Ok(())
    }

    #[inline]
    fn end_of_reap(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        self.issue_pace
            .end_ramp(ring.last_clock_reading, ring.target_system)
    }
}

fn operation_of_request(write: bool) -> IoOperation {
    match write {
        true => IoOperation::Write,
        false => IoOperation::Read,
    }
}
