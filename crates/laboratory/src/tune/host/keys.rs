//! What may be varied on real storage: nothing by which data could be lost.

use crate::error::LaboratoryError;
use crate::recorder::Recorder;
use crate::tune::over::Over;
use diskperf_battery::Program;
use diskperf_battery::program::nearest;
use diskperf_system::host::ReadAhead;
use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::is_root;
use diskperf_system::host::queue_settings::{QueueKey, QueueSetting, Restore, this_process};
use std::path::Path;

/// The parameters of programs that may be varied: sizes of calls, and how many
/// readers there are, which is how deep the device's queue gets.
const PROGRAM_KEYS: [&str; 4] = [
    "program.call_bytes",
    "program.align_bytes",
    "program.readers",
    "program.checkers",
];

const DIRECT: &str = "direct";
const READ_AHEAD: &str = "read_ahead";

/// The option that lets the queue's settings be varied.
const OPTION: &str = "--change-device-settings";

/// A key that may be varied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Varied {
    /// A parameter of the program, by its path.
    Program(String),
    /// O_DIRECT: 0 or 1.
    Direct,
    /// What posix_fadvise(2) says of the files.
    ReadAhead,
    /// A setting of the disk's queue.
    Device(QueueKey),
}

fn device_path(key: QueueKey) -> String {
    format!("device.{}", key.name())
}

impl Varied {
    /// What `--over` varies.
    pub(super) fn of(over: &Over, device_settings: bool) -> Result<Self, LaboratoryError> {
        let path = over.path.as_str();
        if PROGRAM_KEYS.contains(&path) {
            return Ok(Self::Program(path.to_owned()));
        }
        if let Some(key) = QueueKey::ALL
            .into_iter()
            .find(|key| device_path(*key) == path)
        {
            if !device_settings {
                return Err(LaboratoryError::Request(format!(
                    "--over {path} changes the disk for all who use it: add {OPTION} if that may be; it is put back at the end"
                )));
            }
            if !is_root() {
                return Err(LaboratoryError::Request(format!(
                    "--over {path} needs root, since it writes to sysfs: use sudo"
                )));
            }
            return Ok(Self::Device(key));
        }
        match path {
            DIRECT => Ok(Self::Direct),
            READ_AHEAD => Ok(Self::ReadAhead),
            _ => Err(refused(path)),
        }
    }

    /// Refuses a value that the key does not take.
    pub(super) fn check(
        &self,
        value: &str,
        settings: &DeviceSettings,
    ) -> Result<(), LaboratoryError> {
        match self {
            // The plan of each point says what a program takes.
            Self::Program(_) => Ok(()),
            Self::Direct if ["0", "1"].contains(&value) => Ok(()),
            Self::Direct => Err(LaboratoryError::Request(format!(
                "--over {DIRECT}: `{value}` is neither 0 nor 1"
            ))),
            Self::ReadAhead => read_ahead(value).map(drop),
            Self::Device(key) => settings.check(*key, value),
        }
    }

    /// What it is without the search, if that can be told.
    pub(super) fn own(
        &self,
        set: &[String],
        what: Option<&str>,
        settings: &DeviceSettings,
    ) -> Option<String> {
        match self {
            Self::Program(path) => {
                let mut set = set.iter().filter_map(|setting| setting.split_once('='));
                let set = set.rfind(|(set, _)| set == path);
                let of_program = || {
                    let mut program = Program::named(what?)?.parameter_values();
                    program.remove(path.strip_prefix("program.")?)
                };
                set.map(|(_, value)| value.to_owned()).or_else(of_program)
            }
            Self::Direct => Some("0".to_owned()),
            Self::ReadAhead => Some(ReadAhead::default().name().to_owned()),
            Self::Device(key) => settings.own(*key),
        }
    }
}

fn refused(path: &str) -> LaboratoryError {
    let device = QueueKey::ALL.map(device_path);
    let allowed: Vec<&str> = PROGRAM_KEYS
        .into_iter()
        .chain([DIRECT, READ_AHEAD])
        .chain(device.iter().map(String::as_str))
        .collect();
    let meant = nearest(path, allowed.iter().copied());
    LaboratoryError::Request(format!(
        "--over {path}: on real storage only what is safe is varied: {} (the last two with {OPTION}){}",
        allowed.join(", "),
        meant.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
    ))
}

/// What posix_fadvise says, by its name.
pub(super) fn read_ahead(value: &str) -> Result<ReadAhead, LaboratoryError> {
    let names = ReadAhead::ALL.map(ReadAhead::name);
    ReadAhead::ALL
        .into_iter()
        .find(|one| one.name() == value)
        .ok_or_else(|| {
            LaboratoryError::Request(format!(
                "--over {READ_AHEAD}: `{value}` is none of {}",
                names.join(", ")
            ))
        })
}

/// The queue's settings that are varied, as they were: put back when this
/// goes, however it goes; the store has them too, for `diskperf clean`.
#[derive(Debug, Default)]
pub(super) struct DeviceSettings {
    kept: Vec<(QueueKey, Restore)>,
}

impl DeviceSettings {
    /// What the keys are, of the disk under a path.
    pub(super) fn of(
        varied: &[Varied],
        target: &Path,
        recorder: &mut Recorder,
    ) -> Result<Self, LaboratoryError> {
        let mut kept = Vec::new();
        for key in varied {
            let Varied::Device(key) = key else { continue };
            let restore = restore_of(target, *key).map_err(|why| {
                LaboratoryError::Request(format!(
                    "--over {}: {}: {why}",
                    device_path(*key),
                    target.display()
                ))
            })?;
            recorder.note_device_setting(
                restore.setting().path(),
                restore.value(),
                &this_process(),
            );
            kept.push((*key, restore));
        }
        if !kept.is_empty()
            && let Some(failure) = recorder.failure()
        {
            return Err(LaboratoryError::Request(format!(
                "{failure}; without it nobody could put the device's settings back after a kill"
            )));
        }
        Ok(Self { kept })
    }

    fn find(&self, key: QueueKey) -> Option<&Restore> {
        let mut kept = self.kept.iter();
        kept.find(|(kept, _)| *kept == key)
            .map(|(_, restore)| restore)
    }

    fn own(&self, key: QueueKey) -> Option<String> {
        self.find(key).map(|restore| restore.value().to_owned())
    }

    fn check(&self, key: QueueKey, value: &str) -> Result<(), LaboratoryError> {
        let choices = self
            .find(key)
            .and_then(|kept| kept.setting().choices().ok().flatten());
        let allowed = match (&choices, key) {
            (Some(choices), _) => choices.iter().any(|choice| choice == value),
            (None, QueueKey::ReadAheadKb) => value.parse::<u32>().is_ok(),
            (None, QueueKey::Scheduler) => true,
        };
        if allowed {
            return Ok(());
        }
        Err(LaboratoryError::Request(format!(
            "--over {}: `{value}` is none of {}",
            device_path(key),
            choices.map_or("the whole numbers".to_owned(), |choices| choices.join(", "))
        )))
    }

    pub(super) fn set(&self, key: QueueKey, value: &str) -> Result<(), LaboratoryError> {
        let Some(kept) = self.find(key) else {
            return Ok(());
        };
        let failed = |error: std::io::Error| {
            LaboratoryError::Request(format!(
                "{}: {value}: {error}",
                kept.setting().path().display()
            ))
        };
        kept.setting().set(value).map_err(failed)
    }

    /// Sets all to what they were, for the next point.
    pub(super) fn as_they_were(&self) -> Result<(), LaboratoryError> {
        for (_, kept) in &self.kept {
            kept.setting()
                .set(kept.value())
                .map_err(LaboratoryError::work)?;
        }
        Ok(())
    }

    /// Puts all back, for good.
    pub(super) fn put_back(self, recorder: &mut Recorder) -> Result<(), LaboratoryError> {
        for (_, kept) in self.kept {
            let path = kept.setting().path().to_owned();
            let value = kept.value().to_owned();
            kept.restore().map_err(|error| {
                LaboratoryError::Work(format!(
                    "{} could not be put back to {value}: {error}; `diskperf clean` tries again",
                    path.display()
                ))
            })?;
            recorder.forget_device_setting(&path);
        }
        Ok(())
    }
}

/// The setting of the one disk that a path is on.
fn restore_of(target: &Path, key: QueueKey) -> Result<Restore, String> {
    let disks = match target.is_dir() || target.is_file() {
        true => BlockDevice::of_directory(target),
        // A loop device has a queue of its own, above that of its file's disk.
        false => BlockDevice::from_path(target).map(|device| vec![device]),
    };
    let disks = disks.map_err(|error| error.to_string())?;
    let [disk] = &disks[..] else {
        return Err(format!(
            "it is on {} disks, and must be on one",
            disks.len()
        ));
    };
    let setting = QueueSetting::of(disk, key).map_err(|error| error.to_string())?;
    Restore::of(setting).map_err(|error| error.to_string())
}
