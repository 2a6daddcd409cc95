//! Power cuts of a program that writes to a recorded directory, without root and without a drive.

mod check;
mod files;

use super::{
    CrashObserver, CrashOptions, CrashReport, DirectoryWorkload, KeptTest, interrupted_log,
    program, search,
};
use crate::LaboratoryError;
use check::TreeSlot;
use diskperf_crash::directory::{DirectoryLog, DirectoryRecording};
use diskperf_system::host::child_group::GroupEnd;
use diskperf_system::host::user_mount::UserMount;
use files::{FILES_NAME, MARKS_NAME, ROOT_OF_FILES, RecordedFiles, SPACE_BYTES};
use fuser::{Config, Session, SessionACL};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Source that the kernel shows for the mount.
const MOUNT_SOURCE: &str = "diskperf-directory";

/// Runs a workload in a recorded directory, and checks what its power cuts leave.
pub(super) fn crash_in_directory(
    options: &CrashOptions,
    workload: &DirectoryWorkload,
    workspace: &Path,
    kept: &mut Option<KeptTest>,
    stop: &AtomicBool,
    observer: &mut dyn CrashObserver,
) -> Result<CrashReport, LaboratoryError> {
    let log = match interrupted_log(kept)? {
        Some(log) => log,
        None => record(workload, workspace, stop)?,
    };
    if let Some(kept) = kept {
        kept.begin(&log)?;
    }
    let log = Arc::new(log);
    observer.recorded(log.requests())?;
    let slots: Result<Vec<TreeSlot>, _> = (0..options.jobs.max(1))
        .map(|number| TreeSlot::create(&log, number, workspace, options))
        .collect();
    match stop.load(Ordering::SeqCst) {
        true => Err(LaboratoryError::Interrupted),
        false => search::search(log.requests(), options, &slots?, kept, stop, observer),
    }
}

fn record(
    workload: &DirectoryWorkload,
    workspace: &Path,
    stop: &AtomicBool,
) -> Result<DirectoryLog, LaboratoryError> {
    let directory = workspace.join("recorded");
    std::fs::create_dir(&directory).map_err(LaboratoryError::work)?;
    let recording =
        DirectoryRecording::new(ROOT_OF_FILES, SPACE_BYTES, workload.lying, workload.failing);
    let recording = Arc::new(Mutex::new(Some(recording)));
    let files = RecordedFiles::new(Arc::clone(&recording), &directory)?;
    let (mount, descriptor) =
        UserMount::mount(&directory, MOUNT_SOURCE).map_err(LaboratoryError::request)?;
    let session = Session::from_fd(files, descriptor, SessionACL::Owner, Config::default());
    // A process that escaped its group may keep the mount busy, so nobody waits for this thread.
    let _serving = session
        .and_then(Session::spawn)
        .map_err(LaboratoryError::work)?;
    let ended =
        program::shell(&workload.command, &directory.join(FILES_NAME)).and_then(|mut shell| {
            shell.env("DISKPERF_MARKS", directory.join(MARKS_NAME));
            // Standard output is the report's.
            shell.stdout(Stdio::from(std::io::stderr()));
            program::run(shell, None, stop)
        });
    let recording = super::disks::lock(&recording).take();
    let unmounted = mount.unmount();
    match ended? {
        GroupEnd::Exited(status) if status.success() => {}
        GroupEnd::Exited(status) => {
            return Err(LaboratoryError::Request(format!(
                "`{}` failed ({status}) before any power was cut: it must succeed in a directory that works",
                workload.command
            )));
        }
        GroupEnd::Stopped | GroupEnd::TimedOut => return Err(LaboratoryError::Interrupted),
    }
    unmounted.map_err(LaboratoryError::work)?;
    let recording = recording.expect("a directory is recorded once");
    Ok(recording.finish())
}
