//! Figures of results under the names and units that other tools get.

use super::super::view::{ResultRow, RunView};
use crate::statistics::ConfidenceInterval;
use crate::summary::load::LoadSummary;
use diskperf_timeline::units::KIB;
use diskperf_timeline::{Histogram, Repetition, escape_unprintable_line};
use std::collections::BTreeSet;

/// Measure of a result: its name, unit and direction.
#[derive(Debug, PartialEq)]
pub(super) struct Measure {
    /// Name in benchmark trackers; it ends with the unit where it has one.
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) is_bigger_better: bool,
    /// Metric family of Prometheus, in base units.
    pub(super) family: &'static str,
    pub(super) help: &'static str,
    /// Factor from `unit` to the base unit of `family`.
    pub(super) base_factor: f64,
}

const fn rate(
    name: &'static str,
    unit: &'static str,
    family: &'static str,
    help: &'static str,
) -> Measure {
    Measure {
        name,
        unit,
        is_bigger_better: true,
        family,
        help,
        base_factor: 1.0,
    }
}

const fn duration_ns(name: &'static str, family: &'static str, help: &'static str) -> Measure {
    Measure {
        name,
        unit: "ns",
        is_bigger_better: false,
        family,
        help,
        base_factor: 1e-9,
    }
}

const IOPS: Measure = rate(
    "iops",
    "requests/s",
    "diskperf_requests_per_second",
    "Requests completed per second.",
);
const THROUGHPUT: Measure = rate(
    "bytes_per_s",
    "bytes/s",
    "diskperf_throughput_bytes_per_second",
    "Bytes transferred per second.",
);
const DURABLE_THROUGHPUT: Measure = rate(
    "durable_bytes_per_s",
    "bytes/s",
    "diskperf_durable_throughput_bytes_per_second",
    "Bytes transferred per second until all written data was synced.",
);
const RESPONSE_MEAN: Measure = duration_ns(
    "response_mean_ns",
    "diskperf_response_time_mean_seconds",
    "Mean response time of requests.",
);
const RESPONSE_P50: Measure = duration_ns(
    "response_p50_ns",
    "diskperf_response_time_p50_seconds",
    "Median response time of requests.",
);
const RESPONSE_P99: Measure = duration_ns(
    "response_p99_ns",
    "diskperf_response_time_p99_seconds",
    "99th percentile of the response time of requests.",
);
const RESPONSE_P99_9: Measure = duration_ns(
    "response_p99_9_ns",
    "diskperf_response_time_p999_seconds",
    "99.9th percentile of the response time of requests.",
);
const CPU_PER_REQUEST: Measure = duration_ns(
    "cpu_ns_per_request",
    "diskperf_request_cpu_seconds",
    "CPU time per request.",
);
const CPU_PERCENT: Measure = Measure {
    name: "cpu_percent",
    unit: "%",
    is_bigger_better: false,
    family: "diskperf_cpu_ratio",
    help: "CPU time divided by elapsed time.",
    base_factor: 0.01,
};

/// Measures in the order of their output.
pub(super) const MEASURES: [&Measure; 9] = [
    &IOPS,
    &THROUGHPUT,
    &DURABLE_THROUGHPUT,
    &RESPONSE_MEAN,
    &RESPONSE_P50,
    &RESPONSE_P99,
    &RESPONSE_P99_9,
    &CPU_PER_REQUEST,
    &CPU_PERCENT,
];

/// Value of a measure with the bounds of its interval, in the unit of the measure.
pub(super) struct Figure {
    pub(super) measure: &'static Measure,
    pub(super) value: f64,
    pub(super) bounds: Option<FigureBounds>,
}

#[derive(Clone, Copy)]
pub(super) struct FigureBounds {
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Figure {
    /// Returns the figure, unless it is no finite number.
    fn new(
        measure: &'static Measure,
        factor: f64,
        value: Option<f64>,
        interval: Option<ConfidenceInterval>,
    ) -> Option<Self> {
        let bounds = interval.map(|one| FigureBounds {
            low: one.min * factor,
            high: one.max * factor,
        });
        Some(Self {
            measure,
            value: value
                .map(|value| value * factor)
                .filter(|value| value.is_finite())?,
            bounds: bounds.filter(|one| one.low.is_finite() && one.high.is_finite()),
        })
    }
}

/// Result with counted repetitions, under a name that no other result of the export has.
pub(super) struct ExportedResult<'v> {
    pub(super) view: &'v RunView<'v>,
    pub(super) row: &'v ResultRow<'v>,
    /// Title of the result, unique among those of its run.
    pub(super) title: String,
    /// Title with the run's name where there are several runs; unique in the export.
    pub(super) name: String,
}

/// Latency histogram of one operation.
pub(super) struct OperationLatencies {
    pub(super) operation: &'static str,
    pub(super) latencies: Histogram,
}

impl<'v> ExportedResult<'v> {
    pub(super) fn from_views(views: &'v [RunView<'v>]) -> Vec<Self> {
        let mut names = BTreeSet::new();
        let mut results = Vec::new();
        for view in views {
            let mut titles = BTreeSet::new();
            for row in view.rows.iter().filter(|row| row.summary.kept_count > 0) {
                let title = choose_unique(&mut titles, describe_row(row, &view.rows));
                let name = match views.len() {
                    1 => title.clone(),
                    _ => format!("{title}, {}", escape_unprintable_line(&view.name)),
                };
                results.push(Self {
                    view,
                    row,
                    title,
                    name: choose_unique(&mut names, name),
                });
            }
        }
        results
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let summary = &self.row.summary;
        let kib = KIB as f64;
        let mut figures = match &summary.load {
            Some(load) => load_figures(load),
            None => vec![Figure::new(
                &THROUGHPUT,
                kib,
                Some(summary.kb_per_s),
                summary.speed_interval,
            )],
        };
        figures.push(Figure::new(
            &DURABLE_THROUGHPUT,
            kib,
            summary.durable_kb_per_s,
            summary.durable_interval,
        ));
        figures.push(Figure::new(
            &CPU_PERCENT,
            1.0,
            Some(summary.cpu_percent),
            None,
        ));
        figures.into_iter().flatten().collect()
    }

    /// Returns the latencies of each operation over all counted repetitions: response times of
    /// requests, or times of calls where one call follows the other.
    pub(super) fn latencies(&self) -> Vec<OperationLatencies> {
        list_latencies(self.row.result.kept_repetitions())
    }
}

/// Returns the latencies of each operation over all workers of the repetitions.
pub(super) fn list_latencies<'r>(
    repetitions: impl IntoIterator<Item = &'r Repetition>,
) -> Vec<OperationLatencies> {
    let mut sums: Vec<OperationLatencies> = Vec::new();
    let mut add = |operation: &'static str, latencies: &Histogram| {
        if latencies.is_empty() {
            return;
        }
        match sums.iter_mut().find(|sum| sum.operation == operation) {
            Some(sum) => sum.latencies.merge(latencies),
            None => sums.push(OperationLatencies {
                operation,
                latencies: latencies.clone(),
            }),
        }
    };
    let repetitions = repetitions.into_iter();
    for worker in repetitions.flat_map(|repetition| &repetition.workers) {
        match &worker.load_measure {
            Some(load) => {
                for (operation, measure) in load.named_operations() {
                    add(operation, &measure.response_times);
                }
            }
            None => {
                add("read", &worker.read_latency);
                add("write", &worker.write_latency);
            }
        }
    }
    sums
}

fn load_figures(load: &LoadSummary) -> Vec<Option<Figure>> {
    const MEGABYTE: f64 = 1e6;
    const NS_PER_US: f64 = 1e3;
    let mut figures = vec![
        Figure::new(&IOPS, 1.0, Some(load.iops), load.iops_interval),
        Figure::new(
            &THROUGHPUT,
            MEGABYTE,
            Some(load.mb_per_s),
            load.mb_per_s_interval,
        ),
    ];
    if let Some(response) = &load.response {
        figures.extend([
            Figure::new(&RESPONSE_MEAN, NS_PER_US, Some(response.mean_us), None),
            Figure::new(
                &RESPONSE_P50,
                NS_PER_US,
                response.p50_us,
                response.p50_interval,
            ),
            Figure::new(
                &RESPONSE_P99,
                NS_PER_US,
                response.p99_us,
                response.p99_interval,
            ),
            Figure::new(&RESPONSE_P99_9, NS_PER_US, response.p99_9_us, None),
        ]);
    }
    figures.push(Figure::new(
        &CPU_PER_REQUEST,
        NS_PER_US,
        load.cpu_us_per_io,
        None,
    ));
    figures
}

/// Returns the title of a row, with the file system and the number of drives where other rows share
/// the title.
fn describe_row(row: &ResultRow, rows: &[ResultRow]) -> String {
    let result = row.result;
    let same = rows.iter().filter(|other| other.title == row.title);
    let title = match same.count() {
        1 => row.title.clone(),
        _ => format!(
            "{} ({}, drives: {})",
            row.title, result.filesystem_type, result.drive_count
        ),
    };
    match escape_unprintable_line(title.trim()).into_owned() {
        // Trackers refuse an empty name.
        empty if empty.is_empty() => "result".to_owned(),
        title => title,
    }
}

/// Returns the name, with a number where it is taken, and takes it.
fn choose_unique(taken: &mut BTreeSet<String>, name: String) -> String {
    let numbered = (2..).map(|number| format!("{name} #{number}"));
    let free = std::iter::once(name.clone())
        .chain(numbered)
        .find(|name| !taken.contains(name))
        .expect("the numbers do not end");
    taken.insert(free.clone());
    free
}
