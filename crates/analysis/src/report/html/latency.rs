//! Chart of call latencies: percentiles on an axis that gives the slowest one in ten thousand as
//! much room as the others.

use super::chart::{Chart, ROWS_DATASET, slugify};
use super::log_axis;
use crate::replay;
use crate::report::view::RunView;
use diskperf_timeline::{Histogram, ProgramResult, Repetition, WorkerMeasure};
use serde_json::{Value, json};

/// Number of points of the curve for each factor of ten in the share of slower calls, from a half
/// to one in ten thousand.
const STEPS_PER_NINE: i32 = 8;

/// Function that returns the latencies of one kind of call.
type LatencyHistogram = fn(&WorkerMeasure) -> &Histogram;

/// Builds one curve for each program and kind of call; `None` where no call was timed.
pub(super) fn build_chart(view: &RunView<'_>) -> Option<Chart> {
    let mut rows = Vec::new();
    for row in &view.rows {
        let kinds: [(&str, LatencyHistogram); 2] = [
            ("read", |worker| &worker.read_latency),
            ("write", |worker| &worker.write_latency),
        ];
        for (kind, of) in kinds {
            let merged = merge_histograms(row.result, of);
            let series = format!("{}, {kind}", super::format_chart_title(view, row));
            rows.extend(build_histogram_rows(&series, &merged));
        }
        for (kind, merged) in list_response_histograms(row.result) {
            let series = format!("{}, {kind}", super::format_chart_title(view, row));
            rows.extend(build_histogram_rows(&series, &merged));
        }
    }
    if let (Some((_, held)), Some(row)) = (replay::replay_of_run(view.run), view.rows.first()) {
        for (kind, response) in replay::list_responses(held) {
            let series = format!(
                "{}, {kind} in the trace",
                super::format_chart_title(view, row)
            );
            rows.extend(build_histogram_rows(&series, response));
        }
    }
    if rows.is_empty() {
        return None;
    }
    let drawn = json!({
        "height": 280,
        "encoding": {
            "x": {
                "field": "slower_share", "type": "quantitative", "title": "share of calls at most this long",
                "scale": { "type": "log", "domain": [1, 0.0001], "nice": false },
                "axis": { "values": [1, 0.5, 0.1, 0.01, 0.001, 0.0001],
                          "labelExpr": "format(100 - 100 * datum.value, '~r') + '%'" },
            },
            "y": log_axis::build_millisecond_axis(&rows),
            "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                       "scale": { "scheme": "tableau10" } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 2, "interpolate": "step-before" } },
            { "name": ROWS_DATASET, "mark": { "type": "point", "filled": true, "size": 18, "opacity": 1,
                                      "tooltip": { "content": "data" } } },
        ],
    });
    let name = format!("latency-{}", slugify(&view.run.run_id));
    let title = "Latency of a call".to_owned();
    Some(Chart::new(&name, title, rows, drawn).with_caption(
        "Over all kept repetitions. The slowest calls are at the right: one in a hundred at 99 %, one in ten thousand at 99.99 %.",
    ))
}

fn merge_histograms(result: &ProgramResult, latency_histogram: LatencyHistogram) -> Histogram {
    let mut merged = Histogram::new();
    for worker in result.kept_repetitions().flat_map(|one| &one.workers) {
        merged.merge(latency_histogram(worker));
    }
    merged
}

/// Returns the response times of each operation that occurred, for a program with several requests
/// in flight.
fn list_response_histograms(result: &ProgramResult) -> Vec<(&'static str, Histogram)> {
    let loads = || {
        result
            .kept_repetitions()
            .flat_map(Repetition::load_measures)
    };
    let Some(first) = loads().next() else {
        return Vec::new();
    };
    let names = first.named_operations().map(|(name, _)| name);
    let merged = |(number, name): (usize, &'static str)| {
        let mut merged = Histogram::new();
        for load in loads() {
            merged.merge(&load.named_operations()[number].1.response_times);
        }
        (name, merged)
    };
    let all = names.into_iter().enumerate().map(merged);
    all.filter(|(_, merged)| merged.latency_count() > 0)
        .collect()
}

/// Returns the data of a latency curve: the percentiles that the number of calls supports.
fn build_histogram_rows(series: &str, histogram: &Histogram) -> Vec<Value> {
    let shares = (0..=4 * STEPS_PER_NINE)
        .map(|step| libm::pow(10.0, -f64::from(step) / f64::from(STEPS_PER_NINE)));
    shares
        .map(|share| (share, 100.0 - 100.0 * share))
        .filter(|(_, percentile)| histogram.can_estimate(*percentile))
        .map(|(share, percentile)| {
            json!({
                "series": series,
                "percentile": percentile,
                "slower_share": share,
                "ms": histogram.percentile(percentile).0.max(1) as f64 / 1e6,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::Nanoseconds;

    #[test]
    fn a_curve_ends_where_the_calls_do() {
        let few: Histogram = (1..=100).map(Nanoseconds).collect();
        let curve = build_histogram_rows("few", &few);
        let last = curve.last().unwrap();
        assert!((last["percentile"].as_f64().unwrap() - 99.0).abs() < 1e-9);
        assert_eq!(last["ms"], 99.0 / 1e6);
        assert_eq!(curve.len(), 1 + 2 * STEPS_PER_NINE as usize);
    }

    #[test]
    fn ten_thousand_calls_reach_the_end_of_the_axis() {
        let many: Histogram = (1..=10_000).map(Nanoseconds).collect();
        let last = build_histogram_rows("many", &many).pop().unwrap();
        assert!((last["percentile"].as_f64().unwrap() - 99.99).abs() < 1e-9);
        assert!(super::build_histogram_rows("none", &Histogram::new()).is_empty());
    }
}
