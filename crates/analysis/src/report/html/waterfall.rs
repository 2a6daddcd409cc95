//! Waterfall chart of the ledger, which shows the parts of a program's elapsed time.

use super::chart::{Chart, ROWS_DATASET, label_limit_expression, slugify};
use super::family::StageFamily;
use crate::explanation::words;
use crate::report::view::{ResultRow, RunView};
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Ledger, Nanoseconds, Stage, WorkerMeasure};
use serde_json::{Value, json};

/// Maximum number of waterfalls that a reader can take in.
const STAGE_COUNT_MAX: usize = 8;

/// Builds a waterfall for each program with a ledger. Too many of them become one chart of shares.
pub(super) fn build_charts(view: &RunView<'_>) -> Vec<Chart> {
    let with_ledger = view.rows.iter().filter(|row| !list_ledgers(row).is_empty());
    if with_ledger.count() > STAGE_COUNT_MAX {
        return build_share_chart(view).into_iter().collect();
    }
    let rows = view.rows.iter().enumerate();
    rows.filter_map(|(number, row)| build_chart(view, number, row))
        .collect()
}

/// Returns the ledgers of the last repetition that counts, one for each worker. In a model one
/// repetition is like any other.
fn list_ledgers<'r>(row: &'r ResultRow<'_>) -> Vec<&'r Ledger> {
    let workers = row.result.kept_repetitions().last().map(|one| &one.workers);
    let workers = workers.into_iter().flatten();
    workers
        .map(|worker: &WorkerMeasure| &worker.ledger)
        .filter(|ledger| !ledger.is_empty())
        .collect()
}

fn build_chart(view: &RunView<'_>, number: usize, row: &ResultRow<'_>) -> Option<Chart> {
    let ledgers = list_ledgers(row);
    if ledgers.is_empty() {
        return None;
    }
    let total: u64 = ledgers.iter().map(|ledger| ledger.total_duration().0).sum();
    let mut rows = Vec::new();
    let mut until = 0;
    for stage in Stage::ALL {
        let ns: u64 = ledgers
            .iter()
            .map(|ledger| ledger.stage_duration(stage).0)
            .sum();
        if ns > 0 {
            rows.push(build_step_row(
                &words::stage_label(stage),
                StageFamily::from_stage(stage),
                (until, until + ns),
                total,
            ));
            until += ns;
        }
    }
    rows.push(build_step_row(
        "elapsed",
        StageFamily::Other,
        (0, total),
        total,
    ));
    let of = match ledgers.len() {
        1 => "one repetition".to_owned(),
        workers => format!("one repetition, the sum of {workers} workers"),
    };
    let title = super::format_chart_title(view, row);
    let name = format!("ledger-{}-{number}", slugify(&view.run.run_id));
    let view_of = build_waterfall_view(total, rows.len());
    Some(
        Chart::new(&name, title, rows, view_of).with_caption(&format!(
            "{} of {of}; the stages add up to it to the nanosecond.",
            format_nanoseconds(Nanoseconds(total))
        )),
    )
}

#[derive(Clone, Copy)]
enum TimeUnit {
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    /// Returns the unit that keeps the numbers short.
    fn for_total(total: u64) -> Self {
        match total {
            0..2_000_000_000 => Self::Milliseconds,
            _ => Self::Seconds,
        }
    }

    fn ns_per_unit(self) -> f64 {
        match self {
            Self::Milliseconds => 1e6,
            Self::Seconds => 1e9,
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Milliseconds => "milliseconds",
            Self::Seconds => "seconds",
        }
    }
}

fn build_step_row(
    stage: &str,
    family: StageFamily,
    (from, until): (u64, u64),
    total: u64,
) -> Value {
    let unit = TimeUnit::for_total(total);
    let ns = until - from;
    let percent = 100.0 * ns as f64 / total.max(1) as f64;
    json!({
        "stage": stage,
        "part": family.label(),
        "from": from as f64 / unit.ns_per_unit(),
        "until": until as f64 / unit.ns_per_unit(),
        "percent": percent,
        "label": format!("{} · {percent:.1}%", format_nanoseconds(Nanoseconds(ns))),
    })
}

fn build_waterfall_view(total: u64, steps: usize) -> Value {
    let unit = TimeUnit::for_total(total);
    // The words stand at the right, in a column of so many pixels.
    let end = total as f64 / unit.ns_per_unit();
    let room = format!("{end} * width / max(width - 105, 40)");
    let labels = format!("datum.value <= {end} ? format(datum.value, ',~f') : ''");
    let domain: Vec<&str> = StageFamily::ALL.map(StageFamily::label).to_vec();
    let range: Vec<&str> = StageFamily::ALL.map(StageFamily::colour).to_vec();
    json!({
        "height": 17 * steps,
        "encoding": {
            "y": { "field": "stage", "type": "nominal", "sort": null, "title": null,
                   "axis": { "ticks": false, "domain": false, "labelPadding": 6 } },
        },
        "layer": [
            {
                "name": ROWS_DATASET,
                "mark": { "type": "bar", "height": { "band": 0.78 }, "tooltip": { "content": "data" } },
                "encoding": {
                    "x": { "field": "from", "type": "quantitative", "title": unit.label(),
                           "axis": { "tickCount": { "expr": "max(2, width / 90)" }, "labelExpr": labels },
                           "scale": { "nice": false, "domainMax": { "expr": room } } },
                    "x2": { "field": "until" },
                    "color": { "field": "part", "type": "nominal",
                               "scale": { "domain": domain, "range": range }, "legend": null },
                },
            },
            {
                "mark": { "type": "text", "align": "right" },
                "encoding": {
                    "x": { "value": "width" },
                    "text": { "field": "label" },
                },
            },
        ],
    })
}

/// Builds a chart of many programs, with one bar of shares for each.
fn build_share_chart(view: &RunView<'_>) -> Option<Chart> {
    let domain: Vec<&str> = StageFamily::ALL.map(StageFamily::label).to_vec();
    let range: Vec<&str> = StageFamily::ALL.map(StageFamily::colour).to_vec();
    let mut rows = Vec::new();
    let mut programs = 0;
    for row in &view.rows {
        let ledgers = list_ledgers(row);
        let total: u64 = ledgers.iter().map(|ledger| ledger.total_duration().0).sum();
        programs += usize::from(total > 0);
        for (order, family) in StageFamily::ALL.into_iter().enumerate() {
            let entries = ledgers.iter().flat_map(|ledger| ledger.entries());
            let ns: u64 = entries
                .filter(|entry| StageFamily::from_stage(entry.stage) == family)
                .map(|entry| entry.duration.0)
                .sum();
            if ns > 0 {
                rows.push(json!({
                    "program": super::format_chart_title(view, row),
                    "part": family.label(),
                    "order": order,
                    "percent": 100.0 * ns as f64 / total as f64,
                    "took": format_nanoseconds(Nanoseconds(ns)),
                }));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let drawn = json!({
        "height": 20 * programs,
        "layer": [{
            "name": ROWS_DATASET,
            "mark": { "type": "bar", "tooltip": { "content": "data" } },
            "encoding": {
                "y": { "field": "program", "type": "nominal", "sort": null, "title": null,
                       "axis": { "ticks": false, "domain": false, "labelPadding": 6, "labelLimit": label_limit_expression() } },
                "x": { "field": "percent", "type": "quantitative", "title": "percent of the elapsed time",
                       "scale": { "domain": [0, 100], "nice": false } },
                "color": { "field": "part", "type": "nominal", "title": null,
                           "scale": { "domain": domain, "range": range } },
                "order": { "field": "order", "type": "quantitative" },
            },
        }],
    });
    let name = format!("ledger-{}", slugify(&view.run.run_id));
    let title = "Shares of the elapsed time".to_owned();
    let chart = Chart::new(&name, title, rows, drawn);
    Some(
        chart
            .with_caption("One repetition of each program.")
            .with_full_width(),
    )
}
