//! Busy times and transfer counts of a drive.

use diskperf_sim::Time;

/// Busy times and transfer counts of a drive since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Time of seeks, head switches and settling.
    pub positioning: Time,
    /// Time for which the head waited for sectors to come by (rotational latency).
    pub latency: Time,
    /// Time in which sectors passed under the head (media transfer).
    pub transfer: Time,
    /// Total size of all transfers, in bytes.
    pub bytes: u64,
    /// Number of transfers (completed requests).
    pub transfers: u64,
}
