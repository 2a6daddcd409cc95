//! Mount of a fresh file system that is unmounted with its owner.

use super::{FreshError, FreshKind};
use crate::host::device::tool::ExternalTool;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_change};
use rustix::thread::UnshareFlags;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Attempts to unmount a busy file system, 20 ms apart. Another thread may be starting a tool,
/// which has a copy of every open file until it runs; and an indexer may look into the mount for a
/// moment.
const UNMOUNT_ATTEMPTS_MAX: u32 = 50;
const UNMOUNT_PAUSE: Duration = Duration::from_millis(20);

/// Gives this thread, and all threads and processes that it starts later, a private mount
/// namespace. Its mounts disappear with the process, even if that is killed. Unmounts in the rest
/// of the system take effect here as well, so that no device of the user is kept busy.
///
/// The main thread must call this once, before it starts any other.
///
/// # Errors
///
/// The user is not root, or the kernel does not permit it.
#[allow(unsafe_code)]
pub fn enter_private_mounts() -> Result<(), FreshError> {
    // SAFETY: only a table of descriptors of its own (FILES) can make one
    // thread's descriptors mean nothing to another.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNS) }
        .and_then(|()| {
            let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
            mount_change("/", propagation)
        })
        .map_err(|error| FreshError::PrivateMountsFailed {
            source: error.into(),
        })
}

/// Unmounts the file system at `mount_point`, and retries for up to a second while it is busy.
/// Links are not followed.
pub(in crate::host) fn unmount_with_retries(mount_point: &Path) -> io::Result<()> {
    let mut attempts = 1;
    loop {
        match rustix::mount::unmount(mount_point, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) if attempts < UNMOUNT_ATTEMPTS_MAX => {
                attempts += 1;
                std::thread::sleep(UNMOUNT_PAUSE);
            }
            result => return Ok(result?),
        }
    }
}

/// Mounted file system. A drop unmounts it, immediately or when its last file is closed.
#[derive(Debug)]
pub(super) struct MountedFilesystem {
    directory: PathBuf,
    /// Path to the mount point through an open directory, which nobody can redirect.
    mount_point: PathBuf,
    is_unmounted: bool,
}

impl MountedFilesystem {
    /// Creates the directory and mounts `device` on it. `mount_point` is another path to the
    /// directory, valid for the lifetime of the mount.
    pub(super) fn mount(
        kind: FreshKind,
        device: &Path,
        directory: &Path,
        mount_point: PathBuf,
        options: &[String],
    ) -> Result<Self, FreshError> {
        rustix::fs::mkdir(&mount_point, Mode::RWXU)
            .map_err(|error| FreshError::from_io("make a folder", directory, error))?;
        let options = options.join(",");
        // Without a note in /run/mount, which would outlive a private mount.
        let mut arguments = vec![
            OsStr::new("-n"),
            OsStr::new("-t"),
            OsStr::new(kind.kind_name()),
        ];
        if !options.is_empty() {
            arguments.extend([OsStr::new("-o"), OsStr::new(&options)]);
        }
        arguments.extend([device.as_os_str(), directory.as_os_str()]);
        ExternalTool::Mount.run_checked(&arguments)?;
        Ok(Self {
            directory: directory.to_owned(),
            mount_point,
            is_unmounted: false,
        })
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts the file system, which writes all its data to the device.
    pub(super) fn unmount(mut self) -> Result<(), FreshError> {
        // After an error, the drop detaches it.
        unmount_with_retries(&self.mount_point).map_err(|source| FreshError::UnmountFailed {
            directory: self.directory.clone(),
            source,
        })?;
        self.is_unmounted = true;
        Ok(())
    }
}

impl Drop for MountedFilesystem {
    fn drop(&mut self) {
        if !self.is_unmounted {
            // Nobody is left to report to; `diskperf clean` finds what stays.
            let flags = UnmountFlags::NOFOLLOW | UnmountFlags::DETACH;
            let _ = rustix::mount::unmount(&self.mount_point, flags);
        }
    }
}
