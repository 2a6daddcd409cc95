//! Operations of a program on real storage by kind: their time by stage, and the timeline of a
//! typical one through all tasks that it waited for.

use super::super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use crate::explanation::ValueQuantiles;
use crate::explanation::chains::{OperationBreakdown, OperationTimeline, TimelineLink};
use crate::explanation::words::{format_percent, purpose_label, stage_label};
use diskperf_timeline::Nanoseconds;
use diskperf_timeline::units::format_nanoseconds;
use serde::Serialize;

/// Minimum share of all operations' time at which a kind of operation has tables of its own.
const KIND_SHARE_MIN: f64 = 0.02;
/// Minimum share of the time of its operations at which a part has a row of its own.
const ROW_SHARE_MIN: f64 = 0.01;
/// Maximum number of links in the timeline; of longer ones the first are shown.
const LINK_COUNT_MAX: usize = 40;

pub(super) fn build_blocks(breakdowns: &[OperationBreakdown]) -> Vec<DocumentBlock> {
    let all: u64 = breakdowns.iter().map(|one| one.total.0).sum();
    let is_large =
        |one: &&OperationBreakdown| one.total.0 as f64 >= KIND_SHARE_MIN * all.max(1) as f64;
    let shown = breakdowns.iter().filter(is_large).enumerate();
    shown
        .flat_map(|(index, one)| {
            let mut blocks = vec![
                DocumentBlock::Text(describe_kind(one)),
                DocumentBlock::Grid(build_part_grid(one)),
            ];
            // One timeline shows how the parts follow each other.
            if index == 0 {
                blocks.push(DocumentBlock::Text(describe_typical(one)));
                blocks.push(DocumentBlock::Grid(build_timeline_grid(&one.typical)));
            }
            blocks
        })
        .collect()
}

fn describe_kind(of: &OperationBreakdown) -> String {
    let incomplete = match of.incomplete_count {
        0 => String::new(),
        count => format!(
            "; of {count} of them events are missing, so that some of their time is unattributed"
        ),
    };
    format!(
        "{}, {} times: {} on average, median {}, p99 {}, max {}{incomplete}.",
        of.operation,
        of.operation_count,
        format_nanoseconds(of.mean()),
        format_nanoseconds(Nanoseconds(of.duration_ns.median)),
        format_nanoseconds(Nanoseconds(of.duration_ns.p99)),
        format_nanoseconds(Nanoseconds(of.duration_ns.max)),
    )
}

fn describe_typical(of: &OperationBreakdown) -> String {
    let links = of.typical.links.len();
    let shown = match links {
        0..=LINK_COUNT_MAX => String::new(),
        _ => format!(" (the first {LINK_COUNT_MAX} of {links} stages)"),
    };
    format!(
        "One {} of median duration, {}, from its start to its end{shown}:",
        of.operation,
        format_nanoseconds(of.typical.duration),
    )
}

/// Row of the table of an operation's parts.
struct PartRow {
    stage: String,
    purpose: String,
    device: String,
    total: Nanoseconds,
    /// Number of operations with this part; `None` for a sum of several.
    operation_count: Option<u64>,
}

fn list_rows(of: &OperationBreakdown) -> Vec<PartRow> {
    let limit = ROW_SHARE_MIN * of.total.0 as f64;
    let (large, small): (Vec<_>, Vec<_>) =
        (of.parts.iter()).partition(|part| part.total.0 as f64 >= limit);
    let mut rows: Vec<PartRow> = large
        .into_iter()
        .map(|part| PartRow {
            stage: stage_label(part.stage),
            purpose: purpose_label(part.purpose).to_owned(),
            device: part.device_name.clone().unwrap_or_default(),
            total: part.total,
            operation_count: Some(part.operation_count),
        })
        .collect();
    let sum_row = |stage: String, total, operation_count| PartRow {
        stage,
        purpose: String::new(),
        device: String::new(),
        total,
        operation_count,
    };
    if !small.is_empty() {
        let rest = small.iter().map(|part| part.total).sum();
        rows.push(sum_row(
            match small.len() {
                1 => "1 smaller part".to_owned(),
                count => format!("{count} smaller parts"),
            },
            rest,
            None,
        ));
    }
    rows.push(sum_row(
        "all".to_owned(),
        of.total,
        Some(of.operation_count),
    ));
    rows
}

fn build_part_grid(of: &OperationBreakdown) -> Grid {
    let rows = list_rows(of);
    let count = of.operation_count.max(1);
    let text = |heading: &str, cell: fn(&PartRow) -> String| {
        Column::left_aligned(heading, rows.iter().map(cell).collect())
    };
    let figures = |heading: &str, cell: &dyn Fn(&PartRow) -> String| {
        Column::right_aligned(heading, rows.iter().map(cell).collect())
    };
    let each = |row: &PartRow| format_us(Nanoseconds(row.total.0 / count));
    let share = |row: &PartRow| format_percent(row.total.0 as f64 / of.total.0.max(1) as f64);
    let seen = |row: &PartRow| {
        row.operation_count
            .map_or_else(String::new, |n| n.to_string())
    };
    Grid {
        key_column: text("stage", |row| row.stage.clone()),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                text("for", |row| row.purpose.clone()),
                text("on", |row| row.device.clone()),
                figures("µs each", &each),
                figures("share", &share),
                figures("in", &seen),
            ],
        )],
    }
}

fn build_timeline_grid(timeline: &OperationTimeline) -> Grid {
    let shown = &timeline.links[..timeline.links.len().min(LINK_COUNT_MAX)];
    let column = |heading: &str, cell: fn(&TimelineLink) -> String| {
        Column::left_aligned(heading, shown.iter().map(cell).collect())
    };
    let figures = |heading: &str, cell: fn(&TimelineLink) -> String| {
        Column::right_aligned(heading, shown.iter().map(cell).collect())
    };
    let task = |link: &TimelineLink| match &link.function_name {
        Some(function) => format!("{}: {function}", link.task_name),
        None => link.task_name.clone(),
    };
    Grid {
        key_column: column("stage", |link| stage_label(link.stage)),
        groups: vec![ColumnGroup::new(
            "",
            vec![
                figures("at µs", |link| format_us(link.offset)),
                figures("µs", |link| format_us(link.duration)),
                column("for", |link| purpose_label(link.purpose).to_owned()),
                column("on", |link| link.device_name.clone().unwrap_or_default()),
                column("task", task),
            ],
        )],
    }
}

fn format_us(ns: Nanoseconds) -> String {
    format!("{:.1}", ns.0 as f64 / 1000.0)
}

#[derive(Serialize)]
pub(super) struct OperationsJson<'e> {
    operation: &'e str,
    count: u64,
    /// Operations whose chain lacks events.
    incomplete: u64,
    total_ns: u64,
    duration_ns: ValueQuantiles,
    /// Time by stage and purpose; the sum is `total_ns`.
    parts: Vec<PartJson<'e>>,
    /// Operation of median duration.
    typical: TimelineJson<'e>,
    slowest: TimelineJson<'e>,
}

#[derive(Serialize)]
struct PartJson<'e> {
    stage: &'static str,
    purpose: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'e str>,
    ns: u64,
    operations: u64,
}

#[derive(Serialize)]
struct TimelineJson<'e> {
    duration_ns: u64,
    links: Vec<LinkJson<'e>>,
}

#[derive(Serialize)]
struct LinkJson<'e> {
    at_ns: u64,
    ns: u64,
    stage: &'static str,
    purpose: &'static str,
    task: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'e str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device: Option<&'e str>,
}

impl<'e> OperationsJson<'e> {
    pub(super) fn from_breakdown(of: &'e OperationBreakdown) -> Self {
        let parts = of.parts.iter().map(|part| PartJson {
            stage: part.stage.name(),
            purpose: part.purpose.name(),
            device: part.device_name.as_deref(),
            ns: part.total.0,
            operations: part.operation_count,
        });
        Self {
            operation: of.operation,
            count: of.operation_count,
            incomplete: of.incomplete_count,
            total_ns: of.total.0,
            duration_ns: of.duration_ns,
            parts: parts.collect(),
            typical: TimelineJson::from_timeline(&of.typical),
            slowest: TimelineJson::from_timeline(&of.slowest),
        }
    }
}

impl<'e> TimelineJson<'e> {
    fn from_timeline(of: &'e OperationTimeline) -> Self {
        let links = of.links.iter().map(|link| LinkJson {
            at_ns: link.offset.0,
            ns: link.duration.0,
            stage: link.stage.name(),
            purpose: link.purpose.name(),
            task: &link.task_name,
            function: link.function_name.as_deref(),
            device: link.device_name.as_deref(),
        });
        Self {
            duration_ns: of.duration.0,
            links: links.collect(),
        }
    }
}
