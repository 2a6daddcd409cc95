//! Busy times and transfer counts of a drive.

use diskperf_sim::Time;

/// Busy times and transfer counts of a drive since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusyTimes {
    /// Time of seeks, head switches and settling.
    pub positioning_time: Time,
    /// Time for which the head waited for sectors to come by (rotational latency).
    pub rotational_latency_time: Time,
    /// Time in which sectors passed under the head (media transfer).
    pub transfer_time: Time,
    /// Total size of all transfers, in bytes.
    pub transferred_bytes: u64,
    /// Number of transfers (completed requests).
    pub transfer_count: u64,
}
