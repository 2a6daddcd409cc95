//! Search of a directory for entries with certain names.

use rustix::fs::{Dir, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Open directory with the names that were found in it.
pub(super) struct DirectoryListing {
    /// Path of the listed directory without symbolic links.
    pub(super) path: PathBuf,
    pub(super) directory: Arc<OwnedFd>,
    /// Names of the matching entries, in ascending order.
    pub(super) entry_names: Vec<OsString>,
}

impl DirectoryListing {
    /// Lists the entries of a directory that match `is_wanted`, without subdirectories.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub(super) fn read_directory(
        directory: &Path,
        is_wanted: impl Fn(&OsStr) -> bool,
    ) -> io::Result<Self> {
        let path = directory.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = Arc::new(rustix::fs::open(&path, flags, Mode::empty())?);
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if is_wanted(&name) {
                names.push(name);
            }
        }
        names.sort();
        Ok(Self {
            path,
            directory,
            entry_names: names,
        })
    }
}
