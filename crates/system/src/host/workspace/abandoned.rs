//! Workspaces that killed runs left behind.

use super::WorkspaceError;
use super::folder::{self, WorkspaceFolder, path_through};
use crate::host::device::detach_backed_by;
use crate::host::fresh::unmount_with_retries;
use crate::host::listing::DirectoryListing;
use crate::host::processes::is_process_alive;
use crate::host::user_mount::unmount_of_user;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Workspace of a dead owner. Its lock keeps other processes from handling the folder at the same
/// time.
#[derive(Debug)]
pub struct AbandonedWorkspace(AbandonedState);

#[derive(Debug)]
enum AbandonedState {
    AbandonedFolder(WorkspaceFolder),
    /// Empty folder. The owner died between creating the folder and its marker, or between removing
    /// the marker and the folder.
    EmptyFolder {
        path: PathBuf,
        name: OsString,
        parent: Arc<OwnedFd>,
        directory: OwnedFd,
    },
    /// Folder with the name and user of a workspace, for which nothing else could be determined.
    UnknownOwner {
        path: PathBuf,
        error: WorkspaceError,
    },
}

impl AbandonedWorkspace {
    /// Returns the path of the workspace folder.
    pub fn path(&self) -> &Path {
        match &self.0 {
            AbandonedState::AbandonedFolder(folder) => folder.path(),
            AbandonedState::EmptyFolder { path, .. }
            | AbandonedState::UnknownOwner { path, .. } => path,
        }
    }

    /// Returns the reason why it is unknown whether the folder is abandoned; `None` if it is
    /// abandoned and can be removed.
    pub fn removal_obstacle(&self) -> Option<&WorkspaceError> {
        match &self.0 {
            AbandonedState::UnknownOwner { error, .. } => Some(error),
            AbandonedState::AbandonedFolder(_) | AbandonedState::EmptyFolder { .. } => None,
        }
    }

    /// Unmounts file systems inside, detaches the loop devices of files inside, and removes the
    /// folder with all its contents.
    ///
    /// # Errors
    ///
    /// A mount is in use, a loop device cannot be detached, or a file cannot be removed.
    pub fn remove(self) -> Result<(), WorkspaceError> {
        match self.0 {
            AbandonedState::AbandonedFolder(mut folder) => match remove_with_mounts(&folder) {
                // Its owner was just removing it, or another `clean` is.
                Err(_) if folder.has_been_removed() => Ok(()),
                taken_down => taken_down.and_then(|()| folder.remove_folder()),
            },
            AbandonedState::EmptyFolder {
                path,
                name,
                parent,
                directory,
            } => {
                let _ = folder::remove_hidden(directory.as_fd());
                match rustix::fs::unlinkat(&*parent, &name, AtFlags::REMOVEDIR) {
                    // An owner that was only starting, or another `clean`.
                    Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
                    Err(error) => Err(WorkspaceError::from_io("remove", &path, error)),
                }
            }
            AbandonedState::UnknownOwner { error, .. } => Err(error),
        }
    }
}

/// Unmounts and detaches everything that uses files of the folder.
fn remove_with_mounts(folder: &WorkspaceFolder) -> Result<(), WorkspaceError> {
    unmount_inside(folder)?;
    let files = folder
        .file_numbers()
        .map_err(|error| WorkspaceError::from_io("list", folder.path(), error))?;
    Ok(detach_backed_by(&files)?)
}

fn unmount_inside(folder: &WorkspaceFolder) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::Io {
        action: "unmount the file systems inside",
        path: folder.path().to_owned(),
        source,
    };
    for (shown, below) in folder.mounts_inside().map_err(failed)? {
        let mount_point = path_through(folder.directory()).join(below);
        match unmount_with_retries(&mount_point) {
            // A user unmounts what the user mounted by FUSE, and nothing else.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                unmount_of_user(&shown).map_err(|_| failed(error))?;
            }
            unmounted => unmounted.map_err(failed)?,
        }
    }
    Ok(())
}

/// Searches a directory for abandoned workspaces, without subdirectories, in order of names.
pub(super) fn find_abandoned(
    directory: &Path,
) -> Result<impl Iterator<Item = AbandonedWorkspace> + use<>, WorkspaceError> {
    let DirectoryListing {
        path,
        directory: parent,
        entry_names: names,
    } = DirectoryListing::read_directory(directory, |name| folder::parse_owner(name).is_some())
        .map_err(|error| WorkspaceError::from_io("list", directory, error))?;
    Ok(names.into_iter().filter_map(move |name| {
        let pid = folder::parse_owner(&name)?;
        let at = path.join(&name);
        match examine_folder(&path, &parent, name, pid) {
            Ok(found) => found,
            // It went away while it was looked at.
            Err(WorkspaceError::NoSuchPath { .. }) => None,
            Err(error) => Some(AbandonedWorkspace(AbandonedState::UnknownOwner {
                path: at,
                error,
            })),
        }
    }))
}

fn examine_folder(
    parent_path: &Path,
    parent: &Arc<OwnedFd>,
    name: OsString,
    pid: i32,
) -> Result<Option<AbandonedWorkspace>, WorkspaceError> {
    let path = parent_path.join(&name);
    let failed = |error: Errno| WorkspaceError::from_io("look at", &path, error);
    // Needs no permission for the folder.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The folder may go away at any moment: then it is not abandoned.
    let directory = match rustix::fs::openat(&**parent, &name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    // Of somebody else's folder, the contents could change under the removal.
    let owner = rustix::fs::fstat(&directory).map_err(failed)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        return Ok(None);
    }
    // Anything but a file here is not ours, and must not be waited on.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let lock = match rustix::fs::openat(&directory, folder::MARKER_NAME, flags, Mode::empty()) {
        Ok(lock) => File::from(lock),
        Err(Errno::NOENT) => {
            let empty = !is_process_alive(pid)
                && folder::is_empty(directory.as_fd())
                    .map_err(|error| WorkspaceError::from_io("look into", &path, error))?;
            let remains = AbandonedState::EmptyFolder {
                path,
                name,
                parent: parent.clone(),
                directory,
            };
            return Ok(empty.then_some(AbandonedWorkspace(remains)));
        }
        Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let marker = rustix::fs::fstat(&lock).map_err(failed)?;
    // The folder and its marker are made by one user, and a marker has one name:
    // a folder of this user's that others may write to becomes no workspace by
    // what they rename or put there.
    let made_by_us = marker.st_uid == owner && marker.st_nlink == 1;
    if !FileType::from_raw_mode(marker.st_mode).is_file() || !made_by_us {
        return Ok(None);
    }
    // Before it is locked, a marker is empty, and its owner about to lock it.
    if marker.st_size == 0 && is_process_alive(pid) {
        return Ok(None);
    }
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(failed(error)),
    }
    let folder = WorkspaceFolder::new(parent_path, name, parent.clone(), directory, lock);
    match folder.is_own_folder() {
        Ok(ours) => Ok(ours.then_some(AbandonedWorkspace(AbandonedState::AbandonedFolder(folder)))),
        Err(_) if folder.has_been_removed() => Ok(None),
        Err(error) => Err(WorkspaceError::from_io("look at", &path, error)),
    }
}
