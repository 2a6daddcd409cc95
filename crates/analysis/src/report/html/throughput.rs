//! Bar charts of throughput with intervals: published beside modelled beside measured figures.

use super::ReportedRun;
use super::chart::{Chart, ROWS_DATASET, label_limit_expression};
use crate::report::figures;
use crate::report::pivot;
use crate::report::view::{ResultRow, RunView};
use crate::statistics::IntervalMethod;
use diskperf_timeline::MeasuredWorld;
use serde_json::{Value, json};

/// Maximum ratio of speeds within one chart, whose bars share a scale. Runs further apart get
/// charts of their own, since the smaller bars would not be visible.
const SPEED_RATIO_MAX: f64 = 25.0;

/// Maximum length of an interval's line, as a multiple of the longest bar.
const INTERVAL_LINE_RATIO_MAX: f64 = 1.5;

const PRINTED_PREFIX: &str = "printed: ";

/// Colour of published figures, visible on white and on black.
const PRINTED_COLOUR: &str = "#8b9299";
pub(super) const RUN_COLOURS: [&str; 8] = [
    "#4c78a8", "#e8883a", "#479b3c", "#9d6fb0", "#3f9c98", "#c9992e", "#d8403d", "#a0715b",
];

struct ThroughputBar {
    program: String,
    series: String,
    kb_per_s: f64,
    interval: Option<(f64, f64)>,
    label: String,
}

impl ThroughputBar {
    fn build_row(&self, limit: f64) -> Value {
        let mut row = json!({
            "program": self.program,
            "series": self.series,
            "kb_per_s": self.kb_per_s,
            "label": self.label,
            "label_at": self.bar_end(limit),
        });
        if let Some((low, high)) = self.interval {
            row["low"] = json!(low);
            row["high"] = json!(high);
            row["line_to"] = json!(high.min(limit));
        }
        row
    }

    /// Returns the end of a bar and of its interval's line. An interval of two repetitions may be
    /// very wide, so the line is cut at `limit`.
    fn bar_end(&self, limit: f64) -> f64 {
        let high = self.interval.map_or(0.0, |(_, high)| high.min(limit));
        high.max(self.kb_per_s)
    }
}

/// Builds one chart for each suite, or more where its runs differ much in speed.
pub(super) fn build_charts(views: &[RunView<'_>], reported: &[ReportedRun]) -> Vec<Chart> {
    let mut charts = Vec::new();
    let mut suites: Vec<&str> = Vec::new();
    for view in views {
        if !suites.contains(&view.run.suite_name.as_str()) {
            suites.push(&view.run.suite_name);
        }
    }
    for suite in suites {
        let runs = views.iter().zip(reported);
        let runs = runs.filter(|(view, _)| view.run.suite_name == suite);
        let alone = runs.clone().count() == 1;
        let mut all: Vec<Vec<ThroughputBar>> = runs
            .map(|(view, one)| build_bars(view, one, alone))
            .collect();
        all.retain(|bars| !bars.is_empty());
        for (number, bars) in group_by_magnitude(all).into_iter().enumerate() {
            charts.push(build_chart(suite, charts.len() + 1, number, &bars));
        }
    }
    charts
}

/// Returns the bars of a run: the published figures of each program, then the measured one.
fn build_bars(view: &RunView<'_>, reported: &ReportedRun, alone: bool) -> Vec<ThroughputBar> {
    // One document may be about several runs.
    let about = match alone {
        true => String::new(),
        false => format!(", of {}", view.name),
    };
    let verb = match view.run.world {
        MeasuredWorld::Host => "measured",
        MeasuredWorld::Model => "modelled",
    };
    let shown = |row: &&ResultRow| {
        // KB/s of requests of 4 KiB and of 1 MiB have no scale in common.
        row.summary.kept_count > 0 && !pivot::is_pivoted(row.result) && row.summary.load.is_none()
    };
    let mut bars = Vec::new();
    for row in view.rows.iter().filter(shown) {
        let program = super::format_chart_title(view, row);
        let printed = reported
            .printed_figures
            .iter()
            .filter(|one| one.is_result_of(row.result));
        for printed in printed {
            bars.push(ThroughputBar {
                program: program.clone(),
                series: format!("{PRINTED_PREFIX}{}{about}", printed.document),
                kb_per_s: printed.kb_per_s,
                interval: None,
                label: match printed.cpu_percent {
                    Some(percent) => format!(
                        "{} {}",
                        figures::format_kb_per_s(printed.kb_per_s),
                        figures::format_cpu_percent(percent)
                    ),
                    None => figures::format_kb_per_s(printed.kb_per_s),
                },
            });
        }
        let interval = row.summary.speed_interval;
        let interval = interval.filter(|interval| interval.method != IntervalMethod::ExactValue);
        let (speed, cpu) = figures::format_cell(row);
        bars.push(ThroughputBar {
            program,
            series: format!("{verb}: {}", view.name),
            kb_per_s: row.summary.kb_per_s,
            interval: interval.map(|interval| (interval.min, interval.max)),
            label: match figures::format_relative_half_width(&row.summary).as_str() {
                "" => format!("{speed} {cpu}"),
                relative_half_width => format!("{speed} {cpu} {relative_half_width}"),
            },
        });
    }
    bars
}

/// Groups runs whose speeds fit one scale.
fn group_by_magnitude(mut runs: Vec<Vec<ThroughputBar>>) -> Vec<Vec<ThroughputBar>> {
    let fastest = |bars: &[ThroughputBar]| bars.iter().map(|bar| bar.kb_per_s).fold(0.0, f64::max);
    // The order of the runs stays within a chart.
    let mut charts: Vec<Vec<ThroughputBar>> = Vec::new();
    for bars in runs.drain(..) {
        let speed = fastest(&bars);
        let beside = charts.iter_mut().find(|chart| {
            let other = fastest(chart);
            other.max(speed) <= SPEED_RATIO_MAX * other.min(speed)
        });
        match beside {
            Some(chart) => chart.extend(bars),
            None => charts.push(bars),
        }
    }
    charts
}

/// Returns the series of a bar chart in their order, with a colour for each. Published series are
/// grey.
fn choose_colours(bars: &[ThroughputBar]) -> (Vec<&str>, Vec<&'static str>) {
    let mut series: Vec<&str> = Vec::new();
    for bar in bars {
        if !series.contains(&bar.series.as_str()) {
            series.push(&bar.series);
        }
    }
    let mut others = RUN_COLOURS.iter().cycle();
    let colour = |one: &&str| match one.starts_with(PRINTED_PREFIX) {
        true => PRINTED_COLOUR,
        false => others.next().copied().unwrap_or(PRINTED_COLOUR),
    };
    let colours = series.iter().map(colour).collect();
    (series, colours)
}

fn count_programs(bars: &[ThroughputBar]) -> usize {
    let mut programs: Vec<&str> = bars.iter().map(|bar| bar.program.as_str()).collect();
    programs.sort_unstable();
    programs.dedup();
    programs.len()
}

fn build_chart(suite: &str, number: usize, of_suite: usize, bars: &[ThroughputBar]) -> Chart {
    let title = match of_suite {
        0 => format!("{suite}: throughput"),
        _ => format!("{suite}: throughput, on another scale"),
    };
    let (series, colours) = choose_colours(bars);
    let fastest = bars.iter().map(|bar| bar.kb_per_s).fold(0.0, f64::max);
    let limit = INTERVAL_LINE_RATIO_MAX * fastest;
    let rows: Vec<Value> = bars.iter().map(|bar| bar.build_row(limit)).collect();
    let end = bars
        .iter()
        .map(|bar| bar.bar_end(limit))
        .fold(1e-3, f64::max);
    // What is written behind the longest bar takes so many pixels.
    let room = format!("{end} * width / max(width - 110, 90)");
    let mut view = json!({
        "height": 18 * bars.len() + 10 * count_programs(bars),
        "encoding": {
            "y": { "field": "program", "type": "nominal", "sort": null, "title": null,
                   "axis": { "ticks": false, "domain": false, "labelPadding": 8, "labelLimit": label_limit_expression() } },
            "yOffset": { "field": "series", "type": "nominal", "sort": null },
        },
        "layer": [
            {
                "name": ROWS_DATASET,
                "mark": { "type": "bar", "tooltip": { "content": "data" } },
                "encoding": {
                    "x": { "field": "kb_per_s", "type": "quantitative", "title": "KB/s",
                           "axis": { "tickCount": { "expr": "max(2, width / 70)" },
                                     "labelExpr": "format(datum.value, datum.value < 10000 ? ',~f' : '~s')" },
                           "scale": { "nice": false, "domainMax": { "expr": room } } },
                    "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                               "scale": { "domain": series, "range": colours } },
                },
            },
            {
                "mark": { "type": "text", "align": "left", "dx": 5 },
                "encoding": {
                    "x": { "field": "label_at", "type": "quantitative" },
                    "text": { "field": "label" },
                },
            },
        ],
    });
    if bars.iter().any(|bar| bar.interval.is_some())
        && let Some(layers) = view["layer"].as_array_mut()
    {
        layers.push(json!({
            "transform": [{ "filter": "isValid(datum.low)" }],
            "mark": { "type": "rule", "strokeWidth": 1.5 },
            "encoding": {
                "x": { "field": "low", "type": "quantitative" },
                "x2": { "field": "line_to" },
            },
        }));
    }
    let chart = Chart::new(&format!("throughput-{number}"), title, rows, view).with_full_width();
    match number {
        1 => chart.with_caption(
            "KB/s until the last call returned, with the CPU share of the elapsed time; the line \
             is the 95 % interval. A modelled figure is exact and has none.",
        ),
        // Said once.
        _ => chart,
    }
}
