//! Table of programs with several requests in flight. It has one line for each program and run, so
//! that a model stands below the drive that it models, and one for each operation where a program
//! has several.

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::unwritten;
use super::view::{ResultRow, RunView};
use crate::replay::ReplayFidelity;
use crate::statistics::{ConfidenceInterval, IntervalMethod};
use crate::summary::load::{LatencySummary, LoadSummary, OperationSummary};
use diskperf_timeline::{CacheMode, Engine};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum length of a title. Longer titles continue in the next line, and names of runs lose their
/// beginning.
const TITLE_LENGTH_MAX: usize = 24;

/// Tests whether a row belongs to this table, rather than to the table of KB/s.
pub(super) fn is_shown(row: &ResultRow) -> bool {
    row.summary.load.is_some()
}

#[derive(Default)]
struct LoadTableLine {
    key: String,
    iops: String,
    relative_half_width: String,
    mb_per_s: String,
    durable_rate: String,
    p50: (String, String),
    p99: (String, String),
    p99_9: String,
    max: String,
    cpu: String,
}

/// Rows of the table with one title, with the run that each belongs to: at most one row per run.
struct TitledRows<'a> {
    title: String,
    /// Position of the title in the suite of the first run that has it.
    order_in_suite: u32,
    rows: Vec<(&'a RunView<'a>, &'a ResultRow<'a>)>,
}

/// Builds the table for runs of one suite; empty where no program is of this kind.
pub(super) fn build_blocks(views: &[&RunView]) -> Vec<DocumentBlock> {
    let programs = group_by_title(views).into_iter();
    let lines: Vec<LoadTableLine> = programs
        .flat_map(|program| build_program_lines(program, views.len()))
        .collect();
    match lines.is_empty() {
        true => Vec::new(),
        false => vec![DocumentBlock::Grid(build_grid(&lines))],
    }
}

/// Groups the rows of all runs by title, in the order of the suite. It visits each row once, since
/// a job file may have thousands of sections.
fn group_by_title<'a>(views: &[&'a RunView<'a>]) -> Vec<TitledRows<'a>> {
    let mut found: Vec<TitledRows<'a>> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for &view in views {
        let mut title_counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &view.rows {
            *title_counts.entry(&row.title).or_default() += 1;
        }
        let mut titles_of_run = BTreeSet::new();
        for row in view.rows.iter().filter(|row| is_shown(row)) {
            let title = format_row_title(row, title_counts[row.title.as_str()] > 1);
            if !titles_of_run.insert(title.clone()) {
                continue;
            }
            let number = *numbers.entry(title.clone()).or_insert(found.len());
            if number == found.len() {
                found.push(TitledRows {
                    title,
                    order_in_suite: row.result.table_row,
                    rows: Vec::new(),
                });
            }
            found[number].rows.push((view, row));
        }
    }
    found.sort_by_key(|program| program.order_in_suite);
    found
}

/// Returns the title of a program, with the file system and the drives where its run has the title
/// twice.
fn format_row_title(row: &ResultRow, is_ambiguous: bool) -> String {
    let mut title = row.title.clone();
    if is_ambiguous {
        title += &format!(" {}", row.result.filesystem_type);
        if row.result.drive_count != 1 {
            title += &format!(", {} drives", row.result.drive_count);
        }
    }
    title
}

fn build_program_lines(program: TitledRows, run_count: usize) -> Vec<LoadTableLine> {
    let TitledRows { title, rows, .. } = program;
    if run_count == 1 {
        let lines = rows.iter();
        return lines
            .flat_map(|(_, row)| build_row_lines(row, title.clone(), ""))
            .collect();
    }
    let heading = LoadTableLine {
        key: title,
        ..LoadTableLine::default()
    };
    let of_runs = rows.iter().flat_map(|(view, row)| {
        let name = format!("  {}", truncate_name(&view.name));
        build_row_lines(row, name, "  ")
    });
    std::iter::once(heading).chain(of_runs).collect()
}

/// Shortens a long name from the left, since the end of a path says the most.
fn truncate_name(name: &str) -> String {
    let length = name.chars().count();
    // The indent before it is two columns wide.
    let most = TITLE_LENGTH_MAX - 2;
    match length > most {
        true => {
            let tail = name.chars().skip(length - most + 1);
            std::iter::once('…').chain(tail).collect()
        }
        false => name.to_owned(),
    }
}

/// Returns the table lines of one program of a run: its own, and those of its operations where it
/// has several.
fn build_row_lines(row: &ResultRow, key: String, indent: &str) -> Vec<LoadTableLine> {
    let Some(load) = &row.summary.load else {
        return Vec::new();
    };
    let mut lines = vec![LoadTableLine {
        key,
        iops: figures::format_iops(load.iops)
            + row.summary.cache.table_mark()
            + unwritten::mark_of_share(row.summary.unwritten_share),
        relative_half_width: format_relative_half_width(load.iops_interval, load.iops),
        mb_per_s: format_mb_per_s(load.mb_per_s),
        durable_rate: format_durable_rate(row),
        cpu: shown_cpu_us(load).map_or_else(String::new, figures::format_us),
        ..build_response_line(load.response.as_ref())
    }];
    if load.operation_summaries.len() > 1 {
        let each = load
            .operation_summaries
            .iter()
            .map(|one| build_operation_line(one, indent));
        lines.extend(each);
    }
    lines
}

fn build_operation_line(operation_summary: &OperationSummary, indent: &str) -> LoadTableLine {
    LoadTableLine {
        key: format!("{indent}  {}", operation_summary.name),
        iops: figures::format_iops(operation_summary.iops),
        mb_per_s: format_mb_per_s(operation_summary.mb_per_s),
        ..build_response_line(operation_summary.response_latency.as_ref())
    }
}

fn build_response_line(found: Option<&LatencySummary>) -> LoadTableLine {
    let Some(latency) = found else {
        return LoadTableLine::default();
    };
    let told = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), figures::format_us);
    let with_interval = |us: Option<f64>, interval| {
        (
            told(us),
            format_relative_half_width(interval, us.unwrap_or(0.0)),
        )
    };
    LoadTableLine {
        p50: with_interval(latency.p50_us, latency.p50_interval),
        p99: with_interval(latency.p99_us, latency.p99_interval),
        p99_9: told(latency.p99_9_us),
        max: figures::format_us(latency.max_us),
        ..LoadTableLine::default()
    }
}

/// Formats a rate in MB/s; empty for operations that move no bytes.
fn format_mb_per_s(mb_per_s: f64) -> String {
    match mb_per_s > 0.0 {
        true => figures::format_mb_per_s(mb_per_s),
        false => String::new(),
    }
}

/// Formats the rate in MB/s until everything was synced; empty where the page cache held nothing
/// back.
fn format_durable_rate(row: &ResultRow) -> String {
    let cached = row.result.cache_mode != CacheMode::Direct;
    let durable = row.summary.durable_kb_per_s.filter(|_| cached);
    durable.map_or_else(String::new, |kb_per_s| {
        format_mb_per_s(kb_per_s * 1024.0 / 1e6)
    })
}

fn format_relative_half_width(interval: Option<ConfidenceInterval>, point: f64) -> String {
    let interval = interval.filter(|one| one.method != IntervalMethod::ExactValue);
    interval.map_or_else(String::new, |one| figures::format_plus_minus(&one, point))
}

fn build_grid(lines: &[LoadTableLine]) -> Grid {
    let text =
        |of: fn(&LoadTableLine) -> &String| lines.iter().map(|line| of(line).clone()).collect();
    let pairs = |of: fn(&LoadTableLine) -> &(String, String)| {
        lines.iter().map(|line| of(line).clone()).collect()
    };
    Grid {
        key_column: Column::left_aligned_folded(
            "program",
            text(|line| &line.key),
            TITLE_LENGTH_MAX,
        ),
        groups: vec![
            ColumnGroup::new(
                "",
                vec![
                    Column::right_aligned("IOPS", text(|line| &line.iops)),
                    Column::right_aligned("95 %", text(|line| &line.relative_half_width)),
                    Column::right_aligned("MB/s", text(|line| &line.mb_per_s)),
                    Column::right_aligned("durable", text(|line| &line.durable_rate)),
                ],
            ),
            ColumnGroup::new(
                "",
                vec![
                    Column::right_aligned_pairs("p50", pairs(|line| &line.p50)),
                    Column::right_aligned_pairs("p99", pairs(|line| &line.p99)),
                    Column::right_aligned("p99.9", text(|line| &line.p99_9)),
                    Column::right_aligned("max", text(|line| &line.max)),
                    Column::right_aligned("CPU/IO", text(|line| &line.cpu)),
                ],
            ),
        ],
    }
}

/// Returns the processor time per request, in microseconds; `None` where the table leaves it out,
/// as for a modelled drive without a computer.
fn shown_cpu_us(load: &LoadSummary) -> Option<f64> {
    load.cpu_us_per_io.filter(|us| *us > 0.0)
}

/// Describes the columns of the table of programs with several requests in flight; empty without
/// such a program.
pub(super) fn list_legend<'a>(
    rows: impl Iterator<Item = &'a ResultRow<'a>> + Clone,
) -> Vec<String> {
    let loads = || rows.clone().filter_map(|row| row.summary.load.as_ref());
    if loads().next().is_none() {
        return Vec::new();
    }
    let mut columns = "IOPS, MB/s (10^6 bytes) until the last request was complete; p50 ... max: from a request's start until its completion was taken".to_owned();
    if loads().any(|load| shown_cpu_us(load).is_some()) {
        columns += "; CPU/IO: processor time per request";
    }
    let mut lines = vec![columns];
    if loads().any(|load| {
        load.operation_summaries
            .iter()
            .any(|one| one.name == "commit")
    }) {
        lines.push(
            "for programs that commit, commits count: IOPS are commits a second, p50 ... max from the first write until the sync returned"
                .to_owned(),
        );
    }
    if rows
        .clone()
        .any(|row| row.summary.load.is_some() && row.summary.kept_count > 1)
    {
        lines.push(
            "p50, p99: the median of the repetitions that count, each with its own; p99.9, max: of all their requests together"
                .to_owned(),
        );
    }
    if rows.clone().any(|row| !format_durable_rate(row).is_empty()) {
        lines.push("durable: MB/s until all was synced".to_owned());
    }
    if loads().any(|load| load.issue_lag_us.is_some()) {
        lines.push(
            "in open loop, a response counts from the intended issue of its request".to_owned(),
        );
    }
    let mut engines: Vec<Engine> = Vec::new();
    for engine in loads().flat_map(|load| &load.engines) {
        if *engine != Engine::Model && !engines.contains(engine) {
            engines.push(*engine);
        }
    }
    let names: Vec<&str> = engines.into_iter().map(engine_label).collect();
    if !names.is_empty() {
        lines.push(format!("load generator: {}", names.join(", ")));
    }
    lines
}

/// Describes the method by which requests are submitted.
pub(super) fn engine_label(engine: Engine) -> &'static str {
    match engine {
        Engine::IoUring => "io_uring",
        Engine::IoUringSqPoll => "io_uring with a polling thread of the kernel",
        Engine::Threads => "a pool of threads with preadv2 and pwritev2",
        Engine::Mapped => "copies to and from memory-mapped files",
        Engine::Null => "nothing: each request completes on submission",
        Engine::Model => "a model",
        Engine::Calls => "one system call after the other",
    }
}

/// Describes how well the load generator kept to its schedule, for each program in open loop.
pub(super) fn list_notes(view: &RunView) -> Vec<String> {
    let note = |row: &ResultRow| {
        let load = row.summary.load.as_ref()?;
        // Of a replay more is said.
        let lag = load
            .issue_lag_us
            .filter(|_| ReplayFidelity::from_result(row.result).is_none())?;
        let p99 = lag.p99_us.unwrap_or(lag.max_us);
        let late = format!(
            "{}: requests were issued {} late at p99, {} at most",
            row.title,
            figures::format_us(p99),
            figures::format_us(lag.max_us)
        );
        Some(match load.unfinished_count {
            0 => late,
            unfinished => format!(
                "{late}; {unfinished} had arrived and were not complete at the end, so that the storage may not keep up with the rate"
            ),
        })
    };
    view.rows.iter().filter_map(note).collect()
}

/// Tabulates all percentiles of each operation: of the whole response time, and of the caller's
/// wait to submit.
pub(super) fn build_latency_blocks(view: &RunView) -> Vec<DocumentBlock> {
    let mut titles = Vec::new();
    let mut found: Vec<&LatencySummary> = Vec::new();
    for row in &view.rows {
        for one in row
            .summary
            .load
            .iter()
            .flat_map(|load| &load.operation_summaries)
        {
            let parts = [
                ("", &one.response_latency),
                (", submit", &one.submit_latency),
            ];
            for (part, latency) in parts {
                if let Some(latency) = latency {
                    titles.push(format!("{}, {}{part}", row.title, one.name));
                    found.push(latency);
                }
            }
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let told = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), figures::format_us);
    let column = |heading: &str, of: &dyn Fn(&LatencySummary) -> String| {
        Column::right_aligned(heading, found.iter().map(|one| of(one)).collect())
    };
    let sure =
        |heading: &str, of: fn(&LatencySummary) -> (Option<f64>, Option<ConfidenceInterval>)| {
            let cell = |one: &&LatencySummary| {
                let (us, interval) = of(one);
                (
                    told(us),
                    format_relative_half_width(interval, us.unwrap_or(0.0)),
                )
            };
            Column::right_aligned_pairs(heading, found.iter().map(cell).collect())
        };
    let columns = vec![
        column("requests", &|one| one.request_count.to_string()),
        sure("50 %", |one| (one.p50_us, one.p50_interval)),
        sure("99 %", |one| (one.p99_us, one.p99_interval)),
        column("99.9 %", &|one| told(one.p99_9_us)),
        column("99.99 %", &|one| told(one.p99_99_us)),
        column("longest", &|one| figures::format_us(one.max_us)),
        column("mean", &|one| figures::format_us(one.mean_us)),
    ];
    vec![
        DocumentBlock::Section(
            "Response of a request; submit: of that, in the call that submitted".to_owned(),
        ),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("program, operation", titles),
            groups: columns
                .into_iter()
                .map(|column| ColumnGroup::new("", vec![column]))
                .collect(),
        }),
    ]
}

/// Describes the load of a program: how its requests were made and submitted.
pub(super) fn describe_load(load: &LoadSummary) -> String {
    let plural = if load.worker_count == 1 { "" } else { "s" };
    format!(
        "depth {}, {} worker{plural}",
        load.queue_depth_max, load.worker_count
    )
}
