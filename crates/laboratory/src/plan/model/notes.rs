//! What a reader must know of what programs ask of a disk with firmware: what its cache has,
//! how much of it they reach, and what a shingled one has not come to.

use super::super::title;
use super::ModelPlan;
use diskperf_battery::{Job, Medium};
use diskperf_machine::hardware::disk::device::DiskSpecification;
use diskperf_timeline::units::format_size;

/// A part of a disk below which arms move so little that its figures are not the disk's.
const SHORT_STROKE_SHARE: u64 = 2;

impl ModelPlan {
    /// The disk, where programs run on one by itself.
    fn bare_disk(&self) -> Option<&DiskSpecification> {
        let computer = &self.computers[0];
        let disk = computer.specification.drives[0].disk();
        disk.filter(|_| computer.medium() == Medium::Device)
    }

    /// That reads which are repeated come from a disk's cache, where that holds all of them.
    pub(super) fn note_cache(&mut self) {
        let Some(disk) = self.bare_disk() else {
            return;
        };
        let note = |job: &Job| {
            let again = self.suite.protocol_of(job).repetitions > 1;
            let bytes = self.bytes_read(job, disk).filter(|_| again)?;
            (bytes <= disk.read_cache_bytes()).then(|| {
                format!(
                    "{} reads the same {} in each repetition, and the drive's cache holds {} of what was read: reads come from it, at the rate of its link; more --size or program.area_bytes shows the medium",
                    title(job),
                    format_size(bytes),
                    format_size(disk.read_cache_bytes())
                )
            })
        };
        let notes: Vec<String> = self.suite.jobs().filter_map(note).collect();
        self.notes.extend(notes);
    }

    /// How much of a disk a program of today's reads, if it reads what the cache may have when
    /// it comes again: side by side, or in so few places that there is a segment for each.
    /// Of more places each that is read anew takes the segment of another, however little
    /// was read into it.
    fn bytes_read(&self, job: &Job, disk: &DiskSpecification) -> Option<u64> {
        let values = job.program.parameter_values();
        let reads = values.get("write_share").is_none_or(|share| share != "1");
        let area_bytes = area_bytes(job)?;
        let in_turn = job.program.name() == "sequential";
        let bytes = match job.program.lasts().is_none() {
            true => area_bytes.min(self.moved_bytes(job)),
            false => area_bytes,
        };
        let places = bytes / job.program.call_bytes().max(1);
        let kept = in_turn || places <= u64::from(disk.read_cache.segments);
        (reads && kept).then_some(bytes)
    }

    /// The notes on each program that asks for random places of a bare disk.
    pub(super) fn note_places(&mut self) {
        let Some(disk) = self.bare_disk() else {
            return;
        };
        let room_bytes = self.computers[0].room_bytes(0);
        let random = self
            .suite
            .jobs()
            .filter(|job| job.program.name() == "random");
        let notes: Vec<String> = random
            .flat_map(|job| {
                let reach = reach(job, room_bytes);
                reach.into_iter().chain(self.media_cache(job, disk))
            })
            .collect();
        self.notes.extend(notes);
    }

    /// That a shingled disk takes all writes into its media cache.
    fn media_cache(&self, job: &Job, disk: &DiskSpecification) -> Option<String> {
        let shingled = disk.shingled.as_ref()?;
        let share: f64 = job
            .program
            .parameter_values()
            .get("write_share")?
            .parse()
            .ok()?;
        let call_bytes = job.program.call_bytes().max(1);
        let moved_bytes = self.moved_bytes(job);
        let repetitions = u64::from(self.suite.protocol_of(job).repetitions.max(1)) + 1;
        let calls = moved_bytes / call_bytes * repetitions;
        let writes = (calls as f64 * share) as u64;
        let cache_bytes = shingled
            .cache_sectors
            .saturating_mul(disk.medium_sector_bytes());
        let fits = writes <= u64::from(shingled.map_extents)
            && writes.saturating_mul(call_bytes) <= cache_bytes;
        (writes > 0 && fits && job.program.lasts().is_none()).then(|| {
            format!(
                "{}: all it writes, {writes} places with those of the discarded repetition, fits into the disk's media cache ({}, {} places); more --size shows the bands that are cleaned when that is full",
                title(job),
                format_size(cache_bytes),
                shingled.map_extents
            )
        })
    }
}

/// The area that a program's requests fall into, if it has one.
fn area_bytes(job: &Job) -> Option<u64> {
    job.program
        .parameter_values()
        .get("area_bytes")?
        .parse()
        .ok()
}

/// That random places are of a small part of the disk.
fn reach(job: &Job, room_bytes: u64) -> Option<String> {
    let area_bytes = area_bytes(job)?;
    (area_bytes < room_bytes / SHORT_STROKE_SHARE).then(|| {
        format!(
            "{}: requests fall into {} of {}, between which the arm hardly moves; --set program.area_bytes={room_bytes} is all of the disk",
            title(job),
            format_size(area_bytes),
            format_size(room_bytes)
        )
    })
}
