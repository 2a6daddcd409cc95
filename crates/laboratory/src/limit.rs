//! Limits of the process that can end a run.

use diskperf_models::LaboratoryError;
use diskperf_system::host::limits::is_cpu_time_used_up;

/// Returns the process limit that caused an error, if the user did not cause it; otherwise the
/// error itself.
pub fn explain_open_file_limit(error: LaboratoryError) -> LaboratoryError {
    match error {
        LaboratoryError::Interrupted if is_cpu_time_used_up() => LaboratoryError::work(
            "the limit of CPU time is used up: raise it (`ulimit -t`), or measure less (--size, --runs)",
        ),
        error => error,
    }
}
