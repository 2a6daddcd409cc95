//! Static picture of a chart, for print and for browsers that run no script. It is drawn from the
//! same specification as the chart. Only the elements of the charts here are known: layers of bars,
//! lines, points, text, rules, rectangles and areas over two axes.

mod axes;
mod colours;
mod marks;
mod scale;

use super::chart::{Chart, ROWS_DATASET};
use super::escape;
use diskperf_timeline::escape_unprintable_line;
use scale::AxisScale;
use serde_json::Value;

const CHART_WIDTH_WIDE: f64 = 900.0;
const CHART_WIDTH_NARROW: f64 = 480.0;

/// Approximate width of a label's character in pixels.
const CHARACTER_WIDTH: f64 = 6.3;

/// Margin to the right of the drawing area in pixels, for half of the last label.
const RIGHT_MARGIN: f64 = 24.0;

/// Width of the labels to the right of bars in pixels.
const LABEL_SPACE_WIDTH: f64 = 120.0;

/// Draws the static picture of a chart as an HTML element.
pub(super) fn draw_chart(chart: &Chart) -> String {
    let drawing = StillDrawing::from_spec(
        &chart.vega_spec,
        if chart.is_wide {
            CHART_WIDTH_WIDE
        } else {
            CHART_WIDTH_NARROW
        },
    );
    let (legend, top) = axes::draw_legend(&drawing);
    let layers: String = drawing
        .layers
        .iter()
        .map(|one| marks::draw_layer(&drawing, one))
        .collect();
    let below = axes::SPACE_BELOW_AXIS;
    format!(
        "<svg class=\"still\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {:.0} {:.0}\">{legend}\
         <g transform=\"translate({:.1} {top:.1})\">{}{layers}</g></svg>",
        escape::escape_text(&chart.title),
        drawing.total_width,
        top + drawing.plot_height + below,
        drawing.plot_left,
        axes::draw_axes(&drawing),
    )
}

/// Chart to be drawn as a static picture, with the scales of its axes.
struct StillDrawing<'s> {
    layers: Vec<DrawingLayer<'s>>,
    x: AxisScale,
    y: AxisScale,
    /// Names that stack the bars of one band below each other.
    offset_names: Vec<String>,
    /// Total width of the picture in pixels.
    total_width: f64,
    plot_left: f64,
    plot_width: f64,
    plot_height: f64,
}

impl<'s> StillDrawing<'s> {
    fn from_spec(spec: &'s Value, total: f64) -> Self {
        let layers = DrawingLayer::from_spec(spec);
        let (x, y) = (
            AxisScale::from_layers(&layers, "x"),
            AxisScale::from_layers(&layers, "y"),
        );
        let labels = y.list_ticks(axes::find_channel_definition(&layers, "y", "axis"));
        let longest = labels.iter().map(|(_, text)| text.chars().count()).max();
        let left = longest.unwrap_or(0) as f64 * CHARACTER_WIDTH + 34.0;
        let left = left.min(0.4 * total);
        let mut drawing = Self {
            offset_names: scale::list_names(&layers, "yOffset"),
            x,
            y,
            total_width: total,
            plot_left: left,
            plot_width: total - left - RIGHT_MARGIN,
            plot_height: spec["height"].as_f64().unwrap_or(260.0),
            layers,
        };
        let has_labels = |layer: &DrawingLayer<'_>| layer.mark_kind() == "text";
        if drawing.layers.iter().any(has_labels) {
            let width = drawing.plot_width;
            drawing
                .x
                .widen(width / (width - LABEL_SPACE_WIDTH).max(0.5 * width));
        }
        drawing
    }

    /// Returns the horizontal distance of a value from the y axis in pixels.
    fn x_position(&self, value: &Value) -> Option<f64> {
        Some(self.x.position(value)? * self.plot_width)
    }

    /// Returns the vertical distance of a value from the top in pixels: numbers run upwards, names
    /// downwards.
    fn y_position(&self, value: &Value) -> Option<f64> {
        let share = self.y.position(value)?;
        let from_top = if self.y.has_names() {
            share
        } else {
            1.0 - share
        };
        Some(from_top * self.plot_height)
    }
}

/// Layer of a chart's specification: a kind of mark with its rows of data.
struct DrawingLayer<'s> {
    mark: &'s Value,
    own_encoding: &'s Value,
    shared_encoding: &'s Value,
    rows: Vec<&'s Value>,
    is_rows: bool,
}

impl<'s> DrawingLayer<'s> {
    fn from_spec(spec: &'s Value) -> Vec<Self> {
        let layer = |layer: &'s Value| {
            let own_data = layer["data"]["values"].as_array();
            let rows = own_data.or_else(|| spec["data"]["values"].as_array());
            let filter = layer["transform"][0]["filter"].as_str();
            let mut rows: Vec<&Value> = rows.into_iter().flatten().collect();
            rows.retain(|row| filter.is_none_or(|test| matches_test(test, row)));
            Self {
                mark: &layer["mark"],
                own_encoding: &layer["encoding"],
                shared_encoding: &spec["encoding"],
                rows,
                is_rows: layer["name"] == ROWS_DATASET,
            }
        };
        let layers = spec["layer"].as_array();
        layers.into_iter().flatten().map(layer).collect()
    }

    fn mark_kind(&self) -> &'s str {
        self.mark["type"].as_str().unwrap_or_default()
    }

    /// Returns the definition of a visual property (Vega-Lite channel) in a chart's layer; null
    /// where there is none.
    fn encoding_channel(&self, name: &str) -> &'s Value {
        match &self.own_encoding[name] {
            Value::Null => &self.shared_encoding[name],
            own => own,
        }
    }

    /// Returns the value in a row of data that determines a visual property.
    fn field_value<'r>(&self, name: &str, row: &'r Value) -> Option<&'r Value> {
        row.get(self.encoding_channel(name)["field"].as_str()?)
    }
}

fn format_value(value: &Value) -> String {
    match value.as_str() {
        Some(text) => escape_unprintable_line(text).into_owned(),
        None => value.to_string(),
    }
}

/// Tests whether a filter expression of a chart holds for a row of data. It consists of comparisons
/// of a field with a word or a number, one of which must hold.
fn matches_test(test: &str, row: &Value) -> bool {
    let one = |test: &str| {
        if let Some(field) = test.strip_prefix("isValid(datum.") {
            return row
                .get(field.trim_end_matches(')'))
                .is_some_and(Value::is_number);
        }
        let Some((field, rest)) = test
            .strip_prefix("datum.")
            .and_then(|rest| rest.split_once(' '))
        else {
            return false;
        };
        match rest.split_once(' ') {
            Some(("===", word)) => row[field] == *word.trim_matches('\''),
            Some((">", number)) => {
                let number: Option<f64> = number.parse().ok();
                row[field].as_f64() > number
            }
            _ => false,
        }
    };
    test.split(" || ").any(one)
}

#[cfg(test)]
mod tests;
