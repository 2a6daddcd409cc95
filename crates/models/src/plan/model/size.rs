//! Size of the programs on a modelled computer, and its fit to the available space.

use super::super::{area, format_title, total_file_bytes};
use super::ModelPlan;
use crate::error::LaboratoryError;
use crate::model::computer::ModelComputer;
use diskperf_battery::{Medium, SuiteJob};
use diskperf_blocktrace::transform::SectorRounding;
use diskperf_timeline::units::{MIB, format_size};
use diskperf_timeline::{CacheMode, Experiment, Workload};

/// Default bytes that every program transfers: the size of 1983. Waiting costs nothing in virtual
/// time.
const MODEL_FILE_BYTES: u64 = 8 * MIB;
/// Default bytes that every program transfers on Minix: the size in Kirkendall 1989.
const MINIX_FILE_BYTES: u64 = 2 * MIB;

const SECTOR_BYTES_MIN: u64 = 512;

/// Maximum number of times that a program's own default size is halved. It is then about that of
/// the other programs.
const HALVINGS_MAX: u32 = 3;

/// Returns the default bytes that programs transfer on this computer.
pub(super) fn default_file_bytes(computer: &ModelComputer) -> u64 {
    if computer.is_minix() {
        MINIX_FILE_BYTES
    } else {
        MODEL_FILE_BYTES
    }
}

impl ModelPlan {
    /// Returns the size of a job in bytes: the requested size, in whole calls.
    pub fn file_bytes(&self, job: &SuiteJob) -> u64 {
        if let Some(size_bytes) = job.own_size_bytes() {
            return size_bytes;
        }
        let call_bytes = job.program.call_bytes();
        if let (Some(halved), Some(usual_bytes)) =
            (self.size_halvings, job.program.default_size_bytes())
        {
            return usual_bytes >> halved;
        }
        if self.rounds_to_calls || self.size_bytes == default_file_bytes(&self.computers[0]) {
            return self.size_bytes.max(call_bytes) / call_bytes * call_bytes;
        }
        self.size_bytes
    }

    /// Makes the streams of this experiment's modern suite transfer enough to exceed a cache of
    /// this size. The plan's own experiment has steps in place of the suite.
    pub fn extend_streams(&mut self, cache_bytes: u64, experiment: &Experiment) {
        area::equalize_stream_sizes(&mut self.suite, experiment, cache_bytes);
    }

    /// Returns the bytes that all workers of a job transfer.
    pub fn moved_bytes(&self, job: &SuiteJob) -> u64 {
        self.file_bytes(job)
            .saturating_mul(job.program.worker_count().into())
    }

    /// Reduces the size of every program to the given fraction, in whole calls.
    pub fn divide_sizes(&mut self, part: u64) {
        if part == 1 {
            return;
        }
        let sizes: Vec<u64> = self
            .suite
            .iter_jobs()
            .map(|job| self.file_bytes(job))
            .collect();
        // What moves its area so many times makes the drive what the others measure.
        let jobs = self.suite.iter_jobs_mut().zip(sizes);
        for (job, size_bytes) in jobs.filter(|(job, _)| job.area_pass_count.is_none()) {
            let call_bytes = job.program.call_bytes();
            let bytes = (size_bytes / part).max(call_bytes) / call_bytes * call_bytes;
            job.size_bytes = Some(bytes);
        }
    }

    /// Halves the sizes until the files fit on every drive, since a partition may be smaller than
    /// the default sizes. Programs' own default sizes are halved first.
    pub fn shrink_to_room(&mut self) {
        let mut programs = self.suite.iter_programs();
        let usual = programs.any(|program| program.default_size_bytes().is_some());
        let mut shrunk = false;
        if usual {
            while self.size_halvings < Some(HALVINGS_MAX) && self.check_sizes().is_err() {
                self.size_halvings = self.size_halvings.map(|halved| halved + 1);
                shrunk = true;
            }
        }
        while self.size_bytes > MIB && self.check_sizes().is_err() {
            self.size_bytes /= 2;
            shrunk = true;
        }
        if !shrunk {
            return;
        }
        let mut sizes: Vec<u64> = self
            .suite
            .iter_jobs()
            .map(|job| self.file_bytes(job))
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        let sizes: Vec<String> = sizes.into_iter().map(format_size).collect();
        self.notes.push(format!(
            "the programs move {} each, because more does not fit on a drive of {}",
            sizes.join(" or "),
            self.target
        ));
    }

    /// Verifies that programs on a bare drive transfer whole sectors, also if the drive has a file
    /// system as well.
    pub fn check_sector_multiples(&self) -> Result<(), LaboratoryError> {
        let computer = &self.computers[0];
        let unit_bytes = |job: &SuiteJob| {
            let program = &job.program;
            let direct = program.cache_mode_for(self.experiment.cache_mode) == CacheMode::Direct;
            let moves_sectors = match computer.medium() {
                Medium::Directory if !computer.is_minix() => return program.dump_unit_bytes(),
                Medium::Directory => program.opens_device_by_name() && direct,
                Medium::Device | Medium::File => program.accesses_target(),
            };
            moves_sectors.then(|| program.unit_bytes(self.file_bytes(job)))
        };
        let sector_bytes = u64::from(
            computer.specification.volumes[0]
                .partition
                .disk_label
                .sector_bytes,
        );
        for job in self.suite.iter_jobs() {
            let Some(unit) = unit_bytes(job) else {
                continue;
            };
            if !unit.is_multiple_of(sector_bytes) {
                let what = match &self.experiment.workload {
                    // Addresses count as well as lengths.
                    Workload::Replay(_) => format!(
                        "its requests begin or end between sectors of {sector_bytes} bytes (all of them are at multiples of {unit} alone), and whole sectors"
                    ),
                    _ => format!(
                        "its calls of {unit} bytes are not whole sectors of {sector_bytes}, which"
                    ),
                };
                return Err(LaboratoryError::Request(format!(
                    "{}: {what} are all that a bare drive transfers; {}",
                    format_title(job),
                    self.describe_sector_remedy(sector_bytes)
                )));
            }
        }
        Ok(())
    }

    fn describe_sector_remedy(&self, sector_bytes: u64) -> String {
        const SMALLER_SECTORS_REMEDY: &str = "a drive of smaller sectors: those of bare-sata-consumer and bare-sas-10k have 512 bytes";
        match &self.experiment.workload {
            Workload::JobFile(_) if sector_bytes == SECTOR_BYTES_MIN => {
                format!("give a bs, and offsets, that are multiples of {sector_bytes}")
            }
            Workload::Replay(_) if !SectorRounding::is_sector_size(sector_bytes) => {
                format!("replay it on {SMALLER_SECTORS_REMEDY}")
            }
            Workload::Replay(_) if sector_bytes == SECTOR_BYTES_MIN => {
                format!("add --round-to-sectors={sector_bytes}, which makes whole sectors of them")
            }
            Workload::Replay(_) => format!(
                "add --round-to-sectors={sector_bytes}, which makes whole sectors of them, or replay it on {SMALLER_SECTORS_REMEDY}"
            ),
            Workload::JobFile(_) => format!("give another bs, or {SMALLER_SECTORS_REMEDY}"),
            Workload::DefaultSuite | Workload::NamedSuite(_) | Workload::Steps { .. } => {
                "give another program.call_bytes, or another drive.sector_bytes".to_owned()
            }
        }
    }

    pub(super) fn check_sizes(&self) -> Result<(), LaboratoryError> {
        for job in self.suite.iter_jobs() {
            job.program.check_parameters(self.file_bytes(job))?;
        }
        let medium = self.computers[0].medium();
        let needed = total_file_bytes(self.suite.iter_jobs(), medium, |job| {
            job.program.files_without_images(self.file_bytes(job))
        });
        for computer in &self.computers {
            for drive in 0..self.drive_count + usize::from(self.has_other_volume) {
                let room = computer.free_bytes(drive);
                if needed > room {
                    return Err(space_error((&self.target, computer), drive, needed, room));
                }
            }
        }
        Ok(())
    }
}

fn space_error(
    (target, computer): (&str, &ModelComputer),
    drive: usize,
    needed: u64,
    room: u64,
) -> LaboratoryError {
    let has = |key: &str| {
        let mut parameters = computer.parameters.iter();
        parameters.any(|parameter| parameter.path.ends_with(key))
    };
    let larger = if has(".partitions") {
        ", or a larger partition (--set drive.partitions=[[CYLINDER, SECTORS], ...])"
    } else if has(".partition_sectors") {
        ", or a larger partition (--set drive.partition_sectors=N)"
    } else {
        ""
    };
    LaboratoryError::Request(format!(
        "not enough space on {target}: the programs' files take {}, and the partition of drive {} has {} free; give a smaller --size or smaller areas (program.area_bytes){larger}",
        format_size(needed),
        drive + 1,
        format_size(room)
    ))
}
