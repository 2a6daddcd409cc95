//! Block devices as sysfs describes them: their properties, and the devices below and above them.

mod health;
mod loop_device;
mod queues;
pub mod tool;
mod traffic;

pub(super) use loop_device::{
    BackingFiles, attached_backing_files, detach_backed_by, losetup_backing_files,
};
pub use loop_device::{LoopDevice, LoopError, loop_devices_on};
pub use traffic::{DiskCounters, TrafficMeter};

use super::mounts::Mounts;
use diskperf_timeline::{Device, DeviceHealth};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Unit of `size` in sysfs, in bytes, independent of the device's own block size.
const SECTOR_BYTES: u64 = 512;

/// Device number, by which the kernel identifies a device under any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// Major number, which identifies the driver; 0 is no driver.
    pub major: u32,
    /// Minor number, which identifies the device among those of the driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Converts from `st_dev` or `st_rdev` of a file status.
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

/// File number, by which the kernel identifies a file under any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileNumber {
    /// Device number of the file system that contains the file.
    pub(super) device: DeviceNumber,
    /// Inode number of the file within its file system.
    pub(super) inode: u64,
}

impl FileNumber {
    pub(super) fn from_status(status: &Stat) -> Self {
        Self {
            device: DeviceNumber::from_raw(status.st_dev),
            inode: status.st_ino,
        }
    }

    /// Returns the file number of an open file.
    ///
    /// # Errors
    ///
    /// The file's status cannot be read.
    pub(super) fn from_file(file: impl AsFd) -> io::Result<Self> {
        Ok(Self::from_status(&rustix::fs::fstat(file)?))
    }
}

/// Error for a text that is not a device number such as `254:0`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a device number: write MAJOR:MINOR, such as 254:0")]
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

/// Reason why a path is not a usable block device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Path that does not exist.
    #[error("{path} does not exist: `lsblk` lists the block devices")]
    NoSuchPath {
        /// Path that was looked up as a block device.
        path: PathBuf,
    },
    /// Path that leads to something other than a block device.
    #[error("{path} is not a block device: `lsblk` lists the block devices")]
    NotABlockDevice {
        /// Path that was looked up as a block device.
        path: PathBuf,
    },
    /// Device number that sysfs does not know: the device does not exist, or /sys is not mounted.
    #[error("block device {number} is not in /sys/dev/block: is sysfs mounted on /sys?")]
    NotInSysfs {
        /// Device number that was looked up in sysfs.
        number: DeviceNumber,
    },
    /// Device whose node or sysfs files could not be read.
    #[error("{path}: {source}")]
    Io {
        /// Path of the device, or of its file in sysfs.
        path: PathBuf,
        /// Error that the operating system returned.
        source: io::Error,
    },
}

impl DeviceError {
    fn from_io(path: &Path, source: impl Into<io::Error>) -> Self {
        let path = path.to_owned();
        match source.into() {
            source if source.kind() == io::ErrorKind::NotFound => Self::NoSuchPath { path },
            source => Self::Io { path, source },
        }
    }
}

/// Block device: a whole disk, a partition, or a virtual device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    path: PathBuf,
    number: DeviceNumber,
    name: String,
    sysfs_path: PathBuf,
}

impl BlockDevice {
    /// Returns the block device at a path, following links.
    ///
    /// # Errors
    ///
    /// The path does not exist, or is not a block device.
    pub fn from_path(path: &Path) -> Result<Self, DeviceError> {
        let resolved = path
            .canonicalize()
            .map_err(|error| DeviceError::from_io(path, error))?;
        let number = device_number_at(&resolved)
            .map_err(|error| DeviceError::from_io(&resolved, error))?
            .ok_or_else(|| DeviceError::NotABlockDevice {
                path: path.to_owned(),
            })?;
        Ok(Self {
            path: resolved,
            ..Self::from_number(number)?
        })
    }

    /// Returns the block device with a device number.
    ///
    /// # Errors
    ///
    /// The number is unknown to sysfs.
    pub fn from_number(number: DeviceNumber) -> Result<Self, DeviceError> {
        PathBuf::from(format!("/sys/dev/block/{number}"))
            .canonicalize()
            .ok()
            .and_then(|sysfs| Self::from_sysfs_path(sysfs, number))
            .ok_or(DeviceError::NotInSysfs { number })
    }

    /// Returns the whole disks that hold the file system of a file or directory, below partitions,
    /// device mapper, md and loop devices. They are sorted by name; none if no block device is
    /// underneath (tmpfs, NFS, overlay).
    ///
    /// # Errors
    ///
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn devices_of_directory(path: &Path) -> Result<Vec<Self>, DeviceError> {
        find_disks_under(
            devices_of_filesystem(path)?,
            LoopTraversal::FollowBackingFile,
        )
    }

    /// Returns the whole disks underneath this device, as [`Self::devices_of_directory`] finds them. A disk
    /// without devices underneath returns itself.
    ///
    /// # Errors
    ///
    /// sysfs cannot be read.
    pub fn underlying_disks(&self) -> Result<Vec<Self>, DeviceError> {
        find_disks_under(vec![self.clone()], LoopTraversal::FollowBackingFile)
    }

    /// Opens the device's node and checks that it still is the same device. `CLOEXEC` is added to
    /// `flags`.
    ///
    /// # Errors
    ///
    /// Permission is missing, the kernel refuses, or the node is now another device.
    pub fn open_device(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let opened = rustix::fs::open(&self.path, flags | OFlags::CLOEXEC, Mode::empty())?;
        if device_number_from_status(&rustix::fs::fstat(&opened)?) != Some(self.number) {
            return Err(io::Error::other(format!(
                "{} is no longer block device {}",
                self.path.display(),
                self.number
            )));
        }
        Ok(opened)
    }

    /// Returns the path of the device's node with links resolved, such as `/dev/vda`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the device number, major and minor.
    pub fn device_number(&self) -> DeviceNumber {
        self.number
    }

    /// Returns the kernel's name of the device, such as `vda1`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the device's directory in /sys/devices.
    pub fn sysfs_path(&self) -> &Path {
        &self.sysfs_path
    }

    /// Returns the size of the device in bytes; 0 for a drive without a medium.
    pub fn size_bytes(&self) -> u64 {
        self.number_attribute("size").unwrap_or(0) * SECTOR_BYTES
    }

    /// Returns the start of a partition on its disk, in sectors of 512 bytes; `None` for other
    /// devices.
    pub fn first_sector(&self) -> Option<u64> {
        self.number_attribute("start")
    }

    /// Reports whether the kernel refuses writes to the device; true if the kernel does not say.
    pub fn is_read_only(&self) -> bool {
        self.read_attribute("ro").as_deref() != Some("0")
    }

    /// Reports whether the device is a partition of a disk.
    pub fn is_partition(&self) -> bool {
        self.sysfs_path.join("partition").exists()
    }

    /// Returns the disk that contains this partition, or the device itself.
    ///
    /// # Errors
    ///
    /// The disk is unknown to sysfs.
    pub fn whole_disk(&self) -> Result<Self, DeviceError> {
        if !self.is_partition() {
            return Ok(self.clone());
        }
        self.sysfs_path
            .parent()
            .and_then(Self::from_sysfs)
            .ok_or(DeviceError::NotInSysfs {
                number: self.number,
            })
    }

    /// Returns the device's partitions that the kernel knows, by name.
    ///
    /// # Errors
    ///
    /// sysfs cannot be read.
    pub fn list_partitions(&self) -> Result<Vec<Self>, DeviceError> {
        let mut partitions = self.list_devices("")?;
        partitions.retain(Self::is_partition);
        Ok(partitions)
    }

    /// Returns the device mapper and md devices that are built on this device, by name.
    ///
    /// # Errors
    ///
    /// sysfs cannot be read.
    pub fn holder_devices(&self) -> Result<Vec<Self>, DeviceError> {
        self.list_devices("holders")
    }

    /// Returns the devices that a device mapper or md device is built on, by name.
    ///
    /// # Errors
    ///
    /// sysfs cannot be read.
    pub fn slave_devices(&self) -> Result<Vec<Self>, DeviceError> {
        self.list_devices("slaves")
    }

    /// Returns the path of a loop device's backing file; `None` for other devices.
    pub fn backing_file(&self) -> Option<PathBuf> {
        loop_device::backing_file(&self.sysfs_path)
    }

    /// Reports whether the disk has zones that must or should be written in order, which the kernel
    /// calls host-managed or host-aware.
    pub fn is_zoned(&self) -> bool {
        let disk = self.whole_disk().unwrap_or_else(|_| self.clone());
        let model = disk.read_attribute("queue/zoned");
        model.is_some_and(|model| model != "none")
    }

    /// Describes the device's properties that affect figures. A partition has the queue and name of
    /// its disk.
    pub fn describe(&self) -> Device {
        // A partition has no queue of its own.
        let disk = self.whole_disk().unwrap_or_else(|_| self.clone());
        Device {
            name: disk.name.clone(),
            model: disk.read_attribute("device/model"),
            size_bytes: disk.size_bytes(),
            is_rotational: disk
                .number_attribute("queue/rotational")
                .map(|flag| flag != 0),
            io_scheduler: disk
                .read_attribute("queue/scheduler")
                .map(|line| selected_word(&line).to_owned()),
            read_ahead_kib: disk.number_attribute("queue/read_ahead_kb"),
            queue_request_count_max: disk.number_attribute("queue/nr_requests"),
            request_kib_max: disk.number_attribute("queue/max_sectors_kb"),
            write_cache_mode: disk.read_attribute("queue/write_cache"),
            logical_block_bytes: disk.number_attribute("queue/logical_block_size"),
            physical_block_bytes: disk.number_attribute("queue/physical_block_size"),
            health: DeviceHealth::default(),
        }
    }

    /// Describes the device including its health. For root it queries the drive itself, which may
    /// take seconds.
    pub fn describe_with_health(&self) -> Device {
        let disk = self.whole_disk().unwrap_or_else(|_| self.clone());
        Device {
            health: health::read_health(&disk.sysfs_path.join("device"), &disk.path),
            ..self.describe()
        }
    }

    fn from_sysfs_path(sysfs: PathBuf, number: DeviceNumber) -> Option<Self> {
        let name = sysfs.file_name()?.to_str()?.to_owned();
        Some(Self {
            // The kernel writes the slash of names such as cciss/c0d0 so.
            path: Path::new("/dev").join(name.replace('!', "/")),
            number,
            name,
            sysfs_path: sysfs,
        })
    }

    /// Returns the device that a directory of /sys belongs to; `None` if it belongs to no device.
    pub(super) fn from_sysfs(directory: &Path) -> Option<Self> {
        let sysfs = directory.canonicalize().ok()?;
        let number = std::fs::read_to_string(sysfs.join("dev")).ok()?;
        Self::from_sysfs_path(sysfs, number.parse().ok()?)
    }

    /// Returns the block devices that a subdirectory of the device's sysfs directory lists.
    fn list_devices(&self, directory: &str) -> Result<Vec<Self>, DeviceError> {
        let directory = self.sysfs_path.join(directory);
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            // Partitions have no slaves.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(DeviceError::from_io(&directory, error)),
        };
        let mut devices = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| DeviceError::from_io(&directory, error))?;
            devices.extend(Self::from_sysfs(&entry.path()));
        }
        devices.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(devices)
    }

    fn read_attribute(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.sysfs_path.join(name)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number_attribute(&self, name: &str) -> Option<u64> {
        self.read_attribute(name)?.parse().ok()
    }
}

/// Returns the device number of the block device at a path; `None` if the path leads to something
/// else.
pub(super) fn device_number_at(path: &Path) -> io::Result<Option<DeviceNumber>> {
    Ok(device_number_from_status(&rustix::fs::stat(path)?))
}

pub(super) fn device_number_from_status(status: &Stat) -> Option<DeviceNumber> {
    let is_block = FileType::from_raw_mode(status.st_mode).is_block_device();
    is_block.then(|| DeviceNumber::from_raw(status.st_rdev))
}

/// Returns the devices from which a file's file system is mounted.
fn devices_of_filesystem(path: &Path) -> Result<Vec<BlockDevice>, DeviceError> {
    let status = rustix::fs::stat(path).map_err(|error| DeviceError::from_io(path, error))?;
    let number = DeviceNumber::from_raw(status.st_dev);
    if number.major != 0 {
        return Ok(vec![BlockDevice::from_number(number)?]);
    }
    // A number of no driver's: only the mount's source can name a device.
    let io_error = |error| DeviceError::from_io(path, error);
    let mounts = Mounts::read_mounts().map_err(io_error)?;
    let mount = mounts.mount_of_path(path).map_err(io_error)?;
    let Some(source) = mount.and_then(|mount| BlockDevice::from_path(&mount.mount_source).ok())
    else {
        return Ok(Vec::new());
    };
    Ok(btrfs_members(&source).unwrap_or_else(|| vec![source]))
}

/// Returns the devices of the mounted btrfs that contains a given member device.
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

/// Treatment of loop devices in a search for the disks underneath.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoopTraversal {
    /// Search continues below the backing file, for the disks that finally store the bytes.
    FollowBackingFile,
    /// Search stops at the loop device, for the queues that accept requests.
    StopAtLoop,
}

/// Follows devices down to disks without devices underneath.
fn find_disks_under(
    devices: Vec<BlockDevice>,
    loops: LoopTraversal,
) -> Result<Vec<BlockDevice>, DeviceError> {
    let mut disks = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut waiting = devices;
    while let Some(device) = waiting.pop() {
        let device = device.whole_disk()?;
        if !seen.insert(device.number) {
            continue;
        }
        let mut below = device.slave_devices()?;
        if loops == LoopTraversal::FollowBackingFile
            && let Some(file) = device.backing_file()
        {
            // The file may be deleted, or not be visible from here; the loop
            // device is then the deepest that can be told.
            below.extend(devices_of_filesystem(&file).unwrap_or_default());
        }
        if below.is_empty() {
            disks.insert(device.name.clone(), device);
        } else {
            waiting.extend(below);
        }
    }
    Ok(disks.into_values().collect())
}

/// Returns the word in brackets of a line such as `none [mq-deadline] kyber`, or the whole line.
fn selected_word(line: &str) -> &str {
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
            assert_eq!(selected_word(line), scheduler);
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
        let disks = BlockDevice::devices_of_directory(Path::new("/proc")).unwrap();
        assert_eq!(disks, []);
    }
}
