//! What a drive has done.

use diskperf_sim::Time;

/// How long a drive has been doing what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Arm and heads moving and coming to rest.
    pub positioning: Time,
    /// Waiting for the sector.
    pub latency: Time,
    /// Transferring.
    pub transfer: Time,
    /// Bytes moved.
    pub bytes: u64,
    /// Transfers.
    pub transfers: u64,
}
