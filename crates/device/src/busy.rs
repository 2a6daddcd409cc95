//! What a drive has done.

use diskperf_sim::Time;

/// How long a drive has been doing what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Time in which arm and heads move and come to rest.
    pub positioning: Time,
    /// Time in which it waits for a sector to come by.
    pub latency: Time,
    /// Time in which it transfers sectors.
    pub transfer: Time,
    /// Bytes moved.
    pub bytes: u64,
    /// Number of transfers.
    pub transfers: u64,
}
