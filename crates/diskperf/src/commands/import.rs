//! Command `diskperf import`: converts DiskSim drives to catalogue entries.

use super::{CommandResult, DONE};
use crate::arguments::{ImportArguments, OutputFormat};
use crate::listing::Listing;
use crate::output::{print, width};
use diskperf_laboratory::import::{
    CalibrationFit, CalibrationReplays, ImportOutcome, ImportRequest, ImportedDrive, OmittedKey,
    ThinkTimeReference, TraceDrive, import as imported,
};
use diskperf_timeline::units::format_size;
use serde_json::json;

/// Executes `diskperf import`: writes the drives of DiskSim files as catalogue entries.
pub(crate) fn import(arguments: &ImportArguments) -> CommandResult {
    let found = imported(&ImportRequest {
        input_files: &arguments.files,
        destination: &arguments.output,
        replaces_existing: arguments.replace,
        trace_path: arguments.calibrate.as_deref(),
    })?;
    print(&match arguments.format {
        OutputFormat::Table => {
            let drives: Vec<String> = found.drives.iter().map(describe_drive).collect();
            format!(
                "{}\n{}",
                drives.join("\n"),
                describe_next_steps(&found, arguments)
            )
        }
        OutputFormat::Json => json!(found).to_string(),
        format => list_fitted_drives(&found).render(format, width()),
    })?;
    Ok(DONE)
}

/// Describes an imported drive, the entry written, and the treatment of its keys.
fn describe_drive(of: &ImportedDrive) -> String {
    let mut text = format!(
        "{} from {}: {}, {} {}\n",
        of.name,
        of.source_file,
        format_size(of.capacity_bytes),
        of.zone_count,
        match (of.is_from_traces, of.zone_count) {
            (true, _) => "runs of sectors",
            (false, 1) => "zone",
            (false, _) => "zones",
        }
    );
    for path in &of.written_files {
        text += &format!("  wrote {path}\n");
    }
    if let Some(trace) = &of.trace_file {
        text += &format!(
            "  {trace} lies beside it: --calibrate {trace} fits the drive to what it shows\n"
        );
    }
    if let Some(shown) = &of.trace_drive {
        text += &describe_shown(shown);
    }
    if let Some(fit) = &of.fit {
        text += &describe_fit(fit);
    }
    if let Some(replays) = &of.replays {
        text += &describe_replays(replays);
    }
    for warning in &of.warnings {
        text += &format!("  {}\n", warning.trim_end().replace('\n', "\n  "));
    }
    for one in &of.model_differences {
        text += &format!("  modelled in another way: {one}\n");
    }
    text + &describe_ignored_keys(&of.keys_without_effect)
}

/// Lists keys without effect by block. Keys with the same reason share a line, and each has its
/// line number.
fn describe_ignored_keys(all: &[OmittedKey]) -> String {
    let mut groups: Vec<(&str, &str, &str, Vec<String>)> = Vec::new();
    for OmittedKey {
        key,
        block,
        position: place,
        reason: why,
    } in all
    {
        let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
        let key = format!("{key} ({line})");
        let same = |of: &&mut (&str, &str, &str, Vec<String>)| {
            (of.0, of.1, of.2) == (file, block.as_str(), why.as_str())
        };
        match groups.iter_mut().find(same) {
            Some((.., keys)) => keys.push(key),
            None => groups.push((file, block, why, vec![key])),
        }
    }
    groups.sort_by_key(|(file, block, ..)| {
        let is_same = |of: &OmittedKey| of.position.starts_with(file) && of.block == *block;
        all.iter().position(is_same)
    });
    let (mut text, mut heading) = (String::new(), None);
    if !all.is_empty() {
        let keys = all.len();
        text += &format!("  without effect, {keys} keys, each with its line:\n");
    }
    for (file, block, why, keys) in &groups {
        if heading != Some((file, block)) {
            let separator = if block.is_empty() { "" } else { ", " };
            text += &format!("    {file}{separator}{block}:\n");
            heading = Some((file, block));
        }
        text += &format!("      {}: {why}\n", keys.join(", "));
    }
    text
}

/// Describes the fitted part of a trace and the spindle properties that it reveals.
fn describe_fit(of: &CalibrationFit) -> String {
    let phase = &of.phase;
    format!(
        "  fitted to the first {} of {} requests of the trace: R {:.3}, a revolution of {:.3} µs ({:+.0} ppm), {}{}\n",
        of.fitted_request_count,
        of.request_count,
        phase.resultant_length,
        phase.period_us,
        phase.period_uncertainty_ppm,
        match phase.think_time_reference {
            ThinkTimeReference::BeforeSubmission => "pauses before requests",
            ThinkTimeReference::AfterCompletion => "pauses after requests",
            ThinkTimeReference::Undetermined if !of.shows_angles =>
                "no phase: too few requests are on the cylinders of others to show the angle of the platters",
            ThinkTimeReference::Undetermined => "no phase",
        },
        match phase.phase_steps.len() {
            0 => String::new(),
            1 => ", the phase jumps once".to_owned(),
            count => format!(", the phase jumps {count} times"),
        }
    )
}

/// Describes the properties of a drive that a trace alone reveals.
fn describe_shown(shown: &TraceDrive) -> String {
    let mut text = format!(
        "  determined from the first {} of {} requests, pauses {} requests, {} where lines are missing:\n",
        shown.fitted_request_count,
        shown.request_count,
        match shown.think_time_reference {
            ThinkTimeReference::AfterCompletion => "after",
            ThinkTimeReference::BeforeSubmission | ThinkTimeReference::Undetermined => "before",
        },
        match shown.phase_jumps.len() {
            1 => "1 place".to_owned(),
            count => format!("{count} places"),
        }
    );
    for number in &shown.fitted_parameters {
        let zone = number
            .zone_index
            .map_or(String::new(), |zone| format!("zone {zone}: "));
        text += &format!(
            "    {:<40} {:>14.3}   95 % interval {:.3} to {:.3}\n",
            format!("{zone}{}", number.name),
            number.value,
            number.interval_min,
            number.interval_max
        );
    }
    for one in &shown.undetermined_parameters {
        text += &format!("  not determined: {one}\n");
    }
    text += &format!(
        "  the last {} requests, replayed on the modelled drive: {:.2} % within 0.5 ms, RMS {:.3} ms, demerit {:.3} ms, bias {:+.3} ms\n",
        shown.request_count - shown.fitted_request_count,
        shown.replay.within_half_ms_percent,
        shown.replay.rms_per_request_ms,
        shown.replay.demerit_ms,
        shown.replay.bias_ms
    );
    text
}

/// Describes how accurately the modelled drives replay the half of a trace that nothing was fitted
/// to.
fn describe_replays(of: &CalibrationReplays) -> String {
    let mut text = format!(
        "  the last {} requests of the trace, replayed:  within 0.5 ms       RMS   demerit       bias\n",
        of.request_count
    );
    for (name, figures) in [
        ("the catalogue's drive, values of its files", &of.as_filed),
        ("the catalogue's drive, fitted", &of.as_fitted),
    ] {
        text += &format!(
            "    {name:<44} {:>11.2} %  {:>6.3} ms  {:>5.3} ms  {:>+6.3} ms\n",
            figures.within_half_ms_percent,
            figures.rms_per_request_ms,
            figures.demerit_ms,
            figures.bias_ms
        );
    }
    text
}

/// Suggests the next commands after an import.
fn describe_next_steps(found: &ImportOutcome, arguments: &ImportArguments) -> String {
    let Some(first) = found.drives.first() else {
        return String::new();
    };
    let folder = arguments.output.display();
    // What was fitted to another drive's trace is not recommended.
    let fits = first.fit.as_ref().is_some_and(|fit| fit.is_good);
    let fitted = |name: &Option<String>| name.clone().filter(|_| fits);
    let system = fitted(&first.fitted_system).unwrap_or_else(|| first.system.clone());
    let drive = fitted(&first.fitted_drive_name).unwrap_or_else(|| first.name.clone());
    let mut text = format!(
        "next: diskperf show {drive} --catalogue {folder}\n      diskperf run today26 --on {system} --catalogue {folder}\n"
    );
    let trace = arguments.calibrate.as_ref().filter(|_| fits);
    if let (Some(trace), Some(fit)) = (trace, &first.fit) {
        let form = match fit.phase.think_time_reference {
            ThinkTimeReference::BeforeSubmission => Some("validate-before"),
            ThinkTimeReference::AfterCompletion => Some("validate"),
            ThinkTimeReference::Undetermined => None,
        };
        if let Some(form) = form {
            text += &format!(
                "      diskperf replay '{}' --form {form} --think --on {system} --catalogue {folder}\n",
                trace.display()
            );
        }
    }
    text
}

fn list_fitted_drives(found: &ImportOutcome) -> Listing {
    let row = |of: &ImportedDrive| {
        let mut row = vec![
            of.name.clone(),
            of.system.clone(),
            of.fitted_system.clone().unwrap_or_default(),
            of.source_file.clone(),
            of.capacity_bytes.to_string(),
            of.zone_count.to_string(),
            of.keys_without_effect.len().to_string(),
            of.model_differences.join("; "),
            of.trace_file.clone().unwrap_or_default(),
        ];
        row.extend(format_fitted_fields(of));
        row
    };
    let mut heading = vec![
        "drive",
        "system",
        "fitted_system",
        "file",
        "capacity_bytes",
        "zones",
        "keys_without_effect",
        "modelled_in_another_way",
        "trace_beside",
    ];
    heading.extend(FITTED_FIELDS);
    Listing {
        name: "drives",
        heading,
        rows: found.drives.iter().map(row).collect(),
        ..Listing::default()
    }
}

const FITTED_FIELDS: [&str; 8] = [
    "requests",
    "r",
    "period_us",
    "ppm",
    "filed_within_half_ms_percent",
    "filed_rms_ms",
    "fitted_within_half_ms_percent",
    "fitted_rms_ms",
];

fn format_fitted_fields(of: &ImportedDrive) -> [String; FITTED_FIELDS.len()] {
    let (
        Some(CalibrationFit {
            request_count: requests,
            phase,
            ..
        }),
        Some(replays),
    ) = (&of.fit, &of.replays)
    else {
        return Default::default();
    };
    let numbers = [
        phase.resultant_length,
        phase.period_us,
        phase.period_uncertainty_ppm,
        replays.as_filed.within_half_ms_percent,
        replays.as_filed.rms_per_request_ms,
        replays.as_fitted.within_half_ms_percent,
        replays.as_fitted.rms_per_request_ms,
    ];
    let mut fields = <[String; FITTED_FIELDS.len()]>::default();
    fields[0] = requests.to_string();
    for (field, number) in fields[1..].iter_mut().zip(numbers) {
        *field = format!("{number:.3}");
    }
    fields
}
