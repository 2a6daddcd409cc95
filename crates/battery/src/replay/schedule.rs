//! Schedule of a replay: the next request of the trace and its time of issue.

use super::pauses::DependentSchedule;
use super::{RequestIterator, trace_error};
use crate::program::ProgramError;
use diskperf_blocktrace::TraceRecord;
use diskperf_timeline::{Nanoseconds, ReplayPace};
use std::iter::Peekable;

/// Action of a replay at the current time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayAction {
    /// Issue of a request. `due` is its due time, if it has one. [`ReplaySchedule::record_completion`] takes its
    /// number.
    IssueRequest {
        number: u64,
        record: TraceRecord,
        due: Option<Nanoseconds>,
    },
    /// Wait until this time, before which no request is due.
    WaitUntil(Nanoseconds),
    /// Wait for a completion, before which no request can be issued.
    AwaitCompletion,
    /// End of the replay: the trace has no further requests.
    EndOfTrace,
}

/// Schedule of the requests of a trace.
pub(super) enum ReplaySchedule {
    /// Open loop: requests are issued by the clock alone.
    OpenLoop {
        requests: Peekable<RequestIterator>,
        speed: f64,
        start: Nanoseconds,
        /// Time within the trace that corresponds to `start`.
        begins: Option<Nanoseconds>,
        /// Due time of the last request. Requests out of order are not issued before it.
        last: Nanoseconds,
        issued: u64,
    },
    /// Closed loop: a request is issued whenever there is room for one.
    ClosedLoop {
        requests: RequestIterator,
        issued: u64,
    },
    /// Dependent: requests follow the completions of others.
    Dependent(Box<DependentSchedule>),
}

impl ReplaySchedule {
    /// Creates a schedule. `begins` is the time within the trace that corresponds to `start`, or
    /// `None` for the time of its first request.
    pub(super) fn new(
        pace: ReplayPace,
        requests: RequestIterator,
        (start, begins): (Nanoseconds, Option<Nanoseconds>),
    ) -> Self {
        match pace {
            ReplayPace::OpenLoop { speed } => Self::OpenLoop {
                requests: requests.peekable(),
                speed,
                start,
                begins,
                last: start,
                issued: 0,
            },
            ReplayPace::ClosedLoop { .. } => Self::ClosedLoop {
                requests,
                issued: 0,
            },
            ReplayPace::Dependent => {
                Self::Dependent(Box::new(DependentSchedule::new(requests, start)))
            }
        }
    }

    /// Reports whether the schedule depends on the clock alone, so that completions change neither
    /// the next request nor its time.
    pub(super) fn depends_on_clock_only(&self) -> bool {
        matches!(self, Self::OpenLoop { .. })
    }

    /// Returns the action at the current time, with room for another request.
    pub(super) fn next_action(&mut self, now: Nanoseconds) -> Result<ReplayAction, ProgramError> {
        match self {
            Self::OpenLoop {
                requests,
                speed,
                start,
                begins,
                last,
                issued,
            } => {
                let record = match requests.peek() {
                    None => return Ok(ReplayAction::EndOfTrace),
                    Some(Err(what)) => return Err(trace_error(what.clone())),
                    Some(Ok(record)) => *record,
                };
                let at = Nanoseconds(record.issued_ns);
                let begins = *begins.get_or_insert(at);
                let due = (*start + scale_to_speed(at.since(begins), *speed)).max(*last);
                if due > now {
                    return Ok(ReplayAction::WaitUntil(due));
                }
                requests.next();
                *last = due;
                let number = *issued;
                *issued += 1;
                Ok(ReplayAction::IssueRequest {
                    number,
                    record,
                    due: Some(due),
                })
            }
            Self::ClosedLoop { requests, issued } => match requests.next() {
                None => Ok(ReplayAction::EndOfTrace),
                Some(Err(what)) => Err(trace_error(what)),
                Some(Ok(record)) => {
                    let number = *issued;
                    *issued += 1;
                    Ok(ReplayAction::IssueRequest {
                        number,
                        record,
                        due: None,
                    })
                }
            },
            Self::Dependent(pauses) => pauses.next_action(now),
        }
    }

    pub(super) fn record_completion(&mut self, number: u64, at: Nanoseconds) {
        match self {
            Self::OpenLoop { .. } | Self::ClosedLoop { .. } => {}
            Self::Dependent(pauses) => pauses.record_completion(number, at),
        }
    }
}

/// Scales a duration of the trace to another speed.
pub(super) fn scale_to_speed(span: Nanoseconds, speed: f64) -> Nanoseconds {
    match speed {
        // A nanosecond is not lost where nothing changes.
        1.0 => span,
        speed => Nanoseconds((span.0 as f64 / speed) as u64),
    }
}
