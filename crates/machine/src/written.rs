//! Data that a program writes.

use std::ops::{Deref, Range};
use std::rc::Rc;

/// Data that a program writes. Kept data ([`Written::kept`]) never change, so that a kernel
/// recognizes a repeated write by its address.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    bytes: &'a [u8],
    kept: Option<&'a Rc<[u8]>>,
}

impl<'a> Written<'a> {
    /// Returns data that the program keeps unchanged.
    pub fn kept(bytes: &'a Rc<[u8]>) -> Self {
        let kept = Some(bytes);
        Self { bytes, kept }
    }

    /// Returns a byte range of the written data.
    #[inline]
    pub fn part(self, range: Range<usize>) -> Self {
        Self {
            bytes: &self.bytes[range],
            ..self
        }
    }

    /// Bytes that the program writes.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the identity of kept data, by which a repeated write is recognized. None for other
    /// data.
    pub(crate) fn known_content(self) -> Option<KnownContent> {
        self.kept.map(|kept| KnownContent {
            kept: Rc::clone(kept),
            at: self.bytes.as_ptr(),
            bytes: self.bytes.len(),
        })
    }
}

impl<'a, Bytes: AsRef<[u8]> + ?Sized> From<&'a Bytes> for Written<'a> {
    #[inline]
    fn from(bytes: &'a Bytes) -> Self {
        let (bytes, kept) = (bytes.as_ref(), None);
        Self { bytes, kept }
    }
}

impl Deref for Written<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

/// Identity of kept data that were written once.
pub(crate) struct KnownContent {
    /// Kept data, held so that their address is not reused.
    kept: Rc<[u8]>,
    at: *const u8,
    bytes: usize,
}

impl KnownContent {
    /// Reports whether the data are the same kept bytes as before, without comparing the contents.
    #[inline]
    pub(crate) fn is_same_content(&self, data: Written<'_>) -> bool {
        let same = |kept: &Rc<[u8]>| Rc::ptr_eq(kept, &self.kept);
        data.kept.is_some_and(same) && (data.as_ptr(), data.len()) == (self.at, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_bytes_are_known_again_and_others_are_not() {
        let kept: Rc<[u8]> = vec![7; 64].into();
        let other: Rc<[u8]> = vec![7; 64].into();
        let first = Written::kept(&kept).part(0..32);
        let known = first.known_content().expect("they are kept");
        assert!(
            known.is_same_content(first) && known.is_same_content(Written::kept(&kept).part(0..32))
        );
        for unlike in [
            Written::kept(&kept),
            Written::kept(&kept).part(32..64),
            Written::kept(&kept).part(0..31),
            Written::kept(&other).part(0..32),
            Written::from(&kept[..32]),
        ] {
            assert!(!known.is_same_content(unlike));
        }
        assert!(Written::from(&kept[..]).known_content().is_none());
    }

    #[test]
    fn a_part_of_a_part_is_counted_from_its_start() {
        let bytes: Vec<u8> = (0..64).collect();
        let part = Written::from(&bytes[..]).part(10..40).part(5..8);
        assert_eq!(part.bytes(), [15, 16, 17]);
    }
}
