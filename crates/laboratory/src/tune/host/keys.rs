//! Keys that may be varied on real storage. None of them can cause a loss of data.

use diskperf_battery::Program;
use diskperf_battery::program::nearest_name;
use diskperf_models::LaboratoryError;
use diskperf_models::tune::over::OverOption;
use diskperf_system::host::ReadAhead;
use diskperf_system::host::device::BlockDevice;
use diskperf_system::host::is_root;
use diskperf_system::host::queue_settings::{
    LockedQueue, QueueError, QueueSettingKey, RestoredSetting,
};
use diskperf_timeline::Experiment;
use std::path::Path;

/// Program parameters that may be varied: call sizes, and the number of readers, which determines
/// the queue depth of the device.
const PROGRAM_KEYS: [&str; 4] = [
    "program.call_bytes",
    "program.align_bytes",
    "program.readers",
    "program.checkers",
];

const DIRECT_KEY: &str = "direct";
const READ_AHEAD_KEY: &str = "read_ahead";

const CHANGE_SETTINGS_OPTION: &str = "--change-device-settings";

/// A setting that a search on real storage may vary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VariedKey {
    /// A parameter of the program, by its path.
    Program(String),
    /// O_DIRECT, with the values 0 and 1.
    Direct,
    /// Advice to the kernel about the files, by posix_fadvise(2).
    ReadAhead,
    /// Setting of the disk's queue in sysfs.
    Device(QueueSettingKey),
}

fn device_path(key: QueueSettingKey) -> String {
    format!("device.{}", key.key_name())
}

impl VariedKey {
    /// Returns the setting that an `--over` option varies.
    pub(super) fn from_over(
        over: &OverOption,
        device_settings: bool,
    ) -> Result<Self, LaboratoryError> {
        let path = over.path.as_str();
        let whole = format!("program.{path}");
        let mut of_programs = [path, &whole].into_iter();
        if let Some(key) = of_programs.find(|key| PROGRAM_KEYS.contains(key)) {
            return Ok(Self::Program(key.to_owned()));
        }
        if let Some(key) = QueueSettingKey::ALL_KEYS
            .into_iter()
            .find(|key| device_path(*key) == path)
        {
            if !device_settings {
                return Err(LaboratoryError::Request(format!(
                    "--over {path} changes the disk for all its users: add {CHANGE_SETTINGS_OPTION} to allow that; it is put back at the end"
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
            DIRECT_KEY => Ok(Self::Direct),
            READ_AHEAD_KEY => Ok(Self::ReadAhead),
            _ => Err(unknown_key_error(path)),
        }
    }

    /// Verifies that a varied setting accepts a value.
    pub(super) fn check_value(
        &self,
        value: &str,
        settings: &DeviceSettings,
    ) -> Result<(), LaboratoryError> {
        match self {
            // The plan of each point says what a program takes.
            Self::Program(_) => Ok(()),
            Self::Direct if ["0", "1"].contains(&value) => Ok(()),
            Self::Direct => Err(LaboratoryError::Request(format!(
                "--over {DIRECT_KEY}: `{value}` is neither 0 nor 1"
            ))),
            Self::ReadAhead => parse_read_ahead(value).map(drop),
            Self::Device(key) => settings.check_value(*key, value),
        }
    }

    /// Returns the value that the setting has outside the search, if it is known.
    pub(super) fn today_value(
        &self,
        fixed: &Experiment,
        settings: &DeviceSettings,
    ) -> Option<String> {
        match self {
            Self::Program(path) => {
                let set = fixed.settings.iter().rfind(|set| set.path == *path);
                let of_program = || {
                    let mut program =
                        Program::from_name(fixed.workload.name()?)?.parameter_values();
                    program.remove(path.strip_prefix("program.")?)
                };
                set.map(|set| set.value_text.clone()).or_else(of_program)
            }
            Self::Direct => Some("0".to_owned()),
            Self::ReadAhead => Some(ReadAhead::default().read_ahead_name().to_owned()),
            Self::Device(key) => settings.today_value(*key),
        }
    }
}

fn unknown_key_error(path: &str) -> LaboratoryError {
    let device = QueueSettingKey::ALL_KEYS.map(device_path);
    let allowed: Vec<&str> = PROGRAM_KEYS
        .into_iter()
        .chain([DIRECT_KEY, READ_AHEAD_KEY])
        .chain(device.iter().map(String::as_str))
        .collect();
    let meant = nearest_name(path, allowed.iter().copied());
    LaboratoryError::Request(format!(
        "--over {path}: on real storage only what is safe is varied: {} (the last two with {CHANGE_SETTINGS_OPTION}){}",
        allowed.join(", "),
        meant.map_or(String::new(), |near| format!("; did you mean `{near}`?"))
    ))
}

/// Parses the name of an advice for posix_fadvise.
pub(super) fn parse_read_ahead(value: &str) -> Result<ReadAhead, LaboratoryError> {
    let names = ReadAhead::ALL_MODES.map(ReadAhead::read_ahead_name);
    ReadAhead::ALL_MODES
        .into_iter()
        .find(|one| one.read_ahead_name() == value)
        .ok_or_else(|| {
            LaboratoryError::Request(format!(
                "--over {READ_AHEAD_KEY}: `{value}` is none of {}",
                names.join(", ")
            ))
        })
}

/// Settings of the disk's queue, if any are varied. They are restored when this value is dropped,
/// whatever the reason.
#[derive(Debug, Default)]
pub(super) struct DeviceSettings {
    held_queue: Option<LockedQueue>,
    notes: Vec<String>,
}

impl DeviceSettings {
    /// Takes the settings of the disk below a path. No other search can vary them meanwhile.
    pub(super) fn open(varied: &[VariedKey], target: &Path) -> Result<Self, LaboratoryError> {
        let mut keys = Vec::new();
        for key in varied {
            if let VariedKey::Device(key) = key {
                keys.push(*key);
            }
        }
        let Some(first) = keys.first() else {
            return Ok(Self::default());
        };
        let failed = |why: String| {
            LaboratoryError::Request(format!(
                "--over {}: {}: {why}",
                device_path(*first),
                target.display()
            ))
        };
        let disk = find_disk(target, &keys).map_err(failed)?;
        let (held, left) =
            LockedQueue::lock_queue(&disk, &keys).map_err(|error| failed(error.to_string()))?;
        let said = |left: RestoredSetting| {
            format!("{left}: put back first, because a killed search had left it changed")
        };
        Ok(Self {
            held_queue: Some(held),
            notes: left.into_iter().map(said).collect(),
        })
    }

    /// Remarks for readers of the results.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    fn today_value(&self, key: QueueSettingKey) -> Option<String> {
        self.held_queue
            .as_ref()?
            .original_value(key)
            .map(str::to_owned)
    }

    fn check_value(&self, key: QueueSettingKey, value: &str) -> Result<(), LaboratoryError> {
        let Some(held) = &self.held_queue else {
            return Ok(());
        };
        let failed =
            |error| LaboratoryError::Request(format!("--over {}: {error}", device_path(key)));
        held.request_queue().check_value(key, value).map_err(failed)
    }

    pub(super) fn set_value(
        &self,
        key: QueueSettingKey,
        value: &str,
    ) -> Result<(), LaboratoryError> {
        let Some(held) = &self.held_queue else {
            return Ok(());
        };
        held.request_queue()
            .set_value(key, value)
            .map_err(|error| match error {
                QueueError::QueueGone { .. } => LaboratoryError::work(error),
                _ => LaboratoryError::Request(format!("{}={value}: {error}", device_path(key))),
            })
    }

    /// Resets all settings to their original values for the next point.
    pub(super) fn restore(&self) -> Result<(), LaboratoryError> {
        match &self.held_queue {
            Some(held) => held.restore_and_keep_lock().map_err(LaboratoryError::work),
            None => Ok(()),
        }
    }

    /// Restores all settings at the end of the search. Returns a description of the fault on
    /// failure.
    pub(super) fn put_back(&mut self) -> Result<(), String> {
        let Some(held) = self.held_queue.take() else {
            return Ok(());
        };
        held.restore_and_unlock().map_err(|error| {
            format!("a setting of the disk could not be put back: {error}; once that is repaired, `sudo diskperf clean` puts it back, and so does a reboot")
        })
    }
}

/// Returns the single disk whose queue has these settings for the target.
fn find_disk(target: &Path, keys: &[QueueSettingKey]) -> Result<BlockDevice, String> {
    let mut only: Option<BlockDevice> = None;
    for key in keys {
        let disks = match key {
            QueueSettingKey::ReadAheadKb => BlockDevice::read_ahead_devices(target),
            QueueSettingKey::Scheduler => BlockDevice::scheduler_devices(target),
        };
        let disks = disks.map_err(|error| error.to_string())?;
        let [disk] = &disks[..] else {
            return Err(format!(
                "the target is on {} disks, and must be on one",
                disks.len()
            ));
        };
        match &only {
            Some(other) if other.device_number() != disk.device_number() => {
                return Err(format!(
                    "the kernel reads ahead by the setting of one device and schedules by that of another, {} and {}: vary one of the two",
                    other.path().display(),
                    disk.path().display()
                ));
            }
            _ => only = Some(disk.clone()),
        }
    }
    only.ok_or_else(|| "no setting is varied".to_owned())
}
