//! Charts of a block trace: its course over time, its request sizes and its miss-ratio curve.

use super::chart::{Chart, ROWS_DATASET};
use crate::trace::TraceReport;
use diskperf_blocktrace::summary::ActivityInterval;
use serde_json::{Value, json};

pub(super) fn build_charts(trace: &TraceReport) -> Vec<Chart> {
    let mut all = build_rate_charts(trace);
    all.extend(build_miss_ratio_chart(trace));
    all.extend(build_size_chart(trace));
    all
}

fn build_rate_charts(trace: &TraceReport) -> Vec<Chart> {
    let of = &trace.summary;
    if of.series.intervals.len() < 2 {
        return Vec::new();
    }
    let seconds = of.series.interval_ns as f64 / 1e9;
    let rows = |series: &str, value: &dyn Fn(&ActivityInterval) -> f64| -> Vec<Value> {
        let intervals = of.series.intervals_until(of.span_ns).iter().enumerate();
        intervals
            .map(|(number, one)| {
                json!({ "series": series, "at_s": number as f64 * seconds, "value": value(one) })
            })
            .collect()
    };
    let per_second = |count: u64| count as f64 / seconds;
    let mut requests = rows("reads", &|one| per_second(one.read_requests));
    requests.extend(rows("writes", &|one| per_second(one.write_requests)));
    let mut charts = vec![
        Chart::new(
            "trace-requests",
            "Requests per second, over time".to_owned(),
            requests,
            build_line_view("requests per second"),
        ),
        Chart::new(
            "trace-bytes",
            "Megabytes per second, over time".to_owned(),
            rows("bytes", &|one| per_second(one.bytes) / 1e6),
            build_line_view("MB/s (10^6 bytes)"),
        ),
    ];
    if of.depth.is_some() {
        let depth = Chart::new(
            "trace-depth",
            "Requests in flight, over time".to_owned(),
            rows("depth", &|one| one.depth),
            build_line_view("requests, on average"),
        );
        charts.push(depth);
    }
    charts.into_iter().map(Chart::with_full_width).collect()
}

fn build_line_view(title: &str) -> Value {
    json!({
        "height": 200,
        "encoding": {
            "x": { "field": "at_s", "type": "quantitative", "title": "seconds" },
            "y": { "field": "value", "type": "quantitative", "title": title,
                   "axis": { "labelExpr": "format(datum.value, '~s')" } },
            "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                       "scale": { "scheme": "tableau10" } },
        },
        "layer": build_line_layers(),
    })
}

fn build_line_layers() -> Value {
    json!([
        { "mark": { "type": "line", "strokeWidth": 2 } },
        { "name": ROWS_DATASET, "mark": { "type": "point", "filled": true, "size": 18, "opacity": 1,
                                  "tooltip": { "content": "data" } } },
    ])
}

fn build_miss_ratio_chart(trace: &TraceReport) -> Option<Chart> {
    let reuse = trace.summary.reuse.as_ref()?;
    let points = reuse.miss_ratios.iter();
    let rows: Vec<Value> = points
        .map(|point| {
            json!({ "series": "LRU", "mib": point.cache_bytes as f64 / 1_048_576.0,
                    "percent": 100.0 * point.share })
        })
        .collect();
    if rows.len() < 2 {
        return None;
    }
    let drawn = json!({
        "height": 260,
        "encoding": {
            "x": { "field": "mib", "type": "quantitative", "title": "cache, MiB",
                   "scale": { "type": "log" },
                   "axis": { "labelExpr": "format(datum.value, '~g')", "tickCount": 6 } },
            "y": { "field": "percent", "type": "quantitative", "title": "misses, % of block uses" },
            "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                       "scale": { "scheme": "tableau10" } },
        },
        "layer": build_line_layers(),
    });
    let caption = match reuse.sampled_share < 1.0 {
        true => "By SHARDS, from a sample of the blocks; first uses are misses.",
        false => "Of all blocks; first uses are misses.",
    };
    let title = "Miss ratio of an LRU cache, by its size".to_owned();
    Some(Chart::new("trace-misses", title, rows, drawn).with_caption(caption))
}

fn build_size_chart(trace: &TraceReport) -> Option<Chart> {
    let octaves = &trace.summary.size_octaves;
    let all: f64 = octaves.iter().map(|(_, count)| count).sum();
    let rows: Vec<Value> = octaves
        .iter()
        .filter(|(bytes, _)| *bytes > 0)
        .map(|(bytes, count)| {
            json!({ "series": "reads and writes", "kib": *bytes as f64 / 1024.0,
                    "percent": 100.0 * count / all })
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let drawn = json!({
        "height": 260,
        "encoding": {
            "x": { "field": "kib", "type": "quantitative", "title": "from so many KiB to twice as many",
                   "scale": { "type": "log" },
                   "axis": { "labelExpr": "format(datum.value, '~g')", "tickCount": 6 } },
            "y": { "field": "percent", "type": "quantitative", "title": "requests, %" },
            "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                       "scale": { "scheme": "tableau10" } },
        },
        "layer": build_line_layers(),
    });
    Some(Chart::new(
        "trace-sizes",
        "Sizes of requests".to_owned(),
        rows,
        drawn,
    ))
}
