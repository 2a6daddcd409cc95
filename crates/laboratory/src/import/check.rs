//! Validation of imported entries by the catalogue. Each entry is read and its drive is built
//! before anything is written.

use diskperf_calibration::entry::source_keys;
use diskperf_catalogue::Catalogue;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_diskspecs::{Errors, KeySpans, Problem, SourceSpan};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::ModelComputer;

/// Catalogue entries that are not written yet: path and text of each.
type Entries = [(String, String)];

/// Reads a system from unwritten entries, as a run would, and returns its disk.
///
/// # Errors
///
/// Returns the faults that the catalogue finds, each with the place of the key in the imported file
/// if it is known, else with the name of the drive.
pub(super) fn check_entries(
    system: &str,
    drive: &str,
    entries: &Entries,
    places: &KeySpans,
) -> Result<DiskSpecification, String> {
    let embedded = Catalogue::embedded();
    let catalogue = entries
        .iter()
        .fold(embedded, |all, (path, text)| all.with_file(path, text));
    match ModelComputer::read_catalogue(&catalogue, system, &[]) {
        Ok(computer) => match computer.find_disk(drive) {
            Some(disk) => Ok(disk.clone()),
            None => Err(format!("the drive {drive}: {system} has no such disk")),
        },
        Err(LaboratoryError::Catalogue(errors)) => {
            let problems = errors.problems().iter();
            let problems: Vec<Problem> = problems
                .map(|one| place_problem(one, drive, (entries, places)))
                .collect();
            match Errors::fail_if_any(problems) {
                Ok(()) => Err(format!("the drive {drive}: {errors}")),
                Err(errors) => Err(errors.to_string()),
            }
        }
        Err(other) => Err(format!("the drive {drive}: {other}")),
    }
}

/// Moves a fault of an entry to the place in the imported file that it comes from.
fn place_problem(
    problem: &Problem,
    drive: &str,
    (entries, places): (&Entries, &KeySpans),
) -> Problem {
    let why = problem.brief();
    let title = format!("the drive {drive} cannot be modelled: {why}");
    let key = problem.span().and_then(|place| find_key_at(entries, place));
    let from = key.map_or(&[][..], source_keys);
    let place = from.iter().find_map(|key| places.get(*key));
    match (place, key) {
        (Some(place), Some(key)) => {
            Problem::error(title).at(place, format!("`{key}` of the catalogue comes of this"))
        }
        _ => Problem::error(title),
    }
}

fn find_key_at<'e>(entries: &'e Entries, place: &SourceSpan) -> Option<&'e str> {
    let (_, text) = entries.iter().find(|(path, _)| path == place.file())?;
    let key = |line: &&'e str| {
        let (key, _) = line.split_once(" = ")?;
        let is_key = key
            .chars()
            .all(|one| one.is_ascii_lowercase() || one == '_');
        is_key.then_some(key)
    };
    let lines: Vec<&str> = text.lines().take(place.line_number()).collect();
    lines.iter().rev().find_map(key)
}
