//! Which file a name leads to.

use std::path::Path;

/// A file by its numbers, which a rename does not change. While it is open, no
/// other file gets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// That of the file at a path, if there is one.
    #[cfg(unix)]
    pub(crate) fn at(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Elsewhere a file that is open keeps its name.
    #[cfg(not(unix))]
    pub(crate) fn at(_path: &Path) -> Option<Self> {
        None
    }
}
