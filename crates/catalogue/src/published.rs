//! Published measurements that test the models, and the sets of them on which free parameters were
//! calibrated.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::names;
use diskperf_diagnostics::{Errors, Problem};
use diskperf_diagnostics::{SourceSpan, Text};

/// Published value with its context in the document. A property that the document does not state is
/// `None`, `false` or empty.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PublishedCell {
    /// Permanent id of the value: `DOCUMENT/TABLE/...`. `None` for statements that the accuracy
    /// card does not show.
    pub id: Option<String>,
    /// System of the catalogue that this value tests.
    pub target: Option<String>,
    /// Variant of the tested system.
    pub target_variant: Option<String>,
    /// Whether the value counts in the accuracy card.
    #[serde(rename = "scored")]
    pub is_scored: bool,
    /// Id of the value under which the same measurement is scored.
    #[serde(rename = "same_as")]
    pub scored_as: Option<String>,
    /// Whether no model explains the value. The accuracy card shows it nevertheless.
    #[serde(rename = "unexplained")]
    pub is_unexplained: bool,
    /// File with the values of the document.
    #[serde(rename = "seed")]
    pub values_file: String,
    /// Kind of the value, such as `fs_throughput` or `statement`.
    pub kind: String,
    /// Label of the table that contains the value, such as `T1`; `text` for running text.
    pub table: String,
    /// Title of the document's table that contains the value.
    pub table_title: String,
    /// Computer as named in the document.
    pub system: String,
    /// Bus as named in the document.
    pub bus: Option<String>,
    /// Controller as named in the document.
    pub controller: Option<String>,
    /// Drive as named in the document.
    pub drive_model: Option<String>,
    /// Name of the configuration in the document.
    pub variant: Option<String>,
    /// Block and fragment size as printed, such as `8K/1K`.
    pub filesystem: Option<String>,
    /// Test program, such as `write_8192`.
    pub test: Option<String>,
    /// Number of drives that ran the program in parallel.
    pub drives: Option<u32>,
    /// Whether a value was measured; false if the document prints "n.m." or "?".
    #[serde(default = "default_measured")]
    #[serde(rename = "measured")]
    pub is_measured: bool,
    /// Whether the authors suspect a fault of their hardware.
    #[serde(rename = "suspect")]
    pub is_suspect: bool,
    /// Total throughput of all drives, in KB of 1024 bytes per second.
    pub kb_per_s: Option<f64>,
    /// Throughput in an earlier measurement, in KB of 1024 bytes per second.
    pub previous_kb_per_s: Option<f64>,
    /// Whether the document gives a CPU share.
    #[serde(rename = "cpu_given")]
    pub has_cpu_share: bool,
    /// CPU share of all programs together, in percent.
    pub cpu_percent: Option<f64>,
    /// Rate of blocks of `block_bytes`, per second.
    pub blocks_per_s: Option<f64>,
    /// Size of the blocks counted by `blocks_per_s`, in bytes.
    pub block_bytes: Option<u64>,
    /// Elapsed time, in seconds.
    pub seconds: Option<f64>,
    /// Elapsed time as printed, in minutes.
    pub minutes: Option<f64>,
    /// Elapsed time of a command, in seconds.
    pub real_s: Option<f64>,
    /// User CPU time of a command, in seconds.
    pub user_s: Option<f64>,
    /// System CPU time of a command, in seconds.
    pub sys_s: Option<f64>,
    /// Printed ratio to the measurement named by `ratio_to`.
    pub ratio: Option<f64>,
    /// Reference measurement of `ratio`.
    pub ratio_to: Option<String>,
    /// Size of a read or write call as printed.
    #[serde(rename = "blocksize")]
    pub call_size: Option<PrintedCallSize>,
    /// Cache control bits of the controller during the measurement.
    pub cache_bits: Option<String>,
    /// Sectors of controller read-ahead during the measurement.
    pub readahead_sectors: Option<u64>,
    /// Printed words for the ratio to a rotational delay of 4 ms.
    pub ratio_to_rotdelay_4: Option<String>,
    /// Interleave factor during the measurement.
    pub interleave: Option<u64>,
    /// Quantity that a statement of the document refers to.
    pub quantity: Option<String>,
    /// Value that a statement of the document gives.
    pub value: Option<f64>,
    /// Unit of the value that a statement of the document gives.
    pub unit: Option<String>,
    /// Whether the document says "about".
    #[serde(rename = "approximate")]
    pub is_approximate: bool,
    /// Lower bound that the wording or a timer of whole seconds permits.
    #[serde(rename = "printed_low")]
    pub value_min: Option<f64>,
    /// Upper bound that the wording or a timer of whole seconds permits.
    #[serde(rename = "printed_high")]
    pub value_max: Option<f64>,
}

/// Size of a read or write call as a document prints it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum PrintedCallSize {
    /// Call size in bytes.
    Bytes(u64),
    /// Call size in words, such as `8k` or `1 track`.
    Words(String),
}

impl std::fmt::Display for PrintedCallSize {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(formatter, "{bytes}"),
            Self::Words(words) => formatter.write_str(words),
        }
    }
}

/// Returns the default of `default_measured`: true, because a value counts as measured unless the file says
/// otherwise.
fn default_measured() -> bool {
    true
}

impl PublishedCell {
    /// Returns the document that printed the value, such as `kridle-mckusick-1983`.
    pub fn document(&self) -> Option<&str> {
        self.id.as_deref()?.split('/').next()
    }

    /// Returns the tested system as a target: `NAME` or `NAME:VARIANT`.
    pub fn full_target(&self) -> Option<String> {
        let target = self.target.as_deref()?;
        Some(match &self.target_variant {
            Some(variant) => format!("{target}:{variant}"),
            None => target.to_string(),
        })
    }
}

/// All published values and the calibration sets.
#[derive(Debug, Clone)]
pub struct PublishedValues {
    /// Published values, in the order of the files.
    pub cells: Vec<PublishedCell>,
    calibration_sets: BTreeMap<String, Vec<String>>,
}

/// Path of the file that defines the calibration sets; all other files of the folder contain
/// values.
const CALIBRATION_SETS_PATH: &str = "published/calibration.toml";

#[derive(Deserialize)]
struct CellFile {
    #[serde(default)]
    #[serde(rename = "cell")]
    cells: Vec<PublishedCell>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CalibrationFile {
    #[serde(rename = "sets")]
    calibration_sets: BTreeMap<String, Vec<String>>,
}

impl PublishedValues {
    pub(crate) fn load<'t>(
        texts: impl Iterator<Item = (&'t str, &'t Arc<Text>)>,
    ) -> Result<PublishedValues, Errors> {
        let mut published = PublishedValues {
            cells: Vec::new(),
            calibration_sets: BTreeMap::new(),
        };
        let mut problems = Vec::new();
        for (path, text) in texts {
            let loaded = if path == CALIBRATION_SETS_PATH {
                toml::from_str(text.content())
                    .map(|file: CalibrationFile| published.calibration_sets = file.calibration_sets)
            } else {
                toml::from_str(text.content())
                    .map(|file: CellFile| published.cells.extend(file.cells))
            };
            if let Err(error) = loaded {
                let place = SourceSpan::new(text, error.span().unwrap_or(0..0));
                problems.push(Problem::error(error.message()).at(&place, ""));
            }
        }
        Errors::fail_if_any(problems).map(|()| published)
    }

    /// Returns the published value with this id.
    pub fn find_cell(&self, id: &str) -> Option<&PublishedCell> {
        self.cells
            .iter()
            .find(|cell| cell.id.as_deref() == Some(id))
    }

    /// Returns the documents with values that have an id, sorted.
    pub fn document_names(&self) -> Vec<&str> {
        let mut documents: Vec<&str> = self
            .cells
            .iter()
            .filter_map(PublishedCell::document)
            .collect();
        documents.sort_unstable();
        documents.dedup();
        documents
    }

    /// Returns the values of a document, in its order.
    ///
    /// # Errors
    ///
    /// An unknown document.
    pub fn cells_of_document(&self, document: &str) -> Result<Vec<&PublishedCell>, Errors> {
        let cells: Vec<&PublishedCell> = self
            .cells
            .iter()
            .filter(|cell| cell.document() == Some(document))
            .collect();
        if cells.is_empty() {
            let problem =
                Problem::error(format!("the catalogue has no document `{document}`")).help(
                    names::suggest_names(document, self.document_names().into_iter()),
                );
            Errors::fail_if_any(vec![problem])?;
        }
        Ok(cells)
    }

    /// Returns the names of the calibration sets, sorted.
    pub fn set_names(&self) -> impl Iterator<Item = &str> {
        self.calibration_sets.keys().map(String::as_str)
    }

    /// Returns the ids of the values in a calibration set, in the order of the documents. Each
    /// measurement occurs once, under the id where it is scored.
    ///
    /// # Errors
    ///
    /// An unknown set, or a pattern of the set that matches no value.
    pub fn calibration_set(&self, set: &str) -> Result<Vec<&str>, Errors> {
        let Some(patterns) = self.calibration_sets.get(set) else {
            let problem = Problem::error(format!("there is no calibration set `{set}`")).help(
                names::suggest_names(set, self.set_names().collect::<Vec<_>>().into_iter()),
            );
            return Err(Errors::fail_if_any(vec![problem]).expect_err("there is a problem"));
        };
        let ids = || self.cells.iter().filter_map(|cell| cell.id.as_deref());
        let unmatched: Vec<Problem> = patterns
            .iter()
            .filter(|pattern| !ids().any(|id| matches_pattern(pattern, id)))
            .map(|pattern| Problem::error(format!("set `{set}`: no cell is `{pattern}`")))
            .collect();
        Errors::fail_if_any(unmatched)?;
        let mut chosen: Vec<&str> = Vec::new();
        for cell in &self.cells {
            let Some(id) = cell.id.as_deref() else {
                continue;
            };
            if patterns.iter().any(|pattern| matches_pattern(pattern, id)) {
                // A number that two tables print is one measurement.
                let id = cell.scored_as.as_deref().unwrap_or(id);
                if !chosen.contains(&id) {
                    chosen.push(id);
                }
            }
        }
        Ok(chosen)
    }
}

/// Tests whether an id matches a pattern, in which `*` stands for any characters except `/`.
fn matches_pattern(pattern: &str, id: &str) -> bool {
    let patterns: Vec<&str> = pattern.split('/').collect();
    let parts: Vec<&str> = id.split('/').collect();
    patterns.len() == parts.len()
        && patterns
            .iter()
            .zip(&parts)
            .all(|(pattern, part)| matches_segment(pattern, part))
}

fn matches_segment(pattern: &str, part: &str) -> bool {
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
