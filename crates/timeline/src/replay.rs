//! The replay of a block trace: what is asked for, and what the trace held when it was
//! planned.

use crate::histogram::Histogram;
use crate::load::compact;
use crate::protocol::Protocol;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A block trace, and how its requests are made again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceReplay {
    /// Its files: several of blktrace, one of each processor.
    pub files: Vec<PathBuf>,
    /// How it is read.
    pub reading: TraceReading,
    /// When its requests are issued.
    pub pace: ReplayPace,
    /// The most requests under way, where the pace does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// What becomes of its addresses.
    pub addresses: ReplayAddresses,
    /// What it held when the replay was planned: it is made again of the same trace alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<TraceFacts>,
    /// How it is repeated, where that is settled: in a run that was planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

impl TraceReplay {
    /// What it is called: as its first file is.
    pub fn name(&self) -> &str {
        let name = self.files.first().and_then(|file| file.file_name());
        name.and_then(|name| name.to_str()).unwrap_or("trace")
    }
}

/// How a trace is read, in the words of the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceReading {
    /// Its form, where it is not told by its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// What its columns are, of comma-separated values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<String>,
    /// The unit of its times, of a form that says none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<String>,
    /// Whether a trace that is cut off is read as far as it goes.
    pub partial: bool,
    /// Only what was issued from the first moment on and before the second, in nanoseconds
    /// from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ns: Option<(u64, u64)>,
    /// Only what this device was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Reads and writes become whole sectors of so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_to_bytes: Option<u64>,
}

/// When the requests of a replay are issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayPace {
    /// Open loop: at the trace's times, whatever is under way.
    Open {
        /// How much faster than the trace, by which its gaps are divided.
        speed: f64,
    },
    /// Closed loop: the next when one of so many under way completes.
    Closed {
        /// How many.
        depth: u32,
    },
    /// Each as long after the completion that it followed in the trace as there.
    Dependent,
}

impl Default for ReplayPace {
    fn default() -> Self {
        Self::Open { speed: 1.0 }
    }
}

impl ReplayPace {
    /// Whether requests are issued by the clock alone.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

/// What becomes of a trace's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayAddresses {
    /// They stay; a target that is too short is refused.
    #[default]
    Kept,
    /// They are scaled linearly to what the target has.
    ScaledToTarget,
    /// They are scaled linearly to so many bytes.
    Scaled(u64),
}

/// What a trace, or the part of it that is replayed, holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceFacts {
    /// Its files, as they were.
    pub files: Vec<TraceFile>,
    /// Its form, by name.
    pub form: String,
    /// Its devices; a replay is of one.
    pub devices: u64,
    /// Whether its form has the times at which requests were issued.
    pub has_times: bool,
    /// What each kind of request came to.
    pub read: TraceOperation,
    /// Writes.
    pub write: TraceOperation,
    /// What makes durable.
    pub flush: TraceOperation,
    /// What gives ranges up.
    pub discard: TraceOperation,
    /// What writes zeroes without data.
    pub write_zeroes: TraceOperation,
    /// Writes that were durable when they completed.
    pub fua_writes: u64,
    /// Nanoseconds from the first issue to the last.
    pub lasts_ns: u64,
    /// Requests whose completion the trace has.
    pub completed: u64,
    /// Requests that completed with an error.
    pub failed: u64,
    /// Requests whose time is before that of the one before them.
    pub out_of_order: u64,
    /// The end of the highest range, in bytes.
    pub highest_bytes: u64,
    /// The longest read or write.
    pub largest_bytes: u64,
    /// The longest discard.
    pub longest_discard_bytes: u64,
    /// Reads and writes of no bytes at all.
    pub of_no_bytes: u64,
    /// What offsets and lengths of reads and writes are multiples of, a power of two up to
    /// 4096.
    pub unit_bytes: u64,
    /// Reads and writes that are larger than in the trace, since they were made of whole
    /// sectors.
    pub rounded: u64,
    /// The trace is cut off, and was read as far as it goes.
    pub is_cut: bool,
}

/// A file of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Where it was.
    pub path: PathBuf,
    /// Its bytes.
    pub size_bytes: u64,
    /// SHA-256 of them, in hexadecimal digits.
    pub sha256: String,
}

/// What requests of one kind came to in a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceOperation {
    /// How many.
    pub requests: u64,
    /// Bytes of their ranges.
    pub bytes: u64,
    /// From issue to completion, of those whose completion the trace has.
    #[serde(with = "compact")]
    pub response: Histogram,
}

impl TraceFacts {
    /// All kinds with their names.
    pub fn operations(&self) -> [(&'static str, &TraceOperation); 5] {
        [
            ("read", &self.read),
            ("write", &self.write),
            ("flush", &self.flush),
            ("discard", &self.discard),
            ("write-zeroes", &self.write_zeroes),
        ]
    }

    /// All requests.
    pub fn requests(&self) -> u64 {
        let kinds = self.operations();
        let requests = kinds.iter().map(|(_, kind)| kind.requests);
        requests.fold(0, u64::saturating_add)
    }

    /// Bytes that are read and written.
    pub fn moved_bytes(&self) -> u64 {
        self.read.bytes.saturating_add(self.write.bytes)
    }

    /// Whether two traces are one: the bytes of their files are.
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
            form: "msr".to_owned(),
            ..TraceFacts::default()
        };
        held.read.response = vec![(1023, 3), (2047, 1)].into();
        for pace in [
            ReplayPace::Open { speed: 2.5 },
            ReplayPace::Closed { depth: 8 },
            ReplayPace::Dependent,
        ] {
            let replay = TraceReplay {
                files: vec!["/traces/web.csv".into()],
                pace,
                addresses: ReplayAddresses::Scaled(1 << 30),
                held: Some(held.clone()),
                ..TraceReplay::default()
            };
            let text = serde_json::to_string(&replay).unwrap();
            assert_eq!(serde_json::from_str::<TraceReplay>(&text).unwrap(), replay);
            assert_eq!(replay.name(), "web.csv");
        }
    }
}
