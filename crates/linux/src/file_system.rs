//! The system calls that a file system serves.

use thiserror::Error;

use crate::block::FileId;
use crate::effect::CallContext;
use crate::ext4::Ext4;
use crate::operation::{ByteRange, FallocateMode, SyncRangeFlags};
use crate::read_ahead::ReadAhead;
use crate::xfs::Xfs;

/// Reason why a file system cannot serve a call.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileSystemError {
    /// No free blocks or inodes are left.
    #[error("no space left on the file system of {bytes} bytes: model a larger device")]
    NoSpace {
        /// Size of the device.
        bytes: u64,
    },
    /// The call is not modelled.
    #[error("{file_system} does not model {call}: {remedy}")]
    Unsupported {
        /// Name of the file system.
        file_system: &'static str,
        /// Name of the call with the arguments that matter.
        call: String,
        /// Remedy for the user.
        remedy: &'static str,
    },
}

/// Name of a file in a directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileName {
    /// Directory that holds the name.
    pub directory: FileId,
    /// Name without its directory.
    pub name: String,
}

/// Kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Regular file, which holds data.
    Regular,
    /// Directory, which holds names.
    Directory,
}

/// System calls after names and descriptors are resolved. Each adds what it does to the effects of
/// its context; timers run only in `advance`.
pub trait FileSystemCalls {
    /// Size of a file in bytes.
    fn size(&self, file: FileId) -> u64;

    /// Makes a file or directory with a name.
    fn create(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
        kind: FileKind,
    ) -> Result<(), FileSystemError>;

    /// Removes the name of a file. `evict` follows when nobody has it open.
    fn unlink(
        &mut self,
        context: &mut CallContext<'_>,
        entry: &FileName,
        file: FileId,
    ) -> Result<(), FileSystemError>;

    /// Moves a name. A replaced file loses its name; `evict` follows when nobody has it open.
    fn rename(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        from: &FileName,
        to: &FileName,
        replaced: Option<FileId>,
    ) -> Result<(), FileSystemError>;

    /// Frees a file without names that nobody has open.
    fn evict(&mut self, context: &mut CallContext<'_>, file: FileId)
    -> Result<(), FileSystemError>;

    /// Notes that a descriptor was opened, for writing if `is_writer`.
    fn open(&mut self, context: &mut CallContext<'_>, file: FileId, is_writer: bool);

    /// Notes that a descriptor was closed; `writers` descriptors for writing are left.
    fn close(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        was_writer: bool,
        writers: u32,
    ) -> Result<(), FileSystemError>;

    /// Reads through the page cache.
    fn read(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &mut ReadAhead,
    ) -> Result<(), FileSystemError>;

    /// Reads past the page cache (O_DIRECT).
    fn read_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError>;

    /// Writes to the page cache.
    fn write(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError>;

    /// Writes past the page cache (O_DIRECT). With `data_sync`, an overwrite may be durable by FUA.
    /// Returns whether the write is durable already.
    fn write_direct(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_sync: bool,
    ) -> Result<bool, FileSystemError>;

    /// Makes a range of a file durable; `data_only` is fdatasync and O_DSYNC.
    fn sync(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        data_only: bool,
    ) -> Result<(), FileSystemError>;

    /// Makes a directory durable.
    fn sync_directory(
        &mut self,
        context: &mut CallContext<'_>,
        directory: FileId,
    ) -> Result<(), FileSystemError>;

    /// Makes the file system durable (syncfs).
    fn sync_all(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError>;

    /// Writes dirty pages of a range (sync_file_range).
    fn sync_range(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        flags: SyncRangeFlags,
    ) -> Result<(), FileSystemError>;

    /// Writes the dirty pages of a range, and drops what is clean then (POSIX_FADV_DONTNEED).
    fn drop_pages(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
    ) -> Result<(), FileSystemError>;

    /// Reads a range at once (POSIX_FADV_WILLNEED).
    fn prefetch(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        range: ByteRange,
        read_ahead: &ReadAhead,
    ) -> Result<(), FileSystemError>;

    /// Allocates, punches or zeroes a range; `is_sync` if the descriptor has O_DSYNC or O_SYNC.
    fn fallocate(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        mode: FallocateMode,
        range: ByteRange,
        is_sync: bool,
    ) -> Result<(), FileSystemError>;

    /// Sets the size of a file.
    fn truncate(
        &mut self,
        context: &mut CallContext<'_>,
        file: FileId,
        size: u64,
    ) -> Result<(), FileSystemError>;

    /// Discards free space (FITRIM).
    fn trim(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError>;

    /// Writes everything home and leaves the file system clean.
    fn unmount(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError>;

    /// Runs what is due at `context.now_ns`: journal and log timers, flushers, deferred work.
    fn advance(&mut self, context: &mut CallContext<'_>) -> Result<(), FileSystemError>;

    /// Returns the earliest time at which `advance` has something to do.
    fn next_timer_ns(&self) -> Option<u64>;

    /// Whether each call of the mount is synchronous (`sync`).
    fn is_sync(&self) -> bool;
}

/// File system of a stack.
#[derive(Debug)]
pub enum FileSystem {
    /// ext4 with its journal.
    Ext4(Box<Ext4>),
    /// XFS with its log.
    Xfs(Box<Xfs>),
}

impl FileSystem {
    /// Returns the calls of the file system.
    pub fn calls(&mut self) -> &mut dyn FileSystemCalls {
        match self {
            Self::Ext4(ext4) => ext4.as_mut(),
            Self::Xfs(xfs) => xfs.as_mut(),
        }
    }
}
