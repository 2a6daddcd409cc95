//! The machine and the places that a run was measured on, as far as they bear
//! on its figures.

use serde::{Deserialize, Serialize};

/// A file system as the kernel has it mounted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filesystem {
    /// Its kind, as `ext4`.
    pub kind: String,
    /// What it is mounted from, as `/dev/vda`.
    pub source: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Mount options of the mount and of the file system.
    pub mount_options: String,
    /// Bytes in one of its blocks.
    pub block_bytes: u64,
    /// Its size.
    pub total_bytes: u64,
    /// What an ordinary user may still write.
    pub available_bytes: u64,
}

/// A block device as sysfs describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// The kernel's name, as `nvme0n1`; of a partition, the whole disk's.
    pub name: String,
    /// The vendor's model, where the device says it.
    pub model: Option<String>,
    /// Its size.
    pub size_bytes: u64,
    /// Whether the kernel takes it for a rotating disk.
    pub rotational: Option<bool>,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Read-ahead of the device in KiB.
    pub read_ahead_kib: Option<u64>,
    /// Requests that the queue holds.
    pub queue_requests: Option<u64>,
    /// The largest request in KiB.
    pub max_request_kib: Option<u64>,
    /// `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The smallest addressable unit.
    pub logical_block_bytes: Option<u64>,
    /// The unit that is written without a read.
    pub physical_block_bytes: Option<u64>,
    /// How it fares, as far as it or its kernel tells.
    #[serde(default, skip_serializing_if = "Health::is_unknown")]
    pub health: Health,
}

/// How a device fares: a worn or a throttled one explains more of a figure than any
/// statistic does. What nobody tells is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Health {
    /// The version of its firmware.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Degrees Celsius when the run started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// How much of its endurance it has used, in percent by the vendor's reckoning; it
    /// may be above 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear_percent: Option<f64>,
    /// Errors of the medium that it could not correct, in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_errors: Option<u64>,
}

impl Health {
    /// Whether nothing is known of it.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// One place that a run used: a directory or a block device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// As the user named it, made absolute.
    pub path: String,
    /// The file system of a directory.
    pub filesystem: Option<Filesystem>,
    /// The devices underneath, whole disks.
    pub devices: Vec<Device>,
}

/// The machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The kernel's name and release.
    pub kernel: String,
    /// The CPU's model.
    pub cpu_model: String,
    /// CPUs that diskperf may use.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Load average over one minute when the run started.
    pub load_average: f64,
    /// The clock that times single calls: `tsc` or `clock_gettime`.
    pub call_clock: String,
    /// The places, in the order of the drives.
    pub places: Vec<Place>,
}
