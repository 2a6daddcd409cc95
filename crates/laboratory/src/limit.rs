//! Limits of the process that end a run.

use diskperf_models::LaboratoryError;
use diskperf_system::host::limits::is_cpu_time_used_up;

/// Returns the limit that ended a run, where it was none of the user's doing.
pub fn or_limit(error: LaboratoryError) -> LaboratoryError {
    match error {
        LaboratoryError::Interrupted if is_cpu_time_used_up() => LaboratoryError::work(
            "the limit of CPU time is used up: raise it (`ulimit -t`), or measure less (--size, --runs)",
        ),
        error => error,
    }
}
