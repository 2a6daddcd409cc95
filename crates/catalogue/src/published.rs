//! The published numbers that the models are tests of, and the sets of them
//! that free parameters were calibrated on.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::names;
use diskperf_diagnostics::{Errors, Problem};
use diskperf_diagnostics::{Place, Text};

/// One printed value, with everything that was printed around it. What a
/// document does not say is `None`, `false` or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Cell {
    /// Names the cell for good: `DOCUMENT/TABLE/...`. `None` for statements
    /// that the accuracy card does not show.
    pub id: Option<String>,
    /// The system of the catalogue that the cell is a test of.
    pub target: Option<String>,
    /// The variant of that system.
    pub target_variant: Option<String>,
    /// Whether it counts in the accuracy card.
    pub scored: bool,
    /// The id of the cell where the same measurement is scored.
    pub same_as: Option<String>,
    /// Whether no model explains it. It is shown all the same.
    pub unexplained: bool,
    /// The file of the document.
    pub seed: String,
    /// What sort of value it is: `fs_throughput`, `statement`, ...
    pub kind: String,
    /// The table that it stands in: `T1`, or `text`.
    pub table: String,
    /// That table's title.
    pub table_title: String,
    /// The computer, as printed.
    pub system: String,
    /// The bus, as printed.
    pub bus: Option<String>,
    /// The controller, as printed.
    pub controller: Option<String>,
    /// The drive, as printed.
    pub drive_model: Option<String>,
    /// The document's own name of the configuration.
    pub variant: Option<String>,
    /// Block and fragment size, as printed: `8K/1K`.
    pub filesystem: Option<String>,
    /// The program: `write_8192`.
    pub test: Option<String>,
    /// How many drives ran the program at once.
    pub drives: Option<u32>,
    /// False where "n.m." or "?" is printed.
    #[serde(default = "measured")]
    pub measured: bool,
    /// Whether the authors suspect their hardware.
    pub suspect: bool,
    /// Total of all drives, in KB of 1024 bytes.
    pub kb_per_s: Option<f64>,
    /// What an earlier measurement gave.
    pub previous_kb_per_s: Option<f64>,
    /// Whether a CPU share is printed.
    pub cpu_given: bool,
    /// Sum of all programs' shares.
    pub cpu_percent: Option<f64>,
    /// Blocks of `block_bytes` per second.
    pub blocks_per_s: Option<f64>,
    /// The size of those blocks.
    pub block_bytes: Option<u64>,
    /// Elapsed time.
    pub seconds: Option<f64>,
    /// Elapsed time, printed in minutes.
    pub minutes: Option<f64>,
    /// Elapsed, user and system time of a command.
    pub real_s: Option<f64>,
    /// User time of a command.
    pub user_s: Option<f64>,
    /// System time of a command.
    pub sys_s: Option<f64>,
    /// The printed ratio to `ratio_to`.
    pub ratio: Option<f64>,
    /// What `ratio` compares with.
    pub ratio_to: Option<String>,
    /// The size of a call as printed.
    pub blocksize: Option<BlockSize>,
    /// The bits of a controller's cache with which it was measured.
    pub cache_bits: Option<String>,
    /// Sectors that the controller read ahead then.
    pub readahead_sectors: Option<u64>,
    /// The printed words for the ratio to a rotational delay of 4 ms.
    pub ratio_to_rotdelay_4: Option<String>,
    /// The interleave that was measured.
    pub interleave: Option<u64>,
    /// What a statement is about.
    pub quantity: Option<String>,
    /// The value of a statement.
    pub value: Option<f64>,
    /// The unit of that value.
    pub unit: Option<String>,
    /// Whether the text says "about".
    pub approximate: bool,
    /// The least that the words or a whole-second timer allow.
    pub printed_low: Option<f64>,
    /// The most that they allow.
    pub printed_high: Option<f64>,
}

/// The size of a call as a document prints it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum BlockSize {
    /// In bytes.
    Bytes(u64),
    /// In words: `8k`, `1 track`.
    Words(String),
}

impl std::fmt::Display for BlockSize {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(formatter, "{bytes}"),
            Self::Words(words) => formatter.write_str(words),
        }
    }
}

/// What is written is a measured value unless it says otherwise.
fn measured() -> bool {
    true
}

impl Cell {
    /// The document that printed it: `kridle-mckusick-1983`.
    pub fn document(&self) -> Option<&str> {
        self.id.as_deref()?.split('/').next()
    }

    /// The system that it tests as a target: `NAME` or `NAME:VARIANT`.
    pub fn full_target(&self) -> Option<String> {
        let target = self.target.as_deref()?;
        Some(match &self.target_variant {
            Some(variant) => format!("{target}:{variant}"),
            None => target.to_string(),
        })
    }
}

/// All published numbers.
#[derive(Debug, Clone)]
pub struct Published {
    /// Every cell, in the order of the files.
    pub cells: Vec<Cell>,
    /// Patterns of cell ids by the name of the set.
    sets: BTreeMap<String, Vec<String>>,
}

/// The file that names the sets; all others of the folder hold cells.
const CALIBRATION: &str = "published/calibration.toml";

#[derive(Deserialize)]
struct CellFile {
    #[serde(default)]
    cell: Vec<Cell>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CalibrationFile {
    sets: BTreeMap<String, Vec<String>>,
}

impl Published {
    pub(crate) fn load<'t>(
        texts: impl Iterator<Item = (&'t str, &'t Arc<Text>)>,
    ) -> Result<Published, Errors> {
        let mut published = Published {
            cells: Vec::new(),
            sets: BTreeMap::new(),
        };
        let mut problems = Vec::new();
        for (path, text) in texts {
            let loaded = if path == CALIBRATION {
                toml::from_str(text.content())
                    .map(|file: CalibrationFile| published.sets = file.sets)
            } else {
                toml::from_str(text.content())
                    .map(|file: CellFile| published.cells.extend(file.cell))
            };
            if let Err(error) = loaded {
                let place = Place::new(text, error.span().unwrap_or(0..0));
                problems.push(Problem::error(error.message()).at(&place, ""));
            }
        }
        Errors::none_of(problems).map(|()| published)
    }

    /// The cell of that id.
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.id.as_deref() == Some(id))
    }

    /// The documents that cells with an id come from, sorted.
    pub fn documents(&self) -> Vec<&str> {
        let mut documents: Vec<&str> = self.cells.iter().filter_map(Cell::document).collect();
        documents.sort_unstable();
        documents.dedup();
        documents
    }

    /// The cells of a document, in its order.
    ///
    /// # Errors
    ///
    /// An unknown document.
    pub fn of_document(&self, document: &str) -> Result<Vec<&Cell>, Errors> {
        let cells: Vec<&Cell> = self
            .cells
            .iter()
            .filter(|cell| cell.document() == Some(document))
            .collect();
        if cells.is_empty() {
            let problem = Problem::error(format!("the catalogue has no document `{document}`"))
                .help(names::suggestion(document, self.documents().into_iter()));
            Errors::none_of(vec![problem])?;
        }
        Ok(cells)
    }

    /// The names of the sets that free parameters are calibrated on, sorted.
    pub fn set_names(&self) -> impl Iterator<Item = &str> {
        self.sets.keys().map(String::as_str)
    }

    /// The ids of the cells of a set, in the order of the documents, each
    /// measurement once, under the id where it is scored.
    ///
    /// # Errors
    ///
    /// An unknown set, or a pattern of it that no cell has.
    pub fn calibration_set(&self, set: &str) -> Result<Vec<&str>, Errors> {
        let Some(patterns) = self.sets.get(set) else {
            let problem = Problem::error(format!("there is no calibration set `{set}`")).help(
                names::suggestion(set, self.set_names().collect::<Vec<_>>().into_iter()),
            );
            return Err(Errors::none_of(vec![problem]).expect_err("there is a problem"));
        };
        let ids = || self.cells.iter().filter_map(|cell| cell.id.as_deref());
        let unmatched: Vec<Problem> = patterns
            .iter()
            .filter(|pattern| !ids().any(|id| matches(pattern, id)))
            .map(|pattern| Problem::error(format!("set `{set}`: no cell is `{pattern}`")))
            .collect();
        Errors::none_of(unmatched)?;
        let mut chosen: Vec<&str> = Vec::new();
        for cell in &self.cells {
            let Some(id) = cell.id.as_deref() else {
                continue;
            };
            if patterns.iter().any(|pattern| matches(pattern, id)) {
                // A number that two tables print is one measurement.
                let id = cell.same_as.as_deref().unwrap_or(id);
                if !chosen.contains(&id) {
                    chosen.push(id);
                }
            }
        }
        Ok(chosen)
    }
}

/// Whether an id fits a pattern, in which `*` stands for any characters but `/`.
fn matches(pattern: &str, id: &str) -> bool {
    let patterns: Vec<&str> = pattern.split('/').collect();
    let parts: Vec<&str> = id.split('/').collect();
    patterns.len() == parts.len()
        && patterns
            .iter()
            .zip(&parts)
            .all(|(pattern, part)| part_matches(pattern, part))
}

fn part_matches(pattern: &str, part: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = part.strip_prefix(first) else {
        return false;
    };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
