//! Errors of output files, with a remedy for each.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Error for an output file that is not written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct OutputError {
    /// Path of the output file, as the user wrote it.
    pub path: PathBuf,
    /// Problem that prevents writing the output file.
    pub problem: OutputProblem,
}

impl OutputError {
    pub(super) fn new(path: &Path, problem: OutputProblem) -> Self {
        Self {
            path: path.to_owned(),
            problem,
        }
    }
}

/// Problem that prevents writing an output file. The text of each continues a sentence that begins
/// with the file's name.
#[derive(Debug, thiserror::Error)]
pub enum OutputProblem {
    /// Path that leads to something other than a regular file.
    #[error(
        "cannot be written, because it {}: output replaces regular files only; name another file",
        describe_kind(kind, real.as_deref())
    )]
    NotRegularFile {
        /// Kind of the existing file, such as `a block device`.
        kind: &'static str,
        /// Resolved path, if a link leads to the file.
        real: Option<PathBuf>,
    },
    /// Path that leads through /proc to an open file of a process.
    #[error(
        "cannot be written, because {} leads to an open file of a process: name the file itself",
        link.display()
    )]
    FileInUse {
        /// Link below `/proc` that the path contains.
        link: PathBuf,
    },
    /// Path that contains a symbolic link of another user.
    #[error(
        "cannot be written, because {} is a symbolic link of user {owner}, who decides where it leads: name the file itself",
        link.display()
    )]
    LinkOfOtherUser {
        /// Path of the symbolic link.
        link: PathBuf,
        /// User id of the link's owner.
        owner: u32,
    },
    /// Existing file that belongs to another user.
    #[error(
        "cannot be written, because it is a file of user {owner} in a directory that others may write to: name another file"
    )]
    FileOfOtherUser {
        /// User id of the file's owner.
        owner: u32,
    },
    /// Directory that accepts new files, but does not allow them to be removed or renamed.
    #[error(
        "cannot be written, because its directory does not allow the removal of a test file, {name} ({source}): name a file in another directory"
    )]
    NotRemovable {
        /// Name of the file that was tried.
        name: String,
        /// Error that the operating system returned.
        source: io::Error,
    },
    /// System error that prevents writing the file.
    #[error("cannot be written: {0}; name a file in a directory that you may write to")]
    Io(#[from] io::Error),
}

fn describe_kind(kind: &str, real: Option<&Path>) -> String {
    match real {
        Some(real) => format!("leads to {}, {kind}", real.display()),
        None => format!("is {kind}"),
    }
}

impl OutputProblem {
    /// Returns the problem for the path `/dev/null` where a regular file is required.
    pub(super) fn null_device_problem() -> Self {
        Self::NotRegularFile {
            kind: "a character device",
            real: None,
        }
    }

    /// Reports whether the problem lies with the file's name, so that another name would help, and
    /// not with the disk or the machine.
    pub fn is_caused_by_name(&self) -> bool {
        const MACHINE_ERRORS: [Errno; 7] = [
            Errno::NOSPC,
            Errno::DQUOT,
            Errno::IO,
            Errno::FBIG,
            Errno::NFILE,
            Errno::MFILE,
            Errno::NOMEM,
        ];
        match self {
            Self::Io(error) => {
                let errno = Errno::from_io_error(error);
                errno.is_none_or(|errno| !MACHINE_ERRORS.contains(&errno))
            }
            _ => true,
        }
    }
}

impl From<Errno> for OutputProblem {
    fn from(errno: Errno) -> Self {
        Self::Io(errno.into())
    }
}
