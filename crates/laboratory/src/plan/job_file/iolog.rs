//! The log that a section of a job file repeats.

use crate::error::LaboratoryError;
use diskperf_battery::Script;
use diskperf_blocktrace::{ReadOptions, Reader};
use diskperf_diagnostics::input;
use diskperf_fio::{Errors, Job};
use std::path::Path;

/// The log of a section, if it repeats one.
///
/// # Errors
///
/// A log that cannot be read, at the place of the option.
pub(super) fn read(job: &Job) -> Result<Option<Script>, LaboratoryError> {
    let Some(path) = &job.iolog.read else {
        return Ok(None);
    };
    let script = open(path).and_then(|reader| Script::read(job, reader));
    let script = script.map_err(|why| {
        let title = format!("the log {path} cannot be repeated");
        let help = "give an iolog that fio or diskperf wrote by write_iolog=, or a binary trace of blktrace";
        let problem = job.refuse("read_iolog", &title, &why, help);
        LaboratoryError::request(Errors::from(problem))
    })?;
    Ok(Some(script))
}

fn open(path: &str) -> Result<Reader, String> {
    let file = input::open(Path::new(path)).map_err(|error| error.to_string())?;
    let options = ReadOptions::default();
    Reader::open(path, Box::new(file), &options).map_err(|error| error.to_string())
}
