//! Engine with preadv2(2) and pwritev2(2): each request is one call, by a pool thread or the
//! worker.

use super::buffers::RingBuffers;
use super::files::RingFile;
use super::sync_range;
use crate::{IoOperation, RingOptions, Submission};
use rustix::fs::FallocateFlags;
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd};

/// Executor of read and write calls at an offset of a file.
#[derive(Clone, Copy)]
pub(super) struct PositionedCalls {
    read_write_flags: ReadWriteFlags,
}

impl PositionedCalls {
    pub(super) fn new(options: &RingOptions) -> Self {
        Self {
            read_write_flags: match options.polls_completions {
                true => ReadWriteFlags::HIPRI,
                false => ReadWriteFlags::empty(),
            },
        }
    }

    /// Executes a request and returns the bytes moved. At the end of the file these are fewer. A
    /// call that a signal interrupted is repeated.
    #[inline]
    pub(super) fn execute_request(
        self,
        submission: &Submission,
        file: &RingFile,
        buffers: &RingBuffers,
    ) -> rustix::io::Result<usize> {
        loop {
            match self.issue_call(submission, file, buffers) {
                Err(Errno::INTR) => {}
                result => return result,
            }
        }
    }

    fn issue_call(
        self,
        submission: &Submission,
        file: &RingFile,
        buffers: &RingBuffers,
    ) -> rustix::io::Result<usize> {
        let &Submission {
            operation,
            offset_bytes,
            bytes,
            slot,
            ..
        } = submission;
        let descriptor = file.descriptor();
        match operation {
            IoOperation::Read => {
                let buffer = buffers.in_flight_buffer(slot, bytes);
                let mut parts = [IoSliceMut::new(buffer)];
                preadv2(descriptor, &mut parts, offset_bytes, self.read_write_flags)
            }
            IoOperation::Write => {
                let parts = [IoSlice::new(buffers.in_flight_buffer(slot, bytes))];
                pwritev2(descriptor, &parts, offset_bytes, self.read_write_flags)
            }
            IoOperation::Fsync => rustix::fs::fsync(descriptor).map(|()| 0),
            IoOperation::Fdatasync => rustix::fs::fdatasync(descriptor).map(|()| 0),
            IoOperation::SyncRange(steps) => {
                sync_range::call_sync_file_range(descriptor, (offset_bytes, bytes), steps)
                    .map(|()| 0)
            }
            IoOperation::DiscardRange if file.is_block_device => {
                discard_range(descriptor, offset_bytes, bytes).map(|()| 0)
            }
            IoOperation::DiscardRange => {
                let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(descriptor, hole, offset_bytes, u64::from(bytes)).map(|()| 0)
            }
        }
    }
}

/// Code of the ioctl `BLKDISCARD`, `_IO(0x12, 119)`.
const BLKDISCARD: libc::Ioctl = (0x12 << 8) | 119;

#[allow(unsafe_code)]
fn discard_range(device: BorrowedFd<'_>, offset_bytes: u64, bytes: u32) -> rustix::io::Result<()> {
    let range = [offset_bytes, u64::from(bytes)];
    // SAFETY: the pointer is to the two numbers that the call reads.
    match unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, &raw const range) } {
        0 => Ok(()),
        _ => {
            let error = std::io::Error::last_os_error();
            Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
        }
    }
}
