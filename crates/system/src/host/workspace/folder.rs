//! A workspace's folder with its lock, in the hands of whoever may remove it.

use super::WorkspaceError;
use crate::host::mounts::Mounts;
use rustix::fs::{AtFlags, CWD};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

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

/// A folder whose marker is locked by this process.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The marker, open and locked.
    pub(super) lock: File,
}

impl Folder {
    pub(super) fn new(path: PathBuf, lock: File) -> Self {
        Self { path, lock }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the locked marker is still the one in the folder at that path.
    pub(super) fn is_ours(&self) -> bool {
        let marker = rustix::fs::statat(CWD, self.path.join(MARKER), AtFlags::SYMLINK_NOFOLLOW);
        match (marker, rustix::fs::fstat(&self.lock)) {
            (Ok(there), Ok(held)) => (there.st_dev, there.st_ino) == (held.st_dev, held.st_ino),
            _ => false,
        }
    }

    /// Removes the folder with all that is in it, and nothing else: links are
    /// removed, not followed, and another file system is not entered.
    pub(super) fn remove(&self) -> Result<(), WorkspaceError> {
        if !self.path.exists() {
            return Ok(());
        }
        if !self.is_ours() {
            return Err(WorkspaceError::Replaced {
                path: self.path.clone(),
            });
        }
        let failed = |source| WorkspaceError::Io {
            action: "remove",
            path: self.path.clone(),
            source,
        };
        let mounts = Mounts::read().map_err(failed)?;
        if let Some(mount) = mounts.inside(&self.path).next() {
            return Err(WorkspaceError::MountedInside {
                path: self.path.clone(),
                mount_point: mount.mount_point.clone(),
            });
        }
        self.remove_contents().map_err(failed)?;
        std::fs::remove_file(self.path.join(MARKER)).map_err(failed)?;
        std::fs::remove_dir(&self.path).map_err(failed)
    }

    /// Everything but the marker.
    fn remove_contents(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
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
