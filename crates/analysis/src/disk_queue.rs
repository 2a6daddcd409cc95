//! Gain of the order of service at a disk's actuator, by queue depth.

use serde::Serialize;

/// Gains of the orders of service on one disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskQueueReport {
    /// Description of the drive and the system that it is part of.
    #[serde(rename = "what")]
    pub target: String,
    /// Size of each request in bytes.
    pub block_bytes: u64,
    /// Number of requests served for each combination of order and queue depth.
    #[serde(rename = "requests")]
    pub request_count: u64,
    /// Seed of the random request positions.
    pub seed: u64,
    /// Order of service that the drive has in the catalogue.
    #[serde(rename = "own")]
    pub own_order: String,
    /// Maximum number of commands in the drive; the host holds the rest of a deeper queue.
    pub queue_depth: u32,
    /// Wait after which the drive serves the oldest request, whatever the order, in ms. The
    /// calculation leaves it out.
    pub age_limit_ms: Option<f64>,
    /// Settings of the drive that do not affect the calculated gains.
    #[serde(rename = "without_effect")]
    pub settings_without_effect: Vec<String>,
    /// Share of the stroke (0 to 1) that V-SCAN adds to seeks against the arm's direction.
    pub v_scan_share: f64,
    /// Milliseconds of positioning that aged SPTF deducts for each second that a request waits.
    pub aged_sptf_ms_per_s: f64,
    /// Results of the calculation for each queue depth.
    pub depths: Vec<DepthFigures>,
}

/// Results of all orders of service at one queue depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DepthFigures {
    /// Number of requests that wait at the drive.
    #[serde(rename = "depth")]
    pub queue_depth: u32,
    /// Lower bound of the mean service time for any order, in ms: the shortest positioning time
    /// among this many fresh requests, plus the mean media transfer.
    #[serde(rename = "bound_ms")]
    pub service_bound_ms: f64,
    /// Results for each order of service, the same orders at each depth.
    #[serde(rename = "orders")]
    pub order_figures: Vec<OrderFigures>,
}

/// Results of one order of service at one queue depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OrderFigures {
    /// Name of the order of service, as in the catalogue.
    pub name: String,
    /// Mean time for which a request occupies the arm, in ms.
    #[serde(rename = "mean_ms")]
    pub mean_service_ms: f64,
    /// Rate of the order of service in requests per second.
    pub iops: f64,
    /// Request rate divided by that of a queue depth of 1.
    #[serde(rename = "gain")]
    pub gain_over_fcfs: f64,
    /// Mean response time of requests in ms.
    pub mean_response_ms: f64,
    /// 99th percentile of the response time in ms.
    #[serde(rename = "p99_ms")]
    pub p99_response_ms: f64,
    /// Longest response time of a request in ms.
    #[serde(rename = "longest_ms")]
    pub max_response_ms: f64,
}
