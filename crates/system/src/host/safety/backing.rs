//! Files whose bytes something shows, as loop devices and swap do, and whether
//! two of them are one file.
//!
//! A file has a number, its file system's and its own, by whatever names it is
//! reached. But a file system that is stacked on others (overlay), or asks
//! somebody else for its files (FUSE, NFS), gives them numbers of its own: there
//! two numbers may be of one file. Its place on the disk tells then.

use super::extents::Extents;
use crate::host::device::FileNumber;
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// File systems without a device of their own whose numbers are all the same
/// their files' only ones: `statfs` names them so.
const KEEPING_FILES: &[u64] = &[
    0x9123_683e, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58f6, // ramfs
    0x2fc1_2fc1, // ZFS
    0xca45_1a4e, // bcachefs
];

/// A file that something shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShownFile {
    /// The name that the kernel has for it, which need not lead there from here.
    pub(super) path: PathBuf,
    /// Its number, where that is known.
    pub(super) number: Option<FileNumber>,
    /// Whether it is shown for writing. Of a stacked file system, only then is
    /// what was opened still what its name leads to.
    pub(super) writable: bool,
}

/// Whether two files are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sameness {
    /// They are.
    Same,
    /// They are not.
    Different,
    /// It cannot be told.
    Unknown,
}

impl ShownFile {
    /// Compares it with another.
    pub(super) fn sameness(&self, other: &Self) -> Sameness {
        let (Some(number), Some(other_number)) = (self.number, other.number) else {
            return match self.path == other.path {
                true => Sameness::Same,
                false => Sameness::Unknown,
            };
        };
        if number == other_number {
            return Sameness::Same;
        }
        let (one, two) = (self.open(), other.open());
        if is_only_number(number, one.as_ref()) && is_only_number(other_number, two.as_ref()) {
            return Sameness::Different;
        }
        let followed = |file: &Self, opened: &Option<OwnedFd>| {
            file.writable
                || file
                    .number
                    .is_some_and(|number| is_only_number(number, opened.as_ref()))
        };
        match (&one, &two) {
            (Some(left), Some(right)) if followed(self, &one) && followed(other, &two) => {
                by_place(left, right)
            }
            _ => Sameness::Unknown,
        }
    }

    /// Opens it, if its name leads to it from here.
    fn open(&self) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&self.path, flags, Mode::empty()).ok()?;
        let number = FileNumber::of(opened.as_fd()).ok()?;
        (Some(number) == self.number).then_some(opened)
    }
}

/// Whether a file's number is the only one that it has.
fn is_only_number(number: FileNumber, opened: Option<&OwnedFd>) -> bool {
    if number.device.major != 0 {
        return true;
    }
    let kind = opened.and_then(|file| rustix::fs::fstatfs(file).ok());
    kind.is_some_and(|kind| KEEPING_FILES.contains(&(kind.f_type as u64 & 0xffff_ffff)))
}

/// One file has one place. The first is looked at twice, since the other may be
/// written to in between.
fn by_place(one: &OwnedFd, other: &OwnedFd) -> Sameness {
    let places = [one, other, one].map(|file| Extents::of(file.as_fd()));
    let [Ok(before), Ok(other), Ok(after)] = &places else {
        return Sameness::Unknown;
    };
    if before.overlap(other) || after.overlap(other) {
        Sameness::Same
    } else if before != after || (before.is_empty() && other.is_empty()) {
        Sameness::Unknown
    } else {
        Sameness::Different
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn files_are_compared_by_number_and_else_by_path() {
        let file = |path: &str, number: Option<(&str, u64)>| ShownFile {
            path: PathBuf::from(path),
            number: number.map(|(device, inode)| FileNumber {
                device: device.parse().unwrap(),
                inode,
            }),
            writable: true,
        };
        let disk = |path: &str, inode| file(path, Some(("254:0", inode)));
        for (one, other, sameness) in [
            (disk("/no/a", 1), disk("/no/b", 1), Sameness::Same),
            (disk("/no/a", 1), disk("/no/a", 2), Sameness::Different),
            (disk("/no/a", 1), file("/no/a", None), Sameness::Same),
            (file("/no/a", None), file("/no/b", None), Sameness::Unknown),
            // Of no device's file system, and not to be opened from here.
            (
                disk("/no/a", 1),
                file("/no/b", Some(("0:41", 2))),
                Sameness::Unknown,
            ),
        ] {
            assert_eq!(one.sameness(&other), sameness, "{one:?} {other:?}");
            assert_eq!(other.sameness(&one), sameness, "{other:?} {one:?}");
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
            let number = FileNumber::of(file.as_fd()).ok();
            ShownFile {
                path,
                number,
                writable: false,
            }
        };
        assert_eq!(shown("a").sameness(&shown("b")), Sameness::Different);
    }
}
