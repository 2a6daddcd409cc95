//! Offsets within zones that accept only sequential writes (`zonemode=zbd`). They follow
//! `zbd_adjust_block` of fio, as for a file or a device without zones of its own.

use crate::zones::{SharedZones, ZoneTable};
use diskperf_fio::job::{Verification, WritePointers};
use diskperf_fio::offsets::{Region, Sequential};
use diskperf_fio::{Direction, Job, PerDirection};
use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

/// Zones of one file as a clone sees them.
#[derive(Clone, Debug)]
pub(super) struct ZonedFile {
    zones: SharedZones,
    region: Region,
    zone_bytes: u64,
    /// Capacity of a zone: the number of its bytes that can be written.
    capacity_bytes: u64,
    skip_bytes: u64,
    options: WritePointers,
    /// Number of writes after which a write resets its zone. 0 means no such resets.
    writes_per_reset: u32,
    least_bytes: PerDirection<u64>,
    is_random: bool,
    writes: bool,
    verifies: bool,
    /// Zones that this clone opened and has not filled.
    opened: u32,
    /// Whether all requests in flight must complete before the next I/O.
    must_drain: bool,
    /// Whether the limit of open zones was reached by a zone that is being filled. The zone closes
    /// when its last write completes.
    waits_for_close: bool,
}

/// Offset and length of an I/O within its file, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) offset_bytes: u64,
    pub(super) bytes: u64,
}

impl ZonedFile {
    pub(super) fn new(job: &Job, region: Region, zones: SharedZones) -> Self {
        let least = |direction| job.blocks.sizes(direction).bounds().0.max(1);
        let options = job.write_pointers;
        let zone_bytes = job.zones.size_bytes.max(1);
        let writes_per_reset = match options.reset_frequency > 0.0 {
            true => (1.0 / options.reset_frequency).min(f64::from(u32::MAX)) as u32,
            false => 0,
        };
        let mut zoned = Self {
            zones,
            region,
            zone_bytes,
            capacity_bytes: match options.capacity_bytes {
                0 => zone_bytes,
                bytes => bytes.min(zone_bytes),
            },
            skip_bytes: job.zones.skip_bytes,
            options,
            writes_per_reset,
            least_bytes: PerDirection {
                read: least(Direction::Read),
                write: least(Direction::Write),
                trim: least(Direction::Trim),
            },
            is_random: job.pattern.access.is_random(),
            writes: job.pattern.access.does(Direction::Write),
            verifies: job.verify.kind != Verification::None,
            opened: 0,
            must_drain: false,
            waits_for_close: false,
        };
        zoned.begin_pass();
        zoned
    }

    fn table(&self) -> MutexGuard<'_, ZoneTable> {
        self.zones.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the indices of the zones that the job uses.
    fn range(&self) -> Range<u64> {
        let region = &self.region;
        let all = region.file_bytes.div_ceil(self.zone_bytes);
        let end_bytes = region.offset_bytes.saturating_add(region.length_bytes);
        let first = region.offset_bytes / self.zone_bytes;
        first..(end_bytes / self.zone_bytes).min(all).max(first)
    }

    fn has_open_limit(&self) -> bool {
        self.options.open_max > 0 || self.options.job_open_max > 0
    }

    /// Begins a pass. If the job verifies its data, all of its zones are emptied.
    pub(super) fn begin_pass(&mut self) {
        if !self.writes {
            return;
        }
        let (range, writes) = (self.range(), self.writes_per_reset);
        let mut table = self.table();
        table.begin_pass(range.clone(), writes);
        if self.verifies {
            range.for_each(|zone| table.reset(zone));
        }
    }

    /// Reports whether a mixed job must write first, because nothing is written yet that it could
    /// read.
    pub(super) fn writes_first(&self, has_written: bool) -> bool {
        self.writes && !has_written && !self.options.reads_beyond
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
        walk: &mut Sequential,
        (front_bytes, zone_done_bytes): (&mut u64, u64),
    ) -> bool {
        if self.is_random {
            return false;
        }
        let end_bytes = walk.last_end_bytes();
        let zone = end_bytes / self.zone_bytes;
        let within_bytes = end_bytes % self.zone_bytes;
        let is_full = self.capacity_bytes < self.zone_bytes && within_bytes >= self.capacity_bytes;
        if direction == Direction::Write && is_full {
            walk.go_on_from((zone + 1) * self.zone_bytes);
        }
        let is_at_pointer = direction == Direction::Read
            && !self.options.reads_beyond
            && within_bytes >= self.table().written_bytes(zone);
        if self.skip_bytes == 0 || (zone_done_bytes < self.zone_bytes && !is_at_pointer) {
            return false;
        }
        *front_bytes = front_bytes.saturating_add(self.zone_bytes + self.skip_bytes);
        if *front_bytes >= self.region.file_bytes {
            *front_bytes = self.region.offset_bytes;
        }
        true
    }

    /// Moves an I/O to where the zones accept it. Returns `None` if no zone does.
    pub(super) fn place(&mut self, direction: Direction, at: Extent) -> Option<Extent> {
        match direction {
            Direction::Read => self.place_read(at),
            Direction::Write => self.place_write(at),
            Direction::Trim => self.place_trim(at),
        }
    }

    fn place_read(&self, at: Extent) -> Option<Extent> {
        if self.options.reads_beyond {
            return Some(at);
        }
        let least_bytes = self.least_bytes.read;
        let found = at.offset_bytes / self.zone_bytes;
        let within_bytes = at.offset_bytes % self.zone_bytes;
        let table = self.table();
        let written_bytes = table.written_bytes(found);
        let is_behind = !self.is_random && within_bytes + least_bytes > written_bytes;
        let mut at = at;
        let zone = match written_bytes < least_bytes || is_behind {
            true => table.nearest_written(found, self.range(), least_bytes, self.is_random)?,
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

    fn place_write(&mut self, at: Extent) -> Option<Extent> {
        let least_bytes = self.least_bytes.write;
        let found = at.offset_bytes / self.zone_bytes;
        let zone = match self.try_open(found) {
            true => found,
            false => self.other_open_zone(at.offset_bytes)?,
        };
        if self.writes_per_reset > 0 {
            let threshold_bytes = self.region.length_bytes as f64 * self.options.reset_threshold;
            let writes = self.writes_per_reset;
            self.table()
                .count_towards_reset(zone, threshold_bytes, writes);
        }
        if self.table().must_reset(zone) || self.left_bytes(zone) < least_bytes {
            self.must_drain = true;
            self.table().reset(zone);
        }
        let written_bytes = self.table().written_bytes(zone);
        let left_bytes = self.capacity_bytes - written_bytes;
        Some(Extent {
            offset_bytes: zone * self.zone_bytes + written_bytes,
            bytes: at.bytes.min(left_bytes) / least_bytes * least_bytes,
        })
    }

    fn place_trim(&self, at: Extent) -> Option<Extent> {
        let zone = at.offset_bytes / self.zone_bytes;
        let table = self.table();
        if !self.is_random || table.written_bytes(zone) > 0 {
            return Some(at);
        }
        let zone = table.nearest_written(zone, self.range(), 1, true)?;
        Some(Extent {
            offset_bytes: zone * self.zone_bytes,
            ..at
        })
    }

    /// Advances or resets the write pointer of the zone to which an I/O is issued.
    pub(super) fn issue(&mut self, direction: Direction, at: Extent) {
        let zone = at.offset_bytes / self.zone_bytes;
        match direction {
            Direction::Read => {}
            Direction::Trim => self.table().reset(zone),
            Direction::Write => {
                let end_bytes = at.offset_bytes + at.bytes - zone * self.zone_bytes;
                let end_bytes = end_bytes.min(self.capacity_bytes);
                self.table().write(zone, end_bytes);
                if end_bytes < self.capacity_bytes {
                    return;
                }
                // fio closes it when the write is complete.
                self.waits_for_close |= self.is_at_limit();
                let was_open = self.table().close(zone);
                self.opened = self.opened.saturating_sub(u32::from(was_open));
            }
        }
    }

    fn left_bytes(&self, zone: u64) -> u64 {
        let written_bytes = self.table().written_bytes(zone);
        self.capacity_bytes.saturating_sub(written_bytes)
    }

    /// Reports whether all zones of the job are open, or as many as its options permit.
    fn is_at_limit(&self) -> bool {
        let zones = self.range();
        let open_count = self.table().open_zones().len() as u64;
        open_count >= zones.end - zones.start || self.is_at_option_limit()
    }

    fn is_at_option_limit(&self) -> bool {
        let options = &self.options;
        let open_count = self.table().open_zones().len() as u64;
        let of_file = options.open_max > 0 && open_count >= u64::from(options.open_max);
        let of_job = options.job_open_max > 0 && self.opened >= options.job_open_max;
        of_file || of_job
    }

    /// Opens a zone for writes if the limits permit it, and returns whether the zone is usable.
    fn try_open(&mut self, zone: u64) -> bool {
        // A zone that is reset has lost what is to be verified.
        if self.verifies && self.left_bytes(zone) < self.least_bytes.write {
            return false;
        }
        if !self.has_open_limit() {
            return true;
        }
        if self.table().is_open(zone) {
            return self.left_bytes(zone) > 0;
        }
        if self.is_at_option_limit() {
            return false;
        }
        self.must_drain |= std::mem::take(&mut self.waits_for_close);
        self.table().open(zone);
        self.opened += 1;
        true
    }

    /// Returns an open zone for a write whose own zone cannot be opened, as
    /// `zbd_convert_to_open_zone` of fio does.
    fn other_open_zone(&mut self, offset_bytes: u64) -> Option<u64> {
        let zones = self.range();
        let mut zone = match self.has_open_limit() {
            false => (offset_bytes / self.zone_bytes).clamp(zones.start, zones.end - 1),
            true => self.picked_open_zone(offset_bytes, &zones)?,
        };
        if self.left_bytes(zone) >= self.least_bytes.write {
            return Some(zone);
        }
        self.must_drain |= self.is_at_limit();
        for _ in 0..self.region.length_bytes / self.zone_bytes {
            zone = match zone + 1 < zones.end {
                true => zone + 1,
                false => zones.start,
            };
            let is_open = self.table().is_open(zone);
            if !is_open && self.try_open(zone) {
                return Some(zone);
            }
        }
        let open: Vec<u64> = self.table().open_zones().to_vec();
        let mut open = open.into_iter().filter(|zone| zones.contains(zone));
        open.find(|zone| self.left_bytes(*zone) >= self.least_bytes.write)
    }

    /// Returns one of the open zones, chosen by the offset of the write. Returns the first zone of
    /// the job if no zone is open, and `None` if all open zones belong to other jobs.
    fn picked_open_zone(&self, offset_bytes: u64, zones: &Range<u64>) -> Option<u64> {
        let table = self.table();
        let open = table.open_zones();
        if open.is_empty() {
            return Some(zones.start);
        }
        let within_bytes = u128::from(offset_bytes.saturating_sub(self.region.offset_bytes));
        let length_bytes = u128::from(self.region.length_bytes.max(1));
        let first = (within_bytes * open.len() as u128 / length_bytes) as usize;
        let mut open = open.iter().cycle().skip(first).take(open.len());
        open.find(|zone| zones.contains(zone)).copied()
    }
}

#[cfg(test)]
mod tests;
