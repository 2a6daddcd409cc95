//! Events of device requests: the input from which a block trace is recorded.

use crate::Nanoseconds;

/// Event of a device request: issue, completion or loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent {
    /// Time of the event, on one clock shared by all events.
    pub event_time: Nanoseconds,
    /// Change of a request that the event reports.
    pub event_step: DeviceStep,
}

/// Kind of a device event: issue, completion or loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceStep {
    /// Issue of a request to the device.
    Issued(DeviceRequest),
    /// Completion of a request that was issued earlier.
    Completed {
        /// Number of the completed request, as [`DeviceStep::Issued`] gave it.
        number: u64,
        /// Linux errno that the request failed with; 0 for success.
        errno: u16,
    },
    /// Number of events that the observer missed.
    EventsLost(u64),
}

/// Request that a device received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRequest {
    /// Number of the request, unique within its source.
    pub request_number: u64,
    /// Device index, in the numbering of the source.
    pub device_index: u32,
    /// Operation that the request performs on the device.
    pub operation: DeviceOperation,
    /// Whether a process waits for the request.
    pub is_awaited: bool,
    /// Offset of the request's first byte from the start of the device; 0 for a flush.
    pub offset_bytes: u64,
    /// Length of the request in bytes; 0 for a flush.
    pub length_bytes: u64,
}

/// Operation of a device request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOperation {
    /// Read of bytes from the device.
    Read,
    /// Write of bytes to the device.
    Write {
        /// Whether the write is durable on completion (force unit access).
        fua: bool,
    },
    /// Flush: makes all acknowledged writes durable.
    Flush,
    /// Discard of a range that is no longer needed.
    Discard,
    /// Write of zeroes without data from the host.
    WriteZeroes,
}
