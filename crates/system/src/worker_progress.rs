//! Progress of a worker, for display by another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress of a worker, which another thread reads while the worker runs.
#[derive(Debug, Default)]
pub struct WorkerProgress {
    is_in_timed_part: AtomicBool,
    moved_bytes: AtomicU64,
    read_back_blocks: AtomicU64,
    read_back_blocks_total: AtomicU64,
}

/// Progress of reading blocks back for verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBackProgress {
    /// Number of blocks that were read and compared.
    pub verified_blocks: u64,
    /// Total number of blocks to read back; 0 before the worker begins to read back.
    pub blocks_to_verify: u64,
}

impl WorkerProgress {
    /// Reports whether the timed part has started. Files are created before it.
    pub fn is_in_timed_part(&self) -> bool {
        self.is_in_timed_part.load(Ordering::Relaxed)
    }

    /// Records the start of the worker's timed part.
    pub fn start_timed_part(&self) {
        self.is_in_timed_part.store(true, Ordering::Relaxed);
    }

    /// Returns the bytes moved since the timed part started.
    pub fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Ordering::Relaxed)
    }

    /// Sets the number of bytes moved since the timed part started.
    pub fn set_moved_bytes(&self, bytes: u64) {
        self.moved_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns the progress of reading blocks back.
    pub fn read_back_progress(&self) -> ReadBackProgress {
        ReadBackProgress {
            verified_blocks: self.read_back_blocks.load(Ordering::Relaxed),
            blocks_to_verify: self.read_back_blocks_total.load(Ordering::Relaxed),
        }
    }

    /// Sets the progress of reading blocks back.
    pub fn set_read_back_progress(&self, progress: ReadBackProgress) {
        let ReadBackProgress {
            verified_blocks: blocks,
            blocks_to_verify: blocks_total,
        } = progress;
        self.read_back_blocks.store(blocks, Ordering::Relaxed);
        self.read_back_blocks_total
            .store(blocks_total, Ordering::Relaxed);
    }
}
