//! Job files that runs store.

use diskperf_fio::{Errors, FileSource, JobEnvironment, JobFile};
use diskperf_timeline::JobFileText;

/// Parses a stored job file exactly as at its first reading.
///
/// # Errors
///
/// Every mistake in the job file, with line and column.
pub fn parse_stored_job(kept: &JobFileText) -> Result<JobFile, Errors> {
    let surroundings = JobEnvironment {
        file_source: FileSource::Memory(kept.included_files.clone()),
        variables: kept.environment_variables.clone(),
        page_bytes: kept.page_bytes,
        memory_mib: kept.memory_mib,
        processors: kept.processor_count,
    };
    JobFile::parse_with(&kept.name, &kept.file_text, &kept.arguments, &surroundings)
}
