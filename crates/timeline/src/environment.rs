//! Description of the machine, file systems and devices that a run was measured on, as far as they
//! affect its figures.

use crate::cap_probe::KnownLimit;
use serde::{Deserialize, Serialize};

/// Mounted file system, with the kernel's view of its type, source, options and size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filesystem {
    /// Type of the file system, such as `ext4`.
    #[serde(rename = "kind")]
    pub filesystem_type: String,
    /// Source that the file system is mounted from, such as `/dev/vda`.
    #[serde(rename = "source")]
    pub mount_source: String,
    /// Directory that the file system is mounted on.
    pub mount_point: String,
    /// Mount options, both of the mount and of the file system.
    pub mount_options: String,
    /// Block size of the file system in bytes.
    pub block_bytes: u64,
    /// Size of the file system in bytes.
    pub total_bytes: u64,
    /// Free bytes that an unprivileged user may still write.
    pub available_bytes: u64,
}

/// Block device as sysfs describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Kernel name of the block device, such as `nvme0n1`. A partition has the name of its whole
    /// disk.
    pub name: String,
    /// Model name that the vendor gives the device, if the device reports it.
    pub model: Option<String>,
    /// Size of the block device in bytes.
    pub size_bytes: u64,
    /// Whether the kernel treats the device as a rotating disk.
    #[serde(rename = "rotational")]
    pub is_rotational: Option<bool>,
    /// I/O scheduler that the device's queue uses.
    #[serde(rename = "scheduler")]
    pub io_scheduler: Option<String>,
    /// Read-ahead size of the device in KiB.
    pub read_ahead_kib: Option<u64>,
    /// Maximum number of requests in the device's queue.
    #[serde(rename = "queue_requests")]
    pub queue_request_count_max: Option<u64>,
    /// Maximum size of one request to the device, in KiB.
    #[serde(rename = "max_request_kib")]
    pub request_kib_max: Option<u64>,
    /// Write cache mode of the device: `write back` or `write through`.
    #[serde(rename = "write_cache")]
    pub write_cache_mode: Option<String>,
    /// Logical block size of the device in bytes: its smallest addressable unit.
    pub logical_block_bytes: Option<u64>,
    /// Physical block size of the device in bytes: the unit that it writes without a read first.
    pub physical_block_bytes: Option<u64>,
    /// Health of the device, as far as the device or its kernel reports it.
    #[serde(default, skip_serializing_if = "DeviceHealth::is_unknown")]
    pub health: DeviceHealth,
}

/// Health of a device. A worn or throttled device explains more of a figure than any statistic.
/// Facts that nothing reports are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceHealth {
    /// Firmware version of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Device temperature in degrees Celsius at the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_c: Option<f64>,
    /// Used share of the device's rated endurance in percent, by the vendor's estimate; it may
    /// exceed 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wear_percent: Option<f64>,
    /// Media errors that the device could not correct, over its lifetime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "media_errors")]
    pub media_error_count: Option<u64>,
}

impl DeviceHealth {
    /// Reports whether nothing is known of the device's health.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Directory or block device that a run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetDescription {
    /// Absolute path of the directory or block device, as the user named it.
    pub path: String,
    /// File system that holds the directory; `None` for a block device.
    pub filesystem: Option<Filesystem>,
    /// Block devices underneath the directory, as whole disks.
    pub devices: Vec<Device>,
}

/// Machine that a run was measured on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Name and release of the kernel.
    #[serde(rename = "kernel")]
    pub kernel_version: String,
    /// Model name of the CPU.
    pub cpu_model: String,
    /// Number of CPUs that diskperf may use.
    #[serde(rename = "cpus")]
    pub cpu_count: u32,
    /// Main memory of the machine in bytes.
    pub memory_bytes: u64,
    /// Load average over one minute at the start of the run.
    pub load_average: f64,
    /// Clock that times single calls: `tsc` or `clock_gettime`.
    pub call_clock: String,
    /// Directories and devices that the run used, in the order of the drives.
    pub places: Vec<TargetDescription>,
    /// Limits on the rate of the targets that are known without a measurement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known_limits: Vec<KnownLimit>,
}
