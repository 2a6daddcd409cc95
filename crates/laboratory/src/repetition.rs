//! Rig of real storage. Every worker runs in its own thread, with its own `System`.

use crate::drive::OpenDrive;
use crate::event_recorder::EventRecorder;
use crate::plan::HostPlan;
use crate::preparation::HookPreparation;
use crate::target::StorageTarget;
use crate::traffic::TrafficLog;
use diskperf_battery::{Medium, ProgramError, SecondTarget};
use diskperf_models::Observer;
use diskperf_models::measured::{
    JobTask, PipeEnds, StorageSetup, WorkerAssignment, WorkerError, WorkerOutcome,
    collect_repetitions, measure_worker, merge_repetitions,
};
use diskperf_models::rig::{MeasurementRig, RigSetup};
use diskperf_models::{LaboratoryError, StorageNames};
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
    pub(crate) open_drives: &'a [OpenDrive],
    /// Recorder of the kernel's events, if they are recorded.
    pub(crate) event_recorder: Option<EventRecorder>,
    /// Source of the requests to storage, if they are recorded.
    pub(crate) device_traffic: Option<Mutex<TrafficLog>>,
    /// Hook and rest before each repetition, for an arm of an A/B measurement.
    pub(crate) preparation: Option<HookPreparation<'a>>,
    /// Monitor of other activity on the machine. Its baseline is taken when the first repetition
    /// starts.
    pub(crate) watch_cell: OnceLock<InterferenceDetector>,
}

impl HostRig<'_> {
    /// Starts to receive events of the drives' disks, as far as the plan requests it and the system
    /// permits it. A refusal is reported as a note.
    pub(crate) fn start_listening(&mut self, observer: &mut dyn Observer) {
        let mut disks: Vec<BlockDevice> = Vec::new();
        for disk in self.open_drives.iter().flat_map(OpenDrive::block_devices) {
            if !disks.contains(disk) {
                disks.push(disk.clone());
            }
        }
        if self.plan.records_requests {
            let traffic = TrafficLog::open(&disks, &self.plan.suite, observer);
            self.device_traffic = traffic.map(Mutex::new);
        }
        if !self.plan.records_block_events {
            return;
        }
        self.event_recorder = EventRecorder::open(&disks, observer);
    }

    /// Stops receiving events. `left` receives whatever could not be removed.
    pub(crate) fn close(self, left: &mut Vec<String>) {
        if let Some(Err(error)) = self.event_recorder.map(EventRecorder::close) {
            left.push(format!("{error}; `diskperf clean` removes it"));
        }
        let traffic = self.device_traffic.map(|traffic| traffic.into_inner());
        let traffic = traffic.map(|traffic| traffic.unwrap_or_else(PoisonError::into_inner));
        if let Some(Err(error)) = traffic.map(TrafficLog::close) {
            left.push(format!("{error}; `diskperf clean` removes it"));
        }
    }

    fn drives(&self) -> &[OpenDrive] {
        &self.open_drives[..self.plan.targets.len()]
    }

    /// Properties that all results on this rig share.
    pub(crate) fn describe_setup(&self) -> RigSetup {
        let notes = self.drives().iter().flat_map(|drive| drive.notes.clone());
        RigSetup {
            drive_count: self.drives().len() as u32,
            filesystem: self.drives()[0].filesystem.clone(),
            notes: notes.collect(),
        }
    }

    /// Space for files whose size a pilot finds, in bytes: the smallest among the drives.
    pub(crate) fn pilot_bytes(&self) -> u64 {
        let bytes = self.open_drives.iter().map(|drive| drive.pilot_bytes);
        bytes.min().unwrap_or(0)
    }
}

impl MeasurementRig for HostRig<'_> {
    fn list_assignments(&self, tasks: &[JobTask<'_>]) -> Vec<WorkerAssignment> {
        let ground = StorageSetup {
            drive_media: self.drives().iter().map(OpenDrive::to_medium).collect(),
            folder_name: "",
            other_medium: self.plan.other_target.as_ref().map(|_| SecondTarget {
                drive_number: self.directory_count(),
                medium: Medium::Directory,
            }),
            seed: self.plan.experiment.seed,
            drop_all_caches: self.plan.experiment.drops_all_caches,
        };
        ground.list_assignments(tasks)
    }

    fn run_assignments(
        &self,
        (assignments, workers): (&[WorkerAssignment], &[Arc<WorkerProgress>]),
        observer: &mut dyn Observer,
    ) -> Result<Vec<Repetition>, LaboratoryError> {
        if let Some(before) = &self.preparation {
            before.run_hook(self.stop).map_err(|error| match error {
                HookError::StoppedByUser => LaboratoryError::Interrupted,
                error => LaboratoryError::work(error),
            })?;
        }
        self.run_repetition(assignments, workers, observer).map_err(
            |WorkerError { title, error }| {
                LaboratoryError::program(&title, &self.error_names(), &error)
            },
        )
    }
}

impl HostRig<'_> {
    fn error_names(&self) -> StorageNames {
        let targets = || self.plan.targets.iter();
        let is_directory = |target: &&StorageTarget| target.medium == Medium::Directory;
        let directories = targets()
            .filter(is_directory)
            .chain(&self.plan.other_target);
        StorageNames {
            target_names: targets().map(StorageTarget::name).collect(),
            mount_points: directories.map(StorageTarget::name).collect(),
            drive_names: targets()
                .filter(|target| !is_directory(target))
                .map(StorageTarget::name)
                .collect(),
        }
    }

    fn run_repetition(
        &self,
        assignments: &[WorkerAssignment],
        workers: &[Arc<WorkerProgress>],
        observer: &mut dyn Observer,
    ) -> Result<Vec<Repetition>, WorkerError> {
        // The main thread meets the workers too, to read the devices'
        // counters when all is prepared and nothing is timed yet.
        let rendezvous = Arc::new(HostRendezvous::new(assignments.len() + 1));
        let failed = |error| WorkerError::from_assignments(assignments, error);
        let ends = open_pipe_ends(assignments).map_err(failed)?;
        let abandoned = Arc::new(AtomicBool::new(false));
        let meters = self.list_meters();
        let drives = || self.open_drives.iter().map(OpenDrive::block_devices);
        let watch = self
            .watch_cell
            .get_or_init(|| InterferenceDetector::for_drives(drives()));
        std::thread::scope(|scope| {
            let (present, leaving) = channel();
            let mut threads = Vec::new();
            let mut refused = None;
            for ((assignment, progress), end) in assignments.iter().zip(workers).zip(ends) {
                let control = self.build_control(progress, &rendezvous, &abandoned);
                // Also where it cannot be started, the others must not wait for it.
                let absence = AbsenceGuard::from_control(&control, present.clone());
                let body = move || self.build_work(assignment, control, end, absence);
                match Builder::new().spawn_scoped(scope, body) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
            drop(present);
            let before = self.coordinate_workers(&rendezvous, (&meters, watch), observer);
            let stopped = self.answer_workers(&leaving, observer);
            let (numbers, outcomes): (Vec<_>, Vec<_>) =
                threads.into_iter().map(join_thread).unzip();
            let after = watch.read_counters();
            self.with_traffic(|traffic| traffic.end_recording(observer));
            if let Some(error) = refused {
                let why = explain_thread_start_failure(&error);
                return Err(failed(ProgramError::ThreadNotStarted(format!(
                    "{error}{why}"
                ))));
            }
            self.report_events(&numbers, &outcomes, observer);
            let mut repetitions =
                collect_repetitions((assignments, &self.error_names()), outcomes)?;
            let devices = measure_traffic(&meters, before.devices);
            for repetition in &mut repetitions {
                repetition.devices.clone_from(&devices);
            }
            let all = merge_repetitions(&repetitions);
            let found = watch.detect_interference((&before.machine, &after), &all, stopped);
            for repetition in &mut repetitions {
                repetition.interference.clone_from(&found);
            }
            Ok(repetitions)
        })
    }

    fn build_control(
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

    fn build_work(
        &self,
        assignment: &WorkerAssignment,
        control: WorkerControl,
        pipe_end: Option<OwnedFd>,
        mut absence: AbsenceGuard,
    ) -> (Option<u32>, Result<WorkerOutcome, ProgramError>) {
        let thread = self
            .event_recorder
            .as_ref()
            .and_then(|recorder| recorder.register_this_thread().ok());
        let outcome = self.measure_workers(assignment, control, pipe_end);
        absence.has_arrived = outcome.is_ok();
        (thread, outcome)
    }

    fn measure_workers(
        &self,
        assignment: &WorkerAssignment,
        control: WorkerControl,
        pipe_end: Option<OwnedFd>,
    ) -> Result<WorkerOutcome, ProgramError> {
        let mut ports = self
            .open_ports()
            .map_err(|errno| Error::call_failed(diskperf_system::CallKind::Open, "/mnt0", errno))?;
        ports.pipe_ends.extend(pipe_end.map(Some));
        let mut system = System::HostWorker(Box::new(HostWorker::new(ports, control)));
        let mut buffer = assignment.program.new_buffer(&assignment.worker);
        run_ready(measure_worker(&mut system, assignment, &mut buffer))
    }

    /// Number of drives that are directories. The mount with the next number is the other file
    /// system's.
    fn directory_count(&self) -> u32 {
        let directories = self
            .drives()
            .iter()
            .filter(|drive| drive.to_medium() == Medium::Directory);
        directories.count() as u32
    }

    fn open_ports(&self) -> std::io::Result<HostPorts> {
        let mut ports = HostPorts {
            read_ahead: self.plan.read_ahead,
            ..HostPorts::default()
        };
        self.with_traffic(|traffic| ports.ring_log = traffic.ring_log());
        for drive in self.open_drives {
            drive.add_to_ports(&mut ports)?;
        }
        Ok(ports)
    }

    fn list_meters(&self) -> Vec<&TrafficMeter> {
        let mut meters: Vec<&TrafficMeter> = Vec::new();
        for meter in self.open_drives.iter().flat_map(OpenDrive::traffic_meters) {
            if !meters
                .iter()
                .any(|known| known.device_name() == meter.device_name())
            {
                meters.push(meter);
            }
        }
        meters
    }

    /// Reports the kernel's events, if they were recorded and all workers completed.
    fn report_events(
        &self,
        threads: &[Option<u32>],
        outcomes: &[Result<WorkerOutcome, ProgramError>],
        observer: &mut dyn Observer,
    ) {
        let parts = threads.iter().zip(outcomes);
        let parts: Option<Vec<_>> = parts
            .map(|(thread, outcome)| Some(outcome.as_ref().ok()?.timed_part((*thread)?)))
            .collect();
        if let (Some(recorder), Some(parts)) = (&self.event_recorder, parts) {
            recorder.end_recording(parts, observer);
        }
    }

    /// Takes part in the meetings of the workers before the timed part. Between them, it reads the
    /// counters and starts the recording of events.
    fn coordinate_workers(
        &self,
        rendezvous: &HostRendezvous,
        (meters, watch): (&[&TrafficMeter], &InterferenceDetector),
        observer: &mut dyn Observer,
    ) -> CountersBefore {
        let mut before = CountersBefore::default();
        for meeting in [
            WorkerMeeting::FilesReady,
            WorkerMeeting::AllDropped,
            WorkerMeeting::CachesReady,
            WorkerMeeting::Start,
        ] {
            if rendezvous.wait_for_all_workers(self.stop).is_err() {
                break;
            }
            if meeting == WorkerMeeting::CachesReady {
                before.devices = meters
                    .iter()
                    .map(|meter| meter.read_counters().ok())
                    .collect();
                before.machine = watch.read_counters();
                if let Some(recorder) = &self.event_recorder {
                    recorder.begin_recording(observer);
                }
                self.with_traffic(|traffic| traffic.begin_recording(observer));
            }
        }
        before
    }
}

impl HostRig<'_> {
    /// Waits until all workers have left and reports the requests to storage meanwhile. Returns how
    /// long this process was stopped.
    fn answer_workers(
        &self,
        leaving: &Receiver<Infallible>,
        observer: &mut dyn Observer,
    ) -> Nanoseconds {
        let mut roll = StopDetector::start_detector();
        while leaving.recv_timeout(StopDetector::CHECK_PERIOD) == Err(RecvTimeoutError::Timeout) {
            roll.record_run();
            self.with_traffic(|traffic| {
                if traffic.poll_events(observer) {
                    roll.restart_period();
                }
            });
        }
        roll.stopped_time_total()
    }

    fn with_traffic(&self, mut with: impl FnMut(&mut TrafficLog)) {
        if let Some(traffic) = &self.device_traffic {
            with(&mut traffic.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// Counters at the end of all preparations, before the timed part.
#[derive(Default)]
struct CountersBefore {
    devices: Vec<Option<DiskCounters>>,
    machine: interference::InterferenceCounters,
}

/// Creates pipes between workers. Each worker gets its end of its drive's pipe, if its program has
/// one.
fn open_pipe_ends(assignments: &[WorkerAssignment]) -> Result<Vec<Option<OwnedFd>>, ProgramError> {
    let make = || {
        let (read, write) = std::io::pipe()?;
        Ok((OwnedFd::from(read), OwnedFd::from(write)))
    };
    let mut pipes = PipeEnds::default();
    let ends = assignments.iter().map(|assignment| {
        let end = pipes.take_end(assignment, make);
        end.map_err(|error: std::io::Error| {
            Error::call_failed(diskperf_system::CallKind::Pipe, "a drive's workers", error).into()
        })
    });
    ends.collect()
}

/// Meeting of the workers and the main thread before the timed part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WorkerMeeting {
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
struct AbsenceGuard {
    rendezvous: Arc<HostRendezvous>,
    abandoned: Arc<AtomicBool>,
    has_arrived: bool,
    /// Sender that is dropped together with the worker, so that the receiver notices its end.
    _present: Sender<Infallible>,
}

impl AbsenceGuard {
    fn from_control(control: &WorkerControl, present: Sender<Infallible>) -> Self {
        Self {
            _present: present,
            rendezvous: Arc::clone(&control.rendezvous),
            abandoned: Arc::clone(&control.is_abandoned),
            has_arrived: false,
        }
    }
}

impl Drop for AbsenceGuard {
    fn drop(&mut self) {
        if !self.has_arrived {
            self.abandoned.store(true, Ordering::Relaxed);
            self.rendezvous.break_barrier();
        }
    }
}

fn join_thread<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Returns the changes of the devices' counters. They include the last fsync, because the workers
/// have ended.
fn measure_traffic(
    meters: &[&TrafficMeter],
    before: Vec<Option<DiskCounters>>,
) -> Vec<DeviceTraffic> {
    meters
        .iter()
        .zip(before)
        .filter_map(|(meter, before)| {
            Some(meter.traffic_between(before?, meter.read_counters().ok()?))
        })
        .collect()
}
