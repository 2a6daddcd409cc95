//! The loop that makes a trace's requests.

use super::schedule::{Schedule, Turn};
use super::{NAME, Requests};
use crate::load::slots::Slots;
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_blocktrace as blocktrace;
use diskperf_system::{File, Operation, Submission, System};
use diskperf_timeline::{Nanoseconds, ReplayPace};

/// A worker on real storage that sleeps is woken late: this long before a request is due
/// it looks at the clock again and again instead.
const AWAKE: Nanoseconds = Nanoseconds::from_millis(1);

/// How long it looks at nothing but the clock.
const LOOK: Nanoseconds = Nanoseconds(100_000);

/// A trace on its way.
pub(super) struct Course<'a> {
    system: &'a mut System,
    worker: &'a Worker,
    file: File,
    /// For writes that were durable, if these are made so.
    durable: Option<File>,
    schedule: Schedule,
    slots: Slots,
    /// The number of the request in each slot.
    numbers: Vec<u64>,
    /// When a slot became free after all had been under way.
    free_again: Option<Nanoseconds>,
    /// Requests that were due before that, and the most that were under way.
    held_up: u64,
    deepest: usize,
}

impl<'a> Course<'a> {
    pub(super) fn new(
        (system, worker): (&'a mut System, &'a Worker),
        (file, durable): (File, Option<File>),
        slots: u64,
        (pace, begins, requests): (ReplayPace, Option<Nanoseconds>, Requests),
    ) -> Self {
        // Memory for many slots takes milliseconds: the trace begins after that.
        let (numbers, slots) = (vec![0; slots as usize], Slots::new(slots));
        let schedule = Schedule::new(pace, requests, (system.now(), begins));
        Self {
            system,
            worker,
            file,
            durable,
            schedule,
            slots,
            numbers,
            free_again: None,
            held_up: 0,
            deepest: 0,
        }
    }

    pub(super) async fn run(&mut self) -> Result<(), ProgramError> {
        let mut now = self.system.now();
        loop {
            let turn = self.fill(now)?;
            self.submit_at(None).await?;
            now = match turn {
                Some(Turn::Over) if self.slots.under_way() == 0 => {
                    self.system.used_slots(self.held_up, self.deepest as u64);
                    return Ok(());
                }
                Some(Turn::Wait(due)) => self.wait_for(due, now).await?,
                Some(Turn::Over | Turn::Await | Turn::Issue { .. }) | None => {
                    self.reap(1, None).await?
                }
            };
            if turn.is_none() {
                self.free_again = Some(now);
            }
        }
    }

    async fn submit_at(&mut self, moment: Option<Nanoseconds>) -> Result<(), ProgramError> {
        self.deepest = self.deepest.max(self.slots.under_way());
        self.slots.submit_at(moment, self.system).await
    }

    /// Waits as [`System::reap`] does, and tells the schedule what completed.
    async fn reap(
        &mut self,
        at_least: usize,
        until: Option<Nanoseconds>,
    ) -> Result<Nanoseconds, ProgramError> {
        let now = self.slots.reap(self.system, at_least, until).await?;
        while let Some(done) = self.slots.take(|_| self.worker.file(NAME))? {
            let number = self.numbers[done.slot as usize];
            self.schedule.completed(number, now);
        }
        Ok(now)
    }

    /// Waits for the moment when the next request is due, or for a completion.
    async fn wait_for(
        &mut self,
        due: Nanoseconds,
        now: Nanoseconds,
    ) -> Result<Nanoseconds, ProgramError> {
        match self.system.wakes_late() {
            false => self.reap(1, Some(due)).await,
            true if due.since(now) > AWAKE => {
                self.reap(1, Some(Nanoseconds(due.0 - AWAKE.0))).await
            }
            true if self.schedule.goes_by_the_clock() => self.issue_at(due).await,
            true => self.reap(0, Some(due)).await,
        }
    }

    /// Has the requests that are due at a moment ready, and looks at the clock until then:
    /// nothing but their submission is left to be done.
    async fn issue_at(&mut self, due: Nanoseconds) -> Result<Nanoseconds, ProgramError> {
        self.fill(due)?;
        let mut now = self.reap(0, Some(due)).await?;
        // In the end nothing can complete, and there is but the clock to be looked at.
        while now < due && (self.slots.submitted() > 0 || due.since(now) > LOOK) {
            now = self.reap(0, Some(due)).await?;
        }
        self.submit_at(Some(due)).await?;
        Ok(now)
    }

    /// Gives slots to the requests whose turn it is; what comes then, none if no slot is
    /// free.
    fn fill(&mut self, now: Nanoseconds) -> Result<Option<Turn>, ProgramError> {
        while !self.slots.are_full() {
            match self.schedule.turn(now)? {
                Turn::Issue {
                    number,
                    record,
                    due,
                } => {
                    let is_durable = record.fua && record.operation == blocktrace::Operation::Write;
                    let durable = self.durable.filter(|_| is_durable);
                    let slot = self.slots.put(Submission {
                        operation: operation(record.operation),
                        file: durable.unwrap_or(self.file),
                        offset_bytes: record.offset_bytes,
                        bytes: bytes(&record)?,
                        slot: 0,
                        intended: due,
                    });
                    self.numbers[slot as usize] = number;
                    let free = self
                        .free_again
                        .filter(|free| due.is_some_and(|due| due < *free));
                    self.held_up += u64::from(free.is_some());
                }
                other => return Ok(Some(other)),
            }
        }
        Ok(None)
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
