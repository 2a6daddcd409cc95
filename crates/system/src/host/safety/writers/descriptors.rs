//! Open descriptors of other processes, from /proc.

use super::has_process_ended;
use crate::host::mounts::unescape_path;
use rustix::fs::{FileType, Stat};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// File descriptor of a thread in another process.
pub(super) struct ProcessDescriptor {
    /// Link in /proc to the open file.
    pub(super) link_path: PathBuf,
    info_path: PathBuf,
}

/// Kind of open file, by whether it may keep other files open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DescriptorKind {
    /// Ring of io_uring, with which files can be registered.
    IoUring,
    /// Socket, in which descriptors can wait for their receiver.
    Socket,
    /// Any other file, which keeps no other files open.
    OtherFile,
}

impl ProcessDescriptor {
    /// Returns the descriptor of a thread by its name (a number in text form). `thread` is a
    /// directory of /proc/PID/task.
    pub(super) fn new(thread: &Path, name: OsString) -> Self {
        Self {
            link_path: thread.join("fd").join(&name),
            info_path: thread.join("fdinfo").join(&name),
        }
    }

    pub(super) fn descriptor_kind(&self, status: &Stat) -> DescriptorKind {
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Socket => DescriptorKind::Socket,
            // Only what has no type of its own is made by the kernel for itself.
            FileType::Unknown => match std::fs::read_link(&self.link_path) {
                Ok(name) if name == Path::new("anon_inode:[io_uring]") => DescriptorKind::IoUring,
                _ => DescriptorKind::OtherFile,
            },
            _ => DescriptorKind::OtherFile,
        }
    }

    /// Reads the descriptor's file in fdinfo; `None` if the descriptor was closed meanwhile.
    pub(super) fn read_info(&self) -> io::Result<Option<DescriptorInfo>> {
        match std::fs::read_to_string(&self.info_path) {
            Ok(text) => Ok(Some(DescriptorInfo(text))),
            Err(error) if has_process_ended(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Text of a descriptor's file in /proc/PID/fdinfo.
pub(super) struct DescriptorInfo(String);

impl DescriptorInfo {
    /// Reports whether the open file may be written; true if its flags are unknown.
    pub(super) fn is_open_for_writing(&self) -> bool {
        let flags = self.info_field("flags:");
        let flags = flags.and_then(|flags| u32::from_str_radix(flags, 8).ok());
        flags.is_none_or(|flags| flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32)
    }

    /// Reports whether descriptors wait in a socket for their receiver.
    pub(super) fn has_files_in_flight(&self) -> bool {
        self.info_field("scm_fds:")
            .is_some_and(|count| count != "0")
    }

    fn info_field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    }
}

/// Files that are registered with an io_uring.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RegisteredFiles {
    pub(super) file_paths: Vec<PathBuf>,
    /// Whether the list of registered files is complete. The kernel lists none for an io_uring in
    /// use.
    pub(super) has_all_paths: bool,
}

/// Parses `UserFiles:` with the number of slots, and the line of each slot in use: `    0:
/// /tmp/some\040file`.
pub(super) fn registered_files(info: &DescriptorInfo) -> RegisteredFiles {
    let slots = info.info_field("UserFiles:");
    let slots = slots.and_then(|slots| slots.parse::<u64>().ok());
    let lines = info.0.lines();
    let after = lines
        .skip_while(|line| !line.starts_with("UserFiles:"))
        .skip(1);
    let paths: Vec<PathBuf> = after
        .map_while(|line| {
            let (slot, path) = line.trim_start().split_once(": ")?;
            slot.parse::<u64>().ok()?;
            Some(unescape_path(path.as_bytes()))
        })
        .collect();
    RegisteredFiles {
        // Kernels before 5.1 have no io_uring, and later ones tell the number.
        has_all_paths: slots == Some(0) || !paths.is_empty(),
        file_paths: paths,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(text: &str) -> DescriptorInfo {
        DescriptorInfo(text.to_owned())
    }

    #[test]
    fn flags_tell_what_may_be_written() {
        for (text, writes) in [
            ("pos:\t0\nflags:\t0100000\nmnt_id:\t27\n", false),
            ("pos:\t0\nflags:\t0100001\n", true),
            ("pos:\t0\nflags:\t02100002\n", true),
            ("pos:\t0\n", true),
        ] {
            assert_eq!(info(text).is_open_for_writing(), writes, "{text}");
        }
    }

    #[test]
    fn sockets_tell_of_descriptors_in_flight() {
        for (text, waits) in [
            ("flags:\t02\nscm_fds: 0\n", false),
            ("flags:\t02\nscm_fds: 1\n", true),
            ("flags:\t02\n", false),
        ] {
            assert_eq!(info(text).has_files_in_flight(), waits, "{text}");
        }
    }

    #[test]
    fn rings_tell_of_registered_files() {
        for (text, paths, are_all_named) in [
            ("UserFiles:\t0\nUserBufs:\t0\n", &[][..], true),
            (
                "SqThread:\t-1\nUserFiles:\t3\n    0: /tmp/some\\040file\n    2: /dev/loop0\nUserBufs:\t1\n",
                &["/tmp/some file", "/dev/loop0"],
                true,
            ),
            ("UserFiles:\t3\nUserBufs:\t1\n", &[], false),
            ("SqThread:\t-1\n", &[], false),
        ] {
            let paths = paths.iter().map(PathBuf::from).collect();
            let expected = RegisteredFiles {
                file_paths: paths,
                has_all_paths: are_all_named,
            };
            assert_eq!(registered_files(&info(text)), expected, "{text}");
        }
    }
}
