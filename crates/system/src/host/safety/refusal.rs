//! Reasons for refusing to write a device.

use crate::host::device::{DeviceError, DeviceNumber};
use std::io;
use std::path::PathBuf;

/// Reason for refusing to write a device. Every message names the device, the reason with its
/// evidence, and a remedy.
#[derive(Debug, thiserror::Error)]
pub enum WriteRefusal {
    /// Device that differs from the one that the user permitted to overwrite.
    #[error(
        "{device} is not written: `--destroy-data-on {named}` names another device ({named_number}, where {device} is {number}): name {device} itself, if its data may be lost"
    )]
    PermittedOtherDevice {
        /// Path of the device to be written.
        device: PathBuf,
        /// Device number of the device to be written.
        number: DeviceNumber,
        /// Device that the user permitted to overwrite, as written.
        named: PathBuf,
        /// Device number of the device that the user permitted to overwrite.
        named_number: DeviceNumber,
    },
    /// Path that the user permitted to overwrite, but that is not a block device.
    #[error("{device} is not written: `--destroy-data-on` must name that same device: {source}")]
    PermittedNoDevice {
        /// Path of the device to be written.
        device: PathBuf,
        /// Error of the path that the user permitted to overwrite.
        source: DeviceError,
    },
    /// Device to which the kernel refuses writes.
    #[error(
        "{device} is not written: it is read-only (`blockdev --getro {device}` says 1): name another device, or `blockdev --setrw {device}`"
    )]
    ReadOnlyDevice {
        /// Path of the device to be written.
        device: PathBuf,
    },
    /// Device that is mounted, as a whole or in part.
    #[error(
        "{device} is not written: {part} is mounted on {mount_point}: `umount {mount_point}`, or name another device"
    )]
    MountedFilesystem {
        /// Path of the device to be written.
        device: PathBuf,
        /// Mounted device: the device to be written, one of its partitions, or a device built on
        /// it.
        part: PathBuf,
        /// Directory that the mounted device is mounted on.
        mount_point: PathBuf,
    },
    /// Device that is used as swap, as a whole or in part.
    #[error(
        "{device} is not written: {part} is swap (/proc/swaps): `swapoff {part}`, or name another device"
    )]
    UsedAsSwap {
        /// Path of the device to be written.
        device: PathBuf,
        /// Swap device: the device to be written, one of its partitions, or a device built on it.
        part: PathBuf,
    },
    /// Device that a device mapper or md device is built on.
    #[error(
        "{device} is not written: {part} is in use by {holder} (device mapper or md): stop {holder} (`dmsetup`, `vgchange -an`, `mdadm --stop`), or name another device"
    )]
    HeldByOtherDevice {
        /// Path of the device to be written.
        device: PathBuf,
        /// Device underneath the device mapper or md device: the device to be written, one of its
        /// partitions, or its disk.
        part: PathBuf,
        /// Device mapper or md device that is built on the used device.
        holder: PathBuf,
    },
    /// Device that is attached to a loop device.
    #[error(
        "{device} is not written: {part} backs {loop_device}: `losetup --detach {loop_device}`, or name another device"
    )]
    AttachedToLoop {
        /// Path of the device to be written.
        device: PathBuf,
        /// Device that is attached: the device to be written, one of its partitions, or its disk.
        part: PathBuf,
        /// Loop device that the device is attached to.
        loop_device: PathBuf,
    },
    /// Loop device with a backing file that another loop device has, too.
    #[error(
        "{device} is not written: {loop_device} has the same backing file as {part} ({file}), and its data would be destroyed: `losetup --detach {loop_device}`, or name another device"
    )]
    SharedBackingFile {
        /// Path of the device to be written.
        device: PathBuf,
        /// Device with the backing file: the device to be written, its disk, or the loop device
        /// underneath.
        part: PathBuf,
        /// Path of the backing file, as the kernel reports it.
        file: PathBuf,
        /// Other loop device with the same backing file.
        loop_device: PathBuf,
    },
    /// Loop device with a backing file that is used as swap.
    #[error(
        "{device} is not written: {file}, which backs {part}, is swap (/proc/swaps): `swapoff {file}`, or name another device"
    )]
    BackingFileIsSwap {
        /// Path of the device to be written.
        device: PathBuf,
        /// Loop device whose backing file is swap.
        part: PathBuf,
        /// Path of the backing file that is used as swap.
        file: PathBuf,
    },
    /// Device that another process may write to at any time.
    #[error(
        "{device} is not written: process {process} ({command}) has {part} open for writing: end that process, or name another device"
    )]
    OpenForWriting {
        /// Path of the device to be written.
        device: PathBuf,
        /// Device or file that is open: the device itself, one that shares its bytes, or its
        /// backing file.
        part: PathBuf,
        /// Process id of the process that may write.
        process: i32,
        /// Command name of the process that may write.
        command: String,
    },
    /// Device that something has open exclusively, for none of the other reasons.
    #[error(
        "{device} is not written: the kernel reports that it is in use (exclusive open: {source}), perhaps by a mount in a container: find the user with `lsblk {device}` and `fuser {device}`, or name another device"
    )]
    InUseByKernel {
        /// Path of the device to be written.
        device: PathBuf,
        /// Error that open(2) returned.
        source: io::Error,
    },
    /// Device with a signature of existing data.
    #[error("{device} is not written: it contains {}: if that may be lost, add `--ignore-signature`", .found.join(", "))]
    HasSignature {
        /// Path of the device to be written.
        device: PathBuf,
        /// Signatures that were found, such as `ext4 at 0x438`.
        found: Vec<String>,
    },
    /// Device that cannot be opened for writing.
    #[error(
        "{device} is not written: it cannot be opened for writing ({source}): use sudo, or name another device"
    )]
    CannotOpen {
        /// Path of the device to be written.
        device: PathBuf,
        /// Error that open(2) returned.
        source: io::Error,
    },
    /// Device that could not be proven idle.
    #[error("{device} is not written: diskperf cannot tell whether it is idle and empty: {why}")]
    UseUnknown {
        /// Path of the device to be written.
        device: PathBuf,
        /// Failure of the idleness check, with a remedy.
        why: String,
    },
}
