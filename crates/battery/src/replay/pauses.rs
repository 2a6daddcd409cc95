//! Dependencies between the requests of a trace: the completion that each request followed, and the
//! pause after it.
//!
//! The trace is split into chains: a request follows the latest earlier completion that no other
//! request followed. Without such a completion, the request overlaps all requests in flight. It
//! then comes as long after the issue of the previous request as in the trace. A trace of one
//! thread so becomes one chain with its pauses, and a trace at queue depth 4 becomes four chains.
//! There are never more chains than requests in flight.

use super::schedule::ReplayAction;
use super::{RequestIterator, trace_error};
use crate::program::ProgramError;
use diskperf_blocktrace::TraceRecord;
use diskperf_timeline::Nanoseconds;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Maximum number of requests that are read and not issued. A chain whose next request lies further
/// ahead waits until the other chains have come as far; that request is not late.
const PENDING_REQUESTS_MAX: usize = 4096;

/// Event that a request follows, and the time between the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Predecessor {
    TraceStart,
    /// The completion of the request with this number, and the pause after it.
    CompletionOf(u64, Nanoseconds),
    /// The issue of the previous request, and the gap after it.
    IssueOfPrevious(Nanoseconds),
}

/// Finder of each request's predecessor, in the order of the trace.
#[derive(Debug, Default)]
struct PredecessorFinder {
    /// Completions that no request has followed so far, as pairs of time and request number. At
    /// equal times, the lowest number is last.
    recent_completions: BTreeSet<(u64, Reverse<u64>)>,
    last_issued_ns: u64,
    request_count: u64,
}

impl PredecessorFinder {
    fn predecessor_of(&mut self, record: &TraceRecord) -> Predecessor {
        let at_ns = record.issued_ns;
        let before = self
            .recent_completions
            .range(..=(at_ns, Reverse(0)))
            .next_back();
        let after = match before.copied() {
            Some(end) => {
                self.recent_completions.remove(&end);
                let (ended_ns, Reverse(number)) = end;
                Predecessor::CompletionOf(number, Nanoseconds(at_ns - ended_ns))
            }
            None if self.request_count == 0 => Predecessor::TraceStart,
            None => {
                Predecessor::IssueOfPrevious(Nanoseconds(at_ns.saturating_sub(self.last_issued_ns)))
            }
        };
        if let Some(ended_ns) = record.completed_ns {
            self.recent_completions
                .insert((ended_ns, Reverse(self.request_count)));
        }
        self.last_issued_ns = at_ns.max(self.last_issued_ns);
        self.request_count += 1;
        after
    }
}

/// Requests that wait for others, and requests that are due.
pub(super) struct DependentSchedule {
    trace_requests: RequestIterator,
    has_read_all: bool,
    predecessors: PredecessorFinder,
    start_time: Nanoseconds,
    /// Requests that are read and not issued, by number.
    pending_requests: BTreeMap<u64, TraceRecord>,
    due_requests: BinaryHeap<Reverse<(Nanoseconds, u64)>>,
    /// Request that waits for the completion of another request, and the pause after it, by the
    /// number of that other request.
    awaiting_completion: BTreeMap<u64, (u64, Nanoseconds)>,
    /// Completion times of requests that no request read so far waits for, by request number.
    completion_times: BTreeMap<u64, Nanoseconds>,
    /// Requests that wait for the issue of the previous request, with the gaps after it.
    awaiting_issue: BTreeMap<u64, Nanoseconds>,
    /// Time at which the last request read so far was issued. `None` if it was not issued yet.
    last_read_due: Option<Nanoseconds>,
}

impl DependentSchedule {
    pub(super) fn new(requests: RequestIterator, start: Nanoseconds) -> Self {
        Self {
            trace_requests: requests,
            has_read_all: false,
            predecessors: PredecessorFinder::default(),
            start_time: start,
            pending_requests: BTreeMap::new(),
            due_requests: BinaryHeap::new(),
            awaiting_completion: BTreeMap::new(),
            completion_times: BTreeMap::new(),
            awaiting_issue: BTreeMap::new(),
            last_read_due: None,
        }
    }

    pub(super) fn next_action(&mut self, now: Nanoseconds) -> Result<ReplayAction, ProgramError> {
        self.read_ahead_requests(now)?;
        match self.due_requests.peek().copied() {
            Some(Reverse((due, number))) if due <= now => {
                self.due_requests.pop();
                let record = self.pending_requests.remove(&number);
                let record = record.expect("what is due is read and not issued");
                self.record_issue(number, now);
                let due = Some(due);
                Ok(ReplayAction::IssueRequest {
                    number,
                    record,
                    due,
                })
            }
            Some(Reverse((due, _))) => Ok(ReplayAction::WaitUntil(due)),
            None if self.pending_requests.is_empty() => Ok(ReplayAction::EndOfTrace),
            None => Ok(ReplayAction::AwaitCompletion),
        }
    }

    fn read_ahead_requests(&mut self, now: Nanoseconds) -> Result<(), ProgramError> {
        while !self.has_read_all && self.pending_requests.len() < PENDING_REQUESTS_MAX {
            let record = match self.trace_requests.next() {
                None => {
                    self.has_read_all = true;
                    break;
                }
                Some(record) => record.map_err(trace_error)?,
            };
            self.add_record(record, now);
        }
        Ok(())
    }

    fn add_record(&mut self, record: TraceRecord, now: Nanoseconds) {
        let number = self.predecessors.request_count;
        let before_issued = self.last_read_due.take();
        let due = match self.predecessors.predecessor_of(&record) {
            Predecessor::TraceStart => Some(self.start_time),
            Predecessor::CompletionOf(of, pause) => match self.completion_times.remove(&of) {
                Some(at) => Some((at + pause).max(now)),
                None => {
                    self.awaiting_completion.insert(of, (number, pause));
                    None
                }
            },
            Predecessor::IssueOfPrevious(gap) => match before_issued {
                Some(at) => Some((at + gap).max(now)),
                None => {
                    self.awaiting_issue.insert(number, gap);
                    None
                }
            },
        };
        self.due_requests
            .extend(due.map(|due| Reverse((due, number))));
        self.pending_requests.insert(number, record);
    }

    fn record_issue(&mut self, number: u64, now: Nanoseconds) {
        if number + 1 == self.predecessors.request_count {
            self.last_read_due = Some(now);
        } else if let Some(gap) = self.awaiting_issue.remove(&(number + 1)) {
            self.due_requests.push(Reverse((now + gap, number + 1)));
        }
    }

    pub(super) fn record_completion(&mut self, number: u64, at: Nanoseconds) {
        match self.awaiting_completion.remove(&number) {
            Some((waits, pause)) => self.due_requests.push(Reverse((at + pause, waits))),
            None => {
                self.completion_times.insert(number, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_blocktrace::{DeviceIndex, TracedOperation};

    /// A request from one moment to another, in the trace.
    fn request((issued_ns, completed_ns): (u64, u64)) -> TraceRecord {
        TraceRecord {
            issued_ns,
            completed_ns: Some(completed_ns),
            think_ns: None,
            operation: TracedOperation::Read,
            fua: false,
            sync: false,
            device: DeviceIndex(0),
            offset_bytes: 0,
            length_bytes: 4096,
            errno: 0,
        }
    }

    fn after(requests: &[(u64, u64)]) -> Vec<Predecessor> {
        let mut chains = PredecessorFinder::default();
        let requests = requests.iter().copied().map(request);
        requests.map(|one| chains.predecessor_of(&one)).collect()
    }

    const fn completion(number: u64, pause_ns: u64) -> Predecessor {
        Predecessor::CompletionOf(number, Nanoseconds(pause_ns))
    }

    const fn issue(gap_ns: u64) -> Predecessor {
        Predecessor::IssueOfPrevious(Nanoseconds(gap_ns))
    }

    /// What is looked at, its requests, and what each comes after.
    type Case<'a> = (&'a str, &'a [(u64, u64)], &'a [Predecessor]);

    #[test]
    fn a_trace_is_taken_apart_into_chains() {
        let cases: [Case<'_>; 4] = [
            (
                "one thread with pauses",
                &[(0, 10), (15, 20), (20, 30)],
                &[Predecessor::TraceStart, completion(0, 5), completion(1, 0)],
            ),
            (
                "two under way all the time",
                &[(0, 10), (0, 12), (10, 21), (12, 19), (19, 30), (21, 33)],
                &[
                    Predecessor::TraceStart,
                    issue(0),
                    completion(0, 0),
                    completion(1, 0),
                    completion(3, 0),
                    completion(2, 0),
                ],
            ),
            (
                "two that complete at once",
                &[(0, 10), (4, 10), (10, 20), (10, 20)],
                &[
                    Predecessor::TraceStart,
                    issue(4),
                    completion(0, 0),
                    completion(1, 0),
                ],
            ),
            (
                "two threads that pause",
                &[(0, 10), (1, 12), (13, 30), (15, 31)],
                &[
                    Predecessor::TraceStart,
                    issue(1),
                    completion(1, 1),
                    completion(0, 5),
                ],
            ),
        ];
        for (name, requests, wanted) in cases {
            assert_eq!(after(requests), wanted, "{name}");
        }
    }

    /// When each request is issued if each takes so long here.
    fn replayed(requests: &[(u64, u64)], takes_ns: u64) -> Vec<u64> {
        let all: Vec<_> = requests.iter().map(|one| Ok(request(*one))).collect();
        let start = Nanoseconds(1000);
        let mut pauses = DependentSchedule::new(Box::new(all.into_iter()), start);
        let mut under_way: BTreeSet<(Nanoseconds, u64)> = BTreeSet::new();
        let mut issued = vec![0; requests.len()];
        let mut now = start;
        loop {
            let first = under_way.first().copied();
            let wait = match pauses.next_action(now).unwrap() {
                ReplayAction::IssueRequest { number, due, .. } => {
                    assert_eq!(due, Some(now));
                    issued[number as usize] = now.since(start).0;
                    under_way.insert((now + Nanoseconds(takes_ns), number));
                    continue;
                }
                ReplayAction::WaitUntil(due) => Some(due),
                ReplayAction::AwaitCompletion => None,
                ReplayAction::EndOfTrace if first.is_none() => return issued,
                ReplayAction::EndOfTrace => None,
            };
            match (first, wait) {
                (Some((end, _)), Some(due)) if due < end => now = due,
                (Some((end, number)), _) => {
                    under_way.pop_first();
                    now = end;
                    pauses.record_completion(number, end);
                }
                (None, Some(due)) => now = due,
                (None, None) => panic!("nothing is under way, and nothing is due"),
            }
        }
    }

    #[test]
    fn pauses_are_kept_whatever_requests_take() {
        let trace = [(0, 10), (15, 25), (25, 35), (100, 110)];
        assert_eq!(replayed(&trace, 10), [0, 15, 25, 100]);
        assert_eq!(replayed(&trace, 1), [0, 6, 7, 73]);
        assert_eq!(replayed(&trace, 100), [0, 105, 205, 370]);
        // Two chains, of which one goes on while the other waits.
        let trace = [(0, 10), (0, 40), (12, 22), (24, 34), (41, 51)];
        assert_eq!(replayed(&trace, 10), [0, 0, 12, 24, 11]);
    }

    #[test]
    fn a_chain_goes_on_though_another_has_many_requests_in_between() {
        let mut trace = vec![(0, 1_000_000)];
        trace.extend((0..10_000).map(|number| (number * 10 + 1, number * 10 + 9)));
        trace.push((1_000_010, 1_000_020));
        let issued = replayed(&trace, 8);
        assert_eq!(issued[10_000], 99_991);
        assert!(issued[1..=10_000].is_sorted());
        // As soon as it is read.
        assert_eq!(issued[10_001], issued[10_001 - PENDING_REQUESTS_MAX]);
    }
}
