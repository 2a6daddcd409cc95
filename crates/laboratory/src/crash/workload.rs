//! The workload on a file system of the recorded drive.

use super::filesystem::{DRIVE_NAME, MARKS_NAME};
use super::mounted::Mounted;
use super::program::{run, shell};
use crate::LaboratoryError;
use diskperf_system::host::child_group::GroupEnd;
use diskperf_system::host::device::LoopDevice;
use diskperf_system::host::device::tool::ExternalTool;
use diskperf_system::host::fresh::{FreshKind, FreshSpec, make_filesystem};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Attempts to unmount a file system that is still in use, and the pause between them.
const UNMOUNT_ATTEMPTS_MAX: u32 = 50;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(20);

/// Loop device over a file of the mounted disks.
pub(super) fn attach(mounted: &Mounted, name: &str) -> Result<LoopDevice, LaboratoryError> {
    let path = mounted.path(name);
    let file = File::options().read(true).write(true).open(&path);
    let file =
        file.map_err(|error| LaboratoryError::Failure(format!("{}: {error}", path.display())))?;
    let unit_bytes = u64::from(mounted.disks().unit_bytes);
    LoopDevice::attach_file(&path, file.as_fd(), unit_bytes).map_err(LaboratoryError::work)
}

/// Mounted file system on one of the disks. A drop unmounts it.
pub(super) struct MountedDisk {
    directory: PathBuf,
    is_mounted: bool,
}

impl MountedDisk {
    /// Mounts a device, which recovers its file system. Options that media need beside each other
    /// are added.
    pub(super) fn mount(
        spec: &FreshSpec,
        device: &Path,
        directory: &Path,
    ) -> Result<Self, diskperf_system::host::device::tool::ToolError> {
        let mut options: Vec<&str> = spec.mount_options.iter().map(String::as_str).collect();
        if spec.filesystem_kind == FreshKind::Xfs {
            options.push("nouuid");
        }
        let options = options.join(",");
        let mut arguments = vec!["-n", "-t", spec.filesystem_kind.kind_name()];
        if !options.is_empty() {
            arguments.extend(["-o", &options]);
        }
        let mut arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).collect();
        arguments.extend([device.as_os_str(), directory.as_os_str()]);
        ExternalTool::Mount.run_checked(&arguments)?;
        Ok(Self {
            directory: directory.to_owned(),
            is_mounted: true,
        })
    }

    pub(super) fn unmount(mut self) -> Result<(), LaboratoryError> {
        let mut attempts = 1;
        loop {
            match ExternalTool::Umount.run_checked(&["-n".as_ref(), self.directory.as_os_str()]) {
                Ok(_) => break,
                Err(_) if attempts < UNMOUNT_ATTEMPTS_MAX => {
                    attempts += 1;
                    thread::sleep(UNMOUNT_PAUSE);
                }
                Err(error) => return Err(LaboratoryError::work(error)),
            }
        }
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        if self.is_mounted {
            let arguments = ["-n".as_ref(), "--lazy".as_ref(), self.directory.as_os_str()];
            // Nobody is left to report to; the mounts are this process's own.
            let _ = ExternalTool::Umount.run_checked(&arguments);
        }
    }
}

/// Formats the drive, runs the command on it, and ends the recording's workload.
pub(super) fn run_workload(
    command: &str,
    spec: &FreshSpec,
    mounted: &Mounted,
    workspace: &Path,
    stop: &AtomicBool,
) -> Result<(), LaboratoryError> {
    let device = attach(mounted, DRIVE_NAME)?;
    let directory = workspace.join("files");
    std::fs::create_dir(&directory).map_err(LaboratoryError::work)?;
    make_filesystem(spec, device.device().path()).map_err(LaboratoryError::request)?;
    let disk = MountedDisk::mount(spec, device.device().path(), &directory);
    let disk = disk.map_err(LaboratoryError::request)?;
    let disks = mounted.disks();
    disks.with_recording(|recording| recording.begin());
    disks.is_timed.store(true, Ordering::Relaxed);
    let ended = shell(command, &directory).and_then(|mut shell| {
        shell.env("DISKPERF_MARKS", mounted.path(MARKS_NAME));
        // Standard output is the report's.
        shell.stdout(Stdio::from(std::io::stderr()));
        run(shell, None, stop)
    });
    disks.with_recording(|recording| recording.end());
    disks.is_timed.store(false, Ordering::Relaxed);
    disk.unmount()?;
    device.detach_device().map_err(LaboratoryError::work)?;
    match ended? {
        GroupEnd::Exited(status) if status.success() => Ok(()),
        GroupEnd::Exited(status) => Err(LaboratoryError::Request(format!(
            "`{command}` failed ({status}) before any power was cut: it must succeed on a drive that works"
        ))),
        GroupEnd::Stopped | GroupEnd::TimedOut => Err(LaboratoryError::Interrupted),
    }
}
