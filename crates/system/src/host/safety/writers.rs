//! Which other process has something open for writing, or mapped so.

use crate::host::device::{DeviceNumber, FileNumber, number_in};
use rustix::fs::Stat;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A process that is just being started has a copy of every file that its
/// parent has open: whoever is found is looked at again, some time later.
const LOOKS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(30);

/// What others may not have open for writing.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Devices, each with what to call it.
    pub(super) devices: Vec<(DeviceNumber, PathBuf)>,
    /// Files, likewise.
    pub(super) files: Vec<(FileNumber, PathBuf)>,
}

/// A process that can write to something of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) process: i32,
    pub(super) command: String,
    /// What it can write to.
    pub(super) part: PathBuf,
}

/// What a look at all processes has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// The first that can write to something.
    pub(super) writer: Option<Writer>,
    /// Those that this process may not look at, as `1 (init)`.
    pub(super) unseen: Vec<String>,
}

impl Watched {
    /// Looks for another process than this one that has something of these open
    /// for writing.
    ///
    /// # Errors
    /// /proc cannot be read.
    pub(super) fn look(&self) -> io::Result<Look> {
        for _ in 1..LOOKS {
            let look = self.look_once()?;
            if look.writer.is_none() {
                return Ok(look);
            }
            std::thread::sleep(PAUSE);
        }
        self.look_once()
    }

    fn look_once(&self) -> io::Result<Look> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut look = Look::default();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let Some(process) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            if process == own {
                continue;
            }
            let command = command_of(&entry.path());
            match self.part_of(&entry.path()) {
                Ok(None) => {}
                Ok(Some(part)) => {
                    look.writer = Some(Writer {
                        process,
                        command,
                        part,
                    });
                    break;
                }
                // It has ended.
                Err(error) if is_gone(&error) => {}
                Err(_) => look.unseen.push(format!("{process} ({command})")),
            }
        }
        Ok(look)
    }

    /// What of these a process can write to.
    fn part_of(&self, process: &Path) -> io::Result<Option<PathBuf>> {
        for entry in std::fs::read_dir(process.join("fd"))? {
            let name = entry?.file_name();
            let Some(part) = self.named_by(&process.join("fd").join(&name))? else {
                continue;
            };
            let info = std::fs::read_to_string(process.join("fdinfo").join(&name));
            match info {
                Ok(info) if is_open_for_writing(&info) => return Ok(Some(part)),
                Err(error) if !is_gone(&error) => return Err(error),
                _ => {}
            }
        }
        let maps = std::fs::read(process.join("maps"))?;
        for line in maps.split(|&byte| byte == b'\n') {
            let Some(range) = written_mapping(line) else {
                continue;
            };
            if let Some(part) = self.named_by(&process.join("map_files").join(range))? {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    /// What of these a link of /proc leads to, if it is one of them.
    fn named_by(&self, link: &Path) -> io::Result<Option<PathBuf>> {
        match rustix::fs::stat(link) {
            Ok(status) => Ok(self.named(&status)),
            // Closed meanwhile, or of a file system that has gone.
            Err(Errno::NOENT | Errno::SRCH | Errno::STALE | Errno::IO | Errno::NOTCONN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn named(&self, status: &Stat) -> Option<PathBuf> {
        let device = number_in(status);
        let file = FileNumber::in_status(status);
        let devices = self.devices.iter();
        let files = self.files.iter();
        devices
            .filter(|(number, _)| Some(*number) == device)
            .map(|(_, path)| path)
            .chain(
                files
                    .filter(|(number, _)| *number == file)
                    .map(|(_, path)| path),
            )
            .next()
            .cloned()
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::SRCH)
    )
}

fn command_of(process: &Path) -> String {
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Whether a file of /proc/PID/fdinfo is of one opened for writing.
fn is_open_for_writing(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    // One whose flags are not told may be.
    flags.is_none_or(|flags| flags & libc::O_ACCMODE as u32 != libc::O_RDONLY as u32)
}

/// The name in /proc/PID/map_files of a mapping whose writes reach its file; a
/// line of /proc/PID/maps is `7f1c00-7f2c00 rw-s 00000000 00:05 8 /dev/loop0`.
fn written_mapping(line: &[u8]) -> Option<String> {
    let line = std::str::from_utf8(line.split(|&byte| byte == b'/').next()?).ok()?;
    let mut fields = line.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?);
    if rights.as_bytes().get(1) != Some(&b'w') || rights.as_bytes().get(3) != Some(&b's') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let plain = |address: &str| u64::from_str_radix(address, 16).ok();
    Some(format!("{:x}-{:x}", plain(start)?, plain(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        for (info, writes) in [
            ("pos:\t0\nflags:\t0100000\nmnt_id:\t27\n", false),
            ("pos:\t0\nflags:\t0100001\n", true),
            ("pos:\t0\nflags:\t02100002\n", true),
            ("pos:\t0\n", true),
        ] {
            assert_eq!(is_open_for_writing(info), writes, "{info}");
        }
        for (line, range) in [
            (
                "00400000-00500000 rw-s 00000000 00:05 8 /dev/loop0",
                Some("400000-500000"),
            ),
            ("00400000-00500000 r--s 00000000 00:05 8 /dev/loop0", None),
            ("00400000-00500000 rw-p 00000000 00:05 8 /dev/loop0", None),
            ("", None),
        ] {
            let found = written_mapping(line.as_bytes());
            assert_eq!(found.as_deref(), range, "{line}");
        }
    }
}
