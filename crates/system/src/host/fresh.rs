//! Fresh file system on an image file inside the workspace. It is created, mounted, measured,
//! unmounted, checked and removed, as the 1983 script does with newfs.

mod mounted;
mod options;
mod spec;

pub use mounted::enter_private_mounts;
pub(super) use mounted::unmount_with_retries;
pub(super) use options::{MountArguments, mount_arguments};
pub use spec::{FreshKind, FreshSpec, FreshSpecError};

use super::device::tool::{ExternalTool, ToolError, combine_output};
use super::device::{DeviceNumber, LoopDevice, LoopError, device_number_at};
use super::page_cache::{
    DirectSupport, direct_io_support, drop_pages, find_mount_of_file, memory_file_system_name,
};
use super::workspace::{
    Workspace, WorkspaceError, available_bytes, path_through, require_space, retry_while_busy,
};
use diskperf_timeline::units::format_size;
use mounted::MountedFilesystem;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Sector size in bytes that every supported file system accepts.
const SECTOR_BYTES_MIN: u64 = 512;

/// Reason why a fresh file system could not be created or removed.
#[derive(Debug, thiserror::Error)]
pub enum FreshError {
    /// Missing privilege: only root may create a fresh file system.
    #[error(
        "a fresh file system needs root (loop device, mkfs, mount): use sudo, or omit `--fresh`: `diskperf run` then measures the existing file system of the directory"
    )]
    NotRoot,
    /// Specification of a fresh file system that cannot be met.
    #[error(transparent)]
    InvalidSpec(#[from] FreshSpecError),
    /// Failure to place the image in the workspace; for example, space is missing.
    #[error(transparent)]
    WorkspaceFailed(#[from] WorkspaceError),
    /// Failure of mkfs, the checker or another tool.
    #[error(transparent)]
    ToolFailed(#[from] ToolError),
    /// Failure to attach or detach the loop device.
    #[error(transparent)]
    LoopDeviceFailed(#[from] LoopError),
    /// Image that exceeds the maximum file size of the process or file system.
    #[error(
        "{path}: the file size limit forbids an image of {}: raise the limit (`ulimit -f`), or make the image smaller (`size=`)",
        format_size(*.bytes)
    )]
    ImageTooLarge {
        /// Path of the fresh file system's image file.
        path: PathBuf,
        /// Size of the image in bytes.
        bytes: u64,
    },
    /// Fresh file system that has less free space than the files need.
    #[error(
        "the fresh {kind} has {available_bytes} bytes for files, but {needed_bytes} are needed: make its image larger (`size=`)"
    )]
    DirectoryTooFull {
        /// Kind of the fresh file system.
        kind: FreshKind,
        /// Free space of the fresh file system, in bytes.
        available_bytes: u64,
        /// Space that the measured files need, in bytes.
        needed_bytes: u64,
    },
    /// Fresh file system that cannot be unmounted because it is in use.
    #[error(
        "cannot unmount {directory} ({source}): close its open files, and end the processes in it"
    )]
    UnmountFailed {
        /// Directory that the fresh file system is mounted on.
        directory: PathBuf,
        /// Error that the kernel returned.
        source: io::Error,
    },
    /// Failure to give the process a private mount namespace.
    #[error(
        "cannot create a private mount namespace ({source}): use root, and a container that permits it"
    )]
    PrivateMountsFailed {
        /// Error that the kernel returned.
        source: io::Error,
    },
    /// Any other operation on the fresh file system that failed.
    #[error("{path}: {action}: {source}")]
    Io {
        /// Operation that failed, as a verb phrase for the message.
        action: &'static str,
        /// Path of the file or directory on which the operation failed.
        path: PathBuf,
        /// Error that the operating system returned.
        source: io::Error,
    },
}

/// Report of the file system's own checker after the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsckReport {
    command_line: String,
    is_clean: bool,
    fsck_output: String,
}

impl FsckReport {
    /// Reports whether the checker found nothing to repair.
    pub fn is_clean(&self) -> bool {
        self.is_clean
    }

    /// Returns the output of the checker.
    pub fn output(&self) -> &str {
        &self.fsck_output
    }
}

impl fmt::Display for FsckReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = if self.is_clean {
            "found the fresh file system clean"
        } else {
            "found damage on the fresh file system, so its figures are invalid"
        };
        write!(
            formatter,
            "`{}` {found}: {}",
            self.command_line, self.fsck_output
        )
    }
}

/// Fresh file system, mounted from an image in the workspace. A drop unmounts and detaches it as
/// far as possible; the image is removed with the workspace.
#[derive(Debug)]
pub struct FreshFilesystem {
    // In the order in which they have to go.
    mounted_filesystem: MountedFilesystem,
    loop_device: LoopDevice,
    image_folder: ImageFolder,
    spec: FreshSpec,
    notes: Vec<String>,
}

/// Folder that contains the image and the mount point.
#[derive(Debug)]
struct ImageFolder {
    /// Workspace that contains the folder, and keeps other users out of it.
    workspace: OwnedFd,
    name: String,
    path: PathBuf,
}

impl ImageFolder {
    /// Creates the folder `fresh-N` with the first unused N.
    fn new(workspace: &Workspace) -> Result<Self, FreshError> {
        let mut number = 1;
        loop {
            let name = format!("{IMAGE_FOLDER_PREFIX}{number}");
            let path = workspace.path().join(&name);
            let failed = |source| FreshError::from_io("make a folder", &path, source);
            match rustix::fs::mkdirat(workspace.directory(), &name, Mode::RWXU) {
                Ok(()) => {
                    let workspace = workspace.directory().try_clone_to_owned();
                    return Ok(Self {
                        workspace: workspace.map_err(failed)?,
                        name,
                        path,
                    });
                }
                Err(Errno::EXIST) => number += 1,
                Err(error) => return Err(failed(error.into())),
            }
        }
    }

    /// Returns a path to the folder through the workspace's descriptor. It stays valid if the
    /// workspace's own path comes to lead elsewhere.
    fn safe_path(&self) -> PathBuf {
        path_through(self.workspace.as_fd()).join(&self.name)
    }
}

/// Prefix of the image folder's name, before its number.
pub(super) const IMAGE_FOLDER_PREFIX: &str = "fresh-";
pub(super) const IMAGE_NAME: &str = "image";
const MOUNT_POINT_NAME: &str = "files";

impl FreshFilesystem {
    /// Creates and mounts a file system that has room for files of `payload_bytes`. The image takes
    /// [`FreshSpec::image_bytes`] of the workspace's file system. All its blocks are allocated at
    /// the start, so that no later write allocates anything outside of the image.
    ///
    /// # Errors
    ///
    /// The user is not root, space is missing, or a tool is missing or fails.
    pub fn make_filesystem_image(
        workspace: &Workspace,
        spec: &FreshSpec,
        payload_bytes: u64,
    ) -> Result<Self, FreshError> {
        if !rustix::process::geteuid().is_root() {
            return Err(FreshError::NotRoot);
        }
        let image_bytes = spec.image_bytes(payload_bytes)?;
        require_space(workspace.directory(), workspace.path(), image_bytes)?;
        let folder = ImageFolder::new(workspace)?;
        let mut notes = Vec::new();
        let image = allocate_image(&folder, image_bytes, &mut notes)?;
        let device = attach_image(&folder, &image, spec.block_bytes, &mut notes)?;
        make_filesystem(spec, device.device().path())?;
        let options = mount_options_with_notes(spec, &mut notes);
        let mounted = MountedFilesystem::mount(
            spec.filesystem_kind,
            device.device().path(),
            &folder.path.join(MOUNT_POINT_NAME),
            folder.safe_path().join(MOUNT_POINT_NAME),
            &options,
        )?;
        let fresh = Self {
            mounted_filesystem: mounted,
            loop_device: device,
            image_folder: folder,
            spec: spec.clone(),
            notes,
        };
        fresh.require_free_space(payload_bytes)?;
        Ok(fresh)
    }

    fn require_free_space(&self, payload_bytes: u64) -> Result<(), FreshError> {
        let space = self
            .open_directory()
            .and_then(|directory| Ok(rustix::fs::fstatvfs(directory)?))
            .map_err(|error| FreshError::from_io("open", self.mounted_directory(), error))?;
        let available_bytes = available_bytes(&space);
        if available_bytes < payload_bytes {
            return Err(FreshError::DirectoryTooFull {
                kind: self.filesystem_kind(),
                available_bytes,
                needed_bytes: payload_bytes,
            });
        }
        Ok(())
    }

    /// Opens the mount point for reading, and checks that it is the root of the fresh file system.
    /// The descriptor must be closed before [`Self::unmount_and_check`], or the file system cannot be
    /// unmounted.
    ///
    /// # Errors
    ///
    /// The directory belongs to another file system.
    pub fn open_directory(&self) -> io::Result<OwnedFd> {
        let path = self.image_folder.safe_path().join(MOUNT_POINT_NAME);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let device = self.loop_device.device();
        if !is_mounted_from(directory.as_fd(), device.device_number())? {
            return Err(io::Error::other(format!(
                "{} is not mounted on {}",
                device.path().display(),
                self.mounted_directory().display()
            )));
        }
        Ok(directory)
    }

    /// Returns the directory that the fresh file system is mounted on.
    pub fn mounted_directory(&self) -> &Path {
        self.mounted_filesystem.directory()
    }

    /// Returns the kind of the fresh file system, such as ext4.
    pub fn filesystem_kind(&self) -> FreshKind {
        self.spec.filesystem_kind
    }

    /// Returns the block size of the file system in bytes.
    pub fn block_bytes(&self) -> u64 {
        self.spec.block_bytes
    }

    /// Returns notes that a reader needs to interpret figures from this file system.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Unmounts and checks the file system, detaches the loop device and removes the image.
    ///
    /// # Errors
    ///
    /// A file on it is open, or the checker is missing. Damage that the checker finds is in the
    /// report, and is no error here.
    pub fn unmount_and_check(self) -> Result<FsckReport, FreshError> {
        let Self {
            mounted_filesystem: mounted,
            loop_device: device,
            image_folder: folder,
            spec,
            ..
        } = self;
        mounted.unmount()?;
        // The device's own page cache may still hold what mkfs wrote, where
        // the file system wrote past it; the checker must see the image.
        drop_pages(device.device_file()).map_err(|error| {
            FreshError::from_io("drop cached pages", device.device().path(), error)
        })?;
        let report = check_filesystem(spec.filesystem_kind, device.device().path())?;
        device.detach_device()?;
        retry_while_busy(|| std::fs::remove_dir_all(folder.safe_path()))
            .map_err(|error| FreshError::from_io("remove", &folder.path, error))?;
        Ok(report)
    }
}

impl FreshError {
    fn from_io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Reports whether an open directory is on the file system that is mounted from a device.
fn is_mounted_from(directory: BorrowedFd<'_>, device: DeviceNumber) -> io::Result<bool> {
    let number = DeviceNumber::from_raw(rustix::fs::fstat(directory)?.st_dev);
    if number.major != 0 {
        return Ok(number == device);
    }
    // btrfs has a number of no driver's: only the mount's source names the
    // device.
    let mount = find_mount_of_file(directory);
    Ok(mount
        .is_some_and(|mount| device_number_at(&mount.mount_source).ok().flatten() == Some(device)))
}

fn allocate_image(
    folder: &ImageFolder,
    bytes: u64,
    notes: &mut Vec<String>,
) -> Result<File, FreshError> {
    let path = folder.path.join(IMAGE_NAME);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::FileTooLarge => FreshError::ImageTooLarge {
            path: path.clone(),
            bytes,
        },
        _ => FreshError::from_io("write the image", &path, error),
    };
    let mut image = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(folder.safe_path().join(IMAGE_NAME))
        .map_err(failed)?;
    match rustix::fs::fallocate(&image, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => notes.push(
            "the image is allocated but not yet written: the first write to each part of it costs the file system underneath more than later ones"
                .to_owned(),
        ),
        // Where it cannot allocate ahead, writing allocates.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => write_zeros(&mut image, bytes).map_err(failed)?,
        Err(error) => return Err(failed(error.into())),
    }
    drop_pages(image.as_fd()).map_err(failed)?;
    Ok(image)
}

fn write_zeros(image: &mut File, bytes: u64) -> io::Result<()> {
    let zeros = [0; 1 << 16];
    let mut left_bytes = bytes;
    while left_bytes > 0 {
        let piece = left_bytes.min(zeros.len() as u64);
        image.write_all(&zeros[..piece as usize])?;
        left_bytes -= piece;
    }
    Ok(())
}

fn attach_image(
    folder: &ImageFolder,
    image: &File,
    block_bytes: u64,
    notes: &mut Vec<String>,
) -> Result<LoopDevice, FreshError> {
    // The loop device's sectors must not be smaller than the pieces that the
    // image's file system takes in direct I/O, nor larger than a block.
    let sector_bytes = match direct_io_support(image.as_fd()) {
        Ok(DirectSupport::DirectSupported {
            offset_alignment, ..
        }) if offset_alignment <= block_bytes => offset_alignment.max(SECTOR_BYTES_MIN),
        _ => SECTOR_BYTES_MIN,
    };
    let device =
        LoopDevice::attach_file(&folder.path.join(IMAGE_NAME), image.as_fd(), sector_bytes)?;
    if let Some(kind) = memory_file_system_name(image.as_fd()) {
        notes.push(format!("the image is on {kind}, in memory"));
    } else if !device.uses_direct_io() {
        notes.push(
            "the file system with the image does not support direct I/O for the loop device: data is cached twice"
                .to_owned(),
        );
    }
    Ok(device)
}

/// Runs mkfs without discard, which would punch holes into the image. Everything is initialised
/// immediately, so that no kernel thread does it during the measurement.
///
/// # Errors
///
/// The tool is missing or fails.
pub fn make_filesystem(spec: &FreshSpec, device: &Path) -> Result<(), FreshError> {
    let block_bytes = spec.block_bytes;
    let (tool, own): (ExternalTool, Vec<String>) = match spec.filesystem_kind {
        FreshKind::Ext2 | FreshKind::Ext4 => (
            if spec.filesystem_kind == FreshKind::Ext2 {
                ExternalTool::MkfsExt2
            } else {
                ExternalTool::MkfsExt4
            },
            [
                "-q",
                "-F",
                "-E",
                "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
                "-b",
            ]
            .map(str::to_owned)
            .into_iter()
            .chain([block_bytes.to_string()])
            .collect(),
        ),
        FreshKind::Xfs => (
            ExternalTool::MkfsXfs,
            vec![
                "-q".into(),
                "-f".into(),
                "-K".into(),
                "-b".into(),
                format!("size={block_bytes}"),
            ],
        ),
        FreshKind::Btrfs => (
            ExternalTool::MkfsBtrfs,
            vec![
                "-q".into(),
                "-f".into(),
                "-K".into(),
                "--sectorsize".into(),
                block_bytes.to_string(),
            ],
        ),
    };
    let mut arguments: Vec<&OsStr> = own.iter().map(OsStr::new).collect();
    arguments.extend(spec.mkfs_arguments.iter().map(OsStr::new));
    arguments.push(device.as_os_str());
    tool.run_checked(&arguments)?;
    Ok(())
}

/// Returns the user's mount options, with `nodiscard` added for btrfs.
fn mount_options_with_notes(spec: &FreshSpec, notes: &mut Vec<String>) -> Vec<String> {
    let mut options = spec.mount_options.clone();
    let speaks_of_discard = options.iter().any(|option| option.contains("discard"));
    if spec.filesystem_kind == FreshKind::Btrfs && !speaks_of_discard {
        options.push("nodiscard".to_owned());
        notes.push(
            "btrfs is mounted with nodiscard: its default would punch holes into the image"
                .to_owned(),
        );
    }
    options
}

/// Runs the checker of a file system on an unmounted device, which it only reads.
///
/// # Errors
///
/// The checker is missing. Damage is in the report, and is no error here.
pub fn check_filesystem(kind: FreshKind, device: &Path) -> Result<FsckReport, FreshError> {
    let (tool, options): (ExternalTool, &[&str]) = match kind {
        FreshKind::Ext2 | FreshKind::Ext4 => (ExternalTool::E2fsck, &["-f", "-n"]),
        FreshKind::Xfs => (ExternalTool::XfsRepair, &["-n"]),
        FreshKind::Btrfs => (ExternalTool::Btrfs, &["check", "--readonly"]),
    };
    let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    arguments.push(device.as_os_str());
    let output = tool.run_tool(&arguments)?;
    Ok(FsckReport {
        command_line: tool.command_line(&arguments),
        is_clean: output.status.success(),
        fsck_output: combine_output(&output),
    })
}
