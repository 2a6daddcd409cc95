//! Devices whose request queues serve a path or a device.

use super::{BlockDevice, DeviceError, LoopTraversal, devices_of_filesystem, find_disks_under};
use std::path::Path;

impl BlockDevice {
    /// Returns the disks that receive the requests of a path's file system, below partitions,
    /// device mapper and md. They are sorted by name; none if no block device is underneath. A loop
    /// device is such a disk, and the file system of its backing file is not followed.
    ///
    /// # Errors
    ///
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn request_queues_under(path: &Path) -> Result<Vec<Self>, DeviceError> {
        find_disks_under(devices_of_filesystem(path)?, LoopTraversal::StopAtLoop)
    }

    /// Returns the disks whose request queues serve this device.
    ///
    /// # Errors
    ///
    /// sysfs cannot be read.
    pub fn request_queues_of_device(&self) -> Result<Vec<Self>, DeviceError> {
        find_disks_under(vec![self.clone()], LoopTraversal::StopAtLoop)
    }

    /// Returns the disks whose `read_ahead_kb` applies to a file, directory or block device: the
    /// device itself, or the source of the mounted file system. For device mapper and md this is
    /// the upper device, not those underneath.
    ///
    /// # Errors
    ///
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn read_ahead_devices(path: &Path) -> Result<Vec<Self>, DeviceError> {
        let devices = match Self::from_path(path) {
            Ok(device) => vec![device],
            Err(_) => devices_of_filesystem(path)?,
        };
        let disks: Result<Vec<_>, _> = devices.iter().map(Self::whole_disk).collect();
        let mut disks = disks?;
        disks.sort_by(|a, b| a.name.cmp(&b.name));
        disks.dedup();
        Ok(disks)
    }

    /// Returns the disks whose `scheduler` orders the requests for a file, directory or block
    /// device.
    ///
    /// # Errors
    ///
    /// The path cannot be reached, or mountinfo or sysfs cannot be read.
    pub fn scheduler_devices(path: &Path) -> Result<Vec<Self>, DeviceError> {
        match Self::from_path(path) {
            Ok(device) => device.request_queues_of_device(),
            Err(_) => Self::request_queues_under(path),
        }
    }
}
