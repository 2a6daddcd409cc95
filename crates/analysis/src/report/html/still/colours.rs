//! Colours of marks in static chart pictures.

use super::{DrawingLayer, format_value, matches_test, scale};
use serde_json::Value;

/// Colours of names: the ten of Tableau, and a lighter one of each.
const TABLEAU_COLOURS: [&str; 20] = [
    "#4c78a8", "#f58518", "#e45756", "#72b7b2", "#54a24b", "#eeca3b", "#b279a2", "#ff9da6",
    "#9d755d", "#bab0ac", "#9ecae9", "#ffbf79", "#ff9d98", "#83bcb6", "#88d27a", "#f2cf5b",
    "#d6a5c9", "#fcbfd2", "#d8b5a5", "#79706e",
];

const VIRIDIS_COLOURS: [&str; 9] = [
    "#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30",
    "#fde725",
];

/// Default colour of marks in static chart pictures.
pub(super) const INK_COLOUR: &str = "currentColor";

/// Returns the colour of a mark by the channel `name`.
pub(super) fn choose_colour(layer: &DrawingLayer<'_>, name: &str, row: &Value) -> String {
    let channel = layer.encoding_channel(name);
    if let Some(test) = channel["condition"]["test"].as_str()
        && matches_test(test, row)
    {
        return format_value(&channel["condition"]["value"]);
    }
    if let Some(value) = channel["value"].as_str() {
        return value.to_owned();
    }
    let Some(value) = layer.field_value(name, row) else {
        let own = layer.mark["color"]
            .as_str()
            .or(layer.mark["stroke"].as_str());
        return own.unwrap_or(INK_COLOUR).to_owned();
    };
    match channel["type"] == "quantitative" {
        true => colour_of_number(layer, name, value),
        false => colour_of_name(layer, name, &format_value(value)),
    }
}

/// Returns the colour that a chart gives to a name, by its position in the domain or among the
/// names.
pub(super) fn colour_of_name(layer: &DrawingLayer<'_>, channel: &str, name: &str) -> String {
    let scale = &layer.encoding_channel(channel)["scale"];
    let found = |names: &[String]| names.iter().position(|other| other == name).unwrap_or(0);
    match (scale["domain"].as_array(), scale["range"].as_array()) {
        (Some(domain), Some(range)) if !range.is_empty() => {
            let domain: Vec<String> = domain.iter().map(format_value).collect();
            format_value(&range[found(&domain) % range.len()])
        }
        _ => {
            let names = scale::list_names(std::slice::from_ref(layer), channel);
            TABLEAU_COLOURS[found(&names) % TABLEAU_COLOURS.len()].to_owned()
        }
    }
}

fn colour_of_number(layer: &DrawingLayer<'_>, channel: &str, value: &Value) -> String {
    let (low, high) = find_value_range(layer, channel);
    let share = match high - low {
        0.0 => 1.0,
        span => (value.as_f64().unwrap_or(low) - low) / span,
    };
    let share = match layer.encoding_channel(channel)["scale"]["reverse"] == true {
        true => 1.0 - share,
        false => share,
    };
    let step = share.clamp(0.0, 1.0) * (VIRIDIS_COLOURS.len() - 1) as f64;
    VIRIDIS_COLOURS[step.round() as usize].to_owned()
}

/// Returns the minimum and the maximum of the data behind a visual property.
pub(super) fn find_value_range(layer: &DrawingLayer<'_>, channel: &str) -> (f64, f64) {
    let values = layer
        .rows
        .iter()
        .filter_map(|row| layer.field_value(channel, row)?.as_f64());
    values.fold((f64::MAX, f64::MIN), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

/// Returns the opacity of a mark in a static picture, from 0 to 1.
pub(super) fn choose_opacity(layer: &DrawingLayer<'_>, row: &Value) -> f64 {
    let own = layer.mark["opacity"].as_f64().unwrap_or(1.0);
    let scale = &layer.encoding_channel("opacity")["scale"];
    let (Some(value), Some(domain)) = (
        layer.field_value("opacity", row),
        scale["domain"].as_array(),
    ) else {
        return own;
    };
    let place = domain.iter().position(|one| one == value);
    place
        .and_then(|place| scale["range"][place].as_f64())
        .unwrap_or(own)
}
