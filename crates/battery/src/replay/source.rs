//! Source of requests that issues a trace's requests by its schedule.

use super::Requests;
use super::schedule::{Schedule, Turn};
use crate::program::ProgramError;
use crate::ring::slots::{Completed, Slots};
use crate::ring::{Ring, RingStep, Source};
use diskperf_blocktrace as blocktrace;
use diskperf_system::{File, Operation, Submission};
use diskperf_timeline::{Nanoseconds, ReplayPace};

/// Time before a request is due from which a worker on real storage polls the clock instead of
/// sleeping, because a sleeping worker wakes up late.
const AWAKE: Nanoseconds = Nanoseconds::from_millis(1);

/// Time before a due request from which a worker with nothing in flight polls only the clock.
const LOOK: Nanoseconds = Nanoseconds(100_000);

/// Source of the requests of a trace.
pub(super) struct TraceSource {
    file: File,
    /// Open file with O_DSYNC for writes that were durable in the trace. `None` if they are not
    /// made durable.
    durable: Option<File>,
    schedule: Schedule,
    /// Due time of the requests that have slots already and are submitted at that time.
    ready_for: Option<Nanoseconds>,
    /// Number of the request that is about to get a slot.
    number: u64,
    numbers: Vec<u64>,
    was_full: bool,
    /// Time at which a slot became free after all slots had been in use.
    free_again: Option<Nanoseconds>,
    /// Requests that were due before a slot became free. `in_flight_max` is the maximum number in
    /// flight.
    held_up: u64,
    in_flight_max: usize,
}

impl TraceSource {
    pub(super) fn new(
        ring: &Ring<'_>,
        (file, durable): (File, Option<File>),
        (pace, begins, requests): (ReplayPace, Option<Nanoseconds>, Requests),
    ) -> Self {
        // Memory for many slots takes milliseconds: the trace begins after that.
        let numbers = vec![0; ring.slots.count()];
        let schedule = Schedule::new(pace, requests, (ring.system.now(), begins));
        Self {
            file,
            durable,
            schedule,
            ready_for: None,
            number: 0,
            numbers,
            was_full: false,
            free_again: None,
            held_up: 0,
            in_flight_max: 0,
        }
    }

    /// Waits until the next request is due or a request completes.
    fn wait_for(
        &mut self,
        ring: &mut Ring<'_>,
        due: Nanoseconds,
    ) -> Result<RingStep, ProgramError> {
        let ahead = due.since(ring.now);
        match ring.system.wakes_late() {
            false => Ok(RingStep::reap(1, Some(due))),
            true if ahead > AWAKE => Ok(RingStep::reap(1, Some(Nanoseconds(due.0 - AWAKE.0)))),
            // What is due already goes first.
            true if !ring.slots.waiting().is_empty() => Ok(RingStep::Submit(None)),
            true if self.schedule.goes_by_the_clock() => {
                self.ready_for = Some(due);
                self.next(ring)
            }
            true => Ok(RingStep::reap(0, Some(due))),
        }
    }

    /// Polls the clock until the prepared requests are due, and submits them without further work.
    fn submit_at(&mut self, ring: &Ring<'_>, due: Nanoseconds) -> RingStep {
        let in_flight = ring.slots.in_use() - ring.slots.waiting().len();
        // In the end nothing can complete, and there is but the clock to be looked at.
        if ring.now < due && (in_flight > 0 || due.since(ring.now) > LOOK) {
            return RingStep::Look(due);
        }
        self.ready_for = None;
        self.count_in_flight(&ring.slots);
        RingStep::Submit(Some(due))
    }

    /// Updates the maximum number of requests in flight, including those about to be submitted.
    fn count_in_flight(&mut self, slots: &Slots) {
        self.in_flight_max = self.in_flight_max.max(slots.in_use());
    }

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

impl Source for TraceSource {
    fn next(&mut self, ring: &mut Ring<'_>) -> Result<RingStep, ProgramError> {
        if self.ready_for.is_none() {
            self.count_in_flight(&ring.slots);
        }
        if std::mem::take(&mut self.was_full) {
            self.free_again = Some(ring.now);
        }
        let turn = match ring.slots.are_full() {
            true => None,
            false => Some(self.schedule.turn(self.ready_for.unwrap_or(ring.now))?),
        };
        match (turn, self.ready_for) {
            (
                Some(Turn::Issue {
                    number,
                    record,
                    due,
                }),
                _,
            ) => {
                self.number = number;
                Ok(RingStep::Put(0, self.request(&record, due)?))
            }
            (_, Some(due)) => Ok(self.submit_at(ring, due)),
            (Some(Turn::Wait(due)), None) => self.wait_for(ring, due),
            (Some(Turn::Await), None) => Ok(RingStep::reap(1, None)),
            (Some(Turn::Over), None) => {
                if ring.slots.in_use() == 0 {
                    let in_flight_max = self.in_flight_max as u64;
                    ring.system.used_slots(self.held_up, in_flight_max);
                }
                Ok(RingStep::drain(&ring.slots))
            }
            (None, None) => {
                self.was_full = true;
                Ok(RingStep::reap(1, None))
            }
        }
    }

    fn prepare(&mut self, _ring: &mut Ring<'_>, request: &Submission) {
        self.numbers[request.slot as usize] = self.number;
    }

    fn complete(&mut self, ring: &mut Ring<'_>, done: &mut Completed) -> Result<(), ProgramError> {
        let number = self.numbers[done.request.slot as usize];
        self.schedule.completed(number, ring.now);
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
