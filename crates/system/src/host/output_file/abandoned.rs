//! Partial output files whose writer was killed.

use super::partial::is_partial_name;
use crate::host::listing::DirectoryListing;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Partial output file that never got its final name. A lock prevents others from handling it at
/// the same time.
#[derive(Debug)]
pub struct AbandonedOutput {
    path: PathBuf,
    file_name: OsString,
    directory: Arc<OwnedFd>,
    file: OwnedFd,
}

impl AbandonedOutput {
    /// Returns the abandoned partial files of this user in a directory, without subdirectories, in
    /// order of names.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn find_in_directory(directory: &Path) -> io::Result<impl Iterator<Item = Self> + use<>> {
        let DirectoryListing {
            path,
            directory,
            entry_names: names,
        } = DirectoryListing::read_directory(directory, is_partial_name)?;
        Ok(names
            .into_iter()
            .filter_map(move |name| Self::open_if_abandoned(path.join(&name), name, &directory)))
    }

    /// Returns the file if it is abandoned; `None` if it belongs to another user, is being written,
    /// or cannot be opened.
    fn open_if_abandoned(path: PathBuf, name: OsString, directory: &Arc<OwnedFd>) -> Option<Self> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &name, flags, Mode::empty()).ok()?;
        let found = rustix::fs::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        let is_own = found.st_uid == rustix::process::geteuid().as_raw();
        if !is_file || !is_own {
            return None;
        }
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Self {
            path,
            file_name: name,
            directory: directory.clone(),
            file,
        })
    }

    /// Returns the path of the abandoned file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, if it still has its name: its writer may have been at its last step.
    ///
    /// # Errors
    ///
    /// The directory may not be written.
    pub fn remove(self) -> io::Result<()> {
        let held = rustix::fs::fstat(&self.file)?;
        let directory = self.directory.as_fd();
        match rustix::fs::statat(directory, &self.file_name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino) => Ok(
                rustix::fs::unlinkat(directory, &self.file_name, AtFlags::empty())?,
            ),
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
