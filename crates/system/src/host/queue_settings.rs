//! Settings of a disk's request queue in sysfs: temporary changes and their restoration.
//!
//! A queue is identified by its disk's number alone, from which its files are found. No path from a
//! stored note is ever opened.

mod held;

pub use held::{AbandonedQueue, LockedQueue, RestoredSetting, find_abandoned_queues, has_any_note};

use super::device::{BlockDevice, DeviceError, DeviceNumber};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Queue setting that may be changed. None of them can lose data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueSettingKey {
    /// Read-ahead size for sequential readers, `read_ahead_kb`.
    ReadAheadKb,
    /// I/O scheduler that orders the requests, `scheduler`.
    Scheduler,
}

impl QueueSettingKey {
    /// Every queue setting that may be changed.
    pub const ALL_KEYS: [Self; 2] = [Self::ReadAheadKb, Self::Scheduler];

    /// Returns the setting's name in sysfs.
    pub fn key_name(self) -> &'static str {
        match self {
            Self::ReadAheadKb => "read_ahead_kb",
            Self::Scheduler => "scheduler",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL_KEYS
            .into_iter()
            .find(|key| key.key_name() == name)
    }
}

/// Reason why a queue's setting could not be read, changed or restored.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Disk that does not exist or cannot be examined.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Disk that was removed, or loop device with another backing file.
    #[error("{disk} no longer exists, or is now another disk")]
    QueueGone {
        /// Kernel's name of the disk.
        disk: String,
    },
    /// Value that the setting does not accept.
    #[error("{}: `{value}` is not allowed; allowed: {allowed}", path.display())]
    InvalidValue {
        /// Path of the setting's file in sysfs.
        path: PathBuf,
        /// Value that was rejected.
        value: String,
        /// Values that the setting accepts.
        allowed: String,
    },
    /// Disk whose settings another process is varying.
    #[error(
        "{holder} is varying the settings of {disk}: wait until it ends, because only one search at a time can restore them"
    )]
    HeldByOtherProcess {
        /// Kernel's name of the disk.
        disk: String,
        /// Process that varies the disk's settings.
        holder: String,
    },
    /// Note of original settings, or its directory, that users other than root may have written.
    #[error("{} is not owned by root alone, or is not a {what}, so its content cannot be trusted: remove it", path.display())]
    NotOwnedByRoot {
        /// Path of the note or of the directory.
        path: PathBuf,
        /// Kind of file that is expected: `directory` or `file`.
        what: &'static str,
    },
    /// Any other operation on a queue's settings that failed.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// Operation that failed, as a verb phrase for the message.
        action: &'static str,
        /// Path of the file or directory on which the operation failed.
        path: PathBuf,
        /// Error that the operating system returned.
        source: io::Error,
    },
}

impl QueueError {
    fn from_io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Request queue of a whole disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestQueue {
    queue_disk: BlockDevice,
    /// Identity that distinguishes this disk from a later one with the same number.
    queue_identity: String,
}

impl RequestQueue {
    /// Returns the request queue of a disk, or of the disk that contains a partition.
    ///
    /// # Errors
    ///
    /// The device has no queue of its own.
    pub fn queue_of_device(device: &BlockDevice) -> Result<Self, QueueError> {
        let disk = device.whole_disk()?;
        let directory = disk.sysfs_path().join("queue");
        let status = std::fs::metadata(&directory)
            .map_err(|error| QueueError::from_io("find the request queue", &directory, error))?;
        // A loop device stays, and shows one file after the other.
        let counter = disk.sysfs_path().join("diskseq");
        let medium = match std::fs::read_to_string(&counter) {
            // Kernels before 5.15 do not count.
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| QueueError::from_io("read it", &counter, error))?,
        };
        let identity = format!("{}-{}", status.ino(), medium.trim());
        Ok(Self {
            queue_disk: disk,
            queue_identity: identity,
        })
    }

    /// Returns the queue of the disk that now has this number; `None` if no disk has it. A disk
    /// that cannot be examined gives an error, since it may exist.
    fn from_number(number: DeviceNumber) -> Result<Option<Self>, QueueError> {
        let link = PathBuf::from(format!("/sys/dev/block/{number}"));
        match link.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(QueueError::from_io("find the disk", &link, error)),
            Ok(_) => Self::queue_of_device(&BlockDevice::from_number(number)?).map(Some),
        }
    }

    /// Returns the disk that the request queue belongs to.
    pub fn queue_disk(&self) -> &BlockDevice {
        &self.queue_disk
    }

    fn setting_path(&self, key: QueueSettingKey) -> PathBuf {
        self.queue_disk
            .sysfs_path()
            .join("queue")
            .join(key.key_name())
    }

    fn read_text(&self, key: QueueSettingKey) -> Result<String, QueueError> {
        let path = self.setting_path(key);
        std::fs::read_to_string(&path).map_err(|error| QueueError::from_io("read it", &path, error))
    }

    /// Reads the value of a queue setting.
    ///
    /// # Errors
    ///
    /// The setting's file cannot be read.
    pub fn setting_value(&self, key: QueueSettingKey) -> Result<String, QueueError> {
        Ok(parse_selected_value(key, &self.read_text(key)?))
    }

    /// Checks that a queue setting accepts a value.
    ///
    /// # Errors
    ///
    /// The value is not a number, or not one of the choices that the kernel lists.
    pub fn check_value(&self, key: QueueSettingKey, value: &str) -> Result<(), QueueError> {
        let refused = |allowed: String| QueueError::InvalidValue {
            path: self.setting_path(key),
            value: value.to_owned(),
            allowed,
        };
        match key {
            QueueSettingKey::ReadAheadKb => match value.parse::<u32>() {
                Ok(number) if number.to_string() == value => Ok(()),
                _ => Err(refused(format!("whole numbers up to {}", u32::MAX))),
            },
            QueueSettingKey::Scheduler => {
                let text = self.read_text(key)?;
                let choices: Vec<&str> = text
                    .split_whitespace()
                    .map(|word| word.trim_matches(['[', ']']))
                    .collect();
                match choices.contains(&value) {
                    true => Ok(()),
                    false => Err(refused(choices.join(", "))),
                }
            }
        }
    }

    /// Sets the value of a queue setting.
    ///
    /// # Errors
    ///
    /// The disk is gone, or the kernel rejects the value or the user.
    pub fn set_value(&self, key: QueueSettingKey, value: &str) -> Result<(), QueueError> {
        if Self::from_number(self.queue_disk.device_number())?.as_ref() != Some(self) {
            return Err(QueueError::QueueGone {
                disk: self.queue_disk.name().to_owned(),
            });
        }
        self.check_value(key, value)?;
        let path = self.setting_path(key);
        // Neither made nor truncated: it is there, or the disk is gone.
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(|error| QueueError::from_io("set it", &path, error))
    }
}

/// Returns the value in a setting's text. For a scheduler it is the word in brackets; a single
/// scheduler has no brackets.
fn parse_selected_value(key: QueueSettingKey, text: &str) -> String {
    let word = match key {
        QueueSettingKey::Scheduler => text
            .split_whitespace()
            .find(|word| word.starts_with('['))
            .unwrap_or(text),
        QueueSettingKey::ReadAheadKb => text,
    };
    word.trim().trim_matches(['[', ']']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_one_of_several_is_in_brackets() {
        let of = |text| parse_selected_value(QueueSettingKey::Scheduler, text);
        assert_eq!(of("[none] mq-deadline kyber \n"), "none");
        assert_eq!(of("none [mq-deadline]\n"), "mq-deadline");
        assert_eq!(of("none\n"), "none");
        assert_eq!(
            parse_selected_value(QueueSettingKey::ReadAheadKb, "128\n"),
            "128"
        );
    }
}
