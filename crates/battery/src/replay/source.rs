//! Requests of a trace, issued when the schedule says.

use super::schedule::{Schedule, Turn};
use super::{NAME, Requests};
use crate::program::ProgramError;
use crate::ring::slots::{Completed, Slots};
use crate::ring::{RingStep, Source};
use crate::worker::Worker;
use diskperf_blocktrace as blocktrace;
use diskperf_system::{File, Operation, Submission, System};
use diskperf_timeline::{Nanoseconds, ReplayPace};
use std::collections::VecDeque;

/// A worker on real storage that sleeps is woken late: this long before a request is due
/// it looks at the clock again and again instead.
const AWAKE: Nanoseconds = Nanoseconds::from_millis(1);

/// How long it looks at nothing but the clock.
const LOOK: Nanoseconds = Nanoseconds(100_000);

/// Requests of a trace.
pub(super) struct TraceSource<'a> {
    worker: &'a Worker,
    file: File,
    /// Open file for writes that were durable, if these are made so.
    durable: Option<File>,
    schedule: Schedule,
    /// Requests that are due at a moment and wait for it outside their slots, with their
    /// numbers.
    held: VecDeque<(u64, Submission)>,
    held_until: Option<Nanoseconds>,
    /// Number of the request that gets its slot.
    number: u64,
    /// Number of the request in each slot.
    numbers: Vec<u64>,
    /// Whether no slot was free at the last step.
    was_full: bool,
    /// Time at which a slot became free after all had been in use.
    free_again: Option<Nanoseconds>,
    /// Requests that were due before that, and the highest number in flight.
    held_up: u64,
    in_flight_max: usize,
}

impl<'a> TraceSource<'a> {
    pub(super) fn new(
        (system, worker): (&System, &'a Worker),
        (file, durable): (File, Option<File>),
        slots: u32,
        (pace, begins, requests): (ReplayPace, Option<Nanoseconds>, Requests),
    ) -> Self {
        // Memory for many slots takes milliseconds: the trace begins after that.
        let numbers = vec![0; slots as usize];
        let schedule = Schedule::new(pace, requests, (system.now(), begins));
        Self {
            worker,
            file,
            durable,
            schedule,
            held: VecDeque::new(),
            held_until: None,
            number: 0,
            numbers,
            was_full: false,
            free_again: None,
            held_up: 0,
            in_flight_max: 0,
        }
    }

    /// Waits for the moment when the next request is due, or for a completion.
    fn wait_for(
        &mut self,
        (system, slots): (&System, &Slots),
        due: Nanoseconds,
        now: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        Ok(match system.wakes_late() {
            false => RingStep::reap(1, Some(due)),
            true if due.since(now) > AWAKE => RingStep::reap(1, Some(Nanoseconds(due.0 - AWAKE.0))),
            true if self.schedule.goes_by_the_clock() => {
                self.hold(slots, due)?;
                self.await_held(slots, due, now)
            }
            true => RingStep::reap(0, Some(due)),
        })
    }

    /// Has the requests that are due at a moment ready: nothing but their submission is left
    /// to be done then.
    fn hold(&mut self, slots: &Slots, due: Nanoseconds) -> Result<(), ProgramError> {
        let free = slots.count() - slots.in_use();
        while self.held.len() < free
            && let Turn::Issue {
                number,
                record,
                due,
            } = self.schedule.turn(due)?
        {
            let request = self.request(&record, due)?;
            self.held.push_back((number, request));
        }
        self.held_until = Some(due);
        Ok(())
    }

    /// Looks at the clock until held requests are due, and issues them.
    fn await_held(&mut self, slots: &Slots, due: Nanoseconds, now: Nanoseconds) -> RingStep {
        // In the end nothing can complete, and there is but the clock to be looked at.
        let in_flight = slots.in_use() - slots.waiting().len();
        let looks = in_flight > 0 || due.since(now) > LOOK;
        if now < due && looks && slots.waiting().is_empty() {
            return RingStep::reap(0, Some(due));
        }
        match self.held.pop_front() {
            Some((number, request)) => self.put(number, request),
            None => {
                self.held_until = None;
                RingStep::Submit(Some(due))
            }
        }
    }

    fn put(&mut self, number: u64, request: Submission) -> RingStep {
        self.number = number;
        RingStep::Put(request)
    }

    /// Makes a request of a record.
    fn request(
        &mut self,
        record: &blocktrace::Record,
        due: Option<Nanoseconds>,
    ) -> Result<Submission, ProgramError> {
        let is_durable = record.fua && record.operation == blocktrace::Operation::Write;
        let durable = self.durable.filter(|_| is_durable);
        let free = self.free_again;
        let is_held_up = free.is_some_and(|free| due.is_some_and(|due| due < free));
        self.held_up += u64::from(is_held_up);
        Ok(Submission {
            operation: operation(record.operation),
            file: durable.unwrap_or(self.file),
            offset_bytes: record.offset_bytes,
            bytes: bytes(record)?,
            slot: 0,
            intended: due,
        })
    }
}

impl Source for TraceSource<'_> {
    fn next(
        &mut self,
        system: &mut System,
        slots: &Slots,
        now: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        self.in_flight_max = self.in_flight_max.max(slots.in_use());
        if std::mem::take(&mut self.was_full) {
            self.free_again = Some(now);
        }
        if let Some(due) = self.held_until {
            return Ok(self.await_held(slots, due, now));
        }
        if slots.are_full() {
            self.was_full = true;
            return Ok(RingStep::reap(1, None));
        }
        match self.schedule.turn(now)? {
            Turn::Issue {
                number,
                record,
                due,
            } => {
                let request = self.request(&record, due)?;
                Ok(self.put(number, request))
            }
            Turn::Wait(due) => self.wait_for((system, slots), due, now),
            Turn::Await => Ok(RingStep::reap(1, None)),
            Turn::Over => {
                if slots.in_use() == 0 {
                    system.used_slots(self.held_up, self.in_flight_max as u64);
                }
                Ok(RingStep::drain(slots))
            }
        }
    }

    fn prepare(&mut self, _system: &mut System, request: &Submission) {
        self.numbers[request.slot as usize] = self.number;
    }

    fn complete(
        &mut self,
        _system: &mut System,
        completed: &Completed,
        now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        completed.check(|| self.worker.file(NAME))?;
        let number = self.numbers[completed.request.slot as usize];
        self.schedule.completed(number, now);
        Ok(())
    }
}

fn bytes(record: &blocktrace::Record) -> Result<u32, ProgramError> {
    u32::try_from(record.length_bytes).map_err(|_| {
        ProgramError::Trace(format!(
            "a request of {} bytes is longer than any call",
            record.length_bytes
        ))
    })
}

fn operation(of: blocktrace::Operation) -> Operation {
    match of {
        blocktrace::Operation::Read => Operation::Read,
        blocktrace::Operation::Write => Operation::Write,
        blocktrace::Operation::Flush => Operation::Fdatasync,
        blocktrace::Operation::Discard => Operation::Discard,
        blocktrace::Operation::WriteZeroes => {
            unreachable!("what writes zeroes without data is not made")
        }
    }
}
