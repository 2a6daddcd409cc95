//! Counts of blocks that a worker read back and compared with what it wrote.

use serde::{Deserialize, Serialize};

/// Verification counts of a worker, which reads blocks back and compares them with the written
/// data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedBlocks {
    /// Kind of verification, by its fio name: `crc32c`, `pattern` and so on.
    #[serde(rename = "kind")]
    pub verification_kind: String,
    /// Bytes written, including blocks that were overwritten. 0 in runs that did not count them.
    #[serde(default)]
    pub written_bytes: u64,
    /// Number of blocks that were compared.
    #[serde(rename = "blocks")]
    pub block_count: u64,
    /// Total bytes of the blocks that were compared.
    #[serde(rename = "bytes")]
    pub verified_bytes: u64,
    /// Number of blocks whose contents differed from the written data.
    #[serde(rename = "mismatches")]
    pub mismatch_count: u64,
    /// Number of written blocks that were not read back, because the job ended before.
    #[serde(default)]
    #[serde(rename = "unread_blocks")]
    pub unread_block_count: u64,
}

impl VerifiedBlocks {
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
        self.block_count += other.block_count;
        self.verified_bytes += other.verified_bytes;
        self.mismatch_count += other.mismatch_count;
        self.unread_block_count += other.unread_block_count;
    }
}
