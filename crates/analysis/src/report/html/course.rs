//! Charts of programs over time: their rates and their slowest responses.

use super::chart::{Chart, ROWS_DATASET, slugify};
use super::log_axis;
use crate::report::view::RunView;
use crate::summary::load::LoadSummary;
use serde_json::{Value, json};

/// Maximum ratio of the rates of programs in one chart. Beyond it the smaller rate would not be
/// visible.
const RATE_RATIO_MAX: f64 = 12.0;

/// Minimum number of intervals for which a program's series is drawn; two points show no trend.
const POINT_COUNT_MIN: usize = 3;

struct ProgramSeries<'v> {
    title: String,
    load: &'v LoadSummary,
}

/// Builds the charts of rates, with programs of similar rate together, and the chart of all 99th
/// percentiles.
pub(super) fn build_charts(view: &RunView<'_>) -> Vec<Chart> {
    let course = |row| {
        let load = load_of_row(row)?;
        let title = super::format_chart_title(view, row);
        Some(ProgramSeries { title, load })
    };
    let courses: Vec<ProgramSeries> = view.rows.iter().filter_map(course).collect();
    let run = slugify(&view.run.run_id);
    let mut charts = Vec::new();
    for (number, alike) in group_by_rate(&courses).iter().enumerate() {
        let rows = build_rows(alike, |one| Some(("iops", one.iops)));
        let title = match number {
            0 => "Requests per second, over time",
            _ => "Requests per second, over time, on another scale",
        };
        let y = json!({
            "field": "iops", "type": "quantitative", "title": "IOPS",
            "axis": { "labelExpr": "format(datum.value, '~s')" },
        });
        let name = format!("iops-over-time-{run}-{}", number + 1);
        let chart = Chart::new(&name, title.to_owned(), rows, build_line_view(&y));
        charts.push(match number {
            0 => chart.with_caption("The median repetition, interval by interval."),
            _ => chart,
        });
    }
    let all: Vec<&ProgramSeries> = courses.iter().collect();
    let rows = build_rows(&all, |one| Some(("ms", one.p99_us? / 1e3)));
    if !rows.is_empty() {
        let y = log_axis::build_millisecond_axis(&rows);
        let title = "99th percentile of the response, over time".to_owned();
        let chart = Chart::new(
            &format!("p99-over-time-{run}"),
            title,
            rows,
            build_line_view(&y),
        );
        charts.push(chart.with_caption(
            "Response time that 99 % of the requests of the interval did not exceed. Intervals with fewer \
             than 100 requests are left out.",
        ));
    }
    charts.into_iter().map(Chart::with_full_width).collect()
}

fn load_of_row<'v>(row: &'v crate::report::view::ResultRow<'_>) -> Option<&'v LoadSummary> {
    let load = row.summary.load.as_ref();
    load.filter(|load| load.series.len() >= POINT_COUNT_MIN)
}

/// Groups the programs so that the rates of each group fit one scale.
fn group_by_rate<'c, 'v>(courses: &'c [ProgramSeries<'v>]) -> Vec<Vec<&'c ProgramSeries<'v>>> {
    let mut groups: Vec<Vec<&ProgramSeries>> = Vec::new();
    for course in courses {
        let near = |other: &&ProgramSeries| {
            let (one, other) = (course.load.iops, other.load.iops);
            one.max(other) <= RATE_RATIO_MAX * one.min(other)
        };
        match groups.iter_mut().find(|group| group.iter().all(near)) {
            Some(group) => group.push(course),
            None => groups.push(vec![course]),
        }
    }
    groups
}

/// Returns the data of a chart: one row for each interval with a figure, for programs with enough
/// intervals.
fn build_rows(
    courses: &[&ProgramSeries],
    figure_of: impl Fn(&crate::summary::load::SeriesFigures) -> Option<(&'static str, f64)>,
) -> Vec<Value> {
    let mut rows = Vec::new();
    for course in courses {
        let points = course.load.series.iter().filter_map(|one| {
            let (field, value) = figure_of(one)?;
            Some(json!({ "series": course.title, "at_s": one.start_s, field: value }))
        });
        let points: Vec<Value> = points.collect();
        if points.len() >= POINT_COUNT_MIN {
            rows.extend(points);
        }
    }
    rows
}

fn build_line_view(y: &Value) -> Value {
    json!({
        "height": 220,
        "encoding": {
            "x": { "field": "at_s", "type": "quantitative", "title": "seconds" },
            "y": y,
            "color": { "field": "series", "type": "nominal", "sort": null, "title": null,
                       "scale": { "scheme": "tableau10" } },
        },
        "layer": [
            { "mark": { "type": "line", "strokeWidth": 2 } },
            { "name": ROWS_DATASET, "mark": { "type": "point", "filled": true, "size": 18, "opacity": 1,
                                      "tooltip": { "content": "data" } } },
        ],
    })
}
