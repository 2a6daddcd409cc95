//! What a reader must know of what programs ask of a disk with firmware: how much of it they
//! reach, and what a shingled one has not come to.

use super::super::title;
use super::ModelPlan;
use diskperf_battery::{Job, Medium};
use diskperf_machine::hardware::disk::device::DiskSpecification;
use diskperf_timeline::units::format_size;

/// A part of a disk below which arms move so little that its figures are not the disk's.
const SHORT_STROKE_SHARE: u64 = 2;

impl ModelPlan {
    /// The notes on each program that asks for random places of a bare disk.
    pub(super) fn note_places(&mut self) {
        let computer = &self.computers[0];
        let drive = &computer.specification.drives[0];
        let (Some(disk), Medium::Device) = (drive.disk(), computer.medium()) else {
            return;
        };
        let room_bytes = computer.room_bytes(0);
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
        let moved_bytes = self.size(job).saturating_mul(job.program.workers().into());
        let repetitions = u64::from(self.suite.protocol_of(job).repetitions.max(1)) + 1;
        let calls = moved_bytes / call_bytes * repetitions;
        let writes = (calls as f64 * share) as u64;
        let sector_bytes = u64::from(disk.sector_bytes) * u64::from(disk.sectors_per_medium_sector);
        let cache_bytes = shingled.cache_sectors.saturating_mul(sector_bytes);
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

/// That random places are of a small part of the disk.
fn reach(job: &Job, room_bytes: u64) -> Option<String> {
    let area_bytes: u64 = job
        .program
        .parameter_values()
        .get("area_bytes")?
        .parse()
        .ok()?;
    (area_bytes < room_bytes / SHORT_STROKE_SHARE).then(|| {
        format!(
            "{}: requests fall into {} of {}, between which the arm hardly moves; --set program.area_bytes={room_bytes} is all of the disk",
            title(job),
            format_size(area_bytes),
            format_size(room_bytes)
        )
    })
}
