//! The loop that issues the requests of a source on a ring, and reaps their completions.

mod batch;
pub(crate) mod file_calls;
pub(crate) mod slots;

use crate::blocks::pause;
use crate::program::ProgramError;
use diskperf_system::{Submission, System};
use diskperf_timeline::Nanoseconds;
use slots::{Completed, Slots};

/// Source of requests: a generator, a trace, a job, a list.
pub(crate) trait Source {
    /// Decides the next step. `now` is the time of the last reap; before the first one, the
    /// start of the loop.
    fn next(
        &mut self,
        system: &mut System,
        slots: &Slots,
        now: Nanoseconds,
    ) -> Result<RingStep, ProgramError>;

    /// Prepares a request that has got its slot.
    fn prepare(&mut self, system: &mut System, request: &Submission);

    /// Counts a request that completed.
    ///
    /// # Errors
    ///
    /// The error of the request, unless the source passes over it.
    fn complete(
        &mut self,
        system: &mut System,
        completed: &Completed,
        now: Nanoseconds,
    ) -> Result<(), ProgramError>;

    /// Follows a reap at `now`, whether or not a request completed. `waiting` are the
    /// requests that are not submitted: the rests of short writes.
    fn end_reap(
        &mut self,
        _system: &mut System,
        _waiting: &[Submission],
        _now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        Ok(())
    }
}

/// Step of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingStep {
    /// Puts a request into a slot, of which one must be free. It waits there to be submitted.
    Put(Submission),
    /// Submits the waiting requests: now, or at a time that is near.
    Submit(Option<Nanoseconds>),
    /// Submits the waiting requests, and waits for `at_least` completions, until a time at
    /// most. Takes `at_most` of them; the others are there for the next reap.
    Reap {
        at_least: usize,
        at_most: usize,
        until: Option<Nanoseconds>,
    },
    /// Returns to the caller at once, whatever is in flight.
    Return,
}

impl RingStep {
    /// Waits for `at_least` completions, until a time at most, and takes all there are.
    #[inline]
    pub(crate) fn reap(at_least: usize, until: Option<Nanoseconds>) -> Self {
        Self::Reap {
            at_least,
            at_most: usize::MAX,
            until,
        }
    }

    /// Waits for the next completion; returns where no slot is in use.
    #[inline]
    pub(crate) fn drain(slots: &Slots) -> Self {
        match slots.in_use() {
            0 => Self::Return,
            _ => Self::reap(1, None),
        }
    }
}

/// Ring of a worker, which has opened it.
pub(crate) struct Ring<'a> {
    pub(crate) system: &'a mut System,
    pub(crate) slots: &'a mut Slots,
    /// CPU time of the program after each completion.
    pub(crate) think: Nanoseconds,
}

impl Ring<'_> {
    /// Issues the requests of a source until it returns.
    ///
    /// # Errors
    ///
    /// The errors of the source, and of the ring itself.
    pub(crate) async fn run(&mut self, source: &mut impl Source) -> Result<(), ProgramError> {
        let mut now = self.system.now();
        loop {
            match source.next(self.system, self.slots, now)? {
                RingStep::Put(request) => {
                    let request = self.slots.put(request);
                    source.prepare(self.system, &request);
                }
                RingStep::Submit(moment) => self.slots.submit(self.system, moment).await?,
                RingStep::Reap {
                    at_least,
                    at_most,
                    until,
                } => {
                    self.slots.submit(self.system, None).await?;
                    now = self.slots.reap(self.system, at_least, until).await?;
                    self.take(source, at_most, now).await?;
                }
                RingStep::Return => return Ok(()),
            }
        }
    }

    /// Hands `at_most` completions to a source.
    #[inline]
    async fn take(
        &mut self,
        source: &mut impl Source,
        at_most: usize,
        now: Nanoseconds,
    ) -> Result<(), ProgramError> {
        for _ in 0..at_most {
            let Some(completed) = self.slots.take()? else {
                break;
            };
            source.complete(self.system, &completed, now)?;
            if !self.think.is_zero() {
                pause(self.system, self.think).await?;
            }
        }
        source.end_reap(self.system, self.slots.waiting(), now)
    }
}
