//! Observations of a cap probe: counts of completions in windows of a load whose depth and request
//! size change, from which `analysis` tells a cap from a slow device.

mod boundaries;

pub use boundaries::{WindowBoundaries, WindowCounter};

use crate::{Histogram, Nanoseconds};
use serde::{Deserialize, Serialize};

/// Load of a window, relative to the load that is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbedLoad {
    /// Load with the depth and the request size that are probed.
    Base,
    /// Load with twice the requests in flight.
    DoubleDepth,
    /// Load of requests of twice the size.
    DoubleSize,
}

impl ProbedLoad {
    /// Loads of one round, each for one window.
    pub const ALL: [Self; 3] = [Self::Base, Self::DoubleDepth, Self::DoubleSize];

    /// Factor of the depth of this load.
    pub fn depth_factor(self) -> u32 {
        1 + u32::from(self == Self::DoubleDepth)
    }

    /// Factor of the request size of this load.
    pub fn size_factor(self) -> u32 {
        1 + u32::from(self == Self::DoubleSize)
    }
}

/// Requests and bytes that completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedWork {
    /// Number of completed requests.
    pub requests: u64,
    /// Bytes that the completed requests moved.
    pub bytes: u64,
}

impl CompletedWork {
    /// Adds a completed request.
    pub fn count_request(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }
}

/// Window of a cap probe. It lasts from one completion, which it includes, to another, which it
/// excludes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeWindow {
    /// Load in the window.
    pub load: ProbedLoad,
    /// Time from the start of the load to the start of the window.
    pub start: Nanoseconds,
    /// Time from the start of the window to its end.
    pub duration: Nanoseconds,
    /// Rate of requests, which late completions at its ends do not change.
    pub requests_per_s: f64,
    /// Work that completed in the window.
    pub work: CompletedWork,
    /// Work that completed from the start of the load to the start of the window.
    pub work_before: CompletedWork,
}

impl ProbeWindow {
    /// Returns the mean size of the window's requests in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.work.bytes as f64 / self.work.requests.max(1) as f64
    }
}

/// Limit on the probed storage that is known without a measurement: that of a control group, or that
/// of a cloud volume whose type the user gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownLimit {
    /// Owner of the limit, such as `own control group (FILE)`.
    pub owner: String,
    /// Whether the limit counts bytes; if not, it counts requests.
    pub counts_bytes: bool,
    /// Whether the limit covers reads.
    pub covers_reads: bool,
    /// Whether the limit covers writes.
    pub covers_writes: bool,
    /// Highest rate, per second.
    pub per_s: f64,
    /// Rate after the credits of a burst have ended; absent without credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_per_s: Option<f64>,
    /// Maximum credits of a burst; absent without credits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<f64>,
}

/// Observations of a cap probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CapProbe {
    /// Requests in flight of the load that is probed.
    #[serde(rename = "depth")]
    pub queue_depth: u32,
    /// Request size of the load that is probed, in bytes.
    pub block_bytes: u64,
    /// Share of writes among the requests.
    pub write_share: f64,
    /// Windows in the order of time. Each round has one window of each load, in random order.
    pub windows: Vec<ProbeWindow>,
    /// Response times of single requests at a tenth of the probed rate.
    pub unloaded: Histogram,
}
