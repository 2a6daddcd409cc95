//! What a disk's request queue is set to in sysfs: changed for a while, and put
//! back.
//!
//! A queue is named by its disk's number, and its files are found from that
//! alone: no path that anybody has written down is ever opened.

mod held;

pub use held::{HeldQueue, LeftQueue, PutBack, abandoned, any_noted};

use super::device::{BlockDevice, DeviceError, DeviceNumber};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What of a queue may be changed: neither can lose data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QueueKey {
    /// How far the kernel reads ahead of a sequential reader.
    ReadAheadKb,
    /// Who orders the requests.
    Scheduler,
}

impl QueueKey {
    /// Both.
    pub const ALL: [Self; 2] = [Self::ReadAheadKb, Self::Scheduler];

    /// Its name in sysfs.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadAheadKb => "read_ahead_kb",
            Self::Scheduler => "scheduler",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }
}

/// Why a queue's setting could not be read, changed or put back.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// No such disk.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The disk was taken out, or a loop device shows another file.
    #[error("{disk} no longer exists, or is another disk now")]
    Gone {
        /// Its name.
        disk: String,
    },
    /// The key does not take this value.
    #[error("{}: `{value}` is none of {allowed}", path.display())]
    Value {
        /// The setting's file.
        path: PathBuf,
        /// What it was to be set to.
        value: String,
        /// What it takes.
        allowed: String,
    },
    /// Another process varies the disk's settings.
    #[error(
        "the settings of {disk} are being varied by {holder}: wait until it ends, because only one search at a time can put them back"
    )]
    Held {
        /// The disk's name.
        disk: String,
        /// The process.
        holder: String,
    },
    /// Somebody else may have written what is noted there.
    #[error("{} is not owned by root alone, or is not a {what}, so its content cannot be trusted: remove it", path.display())]
    NotRoots {
        /// The directory or file.
        path: PathBuf,
        /// What it has to be.
        what: &'static str,
    },
    /// Anything else.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl QueueError {
    fn io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// The request queue of a whole disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    disk: BlockDevice,
    /// What tells this disk from a later one of the same number.
    stamp: String,
}

impl Queue {
    /// Of the disk that a device is, or is a part of.
    ///
    /// # Errors
    /// A device without a queue of its own.
    pub fn of(device: &BlockDevice) -> Result<Self, QueueError> {
        let disk = device.whole_disk()?;
        let directory = disk.sysfs().join("queue");
        let status = std::fs::metadata(&directory)
            .map_err(|error| QueueError::io("find the request queue", &directory, error))?;
        // A loop device stays, and shows one file after the other.
        let counter = disk.sysfs().join("diskseq");
        let medium = match std::fs::read_to_string(&counter) {
            // Kernels before 5.15 do not count.
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|error| QueueError::io("read it", &counter, error))?,
        };
        let stamp = format!("{}-{}", status.ino(), medium.trim());
        Ok(Self { disk, stamp })
    }

    /// That of the disk that has this number now; `None` where no disk has it. One
    /// that cannot be looked at may be there.
    fn numbered(number: DeviceNumber) -> Result<Option<Self>, QueueError> {
        let link = PathBuf::from(format!("/sys/dev/block/{number}"));
        match link.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(QueueError::io("find the disk", &link, error)),
            Ok(_) => Self::of(&BlockDevice::from_number(number)?).map(Some),
        }
    }

    /// The disk.
    pub fn disk(&self) -> &BlockDevice {
        &self.disk
    }

    fn path(&self, key: QueueKey) -> PathBuf {
        self.disk.sysfs().join("queue").join(key.name())
    }

    fn text(&self, key: QueueKey) -> Result<String, QueueError> {
        let path = self.path(key);
        std::fs::read_to_string(&path).map_err(|error| QueueError::io("read it", &path, error))
    }

    /// What a setting is.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn value(&self, key: QueueKey) -> Result<String, QueueError> {
        Ok(chosen(key, &self.text(key)?))
    }

    /// Refuses a value that a setting does not take.
    ///
    /// # Errors
    /// It is no number, or none of those that the kernel lists.
    pub fn check(&self, key: QueueKey, value: &str) -> Result<(), QueueError> {
        let refused = |allowed: String| QueueError::Value {
            path: self.path(key),
            value: value.to_owned(),
            allowed,
        };
        match key {
            QueueKey::ReadAheadKb => match value.parse::<u32>() {
                Ok(number) if number.to_string() == value => Ok(()),
                _ => Err(refused(format!("the whole numbers to {}", u32::MAX))),
            },
            QueueKey::Scheduler => {
                let text = self.text(key)?;
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

    /// Sets it.
    ///
    /// # Errors
    /// The disk is gone, or the kernel does not take the value from this user.
    pub fn set(&self, key: QueueKey, value: &str) -> Result<(), QueueError> {
        if Self::numbered(self.disk.number())?.as_ref() != Some(self) {
            return Err(QueueError::Gone {
                disk: self.disk.name().to_owned(),
            });
        }
        self.check(key, value)?;
        let path = self.path(key);
        // Neither made nor truncated: it is there, or the disk is gone.
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(value.as_bytes()))
            .map_err(|error| QueueError::io("set it", &path, error))
    }
}

/// Of schedulers the one in brackets; of one alone there are none.
fn chosen(key: QueueKey, text: &str) -> String {
    let word = match key {
        QueueKey::Scheduler => text
            .split_whitespace()
            .find(|word| word.starts_with('['))
            .unwrap_or(text),
        QueueKey::ReadAheadKb => text,
    };
    word.trim().trim_matches(['[', ']']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_one_of_several_is_in_brackets() {
        let of = |text| chosen(QueueKey::Scheduler, text);
        assert_eq!(of("[none] mq-deadline kyber \n"), "none");
        assert_eq!(of("none [mq-deadline]\n"), "mq-deadline");
        assert_eq!(of("none\n"), "none");
        assert_eq!(chosen(QueueKey::ReadAheadKb, "128\n"), "128");
    }
}
