//! Notes on the use of a disk with firmware by programs: reads that its cache may answer, a small
//! part of its area, or a shingled disk that never has to clean.

use super::super::area::CACHE_SIZE_FACTOR;
use super::super::format_title;
use super::ModelPlan;
use diskperf_battery::{Medium, SuiteJob};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_fio::{Direction, JobDefinition as Section};
use diskperf_timeline::units::format_size;

/// Divisor of the disk's size. In an area below this part, the actuator moves so little that the
/// figures are not those of the disk.
const SHORT_STROKE_SHARE: u64 = 2;

struct ProgramReads {
    is_sequential: bool,
    range_bytes: u64,
    total_bytes: u64,
}

impl ModelPlan {
    /// Returns the disk, if programs run on a bare disk with firmware.
    fn only_disk(&self) -> Option<&DiskSpecification> {
        let computer = &self.computers[0];
        let disk = computer.specification.drives[0].disk_specification();
        disk.filter(|_| computer.medium() == Medium::Device)
    }

    /// Adds notes on repeated reads that the disk's cache can answer wholly or in good part.
    pub fn add_cache_notes(&mut self) {
        let Some(disk) = self.only_disk() else {
            return;
        };
        let notes = self
            .suite
            .iter_jobs()
            .filter_map(|job| self.describe_cached_reads(job, disk));
        let notes: Vec<String> = notes.collect();
        self.notes.extend(notes);
    }

    fn describe_cached_reads(&self, job: &SuiteJob, disk: &DiskSpecification) -> Option<String> {
        let bytes = self.total_read_bytes(job, disk)?;
        let cache_bytes = disk.read_cache_bytes();
        let which = match bytes <= cache_bytes {
            true => "reads",
            false if bytes < CACHE_SIZE_FACTOR.saturating_mul(cache_bytes) => "some reads",
            false => return None,
        };
        let more = match job.program.fio_job() {
            Some(_) => "a larger size= or filesize=",
            None if area_bytes_of_job(job).is_some_and(|area| area < self.moved_bytes(job)) => {
                "a larger program.area_bytes"
            }
            None => "more --size or program.area_bytes",
        };
        Some(format!(
            "{} reads the same {} more than once, and the drive's cache holds {} of what was read: {which} may come from it, at the rate of its link; {more} shows the medium",
            format_title(job),
            format_size(bytes),
            format_size(cache_bytes)
        ))
    }

    /// Returns the bytes that a program reads more than once, if the cache may still have them at
    /// the next read. That is so for sequential reads, for as few places as the cache has segments,
    /// or for a range within one segment. With more places, each new read takes the segment of
    /// another, however little that holds.
    fn total_read_bytes(&self, job: &SuiteJob, disk: &DiskSpecification) -> Option<u64> {
        let reads = match job.program.fio_job() {
            Some(section) => self.reads_of_section(job, section),
            None => self.reads_of_program(job),
        }?;
        let cache = &disk.read_cache;
        let places = reads.total_bytes / job.program.call_bytes().max(1);
        let segment_bytes =
            u64::from(cache.segment_sectors).saturating_mul(disk.medium_sector_bytes());
        let kept = reads.is_sequential
            || places <= u64::from(cache.segments)
            || reads.range_bytes <= segment_bytes;
        kept.then_some(reads.total_bytes)
    }

    fn reads_of_program(&self, job: &SuiteJob) -> Option<ProgramReads> {
        let program = &job.program;
        let values = program.parameter_values();
        let reads = values.get("write_share").is_none_or(|share| share != "1");
        let range_bytes = area_bytes_of_job(job).filter(|_| reads)?;
        self.repeated_reads(job, range_bytes, program.name() == "sequential")
    }

    fn reads_of_section(&self, job: &SuiteJob, section: &Section) -> Option<ProgramReads> {
        let access = section.pattern.access;
        let reads = access.includes(Direction::Read);
        let range_bytes = job.program.addressed_range_bytes().filter(|_| reads)?;
        self.repeated_reads(job, range_bytes, !access.is_random())
    }

    /// Returns the part of a range that a job reads more than once; `None` if there is none.
    fn repeated_reads(
        &self,
        job: &SuiteJob,
        range_bytes: u64,
        in_turn: bool,
    ) -> Option<ProgramReads> {
        let moved_bytes = self.moved_bytes(job);
        let lasts = job.program.duration_max().is_some();
        let repeated = self.suite.protocol_of_job(job).repetition_count > 1;
        (lasts || repeated || moved_bytes > range_bytes).then(|| ProgramReads {
            is_sequential: in_turn,
            range_bytes,
            total_bytes: match lasts {
                true => range_bytes,
                false => range_bytes.min(moved_bytes),
            },
        })
    }

    /// Adds notes on each program that makes random requests to a bare disk.
    pub fn add_short_stroke_notes(&mut self) {
        let Some(disk) = self.only_disk() else {
            return;
        };
        let room_bytes = self.computers[0].free_bytes(0);
        let random = self
            .suite
            .iter_jobs()
            .filter(|job| job.program.name() == "random");
        let notes: Vec<String> = random
            .flat_map(|job| {
                let reach = describe_reach(job, room_bytes);
                reach
                    .into_iter()
                    .chain(self.describe_media_cache(job, disk))
            })
            .collect();
        self.notes.extend(notes);
    }

    /// Returns a note if a shingled disk takes all writes of a job into its media cache.
    fn describe_media_cache(&self, job: &SuiteJob, disk: &DiskSpecification) -> Option<String> {
        let shingled = disk.shingled.as_ref()?;
        let share: f64 = job
            .program
            .parameter_values()
            .get("write_share")?
            .parse()
            .ok()?;
        let call_bytes = job.program.call_bytes().max(1);
        let moved_bytes = self.moved_bytes(job);
        // Each repetition writes to the same places.
        let writes = (moved_bytes as f64 / call_bytes as f64 * share) as u64;
        let cache_bytes = shingled
            .media_cache_sectors
            .saturating_mul(disk.medium_sector_bytes());
        let fits = writes <= u64::from(shingled.map_extents_max)
            && writes.saturating_mul(call_bytes) <= cache_bytes;
        (writes > 0 && fits && job.program.duration_max().is_none()).then(|| {
            format!(
                "{}: all its writes, {writes} extents in each repetition, fit into the disk's media cache ({}, {} extents); a larger --size fills the cache and shows how the disk cleans bands",
                format_title(job),
                format_size(cache_bytes),
                shingled.map_extents_max
            )
        })
    }
}

fn area_bytes_of_job(job: &SuiteJob) -> Option<u64> {
    job.program
        .parameter_values()
        .get("area_bytes")?
        .parse()
        .ok()
}

fn describe_reach(job: &SuiteJob, room_bytes: u64) -> Option<String> {
    let area_bytes = area_bytes_of_job(job)?;
    (area_bytes < room_bytes / SHORT_STROKE_SHARE).then(|| {
        format!(
            "{}: requests fall into {} of {}, between which the arm hardly moves; --set program.area_bytes={room_bytes} is all of the disk",
            format_title(job),
            format_size(area_bytes),
            format_size(room_bytes)
        )
    })
}
