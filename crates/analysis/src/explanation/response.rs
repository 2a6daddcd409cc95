//! Response time of requests by stage, where several were in flight.
//!
//! A ledger follows a program. With many requests in flight it holds the time of the requests that
//! end the program's waits, and not the waits of the others. This account covers the requests
//! instead: it sums their time from issue to completion, to the nanosecond.

use super::observed::count_in_flight_max;
use super::words::{format_percent, format_time_ms, stage_label};
use diskperf_timeline::trace::{RequestPurpose, TracedRequest};
use diskperf_timeline::{DieBusy, Ledger, Nanoseconds, Stage, Trace};

/// Response time of the requests that a program waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseAccount {
    /// Number of requests that the account covers.
    pub request_count: u64,
    /// Mean number of requests in flight over the elapsed time.
    pub in_flight_mean: f64,
    /// Total time of all requests from issue to completion, by stage.
    pub ledger: Ledger,
    /// Mean time in nanoseconds from a request's scheduled arrival until its issue, in open loop. A
    /// response time counts from the arrival.
    pub before_issue_ns: Option<f64>,
}

/// Minimum share of queueing in the response time at which the explanation names queueing as the
/// main cost.
const DOMINANT_SHARE_MIN: f64 = 0.5;
const MENTION_SHARE_MIN: f64 = 0.01;
const STAGES_MENTIONED_MAX: usize = 3;

impl ResponseAccount {
    /// Sums the response times of the requests that were issued and completed within a window.
    ///
    /// `None` where no drive had more than one request in flight, since the program's own account
    /// then says everything, unless the requests came in open loop and waited before their issue.
    pub(super) fn from_trace(
        trace: &Trace,
        window: (Nanoseconds, Nanoseconds),
        before_issue_ns: Option<f64>,
    ) -> Option<Self> {
        let requests = find_awaited_requests(trace, window);
        let several = (0..trace.drives.len() as u32).any(|drive| {
            let own = requests.iter().filter(|one| one.drive_index == drive);
            count_in_flight_max(own.map(|one| (one.issued_at, one.completed_at()))) > 1
        });
        if requests.is_empty() || !several && before_issue_ns.is_none() {
            return None;
        }
        let mut table = [0; Stage::COUNT];
        for part in requests.iter().flat_map(|one| one.stage_intervals()) {
            table[part.stage.index()] += part.duration().0;
        }
        let ledger = Ledger::from_table(&table);
        let took: Nanoseconds = requests
            .iter()
            .map(|one| one.completed_at().since(one.issued_at))
            .sum();
        assert!(
            ledger.total_duration() == took,
            "stages of {:?} are not those of requests that took {took:?}",
            ledger.total_duration()
        );
        let elapsed = window.1.since(window.0).0.max(1) as f64;
        Some(Self {
            request_count: requests.len() as u64,
            in_flight_mean: took.0 as f64 / elapsed,
            ledger,
            before_issue_ns,
        })
    }

    /// Returns the mean time of a request from issue to completion, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.mean_of_total(self.ledger.total_duration())
    }

    /// Returns the mean per request, in nanoseconds, of a time summed over all requests.
    pub fn mean_of_total(&self, together: Nanoseconds) -> f64 {
        together.0 as f64 / self.request_count.max(1) as f64
    }

    /// Returns a summed time as a share (0 to 1) of the total response time.
    pub fn share_of_response(&self, together: Nanoseconds) -> f64 {
        together.0 as f64 / self.ledger.total_duration().0.max(1) as f64
    }

    /// Describes the response time by stage, with the share of the queues first.
    pub(super) fn describe_response(&self) -> String {
        let queued: Nanoseconds = (self.ledger.entries().iter())
            .filter(|entry| is_queue_stage(entry.stage))
            .map(|entry| entry.duration)
            .sum();
        let mut others: Vec<_> = (self.ledger.entries().iter())
            .filter(|entry| {
                !is_queue_stage(entry.stage)
                    && self.share_of_response(entry.duration) >= MENTION_SHARE_MIN
            })
            .collect();
        others.sort_by_key(|entry| std::cmp::Reverse(entry.duration));
        let others: Vec<String> = (others.iter().take(STAGES_MENTIONED_MAX))
            .map(|entry| {
                let each = format_time_ms(self.mean_of_total(entry.duration));
                format!("{each} {}", stage_label(entry.stage))
            })
            .collect();
        let others = match others.as_slice() {
            [] => String::new(),
            others => format!("; then {}", others.join(", ")),
        };
        let (mean, each) = (
            format_time_ms(self.mean_ns()),
            format_time_ms(self.mean_of_total(queued)),
        );
        let (share, under_way) = (self.share_of_response(queued), self.in_flight_mean);
        let told = match share >= DOMINANT_SHARE_MIN {
            true => format!(
                "Queueing dominates the response time: with {under_way:.1} in flight on average, a request takes {mean}, {each} of it ({}) in queues behind others{others}.",
                format_percent(share)
            ),
            false if queued > Nanoseconds::ZERO => format!(
                "With {under_way:.1} requests in flight on average, a request takes {mean}: {each} ({}) in queues behind others{others}.",
                format_percent(share)
            ),
            false => format!(
                "With {under_way:.1} requests in flight on average, a request takes {mean}{}.",
                others.replacen("; then", ":", 1)
            ),
        };
        match self.before_issue_ns.filter(|ns| *ns > 0.0) {
            Some(before) => format!(
                "{told} Before its issue, a request waits {} from its arrival; with that wait it takes {} on average.",
                format_time_ms(before),
                format_time_ms(before + self.mean_ns())
            ),
            None => told,
        }
    }
}

/// Tests whether requests wait for other requests in a given stage.
fn is_queue_stage(stage: Stage) -> bool {
    // On flash: a die that works for the host, or a way that carries what others have. What
    // the drive does of its own accord is no other request.
    matches!(
        stage,
        Stage::DriverQueue
            | Stage::ControllerQueue
            | Stage::ChannelWait
            | Stage::BusWait
            | Stage::DieWait(DieBusy::Read | DieBusy::Program | DieBusy::Channel)
            | Stage::RateLimit(_)
    )
}

/// Returns the requests within a window that a program waited for.
pub(super) fn find_awaited_requests(
    trace: &Trace,
    (from, until): (Nanoseconds, Nanoseconds),
) -> Vec<&TracedRequest> {
    let requests = trace.requests.iter();
    requests
        // A flush moves nothing, and is no request of the mean one's kind.
        .filter(|one| one.sector_count > 0)
        .filter(|one| matches!(one.purpose, RequestPurpose::Read | RequestPurpose::Write))
        .filter(|one| one.issued_at >= from && one.completed_at() <= until)
        .collect()
}
