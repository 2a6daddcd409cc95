//! Why a device is not written.

use crate::host::device::{DeviceError, DeviceNumber};
use std::io;
use std::path::PathBuf;

/// Why a device is not written. Every message names the device, the reason
/// with its evidence, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The user named another device, or none.
    #[error(
        "{device} is not written: `--destroy-data-on {named}` names another device ({named_number}, where {device} is {number}): name {device} itself, if its data may be lost"
    )]
    NamedAnother {
        /// The device that would be written.
        device: PathBuf,
        /// Its number.
        number: DeviceNumber,
        /// As the user wrote it.
        named: PathBuf,
        /// The number of that.
        named_number: DeviceNumber,
    },
    /// What was named is no block device.
    #[error("{device} is not written: `--destroy-data-on` must name that same device: {source}")]
    NamedNoDevice {
        /// The device that would be written.
        device: PathBuf,
        /// What is wrong with the named path.
        source: DeviceError,
    },
    /// The kernel does not take writes to it.
    #[error(
        "{device} is not written: it is read-only (`blockdev --getro {device}` says 1): name another device, or `blockdev --setrw {device}`"
    )]
    ReadOnly {
        /// The device.
        device: PathBuf,
    },
    /// It, or something of it, is mounted.
    #[error(
        "{device} is not written: {part} is mounted on {mount_point}: `umount {mount_point}`, or name another device"
    )]
    Mounted {
        /// The device.
        device: PathBuf,
        /// The device itself, a partition, or what is made of it.
        part: PathBuf,
        /// Where.
        mount_point: PathBuf,
    },
    /// It, or something of it, is swap.
    #[error(
        "{device} is not written: {part} is swap (/proc/swaps): `swapoff {part}`, or name another device"
    )]
    Swap {
        /// The device.
        device: PathBuf,
        /// The device itself, a partition, or what is made of it.
        part: PathBuf,
    },
    /// Device mapper or md has made something of it.
    #[error(
        "{device} is not written: {part} is in use by {holder} (device mapper or md): stop {holder} (`dmsetup`, `vgchange -an`, `mdadm --stop`), or name another device"
    )]
    Held {
        /// The device.
        device: PathBuf,
        /// The device itself, a partition, or its disk.
        part: PathBuf,
        /// What is made of it.
        holder: PathBuf,
    },
    /// A loop device shows it.
    #[error(
        "{device} is not written: {part} is shown as {loop_device}: `losetup --detach {loop_device}`, or name another device"
    )]
    BacksLoop {
        /// The device.
        device: PathBuf,
        /// The device itself, a partition, or its disk.
        part: PathBuf,
        /// The loop device.
        loop_device: PathBuf,
    },
    /// Its bytes are a file's, and another loop device shows the same file.
    #[error(
        "{device} is not written: {loop_device} shows the same file as {part} ({file}), and whatever uses it would be destroyed: `losetup --detach {loop_device}`, or name another device"
    )]
    ShownTwice {
        /// The device.
        device: PathBuf,
        /// The device itself, its disk, or the loop device that it shows.
        part: PathBuf,
        /// The file, by the name that the kernel has for it.
        file: PathBuf,
        /// The other loop device.
        loop_device: PathBuf,
    },
    /// Its bytes are a file's that is active as swap.
    #[error(
        "{device} is not written: {part} shows {file}, which is swap (/proc/swaps): `swapoff {file}`, or name another device"
    )]
    ShowsSwap {
        /// The device.
        device: PathBuf,
        /// The loop device that shows the file.
        part: PathBuf,
        /// The file.
        file: PathBuf,
    },
    /// Another process may write to it at any moment.
    #[error(
        "{device} is not written: process {process} ({command}) has {part} open for writing: end that process, or name another device"
    )]
    OpenForWriting {
        /// The device.
        device: PathBuf,
        /// The device itself, one that it is entangled with, or the file that
        /// it shows.
        part: PathBuf,
        /// The process's number.
        process: i32,
        /// Its name.
        command: String,
    },
    /// Something has it open exclusively, and is none of the above.
    #[error(
        "{device} is not written: the kernel says that it is in use (exclusive open: {source}), perhaps by a mount in a container: find the user with `lsblk {device}` and `fuser {device}`, or name another device"
    )]
    InUse {
        /// The device.
        device: PathBuf,
        /// What open(2) said.
        source: io::Error,
    },
    /// There is data on it.
    #[error("{device} is not written: it carries {}: if that may be lost, add `--ignore-signature`", .found.join(", "))]
    Signature {
        /// The device.
        device: PathBuf,
        /// What was found, as `ext4 at 0x438`.
        found: Vec<String>,
    },
    /// It could not be opened.
    #[error(
        "{device} is not written: it cannot be opened for that ({source}): use sudo, or name another device"
    )]
    NotOpened {
        /// The device.
        device: PathBuf,
        /// What open(2) said.
        source: io::Error,
    },
    /// It could not be found out whether it is idle.
    #[error("{device} is not written: diskperf cannot tell whether it is idle and empty: {why}")]
    NotProven {
        /// The device.
        device: PathBuf,
        /// What failed, with its remedy.
        why: String,
    },
}
