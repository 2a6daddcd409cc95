//! Null drive: it has a length, stores no data, and completes each call immediately.

use crate::Errno;
use rustix::fs::SeekFrom;
use std::cell::Cell;

/// Open file of a null drive, [`super::DrivePort::NullDrive`].
pub(super) struct NullFile {
    length_bytes: u64,
    offset_bytes: Cell<u64>,
}

impl NullFile {
    pub(super) fn new(length_bytes: u64) -> Self {
        Self {
            length_bytes,
            offset_bytes: Cell::new(0),
        }
    }

    pub(super) fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Performs a read or write at the current offset, and advances the offset by the bytes moved.
    #[inline]
    pub(super) fn advance_offset(&self, bytes: usize) -> usize {
        let offset_bytes = self.offset_bytes.get();
        let moved = transferable_bytes(self.length_bytes, offset_bytes, bytes);
        self.offset_bytes.set(offset_bytes + moved as u64);
        moved
    }

    /// Moves the offset of a null drive's open file, as lseek(2) does.
    pub(super) fn seek_to(&self, target: SeekFrom) -> Result<u64, Errno> {
        let offset = match target {
            SeekFrom::Start(offset) => i64::try_from(offset).ok(),
            SeekFrom::Current(by) => (self.offset_bytes.get() as i64).checked_add(by),
            SeekFrom::End(by) => (self.length_bytes as i64).checked_add(by),
            _ => None,
        };
        let offset = offset.and_then(|offset| u64::try_from(offset).ok());
        let offset = offset.ok_or(Errno::Invalid)?;
        self.offset_bytes.set(offset);
        Ok(offset)
    }
}

/// Returns the number of bytes of a read or write that lie before the end of the drive.
#[inline]
pub(super) fn transferable_bytes(length_bytes: u64, offset_bytes: u64, bytes: usize) -> usize {
    let left = length_bytes.saturating_sub(offset_bytes);
    bytes.min(usize::try_from(left).unwrap_or(usize::MAX))
}
