//! One repetition: every worker in its own thread, with its own `System`.

use crate::drive::Drive;
use crate::observer::{Event, Observer};
use diskperf_battery::program::Input;
use diskperf_battery::{Medium, Program, ProgramError, Worker};
use diskperf_system::host::device::{Counters, TrafficMeter};
use diskperf_system::host::{Clock, Control, Host, Ports, Rendezvous};
use diskperf_system::{Error, Open, System, Whence, run_ready, sum_residency};
use diskperf_timeline::{CacheMode, DeviceTraffic, Repetition, Residency, WorkerMeasure};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What all repetitions of a run share.
pub(crate) struct Bench<'a> {
    /// Set when the user ends the run.
    pub(crate) stop: Arc<AtomicBool>,
    /// The clock that times single calls.
    pub(crate) clock: Clock,
    /// Whether each call is timed.
    pub(crate) time_calls: bool,
    /// Drop the caches of the whole machine before each repetition.
    pub(crate) drop_all_caches: bool,
    /// The drives that run the program at once.
    pub(crate) drives: &'a [Drive],
    /// The mount that stands for another file system.
    pub(crate) other: Option<&'a Drive>,
    /// The run's seed.
    pub(crate) seed: u64,
}

/// A program about to be repeated.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    pub(crate) program: &'a Program,
    pub(crate) cache: CacheMode,
    pub(crate) size_bytes: u64,
}

/// What one worker has to do.
struct Assignment<'a> {
    task: Task<'a>,
    worker: Worker,
    /// The inputs whose residency this worker looks after: of several that
    /// read one file, the first.
    inputs: Vec<Input>,
    /// The first worker of the first drive drops the machine's caches for all.
    drop_all_caches: bool,
}

/// What one worker brings home.
struct Outcome {
    measure: WorkerMeasure,
    residency: Option<Residency>,
}

impl Bench<'_> {
    /// Runs the program once on all drives.
    pub(crate) fn repetition(
        &self,
        task: Task<'_>,
        of: (u32, u32),
        observer: &mut dyn Observer,
    ) -> Result<Repetition, ProgramError> {
        let assignments = self.assignments(task);
        let moved_bytes: Vec<_> = assignments
            .iter()
            .map(|_| Arc::new(AtomicU64::new(0)))
            .collect();
        let total_bytes = task.size_bytes * assignments.len() as u64 * task.program.passes();
        let (number, of) = of;
        observer.event(Event::RepetitionStarted {
            number,
            of,
            total_bytes,
            moved_bytes: &moved_bytes,
        });
        // The main thread meets the workers too, to read the devices'
        // counters when all is prepared and nothing is timed yet.
        let rendezvous = Arc::new(Rendezvous::new(assignments.len() + 1));
        let abandoned = Arc::new(AtomicBool::new(false));
        let meters = self.meters();
        std::thread::scope(|scope| {
            let threads: Vec<_> = assignments
                .iter()
                .zip(&moved_bytes)
                .map(|(assignment, moved)| {
                    let control = self.control(moved, &rendezvous, &abandoned);
                    scope.spawn(move || self.work(assignment, control))
                })
                .collect();
            let before = self.watch(&rendezvous, &meters);
            let outcomes: Vec<_> = threads.into_iter().map(join).collect();
            Ok(Repetition {
                discarded: false,
                devices: traffic(&meters, before),
                ..collect(outcomes)?
            })
        })
    }

    fn control(
        &self,
        moved: &Arc<AtomicU64>,
        rendezvous: &Arc<Rendezvous>,
        abandoned: &Arc<AtomicBool>,
    ) -> Control {
        Control {
            stop: Arc::clone(&self.stop),
            abandoned: Arc::clone(abandoned),
            moved_bytes: Arc::clone(moved),
            rendezvous: Arc::clone(rendezvous),
            time_calls: self.time_calls,
            clock: self.clock,
        }
    }

    fn assignments<'t>(&self, task: Task<'t>) -> Vec<Assignment<'t>> {
        let mut assignments: Vec<Assignment<'t>> = Vec::new();
        for (number, drive) in self.drives.iter().enumerate() {
            for index in 0..task.program.workers() {
                let worker = Worker {
                    index,
                    drive: number as u32,
                    medium: drive.medium(),
                    other_mount: self.other.map(|_| self.directories()),
                    size_bytes: task.size_bytes,
                    direct: task.cache == CacheMode::Direct,
                    // Workers draw from streams of their own: a golden-ratio
                    // step keeps their seeds apart.
                    seed: self.seed.wrapping_add(
                        (u64::from(index) << 32 | number as u64)
                            .wrapping_mul(0x9e37_79b9_7f4a_7c15),
                    ),
                    think: task.program.think(),
                };
                let taken = |input: &Input| {
                    assignments
                        .iter()
                        .any(|earlier| earlier.inputs.contains(input))
                };
                let mut inputs = task.program.inputs(&worker);
                inputs.retain(|input| !taken(input));
                let drop_all_caches = self.drop_all_caches && assignments.is_empty();
                assignments.push(Assignment {
                    task,
                    worker,
                    inputs,
                    drop_all_caches,
                });
            }
        }
        assignments
    }

    /// The body of a worker's thread.
    fn work(&self, assignment: &Assignment<'_>, control: Control) -> Result<Outcome, ProgramError> {
        // Also when this thread panics, the others must not wait for it.
        let mut absence = Absence {
            rendezvous: Arc::clone(&control.rendezvous),
            abandoned: Arc::clone(&control.abandoned),
            came: false,
        };
        let ports = self
            .ports()
            .map_err(|errno| Error::failed(diskperf_system::Call::Open, "/mnt0", errno))?;
        let mut system = System::Host(Box::new(Host::new(ports, control)));
        let outcome = run_ready(measured(&mut system, assignment))?;
        absence.came = true;
        Ok(outcome)
    }

    /// How many of the drives are directories: the mount behind them is the
    /// other file system's.
    fn directories(&self) -> u32 {
        let directories = self
            .drives
            .iter()
            .filter(|drive| drive.medium() == Medium::Directory);
        directories.count() as u32
    }

    fn ports(&self) -> std::io::Result<Ports> {
        let mut ports = Ports::default();
        for drive in self.drives.iter().chain(self.other) {
            drive.plug_into(&mut ports)?;
        }
        Ok(ports)
    }

    /// The meters of the disks underneath all drives, each disk once.
    fn meters(&self) -> Vec<&TrafficMeter> {
        let mut meters: Vec<&TrafficMeter> = Vec::new();
        for meter in self.drives.iter().chain(self.other).flat_map(Drive::meters) {
            if !meters.iter().any(|known| known.device() == meter.device()) {
                meters.push(meter);
            }
        }
        meters
    }

    /// Meets the workers; reads the counters in between.
    fn watch(&self, rendezvous: &Rendezvous, meters: &[&TrafficMeter]) -> Vec<Option<Counters>> {
        let mut before = Vec::new();
        for meeting in [
            Meeting::FilesReady,
            Meeting::AllDropped,
            Meeting::CachesReady,
            Meeting::Start,
        ] {
            if rendezvous.wait(&self.stop).is_err() {
                break;
            }
            if meeting == Meeting::CachesReady {
                before = meters.iter().map(|meter| meter.read().ok()).collect();
            }
        }
        before
    }
}

/// Where the workers and the main thread meet before the timed part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    /// All files are made.
    FilesReady,
    /// The whole machine's caches are dropped, where that was asked for.
    AllDropped,
    /// The page cache is as it was asked for.
    CachesReady,
    /// Go.
    Start,
}

/// Ends the repetition for the other workers, unless this one came to its end.
struct Absence {
    rendezvous: Arc<Rendezvous>,
    abandoned: Arc<AtomicBool>,
    came: bool,
}

impl Drop for Absence {
    fn drop(&mut self) {
        if !self.came {
            self.abandoned.store(true, Ordering::Relaxed);
            self.rendezvous.give_up();
        }
    }
}

/// What a worker does in one repetition, on either world.
async fn measured(
    system: &mut System,
    assignment: &Assignment<'_>,
) -> Result<Outcome, ProgramError> {
    let Assignment {
        task,
        worker,
        inputs,
        drop_all_caches,
    } = assignment;
    let program = task.program;
    program.prepare(system, worker).await?;
    let mut buffer = program.buffer(worker);
    system.barrier().await?;
    if *drop_all_caches {
        system.drop_all_caches().await?;
    }
    system.barrier().await?;
    let mut residencies = Vec::new();
    for input in inputs {
        make_ready(system, input, task.cache).await?;
        residencies.push(if input.read {
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
    program.run(system, worker, &mut buffer).await?;
    let mut measure = system.finish_measuring().await?;
    measure.drive = worker.drive;
    measure.payload_bytes = program.payload_bytes(worker, &measure);
    for (input, residency) in inputs.iter().zip(&mut residencies) {
        if let Some(residency) = residency {
            residency.after_bytes = system
                .resident_bytes(&input.path, input.length_bytes)
                .await?
                .unwrap_or(0);
        }
    }
    system.close_all().await;
    let residency = sum_residency(residencies.into_iter().flatten());
    Ok(Outcome { measure, residency })
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

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// All outcomes, or the error that came first of those that are not only the
/// consequence of another worker's.
fn collect(outcomes: Vec<Result<Outcome, ProgramError>>) -> Result<Repetition, ProgramError> {
    let consequence =
        |error: &ProgramError| matches!(error, ProgramError::System(Error::PeerFailed));
    let mut workers = Vec::new();
    let mut residencies = Vec::new();
    let mut failure = None;
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => {
                workers.push(outcome.measure);
                residencies.extend(outcome.residency);
            }
            Err(error) if failure.as_ref().is_none_or(consequence) => failure = Some(error),
            Err(_) => {}
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Repetition {
            workers,
            residency: sum_residency(residencies),
            ..Repetition::default()
        }),
    }
}

/// How far the devices' counters moved. The last fsync is in it: the workers
/// have ended.
fn traffic(meters: &[&TrafficMeter], before: Vec<Option<Counters>>) -> Vec<DeviceTraffic> {
    meters
        .iter()
        .zip(before)
        .filter_map(|(meter, before)| Some(meter.traffic(before?, meter.read().ok()?)))
        .collect()
}
