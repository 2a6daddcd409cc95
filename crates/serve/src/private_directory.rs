//! A directory for a socket that nobody else can reach.
//!
//! A server that is killed leaves its directory. The server holds a lock on a file in it, which the
//! kernel frees when the server dies: a free lock shows that the directory is abandoned.

mod abandoned;

pub use abandoned::{AbandonedDirectory, abandoned_directories};

use crate::ServeError;
use rustix::fs::{FlockOperation, flock};
use std::env;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names that are tried before giving up. Others are those of killed servers with the same
/// process id.
const NAMES_MAX: u32 = 1000;

/// Start of the names of private directories, before the process id.
const PREFIX: &str = "diskperf-serve-";

/// Name of the locked file. It is empty until it is locked.
const LOCK: &str = "lock";

/// Name of the socket that servers make in their private directory.
const SOCKET: &str = "socket";

/// Name of the file that shows the drive in a server's private directory.
const DRIVE: &str = "drive";

/// A directory that only this user can enter. Dropping it removes it, once it has no other file
/// than its own.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    /// File whose lock lasts as long as the directory is used.
    _lock: File,
}

impl PrivateDirectory {
    /// Makes one in the user's runtime directory (`XDG_RUNTIME_DIR`), or where there is none in
    /// the directory for temporary files.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn create() -> Result<Self, ServeError> {
        Self::create_in(&runtime_directory().unwrap_or_else(env::temp_dir))
    }

    fn create_in(parent: &Path) -> Result<Self, ServeError> {
        let process = std::process::id();
        for number in 0..NAMES_MAX {
            let path = parent.join(format!("{PREFIX}{process}-{number}"));
            let refused = |error: io::Error| {
                ServeError::Request(format!(
                    "{}: cannot be made: {error}; name a socket with --socket",
                    path.display()
                ))
            };
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(refused(error)),
            }
            match create_lock(&path.join(LOCK)) {
                Ok(lock) => return Ok(Self { path, _lock: lock }),
                Err(error) => {
                    let error = refused(error);
                    // The error that is returned is the first one.
                    let _ = fs::remove_file(path.join(LOCK));
                    let _ = fs::remove_dir(&path);
                    return Err(error);
                }
            }
        }
        Err(ServeError::Request(format!(
            "{}: has {NAMES_MAX} directories {PREFIX}{process}-*: remove them, or name a socket with --socket",
            parent.display()
        )))
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path for the server's socket, which is removed with an abandoned directory.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// Path for the file that shows the drive, which is removed with an abandoned directory.
    pub fn drive_file(&self) -> PathBuf {
        self.path.join(DRIVE)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What somebody else put into it is theirs.
        let _ = fs::remove_file(self.path.join(LOCK));
        let _ = fs::remove_dir(&self.path);
    }
}

/// Creates a file and locks it. The text is written under the lock: a file without it may be
/// locked soon.
fn create_lock(path: &Path) -> io::Result<File> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let mut lock = created?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    lock.write_all(b"locked while the server lives\n")?;
    Ok(lock)
}

/// Returns the user's runtime directory, if there is one.
fn runtime_directory() -> Option<PathBuf> {
    let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime.filter(|path| path.is_absolute() && path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_directory_is_new_and_closed_to_others() {
        let parent = tempfile::tempdir().unwrap();
        let first = PrivateDirectory::create_in(parent.path()).unwrap();
        let second = PrivateDirectory::create_in(parent.path()).unwrap();
        assert_ne!(first.path(), second.path());
        let mode = fs::metadata(first.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
