//! Identity of a file, which tells whether a path still leads to the same file.

use std::path::Path;

/// Identity of a file by device and inode number, which a rename does not change. While the file is
/// open, no other file has the same identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Returns the identity of the file at a path, or `None` if there is no file.
    #[cfg(unix)]
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Returns `None`: on other systems, an open file keeps its name.
    #[cfg(not(unix))]
    pub(crate) fn of_path(_path: &Path) -> Option<Self> {
        None
    }
}
