//! Scales that convert values to positions along an axis.

use super::{DrawingLayer, axes, format_value};
use serde_json::Value;

/// Scale of an axis: names, or numbers with the values at its two ends.
#[derive(Debug)]
pub(super) enum AxisScale {
    Names(Vec<String>),
    Linear(f64, f64),
    Logarithmic(f64, f64),
}

impl AxisScale {
    /// Creates the scale of an axis from its definitions in the chart's layers and from their data.
    pub(super) fn from_layers(layers: &[DrawingLayer<'_>], channel: &str) -> Self {
        let has_names =
            |layer: &DrawingLayer<'_>| layer.encoding_channel(channel)["type"] == "nominal";
        if layers.iter().any(has_names) {
            return Self::Names(list_names(layers, channel));
        }
        let scale = axes::find_channel_definition(layers, channel, "scale");
        let is_logarithmic = scale["type"] == "log";
        let (low, high) = match (scale["domain"][0].as_f64(), scale["domain"][1].as_f64()) {
            (Some(low), Some(high)) => (low, high),
            _ => find_value_extent(layers, channel, is_logarithmic),
        };
        match is_logarithmic {
            true => Self::Logarithmic(low, high),
            false => Self::Linear(low, high),
        }
    }

    pub(super) fn has_names(&self) -> bool {
        matches!(self, Self::Names(_))
    }

    /// Extends the axis by a factor, where it begins at zero.
    pub(super) fn widen(&mut self, factor: f64) {
        if let Self::Linear(_, high) = self {
            *high *= factor;
        }
    }

    /// Returns the position of a value as a share of the axis; for a name, the middle of its band.
    pub(super) fn position(&self, value: &Value) -> Option<f64> {
        let share = match self {
            Self::Names(names) => {
                let wanted = format_value(value);
                let place = names.iter().position(|name| *name == wanted)?;
                (place as f64 + 0.5) * self.band_width()
            }
            Self::Linear(low, high) => share_between(value.as_f64()?, (*low, *high)),
            Self::Logarithmic(low, high) => {
                let value = value.as_f64().filter(|value| *value > 0.0)?;
                let ends = (libm::log10(*low), libm::log10(*high));
                share_between(libm::log10(value), ends)
            }
        };
        Some(share.clamp(0.0, 1.0))
    }

    /// Returns the share of the axis that a name occupies; 0 for numbers.
    pub(super) fn band_width(&self) -> f64 {
        match self {
            Self::Names(names) => 1.0 / names.len().max(1) as f64,
            Self::Linear(..) | Self::Logarithmic(..) => 0.0,
        }
    }

    /// Returns the positions of the axis labels with their texts.
    pub(super) fn list_ticks(&self, axis: &Value) -> Vec<(f64, String)> {
        if let Self::Names(names) = self {
            let place = |(place, name): (usize, &String)| {
                ((place as f64 + 0.5) * self.band_width(), name.clone())
            };
            return names.iter().enumerate().map(place).collect();
        }
        let values = match axis["values"].as_array() {
            Some(values) => values.iter().filter_map(Value::as_f64).collect(),
            None => self.list_round_values(),
        };
        let tick = |value: f64| {
            Some((
                self.position(&value.into())?,
                axes::format_axis_number(axis, value),
            ))
        };
        values.into_iter().filter_map(tick).collect()
    }

    fn list_round_values(&self) -> Vec<f64> {
        match self {
            Self::Names(_) => Vec::new(),
            Self::Linear(low, high) => {
                let step = round_number_above((high - low).abs() / 6.0);
                let first = (low / step).ceil() as i64;
                let last = (high / step).floor() as i64;
                (first..=last).map(|place| place as f64 * step).collect()
            }
            Self::Logarithmic(low, high) => {
                let (low, high) = (low.min(*high), low.max(*high));
                let powers = || (-12..=15).map(|power| libm::pow(10.0, f64::from(power)));
                let within = |value: &f64| (low..=high).contains(value);
                match powers().filter(within).count() {
                    0..=2 => powers()
                        .flat_map(|one| [one, 2.0 * one, 5.0 * one])
                        .filter(within)
                        .collect(),
                    _ => powers().filter(within).collect(),
                }
            }
        }
    }
}

/// Returns the relative position of a value between two ends: 0 at the first, 1 at the second.
fn share_between(value: f64, (low, high): (f64, f64)) -> f64 {
    match high - low {
        0.0 => 0.5,
        span => (value - low) / span,
    }
}

/// Returns the smallest of 1, 2, 5, 10, ... times a power of ten that is at least a number.
fn round_number_above(number: f64) -> f64 {
    if number <= 0.0 {
        return 1.0;
    }
    let power = libm::pow(10.0, libm::floor(libm::log10(number)));
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    steps
        .into_iter()
        .find(|step| *step >= number)
        .unwrap_or(10.0 * power)
}

/// Returns the minimum and the maximum of the data along an axis. A linear axis begins at zero.
fn find_value_extent(
    layers: &[DrawingLayer<'_>],
    channel: &str,
    is_logarithmic: bool,
) -> (f64, f64) {
    let second = format!("{channel}2");
    let mut values = Vec::new();
    for layer in layers {
        for row in &layer.rows {
            for channel in [channel, &second] {
                values.extend(layer.field_value(channel, row).and_then(Value::as_f64));
            }
        }
    }
    let first = if is_logarithmic { f64::MAX } else { 0.0 };
    let low = values.iter().copied().fold(first, f64::min);
    let high = values
        .iter()
        .copied()
        .fold(if is_logarithmic { 0.0 } else { low }, f64::max);
    match is_logarithmic && (values.is_empty() || low <= 0.0) {
        true => (1.0, 10.0),
        false => (low, high),
    }
}

/// Returns the names along an axis, in the order of the rows of data.
pub(super) fn list_names(layers: &[DrawingLayer<'_>], channel: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for layer in layers {
        for value in layer
            .rows
            .iter()
            .filter_map(|row| layer.field_value(channel, row))
        {
            let name = format_value(value);
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names
}
