//! Queue depth and throughput of a trace over time.

use crate::record::{TraceRecord, TracedOperation};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const INTERVALS_MAX: usize = 120;

#[derive(Clone, Debug)]
pub(super) struct DepthStatistics {
    completion_times_ns: BinaryHeap<Reverse<u64>>,
    now_ns: u64,
    /// Time integral of the queue depth, in requests times nanoseconds.
    depth_ns_total: f64,
    depth_max: usize,
    completed_count: u64,
    last_end_ns: u64,
    interval_ns: u64,
    intervals: Vec<ActivityInterval>,
}

impl DepthStatistics {
    pub(super) fn new() -> Self {
        Self {
            completion_times_ns: BinaryHeap::new(),
            now_ns: 0,
            depth_ns_total: 0.0,
            depth_max: 0,
            completed_count: 0,
            last_end_ns: 0,
            interval_ns: 1000,
            intervals: vec![ActivityInterval::default(); INTERVALS_MAX],
        }
    }

    pub(super) fn add(&mut self, record: &TraceRecord) {
        let at = record.issued_ns.max(self.now_ns);
        self.advance_to(at);
        if let Some(end) = record.completed_ns {
            self.completion_times_ns.push(Reverse(end.max(at)));
            self.depth_max = self.depth_max.max(self.completion_times_ns.len());
            self.completed_count += 1;
            self.last_end_ns = self.last_end_ns.max(end);
        }
        let of = self.interval_at(at);
        match record.operation {
            TracedOperation::Read => of.read_requests += 1,
            TracedOperation::Write => of.write_requests += 1,
            _ => of.other_requests += 1,
        }
        of.bytes = of.bytes.saturating_add(record.length_bytes);
    }

    /// Advances the time, and completes the requests that end until then.
    fn advance_to(&mut self, until: u64) {
        while let Some(Reverse(end)) = self
            .completion_times_ns
            .peek()
            .copied()
            .filter(|Reverse(end)| *end <= until)
        {
            self.add_depth_until(end);
            self.completion_times_ns.pop();
        }
        self.add_depth_until(until);
    }

    fn add_depth_until(&mut self, until: u64) {
        let (depth, mut from) = (self.completion_times_ns.len() as f64, self.now_ns);
        self.depth_ns_total += depth * until.saturating_sub(from) as f64;
        while depth > 0.0 && from < until {
            self.interval_at(until);
            let end = (from / self.interval_ns + 1).saturating_mul(self.interval_ns);
            let end = end.min(until);
            let spent = depth * (end - from) as f64;
            self.interval_at(from).depth_ns += spent;
            from = end;
        }
        self.now_ns = self.now_ns.max(until);
    }

    /// Returns the interval of a time. All intervals are doubled until the series covers the time.
    fn interval_at(&mut self, at: u64) -> &mut ActivityInterval {
        while at / self.interval_ns >= INTERVALS_MAX as u64 {
            self.double_intervals();
        }
        &mut self.intervals[(at / self.interval_ns) as usize]
    }

    fn double_intervals(&mut self) {
        for number in 0..INTERVALS_MAX / 2 {
            let (one, other) = (self.intervals[2 * number], self.intervals[2 * number + 1]);
            self.intervals[number] = one.combined_with(&other);
        }
        self.intervals[INTERVALS_MAX / 2..].fill(ActivityInterval::default());
        self.interval_ns = self.interval_ns.saturating_mul(2);
    }

    /// Returns the queue depth and the time series, with intervals of at least `finest_ns`.
    pub(super) fn finish(
        mut self,
        last_ns: u64,
        finest_ns: u64,
    ) -> (Option<DepthSummary>, ActivitySeries) {
        let end = self.last_end_ns.max(last_ns);
        self.advance_to(end);
        while self.interval_ns < finest_ns {
            self.double_intervals();
        }
        let depth = (self.completed_count > 0).then(|| DepthSummary {
            mean: self.depth_ns_total / end.max(1) as f64,
            depth_max: self.depth_max,
        });
        let used = (end / self.interval_ns + 1).min(INTERVALS_MAX as u64) as usize;
        let interval_ns = self.interval_ns;
        let mean = |of: &ActivityInterval| ActivityInterval {
            depth: of.depth_ns / interval_ns as f64,
            ..*of
        };
        let series = ActivitySeries {
            interval_ns,
            intervals: self.intervals[..used].iter().map(mean).collect(),
        };
        (depth, series)
    }
}

/// Summary of the queue depth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DepthSummary {
    /// Mean queue depth over time.
    pub mean: f64,
    /// Largest queue depth of any request.
    #[serde(rename = "most")]
    pub depth_max: usize,
}

/// Time series of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ActivitySeries {
    /// Length of an interval in nanoseconds.
    pub interval_ns: u64,
    /// Intervals from the beginning of the trace on.
    pub intervals: Vec<ActivityInterval>,
}

impl ActivitySeries {
    /// Returns the intervals that a trace of this span fills completely, for rates. The trace
    /// usually ends before its last interval does.
    pub fn intervals_until(&self, span_ns: u64) -> &[ActivityInterval] {
        let whole = (span_ns / self.interval_ns) as usize;
        match whole >= 2 {
            true => &self.intervals[..whole.min(self.intervals.len())],
            false => &self.intervals,
        }
    }
}

/// Activity in an interval of the time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ActivityInterval {
    /// Number of reads that were issued.
    #[serde(rename = "reads")]
    pub read_requests: u64,
    /// Number of writes that were issued.
    #[serde(rename = "writes")]
    pub write_requests: u64,
    /// Number of other requests that were issued.
    #[serde(rename = "others")]
    pub other_requests: u64,
    /// Bytes of all requests that were issued.
    pub bytes: u64,
    /// Mean queue depth in the interval, if the trace has completions.
    pub depth: f64,
    #[serde(skip)]
    depth_ns: f64,
}

impl ActivityInterval {
    fn combined_with(&self, other: &Self) -> Self {
        Self {
            read_requests: self.read_requests + other.read_requests,
            write_requests: self.write_requests + other.write_requests,
            other_requests: self.other_requests + other.other_requests,
            bytes: self.bytes.saturating_add(other.bytes),
            depth: 0.0,
            depth_ns: self.depth_ns + other.depth_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time may be any that 64 bits have.
    #[test]
    fn a_request_may_last_until_the_last_nanosecond() {
        let mut depth = DepthStatistics::new();
        for _ in 0..2 {
            depth.add(&TraceRecord {
                completed_ns: Some(u64::MAX),
                length_bytes: u64::MAX,
                ..TraceRecord::issued_at(0)
            });
        }
        let (summary, series) = depth.finish(0, 0);
        assert_eq!(summary.map(|of| (of.mean, of.depth_max)), Some((2.0, 2)));
        assert!(series.intervals.len() <= INTERVALS_MAX);
        let all = series.intervals.iter().all(|of| of.depth <= 2.0);
        assert!(all && series.intervals[0].depth == 2.0, "{series:?}");
    }
}
