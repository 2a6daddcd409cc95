//! Accuracy goals: the share of the published numbers that a model must match within given errors.

use super::{Cell, Quantity};
use serde::Serialize;

/// Number of published numbers whose error stays within one limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Error limit: a share (0.05), or points of a CPU share (5).
    pub within: f64,
    /// Number of published numbers whose error is within the limit.
    pub cells: usize,
    /// Share of all published numbers (0 to 1) that must be within the limit, such as 0.7.
    pub asked: f64,
}

/// Group of published numbers and how well the models meet its accuracy goal.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// Name of the group of published numbers that shares an accuracy goal.
    pub name: String,
    /// Number of published numbers in the group, each measurement once.
    pub cells: usize,
    /// Number of published numbers in the group that are marked unexplained.
    pub unexplained: usize,
    /// Number of published numbers within each error limit of the goal.
    pub shares: Vec<Share>,
    /// Ids of the published numbers whose error exceeds the outer limit, if the group has one.
    /// Those marked unexplained are left out.
    pub beyond: Vec<String>,
    /// Outer limit of the error, which no published number of the group may exceed.
    pub limit: Option<f64>,
    /// Whether the group of published numbers meets its whole accuracy goal.
    pub met: bool,
}

/// Accuracy goal for a group of published numbers.
struct BarRule {
    name: &'static str,
    includes: fn(&Cell) -> bool,
    shares: &'static [(f64, f64)],
    limit: Option<f64>,
}

const KRIDLE_MCKUSICK: &str = "kridle-mckusick-1983";
const SPECK_BASS: &str = "speck-bass-1984";

const PIZIALI_ZAM: &str = "piziali-zam-1991";

const ZACHARIASSEN: &str = "zachariassen-1987";

const KIRKENDALL: &str = "kirkendall-1989";

const BAR_RULES: [BarRule; 9] = [
    BarRule {
        name: "one drive, MASSBUS controllers, KB/s",
        includes: |cell| is_rate(cell, 1) && !is_uda50(cell),
        shares: &[(0.05, 0.7), (0.10, 0.9)],
        limit: Some(0.20),
    },
    BarRule {
        name: "one drive, UDA50, KB/s",
        includes: |cell| is_rate(cell, 1) && is_uda50(cell),
        shares: &[(0.10, 0.8)],
        limit: Some(0.20),
    },
    BarRule {
        name: "two drives, KB/s, mean over phases",
        includes: |cell| is_rate(cell, 2),
        shares: &[(0.10, 0.75), (0.20, 0.9)],
        limit: None,
    },
    BarRule {
        name: "one drive, CPU share, points",
        includes: |cell| {
            cell.published == KRIDLE_MCKUSICK
                && cell.quantity == Quantity::CpuPercent
                && cell.drives == 1
        },
        shares: &[(5.0, 0.7), (10.0, 0.9)],
        limit: None,
    },
    BarRule {
        name: "dd on VME controllers, KB/s",
        includes: |cell| cell.published == ZACHARIASSEN && cell.quantity == Quantity::KbPerS,
        shares: &[(0.10, 0.8), (0.20, 0.9)],
        limit: None,
    },
    BarRule {
        name: "fsck, dump and restore, format and verify, elapsed",
        includes: |cell| {
            cell.published == ZACHARIASSEN
                && matches!(cell.quantity, Quantity::Seconds | Quantity::Minutes)
        },
        shares: &[(0.10, 0.7), (0.20, 0.9)],
        limit: None,
    },
    BarRule {
        name: "blocks per second and their ratio",
        includes: |cell| cell.published == SPECK_BASS,
        shares: &[(0.0, 1.0)],
        limit: None,
    },
    BarRule {
        name: "tracks and sectors by interleave, KB/s",
        includes: |cell| cell.published == PIZIALI_ZAM,
        shares: &[(0.02, 1.0)],
        limit: None,
    },
    BarRule {
        name: "sequential read through the layers of Minix, KB/s",
        includes: |cell| cell.published == KIRKENDALL,
        shares: &[(0.10, 0.9)],
        limit: None,
    },
];

fn is_rate(cell: &Cell, drives: u32) -> bool {
    cell.published == KRIDLE_MCKUSICK && cell.quantity == Quantity::KbPerS && cell.drives == drives
}

fn is_uda50(cell: &Cell) -> bool {
    let target = cell.target.as_deref();
    target.is_some_and(|target| target.contains("uda50"))
}

/// Returns the accuracy result of each group that contains at least one of the given published
/// numbers.
pub fn bars(cells: &[Cell]) -> Vec<Bar> {
    let bar = |rule: &BarRule| {
        let group: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.counts() && (rule.includes)(cell))
            .collect();
        (!group.is_empty()).then(|| measure_bar(rule, &group))
    };
    BAR_RULES.iter().filter_map(bar).collect()
}

/// Rounding tolerance for the comparison of an error with its limit, so that an error equal to the
/// limit is within it.
const ROUNDING: f64 = 1e-9;

fn measure_bar(rule: &BarRule, group: &[&Cell]) -> Bar {
    let error = |cell: &Cell| cell.error.unwrap_or(0.0).abs();
    let shares: Vec<Share> = rule
        .shares
        .iter()
        .map(|(within, share)| Share {
            within: *within,
            cells: group
                .iter()
                .filter(|cell| error(cell) <= within + ROUNDING)
                .count(),
            asked: *share,
        })
        .collect();
    let beyond: Vec<String> = group
        .iter()
        .filter(|cell| !cell.unexplained)
        .filter(|cell| {
            rule.limit
                .is_some_and(|limit| error(cell) > limit + ROUNDING)
        })
        .map(|cell| cell.id.clone())
        .collect();
    let enough = |share: &Share| share.cells as f64 >= share.asked * group.len() as f64 - ROUNDING;
    Bar {
        name: rule.name.to_owned(),
        cells: group.len(),
        unexplained: group.iter().filter(|cell| cell.unexplained).count(),
        met: shares.iter().all(enough) && beyond.is_empty(),
        shares,
        beyond,
        limit: rule.limit,
    }
}
