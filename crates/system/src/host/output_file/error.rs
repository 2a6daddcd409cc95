//! Why a file is not written, and what to name instead.

use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// A file that is not written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct OutputError {
    /// As the user wrote it.
    pub path: PathBuf,
    /// What is wrong with it.
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

/// What is wrong with a file that would be written. The text of each continues
/// a sentence that begins with the file's name.
#[derive(Debug, thiserror::Error)]
pub enum OutputProblem {
    /// It is something else than a regular file.
    #[error(
        "cannot be written, because it {}: output takes the place of regular files only; name another file",
        is(kind, real.as_deref())
    )]
    NotAFile {
        /// `a block device`.
        kind: &'static str,
        /// What it is called where a link leads.
        real: Option<PathBuf>,
    },
    /// It leads through what a process has open.
    #[error(
        "cannot be written, because {} leads to what a process has open: name the file itself",
        link.display()
    )]
    OpenFile {
        /// The link below `/proc`.
        link: PathBuf,
    },
    /// A link of another user is in the way.
    #[error(
        "cannot be written, because {} is a symbolic link of user {owner}, who decides where it leads: name the file itself",
        link.display()
    )]
    LinkOfAnother {
        /// The link.
        link: PathBuf,
        /// The user's number.
        owner: u32,
    },
    /// The file is another user's.
    #[error(
        "cannot be written, because it is a file of user {owner} in a directory that others may write to: name another file"
    )]
    FileOfAnother {
        /// The user's number.
        owner: u32,
    },
    /// The directory takes files, and does not let them be removed or renamed.
    #[error(
        "cannot be written, because its directory does not let the file that was tried there, {name}, be removed ({source}): name a file in another directory"
    )]
    Stays {
        /// What was tried.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system does not let it be written.
    #[error("cannot be written: {0}; name a file in a directory that you may write to")]
    Io(#[from] io::Error),
}

fn is(kind: &str, real: Option<&Path>) -> String {
    match real {
        Some(real) => format!("leads to {}, {kind}", real.display()),
        None => format!("is {kind}"),
    }
}

impl OutputProblem {
    /// `/dev/null` where a file must be.
    pub(super) fn null() -> Self {
        Self::NotAFile {
            kind: "a character device",
            real: None,
        }
    }

    /// Whether another name would help, and not another disk.
    pub fn is_of_the_name(&self) -> bool {
        const OF_THE_MACHINE: [Errno; 7] = [
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
                errno.is_none_or(|errno| !OF_THE_MACHINE.contains(&errno))
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
