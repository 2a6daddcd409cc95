//! Accuracy goals: the share of the published numbers that a model must match within given errors.

use super::{AccuracyCell, CellQuantity};
use serde::Serialize;

/// Number of published numbers whose error stays within one limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ErrorShare {
    /// Error limit: a share (0.05), or points of a CPU share (5).
    #[serde(rename = "within")]
    pub error_max: f64,
    /// Number of published numbers whose error is within the limit.
    #[serde(rename = "cells")]
    pub cell_count: usize,
    /// Share of all published numbers (0 to 1) that must be within the limit, such as 0.7.
    #[serde(rename = "asked")]
    pub share_required: f64,
}

/// Group of published numbers and how well the models meet its accuracy goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccuracyBar {
    /// Name of the group of published numbers that shares an accuracy goal.
    pub name: String,
    /// Number of published numbers in the group, each measurement once.
    #[serde(rename = "cells")]
    pub cell_count: usize,
    /// Number of published numbers in the group that are marked unexplained.
    #[serde(rename = "unexplained")]
    pub unexplained_count: usize,
    /// Number of published numbers within each error limit of the goal.
    #[serde(rename = "shares")]
    pub error_shares: Vec<ErrorShare>,
    /// Ids of the published numbers whose error exceeds the outer limit, if the group has one.
    /// Those marked unexplained are left out.
    #[serde(rename = "beyond")]
    pub cells_beyond_limit: Vec<String>,
    /// Outer limit of the error, which no published number of the group may exceed.
    #[serde(rename = "limit")]
    pub error_limit: Option<f64>,
    /// Whether the group of published numbers meets its whole accuracy goal.
    #[serde(rename = "met")]
    pub is_met: bool,
}

/// Accuracy goal for a group of published numbers.
struct BarRule {
    name: &'static str,
    includes_cell: fn(&AccuracyCell) -> bool,
    error_and_share: &'static [(f64, f64)],
    error_limit: Option<f64>,
}

const KRIDLE_MCKUSICK_ID: &str = "kridle-mckusick-1983";
const SPECK_BASS_ID: &str = "speck-bass-1984";

const PIZIALI_ZAM_ID: &str = "piziali-zam-1991";

const ZACHARIASSEN_ID: &str = "zachariassen-1987";

const KIRKENDALL_ID: &str = "kirkendall-1989";

const BAR_RULES: [BarRule; 9] = [
    BarRule {
        name: "one drive, MASSBUS controllers, KB/s",
        includes_cell: |cell| is_rate_cell(cell, 1) && !is_uda50_cell(cell),
        error_and_share: &[(0.05, 0.7), (0.10, 0.9)],
        error_limit: Some(0.20),
    },
    BarRule {
        name: "one drive, UDA50, KB/s",
        includes_cell: |cell| is_rate_cell(cell, 1) && is_uda50_cell(cell),
        error_and_share: &[(0.10, 0.8)],
        error_limit: Some(0.20),
    },
    BarRule {
        name: "two drives, KB/s, mean over phases",
        includes_cell: |cell| is_rate_cell(cell, 2),
        error_and_share: &[(0.10, 0.75), (0.20, 0.9)],
        error_limit: None,
    },
    BarRule {
        name: "one drive, CPU share, points",
        includes_cell: |cell| {
            cell.published == KRIDLE_MCKUSICK_ID
                && cell.quantity == CellQuantity::CpuPercent
                && cell.drives == 1
        },
        error_and_share: &[(5.0, 0.7), (10.0, 0.9)],
        error_limit: None,
    },
    BarRule {
        name: "dd on VME controllers, KB/s",
        includes_cell: |cell| {
            cell.published == ZACHARIASSEN_ID && cell.quantity == CellQuantity::KbPerS
        },
        error_and_share: &[(0.10, 0.8), (0.20, 0.9)],
        error_limit: None,
    },
    BarRule {
        name: "fsck, dump and restore, format and verify, elapsed",
        includes_cell: |cell| {
            cell.published == ZACHARIASSEN_ID
                && matches!(cell.quantity, CellQuantity::Seconds | CellQuantity::Minutes)
        },
        error_and_share: &[(0.10, 0.7), (0.20, 0.9)],
        error_limit: None,
    },
    BarRule {
        name: "blocks per second and their ratio",
        includes_cell: |cell| cell.published == SPECK_BASS_ID,
        error_and_share: &[(0.0, 1.0)],
        error_limit: None,
    },
    BarRule {
        name: "tracks and sectors by interleave, KB/s",
        includes_cell: |cell| cell.published == PIZIALI_ZAM_ID,
        error_and_share: &[(0.02, 1.0)],
        error_limit: None,
    },
    BarRule {
        name: "sequential read through the layers of Minix, KB/s",
        includes_cell: |cell| cell.published == KIRKENDALL_ID,
        error_and_share: &[(0.10, 0.9)],
        error_limit: None,
    },
];

fn is_rate_cell(cell: &AccuracyCell, drives: u32) -> bool {
    cell.published == KRIDLE_MCKUSICK_ID
        && cell.quantity == CellQuantity::KbPerS
        && cell.drives == drives
}

fn is_uda50_cell(cell: &AccuracyCell) -> bool {
    let target = cell.target.as_deref();
    target.is_some_and(|target| target.contains("uda50"))
}

/// Returns the accuracy result of each group that contains at least one of the given published
/// numbers.
pub fn measure_bars(cells: &[AccuracyCell]) -> Vec<AccuracyBar> {
    let bar = |rule: &BarRule| {
        let group: Vec<&AccuracyCell> = cells
            .iter()
            .filter(|cell| cell.counts_in_score() && (rule.includes_cell)(cell))
            .collect();
        (!group.is_empty()).then(|| measure_bar(rule, &group))
    };
    BAR_RULES.iter().filter_map(bar).collect()
}

/// Rounding tolerance for the comparison of an error with its limit, so that an error equal to the
/// limit is within it.
const ERROR_ROUNDING: f64 = 1e-9;

fn measure_bar(rule: &BarRule, group: &[&AccuracyCell]) -> AccuracyBar {
    let error = |cell: &AccuracyCell| cell.error.unwrap_or(0.0).abs();
    let shares: Vec<ErrorShare> = rule
        .error_and_share
        .iter()
        .map(|(within, share)| ErrorShare {
            error_max: *within,
            cell_count: group
                .iter()
                .filter(|cell| error(cell) <= within + ERROR_ROUNDING)
                .count(),
            share_required: *share,
        })
        .collect();
    let beyond: Vec<String> = group
        .iter()
        .filter(|cell| !cell.is_unexplained)
        .filter(|cell| {
            rule.error_limit
                .is_some_and(|limit| error(cell) > limit + ERROR_ROUNDING)
        })
        .map(|cell| cell.id.clone())
        .collect();
    let enough = |share: &ErrorShare| {
        share.cell_count as f64 >= share.share_required * group.len() as f64 - ERROR_ROUNDING
    };
    AccuracyBar {
        name: rule.name.to_owned(),
        cell_count: group.len(),
        unexplained_count: group.iter().filter(|cell| cell.is_unexplained).count(),
        is_met: shares.iter().all(enough) && beyond.is_empty(),
        error_shares: shares,
        cells_beyond_limit: beyond,
        error_limit: rule.error_limit,
    }
}
