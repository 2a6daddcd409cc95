//! Locality of requests relative to the previous requests.

use crate::record::Record;
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of sequential streams that are followed on each device.
const STREAMS: usize = 32;
/// Maximum distance at which a request counts as near, in bytes.
const NEAR_BYTES: u64 = 128 << 10;

#[derive(Clone, Debug, Default)]
pub(super) struct Locality {
    devices: BTreeMap<u32, Device>,
    requests: u64,
    strict: u64,
    stream: u64,
    near: u64,
    runs: u64,
}

#[derive(Clone, Debug, Default)]
struct Device {
    last_end: Option<u64>,
    /// Ends of the sequential streams that are followed on the device. `next` is the index of the
    /// entry to be replaced next.
    ends: Vec<u64>,
    next: usize,
}

impl Locality {
    pub(super) fn add(&mut self, record: &Record) {
        let device = self.devices.entry(record.device.0).or_default();
        let (first, end) = (
            record.offset_bytes,
            record.offset_bytes.saturating_add(record.length_bytes),
        );
        self.requests += 1;
        let is_strict = device.last_end == Some(first);
        self.strict += u64::from(is_strict);
        self.runs += u64::from(!is_strict);
        let near = device
            .last_end
            .is_some_and(|last| last.abs_diff(first) <= NEAR_BYTES);
        self.near += u64::from(near);
        match device.ends.iter().position(|of| *of == first) {
            Some(at) => {
                self.stream += 1;
                device.ends[at] = end;
            }
            None if device.ends.len() < STREAMS => device.ends.push(end),
            None => {
                device.ends[device.next] = end;
                device.next = (device.next + 1) % STREAMS;
            }
        }
        device.last_end = Some(end);
    }

    pub(super) fn finish(&self) -> LocalitySummary {
        let share = |count: u64| count as f64 / (self.requests.max(1)) as f64;
        LocalitySummary {
            strict_share: share(self.strict),
            stream_share: share(self.stream),
            near_share: share(self.near),
            run_requests: self.requests as f64 / self.runs.max(1) as f64,
        }
    }
}

/// Locality of requests relative to the previous requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LocalitySummary {
    /// Share of requests that begin where the device's previous request ended.
    pub strict_share: f64,
    /// Share of requests that begin where any of 32 streams of the device has ended.
    pub stream_share: f64,
    /// Share of requests that begin within 128 KiB of the end of the device's previous request.
    pub near_share: f64,
    /// Mean number of requests in a strictly sequential run.
    pub run_requests: f64,
}
