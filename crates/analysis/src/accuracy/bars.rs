//! How many numbers are as near as was asked.

use super::{Cell, Quantity};
use serde::Serialize;

/// How many cells have an error of at most this much.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The error: a share (0.05), or points of a CPU share (5).
    pub within: f64,
    /// Cells that have it.
    pub cells: usize,
    /// How many of all cells were asked to have it (0.7).
    pub asked: f64,
}

/// One group of cells and how near they are.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bar {
    /// Which cells.
    pub name: String,
    /// How many there are, each measurement once.
    pub cells: usize,
    /// How many of them are marked unexplained.
    pub unexplained: usize,
    /// How many are within what.
    pub shares: Vec<Share>,
    /// Of those that are not marked unexplained, the ids that miss the outer
    /// limit, if the group has one.
    pub beyond: Vec<String>,
    /// The outer limit.
    pub limit: Option<f64>,
    /// Whether all that was asked is met.
    pub met: bool,
}

/// What is asked of a group of cells.
struct Asked {
    name: &'static str,
    of: fn(&Cell) -> bool,
    shares: &'static [(f64, f64)],
    limit: Option<f64>,
}

/// Kridle and McKusick 1983's document.
const KRIDLE_MCKUSICK: &str = "kridle-mckusick-1983";
/// Speck and Bass 1984's.
const SPECK_BASS: &str = "speck-bass-1984";

/// Piziali and Zam 1991's.
const PIZIALI_ZAM: &str = "piziali-zam-1991";

/// Zachariassen 1987's.
const ZACHARIASSEN: &str = "zachariassen-1987";

/// Kirkendall 1989's.
const KIRKENDALL: &str = "kirkendall-1989";

const ASKED: [Asked; 9] = [
    Asked {
        name: "one drive, MASSBUS controllers, KB/s",
        of: |cell| is_rate(cell, 1) && !is_uda50(cell),
        shares: &[(0.05, 0.7), (0.10, 0.9)],
        limit: Some(0.20),
    },
    Asked {
        name: "one drive, UDA50, KB/s",
        of: |cell| is_rate(cell, 1) && is_uda50(cell),
        shares: &[(0.10, 0.8)],
        limit: Some(0.20),
    },
    Asked {
        name: "two drives, KB/s, mean over phases",
        of: |cell| is_rate(cell, 2),
        shares: &[(0.10, 0.75), (0.20, 0.9)],
        limit: None,
    },
    Asked {
        name: "one drive, CPU share, points",
        of: |cell| {
            cell.published == KRIDLE_MCKUSICK
                && cell.quantity == Quantity::CpuPercent
                && cell.drives == 1
        },
        shares: &[(5.0, 0.7), (10.0, 0.9)],
        limit: None,
    },
    Asked {
        name: "dd on VME controllers, KB/s",
        of: |cell| cell.published == ZACHARIASSEN && cell.quantity == Quantity::KbPerS,
        shares: &[(0.10, 0.8), (0.20, 0.9)],
        limit: None,
    },
    Asked {
        name: "fsck, dump and restore, format and verify, elapsed",
        of: |cell| {
            cell.published == ZACHARIASSEN
                && matches!(cell.quantity, Quantity::Seconds | Quantity::Minutes)
        },
        shares: &[(0.10, 0.7), (0.20, 0.9)],
        limit: None,
    },
    Asked {
        name: "blocks per second and their ratio",
        of: |cell| cell.published == SPECK_BASS,
        shares: &[(0.0, 1.0)],
        limit: None,
    },
    Asked {
        name: "tracks and sectors by interleave, KB/s",
        of: |cell| cell.published == PIZIALI_ZAM,
        shares: &[(0.02, 1.0)],
        limit: None,
    },
    Asked {
        name: "sequential read through the layers of Minix, KB/s",
        of: |cell| cell.published == KIRKENDALL,
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

/// The bars of those groups that have any cell here.
pub fn bars(cells: &[Cell]) -> Vec<Bar> {
    let bar = |asked: &Asked| {
        let group: Vec<&Cell> = cells
            .iter()
            .filter(|cell| cell.counts() && (asked.of)(cell))
            .collect();
        (!group.is_empty()).then(|| measure(asked, &group))
    };
    ASKED.iter().filter_map(bar).collect()
}

/// A printed limit is reached, not passed, by what equals it but for the last
/// digits of arithmetic.
const ROUNDING: f64 = 1e-9;

fn measure(asked: &Asked, group: &[&Cell]) -> Bar {
    let error = |cell: &Cell| cell.error.unwrap_or(0.0).abs();
    let shares: Vec<Share> = asked
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
            asked
                .limit
                .is_some_and(|limit| error(cell) > limit + ROUNDING)
        })
        .map(|cell| cell.id.clone())
        .collect();
    let enough = |share: &Share| share.cells as f64 >= share.asked * group.len() as f64 - ROUNDING;
    Bar {
        name: asked.name.to_owned(),
        cells: group.len(),
        unexplained: group.iter().filter(|cell| cell.unexplained).count(),
        met: shares.iter().all(enough) && beyond.is_empty(),
        shares,
        beyond,
        limit: asked.limit,
    }
}
