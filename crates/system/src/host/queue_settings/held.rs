//! Exclusive changes to a queue's settings, and restoration of settings that killed processes left
//! changed.
//!
//! Each disk with changed settings has one file, `/run/diskperf/queue-MAJOR:MINOR`. It contains the
//! original settings, and its lock (flock) is held while they are changed. A second process
//! that wants to vary them is refused. The kernel frees the lock when its holder dies, so a file with a free lock
//! lists settings to restore. The next process that varies the disk's settings restores them first, and
//! `diskperf clean` does too, whatever store the killed process wrote to.
//!
//! The file and its directory belong to root, so that nobody else can write the values or hold the
//! lock. (A lock of the device's node would be visible in other containers too. But udev takes it
//! for a partitioning tool's, and ignores the disk meanwhile.) The file is not under a store,
//! because every process must find it. It is under /run because that, like the settings, does not
//! outlive a reboot; where /run does, the boot id shows it.
//!
//! A file is written before the first setting is changed, and removed after the last one is
//! restored. At any time, either the settings are the original ones or the file lists the original
//! values.

use super::{QueueError, QueueSettingKey, RequestQueue};
use crate::host::device::{BlockDevice, DeviceNumber, FileNumber};
use crate::host::workspace::path_through;
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

const NOTES_DIRECTORY: &str = "/run/diskperf";
const NOTE_NAME_PREFIX: &str = "queue-";

/// First line of a note of original settings. A note without its last line was never finished, and
/// no setting was changed yet.
const NOTE_FIRST_LINE: &str = "diskperf-queue 1";
const NOTE_LAST_LINE: &str = "end";

/// Maximum size of a note, the file with a disk's original settings, in bytes.
const NOTE_BYTES_MAX: u64 = 4096;

/// Maximum attempts to open a note of original settings that its holder removes meanwhile.
const LOCK_ATTEMPTS_MAX: usize = 100;

/// Setting of a disk with its original value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredSetting {
    /// Kernel's name of the disk.
    pub disk_name: String,
    /// Queue setting that was changed.
    pub setting_key: QueueSettingKey,
    /// Original value of the queue setting.
    pub original_value: String,
}

impl fmt::Display for RestoredSetting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {} to {}",
            self.setting_key.key_name(),
            self.disk_name,
            self.original_value
        )
    }
}

/// Request queue whose settings this process alone may change. They are restored on drop.
#[derive(Debug)]
pub struct LockedQueue {
    request_queue: RequestQueue,
    original_values: Vec<(QueueSettingKey, String)>,
    settings_note: SettingsNote,
    is_restored: bool,
}

impl LockedQueue {
    /// Locks the settings of a device's disk. It first restores settings that a killed process left
    /// changed, and returns those.
    ///
    /// # Errors
    ///
    /// Another process varies the settings, the user is not root, or the restoration fails.
    pub fn lock_queue(
        device: &BlockDevice,
        keys: &[QueueSettingKey],
    ) -> Result<(Self, Vec<RestoredSetting>), QueueError> {
        let queue = RequestQueue::queue_of_device(device)?;
        let directory = create_notes_directory()?;
        let note = SettingsNote::lock_note(
            directory,
            queue.queue_disk().device_number(),
            MissingNote::CreateNote,
        )?
        .ok_or_else(|| QueueError::from_io("lock it", Path::new(NOTES_DIRECTORY), Errno::NOENT))?;
        let left = note.read_note()?.values_to_restore(&queue)?;
        for (key, value) in &left {
            queue.set_value(*key, value)?;
        }
        let values = keys
            .iter()
            .map(|key| Ok((*key, queue.setting_value(*key)?)))
            .collect::<Result<Vec<_>, QueueError>>()?;
        note.write_note(&NoteContents {
            boot_id: read_boot_id()?,
            queue_identity: queue.queue_identity.clone(),
            holder_pid: std::process::id().to_string(),
            original_values: values.clone(),
        })?;
        let left = to_restored_settings(queue.queue_disk().name(), left);
        let held = Self {
            request_queue: queue,
            original_values: values,
            settings_note: note,
            is_restored: false,
        };
        Ok((held, left))
    }

    /// Returns the locked request queue.
    pub fn request_queue(&self) -> &RequestQueue {
        &self.request_queue
    }

    /// Returns the original value of a setting; `None` if it is not among the locked ones.
    pub fn original_value(&self, key: QueueSettingKey) -> Option<&str> {
        let mut values = self.original_values.iter();
        values
            .find(|(noted, _)| *noted == key)
            .map(|(_, value)| value.as_str())
    }

    /// Restores all settings and keeps the lock.
    ///
    /// # Errors
    ///
    /// The first setting that the kernel refuses, after all were tried.
    pub fn restore_and_keep_lock(&self) -> Result<(), QueueError> {
        let all = self.original_values.iter();
        all.map(|(key, value)| self.request_queue.set_value(*key, value))
            .fold(Ok(()), Result::and)
    }

    /// Restores all settings and releases the lock.
    ///
    /// # Errors
    ///
    /// As [`Self::restore_and_keep_lock`]; the note stays then. A disk that is gone has nothing to restore.
    pub fn restore_and_unlock(mut self) -> Result<(), QueueError> {
        self.is_restored = true;
        self.restore_values()
    }

    fn restore_values(&self) -> Result<(), QueueError> {
        match self.restore_and_keep_lock() {
            Ok(()) | Err(QueueError::QueueGone { .. }) => self.settings_note.remove_note(),
            Err(error) => Err(error),
        }
    }
}

impl Drop for LockedQueue {
    fn drop(&mut self) {
        if !self.is_restored {
            // Whoever can hear of an error calls `put_back`.
            let _ = self.restore_values();
        }
    }
}

/// Disk settings that a killed process left changed. The lock keeps other processes from changing
/// them.
#[derive(Debug)]
pub struct AbandonedQueue {
    settings_note: SettingsNote,
    /// Queue of the disk; `None` if the disk is gone.
    request_queue: Option<RequestQueue>,
    noted_settings: Vec<RestoredSetting>,
}

impl AbandonedQueue {
    /// Returns the path of the note with the original settings.
    pub fn path(&self) -> &Path {
        &self.settings_note.path
    }

    /// Returns the queue settings to restore. Empty if the killed process changed nothing, or if
    /// the disk is gone.
    pub fn noted_settings(&self) -> &[RestoredSetting] {
        &self.noted_settings
    }

    /// Returns the queue settings that now differ from their original values, each with its current
    /// value.
    pub fn settings_to_restore(&self) -> Vec<(&RestoredSetting, String)> {
        let now = |left: &RestoredSetting| {
            self.request_queue
                .as_ref()?
                .setting_value(left.setting_key)
                .ok()
        };
        let settings = self.noted_settings.iter();
        settings
            .filter_map(|left| Some((left, now(left)?)))
            .filter(|(left, now)| left.original_value != *now)
            .collect()
    }

    /// Restores the settings and removes the note.
    ///
    /// # Errors
    ///
    /// The first setting that the kernel refuses, after all were tried.
    pub fn restore_and_remove_note(self) -> Result<(), QueueError> {
        if let Some(queue) = &self.request_queue {
            let all = self.noted_settings.iter();
            match all
                .map(|left| queue.set_value(left.setting_key, &left.original_value))
                .fold(Ok(()), Result::and)
            {
                Ok(()) | Err(QueueError::QueueGone { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.settings_note.remove_note()
    }
}

/// Returns the settings that killed processes left changed, by disk. An inner error concerns one
/// disk's note.
///
/// # Errors
///
/// The directory of the notes cannot be listed, or does not belong to root.
pub fn find_abandoned_queues() -> Result<Vec<Result<AbandonedQueue, QueueError>>, QueueError> {
    let mut found = Vec::new();
    for number in list_noted_disks()? {
        let Some(directory) = open_notes_directory()? else {
            break;
        };
        match SettingsNote::lock_note(directory, number, MissingNote::ReturnNone) {
            Ok(Some(note)) => found.push(read_abandoned_queue(note, number)),
            Ok(None) | Err(QueueError::HeldByOtherProcess { .. }) => {}
            Err(error) => found.push(Err(error)),
        }
    }
    Ok(found)
}

/// Reports whether any queue settings are noted as changed, by a running or a killed process. Users
/// other than root cannot learn more.
pub fn has_any_note() -> bool {
    list_noted_disks().is_ok_and(|noted| !noted.is_empty())
}

fn read_abandoned_queue(
    note: SettingsNote,
    number: DeviceNumber,
) -> Result<AbandonedQueue, QueueError> {
    let noted = note.read_note()?;
    let queue = RequestQueue::from_number(number)?;
    let values = match &queue {
        Some(queue) => noted.values_to_restore(queue)?,
        None => Vec::new(),
    };
    let disk = queue
        .as_ref()
        .map(|queue| queue.queue_disk().name().to_owned());
    Ok(AbandonedQueue {
        settings_note: note,
        noted_settings: to_restored_settings(&disk.unwrap_or_default(), values),
        request_queue: queue,
    })
}

fn to_restored_settings(
    disk: &str,
    values: Vec<(QueueSettingKey, String)>,
) -> Vec<RestoredSetting> {
    let named = |(key, value)| RestoredSetting {
        disk_name: disk.to_owned(),
        setting_key: key,
        original_value: value,
    };
    values.into_iter().map(named).collect()
}

/// Returns the disks for which notes of original settings exist.
fn list_noted_disks() -> Result<Vec<DeviceNumber>, QueueError> {
    let Some(directory) = open_notes_directory()? else {
        return Ok(Vec::new());
    };
    let failed = |error| QueueError::from_io("list it", Path::new(NOTES_DIRECTORY), error);
    let mut numbers: Vec<DeviceNumber> = Vec::new();
    for entry in std::fs::read_dir(path_through(directory.as_fd())).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(NOTE_NAME_PREFIX));
        numbers.extend(number.and_then(|number| number.parse::<DeviceNumber>().ok()));
    }
    numbers.sort();
    Ok(numbers)
}

fn create_notes_directory() -> Result<OwnedFd, QueueError> {
    let path = Path::new(NOTES_DIRECTORY);
    match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(QueueError::from_io("make it", path, error)),
    }
    open_notes_directory()?.ok_or_else(|| QueueError::from_io("open it", path, Errno::NOENT))
}

/// Opens the directory of the settings notes; `None` if it does not exist.
fn open_notes_directory() -> Result<Option<OwnedFd>, QueueError> {
    let path = Path::new(NOTES_DIRECTORY);
    let failed = |error| QueueError::from_io("open it", path, error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => {
            return Err(QueueError::NotOwnedByRoot {
                path: path.to_owned(),
                what: "directory",
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let status = rustix::fs::fstat(&directory).map_err(failed)?;
    if status.st_uid != 0 || status.st_mode & 0o022 != 0 {
        return Err(QueueError::NotOwnedByRoot {
            path: path.to_owned(),
            what: "directory",
        });
    }
    Ok(Some(directory))
}

fn read_boot_id() -> Result<String, QueueError> {
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    std::fs::read_to_string(PATH)
        .map(|boot| boot.trim().to_owned())
        .map_err(|error| QueueError::from_io("read it", Path::new(PATH), error))
}

/// Action if the note of a disk's original settings does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MissingNote {
    CreateNote,
    ReturnNone,
}

/// Locked note: the file with a disk's original queue settings.
#[derive(Debug)]
struct SettingsNote {
    directory: OwnedFd,
    name: String,
    path: PathBuf,
    file: File,
}

impl SettingsNote {
    /// Locks the note of a disk's original settings; `None` if there is none and none is to be
    /// created.
    fn lock_note(
        directory: OwnedFd,
        number: DeviceNumber,
        missing: MissingNote,
    ) -> Result<Option<Self>, QueueError> {
        let name = format!("{NOTE_NAME_PREFIX}{number}");
        let path = Path::new(NOTES_DIRECTORY).join(&name);
        let failed = |error: Errno| QueueError::from_io("lock it", &path, error);
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if missing == MissingNote::CreateNote {
            flags |= OFlags::CREATE;
        }
        for _ in 0..LOCK_ATTEMPTS_MAX {
            let mode = Mode::RUSR | Mode::WUSR;
            let file = match rustix::fs::openat(&directory, &name, flags, mode) {
                Ok(file) => File::from(file),
                Err(Errno::NOENT) => return Ok(None),
                Err(error) => return Err(failed(error)),
            };
            let status = rustix::fs::fstat(&file).map_err(failed)?;
            let is_file = FileType::from_raw_mode(status.st_mode).is_file();
            if !is_file || status.st_uid != 0 || status.st_mode & 0o077 != 0 {
                return Err(QueueError::NotOwnedByRoot { path, what: "file" });
            }
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Err(held_error(number, &file)),
                Err(error) => return Err(failed(error)),
            }
            // Its holder may have removed it between opening and locking.
            let there = rustix::fs::statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW);
            let there = there.map(|there| FileNumber::from_status(&there));
            if there == Ok(FileNumber::from_status(&status)) {
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

    fn read_note(&self) -> Result<NoteContents, QueueError> {
        read_note_text(&self.file)
            .map(|text| NoteContents::parse_note(&text).unwrap_or_default())
            .map_err(|error| QueueError::from_io("read it", &self.path, error))
    }

    fn write_note(&self, noted: &NoteContents) -> Result<(), QueueError> {
        let mut file = &self.file;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(noted.to_string().as_bytes()))
            .map_err(|error| QueueError::from_io("record the original settings", &self.path, error))
    }

    fn remove_note(&self) -> Result<(), QueueError> {
        match rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(QueueError::from_io("remove it", &self.path, error)),
        }
    }
}

impl Drop for SettingsNote {
    fn drop(&mut self) {
        // A tool that is just being started has a copy of the descriptor.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// Returns the error for a disk whose settings note another process has locked.
fn held_error(number: DeviceNumber, file: &File) -> QueueError {
    let disk = BlockDevice::from_number(number);
    let noted = read_note_text(file)
        .ok()
        .and_then(|text| NoteContents::parse_note(&text));
    QueueError::HeldByOtherProcess {
        disk: disk.map_or_else(
            |_| format!("block device {number}"),
            |disk| disk.name().to_owned(),
        ),
        holder: noted.map_or_else(
            || "another diskperf".to_owned(),
            |noted| format!("process {}", noted.holder_pid),
        ),
    }
}

fn read_note_text(mut file: &File) -> io::Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.take(NOTE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Contents of a disk's settings note; empty if the note was never finished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct NoteContents {
    boot_id: String,
    queue_identity: String,
    holder_pid: String,
    original_values: Vec<(QueueSettingKey, String)>,
}

impl NoteContents {
    /// Returns the queue settings to restore if their note belongs to this boot and this disk; else
    /// none.
    fn values_to_restore(
        self,
        queue: &RequestQueue,
    ) -> Result<Vec<(QueueSettingKey, String)>, QueueError> {
        let is_current =
            read_boot_id()? == self.boot_id && self.queue_identity == queue.queue_identity;
        Ok(match is_current {
            true => self.original_values,
            false => Vec::new(),
        })
    }

    fn parse_note(text: &str) -> Option<Self> {
        let (text, rest) = text.split_once(&format!("\n{NOTE_LAST_LINE}\n"))?;
        let mut lines = text.lines();
        if !rest.is_empty() || lines.next()? != NOTE_FIRST_LINE {
            return None;
        }
        let mut field = |name: &str| Some(lines.next()?.strip_prefix(name)?.trim().to_owned());
        let (boot_id, identity, holder) = (field("boot ")?, field("disk ")?, field("process ")?);
        let value = |line: &str| {
            let (key, value) = line.split_once(' ')?;
            Some((QueueSettingKey::from_name(key)?, value.to_owned()))
        };
        Some(Self {
            boot_id,
            queue_identity: identity,
            holder_pid: holder,
            original_values: lines.map(value).collect::<Option<_>>()?,
        })
    }
}

impl fmt::Display for NoteContents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            boot_id,
            queue_identity: identity,
            holder_pid: holder,
            original_values: values,
        } = self;
        writeln!(
            formatter,
            "{NOTE_FIRST_LINE}\nboot {boot_id}\ndisk {identity}\nprocess {holder}"
        )?;
        for (key, value) in values {
            writeln!(formatter, "{} {value}", key.key_name())?;
        }
        writeln!(formatter, "{NOTE_LAST_LINE}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_only_whole() {
        let noted = NoteContents {
            boot_id: "14bd2039-9586".to_owned(),
            queue_identity: "6923-13".to_owned(),
            holder_pid: "4711".to_owned(),
            original_values: vec![
                (QueueSettingKey::ReadAheadKb, "128".to_owned()),
                (QueueSettingKey::Scheduler, "none".to_owned()),
            ],
        };
        let text = noted.to_string();
        assert_eq!(NoteContents::parse_note(&text), Some(noted));
        for length in 0..text.len() {
            assert_eq!(NoteContents::parse_note(&text[..length]), None, "{length}");
        }
        for broken in [
            text.clone() + "end\n",
            text.replace("scheduler", "../scheduler"),
            text.replace("diskperf-queue 1", "diskperf-queue 2"),
        ] {
            assert_eq!(NoteContents::parse_note(&broken), None, "{broken}");
        }
    }
}
