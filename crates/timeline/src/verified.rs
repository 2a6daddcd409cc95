//! Blocks that were read back and compared with what was written.

use serde::{Deserialize, Serialize};

/// Blocks of a worker that were read back and compared with what was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Kind of verification, by fio's name of it: `crc32c`, `pattern` and so on.
    pub kind: String,
    /// Bytes that were written, with those that were written over; 0 of runs that did not
    /// count them.
    #[serde(default)]
    pub written_bytes: u64,
    /// Blocks that were compared.
    pub blocks: u64,
    /// Bytes of these blocks.
    pub bytes: u64,
    /// Blocks that were not what was written.
    pub mismatches: u64,
    /// Blocks that were written and not read back, since the job ended before.
    #[serde(default)]
    pub unread_blocks: u64,
}

impl Verified {
    /// All of them together; nothing of none.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut all = parts.next()?.clone();
        parts.for_each(|part| all.merge(part));
        Some(all)
    }

    /// Adds the blocks of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.written_bytes += other.written_bytes;
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.mismatches += other.mismatches;
        self.unread_blocks += other.unread_blocks;
    }
}
