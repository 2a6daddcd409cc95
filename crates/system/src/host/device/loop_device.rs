//! Loop devices: a file shown as a block device.

use super::tool::{Tool, ToolError};
use super::{BlockDevice, DeviceError, FileNumber};
use rustix::fs::OFlags;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the kernel may take to let go of a device that is closed.
const DETACH_LIMIT: Duration = Duration::from_secs(10);
const DETACH_POLL: Duration = Duration::from_millis(5);

/// Why a loop device could not be made or taken down.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    /// The tool failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// What was attached is not there.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device could not be opened.
    #[error("{device}: {source}")]
    Open {
        /// The loop device.
        device: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path led losetup to another file than the caller's.
    #[error(
        "{device} shows another file than the image that diskperf made: {image} or a folder above it was replaced meanwhile: name a directory that nobody else can rename"
    )]
    AnotherFile {
        /// The loop device.
        device: PathBuf,
        /// The image.
        image: PathBuf,
    },
    /// The kernel shows partitions on it, which are a former user's.
    #[error(
        "{device} still shows partitions of whoever used it before: {}: see what uses them (`lsblk {device}`), then `partx --delete {device}`",
        .partitions.join(", ")
    )]
    Partitions {
        /// The loop device.
        device: PathBuf,
        /// The kernel's names of them.
        partitions: Vec<String>,
    },
    /// Somebody else holds it.
    #[error(
        "{device} is still attached, because something else has it open: find it with `fuser {device}`, then `losetup --detach {device}`"
    )]
    Held {
        /// The loop device.
        device: PathBuf,
    },
}

/// A loop device that detaches itself when the last user closes it, so that
/// neither a drop nor the death of the process leaves it behind.
#[derive(Debug)]
pub struct LoopDevice {
    device: BlockDevice,
    held: OwnedFd,
}

impl LoopDevice {
    /// Shows the open file `image`, which is at `path`, as a block device with
    /// sectors of `sector_bytes`. Direct I/O to the image is asked for;
    /// [`Self::uses_direct_io`] says whether its file system granted it.
    ///
    /// # Errors
    /// Not root, no free loop device, losetup is missing, or the path leads to
    /// another file.
    pub fn attach(
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
        let printed = Tool::Losetup
            .run_well(&direct)
            .or_else(|_| Tool::Losetup.run_well(&buffered))?;
        let held = Self::hold(Path::new(printed.trim()), path, image);
        if held.is_err()
            && let Ok(number) = FileNumber::of(image)
        {
            // Nobody would find it when the image is removed. What failed first
            // says more than what fails now.
            let _ = detach_backed_by(&BTreeSet::from([number]));
        }
        held
    }

    /// Has the device at `node`, which was just attached, detach itself when the
    /// last user closes it, and makes sure that it shows the image.
    fn hold(node: &Path, path: &Path, image: BorrowedFd<'_>) -> Result<Self, LoopError> {
        let device = BlockDevice::from_path(node)?;
        let open_error = |source| LoopError::Open {
            device: device.path().to_owned(),
            source,
        };
        let held = device.open(OFlags::RDONLY).map_err(open_error)?;
        // To detach a device that is open means: when its last user closes it.
        Tool::Losetup.run_well(&[OsStr::new("--detach"), device.path().as_os_str()])?;
        let shown = losetup_backing_files()?.get(device.path()).copied();
        if shown != Some(FileNumber::of(image).map_err(open_error)?) {
            return Err(LoopError::AnotherFile {
                device: device.path().to_owned(),
                image: path.to_owned(),
            });
        }
        let attached = Self { device, held };
        attached.forget_partitions()?;
        Ok(attached)
    }

    /// Has the kernel forget partitions that it was told of for another file:
    /// they stay when that is detached, and would be parts of this one.
    fn forget_partitions(&self) -> Result<(), LoopError> {
        let device = &self.device;
        if device.partitions()?.is_empty() {
            return Ok(());
        }
        Tool::Partx.run(&[OsStr::new("--delete"), device.path().as_os_str()])?;
        let left = device.partitions()?;
        if left.is_empty() {
            return Ok(());
        }
        Err(LoopError::Partitions {
            device: device.path().to_owned(),
            partitions: left.iter().map(|part| part.name().to_owned()).collect(),
        })
    }

    /// The block device.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// The open device, for reading.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }

    /// Whether the kernel bypasses the page cache for the image.
    pub fn uses_direct_io(&self) -> bool {
        self.device.attribute("loop/dio").as_deref() == Some("1")
    }

    /// Lets go of it and waits until it is detached.
    ///
    /// # Errors
    /// Something else has it open.
    pub fn detach(self) -> Result<(), LoopError> {
        let Self { device, held } = self;
        drop(held);
        let deadline = Instant::now() + DETACH_LIMIT;
        while device.backing_file().is_some() {
            if Instant::now() > deadline {
                return Err(LoopError::Held {
                    device: device.path,
                });
            }
            std::thread::sleep(DETACH_POLL);
        }
        Ok(())
    }
}

/// The file that a device of /sys/devices shows, if it is an attached loop
/// device. Of a deleted file it is the name that it had.
pub(super) fn backing_file(sysfs: &Path) -> Option<PathBuf> {
    let mut path = std::fs::read(sysfs.join("loop/backing_file")).ok()?;
    path.truncate(path.trim_ascii_end().len());
    if let Some(undeleted) = path.strip_suffix(b" (deleted)") {
        path = undeleted.to_vec();
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

/// Every attached loop device's node with its backing file's path, which need
/// not lead to that file from here.
///
/// # Errors
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

/// The backing files of attached loop devices, by the devices' nodes.
pub(in crate::host) type BackingFiles = BTreeMap<PathBuf, FileNumber>;

/// What losetup knows of the attached loop devices. It leaves out those that
/// this user may not open.
///
/// A backing file's path is not whole once the mount namespace that it was
/// opened in is gone, and a file may have several; its number is always right.
///
/// # Errors
/// losetup is missing or fails.
pub(in crate::host) fn losetup_backing_files() -> Result<BackingFiles, ToolError> {
    let arguments = [
        "--list",
        "--noheadings",
        "--output",
        "NAME,BACK-MAJ:MIN,BACK-INO",
    ];
    let list = Tool::Losetup.run_well(&arguments)?;
    Ok(list.lines().filter_map(listed_backing_file).collect())
}

/// `/dev/loop0 254:0 4711`; `None` where columns are empty.
fn listed_backing_file(line: &str) -> Option<(PathBuf, FileNumber)> {
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

/// Detaches every loop device that shows one of `files`, at once or when its
/// last user closes it.
///
/// # Errors
/// losetup fails, and the device still shows the file.
pub(in crate::host) fn detach_backed_by(files: &BTreeSet<FileNumber>) -> Result<(), ToolError> {
    for (device, file) in losetup_backing_files()? {
        if !files.contains(&file) {
            continue;
        }
        let detach = [OsStr::new("--detach"), device.as_os_str()];
        if let Err(error) = Tool::Losetup.run_well(&detach) {
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
            assert_eq!(listed_backing_file(line), expected, "{line}");
        }
    }
}
