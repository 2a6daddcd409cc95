//! Series of a program's figures over time, as a strip, a table and CSV.

use super::csv::{CsvField, format_number, format_optional, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::view::{ResultRow, RunView};
use crate::statistics::shape;
use crate::summary::load::{LoadSummary, SeriesFigures, build_rate_series};

/// Maximum number of lines in a table of a series. Intervals of a longer series are merged.
const SERIES_ROWS_MAX: usize = 120;

/// Draws the rate of each program as a strip of bars, its intervals from left to right. Intervals
/// of a long series are merged.
pub(super) fn build_strips(view: &RunView) -> Vec<String> {
    let strip = |(row, load): (&ResultRow, &LoadSummary)| {
        let rates: Vec<f64> = load.series.iter().map(|one| one.iops).collect();
        format!("{} {}", shape::render_strip(&rates), row.title)
    };
    let several = list_loads(view).filter(|(_, load)| load.series.len() > 1);
    several.map(strip).collect()
}

fn list_loads<'v>(view: &'v RunView) -> impl Iterator<Item = (&'v ResultRow<'v>, &'v LoadSummary)> {
    let load = |row: &'v ResultRow<'v>| Some((row, row.summary.load.as_ref()?));
    view.rows.iter().filter_map(load)
}

/// Formats the series of each program as a strip of bars and a table.
pub(super) fn build_blocks(views: &[RunView]) -> Vec<DocumentBlock> {
    let mut blocks = Vec::new();
    for view in views {
        for (row, load) in list_loads(view) {
            let name = view.format_row_title(row, views.len());
            let repetition = row.result.repetitions.get(load.series_repetition);
            let drawn = repetition.map(|one| build_rate_series(one, SERIES_ROWS_MAX));
            let (interval_s, series) = match &drawn {
                Some(drawn) => (drawn.interval_s, &drawn.series),
                None => (load.interval_s, &load.series),
            };
            blocks.push(DocumentBlock::Section(format!(
                "{name}: every {} of repetition {}",
                figures::format_us(interval_s * 1e6),
                load.series_repetition + 1
            )));
            blocks.push(DocumentBlock::Grid(build_grid(series)));
            if interval_s > load.interval_s {
                blocks.push(DocumentBlock::Text(format!(
                    "every {}: --format csv",
                    figures::format_us(load.interval_s * 1e6)
                )));
            }
        }
    }
    if blocks.is_empty() {
        blocks.push(DocumentBlock::Text(
            "No program of this run recorded figures over time; programs with several requests in flight record them."
                .to_owned(),
        ));
    }
    blocks
}

fn build_grid(series: &[SeriesFigures]) -> Grid {
    let text = |of: &dyn Fn(&SeriesFigures) -> String| series.iter().map(of).collect();
    let most = series.iter().map(|one| one.iops).fold(0.0, f64::max);
    let bar = |one: &SeriesFigures| {
        let length = if most > 0.0 { one.iops / most } else { 0.0 };
        "█".repeat((length * 20.0).round() as usize)
    };
    let told = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), figures::format_us);
    Grid {
        key_column: Column::right_aligned(
            "at (s)",
            text(&|one| figures::format_by_magnitude(one.start_s)),
        ),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                Column::right_aligned("IOPS", text(&|one| figures::format_iops(one.iops))),
                Column::right_aligned("MB/s", text(&|one| figures::format_mb_per_s(one.mb_per_s))),
                Column::right_aligned("p99", text(&|one| told(one.p99_us))),
                Column::left_aligned("", text(&bar)),
            ],
        )],
    }
}

pub(super) fn render_csv(views: &[RunView]) -> String {
    let mut records: Vec<Vec<CsvField>> = Vec::new();
    for view in views {
        for (row, load) in list_loads(view) {
            records.extend(load.series.iter().map(|one| {
                vec![
                    ("run", view.run.run_id.clone()),
                    ("program", row.result.result_key()),
                    ("title", row.title.clone()),
                    ("filesystem", row.result.filesystem_type.clone()),
                    ("repetition", load.series_repetition.to_string()),
                    ("at_s", format_number(one.start_s)),
                    ("iops", format_number(one.iops)),
                    ("mb_per_s", format_number(one.mb_per_s)),
                    ("p99_us", format_optional(one.p99_us)),
                ]
            }));
        }
    }
    format_records(&records)
}
