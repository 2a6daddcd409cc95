//! Partial output file: a file that is being written, beside its final name.

use super::OutputProblem;
use crate::host::workspace::draw_random_number;
use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// Prefix of a partial file's name; a random number and the suffix follow.
const PARTIAL_NAME_PREFIX: &str = "diskperf-";
const PARTIAL_NAME_SUFFIX: &str = ".partial";
const RANDOM_NAME_DIGITS: usize = 16;

pub(super) fn is_partial_name(name: &OsStr) -> bool {
    let name = name.to_str();
    let number = name.and_then(|name| {
        name.strip_prefix(PARTIAL_NAME_PREFIX)?
            .strip_suffix(PARTIAL_NAME_SUFFIX)
    });
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
    number.is_some_and(|number| number.len() == RANDOM_NAME_DIGITS && number.bytes().all(is_digit))
}

/// Partial output file, removed on drop unless it was published. It is locked for the lifetime of
/// its writer; `diskperf clean` removes unlocked ones.
pub(super) struct PartialFile<'a> {
    directory: BorrowedFd<'a>,
    name: String,
    file: File,
    /// Whether the file has its final name, or was removed.
    is_published: bool,
}

impl<'a> PartialFile<'a> {
    /// Creates a partial file with an unpredictable name, and with the owner and permissions of the
    /// file that it will replace.
    pub(super) fn create_partial(
        directory: BorrowedFd<'a>,
        replaced: Option<&Stat>,
    ) -> Result<Self, Errno> {
        // Nobody else reads what will be private before it is.
        let mode = Mode::from_raw_mode(if replaced.is_some() { 0o600 } else { 0o666 });
        let partial = loop {
            if let Some(partial) = Self::try_create(directory, mode)? {
                break partial;
            }
        };
        if let Some(replaced) = replaced {
            partial.copy_access_from(replaced)?;
        }
        Ok(partial)
    }

    /// Creates and locks a partial file; `None` if `diskperf clean` took it between the two steps.
    fn try_create(directory: BorrowedFd<'a>, mode: Mode) -> Result<Option<Self>, Errno> {
        let name = format!(
            "{PARTIAL_NAME_PREFIX}{:0RANDOM_NAME_DIGITS$x}{PARTIAL_NAME_SUFFIX}",
            draw_random_number()
        );
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(directory, &name, flags, mode)?;
        let partial = Self {
            directory,
            name,
            file: file.into(),
            is_published: false,
        };
        // Where files cannot be locked, `clean` cannot lock this one either.
        let lock = rustix::fs::flock(&partial.file, FlockOperation::NonBlockingLockExclusive);
        let lost =
            lock == Err(Errno::WOULDBLOCK) || rustix::fs::fstat(&partial.file)?.st_nlink == 0;
        Ok((!lost).then_some(partial))
    }

    /// Removes the file, after a test whether it can be created.
    pub(super) fn remove_partial(mut self) -> Result<(), OutputProblem> {
        self.is_published = true;
        rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty()).map_err(|error| {
            OutputProblem::NotRemovable {
                name: std::mem::take(&mut self.name),
                source: error.into(),
            }
        })
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file the owner, group and permissions of another. If this user may not set the
    /// group, the group gets the same permissions as others.
    fn copy_access_from(&self, other: &Stat) -> Result<(), Errno> {
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

    /// Renames the file to its final name, once its bytes are on the disk.
    pub(super) fn publish_as(mut self, name: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        rustix::fs::renameat(self.directory, &self.name, self.directory, name)?;
        self.is_published = true;
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

/// Publication of a file before its contents are complete.
impl PartialFile<'_> {
    /// Renames the partial file to an unused name. The operation fails if the name is in use.
    pub(super) fn publish_as_new(mut self, name: &Path) -> Result<(), Errno> {
        let flags = RenameFlags::NOREPLACE;
        let named =
            rustix::fs::renameat_with(self.directory, &self.name, self.directory, name, flags);
        match named {
            // A file system that cannot tell: a second name, and the first one goes.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let flags = AtFlags::empty();
                rustix::fs::linkat(self.directory, &self.name, self.directory, name, flags)?;
                rustix::fs::unlinkat(self.directory, &self.name, flags)?;
            }
            outcome => outcome?,
        }
        self.is_published = true;
        Ok(())
    }
}

impl Drop for PartialFile<'_> {
    fn drop(&mut self) {
        if !self.is_published {
            // The error that matters is already at hand.
            let _ = rustix::fs::unlinkat(self.directory, &self.name, AtFlags::empty());
        }
    }
}
