//! Timing of a worker's requests, and the end of its repetition.

use super::arrivals::Arrivals;
use super::{IssueSpan, Load};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::System;
use diskperf_timeline::Nanoseconds;

/// Times at which a worker may issue requests, and the end of its repetition.
pub(crate) struct IssuePace {
    issue_span: IssueSpan,
    /// Bytes still to be issued. They count only if no time limit ends the repetition.
    bytes_to_issue: u64,
    arrivals: Option<Arrivals>,
}

impl IssuePace {
    pub(crate) fn new(load: &Load, worker: &Worker, start: Nanoseconds) -> Self {
        Self {
            issue_span: IssueSpan::new(load, start),
            bytes_to_issue: worker.size_bytes,
            arrivals: load.new_arrivals(start, worker),
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
    pub(crate) fn is_over(&self, now: Nanoseconds) -> bool {
        match (self.issue_span.end, &self.arrivals) {
            (None, _) => self.bytes_to_issue == 0,
            (Some(end), None) => now >= end,
            // What arrived before the end is served after it, but not for ever.
            (Some(end), Some(arrivals)) => {
                arrivals.next_arrival() >= end || now >= end + end.since(self.issue_span.start)
            }
        }
    }

    /// Returns the arrival time of the next request that had arrived before the end and is never
    /// issued, or `None`.
    pub(crate) fn abandoned_arrival(&self) -> Option<Nanoseconds> {
        let arrival = self.arrivals.as_ref()?.next_arrival();
        (arrival < self.issue_span.end?).then_some(arrival)
    }

    /// Returns `Some` if a request may be issued now. The inner value is its arrival time in an
    /// open loop.
    #[inline]
    pub(crate) fn next_issue(&self, now: Nanoseconds) -> Option<Option<Nanoseconds>> {
        if self.is_over(now) {
            return None;
        }
        match &self.arrivals {
            None => Some(None),
            Some(arrivals) => {
                (arrivals.next_arrival() <= now).then(|| Some(arrivals.next_arrival()))
            }
        }
    }

    #[inline]
    pub(crate) fn count_issued(&mut self, bytes: u64) {
        self.bytes_to_issue = self.bytes_to_issue.saturating_sub(bytes);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.advance();
        }
    }

    /// Returns the time at which the worker must act next, even without a completion, or `None` if
    /// nothing is due.
    #[inline]
    pub(crate) fn next_due(&self, now: Nanoseconds) -> Option<Nanoseconds> {
        let arrival = match &self.arrivals {
            Some(arrivals) if !self.is_over(now) => Some(arrivals.next_arrival()),
            Some(_) | None => None,
        };
        match (arrival, self.issue_span.ramp_end) {
            (Some(arrival), Some(ramp)) => Some(arrival.min(ramp)),
            (one, other) => one.or(other),
        }
    }
}
