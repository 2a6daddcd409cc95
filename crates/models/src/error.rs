//! What can be wrong with a request, and what can go wrong during a run.

use diskperf_battery::{ParameterError, ProgramError};
use diskperf_system::{Call, DROP_CACHES, Errno, Error as System};
use diskperf_timeline::{SettingError, WorkerFailure};
use std::fmt;
use std::path::PathBuf;

/// An error, with the remedy in its text.
#[derive(Debug, thiserror::Error)]
pub enum LaboratoryError {
    /// The request cannot be carried out as it is: the command line is wrong,
    /// or a file or device that it names.
    #[error("{0}")]
    Request(String),
    /// A file of the catalogue, the name of an entry, or a setting of a
    /// modelled system; more than one thing may be wrong.
    #[error("{0}")]
    Catalogue(Box<diskperf_catalogue::Errors>),
    /// A text that is no setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A parameter of a program.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A program failed while it ran.
    #[error("{program} on {target} failed: {error}{remedy}")]
    Program {
        /// The program, with its parameters.
        program: String,
        /// Where it ran.
        target: String,
        /// What went wrong, in the user's names.
        error: String,
        /// What to do about it, after a semicolon; nothing where that is not known.
        remedy: &'static str,
    },
    /// Something around the programs failed: a folder, a file system.
    #[error("{0}")]
    Work(String),
    /// A model that takes more events, virtual time or memory than it may.
    #[error("{0}")]
    Budget(OverBudget),
    /// The result store, of whose kinds of errors models know nothing.
    #[error("{0}")]
    Store(String),
    /// A file of exported runs.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// The user ended the run.
    #[error("interrupted")]
    Interrupted,
    /// Something failed or was ended, and then not all that was made could be
    /// removed, or not all that was changed be put back.
    #[error("{error}\n{}", left.join("\n"))]
    Left {
        /// What ended it.
        error: Box<LaboratoryError>,
        /// What is left, and why, with the remedy.
        left: Vec<String>,
    },
}

/// A model that took more than it may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// What it took too much of.
    pub exceeded: diskperf_machine::Exceeded,
    /// Settings that are far from what the system has without them, in words, the farthest
    /// first.
    pub settings: Vec<String>,
}

impl From<diskperf_machine::Exceeded> for OverBudget {
    fn from(exceeded: diskperf_machine::Exceeded) -> Self {
        Self {
            exceeded,
            settings: Vec::new(),
        }
    }
}

impl fmt::Display for OverBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.exceeded.fmt(formatter)?;
        for setting in &self.settings {
            write!(formatter, "\n{setting}")?;
        }
        Ok(())
    }
}

impl LaboratoryError {
    /// The exit code of design: 1 where the work failed, 2 where the command
    /// line or a file was wrong, 130 where the user ended it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Request(_)
            | Self::Catalogue(_)
            | Self::Setting(_)
            | Self::Parameter(_)
            | Self::Store(_)
            | Self::File { .. } => 2,
            // What can be told from the command line is wrong there.
            Self::Budget(over) if over.exceeded.is_known_before() => 2,
            Self::Program { .. } | Self::Work(_) | Self::Budget(_) => 1,
            Self::Interrupted => 130,
            Self::Left { error, .. } => error.exit_code(),
        }
    }

    /// What ended it, whatever was left then.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Left { error, .. } => error.cause(),
            other => other,
        }
    }

    /// An outcome, after which some things were left.
    pub fn leaving<T>(outcome: Result<T, Self>, left: Vec<String>) -> Result<T, Self> {
        match outcome {
            outcome if left.is_empty() => outcome,
            Ok(_) => Err(Self::Work(left.join("\n"))),
            Err(error) => Err(Self::Left {
                error: Box::new(error),
                left,
            }),
        }
    }

    /// What is wrong, on one line: for where many are listed.
    pub fn brief(&self) -> String {
        match self {
            Self::Catalogue(errors) => errors.brief(),
            other => other.to_string(),
        }
    }

    /// A request that cannot be carried out, for the reason that another
    /// error gives.
    pub fn request(error: impl std::fmt::Display) -> Self {
        Self::Request(error.to_string())
    }

    /// What is wrong with the catalogue or with what was asked of it.
    pub fn catalogue(errors: diskperf_catalogue::Errors) -> Self {
        Self::Catalogue(Box::new(errors))
    }

    /// Work that failed, for the reason that another error gives.
    pub fn work(error: impl std::fmt::Display) -> Self {
        Self::Work(error.to_string())
    }

    /// A program's failure, with the worker's names put back into the user's.
    pub fn program(title: &str, names: &Names, error: &ProgramError) -> Self {
        if let ProgramError::System(diskperf_system::Error::Interrupted) = error {
            return Self::Interrupted;
        }
        Self::Program {
            program: title.to_owned(),
            target: names.targets.join(" + "),
            error: names.put_back(&error.to_string()),
            remedy: remedy(error),
        }
    }
}

/// What the user calls what a worker calls `/mnt0`, `/dev/drive0`, ...
pub struct Names {
    /// Targets, as the user names them.
    pub targets: Vec<String>,
    /// Directories by drive, as the user names them.
    pub mounts: Vec<String>,
    /// Block devices by drive, as the user names them.
    pub drives: Vec<String>,
}

impl Names {
    /// Of the drives of a modelled system.
    pub fn of_model(system: &str, drives: usize) -> Self {
        Self {
            targets: vec![system.to_owned()],
            mounts: (1..=drives + 1)
                .map(|drive| format!("drive {drive} of {system}:"))
                .collect(),
            drives: Vec::new(),
        }
    }

    /// The error that ended one worker, for its measure. One that is none of the system has the
    /// number that fio gives it.
    pub fn worker_failure(&self, error: &ProgramError) -> WorkerFailure {
        const EIO: i32 = 5;
        const EILSEQ: i32 = 84;
        const ETIMEDOUT: i32 = 110;
        let errno = match error {
            ProgramError::System(error) => error.errno().map_or(EIO, Errno::number),
            ProgramError::Missed(_) => ETIMEDOUT,
            ProgramError::Corrupt(_) => EILSEQ,
            _ => EIO,
        };
        WorkerFailure {
            errno: errno.unsigned_abs(),
            message: self.put_back(&error.to_string()) + remedy(error),
        }
    }

    fn put_back(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // Backwards, so that drive 1 is not taken for the start of drive 10.
        for (number, name) in self.mounts.iter().enumerate().rev() {
            text = text.replace(&format!("/mnt{number}/"), &format!("{name}/"));
        }
        for (number, name) in self.drives.iter().enumerate().rev() {
            text = text.replace(&format!("/dev/drive{number}"), name);
        }
        text
    }
}

/// What to do about the errors that a disk gives most often.
fn remedy(error: &ProgramError) -> &'static str {
    let ProgramError::System(System::Failed(failure)) = error else {
        return "";
    };
    match failure.errno {
        Errno::NoSpace => "; free some space or give a smaller --size",
        Errno::Quota => "; free some of your quota, or give a smaller --size",
        Errno::ReadOnly => {
            "; nothing can be written there any more, as after an error of the device: see the kernel's log (dmesg)"
        }
        Errno::FileTooBig => {
            "; no file may become that large here: raise the limit (`ulimit -f`), or give a smaller --size"
        }
        _ if failure.call == Call::DropCached && failure.path == DROP_CACHES => {
            "; only root may drop the caches of the whole machine: use sudo, or omit --drop-caches"
        }
        Errno::NotDirect => "; omit --direct, or give --set program.direct=no",
        Errno::Invalid if failure.call == Call::Discard => {
            "; discards are of whole blocks of a device that has them: see /sys/block/DEVICE/queue/discard_granularity"
        }
        Errno::Invalid => {
            "; O_DIRECT needs calls in multiples of the device's block: omit --direct, or set program.call_bytes"
        }
        Errno::ConnectionAborted | Errno::NotConnected => {
            "; the process that serves this file system (FUSE) has ended: unmount it and mount it again, then `diskperf clean` removes what is left"
        }
        Errno::NoDeviceOrAddress | Errno::NoDevice => {
            "; the device is there no more: attach it again, or see the kernel's log (dmesg)"
        }
        Errno::Io => "; the device could not do it: see the kernel's log (dmesg)",
        _ => "",
    }
}
