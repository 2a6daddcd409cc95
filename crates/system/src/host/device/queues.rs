//! The devices whose request queues a file system's requests go through.

use super::{BlockDevice, DeviceError, LoopDevices, directly_under, disks_under};
use std::path::Path;

impl BlockDevice {
    /// The disks that get the requests of the file system which a path lies
    /// on, down through partitions, device mapper and md; sorted by name, and
    /// empty where no block device is underneath. A loop device is such a disk:
    /// what it asks of the file system below is its own affair.
    ///
    /// # Errors
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn queues_under(path: &Path) -> Result<Vec<Self>, DeviceError> {
        disks_under(directly_under(path)?, LoopDevices::AreDisks)
    }

    /// The disks whose request queues serve this device.
    ///
    /// # Errors
    /// sysfs cannot be read.
    pub fn own_queues(&self) -> Result<Vec<Self>, DeviceError> {
        disks_under(vec![self.clone()], LoopDevices::AreDisks)
    }

    /// The disks whose `read_ahead_kb` the kernel heeds for a file, a directory or a
    /// block device: the device itself, or what the file system is mounted from. A
    /// device mapper or md device is one, and not what it is made of.
    ///
    /// # Errors
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn read_ahead_of(path: &Path) -> Result<Vec<Self>, DeviceError> {
        let devices = match Self::from_path(path) {
            Ok(device) => vec![device],
            Err(_) => directly_under(path)?,
        };
        let disks: Result<Vec<_>, _> = devices.iter().map(Self::whole_disk).collect();
        let mut disks = disks?;
        disks.sort_by(|a, b| a.name.cmp(&b.name));
        disks.dedup();
        Ok(disks)
    }

    /// The disks whose `scheduler` orders the requests for a file, a directory or a
    /// block device.
    ///
    /// # Errors
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn scheduled_for(path: &Path) -> Result<Vec<Self>, DeviceError> {
        match Self::from_path(path) {
            Ok(device) => device.own_queues(),
            Err(_) => Self::queues_under(path),
        }
    }
}
