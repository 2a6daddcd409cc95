//! The offsets of sequential I/O in one file, as fio walks over it.
//!
//! `rw=read:8k` leaves 8 KiB out after each block, and `rw=read:-8k` goes backwards; where
//! they turn at the ends depends on the arithmetic, so this is fio's
//! (`get_next_seq_offset`), and tests compare every offset with what fio logs.

use crate::job::{ZoneMode, Zones};

/// The part of a file that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Where it begins, in bytes.
    pub offset_bytes: u64,
    /// Its length in bytes; it may reach beyond the end of a device.
    pub length_bytes: u64,
    /// Length of the file, in bytes.
    pub file_bytes: u64,
}

impl Region {
    /// How many blocks fit: a last part of one is never touched.
    pub fn blocks(&self, block_bytes: u64) -> u64 {
        self.used_bytes().checked_div(block_bytes).unwrap_or(0)
    }

    /// Bytes of the region that the file has.
    pub fn used_bytes(&self) -> u64 {
        let left = self.file_bytes.saturating_sub(self.offset_bytes);
        left.min(self.length_bytes)
    }
}

/// One pass over a file: the offset of each block, in bytes. With a negative step, or a
/// positive one that meets the file's end, it never ends by itself; how many I/Os are
/// done is another matter ([`crate::plan::ios`]).
#[derive(Clone, Debug)]
pub struct Sequential {
    region: Region,
    block_bytes: u64,
    skip_bytes: i64,
    /// Where the last block ended.
    last: i128,
}

impl Sequential {
    /// Of blocks of one size; `skip_bytes` is that of `rw=read:N`.
    pub fn new(region: Region, block_bytes: u64, skip_bytes: i64) -> Sequential {
        Sequential {
            region,
            block_bytes,
            skip_bytes,
            last: region.offset_bytes.into(),
        }
    }

    /// fio's arithmetic is in 64 bits without a sign, where a position before the file is
    /// beyond its end.
    fn wrapped(&self, position: i128) -> i128 {
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

impl Sequential {
    /// Where the next I/O begins, of whatever size; nothing at the end.
    pub fn position(&mut self) -> Option<u64> {
        let start = i128::from(self.region.offset_bytes);
        let length = i128::from(self.region.length_bytes);
        let file = i128::from(self.region.file_bytes);
        if self.last >= file {
            return None;
        }
        if self.last == start && start > 0 && self.skip_bytes < 0 {
            self.last = file.min(length);
        }
        let mut position = self.last - start;
        if position != 0 && self.skip_bytes != 0 {
            position = self.wrapped(position + i128::from(self.skip_bytes));
        }
        if position < 0 || position >= length {
            return None;
        }
        u64::try_from(position + start).ok()
    }

    /// Where the last I/O ended, or what was said to be that.
    pub fn last_end_bytes(&self) -> u64 {
        u64::try_from(self.last).unwrap_or(0)
    }

    /// Makes a zone's start the front: positions count from there.
    pub fn enter_zone(&mut self, start_bytes: u64) {
        self.region.offset_bytes = start_bytes;
        self.last = start_bytes.into();
    }

    /// Makes this the front, and goes on from where it is.
    pub fn move_front(&mut self, start_bytes: u64) {
        self.region.offset_bytes = start_bytes;
    }

    /// The last I/O ended here, wherever it began.
    pub fn go_on_from(&mut self, end_bytes: u64) {
        self.last = end_bytes.into();
    }
}

impl Iterator for Sequential {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let offset = self.position().filter(|_| self.block_bytes > 0)?;
        let end = offset.checked_add(self.block_bytes)?;
        if end > self.region.file_bytes {
            return None;
        }
        self.go_on_from(end);
        Some(offset)
    }
}

/// A pass over a file with `zonemode=strided`: it goes round, and so never ends.
#[derive(Clone, Debug)]
pub struct Strided {
    region: Region,
    zones: Zones,
    block_bytes: u64,
    zone_start: u64,
    last: u64,
    /// Done in this zone.
    done_bytes: u64,
}

impl Strided {
    /// Of blocks of one size; nothing if the zones are off or empty.
    pub fn new(region: Region, block_bytes: u64, zones: Zones) -> Option<Strided> {
        let has_zones = zones.mode == ZoneMode::Strided && zones.size_bytes > 0;
        (has_zones && block_bytes > 0).then_some(Strided {
            region,
            zones,
            block_bytes,
            zone_start: region.offset_bytes,
            last: region.offset_bytes,
            done_bytes: 0,
        })
    }
}

impl Iterator for Strided {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let range = match self.zones.range_bytes {
            0 => self.zones.size_bytes,
            range => range,
        };
        if self.done_bytes >= self.zones.size_bytes {
            self.done_bytes = 0;
            let stride = range.saturating_add(self.zones.skip_bytes);
            self.zone_start = self.zone_start.saturating_add(stride);
            if self.zone_start >= self.region.file_bytes {
                self.zone_start = self.region.offset_bytes;
            }
            self.last = self.zone_start;
        }
        // A zone that is shorter than what is done in it is walked over again.
        if self.last >= self.zone_start.saturating_add(range) {
            self.last = self.zone_start;
        }
        let offset = self.last;
        let end = offset.checked_add(self.block_bytes)?;
        if end > self.region.file_bytes {
            return None;
        }
        self.last = end;
        self.done_bytes += self.block_bytes;
        Some(offset)
    }
}

#[cfg(test)]
mod tests;
