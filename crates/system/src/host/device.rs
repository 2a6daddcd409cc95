//! Block devices, as sysfs describes them: what they are, what they are made
//! of and what is made of them.

mod health;
mod loop_device;
mod queues;
pub mod tool;
mod traffic;

pub(super) use loop_device::{
    BackingFiles, attached_backing_files, detach_backed_by, losetup_backing_files,
};
pub use loop_device::{LoopDevice, LoopError};
pub use traffic::{Counters, TrafficMeter};

use super::mounts::Mounts;
use diskperf_timeline::{Device, Health};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The unit of `size` in sysfs, whatever the device's own block size is.
const SECTOR_BYTES: u64 = 512;

/// What identifies a device to the kernel, whatever its nodes are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver's number; 0 is no driver.
    pub major: u32,
    /// The device among those of the driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// From `st_dev` or `st_rdev` of a file.
    pub fn from_raw(device: u64) -> Self {
        Self {
            major: rustix::fs::major(device),
            minor: rustix::fs::minor(device),
        }
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.major, self.minor)
    }
}

/// What identifies a file to the kernel, whatever its names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileNumber {
    /// The device of its file system.
    pub(super) device: DeviceNumber,
    /// The file among those of the file system.
    pub(super) inode: u64,
}

impl FileNumber {
    /// From a file's status.
    pub(super) fn in_status(status: &Stat) -> Self {
        Self {
            device: DeviceNumber::from_raw(status.st_dev),
            inode: status.st_ino,
        }
    }

    /// Of an open file.
    pub(super) fn of(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::in_status(&rustix::fs::fstat(file)?))
    }
}

/// A text is not of the form `254:0`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a device number: it is written MAJOR:MINOR, as 254:0")]
pub struct DeviceNumberError(String);

impl FromStr for DeviceNumber {
    type Err = DeviceNumberError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.trim()
            .split_once(':')
            .and_then(|(major, minor)| {
                Some(Self {
                    major: major.parse().ok()?,
                    minor: minor.parse().ok()?,
                })
            })
            .ok_or_else(|| DeviceNumberError(text.to_owned()))
    }
}

/// Why a path is not a usable block device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Nothing has that name.
    #[error("{path} does not exist: `lsblk` lists the block devices")]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// It is something else.
    #[error("{path} is not a block device: `lsblk` lists the block devices")]
    NotABlockDevice {
        /// The path.
        path: PathBuf,
    },
    /// The kernel has no such device, or /sys is not mounted.
    #[error("block device {number} is not in /sys/dev/block: is sysfs mounted on /sys?")]
    NotInSysfs {
        /// Its number.
        number: DeviceNumber,
    },
    /// It could not be looked at.
    #[error("{path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl DeviceError {
    fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        let path = path.to_owned();
        match source.into() {
            source if source.kind() == io::ErrorKind::NotFound => Self::NoSuchPath { path },
            source => Self::Io { path, source },
        }
    }
}

/// A block device: a whole disk, a partition, or a virtual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    path: PathBuf,
    number: DeviceNumber,
    name: String,
    sysfs: PathBuf,
}

impl BlockDevice {
    /// The block device that a path names, links followed.
    ///
    /// # Errors
    /// The path does not exist, or is not a block device.
    pub fn from_path(path: &Path) -> Result<Self, DeviceError> {
        let resolved = path
            .canonicalize()
            .map_err(|error| DeviceError::io(path, error))?;
        let number = node_number(&resolved)
            .map_err(|error| DeviceError::io(&resolved, error))?
            .ok_or_else(|| DeviceError::NotABlockDevice {
                path: path.to_owned(),
            })?;
        Ok(Self {
            path: resolved,
            ..Self::from_number(number)?
        })
    }

    /// The block device with a number.
    ///
    /// # Errors
    /// sysfs does not know it.
    pub fn from_number(number: DeviceNumber) -> Result<Self, DeviceError> {
        PathBuf::from(format!("/sys/dev/block/{number}"))
            .canonicalize()
            .ok()
            .and_then(|sysfs| Self::at(sysfs, number))
            .ok_or(DeviceError::NotInSysfs { number })
    }

    /// The whole disks that hold the file system which a file or directory
    /// lies on, down through partitions, device mapper, md and loop devices;
    /// sorted by name, and empty where no block device is underneath (tmpfs,
    /// NFS, overlay).
    ///
    /// # Errors
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn of_directory(path: &Path) -> Result<Vec<Self>, DeviceError> {
        disks_under(directly_under(path)?, LoopDevices::SeenThrough)
    }

    /// The whole disks that this device lies on, as [`Self::of_directory`]
    /// finds them; a disk that lies on nothing is its own.
    ///
    /// # Errors
    /// sysfs cannot be read.
    pub fn underlying_disks(&self) -> Result<Vec<Self>, DeviceError> {
        disks_under(vec![self.clone()], LoopDevices::SeenThrough)
    }

    /// Opens its node, and makes sure that this still is the same device.
    /// `CLOEXEC` is added to `flags`.
    ///
    /// # Errors
    /// No permission, the kernel refuses, or the node is another device now.
    pub fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let opened = rustix::fs::open(&self.path, flags | OFlags::CLOEXEC, Mode::empty())?;
        if number_in(&rustix::fs::fstat(&opened)?) != Some(self.number) {
            return Err(io::Error::other(format!(
                "{} is no longer block device {}",
                self.path.display(),
                self.number
            )));
        }
        Ok(opened)
    }

    /// Its node, links resolved, as `/dev/vda`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The kernel's number of it.
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// The kernel's name of it, as `vda1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its directory in /sys/devices.
    pub fn sysfs(&self) -> &Path {
        &self.sysfs
    }

    /// Its size in bytes; 0 of a drive without a medium.
    pub fn size_bytes(&self) -> u64 {
        self.number_attribute("size").unwrap_or(0) * SECTOR_BYTES
    }

    /// Of a partition, where it begins on its disk, in sectors of 512 bytes.
    pub fn first_sector(&self) -> Option<u64> {
        self.number_attribute("start")
    }

    /// Whether the kernel refuses writes to it; taken for true where the
    /// kernel does not say.
    pub fn is_read_only(&self) -> bool {
        self.attribute("ro").as_deref() != Some("0")
    }

    /// Whether it is a partition of a disk.
    pub fn is_partition(&self) -> bool {
        self.sysfs.join("partition").exists()
    }

    /// The disk that this is a partition of, or the device itself.
    ///
    /// # Errors
    /// sysfs does not know the disk.
    pub fn whole_disk(&self) -> Result<Self, DeviceError> {
        if !self.is_partition() {
            return Ok(self.clone());
        }
        self.sysfs
            .parent()
            .and_then(Self::from_sysfs)
            .ok_or(DeviceError::NotInSysfs {
                number: self.number,
            })
    }

    /// The partitions of it that the kernel knows, by name.
    ///
    /// # Errors
    /// sysfs cannot be read.
    pub fn partitions(&self) -> Result<Vec<Self>, DeviceError> {
        let mut partitions = self.listed("")?;
        partitions.retain(Self::is_partition);
        Ok(partitions)
    }

    /// The device mapper and md devices that are made of it, by name.
    ///
    /// # Errors
    /// sysfs cannot be read.
    pub fn holders(&self) -> Result<Vec<Self>, DeviceError> {
        self.listed("holders")
    }

    /// The devices that a device mapper or md device is made of, by name.
    ///
    /// # Errors
    /// sysfs cannot be read.
    pub fn slaves(&self) -> Result<Vec<Self>, DeviceError> {
        self.listed("slaves")
    }

    /// The file that a loop device shows; `None` of any other device.
    pub fn backing_file(&self) -> Option<PathBuf> {
        loop_device::backing_file(&self.sysfs)
    }

    /// Whether the disk has zones of its own that are written in order, which the kernel calls
    /// host-managed or host-aware.
    pub fn is_zoned(&self) -> bool {
        let disk = self.whole_disk().unwrap_or_else(|_| self.clone());
        let model = disk.attribute("queue/zoned");
        model.is_some_and(|model| model != "none")
    }

    /// What bears on figures; of a partition, its disk's queue and name.
    pub fn describe(&self) -> Device {
        // A partition has no queue of its own.
        let disk = self.whole_disk().unwrap_or_else(|_| self.clone());
        Device {
            name: disk.name.clone(),
            model: disk.attribute("device/model"),
            size_bytes: disk.size_bytes(),
            rotational: disk
                .number_attribute("queue/rotational")
                .map(|flag| flag != 0),
            scheduler: disk
                .attribute("queue/scheduler")
                .map(|line| chosen(&line).to_owned()),
            read_ahead_kib: disk.number_attribute("queue/read_ahead_kb"),
            queue_requests: disk.number_attribute("queue/nr_requests"),
            max_request_kib: disk.number_attribute("queue/max_sectors_kb"),
            write_cache: disk.attribute("queue/write_cache"),
            logical_block_bytes: disk.number_attribute("queue/logical_block_size"),
            physical_block_bytes: disk.number_attribute("queue/physical_block_size"),
            health: Health::default(),
        }
    }

    /// The same, with how it fares; as root, the drive itself is asked, which may take
    /// seconds.
    pub fn describe_with_health(&self) -> Device {
        let disk = self.whole_disk().unwrap_or_else(|_| self.clone());
        Device {
            health: health::of(&disk.sysfs.join("device"), &disk.path),
            ..self.describe()
        }
    }

    fn at(sysfs: PathBuf, number: DeviceNumber) -> Option<Self> {
        let name = sysfs.file_name()?.to_str()?.to_owned();
        Some(Self {
            // The kernel writes the slash of names such as cciss/c0d0 so.
            path: Path::new("/dev").join(name.replace('!', "/")),
            number,
            name,
            sysfs,
        })
    }

    /// The device of a directory of /sys; `None` where it is no device's.
    pub(super) fn from_sysfs(directory: &Path) -> Option<Self> {
        let sysfs = directory.canonicalize().ok()?;
        let number = std::fs::read_to_string(sysfs.join("dev")).ok()?;
        Self::at(sysfs, number.parse().ok()?)
    }

    /// The block devices that a directory below the device's own lists.
    fn listed(&self, directory: &str) -> Result<Vec<Self>, DeviceError> {
        let directory = self.sysfs.join(directory);
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            // Partitions have no slaves.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(DeviceError::io(&directory, error)),
        };
        let mut devices = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| DeviceError::io(&directory, error))?;
            devices.extend(Self::from_sysfs(&entry.path()));
        }
        devices.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(devices)
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.sysfs.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number_attribute(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }
}

/// The number of the block device that a path names; `None` where it names
/// something else.
pub(super) fn node_number(path: &Path) -> io::Result<Option<DeviceNumber>> {
    Ok(number_in(&rustix::fs::stat(path)?))
}

pub(super) fn number_in(status: &Stat) -> Option<DeviceNumber> {
    let is_block = FileType::from_raw_mode(status.st_mode).is_block_device();
    is_block.then(|| DeviceNumber::from_raw(status.st_rdev))
}

/// The devices that a file's file system is mounted from.
fn directly_under(path: &Path) -> Result<Vec<BlockDevice>, DeviceError> {
    let status = rustix::fs::stat(path).map_err(|error| DeviceError::io(path, error))?;
    let number = DeviceNumber::from_raw(status.st_dev);
    if number.major != 0 {
        return Ok(vec![BlockDevice::from_number(number)?]);
    }
    // A number of no driver's: only the mount's source can name a device.
    let io_error = |error| DeviceError::io(path, error);
    let mounts = Mounts::read().map_err(io_error)?;
    let mount = mounts.of_path(path).map_err(io_error)?;
    let Some(source) = mount.and_then(|mount| BlockDevice::from_path(&mount.source).ok()) else {
        return Ok(Vec::new());
    };
    Ok(btrfs_members(&source).unwrap_or_else(|| vec![source]))
}

/// The devices of the mounted btrfs that a device is a member of.
fn btrfs_members(member: &BlockDevice) -> Option<Vec<BlockDevice>> {
    std::fs::read_dir("/sys/fs/btrfs")
        .ok()?
        .flatten()
        .map(|filesystem| filesystem.path().join("devices"))
        .find(|devices| devices.join(&member.name).exists())
        .and_then(|devices| std::fs::read_dir(devices).ok())
        .map(|members| {
            members
                .flatten()
                .filter_map(|entry| BlockDevice::from_sysfs(&entry.path()))
                .collect()
        })
}

/// Whether what a loop device's file lies on counts as below it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopDevices {
    /// It does: the disks that the bytes end up on are looked for.
    SeenThrough,
    /// It does not: the queues that take requests are looked for.
    AreDisks,
}

/// Follows devices down to disks that are made of nothing else.
fn disks_under(
    devices: Vec<BlockDevice>,
    loops: LoopDevices,
) -> Result<Vec<BlockDevice>, DeviceError> {
    let mut disks = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut waiting = devices;
    while let Some(device) = waiting.pop() {
        let device = device.whole_disk()?;
        if !seen.insert(device.number) {
            continue;
        }
        let mut below = device.slaves()?;
        if loops == LoopDevices::SeenThrough
            && let Some(file) = device.backing_file()
        {
            // The file may be deleted, or not be visible from here; the loop
            // device is then the deepest that can be told.
            below.extend(directly_under(&file).unwrap_or_default());
        }
        if below.is_empty() {
            disks.insert(device.name.clone(), device);
        } else {
            waiting.extend(below);
        }
    }
    Ok(disks.into_values().collect())
}

/// The word in brackets of `none [mq-deadline] kyber`, or the whole line.
fn chosen(line: &str) -> &str {
    line.split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(line, |(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_read_and_written() {
        for (text, major, minor) in [
            ("254:0", 254, 0),
            ("8:17\n", 8, 17),
            ("259:1048575", 259, 1_048_575),
        ] {
            let number: DeviceNumber = text.parse().unwrap();
            assert_eq!(number, DeviceNumber { major, minor });
            assert_eq!(number.to_string(), text.trim());
        }
        for text in ["", "8", "8:", "a:1", "8:1:2"] {
            let error = text.parse::<DeviceNumber>().unwrap_err();
            assert!(error.to_string().contains("MAJOR:MINOR"), "{error}");
        }
    }

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        for (line, scheduler) in [
            ("[none] mq-deadline kyber", "none"),
            ("none [mq-deadline] kyber", "mq-deadline"),
            ("none", "none"),
        ] {
            assert_eq!(chosen(line), scheduler);
        }
    }

    #[test]
    fn what_is_no_block_device_is_refused_by_name() {
        for (path, reason) in [
            ("/dev/null", "is not a block device"),
            ("/", "is not a block device"),
            ("/no/such/device", "does not exist"),
        ] {
            let error = BlockDevice::from_path(Path::new(path)).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains(path) && message.contains(reason),
                "{message}"
            );
        }
    }

    #[test]
    fn a_memory_file_system_has_no_disks() {
        let disks = BlockDevice::of_directory(Path::new("/proc")).unwrap();
        assert_eq!(disks, []);
    }
}
