//! Comma-separated values by RFC 4180: a heading, one record per result, lines end in CR LF, and a
//! field with a comma, a quote or a line break is quoted. A figure that does not exist is an empty
//! field.
//!
//! Spreadsheets take text that begins with `=`, `+`, `-` or `@` for a formula and execute it. Such
//! text gets a `'` before it; a number does not.

use super::view::{ResultRow, RunView};
use crate::comparison::{Comparison, Quantity, ResultPair};
use crate::statistics::ConfidenceInterval;
use crate::summary::LatencyPercentiles;
use crate::summary::load::{LatencySummary, LoadSummary};
use diskperf_timeline::{MeasuredWorld, Run, SummaryStatistic, VerifiedBlocks, escape_unprintable};

pub(super) type CsvField = (&'static str, String);

/// Builds the headings of the response times of an operation, or of all operations that count for
/// IOPS.
macro_rules! headings {
    ($name:literal) => {
        [
            concat!($name, "_p50_us"),
            concat!($name, "_p99_us"),
            concat!($name, "_p99_9_us"),
            concat!($name, "_p99_99_us"),
            concat!($name, "_max_us"),
            concat!($name, "_mean_us"),
        ]
    };
}

/// Name of an operation, with the CSV headings of its rate and its response times.
type OperationColumns = (&'static str, &'static str, [&'static str; 6]);

macro_rules! operation {
    ($name:literal) => {
        ($name, concat!($name, "_iops"), headings!($name))
    };
}

/// Operations that every CSV file has columns for.
const OPERATION_COLUMNS: [OperationColumns; 4] = [
    operation!("read"),
    operation!("write"),
    operation!("sync"),
    operation!("commit"),
];

/// Operations that a CSV file has columns for only where a program performs them.
const RARE_OPERATION_COLUMNS: [OperationColumns; 5] = [
    operation!("discard"),
    operation!("create"),
    operation!("stat"),
    operation!("rename"),
    operation!("unlink"),
];

pub(super) fn render_runs(views: &[RunView]) -> String {
    let operations = choose_operation_columns(views.iter().flat_map(|view| &view.rows));
    let operations = operations.as_deref();
    let records: Vec<Vec<CsvField>> = views
        .iter()
        .flat_map(|view| {
            let rows = view.rows.iter();
            rows.map(|row| build_run_record(view.run, row, operations))
        })
        .collect();
    format_records(&records)
}

fn build_run_record(
    run: &Run,
    row: &ResultRow,
    operations: Option<&[OperationColumns]>,
) -> Vec<CsvField> {
    let mut fields = identity_fields(run, row);
    fields.extend(speed_fields(row));
    fields.extend(count_fields(row));
    fields.extend(latency_fields(&READ_HEADINGS, row.summary.read_latency));
    fields.extend(latency_fields(&WRITE_HEADINGS, row.summary.write_latency));
    if let Some(operations) = operations {
        fields.extend(load_fields(row.summary.load.as_ref(), operations));
    }
    fields.extend(failure_fields(row));
    fields.push(("notes", row.result.notes.join("; ")));
    fields
}

/// Returns the CSV fields for verified blocks and for the error that ended the program; empty where
/// nothing is verified and nothing failed.
fn failure_fields(row: &ResultRow) -> Vec<CsvField> {
    let verified = row.summary.verified.as_ref();
    let count = |of: fn(&VerifiedBlocks) -> u64| {
        let count = verified.map(of);
        count.map_or_else(String::new, |count| count.to_string())
    };
    let failure = row.result.first_failure();
    vec![
        ("verified_blocks", count(|one| one.block_count)),
        ("mismatches", count(|one| one.mismatch_count)),
        ("unread_blocks", count(|one| one.unread_block_count)),
        (
            "failure",
            failure.map_or_else(String::new, |one| one.message.clone()),
        ),
    ]
}

fn identity_fields(run: &Run, row: &ResultRow) -> Vec<CsvField> {
    let result = row.result;
    let parameters: Vec<String> = result
        .parameters
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let statistic = match result.protocol.statistic {
        SummaryStatistic::Median => "median",
        SummaryStatistic::Minimum => "minimum",
    };
    let world = match run.world {
        MeasuredWorld::Host => "host",
        MeasuredWorld::Model => "model",
    };
    vec![
        ("run", run.run_id.clone()),
        ("label", run.user_label.clone().unwrap_or_default()),
        ("suite", run.suite_name.clone()),
        ("target", run.target_paths()),
        ("world", world.to_owned()),
        ("seed", run.seed.to_string()),
        ("started_unix_ms", run.started_unix_ms.to_string()),
        ("program", result.program.clone()),
        ("parameters", parameters.join(" ")),
        ("drives", result.drive_count.to_string()),
        ("filesystem", result.filesystem_type.clone()),
        ("size_bytes", result.size_bytes.to_string()),
        ("statistic", statistic.to_owned()),
        ("kept", row.summary.kept_count.to_string()),
    ]
}

fn speed_fields(row: &ResultRow) -> Vec<CsvField> {
    let summary = &row.summary;
    let interval = summary.speed_interval;
    let of = |end: fn(&ConfidenceInterval) -> f64| format_optional(interval.as_ref().map(end));
    vec![
        ("kb_per_s", format_number(summary.kb_per_s)),
        ("interval_low", of(|one| one.min)),
        ("interval_high", of(|one| one.max)),
        ("interval_confidence", of(|one| one.confidence)),
        (
            "interval_method",
            interval.map_or("", |one| one.method.name()).to_owned(),
        ),
        (
            "durable_kb_per_s",
            format_optional(summary.durable_kb_per_s),
        ),
        ("cpu_percent", format_number(summary.cpu_percent)),
        ("elapsed_s", format_number(summary.elapsed_s)),
        (
            "durable_elapsed_s",
            format_optional(summary.durable_elapsed_s),
        ),
        ("cpu_s", format_number(summary.cpu_s)),
        ("user_s", format_number(summary.user_s)),
        ("system_s", format_number(summary.system_s)),
    ]
}

fn count_fields(row: &ResultRow) -> Vec<CsvField> {
    let summary = &row.summary;
    vec![
        ("calls", format_number(summary.call_count)),
        ("mean_call_ns", format_optional(summary.mean_call_ns)),
        (
            "voluntary_switches",
            format_number(summary.voluntary_switches),
        ),
        (
            "involuntary_switches",
            format_number(summary.involuntary_switches),
        ),
        ("minor_faults", format_number(summary.minor_faults)),
        ("major_faults", format_number(summary.major_faults)),
        ("cache", row.result.cache_mode.mode_name().to_owned()),
        ("cache_verdict", summary.cache.name().to_owned()),
        ("device_share", format_optional(summary.device_share)),
        ("generator_share", format_optional(row.generator_share)),
    ]
}

const READ_HEADINGS: [&str; 6] = [
    "read_p50_ns",
    "read_p90_ns",
    "read_p99_ns",
    "read_p99_9_ns",
    "read_p99_99_ns",
    "read_max_ns",
];

const WRITE_HEADINGS: [&str; 6] = [
    "write_p50_ns",
    "write_p90_ns",
    "write_p99_ns",
    "write_p99_9_ns",
    "write_p99_99_ns",
    "write_max_ns",
];

fn latency_fields(
    headings: &[&'static str; 6],
    percentiles: Option<LatencyPercentiles>,
) -> Vec<CsvField> {
    let of = |one: LatencyPercentiles| {
        [
            one.p50_ns,
            one.p90_ns,
            one.p99_ns,
            one.p99_9_ns,
            one.p99_99_ns,
            Some(one.max_ns),
        ]
    };
    let text = |ns: Option<u64>| ns.map_or_else(String::new, |ns| ns.to_string());
    let fields = percentiles.map_or_else(Default::default, |one| of(one).map(text));
    headings.iter().copied().zip(fields).collect()
}

/// Returns the CSV fields of a program with several requests in flight; empty for a program with
/// one call after the other.
fn load_fields(
    load_summary: Option<&LoadSummary>,
    operations: &[OperationColumns],
) -> Vec<CsvField> {
    let of =
        |figure: fn(&LoadSummary) -> Option<f64>| format_optional(load_summary.and_then(figure));
    let mut fields = vec![
        ("depth", of(|load| Some(f64::from(load.queue_depth_max)))),
        ("workers", of(|load| Some(f64::from(load.worker_count)))),
        ("iops", of(|load| Some(load.iops))),
        ("iops_low", of(|load| Some(load.iops_interval?.min))),
        ("iops_high", of(|load| Some(load.iops_interval?.max))),
        ("mb_per_s", of(|load| Some(load.mb_per_s))),
        ("read_share", of(|load| load.read_share)),
        ("cpu_us_per_io", of(|load| load.cpu_us_per_io)),
        ("unfinished", of(|load| Some(load.unfinished_count as f64))),
    ];
    let response = load_summary.and_then(|load| load.response.as_ref());
    fields.extend(response_fields(headings!("response"), response));
    for (name, rate, headings) in operations {
        let mut made = load_summary
            .into_iter()
            .flat_map(|load| &load.operation_summaries);
        let made = made.find(|one| one.name == *name);
        fields.push((rate, format_optional(made.map(|one| one.iops))));
        let response = made.and_then(|one| one.response_latency.as_ref());
        fields.extend(response_fields(*headings, response));
    }
    fields
}

fn response_fields(headings: [&'static str; 6], latency: Option<&LatencySummary>) -> Vec<CsvField> {
    let of = |figure: fn(&LatencySummary) -> Option<f64>| format_optional(latency.and_then(figure));
    let figures = [
        of(|one| one.p50_us),
        of(|one| one.p99_us),
        of(|one| one.p99_9_us),
        of(|one| one.p99_99_us),
        of(|one| Some(one.max_us)),
        of(|one| Some(one.mean_us)),
    ];
    headings.into_iter().zip(figures).collect()
}

/// Returns the operations that a CSV file of these rows has columns for; `None` where no program
/// has several requests in flight.
fn choose_operation_columns<'v>(
    rows: impl Iterator<Item = &'v ResultRow<'v>> + Clone,
) -> Option<Vec<OperationColumns>> {
    let loads = || rows.clone().filter_map(|row| row.summary.load.as_ref());
    loads().next()?;
    let occurs = |(name, ..): &OperationColumns| {
        let mut made = loads().flat_map(|load| &load.operation_summaries);
        made.any(|one| one.name == *name)
    };
    let rare = RARE_OPERATION_COLUMNS.into_iter().filter(occurs);
    Some(OPERATION_COLUMNS.into_iter().chain(rare).collect())
}

pub(super) fn render_comparison(comparison: &Comparison) -> String {
    let records: Vec<Vec<CsvField>> = comparison
        .result_pairs
        .iter()
        .map(|pair| build_pair_record(comparison, pair))
        .collect();
    format_records(&records)
}

/// Returns the CSV fields of the compared quantity, unless every row compares KB/s.
fn build_comparison_record(comparison: &Comparison, pair: &ResultPair) -> Vec<CsvField> {
    let of_loads =
        |pair: &ResultPair| pair.quantity.is_primary() && pair.quantity != Quantity::KbPerS;
    if !comparison.result_pairs.iter().any(of_loads) {
        return Vec::new();
    }
    vec![
        ("base_figure", format_number(pair.base.figure)),
        ("figure", format_number(pair.other.figure)),
        ("base_p99_us", format_optional(pair.base.p99_us)),
        ("p99_us", format_optional(pair.other.p99_us)),
    ]
}

fn build_pair_record(comparison: &Comparison, pair: &ResultPair) -> Vec<CsvField> {
    let interval = pair.judgement.interval;
    let of = |end: fn(&ConfidenceInterval) -> f64| format_optional(interval.as_ref().map(end));
    let mut fields = vec![
        ("base", comparison.runs[0].id.clone()),
        ("run", comparison.runs[pair.run_index].id.clone()),
        ("program", pair.program_key.clone()),
        ("title", pair.title.clone()),
        ("quantity", pair.quantity.name().to_owned()),
        ("base_filesystem", pair.base.filesystem.clone()),
        ("filesystem", pair.other.filesystem.clone()),
        ("base_drives", pair.base.drive_count.to_string()),
        ("drives", pair.other.drive_count.to_string()),
        ("base_size_bytes", pair.base.size_bytes.to_string()),
        ("size_bytes", pair.other.size_bytes.to_string()),
        ("base_kept", pair.base.kept_count.to_string()),
        ("kept", pair.other.kept_count.to_string()),
        ("base_kb_per_s", format_number(pair.base.kb_per_s)),
        ("kb_per_s", format_number(pair.other.kb_per_s)),
        ("base_cpu_percent", format_number(pair.base.cpu_percent)),
        ("cpu_percent", format_number(pair.other.cpu_percent)),
    ];
    fields.extend(build_comparison_record(comparison, pair));
    fields.extend([
        ("ratio", format_optional(pair.judgement.ratio)),
        ("interval_low", of(|one| one.min)),
        ("interval_high", of(|one| one.max)),
        ("interval_confidence", of(|one| one.confidence)),
        (
            "interval_method",
            interval.map_or("", |one| one.method.name()).to_owned(),
        ),
        ("verdict", pair.describe_verdict()),
        ("warnings", pair.warnings.join("; ")),
    ]);
    fields
}

pub(super) fn format_number(value: f64) -> String {
    if value.is_finite() {
        value.to_string()
    } else {
        String::new()
    }
}

pub(super) fn format_optional(value: Option<f64>) -> String {
    value.map_or_else(String::new, format_number)
}

/// Formats CSV records as text; empty, without a heading, if there are none.
pub(super) fn format_records(records: &[Vec<CsvField>]) -> String {
    let mut out = String::new();
    if let Some(first) = records.first() {
        write_line(&mut out, first.iter().map(|(heading, _)| *heading));
    }
    for record in records {
        write_line(&mut out, record.iter().map(|(_, field)| field.as_str()));
    }
    out
}

fn write_line<'f>(out: &mut String, fields: impl Iterator<Item = &'f str>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            out.push(',');
        }
        *out += &escape_field(field);
    }
    *out += "\r\n";
}

/// Escapes one CSV field so that it is plain text to a spreadsheet.
pub(super) fn escape_field(field: &str) -> String {
    let text = escape_unprintable(field);
    let is_formula =
        text.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) && !is_number(&text);
    let guard = if is_formula { "'" } else { "" };
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
}

fn is_number(text: &str) -> bool {
    let of_numbers = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    text.bytes().all(of_numbers) && text.parse::<f64>().is_ok()
}
