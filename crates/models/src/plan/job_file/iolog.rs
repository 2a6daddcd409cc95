//! I/O logs that the sections of a job file replay and write.

use crate::error::LaboratoryError;
use crate::files::Files;
use crate::job_file::log_paths;
use diskperf_battery::IoLog;
use diskperf_blocktrace::{ReadOptions, TraceReader};
use diskperf_fio::{Errors, JobDefinition, JobFile};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Reads the log of a section, if it replays one.
///
/// # Errors
///
/// Returns an error at the place of the option if the log cannot be read.
pub(super) fn read_script(
    job: &JobDefinition,
    files: &dyn Files,
) -> Result<Option<IoLog>, LaboratoryError> {
    let Some(path) = &job.iolog.replayed_path else {
        return Ok(None);
    };
    let script = open_log(path, files).and_then(|reader| IoLog::read_log(job, reader));
    let script = script.map_err(|why| {
        let title = format!("the log {path} cannot be repeated");
        let help = "give an iolog that fio or diskperf wrote by write_iolog=, or a binary trace of blktrace";
        let problem = job.option_error("read_iolog", &title, &why, help);
        LaboratoryError::request(Errors::from(problem))
    })?;
    Ok(Some(script))
}

fn open_log(path: &str, files: &dyn Files) -> Result<TraceReader, String> {
    let options = ReadOptions::default();
    TraceReader::open(path, files.open_log(path)?, &options).map_err(|error| error.to_string())
}

/// Verifies that each log that the jobs write is a separate file: neither the log of another
/// section, nor one that a section replays.
///
/// # Errors
///
/// Returns an error at the place of the option if a log would replace another.
pub(super) fn require_separate_logs(
    file: &JobFile,
    files: &dyn Files,
) -> Result<(), LaboratoryError> {
    let repeated = file.jobs.iter().filter_map(|job| {
        let path = job.iolog.replayed_path.as_ref()?;
        Some((PathBuf::from(path), format!("[{}] repeats it", job.section)))
    });
    let mut taken: BTreeMap<PathBuf, String> = repeated
        .map(|(path, use_of_it)| (files.resolve_path(&path), use_of_it))
        .collect();
    for job in &file.jobs {
        for path in log_paths(job) {
            let use_of_it = format!("[{}] writes it too", job.section);
            if let Some(other) = taken.insert(files.resolve_path(&path), use_of_it) {
                let title = format!("the log {} would be lost", path.display());
                let help = "name a log for each section by write_iolog=";
                let problem = job.option_error("write_iolog", &title, &other, help);
                return Err(LaboratoryError::request(Errors::from(problem)));
            }
        }
    }
    Ok(())
}
