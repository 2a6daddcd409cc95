//! A workspace's folder with its lock, in the hands of whoever may remove it.

use super::WorkspaceError;
use crate::host::device::{DeviceNumber, FileNumber};
use crate::host::mounts::Mounts;
use rustix::fs::{AtFlags, FlockOperation};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that makes a folder a workspace.
pub(super) const MARKER: &str = "diskperf-workspace";
const PREFIX: &str = "diskperf-";
const HEX_DIGITS: usize = 6;

/// The name of a new folder.
pub(super) fn new_name(pid: u32, random: u64) -> String {
    format!("{PREFIX}{pid}-{:06x}", random & 0xff_ffff)
}

/// The process that made a folder of this name; `None` of other names.
pub(super) fn owner(name: &OsStr) -> Option<i32> {
    let (pid, hex) = name.to_str()?.strip_prefix(PREFIX)?.split_once('-')?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let pid_is_plain = pid.bytes().all(|byte| byte.is_ascii_digit());
    if hex.len() != HEX_DIGITS || !hex.bytes().all(is_hex) || !pid_is_plain {
        return None;
    }
    pid.parse().ok().filter(|&pid| pid > 0)
}

/// A path that leads to an open directory, whatever becomes of its names. What
/// is opened by it and a name below lies in that very directory.
pub(in crate::host) fn path_through(directory: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// A folder whose marker is locked by this process. Everything is done through
/// its descriptor and its parent's, because its path may come to lead
/// elsewhere: whoever owns a directory above can put a link there.
#[derive(Debug)]
pub(super) struct Folder {
    /// For messages only.
    path: PathBuf,
    name: OsString,
    parent: Arc<OwnedFd>,
    directory: OwnedFd,
    /// The marker, open and locked.
    pub(super) lock: File,
}

impl Folder {
    /// The folder `name` in `parent`, open as `directory`, with its marker.
    pub(super) fn new(
        parent_path: &Path,
        name: OsString,
        parent: Arc<OwnedFd>,
        directory: OwnedFd,
        lock: File,
    ) -> Self {
        Self {
            path: parent_path.join(&name),
            name,
            parent,
            directory,
            lock,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Whether it still is the folder of that name, and the locked marker the
    /// one in it.
    pub(super) fn is_ours(&self) -> bool {
        let is_at = |directory: BorrowedFd<'_>, name: &OsStr, open: BorrowedFd<'_>| {
            let there = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            match (there, FileNumber::of(open)) {
                (Ok(there), Ok(held)) => FileNumber::in_status(&there) == held,
                _ => false,
            }
        };
        is_at(self.parent.as_fd(), &self.name, self.directory())
            && is_at(self.directory(), OsStr::new(MARKER), self.lock.as_fd())
    }

    /// Where something is mounted inside, the latest first, each with its path
    /// below the folder.
    pub(super) fn mounts_inside(&self) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        // The kernel's own name of the folder, which mount points begin with
        // also after a directory above was renamed.
        let folder = std::fs::read_link(path_through(self.directory()))?;
        let mounts = Mounts::read()?;
        Ok(mounts
            .inside(&folder)
            .filter_map(|mount| {
                let below = mount.mount_point.strip_prefix(&folder).ok()?;
                Some((mount.mount_point.clone(), below.to_owned()))
            })
            .collect())
    }

    /// Every regular file below the folder; links are not followed.
    pub(super) fn files(&self) -> io::Result<BTreeSet<FileNumber>> {
        let mut files = BTreeSet::new();
        let mut folders = vec![path_through(self.directory())];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let entry = entry?;
                let status = entry.metadata()?;
                if status.is_dir() {
                    folders.push(entry.path());
                } else if status.is_file() {
                    files.insert(FileNumber {
                        device: DeviceNumber::from_raw(status.dev()),
                        inode: status.ino(),
                    });
                }
            }
        }
        Ok(files)
    }

    /// Removes the folder with all that is in it, and nothing else: links are
    /// removed, not followed, and another file system is not entered.
    pub(super) fn remove(&self) -> Result<(), WorkspaceError> {
        let failed = |source| WorkspaceError::Io {
            action: "remove",
            path: self.path.clone(),
            source,
        };
        let status = rustix::fs::fstat(&self.directory).map_err(|error| failed(error.into()))?;
        if status.st_nlink == 0 {
            // Somebody else has removed it.
            return Ok(());
        }
        let mounts = self.mounts_inside().map_err(failed)?;
        if let Some((mount_point, _)) = mounts.into_iter().next() {
            return Err(WorkspaceError::MountedInside {
                path: self.path.clone(),
                mount_point,
            });
        }
        if !self.is_ours() {
            return Err(WorkspaceError::Replaced {
                path: self.path.clone(),
            });
        }
        self.remove_contents().map_err(failed)?;
        // The parent's directory cannot be swapped: it is open. At worst an
        // empty folder of the same name is removed there.
        rustix::fs::unlinkat(&self.directory, MARKER, AtFlags::empty())
            .and_then(|()| rustix::fs::unlinkat(&*self.parent, &self.name, AtFlags::REMOVEDIR))
            .map_err(|error| failed(error.into()))
    }

    /// Everything but the marker.
    fn remove_contents(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(path_through(self.directory()))? {
            let entry = entry?;
            if entry.file_name() == MARKER {
                continue;
            }
            if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())?;
            } else {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Another thread may be starting a tool: until that runs, it has a
        // copy of the descriptor, and a closed copy alone frees no lock.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_form_are_ours() {
        assert_eq!(
            owner(OsStr::new(&new_name(4711, 0xfedc_ba98_7654_3210))),
            Some(4711)
        );
        for (name, pid) in [
            ("diskperf-1-00ff3a", Some(1)),
            ("diskperf-123456-abcdef", Some(123_456)),
            ("diskperf-1-00FF3A", None),
            ("diskperf-1-00ff3", None),
            ("diskperf-1-00ff3ab", None),
            ("diskperf-0-00ff3a", None),
            ("diskperf--00ff3a", None),
            ("diskperf-+1-00ff3a", None),
            ("diskperf-99999999999-00ff3a", None),
            ("diskperf-results-00ff3a", None),
            ("diskperf", None),
        ] {
            assert_eq!(owner(OsStr::new(name)), pid, "{name}");
        }
    }
}
