//! Requests of a generator, issued at the pace of a load.

use super::pace::Pace;
use super::{AREA, Durability, Load, Request};
use crate::program::ProgramError;
use crate::ring::slots::{Completed, Slots};
use crate::ring::{Ring, RingStep, Source};
use crate::verify::Verifier;
use crate::verify::ring::read_back;
use crate::worker::Worker;
use diskperf_system::{File, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// Requests of one file until as much is moved, or as much time has passed, as is wanted.
pub(crate) struct LoadSource<'a, Generate> {
    worker: &'a Worker,
    file: File,
    durability: Durability,
    pace: Pace,
    generate: Generate,
    /// Writes that completed since the last sync was issued.
    unsynced: u64,
    /// Verification of the writes.
    verifier: Option<Verifier>,
}

impl<'a, Generate: FnMut() -> Request> LoadSource<'a, Generate> {
    pub(crate) fn new(
        (system, worker): (&System, &'a Worker),
        load: &Load,
        (file, durability): (File, Durability),
        generate: Generate,
    ) -> Self {
        Self {
            worker,
            file,
            durability,
            pace: Pace::new(load, worker, system.now()),
            generate,
            unsynced: 0,
            verifier: load.verifier(system, worker),
        }
    }

    /// Issues the requests, and reads back what they wrote, where that is wanted.
    pub(crate) async fn run(
        mut self,
        system: &mut System,
        slots: &mut Slots,
    ) -> Result<(), ProgramError> {
        let mut ring = Ring {
            system,
            slots,
            think: self.worker.think,
        };
        ring.run(&mut self).await?;
        let Some(verifier) = self.verifier.take() else {
            return Ok(());
        };
        let files = [(self.file, self.worker.file(AREA))];
        read_back((system, self.worker), slots, verifier, &files).await
    }

    /// Returns the request that is to be issued now, if one is.
    #[inline]
    fn request(&mut self, now: Nanoseconds) -> Option<Submission> {
        let every = self.durability.every_writes;
        if every > 0 && self.unsynced >= every && !self.pace.is_over(now) {
            self.unsynced -= every;
            return Some(Submission {
                operation: self.durability.call.operation(),
                file: self.file,
                offset_bytes: 0,
                bytes: 0,
                slot: 0,
                intended: None,
            });
        }
        let intended = self.pace.arrival(now)?;
        let request = (self.generate)();
        self.pace.issued(request.bytes.into());
        Some(Submission {
            operation: operation(request.write),
            file: self.file,
            offset_bytes: request.offset_bytes,
            bytes: request.bytes,
            slot: 0,
            intended,
        })
    }

    /// Counts the requests that had arrived and are given up.
    fn count_unissued(&mut self, system: &mut System) {
        while let Some(intended) = self.pace.given_up() {
            let request = (self.generate)();
            self.pace.issued(request.bytes.into());
            system.count_unissued(operation(request.write), intended);
        }
    }
}

impl<Generate: FnMut() -> Request> Source for LoadSource<'_, Generate> {
    #[inline]
    fn next(
        &mut self,
        system: &mut System,
        slots: &Slots,
        now: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        if !slots.are_full()
            && let Some(request) = self.request(now)
        {
            return Ok(RingStep::Put(request));
        }
        let in_use = slots.in_use();
        let next = self.pace.next_moment(now);
        if in_use == 0 && next.is_none() {
            self.count_unissued(system);
            return Ok(RingStep::Return);
        }
        // A full ring can wait for nothing but a completion.
        let until = next.filter(|_| !slots.are_full() || self.pace.has_ramp());
        // With nothing in flight it waits for the next arrival, from which the response
        // counts: a worker that would be woken late looks at the clock again and again.
        let at_least = match system.wakes_late() {
            true => in_use.min(1),
            false => 1,
        };
        Ok(RingStep::reap(at_least, until))
    }

    #[inline]
    fn prepare(&mut self, system: &mut System, request: &Submission) {
        if let Some(verifier) = &mut self.verifier {
            verifier.prepare(system, *request, 0);
        }
    }

    #[inline]
    fn complete(
        &mut self,
        system: &mut System,
        completed: &Completed,
        _now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        let path = || self.worker.file(AREA);
        completed.check(path)?;
        let request = &completed.request;
        self.unsynced += u64::from(request.operation == Operation::Write);
        match &mut self.verifier {
            Some(verifier) => verifier.complete(system, request.slot, |_| path()),
            None => Ok(()),
        }
    }

    #[inline]
    fn end_reap(
        &mut self,
        system: &mut System,
        waiting: &[Submission],
        now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        if let Some(verifier) = &mut self.verifier {
            verifier.move_rests(system, waiting);
        }
        self.pace.end_ramp(now, system)
    }
}

fn operation(write: bool) -> Operation {
    match write {
        true => Operation::Write,
        false => Operation::Read,
    }
}
