//! Source of requests that issues a generator's requests at the pace of a load.

use super::pace::Pace;
use super::{Durability, Request};
use crate::program::ProgramError;
use crate::ring::slots::Completed;
use crate::ring::{Ring, RingStep, Source};
use diskperf_system::{File, Operation, Submission};
use diskperf_timeline::Nanoseconds;

/// Source of requests to one file. It ends when the wanted bytes are moved or the wanted time has
/// passed.
pub(crate) struct LoadSource<Generate> {
    file: File,
    durability: Durability,
    pace: Pace,
    generate: Generate,
    /// Writes that have completed since the last sync was issued.
    unsynced: u64,
}

impl<Generate: FnMut() -> Request> LoadSource<Generate> {
    pub(crate) fn new(
        (file, durability): (File, Durability),
        pace: Pace,
        generate: Generate,
    ) -> Self {
        Self {
            file,
            durability,
            pace,
            generate,
            unsynced: 0,
        }
    }

    #[inline]
    fn request(&mut self, now: Nanoseconds) -> Option<Submission> {
        let every = self.durability.every_writes;
        let sync = Submission {
            operation: self.durability.call.operation(),
            file: self.file,
            offset_bytes: 0,
            bytes: 0,
            slot: 0,
            intended: None,
        };
        if every > 0 && self.unsynced >= every && !self.pace.is_over(now) {
            self.unsynced -= every;
            return Some(sync);
        }
        let intended = self.pace.arrival(now)?;
        let request = (self.generate)();
        self.pace.issued(request.bytes.into());
        Some(Submission {
            operation: operation(request.write),
            offset_bytes: request.offset_bytes,
            bytes: request.bytes,
            intended,
            ..sync
        })
    }
}

impl<Generate: FnMut() -> Request> Source for LoadSource<Generate> {
    #[inline]
    fn next(&mut self, ring: &mut Ring<'_>) -> Result<RingStep, ProgramError> {
        let (slots, now) = (&ring.slots, ring.now);
        if !slots.are_full()
            && let Some(request) = self.request(now)
        {
            return Ok(RingStep::Put(0, request));
        }
        let in_use = slots.in_use();
        let next = self.pace.next_moment(now);
        if in_use == 0 && next.is_none() {
            // Requests that had arrived are given up.
            while let Some(intended) = self.pace.given_up() {
                let request = (self.generate)();
                self.pace.issued(request.bytes.into());
                let operation = operation(request.write);
                ring.system.count_unissued(operation, intended);
            }
            return Ok(RingStep::Return);
        }
        // A full ring can wait for nothing but a completion.
        let until = next.filter(|_| !slots.are_full() || self.pace.has_ramp());
        // With nothing in flight it waits for the next arrival, from which the response
        // counts: a worker that would be woken late looks at the clock again and again.
        let at_least = match ring.system.wakes_late() {
            true => in_use.min(1),
            false => 1,
        };
        Ok(RingStep::reap(at_least, until))
    }

    #[inline]
    fn complete(&mut self, _: &mut Ring<'_>, done: &mut Completed) -> Result<(), ProgramError> {
        self.unsynced += u64::from(done.request.operation == Operation::Write);
        Ok(())
    }

    #[inline]
    fn end_reap(&mut self, ring: &mut Ring<'_>) -> Result<(), ProgramError> {
        self.pace.end_ramp(ring.now, ring.system)
    }
}

fn operation(write: bool) -> Operation {
    match write {
        true => Operation::Write,
        false => Operation::Read,
    }
}
