//! Figures of a drive beside the expected ones, as a table, JSON and CSV.

use super::csv::{Field, format_records, number};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::expected::{ExpectedFigures, ExpectedValue};

/// Width of the column with the source, which is a sentence.
const SOURCE_COLUMNS: usize = 60;

pub(super) fn blocks(expected_figures: &ExpectedFigures) -> Vec<Block> {
    let values = &expected_figures.values;
    let cells = |of: &dyn Fn(&ExpectedValue) -> String| values.iter().map(of).collect();
    let missed = values.iter().filter(|value| !value.met).count();
    let verdict = match missed {
        0 => format!("all {} within their tolerances", values.len()),
        _ => format!("{missed} of {} outside their tolerances", values.len()),
    };
    vec![
        Block::Heading(format!(
            "{}: what the modelled drive does, beside what its data sheet and theory lead one to expect",
            expected_figures.drive
        )),
        Block::Grid(Grid {
            key: Column::words("figure", cells(&describe_value)),
            groups: vec![
                Group::of(
                    "",
                    vec![
                        Column::figures("depth", cells(&|of| of.depth.to_string())),
                        Column::figures("expected", cells(&|of| format_figure(of.expected))),
                        Column::figures("modelled", cells(&|of| format_figure(of.found))),
                        Column::words("unit", cells(&|of| of.unit.clone())),
                        Column::figures(
                            "off by",
                            cells(&|of| format!("{:+.1} %", 100.0 * of.off_share)),
                        ),
                        Column::figures(
                            "may be",
                            cells(&|of| format!("{:.0} %", 100.0 * of.tolerance_share)),
                        ),
                    ],
                ),
                Group::of(
                    "",
                    vec![Column::folded(
                        "the expected value is from",
                        cells(&|of| of.source.clone()),
                        SOURCE_COLUMNS,
                    )],
                ),
            ],
        }),
        Block::Text(verdict),
    ]
}

/// Describes a figure of a drive with the drive's settings for it.
fn describe_value(expected_value: &ExpectedValue) -> String {
    match expected_value.settings.is_empty() {
        true => expected_value.words.clone(),
        false => format!(
            "{}; {}",
            expected_value.words,
            expected_value.settings.join(" ")
        ),
    }
}

/// Formats a value: three decimals for milliseconds, none for thousands.
fn format_figure(value: f64) -> String {
    let places = match value {
        value if value < 100.0 => 3,
        value if value < 1000.0 => 1,
        _ => 0,
    };
    format!("{value:.places$}")
}

pub(super) fn json(expected_figures: &ExpectedFigures) -> String {
    pretty(expected_figures)
}

/// Formats the figures as CSV, one line for each.
pub(super) fn csv(expected_figures: &ExpectedFigures) -> String {
    let record = |of: &ExpectedValue| -> Vec<Field> {
        vec![
            ("drive", expected_figures.drive.clone()),
            ("figure", of.what.clone()),
            ("depth", of.depth.to_string()),
            ("settings", of.settings.join(" ")),
            ("unit", of.unit.clone()),
            ("expected", number(of.expected)),
            ("found", number(of.found)),
            ("off_share", number(of.off_share)),
            ("tolerance_share", number(of.tolerance_share)),
            ("met", of.met.to_string()),
            ("source", of.source.clone()),
        ]
    };
    let records: Vec<Vec<Field>> = expected_figures.values.iter().map(record).collect();
    format_records(&records)
}
