//! Loop devices: block devices that are backed by a file.

use super::tool::{ExternalTool, ToolError};
use super::{BlockDevice, DeviceError, FileNumber};
use crate::host::page_cache::resident_bytes;
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const DETACH_TIME_MAX: Duration = Duration::from_secs(10);
const DETACH_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Reason why a loop device could not be attached or detached.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// Failure of losetup or another external tool.
    #[error(transparent)]
    ToolFailed(#[from] ToolError),
    /// Attached loop device that cannot be found afterwards.
    #[error(transparent)]
    DeviceFailed(#[from] DeviceError),
    /// Loop device that could not be opened.
    #[error("{device}: {source}")]
    OpenDevice {
        /// Path of the loop device's node, such as `/dev/loop0`.
        device: PathBuf,
        /// Error that the operating system returned.
        source: io::Error,
    },
    /// Loop device that is backed by another file, because the path did not lead losetup to the
    /// caller's image.
    #[error(
        "{device} is backed by another file than diskperf's image: {image} or a folder above it was replaced meanwhile: name a directory that nobody else can rename"
    )]
    WrongBackingFile {
        /// Path of the loop device's node, such as `/dev/loop0`.
        device: PathBuf,
        /// Path of the image file that losetup attached.
        image: PathBuf,
    },
    /// Loop device that still has the kernel's partitions from an earlier backing file.
    #[error(
        "{device} still has partitions of its previous backing file: {}: see what uses them (`lsblk {device}`), then `partx --delete {device}`",
        .list_partitions.join(", ")
    )]
    StalePartitions {
        /// Path of the loop device's node, such as `/dev/loop0`.
        device: PathBuf,
        /// Kernel names of the remaining partitions.
        list_partitions: Vec<String>,
    },
    /// Loop device that stays attached because another process has it open.
    #[error(
        "{device} is still attached, because something else has it open: find it with `fuser {device}`, then `losetup --detach {device}`"
    )]
    StillInUse {
        /// Path of the loop device's node, such as `/dev/loop0`.
        device: PathBuf,
    },
}

/// Attached loop device. It detaches itself on its last close, so that neither a drop nor the death
/// of the process leaves it behind.
#[derive(Debug)]
pub struct LoopDevice {
    device: BlockDevice,
    device_node: OwnedFd,
}

impl LoopDevice {
    /// Attaches the open file `image`, which is at `path`, as a block device with sectors of
    /// `sector_bytes`. It requests direct I/O to the image; [`Self::uses_direct_io`] reports
    /// whether the file system granted it.
    ///
    /// # Errors
    ///
    /// The user is not root, no loop device is free, losetup is missing, or the path leads to
    /// another file.
    pub fn attach_file(
        path: &Path,
        image: BorrowedFd<'_>,
        sector_bytes: u64,
    ) -> Result<Self, LoopError> {
        let sector_size = format!("--sector-size={sector_bytes}");
        let base = ["--find", "--show", &sector_size].map(OsStr::new);
        let direct = [
            &[OsStr::new("--direct-io=on")],
            &base[..],
            &[path.as_os_str()],
        ]
        .concat();
        let buffered = [&base[..], &[path.as_os_str()]].concat();
        // Where the image's file system has no direct I/O, some versions of
        // losetup fail and some kernels ignore the wish.
        let printed = ExternalTool::Losetup
            .run_checked(&direct)
            .or_else(|_| ExternalTool::Losetup.run_checked(&buffered))?;
        let device_node = Self::open_attached(Path::new(printed.trim()), path, image);
        if device_node.is_err()
            && let Ok(number) = FileNumber::from_file(image)
        {
            // Nobody would find it when the image is removed. What failed first
            // says more than what fails now.
            let _ = detach_backed_by(&BTreeSet::from([number]));
        }
        device_node
    }

    /// Opens the device at `device_path`, which was just attached, makes it detach on its last close, and
    /// checks that it is backed by the image.
    fn open_attached(
        device_path: &Path,
        path: &Path,
        image: BorrowedFd<'_>,
    ) -> Result<Self, LoopError> {
        let device = BlockDevice::from_path(device_path)?;
        let open_error = |source| LoopError::OpenDevice {
            device: device.path().to_owned(),
            source,
        };
        let device_node = device.open_device(OFlags::RDONLY).map_err(open_error)?;
        // To detach a device that is open means: when its last user closes it.
        ExternalTool::Losetup.run_checked(&[OsStr::new("--detach"), device.path().as_os_str()])?;
        let shown = losetup_backing_files()?.get(device.path()).copied();
        if shown != Some(FileNumber::from_file(image).map_err(open_error)?) {
            return Err(LoopError::WrongBackingFile {
                device: device.path().to_owned(),
                image: path.to_owned(),
            });
        }
        let attached = Self {
            device,
            device_node,
        };
        attached.remove_stale_partitions()?;
        Ok(attached)
    }

    /// Removes the kernel's partitions from an earlier backing file. They outlive its detachment
    /// and would be parts of this device.
    fn remove_stale_partitions(&self) -> Result<(), LoopError> {
        let device = &self.device;
        if device.list_partitions()?.is_empty() {
            return Ok(());
        }
        ExternalTool::Partx.run_tool(&[OsStr::new("--delete"), device.path().as_os_str()])?;
        let left = device.list_partitions()?;
        if left.is_empty() {
            return Ok(());
        }
        Err(LoopError::StalePartitions {
            device: device.path().to_owned(),
            list_partitions: left.iter().map(|part| part.name().to_owned()).collect(),
        })
    }

    /// Returns the loop device as a block device.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// Returns the loop device's descriptor, open for reading.
    pub fn device_file(&self) -> BorrowedFd<'_> {
        self.device_node.as_fd()
    }

    /// Reports whether the kernel bypasses the page cache for the image file.
    pub fn uses_direct_io(&self) -> bool {
        self.device.read_attribute("loop/dio").as_deref() == Some("1")
    }

    /// Has the kernel take the device for a rotating disk, or not. It lasts until the device is
    /// attached to another file.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn set_rotational(&self, is_rotational: bool) -> io::Result<()> {
        let attribute = self.device.sysfs_path.join("queue/rotational");
        std::fs::write(attribute, if is_rotational { "1" } else { "0" })
    }

    /// Drops all pages that the kernel keeps of an idle device, because the backing file has
    /// other contents now. Changed pages are written first.
    ///
    /// # Errors
    ///
    /// The kernel refuses, or something uses the device and its pages stay.
    pub fn drop_pages(&self) -> Result<(), LoopError> {
        let deadline = Instant::now() + DETACH_TIME_MAX;
        let open_error = |source| LoopError::OpenDevice {
            device: self.device.path().to_owned(),
            source,
        };
        loop {
            flush_buffers(self.device_node.as_fd()).map_err(open_error)?;
            // A processor may have held a page at that time.
            match resident_bytes(self.device_node.as_fd(), u64::MAX) {
                Some(0) => return Ok(()),
                _ if Instant::now() > deadline => {
                    return Err(LoopError::StillInUse {
                        device: self.device.path().to_owned(),
                    });
                }
                _ => std::thread::sleep(DETACH_POLL_INTERVAL),
            }
        }
    }

    /// Closes the loop device and waits until it is detached.
    ///
    /// # Errors
    ///
    /// Another process has it open.
    pub fn detach_device(self) -> Result<(), LoopError> {
        let Self {
            device,
            device_node,
        } = self;
        drop(device_node);
        let deadline = Instant::now() + DETACH_TIME_MAX;
        while device.backing_file().is_some() {
            if Instant::now() > deadline {
                return Err(LoopError::StillInUse {
                    device: device.path,
                });
            }
            std::thread::sleep(DETACH_POLL_INTERVAL);
        }
        Ok(())
    }
}

/// Writes the changed pages of a block device, and drops all pages that nobody holds.
#[allow(unsafe_code)]
fn flush_buffers(device: BorrowedFd<'_>) -> io::Result<()> {
    /// Code of the ioctl `BLKFLSBUF`, `_IO(0x12, 97)`.
    const BLKFLSBUF: libc::Ioctl = 0x1261;
    // SAFETY: the call has no argument, and the descriptor is open.
    match unsafe { libc::ioctl(device.as_raw_fd(), BLKFLSBUF, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the backing file of an attached loop device with the given sysfs directory; `None` for
/// other devices. A deleted file has its former name.
pub(super) fn backing_file(sysfs: &Path) -> Option<PathBuf> {
    let mut path = std::fs::read(sysfs.join("loop/backing_file")).ok()?;
    path.truncate(path.trim_ascii_end().len());
    if let Some(undeleted) = path.strip_suffix(b" (deleted)") {
        path = undeleted.to_vec();
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// Returns the nodes of the loop devices whose backing file has this path.
///
/// # Errors
///
/// /sys/block cannot be read.
pub fn loop_devices_on(file: &Path) -> io::Result<Vec<PathBuf>> {
    let attached = attached_backing_files()?.into_iter();
    let on_file = attached.filter(|(_, backing)| backing == file);
    Ok(on_file.map(|(device, _)| device).collect())
}

/// Returns the node of every attached loop device with its backing file's path, which need not lead
/// to that file in this mount namespace.
///
/// # Errors
///
/// /sys/block cannot be read.
pub(in crate::host) fn attached_backing_files() -> io::Result<Vec<(PathBuf, PathBuf)>> {
    let mut attached = Vec::new();
    for entry in std::fs::read_dir("/sys/block")? {
        let entry = entry?;
        if let Some(file) = backing_file(&entry.path()) {
            attached.push((Path::new("/dev").join(entry.file_name()), file));
        }
    }
    Ok(attached)
}

/// Backing files of attached loop devices, by device node.
pub(in crate::host) type BackingFiles = BTreeMap<PathBuf, FileNumber>;

/// Returns the backing files that losetup lists, without devices that this user may not open.
///
/// A backing file's path is incomplete once the mount namespace that it was opened in is gone, and
/// a file may have several paths. Its number is always right.
///
/// # Errors
///
/// losetup is missing or fails.
pub(in crate::host) fn losetup_backing_files() -> Result<BackingFiles, ToolError> {
    let arguments = [
        "--list",
        "--noheadings",
        "--output",
        "NAME,BACK-MAJ:MIN,BACK-INO",
    ];
    let list = ExternalTool::Losetup.run_checked(&arguments)?;
    Ok(list.lines().filter_map(parse_backing_file_line).collect())
}

/// Parses a line of losetup, such as `/dev/loop0 254:0 4711`; `None` if columns are empty.
fn parse_backing_file_line(line: &str) -> Option<(PathBuf, FileNumber)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [name, device, inode] = fields[..] else {
        return None;
    };
    let file = FileNumber {
        device: device.parse().ok()?,
        inode: inode.parse().ok()?,
    };
    Some((PathBuf::from(name), file))
}

/// Detaches every loop device that is backed by one of `files`, immediately or on its last close.
///
/// # Errors
///
/// losetup fails while the device is still backed by the file.
pub(in crate::host) fn detach_backed_by(files: &BTreeSet<FileNumber>) -> Result<(), ToolError> {
    for (device, file) in losetup_backing_files()? {
        if !files.contains(&file) {
            continue;
        }
        let detach = [OsStr::new("--detach"), device.as_os_str()];
        if let Err(error) = ExternalTool::Losetup.run_checked(&detach) {
            // The kernel may have been first, when the last user closed it.
            if losetup_backing_files()?.get(&device) == Some(&file) {
                return Err(error);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_lines_of_the_list_are_taken() {
        let file = FileNumber {
            device: "254:0".parse().unwrap(),
            inode: 4711,
        };
        for (line, expected) in [
            ("/dev/loop0  254:0    4711", Some(("/dev/loop0", file))),
            // To a user who may not open the device.
            ("/dev/loop0", None),
            ("/dev/loop0  254:0", None),
            ("/dev/loop0  none     4711", None),
            ("", None),
        ] {
            let expected = expected.map(|(device, file)| (PathBuf::from(device), file));
            assert_eq!(parse_backing_file_line(line), expected, "{line}");
        }
    }
}
