//! `diskperf import`.

use super::{DONE, Outcome};
use crate::arguments::{ImportArguments, OutputFormat};
use crate::listing::Listing;
use crate::output::{print, width};
use diskperf_laboratory::import::{
    Asked, Imported, ImportedDrive, LeftOut, Replays, import as imported,
};
use diskperf_laboratory::timeline::units::format_size;
use serde_json::json;

/// Writes drives of DiskSim's files as entries of a catalogue.
pub(crate) fn import(arguments: &ImportArguments) -> Outcome {
    let found = imported(&Asked {
        files: &arguments.files,
        to: &arguments.output,
        replace: arguments.replace,
        trace: arguments.calibrate.as_deref(),
    })?;
    print(&match arguments.format {
        OutputFormat::Table => {
            let drives: Vec<String> = found.drives.iter().map(drive).collect();
            format!("{}\n{}", drives.join("\n"), next(&found, arguments))
        }
        OutputFormat::Json => json!(found).to_string(),
        format => listing(&found).render(format, width()),
    })?;
    Ok(DONE)
}

/// A drive, what was written, and what came of its keys.
fn drive(of: &ImportedDrive) -> String {
    let mut text = format!(
        "{} from {}: {}, {} {}\n",
        of.name,
        of.file,
        format_size(of.capacity_bytes),
        of.zones,
        match (of.is_of_runs, of.zones) {
            (true, _) => "runs of sectors",
            (false, 1) => "zone",
            (false, _) => "zones",
        }
    );
    for path in &of.written {
        text += &format!("  wrote {path}\n");
    }
    if let Some(trace) = &of.trace_beside {
        text += &format!(
            "  {trace} lies beside it: --calibrate {trace} fits the drive to what it shows\n"
        );
    }
    if let Some(replays) = &of.replays {
        text += &of_replays(replays);
        for one in &of.not_expressed {
            text += &format!("    fitted, and not in the layer: {one}\n");
        }
    }
    for warning in &of.warnings {
        text += &format!("  {}\n", warning.trim_end().replace('\n', "\n  "));
    }
    for one in &of.differs {
        text += &format!("  modelled in another way: {one}\n");
    }
    if !of.without_effect.is_empty() {
        let keys = of.without_effect.len();
        text += &format!("  without effect, {keys} keys:\n");
    }
    for LeftOut { key, place, why } in &of.without_effect {
        text += &format!("    {place}: {key}: {why}\n");
    }
    text
}

/// How well the modelled drives replay the half of a trace that nothing was fitted to.
fn of_replays(of: &Replays) -> String {
    let mut text = format!(
        "  the last {} requests of the trace, replayed:  within 0.5 ms       RMS   demerit\n",
        of.requests
    );
    for (name, figures) in [
        ("the drive with the values of its files", &of.filed),
        ("the same with what was fitted", &of.fitted),
        ("the model that was fitted", &of.model),
    ] {
        text += &format!(
            "    {name:<44} {:>11.2} %  {:>6.3} ms  {:>5.3} ms\n",
            figures.within_half_ms_percent, figures.rms_per_request_ms, figures.demerit_ms
        );
    }
    text
}

/// What to do with it.
fn next(found: &Imported, arguments: &ImportArguments) -> String {
    let Some(first) = found.drives.first() else {
        return String::new();
    };
    let folder = arguments.output.display();
    let system = first.fitted_system.as_ref().unwrap_or(&first.system);
    format!(
        "next: diskperf show {} --catalogue {folder}\n      diskperf run today26 --on {system} --catalogue {folder}\n",
        first.name
    )
}

/// A row for each drive.
fn listing(found: &Imported) -> Listing {
    let row = |of: &ImportedDrive| {
        vec![
            of.name.clone(),
            of.system.clone(),
            of.fitted_system.clone().unwrap_or_default(),
            of.file.clone(),
            of.capacity_bytes.to_string(),
            of.zones.to_string(),
            of.without_effect.len().to_string(),
            of.differs.join("; "),
            of.trace_beside.clone().unwrap_or_default(),
        ]
    };
    Listing {
        name: "drives",
        heading: vec![
            "drive",
            "system",
            "fitted_system",
            "file",
            "capacity_bytes",
            "zones",
            "keys_without_effect",
            "modelled_in_another_way",
            "trace_beside",
        ],
        rows: found.drives.iter().map(row).collect(),
    }
}
