//! Errors of the calls that a program makes.

use std::fmt;

/// Result of a program's call to its system, with [`Error`] for a failure.
pub type Result<T> = std::result::Result<T, Error>;

/// Reason why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Failure that the operating system or the modelled kernel reported.
    #[error(transparent)]
    CallFailed(Box<CallFailure>),
    /// Interruption: the user ended the run.
    #[error("interrupted")]
    Interrupted,
    /// Failure of another worker of the run, after which there is nothing to wait for.
    #[error("another worker of this run failed")]
    OtherWorkerFailed,
}

/// Call that the system refused or failed, with its file and error number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{call} {path}: {errno}")]
pub struct CallFailure {
    /// System call or operation that failed.
    pub call: CallKind,
    /// Path of the file, as the worker named it.
    pub path: String,
    /// Error number that the system returned.
    pub errno: Errno,
}

impl Error {
    /// Returns the error for a call that failed on a file with an error number.
    pub fn call_failed(call: CallKind, path: impl Into<String>, errno: impl Into<Errno>) -> Self {
        Self::CallFailed(Box::new(CallFailure {
            call,
            path: path.into(),
            errno: errno.into(),
        }))
    }

    /// Reports whether the call failed for lack of space or quota.
    pub fn is_out_of_space(&self) -> bool {
        matches!(self.errno(), Some(Errno::NoSpace | Errno::Quota))
    }

    /// Returns the error number, if the system reported one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Self::CallFailed(failure) => Some(failure.errno),
            Self::Interrupted | Self::OtherWorkerFailed => None,
        }
    }
}

/// System call or operation of a program, for error messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is the system call of its name")]
pub enum CallKind {
    Open,
    Read,
    Write,
    Lseek,
    Ftruncate,
    Fallocate,
    Fsync,
    Fdatasync,
    SyncFileRange,
    Discard,
    RingSetup,
    Close,
    FileLength,
    Stat,
    Unlink,
    Mkdir,
    Rmdir,
    Rename,
    Fchown,
    Fchmod,
    Chown,
    Chmod,
    Utimes,
    Sleep,
    Pipe,
    MapFile,
    DropCachedPages,
    CacheResidency,
    ResourceUsage,
}

impl fmt::Display for CallKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Open => "open",
            Self::Read => "read",
            Self::Write => "write",
            Self::Lseek => "lseek",
            Self::Ftruncate => "ftruncate",
            Self::Fallocate => "fallocate",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::SyncFileRange => "sync_file_range",
            Self::Discard => "discard",
            Self::RingSetup => "io_uring_setup",
            Self::Close => "close",
            Self::FileLength => "fstat",
            Self::Stat => "stat",
            Self::Unlink => "unlink",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
            Self::Rename => "rename",
            Self::Fchown => "fchown",
            Self::Fchmod => "fchmod",
            Self::Chown => "chown",
            Self::Chmod => "chmod",
            Self::Utimes => "utimes",
            Self::Sleep => "sleep",
            Self::Pipe => "pipe",
            Self::MapFile => "mmap",
            Self::DropCachedPages => "drop from cache",
            Self::CacheResidency => "residency of",
            Self::ResourceUsage => "resource usage of",
        })
    }
}

macro_rules! errnos {
    ($($name:ident $number:literal $symbol:literal $meaning:literal,)*) => {
        /// Error numbers that real storage and models share.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Errno {
            $(#[doc = concat!($symbol, ": ", $meaning)] $name,)*
            /// Any other error, by its number on this system.
            Other(i32),
        }

        impl Errno {
            /// Returns the Linux number of the error.
            pub fn number(self) -> i32 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Other(number) => number,
                }
            }

            /// Returns the error that a Linux error number stands for. EINVAL becomes
            /// [`Errno::Invalid`], whatever its cause.
            pub fn from_number(number: i32) -> Self {
                let mut known = [$(($number, Self::$name)),*].into_iter();
                let named = known.find(|(own, _)| *own == number);
                named.map_or(Self::Other(number), |(_, errno)| errno)
            }
        }

        impl fmt::Display for Errno {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$name => out.write_str(concat!($meaning, " (", $symbol, ")")),)*
                    Self::Other(number) => {
                        write!(out, "{}", std::io::Error::from_raw_os_error(*number))
                    }
                }
            }
        }
    };
}

errnos! {
    Access 13 "EACCES" "permission denied",
    BadFile 9 "EBADF" "file is not open, or not open for this operation",
    Busy 16 "EBUSY" "device or resource busy",
    CrossDevice 18 "EXDEV" "on another file system",
    Exists 17 "EEXIST" "file exists",
    FileTooBig 27 "EFBIG" "file too large",
    Invalid 22 "EINVAL" "invalid argument",
    Io 5 "EIO" "input/output error",
    IsDirectory 21 "EISDIR" "is a directory",
    NameTooLong 36 "ENAMETOOLONG" "file name too long",
    NoEntry 2 "ENOENT" "no such file or directory",
    NoSpace 28 "ENOSPC" "no space left on device",
    NotDirect 22 "EINVAL" "O_DIRECT does not bypass the page cache here",
    NotSynchronous 22 "EINVAL" "this kernel has no O_DSYNC here: use program.sync_every=1 to sync after each write",
    NotDirectory 20 "ENOTDIR" "not a directory",
    NotEmpty 39 "ENOTEMPTY" "directory not empty",
    NotPermitted 1 "EPERM" "operation not permitted",
    NotSeekable 29 "ESPIPE" "illegal seek",
    NotSupported 95 "EOPNOTSUPP" "not supported by this file system or device",
    NoCall 38 "ENOSYS" "the kernel lacks this system call, or a filter blocks it",
    NoDevice 19 "ENODEV" "no such device",
    NoDeviceOrAddress 6 "ENXIO" "no such device or address",
    NoMemory 12 "ENOMEM" "cannot allocate memory",
    NotConnected 107 "ENOTCONN" "the other end is not connected",
    BrokenPipe 32 "EPIPE" "no process reads this pipe",
    Interrupted 4 "EINTR" "interrupted by a signal",
    ConnectionAborted 103 "ECONNABORTED" "the connection was aborted",
    LoopedLinks 40 "ELOOP" "too many symbolic links",
    Overflow 75 "EOVERFLOW" "value too large for its type",
    Quota 122 "EDQUOT" "disk quota exceeded",
    ReadOnly 30 "EROFS" "read-only file system or device",
    RemoteIo 121 "EREMOTEIO" "input/output error of the device",
    Stale 116 "ESTALE" "the server no longer has the file",
    TextBusy 26 "ETXTBSY" "the file is a running program",
    TimedOut 110 "ETIMEDOUT" "the device did not answer in time",
    TooManyFiles 24 "EMFILE" "too many open files in this process",
    TooManyFilesOfSystem 23 "ENFILE" "too many open files in the system",
    TooManyLinks 31 "EMLINK" "too many links",
    TryAgain 11 "EAGAIN" "resource temporarily unavailable",
    Unclean 117 "EUCLEAN" "the file system is damaged",
    NoData 61 "ENODATA" "the device has lost this data",
    BadMessage 74 "EBADMSG" "a checksum of the file system does not match",
    Protection 84 "EILSEQ" "the device cannot verify this data",
}

#[cfg(feature = "host")]
impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        rustix::io::Errno::from_io_error(&error).map_or(Self::Io, Self::from)
    }
}

#[cfg(feature = "host")]
impl From<rustix::io::Errno> for Errno {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::from_number(errno.raw_os_error())
    }
}

impl From<diskperf_machine::Errno> for Errno {
    fn from(errno: diskperf_machine::Errno) -> Self {
        use diskperf_machine::Errno as Model;
        match errno {
            Model::BadFileDescriptor => Self::BadFile,
            Model::DeviceBusy => Self::Busy,
            Model::CrossDevice => Self::CrossDevice,
            Model::AlreadyExists => Self::Exists,
            Model::FileTooLarge => Self::FileTooBig,
            Model::InvalidArgument => Self::Invalid,
            Model::IsDirectory => Self::IsDirectory,
            Model::NameTooLong => Self::NameTooLong,
            Model::NoSuchEntry => Self::NoEntry,
            Model::NoSpace => Self::NoSpace,
            Model::NotDirectory => Self::NotDirectory,
            Model::NotEmpty => Self::NotEmpty,
            Model::IllegalSeek => Self::NotSeekable,
            Model::BrokenPipe => Self::BrokenPipe,
            Model::NotPermitted => Self::NotPermitted,
            Model::TooManyLinks => Self::TooManyLinks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message names each error number that storage and file systems return; none shows
    /// as "os error 38".
    #[cfg(feature = "host")]
    #[test]
    fn an_error_number_of_storage_has_a_name() {
        for (number, symbol) in [
            (1, "EPERM"),
            (2, "ENOENT"),
            (4, "EINTR"),
            (5, "EIO"),
            (6, "ENXIO"),
            (9, "EBADF"),
            (11, "EAGAIN"),
            (12, "ENOMEM"),
            (13, "EACCES"),
            (16, "EBUSY"),
            (19, "ENODEV"),
            (22, "EINVAL"),
            (23, "ENFILE"),
            (24, "EMFILE"),
            (26, "ETXTBSY"),
            (27, "EFBIG"),
            (28, "ENOSPC"),
            (29, "ESPIPE"),
            (30, "EROFS"),
            (38, "ENOSYS"),
            (40, "ELOOP"),
            (61, "ENODATA"),
            (74, "EBADMSG"),
            (75, "EOVERFLOW"),
            (84, "EILSEQ"),
            (95, "EOPNOTSUPP"),
            (103, "ECONNABORTED"),
            (107, "ENOTCONN"),
            (110, "ETIMEDOUT"),
            (116, "ESTALE"),
            (117, "EUCLEAN"),
            (121, "EREMOTEIO"),
            (122, "EDQUOT"),
        ] {
            let errno = Errno::from(std::io::Error::from_raw_os_error(number));
            assert_eq!(errno.number(), number, "{symbol}");
            let text = errno.to_string();
            assert!(text.ends_with(&format!("({symbol})")), "{number}: {text}");
            assert!(!text.contains("os error"), "{text}");
        }
    }

    /// Every call returns one: a larger error would cost each of them.
    #[test]
    fn an_error_takes_two_words() {
        assert!(size_of::<Error>() <= 2 * size_of::<usize>());
        assert_eq!(size_of::<Result<usize>>(), 2 * size_of::<usize>());
    }
}
