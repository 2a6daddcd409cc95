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
}
