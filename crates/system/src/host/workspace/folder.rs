//! Workspace folder with its lock, as held by a process that may remove it.

use super::WorkspaceError;
use crate::host::device::{DeviceNumber, FileNumber};
use crate::host::mounts::Mounts;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Name of the marker file, which makes a folder a workspace.
pub(super) const MARKER_NAME: &str = "diskperf-workspace";
const WORKSPACE_NAME_PREFIX: &str = "diskperf-";
const RANDOM_NAME_DIGITS: usize = 6;

/// Name prefixes of files that FUSE's library and NFS keep for removed files that are still open.
/// Such a file disappears when it is closed.
const KEPT_OPEN_PREFIXES: [&str; 2] = [".fuse_hidden", ".nfs"];

/// Maximum attempts to remove a folder that is not yet empty, because a removed file is still being
/// closed.
const REMOVE_ATTEMPTS_MAX: u32 = 200;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

pub(super) fn new_name(pid: u32, random: u64) -> String {
    format!("{WORKSPACE_NAME_PREFIX}{pid}-{:06x}", random & 0xff_ffff)
}

/// Returns the process id in the name of a workspace folder; `None` for other names.
pub(super) fn parse_owner(name: &OsStr) -> Option<i32> {
    let (pid, hex) = name
        .to_str()?
        .strip_prefix(WORKSPACE_NAME_PREFIX)?
        .split_once('-')?;
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let pid_is_plain = pid.bytes().all(|byte| byte.is_ascii_digit());
    if hex.len() != RANDOM_NAME_DIGITS || !hex.bytes().all(is_hex) || !pid_is_plain {
        return None;
    }
    pid.parse().ok().filter(|&pid| pid > 0)
}

/// Returns a path through an open directory's descriptor. Names below it lie in that very
/// directory, whatever becomes of its own path.
pub(in crate::host) fn path_through(directory: BorrowedFd<'_>) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// Workspace folder whose marker this process has locked. All operations use its descriptor and its
/// parent's. Its path may come to lead elsewhere, because the owner of a directory above can put a
/// link there.
#[derive(Debug)]
pub(super) struct WorkspaceFolder {
    /// Path of the workspace folder, for messages only.
    path: PathBuf,
    name: OsString,
    parent_directory: Arc<OwnedFd>,
    directory: OwnedFd,
    /// Marker file, open and locked; `None` after its release.
    marker_lock: Option<File>,
}

impl WorkspaceFolder {
    /// Returns the folder `name` in `parent`, open as `directory`, with its locked marker.
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
            parent_directory: parent,
            directory,
            marker_lock: Some(lock),
        }
    }

    pub(super) fn write_marker(&self, text: &str) -> io::Result<()> {
        self.marker_lock
            .as_ref()
            .map_or(Ok(()), |mut lock| lock.write_all(text.as_bytes()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Reports whether the path still leads to this folder, and the folder still contains the
    /// locked marker.
    pub(super) fn is_own_folder(&self) -> io::Result<bool> {
        Ok(self.is_at_its_path()? && self.marker_state()? == MarkerState::LockedByThisProcess)
    }

    /// Reports whether the path still leads to this folder.
    fn is_at_its_path(&self) -> io::Result<bool> {
        let there = file_number_at(self.parent_directory.as_fd(), &self.name)?;
        Ok(there == Some(FileNumber::from_file(self.directory())?))
    }

    fn marker_state(&self) -> io::Result<MarkerState> {
        let held = self
            .marker_lock
            .as_ref()
            .map(FileNumber::from_file)
            .transpose()?;
        Ok(
            match file_number_at(self.directory(), OsStr::new(MARKER_NAME))? {
                None => MarkerState::Missing,
                there if there == held => MarkerState::LockedByThisProcess,
                Some(_) => MarkerState::OtherFile,
            },
        )
    }

    /// Reports whether the folder was removed since it was opened. A file server may have forgotten
    /// the folder or report outdated facts: a reply that was in flight during the removal counts
    /// links again. The kernel's own name of the folder does not depend on the server.
    pub(super) fn has_been_removed(&self) -> bool {
        let has_no_name = std::fs::read_link(path_through(self.directory()))
            .is_ok_and(|name| name.as_os_str().as_encoded_bytes().ends_with(b" (deleted)"));
        has_no_name
            || match rustix::fs::fstat(&self.directory) {
                Ok(status) => status.st_nlink == 0,
                Err(error) => matches!(error, Errno::NOENT | Errno::STALE),
            }
    }

    fn release_lock(&mut self) {
        if let Some(lock) = self.marker_lock.take() {
            // Another thread may be starting a tool: until that runs, it has a
            // copy of the descriptor, and a closed copy alone frees no lock.
            let _ = rustix::fs::flock(&lock, FlockOperation::Unlock);
        }
    }

    /// Returns the mounts inside the folder, the latest first, each with its path below the folder.
    pub(super) fn mounts_inside(&self) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        // The kernel's own name of the folder, which mount points begin with
        // also after a directory above was renamed.
        let folder = std::fs::read_link(path_through(self.directory()))?;
        let mounts = Mounts::read_mounts()?;
        Ok(mounts
            .mounts_inside(&folder)
            .filter_map(|mount| {
                let below = mount.mount_point.strip_prefix(&folder).ok()?;
                Some((mount.mount_point.clone(), below.to_owned()))
            })
            .collect())
    }

    /// Returns the device and inode numbers of every regular file below the folder, without
    /// following links.
    pub(super) fn file_numbers(&self) -> io::Result<BTreeSet<FileNumber>> {
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

    /// Removes the folder with all its contents, and nothing else. Links are removed, not followed,
    /// and other file systems are not entered.
    pub(super) fn remove_folder(&mut self) -> Result<(), WorkspaceError> {
        match self.try_remove() {
            // Somebody else has removed it.
            Err(_) if self.has_been_removed() => Ok(()),
            result => result,
        }
    }

    fn try_remove(&mut self) -> Result<(), WorkspaceError> {
        let path = self.path.clone();
        let failed = |source| WorkspaceError::Io {
            action: "remove",
            path: path.clone(),
            source,
        };
        let mounts = self.mounts_inside().map_err(failed)?;
        if let Some((mount_point, _)) = mounts.into_iter().next() {
            return Err(WorkspaceError::MountedInside { path, mount_point });
        }
        // Without its marker it is being removed by somebody else as well.
        let is_in_place = self.is_at_its_path().map_err(failed)?;
        if !is_in_place || self.marker_state().map_err(failed)? == MarkerState::OtherFile {
            return Err(WorkspaceError::FolderReplaced { path });
        }
        retry_while_busy(|| self.remove_contents()).map_err(failed)?;
        // What is open cannot be removed from every file system.
        self.release_lock();
        retry_while_busy(|| self.remove_marker_and_folder()).map_err(|error| {
            self.put_marker_back();
            failed(error)
        })
    }

    /// Removes everything in the folder except the marker.
    fn remove_contents(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(path_through(self.directory()))? {
            let entry = entry?;
            if entry.file_name() == MARKER_NAME {
                continue;
            }
            let removed = if entry.file_type()?.is_dir() {
                std::fs::remove_dir_all(entry.path())
            } else {
                std::fs::remove_file(entry.path())
            };
            match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    /// Removes the marker and then the folder. The parent is open, so that it cannot be swapped; at
    /// worst an empty folder of the same name is removed from it.
    fn remove_marker_and_folder(&self) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, MARKER_NAME, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(rustix::fs::unlinkat(
            &*self.parent_directory,
            &self.name,
            AtFlags::REMOVEDIR,
        )?)
    }

    /// Recreates the marker of a folder that could not be removed, so that it stays recognisable as
    /// a workspace.
    fn put_marker_back(&self) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        if let Ok(marker) = rustix::fs::openat(&self.directory, MARKER_NAME, flags, mode) {
            let _ = File::from(marker).write_all(b"not removed\n");
        }
    }
}

impl Drop for WorkspaceFolder {
    fn drop(&mut self) {
        self.release_lock();
    }
}

/// State of the marker's name in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkerState {
    /// Marker file whose lock this process holds.
    LockedByThisProcess,
    Missing,
    OtherFile,
}

/// Returns the number of the file with a name in a directory, without following a link; `None` if
/// there is none.
fn file_number_at(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Option<FileNumber>> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => Ok(Some(FileNumber::from_status(&status))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Repeats a removal that fails because a file is still being closed.
pub(in crate::host) fn retry_while_busy(
    mut remove: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    use io::ErrorKind::{DirectoryNotEmpty, ResourceBusy};
    let mut attempts = 1;
    loop {
        match remove() {
            Err(error)
                if matches!(error.kind(), DirectoryNotEmpty | ResourceBusy)
                    && attempts < REMOVE_ATTEMPTS_MAX =>
            {
                attempts += 1;
                std::thread::sleep(REMOVE_PAUSE);
            }
            result => return result,
        }
    }
}

/// Reports whether an open directory is empty except for hidden files, which stand for removed
/// files that are still open.
pub(super) fn is_empty(directory: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(entry_names(directory)?.all(|name| is_hidden(&name)))
}

/// Removes the hidden files of an open directory. They remain if the file server was killed that
/// had hidden them.
pub(super) fn remove_hidden(directory: BorrowedFd<'_>) -> io::Result<()> {
    for name in entry_names(directory)?.filter(|name| is_hidden(name)) {
        match rustix::fs::unlinkat(directory, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn entry_names(directory: BorrowedFd<'_>) -> io::Result<impl Iterator<Item = OsString>> {
    let entries = std::fs::read_dir(path_through(directory))?;
    let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    Ok(names?.into_iter())
}

fn is_hidden(name: &OsStr) -> bool {
    KEPT_OPEN_PREFIXES
        .iter()
        .any(|prefix| name.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_form_are_ours() {
        assert_eq!(
            parse_owner(OsStr::new(&new_name(4711, 0xfedc_ba98_7654_3210))),
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
            assert_eq!(parse_owner(OsStr::new(name)), pid, "{name}");
        }
    }
}
