//! Arguments and results of the system calls that programs make on a kernel, or on a rig (drives
//! without a computer).

use diskperf_sim::Time;
use diskperf_timeline::Ledger;

/// Open flags of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenFlags {
    /// Whether the file is opened for reading.
    pub read: bool,
    /// Whether the file is opened for writing.
    pub write: bool,
    /// Whether the file is created if it does not exist (O_CREAT).
    pub create: bool,
    /// Whether the open fails if the file exists (O_EXCL).
    pub create_exclusive: bool,
    /// Whether the file is truncated to zero length (O_TRUNC).
    pub truncate: bool,
    /// Whether accesses bypass the cache (O_DIRECT). Only for a drive without a file system.
    pub direct_io: bool,
    /// Whether a write returns only when its data are durable (O_DSYNC). Only for a drive without a
    /// file system.
    pub dsync: bool,
}

/// Origin of a file offset in a seek.
#[derive(Clone, Copy, Debug)]
pub enum SeekOrigin {
    /// Offset from the start of the file.
    FileStart,
    /// Offset from the current file position.
    CurrentPosition,
    /// Offset from the end of the file.
    FileEnd,
}

/// Time account of a process since the account was opened.
pub struct ProcessAccount {
    /// Time of the process, split by stage.
    pub ledger: Ledger,
    /// CPU time in user mode, counted in clock ticks.
    pub user_cpu_time: Time,
    /// CPU time in the kernel, counted in clock ticks.
    pub system_cpu_time: Time,
    /// Bytes that drives were commanded to read for the process, including read-ahead.
    pub storage_read_bytes: u64,
}
