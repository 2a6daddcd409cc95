//! Schedule of a replay: the next request of the trace and its time of issue.

use super::pauses::Pauses;
use super::{Requests, unreadable};
use crate::program::ProgramError;
use diskperf_blocktrace::Record;
use diskperf_timeline::{Nanoseconds, ReplayPace};
use std::iter::Peekable;

/// Action of a replay at the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Issue of a request. `due` is its due time, if it has one. [`Schedule::completed`] takes its
    /// number.
    Issue {
        number: u64,
        record: Record,
        due: Option<Nanoseconds>,
    },
    /// Wait until this time, before which no request is due.
    Wait(Nanoseconds),
    /// Wait for a completion, before which no request can be issued.
    Await,
    /// End of the replay: the trace has no further requests.
    Over,
}

/// Schedule of the requests of a trace.
pub(super) enum Schedule {
    /// Open loop: requests are issued by the clock alone.
    Open {
        requests: Peekable<Requests>,
        speed: f64,
        start: Nanoseconds,
        /// Time within the trace that corresponds to `start`.
        begins: Option<Nanoseconds>,
        /// Due time of the last request. Requests out of order are not issued before it.
        last: Nanoseconds,
        issued: u64,
    },
    /// Closed loop: a request is issued whenever there is room for one.
    Closed { requests: Requests, issued: u64 },
    /// Dependent: requests follow the completions of others.
    Dependent(Box<Pauses>),
}

impl Schedule {
    /// Creates a schedule. `begins` is the time within the trace that corresponds to `start`, or
    /// `None` for the time of its first request.
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

    /// Reports whether the schedule depends on the clock alone, so that completions change neither
    /// the next request nor its time.
    pub(super) fn goes_by_the_clock(&self) -> bool {
        matches!(self, Self::Open { .. })
    }

    /// Returns the action at the current time, with room for another request.
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

    /// Records the completion of a request.
    pub(super) fn completed(&mut self, number: u64, at: Nanoseconds) {
        match self {
            Self::Open { .. } | Self::Closed { .. } => {}
            Self::Dependent(pauses) => pauses.completed(number, at),
        }
    }
}

/// Scales a duration of the trace to another speed.
pub(super) fn at_speed(span: Nanoseconds, speed: f64) -> Nanoseconds {
    match speed {
        // A nanosecond is not lost where nothing changes.
        1.0 => span,
        speed => Nanoseconds((span.0 as f64 / speed) as u64),
    }
}
