//! The path of the store, which is held to the rules for output.

use diskperf_models::LaboratoryError;
use diskperf_store::{Store, StoreError, StoreErrorKind};
use diskperf_system::host::output_file::{self, OutputError, OutputFile, OutputProblem};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns this path, or the one at which a store is by default.
pub(crate) fn named(path: Option<&Path>) -> Result<PathBuf, StoreError> {
    path.map_or_else(Store::default_path, |path| Ok(path.to_owned()))
}

/// Opens the store at a path, whether the user or the environment named it; makes
/// it, and the directories above it, if they are not there.
pub(crate) fn open(path: &Path, lock_wait: Duration) -> Result<Store, StoreError> {
    require_trusted(path).map_err(|error| StoreError {
        path: path.to_owned(),
        kind: match error.problem {
            OutputProblem::Io(error) => StoreErrorKind::Unopenable {
                reason: error.to_string(),
            },
            problem => StoreErrorKind::UntrustedPath {
                problem: problem.to_string(),
            },
        },
    })?;
    Store::open_with_lock_wait(path, lock_wait)
}

fn require_trusted(path: &Path) -> Result<(), OutputError> {
    // The store itself says better what is wrong with a directory or a FIFO.
    match OutputFile::check(path) {
        Err(error) if !matches!(error.problem, OutputProblem::NotAFile { .. }) => Err(error),
        _ => match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => output_file::make_folder(folder),
            _ => Ok(()),
        },
    }
}

/// An error of the store, as one of a run.
pub fn failed(error: StoreError) -> LaboratoryError {
    LaboratoryError::Store(error.to_string())
}
