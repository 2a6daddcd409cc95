//! What programs give a kernel or a rig with a call, and get back.

use diskperf_sim::Time;
use diskperf_timeline::Ledger;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// Made, if it is not there.
    pub create: bool,
    /// Refused, if it is there.
    pub exclusive: bool,
    /// Emptied.
    pub truncate: bool,
    /// Of a drive by itself: past the cache.
    pub direct: bool,
    /// Of a drive by itself: a write is on the medium when it returns.
    pub dsync: bool,
}

/// From where an offset counts.
#[derive(Clone, Copy, Debug)]
pub enum From {
    /// The start of the file.
    Start,
    /// The present offset.
    Current,
    /// The end of the file.
    End,
}

/// The account of a process since it was opened.
pub struct Account {
    /// Where its time went.
    pub ledger: Ledger,
    /// CPU time in user mode, by ticks of the clock.
    pub user: Time,
    /// CPU time in the kernel, by ticks of the clock.
    pub system: Time,
    /// Bytes that drives were told to read for it, read-ahead included.
    pub storage_read_bytes: u64,
}
