//! Resolution of the times of a trace.

use serde::Serialize;

/// Minimum resolution that a summary reports, in nanoseconds. Most requests take longer than finer
/// steps.
const COARSE_RESOLUTION_NS: u64 = 1_000_000;

/// Statistics of the times of issue, and of requests that share a time.
#[derive(Clone, Debug, Default)]
pub(super) struct IssueTimeStatistics {
    last_ns: Option<u64>,
    /// Greatest common divisor of all times, in nanoseconds.
    common_divisor_ns: u64,
    requests: u64,
    requests_sharing_times: u64,
}

impl IssueTimeStatistics {
    #[inline]
    pub(super) fn add(&mut self, at_ns: u64) {
        self.requests += 1;
        self.requests_sharing_times += u64::from(self.last_ns.replace(at_ns) == Some(at_ns));
        if self.common_divisor_ns == 0 || !at_ns.is_multiple_of(self.common_divisor_ns) {
            self.common_divisor_ns = greatest_common_divisor(self.common_divisor_ns, at_ns);
        }
    }

    /// Returns the resolution, or `None` if it is finer than a millisecond or if no requests share
    /// a time.
    pub(super) fn finish(&self) -> Option<Resolution> {
        (self.requests_sharing_times > 0 && self.common_divisor_ns >= COARSE_RESOLUTION_NS)
            .then_some(Resolution {
                resolution_ns: self.common_divisor_ns,
                shared_times_share: self.requests_sharing_times as f64 / self.requests as f64,
            })
    }
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Resolution of a trace's times, if it is coarse: all times are multiples of it, and some requests
/// share a time. Finer time differences cannot be derived from the trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Resolution {
    /// Unit of the times, in nanoseconds.
    #[serde(rename = "ns")]
    pub resolution_ns: u64,
    /// Share of requests with the same time as the previous request.
    #[serde(rename = "shared_share")]
    pub shared_times_share: f64,
}
