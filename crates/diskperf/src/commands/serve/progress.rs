//! Live line of a served drive on a terminal.

use crate::arguments::ServeArguments;
use crate::progress::TimeDisplay;
use diskperf_serve::{Served, StatisticsReport};
use std::time::{Duration, Instant};

/// Interval of the rates that are shown.
const INTERVAL: Duration = Duration::from_secs(1);

/// Live line of a served drive: rates of the last second, requests in flight, lateness.
pub(super) struct ServeProgress {
    shown: TimeDisplay,
    rates: Rates,
}

/// Rates of an interval, from the totals at its start and end.
#[derive(Debug)]
struct Rates {
    start: Instant,
    requests: u64,
    bytes: u64,
    requests_per_s: f64,
    mb_per_s: f64,
}

impl Rates {
    fn new(start: Instant) -> Self {
        Self {
            start,
            requests: 0,
            bytes: 0,
            requests_per_s: 0.0,
            mb_per_s: 0.0,
        }
    }

    /// Takes totals, and computes the rates anew when an interval is over.
    fn update(&mut self, now: Instant, requests: u64, bytes: u64) {
        let elapsed = now.duration_since(self.start);
        if elapsed < INTERVAL {
            return;
        }
        let elapsed_s = elapsed.as_secs_f64();
        self.requests_per_s = (requests - self.requests) as f64 / elapsed_s;
        self.mb_per_s = (bytes - self.bytes) as f64 / 1e6 / elapsed_s;
        (self.start, self.requests, self.bytes) = (now, requests, bytes);
    }
}

impl ServeProgress {
    pub(super) fn new(arguments: &ServeArguments) -> Self {
        Self {
            shown: TimeDisplay::new(arguments.quiet, arguments.lasts),
            rates: Rates::new(Instant::now()),
        }
    }

    /// Shows the present state, on a terminal.
    pub(super) fn update(&mut self, served: &Served) {
        if !self.shown.is_shown() {
            return;
        }
        let report = served.statistics.report();
        let bytes = report.operations.iter().map(|of| of.bytes).sum();
        self.rates.update(Instant::now(), report.requests(), bytes);
        let line = describe(&self.rates, &report, served.drive.in_flight());
        self.shown.show_message(&line);
    }
}

/// Describes the state of a served drive in a line.
fn describe(rates: &Rates, report: &StatisticsReport, in_flight: usize) -> String {
    let late_ms = report.operations.iter().map(|of| of.lateness_ms_p99);
    let late_ms = late_ms.fold(0.0, f64::max);
    format!(
        "{} requests, {:.0}/s, {:.1} MB/s, {in_flight} in flight, lateness p99 {late_ms:.3} ms; Ctrl-C ends it",
        report.requests(),
        rates.requests_per_s,
        rates.mb_per_s,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_serve::{RequestKind, Statistics};

    #[test]
    fn the_line_has_the_rates_of_the_last_interval() {
        let start = Instant::now();
        let mut rates = Rates::new(start);
        for (after_ms, requests, bytes) in [
            (500, 400, 1_000_000),
            (2000, 1000, 4_000_000),
            (2900, 5000, 9_000_000),
        ] {
            rates.update(start + Duration::from_millis(after_ms), requests, bytes);
        }
        let statistics = Statistics::new(1.0);
        statistics.add_failed(RequestKind::Read);
        let line = describe(&rates, &statistics.report(), 3);
        assert_eq!(
            line,
            "1 requests, 500/s, 2.0 MB/s, 3 in flight, lateness p99 0.000 ms; Ctrl-C ends it"
        );
    }
}
