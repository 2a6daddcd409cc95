//! One leaf of a tree whose pointers are short: those of free space and of inodes in a group.

use std::ops::Range;

use crate::xfs::geometry::MetadataBuffer;
use crate::xfs::log::Log;

/// Bytes of the header of a tree's block.
const HEADER_BYTES: u64 = 56;
/// Fields of the header that count the records.
const COUNT_FIELDS: Range<u64> = 0..8;

/// Logs the records of a leaf that differ, and its header where their number does.
pub(super) fn log_changed_records<T: PartialEq>(
    log: &mut Log,
    (buffer, record_bytes): (MetadataBuffer, u64),
    before: &[T],
    after: &[T],
) {
    for (index, record) in after.iter().enumerate() {
        if before.get(index) != Some(record) {
            let start = HEADER_BYTES + index as u64 * record_bytes;
            log.add_buffer(buffer, start..start + record_bytes);
        }
    }
    if before.len() != after.len() {
        log.add_buffer(buffer, COUNT_FIELDS);
    }
}
