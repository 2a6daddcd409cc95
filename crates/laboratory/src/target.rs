//! Target of a run on real storage, inspected without changes.

use diskperf_battery::Medium;
use diskperf_models::LaboratoryError;
use diskperf_models::plan::job_file::RESERVE_BYTES;
use diskperf_system::host::device::{BlockDevice, DeviceNumber};
use diskperf_system::host::environment;
use diskperf_system::host::page_cache::{
    DirectSupport, direct_io_support, direct_io_support_in_directory,
};
use diskperf_system::host::safety::claim_for_writing;
use diskperf_timeline::units::format_size;
use diskperf_timeline::{Experiment, TargetDescription};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A directory, a file or a block device that a run uses.
#[derive(Clone, Debug)]
pub struct StorageTarget {
    pub(crate) typed_path: PathBuf,
    /// Absolute path of the target, without links.
    pub(crate) resolved_path: PathBuf,
    /// Kind of the target: directory, file or device.
    pub(crate) medium: Medium,
    /// Path by which the user gave up the data of this device; `None` if the data must stay.
    pub(crate) destroyed_device: Option<PathBuf>,
    /// Whether to continue although the device carries a signature.
    pub(crate) ignore_signature: bool,
    /// Whether the target is [`NULL_TARGET`].
    pub(crate) is_null: bool,
    pub(crate) device: Option<BlockDevice>,
    file_bytes: u64,
    /// File system of the target and the disks below it.
    pub(crate) location: TargetDescription,
}

/// Name of a target without storage: requests complete as they are submitted, and only the cost of
/// generating load remains. A directory of that name is written `./null`.
pub(crate) const NULL_TARGET: &str = "null";
/// Length of the null target in bytes. It exceeds that of any drive, so that offsets on a large
/// drive lie within it.
const NULL_TARGET_BYTES: u64 = 1 << 44;

impl StorageTarget {
    /// Inspects the target at a path without changing anything.
    pub(crate) fn inspect(typed: &Path, experiment: &Experiment) -> Result<Self, LaboratoryError> {
        if typed == Path::new(NULL_TARGET) {
            return Ok(Self::new_null());
        }
        let name = typed.display();
        let unreachable = |error: std::io::Error| {
            LaboratoryError::Request(format!(
                "target {name}: {error}; give a directory, a file or a block device that exists and that you may look into"
            ))
        };
        let path = typed.canonicalize().map_err(|error| {
            if typed.extension().is_some_and(|extension| extension == "toml") {
                LaboratoryError::Request(format!(
                    "target {name}: {error}; write a system of your own into it, which begins with `extends = \"vax780-sc780-eagle\"` (`diskperf list systems` names all)"
                ))
            } else {
                unreachable(error)
            }
        })?;
        let kind = path.metadata().map_err(unreachable)?.file_type();
        if kind.is_block_device() {
            Self::inspect_device(typed, path, experiment)
        } else if kind.is_dir() {
            Self::inspect_directory(typed, path)
        } else if kind.is_file() {
            Self::inspect_file(typed, path)
        } else {
            Err(LaboratoryError::Request(format!(
                "target {name} is neither a directory nor a file nor a block device; give the directory to measure in, or what to read"
            )))
        }
    }

    fn new_null() -> Self {
        Self {
            typed_path: NULL_TARGET.into(),
            resolved_path: NULL_TARGET.into(),
            medium: Medium::Device,
            destroyed_device: None,
            ignore_signature: false,
            is_null: true,
            device: None,
            file_bytes: NULL_TARGET_BYTES,
            location: TargetDescription::default(),
        }
    }

    fn inspect_device(
        typed: &Path,
        path: PathBuf,
        experiment: &Experiment,
    ) -> Result<Self, LaboratoryError> {
        let device = BlockDevice::from_path(&path).map_err(LaboratoryError::request)?;
        // What would refuse the run refuses it here, before anything is done.
        // The claim itself is taken again, and kept, when the run starts.
        let named = experiment
            .destroy_data_on
            .iter()
            .find(|named| Self::device_number(named) == Some(device.device_number()));
        if let Some(named) = named {
            claim_for_writing(&device, named, experiment.ignores_signature)
                .map_err(LaboratoryError::request)?;
        }
        // The layers that need no device are measured first, and would be in vain.
        std::fs::File::open(&path).map_err(|error| {
            let remedy = if diskperf_system::host::is_root() {
                "a container denies access to it even to root: give the container the device"
            } else {
                "reading a device needs root, or its group: use sudo"
            };
            LaboratoryError::Request(format!(
                "target {}: {error}; {remedy}, or name a directory of your own on it",
                typed.display()
            ))
        })?;
        Ok(Self {
            typed_path: typed.to_owned(),
            medium: Medium::Device,
            destroyed_device: named.cloned(),
            ignore_signature: experiment.ignores_signature,
            is_null: false,
            location: environment::describe_target(&path),
            device: Some(device),
            file_bytes: 0,
            resolved_path: path,
        })
    }

    fn inspect_file(typed: &Path, path: PathBuf) -> Result<Self, LaboratoryError> {
        let file_bytes = std::fs::File::open(&path)
            .and_then(|file| file.metadata())
            .map_err(|error| {
                LaboratoryError::Request(format!("target {}: {error}", typed.display()))
            })?
            .len();
        if file_bytes == 0 {
            return Err(LaboratoryError::Request(format!(
                "target {} is an empty file, so there is nothing to read: name one with data in it, or a directory, where diskperf makes its own",
                typed.display()
            )));
        }
        Ok(Self {
            typed_path: typed.to_owned(),
            medium: Medium::File,
            destroyed_device: None,
            ignore_signature: false,
            is_null: false,
            location: environment::describe_target(&path),
            device: None,
            file_bytes,
            resolved_path: path,
        })
    }

    fn inspect_directory(typed: &Path, path: PathBuf) -> Result<Self, LaboratoryError> {
        let place = environment::describe_target(&path);
        if place.filesystem.is_none() {
            return Err(LaboratoryError::Request(format!(
                "target {}: the kernel does not say which file system it is on",
                typed.display()
            )));
        }
        Ok(Self {
            typed_path: typed.to_owned(),
            medium: Medium::Directory,
            destroyed_device: None,
            ignore_signature: false,
            is_null: false,
            location: place,
            device: None,
            file_bytes: 0,
            resolved_path: path,
        })
    }

    pub(crate) fn device_number(path: &Path) -> Option<DeviceNumber> {
        let metadata = path.metadata().ok()?;
        metadata
            .file_type()
            .is_block_device()
            .then(|| DeviceNumber::from_raw(metadata.rdev()))
    }

    /// Reports whether programs may write to the target: always in a directory, on a device only if
    /// its data was given up.
    pub(crate) fn is_writable(&self) -> bool {
        self.medium == Medium::Directory || self.destroyed_device.is_some() || self.is_null
    }

    /// Name of the target, as the user gave it.
    pub fn name(&self) -> String {
        self.typed_path.display().to_string()
    }

    /// Kind and block size of the file system, or name of the device.
    pub(crate) fn filesystem_name(&self) -> String {
        match (&self.location.filesystem, &self.device) {
            (Some(filesystem), _) => {
                format!("{}/{}", filesystem.filesystem_type, filesystem.block_bytes)
            }
            (None, Some(device)) => device.name().to_owned(),
            (None, None) => self.name(),
        }
    }

    /// Bytes that a run may use on the target: the free space of a directory, the whole length of a
    /// file or device.
    pub(crate) fn free_bytes(&self) -> u64 {
        match (self.medium, &self.location.filesystem, &self.device) {
            (Medium::File, ..) => self.file_bytes,
            _ if self.is_null => self.file_bytes,
            (_, Some(filesystem), _) => filesystem.available_bytes.saturating_sub(RESERVE_BYTES),
            (_, None, Some(device)) => device.size_bytes(),
            (_, None, None) => 0,
        }
    }

    /// Space for files whose size a pilot finds, in bytes. It is a tenth of the free space on a
    /// file system in use.
    pub(crate) fn pilot_bytes(&self) -> u64 {
        match self.medium {
            Medium::Directory => self.free_bytes() / 10,
            Medium::Device | Medium::File => self.free_bytes(),
        }
    }

    /// Verifies that a pilot has enough space for its smallest files.
    pub(crate) fn check_pilot_space(
        &self,
        needed_bytes: u64,
        remedy: &str,
    ) -> Result<(), LaboratoryError> {
        if needed_bytes <= self.pilot_bytes() {
            return Ok(());
        }
        if let Some(none) = self.describe_lack_of_space() {
            return Err(LaboratoryError::Request(none));
        }
        Err(LaboratoryError::Request(match self.medium {
            Medium::Directory => format!(
                "not enough space on {}: {} needed for the pilot run that finds the size, which takes at most {} there (a tenth of the free space); {remedy}",
                self.name(),
                format_size(needed_bytes),
                format_size(self.pilot_bytes()),
            ),
            Medium::Device | Medium::File => self.describe_shortage(needed_bytes, remedy),
        }))
    }

    /// Returns an error text for a directory on a file system without any free space, such as
    /// `/proc`.
    fn describe_lack_of_space(&self) -> Option<String> {
        let filesystem = self.location.filesystem.as_ref()?;
        (self.medium == Medium::Directory && filesystem.available_bytes == 0).then(|| {
            format!(
                "not enough space on {}: its file system ({}) has none free; name a directory on another one",
                self.name(),
                filesystem.filesystem_type
            )
        })
    }

    /// Returns an error text for a file or device that is shorter than the part that programs read.
    fn describe_shortage(&self, needed_bytes: u64, remedy: &str) -> String {
        let (kind, longer) = match self.medium {
            Medium::Device => ("device", "device"),
            Medium::Directory | Medium::File => ("file", "file, or a directory"),
        };
        let job_file = match self.name().ends_with(".fio") {
            true => {
                "; a job file is run by `run FILE`, and explained by `explain TARGET --suite FILE`"
            }
            false => "",
        };
        format!(
            "{} is too short: the {kind} has {}, and {} of it are needed; name a longer {longer}, or {remedy}{job_file}",
            self.name(),
            format_size(self.free_bytes()),
            format_size(needed_bytes),
        )
    }

    /// Returns the reason why programs may not write to the target.
    pub(crate) fn describe_write_refusal(&self) -> String {
        let name = self.name();
        match self.medium {
            Medium::Device => format!(
                "it writes, and would destroy the data on {name}: add --destroy-data-on {name} if nobody needs the data"
            ),
            Medium::Directory | Medium::File => {
                format!("it writes, and {name} is a file of yours: give a directory")
            }
        }
    }

    /// Reports whether two paths lie on one mounted file system.
    pub(crate) fn are_on_same_filesystem(left: &Path, right: &Path) -> bool {
        let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
        device(left).is_some() && device(left) == device(right)
    }

    /// Verifies that files of this many bytes fit on the target. `remedy` describes a way to make
    /// them smaller.
    pub(crate) fn check_space(
        &self,
        needed_bytes: u64,
        remedy: &str,
    ) -> Result<(), LaboratoryError> {
        let room_bytes = self.free_bytes();
        if needed_bytes <= room_bytes {
            return Ok(());
        }
        if self.medium == Medium::Directory && environment::is_read_only(&self.resolved_path) {
            return Err(LaboratoryError::Request(format!(
                "{} is on a read-only file system: name a directory that can be written",
                self.name()
            )));
        }
        if let Some(none) = self.describe_lack_of_space() {
            return Err(LaboratoryError::Request(none));
        }
        Err(LaboratoryError::Request(match self.medium {
            Medium::Directory => format!(
                "not enough space on {}: {} needed, {} there beside a reserve of 16 MiB; {remedy}",
                self.name(),
                format_size(needed_bytes),
                format_size(room_bytes),
            ),
            Medium::Device | Medium::File => self.describe_shortage(needed_bytes, remedy),
        }))
    }

    /// Returns the reason why O_DIRECT calls of this size cannot work on the target; `None` if they
    /// can.
    pub(crate) fn find_direct_obstacle(&self, call_bytes: u64) -> Option<String> {
        let name = self.name();
        let opened = std::fs::File::open(&self.resolved_path).ok()?;
        let support = match direct_io_support(opened.as_fd()).ok()? {
            DirectSupport::DirectUnknown if self.medium == Medium::Directory => {
                direct_io_support_in_directory(&self.resolved_path).ok()?
            }
            support => support,
        };
        let alignment_bytes = match support {
            DirectSupport::DirectUnsupported { why } => {
                return Some(format!(
                    "O_DIRECT does not bypass the page cache on {name}: {why}"
                ));
            }
            DirectSupport::DirectSupported {
                offset_alignment, ..
            } => Some(offset_alignment),
            DirectSupport::DirectUnknown => self
                .location
                .devices
                .iter()
                .filter_map(|device| device.logical_block_bytes)
                .max(),
        };
        let alignment_bytes = alignment_bytes.filter(|bytes| *bytes > 0)?;
        (!call_bytes.is_multiple_of(alignment_bytes)).then(|| {
            format!(
                "O_DIRECT on {name} needs offsets and lengths in multiples of {alignment_bytes} bytes, and these are in multiples of {call_bytes}"
            )
        })
    }

    /// Describes the use of this target for `--dry-run`.
    pub(crate) fn describe_effect(&self, fresh: bool) -> String {
        let name = self.name();
        if self.is_null {
            return format!("{name}: no storage; requests complete as they are submitted");
        }
        match (self.medium, &self.location.filesystem) {
            (Medium::Directory, Some(filesystem)) => format!(
                "{name}: a new folder of its own{}, removed at the end; {} on {}, {} free",
                if fresh {
                    " with an image file in it"
                } else {
                    ""
                },
                filesystem.filesystem_type,
                filesystem.mount_source,
                format_size(filesystem.available_bytes),
            ),
            _ if self.is_writable() => format!("{name}: THE DATA ON THIS DEVICE IS OVERWRITTEN"),
            _ => format!("{name}: only read"),
        }
    }
}
