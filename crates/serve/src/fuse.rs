//! A served drive as a file, by FUSE.
//!
//! The file system is one regular file, mounted on a file: the kernel, or any program, reads and
//! writes it without a protocol. Pages are not kept by the kernel, so every request reaches the
//! drive. An fsync of the file is the drive's flush, and a punched hole its trim.

use crate::exchange::{Exchange, RequestFailure, Responder};
use crate::{RequestKind, ServeError, Served, ServedRequest};
use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr,
    ReplyData, ReplyEmpty, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::mount::{UnmountFlags, unmount};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Source of the mount, as mountinfo shows it.
pub const FUSE_MOUNT_SOURCE: &str = "diskperf-serve";

/// Duration for which the kernel may keep attributes: they never change.
const ATTRIBUTES_VALID: Duration = Duration::from_secs(3600);

/// Requests that the kernel sends at the same time; its own limit of 12 caps the queue depth.
const BACKGROUND_MAX: u16 = 256;

/// Longest write that the kernel sends. Longer ones come in parts.
const WRITE_BYTES_MAX: u32 = 1 << 20;

/// Threads that read requests from the kernel. None of them waits for the drive.
const THREADS: usize = 2;

/// Flag of an open file whose writes are durable when they return. O_SYNC contains it.
const O_DSYNC: i32 = 0o10000;

/// A served drive that is mounted as a file. Dropping it ends serving.
#[derive(Debug)]
pub struct FuseFile {
    served: Arc<Served>,
    path: PathBuf,
    /// File that the drive is mounted on. Open, or another file might get its number.
    below: File,
    /// File that users see.
    shown: PlacedFile,
    session: Option<BackgroundSession>,
}

/// Numbers that tell the file at a path from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PlacedFile {
    device: u64,
    inode: u64,
}

impl PlacedFile {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Finds the file at a path, without following a link.
    fn find(path: &Path) -> io::Result<Self> {
        fs::symlink_metadata(path).map(|metadata| Self::from_metadata(&metadata))
    }
}

/// Whether a file is at a path.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let metadata = file.metadata()?;
    match PlacedFile::find(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        found => Ok(found? == PlacedFile::from_metadata(&metadata)),
    }
}

/// Removes a file, if it is still at its path and empty.
fn remove_created(file: &File, path: &Path) -> io::Result<()> {
    match is_at(file, path)? && file.metadata()?.len() == 0 {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

impl FuseFile {
    /// Creates a file, and mounts the drive on it. Root mounts by itself, others need the program
    /// `fusermount3`.
    ///
    /// # Errors
    ///
    /// A file that exists or cannot be created, or a system without FUSE.
    pub fn mount(served: Arc<Served>, path: &Path) -> Result<Self, ServeError> {
        let below = create_file(path)?;
        // Unmounting goes by this path, from whatever directory.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if !is_at(&below, &path).unwrap_or(false) {
            return Err(ServeError::Request(format!(
                "--fuse {}: was replaced as soon as it was created: name a file in a directory that nobody else writes",
                path.display()
            )));
        }
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName(FUSE_MOUNT_SOURCE.to_owned())];
        if served.is_read_only {
            config.mount_options.push(MountOption::RO);
        }
        config.n_threads = Some(THREADS);
        let filesystem = DriveFilesystem {
            exchange: Exchange::new(Arc::clone(&served)),
        };
        let mounted = fuser::spawn_mount(filesystem, &path, &config)
            .and_then(|session| Ok((session, PlacedFile::find(&path)?)));
        match mounted {
            Ok((session, shown)) => Ok(Self {
                served,
                path,
                below,
                shown,
                session: Some(session),
            }),
            Err(error) => {
                // The error that is returned is the first one.
                let _ = remove_created(&below, &path);
                Err(ServeError::Request(format!(
                    "--fuse {}: cannot be mounted: {error}; see that /dev/fuse is there (`modprobe fuse`), and for others than root open to all users (`chmod 666 /dev/fuse`) and `fusermount3` installed",
                    path.display()
                )))
            }
        }
    }

    /// Absolute path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends serving: requests in flight fail with ESHUTDOWN, and the file is unmounted and
    /// removed. What somebody else has put in its place is left.
    ///
    /// # Errors
    ///
    /// A file that is still open somewhere, that somebody else has unmounted, or that cannot be
    /// removed.
    pub fn end(&mut self) -> Result<(), ServeError> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        self.served.drive.shut_down();
        let path = self.path.display();
        if PlacedFile::find(&self.path).ok() != Some(self.shown) {
            // The error that is returned is the first one.
            let _ = remove_created(&self.below, &self.path);
            return Err(ServeError::Work(format!(
                "{path}: was unmounted by somebody else: the drive was not there since"
            )));
        }
        if let Err(error) = unmount_served_file(&self.path, false) {
            // Gone from its place at once, and from the kernel with its last user.
            let _ = unmount_served_file(&self.path, true);
            let _ = remove_created(&self.below, &self.path);
            return Err(ServeError::Work(format!(
                "{path}: is still open somewhere ({error}): every use of it fails from now on"
            )));
        }
        // A failure of its threads ends them, as the unmount does.
        let _ = session.join();
        let removed = remove_created(&self.below, &self.path);
        removed.map_err(|error| ServeError::Work(format!("{path}: cannot be removed: {error}")))
    }
}

/// Creates the file that a drive is mounted on.
fn create_file(path: &Path) -> Result<File, ServeError> {
    let created = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    created.map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::AlreadyExists => "name a new file, or remove it",
            _ => "name a file in a directory that you may write",
        };
        let path = path.display();
        ServeError::Request(format!(
            "--fuse {path}: cannot be created: {error}; {remedy}"
        ))
    })
}

/// Unmounts a served file. `while_open` removes it from its place although it is open somewhere.
///
/// # Errors
///
/// The file is open, or is not mounted, or the program `fusermount3` is missing, by which others
/// than root unmount.
pub fn unmount_served_file(path: &Path, while_open: bool) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let flags = match while_open {
            true => UnmountFlags::DETACH,
            false => UnmountFlags::empty(),
        };
        return unmount(path, flags).map_err(io::Error::from);
    }
    let mut command = Command::new("fusermount3");
    command.arg("-u").args(while_open.then_some("-z"));
    let output = command.arg("--").arg(path).output()?;
    let message = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("fusermount3: {}", message.trim()))),
    }
}

impl Drop for FuseFile {
    fn drop(&mut self) {
        // Nobody is left to report to.
        let _ = self.end();
    }
}

/// File system of one file, which is its root.
struct DriveFilesystem {
    exchange: Arc<Exchange<FuseResponder>>,
}

/// Program in the kernel that waits for a request.
enum FuseResponder {
    Read(ReplyData),
    Write(ReplyWrite, u32),
    Other(ReplyEmpty),
}

impl Responder for FuseResponder {
    fn respond(self, answer: Result<Vec<u8>, RequestFailure>) {
        match (self, answer) {
            (Self::Read(reply), Ok(data)) => reply.data(&data),
            (Self::Write(reply, bytes), Ok(_)) => reply.written(bytes),
            (Self::Other(reply), Ok(_)) => reply.ok(),
            (responder, Err(failure)) => responder.refuse(errno(failure)),
        }
    }
}

impl FuseResponder {
    fn refuse(self, error: Errno) {
        match self {
            Self::Read(reply) => reply.error(error),
            Self::Write(reply, _) => reply.error(error),
            Self::Other(reply) => reply.error(error),
        }
    }
}

fn errno(failure: RequestFailure) -> Errno {
    match failure {
        RequestFailure::Io => Errno::EIO,
        RequestFailure::NoMemory => Errno::ENOMEM,
        RequestFailure::NoSpace => Errno::ENOSPC,
        RequestFailure::ShutDown => Errno::ESHUTDOWN,
    }
}

impl DriveFilesystem {
    fn served(&self) -> &Served {
        self.exchange.served()
    }

    fn attributes(&self) -> FileAttr {
        let served = self.served();
        FileAttr {
            ino: INodeNo::ROOT,
            size: served.size_bytes,
            blocks: served.size_bytes / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: FileType::RegularFile,
            perm: if served.is_read_only { 0o400 } else { 0o600 },
            nlink: 1,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rdev: 0,
            blksize: served.sector_bytes,
            flags: 0,
        }
    }

    /// Submits a request, or refuses a change of a read-only drive and a range that ends behind
    /// the drive.
    fn submit(&self, request: ServedRequest, written: &[u8], responder: FuseResponder) {
        let served = self.served();
        let end = request.offset.checked_add(request.bytes);
        let changes = !matches!(request.kind, RequestKind::Read | RequestKind::Flush);
        let error = match end {
            _ if served.is_read_only && changes => Errno::EROFS,
            Some(end) if end <= served.size_bytes => {
                let keep_allocated = request.kind == RequestKind::WriteZeroes;
                return self
                    .exchange
                    .submit(request, written, keep_allocated, responder);
            }
            _ => Errno::ENOSPC,
        };
        served.statistics.add_refused();
        responder.refuse(error);
    }
}

/// Returns a request that need not be durable at its answer.
fn plain_request(kind: RequestKind, offset: u64, bytes: u64) -> ServedRequest {
    ServedRequest {
        kind,
        offset,
        bytes,
        fua: false,
    }
}

impl Filesystem for DriveFilesystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Smaller limits of the kernel's cost time alone, and so does an old kernel's lack of
        // asynchronous direct I/O.
        let _ = config.set_max_write(WRITE_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        Ok(())
    }

    fn getattr(&self, _: &Request, _: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ATTRIBUTES_VALID, &self.attributes());
    }

    fn setattr(
        &self,
        _: &Request,
        _: INodeNo,
        _mode: Option<u32>,
        _user: Option<u32>,
        _group: Option<u32>,
        size_bytes: Option<u64>,
        _accessed: Option<TimeOrNow>,
        _modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _: Option<FileHandle>,
        _created: Option<SystemTime>,
        _checked: Option<SystemTime>,
        _saved: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // A shell truncates what it writes to. A drive keeps its size, as a block device does.
        match size_bytes {
            Some(size_bytes) if size_bytes > self.served().size_bytes => reply.error(Errno::ENOSPC),
            _ => reply.attr(&ATTRIBUTES_VALID, &self.attributes()),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.served().statistics.add_connection();
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        // A close.
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let left = self.served().size_bytes.saturating_sub(offset);
        let bytes = u64::from(size).min(left);
        if bytes == 0 {
            return reply.data(&[]);
        }
        let request = plain_request(RequestKind::Read, offset, bytes);
        self.submit(request, &[], FuseResponder::Read(reply));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let request = ServedRequest {
            // Without pages of the file in the kernel, no fsync follows such a write.
            fua: flags.0 & O_DSYNC != 0,
            ..plain_request(RequestKind::Write, offset, data.len() as u64)
        };
        let responder = FuseResponder::Write(reply, data.len() as u32);
        self.submit(request, data, responder);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _only_data: bool, reply: ReplyEmpty) {
        let request = plain_request(RequestKind::Flush, 0, 0);
        self.submit(request, &[], FuseResponder::Other(reply));
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        /// Modes of fallocate(2) that make a range zero.
        const PUNCH_HOLE: i32 = 2;
        const ZERO_RANGE: i32 = 16;
        let kind = match (mode & PUNCH_HOLE != 0, mode & ZERO_RANGE != 0) {
            // Disks have no trim.
            (true, _) if !self.served().is_rotational => RequestKind::Trim,
            (false, true) => RequestKind::WriteZeroes,
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        let request = plain_request(kind, offset, length);
        self.submit(request, &[], FuseResponder::Other(reply));
    }
}
