//! Busy times and transfer counts of a drive.

use diskperf_sim::Time;

/// Busy times and transfer counts of a drive since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Time of seeks, head switches and settling.
    pub positioning: Time,
    /// Time of rotational latency.
    pub latency: Time,
    /// Time of media transfer.
    pub transfer: Time,
    /// Bytes of all completed requests.
    pub bytes: u64,
    /// Number of completed requests.
    pub transfers: u64,
}
