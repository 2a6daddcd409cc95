//! Error numbers of system calls.

/// Error number of the modelled kernel. It has the width of call results, so that a result is two
/// words and fits in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Errno {
    /// No such file or directory (ENOENT).
    NoSuchEntry,
    /// File exists (EEXIST).
    AlreadyExists,
    /// Is a directory (EISDIR).
    IsDirectory,
    /// Not a directory (ENOTDIR).
    NotDirectory,
    /// Directory not empty (ENOTEMPTY).
    NotEmpty,
    /// File name too long (ENAMETOOLONG).
    NameTooLong,
    /// No space left on device (ENOSPC).
    NoSpace,
    /// File too large (EFBIG).
    FileTooLarge,
    /// Invalid argument (EINVAL).
    InvalidArgument,
    /// Bad file descriptor (EBADF).
    BadFileDescriptor,
    /// Device or resource busy (EBUSY).
    DeviceBusy,
    /// Cross-device link (EXDEV).
    CrossDevice,
    /// Broken pipe (EPIPE).
    BrokenPipe,
    /// Illegal seek (ESPIPE).
    IllegalSeek,
    /// Operation not permitted (EPERM).
    NotPermitted,
    /// Too many links (EMLINK).
    TooManyLinks,
}

/// Result of a system call: a value or an error number.
pub(crate) type Result<T> = std::result::Result<T, Errno>;
