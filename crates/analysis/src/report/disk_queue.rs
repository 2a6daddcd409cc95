//! Gains of orders of service by queue depth, as tables, JSON and CSV.

use super::csv::{Field, format_records, number};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::disk_queue::{Depth, DiskQueue, Order};
use diskperf_timeline::units::format_size;

pub(super) fn blocks(disk_queue: &DiskQueue) -> Vec<Block> {
    let heading = format!(
        "The queue of {}: random reads of {} over the whole disk, by the order of service",
        disk_queue.what,
        format_size(disk_queue.block_bytes)
    );
    let remarks = [
        Some("bound: the shortest positioning time among that many new requests, from the drive's seek curve; an order of service can approach it".to_owned()),
        Some("only the arm: without the firmware's time, caches and the link, which `diskperf run today26` has".to_owned()),
        describe_limits(disk_queue),
        parameters(disk_queue),
        starvation(disk_queue),
        describe_settings_without_effect(disk_queue),
    ];
    vec![
        Block::Heading(heading),
        Block::Grid(grid(disk_queue, "mean service, ms", |of| {
            format!("{:.2}", of.mean_ms)
        })),
        Block::Grid(grid(
            disk_queue,
            "requests/s, and the gain over depth 1",
            |of| format!("{:.0} x{:.2}", of.iops, of.gain),
        )),
        Block::Grid(grid(disk_queue, "p99 and longest response, ms", |of| {
            format!("{:.0} {:.0}", of.p99_ms, of.longest_ms)
        })),
        Block::List(remarks.into_iter().flatten().collect()),
    ]
}

/// Tabulates a figure for each order of service at each queue depth. The table of mean service
/// times also has the lower bound.
fn grid(disk_queue: &DiskQueue, title: &str, figure: impl Fn(&Order) -> String) -> Grid {
    let depths = || disk_queue.depths.iter();
    let names = disk_queue
        .depths
        .first()
        .map_or(&[][..], |first| &first.orders);
    let mut columns: Vec<Column> = names
        .iter()
        .enumerate()
        .map(|(number, order)| {
            let name = match order.name == disk_queue.own {
                true => format!("{}*", order.name),
                false => order.name.clone(),
            };
            let cells = depths().map(|depth| figure(&depth.orders[number]));
            Column::figures(&name, cells.collect())
        })
        .collect();
    if title.starts_with("mean") {
        let cells = depths().map(|depth| format!("{:.2}", depth.bound_ms));
        columns.push(Column::figures("bound", cells.collect()));
    }
    Grid {
        key: Column::figures("depth", depths().map(|of| of.depth.to_string()).collect()),
        groups: vec![Group::of(title, columns)],
    }
}

/// Describes the limits of the drive that the calculation leaves out.
fn describe_limits(disk_queue: &DiskQueue) -> Option<String> {
    let deepest = disk_queue.depths.last()?.depth;
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
fn parameters(disk_queue: &DiskQueue) -> Option<String> {
    let orders = &disk_queue.depths.first()?.orders;
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
fn starvation(disk_queue: &DiskQueue) -> Option<String> {
    let deepest = disk_queue.depths.last()?;
    let times = |of: &Order| of.longest_ms / of.mean_response_ms;
    let worst = deepest
        .orders
        .iter()
        .max_by(|a, b| times(a).total_cmp(&times(b)))?;
    let own = deepest.orders.iter().any(|of| of.name == disk_queue.own);
    let star = if own {
        "; *: the drive's own order"
    } else {
        ""
    };
    Some(format!(
        "at depth {}, the longest response of {} is {:.1} times its mean response{star}",
        deepest.depth,
        worst.name,
        times(worst)
    ))
}

fn describe_settings_without_effect(disk_queue: &DiskQueue) -> Option<String> {
    let settings = &disk_queue.without_effect;
    (!settings.is_empty())
        .then(|| format!("without effect on these figures: {}", settings.join(", ")))
}

pub(super) fn json(disk_queue: &DiskQueue) -> String {
    pretty(disk_queue)
}

/// Formats the gains as CSV, one line for each order of service at each queue depth.
pub(super) fn csv(disk_queue: &DiskQueue) -> String {
    let record = |depth: &Depth, of: &Order| -> Vec<Field> {
        vec![
            ("depth", depth.depth.to_string()),
            ("order", of.name.clone()),
            ("mean_ms", number(of.mean_ms)),
            ("bound_ms", number(depth.bound_ms)),
            ("iops", number(of.iops)),
            ("gain", number(of.gain)),
            ("mean_response_ms", number(of.mean_response_ms)),
            ("p99_ms", number(of.p99_ms)),
            ("longest_ms", number(of.longest_ms)),
        ]
    };
    let records: Vec<Vec<Field>> = disk_queue
        .depths
        .iter()
        .flat_map(|depth| depth.orders.iter().map(move |of| record(depth, of)))
        .collect();
    format_records(&records)
}
