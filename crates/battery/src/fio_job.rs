//! Program that runs one section of a fio job file as fio does, on a real or on a modelled system.
//! Its workers are the clones (`numjobs`) of the section.

mod bell;
mod calls;
mod clone;
mod cpu;
mod duplicates;
mod engines;
mod iolog;
mod map;
mod pace;
mod pauses;
mod places;
mod read_back;
mod script;
mod search;
mod service;
mod sizes;
mod state;
mod steadiness;
mod stream;
mod support;
mod syncs;
mod trims;
mod watch;
mod zoned;

use crate::blocks::{ensure_file, remove_file};
use crate::company::{EndScope, FlowShare, GroupMember};
use crate::parameter::ParameterField;
use crate::pattern::{AccessPattern, PhaseFuture, ProgramProperties, SystemAndWorker};
use crate::program::{InputFile, Program, ProgramError, greatest_common_divisor};
use crate::worker::{Medium, Worker};
use clone::JobClone;
use diskperf_fio::job::{
    BlockSizeChoice, EndedJobs, EngineKind, FileAllocation, FileLock, IoEngine, SubmitMode,
    SyncFlag, Verification, ZoneMode,
};
use diskperf_fio::plan::{self, FileSize, PlannedFile};
use diskperf_fio::{Direction, Errors, JobDefinition};
use diskperf_system::{
    Buffer, EngineChoice, Errno, Error, File, MapOptions, OpenOptions, RingOptions, System,
};
use diskperf_timeline::{CacheMode, Nanoseconds, WorkerMeasure};
use read_back::verifies_only;
pub use script::IoLog;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Name of the programs that run sections of fio job files.
pub(crate) const PROGRAM_NAME: &str = "fio_job";

const SAMPLE_INTERVAL: Nanoseconds = Nanoseconds::from_millis(1000);

#[derive(Clone, Debug)]
struct FioJob {
    job: Arc<JobDefinition>,
    clone_files: Arc<[Vec<PlannedFile>]>,
    /// Files that other sections of the job file make, by path.
    file_makers: Arc<BTreeMap<String, FileMaker>>,
    /// First byte of each file that is an area of the target, by its path.
    file_starts_bytes: Arc<BTreeMap<String, u64>>,
    /// I/O log that the job repeats (`read_iolog`).
    io_log: Option<Arc<IoLog>>,
}

/// Section that makes a file which several sections of a job file share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileMaker {
    /// A section that has already ended. Its file is used if it is long enough.
    EarlierJob,
    /// A section that runs at the same time.
    ConcurrentJob,
}

impl Program {
    /// Creates the program that does what fio does for one section of a job file. `existing` holds
    /// the sizes of existing files by the paths in the job file: fixed for a device or a user's
    /// file that stands for the path, laid out for files that earlier sections make. `made` holds
    /// the files, by the same paths, that other sections make. `starts` holds the first byte of
    /// each file that is an area of one device, and is empty where each file is a file of its own.
    ///
    /// # Errors
    ///
    /// Returns one error for each option that changes the I/O and cannot be obeyed, with its
    /// position in the job file.
    pub fn from_fio_job(
        job: &JobDefinition,
        existing: &BTreeMap<String, FileSize>,
        made: &BTreeMap<String, FileMaker>,
        starts: &BTreeMap<String, u64>,
    ) -> Result<Self, Errors> {
        support::check_support(job)?;
        let files = plan::plan_clone_files(job, existing)?;
        engines::check_files(job, &files)?;
        let pattern = FioJob {
            job: Arc::new(job.clone()),
            clone_files: files.into(),
            file_makers: Arc::new(made.clone()),
            file_starts_bytes: Arc::new(starts.clone()),
            io_log: None,
        };
        Ok(Self::from_pattern(
            (PROGRAM_NAME, PROGRAM_NAME),
            Box::new(pattern),
        ))
    }
}

fn queue_depth(job: &JobDefinition) -> u32 {
    match job.engine.engine {
        // It submits one at a time, and waits for it.
        IoEngine::Libaio if !job.engine.is_direct => 1,
        // The worker itself does each, whoever submits it.
        IoEngine::Mmap | IoEngine::Splice => 1,
        engine if engine.acts_on_files() => 1,
        IoEngine::Cpuio => 1,
        _ => job.engine.effective_depth().max(1),
    }
}

/// Reports whether the I/O of a job locks its file. An engine that queues requests unlocks the file
/// once the request is queued, and `io_submit_mode=offload` has several requests in flight, so
/// neither locks.
fn locks_files(job: &JobDefinition) -> bool {
    job.files.lock != FileLock::None
        && job.engine.effective_depth() <= 1
        && job.engine.engine.kind() == EngineKind::Call
}

/// Reports whether a job ends with the steady state of its reporting group instead of its own.
fn is_in_steady_group(job: &JobDefinition) -> bool {
    job.steady.is_enabled && job.report.is_grouped
}

/// Reports whether the files of a job are written before the job starts, as fio lays them out:
/// files that are read, overwritten or mapped.
fn has_layout_phase(job: &JobDefinition) -> bool {
    let engine = job.engine.engine;
    let is_written_over = job.files.is_overwritten || engine == IoEngine::Mmap;
    let is_read = job.pattern.access.includes(Direction::Read) || verifies_only(job);
    let has_data = engine != IoEngine::Filecreate && engine != IoEngine::Cpuio;
    !job.files.is_appended && has_data && (is_read || is_written_over)
}

/// Reports whether the page cache of a job's files stays unchanged before the run.
fn keeps_page_cache(job: &JobDefinition) -> bool {
    let files = &job.files;
    !files.invalidates_cache && !files.is_pre_read && !bypasses_page_cache(job)
}

/// Reports whether the I/O of a job bypasses the page cache. I/O on mapped files always goes
/// through it, whatever `direct` says.
fn bypasses_page_cache(job: &JobDefinition) -> bool {
    job.engine.is_direct && job.engine.engine != IoEngine::Mmap
}

fn writes_data(job: &JobDefinition) -> bool {
    let access = job.pattern.access;
    if verifies_only(job) || job.engine.engine == IoEngine::Cpuio {
        return false;
    }
    let changes = access.includes(Direction::Write) || access.includes(Direction::Trim);
    changes || (job.engine.engine.acts_on_files() && job.engine.engine != IoEngine::Filestat)
}

/// Returns the name of a planned file on the target. It keeps the whole path, with slashes
/// replaced, so that names stay distinct.
fn file_name(file: &PlannedFile) -> String {
    file.path.trim_start_matches("./").replace('/', "_")
}

impl FioJob {
    /// Creates the program of a job that repeats an I/O log on the given files of its clones.
    fn from_log(job: JobDefinition, files: Vec<Vec<PlannedFile>>, script: IoLog) -> Program {
        let pattern = Self {
            job: Arc::new(job),
            clone_files: files.into(),
            file_makers: Arc::default(),
            file_starts_bytes: Arc::default(),
            io_log: Some(Arc::new(script)),
        };
        Program::from_pattern((PROGRAM_NAME, PROGRAM_NAME), Box::new(pattern))
    }

    /// Returns the path of a planned file in the working directory of a worker.
    fn file_path(&self, worker: &Worker, file: &PlannedFile) -> String {
        worker.file_path(&file_name(file))
    }

    /// Returns the first byte of a planned file on the target: 0 unless the file is an area of a
    /// device.
    fn file_start_bytes(&self, file: &PlannedFile) -> u64 {
        self.file_starts_bytes.get(&file.path).copied().unwrap_or(0)
    }

    async fn run_clone(
        &self,
        (system, worker): (&mut System, &Worker),
    ) -> Result<(), ProgramError> {
        let (mut clone, mut ring) = JobClone::start_clone((system, worker), self).await?;
        let ran = clone.run_clone(&mut ring).await;
        match &ran {
            Ok(()) => clone.save_state(&ring, false)?,
            Err(ProgramError::SystemCallFailed(_)) => clone.save_state(&ring, true)?,
            Err(_) => {}
        }
        ran
    }

    /// Returns the scope of the jobs that end when this job ends (`exitall`).
    fn exit_scope(&self) -> EndScope {
        match self.job.order.ended_jobs {
            EndedJobs::Group => EndScope::ExitGroup(self.job.group),
            EndedJobs::Stonewall => EndScope::StartedJobs,
            EndedJobs::All => EndScope::AllJobs,
        }
    }

    fn planned_files_of_clone(&self, worker: &Worker) -> &[PlannedFile] {
        &self.clone_files[worker.worker_index as usize]
    }

    /// Returns the files of all clones by path, each with the largest size that any clone needs.
    fn all_files(&self) -> BTreeMap<&str, u64> {
        let mut all = BTreeMap::new();
        for file in self.clone_files.iter().flatten() {
            let bytes: &mut u64 = all.entry(&*file.path).or_default();
            *bytes = (*bytes).max(file.region.file_bytes);
        }
        all
    }

    /// Returns the bytes that a clone moves if no time limit ends it before.
    fn io_bytes_total(&self) -> u64 {
        let block = self.job.block_bytes_max();
        if let Some(script) = &self.io_log {
            return script.moved_bytes().max(block);
        }
        let of_clone = |files: &Vec<PlannedFile>| match plan::predict_ios(&self.job, files) {
            Some(ios) => ios.total().saturating_mul(block),
            None => files.iter().map(|file| file.region.used_bytes()).sum(),
        };
        let most = self.clone_files.iter().map(of_clone).max();
        most.unwrap_or(0).max(block)
    }

    fn ring_options(&self, worker: &Worker) -> RingOptions {
        let (engine, data) = (&self.job.engine, &self.job.data);
        let choice = match engine.engine {
            IoEngine::IoUring if engine.has_kernel_polling => EngineChoice::SqPoll,
            IoEngine::IoUring | IoEngine::Null => EngineChoice::BestAvailable,
            IoEngine::Libaio if engine.is_direct && engine.submit == SubmitMode::Inline => {
                EngineChoice::BestAvailable
            }
            IoEngine::Posixaio => EngineChoice::Threads,
            IoEngine::Libaio
            | IoEngine::Sync
            | IoEngine::Psync
            | IoEngine::Vsync
            | IoEngine::Pvsync
            | IoEngine::Pvsync2 => match engine.submit {
                SubmitMode::Inline => EngineChoice::WorkerThread,
                SubmitMode::Offload => EngineChoice::Threads,
            },
            IoEngine::Mmap => EngineChoice::MappedFiles(MapOptions {
                is_random: self.job.pattern.access.is_random(),
                drops_pages: engine.is_direct,
            }),
            IoEngine::Splice => EngineChoice::SplicedFiles,
            IoEngine::Falloc
            | IoEngine::Ftruncate
            | IoEngine::Filecreate
            | IoEngine::Filestat
            | IoEngine::Filedelete
            | IoEngine::Cpuio => unreachable!("{} has no ring", engine.engine.name()),
        };
        RingOptions {
            queue_depth: queue_depth(&self.job),
            buffer_bytes: self.job.transfer_bytes_max().max(1).next_multiple_of(512) as u32,
            seed: worker.random_seed,
            compressible_percent: match data.is_zeroed {
                true => 100,
                false => data.compressible_percent,
            },
            engine_choice: choice,
            polls_completions: engine.is_polled,
            has_verifiable_contents: self.job.verify.kind != Verification::None,
            series_interval: SAMPLE_INTERVAL,
        }
    }

    /// Creates a file as fio does: filled with data if the job reads or overwrites it, else with
    /// the blocks that `fallocate` reserves.
    async fn make_file(
        &self,
        (system, worker): (&mut System, &Worker),
        (path, bytes): (&str, u64),
    ) -> Result<(), ProgramError> {
        if verifies_only(&self.job) && worker.medium == Medium::Directory {
            return self.check_file_exists(system, (path, bytes)).await;
        }
        if has_layout_phase(&self.job) {
            let length = system.stat(path).await;
            ensure_file(system, worker, path, bytes).await?;
            // As fio does, whatever `invalidate` says.
            if worker.medium == Medium::Directory && length != Ok(bytes) {
                system.drop_cached_pages(path).await?;
            }
            return Ok(());
        }
        let how = match self.job.files.is_appended {
            true => OpenOptions::WRITE.with_create(),
            false => {
                remove_file(system, worker.medium, path).await?;
                OpenOptions::CREATE
            }
        };
        let is_made_later =
            self.job.files.creates_on_open || self.job.engine.engine == IoEngine::Filecreate;
        if worker.medium != Medium::Directory || is_made_later {
            return Ok(());
        }
        let file = system.open(path, how).await?;
        match self.job.files.allocation {
            FileAllocation::None => {}
            FileAllocation::Native => match system.allocate(file, 0..bytes, true).await {
                // A file system without the call: the file grows as it is written.
                Err(error @ Error::CallFailed(_)) if !error.is_out_of_space() => {}
                result => result?,
            },
            FileAllocation::Posix => system.allocate(file, 0..bytes, true).await?,
            FileAllocation::KeepSize => system.allocate(file, 0..bytes, false).await?,
            FileAllocation::Truncate => match system.ftruncate(file, bytes).await {
                // A modelled kernel without the call: the same.
                Err(error) if error.errno() == Some(Errno::Invalid) => {}
                result => result?,
            },
        }
        Ok(system.close(file).await?)
    }

    /// Opens a clone's files and a ring for their I/O.
    async fn open_file(
        &self,
        (system, worker): (&mut System, &Worker),
    ) -> Result<Vec<(File, String)>, ProgramError> {
        let engine = self.job.engine.engine;
        if engine.acts_on_names() || engine == IoEngine::Cpuio {
            return Ok(self.unopened_files(system, worker));
        }
        let access = self.job.pattern.access;
        let verifies = self.job.verify.kind != Verification::None;
        let reads = verifies || access.includes(Direction::Read);
        let how = match (reads, writes_data(&self.job)) {
            // What is mapped to be written can be read.
            (false, true) if engine != IoEngine::Mmap => OpenOptions::WRITE,
            (_, true) => OpenOptions::READ_WRITE,
            (_, false) => OpenOptions::READ,
        };
        let how = match self.job.sync.open_flag {
            SyncFlag::None => how,
            SyncFlag::Sync => how.with_sync(true),
            SyncFlag::Dsync => how.with_dsync(true),
        };
        // What was unlinked, or not made before.
        let how = match access.includes(Direction::Write) && worker.medium == Medium::Directory {
            true => how.with_create(),
            false => how,
        };
        let mut files = Vec::new();
        for file in self.planned_files_of_clone(worker) {
            let path = self.file_path(worker, file);
            let open = system
                .open(&path, how.with_direct(worker.direct_io))
                .await?;
            files.push((open, path));
        }
        if engine.acts_on_files() {
            system.begin_name_call_series(SAMPLE_INTERVAL);
            return Ok(files);
        }
        let open: Vec<File> = files.iter().map(|(file, _)| *file).collect();
        system.open_ring(self.ring_options(worker), &open).await?;
        Ok(files)
    }
}

impl AccessPattern for FioJob {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        Vec::new()
    }

    fn fio_job(&self) -> Option<&JobDefinition> {
        Some(&self.job)
    }

    fn support_notes(&self) -> Vec<String> {
        let mut notes = support::support_notes(&self.job);
        notes.extend(
            self.io_log
                .iter()
                .flat_map(|script| script.log_notes(&self.job)),
        );
        notes
    }

    fn program_properties(&self) -> ProgramProperties {
        let job = &self.job;
        let block_bytes = job.block_bytes_max();
        // Several files are several areas of a device, where it is laid out so.
        let fits_device = self.all_files().len() == 1 || !self.file_starts_bytes.is_empty();
        let has_data = job.engine.engine.moves_data();
        let uses_processor = job.engine.engine == IoEngine::Cpuio;
        let cache = match (
            bypasses_page_cache(job),
            job.files.is_pre_read,
            job.files.invalidates_cache,
        ) {
            (true, ..) => Some(CacheMode::Direct),
            (false, false, true) => Some(CacheMode::Cold),
            // Without `invalidate` the cache stays as whoever came before has left it.
            (false, true, _) | (false, false, false) => Some(CacheMode::Warm),
        };
        let lasts_us = job.durations.ramp_us + job.durations.runtime_us;
        ProgramProperties {
            accepts_any_size: true,
            writes_target: writes_data(job),
            worker_count: job.order.clone_count,
            cache_mode: cache,
            duration_max: (job.durations.is_time_based || uses_processor)
                .then(|| Nanoseconds(lasts_us * 1000)),
            supported_media: match (fits_device && has_data && !job.files.is_appended)
                || uses_processor
            {
                true => &[Medium::Directory, Medium::Device, Medium::File],
                false => &[Medium::Directory],
            },
            size_bytes_range: (self.io_bytes_total(), self.io_bytes_total()),
            buffer_call_count: 1,
            ..ProgramProperties::new_for_reads(block_bytes)
        }
    }

    fn default_bytes(&self) -> Option<u64> {
        Some(self.io_bytes_total())
    }

    /// Returns the sum of the file ranges that the clones use. A range that several clones share
    /// counts once.
    fn addressed_range_bytes(&self) -> Option<u64> {
        let part = |file: &PlannedFile| {
            let region = &file.region;
            (file.path.clone(), region.offset_bytes, region.used_bytes())
        };
        let parts: BTreeSet<_> = self.clone_files.iter().flatten().map(part).collect();
        Some(
            parts
                .iter()
                .fold(0, |sum: u64, (.., bytes)| sum.saturating_add(*bytes)),
        )
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        let job = &self.job;
        if let Some(script) = &self.io_log {
            return script.unit_bytes();
        }
        let files = self.clone_files.iter().flatten();
        let starts = files.flat_map(|file| [file.region.offset_bytes, self.file_start_bytes(file)]);
        let of = |direction: &Direction| {
            let align_bytes = *job.blocks.offset_align_bytes.get(*direction);
            match job.blocks.choice(*direction) {
                BlockSizeChoice::Fixed(bytes) => greatest_common_divisor(bytes, align_bytes),
                BlockSizeChoice::Range { smallest, largest } => {
                    greatest_common_divisor(greatest_common_divisor(smallest, largest), align_bytes)
                }
                BlockSizeChoice::Weighted(parts) => parts
                    .iter()
                    .map(|part| part.bytes)
                    .fold(align_bytes, greatest_common_divisor),
            }
        };
        let skip_bytes = job.pattern.skip_bytes.unsigned_abs();
        let zones = match job.zones.mode {
            ZoneMode::WritePointers => [job.zones.size_bytes, job.write_pointers.capacity_bytes, 0],
            ZoneMode::None | ZoneMode::Strided => {
                [job.zones.range_bytes, job.zones.skip_bytes, skip_bytes]
            }
        };
        let sizes = job.pattern.access.directions().iter().map(of);
        let unit_bytes = starts
            .chain(sizes)
            .chain(zones)
            .fold(0, greatest_common_divisor);
        match job.blocks.allows_unaligned {
            true => 1,
            false => unit_bytes,
        }
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        let all = self.all_files().into_values();
        all.fold(0, u64::saturating_add)
    }

    fn shared_files(&self) -> Option<BTreeMap<&str, u64>> {
        Some(self.all_files())
    }

    fn prepared_bytes(&self, size_bytes: u64) -> u64 {
        match has_layout_phase(&self.job) {
            true => self.file_bytes(size_bytes),
            false => 0,
        }
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        if !self.job.engine.engine.moves_data()
            || !has_layout_phase(&self.job)
            || keeps_page_cache(&self.job)
        {
            return Vec::new();
        }
        let files = self.planned_files_of_clone(worker).iter();
        let reads = self.job.pattern.access.includes(Direction::Read);
        let input = |file: &PlannedFile| InputFile {
            path: self.file_path(worker, file),
            length_bytes: file.region.file_bytes,
            // What is unlinked cannot be looked at when it was read.
            is_read_through: reads && !self.job.files.unlinks_at_end,
        };
        files.map(input).collect()
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let files = self.planned_files_of_clone(worker).iter();
            worker.worker_group.register(GroupMember {
                job_name: self.job.name.clone(),
                file_paths: files.map(|file| self.file_path(worker, file)).collect(),
                group_number: self.job.group,
                ends_whole_group: self.job.order.ends_others
                    || self.job.order.ends_others_on_error
                    || is_in_steady_group(&self.job),
                is_in_steady_group: is_in_steady_group(&self.job),
                flow_share: (self.job.order.flow_weight > 0).then_some(FlowShare {
                    flow_id: self.job.order.flow_id,
                    flow_weight: self.job.order.flow_weight,
                }),
                does_io: self.job.engine.engine != IoEngine::Cpuio,
            });
            let all = self.all_files();
            // Clones share files: the first that has one makes it.
            let earlier = self.clone_files[..worker.worker_index as usize]
                .iter()
                .flatten();
            let mut made: BTreeSet<&str> = earlier.map(|file| &*file.path).collect();
            for file in self.planned_files_of_clone(worker) {
                let by = self.file_makers.get(&file.path).copied();
                if by == Some(FileMaker::ConcurrentJob) || !made.insert(&file.path) {
                    continue;
                }
                let (path, bytes) = (self.file_path(worker, file), all[&*file.path]);
                let is_left = by == Some(FileMaker::EarlierJob)
                    && matches!(system.stat(&path).await, Ok(length) if length >= bytes);
                if !is_left {
                    self.make_file((&mut *system, worker), (&path, bytes))
                        .await?;
                }
            }
            Ok(())
        })
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let outcome = self.run_clone((&mut *system, worker)).await;
            let order = &self.job.order;
            if order.ends_others || (order.ends_others_on_error && outcome.is_err()) {
                worker.worker_group.end_other_jobs(self.exit_scope());
            }
            for path in worker
                .worker_group
                .release_files(self.job.files.unlinks_at_end)
            {
                let removed = remove_file(system, worker.medium, &path).await;
                outcome.as_ref().map_or(Ok(()), |()| removed)?;
            }
            worker.worker_group.leave_group();
            system.give_notice();
            outcome
        })
    }
}

#[cfg(test)]
mod tests;
