//! Tracefs instance: an event buffer of this process alone.

use super::BlockEventsError;
use super::stream::open_raw_buffer;
use crate::host::processes::{is_process_running, this_process_identity};
use rustix::io::Errno;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Usual directory of tracefs instances, for messages.
pub(super) const DEFAULT_INSTANCES_PATH: &str = "/sys/kernel/tracing/instances";

/// Size of one read from a tracefs description file; larger than any description.
const READ_BUFFER_BYTES: usize = 64 << 10;

/// Prefix of the names of diskperf's instances. The process id, its start time and a counter
/// follow.
const INSTANCE_NAME_PREFIX: &str = "diskperf-";

/// Private mount of tracefs, attached to no directory and reachable only through its descriptor.
#[derive(Debug)]
pub(super) struct Tracefs {
    tracefs_mount: OwnedFd,
}

impl Tracefs {
    pub(super) fn open_tracefs() -> io::Result<Self> {
        let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&context)?;
        let mount = fsmount(
            &context,
            FsMountFlags::FSMOUNT_CLOEXEC,
            MountAttrFlags::MOUNT_ATTR_NOSUID
                | MountAttrFlags::MOUNT_ATTR_NODEV
                | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )?;
        Ok(Self {
            tracefs_mount: mount,
        })
    }

    fn instances_path(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/self/fd/{}/instances",
            self.tracefs_mount.as_raw_fd()
        ))
    }

    /// Creates an instance that records nothing yet.
    pub(super) fn make_instance(self) -> Result<TracefsInstance, BlockEventsError> {
        let owner = this_process_identity().replace(' ', "-");
        let mut number = 1;
        loop {
            let name = format!("{INSTANCE_NAME_PREFIX}{owner}-{number}");
            let path = self.instances_path().join(&name);
            match std::fs::create_dir(&path) {
                Ok(()) => {
                    return Ok(TracefsInstance {
                        path,
                        name,
                        _tracefs: self,
                        is_removed: false,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(source) => return Err(tracefs_error("instances", source)),
            }
        }
    }

    /// Returns the names of diskperf's instances whose owners no longer run.
    pub(super) fn abandoned_names(&self) -> Vec<OsString> {
        let Ok(entries) = std::fs::read_dir(self.instances_path()) else {
            return Vec::new();
        };
        let names = entries.flatten().map(|entry| entry.file_name());
        let is_abandoned = |name: &OsString| {
            let owner = name.to_str().and_then(parse_owner);
            owner.is_some_and(|owner| !is_process_running(&owner))
        };
        names.filter(is_abandoned).collect()
    }

    /// Removes an abandoned instance by name. An instance that has already gone is no error.
    pub(super) fn remove_instance(&self, name: &OsStr) -> io::Result<()> {
        match remove_directory(&self.instances_path().join(name)) {
            // Another one was faster, or is just removing it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(()),
            result => result,
        }
    }
}

/// Returns the owner in the name of a tracefs instance, in the form of [`this_process_identity`]; `None` for
/// instances of other programs.
fn parse_owner(name: &str) -> Option<String> {
    let mut parts = name.strip_prefix(INSTANCE_NAME_PREFIX)?.split('-');
    let (process, started, number) = (parts.next()?, parts.next()?, parts.next()?);
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ours = parts.next().is_none() && [process, started, number].into_iter().all(numeric);
    ours.then(|| format!("{process} {started}"))
}

/// Number of attempts to remove a busy instance, one of whose files another process may be reading.
const REMOVE_ATTEMPTS_MAX: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

fn remove_directory(path: &Path) -> io::Result<()> {
    let mut attempts = 1;
    loop {
        match std::fs::remove_dir(path) {
            Err(error)
                if error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
                    && attempts < REMOVE_ATTEMPTS_MAX =>
            {
                attempts += 1;
                std::thread::sleep(REMOVE_PAUSE);
            }
            result => return result,
        }
    }
}

fn tracefs_error(file: &str, source: io::Error) -> BlockEventsError {
    BlockEventsError::TracefsAccess {
        file: file.to_owned(),
        source,
    }
}

/// Tracefs instance that is removed when dropped.
#[derive(Debug)]
pub(super) struct TracefsInstance {
    path: PathBuf,
    name: String,
    /// Tracefs mount that the instance's path leads through.
    _tracefs: Tracefs,
    is_removed: bool,
}

impl TracefsInstance {
    pub(super) fn tracefs_error(&self, file: &str, source: io::Error) -> BlockEventsError {
        tracefs_error(
            &format!("{DEFAULT_INSTANCES_PATH}/{}/{file}", self.name),
            source,
        )
    }

    /// Returns the error for a tracefs file with unexpected contents.
    pub(super) fn format_error(&self, file: &str, text: &str) -> BlockEventsError {
        let text = format!("unexpected contents `{text}`");
        self.tracefs_error(file, io::Error::new(io::ErrorKind::InvalidData, text))
    }

    /// Removes the instance and reports errors, unlike a drop.
    pub(super) fn remove_instance(mut self) -> Result<(), BlockEventsError> {
        self.is_removed = true;
        self.try_remove().map_err(|source| {
            tracefs_error(&format!("{DEFAULT_INSTANCES_PATH}/{}", self.name), source)
        })
    }

    fn try_remove(&self) -> io::Result<()> {
        let _ = self.write_file("tracing_on", "0");
        remove_directory(&self.path)
    }

    pub(super) fn write_file(&self, file: &str, text: &str) -> Result<(), BlockEventsError> {
        // Emptying the buffer is opening it so, even without a text.
        std::fs::write(self.path.join(file), text)
            .map_err(|source| self.tracefs_error(file, source))
    }

    pub(super) fn read_file(&self, file: &str) -> Result<Vec<u8>, BlockEventsError> {
        std::fs::read(self.path.join(file)).map_err(|source| self.tracefs_error(file, source))
    }

    /// Reads a text file of the instance in large pieces. The kernel ends the page description with
    /// the first read, however short that is.
    pub(super) fn read_text_file(&self, file: &str) -> Result<String, BlockEventsError> {
        let read = || -> io::Result<String> {
            let mut opened = File::open(self.path.join(file))?;
            let (mut text, mut piece) = (Vec::new(), vec![0; READ_BUFFER_BYTES]);
            loop {
                match opened.read(&mut piece)? {
                    0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
                    bytes => text.extend_from_slice(&piece[..bytes]),
                }
            }
        };
        read().map_err(|source| self.tracefs_error(file, source))
    }

    pub(super) fn open_raw_buffers(&self) -> Result<Vec<OwnedFd>, BlockEventsError> {
        let all = std::fs::read_dir(self.path.join("per_cpu"))
            .map_err(|source| self.tracefs_error("per_cpu", source))?;
        let mut buffers = Vec::new();
        for processor in all {
            let processor = processor.map_err(|source| self.tracefs_error("per_cpu", source))?;
            let path = processor.path().join("trace_pipe_raw");
            let opened = open_raw_buffer(&path);
            let file = format!("per_cpu/{}", processor.file_name().to_string_lossy());
            buffers.push(opened.map_err(|source| self.tracefs_error(&file, source))?);
        }
        Ok(buffers)
    }

    /// Enables an event for records that match the filter.
    pub(super) fn enable_event(&self, event: &str, filter: &str) -> Result<(), BlockEventsError> {
        self.write_file(&format!("events/{event}/filter"), filter)?;
        self.write_file(&format!("events/{event}/enable"), "1")
    }

    /// Returns the number of events that were overwritten or dropped for lack of buffer space.
    pub(super) fn lost_event_count(&self) -> Result<u64, BlockEventsError> {
        let all = std::fs::read_dir(self.path.join("per_cpu"))
            .map_err(|source| self.tracefs_error("per_cpu", source))?;
        let mut lost = 0;
        for processor in all {
            let processor = processor.map_err(|source| self.tracefs_error("per_cpu", source))?;
            let file = format!("per_cpu/{}/stats", processor.file_name().to_string_lossy());
            // The kernel makes the text anew for each call: pieces of it would not fit.
            let text = self.read_text_file(&file)?;
            let counted = parse_lost_events(&text).ok_or_else(|| {
                let text = format!("`{text}` lacks the count of lost events");
                self.tracefs_error(&file, io::Error::new(io::ErrorKind::InvalidData, text))
            })?;
            lost += counted;
        }
        Ok(lost)
    }
}

/// Sums the lost events in a processor's statistics: overrun, commit overrun and dropped events.
fn parse_lost_events(stats: &str) -> Option<u64> {
    let count = |name: &str| -> Option<u64> {
        let line = stats.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(": ")?.trim().parse().ok()
    };
    Some(count("overrun")? + count("commit overrun")? + count("dropped events")?)
}

impl Drop for TracefsInstance {
    fn drop(&mut self) {
        if !self.is_removed {
            // Nobody is left to report to; `diskperf clean` finds what stays.
            let _ = self.try_remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_have_an_owner() {
        assert_eq!(
            parse_owner("diskperf-17-4711-1").as_deref(),
            Some("17 4711")
        );
        for other in [
            "diskperf-17",
            "diskperf-17-4711",
            "diskperf-17-4711-1-2",
            "diskperf-17-4711-",
            "diskperf-a-b-c",
            "perf-17-4711-1",
        ] {
            assert_eq!(parse_owner(other), None, "{other}");
        }
    }

    #[test]
    fn all_that_was_lost_counts() {
        let stats = "entries: 5\noverrun: 7\ncommit overrun: 1\nbytes: 420\noldest event ts:     0.000000\nnow ts: 69938.058225\ndropped events: 3\nread events: 0\n";
        assert_eq!(parse_lost_events(stats), Some(11));
        assert_eq!(parse_lost_events("entries: 5\n"), None);
    }
}
