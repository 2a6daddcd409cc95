//! What a drive is expected to do, by its data sheet and by theory: files of `expected/`,
//! to be held against what the modelled drive does.

mod figure;

pub use figure::{DiskFigure, Figure, FlashFigure, UnknownFigure};

use super::{Catalogue, Component, names};
use diskperf_diagnostics::{Errors, Place, Problem};
use diskperf_timeline::Setting;
use serde::Deserialize;
use std::collections::BTreeMap;

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
    /// Keys of the drive with values that it is measured with.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// In the unit of `what`.
    pub expected: f64,
    /// How far off the drive may be, as a share.
    pub tolerance_share: f64,
    /// Where the value is from.
    pub source: String,
}

impl Expected {
    /// What the drive is to be set to, to be measured: by the figure, and then by the file.
    pub fn settings(&self) -> Vec<Setting> {
        let figures = match self.what {
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

fn one() -> u32 {
    1
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
