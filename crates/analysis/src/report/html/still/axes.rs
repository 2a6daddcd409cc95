//! Axes and legends of static chart pictures.

use super::{CHARACTER_WIDTH, DrawingLayer, StillDrawing, colours, format_value, scale};
use crate::report::html::escape;
use serde_json::Value;

pub(super) const SPACE_BELOW_AXIS: f64 = 40.0;

const LEGEND_LINE_HEIGHT: f64 = 17.0;

/// Returns a property of an axis or scale from the first layer of the chart that defines it.
pub(super) fn find_channel_definition<'s>(
    layers: &[DrawingLayer<'s>],
    channel: &str,
    what: &str,
) -> &'s Value {
    let said = layers
        .iter()
        .map(|layer| &layer.encoding_channel(channel)[what]);
    let mut said = said.filter(|one| !one.is_null());
    said.next().unwrap_or(&Value::Null)
}

/// Formats a number beside an axis by the axis's label expression: a share of calls as the
/// percentage of the others, bytes in multiples of 1024, others short.
pub(super) fn format_axis_number(axis: &Value, value: f64) -> String {
    let wanted = axis["labelExpr"].as_str().unwrap_or_default();
    if wanted.contains("100 - 100 * datum.value") {
        return format!("{}%", format_short_number(100.0 - 100.0 * value));
    }
    match wanted.contains("/ 1024") && value >= 1024.0 {
        true => format!("{}K", format_short_number(value / 1024.0)),
        false => format_short_number(value),
    }
}

/// Formats a number with few digits: `25M`, `1.5k`, `0.001`.
pub(super) fn format_short_number(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        size if size >= 100.0 => 0,
        size if size >= 1.0 => 2,
        _ => 6,
    };
    let text = format!("{scaled:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

/// Draws both axes of a chart with lines, labels and titles.
pub(super) fn draw_axes(drawing: &StillDrawing<'_>) -> String {
    let (width, height) = (drawing.plot_width, drawing.plot_height);
    let mut svg = String::new();
    for (share, text) in drawing
        .x
        .list_ticks(find_channel_definition(&drawing.layers, "x", "axis"))
    {
        let at = share * width;
        if !drawing.x.has_names() {
            svg += &format!("<path class=\"tick\" d=\"M{at:.1} 0V{height:.1}\"/>");
        }
        let text = truncate_to_width(&text, f64::max(60.0, drawing.x.band_width() * width));
        svg += &draw_text((at, height + 14.0), "middle", &text);
    }
    for (share, text) in drawing
        .y
        .list_ticks(find_channel_definition(&drawing.layers, "y", "axis"))
    {
        let at = match drawing.y.has_names() {
            true => share * height,
            false => {
                let at = (1.0 - share) * height;
                svg += &format!("<path class=\"tick\" d=\"M0 {at:.1}H{width:.1}\"/>");
                at
            }
        };
        svg += &draw_text(
            (-7.0, at + 4.0),
            "end",
            &truncate_to_width(&text, drawing.plot_left - 24.0),
        );
    }
    let title = |channel| {
        find_channel_definition(&drawing.layers, channel, "title")
            .as_str()
            .map(escape::escape_text)
    };
    if let Some(title) = title("x") {
        svg += &format!(
            "<text class=\"quiet\" text-anchor=\"middle\" x=\"{:.1}\" y=\"{:.1}\">{title}</text>",
            width / 2.0,
            height + 32.0
        );
    }
    if let Some(title) = title("y") {
        svg += &format!(
            "<text class=\"quiet\" text-anchor=\"middle\" transform=\"translate({:.1} {:.1}) rotate(-90)\">{title}</text>",
            12.0 - drawing.plot_left,
            height / 2.0
        );
    }
    svg
}

/// Draws a text at a position in pixels.
pub(super) fn draw_text((x, y): (f64, f64), anchor: &str, text: &str) -> String {
    let text = escape::escape_text(text);
    format!("<text text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>")
}

fn truncate_to_width(text: &str, pixels: f64) -> String {
    let most = (pixels / CHARACTER_WIDTH).max(4.0) as usize;
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Draws the legend of a chart's colours, and returns its height in pixels.
pub(super) fn draw_legend(drawing: &StillDrawing<'_>) -> (String, f64) {
    let mut svg = String::new();
    let (mut x, mut y) = (0.0, 12.0);
    for (name, colour) in list_colour_meanings(drawing) {
        let name = truncate_to_width(&name, 0.8 * drawing.total_width);
        let long = 30.0 + CHARACTER_WIDTH * name.chars().count() as f64;
        if x > 0.0 && x + long > drawing.total_width {
            (x, y) = (0.0, y + LEGEND_LINE_HEIGHT);
        }
        svg += &format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" fill=\"{}\"/>",
            y - 9.0,
            escape::escape_text(&colour)
        );
        svg += &draw_text((x + 14.0, y), "start", &name);
        x += long;
    }
    match svg.is_empty() {
        true => (svg, 8.0),
        false => (svg, y + 14.0),
    }
}

/// Returns the names and colours of a legend. For numbers these are the two ends.
fn list_colour_meanings(drawing: &StillDrawing<'_>) -> Vec<(String, String)> {
    let mut layers = drawing.layers.iter();
    let coloured = |layer: &&DrawingLayer<'_>| layer.encoding_channel("color")["field"].is_string();
    let Some(layer) = layers.find(coloured) else {
        return Vec::new();
    };
    let channel = layer.encoding_channel("color");
    if channel.get("legend").is_some_and(Value::is_null) {
        return Vec::new();
    }
    if channel["type"] == "quantitative" {
        let (low, high) = colours::find_value_range(layer, "color");
        let end = |value: f64| {
            let row = serde_json::json!({ channel["field"].as_str().unwrap_or_default(): value });
            let words = format!(
                "{} {}",
                format_value(&channel["title"]),
                format_short_number(value)
            );
            (words, colours::choose_colour(layer, "color", &row))
        };
        return vec![end(low), end(high)];
    }
    let names = scale::list_names(std::slice::from_ref(layer), "color");
    let meaning = |name: String| {
        let colour = colours::colour_of_name(layer, "color", &name);
        (name, colour)
    };
    names.into_iter().map(meaning).collect()
}
