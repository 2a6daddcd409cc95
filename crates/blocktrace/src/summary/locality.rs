//! Locality of requests relative to the previous requests.

use crate::record::TraceRecord;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of sequential streams that are followed on each device.
const STREAMS_MAX: usize = 32;
/// Maximum distance at which a request counts as near, in bytes.
const NEAR_DISTANCE_BYTES: u64 = 128 << 10;

#[derive(Clone, Debug, Default)]
pub(super) struct LocalityStatistics {
    devices: BTreeMap<u32, DeviceStreams>,
    requests: u64,
    strictly_sequential_requests: u64,
    stream_sequential_requests: u64,
    near_previous_requests: u64,
    run_count: u64,
}

#[derive(Clone, Debug, Default)]
struct DeviceStreams {
    last_end_bytes: Option<u64>,
    /// Ends of the sequential streams that are followed on the device. `next_replaced` is the index of the
    /// entry to be replaced next.
    stream_ends_bytes: Vec<u64>,
    next_replaced_stream: usize,
}

impl LocalityStatistics {
    pub(super) fn add(&mut self, record: &TraceRecord) {
        let device = self.devices.entry(record.device.0).or_default();
        let (first, end) = (
            record.offset_bytes,
            record.offset_bytes.saturating_add(record.length_bytes),
        );
        self.requests += 1;
        let is_strict = device.last_end_bytes == Some(first);
        self.strictly_sequential_requests += u64::from(is_strict);
        self.run_count += u64::from(!is_strict);
        let near = device
            .last_end_bytes
            .is_some_and(|last| last.abs_diff(first) <= NEAR_DISTANCE_BYTES);
        self.near_previous_requests += u64::from(near);
        match device.stream_ends_bytes.iter().position(|of| *of == first) {
            Some(at) => {
                self.stream_sequential_requests += 1;
                device.stream_ends_bytes[at] = end;
            }
            None if device.stream_ends_bytes.len() < STREAMS_MAX => {
                device.stream_ends_bytes.push(end)
            }
            None => {
                device.stream_ends_bytes[device.next_replaced_stream] = end;
                device.next_replaced_stream = (device.next_replaced_stream + 1) % STREAMS_MAX;
            }
        }
        device.last_end_bytes = Some(end);
    }

    pub(super) fn finish(&self) -> LocalitySummary {
        let share = |count: u64| count as f64 / (self.requests.max(1)) as f64;
        LocalitySummary {
            strictly_sequential_share: share(self.strictly_sequential_requests),
            stream_sequential_share: share(self.stream_sequential_requests),
            near_previous_share: share(self.near_previous_requests),
            run_length_mean: self.requests as f64 / self.run_count.max(1) as f64,
        }
    }
}

/// Locality of requests relative to the previous requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LocalitySummary {
    /// Share of requests that begin where the device's previous request ended.
    #[serde(rename = "strict_share")]
    pub strictly_sequential_share: f64,
    /// Share of requests that begin where any of 32 streams of the device has ended.
    #[serde(rename = "stream_share")]
    pub stream_sequential_share: f64,
    /// Share of requests that begin within 128 KiB of the end of the device's previous request.
    #[serde(rename = "near_share")]
    pub near_previous_share: f64,
    /// Mean number of requests in a strictly sequential run.
    #[serde(rename = "run_requests")]
    pub run_length_mean: f64,
}
