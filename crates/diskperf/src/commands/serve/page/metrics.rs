//! Figures of a served drive in the text format of OpenMetrics 1.0.

use crate::arguments::ServeArguments;
use diskperf_analysis::report::{LabelPair, format_metric_labels};
use diskperf_serve::{OperationStatistics, Served};
use std::fmt::Write;

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A counter of each operation.
struct OperationCounter {
    family: &'static str,
    help: &'static str,
    value: fn(&OperationStatistics) -> u64,
}

const COUNTERS: [OperationCounter; 3] = [
    OperationCounter {
        family: "diskperf_served_requests",
        help: "Requests that were answered.",
        value: |of| of.requests,
    },
    OperationCounter {
        family: "diskperf_served_failed_requests",
        help: "Requests that were answered with an error.",
        value: |of| of.failed,
    },
    OperationCounter {
        family: "diskperf_served_moved_bytes",
        help: "Bytes of the requests that succeeded.",
        value: |of| of.bytes,
    },
];

/// Renders the figures so far.
pub(super) fn render(arguments: &ServeArguments, served: &Served) -> String {
    let report = served.statistics.report();
    let mut out = String::new();
    let labels = [
        ("drive", arguments.drive.as_str()),
        ("version", env!("CARGO_PKG_VERSION")),
    ];
    write_family(
        &mut out,
        "diskperf_served_drive",
        "info",
        "The served drive.",
    );
    write_sample(&mut out, "diskperf_served_drive_info", &labels, 1.0);
    for (family, help, value) in [
        (
            "diskperf_served_size_bytes",
            "Bytes that clients see.",
            served.size_bytes as f64,
        ),
        (
            "diskperf_served_speed_ratio",
            "Virtual seconds per elapsed second.",
            arguments.speed,
        ),
        (
            "diskperf_served_in_flight_requests",
            "Requests that have arrived and are not complete.",
            served.drive.in_flight() as f64,
        ),
    ] {
        write_family(&mut out, family, "gauge", help);
        write_sample(&mut out, family, &[], value);
    }
    for (family, help, value) in [
        (
            "diskperf_served_connections",
            "Connections that reached the drive.",
            report.connections,
        ),
        (
            "diskperf_served_refused_requests",
            "Requests that were refused before they reached the drive.",
            report.refused,
        ),
    ] {
        write_family(&mut out, family, "counter", help);
        write_sample(&mut out, &format!("{family}_total"), &[], value as f64);
    }
    for counter in COUNTERS {
        write_family(&mut out, counter.family, "counter", counter.help);
        for of in &report.operations {
            let name = format!("{}_total", counter.family);
            let value = (counter.value)(of) as f64;
            write_sample(&mut out, &name, &[("operation", of.kind.name())], value);
        }
    }
    write_times(&mut out, &report.operations);
    write_faults(&mut out, served);
    out + "# EOF\n"
}

/// Writes quantiles of service times, in virtual seconds, and of lateness.
fn write_times(out: &mut String, operations: &[OperationStatistics]) {
    type Quantiles = fn(&OperationStatistics) -> [(&'static str, f64); 2];
    let families: [(&str, &str, Quantiles); 2] = [
        (
            "diskperf_served_service_seconds",
            "Modelled service time, in virtual seconds.",
            |of| [("0.5", of.service_ms_p50), ("0.99", of.service_ms_p99)],
        ),
        (
            "diskperf_served_lateness_seconds",
            "Time from the due instant of an answer until it was sent.",
            |of| [("0.5", of.lateness_ms_p50), ("0.99", of.lateness_ms_p99)],
        ),
    ];
    for (family, help, quantiles) in families {
        write_family(out, family, "summary", help);
        for of in operations {
            let operation = ("operation", of.kind.name());
            for (quantile, ms) in quantiles(of) {
                let labels = [operation, ("quantile", quantile)];
                // To the nanosecond.
                write_sample(out, family, &labels, (ms * 1e6).round() / 1e9);
            }
            let timed = of.requests - of.failed;
            write_sample(out, &format!("{family}_count"), &[operation], timed as f64);
        }
    }
}

fn write_faults(out: &mut String, served: &Served) {
    let family = "diskperf_served_fault_strikes";
    let help = "Requests that a fault struck.";
    write_family(out, family, "counter", help);
    for fault in served.drive.fault_states() {
        let labels = [("fault", fault.name.as_str()), ("kind", fault.kind)];
        let strikes = fault.strikes as f64;
        write_sample(out, &format!("{family}_total"), &labels, strikes);
    }
}

fn write_family(out: &mut String, family: &str, kind: &str, help: &str) {
    writeln!(out, "# TYPE {family} {kind}").expect("a text grows");
    // A unit is the end of a family's name.
    for unit in ["bytes", "seconds", "ratio"] {
        if family.ends_with(unit) {
            writeln!(out, "# UNIT {family} {unit}").expect("a text grows");
        }
    }
    writeln!(out, "# HELP {family} {help}").expect("a text grows");
}

fn write_sample(out: &mut String, name: &str, labels: &[LabelPair], value: f64) {
    let labels = format_metric_labels(labels);
    writeln!(out, "{name}{labels} {value}").expect("a text grows");
}
