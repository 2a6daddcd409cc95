//! Specification of a block-trace replay, and facts about the trace at the time of planning.

use crate::histogram::Histogram;
use crate::load::compact;
use crate::protocol::Protocol;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Replay of a block trace: the trace files, and the pace and addresses of the replayed requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceReplay {
    /// Files of the trace. A blktrace recording has several, one for each processor.
    pub files: Vec<PathBuf>,
    /// Options for reading the trace.
    #[serde(rename = "reading")]
    pub trace_reading: TraceReading,
    /// Rule for the issue times of the requests.
    #[serde(rename = "pace")]
    pub replay_pace: ReplayPace,
    /// Maximum number of requests in flight, if the pace does not set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "slots")]
    pub slot_count: Option<u32>,
    /// Mapping of trace addresses to target addresses.
    #[serde(rename = "addresses")]
    pub replay_addresses: ReplayAddresses,
    /// Facts about the trace when the replay was planned. A later replay of the run accepts only
    /// the same trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "held")]
    pub trace_facts: Option<TraceFacts>,
    /// Repetition protocol, once a planned run has settled it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

impl TraceReplay {
    /// Returns the name of the replay: that of its first file.
    pub fn name(&self) -> &str {
        let name = self.files.first().and_then(|file| file.file_name());
        name.and_then(|name| name.to_str()).unwrap_or("trace")
    }
}

/// Options for reading a trace, in the words of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceReading {
    /// Format of the trace, if its first bytes do not identify it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// Column names of a trace of comma-separated values.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "columns")]
    pub column_names: Option<String>,
    /// Time unit of the trace, for a format that does not specify one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<String>,
    /// Whether a truncated trace is read up to its end.
    #[serde(rename = "partial")]
    pub allows_partial: bool,
    /// Time window of requests to keep, by issue time, in nanoseconds from the start of the trace.
    /// The first bound is inclusive, the second exclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<(u64, u64)>,
    /// Number of the only part whose requests are kept, from 1, for a trace that has parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "part")]
    pub part_index: Option<u32>,
    /// Name of the only device whose requests are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "device")]
    pub device_name: Option<String>,
    /// Sector size in bytes to which reads and writes are rounded, so that they cover whole
    /// sectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_to_bytes: Option<u64>,
}

/// Rule for the issue times of a replay's requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPace {
    /// Open loop: requests are issued at the trace's times, however many are in flight.
    #[serde(rename = "open")]
    OpenLoop {
        /// Speed relative to the trace; the gaps between requests are divided by it.
        speed: f64,
    },
    /// Closed loop: each completion issues the next request, with a fixed number in flight.
    #[serde(rename = "closed")]
    ClosedLoop {
        /// Number of requests in flight in the closed loop.
        depth: u32,
    },
    /// Dependent pace: each request follows the completion that it followed in the trace, after the
    /// same delay.
    Dependent,
}

impl Default for ReplayPace {
    fn default() -> Self {
        Self::OpenLoop { speed: 1.0 }
    }
}

impl ReplayPace {
    /// Reports whether the clock alone determines the issue times.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::OpenLoop { .. })
    }
}

/// Mapping of trace addresses to addresses on the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayAddresses {
    /// Unchanged addresses. A target that is too short is refused.
    #[default]
    #[serde(rename = "kept")]
    Unchanged,
    /// Addresses scaled linearly to the size of the target.
    ScaledToTarget,
    /// Addresses scaled linearly to this number of bytes.
    Scaled(u64),
}

/// Facts about a trace, or about the replayed part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceFacts {
    /// Trace files with their sizes and hashes when they were read.
    pub files: Vec<TraceFile>,
    /// Name of the trace's format.
    #[serde(rename = "form")]
    pub trace_format: String,
    /// Number of devices in the trace. A replay uses one.
    #[serde(rename = "devices")]
    pub device_count: u64,
    /// Whether the trace's format has the issue times of requests.
    pub has_times: bool,
    /// Read requests of the trace.
    pub read: TraceOperation,
    /// Write requests of the trace.
    pub write: TraceOperation,
    /// Flush requests of the trace.
    pub flush: TraceOperation,
    /// Discard requests of the trace.
    pub discard: TraceOperation,
    /// Write-zeroes requests of the trace.
    pub write_zeroes: TraceOperation,
    /// Writes with FUA, which were durable on completion.
    #[serde(rename = "fua_writes")]
    pub fua_write_count: u64,
    /// Nanoseconds from the first issue in the trace to the last.
    #[serde(rename = "lasts_ns")]
    pub duration_ns: u64,
    /// Number of requests whose completion is in the trace.
    #[serde(rename = "completed")]
    pub completed_count: u64,
    /// Number of requests that completed with an error.
    #[serde(rename = "failed")]
    pub failed_count: u64,
    /// Number of requests with an earlier time than their predecessor in the trace.
    #[serde(rename = "out_of_order")]
    pub out_of_order_count: u64,
    /// End of the highest address range, in bytes.
    #[serde(rename = "highest_bytes")]
    pub end_offset_bytes_max: u64,
    /// Length of the longest read or write, in bytes.
    #[serde(rename = "largest_bytes")]
    pub transfer_bytes_max: u64,
    /// Length of the longest discard, in bytes.
    #[serde(rename = "longest_discard_bytes")]
    pub discard_bytes_max: u64,
    /// Number of reads and writes with a length of zero.
    #[serde(rename = "of_no_bytes")]
    pub empty_request_count: u64,
    /// Largest power of two, up to 4096, that divides the offsets and lengths of all reads and
    /// writes, in bytes.
    pub unit_bytes: u64,
    /// Number of reads and writes that are larger than in the trace, because they were rounded to
    /// whole sectors.
    #[serde(rename = "rounded")]
    pub rounded_request_count: u64,
    /// Whether the trace is truncated and was read up to its end.
    #[serde(rename = "is_cut")]
    pub is_truncated: bool,
}

/// File of a trace, with its size and hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Path of the trace file when it was read.
    pub path: PathBuf,
    /// Size of the trace file in bytes.
    pub size_bytes: u64,
    /// SHA-256 hash of the trace file, in hexadecimal digits.
    pub sha256: String,
}

/// Statistics of a trace's requests of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceOperation {
    /// Number of requests of the kind in the trace.
    #[serde(rename = "requests")]
    pub request_count: u64,
    /// Sum of the lengths of these requests, in bytes.
    pub bytes: u64,
    /// Response times, from issue to completion, of the requests whose completion is in the trace.
    #[serde(with = "compact")]
    #[serde(rename = "response")]
    pub response_times: Histogram,
}

impl TraceFacts {
    /// Returns the statistics of each kind of request with its name.
    pub fn named_operations(&self) -> [(&'static str, &TraceOperation); 5] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("flush", &self.flush),
            ("discard", &self.discard),
            ("write-zeroes", &self.write_zeroes),
        ]
    }

    /// Returns the number of requests of all kinds.
    pub fn request_count(&self) -> u64 {
        let kinds = self.named_operations();
        let requests = kinds.iter().map(|(_, kind)| kind.request_count);
        requests.fold(0, u64::saturating_add)
    }

    /// Returns the number of bytes that the trace reads and writes.
    pub fn moved_bytes(&self) -> u64 {
        self.read.bytes.saturating_add(self.write.bytes)
    }

    /// Reports whether two traces are the same, by the contents of their files.
    pub fn is_same_trace(&self, other: &Self) -> bool {
        let hashes = |of: &Self| -> Vec<String> {
            of.files.iter().map(|file| file.sha256.clone()).collect()
        };
        hashes(self) == hashes(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_json_holds_is_read_back() {
        let mut held = TraceFacts {
            trace_format: "msr".to_owned(),
            ..TraceFacts::default()
        };
        held.read.response_times = vec![(1023, 3), (2047, 1)].into();
        for pace in [
            ReplayPace::OpenLoop { speed: 2.5 },
            ReplayPace::ClosedLoop { depth: 8 },
            ReplayPace::Dependent,
        ] {
            let replay = TraceReplay {
                files: vec!["/traces/web.csv".into()],
                replay_pace: pace,
                replay_addresses: ReplayAddresses::Scaled(1 << 30),
                trace_facts: Some(held.clone()),
                ..TraceReplay::default()
            };
            let text = serde_json::to_string(&replay).unwrap();
            assert_eq!(serde_json::from_str::<TraceReplay>(&text).unwrap(), replay);
            assert_eq!(replay.name(), "web.csv");
        }
    }
}
