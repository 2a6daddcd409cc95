//! Import of DiskSim drives into a catalogue. The values of their files are copied unchanged;
//! findings from a trace go to a separate layer above them.

mod alone;
mod check;
#[cfg(test)]
mod effects;
mod fit;
mod replayed;
mod target;

pub use alone::{TraceDrive, TraceParameter};
use check::check_entries;
pub use diskperf_analysis::real_drives::{SpindlePhase, ThinkTimeReference};
use diskperf_calibration::entry::{BLOCK_BYTES, DriveEntry, quote_text};
use diskperf_calibration::{Calibration, FitOptions, calibrate, render_layer};
use diskperf_diskspecs::layout::BlockLayout;
use diskperf_diskspecs::trace::ValidationRequest;
use diskperf_diskspecs::{
    IgnoredKey, KeySpans, SpecificationFiles, SpecifiedDrive, SubstitutedValue, import as read,
    trace,
};
use diskperf_models::LaboratoryError;
pub use fit::CalibrationFit;
pub use replayed::{CalibrationReplays, ReplayFigures};
use serde::Serialize;
use std::path::{Path, PathBuf};
use target::ImportTarget;

/// Request to import DiskSim drives into a catalogue.
#[derive(Clone, Debug)]
pub struct ImportRequest<'a> {
    /// Drive files (`.parv`, `.diskspecs`, `.model`), or traces of drives without files.
    pub input_files: &'a [PathBuf],
    /// Directory of the catalogue to write. It is created if necessary.
    pub destination: &'a Path,
    /// Whether existing entries of the same names are replaced.
    pub replaces_existing: bool,
    /// Trace whose first half refines values that the files round; `None` to import the files
    /// alone.
    pub trace_path: Option<&'a Path>,
}

/// Result of importing drives into a catalogue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportOutcome {
    /// Imported drives, in the order of the files.
    pub drives: Vec<ImportedDrive>,
}

/// An imported drive, with the entries and files written for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImportedDrive {
    /// Name of the drive in the catalogue.
    pub name: String,
    /// Name of the system that consists of this drive alone.
    pub system: String,
    /// Catalogue name of the same drive, refined by its trace.
    #[serde(rename = "fitted_drive")]
    pub fitted_drive_name: Option<String>,
    /// Name of the system that consists of the refined drive alone.
    pub fitted_system: Option<String>,
    /// Name of the file that the drive was imported from.
    #[serde(rename = "file")]
    pub source_file: String,
    /// Trace beside the source file that the request did not name. It may belong to this drive.
    #[serde(rename = "trace_beside")]
    pub trace_file: Option<String>,
    /// Capacity of the drive that hosts see, in bytes.
    pub capacity_bytes: u64,
    /// Number of zones or, for a layout without zones, of runs of neighbouring sectors.
    #[serde(rename = "zones")]
    pub zone_count: usize,
    /// Whether `zones` counts runs of neighbouring sectors.
    #[serde(rename = "is_of_runs")]
    pub is_from_traces: bool,
    /// Paths of the catalogue files that the import wrote.
    #[serde(rename = "written")]
    pub written_files: Vec<String>,
    /// Warnings about results of the import that the user may not expect.
    pub warnings: Vec<String>,
    /// Fit of the drive to a trace, if there is one.
    pub fit: Option<CalibrationFit>,
    /// Numbers that a trace shows of a drive without parameter files.
    #[serde(rename = "shown")]
    pub trace_drive: Option<TraceDrive>,
    /// Accuracy of the modelled drive in replays of the second half of its trace, if there is one.
    pub replays: Option<CalibrationReplays>,
    /// Keys without effect, each with its place and the reason.
    #[serde(rename = "without_effect")]
    pub keys_without_effect: Vec<OmittedKey>,
    /// Values in the files that the modelled drive replaces, each with the value that it uses and
    /// the reason.
    #[serde(rename = "differs")]
    pub model_differences: Vec<String>,
}

/// A key of the imported files that has no effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OmittedKey {
    /// Name of the key, or title of a block whose keys are unknown.
    pub key: String,
    /// Type and name of the block with the key; empty for a key in a comment.
    pub block: String,
    /// Place of the key: file and line.
    #[serde(rename = "place")]
    pub position: String,
    /// Reason why the key has no effect.
    #[serde(rename = "why")]
    pub reason: String,
}

/// Imports all drives of the named files. Nothing is written unless every drive can be imported and
/// the catalogue accepts each entry.
///
/// # Errors
///
/// Returns errors, with file and line, for files that are no drives and for drives that cannot be
/// modelled; and errors for an entry of the same name that is not to be replaced and for a
/// directory that cannot be written.
pub fn import(asked: &ImportRequest<'_>) -> Result<ImportOutcome, LaboratoryError> {
    let mut target = ImportTarget::new(asked.destination, asked.replaces_existing);
    let mut drives = Vec::new();
    for file in asked.input_files {
        drives.extend(import_file(file, asked.trace_path, &mut target)?);
    }
    target.write_files()?;
    Ok(ImportOutcome { drives })
}

fn import_file(
    file: &Path,
    trace: Option<&Path>,
    target: &mut ImportTarget<'_>,
) -> Result<Vec<ImportedDrive>, LaboratoryError> {
    let request = |error: String| LaboratoryError::Request(error);
    if alone::is_trace(file) {
        return Ok(vec![alone::import(file, target).map_err(request)?]);
    }
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let files = SpecificationFiles::FileSystem {
        search: vec![folder],
    };
    let found = read(&file.to_string_lossy(), &files);
    let found = found.map_err(|errors| request(errors.to_string()))?;
    if trace.is_some() && found.drives.len() != 1 {
        return Err(request(format!(
            "--calibrate: {} has {} drives, and a trace is of one",
            file.display(),
            found.drives.len()
        )));
    }
    let warnings: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
    let without_effect: Vec<OmittedKey> = found
        .ignored_keys
        .iter()
        .map(describe_omitted_key)
        .collect();
    let acts_as: Vec<String> = found
        .ignored_keys
        .iter()
        .filter_map(describe_substitute)
        .collect();
    let several = found.drives.len() > 1;
    // A trace is of one drive.
    let trace_beside = match trace.is_some() || several {
        true => None,
        false => find_trace_file(file),
    };
    let mut drives = Vec::new();
    let with_places = found.drives.iter().zip(&found.key_spans);
    for (number, (drive, places)) in with_places.enumerate() {
        let stem = match several {
            true => format!("{} {number}", drive.name),
            false => match file.file_stem() {
                Some(stem) => stem.to_string_lossy().into_owned(),
                None => drive.name.clone(),
            },
        };
        let imported =
            import_drive((drive, places), (&stem, &name), trace, target).map_err(request)?;
        drives.push(ImportedDrive {
            trace_file: trace_beside.clone(),
            warnings: warnings.iter().cloned().chain(imported.warnings).collect(),
            keys_without_effect: without_effect.clone(),
            model_differences: imported
                .model_differences
                .into_iter()
                .chain(acts_as.clone())
                .collect(),
            ..imported
        });
    }
    Ok(drives)
}

fn describe_omitted_key(one: &IgnoredKey) -> OmittedKey {
    OmittedKey {
        key: one.key.clone(),
        block: one.block.clone(),
        position: format!("{}:{}", one.span.file(), one.span.line_number()),
        reason: one.reason.to_owned(),
    }
}

/// Describes a key whose file value the modelled drive replaces by another.
fn describe_substitute(one: &IgnoredKey) -> Option<String> {
    let SubstitutedValue {
        file_value: written,
        modelled_value: modelled,
    } = one.substituted_value.as_ref()?;
    let (key, why) = (&one.key, one.reason);
    Some(format!(
        "{key}: the files have {written}, and the drive acts as with {modelled}: {why}"
    ))
}

fn import_drive(
    (drive, places): (&SpecifiedDrive, &KeySpans),
    (stem, file): (&str, &str),
    trace: Option<&Path>,
    target: &mut ImportTarget<'_>,
) -> Result<ImportedDrive, String> {
    let name = to_catalogue_name(stem)?;
    let entry = DriveEntry::new(drive, file)?;
    let system = format!("bare-{name}");
    let mut entries = vec![
        (format!("drives/{name}.toml"), entry.text),
        (
            format!("systems/{system}.toml"),
            format_rig_system(&name, "the drive's own sources"),
        ),
    ];
    let filed = check_entries(&system, &name, &entries, places)?;
    let (mut fitted_drive, mut fitted_system) = (None, None);
    let (mut fit, mut replays, mut warnings) = (None, None, Vec::new());
    if let Some(trace) = trace {
        let fitted = format!("{name}-fitted");
        let (requests, found) = calibrate_drive(drive, trace)?;
        let source = format!(
            "fitted on the first {} of {} requests of its trace",
            found.fitted_request_count, found.request_count
        );
        let text = render_layer((&found.specified_disk, &found.fitted_disk), &name, &source);
        entries.push((format!("drives/{fitted}.toml"), text));
        let rig = format_rig_system(&fitted, "the drive's own sources, and a trace of it");
        let of_fitted = format!("bare-{fitted}");
        entries.push((format!("systems/{of_fitted}.toml"), rig));
        // What a trace shows has no place in the files.
        let disk = check_entries(&of_fitted, &fitted, &entries, &KeySpans::new())?;
        let figures = CalibrationReplays::new((&filed, &disk), &requests, &found);
        let (shown, warning) = CalibrationFit::new(&found, &figures);
        warnings.extend(warning);
        (fit, replays) = (Some(shown), Some(figures));
        fitted_drive = Some(fitted);
        fitted_system = Some(of_fitted);
    }
    let written = entries
        .into_iter()
        .map(|(path, text)| target.add_file(path, text));
    let written: Vec<String> = written.collect::<Result<_, _>>()?;
    Ok(ImportedDrive {
        name,
        system,
        fitted_drive_name: fitted_drive,
        fitted_system,
        source_file: file.to_owned(),
        trace_file: None,
        capacity_bytes: drive.model.layout.block_count() * BLOCK_BYTES,
        zone_count: entry.zone_count,
        is_from_traces: !matches!(drive.model.layout, BlockLayout::Zoned(_)),
        written_files: written,
        warnings,
        fit,
        replays,
        trace_drive: None,
        keys_without_effect: Vec::new(),
        model_differences: entry.differences,
    })
}

fn find_trace_file(file: &Path) -> Option<String> {
    let trace = file.with_extension("trace");
    trace.is_file().then(|| trace.display().to_string())
}

fn format_rig_system(drive: &str, source: &str) -> String {
    format!(
        "description = {}\nsource = {}\ndrives = 1\n\n[components]\ndrive = {}\n",
        quote_text(&format!("The drive {drive} and nothing else.")),
        quote_text(source),
        quote_text(drive)
    )
}

fn calibrate_drive(
    drive: &SpecifiedDrive,
    path: &Path,
) -> Result<(Vec<ValidationRequest>, Calibration), String> {
    let refused = |error: String| format!("--calibrate {}: {error}", path.display());
    let file = diskperf_diagnostics::input::open(path);
    let content = file.and_then(std::io::read_to_string);
    let content = content.map_err(|error| refused(error.to_string()))?;
    let name = path.display().to_string();
    let requests = trace::parse(&name, &content).map_err(|errors| errors.to_string())?;
    let found = calibrate(drive, &requests, FitOptions::default());
    let found = found
        .map_err(|error| refused(format!("{error}; check that the trace is of this drive")))?;
    Ok((requests, found))
}

/// Converts a file name to a catalogue name: small letters, digits and hyphens.
fn to_catalogue_name(stem: &str) -> Result<String, String> {
    let plain = stem
        .to_lowercase()
        .chars()
        .fold(String::new(), |mut name, one| {
            match one {
                'a'..='z' | '0'..='9' => name.push(one),
                _ if name.ends_with('-') || name.is_empty() => {}
                _ => name.push('-'),
            }
            name
        });
    let name = plain.trim_end_matches('-');
    match name.is_empty() {
        true => Err(format!(
            "`{stem}` has no letters or digits to make a name of: rename the file"
        )),
        false => Ok(name.to_owned()),
    }
}
