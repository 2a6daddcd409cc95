//! Work of one worker in one repetition, the same on real storage and on models.

use crate::error::StorageNames;
use diskperf_battery::program::InputFile;
use diskperf_battery::{
    Medium, PipeEnd, Program, ProgramError, SecondTarget, SuiteJob, SuiteStep, Worker,
    WorkerGroupMember, WorkerGroups,
};
use diskperf_system::{Buffer, Errno, Error, OpenOptions, SeekOrigin, System, sum_residency};
use diskperf_timeline::block::TimedPart;
use diskperf_timeline::units::format_size;
use diskperf_timeline::{
    CacheMode, Nanoseconds, ProgramResult, Repetition, Residency, VerifiedBlocks, WorkerMeasure,
};
use std::borrow::Cow;

/// A program with its parameters, ready to be repeated.
#[derive(Clone, Copy)]
pub struct JobTask<'a> {
    /// Title of the program, with the parameters that distinguish it from its siblings.
    pub title: &'a str,
    /// Program that the task repeats.
    pub program: &'a Program,
    /// State of the page cache before the timed part.
    pub cache_mode: CacheMode,
    /// Bytes that each worker of the program transfers.
    pub size_bytes: u64,
    /// Only drive that the program runs on; `None` for all drives.
    pub drive_index: Option<u32>,
    /// Whether an error of a job, or a block that differs from the written data, ends only its
    /// worker, as in fio. The error is then part of the measurement, and the other workers
    /// continue.
    pub keeps_others_on_failure: bool,
}

impl<'a> JobTask<'a> {
    /// Creates the task of a job in a run with this requested cache mode.
    pub fn from_job(job: &'a SuiteJob, title: &'a str, asked: CacheMode, size_bytes: u64) -> Self {
        Self {
            title,
            program: &job.program,
            cache_mode: job.program.cache_mode_for(asked),
            size_bytes,
            drive_index: None,
            keeps_others_on_failure: false,
        }
    }

    /// Creates the tasks of all jobs of a step, each with its title and its size.
    pub fn list_of_step(
        step: &'a SuiteStep,
        (titles, sizes_bytes): (&'a [String], &[u64]),
        asked: CacheMode,
    ) -> Vec<Self> {
        let jobs = step.parallel_jobs.iter().zip(titles).zip(sizes_bytes);
        jobs.map(|((job, title), size_bytes)| Self::from_job(job, title, asked, *size_bytes))
            .collect()
    }
}

/// Storage that the workers of a program use.
pub struct StorageSetup {
    /// Kind of storage on each drive: directory, file or device.
    pub drive_media: Vec<Medium>,
    /// Directory for the files in each file system.
    pub folder_name: &'static str,
    /// Mount that serves as the other file system.
    pub other_medium: Option<SecondTarget>,
    /// Seed of the run, from which the workers' seeds are derived.
    pub seed: u64,
    /// Whether the caches of the whole machine are dropped before each repetition.
    pub drop_all_caches: bool,
}

/// Work that is assigned to one worker of a repetition.
#[derive(Clone)]
pub struct WorkerAssignment {
    /// Index of the worker's task among those that run at the same time.
    pub task_index: usize,
    /// Title of the worker's task.
    pub title: String,
    /// Program that the worker runs.
    pub program: Program,
    cache_mode: CacheMode,
    /// Worker that runs the program, with its drive.
    pub worker: Worker,
    /// Inputs whose cache residency this worker reports. If several workers read one file, the
    /// first reports it.
    input_files: Vec<InputFile>,
    /// Whether this worker drops the machine's caches for all: the first worker of the first drive.
    drop_all_caches: bool,
    /// Whether an error of a job, or a block that differs, ends only this worker.
    keeps_others_on_failure: bool,
}

impl WorkerAssignment {
    /// Reports whether the measurement up to this error is a result. It is for a job, as in fio,
    /// and for blocks that differ, because all blocks were read by then.
    fn keeps_measure_after(&self, error: &ProgramError) -> bool {
        self.program.fio_job().is_some() || matches!(error, ProgramError::CorruptData(_))
    }

    /// Returns the error that ends only this worker, if there is one, or as an error the one that
    /// ends all workers.
    fn failure_of_worker(
        &self,
        outcome: Result<(), ProgramError>,
    ) -> Result<Option<ProgramError>, ProgramError> {
        match outcome {
            Ok(()) => Ok(None),
            Err(
                error @ ProgramError::SystemCallFailed(
                    Error::Interrupted | Error::OtherWorkerFailed,
                ),
            ) => Err(error),
            Err(error) if self.keeps_others_on_failure && self.keeps_measure_after(&error) => {
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }
}

/// Measurement of one worker, and the error that ended it.
pub struct WorkerOutcome {
    origin: Nanoseconds,
    measure: WorkerMeasure,
    residency: Option<Residency>,
    failure: Option<ProgramError>,
}

impl WorkerOutcome {
    /// Returns the start and end of the worker's timed part, for recorders that listened meanwhile.
    pub fn timed_part(&self, thread: u32) -> TimedPart {
        let opened = self.origin + self.measure.start_time;
        TimedPart {
            thread_id: thread,
            started_at: opened,
            ended_at: opened + self.measure.elapsed_time,
        }
    }
}

impl StorageSetup {
    /// Creates the assignments of tasks that run at the same time, on all their drives.
    pub fn list_assignments(&self, tasks: &[JobTask<'_>]) -> Vec<WorkerAssignment> {
        let mut assignments: Vec<WorkerAssignment> = Vec::new();
        let companies = WorkerGroups::default();
        for (number, task) in tasks.iter().enumerate() {
            for (drive, medium) in (0..).zip(&self.drive_media) {
                if task.drive_index.is_some_and(|only| only != drive) {
                    continue;
                }
                for index in 0..task.program.worker_count() {
                    let place = (drive, *medium);
                    let mut one =
                        self.build_assignment((number, *task), place, index, &assignments);
                    one.worker.worker_group = companies.add_worker(drive);
                    assignments.push(one);
                }
            }
        }
        assignments
    }

    fn build_assignment(
        &self,
        (number, task): (usize, JobTask<'_>),
        (drive, medium): (u32, Medium),
        index: u32,
        earlier: &[WorkerAssignment],
    ) -> WorkerAssignment {
        let on_drive = earlier.iter().filter(|one| one.worker.drive_index == drive);
        let worker = self.build_worker(task, (drive, medium), (index, on_drive.count() as u64));
        let taken = |input: &InputFile| earlier.iter().any(|one| one.input_files.contains(input));
        let mut inputs = task.program.input_files(&worker);
        inputs.retain(|input| !taken(input));
        WorkerAssignment {
            task_index: number,
            title: task.title.to_owned(),
            program: task.program.clone(),
            cache_mode: task.cache_mode,
            worker,
            input_files: inputs,
            drop_all_caches: self.drop_all_caches && earlier.is_empty(),
            keeps_others_on_failure: task.keeps_others_on_failure,
        }
    }

    /// Creates a worker. `index` numbers it within its task on its drive, `stream` among all
    /// workers of the drive.
    fn build_worker(
        &self,
        task: JobTask<'_>,
        (drive, medium): (u32, Medium),
        (index, stream): (u32, u64),
    ) -> Worker {
        Worker {
            worker_index: index,
            drive_index: drive,
            medium,
            file_folder: self.folder_name,
            second_target: self.other_medium,
            size_bytes: task.size_bytes,
            direct_io: task.cache_mode == CacheMode::Direct,
            // Workers draw from streams of their own: a golden-ratio step
            // keeps their seeds apart.
            random_seed: self.seed.wrapping_add(
                (stream << 32 | u64::from(drive)).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ),
            think_time: task.program.think_time(),
            worker_group: WorkerGroupMember::default(),
        }
    }
}

/// Pipes of a repetition, while they are distributed to its workers.
pub struct PipeEnds<End> {
    read_end: Option<End>,
}

impl<End> Default for PipeEnds<End> {
    fn default() -> Self {
        Self { read_end: None }
    }
}

impl<End> PipeEnds<End> {
    /// Returns the pipe end of a worker, if it has one. Workers come in order: on each drive, the
    /// one that writes, for which the pipe is made, comes before the one that reads.
    ///
    /// # Errors
    ///
    /// Returns an error if the pipe cannot be made.
    pub fn take_end<E>(
        &mut self,
        assignment: &WorkerAssignment,
        make: impl FnOnce() -> Result<(End, End), E>,
    ) -> Result<Option<End>, E> {
        match assignment.program.pipe_end(&assignment.worker) {
            None => Ok(None),
            Some(PipeEnd::Write) => {
                let (read, write) = make()?;
                self.read_end = Some(read);
                Ok(Some(write))
            }
            Some(PipeEnd::Read) => {
                let end = self.read_end.take();
                Ok(Some(end.expect("who writes comes before who reads")))
            }
        }
    }
}

/// Performs the work of one worker in one repetition, on real storage or on a model.
pub async fn measure_worker(
    system: &mut System,
    assignment: &WorkerAssignment,
    buffer: &mut Buffer,
) -> Result<WorkerOutcome, ProgramError> {
    let WorkerAssignment {
        program,
        cache_mode: cache,
        worker,
        input_files: inputs,
        drop_all_caches,
        ..
    } = assignment;
    let mut program = program.clone();
    let prepared = program.prepare_target(system, worker).await;
    let mut failure = assignment.failure_of_worker(prepared)?;
    system.barrier().await?;
    program.survey_target(system, worker).await?;
    if *drop_all_caches {
        system.drop_all_caches().await?;
    }
    system.barrier().await?;
    let mut residencies = Vec::new();
    for input in inputs {
        // What is not there is in no cache: an image that a system has no need
        // of, since its drives can be read.
        let ready = none_if_absent(prepare_caches(system, input, *cache).await)?;
        residencies.push(if ready.is_some() && input.is_read_through {
            measure_residency(system, input).await?
        } else {
            None
        });
    }
    system.barrier().await?;
    let origin = system.barrier().await?;
    system
        .sleep_until(origin + program.start_offset(worker))
        .await?;
    system.start_measuring(origin)?;
    match failure {
        None => {
            failure = assignment
                .failure_of_worker(program.run_timed_part(system, worker, buffer).await)?
        }
        Some(_) => {
            worker.worker_group.leave_group();
            system.give_notice();
        }
    }
    let mut measure = system.finish_measuring().await?;
    if failure.is_some() && program.fio_job().is_some() {
        // It may have failed before it had a ring.
        measure.load_measure.get_or_insert_default();
    }
    measure.drive_index = worker.drive_index;
    measure.payload_bytes = program.payload_bytes(worker, &measure);
    for (input, residency) in inputs.iter().zip(&mut residencies) {
        if let Some(before) = residency.take() {
            *residency = measure_residency_after(system, input, before).await?;
        }
    }
    system.close_all().await;
    let residency = sum_residency(residencies.into_iter().flatten());
    Ok(WorkerOutcome {
        origin,
        measure,
        residency,
        failure,
    })
}

fn none_if_absent(result: Result<(), ProgramError>) -> Result<Option<()>, ProgramError> {
    match result {
        Ok(()) => Ok(Some(())),
        Err(ProgramError::SystemCallFailed(error)) if error.errno() == Some(Errno::NoEntry) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn prepare_caches(
    system: &mut System,
    input: &InputFile,
    cache: CacheMode,
) -> Result<(), ProgramError> {
    match cache {
        CacheMode::Cold | CacheMode::Direct => Ok(system.drop_cached_pages(&input.path).await?),
        CacheMode::Warm => warm_cache(system, input).await,
    }
}

/// Reads an input into the page cache, again if the kernel has already dropped part of it. The file
/// stays open, because a block device loses its pages when nobody has it open.
async fn warm_cache(system: &mut System, input: &InputFile) -> Result<(), ProgramError> {
    let mut buffer = vec![0; 1 << 20];
    let file = system.open(&input.path, OpenOptions::READ).await?;
    for _ in 0..WARM_UP_PASSES_MAX {
        let resident = system
            .resident_bytes(&input.path, input.length_bytes)
            .await?;
        if resident.is_some_and(|bytes| bytes >= input.length_bytes) {
            break;
        }
        system.lseek(file, 0, SeekOrigin::FileStart).await?;
        let mut left = input.length_bytes;
        while left > 0 {
            let wanted = buffer.len().min(left as usize);
            match system.read(file, &mut buffer[..wanted]).await? {
                0 => break,
                count => left -= count as u64,
            }
        }
    }
    Ok(())
}

/// Number of warming passes. The first fills the cache; the second restores pages that were dropped
/// meanwhile. An input that two passes cannot cache does not fit.
const WARM_UP_PASSES_MAX: u32 = 2;

async fn measure_residency(
    system: &mut System,
    input: &InputFile,
) -> Result<Option<Residency>, ProgramError> {
    let resident = system
        .resident_bytes(&input.path, input.length_bytes)
        .await?;
    Ok(resident.map(|before_bytes| Residency {
        file_bytes: input.length_bytes,
        resident_before_bytes: before_bytes,
        resident_after_bytes: 0,
    }))
}

/// Returns the residency of an input after it was read; `None` if another worker has unlinked the
/// file.
async fn measure_residency_after(
    system: &mut System,
    input: &InputFile,
    before: Residency,
) -> Result<Option<Residency>, ProgramError> {
    match system.resident_bytes(&input.path, input.length_bytes).await {
        Ok(after_bytes) => Ok(Some(Residency {
            resident_after_bytes: after_bytes.unwrap_or(0),
            ..before
        })),
        Err(error) if error.errno() == Some(Errno::NoEntry) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns a note on a result whose workers mostly waited for their turn to start: its elapsed time
/// is that of the program's own delay.
pub fn describe_stagger(program: &Program, result: &ProgramResult) -> Option<String> {
    let waited = program.last_start_offset();
    let elapsed = result
        .kept_repetitions()
        .map(Repetition::elapsed_time)
        .max()?;
    (waited.0 * 2 > elapsed.0).then(|| {
        format!(
            "the last reader starts {} ms after the first, which is most of the {} ms of the run; give a larger --size, or program.offset_ms=0",
            waited.0 / 1_000_000,
            elapsed.0 / 1_000_000
        )
    })
}

/// Returns the reason why requests could not be submitted in the best way; `None` if they were.
pub fn describe_engine_fallback(result: &ProgramResult) -> Option<String> {
    let mut loads = result
        .repetitions
        .iter()
        .flat_map(Repetition::load_measures);
    loads.find_map(|load| load.engine_note.clone())
}

/// Returns notes on the end of a program for its readers: errors and other remarks of the workers
/// in the last repetition, without duplicates, and the verified data.
pub fn list_end_notes(result: &ProgramResult) -> Vec<String> {
    let last = result.repetitions.last();
    let notes = last.into_iter().flat_map(Repetition::load_measures);
    let mut notes: Vec<String> = notes.filter_map(|load| load.end_note.clone()).collect();
    notes.dedup();
    notes.extend(last.and_then(describe_errors));
    let mut failures: Vec<_> = last
        .into_iter()
        .flat_map(Repetition::worker_failures)
        .collect();
    failures.dedup();
    notes.extend(
        failures
            .iter()
            .map(|failure| format!("failed: {}", failure.message)),
    );
    notes.extend(describe_verification(result));
    notes
}

fn describe_errors(repetition: &Repetition) -> Option<String> {
    let failed = || {
        repetition
            .load_measures()
            .filter(|load| load.ignored_error_count > 0)
    };
    let count: u64 = failed().map(|load| load.ignored_error_count).sum();
    let first = Errno::from_number(failed().next()?.first_ignored_errno as i32);
    Some(format!(
        "{count} requests failed and are excluded from all other counts; the first error: {first}"
    ))
}

/// Returns a note on the data that was read back and compared, in all repetitions.
fn describe_verification(result: &ProgramResult) -> Option<String> {
    let of_each = result
        .repetitions
        .iter()
        .filter_map(Repetition::verified_blocks);
    let of_each: Vec<VerifiedBlocks> = of_each.collect();
    let verified = VerifiedBlocks::sum(&of_each)?;
    let VerifiedBlocks {
        verification_kind: kind,
        written_bytes,
        block_count: blocks,
        verified_bytes: bytes,
        mismatch_count: mismatches,
        unread_block_count: unread_blocks,
    } = verified;
    Some(match (blocks, mismatches) {
        (0, _) if written_bytes == 0 => {
            format!("verified nothing ({kind}): no block was written or read back")
        }
        (0, _) if unread_blocks > 0 => format!(
            "verified nothing ({kind}): 0 of {unread_blocks} blocks read back; the job ended before"
        ),
        (0, _) => format!("verified nothing ({kind}): no block was read back"),
        (_, mismatches) => {
            let written = match written_bytes {
                0 => String::new(),
                bytes => format!("{} written, ", format_size(bytes)),
            };
            let outcome = match mismatches {
                0 => "all as they were written".to_owned(),
                count => format!("{count} not as they were written"),
            };
            let (of_all, unread) = match unread_blocks {
                0 => (String::new(), String::new()),
                count => (
                    format!(" of {}", blocks + count),
                    format!("; {count} not read back: the job ended before"),
                ),
            };
            format!(
                "verified: {written}{blocks}{of_all} blocks ({}) read back and compared, {outcome} ({kind}){unread}",
                format_size(bytes)
            )
        }
    })
}

/// Share of the offered rate below which a note says that completions did not keep up with
/// arrivals.
const ARRIVALS_KEPT_SHARE_MIN: f64 = 0.95;

/// Returns a note if completions did not keep up with arrivals.
pub fn describe_late_arrivals(result: &ProgramResult) -> Option<String> {
    let asked: f64 = result.parameters.get("rate_iops")?.parse().ok()?;
    let short = |one: &Repetition| {
        let wanted = asked * one.workers.len() as f64;
        Some((one.iops()?, wanted))
            .filter(|(iops, wanted)| *iops < ARRIVALS_KEPT_SHARE_MIN * wanted)
    };
    let (iops, wanted) = result.kept_repetitions().find_map(short)?;
    let unfinished = result
        .kept_repetitions()
        .flat_map(Repetition::load_measures);
    let unfinished: u64 = unfinished.map(|load| load.unfinished_count).sum();
    let given_up = match unfinished {
        0 => String::new(),
        count => format!(", and {count} were not complete at the end"),
    };
    // Commits wait for one another.
    let remedy = match result
        .kept_repetitions()
        .flat_map(Repetition::load_measures)
        .next()
    {
        Some(load) if load.commit.is_empty() => {
            "give a smaller program.rate_iops, or a larger program.depth"
        }
        _ => "give a smaller program.rate_iops",
    };
    Some(format!(
        "the target did not keep up with the offered rate: {iops:.0} of {wanted:.0} requests per second completed{given_up}; {remedy}"
    ))
}

/// Reason why a repetition did not complete.
pub struct WorkerError {
    /// Title of the task that failed.
    pub title: String,
    /// Error that made the task fail.
    pub error: ProgramError,
}

impl WorkerError {
    /// Creates the failure that kept all workers from running.
    pub fn from_assignments(assignments: &[WorkerAssignment], error: ProgramError) -> Self {
        let first = assignments.first();
        Self {
            title: first.map_or_else(String::new, |one| one.title.clone()),
            error,
        }
    }
}

/// Combines the outcomes of all workers to a repetition of each task. Otherwise it returns the
/// first error, preferring one that is not merely the consequence of another worker's.
pub fn collect_repetitions(
    (assignments, names): (&[WorkerAssignment], &StorageNames),
    outcomes: Vec<Result<WorkerOutcome, ProgramError>>,
) -> Result<Vec<Repetition>, WorkerError> {
    let consequence = |error: &ProgramError| {
        matches!(
            error,
            ProgramError::SystemCallFailed(Error::OtherWorkerFailed)
        )
    };
    let tasks = assignments.iter().map(|one| one.task_index + 1).max();
    let mut repetitions = vec![Repetition::default(); tasks.unwrap_or(0)];
    let mut residencies = vec![Vec::new(); repetitions.len()];
    let mut failure: Option<WorkerError> = None;
    for (assignment, outcome) in assignments.iter().zip(outcomes) {
        match outcome {
            Ok(mut outcome) => {
                let failure = outcome.failure.as_ref();
                outcome.measure.worker_failure = failure.map(|error| names.worker_failure(error));
                repetitions[assignment.task_index]
                    .workers
                    .push(outcome.measure);
                residencies[assignment.task_index].extend(outcome.residency);
            }
            Err(error) if failure.as_ref().is_none_or(|one| consequence(&one.error)) => {
                let title = assignment.title.clone();
                failure = Some(WorkerError { title, error });
            }
            Err(_) => {}
        }
    }
    for (repetition, residencies) in repetitions.iter_mut().zip(residencies) {
        repetition.residency = sum_residency(residencies);
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(repetitions),
    }
}

/// Combines the measurements of simultaneous tasks to a single repetition.
pub fn merge_repetitions(repetitions: &[Repetition]) -> Cow<'_, Repetition> {
    if let [one] = repetitions {
        return Cow::Borrowed(one);
    }
    let workers = repetitions.iter().flat_map(|one| &one.workers);
    let first = repetitions.first().cloned().unwrap_or_default();
    Cow::Owned(Repetition {
        workers: workers.cloned().collect(),
        residency: sum_residency(repetitions.iter().filter_map(|one| one.residency)),
        ..first
    })
}
