//! Path of the store, which follows the rules for output files.

use diskperf_models::LaboratoryError;
use diskperf_store::{Store, StoreError, StoreErrorKind};
use diskperf_system::host::output_file::{self, OutputError, OutputFile, OutputProblem};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns the given path of the store, or the default one.
pub(crate) fn resolve_path(path: Option<&Path>) -> Result<PathBuf, StoreError> {
    path.map_or_else(Store::default_path, |path| Ok(path.to_owned()))
}

/// Opens the store at a path that the user or the environment named. The store and its parent
/// directories are created if they do not exist.
pub(crate) fn open_store(path: &Path, lock_wait: Duration) -> Result<Store, StoreError> {
    require_trusted(path).map_err(|error| StoreError {
        path: path.to_owned(),
        kind: match error.problem {
            OutputProblem::Io(error) => StoreErrorKind::CannotOpen {
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
    match OutputFile::check_output(path) {
        Err(error) if !matches!(error.problem, OutputProblem::NotRegularFile { .. }) => Err(error),
        _ => match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => output_file::make_folder(folder),
            _ => Ok(()),
        },
    }
}

/// Converts an error of the store to an error of a run.
pub fn store_error(error: StoreError) -> LaboratoryError {
    LaboratoryError::Store(error.to_string())
}
