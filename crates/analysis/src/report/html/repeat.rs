//! Environment of a run, and the command to repeat it.

use super::escape;
use crate::report::details;
use crate::report::formatting::quote_shell_word;
use diskperf_timeline::{MeasuredWorld, Run};

pub(super) fn list_environment_differences(run: &Run) -> Vec<String> {
    match run.world {
        MeasuredWorld::Host => details::describe_environment(&run.environment),
        MeasuredWorld::Model => build_model_command(run),
    }
}

fn build_model_command(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    for place in &run.environment.places {
        lines.push(place.path.clone());
        lines.extend(place.filesystem.as_ref().map(details::describe_filesystem));
        lines.extend(place.devices.iter().map(details::describe_device));
    }
    if let Some(model) = &run.model_information {
        let names: Vec<&str> = model.catalogue.keys().map(String::as_str).collect();
        lines.push(format!("drives configured: {}", model.configured_drives));
        lines.push(format!("of the catalogue: {}", names.join(", ")));
        if !model.settings.is_empty() {
            lines.push(format!("settings: {}", model.settings.join(", ")));
        }
    }
    lines
}

/// Formats the command of the run, with the conditions for the same figures.
pub(super) fn build_repeat_command(run: &Run) -> String {
    let command: Vec<String> = run
        .command_line
        .iter()
        .map(|word| quote_shell_word(word))
        .collect();
    let mut lines = details::describe_origin(run);
    // The command stands above, where it can be copied.
    lines.retain(|line| !line.starts_with("command line: "));
    if let Some(model) = &run.model_information {
        lines.push(format!(
            "model {}, fingerprint {}: runs with the same fingerprint are equal to the last byte",
            model.model_version, model.fingerprint
        ));
    }
    let items = super::blocks::render_list(&lines);
    match command.is_empty() {
        true => items,
        false => format!(
            "<pre>{}</pre>\n{items}",
            escape::escape_text(&command.join(" "))
        ),
    }
}
