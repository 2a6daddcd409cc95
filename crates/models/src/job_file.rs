//! fio job files, read together with everything that their meaning depends on.

use crate::error::LaboratoryError;
use diskperf_analysis::fio_jobs;
use diskperf_battery::{Medium, Program, Suite};
use diskperf_fio::{JobDefinition, JobEnvironment, JobFile, Keyword};
use diskperf_timeline::JobFileText;
use std::path::{Path, PathBuf};

/// Reports whether the name of a suite or program is a job file: by its ending, because such a file
/// exists, or because it is the text of one.
pub fn names_job_file(name: &str) -> bool {
    if Suite::from_name(name, Medium::Directory).is_some() || Program::from_name(name).is_some() {
        return false;
    }
    contains_job_text(name) || has_job_file_name(name) || Path::new(name).is_file()
}

/// Reports whether a name is the text of a job file. A name contains no line break.
pub fn contains_job_text(name: &str) -> bool {
    name.contains('\n')
}

fn has_job_file_name(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| {
        ["fio", "job", "ini"]
            .iter()
            .any(|known| extension == *known)
    })
}

/// Reads a job file from its name and text, with words of fio's command line and its environment.
///
/// # Errors
///
/// Returns all faults of the job file, with line and column.
pub fn from_text(
    name: &str,
    text: &str,
    words: &[String],
    surroundings: &JobEnvironment,
) -> Result<JobFileText, LaboratoryError> {
    let file = JobFile::parse_with(name, text, words, surroundings);
    let file = file.map_err(LaboratoryError::request)?;
    // What it does not ask for is not kept: the run is the same on any machine.
    let asked = |keyword| match file.keywords.contains(&keyword) {
        true => surroundings.keyword_value(keyword),
        false => 0,
    };
    Ok(JobFileText {
        name: name.to_owned(),
        file_text: text.to_owned(),
        arguments: words.to_vec(),
        page_bytes: asked(Keyword::PageSize),
        memory_mib: asked(Keyword::Memory),
        processor_count: asked(Keyword::Processors),
        included_files: file.included,
        environment_variables: file.variables,
        protocol: None,
    })
}

/// Returns the paths of the logs that a job writes, one for each clone.
pub fn log_paths(job: &JobDefinition) -> impl Iterator<Item = PathBuf> {
    (0..job.order.clone_count)
        .filter_map(|clone| job.iolog.clone_log_path(clone).map(PathBuf::from))
}

/// Parses the text of a job file that was read.
pub fn parse_text(text: &JobFileText) -> Result<JobFile, LaboratoryError> {
    fio_jobs::parse_stored_job(text).map_err(LaboratoryError::request)
}
