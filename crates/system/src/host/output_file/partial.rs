//! A file that is being written, beside the name that it will take.

use super::OutputProblem;
use crate::host::workspace::random_number;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Until it takes its name, it is removed when it is dropped.
pub(super) struct Partial<'a> {
    directory: BorrowedFd<'a>,
    name: String,
    file: File,
    /// Whether it has its name, or none any more.
    done: bool,
}

impl<'a> Partial<'a> {
    /// Makes a new file of a name that nobody can foresee, with the owner and
    /// the permissions of the one that it will replace.
    pub(super) fn create(
        directory: BorrowedFd<'a>,
        replaced: Option<&Stat>,
    ) -> Result<Self, Errno> {
        let name = format!("diskperf-{:016x}.partial", random_number());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Nobody else reads what will be private before it is.
        let mode = if replaced.is_some() { 0o600 } else { 0o666 };
        let file = rustix::fs::openat(directory, &name, flags, Mode::from_raw_mode(mode))?;
        let partial = Self {
            directory,
            name,
            file: file.into(),
            done: false,
        };
        if let Some(replaced) = replaced {
            partial.take_access_of(replaced)?;
        }
        Ok(partial)
    }

    /// Removes it, where it was only to be seen whether it can be made.
    pub(super) fn remove(mut self) -> Result<(), OutputProblem> {
        self.done = true;
        rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty()).map_err(|error| {
            OutputProblem::Stays {
                name: std::mem::take(&mut self.name),
                source: error.into(),
            }
        })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the owner, the group and the permissions of another. Where
    /// this user may not give it that group, the group gets no more than others
    /// do.
    fn take_access_of(&self, other: &Stat) -> Result<(), Errno> {
        let (owner, group) = (Uid::from_raw(other.st_uid), Gid::from_raw(other.st_gid));
        let same_group = rustix::fs::fchown(&self.file, Some(owner), Some(group))
            .or_else(|_| rustix::fs::fchown(&self.file, None, Some(group)))
            .is_ok();
        let mode = other.st_mode & 0o777;
        let of_others = (mode & 0o007) << 3;
        let mode = if same_group {
            mode
        } else {
            mode & (0o707 | of_others)
        };
        match rustix::fs::fchmod(&self.file, Mode::from_raw_mode(mode)) {
            // A file system without permissions.
            Err(Errno::PERM | Errno::NOTSUP) => Ok(()),
            outcome => outcome,
        }
    }

    /// Has the file take a name, once its bytes are on the disk.
    pub(super) fn publish(mut self, name: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        rustix::fs::renameat(self.directory, &self.name, self.directory, name)?;
        self.done = true;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(self.directory, ".", flags, Mode::empty()) {
            Ok(directory) => match rustix::fs::fsync(directory) {
                // A file system that cannot sync a directory.
                Err(Errno::INVAL | Errno::NOTSUP | Errno::BADF) => Ok(()),
                outcome => Ok(outcome?),
            },
            // It may be written and not read: nothing more can be done.
            Err(_) => Ok(()),
        }
    }
}

impl Drop for Partial<'_> {
    fn drop(&mut self) {
        if !self.done {
            // The error that matters is already at hand.
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}
