//! Source of requests that issues a generator's requests at the pace of a load.

use super::pace::IssuePace;
use super::{Durability, LoadRequest};
use crate::program::ProgramError;
use crate::ring::slots::CompletedRequest;
use crate::ring::{IoRing, RequestSource, RingStep};
use diskperf_system::{File, Operation, Submission};
use diskperf_timeline::Nanoseconds;

/// Source of requests to one file. It ends when the wanted bytes are moved or the wanted time has
/// passed.
pub(crate) struct LoadSource<Generate> {
    file: File,
    durability: Durability,
    pace: IssuePace,
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
            file,
            durability,
            pace,
            next_request: generate,
            unsynced_write_count: 0,
        }
    }

    #[inline]
    fn new_submission(&mut self, now: Nanoseconds) -> Option<Submission> {
        let every = self.durability.writes_per_sync;
        let sync = Submission {
            operation: self.durability.sync_call.operation(),
            file: self.file,
            offset_bytes: 0,
            bytes: 0,
            slot: 0,
            intended: None,
        };
        if every > 0 && self.unsynced_write_count >= every && !self.pace.is_over(now) {
            self.unsynced_write_count -= every;
            return Some(sync);
        }
        let intended = self.pace.next_issue(now)?;
        let request = (self.next_request)();
        self.pace.count_issued(request.bytes.into());
        Some(Submission {
            operation: operation(request.is_write),
            offset_bytes: request.offset_bytes,
            bytes: request.bytes,
            intended,
            ..sync
        })
    }
}

impl<Generate: FnMut() -> LoadRequest> RequestSource for LoadSource<Generate> {
    #[inline]
    fn next(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError> {
        let (slots, now) = (&ring.slots, ring.now);
        if !slots.is_full()
            && let Some(request) = self.new_submission(now)
        {
            return Ok(RingStep::PutRequest(0, request));
        }
        let in_use = slots.in_use_count();
        let next = self.pace.next_due(now);
        if in_use == 0 && next.is_none() {
            // Requests that had arrived are given up.
            while let Some(intended) = self.pace.abandoned_arrival() {
                let request = (self.next_request)();
                self.pace.count_issued(request.bytes.into());
                let operation = operation(request.is_write);
                ring.system.count_unissued(operation, intended);
            }
            return Ok(RingStep::Leave);
        }
        // A full ring can wait for nothing but a completion.
        let until = next.filter(|_| !slots.is_full() || self.pace.has_ramp());
        // With nothing in flight it waits for the next arrival, from which the response
        // counts: a worker that would be woken late looks at the clock again and again.
        let at_least = match ring.system.wakes_late() {
            true => in_use.min(1),
            false => 1,
        };
        Ok(RingStep::reap(at_least, until))
    }

    #[inline]
    fn complete(
        &mut self,
        _: &mut IoRing<'_>,
        done: &mut CompletedRequest,
    ) -> Result<(), ProgramError> {
        self.unsynced_write_count += u64::from(done.request.operation == Operation::Write);
        Ok(())
    }

    #[inline]
    fn end_reap(&mut self, ring: &mut IoRing<'_>) -> Result<(), ProgramError> {
        self.pace.end_ramp(ring.now, ring.system)
    }
}

fn operation(write: bool) -> Operation {
    match write {
        true => Operation::Write,
        false => Operation::Read,
    }
}
