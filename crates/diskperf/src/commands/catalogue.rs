//! Lists of the catalogue and display of its entries.

use super::{DONE, Outcome};
use crate::arguments::{Listed, OutputFormat};
use crate::drawing;
use crate::listing::Listing;
use crate::output::{print, width};
use diskperf_battery::program::nearest_name;
use diskperf_catalogue::{Catalogue, Chooser, Component, Origin, Parameter};
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::catalogue::{
    self, ComponentEntry, DriveFigures, SystemEntry, ZoneFigures, components, components_named,
    documents, systems,
};
use serde_json::{Value, json};

/// Lists one kind of catalogue entry; `None` for anything that is not part of the catalogue.
pub(super) fn listing(
    catalogue: &Catalogue,
    listed: Listed,
) -> Result<Option<Listing>, LaboratoryError> {
    let of = |name, kind, entries: Vec<(String, String)>| {
        let rows = entries.into_iter().map(|(name, what)| vec![name, what]);
        Ok(Some(Listing {
            name,
            heading: vec![kind, "meaning"],
            rows: rows.collect(),
            ..Listing::default()
        }))
    };
    let kind =
        |name, component: Component| of(name, component.name(), components(catalogue, component));
    match listed {
        Listed::Systems => of("systems", "system", systems(catalogue)),
        Listed::Drives => kind("drives", Component::Drive),
        Listed::Controllers => kind("controllers", Component::Controller),
        Listed::Buses => kind("buses", Component::Bus),
        Listed::Hosts => kind("hosts", Component::Host),
        Listed::Kernels => kind("kernels", Component::Kernel),
        Listed::Drivers => kind("drivers", Component::Driver),
        Listed::Filesystems => kind("filesystems", Component::Filesystem),
        Listed::Published => published(catalogue).map(Some),
        Listed::Suites | Listed::Programs | Listed::Runs | Listed::Parameters => Ok(None),
    }
}

fn published(catalogue: &Catalogue) -> Result<Listing, LaboratoryError> {
    let row = |document: catalogue::Document| {
        let modelled = if document.modelled { "yes" } else { "no" };
        vec![
            document.name,
            document.cells.to_string(),
            document.scored.to_string(),
            modelled.to_owned(),
        ]
    };
    Ok(Listing {
        name: "published",
        heading: vec!["document", "cells", "scored", "modelled"],
        rows: documents(catalogue)?.into_iter().map(row).collect(),
        ..Listing::default()
    })
}

/// Lists all parameters of a system or a component.
pub(super) fn parameters(list: &[Parameter]) -> Listing {
    let row = |parameter: &Parameter| {
        vec![
            parameter.path.clone(),
            parameter.value.clone(),
            parameter.unit.to_owned(),
            parameter.range.clone(),
            parameter.source.clone(),
            parameter.doc.clone(),
        ]
    };
    Listing {
        name: "parameters",
        heading: vec!["path", "value", "unit", "allowed", "source", "meaning"],
        rows: list.iter().map(row).collect(),
        ..Listing::default()
    }
}

/// Shows the catalogue entry with this name, if it exists. A component's name may have its kind in
/// front, such as `driver/uda`.
pub(super) fn show(catalogue: &Catalogue, name: &str, format: OutputFormat) -> Option<Outcome> {
    if catalogue.system_names().iter().any(|known| known == name) || is_file(name) {
        return Some(show_system(catalogue, name, format));
    }
    let (kind, plain) = match name.split_once('/') {
        Some((kind, plain)) => (Component::of_name(kind), plain),
        None => (None, name),
    };
    let mut found = components_named(catalogue, plain);
    found.retain(|component| kind.is_none_or(|kind| kind == *component));
    if found.is_empty() || (name.contains('/') && kind.is_none()) {
        return None;
    }
    Some(show_components(catalogue, plain, &found, format))
}

/// Adds a hint to an unknown-run error if a catalogue entry has a similar name.
pub(super) fn suggest_command(name: &str, error: LaboratoryError) -> LaboratoryError {
    let known = Catalogue::embedded();
    let mut names = known.system_names();
    for component in Component::ALL {
        names.extend(known.component_names(component));
    }
    match nearest_name(name, names.iter().map(String::as_str)) {
        Some(near) if !name.contains('/') => {
            LaboratoryError::Request(format!("{error}; the catalogue has an entry `{near}`"))
        }
        _ => error,
    }
}

/// Adds a hint on how to run a modelled system if its name was given in place of a run.
pub(super) fn suggest_run(name: &str, error: LaboratoryError) -> LaboratoryError {
    let known = Catalogue::embedded().system_names();
    if known.iter().any(|system| system == name) {
        LaboratoryError::Request(format!(
            "{error}; {name} is a modelled system: `diskperf run --on {name}` stores a run of it, by the name `last`"
        ))
    } else {
        error
    }
}

fn is_file(name: &str) -> bool {
    name.ends_with(".toml") && std::path::Path::new(name).is_file()
}

fn show_system(catalogue: &Catalogue, name: &str, format: OutputFormat) -> Outcome {
    let entry = catalogue::system(catalogue, name, &[])?;
    let list = parameters(&entry.parameters);
    print(&match format {
        OutputFormat::Table => {
            let mut text = format!("{}\n{}\n", entry.name, entry.description);
            for (component, name) in &entry.components {
                text += &format!("  {component:<11} {name}\n");
            }
            text += &free_parameters(&entry.parameters);
            format!("{text}\n{}", list.render(format, width()))
        }
        OutputFormat::Json => system_json(&entry).to_string(),
        format => list.render(format, width()),
    })?;
    Ok(DONE)
}

/// Describes the parameters that no document gives, by method of choice and the measurements used.
fn free_parameters(parameters: &[Parameter]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for parameter in parameters {
        let how = match parameter.origin() {
            Origin::Documented => continue,
            Origin::Assumed => "assumed".to_owned(),
            Origin::Calibrated { set, by } => match by {
                Chooser::Fit => format!("calibrated by a fit to {set}"),
                Chooser::Hand => format!("calibrated by hand on {set}"),
            },
        };
        match groups.iter_mut().find(|(known, _)| *known == how) {
            Some((_, paths)) => paths.push(&parameter.path),
            None => groups.push((how, vec![&parameter.path])),
        }
    }
    if groups.is_empty() {
        return "every parameter is documented\n".to_owned();
    }
    groups.sort_by(|(left, _), (right, _)| right.cmp(left));
    let free: usize = groups.iter().map(|(_, paths)| paths.len()).sum();
    let mut text = format!(
        "\n{free} of {} parameters are in no document:\n",
        parameters.len()
    );
    for (how, paths) in groups {
        text += &format!("  {how}: {}\n", paths.join(", "));
    }
    text
}

/// Returns the origin of a value as a single word for machine-readable output, with its calibration
/// set.
fn origin(parameter: &Parameter) -> (&'static str, Option<String>) {
    match parameter.origin() {
        Origin::Documented => ("documented", None),
        Origin::Assumed => ("assumed", None),
        Origin::Calibrated { set, by } => match by {
            Chooser::Fit => ("fitted", Some(set)),
            Chooser::Hand => ("by_hand", Some(set)),
        },
    }
}

fn show_components(
    catalogue: &Catalogue,
    name: &str,
    found: &[Component],
    format: OutputFormat,
) -> Outcome {
    let mut texts = Vec::new();
    for component in found {
        let entry = catalogue::component(catalogue, *component, name)?;
        let list = parameters(&entry.parameters);
        texts.push(match format {
            OutputFormat::Table => {
                let title = format!("{} {}", entry.component, entry.name);
                let mut text = format!("{title}\n{}\n", entry.description);
                if let Some(drive) = &entry.drive {
                    text += &draw_seek_curve(drive);
                }
                format!("{text}\n{}", list.render(format, width()))
            }
            OutputFormat::Json => component_json(&entry).to_string(),
            format => list.render(format, width()),
        });
    }
    print(&texts.join("\n"))?;
    Ok(DONE)
}

fn draw_seek_curve(drive: &DriveFigures) -> String {
    let mut text = String::new();
    let longest = drive.figures.iter().map(|(what, ..)| what.len()).max();
    let width = longest.unwrap_or(0);
    for (what, value, unit) in &drive.figures {
        // What is counted has no parts, and is its own unit.
        text += &match *unit {
            "zones" | "tracks" | "cylinders" => format!("  {what:<width$} {value:>10.0}\n"),
            unit => format!("  {what:<width$} {value:>10.2} {unit}\n"),
        };
    }
    text += &zones(&drive.zones);
    text + "\n" + &drawing::curve(&drive.seek, "cylinders", "ms")
}

/// Draws the zones of a disk, one per line, with bars for their transfer rates.
fn zones(all: &[ZoneFigures]) -> String {
    const ZONE_BAR_WIDTH: f64 = 24.0;
    let Some(first) = all.first() else {
        return String::new();
    };
    let mut text =
        "\n  zone            cylinders  sectors/track      GB    MB/s  track skew  cylinder skew\n"
            .to_owned();
    for (number, zone) in all.iter().enumerate() {
        let bar = "█".repeat(
            (zone.mb_per_s / first.mb_per_s * ZONE_BAR_WIDTH)
                .round()
                .max(0.0) as usize,
        );
        let cylinders = format!("{}-{}", zone.first_cylinder, zone.last_cylinder);
        text += &format!(
            "  {number:>4} {cylinders:>20} {:>14} {:>7.2} {:>7.2} {:>11.4} {:>14.4}  {bar}\n",
            zone.sectors_per_track,
            zone.gb,
            zone.mb_per_s,
            zone.track_skew_rev,
            zone.cylinder_skew_rev
        );
    }
    text + "  skews are in revolutions\n"
}

fn parameters_json(list: &[Parameter]) -> Value {
    let one = |parameter: &Parameter| {
        let (origin, set) = origin(parameter);
        json!({
            "path": parameter.path,
            "value": parameter.value,
            "unit": parameter.unit,
            "allowed": parameter.range,
            "source": parameter.source,
            "origin": origin,
            "calibration_set": set,
            "file": parameter.file,
            "line": parameter.line,
            "meaning": parameter.doc,
        })
    };
    Value::Array(list.iter().map(one).collect())
}

fn system_json(entry: &SystemEntry) -> Value {
    let components = entry.components.iter();
    let components = components.map(|(kind, name)| (kind.clone(), json!(name)));
    json!({
        "system": entry.name,
        "description": entry.description,
        "components": Value::Object(components.collect()),
        "parameters": parameters_json(&entry.parameters),
    })
}

fn component_json(entry: &ComponentEntry) -> Value {
    let mut value = json!({
        "component": entry.component.name(),
        "name": entry.name,
        "description": entry.description,
        "parameters": parameters_json(&entry.parameters),
    });
    if let Some(drive) = &entry.drive {
        let figure = |(what, value, unit): &(&str, f64, &str)| json!({"what": what, "value": value, "unit": unit});
        let point = |(cylinders, ms): &(u32, f64)| json!([cylinders, ms]);
        value["figures"] = Value::Array(drive.figures.iter().map(figure).collect());
        value["zones"] = json!(drive.zones);
        value["seek_ms_by_cylinders"] = Value::Array(drive.seek.iter().map(point).collect());
    }
    value
}
