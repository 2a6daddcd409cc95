//! Import of a drive from a trace alone, without parameter files.

mod requests;

use super::replayed::ReplayFigures;
use super::target::Target;
use super::{ImportedDrive, ThinkTimeReference, catalogue_name, check, rig};
use diskperf_calibration::alone::{IdentifiedDrive, entry, identify_drive};
use diskperf_calibration::entry::BLOCK_BYTES;
use diskperf_calibration::{FittedParameter, score_disk};
use diskperf_diskspecs::KeySpans;
use diskperf_diskspecs::phase::ThinkPosition as Pauses;
use serde::Serialize;
use std::path::Path;

pub(super) use requests::is_trace;

/// Findings of a trace about a drive without parameter files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownDrive {
    /// Number of requests in the trace.
    pub requests: usize,
    /// Number of requests at the start of the trace from which all parameters are determined.
    pub fitted_requests: usize,
    /// Position of the pauses between requests in the trace.
    pub think: ThinkTimeReference,
    /// Indices of requests that follow a gap in the trace.
    pub jumps: Vec<usize>,
    /// Parameters of the drive that the trace shows.
    pub numbers: Vec<ShownNumber>,
    /// Parts of the drive that the trace does not show, each with the reason.
    pub not_determined: Vec<String>,
    /// Accuracy of the modelled drive in a replay of the remaining requests, from which no
    /// parameter was determined.
    pub replay: ReplayFigures,
}

/// A parameter of a drive that a trace shows, with its confidence interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ShownNumber {
    /// Name of the drive parameter, with its unit.
    pub name: String,
    /// Index of the zone, from 0, if each zone has its own value of the parameter.
    pub zone: Option<usize>,
    /// Best estimate of the drive parameter from the trace.
    pub value: f64,
    /// Lower end of the parameter's confidence interval.
    pub low: f64,
    /// Upper end of the parameter's confidence interval.
    pub high: f64,
}

/// Imports the drive that a trace was recorded on.
///
/// # Errors
///
/// Returns an error if the trace cannot be read, its requests overlap, or it does not reveal the
/// rotation of the platter.
pub(super) fn import(file: &Path, target: &mut Target<'_>) -> Result<ImportedDrive, String> {
    let requests = requests::read(file)?;
    let half = requests.len() / 2;
    let refused = |why: &str| format!("{}: {why}", file.display());
    let found = identify_drive(&requests[..half]).ok_or_else(|| {
        refused(
            "the trace does not show the turning of a platter, so no drive can be made of it: give the drive's parameter files with --calibrate TRACE, or a trace of a disk with thousands of scattered reads, one at a time",
        )
    })?;
    if found.zones.is_empty() {
        return Err(refused(
            "the trace shows a spindle, and too few reads of neighbouring sectors to tell the length of its tracks: record more requests",
        ));
    }
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = catalogue_name(&stem)?;
    let label = file.file_name().unwrap_or_default().to_string_lossy();
    let end = requests
        .iter()
        .map(|one| one.first_block + u64::from(one.block_count));
    let capacity = end.max().unwrap_or(1);
    let read = |buffer: &entry::BufferCandidate| -> Result<_, String> {
        let entries = entries(&name, &label, &found, capacity, buffer);
        let disk = check(
            &format!("bare-{name}"),
            &name,
            &entries,
            &KeySpans::default(),
        )?;
        Ok((entries, disk))
    };
    let mut best: Option<(f64, entry::BufferCandidate)> = None;
    for buffer in entry::buffer_candidates(&found) {
        let (_, disk) = read(&buffer)?;
        // Each is judged on the second half of what the numbers are from.
        let score = score_disk(&disk, &requests[..half], found.think_position);
        if best
            .as_ref()
            .is_none_or(|(within, _)| score.within_half_ms_percent > *within)
        {
            best = Some((score.within_half_ms_percent, buffer));
        }
    }
    let buffer = best.map_or(entry::BufferCandidate::NONE, |(_, buffer)| buffer);
    let (entries, disk) = read(&buffer)?;
    let replay = ReplayFigures::new(&score_disk(&disk, &requests, found.think_position));
    let written = entries
        .into_iter()
        .map(|(path, text)| target.add(path, text));
    let written: Vec<String> = written.collect::<Result<_, String>>()?;
    Ok(ImportedDrive {
        system: format!("bare-{name}"),
        name,
        fitted_drive: None,
        fitted_system: None,
        file: label.into_owned(),
        trace_beside: None,
        capacity_bytes: capacity * BLOCK_BYTES,
        zones: found.zones.len(),
        is_of_runs: false,
        written,
        warnings: Vec::new(),
        fit: None,
        replays: None,
        shown: Some(shown(&found, requests.len(), replay)),
        without_effect: Vec::new(),
        differs: Vec::new(),
    })
}

fn entries(
    name: &str,
    label: &str,
    found: &IdentifiedDrive,
    capacity: u64,
    buffer: &entry::BufferCandidate,
) -> Vec<(String, String)> {
    let drive = entry::render_entry(label, found, capacity, buffer);
    let system = rig(name, "a trace of the drive");
    vec![
        (format!("drives/{name}.toml"), drive),
        (format!("systems/bare-{name}.toml"), system),
    ]
}

fn shown(found: &IdentifiedDrive, requests: usize, replay: ReplayFigures) -> ShownDrive {
    let number = |zone: Option<usize>, of: &FittedParameter| ShownNumber {
        name: of.name.clone(),
        zone,
        value: of.value,
        low: of.interval.low,
        high: of.interval.high,
    };
    let mut numbers = vec![number(None, &found.period_us)];
    let others = [
        &found.track_skew,
        &found.link_sector_us,
        &found.early_write_us,
        &found.read_hit_us,
    ];
    numbers.extend(others.into_iter().flatten().map(|of| number(None, of)));
    for (index, zone) in found.zones.iter().enumerate() {
        numbers.push(number(Some(index), &zone.first_block));
        numbers.push(number(Some(index), &zone.sectors_per_track));
    }
    for arrival in &found.seek_arrivals {
        numbers.push(ShownNumber {
            name: format!("arrival_us after {:.0} tracks", arrival.track_distance),
            zone: None,
            value: arrival.arrival_us,
            low: arrival.arrival_us - arrival.confidence_interval_us,
            high: arrival.arrival_us + arrival.confidence_interval_us,
        });
    }
    let mut not_determined = vec![
        "surfaces and cylinders: the modelled drive has one surface, and its arm moves by tracks"
            .to_owned(),
        "the parts of an access before and after the seek: the trace shows only their sum"
            .to_owned(),
        "spares and defects: the unused rest of a zone lies at its end".to_owned(),
        "read-ahead and cache segments: the model uses the closest of a few candidates".to_owned(),
    ];
    let absent = [
        (
            found.link_sector_us.is_none(),
            "the link: the media rate is lower, or the reads have too similar lengths",
        ),
        (
            found.early_write_us.is_none(),
            "a write cache: writes are as slow as reads, or too few",
        ),
        (
            found.read_hit_us.is_none(),
            "read hits: too few reads are faster than the platter",
        ),
    ];
    not_determined.extend(
        absent
            .into_iter()
            .filter(|one| one.0)
            .map(|one| one.1.to_owned()),
    );
    ShownDrive {
        requests,
        fitted_requests: found.request_count,
        think: match found.think_position {
            Pauses::BeforeRequest => ThinkTimeReference::BeforeSubmission,
            Pauses::AfterRequest => ThinkTimeReference::AfterCompletion,
        },
        jumps: found.trace_gaps.clone(),
        numbers,
        not_determined,
        replay,
    }
}
