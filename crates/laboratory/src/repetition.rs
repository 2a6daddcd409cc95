//! Rig of real storage. Every worker runs in its own thread, with its own `System`.

use crate::drive::Drive;
use crate::plan::HostPlan;
use crate::preparation::Preparation;
use crate::target::Target;
use crate::traffic::Traffic;
use diskperf_battery::{Medium, ProgramError, SecondTarget};
use diskperf_models::measured::{
    Assignment, Failure, Ground, Outcome, Pipes, Task, collect, measured, together,
};
use diskperf_models::rig::{Rig, Stand};
use diskperf_models::{Event, Observer};
use diskperf_models::{LaboratoryError, Names};
use diskperf_system::host::block_events::BlockEventRecorder;
use diskperf_system::host::device::{BlockDevice, DiskCounters, TrafficMeter};
use diskperf_system::host::hook::HookError;
use diskperf_system::host::interference::{self, InterferenceDetector, StopDetector};
use diskperf_system::host::limits::explain_thread_start_failure;
use diskperf_system::host::{CallClock, HostPorts, HostRendezvous, HostWorker, WorkerControl};
use diskperf_system::{Error, System, WorkerProgress, run_ready};
use diskperf_timeline::{DeviceTraffic, Nanoseconds, Repetition};
use std::convert::Infallible;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Builder;

/// Rig of real storage for one experiment. Another experiment may use the same open drives later.
pub(crate) struct HostRig<'a> {
    pub(crate) plan: &'a HostPlan,
    /// Clock that times single calls of the workers.
    pub(crate) clock: CallClock,
    /// Flag that is set when the user ends the run.
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// Open drives: those that run each program together come first, the copy destination last.
    pub(crate) opened: &'a [Drive],
    /// Recorder of the block layer's events, if they are recorded.
    pub(crate) block_events: Option<BlockEventRecorder>,
    /// Source of the requests to storage, if they are recorded.
    pub(crate) traffic: Option<Mutex<Traffic>>,
    /// Hook and rest before each repetition, for an arm of an A/B measurement.
    pub(crate) before: Option<Preparation<'a>>,
    /// Monitor of other activity on the machine. Its baseline is taken when the first repetition
    /// starts.
    pub(crate) watch: OnceLock<InterferenceDetector>,
}

impl HostRig<'_> {
    /// Starts to receive events of the drives' disks, as far as the plan requests it and the system
    /// permits it. A refusal is reported as a note.
    pub(crate) fn listen(&mut self, observer: &mut dyn Observer) {
        let mut disks: Vec<BlockDevice> = Vec::new();
        for disk in self.opened.iter().flat_map(Drive::queues) {
            if !disks.contains(disk) {
                disks.push(disk.clone());
            }
        }
        if self.plan.record {
            let traffic = Traffic::of(&disks, &self.plan.suite, observer);
            self.traffic = traffic.map(Mutex::new);
        }
        if !self.plan.block_events {
            return;
        }
        match BlockEventRecorder::record_disks(&disks) {
            Ok(events) => self.block_events = Some(events),
            Err(error) => observer.event(Event::Note(&format!(
                "no block-layer events: {error}; the kernel's counters are used instead"
            ))),
        }
    }

    /// Stops receiving events. `left` receives whatever could not be removed.
    pub(crate) fn close(self, left: &mut Vec<String>) {
        if let Some(Err(error)) = self.block_events.map(BlockEventRecorder::remove_instance) {
            left.push(format!("{error}; `diskperf clean` removes it"));
        }
        let traffic = self.traffic.map(|traffic| traffic.into_inner());
        let traffic = traffic.map(|traffic| traffic.unwrap_or_else(PoisonError::into_inner));
        if let Some(Err(error)) = traffic.map(Traffic::close) {
            left.push(format!("{error}; `diskperf clean` removes it"));
        }
    }

    fn drives(&self) -> &[Drive] {
        &self.opened[..self.plan.targets.len()]
    }

    /// Properties that all results on this rig share.
    pub(crate) fn stand(&self) -> Stand {
        let notes = self.drives().iter().flat_map(|drive| drive.notes.clone());
        Stand {
            drives: self.drives().len() as u32,
            filesystem: self.drives()[0].filesystem.clone(),
            notes: notes.collect(),
        }
    }

    /// Space for files whose size a pilot finds, in bytes: the smallest among the drives.
    pub(crate) fn pilot_bytes(&self) -> u64 {
        let bytes = self.opened.iter().map(|drive| drive.pilot_bytes);
        bytes.min().unwrap_or(0)
    }
}

impl Rig for HostRig<'_> {
    fn assignments(&self, tasks: &[Task<'_>]) -> Vec<Assignment> {
        let ground = Ground {
            drives: self.drives().iter().map(Drive::medium).collect(),
            folder: "",
            other: self.plan.other.as_ref().map(|_| SecondTarget {
                drive_number: self.directories(),
                medium: Medium::Directory,
            }),
            seed: self.plan.experiment.seed,
            drop_all_caches: self.plan.experiment.drops_all_caches,
        };
        ground.assignments(tasks)
    }

    fn run(
        &self,
        (assignments, workers): (&[Assignment], &[Arc<WorkerProgress>]),
        observer: &mut dyn Observer,
    ) -> Result<Vec<Repetition>, LaboratoryError> {
        if let Some(before) = &self.before {
            before.run(self.stop).map_err(|error| match error {
                HookError::StoppedByUser => LaboratoryError::Interrupted,
                error => LaboratoryError::work(error),
            })?;
        }
        self.repetition(assignments, workers, observer)
            .map_err(|Failure { title, error }| {
                LaboratoryError::program(&title, &self.names(), &error)
            })
    }
}

impl HostRig<'_> {
    fn names(&self) -> Names {
        let targets = || self.plan.targets.iter();
        let is_directory = |target: &&Target| target.medium == Medium::Directory;
        let directories = targets().filter(is_directory).chain(&self.plan.other);
        Names {
            targets: targets().map(Target::name).collect(),
            mounts: directories.map(Target::name).collect(),
            drives: targets()
                .filter(|target| !is_directory(target))
                .map(Target::name)
                .collect(),
        }
    }

    fn repetition(
        &self,
        assignments: &[Assignment],
        workers: &[Arc<WorkerProgress>],
        observer: &mut dyn Observer,
    ) -> Result<Vec<Repetition>, Failure> {
        // The main thread meets the workers too, to read the devices'
        // counters when all is prepared and nothing is timed yet.
        let rendezvous = Arc::new(HostRendezvous::new(assignments.len() + 1));
        let failed = |error| Failure::of_all(assignments, error);
        let ends = pipe_ends(assignments).map_err(failed)?;
        let abandoned = Arc::new(AtomicBool::new(false));
        let meters = self.meters();
        let drives = || self.opened.iter().map(Drive::queues);
        let watch = self
            .watch
            .get_or_init(|| InterferenceDetector::for_drives(drives()));
        std::thread::scope(|scope| {
            let (present, leaving) = channel();
            let mut threads = Vec::new();
            let mut refused = None;
            for ((assignment, progress), end) in assignments.iter().zip(workers).zip(ends) {
                let control = self.control(progress, &rendezvous, &abandoned);
                // Also where it cannot be started, the others must not wait for it.
                let absence = Absence::of(&control, present.clone());
                let body = move || self.work(assignment, control, end, absence);
                match Builder::new().spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            drop(present);
            let before = self.meet(&rendezvous, (&meters, watch), observer);
            let stopped = self.answer_until_all_left(&leaving, observer);
            let (numbers, outcomes): (Vec<_>, Vec<_>) = threads.into_iter().map(join).unzip();
            let after = watch.read_counters();
            self.traffic(|traffic| traffic.end(observer));
            if let Some(error) = refused {
                let why = explain_thread_start_failure(&error);
                return Err(failed(ProgramError::ThreadNotStarted(format!(
                    "{error}{why}"
                ))));
            }
            self.tell(&numbers, &outcomes, observer);
            let mut repetitions = collect((assignments, &self.names()), outcomes)?;
            let devices = traffic(&meters, before.devices);
            for repetition in &mut repetitions {
                repetition.devices.clone_from(&devices);
            }
            let all = together(&repetitions);
            let found = watch.detect_interference((&before.machine, &after), &all, stopped);
            for repetition in &mut repetitions {
                repetition.interference.clone_from(&found);
            }
            Ok(repetitions)
        })
    }

    fn control(
        &self,
        progress: &Arc<WorkerProgress>,
        rendezvous: &Arc<HostRendezvous>,
        abandoned: &Arc<AtomicBool>,
    ) -> WorkerControl {
        WorkerControl {
            stop_requested: Arc::clone(self.stop),
            is_abandoned: Arc::clone(abandoned),
            progress: Arc::clone(progress),
            rendezvous: Arc::clone(rendezvous),
            times_calls: self.plan.experiment.times_calls,
            call_clock: self.clock,
        }
    }

    fn work(
        &self,
        assignment: &Assignment,
        control: WorkerControl,
        pipe_end: Option<OwnedFd>,
        mut absence: Absence,
    ) -> (Option<u32>, Result<Outcome, ProgramError>) {
        let thread = self
            .block_events
            .as_ref()
            .and_then(|events| events.register_this_thread().ok());
        let outcome = self.measure(assignment, control, pipe_end);
        absence.came = outcome.is_ok();
        (thread, outcome)
    }

    fn measure(
        &self,
        assignment: &Assignment,
        control: WorkerControl,
        pipe_end: Option<OwnedFd>,
    ) -> Result<Outcome, ProgramError> {
        let mut ports = self
            .ports()
            .map_err(|errno| Error::call_failed(diskperf_system::CallKind::Open, "/mnt0", errno))?;
        ports.pipe_ends.extend(pipe_end.map(Some));
        let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
        let mut buffer = assignment.program.new_buffer(&assignment.worker);
        run_ready(measured(&mut system, assignment, &mut buffer))
    }

    /// Number of drives that are directories. The mount with the next number is the other file
    /// system's.
    fn directories(&self) -> u32 {
        let directories = self
            .drives()
            .iter()
            .filter(|drive| drive.medium() == Medium::Directory);
        directories.count() as u32
    }

    fn ports(&self) -> std::io::Result<HostPorts> {
        let mut ports = HostPorts {
            read_ahead: self.plan.read_ahead,
            ..HostPorts::default()
        };
        self.traffic(|traffic| ports.ring_log = traffic.ring_log());
        for drive in self.opened {
            drive.plug_into(&mut ports)?;
        }
        Ok(ports)
    }

    fn meters(&self) -> Vec<&TrafficMeter> {
        let mut meters: Vec<&TrafficMeter> = Vec::new();
        for meter in self.opened.iter().flat_map(Drive::meters) {
            if !meters
                .iter()
                .any(|known| known.device_name() == meter.device_name())
            {
                meters.push(meter);
            }
        }
        meters
    }

    /// Reports the events of the block layer, if they were recorded and all workers completed.
    fn tell(
        &self,
        threads: &[Option<u32>],
        outcomes: &[Result<Outcome, ProgramError>],
        observer: &mut dyn Observer,
    ) {
        let parts = threads.iter().zip(outcomes);
        let parts: Option<Vec<_>> = parts
            .map(|(thread, outcome)| Some(outcome.as_ref().ok()?.timed_part((*thread)?)))
            .collect();
        let (Some(events), Some(parts)) = (&self.block_events, parts) else {
            return;
        };
        match events.end_recording(parts) {
            Ok(trace) => observer.event(Event::BlockLayer(trace)),
            Err(error) => observer.event(Event::Note(&error.to_string())),
        }
    }

    /// Takes part in the meetings of the workers before the timed part. Between them, it reads the
    /// counters and starts the recording of block-layer events.
    fn meet(
        &self,
        rendezvous: &HostRendezvous,
        (meters, watch): (&[&TrafficMeter], &InterferenceDetector),
        observer: &mut dyn Observer,
    ) -> Before {
        let mut before = Before::default();
        for meeting in [
            Meeting::FilesReady,
            Meeting::AllDropped,
            Meeting::CachesReady,
            Meeting::Start,
        ] {
            if rendezvous.wait_for_all_workers(self.stop).is_err() {
                break;
            }
            if meeting == Meeting::CachesReady {
                before.devices = meters
                    .iter()
                    .map(|meter| meter.read_counters().ok())
                    .collect();
                before.machine = watch.read_counters();
                if let Some(Err(error)) = self
                    .block_events
                    .as_ref()
                    .map(BlockEventRecorder::begin_recording)
                {
                    observer.event(Event::Note(&error.to_string()));
                }
                self.traffic(|traffic| traffic.begin(observer));
            }
        }
        before
    }
}

impl HostRig<'_> {
    /// Waits until all workers have left and reports the requests to storage meanwhile. Returns how
    /// long this process was stopped.
    fn answer_until_all_left(
        &self,
        leaving: &Receiver<Infallible>,
        observer: &mut dyn Observer,
    ) -> Nanoseconds {
        let mut roll = StopDetector::start_detector();
        while leaving.recv_timeout(StopDetector::CHECK_PERIOD) == Err(RecvTimeoutError::Timeout) {
            roll.record_run();
            self.traffic(|traffic| {
                if traffic.poll(observer) {
                    roll.restart_period();
                }
            });
        }
        roll.stopped_time_total()
    }

    fn traffic(&self, mut with: impl FnMut(&mut Traffic)) {
        if let Some(traffic) = &self.traffic {
            with(&mut traffic.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Counters at the end of all preparations, before the timed part.
#[derive(Default)]
struct Before {
    devices: Vec<Option<DiskCounters>>,
    machine: interference::InterferenceCounters,
}

/// Creates pipes between workers. Each worker gets its end of its drive's pipe, if its program has
/// one.
fn pipe_ends(assignments: &[Assignment]) -> Result<Vec<Option<OwnedFd>>, ProgramError> {
    let make = || {
        let (read, write) = std::io::pipe()?;
        Ok((OwnedFd::from(read), OwnedFd::from(write)))
    };
    let mut pipes = Pipes::default();
    let ends = assignments.iter().map(|assignment| {
        let end = pipes.end(assignment, make);
        end.map_err(|error: std::io::Error| {
            Error::call_failed(diskperf_system::CallKind::Pipe, "a drive's workers", error).into()
        })
    });
    ends.collect()
}

/// Meeting of the workers and the main thread before the timed part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meeting {
    /// The files of all workers have been made.
    FilesReady,
    /// The caches of the whole machine have been dropped, if that was requested.
    AllDropped,
    /// The page cache is in the requested state (cold, warm or bypassed).
    CachesReady,
    /// The timed part of the repetition starts.
    Start,
}

/// Guard of a worker that ends the repetition for the other workers if this one fails, panics or
/// never starts.
struct Absence {
    rendezvous: Arc<HostRendezvous>,
    abandoned: Arc<AtomicBool>,
    came: bool,
    /// Sender that is dropped together with the worker, so that the receiver notices its end.
    _present: Sender<Infallible>,
}

impl Absence {
    fn of(control: &WorkerControl, present: Sender<Infallible>) -> Self {
        Self {
            _present: present,
            rendezvous: Arc::clone(&control.rendezvous),
            abandoned: Arc::clone(&control.is_abandoned),
            came: false,
        }
    }
}

impl Drop for Absence {
    fn drop(&mut self) {
        if !self.came {
            self.abandoned.store(true, Ordering::Relaxed);
            self.rendezvous.break_barrier();
        }
    }
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the changes of the devices' counters. They include the last fsync, because the workers
/// have ended.
fn traffic(meters: &[&TrafficMeter], before: Vec<Option<DiskCounters>>) -> Vec<DeviceTraffic> {
    meters
        .iter()
        .zip(before)
        .filter_map(|(meter, before)| {
            Some(meter.traffic_between(before?, meter.read_counters().ok()?))
        })
        .collect()
}
