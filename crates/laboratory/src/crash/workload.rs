//! The workload on a file system of the recorded drive.

use super::filesystem::{DRIVE_NAME, MARKS_NAME};
use super::mounted::Mounted;
use super::program::{run, shell};
use crate::LaboratoryError;
use diskperf_system::host::child_group::GroupEnd;
use diskperf_system::host::device::LoopDevice;
use diskperf_system::host::fresh::{FreshKind, FreshSpec, make_filesystem};
use diskperf_system::host::mounter::Mounter;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

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
pub(super) struct MountedDisk<'m> {
    mounter: &'m Mounter,
    directory: PathBuf,
    is_mounted: bool,
}

impl<'m> MountedDisk<'m> {
    /// Mounts a device, which recovers its file system. Options that media need beside each other
    /// are added.
    pub(super) fn mount(
        mounter: &'m Mounter,
        spec: &FreshSpec,
        device: &Path,
        directory: &Path,
    ) -> io::Result<Self> {
        let kind = spec.filesystem_kind;
        let mut options: Vec<&str> = spec.mount_options.iter().map(String::as_str).collect();
        if kind == FreshKind::Xfs {
            options.push("nouuid");
        }
        let mounted = mounter.mount(kind, device, directory, &options);
        mounted.map_err(|error| {
            let with = match &options[..] {
                [] => String::new(),
                options => format!(" with the options `{}`", options.join(",")),
            };
            let text = format!("cannot mount {kind}{with}: {error}: `dmesg` says more");
            io::Error::new(error.kind(), text)
        })?;
        Ok(Self {
            mounter,
            directory: directory.to_owned(),
            is_mounted: true,
        })
    }

    pub(super) fn unmount(mut self) -> Result<(), LaboratoryError> {
        self.mounter.unmount(&self.directory).map_err(|error| {
            let directory = self.directory.display();
            LaboratoryError::Failure(format!("cannot unmount {directory}: {error}"))
        })?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for MountedDisk<'_> {
    fn drop(&mut self) {
        if self.is_mounted {
            // Nobody is left to report to; the mounts are this process's own.
            let _ = self.mounter.unmount_lazily(&self.directory);
        }
    }
}

/// Formats the drive, runs the command on it, and ends the recording's workload.
pub(super) fn run_workload(
    command: &str,
    spec: &FreshSpec,
    mounted: &Mounted,
    mounter: &Mounter,
    workspace: &Path,
    stop: &AtomicBool,
) -> Result<(), LaboratoryError> {
    let device = attach(mounted, DRIVE_NAME)?;
    let directory = workspace.join("files");
    std::fs::create_dir(&directory).map_err(LaboratoryError::work)?;
    make_filesystem(spec, device.device().path()).map_err(LaboratoryError::request)?;
    let disk = MountedDisk::mount(mounter, spec, device.device().path(), &directory);
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
