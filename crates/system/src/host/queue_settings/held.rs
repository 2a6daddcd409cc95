//! A queue whose settings this process alone changes, and what killed ones have
//! left changed.
//!
//! There is one file for each disk whose settings are changed,
//! `/run/diskperf/queue-MAJOR:MINOR`. Its lock (flock) is held while they are,
//! and it holds what they were before. A second search on that disk is refused.
//! The kernel frees the lock when its holder dies; a file whose lock is free
//! says what to put back. The next search on the disk does that first, and
//! `diskperf clean` does it, whatever store the killed search wrote to.
//!
//! The file is root's, in a directory of root's: nobody else can have written
//! the values, nor hold the lock. (A lock of the device's node would be seen in
//! other containers too, but udev takes it for a partitioning tool's, and leaves
//! the disk alone meanwhile.) It is not under a store, because every search must
//! find it; and it is under /run because that, as the settings themselves, does
//! not outlive a reboot. Where /run does, the boot's number tells.
//!
//! A file is written before the first setting is changed, and removed when the
//! last one is back. So whatever is killed, and whenever: the settings are as
//! they were, or the file says what they were.

use super::{Queue, QueueError, QueueKey};
use crate::host::device::{BlockDevice, DeviceNumber, FileNumber};
use crate::host::workspace::path_through;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "/run/diskperf";
const PREFIX: &str = "queue-";

/// The first line of a note, and the last, without which it was never finished,
/// and nothing changed yet.
const BEGIN: &str = "diskperf-queue 1";
const END: &str = "end";

/// No note is longer.
const NOTE_BYTES: u64 = 4096;

/// How often a note is opened again that was removed meanwhile.
const ATTEMPTS: usize = 100;

/// A setting and what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// The disk's name.
    pub disk: String,
    /// The setting.
    pub key: QueueKey,
    /// What it was before anything was changed.
    pub value: String,
}

impl fmt::Display for PutBack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {} to {}",
            self.key.name(),
            self.disk,
            self.value
        )
    }
}

/// A queue whose settings this process may change: put back when this goes.
#[derive(Debug)]
pub struct HeldQueue {
    queue: Queue,
    values: Vec<(QueueKey, String)>,
    note: Note,
    is_put_back: bool,
}

impl HeldQueue {
    /// Keeps others from the settings of a device's disk. What a killed process
    /// has left changed is put back first, and returned.
    ///
    /// # Errors
    /// Somebody else varies them; not root; what is left cannot be put back.
    pub fn take(
        device: &BlockDevice,
        keys: &[QueueKey],
    ) -> Result<(Self, Vec<PutBack>), QueueError> {
        let queue = Queue::of(device)?;
        let directory = make_directory()?;
        let note = Note::lock(directory, queue.disk().number(), Missing::Make)?
            .ok_or_else(|| QueueError::io("lock it", Path::new(DIRECTORY), Errno::NOENT))?;
        let left = note.read()?.leftovers(&queue)?;
        for (key, value) in &left {
            queue.set(*key, value)?;
        }
        let values = keys
            .iter()
            .map(|key| Ok((*key, queue.value(*key)?)))
            .collect::<Result<Vec<_>, QueueError>>()?;
        note.write(&Noted {
            boot: boot()?,
            stamp: queue.stamp.clone(),
            holder: std::process::id().to_string(),
            values: values.clone(),
        })?;
        let left = named(queue.disk().name(), left);
        let held = Self {
            queue,
            values,
            note,
            is_put_back: false,
        };
        Ok((held, left))
    }

    /// The queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// What a setting was.
    pub fn was(&self, key: QueueKey) -> Option<&str> {
        let mut values = self.values.iter();
        values
            .find(|(noted, _)| *noted == key)
            .map(|(_, value)| value.as_str())
    }

    /// Sets all to what they were, and goes on holding them.
    ///
    /// # Errors
    /// The first that the kernel refuses, after all were tried.
    pub fn as_they_were(&self) -> Result<(), QueueError> {
        let all = self.values.iter();
        all.map(|(key, value)| self.queue.set(*key, value))
            .fold(Ok(()), Result::and)
    }

    /// Puts all back, for good.
    ///
    /// # Errors
    /// As [`Self::as_they_were`]; the note stays then. A disk that is gone has
    /// nothing to put back.
    pub fn put_back(mut self) -> Result<(), QueueError> {
        self.is_put_back = true;
        self.restore()
    }

    fn restore(&self) -> Result<(), QueueError> {
        match self.as_they_were() {
            Ok(()) | Err(QueueError::Gone { .. }) => self.note.remove(),
            Err(error) => Err(error),
        }
    }
}

impl Drop for HeldQueue {
    fn drop(&mut self) {
        if !self.is_put_back {
            // Whoever can hear of an error calls `put_back`.
            let _ = self.restore();
        }
    }
}

/// A disk's settings that a killed process has left changed. While this lives,
/// nobody else varies them.
#[derive(Debug)]
pub struct LeftQueue {
    note: Note,
    /// `None` where the disk, or the boot, is another one than that of the note.
    queue: Option<Queue>,
    settings: Vec<PutBack>,
}

impl LeftQueue {
    /// The note.
    pub fn path(&self) -> &Path {
        &self.note.path
    }

    /// What is put back: nothing where no process got so far as to change it,
    /// and of a disk that is gone.
    pub fn settings(&self) -> &[PutBack] {
        &self.settings
    }

    /// Those that are not now what is put back, each with what it is now.
    pub fn changed(&self) -> Vec<(&PutBack, String)> {
        let now = |left: &PutBack| self.queue.as_ref()?.value(left.key).ok();
        let settings = self.settings.iter();
        settings
            .filter_map(|left| Some((left, now(left)?)))
            .filter(|(left, now)| left.value != *now)
            .collect()
    }

    /// Puts it back, and forgets it.
    ///
    /// # Errors
    /// The first that the kernel refuses, after all were tried.
    pub fn put_back(self) -> Result<(), QueueError> {
        if let Some(queue) = &self.queue {
            let all = self.settings.iter();
            match all
                .map(|left| queue.set(left.key, &left.value))
                .fold(Ok(()), Result::and)
            {
                Ok(()) | Err(QueueError::Gone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.note.remove()
    }
}

/// What killed processes have left changed, disk by disk; an error is of one
/// disk's note.
///
/// # Errors
/// The directory of the notes cannot be listed, or is not root's.
pub fn abandoned() -> Result<Vec<Result<LeftQueue, QueueError>>, QueueError> {
    let mut found = Vec::new();
    for number in noted()? {
        let Some(directory) = open_directory()? else {
            break;
        };
        match Note::lock(directory, number, Missing::Leave) {
            Ok(Some(note)) => found.push(left_in(note, number)),
            Ok(None) | Err(QueueError::Held { .. }) => {}
            Err(error) => found.push(Err(error)),
        }
    }
    Ok(found)
}

/// Whether any settings are noted, by a process that runs or by one that was
/// killed: all that others than root can tell.
pub fn any_noted() -> bool {
    noted().is_ok_and(|noted| !noted.is_empty())
}

fn left_in(note: Note, number: DeviceNumber) -> Result<LeftQueue, QueueError> {
    let noted = note.read()?;
    let queue = Queue::numbered(number)?;
    let values = match &queue {
        Some(queue) => noted.leftovers(queue)?,
        None => Vec::new(),
    };
    let disk = queue.as_ref().map(|queue| queue.disk().name().to_owned());
    Ok(LeftQueue {
        note,
        settings: named(&disk.unwrap_or_default(), values),
        queue,
    })
}

fn named(disk: &str, values: Vec<(QueueKey, String)>) -> Vec<PutBack> {
    let named = |(key, value)| PutBack {
        disk: disk.to_owned(),
        key,
        value,
    };
    values.into_iter().map(named).collect()
}

/// The disks of which there are notes.
fn noted() -> Result<Vec<DeviceNumber>, QueueError> {
    let Some(directory) = open_directory()? else {
        return Ok(Vec::new());
    };
    let failed = |error| QueueError::io("list it", Path::new(DIRECTORY), error);
    let mut numbers: Vec<DeviceNumber> = Vec::new();
    for entry in std::fs::read_dir(path_through(directory.as_fd())).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        numbers.extend(number.and_then(|number| number.parse::<DeviceNumber>().ok()));
    }
    numbers.sort();
    Ok(numbers)
}

fn make_directory() -> Result<OwnedFd, QueueError> {
    let path = Path::new(DIRECTORY);
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(QueueError::io("make it", path, error)),
    }
    open_directory()?.ok_or_else(|| QueueError::io("open it", path, Errno::NOENT))
}

/// The directory of the notes, if there is one.
fn open_directory() -> Result<Option<OwnedFd>, QueueError> {
    let path = Path::new(DIRECTORY);
    let failed = |error| QueueError::io("open it", path, error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(QueueError::NotRoots {
                path: path.to_owned(),
                what: "directory",
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let status = rustix::fs::fstat(&directory).map_err(failed)?;
    if status.st_uid != 0 || status.st_mode & 0o022 != 0 {
        return Err(QueueError::NotRoots {
            path: path.to_owned(),
            what: "directory",
        });
    }
    Ok(Some(directory))
}

/// The kernel's number of this boot.
fn boot() -> Result<String, QueueError> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    std::fs::read_to_string(PATH)
        .map(|boot| boot.trim().to_owned())
        .map_err(|error| QueueError::io("read it", Path::new(PATH), error))
}

/// What to do where there is no note.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Make,
    Leave,
}

/// A disk's note, locked.
#[derive(Debug)]
struct Note {
    directory: OwnedFd,
    name: String,
    path: PathBuf,
    file: File,
}

impl Note {
    /// Locks the note of a disk; `None` where there is none, and none is to be
    /// made.
    fn lock(
        directory: OwnedFd,
        number: DeviceNumber,
        missing: Missing,
    ) -> Result<Option<Self>, QueueError> {
        let name = format!("{PREFIX}{number}");
        let path = Path::new(DIRECTORY).join(&name);
        let failed = |error: Errno| QueueError::io("lock it", &path, error);
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if missing == Missing::Make {
            flags |= OFlags::CREATE;
        }
        for _ in 0..ATTEMPTS {
            let mode = Mode::RUSR | Mode::WUSR;
            let file = match rustix::fs::openat(&directory, &name, flags, mode) {
                Ok(file) => File::from(file),
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(failed(error)),
            };
            let status = rustix::fs::fstat(&file).map_err(failed)?;
            let is_file = FileType::from_raw_mode(status.st_mode).is_file();
            if !is_file || status.st_uid != 0 || status.st_mode & 0o077 != 0 {
                return Err(QueueError::NotRoots { path, what: "file" });
            }
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(held(number, &file)),
                Err(error) => return Err(failed(error)),
            }
            // Its holder may have removed it between opening and locking.
            let there = rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW);
            let there = there.map(|there| FileNumber::in_status(&there));
            if there == Ok(FileNumber::in_status(&status)) {
                return Ok(Some(Self {
                    directory,
                    name,
                    path,
                    file,
                }));
            }
        }
        Err(failed(Errno::AGAIN))
    }

    fn read(&self) -> Result<Noted, QueueError> {
        text_of(&self.file)
            .map(|text| Noted::parse(&text).unwrap_or_default())
            .map_err(|error| QueueError::io("read it", &self.path, error))
    }

    fn write(&self, noted: &Noted) -> Result<(), QueueError> {
        let mut file = &self.file;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(noted.to_string().as_bytes()))
            .map_err(|error| {
                QueueError::io(
                    "note what the settings are before a change",
                    &self.path,
                    error,
                )
            })
    }

    fn remove(&self) -> Result<(), QueueError> {
        match rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(QueueError::io("remove it", &self.path, error)),
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        // A tool that is just being started has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// The error where somebody else has the lock.
fn held(number: DeviceNumber, file: &File) -> QueueError {
    let disk = BlockDevice::from_number(number);
    let noted = text_of(file).ok().and_then(|text| Noted::parse(&text));
    QueueError::Held {
        disk: disk.map_or_else(
            |_| format!("block device {number}"),
            |disk| disk.name().to_owned(),
        ),
        holder: noted.map_or_else(
            || "another diskperf".to_owned(),
            |noted| format!("process {}", noted.holder),
        ),
    }
}

fn text_of(mut file: &File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.take(NOTE_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// What a note says; of one that was never finished, nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Noted {
    boot: String,
    stamp: String,
    holder: String,
    values: Vec<(QueueKey, String)>,
}

impl Noted {
    /// What is to be put back, if the note is of this boot and of this disk.
    fn leftovers(self, queue: &Queue) -> Result<Vec<(QueueKey, String)>, QueueError> {
        let is_of_now = boot()? == self.boot && self.stamp == queue.stamp;
        Ok(match is_of_now {
            true => self.values,
            false => Vec::new(),
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (text, rest) = text.split_once(&format!("\n{END}\n"))?;
        let mut lines = text.lines();
        if !rest.is_empty() || lines.next()? != BEGIN {
            return None;
        }
        let mut field = |name: &str| Some(lines.next()?.strip_prefix(name)?.trim().to_owned());
        let (boot, stamp, holder) = (field("boot ")?, field("disk ")?, field("process ")?);
        let value = |line: &str| {
            let (key, value) = line.split_once(' ')?;
            Some((QueueKey::named(key)?, value.to_owned()))
        };
        Some(Self {
            boot,
            stamp,
            holder,
            values: lines.map(value).collect::<Option<_>>()?,
        })
    }
}

impl fmt::Display for Noted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            boot,
            stamp,
            holder,
            values,
        } = self;
        writeln!(
            formatter,
            "{BEGIN}\nboot {boot}\ndisk {stamp}\nprocess {holder}"
        )?;
        for (key, value) in values {
            writeln!(formatter, "{} {value}", key.name())?;
        }
        writeln!(formatter, "{END}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_only_whole() {
        let noted = Noted {
            boot: "14bd2039-9586".to_owned(),
            stamp: "6923-13".to_owned(),
            holder: "4711".to_owned(),
            values: vec![
                (QueueKey::ReadAheadKb, "128".to_owned()),
                (QueueKey::Scheduler, "none".to_owned()),
            ],
        };
        let text = noted.to_string();
        assert_eq!(Noted::parse(&text), Some(noted));
        for length in 0..text.len() {
            assert_eq!(Noted::parse(&text[..length]), None, "{length}");
        }
        for broken in [
            text.clone() + "end\n",
            text.replace("scheduler", "../scheduler"),
            text.replace("diskperf-queue 1", "diskperf-queue 2"),
        ] {
            assert_eq!(Noted::parse(&broken), None, "{broken}");
        }
    }
}
