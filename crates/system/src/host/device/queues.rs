//! The devices whose request queues a file system's requests go through.

use super::{BlockDevice, DeviceError, directly_under};
use std::collections::{BTreeMap, BTreeSet};
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
        queues(directly_under(path)?)
    }

    /// The same of a device.
    ///
    /// # Errors
    /// sysfs cannot be read.
    pub fn own_queues(&self) -> Result<Vec<Self>, DeviceError> {
        queues(vec![self.clone()])
    }
}

fn queues(devices: Vec<BlockDevice>) -> Result<Vec<BlockDevice>, DeviceError> {
    let mut disks = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut waiting = devices;
    while let Some(device) = waiting.pop() {
        let device = device.whole_disk()?;
        if !seen.insert(device.number) {
            continue;
        }
        let below = device.slaves()?;
        if below.is_empty() {
            disks.insert(device.name.clone(), device);
        } else {
            waiting.extend(below);
        }
    }
    Ok(disks.into_values().collect())
}
