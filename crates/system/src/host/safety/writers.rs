//! Search for other processes that have a device or file open or mapped for writing, and for
//! processes that may have it but whose files the system does not show.

mod descriptors;

use super::backing::{BackingFile, FileComparison};
use crate::host::device::{DeviceNumber, FileNumber, device_number_from_status};
use crate::host::is_root;
use crate::host::mounts::Mounts;
use descriptors::{Descriptor, DescriptorKind, registered_files};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of searches before a writer is reported. A process that is being started has a copy of
/// every file that its parent has open, so it is checked again.
const SEARCHES_MAX: u32 = 3;
const SEARCH_PAUSE: Duration = Duration::from_millis(30);

/// Link in /proc to the kernel's initial PID namespace.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Devices and files that no other process may have open for writing.
#[derive(Debug, Default)]
pub(super) struct WatchedStorage {
    /// Watched devices with their paths for messages.
    pub(super) devices: Vec<(DeviceNumber, PathBuf)>,
    /// Watched backing files of loop devices.
    pub(super) files: Vec<BackingFile>,
}

/// Process that can write to a watched device or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Writer {
    pub(super) process: i32,
    pub(super) command: String,
    /// Device or file that the process can write to.
    pub(super) part: PathBuf,
}

/// Result of a search for writers among all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WriterSearch {
    /// First process found that can write to a watched device or file.
    pub(super) writer: Option<Writer>,
    /// Facts about processes that could not be determined, such as "what process 1 (init) has
    /// open".
    pub(super) undetermined: BTreeSet<String>,
}

impl WatchedStorage {
    /// Searches for another process that has a watched device or file open for writing.
    ///
    /// # Errors
    ///
    /// /proc cannot be read.
    pub(super) fn find_writer(&self) -> io::Result<WriterSearch> {
        for _ in 1..SEARCHES_MAX {
            let search = self.search_once()?;
            if search.writer.is_none() {
                return Ok(search);
            }
            std::thread::sleep(SEARCH_PAUSE);
        }
        self.search_once()
    }

    fn search_once(&self) -> io::Result<WriterSearch> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut search = WriterSearch {
            writer: None,
            undetermined: describe_hidden_processes(),
        };
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let name = entry.file_name();
            let Some(process) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            if process == own {
                continue;
            }
            let command = read_command(&entry.path());
            let mut scan = ProcessScan {
                watched: self,
                directory: entry.path(),
                title: format!("process {process} ({command})"),
                undetermined: &mut search.undetermined,
            };
            match scan.find_part() {
                Ok(None) => {}
                Ok(Some(part)) => {
                    search.writer = Some(Writer {
                        process,
                        command,
                        part,
                    });
                    break;
                }
                // It has ended.
                Err(error) if has_ended(&error) => {}
                Err(_) => scan.add_undetermined("what {} has open"),
            }
        }
        Ok(search)
    }

    fn find_by_number(&self, status: &Stat) -> Option<PathBuf> {
        let device = device_number_from_status(status);
        let file = FileNumber::from_status(status);
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

    /// Returns the watched file that `link` leads to on a stacked file system (overlay), where it
    /// has another file number.
    fn find_on_stacked(&self, link: &Path, status: &Stat) -> Option<PathBuf> {
        let number = FileNumber::from_status(status);
        let is_file = FileType::from_raw_mode(status.st_mode) == FileType::RegularFile;
        // Numbers of two file systems with devices of their own tell files apart.
        let may_be_one = |file: &&BackingFile| {
            let other = file.number.map(|other| other.device.major);
            is_file && (number.device.major == 0 || other.is_none_or(|major| major == 0))
        };
        let opened = BackingFile {
            path: link.to_owned(),
            number: Some(number),
            writable: true,
        };
        let mut files = self.files.iter().filter(may_be_one);
        files
            .find(|file| file.compare(&opened) == FileComparison::Same)
            .map(|file| file.path.clone())
    }

    /// Returns the watched device or file at a path from the kernel. A path that leads nowhere in
    /// this namespace is compared by its last component.
    fn find_by_path(&self, path: &Path) -> Option<PathBuf> {
        if let Ok(status) = rustix::fs::stat(path) {
            return self
                .find_by_number(&status)
                .or_else(|| self.find_on_stacked(path, &status));
        }
        let devices = self.devices.iter().map(|(_, path)| path);
        let mut all = devices.chain(self.files.iter().map(|file| &file.path));
        all.find(|known| known.file_name() == path.file_name())
            .cloned()
    }
}

fn describe_hidden_processes() -> BTreeSet<String> {
    let mut hidden = BTreeSet::new();
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    if namespace.ok().as_deref() != Some(Path::new(INITIAL_PID_NAMESPACE)) {
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

/// Examination of one process for access to watched devices and files.
struct ProcessScan<'a> {
    watched: &'a WatchedStorage,
    directory: PathBuf,
    /// Title of the process in messages: `process 7 (fio)`.
    title: String,
    undetermined: &'a mut BTreeSet<String>,
}

impl ProcessScan<'_> {
    /// Records a fact about the process that could not be determined. The process's title replaces
    /// `{}` in the text.
    fn add_undetermined(&mut self, text: &str) {
        self.undetermined.insert(text.replace("{}", &self.title));
    }

    /// Returns the watched device or file that the process can write to.
    fn find_part(&mut self) -> io::Result<Option<PathBuf>> {
        let mut has_ring = false;
        for thread in std::fs::read_dir(self.directory.join("task"))? {
            // A thread may have a table of descriptors of its own.
            let thread = thread?.path();
            let found = match self.find_in_descriptors(&thread, &mut has_ring) {
                Err(error) if has_ended(&error) => continue,
                found => found?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        self.find_mapped(has_ring)
    }

    fn find_in_descriptors(
        &mut self,
        thread: &Path,
        has_ring: &mut bool,
    ) -> io::Result<Option<PathBuf>> {
        for entry in std::fs::read_dir(thread.join("fd"))? {
            let descriptor = Descriptor::new(thread, entry?.file_name());
            let Some(status) = stat(&descriptor.link)? else {
                continue;
            };
            let found = match descriptor.kind(&status) {
                DescriptorKind::Ring => {
                    *has_ring = true;
                    self.find_registered(&descriptor)?
                }
                DescriptorKind::Socket => {
                    if descriptor
                        .info()?
                        .is_some_and(|info| info.has_files_in_flight())
                    {
                        self.add_undetermined("which descriptors are queued in a socket of {}");
                    }
                    None
                }
                DescriptorKind::Other => self.find_opened(&descriptor, &status)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn find_opened(&self, descriptor: &Descriptor, status: &Stat) -> io::Result<Option<PathBuf>> {
        let named = self.watched.find_by_number(status);
        if named.is_none() && self.watched.files.is_empty() {
            return Ok(None);
        }
        match descriptor.info()? {
            Some(info) if info.is_open_for_writing() => {
                Ok(named.or_else(|| self.watched.find_on_stacked(&descriptor.link, status)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the watched device or file that is registered with an io_uring. The kernel shows its
    /// name, but not whether it is open for writing.
    fn find_registered(&mut self, ring: &Descriptor) -> io::Result<Option<PathBuf>> {
        let Some(info) = ring.info()? else {
            return Ok(None);
        };
        let registered = registered_files(&info);
        if !registered.are_all_named {
            self.add_undetermined("what files {} has registered with io_uring");
        }
        let mut paths = registered.paths.iter();
        Ok(paths.find_map(|path| self.watched.find_by_path(path)))
    }

    fn find_mapped(&mut self, has_ring: bool) -> io::Result<Option<PathBuf>> {
        let maps = std::fs::read(self.directory.join("maps"))?;
        for line in maps.split(|&byte| byte == b'\n') {
            if !has_ring && line.ends_with(b"anon_inode:[io_uring]") {
                self.add_undetermined(
                    "what files {} has registered with an io_uring that it has closed",
                );
            }
            let Some(mapping) = SharedMapping::parse(line) else {
                continue;
            };
            let link = self.directory.join("map_files").join(mapping.range());
            let Some(status) = stat(&link)? else {
                continue;
            };
            let stacked = || self.watched.find_on_stacked(&link, &status);
            let part = self.watched.find_by_number(&status).or_else(stacked);
            if part.is_some() && (mapping.is_written || self.may_write(&mapping)) {
                return Ok(part);
            }
        }
        Ok(None)
    }

    /// Reports whether a read-only mapping can be made writable by mprotect. It can if its file was
    /// open for writing when it was mapped, even if that was closed since.
    fn may_write(&mut self, mapping: &SharedMapping) -> bool {
        let mappings = std::fs::read(self.directory.join("smaps"));
        let flags = mappings
            .ok()
            .and_then(|mappings| mapping.flags_in(&mappings));
        match flags {
            Some(flags) => flags.iter().any(|flag| flag == MAY_WRITE_FLAG),
            // Mapped otherwise meanwhile, or a kernel without CONFIG_PROC_PAGE_MONITOR.
            None => {
                self.add_undetermined("whether {} can make a read-only mapping writable");
                false
            }
        }
    }
}

/// Returns the status of the target of a link in /proc; `None` if the target is gone.
fn stat(link: &Path) -> io::Result<Option<Stat>> {
    match rustix::fs::stat(link) {
        Ok(status) => Ok(Some(status)),
        // Closed meanwhile, or of a file system that has gone.
        Err(Errno::NOENT | Errno::SRCH | Errno::STALE | Errno::IO | Errno::NOTCONN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn has_ended(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::NOENT | Errno::SRCH)
    )
}

fn read_command(process: &Path) -> String {
    let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
    name.trim().to_owned()
}

/// Flag in /proc/PID/smaps of a mapping that may become writable.
const MAY_WRITE_FLAG: &str = "mw";

/// Shared memory mapping of a file in another process.
#[derive(Debug, PartialEq, Eq)]
struct SharedMapping {
    start: u64,
    end: u64,
    is_written: bool,
}

impl SharedMapping {
    /// Parses a line of /proc/PID/maps, or the first line of a mapping in /proc/PID/smaps:
    /// `7f1c00-7f2c00 rw-s 00000000 00:05 8 /dev/loop0`. `None` unless the mapping is shared.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line.split(|&byte| byte == b'/').next()?).ok()?;
        let mut fields = line.split_ascii_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?.as_bytes());
        let (start, end) = range.split_once('-')?;
        let address = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let mapping = Self {
            start: address(start)?,
            end: address(end)?,
            is_written: rights.get(1) == Some(&b'w'),
        };
        (rights.get(3) == Some(&b's')).then_some(mapping)
    }

    /// Returns the memory mapping's name in /proc/PID/map_files.
    fn range(&self) -> String {
        format!("{:x}-{:x}", self.start, self.end)
    }

    /// Returns the mapping's flags from the text of /proc/PID/smaps; `None` if the text lacks them.
    fn flags_in(&self, mappings: &[u8]) -> Option<Vec<String>> {
        let mut lines = mappings.split(|&byte| byte == b'\n');
        let is_this = |line: &[u8]| Self::parse(line).is_some_and(|one| one.start == self.start);
        lines.find(|line| is_this(line))?;
        // Those of a mapping are in its last line, before the next begins.
        let flags = lines.find_map(|line| match line.strip_prefix(b"VmFlags:") {
            Some(flags) => Some(Some(String::from_utf8_lossy(flags).into_owned())),
            None => is_first_line(line).then_some(None),
        });
        let flags = flags.flatten()?;
        Some(flags.split_ascii_whitespace().map(str::to_owned).collect())
    }
}

/// Reports whether a line of /proc/PID/smaps begins a mapping. Other lines begin with `Name:`.
fn is_first_line(line: &[u8]) -> bool {
    let word = line.split(|&byte| byte == b' ').next().unwrap_or_default();
    !word.is_empty() && !word.ends_with(b":")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        let mapping = |is_written| {
            Some(SharedMapping {
                start: 0x40_0000,
                end: 0x50_0000,
                is_written,
            })
        };
        for (line, found) in [
            (
                "00400000-00500000 rw-s 00000000 00:05 8 /dev/loop0",
                mapping(true),
            ),
            (
                "00400000-00500000 r--s 00000000 00:05 8 /dev/loop0",
                mapping(false),
            ),
            ("00400000-00500000 rw-p 00000000 00:05 8 /dev/loop0", None),
            ("", None),
        ] {
            assert_eq!(SharedMapping::parse(line.as_bytes()), found, "{line}");
        }
        assert_eq!(mapping(true).unwrap().range(), "400000-500000");
    }

    /// Own mappings as the kernel describes them: of files open for reading and for writing,
    /// shared and private, for reading and for writing.
    #[allow(unsafe_code)]
    #[test]
    fn a_mapping_that_can_become_a_written_one_is_found() {
        use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![0; 4096]).unwrap();
        for (is_open_for_writing, protection, flags, may_write) in [
            (true, ProtFlags::READ, MapFlags::SHARED, Some(true)),
            (false, ProtFlags::READ, MapFlags::SHARED, Some(false)),
            (
                true,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                Some(true),
            ),
            (true, ProtFlags::READ, MapFlags::PRIVATE, None),
        ] {
            let mut options = std::fs::OpenOptions::new();
            let file = options.read(true).write(is_open_for_writing).open(&path);
            let file = file.unwrap();
            // SAFETY: the kernel chooses a place where nothing else is.
            let place = unsafe { mmap(std::ptr::null_mut(), 4096, protection, flags, &file, 0) };
            let place = place.unwrap();
            drop(file);
            let text = std::fs::read("/proc/self/smaps").unwrap();
            let mut lines = text.split(|&byte| byte == b'\n');
            let is_here = |one: &SharedMapping| one.start == place as u64;
            let mapping = lines.find_map(|line| SharedMapping::parse(line).filter(is_here));
            let found = mapping.map(|mapping| {
                let flags = mapping.flags_in(&text).expect("flags");
                flags.iter().any(|flag| flag == MAY_WRITE_FLAG)
            });
            assert_eq!(
                found, may_write,
                "{is_open_for_writing} {protection:?} {flags:?}"
            );
            // SAFETY: nothing refers to what was mapped above.
            unsafe { munmap(place, 4096) }.unwrap();
        }
    }
}
