//! Extents of a file on its disk.

use rustix::io::Errno;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Code of the ioctl `FS_IOC_FIEMAP`.
const FIEMAP_IOCTL: libc::Ioctl = 0xc020_660b_u32 as libc::Ioctl;
/// Flag `FIEMAP_FLAG_SYNC`: the file is written to disk first.
const FIEMAP_SYNC_FLAG: u32 = 1;
/// Flag `FIEMAP_EXTENT_LAST`: the last extent of the file.
const LAST_EXTENT_FLAG: u32 = 1;
/// Flags of extents without a disk position: `FIEMAP_EXTENT_UNKNOWN`, `_DELALLOC` and
/// `_DATA_INLINE`.
const UNPLACED_FLAGS: u32 = 0x2 | 0x4 | 0x200;
const EXTENTS_PER_CALL: usize = 128;

/// Layout of the kernel's `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical_byte: u64,
    physical_byte: u64,
    length_bytes: u64,
    reserved: [u64; 2],
    extent_flags: u32,
    more_reserved: [u32; 3],
}

/// Kernel's `struct fiemap`, with room for some extents.
#[repr(C)]
struct FiemapRequest {
    start_byte: u64,
    length_bytes: u64,
    request_flags: u32,
    extent_count: u32,
    extents_max: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_PER_CALL],
}

/// Disk extents of a file as ranges of bytes, each from its start (inclusive) to its end
/// (exclusive), in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileExtents(Vec<(u64, u64)>);

impl FileExtents {
    /// Returns the extents of an open file.
    ///
    /// # Errors
    ///
    /// The file system does not report them.
    pub(super) fn read_file_extents(file: BorrowedFd<'_>) -> io::Result<Self> {
        let mut places = Vec::new();
        let mut start = 0;
        loop {
            let request = read_extents(file, start)?;
            let mapped = &request.extents[..(request.extent_count as usize).min(EXTENTS_PER_CALL)];
            let with_place = mapped
                .iter()
                .filter(|extent| extent.extent_flags & UNPLACED_FLAGS == 0);
            places.extend(with_place.map(|extent| {
                let end = extent.physical_byte.saturating_add(extent.length_bytes);
                (extent.physical_byte, end)
            }));
            match mapped.last() {
                Some(last) if last.extent_flags & LAST_EXTENT_FLAG == 0 => {
                    start = last.logical_byte.saturating_add(last.length_bytes);
                }
                _ => break,
            }
        }
        places.sort_unstable();
        Ok(Self(places))
    }

    /// Reports whether the file has no bytes on the disk.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn overlaps_with(&self, other: &Self) -> bool {
        let (mut own, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(start, end)), Some(&&(other_start, other_end))) =
            (own.peek(), others.peek())
        {
            if start < other_end && other_start < end {
                return true;
            }
            if end <= other_start {
                own.next();
            } else {
                others.next();
            }
        }
        false
    }
}

#[allow(unsafe_code)]
fn read_extents(file: BorrowedFd<'_>, start: u64) -> io::Result<Box<FiemapRequest>> {
    let mut request = Box::new(FiemapRequest {
        start_byte: start,
        length_bytes: u64::MAX - start,
        request_flags: FIEMAP_SYNC_FLAG,
        extent_count: 0,
        extents_max: EXTENTS_PER_CALL as u32,
        reserved: 0,
        extents: [FiemapExtent::default(); EXTENTS_PER_CALL],
    });
    loop {
        // SAFETY: the descriptor is open for as long as it is borrowed, and the
        // pointer is to a structure of the kernel's layout, which says itself
        // how many extents it has room for, and outlives the call.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP_IOCTL, &raw mut *request) };
        if result == 0 {
            return Ok(request);
        }
        let error = io::Error::last_os_error();
        if Errno::from_io_error(&error) != Some(Errno::INTR) {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_touch_do_not_overlap() {
        let extents = |places: &[(u64, u64)]| FileExtents(places.to_vec());
        for (one, other, overlap) in [
            (&[(0, 4), (8, 12)][..], &[(4, 8)][..], false),
            (&[(0, 4), (8, 12)], &[(4, 9)], true),
            (&[(10, 20)], &[(0, 5), (5, 11)], true),
            (&[(10, 20)], &[(0, 5), (20, 30)], false),
            (&[(10, 20)], &[(12, 13)], true),
            (&[], &[(0, 5)], false),
            (&[], &[], false),
        ] {
            assert_eq!(extents(one).overlaps_with(&extents(other)), overlap);
            assert_eq!(extents(other).overlaps_with(&extents(one)), overlap);
        }
    }
}
