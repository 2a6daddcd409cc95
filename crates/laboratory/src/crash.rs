//! Power cuts of a workload on a modelled drive: the recorded requests, the media that cuts may
//! leave, and a check of each on the real kernel.
//!
//! A FUSE file system has a file for the modelled drive and one for each medium under check. Loop
//! devices make disks of them. Everything that waits for these disks is done by other processes,
//! because a killed process ends only when none of its threads waits for a file that the process
//! itself serves.

mod check;
mod directory;
mod disks;
mod filesystem;
mod kept;
mod mounted;
mod program;
mod reply;
mod report;
mod search;
mod workload;

pub use report::{
    ChangedFile, CrashReport, CutMoment, CutStep, FileSystemFailure, Loss, LostRequest,
    NumberedRequest, SavingFlush,
};

use crate::{LaboratoryError, RunRecorder};
use check::Slot;
use diskperf_crash::directory::SyncFailure;
use diskperf_crash::{CutPolicy, Instants, Log, LyingFlush, log_writes};
use diskperf_device::DeviceSpecification;
use diskperf_system::host::fresh::{FreshSpec, enter_private_mounts};
use diskperf_system::host::is_root;
use diskperf_system::host::mounter::Mounter;
use diskperf_system::host::workspace::Workspace;
use disks::Disks;
use kept::KeptTest;
use mounted::Mounted;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Choices of a user about the power cuts of a workload.
#[derive(Clone, Debug)]
pub struct CrashOptions {
    /// Source of the requests.
    pub source: RequestSource,
    /// File system on the drive.
    pub filesystem: FreshSpec,
    /// Command that checks a medium; the file system's own checker alone without one.
    pub check: Option<String>,
    /// Longest duration of a check.
    pub check_time_max: Duration,
    /// Instants of the cuts.
    pub instants: Instants,
    /// Choice of what each cut loses.
    pub policy: CutPolicy,
    /// Seed of every random choice.
    pub seed: u64,
    /// Media that are checked at the same time.
    pub jobs: usize,
    /// File that keeps the test until it has ended, and from which an interrupted one goes on.
    pub resume: Option<PathBuf>,
}

/// Source of the requests whose power cuts are checked.
#[derive(Clone, Debug)]
pub enum RequestSource {
    /// Requests of a drive with a file system, which needs root.
    Drive(DriveRequests),
    /// Operations in a recorded directory, without root and without a drive.
    Directory(DirectoryWorkload),
}

/// Source of the requests of a drive.
#[derive(Clone, Debug)]
pub enum DriveRequests {
    /// Command that runs on a file system on a modelled drive.
    Workload(DriveWorkload),
    /// Log that was recorded before.
    Log(Arc<Log>),
}

/// Workload on a file system on a modelled drive.
#[derive(Clone, Debug)]
pub struct DriveWorkload {
    /// Command of the workload.
    pub command: String,
    /// Drive that loses its power.
    pub drive: Box<DeviceSpecification>,
    /// Virtual seconds per elapsed second.
    pub speed: f64,
    /// Share of the flushes that the drive ignores.
    pub lying: LyingFlush,
}

/// Workload in a recorded directory.
#[derive(Clone, Debug)]
pub struct DirectoryWorkload {
    /// Command of the workload.
    pub command: String,
    /// Share of the syncs that do nothing.
    pub lying: LyingFlush,
    /// Share of the syncs that fail.
    pub failing: SyncFailure,
}

/// Observer of a crash test.
pub trait CrashObserver: Send {
    /// Takes the log once, when the workload has ended.
    ///
    /// # Errors
    ///
    /// The log cannot be written.
    fn recorded(&mut self, log: &Log) -> Result<(), LaboratoryError>;
    /// Takes the numbers of media that were checked, of those to check and of failures so far.
    fn checked(&mut self, checked_count: usize, cut_count: usize, failure_count: usize);
}

/// Reads a log of dm-log-writes. The device has the given size, or ends with the last request.
///
/// # Errors
///
/// A file that cannot be read or is not a regular file, or a fault in the log.
pub fn read_log(path: &Path, size_bytes: Option<u64>) -> Result<Log, LaboratoryError> {
    let refused = |error: &dyn std::fmt::Display| {
        LaboratoryError::Request(format!("{}: {error}", path.display()))
    };
    let file = diskperf_diagnostics::input::open(path).map_err(|error| refused(&error))?;
    log_writes::read(&mut BufReader::new(file), size_bytes).map_err(|error| refused(&error))
}

/// Runs a workload and checks what its power cuts leave. It must be called before the process has
/// other threads, because with a drive it gives itself private mounts.
///
/// # Errors
///
/// A drive is tested and the user is not root, a tool is missing, or the workload fails.
pub fn crash(
    options: &CrashOptions,
    store: Option<&Path>,
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<CrashReport, LaboratoryError> {
    let resume = options.resume.as_deref();
    let mut kept = resume
        .map(|path| KeptTest::open(path, options))
        .transpose()?;
    let report = crash_keeping(options, store, &mut kept, stop, observer)?;
    if let Some(kept) = &mut kept {
        kept.end()?;
    }
    Ok(report)
}

fn crash_keeping(
    options: &CrashOptions,
    store: Option<&Path>,
    kept: &mut Option<KeptTest>,
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<CrashReport, LaboratoryError> {
    let requests = match &options.source {
        RequestSource::Drive(requests) => requests,
        RequestSource::Directory(workload) => {
            return in_workspace(store, |path| {
                directory::crash_in_directory(options, workload, path, kept, stop, observer)
            });
        }
    };
    if !is_root() {
        return Err(LaboratoryError::Request(
            "crash mounts file systems, which needs root: use sudo, or test without a drive (`--directory` in place of `--on`)".to_owned(),
        ));
    }
    enter_private_mounts().map_err(LaboratoryError::request)?;
    // Drives are served from here, so other processes have to be the last ones that have mounts of
    // them. They are dropped last.
    let mounters = start_mounters(options).map_err(LaboratoryError::work)?;
    in_workspace(store, |path| {
        let place = MountPlace {
            workspace: path,
            mounters: &mounters,
        };
        crash_in(options, requests, &place, kept, stop, observer)
    })
}

/// Runs a test in a new folder, and removes the folder.
fn in_workspace(
    store: Option<&Path>,
    test: impl FnOnce(&Path) -> Result<CrashReport, LaboratoryError>,
) -> Result<CrashReport, LaboratoryError> {
    let mut recorder = RunRecorder::open(store);
    let place = std::env::temp_dir();
    let workspace = Workspace::create(&place, 0, |path| recorder.note_workspace(path))
        .map_err(LaboratoryError::request)?;
    let path = workspace.path().to_owned();
    let result = test(&path);
    // What failed first says more than what fails now.
    let removed = workspace.remove().map_err(LaboratoryError::work);
    let report = result?;
    removed?;
    recorder.forget_workspace(&path);
    Ok(report)
}

/// Starts a mounter for each medium that is checked at the same time.
fn start_mounters(options: &CrashOptions) -> io::Result<Vec<Mounter>> {
    let jobs = match options.filesystem.filesystem_kind.mounts_copies() {
        true => options.jobs.max(1),
        false => 1,
    };
    (0..jobs).map(|_| Mounter::start()).collect()
}

/// Folder of a test on a drive, and the processes that mount there.
struct MountPlace<'p> {
    workspace: &'p Path,
    mounters: &'p [Mounter],
}

fn crash_in(
    options: &CrashOptions,
    requests: &DriveRequests,
    place: &MountPlace<'_>,
    kept: &mut Option<KeptTest>,
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<CrashReport, LaboratoryError> {
    let recorded = match requests {
        DriveRequests::Log(log) => place.show(Arc::clone(log))?,
        DriveRequests::Workload(workload) => match interrupted_log(kept)? {
            Some(log) => place.show(Arc::new(log))?,
            None => place.record(options, workload, stop)?,
        },
    };
    let RecordedDrive { mounted, log } = recorded;
    if let Some(kept) = kept {
        kept.begin(&*log)?;
    }
    observer.recorded(&log)?;
    let numbered = place.mounters.iter().enumerate();
    let slots: Result<Vec<Slot>, _> = numbered
        .map(|(number, mounter)| Slot::attach(&mounted, number, mounter, place.workspace, options))
        .collect();
    let slots = slots?;
    let report = match stop.load(Ordering::SeqCst) {
        true => Err(LaboratoryError::Interrupted),
        false => search::search(&log, options, &slots, kept, stop, observer),
    };
    let detached = slots.into_iter().map(Slot::detach);
    let detached: Result<Vec<()>, _> = detached.collect();
    let unmounted = mounted.unmount();
    let report = report?;
    detached?;
    unmounted?;
    Ok(report)
}

/// Returns the log of an interrupted test; `None` if this one begins anew.
fn interrupted_log<T: DeserializeOwned>(
    kept: &Option<KeptTest>,
) -> Result<Option<T>, LaboratoryError> {
    kept.as_ref().map_or(Ok(None), KeptTest::log)
}

/// Log of a drive, and the mount with the media of its cuts.
struct RecordedDrive {
    mounted: Mounted,
    log: Arc<Log>,
}

impl MountPlace<'_> {
    fn mount(&self, disks: Disks) -> Result<Mounted, LaboratoryError> {
        Mounted::mount(Arc::new(disks), &self.workspace.join("disks"))
    }

    /// Shows the media of a log that was recorded before.
    fn show(&self, log: Arc<Log>) -> Result<RecordedDrive, LaboratoryError> {
        let mounted = self.mount(Disks::of_log(&log, self.mounters.len()))?;
        Ok(RecordedDrive { mounted, log })
    }

    fn record(
        &self,
        options: &CrashOptions,
        workload: &DriveWorkload,
        stop: &AtomicBool,
    ) -> Result<RecordedDrive, LaboratoryError> {
        let filesystem = &options.filesystem;
        let disks = Disks::of_drive(workload, filesystem, options.seed, self.mounters.len())?;
        let mounted = self.mount(disks)?;
        let (command, mounter) = (&workload.command, &self.mounters[0]);
        workload::run_workload(command, filesystem, &mounted, mounter, self.workspace, stop)?;
        let log = Arc::new(mounted.disks().finish_recording());
        Ok(RecordedDrive { mounted, log })
    }
}
