//! Folders that a killed run left behind.

use super::WorkspaceError;
use super::folder::{self, Folder};
use crate::host::device::detach_backed_by;
use crate::host::mounts::Mounts;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::UnmountFlags;
use rustix::process::Pid;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A folder of a dead owner. While this lives, its lock keeps others from
/// taking the folder for abandoned as well.
#[derive(Debug)]
pub struct Abandoned(Remains);

#[derive(Debug)]
enum Remains {
    /// A folder with its marker.
    Folder(Folder),
    /// The owner died between making the folder and making the marker.
    Empty(PathBuf),
}

impl Abandoned {
    /// The folder.
    pub fn path(&self) -> &Path {
        match &self.0 {
            Remains::Folder(folder) => folder.path(),
            Remains::Empty(path) => path,
        }
    }

    /// Unmounts what is mounted inside, detaches the loop devices of files
    /// inside, and removes the folder with all that is in it.
    ///
    /// # Errors
    /// A mount is in use, a loop device cannot be detached, or a file cannot
    /// be removed.
    pub fn remove(self) -> Result<(), WorkspaceError> {
        match self.0 {
            Remains::Folder(folder) => {
                unmount_inside(folder.path())?;
                detach_backed_by(folder.path())?;
                folder.remove()
            }
            Remains::Empty(path) => match std::fs::remove_dir(&path) {
                // An owner that was only starting, or another `clean`.
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::NotFound | std::io::ErrorKind::DirectoryNotEmpty
                    ) =>
                {
                    Ok(())
                }
                result => result.map_err(|error| WorkspaceError::from_io("remove", &path, error)),
            },
        }
    }
}

fn unmount_inside(path: &Path) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::Io {
        action: "unmount what is inside",
        path: path.to_owned(),
        source,
    };
    for mount in Mounts::read().map_err(failed)?.inside(path) {
        rustix::mount::unmount(&mount.mount_point, UnmountFlags::NOFOLLOW)
            .map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// Looks through a directory, not below it.
pub(super) fn find(directory: &Path) -> Result<Vec<Abandoned>, WorkspaceError> {
    let failed = |error| WorkspaceError::from_io("list", directory, error);
    let directory = directory.canonicalize().map_err(failed)?;
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if let Some(pid) = folder::owner(&entry.file_name()) {
            found.extend(examine(entry.path(), pid)?);
        }
    }
    found.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(found)
}

/// A folder with a name of ours: abandoned or not?
fn examine(path: PathBuf, pid: i32) -> Result<Option<Abandoned>, WorkspaceError> {
    let failed = |error: Errno| WorkspaceError::from_io("look at", &path, error);
    // The folder may go away at any moment: then it is not abandoned.
    let Ok(status) = path.symlink_metadata() else {
        return Ok(None);
    };
    // Of somebody else's folder, the contents could change under the removal.
    if !status.is_dir() || status.uid() != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    // Anything but a file here is not ours, and must not be waited on.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let lock = match rustix::fs::openat(CWD, path.join(folder::MARKER), flags, Mode::empty()) {
        Ok(lock) => File::from(lock),
        Err(Errno::NOENT) => {
            let empty = is_empty(&path) && !is_alive(pid);
            return Ok(empty.then_some(Abandoned(Remains::Empty(path))));
        }
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let marker = rustix::fs::fstat(&lock).map_err(failed)?;
    if !FileType::from_raw_mode(marker.st_mode).is_file() {
        return Ok(None);
    }
    // Before it is locked, a marker is empty, and its owner about to lock it.
    if marker.st_size == 0 && is_alive(pid) {
        return Ok(None);
    }
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let folder = Folder::new(path, lock);
    Ok(folder
        .is_ours()
        .then_some(Abandoned(Remains::Folder(folder))))
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Whether a process of this number runs; any other answer than "no such
/// process" counts as yes.
fn is_alive(pid: i32) -> bool {
    Pid::from_raw(pid).is_none_or(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}
