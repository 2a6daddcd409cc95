//! Backing files of loop devices and swap, and whether two of them are the same file.
//!
//! A file is identified by its device and inode numbers, under any name. But a stacked file system
//! (overlay), or one that gets its files from elsewhere (FUSE, NFS), assigns numbers of its own, so
//! that two numbers may belong to one file. Then the file's extents on disk are compared.

use super::extents::FileExtents;
use crate::host::device::FileNumber;
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Magic numbers (`statfs`) of file systems without a device of their own that still give each file
/// a single number.
const STABLE_NUMBER_FILESYSTEMS: &[u64] = &[
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
];

/// Backing file of a loop device or of swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BackingFile {
    /// Path that the kernel has for the file, which need not lead to it in this mount namespace.
    pub(super) path: PathBuf,
    /// Device and inode numbers of the backing file, if they are known.
    pub(super) file_number: Option<FileNumber>,
    /// Whether the file is open for writing. On a stacked file system, only then does its path
    /// still lead to the opened file.
    pub(super) is_writable: bool,
}

/// Result of comparing two backing files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileComparison {
    /// Same file under both names.
    SameFile,
    /// The files are different ones.
    DifferentFiles,
    /// Inconclusive comparison: the files may be the same.
    UnknownIdentity,
}

impl BackingFile {
    pub(super) fn compare_with(&self, other: &Self) -> FileComparison {
        let (Some(number), Some(other_number)) = (self.file_number, other.file_number) else {
            return match self.path == other.path {
                true => FileComparison::SameFile,
                false => FileComparison::UnknownIdentity,
            };
        };
        if number == other_number {
            return FileComparison::SameFile;
        }
        let (one, two) = (self.open_file(), other.open_file());
        if is_unique_number(number, one.as_ref()) && is_unique_number(other_number, two.as_ref()) {
            return FileComparison::DifferentFiles;
        }
        let followed = |file: &Self, opened: &Option<OwnedFd>| {
            file.is_writable
                || file
                    .file_number
                    .is_some_and(|number| is_unique_number(number, opened.as_ref()))
        };
        match (&one, &two) {
            (Some(left), Some(right)) if followed(self, &one) && followed(other, &two) => {
                compare_extents(left, right)
            }
            _ => FileComparison::UnknownIdentity,
        }
    }

    /// Opens the backing file; `None` if its path does not lead to it in this mount namespace.
    fn open_file(&self) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.path, flags, Mode::empty()).ok()?;
        let number = FileNumber::from_file(opened.as_fd()).ok()?;
        (Some(number) == self.file_number).then_some(opened)
    }
}

/// Reports whether a file has no other file number than this one.
fn is_unique_number(number: FileNumber, opened: Option<&OwnedFd>) -> bool {
    if number.device.major != 0 {
        return true;
    }
    let kind = opened.and_then(|file| rustix::fs::fstatfs(file).ok());
    kind.is_some_and(|kind| STABLE_NUMBER_FILESYSTEMS.contains(&(kind.f_type as u64 & 0xffff_ffff)))
}

/// Compares two files by their extents on disk. The first file is examined twice, since the other
/// may be written to in between.
fn compare_extents(one: &OwnedFd, other: &OwnedFd) -> FileComparison {
    let places = [one, other, one].map(|file| FileExtents::read_file_extents(file.as_fd()));
    let [Ok(before), Ok(other), Ok(after)] = &places else {
        return FileComparison::UnknownIdentity;
    };
    if before.overlaps_with(other) || after.overlaps_with(other) {
        FileComparison::SameFile
    } else if before != after || (before.is_empty() && other.is_empty()) {
        FileComparison::UnknownIdentity
    } else {
        FileComparison::DifferentFiles
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn files_are_compared_by_number_and_else_by_path() {
        let file = |path: &str, number: Option<(&str, u64)>| BackingFile {
            path: PathBuf::from(path),
            file_number: number.map(|(device, inode)| FileNumber {
                device: device.parse().unwrap(),
                inode,
            }),
            is_writable: true,
        };
        let disk = |path: &str, inode| file(path, Some(("254:0", inode)));
        for (one, other, sameness) in [
            (disk("/no/a", 1), disk("/no/b", 1), FileComparison::SameFile),
            (
                disk("/no/a", 1),
                disk("/no/a", 2),
                FileComparison::DifferentFiles,
            ),
            (
                disk("/no/a", 1),
                file("/no/a", None),
                FileComparison::SameFile,
            ),
            (
                file("/no/a", None),
                file("/no/b", None),
                FileComparison::UnknownIdentity,
            ),
            // Of no device's file system, and not to be opened from here.
            (
                disk("/no/a", 1),
                file("/no/b", Some(("0:41", 2))),
                FileComparison::UnknownIdentity,
            ),
        ] {
            assert_eq!(one.compare_with(&other), sameness, "{one:?} {other:?}");
            assert_eq!(other.compare_with(&one), sameness, "{other:?} {one:?}");
        }
    }

    #[test]
    fn files_of_a_file_system_in_memory_are_told_apart() {
        let shared = Path::new("/dev/shm");
        let Ok(folder) = tempfile::tempdir_in(shared) else {
            eprintln!("SKIPPED files_of_a_file_system_in_memory_are_told_apart: no /dev/shm");
            return;
        };
        let shown = |name: &str| {
            let path = folder.path().join(name);
            let file = std::fs::File::create(&path).unwrap();
            let number = FileNumber::from_file(file.as_fd()).ok();
            BackingFile {
                path,
                file_number: number,
                is_writable: false,
            }
        };
        assert_eq!(
            shown("a").compare_with(&shown("b")),
            FileComparison::DifferentFiles
        );
    }
}
