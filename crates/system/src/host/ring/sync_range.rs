//! System call sync_file_range(2), which writes a range of a file.

use crate::RangeSteps;
use rustix::io::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Returns the sync_file_range(2) flags for the requested steps.
pub(super) fn to_sync_range_flags(steps: RangeSteps) -> u32 {
    let asked = [
        (steps.waits_before, libc::SYNC_FILE_RANGE_WAIT_BEFORE),
        (steps.starts_writeback, libc::SYNC_FILE_RANGE_WRITE),
        (steps.waits_after, libc::SYNC_FILE_RANGE_WAIT_AFTER),
    ];
    let asked = asked.into_iter().filter(|(is_asked, _)| *is_asked);
    asked.fold(0, |flags, (_, flag)| flags | flag)
}

/// Calls sync_file_range(2) for a range given by offset and length. A length of zero extends to the
/// end of the file.
#[allow(unsafe_code)]
pub(super) fn call_sync_file_range(
    file: BorrowedFd<'_>,
    (offset_bytes, bytes): (u64, u32),
    steps: RangeSteps,
) -> rustix::io::Result<()> {
    let offset = i64::try_from(offset_bytes).map_err(|_| Errno::INVAL)?;
    // SAFETY: the call takes numbers alone.
    match unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            offset,
            bytes.into(),
            to_sync_range_flags(steps),
        )
    } {
        0 => Ok(()),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }
    }
}
