//! Series of a program's figures over time, as a strip, a table and CSV.

use super::csv::{Field, format_records, number, optional};
use super::document::{Block, Column, Grid, Group};
use super::figures;
use super::view::{Row, View};
use crate::statistics::shape;
use crate::summary::load::{LoadSummary, SeriesFigures, course};

/// Maximum number of lines in a table of a series. Intervals of a longer series are merged.
const SERIES_ROWS_MAX: usize = 120;

/// Draws the rate of each program as a strip of bars, its intervals from left to right. Intervals
/// of a long series are merged.
pub(super) fn strips(view: &View) -> Vec<String> {
    let strip = |(row, load): (&Row, &LoadSummary)| {
        let rates: Vec<f64> = load.series.iter().map(|one| one.iops).collect();
        format!("{} {}", shape::strip(&rates), row.title)
    };
    let several = loads(view).filter(|(_, load)| load.series.len() > 1);
    several.map(strip).collect()
}

fn loads<'v>(view: &'v View) -> impl Iterator<Item = (&'v Row<'v>, &'v LoadSummary)> {
    let load = |row: &'v Row<'v>| Some((row, row.summary.load.as_ref()?));
    view.rows.iter().filter_map(load)
}

/// Formats the series of each program as a strip of bars and a table.
pub(super) fn blocks(views: &[View]) -> Vec<Block> {
    let mut blocks = Vec::new();
    for view in views {
        for (row, load) in loads(view) {
            let name = view.title_of(row, views.len());
            let repetition = row.result.repetitions.get(load.series_of);
            let drawn = repetition.map(|one| course(one, SERIES_ROWS_MAX));
            let (interval_s, series) = match &drawn {
                Some(drawn) => (drawn.interval_s, &drawn.series),
                None => (load.interval_s, &load.series),
            };
            blocks.push(Block::Section(format!(
                "{name}: every {} of repetition {}",
                figures::time_us(interval_s * 1e6),
                load.series_of + 1
            )));
            blocks.push(Block::Grid(grid(series)));
            if interval_s > load.interval_s {
                blocks.push(Block::Text(format!(
                    "every {}: --format csv",
                    figures::time_us(load.interval_s * 1e6)
                )));
            }
        }
    }
    if blocks.is_empty() {
        blocks.push(Block::Text(
            "No program of this run recorded figures over time; programs with several requests in flight record them."
                .to_owned(),
        ));
    }
    blocks
}

fn grid(series: &[SeriesFigures]) -> Grid {
    let text = |of: &dyn Fn(&SeriesFigures) -> String| series.iter().map(of).collect();
    let most = series.iter().map(|one| one.iops).fold(0.0, f64::max);
    let bar = |one: &SeriesFigures| {
        let length = if most > 0.0 { one.iops / most } else { 0.0 };
        "█".repeat((length * 20.0).round() as usize)
    };
    let told = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), figures::time_us);
    Grid {
        key: Column::figures("at (s)", text(&|one| figures::decimals(one.at_s))),
        groups: vec![Group::new(
            "",
            vec![
                Column::figures("IOPS", text(&|one| figures::iops(one.iops))),
                Column::figures("MB/s", text(&|one| figures::megabytes(one.mb_per_s))),
                Column::figures("p99", text(&|one| told(one.p99_us))),
                Column::words("", text(&bar)),
            ],
        )],
    }
}

/// Formats the series as CSV, one record for each interval.
pub(super) fn csv(views: &[View]) -> String {
    let mut records: Vec<Vec<Field>> = Vec::new();
    for view in views {
        for (row, load) in loads(view) {
            records.extend(load.series.iter().map(|one| {
                vec![
                    ("run", view.run.run_id.clone()),
                    ("program", row.result.result_key()),
                    ("title", row.title.clone()),
                    ("filesystem", row.result.filesystem_type.clone()),
                    ("repetition", load.series_of.to_string()),
                    ("at_s", number(one.at_s)),
                    ("iops", number(one.iops)),
                    ("mb_per_s", number(one.mb_per_s)),
                    ("p99_us", optional(one.p99_us)),
                ]
            }));
        }
    }
    format_records(&records)
}
