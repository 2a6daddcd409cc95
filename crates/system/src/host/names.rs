//! A worker's names: what they lead to, and the calls on them.

use super::device::BlockDevice;
use super::null::NullFile;
use super::ring::RingLog;
use super::worker::Host;
use crate::{Call, Errno, Error, Result};
use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// What the worker's names lead to.
#[derive(Default)]
pub struct Ports {
    /// The directories behind `/mnt0`, `/mnt1`, ...
    pub directories: Vec<OwnedFd>,
    /// What is behind `/dev/drive0`, `/dev/drive1`, ...
    pub drives: Vec<DrivePort>,
    /// The worker's ends of pipes; taken by [`crate::System::pipe_end`].
    pub pipe_ends: Vec<Option<OwnedFd>>,
    /// What the kernel is told of every file and drive that is opened.
    pub read_ahead: ReadAhead,
    /// Where the worker's ring writes down what it submits and takes.
    pub ring_log: Option<RingLog>,
}

/// What posix_fadvise(2) tells the kernel of how a file will be read, by which
/// it reads ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadAhead {
    /// Nothing: it finds out.
    #[default]
    Normal,
    /// One byte after the other: it reads twice as far ahead.
    Sequential,
    /// Here and there: it reads nothing ahead.
    Random,
}

impl ReadAhead {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Normal, Self::Sequential, Self::Random];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }

    /// Tells the kernel.
    pub(super) fn tell(self, file: BorrowedFd<'_>) -> std::result::Result<(), Errno> {
        let advice = match self {
            Self::Normal => return Ok(()),
            Self::Sequential => Advice::Sequential,
            Self::Random => Advice::Random,
        };
        Ok(rustix::fs::fadvise(file, 0, None, advice)?)
    }
}

/// What a worker may open as a drive.
pub enum DrivePort {
    /// A block device.
    Device {
        /// Which one.
        device: BlockDevice,
        /// Whether the user gave its data up. Otherwise opening it for writing
        /// fails with EROFS.
        writable: bool,
    },
    /// A file of the user's, which is only read.
    File(PathBuf),
    /// Nothing, as long as a drive: what is written is gone, what is read is as it was,
    /// and both are done at once. What is left is the cost of generating load.
    Null {
        /// How long.
        length_bytes: u64,
    },
}

impl DrivePort {
    /// What it is where it is not there.
    pub(super) fn null_file(&self) -> Option<NullFile> {
        match self {
            Self::Device { .. } | Self::File(_) => None,
            Self::Null { length_bytes } => Some(NullFile::new(*length_bytes)),
        }
    }

    /// Opens it, never creating nor truncating anything.
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
    /// Where a name leads: see the crate's documentation for the name space.
    pub(super) fn resolve<'a>(&'a self, path: &'a str) -> std::result::Result<Name<'a>, Errno> {
        if let "/dev/null" | "/dev/zero" = path {
            return Ok(Name::Device(path));
        }
        if let Some(number) = path.strip_prefix("/dev/drive") {
            let port = number
                .parse()
                .ok()
                .and_then(|number: usize| self.drives.get(number));
            return port.map(Name::Drive).ok_or(Errno::NoEntry);
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
        Ok(Name::InDirectory(
            directory.as_fd(),
            if name.is_empty() { "." } else { name },
        ))
    }
}

/// What a name leads to.
pub(super) enum Name<'a> {
    InDirectory(BorrowedFd<'a>, &'a str),
    Drive(&'a DrivePort),
    Device(&'a str),
}

/// The calls on names.
impl Host {
    pub(crate) fn stat(&mut self, path: &str) -> Result<u64> {
        self.in_directory(Call::Stat, path, |directory, name| {
            let status = rustix::fs::statat(directory, name, AtFlags::empty())?;
            Ok(status.st_size as u64)
        })
    }

    pub(crate) fn unlink(&mut self, path: &str) -> Result<()> {
        self.in_directory(Call::Unlink, path, |directory, name| {
            rustix::fs::unlinkat(directory, name, AtFlags::empty())
        })
    }

    pub(crate) fn mkdir(&mut self, path: &str) -> Result<()> {
        self.in_directory(Call::Mkdir, path, |directory, name| {
            rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o777))
        })
    }

    pub(crate) fn rmdir(&mut self, path: &str) -> Result<()> {
        self.in_directory(Call::Rmdir, path, |directory, name| {
            rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR)
        })
    }

    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let failed = |errno| Error::failed(Call::Rename, to, errno);
        let Name::InDirectory(to_directory, to_name) = self.ports.resolve(to).map_err(failed)?
        else {
            return Err(failed(Errno::Access));
        };
        self.in_directory(Call::Rename, from, |from_directory, from_name| {
            rustix::fs::renameat(from_directory, from_name, to_directory, to_name)
        })
    }

    /// A call on a name, which must lie in one of the directories.
    pub(super) fn in_directory<T>(
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
            Name::InDirectory(directory, name) => {
                act(directory, name).map_err(|errno| Error::failed(call, path, errno))
            }
            Name::Drive(_) | Name::Device(_) => Err(Error::failed(call, path, Errno::Access)),
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
                Name::InDirectory(_, name) => name,
                Name::Drive(_) | Name::Device(_) => "a device",
            });
            assert_eq!(resolved, expected, "{path}");
        }
    }
}
