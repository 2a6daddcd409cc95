//! The loop that keeps requests of one file under way.

use super::pace::Pace;
use super::slots::Slots;
use super::{AREA, Durability, Load, Request};
use crate::blocks::pause;
use crate::program::ProgramError;
use crate::verify::Verifier;
use crate::verify::ring::read_back;
use crate::worker::Worker;
use diskperf_system::{File, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// Keeps requests of one file under way until as much is moved, or as much time has
/// passed, as is wanted.
pub(crate) struct Driver<'a> {
    system: &'a mut System,
    worker: &'a Worker,
    file: File,
    durability: Durability,
    pace: Pace,
    slots: Slots,
    /// Writes that completed since the last sync was issued.
    unsynced: u64,
    /// Where what is written is verified.
    verifier: Option<Verifier>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        (system, worker): (&'a mut System, &'a Worker),
        load: &Load,
        file: File,
        durability: Durability,
        slots: Slots,
    ) -> Self {
        let pace = Pace::new(load, worker, system.now());
        let verifier = load.verifier(system, worker);
        Self {
            system,
            worker,
            file,
            durability,
            pace,
            slots,
            unsynced: 0,
            verifier,
        }
    }

    /// Makes the requests that the generator gives.
    pub(crate) async fn run(
        &mut self,
        mut generate: impl FnMut() -> Request,
    ) -> Result<(), ProgramError> {
        let mut now = self.pace.start();
        loop {
            self.fill(now, &mut generate);
            self.slots.submit(self.system).await?;
            let under_way = self.slots.under_way();
            let next = self.pace.next_moment(now);
            if under_way == 0 && next.is_none() {
                self.count_unissued(&mut generate);
                return self.verify().await;
            }
            // A full ring can wait for nothing but a completion.
            let until = next.filter(|_| !self.slots.are_full() || self.pace.has_ramp());
            // With nothing under way it waits for the next arrival, from which the response
            // counts: who would be woken late looks at the clock again and again.
            let at_least = match self.system.wakes_late() {
                true => under_way.min(1),
                false => 1,
            };
            now = self.slots.reap(self.system, at_least, until).await?;
            // What does not think does not wait either.
            match self.worker.think {
                Nanoseconds::ZERO => while self.take_one()? {},
                think => {
                    while self.take_one()? {
                        pause(self.system, think).await?;
                    }
                }
            }
            if let Some(verifier) = &mut self.verifier {
                verifier.move_rests(self.system, self.slots.waiting());
            }
            self.pace.end_ramp(now, self.system)?;
        }
    }

    /// Reads back what was written, where that is wanted.
    async fn verify(&mut self) -> Result<(), ProgramError> {
        let Some(verifier) = self.verifier.take() else {
            return Ok(());
        };
        let files = [(self.file, self.worker.file(AREA))];
        let place = (&mut *self.system, self.worker);
        read_back(place, &mut self.slots, verifier, &files).await
    }

    /// Counts what had arrived and is given up.
    fn count_unissued(&mut self, generate: &mut impl FnMut() -> Request) {
        while let Some(intended) = self.pace.given_up() {
            let request = generate();
            self.pace.issued(request.bytes.into());
            self.system
                .count_unissued(operation(request.write), intended);
        }
    }

    /// Fills free slots with what is to be issued now.
    #[inline]
    fn fill(&mut self, now: Nanoseconds, generate: &mut impl FnMut() -> Request) {
        while !self.slots.are_full() {
            let every = self.durability.every_writes;
            let submission = if every > 0 && self.unsynced >= every && !self.pace.is_over(now) {
                self.unsynced -= every;
                Submission {
                    operation: self.durability.call.operation(),
                    file: self.file,
                    offset_bytes: 0,
                    bytes: 0,
                    slot: 0,
                    intended: None,
                }
            } else if let Some(intended) = self.pace.arrival(now) {
                let request = generate();
                self.pace.issued(request.bytes.into());
                Submission {
                    operation: operation(request.write),
                    file: self.file,
                    offset_bytes: request.offset_bytes,
                    bytes: request.bytes,
                    slot: 0,
                    intended,
                }
            } else {
                break;
            };
            let slot = self.slots.put(submission);
            if let Some(verifier) = &mut self.verifier {
                verifier.prepare(self.system, Submission { slot, ..submission }, 0);
            }
        }
    }

    /// Takes one that completed, if there is one.
    #[inline]
    fn take_one(&mut self) -> Result<bool, ProgramError> {
        let done = self.slots.take(|_| self.worker.file(AREA))?;
        if let Some(done) = &done {
            self.unsynced += u64::from(done.operation == Operation::Write);
            if let Some(verifier) = &mut self.verifier {
                verifier.complete(self.system, done.slot, |_| self.worker.file(AREA))?;
            }
        }
        Ok(done.is_some())
    }
}

fn operation(write: bool) -> Operation {
    match write {
        true => Operation::Write,
        false => Operation::Read,
    }
}
