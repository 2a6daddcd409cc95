//! Request of a trace.

/// Operation that a request performs on storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TracedOperation {
    /// Read of a range of bytes.
    Read,
    /// Write of a range of bytes.
    Write,
    /// Flush: earlier acknowledged writes become durable. It has no range.
    Flush,
    /// Discard of a range of bytes that is no longer needed.
    Discard,
    /// Write of zeroes to a range of bytes, without data on the link.
    WriteZeroes,
}

/// Index of a device in its trace, in the order of first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeviceIndex(pub u32);

/// Request with all information that any trace format gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Time of issue, in nanoseconds from the beginning of the trace. In a closed-loop format
    /// without times, it is the sum of the earlier service times and pauses.
    pub issued_ns: u64,
    /// Time of completion, in nanoseconds from the beginning of the trace, or `None` if the format
    /// lacks it.
    pub completed_ns: Option<u64>,
    /// Pause before the request in nanoseconds, in formats that replay in a closed loop.
    pub think_ns: Option<u64>,
    /// Operation of the request.
    pub operation: TracedOperation,
    /// Whether a write is durable when it completes (forced unit access).
    pub fua: bool,
    /// Whether the issuer waited for the request (REQ_SYNC of the block layer).
    pub sync: bool,
    /// Index of the request's device.
    pub device: DeviceIndex,
    /// First byte of the range, from the start of the device.
    pub offset_bytes: u64,
    /// Length of the range in bytes; 0 for a flush.
    pub length_bytes: u64,
    /// Error number with which the request completed, or 0.
    pub errno: u16,
}

/// Maximum end of a request's range. Storage counts bytes by 63 bits.
const END_BYTES_MAX: u64 = 1 << 63;

impl TraceRecord {
    /// Checks that the range is possible for storage.
    ///
    /// # Errors
    ///
    /// Fails if the range ends beyond 2^63 bytes.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let (offset, length) = (self.offset_bytes, self.length_bytes);
        match offset.checked_add(length) {
            Some(end) if end <= END_BYTES_MAX => Ok(()),
            _ => Err(format!(
                "a request of {length} bytes at byte {offset} ends beyond 2^63 bytes, the maximum \
                 of any storage: check the form and its columns (--form, --columns), or remove \
                 the request"
            )),
        }
    }

    /// Creates a record of an empty read at a time, as the basis for a format's fields.
    pub(crate) fn issued_at(issued_ns: u64) -> Self {
        Self {
            issued_ns,
            completed_ns: None,
            think_ns: None,
            operation: TracedOperation::Read,
            fua: false,
            sync: false,
            device: DeviceIndex(0),
            offset_bytes: 0,
            length_bytes: 0,
            errno: 0,
        }
    }

    /// Returns the response time in nanoseconds, or `None` if the trace has no completion.
    pub fn response_ns(&self) -> Option<u64> {
        self.completed_ns.map(|at| at - self.issued_ns)
    }
}
