//! Offsets within zones that accept only sequential writes (`zonemode=zbd`). They follow
//! `zbd_adjust_block` of fio, as for a file or a device without zones of its own.

use crate::zones::{SharedZones, ZoneTable};
use diskperf_fio::job::{Verification, WritePointers};
use diskperf_fio::offsets::{FileRegion, SequentialOffsets};
use diskperf_fio::{Direction, JobDefinition, PerDirection};
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

/// Zones of one file as a clone sees them.
#[derive(Clone, Debug)]
pub(super) struct ZonedFile {
    zone_table: SharedZones,
    file_region: FileRegion,
    zone_bytes: u64,
    zone_capacity_bytes: u64,
    skip_bytes: u64,
    write_pointer_options: WritePointers,
    /// Number of writes after which a write resets its zone. 0 means no such resets.
    writes_per_reset: u32,
    block_bytes_min: PerDirection<u64>,
    is_random: bool,
    writes_zones: bool,
    verifies_data: bool,
    /// Zones that this clone opened and has not filled.
    opened_zone_count: u32,
    /// Whether all requests in flight must complete before the next I/O.
    must_drain: bool,
    /// Whether the limit of open zones was reached by a zone that is being filled. The zone closes
    /// when its last write completes.
    waits_for_zone_close: bool,
}

/// Offset and length of an I/O within its file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IoExtent {
    pub(super) offset_bytes: u64,
    pub(super) bytes: u64,
}

impl ZonedFile {
    pub(super) fn new(job: &JobDefinition, region: FileRegion, zones: SharedZones) -> Self {
        let least = |direction| job.blocks.choice(direction).bounds_bytes().0.max(1);
        let options = job.write_pointers;
        let zone_bytes = job.zones.size_bytes.max(1);
        let writes_per_reset = match options.reset_rate > 0.0 {
            true => (1.0 / options.reset_rate).min(f64::from(u32::MAX)) as u32,
            false => 0,
        };
        let mut zoned = Self {
            zone_table: zones,
            file_region: region,
            zone_bytes,
            zone_capacity_bytes: match options.capacity_bytes {
                0 => zone_bytes,
                bytes => bytes.min(zone_bytes),
            },
            skip_bytes: job.zones.skip_bytes,
            write_pointer_options: options,
            writes_per_reset,
            block_bytes_min: PerDirection {
                read: least(Direction::Read),
                write: least(Direction::Write),
                trim: least(Direction::Trim),
            },
            is_random: job.pattern.access.is_random(),
            writes_zones: job.pattern.access.includes(Direction::Write),
            verifies_data: job.verify.kind != Verification::None,
            opened_zone_count: 0,
            must_drain: false,
            waits_for_zone_close: false,
        };
        zoned.begin_pass();
        zoned
    }

    fn lock_zone_table(&self) -> MutexGuard<'_, ZoneTable> {
        self.zone_table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the indices of the zones that the job uses.
    fn zone_range(&self) -> Range<u64> {
        let region = &self.file_region;
        let all = region.file_bytes.div_ceil(self.zone_bytes);
        let end_bytes = region.offset_bytes.saturating_add(region.length_bytes);
        let first = region.offset_bytes / self.zone_bytes;
        first..(end_bytes / self.zone_bytes).min(all).max(first)
    }

    fn has_open_limit(&self) -> bool {
        self.write_pointer_options.open_zones_max > 0
            || self.write_pointer_options.job_open_zones_max > 0
    }

    /// Begins a pass. If the job verifies its data, all of its zones are emptied.
    pub(super) fn begin_pass(&mut self) {
        if !self.writes_zones {
            return;
        }
        let (range, writes) = (self.zone_range(), self.writes_per_reset);
        let mut table = self.lock_zone_table();
        table.begin_pass(range.clone(), writes);
        if self.verifies_data {
            range.for_each(|zone| table.reset_zone(zone));
        }
    }

    /// Reports whether a mixed job must write first, because nothing is written yet that it could
    /// read.
    pub(super) fn must_write_first(&self, has_written: bool) -> bool {
        self.writes_zones && !has_written && !self.write_pointer_options.may_read_beyond
    }

    /// Reports whether all requests in flight must complete before the last placed I/O, and clears
    /// the mark.
    pub(super) fn take_drain(&mut self) -> bool {
        std::mem::take(&mut self.must_drain)
    }

    /// Moves a sequential walk past the capacity of a full zone, or past the zones to skip. Returns
    /// whether zones were skipped.
    pub(super) fn enter_zone(
        &self,
        direction: Direction,
        walk: &mut SequentialOffsets,
        (front_bytes, zone_done_bytes): (&mut u64, u64),
    ) -> bool {
        if self.is_random {
            return false;
        }
        let end_bytes = walk.last_end_bytes();
        let zone = end_bytes / self.zone_bytes;
        let within_bytes = end_bytes % self.zone_bytes;
        let is_full =
            self.zone_capacity_bytes < self.zone_bytes && within_bytes >= self.zone_capacity_bytes;
        if direction == Direction::Write && is_full {
            walk.continue_from((zone + 1) * self.zone_bytes);
        }
        let is_at_pointer = direction == Direction::Read
            && !self.write_pointer_options.may_read_beyond
            && within_bytes >= self.lock_zone_table().written_bytes(zone);
        if self.skip_bytes == 0 || (zone_done_bytes < self.zone_bytes && !is_at_pointer) {
            return false;
        }
        *front_bytes = front_bytes.saturating_add(self.zone_bytes + self.skip_bytes);
        if *front_bytes >= self.file_region.file_bytes {
            *front_bytes = self.file_region.offset_bytes;
        }
        true
    }

    /// Moves an I/O to where the zones accept it. Returns `None` if no zone does.
    pub(super) fn place_io(&mut self, direction: Direction, at: IoExtent) -> Option<IoExtent> {
        match direction {
            Direction::Read => self.place_read(at),
            Direction::Write => self.place_write(at),
            Direction::Trim => self.place_trim(at),
        }
    }

    fn place_read(&self, at: IoExtent) -> Option<IoExtent> {
        if self.write_pointer_options.may_read_beyond {
            return Some(at);
        }
        let least_bytes = self.block_bytes_min.read;
        let found = at.offset_bytes / self.zone_bytes;
        let within_bytes = at.offset_bytes % self.zone_bytes;
        let table = self.lock_zone_table();
        let written_bytes = table.written_bytes(found);
        let is_behind = !self.is_random && within_bytes + least_bytes > written_bytes;
        let mut at = at;
        let zone = match written_bytes < least_bytes || is_behind {
            true => table.nearest_written(found, self.zone_range(), least_bytes, self.is_random)?,
            false => found,
        };
        let start_bytes = zone * self.zone_bytes;
        let written_bytes = table.written_bytes(zone);
        if zone != found && !self.is_random {
            at.offset_bytes = start_bytes;
        }
        if written_bytes <= at.bytes {
            at.offset_bytes = start_bytes;
        } else if self.is_random {
            let room_bytes = written_bytes - at.bytes;
            let block = within_bytes % room_bytes / least_bytes;
            at.offset_bytes = start_bytes + block * least_bytes;
        }
        let left_bytes = start_bytes + written_bytes - at.offset_bytes;
        at.bytes = at.bytes.min(left_bytes) / least_bytes * least_bytes;
        (at.bytes > 0).then_some(at)
    }

    fn place_write(&mut self, at: IoExtent) -> Option<IoExtent> {
        let least_bytes = self.block_bytes_min.write;
        let found = at.offset_bytes / self.zone_bytes;
        let zone = match self.try_open_zone(found) {
            true => found,
            false => self.other_open_zone(at.offset_bytes)?,
        };
        if self.writes_per_reset > 0 {
            let threshold_bytes =
                self.file_region.length_bytes as f64 * self.write_pointer_options.reset_threshold;
            let writes = self.writes_per_reset;
            self.lock_zone_table()
                .count_towards_reset(zone, threshold_bytes, writes);
        }
        if self.lock_zone_table().must_reset(zone) || self.zone_bytes_left(zone) < least_bytes {
            self.must_drain = true;
            self.lock_zone_table().reset_zone(zone);
        }
        let written_bytes = self.lock_zone_table().written_bytes(zone);
        let left_bytes = self.zone_capacity_bytes - written_bytes;
        Some(IoExtent {
            offset_bytes: zone * self.zone_bytes + written_bytes,
            bytes: at.bytes.min(left_bytes) / least_bytes * least_bytes,
        })
    }

    fn place_trim(&self, at: IoExtent) -> Option<IoExtent> {
        let zone = at.offset_bytes / self.zone_bytes;
        let table = self.lock_zone_table();
        if !self.is_random || table.written_bytes(zone) > 0 {
            return Some(at);
        }
        let zone = table.nearest_written(zone, self.zone_range(), 1, true)?;
        Some(IoExtent {
            offset_bytes: zone * self.zone_bytes,
            ..at
        })
    }

    /// Advances or resets the write pointer of the zone to which an I/O is issued.
    pub(super) fn record_issue(&mut self, direction: Direction, at: IoExtent) {
        let zone = at.offset_bytes / self.zone_bytes;
        match direction {
            Direction::Read => {}
            Direction::Trim => self.lock_zone_table().reset_zone(zone),
            Direction::Write => {
                let end_bytes = at.offset_bytes + at.bytes - zone * self.zone_bytes;
                let end_bytes = end_bytes.min(self.zone_capacity_bytes);
                self.lock_zone_table().record_write(zone, end_bytes);
                if end_bytes < self.zone_capacity_bytes {
                    return;
                }
                // fio closes it when the write is complete.
                self.waits_for_zone_close |= self.is_at_open_limit();
                let was_open = self.lock_zone_table().close_zone(zone);
                self.opened_zone_count = self.opened_zone_count.saturating_sub(u32::from(was_open));
            }
        }
    }

    fn zone_bytes_left(&self, zone: u64) -> u64 {
        let written_bytes = self.lock_zone_table().written_bytes(zone);
        self.zone_capacity_bytes.saturating_sub(written_bytes)
    }

    /// Reports whether all zones of the job are open, or as many as its options permit.
    fn is_at_open_limit(&self) -> bool {
        let zones = self.zone_range();
        let open_count = self.lock_zone_table().open_zone_indices().len() as u64;
        open_count >= zones.end - zones.start || self.is_at_option_open_limit()
    }

    fn is_at_option_open_limit(&self) -> bool {
        let options = &self.write_pointer_options;
        let open_count = self.lock_zone_table().open_zone_indices().len() as u64;
        let of_file = options.open_zones_max > 0 && open_count >= u64::from(options.open_zones_max);
        let of_job =
            options.job_open_zones_max > 0 && self.opened_zone_count >= options.job_open_zones_max;
        of_file || of_job
    }

    /// Opens a zone for writes if the limits permit it, and returns whether the zone is usable.
    fn try_open_zone(&mut self, zone: u64) -> bool {
        // A zone that is reset has lost what is to be verified.
        if self.verifies_data && self.zone_bytes_left(zone) < self.block_bytes_min.write {
            return false;
        }
        if !self.has_open_limit() {
            return true;
        }
        if self.lock_zone_table().is_open(zone) {
            return self.zone_bytes_left(zone) > 0;
        }
        if self.is_at_option_open_limit() {
            return false;
        }
        self.must_drain |= std::mem::take(&mut self.waits_for_zone_close);
        self.lock_zone_table().open_zone(zone);
        self.opened_zone_count += 1;
        true
    }

    /// Returns an open zone for a write whose own zone cannot be opened, as
    /// `zbd_convert_to_open_zone` of fio does.
    fn other_open_zone(&mut self, offset_bytes: u64) -> Option<u64> {
        let zones = self.zone_range();
        let mut zone = match self.has_open_limit() {
            false => (offset_bytes / self.zone_bytes).clamp(zones.start, zones.end - 1),
            true => self.pick_open_zone(offset_bytes, &zones)?,
        };
        if self.zone_bytes_left(zone) >= self.block_bytes_min.write {
            return Some(zone);
        }
        self.must_drain |= self.is_at_open_limit();
        for _ in 0..self.file_region.length_bytes / self.zone_bytes {
            zone = match zone + 1 < zones.end {
                true => zone + 1,
                false => zones.start,
            };
            let is_open = self.lock_zone_table().is_open(zone);
            if !is_open && self.try_open_zone(zone) {
                return Some(zone);
            }
        }
        let open: Vec<u64> = self.lock_zone_table().open_zone_indices().to_vec();
        let mut open = open.into_iter().filter(|zone| zones.contains(zone));
        open.find(|zone| self.zone_bytes_left(*zone) >= self.block_bytes_min.write)
    }

    /// Returns one of the open zones, chosen by the offset of the write. Returns the first zone of
    /// the job if no zone is open, and `None` if all open zones belong to other jobs.
    fn pick_open_zone(&self, offset_bytes: u64, zones: &Range<u64>) -> Option<u64> {
        let table = self.lock_zone_table();
        let open = table.open_zone_indices();
        if open.is_empty() {
            return Some(zones.start);
        }
        let within_bytes = u128::from(offset_bytes.saturating_sub(self.file_region.offset_bytes));
        let length_bytes = u128::from(self.file_region.length_bytes.max(1));
        let first = (within_bytes * open.len() as u128 / length_bytes) as usize;
        let mut open = open.iter().cycle().skip(first).take(open.len());
        open.find(|zone| zones.contains(zone)).copied()
    }
}

#[cfg(test)]
mod tests;
