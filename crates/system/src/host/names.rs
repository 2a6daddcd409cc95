//! Name space of a worker on real storage, and the calls that use names.

use super::device::BlockDevice;
use super::null::NullFile;
use super::ring::RingLog;
use super::worker::Host;
use crate::{Call, Errno, Error, Result};
use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// Directories, drives and pipe ends that a worker's names lead to.
#[derive(Default)]
pub struct Ports {
    /// Directories behind `/mnt0`, `/mnt1`, ...
    pub directories: Vec<OwnedFd>,
    /// Drives behind `/dev/drive0`, `/dev/drive1`, ...
    pub drives: Vec<DrivePort>,
    /// Pipe ends of the worker; taken by [`crate::System::pipe_end`].
    pub pipe_ends: Vec<Option<OwnedFd>>,
    /// Read-ahead advice for every file and drive that the worker opens.
    pub read_ahead: ReadAhead,
    /// Log of the requests that the worker's ring submits and reaps.
    pub ring_log: Option<RingLog>,
}

/// Read-ahead advice to the kernel through posix_fadvise(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAhead {
    /// No advice: the kernel detects the access pattern.
    #[default]
    Normal,
    /// Sequential access: the kernel doubles its read-ahead.
    Sequential,
    /// Random access: the kernel does not read ahead.
    Random,
}

impl ReadAhead {
    /// Every kind of read-ahead advice.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Sequential, Self::Random];

    /// Returns the name of the read-ahead advice.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }

    /// Gives the advice for an open file to the kernel.
    pub(super) fn advise(self, file: BorrowedFd<'_>) -> std::result::Result<(), Errno> {
        let advice = match self {
            Self::Normal => return Ok(()),
            Self::Sequential => Advice::Sequential,
            Self::Random => Advice::Random,
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
    File(PathBuf),
    /// Null drive: it discards writes, leaves read buffers unchanged, and completes both
    /// immediately. The measured time is the cost of generating the load.
    Null {
        /// Length of the null drive in bytes.
        length_bytes: u64,
    },
}

impl DrivePort {
    /// Returns an open file of a null drive; `None` for other targets.
    pub(super) fn null_file(&self) -> Option<NullFile> {
        match self {
            Self::Device { .. } | Self::File(_) => None,
            Self::Null { length_bytes } => Some(NullFile::new(*length_bytes)),
        }
    }

    /// Opens the target without creating or truncating anything.
    pub(super) fn open(&self, flags: OFlags) -> std::result::Result<OwnedFd, Errno> {
        let flags = flags - OFlags::CREATE - OFlags::TRUNC;
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        match self {
            Self::Device {
                writable: false, ..
            }
            | Self::File(_)
                if writes =>
            {
                Err(Errno::ReadOnly)
            }
            Self::Device { device, .. } => Ok(device.open(flags)?),
            Self::File(path) => Ok(rustix::fs::open(path, flags, Mode::empty())?),
            // There is a descriptor behind every open file.
            Self::Null { .. } => {
                let flags = flags - OFlags::DIRECT - OFlags::DSYNC;
                Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
            }
        }
    }
}

impl Ports {
    /// Returns the target of a name in the name space that the crate's documentation describes.
    pub(super) fn resolve<'a>(&'a self, path: &'a str) -> std::result::Result<PortPath<'a>, Errno> {
        if let "/dev/null" | "/dev/zero" = path {
            return Ok(PortPath::Device(path));
        }
        if let Some(number) = path.strip_prefix("/dev/drive") {
            let port = number
                .parse()
                .ok()
                .and_then(|number: usize| self.drives.get(number));
            return port.map(PortPath::Drive).ok_or(Errno::NoEntry);
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
        Ok(PortPath::InDirectory(
            directory.as_fd(),
            if name.is_empty() { "." } else { name },
        ))
    }
}

/// Target of a name in the worker's name space.
pub(super) enum PortPath<'a> {
    InDirectory(BorrowedFd<'a>, &'a str),
    Drive(&'a DrivePort),
    Device(&'a str),
}

impl Host {
    pub(crate) fn stat(&mut self, path: &str) -> Result<u64> {
        self.call_in_directory(Call::Stat, path, |directory, name| {
            let status = rustix::fs::statat(directory, name, AtFlags::empty())?;
            Ok(status.st_size as u64)
        })
    }

    pub(crate) fn unlink(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(Call::Unlink, path, |directory, name| {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())
        })
    }

    pub(crate) fn mkdir(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(Call::Mkdir, path, |directory, name| {
            rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777))
        })
    }

    pub(crate) fn rmdir(&mut self, path: &str) -> Result<()> {
        self.call_in_directory(Call::Rmdir, path, |directory, name| {
            rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
        })
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let failed = |errno| Error::failed(Call::Rename, to, errno);
        let PortPath::InDirectory(to_directory, to_name) =
            self.ports.resolve(to).map_err(failed)?
        else {
            return Err(failed(Errno::Access));
        };
        self.call_in_directory(Call::Rename, from, |from_directory, from_name| {
            rustix::fs::renameat(from_directory, from_name, to_directory, to_name)
        })
    }

    /// Makes a call on a name, which must lie in one of the worker's directories.
    pub(super) fn call_in_directory<T>(
        &self,
        call: Call,
        path: &str,
        act: impl FnOnce(BorrowedFd<'_>, &str) -> rustix::io::Result<T>,
    ) -> Result<T> {
        self.check_stop()?;
        match self
            .ports
            .resolve(path)
            .map_err(|errno| Error::failed(call, path, errno))?
        {
            PortPath::InDirectory(directory, name) => {
                act(directory, name).map_err(|errno| Error::failed(call, path, errno))
            }
            PortPath::Drive(_) | PortPath::Device(_) => {
                Err(Error::failed(call, path, Errno::Access))
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
        let ports = Ports {
            directories: vec![here(), here()],
            ..Ports::default()
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
            let resolved = ports.resolve(path).map(|name| match name {
                PortPath::InDirectory(_, name) => name,
                PortPath::Drive(_) | PortPath::Device(_) => "a device",
            });
            assert_eq!(resolved, expected, "{path}");
        }
    }
}
