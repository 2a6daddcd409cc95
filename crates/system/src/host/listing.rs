//! Entries of a directory that are looked for by their names.

use rustix::fs::{Dir, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory that is held open, and what was found in it.
pub(super) struct Listing {
    /// Its path without links.
    pub(super) path: PathBuf,
    pub(super) directory: Arc<OwnedFd>,
    /// In order.
    pub(super) names: Vec<OsString>,
}

impl Listing {
    /// Looks through a directory, not below it.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(super) fn of(directory: &Path, wanted: impl Fn(&OsStr) -> bool) -> io::Result<Self> {
        let path = directory.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = Arc::new(rustix::fs::open(&path, flags, Mode::empty())?);
        let mut names = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if wanted(&name) {
                names.push(name);
            }
        }
        names.sort();
        Ok(Self {
            path,
            directory,
            names,
        })
    }
}
