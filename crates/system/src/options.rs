//! Options of open(2), and the origins of offsets for lseek(2).

/// Mode and flags for opening a file with open(2). Start from [`OpenOptions::READ`], [`OpenOptions::WRITE`] or
/// [`OpenOptions::READ_WRITE`] and add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether the file is readable: O_RDONLY or O_RDWR.
    pub read: bool,
    /// Whether the file is writable: O_WRONLY or O_RDWR.
    pub write: bool,
    /// Flag O_CREAT: the file is created if it does not exist.
    pub create: bool,
    /// Flag O_EXCL: the call fails if the file exists.
    pub create_exclusive: bool,
    /// Flag O_TRUNC: the file is truncated to length zero.
    pub truncate: bool,
    /// Flag O_DIRECT: I/O bypasses the page cache. Opening fails with EINVAL if the file system
    /// would accept the flag and still use its cache.
    pub direct: bool,
    /// Flag O_DSYNC: a write returns when its data is durable.
    pub dsync: bool,
    /// Flag O_SYNC: a write returns when its data and all metadata of the file are durable.
    pub sync: bool,
}

impl OpenOptions {
    /// Open mode for reading only.
    pub const READ: Self = Self {
        read: true,
        write: false,
        create: false,
        create_exclusive: false,
        truncate: false,
        direct: false,
        dsync: false,
        sync: false,
    };
    /// Open mode for writing only.
    pub const WRITE: Self = Self {
        read: false,
        write: true,
        ..Self::READ
    };
    /// Open mode for reading and writing.
    pub const READ_WRITE: Self = Self {
        write: true,
        ..Self::READ
    };
    /// Open mode of creat(2): write, create, truncate.
    pub const CREATE: Self = Self {
        create: true,
        truncate: true,
        ..Self::WRITE
    };

    /// Adds O_CREAT to the open flags.
    pub const fn with_create(self) -> Self {
        Self {
            create: true,
            ..self
        }
    }

    /// Adds O_CREAT and O_EXCL to the open flags.
    pub const fn with_create_new(self) -> Self {
        Self {
            create: true,
            create_exclusive: true,
            ..self
        }
    }

    /// Sets or clears the open flag O_DIRECT.
    pub const fn with_direct(self, direct: bool) -> Self {
        Self { direct, ..self }
    }

    /// Sets or clears the open flag O_DSYNC.
    pub const fn with_dsync(self, dsync: bool) -> Self {
        Self { dsync, ..self }
    }

    /// Sets or clears the open flag O_SYNC.
    pub const fn with_sync(self, sync: bool) -> Self {
        Self { sync, ..self }
    }
}

/// Position from which an offset of lseek(2) counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeekOrigin {
    /// Start of the file as the origin of an offset.
    FileStart,
    /// Current offset of the open file as the origin of an offset.
    CurrentPosition,
    /// End of the file as the origin of an offset.
    FileEnd,
}
