//! Logs of dm-log-writes, the kernel's recorder of the requests to a block device.
//!
//! The first sector has the header. Each entry has a sector with its numbers, which for a mark
//! holds the text as well, and the data of a write behind it. All numbers are little-endian, and
//! sectors are those of the log's own size. Writes are in order of completion, at the flush that
//! follows them or, with force unit access, at once.

mod read;
mod write;

pub use read::{LogWritesError, read};
pub use write::write;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;

const FLAG_FLUSH: u64 = 1;
const FLAG_FUA: u64 = 2;
const FLAG_DISCARD: u64 = 4;
const FLAG_MARK: u64 = 8;

/// Mark at the beginning of a workload, after the drive was formatted.
const BEGIN_MARK: &str = "begin";

/// Bytes of an entry's numbers, before the text of a mark.
const ENTRY_BYTES: usize = 32;
