//! Figures of the single targets where several ran a program concurrently, beside their sum.

use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::figures;
use super::view::{ResultRow, RunView};
use crate::summary::ResultSummary;
use diskperf_timeline::{MeasuredWorld, ProgramResult, Run};

/// Part of a result that one of several concurrent targets contributed.
pub(super) struct TargetPart<'r> {
    /// Name of the target, as the user gave it.
    pub(super) target: &'r str,
    pub(super) summary: ResultSummary,
}

/// Divides a result into the parts of its targets, in their order; empty for a single target, or
/// for a modelled system, whose drives are alike.
pub(super) fn split_by_target<'r>(run: &'r Run, result: &ProgramResult) -> Vec<TargetPart<'r>> {
    let targets: Vec<&str> = run.target_label.split(" + ").collect();
    let is_of_several = run.world == MeasuredWorld::Host && result.drive_count > 1;
    if !is_of_several || targets.len() != result.drive_count as usize {
        return Vec::new();
    }
    let part = |(drive, target)| TargetPart {
        target,
        summary: ResultSummary::from_result(&result_of_drive(result, drive)),
    };
    (0..).zip(targets).map(part).collect()
}

fn result_of_drive(result: &ProgramResult, drive: u32) -> ProgramResult {
    let mut part = result.clone();
    for repetition in &mut part.repetitions {
        repetition
            .workers
            .retain(|worker| worker.drive_index == drive);
    }
    part.drive_count = 1;
    part
}

/// Tabulates the parts of all targets, those of each program with their sum.
pub(super) fn build_blocks(view: &RunView<'_>) -> Vec<DocumentBlock> {
    let mut keys = Vec::new();
    let mut found: Vec<ResultSummary> = Vec::new();
    let measured = |row: &&ResultRow<'_>| row.summary.kept_count > 0;
    for row in view.rows.iter().filter(measured) {
        let parts = split_by_target(view.run, row.result);
        if parts.is_empty() {
            continue;
        }
        for part in parts {
            keys.push(format!("{}, {}", row.title, part.target));
            found.push(part.summary);
        }
        keys.push(format!("{}, sum", row.title));
        found.push(row.summary.clone());
    }
    if found.is_empty() {
        return Vec::new();
    }
    let speed = |one: &ResultSummary| {
        (
            figures::format_kb_per_s(one.kb_per_s),
            figures::format_cpu_percent(one.cpu_percent),
        )
    };
    let durable = |one: &ResultSummary| {
        one.durable_kb_per_s
            .map_or_else(String::new, figures::format_kb_per_s)
    };
    let columns = vec![
        Column::right_aligned_pairs("KB/s (CPU)", found.iter().map(speed).collect()),
        Column::right_aligned("durable\nKB/s", found.iter().map(durable).collect()),
    ];
    vec![
        DocumentBlock::Section(format!("Each target of {}", view.name)),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("program, target", keys),
            groups: vec![ColumnGroup::new("", columns)],
        }),
    ]
}
