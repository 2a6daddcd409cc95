//! Kernel versions, and what differs between them.

/// Kernel version whose behaviour a stack has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelVersion {
    /// Linux 6.1, December 2022.
    V6_1,
    /// Linux 6.12, November 2024.
    V6_12,
    /// Linux 6.18, November 2025.
    V6_18,
}

impl KernelVersion {
    /// Returns the version's name as `uname -r` begins.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V6_1 => "6.1",
            Self::V6_12 => "6.12",
            Self::V6_18 => "6.18",
        }
    }

    /// Whether read-ahead cuts its window at a natural boundary.
    #[must_use]
    pub fn cuts_read_ahead(self) -> bool {
        self >= Self::V6_18
    }

    /// Whether ext4 keeps folios of more than one page in the page cache.
    #[must_use]
    pub fn has_ext4_large_folios(self) -> bool {
        self >= Self::V6_18
    }

    /// Whether XFS makes folios of more than one page for buffered writes.
    #[must_use]
    pub fn has_large_write_folios(self) -> bool {
        self >= Self::V6_12
    }
}

/// Machine on which the kernel runs, as far as the lists of requests depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Version of the running kernel.
    pub version: KernelVersion,
    /// Ticks a second (HZ). Time stamps of files are those of the last tick.
    pub ticks_per_second: u32,
    /// Processors; an allocator that counts by processor batches by their number.
    pub processors: u32,
}

impl Host {
    /// Time of the last tick at or before `now_ns`.
    #[must_use]
    pub fn tick_ns(&self, now_ns: u64) -> u64 {
        let tick = 1_000_000_000 / u64::from(self.ticks_per_second);
        now_ns / tick * tick
    }
}
