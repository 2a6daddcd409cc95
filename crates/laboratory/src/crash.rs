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
mod mounted;
mod program;
mod reply;
mod report;
mod search;
mod workload;

pub use report::{ChangedFile, CrashReport, FileSystemFailure, Loss, LostRequest, SavingFlush};

use crate::{LaboratoryError, RunRecorder};
use check::Slot;
use diskperf_crash::directory::SyncFailure;
use diskperf_crash::{CutPolicy, Instants, Log, LyingFlush, log_writes};
use diskperf_device::DeviceSpecification;
use diskperf_system::host::fresh::{FreshKind, FreshSpec, enter_private_mounts};
use diskperf_system::host::is_root;
use diskperf_system::host::mount_keeper::MountKeeper;
use diskperf_system::host::workspace::Workspace;
use disks::Disks;
use mounted::Mounted;
use std::io::BufReader;
use std::path::Path;
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
    Workload {
        /// Command of the workload.
        command: String,
        /// Drive that loses its power.
        drive: Box<DeviceSpecification>,
        /// Virtual seconds per elapsed second.
        speed: f64,
        /// Share of the flushes that the drive ignores.
        lying: LyingFlush,
    },
    /// Log that was recorded before.
    Log(Arc<Log>),
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
    let requests = match &options.source {
        RequestSource::Drive(requests) => requests,
        RequestSource::Directory(workload) => {
            return in_workspace(store, |path| {
                directory::crash_in_directory(options, workload, path, stop, observer)
            });
        }
    };
    if !is_root() {
        return Err(LaboratoryError::Request(
            "crash mounts file systems, which needs root: use sudo, or test without a drive (`--directory` in place of `--on`)".to_owned(),
        ));
    }
    enter_private_mounts().map_err(LaboratoryError::request)?;
    // Drives are served from here, so another process has to be the last one that has mounts of
    // them. It is dropped last.
    let _keeper = MountKeeper::start().map_err(LaboratoryError::work)?;
    in_workspace(store, |path| {
        crash_in(options, requests, path, stop, observer)
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

fn crash_in(
    options: &CrashOptions,
    requests: &DriveRequests,
    workspace: &Path,
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<CrashReport, LaboratoryError> {
    let jobs = match options.filesystem.filesystem_kind {
        // Its kernel tells file systems by a number that all media share.
        FreshKind::Btrfs => 1,
        _ => options.jobs.max(1),
    };
    let disks = match requests {
        DriveRequests::Log(log) => Disks::of_log(log, jobs),
        DriveRequests::Workload {
            drive,
            speed,
            lying,
            ..
        } => Disks::of_drive(
            drive,
            &options.filesystem,
            *speed,
            *lying,
            options.seed,
            jobs,
        )?,
    };
    let mounted = Mounted::mount(Arc::new(disks), &workspace.join("disks"))?;
    let log = match requests {
        DriveRequests::Log(log) => Arc::clone(log),
        DriveRequests::Workload { command, .. } => {
            workload::run_workload(command, &options.filesystem, &mounted, workspace, stop)?;
            Arc::new(mounted.disks().finish_recording())
        }
    };
    observer.recorded(&log)?;
    let slots: Result<Vec<Slot>, _> = (0..jobs)
        .map(|number| Slot::attach(&mounted, number, workspace, options))
        .collect();
    let slots = slots?;
    let report = match stop.load(Ordering::SeqCst) {
        true => Err(LaboratoryError::Interrupted),
        false => search::search(&log, options, &slots, stop, observer),
    };
    let detached = slots.into_iter().map(Slot::detach);
    let detached: Result<Vec<()>, _> = detached.collect();
    let unmounted = mounted.unmount();
    let report = report?;
    detached?;
    unmounted?;
    Ok(report)
}
