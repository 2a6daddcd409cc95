//! Measures of the order in which a disk serves waiting requests.

use super::accesses::moves_arm;
use diskperf_timeline::trace::TracedRequest;
use diskperf_timeline::{Stage, Trace};

/// Counts of the requests that wait at a disk each time the arm starts another one.
#[derive(Default)]
pub(in super::super) struct ServiceOrder {
    served_count: u64,
    /// Sum of the other requests that waited each time the arm started one.
    waiting_count_sum: u64,
    /// Sum of the waiting requests that had arrived before the one that the arm started.
    passed_over_sum: u64,
}

/// Event in the life of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ServiceEvent {
    /// Start of service. It sorts before an arrival at the same time, which does not wait yet.
    Started,
    Arrived,
}

impl ServiceOrder {
    pub(in super::super) fn from_trace(trace: &Trace, requests: &[&TracedRequest]) -> Self {
        let mut found = Self::default();
        for (number, drive) in trace.drives.iter().enumerate() {
            if drive.has_bus_link {
                let own = requests
                    .iter()
                    .filter(|one| one.drive_index as usize == number);
                found.add_drive_requests(own.filter(|one| moves_arm(one)).copied());
            }
        }
        found
    }

    fn add_drive_requests<'t>(&mut self, requests: impl Iterator<Item = &'t TracedRequest>) {
        let mut moments: Vec<(u64, ServiceEvent, u64)> = Vec::new();
        for one in requests {
            let (came, begun) = (decoding_end_ns(one), service_start_ns(one));
            // Who is served at once never waits: it would be served before it has come, and
            // wait for ever.
            if begun <= came {
                moments.push((came, ServiceEvent::Started, came));
            } else {
                moments.push((came, ServiceEvent::Arrived, came));
                moments.push((begun, ServiceEvent::Started, came));
            }
        }
        moments.sort_unstable();
        let mut waiting: Vec<u64> = Vec::new();
        for (_, what, came) in moments {
            if what == ServiceEvent::Arrived {
                waiting.push(came);
                continue;
            }
            let own = waiting.iter().position(|other| *other == came);
            own.map(|place| waiting.swap_remove(place));
            self.served_count += 1;
            self.waiting_count_sum += waiting.len() as u64;
            let before = waiting.iter().filter(|other| **other < came);
            self.passed_over_sum += before.count() as u64;
        }
    }

    /// Returns the mean number of other requests that waited when the arm started one.
    pub(in super::super) fn waiting_count_mean(&self) -> f64 {
        self.waiting_count_sum as f64 / self.served_count.max(1) as f64
    }

    /// Returns the share of waiting requests that had arrived earlier than the started one: 0 for
    /// first come, first served, and a half where the order of arrival plays no part.
    pub(in super::super) fn passed_over_share(&self) -> f64 {
        self.passed_over_sum as f64 / self.waiting_count_sum.max(1) as f64
    }
}

/// Returns the time at which a request was decoded and could go to the arm.
fn decoding_end_ns(request: &TracedRequest) -> u64 {
    let mut parts = request.stage_intervals();
    let decoded = parts.find(|interval| interval.stage == Stage::Command);
    decoded.map_or(request.issued_at.0, |interval| interval.end.0)
}

fn service_start_ns(request: &TracedRequest) -> u64 {
    let waits = |stage| {
        matches!(
            stage,
            Stage::ControllerQueue | Stage::Destage | Stage::Cleaning
        )
    };
    let parts = request
        .stage_intervals()
        .filter(|interval| waits(interval.stage));
    parts
        .last()
        .map_or(request.issued_at.0, |interval| interval.end.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::trace::{RequestPurpose, TracedDrive};
    use diskperf_timeline::{Nanoseconds, Span};

    /// Of requests that are decoded at the first moment, and get the arm at the second.
    fn order(requests: &[(u64, u64)]) -> ServiceOrder {
        let of = |(came, begun): &(u64, u64)| {
            let span = |stage, until| Span {
                stage,
                stage_end: Nanoseconds(until),
            };
            TracedRequest {
                is_fua: false,
                drive_index: 0,
                sector: 0,
                sector_count: 8,
                purpose: RequestPurpose::Read,
                media_position: None,
                issued_at: Nanoseconds(came - 5),
                spans: vec![
                    span(Stage::Command, *came),
                    span(Stage::ControllerQueue, *begun),
                    span(Stage::Seek, begun + 10),
                ],
                buffer_uses: Vec::new(),
            }
        };
        let trace = Trace {
            drives: vec![TracedDrive {
                revolution_ns: 8e6,
                rotational_phase: 0.0,
                sector_bytes: 512,
                has_bus_link: true,
            }],
            requests: requests.iter().map(of).collect(),
            ..Trace::default()
        };
        ServiceOrder::from_trace(&trace, &trace.requests.iter().collect::<Vec<_>>())
    }

    #[test]
    fn immediately_served_requests_never_wait() {
        let alone: Vec<(u64, u64)> = (1..100).map(|turn| (turn * 20, turn * 20)).collect();
        let found = order(&alone);
        assert_eq!(
            (found.waiting_count_mean(), found.passed_over_share()),
            (0.0, 0.0)
        );
    }

    #[test]
    fn first_come_first_served_overtakes_no_request() {
        let mut turns: Vec<(u64, u64)> = (1..100).map(|turn| (turn * 10, turn * 20)).collect();
        turns[0].1 = 10;
        let found = order(&turns);
        assert!(
            found.waiting_count_mean() > 20.0,
            "{}",
            found.waiting_count_mean()
        );
        assert_eq!(found.passed_over_share(), 0.0);
        // The last one first: it passes all others by.
        let all: Vec<(u64, u64)> = (0..10).map(|turn| (10 + turn, 200 - 20 * turn)).collect();
        assert_eq!(order(&all).passed_over_share(), 1.0);
    }
}
