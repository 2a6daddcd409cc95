//! Loop devices: a file shown as a block device.

use super::tool::{Tool, ToolError};
use super::{BlockDevice, DeviceError, DeviceNumber};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
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
    held: File,
}

impl LoopDevice {
    /// Shows `image` as a block device with sectors of `sector_bytes`. Direct
    /// I/O to the image is asked for; [`Self::uses_direct_io`] says whether
    /// its file system granted it.
    ///
    /// # Errors
    /// Not root, no free loop device, or losetup is missing.
    pub fn attach(image: &Path, sector_bytes: u64) -> Result<Self, LoopError> {
        let sector_size = format!("--sector-size={sector_bytes}");
        let base = ["--find", "--show", &sector_size].map(OsStr::new);
        let direct = [
            &[OsStr::new("--direct-io=on")],
            &base[..],
            &[image.as_os_str()],
        ]
        .concat();
        let buffered = [&base[..], &[image.as_os_str()]].concat();
        // Where the image's file system has no direct I/O, some versions of
        // losetup fail and some kernels ignore the wish.
        let printed = Tool::Losetup
            .run_well(&direct)
            .or_else(|_| Tool::Losetup.run_well(&buffered))?;
        let device = BlockDevice::from_path(Path::new(printed.trim()))?;
        let held = File::open(device.path()).map_err(|source| LoopError::Open {
            device: device.path().to_owned(),
            source,
        })?;
        // To detach a device that is open means: when its last user closes it.
        Tool::Losetup.run_well(&[OsStr::new("--detach"), device.path().as_os_str()])?;
        Ok(Self { device, held })
    }

    /// The block device.
    pub fn device(&self) -> &BlockDevice {
        &self.device
    }

    /// The open device, for reading.
    pub fn file(&self) -> &File {
        &self.held
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

/// Every attached loop device's node with its backing file.
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

/// Detaches every loop device that shows a file of `folder`, at once or when
/// its last user closes it.
///
/// Files are compared by device and inode, because a backing file's path is
/// not whole once the mount namespace that it was opened in is gone.
///
/// # Errors
/// The folder cannot be read, or losetup fails.
pub(in crate::host) fn detach_backed_by(folder: &Path) -> Result<(), LoopError> {
    let io_error = |source| {
        LoopError::Device(DeviceError::Io {
            path: folder.to_owned(),
            source,
        })
    };
    if attached_backing_files().map_err(io_error)?.is_empty() {
        return Ok(());
    }
    let files = regular_files(folder).map_err(io_error)?;
    let columns = ["--list", "--noheadings", "--output"].map(OsStr::new);
    let wanted = OsStr::new("NAME,BACK-MAJ:MIN,BACK-INO");
    let list = Tool::Losetup.run_well(&[&columns[..], &[wanted]].concat())?;
    for line in list.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [name, device, inode] = fields[..] else {
            continue;
        };
        let (Ok(device), Ok(inode)) = (device.parse::<DeviceNumber>(), inode.parse::<u64>()) else {
            continue;
        };
        if files.contains(&(device, inode)) {
            let device = OsStr::from_bytes(name.as_bytes());
            Tool::Losetup.run_well(&[OsStr::new("--detach"), device])?;
        }
    }
    Ok(())
}

/// Device and inode of every regular file below a folder; links are not
/// followed.
fn regular_files(folder: &Path) -> io::Result<BTreeSet<(DeviceNumber, u64)>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let status = entry.metadata()?;
            if status.is_dir() {
                folders.push(entry.path());
            } else if status.is_file() {
                files.insert((DeviceNumber::from_raw(status.dev()), status.ino()));
            }
        }
    }
    Ok(files)
}
