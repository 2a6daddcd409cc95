//! Which request of a trace is next, and when.

use super::pauses::Pauses;
use super::{Requests, unreadable};
use crate::program::ProgramError;
use diskperf_blocktrace::Record;
use diskperf_timeline::{Nanoseconds, ReplayPace};
use std::iter::Peekable;

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// To issue a request, which was due at a moment if it had one. Its number is what
    /// [`Schedule::completed`] is told.
    Issue {
        number: u64,
        record: Record,
        due: Option<Nanoseconds>,
    },
    /// Nothing before this moment.
    Wait(Nanoseconds),
    /// Nothing before a request completes.
    Await,
    /// Nothing any more.
    Over,
}

/// The requests of a trace by their turns.
pub(super) enum Schedule {
    /// By the clock alone.
    Open {
        requests: Peekable<Requests>,
        speed: f64,
        start: Nanoseconds,
        /// The moment of the trace that `start` is.
        begins: Option<Nanoseconds>,
        /// When the last one was due: what is out of order is not issued before it.
        last: Nanoseconds,
        issued: u64,
    },
    /// When there is room for one.
    Closed { requests: Requests, issued: u64 },
    /// After others complete.
    Dependent(Box<Pauses>),
}

impl Schedule {
    /// `begins` is the moment of the trace that is now, if not that of its first request.
    pub(super) fn new(
        pace: ReplayPace,
        requests: Requests,
        (start, begins): (Nanoseconds, Option<Nanoseconds>),
    ) -> Self {
        match pace {
            ReplayPace::Open { speed } => Self::Open {
                requests: requests.peekable(),
                speed,
                start,
                begins,
                last: start,
                issued: 0,
            },
            ReplayPace::Closed { .. } => Self::Closed {
                requests,
                issued: 0,
            },
            ReplayPace::Dependent => Self::Dependent(Box::new(Pauses::new(requests, start))),
        }
    }

    /// Whether no completion changes which request is next, or when.
    pub(super) fn goes_by_the_clock(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// What is to be done at this moment, with room for a request.
    pub(super) fn turn(&mut self, now: Nanoseconds) -> Result<Turn, ProgramError> {
        match self {
            Self::Open {
                requests,
                speed,
                start,
                begins,
                last,
                issued,
            } => {
                let record = match requests.peek() {
                    None => return Ok(Turn::Over),
                    Some(Err(what)) => return Err(unreadable(what.clone())),
                    Some(Ok(record)) => *record,
                };
                let at = Nanoseconds(record.issued_ns);
                let begins = *begins.get_or_insert(at);
                let due = (*start + at_speed(at.since(begins), *speed)).max(*last);
                if due > now {
                    return Ok(Turn::Wait(due));
                }
                requests.next();
                *last = due;
                let number = *issued;
                *issued += 1;
                Ok(Turn::Issue {
                    number,
                    record,
                    due: Some(due),
                })
            }
            Self::Closed { requests, issued } => match requests.next() {
                None => Ok(Turn::Over),
                Some(Err(what)) => Err(unreadable(what)),
                Some(Ok(record)) => {
                    let number = *issued;
                    *issued += 1;
                    Ok(Turn::Issue {
                        number,
                        record,
                        due: None,
                    })
                }
            },
            Self::Dependent(pauses) => pauses.turn(now),
        }
    }

    /// A request is complete at this moment.
    pub(super) fn completed(&mut self, number: u64, at: Nanoseconds) {
        match self {
            Self::Open { .. } | Self::Closed { .. } => {}
            Self::Dependent(pauses) => pauses.completed(number, at),
        }
    }
}

/// How long what took so long takes at another speed.
pub(super) fn at_speed(span: Nanoseconds, speed: f64) -> Nanoseconds {
    match speed {
        // A nanosecond is not lost where nothing changes.
        1.0 => span,
        speed => Nanoseconds((span.0 as f64 / speed) as u64),
    }
}
