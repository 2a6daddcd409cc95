//! Measures of a worker with several requests in flight: latencies by operation, lateness of the
//! load generator, and the time series of one repetition.

pub(crate) mod compact;

use crate::Nanoseconds;
use crate::cap_probe::CapProbe;
use crate::histogram::Histogram;
use crate::verified::VerifiedBlocks;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Mechanism that submits requests to the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// Submission through the kernel's io_uring.
    #[default]
    IoUring,
    /// Submission through io_uring with a kernel thread that polls the submission queue (SQPOLL).
    IoUringSqPoll,
    /// Submission through a thread pool that calls preadv2 and pwritev2.
    Threads,
    /// Copies by the worker to and from memory-mapped files.
    Mapped,
    /// Null engine: a request completes on submission. The measured time is the cost of generating
    /// the load.
    Null,
    /// Simulated submission on a modelled system.
    Model,
    /// One system call after the other, with one request in flight.
    Calls,
}

/// Measure of one worker's requests in a repetition, by operation and over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMeasure {
    /// Mechanism that submitted the worker's requests.
    pub engine: Engine,
    /// Maximum number of the worker's requests in flight.
    #[serde(rename = "depth")]
    pub queue_depth: u32,
    /// Measure of read requests.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub read: OperationMeasure,
    /// Measure of write requests.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub write: OperationMeasure,
    /// Measure of syncs: fsync and fdatasync.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub sync: OperationMeasure,
    /// Measure of discard requests.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub discard: OperationMeasure,
    /// Measure of transactions, from the first write to the end of the sync that makes the
    /// transaction durable. Empty for programs without transactions.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub commit: OperationMeasure,
    /// Measure of file creations: open, write and close, without the sync that makes the file
    /// durable.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub create: OperationMeasure,
    /// Measure of stat(2) calls.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub stat: OperationMeasure,
    /// Measure of rename(2) calls.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub rename: OperationMeasure,
    /// Measure of unlink(2) calls.
    #[serde(default, skip_serializing_if = "OperationMeasure::is_empty")]
    pub unlink: OperationMeasure,
    /// Delay of each request's issue after its intended time, in open loop only.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "optional")]
    #[serde(rename = "lag")]
    pub arrival_lag: Option<Histogram>,
    /// Requests that were issued late because all slots were in use, in open loop only.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[serde(rename = "held_up")]
    pub slot_wait_count: u64,
    /// Largest number of requests that were in flight, for programs that record it.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[serde(rename = "deepest")]
    pub in_flight_max: u64,
    /// Requests that had arrived and were not complete at the end, in open loop only. The responses
    /// include them with the time that they had waited until then.
    #[serde(default)]
    #[serde(rename = "unfinished")]
    pub unfinished_count: u64,
    /// Requests that failed with errors that the program ignores. No other count includes them.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[serde(rename = "errors")]
    pub ignored_error_count: u64,
    /// Errno of the first ignored error; 0 if there was none.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[serde(rename = "first_error")]
    pub first_ignored_errno: u64,
    /// Time series in intervals of [`LoadMeasure::series_interval`] from the start of the timed part. The
    /// last interval may be shorter.
    #[serde(default)]
    #[serde(rename = "series")]
    pub time_series: Vec<SeriesPoint>,
    /// Length of an interval of the time series. In a long series it is a multiple of the length
    /// that was requested.
    #[serde(default)]
    #[serde(rename = "interval")]
    pub series_interval: Nanoseconds,
    /// Note on the engine, if requests were not submitted in the best way; for example, that a
    /// thread pool replaced io_uring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_note: Option<String>,
    /// Note on how the program ended, if a reader must know it; for example, whether a job that
    /// should end in steady state reached it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_note: Option<String>,
    /// Counts of blocks that the worker read back and compared with the written data, for a program
    /// that verifies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "verified")]
    pub verified_blocks: Option<VerifiedBlocks>,
    /// Windows of a probe for a cap on the rate, for the program that probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap_probe: Option<Box<CapProbe>>,
}

/// Measure of one worker's requests of one operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationMeasure {
    /// Bytes that the operation's requests moved.
    pub bytes: u64,
    /// Response times, from the start of a request (in open loop its intended start) until its
    /// completion was reaped. The histogram's count is the number of requests.
    #[serde(with = "compact")]
    #[serde(rename = "response")]
    pub response_times: Histogram,
    /// Submission times, from the start to the return of the call that submitted the request. The
    /// caller is blocked for this part of `response`.
    #[serde(with = "compact")]
    #[serde(rename = "submit")]
    pub submit_call_times: Histogram,
    /// Completion times, from the return of the submitting call until the completion of each
    /// request was reaped; a part of `response`. Runs of early versions have none.
    #[serde(default, with = "compact", skip_serializing_if = "Histogram::is_empty")]
    #[serde(rename = "completion")]
    pub completion_times: Histogram,
    /// Time from the start of the first operation to the end of the last, for a program that makes
    /// its operations one kind after the other. It is 0 if the program mixes all kinds.
    #[serde(default, skip_serializing_if = "Nanoseconds::is_zero")]
    #[serde(rename = "span")]
    pub elapsed_span: Nanoseconds,
}

/// One interval of the time series. It counts the requests that completed in the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesPoint {
    /// Read requests that completed in the interval.
    #[serde(rename = "reads")]
    pub read_count: u64,
    /// Bytes returned by the read requests that completed in the interval.
    pub read_bytes: u64,
    /// Write requests that completed in the interval.
    #[serde(rename = "writes")]
    pub write_count: u64,
    /// Name operations that completed in the interval: file creations, stat(2), rename(2) and
    /// unlink(2).
    #[serde(default, skip_serializing_if = "is_zero")]
    #[serde(rename = "name_calls")]
    pub name_call_count: u64,
    /// Transactions that completed in the interval, for programs that have them.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[serde(rename = "commits")]
    pub commit_count: u64,
    /// Bytes written in the interval.
    pub written_bytes: u64,
    /// Response times of the interval's transactions, or of all other requests if the program has
    /// no transactions. They have two significant digits.
    #[serde(with = "compact")]
    #[serde(rename = "response")]
    pub response_times: Histogram,
}

impl LoadMeasure {
    /// Returns the number of reads and writes.
    pub fn read_write_count(&self) -> u64 {
        self.read.request_count() + self.write.request_count()
    }

    /// Returns the operations that the client waits for, which determine the program's rate and
    /// response times. They are its transactions if it has any; else reads and writes; else name
    /// operations; else syncs and discards.
    pub fn awaited_operations(&self) -> Vec<&OperationMeasure> {
        let ranks = [
            vec![&self.commit],
            vec![&self.read, &self.write],
            vec![&self.create, &self.stat, &self.rename, &self.unlink],
            vec![&self.sync, &self.discard],
        ];
        let mut ranks = ranks.into_iter();
        let some = ranks.find(|rank| rank.iter().any(|one| !one.is_empty()));
        some.unwrap_or_default()
    }

    /// Returns the number of name operations: file creations, stat(2), rename(2) and unlink(2).
    pub fn name_call_count(&self) -> u64 {
        let kinds = [&self.create, &self.stat, &self.rename, &self.unlink];
        kinds.iter().map(|kind| kind.request_count()).sum()
    }

    /// Returns the number of requests that determine the program's rate.
    pub fn awaited_request_count(&self) -> u64 {
        self.awaited_operations()
            .iter()
            .map(|one| one.request_count())
            .sum()
    }

    /// Returns the time series with `intervals` neighbouring intervals merged into each point. The
    /// last point may cover fewer.
    pub fn merge_intervals(&self, intervals: usize) -> Cow<'_, [SeriesPoint]> {
        if intervals <= 1 {
            return Cow::Borrowed(&self.time_series);
        }
        let together = |some: &[SeriesPoint]| {
            let mut all = SeriesPoint::default();
            some.iter().for_each(|one| all.merge(one));
            all
        };
        self.time_series.chunks(intervals).map(together).collect()
    }

    /// Returns the measure of every operation with the operation's name.
    pub fn named_operations(&self) -> [(&'static str, &OperationMeasure); 9] {
        [
            ("create", &self.create),
            ("stat", &self.stat),
            ("rename", &self.rename),
            ("unlink", &self.unlink),
            ("read", &self.read),
            ("write", &self.write),
            ("sync", &self.sync),
            ("discard", &self.discard),
            ("commit", &self.commit),
        ]
    }
}

impl SeriesPoint {
    /// Returns the number of requests that completed in the interval.
    pub fn request_count(&self) -> u64 {
        self.read_count + self.write_count + self.name_call_count
    }

    /// Adds the counts and response times of another interval.
    pub fn merge(&mut self, other: &Self) {
        self.read_count += other.read_count;
        self.read_bytes += other.read_bytes;
        self.write_count += other.write_count;
        self.name_call_count += other.name_call_count;
        self.commit_count += other.commit_count;
        self.written_bytes += other.written_bytes;
        self.response_times.merge(&other.response_times);
    }
}

impl OperationMeasure {
    /// Reports whether the measure of an operation has no requests.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the number of requests of this operation.
    pub fn request_count(&self) -> u64 {
        self.response_times.latency_count()
    }

    /// Adds the measure of another worker's requests of the same operation.
    pub fn merge(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.response_times.merge(&other.response_times);
        self.submit_call_times.merge(&other.submit_call_times);
        self.completion_times.merge(&other.completion_times);
        self.elapsed_span = self.elapsed_span.max(other.elapsed_span);
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Serialization of an optional histogram in compact form.
mod optional {
    use super::{Histogram, compact};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Compact(#[serde(with = "compact")] Histogram);

    pub(super) fn serialize<S: Serializer>(
        histogram: &Option<Histogram>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let compact = histogram.clone().map(Compact);
        compact.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Histogram>, D::Error> {
        let compact = Option::<Compact>::deserialize(deserializer)?;
        Ok(compact.map(|Compact(histogram)| histogram))
    }
}
