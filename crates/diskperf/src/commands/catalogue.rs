//! Lists of the catalogue and display of its entries.

use super::{CommandResult, DONE};
use crate::arguments::{ListSubject, OutputFormat};
use crate::drawing;
use crate::listing::Listing;
use crate::output::{print, width};
use diskperf_battery::program::nearest_name;
use diskperf_catalogue::{CalibrationMethod, Catalogue, Component, Parameter, ValueOrigin};
use diskperf_laboratory::LaboratoryError;
use diskperf_laboratory::catalogue::{
    self, ComponentEntry, DriveFigure, DriveFigures, SystemEntry, ZoneFigures, find_components,
    list_components, list_documents, list_systems,
};
use serde_json::{Value, json};

/// Lists one kind of catalogue entry; `None` for anything that is not part of the catalogue.
pub(super) fn list_subject(
    catalogue: &Catalogue,
    listed: ListSubject,
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
    let kind = |name, component: Component| {
        of(
            name,
            component.name(),
            list_components(catalogue, component),
        )
    };
    match listed {
        ListSubject::Systems => of("systems", "system", list_systems(catalogue)),
        ListSubject::Drives => kind("drives", Component::Drive),
        ListSubject::Controllers => kind("controllers", Component::Controller),
        ListSubject::Buses => kind("buses", Component::Bus),
        ListSubject::Hosts => kind("hosts", Component::Host),
        ListSubject::Kernels => kind("kernels", Component::Kernel),
        ListSubject::Drivers => kind("drivers", Component::Driver),
        ListSubject::Filesystems => kind("filesystems", Component::Filesystem),
        ListSubject::Published => list_published(catalogue).map(Some),
        ListSubject::Suites
        | ListSubject::Programs
        | ListSubject::Runs
        | ListSubject::Parameters => Ok(None),
    }
}

fn list_published(catalogue: &Catalogue) -> Result<Listing, LaboratoryError> {
    let row = |document: catalogue::PublishedDocument| {
        let modelled = if document.is_modelled { "yes" } else { "no" };
        vec![
            document.name,
            document.cell_count.to_string(),
            document.scored_count.to_string(),
            modelled.to_owned(),
        ]
    };
    Ok(Listing {
        name: "published",
        heading: vec!["document", "cells", "scored", "modelled"],
        rows: list_documents(catalogue)?.into_iter().map(row).collect(),
        ..Listing::default()
    })
}

pub(super) fn list_parameters(list: &[Parameter]) -> Listing {
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
pub(super) fn show(
    catalogue: &Catalogue,
    name: &str,
    format: OutputFormat,
) -> Option<CommandResult> {
    if catalogue.system_names().iter().any(|known| known == name) || is_file(name) {
        return Some(show_system(catalogue, name, format));
    }
    let (kind, plain) = match name.split_once('/') {
        Some((kind, plain)) => (Component::from_name(kind), plain),
        None => (None, name),
    };
    let mut found = find_components(catalogue, plain);
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

fn show_system(catalogue: &Catalogue, name: &str, format: OutputFormat) -> CommandResult {
    let entry = catalogue::describe_system(catalogue, name, &[])?;
    let list = list_parameters(&entry.parameters);
    print(&match format {
        OutputFormat::Table => {
            let mut text = format!("{}\n{}\n", entry.name, entry.description);
            for (component, name) in &entry.components {
                text += &format!("  {component:<11} {name}\n");
            }
            text += &describe_free_parameters(&entry.parameters);
            format!("{text}\n{}", list.render(format, width()))
        }
        OutputFormat::Json => system_json(&entry).to_string(),
        format => list.render(format, width()),
    })?;
    Ok(DONE)
}

/// Describes the parameters that no document gives, by method of choice and the measurements used.
fn describe_free_parameters(parameters: &[Parameter]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for parameter in parameters {
        let how = match parameter.origin() {
            ValueOrigin::Documented => continue,
            ValueOrigin::Assumed => "assumed".to_owned(),
            ValueOrigin::Calibrated { set, by } => match by {
                CalibrationMethod::AutomaticFit => format!("calibrated by a fit to {set}"),
                CalibrationMethod::ByHand => format!("calibrated by hand on {set}"),
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
fn describe_origin(parameter: &Parameter) -> (&'static str, Option<String>) {
    match parameter.origin() {
        ValueOrigin::Documented => ("documented", None),
        ValueOrigin::Assumed => ("assumed", None),
        ValueOrigin::Calibrated { set, by } => match by {
            CalibrationMethod::AutomaticFit => ("fitted", Some(set)),
            CalibrationMethod::ByHand => ("by_hand", Some(set)),
        },
    }
}

fn show_components(
    catalogue: &Catalogue,
    name: &str,
    found: &[Component],
    format: OutputFormat,
) -> CommandResult {
    let mut texts = Vec::new();
    for component in found {
        let entry = catalogue::describe_component(catalogue, *component, name)?;
        let list = list_parameters(&entry.parameters);
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
    let longest = drive.figures.iter().map(|figure| figure.name.len()).max();
    let width = longest.unwrap_or(0);
    for DriveFigure { name, value, unit } in &drive.figures {
        // What is counted has no parts, and is its own unit.
        text += &match *unit {
            "zones" | "tracks" | "cylinders" => format!("  {name:<width$} {value:>10.0}\n"),
            unit => format!("  {name:<width$} {value:>10.2} {unit}\n"),
        };
    }
    text += &draw_zones(&drive.zones);
    text + "\n" + &drawing::draw_curve(&drive.seek_curve, "cylinders", "ms")
}

/// Draws the zones of a disk, one per line, with bars for their transfer rates.
fn draw_zones(all: &[ZoneFigures]) -> String {
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
            zone.capacity_gb,
            zone.mb_per_s,
            zone.track_skew_rev,
            zone.cylinder_skew_rev
        );
    }
    text + "  skews are in revolutions\n"
}

fn parameters_json(list: &[Parameter]) -> Value {
    let one = |parameter: &Parameter| {
        let (origin, set) = describe_origin(parameter);
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
        let figure = |figure: &DriveFigure| json!({"what": figure.name, "value": figure.value, "unit": figure.unit});
        let point = |(cylinders, ms): &(u32, f64)| json!([cylinders, ms]);
        value["figures"] = Value::Array(drive.figures.iter().map(figure).collect());
        value["zones"] = json!(drive.zones);
        value["seek_ms_by_cylinders"] = Value::Array(drive.seek_curve.iter().map(point).collect());
    }
    value
}
