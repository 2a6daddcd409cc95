//! Figures of the single targets where several ran a program concurrently, beside their sum.

use super::document::{Block, Column, Grid, Group};
use super::figures;
use super::view::{Row, View};
use crate::summary::Summary;
use diskperf_timeline::{MeasuredWorld, ProgramResult, Run};

/// Part of a result that one of several concurrent targets contributed.
pub(super) struct TargetPart<'r> {
    /// Name of the target, as the user gave it.
    pub(super) target: &'r str,
    pub(super) summary: Summary,
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
        summary: Summary::from_result(&result_of_drive(result, drive)),
    };
    (0..).zip(targets).map(part).collect()
}

/// Returns a copy of a result with the workers of one drive only.
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
pub(super) fn blocks(view: &View<'_>) -> Vec<Block> {
    let mut keys = Vec::new();
    let mut found: Vec<Summary> = Vec::new();
    let measured = |row: &&Row<'_>| row.summary.kept > 0;
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
    let speed = |one: &Summary| (figures::speed(one.kb_per_s), figures::cpu(one.cpu_percent));
    let durable = |one: &Summary| {
        one.durable_kb_per_s
            .map_or_else(String::new, figures::speed)
    };
    let columns = vec![
        Column::pairs("KB/s (CPU)", found.iter().map(speed).collect()),
        Column::figures("durable\nKB/s", found.iter().map(durable).collect()),
    ];
    vec![
        Block::Section(format!("Each target of {}", view.name)),
        Block::Grid(Grid {
            key: Column::words("program, target", keys),
            groups: vec![Group::new("", columns)],
        }),
    ]
}
