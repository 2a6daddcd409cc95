//! `diskperf serve`.

use super::{DONE, Outcome};
use crate::arguments::{OutputFormat, ServeArguments};
use crate::listing::Listing;
use crate::output::{print, print_message, width};
use crate::progress::TimeProgress;
use crate::signals::stop_on_signals;
use diskperf_laboratory::{LaboratoryError, Output};
use diskperf_models::model::load_catalogue;
use diskperf_serve::nbd::{Address, Server};
use diskperf_serve::{
    OperationStatistics, PrivateDirectory, ServeError, Served, ServedOptions, StatisticsReport,
    resolve_drive,
};
use diskperf_timeline::units::format_size;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the command looks for a signal, and shows its progress.
const POLL: Duration = Duration::from_millis(50);

/// Serves a drive until its time is over or a signal comes, and prints the statistics.
pub(crate) fn serve(arguments: &ServeArguments) -> Outcome {
    let catalogue = load_catalogue(arguments.catalogue.as_deref())?;
    let settings = &arguments.settings;
    let specification = resolve_drive(&catalogue, &arguments.drive, settings).map_err(refused)?;
    if let Some(path) = &arguments.data_file {
        require_data_file(path)?;
    }
    let options = ServedOptions {
        data: arguments.data_file.clone(),
        size_bytes: arguments.size,
        speed: arguments.speed,
        is_read_only: arguments.read_only,
        seed: arguments.seed,
        keeps_arrivals: false,
    };
    // Before anything is made that a signal would leave.
    let stop = stop_on_signals()?;
    let served = Arc::new(Served::start(&specification, &options).map_err(refused)?);
    // The directory goes after the socket in it.
    let mut directory = None;
    let address = match (&arguments.socket, arguments.tcp) {
        (Some(path), _) => Address::Unix(path.clone()),
        (None, Some(at)) => Address::Tcp(at),
        (None, None) => {
            let private = PrivateDirectory::create().map_err(refused)?;
            Address::Unix(directory.insert(private).path().join("socket"))
        }
    };
    let mut server = Server::start(Arc::clone(&served), &address).map_err(refused)?;
    say_where(arguments, &served, server.uri());
    let is_running = wait_for_end(arguments, &served, &stop);
    server.end();
    drop(directory);
    let synced = served.data.sync();
    let report = served.statistics.report(arguments.speed);
    print(&format_report(arguments, &served, &report)?)?;
    if !is_running {
        let reason = "the model of the drive failed, and clients were disconnected";
        return Err(LaboratoryError::Workload(reason.to_owned()));
    }
    synced.map_err(|error| {
        let path = arguments.data_file.as_deref().unwrap_or(Path::new("-"));
        LaboratoryError::Workload(format!("{}: cannot be synced: {error}", path.display()))
    })?;
    Ok(DONE)
}

fn refused(error: ServeError) -> LaboratoryError {
    match error {
        ServeError::Request(text) => LaboratoryError::Request(text),
        ServeError::Catalogue(errors) => LaboratoryError::Catalogue(errors),
        ServeError::Work(text) => LaboratoryError::Workload(text),
    }
}

/// Makes sure that the data go to a file of the user's, by the rules for outputs.
fn require_data_file(path: &Path) -> Result<(), LaboratoryError> {
    match Output::open(path)? {
        Output::File(_) => Ok(()),
        Output::StandardOutput => Err(LaboratoryError::Request(format!(
            "--data {}: the data are read and written at any place: name a file",
            path.display()
        ))),
    }
}

/// Says where the drive is served, and how it is used.
fn say_where(arguments: &ServeArguments, served: &Served, uri: &str) {
    let size = format_size(served.size_bytes);
    let speed = match arguments.speed {
        1.0 => String::new(),
        speed => format!(" at {speed} times its speed"),
    };
    let access = if arguments.read_only {
        ", read-only"
    } else {
        ""
    };
    let drive = &arguments.drive;
    print_message(&format!("serving {drive}, {size}{access}{speed}, at {uri}"));
    print_message(&format!(
        "use it as `nbdinfo '{uri}'`, `qemu-img info '{uri}'` or fio's ioengine=nbd; Ctrl-C ends it and prints the statistics"
    ));
}

/// Waits until the time is over or a signal comes. Returns whether the drive was served all
/// the time.
fn wait_for_end(arguments: &ServeArguments, served: &Served, stop: &AtomicBool) -> bool {
    let progress = TimeProgress::new(arguments.quiet, arguments.lasts);
    let start = Instant::now();
    while !stop.load(Ordering::SeqCst) {
        let left = arguments
            .lasts
            .map(|lasts| lasts.saturating_sub(start.elapsed()));
        if left == Some(Duration::ZERO) {
            break;
        }
        if !served.drive.is_running() {
            return false;
        }
        thread::sleep(left.map_or(POLL, |left| left.min(POLL)));
        progress.show(served.statistics.requests(), 0);
    }
    true
}

fn format_report(
    arguments: &ServeArguments,
    served: &Served,
    report: &StatisticsReport,
) -> Result<String, LaboratoryError> {
    let listing = listing(report);
    match arguments.format {
        OutputFormat::Json => {
            let json = report_json(arguments, served, report);
            serde_json::to_string_pretty(&json).map_err(LaboratoryError::work)
        }
        OutputFormat::Table => Ok(format!(
            "{}\n\n{}",
            summary(arguments, report),
            listing.render(OutputFormat::Table, width())
        )),
        format => Ok(listing.render(format, width())),
    }
}

fn summary(arguments: &ServeArguments, report: &StatisticsReport) -> String {
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
    format!(
        "{}: {} of {} in {:.1} s{refused}{late}",
        arguments.drive,
        count(report.requests(), "request"),
        count(report.connections, "connection"),
        report.elapsed.as_secs_f64(),
    )
}

/// Rates of a kind of requests, over the whole time.
fn rates(of: &OperationStatistics, report: &StatisticsReport) -> (f64, f64) {
    let elapsed_s = report.elapsed.as_secs_f64();
    let per_s = |count: u64| count as f64 / elapsed_s;
    (per_s(of.requests), per_s(of.bytes) / 1e6)
}

fn listing(report: &StatisticsReport) -> Listing {
    let row = |of: &OperationStatistics| {
        let (requests_per_s, mb_per_s) = rates(of, report);
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

fn report_json(arguments: &ServeArguments, served: &Served, report: &StatisticsReport) -> Value {
    let operation = |of: &OperationStatistics| {
        let (requests_per_s, mb_per_s) = rates(of, report);
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
    })
}
