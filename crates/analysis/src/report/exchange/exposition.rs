//! Prometheus text format 0.0.4 and OpenMetrics 1.0. They look alike, but neither is a part of the
//! other: a parser of one misreads the info family and the end of the other.
//!
//! Figures of a finished run are gauges. Response times are histograms whose bucket bounds never
//! change, so that those of several runs add up. There are no timestamps: the textfile collector of
//! node_exporter drops a file with one.

use super::super::view::RunView;
use super::figures::{ExportedResult, Figure, FigureBounds, MEASURES, OperationLatencies};
use diskperf_timeline::{Histogram, MeasuredWorld, escape_unprintable};
use std::fmt::Write;

/// Number of decades of the bucket ladder 1, 2, 5, ..., from 1 µs to 100 s.
const LADDER_DECADES: u32 = 8;

/// Differences between the two formats.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exposition {
    Prometheus,
    OpenMetrics,
}

pub(super) fn render_prometheus(views: &[RunView], results: &[ExportedResult]) -> String {
    render(Exposition::Prometheus, views, results)
}

pub(super) fn render_open_metrics(views: &[RunView], results: &[ExportedResult]) -> String {
    render(Exposition::OpenMetrics, views, results) + "# EOF\n"
}

/// Label of a sample and its value.
pub type LabelPair<'a> = (&'a str, &'a str);

fn render(exposition: Exposition, views: &[RunView], results: &[ExportedResult]) -> String {
    let mut out = String::new();
    write_run_information(&mut out, exposition, views);
    let figures: Vec<(&ExportedResult, Vec<Figure>)> = results
        .iter()
        .map(|result| (result, result.figures()))
        .collect();
    for measure in MEASURES {
        let of_measure = |bounds: Option<fn(FigureBounds) -> f64>| {
            let mut samples = Vec::new();
            for (result, figures) in &figures {
                let figures = figures.iter().filter(|figure| figure.measure == measure);
                samples.extend(figures.filter_map(|figure| {
                    let value = match bounds {
                        None => figure.value,
                        Some(bound) => bound(figure.bounds?),
                    };
                    Some((*result, value * measure.base_factor))
                }));
            }
            samples
        };
        let stem = measure.family;
        write_gauge(&mut out, (stem, measure.help), &of_measure(None));
        for (end, help, bound) in [
            (
                "lower",
                "Lower",
                (|bounds| bounds.low) as fn(FigureBounds) -> f64,
            ),
            ("upper", "Upper", |bounds| bounds.high),
        ] {
            let family = insert_qualifier(stem, end);
            let help = format!("{help} end of the 95 % interval. {}", measure.help);
            write_gauge(&mut out, (&family, &help), &of_measure(Some(bound)));
        }
    }
    write_histograms(&mut out, results);
    out
}

/// Returns the name of a family with a qualifier before its unit, which must end the name.
fn insert_qualifier(family: &str, qualifier: &str) -> String {
    let units = ["_bytes_per_second", "_per_second", "_seconds", "_ratio"];
    let unit = units.iter().find(|unit| family.ends_with(**unit));
    let unit = unit.copied().unwrap_or_default();
    let stem = family.strip_suffix(unit).unwrap_or(family);
    format!("{stem}_{qualifier}{unit}")
}

fn write_run_information(out: &mut String, exposition: Exposition, views: &[RunView]) {
    let (family, kind) = match exposition {
        Exposition::Prometheus => ("diskperf_run_info", "gauge"),
        Exposition::OpenMetrics => ("diskperf_run", "info"),
    };
    write_heading(out, family, kind, "Measured runs.");
    for view in views {
        let run = view.run;
        let world = match run.world {
            MeasuredWorld::Host => "host",
            MeasuredWorld::Model => "model",
        };
        let labels = [
            ("run", view.name.as_str()),
            ("id", &run.run_id),
            ("label", run.user_label.as_deref().unwrap_or_default()),
            ("suite", &run.suite_name),
            ("target", &run.measured_description()),
            ("world", world),
            ("version", &run.program_version),
        ];
        write_sample(out, "diskperf_run_info", &labels, 1.0);
    }
    let family = "diskperf_run_start_timestamp_seconds";
    write_heading(out, family, "gauge", "Unix time of the start of each run.");
    for view in views {
        let seconds = view.run.started_unix_ms as f64 / 1e3;
        write_sample(out, family, &[("run", &view.name)], seconds);
    }
}

fn write_heading(out: &mut String, family: &str, kind: &str, help: &str) {
    *out += &format!("# HELP {family} {help}\n# TYPE {family} {kind}\n");
}

fn write_gauge(out: &mut String, (family, help): (&str, &str), samples: &[(&ExportedResult, f64)]) {
    if samples.is_empty() {
        return;
    }
    write_heading(out, family, "gauge", help);
    for (result, value) in samples {
        write_sample(out, family, &result_labels(result), *value);
    }
}

fn result_labels<'r>(result: &'r ExportedResult) -> [LabelPair<'r>; 3] {
    [
        ("run", &result.view.name),
        ("result", &result.title),
        ("filesystem", &result.row.result.filesystem_type),
    ]
}

fn write_histograms(out: &mut String, results: &[ExportedResult]) {
    const FAMILY: &str = "diskperf_response_time_seconds";
    let all: Vec<(&ExportedResult, OperationLatencies)> = results
        .iter()
        .flat_map(|result| result.latencies().into_iter().map(move |one| (result, one)))
        .collect();
    if all.is_empty() {
        return;
    }
    let help = "Response times of requests, or times of calls, over all counted repetitions.";
    write_heading(out, FAMILY, "histogram", help);
    for (
        result,
        OperationLatencies {
            operation,
            latencies,
        },
    ) in &all
    {
        let mut labels = result_labels(result).to_vec();
        labels.push(("operation", operation));
        for (bound, count) in count_up_to_bounds(latencies) {
            let labels = [&labels[..], &[("le", &bound)]].concat();
            write_sample(out, &format!("{FAMILY}_bucket"), &labels, count as f64);
        }
        let count = latencies.latency_count() as f64;
        let labels_up = [&labels[..], &[("le", "+Inf")]].concat();
        write_sample(out, &format!("{FAMILY}_bucket"), &labels_up, count);
        let sum = latencies.mean_ns() * count / 1e9;
        write_sample(out, &format!("{FAMILY}_sum"), &labels, sum);
        write_sample(out, &format!("{FAMILY}_count"), &labels, count);
    }
}

/// Returns the bounds of the ladder in seconds, each with the number of latencies up to it.
fn count_up_to_bounds(latencies: &Histogram) -> Vec<(String, u64)> {
    let bounds =
        (0..LADDER_DECADES).flat_map(|decade| [1, 2, 5].map(|step| step * 10_u64.pow(decade)));
    let bounds = bounds.chain([10_u64.pow(LADDER_DECADES)]);
    let mut buckets = latencies.buckets().iter().peekable();
    let mut total = 0;
    bounds
        .map(|bound_us| {
            while let Some((_, count)) = buckets.next_if(|(ns, _)| *ns <= 1000 * bound_us) {
                total += count;
            }
            (format_bound(bound_us), total)
        })
        .collect()
}

/// Returns a bound in seconds as Go prints it, which the strict parser of OpenMetrics demands.
fn format_bound(bound_us: u64) -> String {
    match bound_us {
        0..10 => format!("{bound_us}e-06"),
        10..100 => format!("{}e-05", bound_us / 10),
        _ => format!("{:?}", bound_us as f64 / 1e6),
    }
}

fn write_sample(out: &mut String, name: &str, labels: &[LabelPair], value: f64) {
    let labels = format_metric_labels(labels);
    writeln!(out, "{name}{labels} {value:?}").expect("text takes any length");
}

/// Returns labels of a sample as Prometheus and OpenMetrics read them, in braces; nothing for a
/// sample without labels. Control characters other than a line feed are made visible, since
/// OpenMetrics refuses some of them.
pub fn format_metric_labels(labels: &[LabelPair]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pairs: Vec<String> = labels
        .iter()
        .map(|(label, text)| format!("{label}=\"{}\"", escape_label(text)))
        .collect();
    format!("{{{}}}", pairs.join(","))
}

fn escape_label(text: &str) -> String {
    let text = text.replace('\r', "\\r");
    let text = escape_unprintable(&text).into_owned();
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
