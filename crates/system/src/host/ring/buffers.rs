//! Buffer memory of a ring: one buffer for each slot, filled with random data.

use crate::{RingOptions, Submission};
use rand_core::Rng;
use rand_pcg::Pcg64;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size in bytes of a unit of buffer data. Storage may deduplicate such units, and each unit has
/// the requested share of zeroes.
const FILL_UNIT_BYTES: usize = 4096;

/// Size of a large page in bytes. A request with memory in few pieces is one command on a device
/// that accepts few. For example, a virtio disk accepts 254, and 1 MiB in pages of 4 KiB fills its
/// whole queue.
const LARGE_PAGE_BYTES: usize = 2 << 20;

/// Minimum size of buffers in large pages, in bytes. Buffers of a few pages gain nothing, and
/// registered memory counts by whole pages against the limit of users other than root.
const LARGE_PAGE_BUFFER_BYTES_MIN: u32 = 64 << 10;

/// Stream number of the random generator for the buffers' data.
const DATA_STREAM: u128 = 2;

/// Address and length of a memory mapping.
type MemoryRegion = (NonNull<u8>, usize);

/// Page-aligned buffers of equal length. The kernel or a pool thread owns the buffer of a slot in
/// flight; the program owns that of an idle slot.
pub(super) struct RingBuffers {
    mapping: MemoryRegion,
    /// Address of the first buffer in the mapping.
    memory: NonNull<u8>,
    length_bytes: usize,
    buffer_bytes: u32,
    stride_bytes: usize,
    stamp_count: AtomicU64,
}

// SAFETY: the memory is this structure's alone, and belongs to no thread. Who may touch a
// slot's part of it is settled by whether it is under way (see `idle_buffer`, `in_flight_buffer`).
#[allow(unsafe_code)]
unsafe impl Send for RingBuffers {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for RingBuffers {}

impl RingBuffers {
    #[allow(unsafe_code)]
    pub(super) fn new(options: &RingOptions) -> Result<Self, Errno> {
        let stride = (options.buffer_bytes as usize).next_multiple_of(FILL_UNIT_BYTES);
        let length = stride
            .checked_mul(options.queue_depth as usize)
            .ok_or(Errno::NOMEM)?;
        let (mapping, memory) =
            map_memory(length, options.buffer_bytes >= LARGE_PAGE_BUFFER_BYTES_MIN)?;
        let mut buffers = Self {
            mapping,
            memory,
            length_bytes: length,
            buffer_bytes: options.buffer_bytes,
            stride_bytes: stride,
            stamp_count: AtomicU64::new(0),
        };
        buffers.fill_with_data(options);
        Ok(buffers)
    }

    #[allow(unsafe_code)]
    fn fill_with_data(&mut self, options: &RingOptions) {
        let mut random = Pcg64::new(u128::from(options.seed), DATA_STREAM);
        let filled = FILL_UNIT_BYTES * (100 - usize::from(options.compressible_percent)) / 100;
        // SAFETY: the mapping is as long as this, and nobody else knows it yet.
        let all =
            unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.length_bytes) };
        for unit in all.chunks_exact_mut(FILL_UNIT_BYTES) {
            random.fill_bytes(&mut unit[..filled]);
        }
    }

    #[inline]
    pub(super) fn buffer_bytes(&self) -> u32 {
        self.buffer_bytes
    }

    #[inline]
    #[allow(unsafe_code)]
    pub(super) fn buffer_address(&self, slot: u32) -> *mut u8 {
        let offset = slot as usize * self.stride_bytes;
        assert!(offset < self.length_bytes, "there is no slot {slot}");
        // SAFETY: the offset is within the mapping.
        unsafe { self.memory.as_ptr().add(offset) }
    }

    /// Returns the buffer of an idle slot, for the ring's thread.
    #[allow(unsafe_code, clippy::mut_from_ref)]
    pub(super) fn idle_buffer(&self, slot: u32) -> &mut [u8] {
        // SAFETY: only the ring calls this, for a slot that it knows not to be under way,
        // and lends what it gets for as long as it is borrowed itself.
        unsafe {
            std::slice::from_raw_parts_mut(self.buffer_address(slot), self.buffer_bytes as usize)
        }
    }

    /// Returns the buffer of a slot in flight, for the pool thread that executes its request.
    #[allow(unsafe_code, clippy::mut_from_ref)]
    pub(super) fn in_flight_buffer(&self, slot: u32, bytes: u32) -> &mut [u8] {
        let bytes = bytes.min(self.buffer_bytes) as usize;
        // SAFETY: one thread of the pool has the request, and the ring does not touch the
        // buffer before that thread has said that it is complete.
        unsafe { std::slice::from_raw_parts_mut(self.buffer_address(slot), bytes) }
    }

    /// Makes each 4 KiB of a slot's data unique among all writes, so that storage cannot
    /// deduplicate it.
    #[inline]
    pub(super) fn stamp_write_data(&self, submission: &Submission) {
        let number = self.stamp_count.fetch_add(1, Ordering::Relaxed);
        let buffer = self.idle_buffer(submission.slot);
        let bytes = (submission.bytes as usize).min(buffer.len());
        let mut offset_bytes = submission.offset_bytes;
        for unit in buffer[..bytes].chunks_mut(FILL_UNIT_BYTES) {
            if let Some((offset, rest)) = unit.split_first_chunk_mut() {
                *offset = offset_bytes.to_le_bytes();
                if let Some((count, _)) = rest.split_first_chunk_mut() {
                    *count = number.to_le_bytes();
                }
            }
            offset_bytes += FILL_UNIT_BYTES as u64;
        }
    }
}

impl Drop for RingBuffers {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: the mapping is this structure's, and no slot is under way: who keeps the
        // kernel or a thread from it is the ring, which else never drops it.
        let (start, length) = self.mapping;
        let _ = unsafe { munmap(start.as_ptr().cast(), length) };
    }
}

/// Maps memory of this length, in large pages if `is_large`. Returns the mapping and the aligned
/// start within it.
#[allow(unsafe_code)]
fn map_memory(length: usize, is_large: bool) -> Result<(MemoryRegion, NonNull<u8>), Errno> {
    // Whole pages, and one more, so that they can begin where large pages do.
    let pages = (length.div_ceil(LARGE_PAGE_BYTES)).checked_add(1);
    let in_pages = pages.and_then(|pages| pages.checked_mul(LARGE_PAGE_BYTES));
    let whole = match is_large {
        true => in_pages.ok_or(Errno::NOMEM)?,
        false => length,
    };
    let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, at an address of the kernel's choice.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), whole, access, kind)? };
    let start = NonNull::<u8>::new(start.cast()).ok_or(Errno::NOMEM)?;
    if !is_large {
        return Ok(((start, whole), start));
    }
    // SAFETY: the mapping is longer by a large page than what begins there.
    let memory = unsafe { start.add(start.as_ptr().align_offset(LARGE_PAGE_BYTES)) };
    let in_pages = whole - LARGE_PAGE_BYTES;
    // A kernel without large pages refuses, and all is as it would be anyway.
    // SAFETY: the range is within the mapping, which nobody uses yet.
    let _ = unsafe { madvise(memory.as_ptr().cast(), in_pages, Advice::LinuxHugepage) };
    Ok(((start, whole), memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineChoice, File, IoOperation};
    use diskperf_timeline::Nanoseconds;

    fn options(depth: u32, buffer_bytes: u32, compressible_percent: u8) -> RingOptions {
        RingOptions {
            queue_depth: depth,
            buffer_bytes,
            seed: 7,
            compressible_percent,
            engine_choice: EngineChoice::BestAvailable,
            polls_completions: false,
            has_verifiable_contents: false,
            series_interval: Nanoseconds::ZERO,
        }
    }

    #[test]
    fn each_unit_has_its_share_of_zeroes() {
        for (percent, zeroes) in [(0, 0..100), (50, 2000..2200), (100, 4096..4097)] {
            let buffers = RingBuffers::new(&options(3, 8192, percent)).unwrap();
            for slot in 0..3 {
                for unit in buffers.idle_buffer(slot).chunks(FILL_UNIT_BYTES) {
                    let count = unit.iter().filter(|byte| **byte == 0).count();
                    assert!(zeroes.contains(&count), "{percent} %: {count}");
                }
                assert_eq!(buffers.buffer_address(slot) as usize % 4096, 0);
            }
            assert!(percent == 100 || buffers.idle_buffer(0) != buffers.idle_buffer(1));
        }
    }

    #[test]
    fn no_two_writes_have_a_unit_in_common() {
        let buffers = RingBuffers::new(&options(2, 10_240, 100)).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for (slot, offset_bytes) in [(0, 0), (0, 0), (1, 0), (1, 4096), (0, 8192)] {
            let submission = Submission {
                operation: IoOperation::Write,
                file: File(0),
                offset_bytes,
                bytes: 10_240,
                slot,
                intended_start: None,
            };
            buffers.stamp_write_data(&submission);
            for unit in buffers.idle_buffer(slot).chunks(FILL_UNIT_BYTES) {
                assert!(seen.insert(unit.to_vec()));
            }
        }
        assert_eq!(seen.len(), 15);
    }

    #[test]
    fn the_same_seed_the_same_data() {
        let one = RingBuffers::new(&options(2, 512, 0)).unwrap();
        let other = RingBuffers::new(&options(2, 512, 0)).unwrap();
        assert_eq!(one.idle_buffer(1), other.idle_buffer(1));
        assert_eq!(one.idle_buffer(1).len(), 512);
    }
}
