//! Search for other processes that have a device or file open or mapped for writing, and for
//! processes that may have it but whose files the system does not show.

mod descriptors;

use super::backing::{BackingFile, FileComparison};
use crate::host::device::{DeviceNumber, FileNumber, device_number_from_status};
use crate::host::is_root;
use crate::host::mounts::Mounts;
use descriptors::{DescriptorKind, ProcessDescriptor, registered_files};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of searches before a writer is reported. A process that is being started has a copy of
/// every file that its parent has open, so it is checked again.
const SEARCH_ATTEMPTS_MAX: u32 = 3;
const SEARCH_PAUSE: Duration = Duration::from_millis(30);

/// Link in /proc to the kernel's initial PID namespace.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Devices and files that no other process may have open for writing.
#[derive(Debug, Default)]
pub(super) struct WatchedStorage {
    pub(super) watched_devices: Vec<(DeviceNumber, PathBuf)>,
    /// Watched backing files of loop devices.
    pub(super) watched_files: Vec<BackingFile>,
}

/// Process that can write to a watched device or file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WritingProcess {
    pub(super) process_id: i32,
    pub(super) command_name: String,
    /// Device or file that the process can write to.
    pub(super) opened_part: PathBuf,
}

/// Result of a search for writers among all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WriterSearch {
    /// First process found that can write to a watched device or file.
    pub(super) writing_process: Option<WritingProcess>,
    /// Facts about processes that could not be determined, such as "what process 1 (init) has
    /// open".
    pub(super) undetermined_facts: BTreeSet<String>,
}

impl WatchedStorage {
    /// Searches for another process that has a watched device or file open for writing.
    ///
    /// # Errors
    ///
    /// /proc cannot be read.
    pub(super) fn find_writer(&self) -> io::Result<WriterSearch> {
        for _ in 1..SEARCH_ATTEMPTS_MAX {
            let search = self.search_once()?;
            if search.writing_process.is_none() {
                return Ok(search);
            }
            std::thread::sleep(SEARCH_PAUSE);
        }
        self.search_once()
    }

    fn search_once(&self) -> io::Result<WriterSearch> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut search = WriterSearch {
            writing_process: None,
            undetermined_facts: describe_hidden_processes(),
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
                watched_storage: self,
                process_directory: entry.path(),
                process_title: format!("process {process} ({command})"),
                undetermined_facts: &mut search.undetermined_facts,
            };
            match scan.find_opened_part() {
                Ok(None) => {}
                Ok(Some(part)) => {
                    search.writing_process = Some(WritingProcess {
                        process_id: process,
                        command_name: command,
                        opened_part: part,
                    });
                    break;
                }
                // It has ended.
                Err(error) if has_process_ended(&error) => {}
                Err(_) => scan.add_undetermined("what {} has open"),
            }
        }
        Ok(search)
    }

    fn find_by_number(&self, status: &Stat) -> Option<PathBuf> {
        let device = device_number_from_status(status);
        let file = FileNumber::from_status(status);
        let devices = self.watched_devices.iter();
        let device = devices
            .filter(|(number, _)| Some(*number) == device)
            .map(|(_, path)| path);
        let files = self.watched_files.iter();
        let file = files
            .filter(|shown| shown.file_number == Some(file))
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
            let other = file.file_number.map(|other| other.device.major);
            is_file && (number.device.major == 0 || other.is_none_or(|major| major == 0))
        };
        let opened = BackingFile {
            path: link.to_owned(),
            file_number: Some(number),
            is_writable: true,
        };
        let mut files = self.watched_files.iter().filter(may_be_one);
        files
            .find(|file| file.compare_with(&opened) == FileComparison::SameFile)
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
        let devices = self.watched_devices.iter().map(|(_, path)| path);
        let mut all = devices.chain(self.watched_files.iter().map(|file| &file.path));
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
    let proc = Mounts::read_mounts().ok().and_then(|mounts| {
        let mount = mounts.mount_of_path(Path::new("/proc")).ok().flatten()?;
        Some(mount.combined_options())
    });
    if !is_root() && proc.is_some_and(|options| options.split(',').any(hides)) {
        hidden.insert("what processes of other users have open (hidepid)".to_owned());
    }
    hidden
}

/// Examination of one process for access to watched devices and files.
struct ProcessScan<'a> {
    watched_storage: &'a WatchedStorage,
    process_directory: PathBuf,
    /// Title of the process in messages: `process 7 (fio)`.
    process_title: String,
    undetermined_facts: &'a mut BTreeSet<String>,
}

impl ProcessScan<'_> {
    /// Records a fact about the process that could not be determined. The process's title replaces
    /// `{}` in the text.
    fn add_undetermined(&mut self, text: &str) {
        self.undetermined_facts
            .insert(text.replace("{}", &self.process_title));
    }

    /// Returns the watched device or file that the process can write to.
    fn find_opened_part(&mut self) -> io::Result<Option<PathBuf>> {
        let mut has_ring = false;
        for thread in std::fs::read_dir(self.process_directory.join("task"))? {
            // A thread may have a table of descriptors of its own.
            let thread = thread?.path();
            let found = match self.find_part_in_descriptors(&thread, &mut has_ring) {
                Err(error) if has_process_ended(&error) => continue,
                found => found?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        self.find_mapped_part(has_ring)
    }

    fn find_part_in_descriptors(
        &mut self,
        thread: &Path,
        has_ring: &mut bool,
    ) -> io::Result<Option<PathBuf>> {
        for entry in std::fs::read_dir(thread.join("fd"))? {
            let descriptor = ProcessDescriptor::new(thread, entry?.file_name());
            let Some(status) = stat_link(&descriptor.link_path)? else {
                continue;
            };
            let found = match descriptor.descriptor_kind(&status) {
                DescriptorKind::IoUring => {
                    *has_ring = true;
                    self.find_registered_part(&descriptor)?
                }
                DescriptorKind::Socket => {
                    if descriptor
                        .read_info()?
                        .is_some_and(|info| info.has_files_in_flight())
                    {
                        self.add_undetermined("which descriptors are queued in a socket of {}");
                    }
                    None
                }
                DescriptorKind::OtherFile => self.find_part_of_descriptor(&descriptor, &status)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn find_part_of_descriptor(
        &self,
        descriptor: &ProcessDescriptor,
        status: &Stat,
    ) -> io::Result<Option<PathBuf>> {
        let named = self.watched_storage.find_by_number(status);
        if named.is_none() && self.watched_storage.watched_files.is_empty() {
            return Ok(None);
        }
        match descriptor.read_info()? {
            Some(info) if info.is_open_for_writing() => Ok(named.or_else(|| {
                self.watched_storage
                    .find_on_stacked(&descriptor.link_path, status)
            })),
            _ => Ok(None),
        }
    }

    /// Returns the watched device or file that is registered with an io_uring. The kernel shows its
    /// name, but not whether it is open for writing.
    fn find_registered_part(&mut self, ring: &ProcessDescriptor) -> io::Result<Option<PathBuf>> {
        let Some(info) = ring.read_info()? else {
            return Ok(None);
        };
        let registered = registered_files(&info);
        if !registered.has_all_paths {
            self.add_undetermined("what files {} has registered with io_uring");
        }
        let mut paths = registered.file_paths.iter();
        Ok(paths.find_map(|path| self.watched_storage.find_by_path(path)))
    }

    fn find_mapped_part(&mut self, has_ring: bool) -> io::Result<Option<PathBuf>> {
        let maps = std::fs::read(self.process_directory.join("maps"))?;
        for line in maps.split(|&byte| byte == b'\n') {
            if !has_ring && line.ends_with(b"anon_inode:[io_uring]") {
                self.add_undetermined(
                    "what files {} has registered with an io_uring that it has closed",
                );
            }
            let Some(mapping) = SharedMapping::parse_mapping(line) else {
                continue;
            };
            let link = self
                .process_directory
                .join("map_files")
                .join(mapping.format_range());
            let Some(status) = stat_link(&link)? else {
                continue;
            };
            let stacked = || self.watched_storage.find_on_stacked(&link, &status);
            let part = self
                .watched_storage
                .find_by_number(&status)
                .or_else(stacked);
            if part.is_some() && (mapping.is_writable || self.may_write(&mapping)) {
                return Ok(part);
            }
        }
        Ok(None)
    }

    /// Reports whether a read-only mapping can be made writable by mprotect. It can if its file was
    /// open for writing when it was mapped, even if that was closed since.
    fn may_write(&mut self, mapping: &SharedMapping) -> bool {
        let mappings = std::fs::read(self.process_directory.join("smaps"));
        let flags = mappings
            .ok()
            .and_then(|mappings| mapping.parse_flags(&mappings));
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
fn stat_link(link: &Path) -> io::Result<Option<Stat>> {
    match rustix::fs::stat(link) {
        Ok(status) => Ok(Some(status)),
        // Closed meanwhile, or of a file system that has gone.
        Err(Errno::NOENT | Errno::SRCH | Errno::STALE | Errno::IO | Errno::NOTCONN) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn has_process_ended(error: &io::Error) -> bool {
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
    start_address: u64,
    end_address: u64,
    is_writable: bool,
}

impl SharedMapping {
    /// Parses a line of /proc/PID/maps, or the first line of a mapping in /proc/PID/smaps:
    /// `7f1c00-7f2c00 rw-s 00000000 00:05 8 /dev/loop0`. `None` unless the mapping is shared.
    fn parse_mapping(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line.split(|&byte| byte == b'/').next()?).ok()?;
        let mut fields = line.split_ascii_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?.as_bytes());
        let (start, end) = range.split_once('-')?;
        let address = |digits: &str| u64::from_str_radix(digits, 16).ok();
        let mapping = Self {
            start_address: address(start)?,
            end_address: address(end)?,
            is_writable: rights.get(1) == Some(&b'w'),
        };
        (rights.get(3) == Some(&b's')).then_some(mapping)
    }

    /// Returns the memory mapping's name in /proc/PID/map_files.
    fn format_range(&self) -> String {
        format!("{:x}-{:x}", self.start_address, self.end_address)
    }

    /// Returns the mapping's flags from the text of /proc/PID/smaps; `None` if the text lacks them.
    fn parse_flags(&self, mappings: &[u8]) -> Option<Vec<String>> {
        let mut lines = mappings.split(|&byte| byte == b'\n');
        let is_this = |line: &[u8]| {
            Self::parse_mapping(line).is_some_and(|one| one.start_address == self.start_address)
        };
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
                start_address: 0x40_0000,
                end_address: 0x50_0000,
                is_writable: is_written,
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
            assert_eq!(
                SharedMapping::parse_mapping(line.as_bytes()),
                found,
                "{line}"
            );
        }
        assert_eq!(mapping(true).unwrap().format_range(), "400000-500000");
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
            let is_here = |one: &SharedMapping| one.start_address == place as u64;
            let mapping = lines.find_map(|line| SharedMapping::parse_mapping(line).filter(is_here));
            let found = mapping.map(|mapping| {
                let flags = mapping.parse_flags(&text).expect("flags");
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
