//! What a drive is expected to do, by its data sheet and by theory: files of `expected/`,
//! to be held against what the modelled drive does.

use super::{Catalogue, Component, names};
use diskperf_diagnostics::{Errors, Place, Problem};
use serde::Deserialize;

/// What a drive is expected to do. Nothing in the catalogue is chosen to meet a value of it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectations {
    /// The drive's name.
    pub drive: String,
    /// One after the other.
    #[serde(rename = "value")]
    pub values: Vec<Expected>,
}

/// A figure that is expected of a drive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Of what.
    pub what: Figure,
    /// Requests under way.
    #[serde(default = "one")]
    pub depth: u32,
    /// In the unit of `what`.
    pub expected: f64,
    /// How far off the drive may be, as a share.
    pub tolerance_share: f64,
    /// Where the value is from.
    pub source: String,
}

fn one() -> u32 {
    1
}

/// What is measured of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// 4 KiB at random, the mean time between completions.
    RandomReadMs,
    /// Reads of a mebibyte, one behind the other, at the outside.
    SequentialReadOuterMbPerS,
    /// The same inside.
    SequentialReadInnerMbPerS,
    /// The same of writes, in the steady state.
    SequentialWriteMbPerS,
    /// 4 KiB behind the last ones, each followed by a flush.
    AppendedSyncMs,
    /// 4 KiB anywhere, each followed by a flush.
    RandomSyncMs,
    /// 4 KiB written at random after idle: the first hundred, each.
    WriteAfterIdleMs,
    /// 4 KiB written at random when the map of the media cache is full.
    WriteMapFullMs,
}

impl Figure {
    /// As files of `expected/` have it.
    pub fn name(self) -> &'static str {
        match self {
            Figure::RandomReadMs => "random_read_ms",
            Figure::SequentialReadOuterMbPerS => "sequential_read_outer_mb_per_s",
            Figure::SequentialReadInnerMbPerS => "sequential_read_inner_mb_per_s",
            Figure::SequentialWriteMbPerS => "sequential_write_mb_per_s",
            Figure::AppendedSyncMs => "appended_sync_ms",
            Figure::RandomSyncMs => "random_sync_ms",
            Figure::WriteAfterIdleMs => "write_after_idle_ms",
            Figure::WriteMapFullMs => "write_map_full_ms",
        }
    }

    /// In words, and its unit.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Figure::RandomReadMs => ("random reads of 4 KiB, each", "ms"),
            Figure::SequentialReadOuterMbPerS => ("sequential reads, outside", "MB/s"),
            Figure::SequentialReadInnerMbPerS => ("sequential reads, inside", "MB/s"),
            Figure::SequentialWriteMbPerS => ("sequential writes, outside", "MB/s"),
            Figure::AppendedSyncMs => ("4 KiB appended and synced, each", "ms"),
            Figure::RandomSyncMs => ("4 KiB anywhere and synced, each", "ms"),
            Figure::WriteAfterIdleMs => ("random writes of 4 KiB after idle, each", "ms"),
            Figure::WriteMapFullMs => ("random writes of 4 KiB, map full, each", "ms"),
        }
    }
}

/// The folder of such files.
pub(super) const FOLDER: &str = "expected";

impl Catalogue {
    /// What is expected of a drive.
    ///
    /// # Errors
    ///
    /// A drive that there is not, or of which nothing is expected; a file that is not
    /// TOML, has an unknown key, or is of another drive.
    pub fn expectations(&self, drive: &str) -> Result<Expectations, Errors> {
        let path = format!("{FOLDER}/{drive}.toml");
        let Some(file) = self.file(&path) else {
            return Err(self.nothing_expected(drive).into());
        };
        let text = &file.text;
        let found: Expectations = toml::from_str(text.content()).map_err(|error| {
            let place = Place::new(text, error.span().unwrap_or(0..0));
            Problem::error(error.message()).at(&place, "")
        })?;
        if found.drive != drive {
            let title = format!("`{path}` is of the drive `{}`", found.drive);
            let problem = Problem::error(title).at(&Place::start(text), "");
            return Err(problem
                .help("a file of `expected/` is called as its drive")
                .into());
        }
        Ok(found)
    }

    /// The drives of which something is expected, sorted.
    pub fn expected_drives(&self) -> Vec<String> {
        let mut drives: Vec<String> = self.names_below(&format!("{FOLDER}/")).collect();
        drives.sort();
        drives
    }

    fn nothing_expected(&self, drive: &str) -> Problem {
        let known = self.component_names(Component::Drive);
        if !known.iter().any(|name| name == drive) {
            let title = format!("the catalogue has no drive `{drive}`");
            let near = names::suggestion(drive, known.iter().map(String::as_str));
            return Problem::error(title).help(near);
        }
        let title = format!("the catalogue says nothing of what `{drive}` is expected to do");
        Problem::error(title).help(format!(
            "it does of {}; `expected/{drive}.toml` of --catalogue DIR is such a file",
            self.expected_drives().join(", ")
        ))
    }
}
