//! The loop that keeps requests of one file under way.

use super::arrivals::Arrivals;
use super::window::failed;
use super::{AREA, Durability, Load, Request, Span};
use crate::blocks::pause;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::{Completion, File, Operation, Submission, System};
use diskperf_timeline::Nanoseconds;

/// Keeps requests of one file under way until as much is moved, or as much time has
/// passed, as is wanted.
pub(crate) struct Driver<'a> {
    system: &'a mut System,
    worker: &'a Worker,
    file: File,
    durability: Durability,
    pace: Pace,
    /// Slots that are not under way.
    free: Vec<u32>,
    /// What each slot is doing.
    slots: Vec<Submission>,
    batch: Vec<Submission>,
    done: Vec<Completion>,
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
        let depth = load.depth as u32;
        let idle = |slot| Submission {
            operation: Operation::Read,
            file,
            offset_bytes: 0,
            bytes: 0,
            slot,
            intended: None,
        };
        Self {
            system,
            worker,
            file,
            durability,
            pace,
            free: (0..depth).rev().collect(),
            slots: (0..depth).map(idle).collect(),
            batch: Vec::with_capacity(depth as usize),
            done: Vec::with_capacity(depth as usize),
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
            if !self.batch.is_empty() {
                self.system.submit(&self.batch).await?;
                self.batch.clear();
            }
            let under_way = self.slots.len() - self.free.len();
            let next = self.pace.next_moment(now);
            if under_way == 0 && next.is_none() {
                self.count_unissued(&mut generate);
                return Ok(());
            }
            // A full ring can wait for nothing but a completion.
            let until = next.filter(|_| !self.free.is_empty() || self.pace.span.ramp.is_some());
            now = self
                .system
                .reap(under_way.min(1), until, &mut self.done)
                .await?;
            self.take().await?;
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
        while let Some(slot) = self.free.last().copied() {
            let every = self.durability.every_writes;
            let submission = if every > 0 && self.unsynced >= every && !self.pace.is_over(now) {
                self.unsynced -= every;
                Submission {
                    operation: self.durability.call.operation(),
                    file: self.file,
                    offset_bytes: 0,
                    bytes: 0,
                    slot,
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
                    slot,
                    intended,
                }
            } else {
                break;
            };
            self.free.pop();
            self.slots[slot as usize] = submission;
            self.batch.push(submission);
        }
    }

    /// Takes what completed.
    #[inline]
    async fn take(&mut self) -> Result<(), ProgramError> {
        for number in 0..self.done.len() {
            let Completion { slot, result, .. } = self.done[number];
            let submission = &mut self.slots[slot as usize];
            let moved = result
                .map_err(|errno| failed(&self.worker.file(AREA), submission.operation, errno))?;
            if moved < submission.bytes {
                if submission.operation == Operation::Read {
                    return Err(ProgramError::ShortFile);
                }
                if moved == 0 {
                    return Err(ProgramError::NothingTaken);
                }
                // The rest of a short write.
                submission.offset_bytes += u64::from(moved);
                submission.bytes -= moved;
                self.batch.push(*submission);
                continue;
            }
            self.unsynced += u64::from(submission.operation == Operation::Write);
            self.free.push(slot);
            pause(self.system, self.worker.think).await?;
        }
        self.done.clear();
        Ok(())
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
