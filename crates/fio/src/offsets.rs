//! Offsets of sequential I/O in one file, computed as fio does.
//!
//! `rw=read:8k` skips 8 KiB after each block, and `rw=read:-8k` goes backward. The behaviour at the
//! ends of the file depends on integer arithmetic, so this follows fio's `get_next_seq_offset`.
//! Tests compare every offset with fio's logs.

use crate::job::{ZoneMode, Zones};

/// Region of a file that a job uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRegion {
    /// Start of the region in the file, in bytes.
    pub offset_bytes: u64,
    /// Length of the region in bytes. It may extend beyond the end of a device.
    pub length_bytes: u64,
    /// Length of the file, in bytes.
    pub file_bytes: u64,
}

impl FileRegion {
    /// Returns the number of complete blocks that fit into the region. A partial last block is
    /// never used.
    pub fn blocks(&self, block_bytes: u64) -> u64 {
        self.used_bytes().checked_div(block_bytes).unwrap_or(0)
    }

    /// Returns the bytes of the region that exist in the file.
    pub fn used_bytes(&self) -> u64 {
        let left = self.file_bytes.saturating_sub(self.offset_bytes);
        left.min(self.length_bytes)
    }
}

/// Sequential pass over a file: yields the offset of each block, in bytes. It does not end if the
/// step is negative, or positive and the pass meets the end of the file. [`crate::plan::predict_ios`]
/// limits the number of I/Os.
#[derive(Clone, Debug)]
pub struct SequentialOffsets {
    region: FileRegion,
    block_bytes: u64,
    skip_bytes: i64,
    last_end: i128,
}

impl SequentialOffsets {
    /// Creates a pass with a fixed block size; `skip_bytes` is N of `rw=read:N`.
    pub fn new(region: FileRegion, block_bytes: u64, skip_bytes: i64) -> SequentialOffsets {
        SequentialOffsets {
            region,
            block_bytes,
            skip_bytes,
            last_end: region.offset_bytes.into(),
        }
    }

    /// Wraps a position outside the file back into it, as fio does. fio uses unsigned 64-bit
    /// arithmetic, so a position before the file counts as beyond its end.
    fn wrap_position(&self, position: i128) -> i128 {
        let file = i128::from(self.region.file_bytes);
        if (0..file).contains(&position) {
            return position;
        }
        if self.skip_bytes > 0 {
            return self.region.offset_bytes.into();
        }
        let end = file.min(self.region.length_bytes.into());
        end + i128::from(self.skip_bytes)
    }
}

impl SequentialOffsets {
    /// Returns the offset of the next I/O of any size, or `None` at the end of the pass.
    pub fn next_offset(&mut self) -> Option<u64> {
        let start = i128::from(self.region.offset_bytes);
        let length = i128::from(self.region.length_bytes);
        let file = i128::from(self.region.file_bytes);
        if self.last_end >= file {
            return None;
        }
        if self.last_end == start && start > 0 && self.skip_bytes < 0 {
            self.last_end = file.min(length);
        }
        let mut position = self.last_end - start;
        if position != 0 && self.skip_bytes != 0 {
            position = self.wrap_position(position + i128::from(self.skip_bytes));
        }
        if position < 0 || position >= length {
            return None;
        }
        u64::try_from(position + start).ok()
    }

    /// Returns the end of the previous I/O, or the position set in its place, in bytes.
    pub fn last_end_bytes(&self) -> u64 {
        u64::try_from(self.last_end).unwrap_or(0)
    }

    /// Makes the start of a zone the origin of the pass and continues from there.
    pub fn enter_zone(&mut self, start_bytes: u64) {
        self.region.offset_bytes = start_bytes;
        self.last_end = start_bytes.into();
    }

    /// Changes the origin of the pass without moving the current position.
    pub fn set_origin(&mut self, start_bytes: u64) {
        self.region.offset_bytes = start_bytes;
    }

    /// Sets the end of the previous I/O, from which the pass continues.
    pub fn continue_from(&mut self, end_bytes: u64) {
        self.last_end = end_bytes.into();
    }
}

impl Iterator for SequentialOffsets {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let offset = self.next_offset().filter(|_| self.block_bytes > 0)?;
        let end = offset.checked_add(self.block_bytes)?;
        if end > self.region.file_bytes {
            return None;
        }
        self.continue_from(end);
        Some(offset)
    }
}

/// Pass over a file with `zonemode=strided`. It wraps around and never ends.
#[derive(Clone, Debug)]
pub struct StridedOffsets {
    region: FileRegion,
    zones: Zones,
    block_bytes: u64,
    zone_start: u64,
    last_end: u64,
    /// Bytes already transferred in the current zone.
    zone_done_bytes: u64,
}

impl StridedOffsets {
    /// Creates a strided pass with a fixed block size; `None` if zones are off or empty.
    pub fn new(region: FileRegion, block_bytes: u64, zones: Zones) -> Option<StridedOffsets> {
        let has_zones = zones.mode == ZoneMode::Strided && zones.size_bytes > 0;
        (has_zones && block_bytes > 0).then_some(StridedOffsets {
            region,
            zones,
            block_bytes,
            zone_start: region.offset_bytes,
            last_end: region.offset_bytes,
            zone_done_bytes: 0,
        })
    }
}

impl Iterator for StridedOffsets {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let range = match self.zones.range_bytes {
            0 => self.zones.size_bytes,
            range => range,
        };
        if self.zone_done_bytes >= self.zones.size_bytes {
            self.zone_done_bytes = 0;
            let stride = range.saturating_add(self.zones.skip_bytes);
            self.zone_start = self.zone_start.saturating_add(stride);
            if self.zone_start >= self.region.file_bytes {
                self.zone_start = self.region.offset_bytes;
            }
            self.last_end = self.zone_start;
        }
        // A zone that is shorter than what is done in it is walked over again.
        if self.last_end >= self.zone_start.saturating_add(range) {
            self.last_end = self.zone_start;
        }
        let offset = self.last_end;
        let end = offset.checked_add(self.block_bytes)?;
        if end > self.region.file_bytes {
            return None;
        }
        self.last_end = end;
        self.zone_done_bytes += self.block_bytes;
        Some(offset)
    }
}

#[cfg(test)]
mod tests;
