//! Name space of a worker on real storage, and the calls that use names.

use super::device::BlockDevice;
use super::null::NullFile;
use super::ring::RingRequestLog;
use super::worker::HostWorker;
use crate::{CallKind, Errno, Error, Result};
use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// Directories, drives and pipe ends that a worker's names lead to.
#[derive(Default)]
pub struct HostPorts {
    /// Directories behind `/mnt0`, `/mnt1`, ...
    pub directories: Vec<OwnedFd>,
    /// Drives behind `/dev/drive0`, `/dev/drive1`, ...
    pub drive_ports: Vec<DrivePort>,
    /// Pipe ends of the worker; taken by [`crate::System::open_pipe_end`].
    pub pipe_ends: Vec<Option<OwnedFd>>,
    /// Read-ahead advice for every file and drive that the worker opens.
    pub read_ahead: ReadAhead,
    /// Log of the requests that the worker's ring submits and reaps.
    pub ring_log: Option<RingRequestLog>,
}

/// Read-ahead advice to the kernel through posix_fadvise(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAhead {
    /// No advice: the kernel detects the access pattern.
    #[default]
    NormalReadAhead,
    /// Sequential access: the kernel doubles its read-ahead.
    SequentialReadAhead,
    /// Random access: the kernel does not read ahead.
    NoReadAhead,
}

impl ReadAhead {
    /// Every kind of read-ahead advice.
    pub const ALL_MODES: [Self; 3] = [
        Self::NormalReadAhead,
        Self::SequentialReadAhead,
        Self::NoReadAhead,
    ];

    /// Returns the name of the read-ahead advice.
    pub fn read_ahead_name(self) -> &'static str {
        match self {
            Self::NormalReadAhead => "normal",
            Self::SequentialReadAhead => "sequential",
            Self::NoReadAhead => "random",
        }
    }

    /// Gives the advice for an open file to the kernel.
    pub(super) fn advise_kernel(self, file: BorrowedFd<'_>) -> std::result::Result<(), Errno> {
        let advice = match self {
            Self::NormalReadAhead => return Ok(()),
            Self::SequentialReadAhead => Advice::Sequential,
            Self::NoReadAhead => Advice::Random,
        };
        Ok(rustix::fs::fadvise(file, 0, None, advice)?)
    }
}

/// Target of a worker's drive name such as `/dev/drive0`.
pub enum DrivePort {
    /// Block device that the worker uses as a drive.
    Device {
        /// Block device behind the drive name.
        device: BlockDevice,
        /// Whether the user permitted the loss of its data. Otherwise, opening it for writing fails
        /// with EROFS.
        writable: bool,
    },
    /// User's file that serves as a read-only drive.
    RegularFile(PathBuf),
    /// Null drive: it discards writes, leaves read buffers unchanged, and completes both
    /// immediately. The measured time is the cost of generating the load.
    NullDrive {
        /// Length of the null drive in bytes.
        length_bytes: u64,
    },
}

impl DrivePort {
    /// Returns an open file of a null drive; `None` for other targets.
    pub(super) fn null_file(&self) -> Option<NullFile> {
        match self {
            Self::Device { .. } | Self::RegularFile(_) => None,
            Self::NullDrive { length_bytes } => Some(NullFile::new(*length_bytes)),
        }
    }

    /// Opens the target without creating or truncating anything.
    pub(super) fn open_drive(&self, flags: OFlags) -> std::result::Result<OwnedFd, Errno> {
        let flags = flags - OFlags::CREATE - OFlags::TRUNC;
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        match self {
            Self::Device {
                writable: false, ..
            }
            | Self::RegularFile(_)
                if writes =>
            {
                Err(Errno::ReadOnly)
            }
            Self::Device { device, .. } => Ok(device.open_device(flags)?),
            Self::RegularFile(path) => Ok(rustix::fs::open(path, flags, Mode::empty())?),
            // There is a descriptor behind every open file.
            Self::NullDrive { .. } => {
                let flags = flags - OFlags::DIRECT - OFlags::DSYNC;
                Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
            }
        }
    }
}

impl HostPorts {
    /// Returns the target of a name in the name space that the crate's documentation describes.
    pub(super) fn resolve_port_path<'a>(
        &'a self,
        path: &'a str,
    ) -> std::result::Result<PortPath<'a>, Errno> {
        if let "/dev/null" | "/dev/zero" = path {
            return Ok(PortPath::Device(path));
        }
        if let Some(number) = path.strip_prefix("/dev/drive") {
            let port = number
                .parse()
                .ok()
                .and_then(|number: usize| self.drive_ports.get(number));
            return port.map(PortPath::DrivePath).ok_or(Errno::NoEntry);
        }
        let (mount, name) = path
            .strip_prefix("/mnt")
            .map(|rest| rest.split_once('/').unwrap_or((rest, "")))
            .ok_or(Errno::NoEntry)?;
        // Nothing outside its own directory is ever a worker's to touch; a
        // second slash would make the rest a path from the root.
        let name = name.trim_start_matches('/');
        if name.split('/').any(|part| part == "..") {
            return Err(Errno::Access);
        }
        let directory = mount
            .parse()
            .ok()
            .and_then(|number: usize| self.directories.get(number));
        let directory = directory.ok_or(Errno::NoEntry)?;
        Ok(PortPath::DirectoryPath(
            directory.as_fd(),
            if name.is_empty() { "." } else { name },
        ))
    }
}

/// Target of a name in the worker's name space.
pub(super) enum PortPath<'a> {
    DirectoryPath(BorrowedFd<'a>, &'a str),
    DrivePath(&'a DrivePort),
    Device(&'a str),
}

impl HostWorker {
    pub(crate) fn stat(&mut self, path: &str) -> Result<u64> {
        self.call_in_directory(CallKind::Stat, path, |directory, name| {
            let status = rustix::fs::statat(directory, name, AtFlags::empty())?;
            Ok(status.st_size as u64)
        })
    }

    pub(crate) fn unlink(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(CallKind::Unlink, path, |directory, name| {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())
        })
    }

    pub(crate) fn mkdir(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(CallKind::Mkdir, path, |directory, name| {
            rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777))
        })
    }

    pub(crate) fn rmdir(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(CallKind::Rmdir, path, |directory, name| {
            rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
        })
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let failed = |errno| Error::call_failed(CallKind::Rename, to, errno);
        let PortPath::DirectoryPath(to_directory, to_name) =
            self.ports.resolve_port_path(to).map_err(failed)?
        else {
            return Err(failed(Errno::Access));
        };
        self.call_in_directory(CallKind::Rename, from, |from_directory, from_name| {
            rustix::fs::renameat(from_directory, from_name, to_directory, to_name)
        })
    }

    /// Makes a call on a name, which must lie in one of the worker's directories.
    pub(super) fn call_in_directory<T>(
        &self,
        call: CallKind,
        path: &str,
        act: impl FnOnce(BorrowedFd<'_>, &str) -> rustix::io::Result<T>,
    ) -> Result<T> {
        self.check_stop()?;
        match self
            .ports
            .resolve_port_path(path)
            .map_err(|errno| Error::call_failed(call, path, errno))?
        {
            PortPath::DirectoryPath(directory, name) => {
                act(directory, name).map_err(|errno| Error::call_failed(call, path, errno))
            }
            PortPath::DrivePath(_) | PortPath::Device(_) => {
                Err(Error::call_failed(call, path, Errno::Access))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_their_directories() {
        let here = || OwnedFd::from(std::fs::File::open(".").unwrap());
        let ports = HostPorts {
            directories: vec![here(), here()],
            ..HostPorts::default()
        };
        for (path, expected) in [
            ("/mnt0/a/b", Ok("a/b")),
            ("/mnt1/a", Ok("a")),
            ("/mnt0", Ok(".")),
            ("/mnt0//etc/passwd", Ok("etc/passwd")),
            ("/mnt0/../a", Err(Errno::Access)),
            ("/mnt0/a/..", Err(Errno::Access)),
            ("/mnt2/a", Err(Errno::NoEntry)),
            ("/mntx/a", Err(Errno::NoEntry)),
            ("/dev/drive0", Err(Errno::NoEntry)),
            ("/etc/passwd", Err(Errno::NoEntry)),
            ("a", Err(Errno::NoEntry)),
        ] {
            let resolved = ports.resolve_port_path(path).map(|name| match name {
                PortPath::DirectoryPath(_, name) => name,
                PortPath::DrivePath(_) | PortPath::Device(_) => "a device",
            });
            assert_eq!(resolved, expected, "{path}");
        }
    }
}
