//! Timing of a worker's requests, and the end of its repetition.

use super::arrivals::ArrivalSchedule;
use super::{IssueSpan, LoadOptions};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::System;
use diskperf_timeline::Nanoseconds;

/// Times at which a worker may issue requests, and the end of its repetition.
pub(crate) struct IssuePace {
    issue_span: IssueSpan,
    /// Bytes still to be issued. They count only if no time limit ends the repetition.
    bytes_to_issue: u64,
    arrival_schedule: Option<ArrivalSchedule>,
}

impl IssuePace {
    pub(crate) fn new(load: &LoadOptions, worker: &Worker, start: Nanoseconds) -> Self {
        Self {
            issue_span: IssueSpan::new(load, start),
            bytes_to_issue: worker.size_bytes,
            arrival_schedule: load.new_arrival_schedule(start, worker),
        }
    }

    /// Reports whether the ramp is still running, so that measurements do not count yet.
    #[inline]
    pub(crate) fn has_ramp(&self) -> bool {
        self.issue_span.ramp_end.is_some()
    }

    /// Ends the ramp once its time has come.
    #[inline]
    pub(crate) fn end_ramp(
        &mut self,
        now: Nanoseconds,
        system: &mut System,
    ) -> Result<(), ProgramError> {
        self.issue_span.end_ramp(now, system)
    }

    /// Reports whether the worker issues no more requests.
    #[inline]
    pub(crate) fn is_issue_over(&self, now: Nanoseconds) -> bool {
        match (self.issue_span.issue_end, &self.arrival_schedule) {
            (None, _) => self.bytes_to_issue == 0,
            (Some(end), None) => now >= end,
            // What arrived before the end is served after it, but not for ever.
            (Some(end), Some(arrivals)) => {
                arrivals.next_arrival() >= end
                    || now >= end + end.since(self.issue_span.issue_start)
            }
        }
    }

    /// Returns the arrival time of the next request that had arrived before the end and is never
    /// issued, or `None`.
    pub(crate) fn abandoned_arrival(&self) -> Option<Nanoseconds> {
        let arrival = self.arrival_schedule.as_ref()?.next_arrival();
        (arrival < self.issue_span.issue_end?).then_some(arrival)
    }

    /// Returns `Some` if a request may be issued now. The inner value is its arrival time in an
    /// open loop.
    #[inline]
    pub(crate) fn next_issue_time(&self, now: Nanoseconds) -> Option<Option<Nanoseconds>> {
        if self.is_issue_over(now) {
            return None;
        }
        match &self.arrival_schedule {
            None => Some(None),
            Some(arrivals) => {
                (arrivals.next_arrival() <= now).then(|| Some(arrivals.next_arrival()))
            }
        }
    }

    #[inline]
    pub(crate) fn count_issued(&mut self, bytes: u64) {
        self.bytes_to_issue = self.bytes_to_issue.saturating_sub(bytes);
        if let Some(arrivals) = &mut self.arrival_schedule {
            arrivals.advance_to_next();
        }
    }

    /// Returns the time at which the worker must act next, even without a completion, or `None` if
    /// nothing is due.
    #[inline]
    pub(crate) fn next_due_time(&self, now: Nanoseconds) -> Option<Nanoseconds> {
        let arrival = match &self.arrival_schedule {
            Some(arrivals) if !self.is_issue_over(now) => Some(arrivals.next_arrival()),
            Some(_) | None => None,
        };
        match (arrival, self.issue_span.ramp_end) {
            (Some(arrival), Some(ramp)) => Some(arrival.min(ramp)),
            (one, other) => one.or(other),
        }
    }
}
