//! Job files that runs store.

use diskperf_fio::{Errors, FileSource, JobEnvironment, JobFile};
use diskperf_timeline::JobText;

/// Parses a stored job file exactly as at its first reading.
///
/// # Errors
///
/// Every mistake in the job file, with line and column.
pub fn parse_stored_job(kept: &JobText) -> Result<JobFile, Errors> {
    let surroundings = JobEnvironment {
        file_source: FileSource::Memory(kept.includes.clone()),
        variables: kept.variables.clone(),
        page_bytes: kept.page_bytes,
        memory_mib: kept.memory_mib,
        processors: kept.processors,
    };
    JobFile::parse_with(&kept.name, &kept.text, &kept.arguments, &surroundings)
}
