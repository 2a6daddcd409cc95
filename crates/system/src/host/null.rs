//! A drive that is not there: as long as one, and done with each call at once.

use crate::Errno;
use rustix::fs::SeekFrom;
use std::cell::Cell;

/// An open file of [`super::DrivePort::Null`].
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

    /// A read or a write at the offset, which goes on by what it moved.
    #[inline]
    pub(super) fn advance(&self, bytes: usize) -> usize {
        let offset_bytes = self.offset_bytes.get();
        let moved = moved_at(self.length_bytes, offset_bytes, bytes);
        self.offset_bytes.set(offset_bytes + moved as u64);
        moved
    }

    /// lseek(2).
    pub(super) fn seek(&self, to: SeekFrom) -> Result<u64, Errno> {
        let offset = match to {
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

/// How much of a read or a write is before the end.
#[inline]
pub(super) fn moved_at(length_bytes: u64, offset_bytes: u64, bytes: usize) -> usize {
    let left = length_bytes.saturating_sub(offset_bytes);
    bytes.min(usize::try_from(left).unwrap_or(usize::MAX))
}
