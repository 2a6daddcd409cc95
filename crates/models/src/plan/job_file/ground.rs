//! Target of a job file: its available space and its limitations.

use super::areas::FileLayout;
use super::{elsewhere, missing};
use crate::model::computer::ModelComputer;
use diskperf_battery::Medium;
use diskperf_fio::job::{Amount, FileAllocation, IoEngine, SyncFlag, ZoneMode};
use diskperf_fio::plan::{self, FileSize, PlannedFile};
use diskperf_fio::{self as fio, Direction, Errors, JobFile, Problem};
use diskperf_timeline::units::format_size;
use std::collections::BTreeMap;

/// Bytes that a run leaves free on a file system for other writers.
pub const RESERVE_BYTES: u64 = 16 << 20;

/// Target that the jobs of a job file run on.
pub struct JobStorage {
    /// Length of the target in bytes; `None` if it has no end.
    pub capacity_bytes: Option<u64>,
    /// Bytes that files of a directory may use, for jobs that fill it.
    pub free_bytes: Option<u64>,
    /// Whether the target is storage of this machine and no model.
    pub is_host: bool,
    /// Whether the target is a user's file, which keeps its length.
    pub is_file: bool,
    /// Whether a target is a block device with zones of its own.
    pub is_zoned: bool,
    /// Whether O_DIRECT is used, if jobs cannot choose it themselves.
    pub has_direct_io: Option<bool>,
    /// Whether the kernel of the target has ftruncate.
    pub has_ftruncate: bool,
}

/// Length of an unknown target, in bytes: larger than any drive, but small enough that the lengths
/// of many files can be added.
const UNKNOWN_CAPACITY_BYTES: u64 = 1 << 50;

impl JobStorage {
    /// Creates the target for a modelled computer. File access goes through its kernel's buffer
    /// cache; bare drives have no cache.
    pub fn for_computer(computer: &ModelComputer) -> Self {
        let by_itself = computer.medium() != Medium::Directory;
        let rooms = (0..computer.configured_drive_count()).map(|drive| computer.free_bytes(drive));
        let room_bytes = rooms.min();
        Self {
            capacity_bytes: room_bytes.filter(|_| by_itself),
            free_bytes: room_bytes.filter(|_| !by_itself),
            is_host: false,
            is_file: false,
            is_zoned: false,
            has_direct_io: Some(by_itself),
            has_ftruncate: matches!(computer.filesystem_kind_and_block(), Some(("ffs", _))),
        }
    }

    /// Creates the target for an unspecified modelled computer, on which jobs of any size fit.
    pub fn for_any_model() -> Self {
        Self {
            capacity_bytes: Some(UNKNOWN_CAPACITY_BYTES),
            free_bytes: None,
            is_host: false,
            is_file: false,
            is_zoned: false,
            has_direct_io: None,
            has_ftruncate: true,
        }
    }

    /// Verifies that the target supports everything that a job needs.
    pub(super) fn check_job(&self, job: &fio::JobDefinition) -> Result<(), Errors> {
        if !job.files.may_create && self.capacity_bytes.is_none() && job.engine.engine.moves_data()
        {
            let label = "files are made in a directory where there are none";
            let help = "remove it, or name a device or a file that is there by --on";
            let title = "allow_file_create=0";
            return Err(Errors::from(job.option_error(
                "allow_file_create",
                title,
                label,
                help,
            )));
        }
        if self.is_zoned && job.zones.mode == ZoneMode::WritePointers {
            let label = "the write pointers of its zones are not read, and no zone is reset";
            let help = "name a file or a device without zones by --on, or model the drive";
            let title = "zonemode=zbd on a zoned block device";
            return Err(Errors::from(
                job.option_error("zonemode", title, label, help),
            ));
        }
        if self.is_host {
            return Errors::fail_if_any(elsewhere::list_storage_problems(job));
        }
        if self.has_direct_io.is_none() {
            return Ok(());
        }
        let discards = !job.engine.engine.acts_on_names();
        if discards && job.pattern.access.includes(Direction::Trim) {
            let problem = Problem::error("no modelled kernel has discards")
                .at(job.option_place("rw"), "this discards")
                .help("give another `rw`, or a real block device");
            return Err(problem.into());
        }
        if let Some(problem) = missing::describe_missing_call(job, self.has_ftruncate) {
            return Err(problem.into());
        }
        Ok(())
    }

    /// Sets the free space as the size of jobs that fill a directory. Returns notes on these jobs.
    pub(super) fn fill_sizes(&self, file: &mut JobFile) -> Vec<String> {
        let Some(free_bytes) = self.free_bytes else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        for job in &mut file.jobs {
            if !job.files.fills_device || job.files.size_bytes.is_some() {
                continue;
            }
            let bytes = free_bytes / u64::from(job.order.clone_count);
            let bytes = bytes - bytes % job.block_bytes_max();
            let size_bytes = job.target.size.and_then(Amount::bytes);
            if size_bytes.is_some_and(|size_bytes| size_bytes <= bytes) {
                continue;
            }
            job.target.size = Some(Amount::Bytes(bytes));
            let left = match self.has_direct_io {
                None => format!(
                    ", but for {} that others are left",
                    format_size(RESERVE_BYTES)
                ),
                Some(_) => String::new(),
            };
            notes.push(format!(
                "[{}]: fill_device: {} for each clone, all that is free{left}",
                job.name,
                format_size(bytes)
            ));
        }
        notes
    }

    /// Adapts a job to the target. Returns it with notes on changed options.
    pub(super) fn fit_job(&self, job: &fio::JobDefinition) -> (fio::JobDefinition, Vec<String>) {
        let mut fitted = job.clone();
        if self.is_host {
            let notes = elsewhere::list_storage_notes(job).into_iter();
            return (fitted, notes.chain(self.describe_file_trims(job)).collect());
        }
        let Some(direct) = self.has_direct_io else {
            return (fitted, Vec::new());
        };
        let mut notes = Vec::new();
        if job.data.duplicate_percent > 0 {
            notes.push("dedupe_percentage changes nothing: a modelled drive has no data");
        }
        if direct != job.engine.is_direct {
            fitted.engine.is_direct = direct;
            notes.push(match direct {
                true => "direct=1, since programs have the drive by itself",
                false => "direct=0, since the kernel cannot bypass its buffer cache",
            });
        }
        if job.sync.open_flag != SyncFlag::None && !direct {
            fitted.sync.open_flag = SyncFlag::None;
            notes.push("sync=none, since the kernel opens no file so");
        }
        if matches!(
            job.files.allocation,
            FileAllocation::Native | FileAllocation::Posix | FileAllocation::KeepSize
        ) {
            fitted.files.allocation = FileAllocation::Truncate;
            if job.has_option("fallocate") {
                notes.push("fallocate=truncate, since the kernel has no such call");
            }
        }
        let notes = notes.into_iter().map(str::to_owned);
        let notes = notes.chain(elsewhere::list_model_notes(job)).collect();
        (fitted, notes)
    }

    /// Returns a note if a job trims files of a directory by its engine's discards.
    fn describe_file_trims(&self, job: &fio::JobDefinition) -> Option<String> {
        let trims = job.pattern.access.includes(Direction::Trim) && self.capacity_bytes.is_none();
        (trims && job.engine.engine != IoEngine::Falloc).then(|| {
            "a trim frees blocks of its file; fio trims devices alone, and ends at the first trim of a file"
                .to_owned()
        })
    }

    /// Returns a note if a job reaches beyond the end of its target or area.
    pub(super) fn shorten_sizes(
        &self,
        job: &fio::JobDefinition,
        existing: &BTreeMap<String, FileSize>,
    ) -> Option<String> {
        let room_bytes = self.capacity_bytes?;
        let mut files = (0..job.order.clone_count)
            .filter_map(|clone| plan::plan_files(job, clone, existing).ok())
            .flatten();
        let reaches_beyond =
            |file: &PlannedFile| file.region.used_bytes() < file.region.length_bytes;
        let file = files.find(reaches_beyond)?;
        let (region, end_bytes) = (file.region, file.region.file_bytes);
        if end_bytes < room_bytes {
            return Some(format!(
                "{} ends at byte {end_bytes} of its area: nothing is done beyond it, as fio does nothing beyond the end of a device",
                file.path
            ));
        }
        Some(match (self.is_file, job.pattern.access.is_random()) {
            (true, _) => {
                format!("the file stays {room_bytes} bytes long, where fio would make it longer")
            }
            (false, true) if region.offset_bytes > 0 => format!(
                "the device ends at byte {room_bytes}, and what is drawn too: fio 3.33 gives up at the first I/O beyond it"
            ),
            (false, _) => format!(
                "the device ends at byte {room_bytes}: as with fio, nothing is done beyond it"
            ),
        })
    }

    /// Returns the existing files by their names in a job: areas of the target, or the whole
    /// target.
    pub(super) fn list_existing_files(
        &self,
        job: &fio::JobDefinition,
        layout: &FileLayout,
    ) -> BTreeMap<String, FileSize> {
        let Some(room_bytes) = self.capacity_bytes else {
            return BTreeMap::new();
        };
        let paths = (0..job.order.clone_count).flat_map(|clone| plan::file_paths(job, clone));
        let length = |path: &str| {
            layout
                .find_area(path)
                .map_or(room_bytes, |area| area.length_bytes)
        };
        paths
            .map(|path| (length(&path), path))
            .map(|(bytes, path)| (path, FileSize::Fixed(bytes)))
            .collect()
    }
}
