//! Page-aligned buffers for I/O.

use std::ops::{Deref, DerefMut};

/// Alignment of I/O buffers in bytes. O_DIRECT requires alignment to the device's logical block,
/// and a page satisfies every device.
const ALIGNMENT_BYTES: usize = 4096;

/// Zeroed, page-aligned buffer of fixed length for I/O.
pub struct Buffer {
    storage_bytes: Vec<u8>,
    aligned_start: usize,
    length_bytes: usize,
}

impl Buffer {
    /// Returns a zeroed buffer of `length` bytes.
    pub fn new(length: usize) -> Self {
        let storage = vec![0; length + ALIGNMENT_BYTES];
        let start = storage.as_ptr().align_offset(ALIGNMENT_BYTES);
        Self {
            storage_bytes: storage,
            aligned_start: start,
            length_bytes: length,
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.storage_bytes[self.aligned_start..self.aligned_start + self.length_bytes]
    }
}

impl AsRef<[u8]> for Buffer {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.storage_bytes[self.aligned_start..self.aligned_start + self.length_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_and_of_the_length_asked_for() {
        for length in [0, 1, 512, 8192, 1 << 20] {
            let buffer = Buffer::new(length);
            assert_eq!(buffer.len(), length);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT_BYTES, 0);
        }
    }
}
