//! What a disk's request queue is set to in sysfs: changed for a while, and put
//! back.

use super::device::BlockDevice;
use std::io;
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
}

/// One setting of one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSetting {
    path: PathBuf,
    key: QueueKey,
}

impl QueueSetting {
    /// Of the whole disk that a device is, or is a part of.
    ///
    /// # Errors
    ///
    /// A device without a queue of its own.
    pub fn of(device: &BlockDevice, key: QueueKey) -> io::Result<Self> {
        let disk = device.whole_disk().map_err(io::Error::other)?;
        let path = disk.sysfs().join("queue").join(key.name());
        path.metadata()?;
        Ok(Self { path, key })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is set to.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn value(&self) -> io::Result<String> {
        let text = std::fs::read_to_string(&self.path)?;
        Ok(chosen(self.key, &text))
    }

    /// What it may be set to, where the kernel says.
    ///
    /// # Errors
    ///
    /// Those of reading the file.
    pub fn choices(&self) -> io::Result<Option<Vec<String>>> {
        match self.key {
            QueueKey::ReadAheadKb => Ok(None),
            QueueKey::Scheduler => {
                let text = std::fs::read_to_string(&self.path)?;
                let word = |word: &str| word.trim_matches(['[', ']']).to_owned();
                Ok(Some(text.split_whitespace().map(word).collect()))
            }
        }
    }

    /// Sets it.
    ///
    /// # Errors
    ///
    /// Not root, or a value that the kernel does not take.
    pub fn set(&self, value: &str) -> io::Result<()> {
        put_back(&self.path, value)
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

/// Writes a value into a file of a queue, and nowhere else.
///
/// # Errors
///
/// A path that is none of a queue, and those of writing.
pub fn put_back(path: &Path, value: &str) -> io::Result<()> {
    let of_queue = path.starts_with("/sys")
        && path.parent().and_then(Path::file_name) == Some("queue".as_ref())
        && QueueKey::ALL
            .iter()
            .any(|key| path.file_name() == Some(key.name().as_ref()));
    if !of_queue {
        return Err(io::Error::other("not a setting of a disk's queue"));
    }
    std::fs::write(path, value)
}

/// This process, so that another can tell whether it still runs: its number,
/// and when it started, since numbers are used again.
pub fn this_process() -> String {
    let process = std::process::id().to_string();
    let started = started(&process).unwrap_or_default();
    format!("{process} {started}")
}

/// Whether the process of [`this_process`] still runs.
pub fn is_running(owner: &str) -> bool {
    owner.split_once(' ').is_some_and(|(process, at)| {
        let number = !process.is_empty() && process.bytes().all(|byte| byte.is_ascii_digit());
        number && started(process).is_some_and(|started| started == at)
    })
}

/// When a process started, in the kernel's ticks: field 22 of its stat, the
/// second of which, in parentheses, may hold anything.
fn started(process: &str) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    after_name.split_whitespace().nth(19).map(str::to_owned)
}

/// A queue's setting as it was: written back when this goes.
#[derive(Debug)]
pub struct Restore {
    setting: QueueSetting,
    value: String,
    restored: bool,
}

impl Restore {
    /// Remembers what a setting is.
    ///
    /// # Errors
    ///
    /// Those of reading it.
    pub fn of(setting: QueueSetting) -> io::Result<Self> {
        let value = setting.value()?;
        Ok(Self {
            setting,
            value,
            restored: false,
        })
    }

    /// The setting.
    pub fn setting(&self) -> &QueueSetting {
        &self.setting
    }

    /// What it was.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Writes it back.
    ///
    /// # Errors
    ///
    /// Those of writing it.
    pub fn restore(mut self) -> io::Result<()> {
        self.restored = true;
        self.setting.set(&self.value)
    }
}

impl Drop for Restore {
    fn drop(&mut self) {
        if !self.restored {
            // Whoever can hear of an error calls `restore`.
            let _ = self.setting.set(&self.value);
        }
    }
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

    #[test]
    fn a_process_that_runs_is_told_from_one_that_does_not() {
        assert!(is_running(&this_process()));
        let (number, _) = this_process()
            .split_once(' ')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        assert!(!is_running(&format!("{number} 1")));
        assert!(!is_running("4194999 1"));
        assert!(!is_running(""));
        assert!(!is_running("../1 1"));
    }

    #[test]
    fn nothing_is_written_that_is_no_setting_of_a_queue() {
        for path in [
            "/etc/passwd",
            "/sys/block/vda/queue/nr_requests",
            "/tmp/queue/scheduler",
            "/sys/block/vda/scheduler",
        ] {
            let error = put_back(Path::new(path), "1").unwrap_err();
            assert!(error.to_string().contains("queue"), "{path}");
        }
    }
}
