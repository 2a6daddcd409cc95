//! What one worker does in one repetition: the same body on both worlds.

use crate::error::Names;
use diskperf_battery::program::Input;
use diskperf_battery::{
    Companies, Company, Job, Medium, Other, PipeEnd, Program, ProgramError, Step, Worker,
};
use diskperf_system::{Buffer, Errno, Error, Open, System, Whence, sum_residency};
use diskperf_timeline::block::TimedPart;
use diskperf_timeline::units::format_size;
use diskperf_timeline::{
    CacheMode, Nanoseconds, ProgramResult, Repetition, Residency, Verified, WorkerMeasure,
};
use std::borrow::Cow;

/// A program about to be repeated.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The program with the parameters that tell it from its siblings.
    pub title: &'a str,
    /// What is run.
    pub program: &'a Program,
    /// State of the page cache before the timed part.
    pub cache: CacheMode,
    /// Bytes that each of its workers moves.
    pub size_bytes: u64,
    /// The one drive that it runs on; none: on all.
    pub drive: Option<u32>,
    /// Whether an error of a job of a job file ends that worker alone, as in fio, and so do
    /// blocks that differ from what was written: the error is then in the measure, and the
    /// other workers go on.
    pub fails_alone: bool,
}

impl<'a> Task<'a> {
    /// A job of a run that asks for this of the page cache.
    pub fn of(job: &'a Job, title: &'a str, asked: CacheMode, size_bytes: u64) -> Self {
        Self {
            title,
            program: &job.program,
            cache: job.program.cache_mode(asked),
            size_bytes,
            drive: None,
            fails_alone: false,
        }
    }

    /// All jobs of a step, each with its title and its size.
    pub fn of_step(
        step: &'a Step,
        (titles, sizes_bytes): (&'a [String], &[u64]),
        asked: CacheMode,
    ) -> Vec<Self> {
        let jobs = step.jobs.iter().zip(titles).zip(sizes_bytes);
        jobs.map(|((job, title), size_bytes)| Self::of(job, title, asked, *size_bytes))
            .collect()
    }
}

/// The ground that a program's workers stand on.
pub struct Ground {
    /// What each drive is to the programs, drive by drive.
    pub drives: Vec<Medium>,
    /// The directory of each file system that the files are in.
    pub folder: &'static str,
    /// The mount that stands for another file system.
    pub other: Option<Other>,
    /// The run's seed.
    pub seed: u64,
    /// Drop the caches of the whole machine before each repetition.
    pub drop_all_caches: bool,
}

/// What one worker has to do.
#[derive(Clone)]
pub struct Assignment {
    /// Which of the tasks that run at the same time it is a part of.
    pub task: usize,
    /// That task's.
    pub title: String,
    /// What is run.
    pub program: Program,
    cache: CacheMode,
    /// Who runs it, and where.
    pub worker: Worker,
    /// The inputs whose residency this worker looks after: of several that
    /// read one file, the first.
    inputs: Vec<Input>,
    /// The first worker of the first drive drops the machine's caches for all.
    drop_all_caches: bool,
    /// Whether an error of a job, or blocks that differ, end this worker alone.
    fails_alone: bool,
}

impl Assignment {
    /// Whether what was measured before this error is a result: of a job, as in fio; of blocks
    /// that differ, since all were read by then.
    fn measures_up_to(&self, error: &ProgramError) -> bool {
        self.program.fio_job().is_some() || matches!(error, ProgramError::Corrupt(_))
    }

    /// The error that ends the worker alone, if any; of an error that ends all, an error.
    fn failure_alone(
        &self,
        outcome: Result<(), ProgramError>,
    ) -> Result<Option<ProgramError>, ProgramError> {
        match outcome {
            Ok(()) => Ok(None),
            Err(error @ ProgramError::System(Error::Interrupted | Error::PeerFailed)) => Err(error),
            Err(error) if self.fails_alone && self.measures_up_to(&error) => Ok(Some(error)),
            Err(error) => Err(error),
        }
    }
}

/// What one worker brings home.
pub struct Outcome {
    /// The moment that the measure counts from.
    origin: Nanoseconds,
    measure: WorkerMeasure,
    residency: Option<Residency>,
    /// Error that ended this worker alone.
    failure: Option<ProgramError>,
}

impl Outcome {
    /// When its timed part was, for whoever listened meanwhile.
    pub fn timed_part(&self, thread: u32) -> TimedPart {
        let opened = self.origin + self.measure.started;
        TimedPart {
            thread,
            opened,
            ended: opened + self.measure.elapsed,
        }
    }
}

impl Ground {
    /// The workers of tasks that run at the same time, on all their drives.
    pub fn assignments(&self, tasks: &[Task<'_>]) -> Vec<Assignment> {
        let mut assignments: Vec<Assignment> = Vec::new();
        let companies = Companies::default();
        for (number, task) in tasks.iter().enumerate() {
            for (drive, medium) in (0..).zip(&self.drives) {
                if task.drive.is_some_and(|only| only != drive) {
                    continue;
                }
                for index in 0..task.program.workers() {
                    let place = (drive, *medium);
                    let mut one = self.assignment((number, *task), place, index, &assignments);
                    one.worker.company = companies.seat(drive);
                    assignments.push(one);
                }
            }
        }
        assignments
    }

    fn assignment(
        &self,
        (number, task): (usize, Task<'_>),
        (drive, medium): (u32, Medium),
        index: u32,
        earlier: &[Assignment],
    ) -> Assignment {
        let on_drive = earlier.iter().filter(|one| one.worker.drive == drive);
        let worker = self.worker(task, (drive, medium), (index, on_drive.count() as u64));
        let taken = |input: &Input| earlier.iter().any(|one| one.inputs.contains(input));
        let mut inputs = task.program.inputs(&worker);
        inputs.retain(|input| !taken(input));
        Assignment {
            task: number,
            title: task.title.to_owned(),
            program: task.program.clone(),
            cache: task.cache,
            worker,
            inputs,
            drop_all_caches: self.drop_all_caches && earlier.is_empty(),
            fails_alone: task.fails_alone,
        }
    }

    /// A worker by its number among those of its task on its drive, and among all that
    /// there are on its drive.
    fn worker(
        &self,
        task: Task<'_>,
        (drive, medium): (u32, Medium),
        (index, stream): (u32, u64),
    ) -> Worker {
        Worker {
            index,
            drive,
            medium,
            folder: self.folder,
            other: self.other,
            size_bytes: task.size_bytes,
            direct: task.cache == CacheMode::Direct,
            // Workers draw from streams of their own: a golden-ratio step
            // keeps their seeds apart.
            seed: self.seed.wrapping_add(
                (stream << 32 | u64::from(drive)).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ),
            think: task.program.think(),
            company: Company::default(),
        }
    }
}

/// The pipes of a repetition, while they are given out to its workers.
pub struct Pipes<End> {
    /// The end that the next worker of the drive reads.
    to_read: Option<End>,
}

impl<End> Default for Pipes<End> {
    fn default() -> Self {
        Self { to_read: None }
    }
}

impl<End> Pipes<End> {
    /// The end that a worker has, if any. Workers come in their order, so that
    /// of each drive the one that writes, for whom the pipe is made, comes
    /// before the one that reads.
    ///
    /// # Errors
    ///
    /// Where no pipe can be made.
    pub fn end<E>(
        &mut self,
        assignment: &Assignment,
        make: impl FnOnce() -> Result<(End, End), E>,
    ) -> Result<Option<End>, E> {
        match assignment.program.pipe_end(&assignment.worker) {
            None => Ok(None),
            Some(PipeEnd::Write) => {
                let (read, write) = make()?;
                self.to_read = Some(read);
                Ok(Some(write))
            }
            Some(PipeEnd::Read) => {
                let end = self.to_read.take();
                Ok(Some(end.expect("who writes comes before who reads")))
            }
        }
    }
}

/// What a worker does in one repetition, on either world.
pub async fn measured(
    system: &mut System,
    assignment: &Assignment,
    buffer: &mut Buffer,
) -> Result<Outcome, ProgramError> {
    let Assignment {
        program,
        cache,
        worker,
        inputs,
        drop_all_caches,
        ..
    } = assignment;
    let mut program = program.clone();
    let prepared = program.prepare(system, worker).await;
    let mut failure = assignment.failure_alone(prepared)?;
    system.barrier().await?;
    program.survey(system, worker).await?;
    if *drop_all_caches {
        system.drop_all_caches().await?;
    }
    system.barrier().await?;
    let mut residencies = Vec::new();
    for input in inputs {
        // What is not there is in no cache: an image that a system has no need
        // of, since its drives can be read.
        let ready = unless_absent(make_ready(system, input, *cache).await)?;
        residencies.push(if ready.is_some() && input.read {
            residency(system, input).await?
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
        None => failure = assignment.failure_alone(program.run(system, worker, buffer).await)?,
        Some(_) => {
            worker.company.leave();
            system.give_notice();
        }
    }
    let mut measure = system.finish_measuring().await?;
    if failure.is_some() && program.fio_job().is_some() {
        // It may have failed before it had a ring.
        measure.load.get_or_insert_default();
    }
    measure.drive = worker.drive;
    measure.payload_bytes = program.payload_bytes(worker, &measure);
    for (input, residency) in inputs.iter().zip(&mut residencies) {
        if let Some(before) = residency.take() {
            *residency = residency_after(system, input, before).await?;
        }
    }
    system.close_all().await;
    let residency = sum_residency(residencies.into_iter().flatten());
    Ok(Outcome {
        origin,
        measure,
        residency,
        failure,
    })
}

/// Nothing, where there is no such file.
fn unless_absent(result: Result<(), ProgramError>) -> Result<Option<()>, ProgramError> {
    match result {
        Ok(()) => Ok(Some(())),
        Err(ProgramError::System(error)) if error.errno() == Some(Errno::NoEntry) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Brings an input into the state that the cache mode asks for.
async fn make_ready(
    system: &mut System,
    input: &Input,
    cache: CacheMode,
) -> Result<(), ProgramError> {
    match cache {
        CacheMode::Cold | CacheMode::Direct => Ok(system.drop_cached(&input.path).await?),
        CacheMode::Warm => warm(system, input).await,
    }
}

/// Reads an input into the page cache; again where the kernel has already
/// paged some of it out. The file stays open: a block device loses its pages
/// when nobody has it open.
async fn warm(system: &mut System, input: &Input) -> Result<(), ProgramError> {
    let mut buffer = vec![0; 1 << 20];
    let file = system.open(&input.path, Open::READ).await?;
    for _ in 0..WARMING_PASSES {
        let resident = system
            .resident_bytes(&input.path, input.length_bytes)
            .await?;
        if resident.is_some_and(|bytes| bytes >= input.length_bytes) {
            break;
        }
        system.lseek(file, 0, Whence::Start).await?;
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

/// One pass fills the cache; a second one makes up for what was paged out
/// meanwhile. What two do not bring in does not fit.
const WARMING_PASSES: u32 = 2;

async fn residency(system: &mut System, input: &Input) -> Result<Option<Residency>, ProgramError> {
    let resident = system
        .resident_bytes(&input.path, input.length_bytes)
        .await?;
    Ok(resident.map(|before_bytes| Residency {
        file_bytes: input.length_bytes,
        before_bytes,
        after_bytes: 0,
    }))
}

/// Residency of an input that was read; nothing of one that another worker has unlinked.
async fn residency_after(
    system: &mut System,
    input: &Input,
    before: Residency,
) -> Result<Option<Residency>, ProgramError> {
    match system.resident_bytes(&input.path, input.length_bytes).await {
        Ok(after_bytes) => Ok(Some(Residency {
            after_bytes: after_bytes.unwrap_or(0),
            ..before
        })),
        Err(error) if error.errno() == Some(Errno::NoEntry) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// What is to be said of a result whose workers were mostly waiting for their
/// turn to start: its elapsed time is that of the program's own delay.
pub fn stagger_note(program: &Program, result: &ProgramResult) -> Option<String> {
    let waited = program.last_start();
    let elapsed = result.kept().map(Repetition::elapsed).max()?;
    (waited.0 * 2 > elapsed.0).then(|| {
        format!(
            "the last reader starts {} ms after the first, which is most of the {} ms that pass; give a larger --size, or program.offset_ms=0",
            waited.0 / 1_000_000,
            elapsed.0 / 1_000_000
        )
    })
}

/// Why requests were not handed to the system as they would best be, if so.
pub fn engine_note(result: &ProgramResult) -> Option<String> {
    let mut loads = result.repetitions.iter().flat_map(Repetition::loads);
    loads.find_map(|load| load.engine_note.clone())
}

/// How the program came to its end, where a reader must know it: of each worker of the last
/// repetition that says something else.
pub fn end_notes(result: &ProgramResult) -> Vec<String> {
    let last = result.repetitions.last();
    let notes = last.into_iter().flat_map(Repetition::loads);
    let mut notes: Vec<String> = notes.filter_map(|load| load.end_note.clone()).collect();
    notes.dedup();
    notes.extend(last.and_then(errors_note));
    let mut failures: Vec<_> = last.into_iter().flat_map(Repetition::failures).collect();
    failures.dedup();
    notes.extend(
        failures
            .iter()
            .map(|failure| format!("failed: {}", failure.message)),
    );
    notes.extend(verified_note(result));
    notes
}

/// What is to be said of requests whose errors a program passed over.
fn errors_note(repetition: &Repetition) -> Option<String> {
    let failed = || repetition.loads().filter(|load| load.errors > 0);
    let count: u64 = failed().map(|load| load.errors).sum();
    let first = Errno::from_number(failed().next()?.first_error as i32);
    Some(format!(
        "{count} requests failed and were passed over, the first with: {first}; they are in no other count"
    ))
}

/// What was read back and compared, in all repetitions.
fn verified_note(result: &ProgramResult) -> Option<String> {
    let of_each = result.repetitions.iter().filter_map(Repetition::verified);
    let of_each: Vec<Verified> = of_each.collect();
    let verified = Verified::sum(&of_each)?;
    let Verified {
        kind,
        written_bytes,
        blocks,
        bytes,
        mismatches,
        unread_blocks,
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

/// Below this share of the rate that was asked for, arrivals were not kept up with.
const KEPT_UP: f64 = 0.95;

/// What is to be said of arrivals that were not kept up with.
pub fn arrivals_note(result: &ProgramResult) -> Option<String> {
    let asked: f64 = result.parameters.get("rate_iops")?.parse().ok()?;
    let short = |one: &Repetition| {
        let wanted = asked * one.workers.len() as f64;
        Some((one.iops()?, wanted)).filter(|(iops, wanted)| *iops < KEPT_UP * wanted)
    };
    let (iops, wanted) = result.kept().find_map(short)?;
    let unfinished = result.kept().flat_map(Repetition::loads);
    let unfinished: u64 = unfinished.map(|load| load.unfinished).sum();
    let given_up = match unfinished {
        0 => String::new(),
        count => format!(", and {count} were not complete at the end"),
    };
    // Commits wait for one another.
    let remedy = match result.kept().flat_map(Repetition::loads).next() {
        Some(load) if load.commit.is_empty() => {
            "give a smaller program.rate_iops, or a larger program.depth"
        }
        _ => "give a smaller program.rate_iops",
    };
    Some(format!(
        "arrivals were not kept up with: {iops:.0} a second of {wanted:.0} that arrived{given_up}; {remedy}"
    ))
}

/// Why a repetition did not come to its end.
pub struct Failure {
    /// Of the task that it came of.
    pub title: String,
    /// What went wrong.
    pub error: ProgramError,
}

impl Failure {
    /// What kept all of them from running.
    pub fn of_all(assignments: &[Assignment], error: ProgramError) -> Self {
        let first = assignments.first();
        Self {
            title: first.map_or_else(String::new, |one| one.title.clone()),
            error,
        }
    }
}

/// All outcomes, as a repetition of each task, or the error that came first of those that
/// are not only the consequence of another worker's.
pub fn collect(
    (assignments, names): (&[Assignment], &Names),
    outcomes: Vec<Result<Outcome, ProgramError>>,
) -> Result<Vec<Repetition>, Failure> {
    let consequence =
        |error: &ProgramError| matches!(error, ProgramError::System(Error::PeerFailed));
    let tasks = assignments.iter().map(|one| one.task + 1).max();
    let mut repetitions = vec![Repetition::default(); tasks.unwrap_or(0)];
    let mut residencies = vec![Vec::new(); repetitions.len()];
    let mut failure: Option<Failure> = None;
    for (assignment, outcome) in assignments.iter().zip(outcomes) {
        match outcome {
            Ok(mut outcome) => {
                let failure = outcome.failure.as_ref();
                outcome.measure.failure = failure.map(|error| names.worker_failure(error));
                repetitions[assignment.task].workers.push(outcome.measure);
                residencies[assignment.task].extend(outcome.residency);
            }
            Err(error) if failure.as_ref().is_none_or(|one| consequence(&one.error)) => {
                let title = assignment.title.clone();
                failure = Some(Failure { title, error });
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

/// What tasks that ran at the same time measured, as of one.
pub fn together(repetitions: &[Repetition]) -> Cow<'_, Repetition> {
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
