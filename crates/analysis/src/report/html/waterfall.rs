//! The ledger as a waterfall: where a program's elapsed time went.

use super::chart::{Chart, ROWS, slug};
use super::family::{Family, words};
use crate::report::view::{Row, View};
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Ledger, Nanoseconds, Stage, WorkerMeasure};
use serde_json::{Value, json};

/// A waterfall for each program that has a ledger.
pub(super) fn charts(view: &View<'_>) -> Vec<Chart> {
    let rows = view.rows.iter().enumerate();
    rows.filter_map(|(number, row)| chart(view, number, row))
        .collect()
}

/// The ledgers of the last repetition that counts, one for each worker: a
/// modelled one is like any other.
fn ledgers<'r>(row: &'r Row<'_>) -> Vec<&'r Ledger> {
    let workers = row.result.kept().last().map(|one| &one.workers);
    let workers = workers.into_iter().flatten();
    workers
        .map(|worker: &WorkerMeasure| &worker.ledger)
        .filter(|ledger| !ledger.is_empty())
        .collect()
}

fn chart(view: &View<'_>, number: usize, row: &Row<'_>) -> Option<Chart> {
    let ledgers = ledgers(row);
    if ledgers.is_empty() {
        return None;
    }
    let total: u64 = ledgers.iter().map(|ledger| ledger.total().0).sum();
    let mut rows = Vec::new();
    let mut until = 0;
    for stage in Stage::ALL {
        let ns: u64 = ledgers.iter().map(|ledger| ledger.stage(stage).0).sum();
        if ns > 0 {
            rows.push(step(&words(stage), Family::of(stage), (until, until + ns), total));
            until += ns;
        }
    }
    rows.push(step("elapsed", Family::Other, (0, total), total));
    let of = match ledgers.len() {
        1 => "one repetition".to_owned(),
        workers => format!("one repetition, the sum of {workers} workers"),
    };
    let title = super::titled(view, row);
    let name = format!("ledger-{}-{number}", slug(&view.run.id));
    Some(
        Chart::new(&name, title, rows, waterfall()).caption(&format!(
            "{} of {of}; the stages add up to it to the nanosecond.",
            format_nanoseconds(Nanoseconds(total))
        )),
    )
}

fn step(stage: &str, family: Family, (from, until): (u64, u64), total: u64) -> Value {
    let ns = until - from;
    let percent = 100.0 * ns as f64 / total.max(1) as f64;
    json!({
        "stage": stage,
        "part": family.words(),
        "from_ms": from as f64 / 1e6,
        "until_ms": until as f64 / 1e6,
        "ms": ns as f64 / 1e6,
        "percent": percent,
        "label": format!("{}  {percent:.1}%", format_nanoseconds(Nanoseconds(ns))),
    })
}

fn waterfall() -> Value {
    let domain: Vec<&str> = Family::ALL.map(Family::words).to_vec();
    let range: Vec<&str> = Family::ALL.map(Family::colour).to_vec();
    json!({
        "height": { "step": 17 },
        "encoding": {
            "y": { "field": "stage", "type": "nominal", "sort": null, "title": null,
                   "axis": { "ticks": false, "domain": false, "labelPadding": 6 } },
        },
        "layer": [
            {
                "name": ROWS,
                "mark": { "type": "bar", "height": { "band": 0.78 }, "minBandSize": 1,
                          "tooltip": { "content": "data" } },
                "encoding": {
                    "x": { "field": "from_ms", "type": "quantitative", "title": "ms",
                           "axis": { "tickCount": 5 } },
                    "x2": { "field": "until_ms" },
                    "color": { "field": "part", "type": "nominal",
                               "scale": { "domain": domain, "range": range }, "legend": null },
                },
            },
            {
                "transform": [{ "filter": "datum.until_ms < 0.66 * datum.all_ms" }],
                "mark": { "type": "text", "align": "left", "dx": 4 },
                "encoding": {
                    "x": { "field": "until_ms", "type": "quantitative" },
                    "text": { "field": "label" },
                },
            },
            {
                "transform": [{ "filter": "datum.until_ms >= 0.66 * datum.all_ms && datum.from_ms > 0.34 * datum.all_ms" }],
                "mark": { "type": "text", "align": "right", "dx": -4 },
                "encoding": {
                    "x": { "field": "from_ms", "type": "quantitative" },
                    "text": { "field": "label" },
                },
            },
            {
                "transform": [{ "filter": "datum.until_ms >= 0.66 * datum.all_ms && datum.from_ms <= 0.34 * datum.all_ms" }],
                "mark": { "type": "text", "align": "left", "dx": 6, "fill": "white" },
                "encoding": {
                    "x": { "field": "from_ms", "type": "quantitative" },
                    "text": { "field": "label" },
                },
            },
        ],
        "transform": [{ "joinaggregate": [{ "op": "max", "field": "until_ms", "as": "all_ms" }] }],
    })
}
