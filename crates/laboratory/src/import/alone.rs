//! Import of a drive from a trace alone, without parameter files.

mod requests;

use super::replayed::ReplayFigures;
use super::target::ImportTarget;
use super::{
    ImportedDrive, ThinkTimeReference, check_entries, format_rig_system, to_catalogue_name,
};
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
pub struct TraceDrive {
    /// Number of requests in the trace.
    #[serde(rename = "requests")]
    pub request_count: usize,
    /// Number of requests at the start of the trace from which all parameters are determined.
    #[serde(rename = "fitted_requests")]
    pub fitted_request_count: usize,
    /// Position of the pauses between requests in the trace.
    #[serde(rename = "think")]
    pub think_time_reference: ThinkTimeReference,
    /// Indices of requests that follow a gap in the trace.
    #[serde(rename = "jumps")]
    pub phase_jumps: Vec<usize>,
    /// Parameters of the drive that the trace shows.
    #[serde(rename = "numbers")]
    pub fitted_parameters: Vec<TraceParameter>,
    /// Parts of the drive that the trace does not show, each with the reason.
    #[serde(rename = "not_determined")]
    pub undetermined_parameters: Vec<String>,
    /// Accuracy of the modelled drive in a replay of the remaining requests, from which no
    /// parameter was determined.
    pub replay: ReplayFigures,
}

/// A parameter of a drive that a trace shows, with its confidence interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TraceParameter {
    /// Name of the drive parameter, with its unit.
    pub name: String,
    /// Index of the zone, from 0, if each zone has its own value of the parameter.
    #[serde(rename = "zone")]
    pub zone_index: Option<usize>,
    /// Best estimate of the drive parameter from the trace.
    pub value: f64,
    /// Lower end of the parameter's confidence interval.
    #[serde(rename = "low")]
    pub interval_min: f64,
    /// Upper end of the parameter's confidence interval.
    #[serde(rename = "high")]
    pub interval_max: f64,
}

/// Imports the drive that a trace was recorded on.
///
/// # Errors
///
/// Returns an error if the trace cannot be read, its requests overlap, or it does not reveal the
/// rotation of the platter.
pub(super) fn import(file: &Path, target: &mut ImportTarget<'_>) -> Result<ImportedDrive, String> {
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
    let name = to_catalogue_name(&stem)?;
    let label = file.file_name().unwrap_or_default().to_string_lossy();
    let end = requests
        .iter()
        .map(|one| one.first_block + u64::from(one.block_count));
    let capacity = end.max().unwrap_or(1);
    let read = |buffer: &entry::BufferCandidate| -> Result<_, String> {
        let entries = build_entries(&name, &label, &found, capacity, buffer);
        let disk = check_entries(
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
        .map(|(path, text)| target.add_file(path, text));
    let written: Vec<String> = written.collect::<Result<_, String>>()?;
    Ok(ImportedDrive {
        system: format!("bare-{name}"),
        name,
        fitted_drive_name: None,
        fitted_system: None,
        source_file: label.into_owned(),
        trace_file: None,
        capacity_bytes: capacity * BLOCK_BYTES,
        zone_count: found.zones.len(),
        is_from_traces: false,
        written_files: written,
        warnings: Vec::new(),
        fit: None,
        replays: None,
        trace_drive: Some(build_trace_drive(&found, requests.len(), replay)),
        keys_without_effect: Vec::new(),
        model_differences: Vec::new(),
    })
}

fn build_entries(
    name: &str,
    label: &str,
    found: &IdentifiedDrive,
    capacity: u64,
    buffer: &entry::BufferCandidate,
) -> Vec<(String, String)> {
    let drive = entry::render_entry(label, found, capacity, buffer);
    let system = format_rig_system(name, "a trace of the drive");
    vec![
        (format!("drives/{name}.toml"), drive),
        (format!("systems/bare-{name}.toml"), system),
    ]
}

fn build_trace_drive(
    found: &IdentifiedDrive,
    requests: usize,
    replay: ReplayFigures,
) -> TraceDrive {
    let number = |zone: Option<usize>, of: &FittedParameter| TraceParameter {
        name: of.name.clone(),
        zone_index: zone,
        value: of.value,
        interval_min: of.interval.low,
        interval_max: of.interval.high,
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
        numbers.push(TraceParameter {
            name: format!("arrival_us after {:.0} tracks", arrival.track_distance),
            zone_index: None,
            value: arrival.arrival_us,
            interval_min: arrival.arrival_us - arrival.confidence_interval_us,
            interval_max: arrival.arrival_us + arrival.confidence_interval_us,
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
    TraceDrive {
        request_count: requests,
        fitted_request_count: found.request_count,
        think_time_reference: match found.think_position {
            Pauses::BeforeRequest => ThinkTimeReference::BeforeSubmission,
            Pauses::AfterRequest => ThinkTimeReference::AfterCompletion,
        },
        phase_jumps: found.trace_gaps.clone(),
        fitted_parameters: numbers,
        undetermined_parameters: not_determined,
        replay,
    }
}
