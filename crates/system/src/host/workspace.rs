//! A folder of diskperf's own under the target directory: the only place that
//! a run on a directory writes to.
//!
//! The folder's marker file is locked (flock) for as long as its owner lives.
//! The kernel frees the lock when the owner dies, however it dies, so a free
//! lock is proof of an abandoned folder. Four moments need care:
//!
//! - The folder exists before its marker does. Then it is empty, and all that
//!   anybody else may do to it is rmdir, which cannot remove anything else; an
//!   owner whose folder vanishes so starts again with a new one.
//! - The marker exists before it is locked. Then it is empty, since its text
//!   is written under the lock, and is left alone while the process of the
//!   folder's name lives. Whoever removes it all the same (from a container,
//!   where that process is not visible) holds the lock while doing so: the
//!   owner finds the lock taken or the marker unlinked, and starts again.
//! - The marker is the last file to be removed, so that a removal which is
//!   itself killed leaves a folder that can be told.
//! - The marker is closed, and its lock free, before it is removed: FUSE's
//!   library and NFS rename what is removed while it is open, and the folder
//!   would not be empty. Then nothing of the run's is in the folder any more.
//!   Whoever takes it for abandoned meanwhile removes what its owner is about to
//!   remove: each of the two finds the marker or the folder gone at any step,
//!   which is no error, and waits while the other still has the marker open.
//!
//! A marker is put back where the folder cannot be removed in the end, so that
//! whoever looks later can tell it.
//!
//! The folder's path is for messages and tools. What happens in the folder
//! happens through its descriptor, which nobody can make lead elsewhere.

mod abandoned;
mod folder;
mod orphaned;

pub use abandoned::Abandoned;
pub(super) use folder::{path_through, patiently};
pub use orphaned::{OrphanedLoop, orphaned_loops};

use diskperf_timeline::units::{MIB, format_size};
use folder::Folder;
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

/// How many names are tried; each fails only by accident.
const ATTEMPTS: usize = 100;

/// Workspaces of this process.
static WORKSPACE_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Why a workspace could not be made or removed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The target does not exist.
    #[error("{path} does not exist: make it with `mkdir -p`, or name a directory that exists")]
    NoSuchPath {
        /// The target.
        path: PathBuf,
    },
    /// The target is a file.
    #[error("{path} is not a directory: name the directory whose storage is to be measured")]
    NotADirectory {
        /// The target.
        path: PathBuf,
    },
    /// The target's file system is mounted read-only.
    #[error("{path} is on a read-only file system: name a directory that can be written")]
    ReadOnly {
        /// The target.
        path: PathBuf,
    },
    /// The user may not do that there.
    #[error("{path}: no permission to {action} there: name a directory of your own, or use sudo")]
    PermissionDenied {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
    },
    /// The run would fill the file system.
    #[error(
        "{path} has not enough space: {} needed (reserve included), {} available: free some, or measure less (`--size`)",
        format_size(*.needed_bytes), format_size(*.available_bytes)
    )]
    NotEnoughSpace {
        /// The target.
        path: PathBuf,
        /// Bytes needed, the reserve included.
        needed_bytes: u64,
        /// Bytes that an ordinary user may still write.
        available_bytes: u64,
    },
    /// The target's file system takes no files, as that of /proc.
    #[error(
        "{path} cannot be written to: its file system says that it has no room for files at all, as /proc and /sys do: name a directory on a disk"
    )]
    NoRoomAtAll {
        /// The target.
        path: PathBuf,
    },
    /// The target's file system cannot lock files.
    #[error(
        "{path} is on a file system without flock ({source}), by which diskperf protects its folder: name another directory"
    )]
    NoLocks {
        /// The target.
        path: PathBuf,
        /// What flock said.
        source: io::Error,
    },
    /// The folder cannot be removed without touching another file system.
    #[error(
        "{path} was not removed, because something is mounted on {mount_point}: `umount {mount_point}`, then `diskperf clean`"
    )]
    MountedInside {
        /// The folder.
        path: PathBuf,
        /// What is in the way.
        mount_point: PathBuf,
    },
    /// The folder at that path is not the one that was made.
    #[error(
        "{path} was not removed, because the folder that diskperf made was moved or replaced: look for it, and remove it by hand"
    )]
    Replaced {
        /// The folder.
        path: PathBuf,
    },
    /// Loop devices of the folder's files could not be detached.
    #[error(transparent)]
    Loop(#[from] super::device::tool::ToolError),
    /// Anything else.
    #[error("{path}: {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl WorkspaceError {
    /// The variant that an error at `path` belongs to.
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

/// A folder that belongs to this process, and is removed with all that is in
/// it when the workspace is dropped.
#[derive(Debug)]
pub struct Workspace {
    folder: Folder,
    removed: bool,
    _counted: Counted,
}

/// One of [`WORKSPACE_COUNT`], from before its folder is made until it is removed.
#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> Self {
        WORKSPACE_COUNT.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        WORKSPACE_COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Workspace {
    /// Makes one new folder, `diskperf-PID-HEX`, in the directory `target`,
    /// where `needed_bytes` and a reserve must be free. `announce` is told the
    /// folder's path before the folder is made, so that a note of it exists
    /// whenever the folder does; again for each name that is tried.
    ///
    /// # Errors
    /// The target is missing, no directory, not writable, or too full.
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
        let counted = Counted::new();
        for _ in 0..ATTEMPTS {
            let name = folder::new_name(std::process::id(), random_number());
            announce(&path.join(&name));
            if let Some(folder) = try_create(&path, &parent, name.into())? {
                return Ok(Self {
                    folder,
                    removed: false,
                    _counted: counted,
                });
            }
        }
        Err(WorkspaceError::Io {
            action: "make a folder",
            path,
            source: Errno::EXIST.into(),
        })
    }

    /// The folder, absolute and free of links when it was made. It is for
    /// messages and for tools; what is done in the folder is done through
    /// [`Self::directory`].
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The folder, open for reading since it was made.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.folder.directory()
    }

    /// Whether this process has a workspace. A handler of a signal may ask.
    pub fn exists() -> bool {
        WORKSPACE_COUNT.load(Ordering::Relaxed) > 0
    }

    /// Whether a path is that of a workspace, of whatever run.
    pub fn could_be(path: &Path) -> bool {
        path.is_absolute()
            && path
                .file_name()
                .is_some_and(|name| folder::owner(name).is_some())
    }

    /// Removes the folder and all that is in it.
    ///
    /// # Errors
    /// Something is mounted inside, or a file cannot be removed.
    pub fn remove(mut self) -> Result<(), WorkspaceError> {
        // Also after an error: what failed once is reported, not tried again.
        self.removed = true;
        self.folder.remove()
    }

    /// The folders in `directory` whose owner is dead, of this user's.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn abandoned(directory: &Path) -> Result<Vec<Abandoned>, WorkspaceError> {
        Ok(Self::find_abandoned(directory)?.collect())
    }

    /// Abandoned folders, one at a time: a folder that is held takes two
    /// descriptors, and there may be thousands.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn find_abandoned(
        directory: &Path,
    ) -> Result<impl Iterator<Item = Abandoned> + use<>, WorkspaceError> {
        abandoned::find(directory)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if !self.removed {
            // Nobody is left to report to; `diskperf clean` finds what stays.
            let _ = self.folder.remove();
        }
    }
}

/// The bytes that an ordinary user may still write on a file system.
pub(super) fn available_bytes(space: &StatVfs) -> u64 {
    space.f_bavail.saturating_mul(space.f_frsize)
}

/// What must be free to write `payload_bytes`: the file system's own records
/// of them need space as well, and one that is filled to its last block is
/// not what is to be measured.
fn with_reserve(payload_bytes: u64) -> u64 {
    payload_bytes
        .saturating_add(payload_bytes / 32)
        .saturating_add(MIB)
}

/// Makes sure that `payload_bytes` and a reserve are free on the file system of
/// an open directory, which is at `path`.
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
        return Err(WorkspaceError::NoRoomAtAll { path });
    }
    let needed_bytes = with_reserve(payload_bytes);
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

/// One attempt: `None` where the name is taken, or where the folder was lost
/// to somebody who took it for abandoned or put another in its place.
fn try_create(
    parent_path: &Path,
    parent: &Arc<OwnedFd>,
    name: OsString,
) -> Result<Option<Folder>, WorkspaceError> {
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
            let _ = rustix::fs::unlinkat(&directory, folder::MARKER, AtFlags::empty());
            let _ = give_up();
            return Err(WorkspaceError::NoLocks {
                path: parent_path.to_owned(),
                source: error.into(),
            });
        }
    }
    let mut folder = Folder::new(parent_path, name, parent.clone(), directory, lock);
    match folder.is_ours() {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(_) if folder.is_gone() => return Ok(None),
        // One that cannot be looked at is not left behind for another.
        Err(error) => {
            let _ = folder.remove();
            return Err(WorkspaceError::from_io("look at", folder.path(), error));
        }
    }
    if let Err(error) = folder.write_marker(&marker_text()) {
        let _ = folder.remove();
        return Err(WorkspaceError::from_io("write", folder.path(), error));
    }
    Ok(Some(folder))
}

/// Makes the marker in a folder that was just made. `None` where the folder is
/// gone, or belongs to somebody else, who could swap what is in it.
fn new_marker(directory: BorrowedFd<'_>) -> rustix::io::Result<Option<File>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let marker = match rustix::fs::openat(directory, folder::MARKER, flags, mode) {
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
    rustix::fs::unlinkat(directory, folder::MARKER, AtFlags::empty())?;
    same.map(|_| None)
}

/// The marker's text is for people: `diskperf clean` goes by the lock.
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

/// A number that two processes do not share: the standard library seeds its
/// hasher from the system's random source.
pub(super) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
