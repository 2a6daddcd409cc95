//! The loop that keeps requests of one file under way.

use super::arrivals::Arrivals;
use super::slots::Slots;
use super::{AREA, Durability, Load, Request, Span};
use crate::blocks::pause;
use crate::program::ProgramError;
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
}

impl<'a> Driver<'a> {
    pub(crate) fn new(
        (system, worker): (&'a mut System, &'a Worker),
        load: &Load,
        file: File,
        durability: Durability,
    ) -> Self {
        let pace = Pace::new(load, worker, system.now());
        Self {
            system,
            worker,
            file,
            durability,
            pace,
            slots: load.slots(),
            unsynced: 0,
        }
    }

    /// Makes the requests that the generator gives.
    pub(crate) async fn run(
        &mut self,
        mut generate: impl FnMut() -> Request,
    ) -> Result<(), ProgramError> {
        let mut now = self.pace.span.start;
        loop {
            self.fill(now, &mut generate);
            self.slots.submit(self.system).await?;
            let under_way = self.slots.under_way();
            let next = self.pace.next_moment(now);
            if under_way == 0 && next.is_none() {
                self.count_unissued(&mut generate);
                return Ok(());
            }
            // A full ring can wait for nothing but a completion.
            let until = next.filter(|_| !self.slots.are_full() || self.pace.span.ramp.is_some());
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
            self.pace.span.end_ramp(now, self.system)?;
        }
    }

    /// Counts what had arrived and is given up.
    fn count_unissued(&mut self, generate: &mut impl FnMut() -> Request) {
        while let Some(intended) = self.pace.given_up() {
            let request = generate();
            self.pace.issued(request.bytes);
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
                self.pace.issued(request.bytes);
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
            self.slots.put(submission);
        }
    }

    /// Takes one that completed, if there is one.
    #[inline]
    fn take_one(&mut self) -> Result<bool, ProgramError> {
        let done = self.slots.take(|_| self.worker.file(AREA))?;
        if let Some(done) = &done {
            self.unsynced += u64::from(done.operation == Operation::Write);
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

/// When requests may be issued, and until when.
struct Pace {
    span: Span,
    /// Bytes that are still to be issued, where there is no end in time.
    left_bytes: u64,
    arrivals: Option<Arrivals>,
}

impl Pace {
    fn new(load: &Load, worker: &Worker, start: Nanoseconds) -> Self {
        Self {
            span: Span::new(load, start),
            left_bytes: worker.size_bytes,
            arrivals: (load.rate_iops > 0)
                .then(|| Arrivals::new(load.rate_iops, load.spacing, (start, worker.seed))),
        }
    }

    /// Whether no more requests are to be issued.
    #[inline]
    fn is_over(&self, now: Nanoseconds) -> bool {
        match (self.span.end, &self.arrivals) {
            (None, _) => self.left_bytes == 0,
            (Some(end), None) => now >= end,
            // What arrived before the end is served after it, but not for ever.
            (Some(end), Some(arrivals)) => {
                arrivals.next() >= end || now >= end + end.since(self.span.start)
            }
        }
    }

    /// When the next request had arrived of those that are left when all is over.
    fn given_up(&self) -> Option<Nanoseconds> {
        let arrival = self.arrivals.as_ref()?.next();
        (arrival < self.span.end?).then_some(arrival)
    }

    /// Whether a request is to be issued now, and when it arrived where arrivals do not
    /// wait.
    #[inline]
    fn arrival(&self, now: Nanoseconds) -> Option<Option<Nanoseconds>> {
        if self.is_over(now) {
            return None;
        }
        match &self.arrivals {
            None => Some(None),
            Some(arrivals) => (arrivals.next() <= now).then(|| Some(arrivals.next())),
        }
    }

    #[inline]
    fn issued(&mut self, bytes: u32) {
        self.left_bytes = self.left_bytes.saturating_sub(u64::from(bytes));
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.advance();
        }
    }

    /// When to look again although nothing completes; none where nothing is to come.
    #[inline]
    fn next_moment(&self, now: Nanoseconds) -> Option<Nanoseconds> {
        let arrival = match &self.arrivals {
            Some(arrivals) if !self.is_over(now) => Some(arrivals.next()),
            Some(_) | None => None,
        };
        match (arrival, self.span.ramp) {
            (Some(arrival), Some(ramp)) => Some(arrival.min(ramp)),
            (one, other) => one.or(other),
        }
    }
}
