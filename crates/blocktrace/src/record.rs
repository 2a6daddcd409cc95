//! One request of a trace.

/// What a request asks of storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// What was acknowledged before is made durable. Has no range.
    Flush,
    /// The range is no longer needed.
    Discard,
    /// Zeroes are written without data crossing the link.
    WriteZeroes,
}

/// Which of the trace's devices, as they are numbered by first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeviceIndex(pub u32);

/// A request, with all that any form says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Nanoseconds from the trace's beginning to the issue. A closed form that says no
    /// times has the sum of what went before.
    pub issued_ns: u64,
    /// Nanoseconds from the trace's beginning to the completion, where the form has it.
    pub completed_ns: Option<u64>,
    /// Nanoseconds of pause before this request, in the forms that replay in closed loop.
    pub think_ns: Option<u64>,
    /// What was asked.
    pub operation: Operation,
    /// The write is durable when it completes (forced unit access).
    pub fua: bool,
    /// The issuer waited for it (REQ_SYNC of the block layer).
    pub sync: bool,
    /// The device.
    pub device: DeviceIndex,
    /// The first byte of the range, from the device's beginning.
    pub offset_bytes: u64,
    /// Bytes of the range; 0 for a flush.
    pub length_bytes: u64,
    /// 0, or the errno that the request completed with.
    pub errno: u16,
}

/// End of the last range that a request may have: storage counts bytes by 63 bits.
const END_BYTES_MAX: u64 = 1 << 63;

impl Record {
    /// Makes sure that storage can have the range.
    ///
    /// # Errors
    ///
    /// It ends too far out.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let (offset, length) = (self.offset_bytes, self.length_bytes);
        match offset.checked_add(length) {
            Some(end) if end <= END_BYTES_MAX => Ok(()),
            _ => Err(format!(
                "a request of {length} bytes at byte {offset} ends beyond 2^63 bytes, which no storage has: check the form and its columns (--form, --columns), or leave the request out"
            )),
        }
    }

    /// A read of nothing at a moment, for a form to fill in.
    pub(crate) fn at(issued_ns: u64) -> Self {
        Self {
            issued_ns,
            completed_ns: None,
            think_ns: None,
            operation: Operation::Read,
            fua: false,
            sync: false,
            device: DeviceIndex(0),
            offset_bytes: 0,
            length_bytes: 0,
            errno: 0,
        }
    }

    /// Nanoseconds from issue to completion, where the trace has them.
    pub fn response_ns(&self) -> Option<u64> {
        self.completed_ns.map(|at| at - self.issued_ns)
    }
}
