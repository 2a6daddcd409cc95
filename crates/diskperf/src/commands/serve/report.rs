//! Statistics of a served drive, as a table and in JSON.

use crate::arguments::{OutputFormat, ServeArguments};
use crate::listing::Listing;
use crate::output::width;
use diskperf_laboratory::LaboratoryError;
use diskperf_serve::{OperationStatistics, Served, StatisticsReport};
use serde_json::{Value, json};

pub(super) fn format_report(
    arguments: &ServeArguments,
    served: &Served,
    report: &StatisticsReport,
) -> Result<String, LaboratoryError> {
    let listing = list_operations(report);
    match arguments.format {
        OutputFormat::Json => {
            let json = report_json(arguments, served, report);
            serde_json::to_string_pretty(&json).map_err(LaboratoryError::work)
        }
        OutputFormat::Table => Ok(format!(
            "{}\n\n{}",
            format_summary(arguments, served, report),
            listing.render(OutputFormat::Table, width())
        )),
        format => Ok(listing.render(format, width())),
    }
}

fn format_summary(
    arguments: &ServeArguments,
    served: &Served,
    report: &StatisticsReport,
) -> String {
    let count = |number: u64, one: &str| match number {
        1 => format!("1 {one}"),
        _ => format!("{number} {one}s"),
    };
    let refused = match report.refused {
        0 => String::new(),
        refused => format!(", {} refused", count(refused, "request")),
    };
    let late = report.operations.iter().filter(|of| of.is_late);
    let late: Vec<_> = late.map(|of| of.kind.name()).collect();
    let late = match late.is_empty() {
        true => String::new(),
        false => format!(
            "\n{}: answers were late, the 99th percentile by more than 5 % of the median service time",
            late.join(", ")
        ),
    };
    let faults = served.drive.fault_states().into_iter().map(|fault| {
        let off = if fault.is_on { "" } else { ", off at the end" };
        let struck = count(fault.strikes, "request");
        format!(
            "\nfault {} ({}): struck {struck}{off}",
            fault.name, fault.kind
        )
    });
    let faults: String = faults.collect();
    format!(
        "{}: {} of {} in {:.1} s{refused}{late}{faults}",
        arguments.drive,
        count(report.requests(), "request"),
        count(report.connections, "connection"),
        report.elapsed.as_secs_f64(),
    )
}

/// Rates of a kind of requests, over the whole time.
fn operation_rates(of: &OperationStatistics, report: &StatisticsReport) -> (f64, f64) {
    let elapsed_s = report.elapsed.as_secs_f64();
    let per_s = |count: u64| count as f64 / elapsed_s;
    (per_s(of.requests), per_s(of.bytes) / 1e6)
}

fn list_operations(report: &StatisticsReport) -> Listing {
    let row = |of: &OperationStatistics| {
        let (requests_per_s, mb_per_s) = operation_rates(of, report);
        vec![
            of.kind.name().to_owned(),
            of.requests.to_string(),
            of.failed.to_string(),
            of.bytes.to_string(),
            format!("{requests_per_s:.1}"),
            format!("{mb_per_s:.3}"),
            format!("{:.4}", of.service_ms_p50),
            format!("{:.4}", of.service_ms_p99),
            format!("{:.4}", of.lateness_ms_p50),
            format!("{:.4}", of.lateness_ms_p99),
            format!("{:.4}", of.lateness_ms_max),
            if of.is_late { "late" } else { "" }.to_owned(),
        ]
    };
    Listing {
        name: "operations",
        heading: vec![
            "operation",
            "requests",
            "failed",
            "bytes",
            "requests/s",
            "MB/s",
            "service ms p50",
            "service ms p99",
            "lateness ms p50",
            "lateness ms p99",
            "lateness ms max",
            "mark",
        ],
        rows: report.operations.iter().map(row).collect(),
        ..Listing::default()
    }
}

pub(super) fn report_json(
    arguments: &ServeArguments,
    served: &Served,
    report: &StatisticsReport,
) -> Value {
    let operation = |of: &OperationStatistics| {
        let (requests_per_s, mb_per_s) = operation_rates(of, report);
        json!({
            "operation": of.kind.name(),
            "requests": of.requests,
            "failed": of.failed,
            "bytes": of.bytes,
            "requests_per_s": requests_per_s,
            "mb_per_s": mb_per_s,
            "service_ms": { "p50": of.service_ms_p50, "p99": of.service_ms_p99 },
            "lateness_ms": {
                "p50": of.lateness_ms_p50,
                "p99": of.lateness_ms_p99,
                "max": of.lateness_ms_max,
            },
            "of_1_ms_or_more": {
                "requests": of.long_requests,
                "within_2_percent": of.long_requests_on_time,
            },
            "is_late": of.is_late,
        })
    };
    let operations: Vec<_> = report.operations.iter().map(operation).collect();
    json!({
        "drive": arguments.drive,
        "size_bytes": served.size_bytes,
        "speed": arguments.speed,
        "seed": arguments.seed,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "connections": report.connections,
        "requests": report.requests(),
        "refused": report.refused,
        "operations": operations,
        "faults": fault_list(served),
    })
}

/// Returns the faults of a drive with the number of requests that each struck.
pub(super) fn fault_list(served: &Served) -> Vec<Value> {
    let faults = served.drive.fault_states().into_iter();
    let fault = faults.map(|fault| {
        json!({
            "name": fault.name,
            "kind": fault.kind,
            "on": fault.is_on,
            "strikes": fault.strikes,
        })
    });
    fault.collect()
}
