//! What storage is asked for, event by event: what a block trace is recorded from.

use crate::Nanoseconds;

/// Something that happened to a request of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent {
    /// When, on one clock for all.
    pub at: Nanoseconds,
    /// What.
    pub step: DeviceStep,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceStep {
    /// A request was issued.
    Issued(DeviceRequest),
    /// A request that was issued before is complete.
    Completed {
        /// Its number.
        number: u64,
        /// 0, or the errno that it failed with.
        errno: u16,
    },
    /// So many events were not seen.
    Lost(u64),
}

/// A request of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// Which no other request of the same source has.
    pub number: u64,
    /// The device, as the source counts them.
    pub device: u32,
    /// What it asks.
    pub operation: DeviceOperation,
    /// Somebody waits for it.
    pub is_awaited: bool,
    /// The first byte, from the device's beginning; 0 of a flush.
    pub offset_bytes: u64,
    /// How many bytes; 0 of a flush.
    pub length_bytes: u64,
}

/// What a request asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOperation {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write {
        /// It is durable when it completes.
        fua: bool,
    },
    /// What was acknowledged is made durable.
    Flush,
    /// The range is no longer needed.
    Discard,
    /// Zeroes are written without data from the host.
    WriteZeroes,
}
