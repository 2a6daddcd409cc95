//! Marks of static chart pictures: bars, points, texts, rules, rectangles, lines and areas.

use super::colours::{self, choose_colour, choose_opacity};
use super::{DrawingLayer, StillDrawing, axes, format_value};
use crate::report::html::escape;
use serde_json::Value;

pub(super) fn draw_layer(drawing: &StillDrawing<'_>, layer: &DrawingLayer<'_>) -> String {
    let each =
        |mark: fn(&StillDrawing<'_>, &DrawingLayer<'_>, &Value) -> Option<String>| -> String {
            layer
                .rows
                .iter()
                .filter_map(|row| mark(drawing, layer, row))
                .collect()
        };
    let marks = match layer.mark_kind() {
        "bar" => draw_bars(drawing, layer),
        "point" => each(draw_point),
        "text" => each(draw_text),
        "rule" => each(draw_rule),
        "rect" => each(draw_rectangle),
        "line" => draw_lines(drawing, layer),
        "area" => draw_area(drawing, layer),
        _ => String::new(),
    };
    match layer.is_rows {
        true => format!("<g class=\"rows_marks\">{marks}</g>"),
        false => format!("<g>{marks}</g>"),
    }
}

/// Returns the middle of a row's band and the height of its bar, in pixels.
fn find_band(
    drawing: &StillDrawing<'_>,
    layer: &DrawingLayer<'_>,
    row: &Value,
) -> Option<(f64, f64)> {
    let middle = drawing.y_position(layer.field_value("y", row)?)?;
    let band = drawing.y.band_width() * drawing.plot_height;
    let Some(offset) = layer.field_value("yOffset", row) else {
        return Some((middle, 0.78 * band));
    };
    let wanted = format_value(offset);
    let place = drawing
        .offset_names
        .iter()
        .position(|name| *name == wanted)?;
    let each = 0.9 * band / drawing.offset_names.len() as f64;
    let first = middle - 0.45 * band;
    Some((first + (place as f64 + 0.5) * each, 0.86 * each))
}

/// Draws horizontal bars. Bars of one band without an end or an offset of their own are stacked.
fn draw_bars(drawing: &StillDrawing<'_>, layer: &DrawingLayer<'_>) -> String {
    let is_stacked =
        layer.encoding_channel("x2").is_null() && layer.encoding_channel("yOffset").is_null();
    let mut ends: Vec<(String, f64)> = Vec::new();
    let mut svg = String::new();
    for row in &layer.rows {
        let (Some(x), Some((middle, high))) =
            (layer.field_value("x", row), find_band(drawing, layer, row))
        else {
            continue;
        };
        let (mut from, mut until) = (0.0.into(), x.clone());
        if let Some(end) = layer.field_value("x2", row) {
            (from, until) = (x.clone(), end.clone());
        } else if is_stacked {
            let name = layer
                .field_value("y", row)
                .map(format_value)
                .unwrap_or_default();
            let place = ends.iter().position(|(other, _)| *other == name);
            let place = place.unwrap_or_else(|| {
                ends.push((name, 0.0));
                ends.len() - 1
            });
            from = ends[place].1.into();
            ends[place].1 += x.as_f64().unwrap_or(0.0);
            until = ends[place].1.into();
        }
        let (Some(from), Some(until)) = (drawing.x_position(&from), drawing.x_position(&until))
        else {
            continue;
        };
        let rectangle = PixelRectangle {
            x: from,
            y: middle - high / 2.0,
            width: until - from,
            height: high,
        };
        svg += &draw_filled_rectangle(rectangle, layer, row);
    }
    svg
}

/// Rectangle in pixels, with `x` and `y` of its upper left corner.
struct PixelRectangle {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

fn draw_filled_rectangle(
    rectangle: PixelRectangle,
    layer: &DrawingLayer<'_>,
    row: &Value,
) -> String {
    let colour = escape::escape_text(&choose_colour(layer, "color", row));
    let paint = match layer.mark["filled"] == false {
        true => format!("fill=\"none\" stroke-width=\"3\" stroke=\"{colour}\""),
        false => format!(
            "fill=\"{colour}\" fill-opacity=\"{}\"",
            choose_opacity(layer, row)
        ),
    };
    let PixelRectangle { x, y, height, .. } = rectangle;
    let width = rectangle.width.max(0.3);
    format!("<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" {paint}/>")
}

/// Draws a rectangle: the cell of two names, or the range between two numbers over the whole
/// height.
fn draw_rectangle(
    drawing: &StillDrawing<'_>,
    layer: &DrawingLayer<'_>,
    row: &Value,
) -> Option<String> {
    let x = drawing.x_position(layer.field_value("x", row)?)?;
    if let Some(end) = layer.field_value("x2", row) {
        let rectangle = PixelRectangle {
            x,
            y: 0.0,
            width: drawing.x_position(end)? - x,
            height: drawing.plot_height,
        };
        return Some(draw_filled_rectangle(rectangle, layer, row));
    }
    let y = drawing.y_position(layer.field_value("y", row)?)?;
    let (width, height) = (
        drawing.x.band_width() * drawing.plot_width,
        drawing.y.band_width() * drawing.plot_height,
    );
    let rectangle = PixelRectangle {
        x: x - width / 2.0,
        y: y - height / 2.0,
        width,
        height,
    };
    Some(draw_filled_rectangle(rectangle, layer, row))
}

fn draw_point(drawing: &StillDrawing<'_>, layer: &DrawingLayer<'_>, row: &Value) -> Option<String> {
    let (x, y) = (
        drawing.x_position(layer.field_value("x", row)?)?,
        drawing.y_position(layer.field_value("y", row)?)?,
    );
    let size = layer.mark["size"].as_f64().unwrap_or(30.0);
    let radius = (size / std::f64::consts::PI).sqrt();
    let by = if layer.encoding_channel("stroke").is_null() {
        "color"
    } else {
        "stroke"
    };
    Some(format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{}\" fill-opacity=\"{}\"/>",
        escape::escape_text(&choose_colour(layer, by, row)),
        choose_opacity(layer, row)
    ))
}

/// Draws a text beside a bar, or at the right end.
fn draw_text(drawing: &StillDrawing<'_>, layer: &DrawingLayer<'_>, row: &Value) -> Option<String> {
    let x = match layer.encoding_channel("x")["value"] == "width" {
        true => drawing.plot_width,
        false => drawing.x_position(layer.field_value("x", row)?)?,
    };
    let x = x + layer.mark["dx"].as_f64().unwrap_or(0.0);
    let anchor = match layer.mark["align"].as_str() {
        Some("left") => "start",
        Some("right") => "end",
        _ => "middle",
    };
    let (middle, _) = find_band(drawing, layer, row)?;
    let value = layer.field_value("text", row)?;
    let text = value
        .as_f64()
        .map_or_else(|| format_value(value), axes::format_short_number);
    let colour = match layer.own_encoding["color"].is_null() {
        true => colours::INK_COLOUR.to_owned(),
        false => choose_colour(layer, "color", row),
    };
    let words = axes::draw_text((x, middle + 4.0), anchor, &text);
    Some(format!(
        "<g fill=\"{}\">{words}</g>",
        escape::escape_text(&colour)
    ))
}

fn draw_rule(drawing: &StillDrawing<'_>, layer: &DrawingLayer<'_>, row: &Value) -> Option<String> {
    let (from, until) = (
        drawing.x_position(layer.field_value("x", row)?)?,
        drawing.x_position(layer.field_value("x2", row)?)?,
    );
    let (middle, _) = find_band(drawing, layer, row)?;
    Some(format!(
        "<path stroke=\"{}\" stroke-width=\"1.5\" d=\"M{from:.1} {middle:.1}H{until:.1}\"/>",
        colours::INK_COLOUR
    ))
}

fn draw_lines(drawing: &StillDrawing<'_>, layer: &DrawingLayer<'_>) -> String {
    let is_stepped = layer.mark["interpolate"] == "step-before";
    let mut found: Vec<(String, String)> = Vec::new();
    for row in &layer.rows {
        let place = |channel| layer.field_value(channel, row);
        let (Some(x), Some(y)) = (
            place("x").and_then(|value| drawing.x_position(value)),
            place("y").and_then(|value| drawing.y_position(value)),
        ) else {
            continue;
        };
        let series = choose_colour(layer, "color", row);
        match found.iter_mut().find(|(other, _)| *other == series) {
            Some((_, path)) if is_stepped => *path += &format!("V{y:.1}H{x:.1}"),
            Some((_, path)) => *path += &format!("L{x:.1} {y:.1}"),
            None => found.push((series, format!("M{x:.1} {y:.1}"))),
        }
    }
    let line = |(colour, path): (String, String)| {
        let width = layer.mark["strokeWidth"].as_f64().unwrap_or(2.0);
        let colour = escape::escape_text(&colour);
        format!("<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" d=\"{path}\"/>")
    };
    found.into_iter().map(line).collect()
}

fn draw_area(drawing: &StillDrawing<'_>, layer: &DrawingLayer<'_>) -> String {
    let curve = |channel: &str| -> Vec<String> {
        let place = |row: &&Value| {
            let x = drawing.x_position(layer.field_value("x", row)?)?;
            let y = drawing.y_position(layer.field_value(channel, row)?)?;
            Some(format!("{x:.1} {y:.1}"))
        };
        layer.rows.iter().filter_map(place).collect()
    };
    let (there, mut back) = (curve("y"), curve("y2"));
    back.reverse();
    let Some(first) = layer.rows.first().filter(|_| !there.is_empty()) else {
        return String::new();
    };
    format!(
        "<path fill=\"{}\" fill-opacity=\"{}\" d=\"M{}Z\"/>",
        escape::escape_text(&choose_colour(layer, "color", first)),
        choose_opacity(layer, first),
        [there, back].concat().join("L")
    )
}
