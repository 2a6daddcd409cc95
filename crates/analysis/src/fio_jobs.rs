//! The job files that runs keep.

use diskperf_fio::{Errors, Files, JobFile, Surroundings};
use diskperf_timeline::JobText;

/// What a job file says, read again as it was read first.
///
/// # Errors
///
/// What is wrong with it, with line and column.
pub fn parse(kept: &JobText) -> Result<JobFile, Errors> {
    let surroundings = Surroundings {
        files: Files::Memory(kept.includes.clone()),
        variables: kept.variables.clone(),
        page_bytes: kept.page_bytes,
        memory_mib: kept.memory_mib,
        processors: kept.processors,
    };
    JobFile::parse_with(&kept.name, &kept.text, &kept.arguments, &surroundings)
}
