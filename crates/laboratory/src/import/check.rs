//! Whether the catalogue takes what was imported: each entry is read and its drive is
//! built, before anything is written.

use diskperf_catalogue::Catalogue;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_diskspecs::{Errors, KeyPlaces, Place, Problem};
use diskperf_models::LaboratoryError;
use diskperf_models::model::computer::Computer;

/// The keys of DiskSim that those of an entry are made of; the first one that a file has
/// is meant.
#[rustfmt::skip]
const MADE_OF: [(&str, &[&str]); 38] = [
    ("heads", &["Number of data surfaces"]),
    ("cylinders", &["Number of cylinders"]),
    ("sparing_range_cylinders", &["Rangesize for sparing"]),
    ("zone_table", &["Zones"]),
    ("slip_table", &["slips"]),
    ("defect_table", &["defects"]),
    ("extent_table", &["Remaps", "IDX", "Layout Model"]),
    ("spindle_rpm", &["Rotation speed (in rpms)"]),
    ("seek_constant_ms", &["Constant seek time"]),
    ("seek_minimum_ms", &["Single cylinder seek time"]),
    ("seek_average_ms", &["Average seek time"]),
    ("seek_maximum_ms", &["Full strobe seek time"]),
    ("seek_hpl", &["HPL seek equation values"]),
    ("seek_table", &["Full seek curve", "First ten seek times"]),
    ("head_switch_ms", &["Head switch time"]),
    ("write_settle_ms", &["Add. write settling delay"]),
    ("queue_depth", &["Max queue length"]),
    ("aged_sptf_ms_per_s", &["Timeout time/weight"]),
    ("read_hit_ms", &["Read hit over. after read"]),
    ("read_hit_after_write_ms", &["Read hit over. after write"]),
    ("read_miss_ms", &["Read miss over. after read"]),
    ("read_miss_after_write_ms", &["Read miss over. after write"]),
    ("write_ms", &["Write hit over. after read"]),
    ("write_after_write_ms", &["Write hit over. after write"]),
    ("read_completion_ms", &["Read completion overhead"]),
    ("write_completion_ms", &["Write completion overhead"]),
    ("link_bytes_per_s", &["Bulk sector transfer time"]),
    ("link_write_bytes_per_s", &["Bulk sector transfer time"]),
    ("link_overhead_ms", &["Data preparation overhead"]),
    ("link_reconnect_ms", &["First reselect overhead"]),
    ("cache_segments", &["Number of buffer segments"]),
    ("segment_bytes", &["Segment size (in blks)"]),
    ("read_ahead_bytes", &["Maximum read-ahead (blks)", "Segment size (in blks)"]),
    ("read_ahead_least_bytes", &["Minimum read-ahead (blks)"]),
    ("write_cache_bytes", &["Maximum number of write segments", "Segment size (in blks)"]),
    ("write_cache_extents", &["Maximum number of write segments"]),
    ("destage_bytes", &["Segment size (in blks)"]),
    ("write_cache_read_hits", &["Allow read hits on write data"]),
];

/// The keys of DiskSim that a key of an entry is made of.
pub(super) fn made_of(key: &str) -> &'static [&'static str] {
    let found = MADE_OF.iter().find(|(name, _)| *name == key);
    found.map_or(&[], |(_, keys)| keys)
}

/// Entries of a catalogue that are yet to be written: path and text.
type Entries = [(String, String)];

/// Reads a system of these entries, as whoever runs it does: the disk that it has.
///
/// # Errors
///
/// What the catalogue has against it, each with the place of the key in the imported file
/// if it can be told, else with the drive.
pub(super) fn check(
    system: &str,
    drive: &str,
    entries: &Entries,
    places: &KeyPlaces,
) -> Result<DiskSpecification, String> {
    let embedded = Catalogue::embedded();
    let catalogue = entries
        .iter()
        .fold(embedded, |all, (path, text)| all.with_text(path, text));
    match Computer::read(&catalogue, system, &[]) {
        Ok(computer) => match computer.disk(drive) {
            Some(disk) => Ok(disk.clone()),
            None => Err(format!("the drive {drive}: {system} has no such disk")),
        },
        Err(LaboratoryError::Catalogue(errors)) => {
            let problems = errors.problems().iter();
            let problems: Vec<Problem> = problems
                .map(|one| placed(one, drive, (entries, places)))
                .collect();
            match Errors::none_of(problems) {
                Ok(()) => Err(format!("the drive {drive}: {errors}")),
                Err(errors) => Err(errors.to_string()),
            }
        }
        Err(other) => Err(format!("the drive {drive}: {other}")),
    }
}

/// What is wrong with an entry, at the place that it comes from.
fn placed(problem: &Problem, drive: &str, (entries, places): (&Entries, &KeyPlaces)) -> Problem {
    let why = problem.brief();
    let title = format!("the drive {drive} cannot be modelled: {why}");
    let key = problem.place().and_then(|place| key_at(entries, place));
    let from = key.map_or(&[][..], made_of);
    let place = from.iter().find_map(|key| places.get(*key));
    match (place, key) {
        (Some(place), Some(key)) => {
            Problem::error(title).at(place, format!("`{key}` of the catalogue comes of this"))
        }
        _ => Problem::error(title),
    }
}

/// The key whose value is at a place of an entry.
fn key_at<'e>(entries: &'e Entries, place: &Place) -> Option<&'e str> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// No key is listed that an entry has not, or twice.
    #[test]
    fn the_keys_of_entries_are_those_that_are_written() {
        let written = [include_str!("geometry.rs"), include_str!("electronics.rs")];
        for (number, (key, _)) in MADE_OF.iter().enumerate() {
            let quoted = format!("\"{key}\"");
            assert!(written.iter().any(|text| text.contains(&quoted)), "{key}");
            assert!(
                MADE_OF[..number].iter().all(|(other, _)| other != key),
                "{key}"
            );
        }
    }
}
