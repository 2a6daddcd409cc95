//! A folder of diskperf's own under the target directory: the only place that
//! a run on a directory writes to.
//!
//! The folder's marker file is locked (flock) for as long as its owner lives.
//! The kernel frees the lock when the owner dies, however it dies, so a free
//! lock is proof of an abandoned folder. Three moments need care:
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

mod abandoned;
mod folder;

pub use abandoned::Abandoned;

use diskperf_timeline::units::{MIB, format_size};
use folder::Folder;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How many names are tried; each fails only by accident.
const ATTEMPTS: usize = 100;

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
        "{path} was not removed, because it is not the folder that diskperf made: look at it, and remove it by hand"
    )]
    Replaced {
        /// The folder.
        path: PathBuf,
    },
    /// Loop devices of the folder's files could not be detached.
    #[error(transparent)]
    Loop(#[from] super::device::LoopError),
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
            io::ErrorKind::NotFound => Self::NoSuchPath { path },
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
}

impl Workspace {
    /// Makes one new folder, `diskperf-PID-HEX`, in the directory `target`,
    /// where `needed_bytes` and a reserve must be free.
    ///
    /// # Errors
    /// The target is missing, no directory, not writable, or too full.
    pub fn create(target: &Path, needed_bytes: u64) -> Result<Self, WorkspaceError> {
        let target = target
            .canonicalize()
            .map_err(|error| WorkspaceError::from_io("resolve", target, error))?;
        if !target.is_dir() {
            return Err(WorkspaceError::NotADirectory { path: target });
        }
        require_space(&target, needed_bytes)?;
        for _ in 0..ATTEMPTS {
            if let Some(folder) = try_create(&target)? {
                return Ok(Self {
                    folder,
                    removed: false,
                });
            }
        }
        Err(WorkspaceError::Io {
            action: "make a folder",
            path: target,
            source: Errno::EXIST.into(),
        })
    }

    /// The folder, absolute and free of links.
    pub fn path(&self) -> &Path {
        self.folder.path()
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

/// The bytes that an ordinary user may still write on a path's file system.
///
/// # Errors
/// The path cannot be reached.
pub fn available_bytes(path: &Path) -> Result<u64, WorkspaceError> {
    let space = rustix::fs::statvfs(path)
        .map_err(|error| WorkspaceError::from_io("ask for free space", path, error))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

/// What must be free to write `payload_bytes`: the file system's own records
/// of them need space as well, and one that is filled to its last block is
/// not what is to be measured.
pub fn with_reserve(payload_bytes: u64) -> u64 {
    payload_bytes
        .saturating_add(payload_bytes / 32)
        .saturating_add(MIB)
}

fn require_space(target: &Path, payload_bytes: u64) -> Result<(), WorkspaceError> {
    let space = rustix::fs::statvfs(target)
        .map_err(|error| WorkspaceError::from_io("ask for free space", target, error))?;
    if space.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return Err(WorkspaceError::ReadOnly {
            path: target.to_owned(),
        });
    }
    let needed_bytes = with_reserve(payload_bytes);
    let available_bytes = available_bytes(target)?;
    if available_bytes < needed_bytes {
        return Err(WorkspaceError::NotEnoughSpace {
            path: target.to_owned(),
            needed_bytes,
            available_bytes,
        });
    }
    Ok(())
}

/// One attempt: `None` where the name is taken, or where the folder was lost
/// to somebody who took it for abandoned.
fn try_create(target: &Path) -> Result<Option<Folder>, WorkspaceError> {
    let path = target.join(folder::new_name(std::process::id(), random_number()));
    match rustix::fs::mkdir(&path, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(None),
        Err(error) => return Err(WorkspaceError::from_io("make a folder", target, error)),
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let marker = path.join(folder::MARKER);
    let lock = match rustix::fs::openat(CWD, &marker, flags, Mode::RUSR | Mode::WUSR) {
        Ok(lock) => File::from(lock),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => {
            // Nothing else is in it, and rmdir removes nothing else.
            let _ = std::fs::remove_dir(&path);
            return Err(WorkspaceError::from_io("make a file", &marker, error));
        }
    };
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => {
            let _ = std::fs::remove_file(&marker).and_then(|()| std::fs::remove_dir(&path));
            return Err(WorkspaceError::NoLocks {
                path: target.to_owned(),
                source: error.into(),
            });
        }
    }
    let folder = Folder::new(path, lock);
    if !folder.is_ours() {
        return Ok(None);
    }
    if let Err(error) = (&folder.lock).write_all(marker_text().as_bytes()) {
        let _ = folder.remove();
        return Err(WorkspaceError::from_io("write", &marker, error));
    }
    Ok(Some(folder))
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
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}
