//! Global allocator of the program and of the Python module. Small allocations go to mimalloc,
//! large ones to the system allocator.
//!
//! Models allocate and free small blocks at every event and megabytes at every run. musl's
//! allocator has one lock for all threads, and returns each large block to the system; glibc's is
//! slower for small blocks. The tables of a flash drive are gigabytes of zeroes, and a run touches
//! few of them: mimalloc writes all of these zeroes, where the system maps pages that use no memory
//! until they are touched.
//!
//! When an allocation fails, the process ends with a message that names the memory limit.
#![allow(unsafe_code)]

mod failure;

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};

/// Smallest allocation that goes to the system allocator, in bytes.
const SYSTEM_ALLOCATION_BYTES_MIN: usize = 32 << 20;

/// Global allocator: mimalloc for small allocations, the system allocator for large ones.
#[derive(Debug)]
pub struct Allocator;

fn is_large(bytes: usize) -> bool {
    bytes >= SYSTEM_ALLOCATION_BYTES_MIN
}

// SAFETY: a piece goes back to the allocator that it came from, as its size says which.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = match is_large(layout.size()) {
            true => unsafe { System.alloc(layout) },
            false => unsafe { MiMalloc.alloc(layout) },
        };
        failure::require_memory(block, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let block = match is_large(layout.size()) {
            true => unsafe { System.alloc_zeroed(layout) },
            false => unsafe { MiMalloc.alloc_zeroed(layout) },
        };
        failure::require_memory(block, layout.size())
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match is_large(layout.size()) {
            true => unsafe { System.dealloc(block, layout) },
            false => unsafe { MiMalloc.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let moved = match (is_large(layout.size()), is_large(bytes)) {
            (true, true) => unsafe { System.realloc(block, layout, bytes) },
            (false, false) => unsafe { MiMalloc.realloc(block, layout, bytes) },
            (true, false) | (false, true) => unsafe {
                let wanted = Layout::from_size_align_unchecked(bytes, layout.align());
                let moved = self.alloc(wanted);
                block.copy_to_nonoverlapping(moved, layout.size().min(bytes));
                self.dealloc(block, layout);
                moved
            },
        };
        failure::require_memory(moved, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").expect("of this process");
        let pages = statm.split(' ').nth(1).expect("what is resident");
        pages.parse::<usize>().expect("a number") * 4096
    }

    #[global_allocator]
    static ALLOCATOR: Allocator = Allocator;

    /// One test, since memory is the whole process's.
    #[test]
    fn what_is_large_is_the_systems_and_keeps_what_it_holds() {
        zeroes_that_nobody_touches_take_no_memory();
        what_grows_and_shrinks_from_one_to_the_other_keeps_what_it_holds();
    }

    fn zeroes_that_nobody_touches_take_no_memory() {
        let before = resident_bytes();
        let mut table = vec![0_u32; 1 << 30];
        table[1 << 29] = 1;
        let taken = resident_bytes().saturating_sub(before);
        assert_eq!(table.iter().step_by(1 << 29).sum::<u32>(), 1);
        assert!(
            taken < SYSTEM_ALLOCATION_BYTES_MIN,
            "{taken} of {} bytes",
            table.len() * 4
        );
    }

    fn what_grows_and_shrinks_from_one_to_the_other_keeps_what_it_holds() {
        let mut numbers: Vec<u64> = Vec::new();
        let count = 3 * SYSTEM_ALLOCATION_BYTES_MIN as u64 / 8;
        numbers.extend(0..count);
        assert!((0..count).eq(numbers.iter().copied()));
        numbers.truncate(1000);
        numbers.shrink_to_fit();
        assert!((0..1000).eq(numbers.iter().copied()));
    }
}
