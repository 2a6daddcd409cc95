//! The pace of a worker: the times at which it issues requests, and its end.

use super::arrivals::Arrivals;
use super::{Load, Span};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::System;
use diskperf_timeline::Nanoseconds;

/// Times at which requests may be issued, and the end of that.
pub(crate) struct Pace {
    span: Span,
    /// Bytes that are still to be issued, where there is no end in time.
    left_bytes: u64,
    arrivals: Option<Arrivals>,
}

impl Pace {
    pub(crate) fn new(load: &Load, worker: &Worker, start: Nanoseconds) -> Self {
        Self {
            span: Span::new(load, start),
            left_bytes: worker.size_bytes,
            arrivals: load.arrivals(start, worker),
        }
    }

    /// Whether what is measured now does not count yet.
    #[inline]
    pub(crate) fn has_ramp(&self) -> bool {
        self.span.ramp.is_some()
    }

    /// Ends the ramp when its time has come.
    #[inline]
    pub(crate) fn end_ramp(
        &mut self,
        now: Nanoseconds,
        system: &mut System,
    ) -> Result<(), ProgramError> {
        self.span.end_ramp(now, system)
    }

    /// Whether no more requests are to be issued.
    #[inline]
    pub(crate) fn is_over(&self, now: Nanoseconds) -> bool {
        match (self.span.end, &self.arrivals) {
            (None, _) => self.left_bytes == 0,
            (Some(end), None) => now >= end,
            // What arrived before the end is served after it, but not for ever.
            (Some(end), Some(arrivals)) => {
                arrivals.next() >= end || now >= end + end.since(self.span.start)
            }
        }
    }

    /// Returns the arrival of the next request of those that are left when all is over.
    pub(crate) fn given_up(&self) -> Option<Nanoseconds> {
        let arrival = self.arrivals.as_ref()?.next();
        (arrival < self.span.end?).then_some(arrival)
    }

    /// Whether a request is to be issued now, and when it arrived where arrivals do not
    /// wait.
    #[inline]
    pub(crate) fn arrival(&self, now: Nanoseconds) -> Option<Option<Nanoseconds>> {
        if self.is_over(now) {
            return None;
        }
        match &self.arrivals {
            None => Some(None),
            Some(arrivals) => (arrivals.next() <= now).then(|| Some(arrivals.next())),
        }
    }

    #[inline]
    pub(crate) fn issued(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        if let Some(arrivals) = &mut self.arrivals {
            arrivals.advance();
        }
    }

    /// Returns the next time to look although nothing completes; `None` where nothing is to come.
    #[inline]
    pub(crate) fn next_moment(&self, now: Nanoseconds) -> Option<Nanoseconds> {
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
