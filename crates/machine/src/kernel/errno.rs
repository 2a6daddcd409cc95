//! What a system call fails with.

/// The error numbers of the modelled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// ENOENT.
    NoEntry,
    /// EEXIST.
    Exists,
    /// EISDIR.
    IsDirectory,
    /// ENOTDIR.
    NotDirectory,
    /// ENOTEMPTY.
    NotEmpty,
    /// ENAMETOOLONG.
    NameTooLong,
    /// ENOSPC.
    NoSpace,
    /// EFBIG.
    FileTooLarge,
    /// EINVAL.
    Invalid,
    /// EBADF.
    BadFile,
    /// EBUSY.
    Busy,
    /// EXDEV.
    CrossDevice,
    /// EPIPE.
    BrokenPipe,
    /// ESPIPE.
    IllegalSeek,
    /// EPERM.
    NotPermitted,
    /// EMLINK.
    TooManyLinks,
}

/// The result of a system call.
pub type Result<T> = std::result::Result<T, Errno>;
