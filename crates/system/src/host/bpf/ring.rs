//! Reader of a ring of records, which programs write and this process maps (the kernel's
//! documentation, bpf/ringbuf.rst).

use super::BpfMap;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const RECORD_HEADER_BYTES: usize = 8;
/// Bit of a record's length: it is still being written.
const BUSY: u32 = 1 << 31;
/// Bit of a record's length: its writer gave it up.
const DISCARDED: u32 = 1 << 30;

/// Mapped ring of records, with one reader.
#[derive(Debug)]
pub(crate) struct RingBufferReader {
    /// Page with the position up to which records are read.
    consumer: Mapping,
    /// Page with the position up to which records are written, then the data twice in a row, so
    /// that each record is contiguous.
    producer: Mapping,
    page_bytes: usize,
    data_bytes: usize,
}

/// Outcome of a pass over the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingState {
    /// All records were read.
    Drained,
    /// A record that is still being written comes next.
    RecordBusy,
}

impl RingBufferReader {
    /// Maps the ring of this size.
    ///
    /// # Errors
    ///
    /// The kernel refuses the mapping.
    pub(crate) fn map_ring(map: &BpfMap, data_bytes: usize) -> io::Result<Self> {
        let page_bytes = rustix::param::page_size();
        let both = ProtFlags::READ | ProtFlags::WRITE;
        let bytes = page_bytes + 2 * data_bytes;
        Ok(Self {
            consumer: Mapping::new(map, page_bytes, both, 0)?,
            producer: Mapping::new(map, bytes, ProtFlags::READ, page_bytes as u64)?,
            page_bytes,
            data_bytes,
        })
    }

    /// Passes each finished record to a function, and gives its room back.
    #[allow(unsafe_code)]
    pub(crate) fn read_records(&mut self, mut take: impl FnMut(&[u8])) -> RingState {
        // SAFETY: both positions are aligned words at the start of mappings that live as long as
        // `self`; the kernel's side accesses them atomically too.
        let (consumer, producer) = unsafe {
            (
                AtomicU64::from_ptr(self.consumer.start.as_ptr().cast()),
                AtomicU64::from_ptr(self.producer.start.as_ptr().cast()),
            )
        };
        // Only this reader moves the position.
        let mut position = consumer.load(Ordering::Relaxed);
        // No more than was there at the start: writers may be as fast as this reader.
        let end = producer.load(Ordering::Acquire);
        while position < end {
            let offset = (position % self.data_bytes as u64) as usize;
            // SAFETY: an offset below the size of the data, after the first page; lengths are
            // aligned words.
            let header = unsafe { self.producer.start.as_ptr().add(self.page_bytes + offset) };
            // SAFETY: as above. The writer clears the busy bit when the data is complete.
            let length = unsafe { AtomicU32::from_ptr(header.cast()) }.load(Ordering::Acquire);
            if length & BUSY != 0 {
                return RingState::RecordBusy;
            }
            let bytes = ((length & !DISCARDED) as usize).min(self.data_bytes - RECORD_HEADER_BYTES);
            if length & DISCARDED == 0 {
                // SAFETY: the record begins below the size of the data and is no longer than that,
                // so that it ends within the second copy. Nobody writes there until the position
                // that this reader stores below has passed it.
                take(unsafe { std::slice::from_raw_parts(header.add(RECORD_HEADER_BYTES), bytes) });
            }
            position += (bytes + RECORD_HEADER_BYTES).next_multiple_of(8) as u64;
            consumer.store(position, Ordering::Release);
        }
        RingState::Drained
    }
}

/// Shared mapping of a part of a map.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to no thread; only the owner of the mapping accesses it.
#[allow(unsafe_code)]
unsafe impl Send for Mapping {}

impl Mapping {
    #[allow(unsafe_code)]
    fn new(map: &BpfMap, bytes: usize, access: ProtFlags, offset: u64) -> io::Result<Self> {
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                access,
                MapFlags::SHARED,
                map.as_fd(),
                offset,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }
}

impl Drop for Mapping {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping is this structure's, and nobody uses it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}
