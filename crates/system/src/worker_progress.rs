//! Progress of a worker, for display by another thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress of a worker, which another thread reads while the worker runs.
#[derive(Debug, Default)]
pub struct WorkerProgress {
    is_timed: AtomicBool,
    moved_bytes: AtomicU64,
    read_back_blocks: AtomicU64,
    read_back_blocks_total: AtomicU64,
}

/// Progress of reading blocks back for verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBackProgress {
    /// Number of blocks that were read and compared.
    pub blocks: u64,
    /// Total number of blocks to read back; 0 before the worker begins to read back.
    pub blocks_total: u64,
}

impl WorkerProgress {
    /// Reports whether the timed part has started. Files are created before it.
    pub fn is_timed(&self) -> bool {
        self.is_timed.load(Ordering::Relaxed)
    }

    /// Records the start of the worker's timed part.
    pub fn start_timed_part(&self) {
        self.is_timed.store(true, Ordering::Relaxed);
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
    pub fn read_back(&self) -> ReadBackProgress {
        ReadBackProgress {
            blocks: self.read_back_blocks.load(Ordering::Relaxed),
            blocks_total: self.read_back_blocks_total.load(Ordering::Relaxed),
        }
    }

    /// Sets the progress of reading blocks back.
    pub fn set_read_back(&self, progress: ReadBackProgress) {
        let ReadBackProgress {
            blocks,
            blocks_total,
        } = progress;
        self.read_back_blocks.store(blocks, Ordering::Relaxed);
        self.read_back_blocks_total
            .store(blocks_total, Ordering::Relaxed);
    }
}
