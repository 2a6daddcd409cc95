//! Figures of a drive beside the expected ones, as a table, JSON and CSV.

use super::csv::{CsvField, format_number, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::expected::{ExpectedFigures, ExpectedValue};

/// Width of the column with the source, which is a sentence.
const SOURCE_COLUMNS: usize = 60;

pub(super) fn build_blocks(expected_figures: &ExpectedFigures) -> Vec<DocumentBlock> {
    let values = &expected_figures.values;
    let cells = |of: &dyn Fn(&ExpectedValue) -> String| values.iter().map(of).collect();
    let missed = values
        .iter()
        .filter(|value| !value.is_within_tolerance)
        .count();
    let verdict = match missed {
        0 => format!("all {} within their tolerances", values.len()),
        _ => format!("{missed} of {} outside their tolerances", values.len()),
    };
    vec![
        DocumentBlock::Heading(format!(
            "{}: what the modelled drive does, beside what its data sheet and theory lead one to expect",
            expected_figures.drive
        )),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("figure", cells(&describe_value)),
            groups: vec![
                ColumnGroup::new(
                    "",
                    vec![
                        Column::right_aligned("depth", cells(&|of| of.queue_depth.to_string())),
                        Column::right_aligned(
                            "expected",
                            cells(&|of| format_figure(of.expected_value)),
                        ),
                        Column::right_aligned(
                            "modelled",
                            cells(&|of| format_figure(of.modelled_value)),
                        ),
                        Column::left_aligned("unit", cells(&|of| of.unit.clone())),
                        Column::right_aligned(
                            "off by",
                            cells(&|of| format!("{:+.1} %", 100.0 * of.deviation_share)),
                        ),
                        Column::right_aligned(
                            "may be",
                            cells(&|of| format!("{:.0} %", 100.0 * of.tolerance_share)),
                        ),
                    ],
                ),
                ColumnGroup::new(
                    "",
                    vec![Column::left_aligned_folded(
                        "the expected value is from",
                        cells(&|of| of.source.clone()),
                        SOURCE_COLUMNS,
                    )],
                ),
            ],
        }),
        DocumentBlock::Text(verdict),
    ]
}

/// Describes a figure of a drive with the drive's settings for it.
fn describe_value(expected_value: &ExpectedValue) -> String {
    match expected_value.settings.is_empty() {
        true => expected_value.description.clone(),
        false => format!(
            "{}; {}",
            expected_value.description,
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

pub(super) fn render_json(expected_figures: &ExpectedFigures) -> String {
    render_pretty(expected_figures)
}

pub(super) fn render_csv(expected_figures: &ExpectedFigures) -> String {
    let record = |of: &ExpectedValue| -> Vec<CsvField> {
        vec![
            ("drive", expected_figures.drive.clone()),
            ("figure", of.figure.clone()),
            ("depth", of.queue_depth.to_string()),
            ("settings", of.settings.join(" ")),
            ("unit", of.unit.clone()),
            ("expected", format_number(of.expected_value)),
            ("found", format_number(of.modelled_value)),
            ("off_share", format_number(of.deviation_share)),
            ("tolerance_share", format_number(of.tolerance_share)),
            ("met", of.is_within_tolerance.to_string()),
            ("source", of.source.clone()),
        ]
    };
    let records: Vec<Vec<CsvField>> = expected_figures.values.iter().map(record).collect();
    format_records(&records)
}
