//! Data that a program writes.

use std::ops::{Deref, Range};
use std::rc::Rc;

/// Data that a program writes. Kept data ([`WriteData::from_kept_buffer`]) never change, so that a kernel
/// recognizes a repeated write by its address.
#[derive(Clone, Copy, Debug)]
pub struct WriteData<'a> {
    bytes: &'a [u8],
    kept_buffer: Option<&'a Rc<[u8]>>,
}

impl<'a> WriteData<'a> {
    /// Returns data that the program keeps unchanged.
    pub fn from_kept_buffer(bytes: &'a Rc<[u8]>) -> Self {
        let kept = Some(bytes);
        Self {
            bytes,
            kept_buffer: kept,
        }
    }

    /// Returns a byte range of the written data.
    #[inline]
    pub fn subrange(self, range: Range<usize>) -> Self {
        Self {
            bytes: &self.bytes[range],
            ..self
        }
    }

    /// Bytes that the program writes.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the identity of kept data, by which a repeated write is recognized. None for other
    /// data.
    pub(crate) fn content_identity(self) -> Option<KeptContentIdentity> {
        self.kept_buffer.map(|kept| KeptContentIdentity {
            kept_buffer: Rc::clone(kept),
            data_address: self.bytes.as_ptr(),
            byte_count: self.bytes.len(),
        })
    }
}

impl<'a, Bytes: AsRef<[u8]> + ?Sized> From<&'a Bytes> for WriteData<'a> {
    #[inline]
    fn from(bytes: &'a Bytes) -> Self {
        let (bytes, kept) = (bytes.as_ref(), None);
        Self {
            bytes,
            kept_buffer: kept,
        }
    }
}

impl Deref for WriteData<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// Identity of kept data that were written once.
pub(crate) struct KeptContentIdentity {
    /// Kept data, held so that their address is not reused.
    kept_buffer: Rc<[u8]>,
    data_address: *const u8,
    byte_count: usize,
}

impl KeptContentIdentity {
    /// Reports whether the data are the same kept bytes as before, without comparing the contents.
    #[inline]
    pub(crate) fn is_same_content(&self, data: WriteData<'_>) -> bool {
        let same = |kept: &Rc<[u8]>| Rc::ptr_eq(kept, &self.kept_buffer);
        data.kept_buffer.is_some_and(same)
            && (data.as_ptr(), data.len()) == (self.data_address, self.byte_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_bytes_are_recognized_and_others_are_not() {
        let kept: Rc<[u8]> = vec![7; 64].into();
        let other: Rc<[u8]> = vec![7; 64].into();
        let first = WriteData::from_kept_buffer(&kept).subrange(0..32);
        let known = first.content_identity().expect("they are kept");
        assert!(
            known.is_same_content(first)
                && known.is_same_content(WriteData::from_kept_buffer(&kept).subrange(0..32))
        );
        for unlike in [
            WriteData::from_kept_buffer(&kept),
            WriteData::from_kept_buffer(&kept).subrange(32..64),
            WriteData::from_kept_buffer(&kept).subrange(0..31),
            WriteData::from_kept_buffer(&other).subrange(0..32),
            WriteData::from(&kept[..32]),
        ] {
            assert!(!known.is_same_content(unlike));
        }
        assert!(WriteData::from(&kept[..]).content_identity().is_none());
    }

    #[test]
    fn a_part_of_a_part_is_counted_from_its_start() {
        let bytes: Vec<u8> = (0..64).collect();
        let part = WriteData::from(&bytes[..]).subrange(10..40).subrange(5..8);
        assert_eq!(part.as_bytes(), [15, 16, 17]);
    }
}
