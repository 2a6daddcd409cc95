//! Figures of a served drive: requests, bytes, service times, and lateness.

use crate::RequestKind;
use diskperf_sim::Time;
use hdrhistogram::Histogram;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Longest time that the histograms tell apart: 2^50 ns, thirteen days.
const TIME_NS_MAX: u64 = 1 << 50;

/// Significant digits of the histograms.
const DIGITS: u8 = 3;

/// Share of the median service time that the 99th percentile of lateness may reach before the
/// service times are marked.
const LATENESS_SHARE_MAX: f64 = 0.05;

/// Counters of all requests that were answered. Every connection adds to them.
#[derive(Debug)]
pub struct Statistics {
    start: Instant,
    /// Virtual seconds per elapsed second.
    speed: f64,
    state: Mutex<StatisticsState>,
}

#[derive(Debug)]
struct StatisticsState {
    /// One of each [`RequestKind`], in the order of [`RequestKind::ALL`].
    operations: Vec<Counters>,
    connections: u64,
    refused: u64,
}

#[derive(Debug)]
struct Counters {
    requests: u64,
    failed: u64,
    bytes: u64,
    long_requests: u64,
    long_requests_on_time: u64,
    service_ns: Histogram<u64>,
    lateness_ns: Histogram<u64>,
}

/// Elapsed service time from which a request is long.
const LONG_NS_MIN: f64 = 1e6;

/// Share of its elapsed service time that a long request may be late and yet on time.
const ON_TIME_SHARE: f64 = 0.02;

/// Figures of one kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationStatistics {
    /// Kind of the requests.
    pub kind: RequestKind,
    /// Requests that were answered.
    pub requests: u64,
    /// Those of them that were answered with an error, because the data could not be read or
    /// written, or because serving ended.
    pub failed: u64,
    /// Bytes of the requests that succeeded; 0 of flushes.
    pub bytes: u64,
    /// Median of the modelled service time, from arrival to completion, in virtual ms.
    pub service_ms_p50: f64,
    /// 99th percentile of the modelled service time, in virtual ms.
    pub service_ms_p99: f64,
    /// Median of the lateness: the time from the due instant until the answer was sent.
    pub lateness_ms_p50: f64,
    /// 99th percentile of the lateness.
    pub lateness_ms_p99: f64,
    /// Largest lateness of an answer, in milliseconds.
    pub lateness_ms_max: f64,
    /// Requests whose service took a millisecond or more of elapsed time.
    pub long_requests: u64,
    /// Those of them that were late by 2 % of it at most.
    pub long_requests_on_time: u64,
    /// Whether lateness distorts the service times that clients see: its 99th percentile
    /// exceeds 5 % of the median service time.
    pub is_late: bool,
}

/// Figures of a served drive so far.
#[derive(Clone, Debug, PartialEq)]
pub struct StatisticsReport {
    /// Elapsed time since the drive is served.
    pub elapsed: Duration,
    /// Connections that reached the transmission phase.
    pub connections: u64,
    /// Requests that were refused before they reached the drive.
    pub refused: u64,
    /// Kinds of requests that were answered.
    pub operations: Vec<OperationStatistics>,
}

impl StatisticsReport {
    /// Returns the number of requests that were answered.
    pub fn requests(&self) -> u64 {
        self.operations.iter().map(|of| of.requests).sum()
    }
}

impl Counters {
    fn new() -> Self {
        let histogram = || Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS);
        Self {
            requests: 0,
            failed: 0,
            bytes: 0,
            long_requests: 0,
            long_requests_on_time: 0,
            service_ns: histogram().expect("constant bounds"),
            lateness_ns: histogram().expect("constant bounds"),
        }
    }
}

impl Statistics {
    /// Returns empty counters. `speed` relates virtual to elapsed time where lateness is compared
    /// with service times.
    pub fn new(speed: f64) -> Self {
        let operations = RequestKind::ALL.map(|_| Counters::new());
        Self {
            start: Instant::now(),
            speed,
            state: Mutex::new(StatisticsState {
                operations: operations.into(),
                connections: 0,
                refused: 0,
            }),
        }
    }

    /// Adds a request that the drive completed: its service time in virtual time, and the
    /// elapsed time between its due instant and its answer.
    pub fn add(&self, kind: RequestKind, bytes: u64, service: Time, lateness: Duration) {
        let mut state = self.lock();
        let counters = &mut state.operations[kind as usize];
        counters.requests += 1;
        counters.bytes += bytes;
        let lateness_ns = lateness.as_nanos().min(u128::from(u64::MAX)) as u64;
        let elapsed_ns = service.0 as f64 / self.speed;
        if elapsed_ns >= LONG_NS_MIN {
            counters.long_requests += 1;
            let is_on_time = lateness_ns as f64 <= ON_TIME_SHARE * elapsed_ns;
            counters.long_requests_on_time += u64::from(is_on_time);
        }
        counters.service_ns.saturating_record(service.0);
        counters.lateness_ns.saturating_record(lateness_ns);
    }

    /// Adds a request that was answered with an error by the data, or when serving ended.
    pub fn add_failed(&self, kind: RequestKind) {
        let mut state = self.lock();
        let counters = &mut state.operations[kind as usize];
        counters.requests += 1;
        counters.failed += 1;
    }

    /// Adds a request that was refused.
    pub fn add_refused(&self) {
        self.lock().refused += 1;
    }

    /// Adds a connection that reached the transmission phase.
    pub fn add_connection(&self) {
        self.lock().connections += 1;
    }

    /// Returns the number of requests that were answered so far.
    pub fn requests(&self) -> u64 {
        self.lock().operations.iter().map(|of| of.requests).sum()
    }

    /// Returns the figures so far.
    pub fn report(&self) -> StatisticsReport {
        let state = self.lock();
        let kinds = RequestKind::ALL.into_iter().zip(&state.operations);
        let answered = kinds.filter(|(_, counters)| counters.requests > 0);
        StatisticsReport {
            elapsed: self.start.elapsed(),
            connections: state.connections,
            refused: state.refused,
            operations: answered
                .map(|(kind, counters)| summarise(kind, counters, self.speed))
                .collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, StatisticsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn summarise(kind: RequestKind, counters: &Counters, speed: f64) -> OperationStatistics {
    let at = |of: &Histogram<u64>, share: f64| of.value_at_quantile(share) as f64 / 1e6;
    let service_ms_p50 = at(&counters.service_ns, 0.5);
    let lateness_ms_p99 = at(&counters.lateness_ns, 0.99);
    OperationStatistics {
        kind,
        requests: counters.requests,
        failed: counters.failed,
        bytes: counters.bytes,
        service_ms_p50,
        service_ms_p99: at(&counters.service_ns, 0.99),
        lateness_ms_p50: at(&counters.lateness_ns, 0.5),
        lateness_ms_p99,
        long_requests: counters.long_requests,
        long_requests_on_time: counters.long_requests_on_time,
        lateness_ms_max: counters.lateness_ns.max() as f64 / 1e6,
        is_late: lateness_ms_p99 > LATENESS_SHARE_MAX * service_ms_p50 / speed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add_reads(statistics: &Statistics, count: u32, lateness: Duration) {
        for _ in 0..count {
            statistics.add(RequestKind::Read, 4096, Time::from_millis(10), lateness);
        }
    }

    #[test]
    fn kinds_without_requests_are_left_out() {
        let statistics = Statistics::new(1.0);
        add_reads(&statistics, 3, Duration::ZERO);
        statistics.add_failed(RequestKind::Flush);
        statistics.add_refused();
        let report = statistics.report();
        let kinds: Vec<_> = report.operations.iter().map(|of| of.kind).collect();
        assert_eq!(kinds, [RequestKind::Read, RequestKind::Flush]);
        assert_eq!((report.requests(), report.refused), (4, 1));
        assert_eq!(report.operations[0].bytes, 3 * 4096);
        assert_eq!(report.operations[1].failed, 1);
    }

    #[test]
    fn service_times_are_marked_where_lateness_exceeds_a_twentieth_of_them() {
        for (lateness_us, speed, is_late) in [
            (400, 1.0, false),
            (600, 1.0, true),
            (600, 0.1, false),
            (60, 10.0, true),
        ] {
            let statistics = Statistics::new(speed);
            add_reads(&statistics, 100, Duration::from_micros(lateness_us));
            let report = statistics.report();
            assert_eq!(
                report.operations[0].is_late, is_late,
                "{lateness_us} us at {speed}"
            );
        }
    }

    #[test]
    fn long_requests_are_on_time_within_a_fiftieth_of_their_elapsed_service() {
        // A request of 10 ms takes 100 ms at a tenth of the speed, and 0.1 ms at a hundredfold.
        for (lateness_us, speed, long, on_time) in [
            (200, 1.0, 1, 1),
            (201, 1.0, 1, 0),
            (2000, 0.1, 1, 1),
            (1, 100.0, 0, 0),
        ] {
            let statistics = Statistics::new(speed);
            add_reads(&statistics, 1, Duration::from_micros(lateness_us));
            let read = &statistics.report().operations[0];
            let found = (read.long_requests, read.long_requests_on_time);
            assert_eq!(found, (long, on_time), "{lateness_us} us at {speed}");
        }
    }
}
