//! Errors of requests, and failures during a run.

use diskperf_battery::{ParameterError, ProgramError};
use diskperf_system::{CallKind, DROP_CACHES_PATH, Errno, Error as System};
use diskperf_timeline::{SettingError, WorkerFailure};
use std::fmt;
use std::path::PathBuf;

/// An error whose text includes the remedy.
#[derive(Debug, thiserror::Error)]
pub enum LaboratoryError {
    /// Request that cannot be carried out: the command line, or a file or device that it names, is
    /// wrong.
    #[error("{0}")]
    Request(String),
    /// Faults in a catalogue file, an entry name, or a setting of a modelled system; possibly
    /// several.
    #[error("{0}")]
    Catalogue(Box<diskperf_catalogue::Errors>),
    /// Text that should be a setting and is not one.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// Invalid parameter of a program.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// Failure of a program during its run.
    #[error("{program} on {target} failed: {error}{remedy}")]
    Program {
        /// Name of the program, with its parameters.
        program: String,
        /// Target that the program ran on.
        target: String,
        /// Description of the failure, with the user's names of files and devices.
        error: String,
        /// Remedy, preceded by a semicolon; empty if none is known.
        remedy: &'static str,
    },
    /// Failure outside of the programs, such as that of a folder or a file system.
    #[error("{0}")]
    Failure(String),
    /// Model that exceeds its budget of events, virtual time or memory.
    #[error("{0}")]
    Budget(OverBudget),
    /// Error of the result store, as text, because models do not know its kinds of errors.
    #[error("{0}")]
    Store(String),
    /// Fault in a file, such as one of exported runs.
    #[error("{}: {reason}", path.display())]
    File {
        /// Path of the faulty file.
        path: PathBuf,
        /// Description of the fault, with the remedy.
        reason: String,
    },
    /// End of the run by the user.
    #[error("interrupted")]
    Interrupted,
    /// Failure or end of a run after which some files could not be removed or some settings not
    /// restored.
    #[error("{error}\n{}", left.join("\n"))]
    Leftovers {
        /// Error that ended the run.
        error: Box<LaboratoryError>,
        /// Leftovers of the run, each with the reason and the remedy.
        left: Vec<String>,
    },
}

/// Excess of a modelled run's budget, with the settings that may have caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverBudget {
    /// Resource that the model used too much of.
    pub exceeded: diskperf_machine::ExceededLimit,
    /// Descriptions of settings that are far from the system's own values, farthest first.
    pub settings: Vec<String>,
}

impl From<diskperf_machine::ExceededLimit> for OverBudget {
    fn from(exceeded: diskperf_machine::ExceededLimit) -> Self {
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
    /// Exit code of the process, by design: 1 if the work failed, 2 if the command line or a file
    /// was wrong, 130 if the user ended it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Request(_)
            | Self::Catalogue(_)
            | Self::Setting(_)
            | Self::Parameter(_)
            | Self::Store(_)
            | Self::File { .. } => 2,
            // What can be told from the command line is wrong there.
            Self::Budget(over) if over.exceeded.is_known_before_run() => 2,
            Self::Program { .. } | Self::Failure(_) | Self::Budget(_) => 1,
            Self::Interrupted => 130,
            Self::Leftovers { error, .. } => error.exit_code(),
        }
    }

    /// Error that ended the run, without its leftovers.
    pub fn root_cause(&self) -> &Self {
        match self {
            Self::Leftovers { error, .. } => error.root_cause(),
            other => other,
        }
    }

    /// Adds the leftovers to the outcome of a run.
    pub fn with_leftovers<T>(outcome: Result<T, Self>, left: Vec<String>) -> Result<T, Self> {
        match outcome {
            outcome if left.is_empty() => outcome,
            Ok(_) => Err(Self::Failure(left.join("\n"))),
            Err(error) => Err(Self::Leftovers {
                error: Box::new(error),
                left,
            }),
        }
    }

    /// Short form of the error on one line, for lists.
    pub fn brief(&self) -> String {
        match self {
            Self::Catalogue(errors) => errors.brief(),
            other => other.to_string(),
        }
    }

    /// Creates the error of a request that cannot be carried out, from another error that gives the
    /// reason.
    pub fn request(error: impl std::fmt::Display) -> Self {
        Self::Request(error.to_string())
    }

    /// Creates an error from faults of the catalogue or of a request to it.
    pub fn catalogue(errors: diskperf_catalogue::Errors) -> Self {
        Self::Catalogue(Box::new(errors))
    }

    /// Creates the error of failed work, from another error that gives the reason.
    pub fn work(error: impl std::fmt::Display) -> Self {
        Self::Failure(error.to_string())
    }

    /// Creates the error of a failed program. Names that workers use are replaced by those of the
    /// user.
    pub fn program(title: &str, names: &StorageNames, error: &ProgramError) -> Self {
        if let ProgramError::SystemCallFailed(diskperf_system::Error::Interrupted) = error {
            return Self::Interrupted;
        }
        Self::Program {
            program: title.to_owned(),
            target: names.target_names.join(" + "),
            error: names.restore_names(&error.to_string()),
            remedy: remedy(error),
        }
    }
}

/// Names that the user gave to places that workers call `/mnt0`, `/dev/drive0` and so on.
pub struct StorageNames {
    /// Targets, as the user names them.
    pub target_names: Vec<String>,
    /// Directories by drive, as the user names them.
    pub mount_points: Vec<String>,
    /// Block devices by drive, as the user names them.
    pub drive_names: Vec<String>,
}

impl StorageNames {
    /// Creates the names for the drives of a modelled system.
    pub fn for_model(system: &str, drives: usize) -> Self {
        Self {
            target_names: vec![system.to_owned()],
            mount_points: (1..=drives + 1)
                .map(|drive| format!("drive {drive} of {system}:"))
                .collect(),
            drive_names: Vec::new(),
        }
    }

    /// Converts the error that ended one worker for its measurement. An error that is not of the
    /// system gets the errno that fio gives it.
    pub fn worker_failure(&self, error: &ProgramError) -> WorkerFailure {
        const EIO: i32 = 5;
        const EILSEQ: i32 = 84;
        const ETIMEDOUT: i32 = 110;
        let errno = match error {
            ProgramError::SystemCallFailed(error) => error.errno().map_or(EIO, Errno::number),
            ProgramError::ThresholdMissed(_) => ETIMEDOUT,
            ProgramError::CorruptData(_) => EILSEQ,
            _ => EIO,
        };
        WorkerFailure {
            errno: errno.unsigned_abs(),
            message: self.restore_names(&error.to_string()) + remedy(error),
        }
    }

    fn restore_names(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // Backwards, so that drive 1 is not taken for the start of drive 10.
        for (number, name) in self.mount_points.iter().enumerate().rev() {
            text = text.replace(&format!("/mnt{number}/"), &format!("{name}/"));
        }
        for (number, name) in self.drive_names.iter().enumerate().rev() {
            text = text.replace(&format!("/dev/drive{number}"), name);
        }
        text
    }
}

fn remedy(error: &ProgramError) -> &'static str {
    let ProgramError::SystemCallFailed(System::CallFailed(failure)) = error else {
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
        _ if failure.call == CallKind::DropCachedPages && failure.path == DROP_CACHES_PATH => {
            "; only root may drop the caches of the whole machine: use sudo, or omit --drop-caches"
        }
        Errno::NotDirect => "; omit --direct, or give --set program.direct=no",
        Errno::Invalid if failure.call == CallKind::Discard => {
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
