//! How a file is opened, and from where an offset counts.

/// How open(2) opens a file: start from [`Open::READ`], [`Open::WRITE`] or
/// [`Open::READ_WRITE`] and add to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// O_RDONLY or O_RDWR.
    pub read: bool,
    /// O_WRONLY or O_RDWR.
    pub write: bool,
    /// O_CREAT.
    pub create: bool,
    /// O_EXCL.
    pub exclusive: bool,
    /// O_TRUNC.
    pub truncate: bool,
    /// O_DIRECT: past the page cache. Refused with EINVAL where the file
    /// system would take the flag and use its cache all the same.
    pub direct: bool,
    /// O_DSYNC: a write returns when its data is durable.
    pub dsync: bool,
    /// O_SYNC: a write returns when its data and all that is kept of the file are durable.
    pub sync: bool,
}

impl Open {
    /// For reading.
    pub const READ: Self = Self {
        read: true,
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        direct: false,
        dsync: false,
        sync: false,
    };
    /// For writing.
    pub const WRITE: Self = Self {
        read: false,
        write: true,
        ..Self::READ
    };
    /// For both.
    pub const READ_WRITE: Self = Self {
        write: true,
        ..Self::READ
    };
    /// creat(2): write, create, truncate.
    pub const CREATE: Self = Self {
        create: true,
        truncate: true,
        ..Self::WRITE
    };

    /// Adds O_CREAT.
    pub const fn create(self) -> Self {
        Self {
            create: true,
            ..self
        }
    }

    /// Adds O_CREAT and O_EXCL.
    pub const fn create_new(self) -> Self {
        Self {
            create: true,
            exclusive: true,
            ..self
        }
    }

    /// Sets or clears O_DIRECT.
    pub const fn direct(self, direct: bool) -> Self {
        Self { direct, ..self }
    }

    /// Sets or clears O_DSYNC.
    pub const fn dsync(self, dsync: bool) -> Self {
        Self { dsync, ..self }
    }

    /// Sets or clears O_SYNC.
    pub const fn sync(self, sync: bool) -> Self {
        Self { sync, ..self }
    }
}

/// From where lseek(2) counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The start of the file.
    Start,
    /// The current offset.
    Current,
    /// The end of the file.
    End,
}
