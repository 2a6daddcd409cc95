//! Gains of orders of service by queue depth, as tables, JSON and CSV.

use super::csv::{CsvField, format_number, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::disk_queue::{DepthFigures, DiskQueueReport, OrderFigures};
use diskperf_timeline::units::format_size;

pub(super) fn build_blocks(disk_queue: &DiskQueueReport) -> Vec<DocumentBlock> {
    let heading = format!(
        "The queue of {}: random reads of {} over the whole disk, by the order of service",
        disk_queue.target,
        format_size(disk_queue.block_bytes)
    );
    let remarks = [
        Some("bound: the shortest positioning time among that many new requests, from the drive's seek curve; an order of service can approach it".to_owned()),
        Some("only the arm: without the firmware's time, caches and the link, which `diskperf run today26` has".to_owned()),
        describe_age_limit(disk_queue),
        describe_parameters(disk_queue),
        describe_starvation(disk_queue),
        describe_settings_without_effect(disk_queue),
    ];
    vec![
        DocumentBlock::Heading(heading),
        DocumentBlock::Grid(build_grid(disk_queue, "mean service, ms", |of| {
            format!("{:.2}", of.mean_service_ms)
        })),
        DocumentBlock::Grid(build_grid(
            disk_queue,
            "requests/s, and the gain over depth 1",
            |of| format!("{:.0} x{:.2}", of.iops, of.gain_over_fcfs),
        )),
        DocumentBlock::Grid(build_grid(
            disk_queue,
            "p99 and longest response, ms",
            |of| format!("{:.0} {:.0}", of.p99_response_ms, of.max_response_ms),
        )),
        DocumentBlock::List(remarks.into_iter().flatten().collect()),
    ]
}

/// Tabulates a figure for each order of service at each queue depth. The table of mean service
/// times also has the lower bound.
fn build_grid(
    disk_queue: &DiskQueueReport,
    title: &str,
    figure: impl Fn(&OrderFigures) -> String,
) -> Grid {
    let depths = || disk_queue.depths.iter();
    let names = disk_queue
        .depths
        .first()
        .map_or(&[][..], |first| &first.order_figures);
    let mut columns: Vec<Column> = names
        .iter()
        .enumerate()
        .map(|(number, order)| {
            let name = match order.name == disk_queue.own_order {
                true => format!("{}*", order.name),
                false => order.name.clone(),
            };
            let cells = depths().map(|depth| figure(&depth.order_figures[number]));
            Column::right_aligned(&name, cells.collect())
        })
        .collect();
    if title.starts_with("mean") {
        let cells = depths().map(|depth| format!("{:.2}", depth.service_bound_ms));
        columns.push(Column::right_aligned("bound", cells.collect()));
    }
    Grid {
        key_column: Column::right_aligned(
            "depth",
            depths().map(|of| of.queue_depth.to_string()).collect(),
        ),
        groups: vec![ColumnGroup::new(title, columns)],
    }
}

/// Describes the limits of the drive that the calculation leaves out.
fn describe_age_limit(disk_queue: &DiskQueueReport) -> Option<String> {
    let deepest = disk_queue.depths.last()?.queue_depth;
    let mut limits = Vec::new();
    if let Some(limit_ms) = disk_queue.age_limit_ms {
        limits.push(format!(
            "without the age limit, at which the drive serves a request next once it has waited {limit_ms} ms"
        ));
    }
    if deepest > disk_queue.queue_depth {
        limits.push(format!(
            "the drive accepts {} commands in its queue: greater depths show the gain if it accepted more",
            disk_queue.queue_depth
        ));
    }
    (!limits.is_empty()).then(|| limits.join("; "))
}

/// Describes the parameters of those orders of service that have one.
fn describe_parameters(disk_queue: &DiskQueueReport) -> Option<String> {
    let orders = &disk_queue.depths.first()?.order_figures;
    let has = |name: &str| orders.iter().any(|of| of.name == name);
    let mut parameters = Vec::new();
    if has("v_scan") {
        parameters.push(format!(
            "v_scan adds {} of the stroke against the arm's direction",
            disk_queue.v_scan_share
        ));
    }
    if has("aged_sptf") {
        parameters.push(format!(
            "a second of waiting is worth {} ms to aged_sptf",
            disk_queue.aged_sptf_ms_per_s
        ));
    }
    (!parameters.is_empty()).then(|| parameters.join("; "))
}

/// Describes the order of service with the longest response relative to its mean, at the deepest
/// queue.
fn describe_starvation(disk_queue: &DiskQueueReport) -> Option<String> {
    let deepest = disk_queue.depths.last()?;
    let times = |of: &OrderFigures| of.max_response_ms / of.mean_response_ms;
    let worst = deepest
        .order_figures
        .iter()
        .max_by(|a, b| times(a).total_cmp(&times(b)))?;
    let own = deepest
        .order_figures
        .iter()
        .any(|of| of.name == disk_queue.own_order);
    let star = if own {
        "; *: the drive's own order"
    } else {
        ""
    };
    Some(format!(
        "at depth {}, the longest response of {} is {:.1} times its mean response{star}",
        deepest.queue_depth,
        worst.name,
        times(worst)
    ))
}

fn describe_settings_without_effect(disk_queue: &DiskQueueReport) -> Option<String> {
    let settings = &disk_queue.settings_without_effect;
    (!settings.is_empty())
        .then(|| format!("without effect on these figures: {}", settings.join(", ")))
}

pub(super) fn render_json(disk_queue: &DiskQueueReport) -> String {
    render_pretty(disk_queue)
}

/// Formats the gains as CSV, one line for each order of service at each queue depth.
pub(super) fn render_csv(disk_queue: &DiskQueueReport) -> String {
    let record = |depth: &DepthFigures, of: &OrderFigures| -> Vec<CsvField> {
        vec![
            ("depth", depth.queue_depth.to_string()),
            ("order", of.name.clone()),
            ("mean_ms", format_number(of.mean_service_ms)),
            ("bound_ms", format_number(depth.service_bound_ms)),
            ("iops", format_number(of.iops)),
            ("gain", format_number(of.gain_over_fcfs)),
            ("mean_response_ms", format_number(of.mean_response_ms)),
            ("p99_ms", format_number(of.p99_response_ms)),
            ("longest_ms", format_number(of.max_response_ms)),
        ]
    };
    let records: Vec<Vec<CsvField>> = disk_queue
        .depths
        .iter()
        .flat_map(|depth| depth.order_figures.iter().map(move |of| record(depth, of)))
        .collect();
    format_records(&records)
}
