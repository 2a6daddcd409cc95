//! Expected figures of drives from data sheets and theory (files of `expected/`), for comparison
//! with the modelled drives.

mod figure;

pub use figure::{DiskFigure, Figure, FlashFigure, UnknownFigure};

use super::{Catalogue, Component, names};
use diskperf_diagnostics::{Errors, Problem, SourceSpan};
use diskperf_timeline::Setting;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Expected figures of a drive. No catalogue value is chosen to match them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSheetExpectations {
    /// Name of the drive in the catalogue.
    pub drive: String,
    /// Expected values, in the order of the file.
    #[serde(rename = "value")]
    pub figures: Vec<DataSheetExpectation>,
}

/// Expected figure of a drive, with its tolerance.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSheetExpectation {
    /// Figure that is measured, such as random read latency.
    #[serde(rename = "what")]
    pub figure: Figure,
    /// Number of requests in flight during the measurement.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// Drive settings for the measurement: catalogue keys of the drive with their values.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Expected value, in the unit of the figure.
    #[serde(rename = "expected")]
    pub expected_value: f64,
    /// Tolerated deviation of the drive, as a share of the expected value.
    pub tolerance_share: f64,
    /// Source of the expected value.
    pub source: String,
}

impl DataSheetExpectation {
    /// Returns the drive settings for the measurement: first those of the figure, then those of the
    /// file.
    pub fn drive_settings(&self) -> Vec<Setting> {
        let figures = match self.figure {
            Figure::Flash(figure) => figure.settings(),
            Figure::Disk(_) => &[],
        };
        let own = self.settings.iter();
        let own = own.map(|(key, value)| (key.as_str(), value.as_str()));
        let all = figures.iter().copied().chain(own);
        all.map(|(key, value)| Setting::new(&format!("drive.{key}"), value))
            .collect()
    }
}

fn default_depth() -> u32 {
    1
}

pub(super) const EXPECTED_FOLDER: &str = "expected";

impl Catalogue {
    /// Returns the expected figures of a drive.
    ///
    /// # Errors
    ///
    /// An unknown drive, or one without expected figures; a file that is not TOML, contains an
    /// unknown key, or belongs to another drive.
    pub fn data_sheet_expectations(&self, drive: &str) -> Result<DataSheetExpectations, Errors> {
        let path = format!("{EXPECTED_FOLDER}/{drive}.toml");
        let Some(file) = self.file(&path) else {
            return Err(self.no_expectations_problem(drive).into());
        };
        let text = &file.text;
        let found: DataSheetExpectations = toml::from_str(text.content()).map_err(|error| {
            let place = SourceSpan::new(text, error.span().unwrap_or(0..0));
            Problem::error(error.message()).at(&place, "")
        })?;
        if found.drive != drive {
            let title = format!("`{path}` is of the drive `{}`", found.drive);
            let problem = Problem::error(title).at(&SourceSpan::start(text), "");
            return Err(problem
                .help("a file of `expected/` is called as its drive")
                .into());
        }
        Ok(found)
    }

    /// Returns the names of drives with expected figures, sorted.
    pub fn expected_drives(&self) -> Vec<String> {
        let mut drives: Vec<String> = self
            .names_in_folder(&format!("{EXPECTED_FOLDER}/"))
            .collect();
        drives.sort();
        drives
    }

    fn no_expectations_problem(&self, drive: &str) -> Problem {
        let known = self.component_names(Component::Drive);
        if !known.iter().any(|name| name == drive) {
            let title = format!("the catalogue has no drive `{drive}`");
            let near = names::suggest_names(drive, known.iter().map(String::as_str));
            return Problem::error(title).help(near);
        }
        let title = format!("the catalogue says nothing of what `{drive}` is expected to do");
        Problem::error(title).help(format!(
            "it does of {}; `expected/{drive}.toml` of --catalogue DIR is such a file",
            self.expected_drives().join(", ")
        ))
    }
}
