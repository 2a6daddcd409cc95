//! What a system call fails with.

/// The error numbers of the modelled kernel. As wide as what calls return, so that their
/// results are two words, which registers hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
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
pub(crate) type Result<T> = std::result::Result<T, Errno>;
