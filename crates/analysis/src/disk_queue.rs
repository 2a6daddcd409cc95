//! What the order of service gains at the arm of a disk, by the depth of its queue.

use serde::Serialize;

/// The gains of one disk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DiskQueue {
    /// The drive and the system that it is part of, in words.
    pub what: String,
    /// Bytes of a request.
    pub block_bytes: u64,
    /// Requests that were served in each cell.
    pub requests: u64,
    /// Of the random places.
    pub seed: u64,
    /// The order that the drive has in the catalogue.
    pub own: String,
    /// Commands that the drive takes at once; of a deeper queue the host holds the rest.
    pub queue_depth: u32,
    /// After how long the drive serves the one that waits longest, whatever the order. The
    /// calculation leaves it out.
    pub age_limit_ms: Option<f64>,
    /// Settings that these figures do not depend on.
    pub without_effect: Vec<String>,
    /// The share of the stroke that V-SCAN adds against the arm's direction.
    pub v_scan_share: f64,
    /// What each second of waiting is worth to aged SPTF, in ms of positioning.
    pub aged_sptf_ms_per_s: f64,
    /// One row for each depth.
    pub depths: Vec<Depth>,
}

/// A depth of the queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Depth {
    /// Requests that wait.
    pub depth: u32,
    /// The mean service that no order comes below: the shortest positioning among so many
    /// fresh requests, and the mean time that the sectors take to pass.
    pub bound_ms: f64,
    /// One for each order, the same ones at each depth.
    pub orders: Vec<Order>,
}

/// An order of service at a depth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Order {
    /// Its name, as in the catalogue.
    pub name: String,
    /// The mean time that a request keeps the arm.
    pub mean_ms: f64,
    /// Requests a second.
    pub iops: f64,
    /// How many times the requests a second of one that waits alone.
    pub gain: f64,
    /// The mean response time.
    pub mean_response_ms: f64,
    /// The 99th percentile of the response time.
    pub p99_ms: f64,
    /// The longest response time.
    pub longest_ms: f64,
}
