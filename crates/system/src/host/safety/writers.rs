//! Other processes that have something open for writing, or mapped so; and those
//! that may have, where the system does not tell.

mod descriptors;

use super::backing::{Sameness, ShownFile};
use crate::host::device::{DeviceNumber, FileNumber, number_in};
use crate::host::is_root;
use crate::host::mounts::Mounts;
use descriptors::{Descriptor, Kind, registered_files};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Looks at the processes: one that is just being started has a copy of every file
/// that its parent has open, so whoever is found is looked at again.
const LOOKS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(30);

/// Link of /proc to the PID namespace that the kernel boots with.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What others may not have open for writing.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Devices, each with what to call it.
    pub(super) devices: Vec<(DeviceNumber, PathBuf)>,
    /// Files that loop devices show.
    pub(super) files: Vec<ShownFile>,
}

/// A process that can write to something of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) process: i32,
    pub(super) command: String,
    /// The device or file that it can write to.
    pub(super) part: PathBuf,
}

/// What a look at all processes has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// The first that can write to something.
    pub(super) writer: Option<Writer>,
    /// Gaps in what can be found out, as "what process 1 (init) has open".
    pub(super) untold: BTreeSet<String>,
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
        let mut look = Look {
            writer: None,
            untold: hidden_processes(),
        };
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let name = entry.file_name();
            let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if process == own {
                continue;
            }
            let command = command_of(&entry.path());
            let mut visit = Visit {
                watched: self,
                directory: entry.path(),
                title: format!("process {process} ({command})"),
                untold: &mut look.untold,
            };
            match visit.part() {
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
                Err(_) => visit.cannot_tell("what {} has open"),
            }
        }
        Ok(look)
    }

    fn named(&self, status: &Stat) -> Option<PathBuf> {
        let device = number_in(status);
        let file = FileNumber::in_status(status);
        let devices = self.devices.iter();
        let device = devices
            .filter(|(number, _)| Some(*number) == device)
            .map(|(_, path)| path);
        let files = self.files.iter();
        let file = files
            .filter(|shown| shown.number == Some(file))
            .map(|shown| &shown.path);
        device.chain(file).next().cloned()
    }

    /// The file of these that has another number on a stacked file system (overlay),
    /// by which `link` leads to it.
    fn stacked(&self, link: &Path, status: &Stat) -> Option<PathBuf> {
        let number = FileNumber::in_status(status);
        let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        // Numbers of two file systems with devices of their own tell files apart.
        let may_be_one = |file: &&ShownFile| {
            let other = file.number.map(|other| other.device.major);
            is_file && (number.device.major == 0 || other.is_none_or(|major| major == 0))
        };
        let opened = ShownFile {
            path: link.to_owned(),
            number: Some(number),
            writable: true,
        };
        let mut files = self.files.iter().filter(may_be_one);
        files
            .find(|file| file.sameness(&opened) == Sameness::Same)
            .map(|file| file.path.clone())
    }

    /// The watched device or file at a path of the kernel's. A path that leads nowhere
    /// from here counts by its last name.
    fn at(&self, path: &Path) -> Option<PathBuf> {
        if let Ok(status) = rustix::fs::stat(path) {
            return self.named(&status).or_else(|| self.stacked(path, &status));
        }
        let devices = self.devices.iter().map(|(_, path)| path);
        let mut all = devices.chain(self.files.iter().map(|file| &file.path));
        all.find(|known| known.file_name() == path.file_name())
            .cloned()
    }
}

/// Processes that /proc does not list, in words.
fn hidden_processes() -> BTreeSet<String> {
    let mut hidden = BTreeSet::new();
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    if namespace.ok().as_deref() != Some(Path::new(FIRST_PID_NAMESPACE)) {
        let text = "what processes outside of this PID namespace (a container) have open";
        hidden.insert(text.to_owned());
    }
    let hides = |option: &str| {
        let level = option.strip_prefix("hidepid=");
        level.is_some_and(|level| !["0", "off"].contains(&level))
    };
    let proc = Mounts::read().ok().and_then(|mounts| {
        let mount = mounts.of_path(Path::new("/proc")).ok().flatten()?;
        Some(mount.all_options())
    });
    if !is_root() && proc.is_some_and(|options| options.split(',').any(hides)) {
        hidden.insert("what processes of other users have open (hidepid)".to_owned());
    }
    hidden
}

/// One process that is looked at.
struct Visit<'a> {
    watched: &'a Watched,
    /// Its directory in /proc.
    directory: PathBuf,
    /// `process 7 (fio)`.
    title: String,
    untold: &'a mut BTreeSet<String>,
}

impl Visit<'_> {
    /// Adds a gap in what the system tells of this process; the process's title takes
    /// the place of `{}`.
    fn cannot_tell(&mut self, text: &str) {
        self.untold.insert(text.replace("{}", &self.title));
    }

    /// Returns the watched device or file that the process can write to.
    fn part(&mut self) -> io::Result<Option<PathBuf>> {
        let mut has_ring = false;
        for thread in std::fs::read_dir(self.directory.join("task"))? {
            // A thread may have a table of descriptors of its own.
            let thread = thread?.path();
            let found = match self.part_of_table(&thread, &mut has_ring) {
                Err(error) if is_gone(&error) => continue,
                found => found?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        self.part_mapped(has_ring)
    }

    fn part_of_table(&mut self, thread: &Path, has_ring: &mut bool) -> io::Result<Option<PathBuf>> {
        for entry in std::fs::read_dir(thread.join("fd"))? {
            let descriptor = Descriptor::of(thread, entry?.file_name());
            let Some(status) = stat(&descriptor.link)? else {
                continue;
            };
            let found = match descriptor.kind(&status) {
                Kind::Ring => {
                    *has_ring = true;
                    self.part_registered(&descriptor)?
                }
                Kind::Socket => {
                    if descriptor
                        .info()?
                        .is_some_and(|info| info.has_files_in_flight())
                    {
                        self.cannot_tell("what descriptors wait in a socket of {}");
                    }
                    None
                }
                Kind::Other => self.part_opened(&descriptor, &status)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn part_opened(&self, descriptor: &Descriptor, status: &Stat) -> io::Result<Option<PathBuf>> {
        let named = self.watched.named(status);
        if named.is_none() && self.watched.files.is_empty() {
            return Ok(None);
        }
        match descriptor.info()? {
            Some(info) if info.is_open_for_writing() => {
                Ok(named.or_else(|| self.watched.stacked(&descriptor.link, status)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the watched device or file that is registered with an io_uring: the
    /// kernel tells its name, and not whether it may be written.
    fn part_registered(&mut self, ring: &Descriptor) -> io::Result<Option<PathBuf>> {
        let Some(info) = ring.info()? else {
            return Ok(None);
        };
        let registered = registered_files(&info);
        if !registered.are_all_named {
            self.cannot_tell("what files {} has registered with io_uring");
        }
        let mut paths = registered.paths.iter();
        Ok(paths.find_map(|path| self.watched.at(path)))
    }

    fn part_mapped(&mut self, has_ring: bool) -> io::Result<Option<PathBuf>> {
        let maps = std::fs::read(self.directory.join("maps"))?;
        for line in maps.split(|&byte| byte == b'\n') {
            if !has_ring && line.ends_with(b"anon_inode:[io_uring]") {
                self.cannot_tell(
                    "what files {} has registered with an io_uring that it has closed",
                );
            }
            let Some(range) = written_mapping(line) else {
                continue;
            };
            let link = self.directory.join("map_files").join(range);
            let Some(status) = stat(&link)? else {
                continue;
            };
            let stacked = || self.watched.stacked(&link, &status);
            let part = self.watched.named(&status).or_else(stacked);
            if part.is_some() {
                return Ok(part);
            }
        }
        Ok(None)
    }
}

/// The status of what a link of /proc leads to.
fn stat(link: &Path) -> io::Result<Option<Stat>> {
    match rustix::fs::stat(link) {
        Ok(status) => Ok(Some(status)),
        // Closed meanwhile, or of a file system that has gone.
        Err(Errno::NOENT | Errno::SRCH | Errno::STALE | Errno::IO | Errno::NOTCONN) => Ok(None),
        Err(error) => Err(error.into()),
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
