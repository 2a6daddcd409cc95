//! Counts of blocks that a worker read back and compared with what it wrote.

use serde::{Deserialize, Serialize};

/// Verification counts of a worker, which reads blocks back and compares them with the written
/// data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Kind of verification, by its fio name: `crc32c`, `pattern` and so on.
    pub kind: String,
    /// Bytes written, including blocks that were overwritten. 0 in runs that did not count them.
    #[serde(default)]
    pub written_bytes: u64,
    /// Number of blocks that were compared.
    pub blocks: u64,
    /// Total bytes of the blocks that were compared.
    pub bytes: u64,
    /// Number of blocks whose contents differed from the written data.
    pub mismatches: u64,
    /// Number of written blocks that were not read back, because the job ended before.
    #[serde(default)]
    pub unread_blocks: u64,
}

impl Verified {
    /// Returns the sum of the verification counts of several workers; `None` if there are none.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        let mut parts = parts.into_iter();
        let mut all = parts.next()?.clone();
        parts.for_each(|part| all.merge(part));
        Some(all)
    }

    /// Adds the verification counts of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.written_bytes += other.written_bytes;
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        self.mismatches += other.mismatches;
        self.unread_blocks += other.unread_blocks;
    }
}
