//! Items of the log, and what each takes in a record.

use crate::xfs::geometry::MetadataBuffer;

/// Bytes of the format of an inode item.
pub(super) const INODE_FORMAT_BYTES: u64 = 56;
/// Bytes of an inode's core in the log.
pub(super) const INODE_CORE_BYTES: u64 = 176;
/// Bytes of the format of a buffer item, without its map of chunks.
const BUFFER_FORMAT_BYTES: u64 = 20;
/// Chunks in a word of a buffer's map.
const MAP_WORD_CHUNKS: u64 = 32;
/// Unit in which changes of a buffer are logged.
pub(super) const CHUNK_BYTES: u64 = 128;
/// Bytes of an item that says which inodes a new chunk holds.
pub(super) const INODE_CREATE_BYTES: u64 = 28;

/// Number of an inode: its group and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InodeNumber {
    /// Allocation group that holds it.
    pub(super) group: u64,
    /// Number in the group: its place in units of inodes.
    pub(super) index: u64,
}

/// Object that a checkpoint logs once, however often it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogItem {
    /// Changed chunks of a buffer.
    Buffer(MetadataBuffer),
    /// Core of an inode, and what lies behind it.
    Inode(InodeNumber),
    /// Chunk of inodes that is made, by its first inode.
    InodeCreate(InodeNumber),
}

/// Buffer with changes that are not in place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChangedBuffer {
    /// Chunks that changed, as bits.
    pub(super) chunks: u128,
    /// Place in the log of the last checkpoint that holds it.
    pub(super) logged_at: Option<u64>,
}

/// Inode with changes that are not in place.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangedInode {
    /// Cluster that holds it.
    pub(super) cluster: MetadataBuffer,
    /// Place in the log of the last checkpoint that holds it.
    pub(super) logged_at: Option<u64>,
}

/// Lengths of the regions of a buffer item: its format, and each run of changed chunks.
pub(super) fn buffer_regions(buffer_bytes: u64, chunks: u128) -> Vec<u64> {
    let map_words = buffer_bytes.div_ceil(CHUNK_BYTES * MAP_WORD_CHUNKS);
    let mut regions = vec![BUFFER_FORMAT_BYTES + 4 * map_words];
    let mut run = 0;
    for chunk in 0..=u128::BITS {
        let is_changed = chunk < u128::BITS && chunks & (1 << chunk) != 0;
        if is_changed {
            run += CHUNK_BYTES;
        } else if run > 0 {
            regions.push(run);
            run = 0;
        }
    }
    regions
}
