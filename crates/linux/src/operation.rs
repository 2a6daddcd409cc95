//! Operations on files, as programs request them by system calls.

/// Flags of open(2). Files are opened for reading and writing unless `read_only`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// O_CREAT: a missing file is created.
    pub create: bool,
    /// O_TRUNC: the file loses its data.
    pub truncate: bool,
    /// O_DIRECT: transfers go past the page cache.
    pub direct: bool,
    /// O_DSYNC: each write is followed by fdatasync.
    pub data_sync: bool,
    /// O_SYNC, which implies O_DSYNC.
    pub sync: bool,
    /// O_RDONLY in place of O_RDWR.
    pub read_only: bool,
}

/// Range of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte of the range.
    pub offset: u64,
    /// Length in bytes. Where a system call says so, 0 means up to the end of the file.
    pub length: u64,
}

impl ByteRange {
    /// Returns the first byte after the range.
    #[must_use]
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Whole file, in the form of ranges that reach to the end.
    pub const ALL: Self = Self {
        offset: 0,
        length: u64::MAX,
    };
}

/// Modes of fallocate(2) that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallocateMode {
    /// Allocates, and extends the file.
    Extend,
    /// Allocates, and keeps the file's size (FALLOC_FL_KEEP_SIZE).
    KeepSize,
    /// Removes the range, and keeps the file's size (FALLOC_FL_PUNCH_HOLE).
    PunchHole,
    /// Zeroes the range by unwritten blocks, and extends the file (FALLOC_FL_ZERO_RANGE).
    ZeroRange,
}

/// Flags of sync_file_range(2): which of its three steps are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncRangeFlags {
    /// SYNC_FILE_RANGE_WAIT_BEFORE: waits for writeback under way.
    pub wait_before: bool,
    /// SYNC_FILE_RANGE_WRITE: starts writing dirty pages.
    pub write: bool,
    /// SYNC_FILE_RANGE_WAIT_AFTER: waits for what was started.
    pub wait_after: bool,
}

/// Advice of posix_fadvise(2) about later accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileAdvice {
    /// POSIX_FADV_NORMAL: the default again.
    Normal,
    /// POSIX_FADV_SEQUENTIAL: read-ahead is twice as long.
    Sequential,
    /// POSIX_FADV_RANDOM: there is no read-ahead.
    Random,
    /// POSIX_FADV_WILLNEED: the range is read at once.
    WillNeed,
    /// POSIX_FADV_DONTNEED: clean pages of the range are dropped.
    DontNeed,
}

/// One system call of a sequence. A descriptor is a name that the sequence chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOperation {
    /// open(2), which may create the file.
    Open {
        /// Descriptor that later operations name.
        descriptor: String,
        /// Path of the file, relative to the root of the file system.
        path: String,
        /// Flags of the call.
        options: OpenOptions,
    },
    /// close(2) of one descriptor.
    Close {
        /// Descriptor that is closed.
        descriptor: String,
    },
    /// pwrite(2) at a given offset.
    Write {
        /// Descriptor of the file.
        descriptor: String,
        /// Bytes of the file to write.
        range: ByteRange,
    },
    /// pread(2) at a given offset.
    Read {
        /// Descriptor of the file.
        descriptor: String,
        /// Bytes of the file to read.
        range: ByteRange,
    },
    /// fsync(2) or fdatasync(2) of a file.
    Sync {
        /// Descriptor of the file.
        descriptor: String,
        /// Whether it is fdatasync(2).
        data_only: bool,
    },
    /// fsync(2) of a directory.
    SyncDirectory {
        /// Path of the directory.
        path: String,
    },
    /// syncfs(2) of the file system.
    SyncFileSystem,
    /// rename(2) within the file system.
    Rename {
        /// Present path of the file.
        from: String,
        /// New path; a file there is replaced.
        to: String,
    },
    /// unlink(2) of one path.
    Unlink {
        /// Path of the file.
        path: String,
    },
    /// mkdir(2) of one path.
    MakeDirectory {
        /// Path of the directory.
        path: String,
    },
    /// fallocate(2) in one of the modes.
    Fallocate {
        /// Descriptor of the file.
        descriptor: String,
        /// Mode of the call.
        mode: FallocateMode,
        /// Bytes that it concerns.
        range: ByteRange,
    },
    /// ftruncate(2), which may extend the file.
    Truncate {
        /// Descriptor of the file.
        descriptor: String,
        /// New size in bytes.
        size: u64,
    },
    /// sync_file_range(2) with its three steps.
    SyncRange {
        /// Descriptor of the file.
        descriptor: String,
        /// Bytes that it concerns; a length of 0 reaches to the end of the file.
        range: ByteRange,
        /// Flags of the call.
        flags: SyncRangeFlags,
    },
    /// posix_fadvise(2) about a range.
    Advise {
        /// Descriptor of the file.
        descriptor: String,
        /// Advice of the call.
        advice: FileAdvice,
        /// Bytes that it concerns; a length of 0 reaches to the end of the file.
        range: ByteRange,
    },
    /// ioctl(FITRIM) over the whole file system.
    Trim,
    /// Time that passes without a system call.
    Sleep {
        /// Duration of the pause in nanoseconds.
        duration_ns: u64,
    },
}
