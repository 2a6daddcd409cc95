//! A fresh file system on an image file inside the workspace: made, mounted,
//! measured, unmounted, checked and removed, as the 1983 script does with
//! newfs.

mod mounted;
mod options;
mod spec;

pub use mounted::enter_private_mounts;
pub(super) use mounted::unmount_patiently;
pub use spec::{FreshKind, FreshSpec, SpecError};

use super::device::tool::{Tool, ToolError, what_it_said};
use super::device::{DeviceNumber, LoopDevice, LoopError, node_number};
use super::page_cache::{DirectSupport, direct_io, drop_pages, memory_file_system, mount_of};
use super::workspace::{
    Workspace, WorkspaceError, available_bytes, path_through, patiently, require_space,
};
use diskperf_timeline::units::format_size;
use mounted::Mounted;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Sectors of a disk, as every file system here accepts them.
const LEAST_SECTOR_BYTES: u64 = 512;

/// Why a fresh file system could not be made, or not be taken down.
#[derive(Debug, thiserror::Error)]
pub enum FreshError {
    /// Not root.
    #[error(
        "a fresh file system needs root (loop device, mkfs, mount): use sudo, or omit `--fresh`: `diskperf run` then measures the existing file system of the directory"
    )]
    NotRoot,
    /// The specification cannot be met.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The workspace has no room for the image.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A tool failed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The loop device failed.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// No file of the image's size may be made.
    #[error(
        "{path}: no file of {} may be made there: raise the limit (`ulimit -f`), or make the image smaller (`size=`)",
        format_size(*.bytes)
    )]
    TooLarge {
        /// The image.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It was made, but its files have less room than they need.
    #[error(
        "the fresh {kind} has {available_bytes} bytes for files where {needed_bytes} are needed: make its image larger (`size=`)"
    )]
    TooFull {
        /// The kind.
        kind: FreshKind,
        /// What is free on it.
        available_bytes: u64,
        /// What was asked for.
        needed_bytes: u64,
    },
    /// It is still in use.
    #[error(
        "{directory} could not be unmounted ({source}): is a file on it open, or a process in it?"
    )]
    Unmount {
        /// Where it is mounted.
        directory: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The process's mounts could not be made private.
    #[error(
        "a mount namespace of diskperf's own could not be made ({source}): it needs root, and a container that permits it"
    )]
    PrivateMounts {
        /// What the kernel said.
        source: io::Error,
    },
    /// Anything else.
    #[error("{path}: {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// What the file system's own checker found after the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsckReport {
    command: String,
    clean: bool,
    output: String,
}

impl FsckReport {
    /// Whether it found nothing to repair.
    pub fn clean(&self) -> bool {
        self.clean
    }
}

impl fmt::Display for FsckReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = if self.clean {
            "found the fresh file system clean"
        } else {
            "found damage on the fresh file system, so its figures are invalid"
        };
        write!(formatter, "`{}` {found}: {}", self.command, self.output)
    }
}

/// A mounted file system of its own. A drop unmounts and detaches it as well
/// as it can; the image goes with the workspace.
#[derive(Debug)]
pub struct FreshFilesystem {
    // In the order in which they have to go.
    mounted: Mounted,
    device: LoopDevice,
    folder: Folder,
    spec: FreshSpec,
    notes: Vec<String>,
}

/// The folder of the image and the mount point.
#[derive(Debug)]
struct Folder {
    /// The workspace, which keeps every other user from what is in it.
    workspace: OwnedFd,
    name: String,
    /// For messages and for tools.
    path: PathBuf,
}

impl Folder {
    /// A folder `fresh-N` with the first free N.
    fn new(workspace: &Workspace) -> Result<Self, FreshError> {
        let mut number = 1;
        loop {
            let name = format!("{IMAGE_FOLDER}{number}");
            let path = workspace.path().join(&name);
            let failed = |source| FreshError::io("make a folder", &path, source);
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

    /// A path to it that leads there also if the workspace's own path comes to
    /// lead elsewhere.
    fn safe_path(&self) -> PathBuf {
        path_through(self.workspace.as_fd()).join(&self.name)
    }
}

/// What the folder of an image is called, before its number.
pub(super) const IMAGE_FOLDER: &str = "fresh-";
pub(super) const IMAGE: &str = "image";
const MOUNT_POINT: &str = "files";

impl FreshFilesystem {
    /// Makes and mounts a file system on which files of `payload_bytes` fit.
    /// The image takes [`FreshSpec::image_bytes`] of the workspace's file
    /// system, all of which are allocated at once, so that no later write has
    /// to allocate anything outside of the image.
    ///
    /// # Errors
    /// Not root, no room, a tool is missing or refuses.
    pub fn make(
        workspace: &Workspace,
        spec: &FreshSpec,
        payload_bytes: u64,
    ) -> Result<Self, FreshError> {
        if !rustix::process::geteuid().is_root() {
            return Err(FreshError::NotRoot);
        }
        let image_bytes = spec.image_bytes(payload_bytes)?;
        require_space(workspace.directory(), workspace.path(), image_bytes)?;
        let folder = Folder::new(workspace)?;
        let mut notes = Vec::new();
        let image = allocate_image(&folder, image_bytes, &mut notes)?;
        let device = attach(&folder, &image, spec.block_bytes, &mut notes)?;
        make_filesystem(spec, device.device().path())?;
        let options = mount_options(spec, &mut notes);
        let mounted = Mounted::mount(
            spec.kind,
            device.device().path(),
            &folder.path.join(MOUNT_POINT),
            folder.safe_path().join(MOUNT_POINT),
            &options,
        )?;
        let fresh = Self {
            mounted,
            device,
            folder,
            spec: spec.clone(),
            notes,
        };
        fresh.require_room(payload_bytes)?;
        Ok(fresh)
    }

    fn require_room(&self, payload_bytes: u64) -> Result<(), FreshError> {
        let space = self
            .open_directory()
            .and_then(|directory| Ok(rustix::fs::fstatvfs(directory)?))
            .map_err(|error| FreshError::io("open", self.directory(), error))?;
        let available_bytes = available_bytes(&space);
        if available_bytes < payload_bytes {
            return Err(FreshError::TooFull {
                kind: self.kind(),
                available_bytes,
                needed_bytes: payload_bytes,
            });
        }
        Ok(())
    }

    /// Opens the directory that it is mounted on, for reading, and makes sure
    /// that this is its root. Nothing may hold it open at the end, or it
    /// cannot be unmounted.
    ///
    /// # Errors
    /// Something else is there.
    pub fn open_directory(&self) -> io::Result<OwnedFd> {
        let path = self.folder.safe_path().join(MOUNT_POINT);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let device = self.device.device();
        if !is_mounted_from(directory.as_fd(), device.number())? {
            return Err(io::Error::other(format!(
                "{} is not mounted on {}",
                device.path().display(),
                self.directory().display()
            )));
        }
        Ok(directory)
    }

    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        self.mounted.directory()
    }

    /// Its kind.
    pub fn kind(&self) -> FreshKind {
        self.spec.kind
    }

    /// Bytes in one of its blocks.
    pub fn block_bytes(&self) -> u64 {
        self.spec.block_bytes
    }

    /// What a reader of its figures must know.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Unmounts it, has it checked by its own checker, detaches the loop
    /// device and removes the image.
    ///
    /// # Errors
    /// A file on it is open, or the checker is missing. What the checker finds
    /// is in the report, and is no error here.
    pub fn finish(self) -> Result<FsckReport, FreshError> {
        let Self {
            mounted,
            device,
            folder,
            spec,
            ..
        } = self;
        mounted.unmount()?;
        // The device's own page cache may still hold what mkfs wrote, where
        // the file system wrote past it; the checker must see the image.
        drop_pages(device.file())
            .map_err(|error| FreshError::io("drop cached pages", device.device().path(), error))?;
        let report = check(spec.kind, device.device().path())?;
        device.detach()?;
        patiently(|| std::fs::remove_dir_all(folder.safe_path()))
            .map_err(|error| FreshError::io("remove", &folder.path, error))?;
        Ok(report)
    }
}

impl FreshError {
    fn io(action: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }
}

/// Whether an open directory is on the file system that is mounted from a
/// device.
fn is_mounted_from(directory: BorrowedFd<'_>, device: DeviceNumber) -> io::Result<bool> {
    let number = DeviceNumber::from_raw(rustix::fs::fstat(directory)?.st_dev);
    if number.major != 0 {
        return Ok(number == device);
    }
    // btrfs has a number of no driver's: only the mount's source names the
    // device.
    let mount = mount_of(directory);
    Ok(mount.is_some_and(|mount| node_number(&mount.source).ok().flatten() == Some(device)))
}

/// Makes the image with all its blocks.
fn allocate_image(
    folder: &Folder,
    bytes: u64,
    notes: &mut Vec<String>,
) -> Result<File, FreshError> {
    let path = folder.path.join(IMAGE);
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::FileTooLarge => FreshError::TooLarge {
            path: path.clone(),
            bytes,
        },
        _ => FreshError::io("write the image", &path, error),
    };
    let mut image = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(folder.safe_path().join(IMAGE))
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

fn attach(
    folder: &Folder,
    image: &File,
    block_bytes: u64,
    notes: &mut Vec<String>,
) -> Result<LoopDevice, FreshError> {
    // The loop device's sectors must not be smaller than the pieces that the
    // image's file system takes in direct I/O, nor larger than a block.
    let sector_bytes = match direct_io(image.as_fd()) {
        Ok(DirectSupport::Supported {
            offset_alignment, ..
        }) if offset_alignment <= block_bytes => offset_alignment.max(LEAST_SECTOR_BYTES),
        _ => LEAST_SECTOR_BYTES,
    };
    let device = LoopDevice::attach(&folder.path.join(IMAGE), image.as_fd(), sector_bytes)?;
    if let Some(kind) = memory_file_system(image.as_fd()) {
        notes.push(format!("the image lies on {kind}, that is, in memory"));
    } else if !device.uses_direct_io() {
        notes.push(
            "the file system that holds the image refuses the loop device direct I/O: data is cached there a second time"
                .to_owned(),
        );
    }
    Ok(device)
}

/// Runs mkfs, without discarding (which would punch holes into the image) and
/// with everything initialised now and not by a thread of the kernel's while
/// the measurement runs.
fn make_filesystem(spec: &FreshSpec, device: &Path) -> Result<(), FreshError> {
    let block_bytes = spec.block_bytes;
    let (tool, own): (Tool, Vec<String>) = match spec.kind {
        FreshKind::Ext2 | FreshKind::Ext4 => (
            if spec.kind == FreshKind::Ext2 {
                Tool::MkfsExt2
            } else {
                Tool::MkfsExt4
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
            Tool::MkfsXfs,
            vec![
                "-q".into(),
                "-f".into(),
                "-K".into(),
                "-b".into(),
                format!("size={block_bytes}"),
            ],
        ),
        FreshKind::Btrfs => (
            Tool::MkfsBtrfs,
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
    tool.run_well(&arguments)?;
    Ok(())
}

/// The user's options, and for btrfs `nodiscard`.
fn mount_options(spec: &FreshSpec, notes: &mut Vec<String>) -> Vec<String> {
    let mut options = spec.mount_options.clone();
    let speaks_of_discard = options.iter().any(|option| option.contains("discard"));
    if spec.kind == FreshKind::Btrfs && !speaks_of_discard {
        options.push("nodiscard".to_owned());
        notes.push(
            "btrfs is mounted with nodiscard: its default would punch holes into the image"
                .to_owned(),
        );
    }
    options
}

fn check(kind: FreshKind, device: &Path) -> Result<FsckReport, FreshError> {
    let (tool, options): (Tool, &[&str]) = match kind {
        FreshKind::Ext2 | FreshKind::Ext4 => (Tool::E2fsck, &["-f", "-n"]),
        FreshKind::Xfs => (Tool::XfsRepair, &["-n"]),
        FreshKind::Btrfs => (Tool::Btrfs, &["check", "--readonly"]),
    };
    let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
    arguments.push(device.as_os_str());
    let output = tool.run(&arguments)?;
    Ok(FsckReport {
        command: tool.command_line(&arguments),
        clean: output.status.success(),
        output: what_it_said(&output),
    })
}
