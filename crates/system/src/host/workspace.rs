//! Workspace: a folder of diskperf's own under the target directory, and the only place that a run
//! on a directory writes to.
//!
//! The owner locks the folder's marker file (flock) for its lifetime. The kernel frees the lock
//! when the owner dies, however it dies, so a free lock proves that the folder is abandoned. Four
//! situations need care:
//!
//! - The folder exists before its marker does. Then it is empty, and all that
//!   others may do to it is rmdir, which cannot remove anything else. An owner
//!   whose folder vanishes that way starts again with a new one.
//! - The marker exists before it is locked. Then it is empty, since its text
//!   is written under the lock, and others leave it alone while the process in
//!   the folder's name lives. A process that removes it all the same (from a
//!   container, where the owner is not visible) holds the lock meanwhile. The
//!   owner finds the lock taken or the marker unlinked, and starts again.
//! - The marker is the last file to be removed, so that a removal which is
//!   itself killed leaves a recognisable folder.
//! - The marker is closed, and its lock free, before it is removed: FUSE's
//!   library and NFS rename an open file that is removed, and the folder would
//!   not be empty. At that time the folder contains nothing else of the run.
//!   Another process that takes it for abandoned removes what its owner is
//!   about to remove. Each of the two may find the marker or the folder gone
//!   at any step, which is no error, and waits while the other still has the
//!   marker open.
//!
//! If the folder cannot be removed in the end, the marker is put back, so that the folder stays
//! recognisable.
//!
//! The folder's path is for messages and tools. Operations in the folder use its descriptor, which
//! nobody can redirect.

mod abandoned;
mod folder;
mod orphaned;

pub use abandoned::AbandonedWorkspace;
pub(super) use folder::{path_through, retry_while_busy};
pub use orphaned::{OrphanedLoopDevice, find_orphaned_loops};

use diskperf_timeline::units::{MIB, format_size};
use folder::WorkspaceFolder;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, StatVfs, StatVfsMountFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of folder names that are tried; each fails only by accident.
const CREATE_ATTEMPTS_MAX: usize = 100;

static WORKSPACE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Reason why a workspace could not be created or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Target directory that does not exist.
    #[error("{path} does not exist: make it with `mkdir -p`, or name a directory that exists")]
    NoSuchPath {
        /// Path of the target directory.
        path: PathBuf,
    },
    /// Target that is not a directory.
    #[error("{path} is not a directory: name the directory whose storage is to be measured")]
    NotADirectory {
        /// Path of the target directory.
        path: PathBuf,
    },
    /// Target on a file system that is mounted read-only.
    #[error("{path} is on a read-only file system: name a directory that can be written")]
    ReadOnly {
        /// Path of the target directory.
        path: PathBuf,
    },
    /// Operation that the user has no permission for.
    #[error("{path}: no permission to {action} there: name a directory of your own, or use sudo")]
    PermissionDenied {
        /// Operation that failed, as a verb phrase for the message.
        action: &'static str,
        /// Path of the file or directory on which the operation failed.
        path: PathBuf,
    },
    /// Target without enough free space for the run.
    #[error(
        "{path}: not enough space: {} needed (including a reserve), {} available: free some, or measure less (`--size`)",
        format_size(*.needed_bytes), format_size(*.available_bytes)
    )]
    NotEnoughSpace {
        /// Path of the target directory.
        path: PathBuf,
        /// Bytes that the run needs, including a reserve.
        needed_bytes: u64,
        /// Bytes that an unprivileged user may still write.
        available_bytes: u64,
    },
    /// Target on a file system that holds no files, such as that of /proc.
    #[error(
        "{path} cannot be written to: its file system has no space for files at all, as /proc and /sys: name a directory on a disk"
    )]
    NothingAvailable {
        /// Path of the target directory.
        path: PathBuf,
    },
    /// Target on a file system without file locks.
    #[error(
        "{path} is on a file system without flock ({source}), which diskperf needs to lock its folder: name another directory"
    )]
    LocksUnsupported {
        /// Path of the target directory.
        path: PathBuf,
        /// Error that flock(2) returned.
        source: io::Error,
    },
    /// Workspace with another file system mounted inside, which removal must not touch.
    #[error(
        "{path} was not removed, because something is mounted on {mount_point}: `umount {mount_point}`, then `diskperf clean`"
    )]
    MountedInside {
        /// Path of the workspace folder.
        path: PathBuf,
        /// Mount point inside the workspace folder.
        mount_point: PathBuf,
    },
    /// Workspace whose path leads to another folder than the one that was created.
    #[error(
        "{path} was not removed, because the folder that diskperf made was moved or replaced: look for it, and remove it by hand"
    )]
    FolderReplaced {
        /// Path of the workspace folder.
        path: PathBuf,
    },
    /// Failure to detach the loop devices of the folder's files.
    #[error(transparent)]
    LoopDeviceFailed(#[from] super::device::tool::ToolError),
    /// Any other operation on the workspace that failed.
    #[error("{path}: {action}: {source}")]
    Io {
        /// Operation that failed, as a verb phrase for the message.
        action: &'static str,
        /// Path of the file or directory on which the operation failed.
        path: PathBuf,
        /// Error that the operating system returned.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// Returns the variant that matches an error at `path`.
    fn from_io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        let path = path.to_owned();
        let source = source.into();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => {
                Self::NoSuchPath { path }
            }
            io::ErrorKind::NotADirectory => Self::NotADirectory { path },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { action, path },
            _ => Self::Io {
                action,
                path,
                source,
            },
        }
    }
}

/// Workspace folder that belongs to this process. It is removed with all its contents on drop.
#[derive(Debug)]
pub struct Workspace {
    workspace_folder: WorkspaceFolder,
    is_removed: bool,
    _count: WorkspaceCount,
}

/// Guard that counts in [`WORKSPACE_COUNT`], from before the folder's creation until its removal.
#[derive(Debug)]
struct WorkspaceCount;

impl WorkspaceCount {
    fn new() -> Self {
        WORKSPACE_COUNT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for WorkspaceCount {
    fn drop(&mut self) {
        WORKSPACE_COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workspace {
    /// Creates a folder `diskperf-PID-HEX` in the directory `target`, which must have
    /// `needed_bytes` and a reserve free. `announce` receives each path before the folder is
    /// created, so that a note of it exists whenever the folder does.
    ///
    /// # Errors
    ///
    /// The target is missing, is not a directory, is not writable, or is too full.
    pub fn create(
        target: &Path,
        needed_bytes: u64,
        mut announce: impl FnMut(&Path),
    ) -> Result<Self, WorkspaceError> {
        let path = target
            .canonicalize()
            .map_err(|error| WorkspaceError::from_io("resolve", target, error))?;
        // Needs no permission to list it.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let parent = rustix::fs::open(&path, flags, Mode::empty())
            .map_err(|error| WorkspaceError::from_io("open", &path, error))?;
        require_space(parent.as_fd(), &path, needed_bytes)?;
        let parent = Arc::new(parent);
        let counted = WorkspaceCount::new();
        for _ in 0..CREATE_ATTEMPTS_MAX {
            let name = folder::new_name(std::process::id(), draw_random_number());
            announce(&path.join(&name));
            if let Some(folder) = try_create(&path, &parent, name.into())? {
                return Ok(Self {
                    workspace_folder: folder,
                    is_removed: false,
                    _count: counted,
                });
            }
        }
        Err(WorkspaceError::Io {
            action: "make a folder",
            path,
            source: Errno::EXIST.into(),
        })
    }

    /// Returns the path of the folder, absolute and free of links when it was created. It is for
    /// messages and tools; operations in the folder use [`Self::directory`].
    pub fn path(&self) -> &Path {
        self.workspace_folder.path()
    }

    /// Returns the folder's descriptor, open for reading since its creation.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.workspace_folder.directory()
    }

    /// Reports whether this process has a workspace. A signal handler may call it.
    pub fn has_workspace() -> bool {
        WORKSPACE_COUNT.load(Ordering::Relaxed) > 0
    }

    /// Reports whether a path has the form of a workspace, of any run.
    pub fn may_be_workspace(path: &Path) -> bool {
        path.is_absolute()
            && path
                .file_name()
                .is_some_and(|name| folder::parse_owner(name).is_some())
    }

    /// Removes the folder with all its contents.
    ///
    /// # Errors
    ///
    /// Something is mounted inside, or a file cannot be removed.
    pub fn remove(mut self) -> Result<(), WorkspaceError> {
        // Also after an error: what failed once is reported, not tried again.
        self.is_removed = true;
        self.workspace_folder.remove_folder()
    }

    /// Returns the workspaces of this user in `directory` whose owner is dead.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn abandoned_in(directory: &Path) -> Result<Vec<AbandonedWorkspace>, WorkspaceError> {
        Ok(Self::find_abandoned(directory)?.collect())
    }

    /// Returns an iterator over abandoned workspaces. It opens one at a time, because each takes
    /// two descriptors and there may be thousands.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn find_abandoned(
        directory: &Path,
    ) -> Result<impl Iterator<Item = AbandonedWorkspace> + use<>, WorkspaceError> {
        abandoned::find_abandoned(directory)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if !self.is_removed {
            // Nobody is left to report to; `diskperf clean` finds what stays.
            let _ = self.workspace_folder.remove_folder();
        }
    }
}

/// Returns the bytes that an unprivileged user may still write on a file system.
pub(super) fn available_bytes(space: &StatVfs) -> u64 {
    space.f_bavail.saturating_mul(space.f_frsize)
}

/// Returns the free bytes needed to write `payload_bytes`. The file system's own data needs space
/// as well, and a completely full file system is not a subject of measurement.
fn add_reserve(payload_bytes: u64) -> u64 {
    payload_bytes
        .saturating_add(payload_bytes / 32)
        .saturating_add(MIB)
}

/// Checks that `payload_bytes` and a reserve are free on the file system of an open directory,
/// which is at `path`.
pub(super) fn require_space(
    directory: BorrowedFd<'_>,
    path: &Path,
    payload_bytes: u64,
) -> Result<(), WorkspaceError> {
    let space = rustix::fs::fstatvfs(directory)
        .map_err(|error| WorkspaceError::from_io("ask for free space", path, error))?;
    let path = path.to_owned();
    if space.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(WorkspaceError::ReadOnly { path });
    }
    if space.f_blocks == 0 {
        return Err(WorkspaceError::NothingAvailable { path });
    }
    let needed_bytes = add_reserve(payload_bytes);
    let available_bytes = available_bytes(&space);
    if available_bytes < needed_bytes {
        return Err(WorkspaceError::NotEnoughSpace {
            path,
            needed_bytes,
            available_bytes,
        });
    }
    Ok(())
}

/// Attempts to create a workspace under a name. `None` if the name is taken, or if another process
/// took the folder for abandoned or replaced it.
fn try_create(
    parent_path: &Path,
    parent: &Arc<OwnedFd>,
    name: OsString,
) -> Result<Option<WorkspaceFolder>, WorkspaceError> {
    let failed = |action, error: Errno| WorkspaceError::from_io(action, parent_path, error);
    match rustix::fs::mkdirat(&**parent, &name, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(None),
        Err(error) => return Err(failed("make a folder", error)),
    }
    // Whatever else fails below, rmdir removes nothing but an empty folder.
    let give_up = || rustix::fs::unlinkat(&**parent, &name, AtFlags::REMOVEDIR);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(&**parent, &name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(None),
        Err(error) => {
            let _ = give_up();
            return Err(failed("open the new folder", error));
        }
    };
    match folder::is_empty(directory.as_fd()) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => {
            let _ = give_up();
            let action = "look into the new folder";
            return Err(WorkspaceError::from_io(action, parent_path, error));
        }
    }
    let lock = match new_marker(directory.as_fd()) {
        Ok(Some(lock)) => lock,
        Ok(None) => return Ok(None),
        Err(error) => {
            let _ = give_up();
            return Err(failed("make a file in a new folder", error));
        }
    };
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => {
            drop(lock);
            let _ = rustix::fs::unlinkat(&directory, folder::MARKER_NAME, AtFlags::empty());
            let _ = give_up();
            return Err(WorkspaceError::LocksUnsupported {
                path: parent_path.to_owned(),
                source: error.into(),
            });
        }
    }
    let mut folder = WorkspaceFolder::new(parent_path, name, parent.clone(), directory, lock);
    match folder.is_own_folder() {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if folder.has_been_removed() => return Ok(None),
        // One that cannot be looked at is not left behind for another.
        Err(error) => {
            let _ = folder.remove_folder();
            return Err(WorkspaceError::from_io("look at", folder.path(), error));
        }
    }
    if let Err(error) = folder.write_marker(&marker_text()) {
        let _ = folder.remove_folder();
        return Err(WorkspaceError::from_io("write", folder.path(), error));
    }
    Ok(Some(folder))
}

/// Creates the marker in a new folder. `None` if the folder is gone, or belongs to another user,
/// who could swap its contents.
fn new_marker(directory: BorrowedFd<'_>) -> rustix::io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let marker = match rustix::fs::openat(directory, folder::MARKER_NAME, flags, mode) {
        Ok(marker) => File::from(marker),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error),
    };
    // What this process makes belongs to its user, or to whom the file system
    // gives everything (vfat, NFS); either way both have the same owner.
    let owner = |file: BorrowedFd<'_>| rustix::fs::fstat(file).map(|status| status.st_uid);
    let same = owner(directory).and_then(|one| Ok(one == owner(marker.as_fd())?));
    if same == Ok(true) {
        return Ok(Some(marker));
    }
    drop(marker);
    rustix::fs::unlinkat(directory, folder::MARKER_NAME, AtFlags::empty())?;
    same.map(|_| None)
}

/// Returns the marker's text. It is for people; `diskperf clean` relies on the lock.
fn marker_text() -> String {
    let started_unix_ms = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis();
    format!(
        "made by diskperf, and removed by it at the end of the run, or by `diskperf clean`\n\
         pid {}\nstarted_unix_ms {started_unix_ms}\nversion {}\n",
        std::process::id(),
        env!("CARGO_PKG_VERSION")
    )
}

/// Returns a random number that differs between processes. The standard library seeds its hasher
/// from the system's random source.
pub(super) fn draw_random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
