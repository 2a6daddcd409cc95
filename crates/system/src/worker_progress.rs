//! Progress of a worker, for whoever shows it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress of a worker, which another thread reads while it works.
#[derive(Debug, Default)]
pub struct WorkerProgress {
    is_timed: AtomicBool,
    moved_bytes: AtomicU64,
    read_back_blocks: AtomicU64,
    read_back_blocks_total: AtomicU64,
}

/// Blocks that are read back to be verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadBackProgress {
    /// Blocks that are read and compared.
    pub blocks: u64,
    /// Blocks that are to be; 0 before the worker begins to read back.
    pub blocks_total: u64,
}

impl WorkerProgress {
    /// Whether the timed part has started: files are made before.
    pub fn is_timed(&self) -> bool {
        self.is_timed.load(Ordering::Relaxed)
    }

    /// Notes that the timed part starts.
    pub fn start_timed_part(&self) {
        self.is_timed.store(true, Ordering::Relaxed);
    }

    /// Bytes moved since the timed part started.
    pub fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Ordering::Relaxed)
    }

    /// Sets the bytes that were moved.
    pub fn set_moved_bytes(&self, bytes: u64) {
        self.moved_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Blocks that were read back.
    pub fn read_back(&self) -> ReadBackProgress {
        ReadBackProgress {
            blocks: self.read_back_blocks.load(Ordering::Relaxed),
            blocks_total: self.read_back_blocks_total.load(Ordering::Relaxed),
        }
    }

    /// Sets the blocks that were read back.
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
