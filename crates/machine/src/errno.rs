//! Error numbers of system calls.

/// Error number of the modelled kernel. It has the width of call results, so that a result is two
/// words and fits in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Errno {
    /// No such file or directory (ENOENT).
    NoSuchEntry,
    /// The file exists already (EEXIST).
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
    /// An argument is invalid (EINVAL).
    InvalidArgument,
    /// Bad file descriptor (EBADF).
    BadFileDescriptor,
    /// Device or resource busy (EBUSY).
    DeviceBusy,
    /// Link to another device (EXDEV).
    CrossDevice,
    /// Write to a pipe without a reader (EPIPE).
    BrokenPipe,
    /// Seek in a pipe (ESPIPE).
    IllegalSeek,
    /// Operation not permitted (EPERM).
    NotPermitted,
    /// Too many links (EMLINK).
    TooManyLinks,
}

/// Result of a system call: a value or an error number.
pub(crate) type Result<T> = std::result::Result<T, Errno>;
