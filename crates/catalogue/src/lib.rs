//! Catalogue of all drives, controllers, buses, hosts, kernels, drivers, file systems and
//! systems that can be modelled, as data, with the published measurements that test the
//! models.
//!
//! The files under `catalogue/` are embedded in the binary; a user's folder may replace or
//! add entries. [`Catalogue::resolve`] collects the values of a system in layers:
//!
//! ```text
//! what the component extends < component < system < variant < settings
//! ```
//!
//! The parts of the machine read their values through a [`Reader`]. Each read also declares
//! a parameter (key, type, range, meaning), so one line of code determines the checks, the
//! list of parameters and the settings that `--set` may change. The catalogue does not know
//! the meaning of the values.
//!
//! # The files
//!
//! - `drives/ controllers/ buses/ hosts/ kernels/ drivers/ filesystems/`: one
//!   component per file. `description` describes the component, `source` is the source of
//!   its numbers, `KEY_source` that of a single number, and `extends = "NAME"` inherits from
//!   a component of the same folder, one level deep. `[type.NAME]` holds the values for one
//!   type of drive, for a driver that treats each type differently.
//! - `systems/NAME.toml`: `drives` (the number of drives), `[components]`
//!   (the file from each folder), and tables named like components that
//!   override single numbers. `[drive.2]` overrides the second drive only;
//!   `component = "NAME"` in it puts another drive in its place.
//! - `systems/NAME/VARIANT.toml`: only the differences of `NAME:VARIANT`.
//! - `published/`: published measurements, and the sets used for calibration.
//! - `expected/`: expected figures of a drive from data sheet and theory, with tolerances.

mod component;
mod embedded;
mod expected;
mod file;
mod names;
mod parameter;
mod published;
mod reader;
mod resolution;
mod setting;
mod shape;
mod system;
mod tables;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub use component::Component;
pub use diskperf_diagnostics::Errors;
pub use diskperf_timeline::Setting;
pub use expected::{
    DataSheetExpectation, DataSheetExpectations, DiskFigure, Figure, FlashFigure, UnknownFigure,
};
pub use names::{find_similar_names, format_choices, format_list};
pub use parameter::{CalibrationMethod, Parameter, ValueOrigin};
pub use published::{PrintedCallSize, PublishedCell, PublishedValues};
pub use reader::Reader;
pub use system::ResolvedSystem;
pub use tables::TableReader;

use diskperf_diagnostics::Problem;
use file::CatalogueFile;

/// Catalogue entries by path below `catalogue/`, such as `drives/eagle.toml`.
#[derive(Debug, Clone)]
pub struct Catalogue {
    files: BTreeMap<String, Arc<CatalogueFile>>,
}

/// Maximum depth of folders in a user's catalogue: `systems/NAME/VARIANT.toml`.
const FOLDER_DEPTH_MAX: usize = 2;

impl Catalogue {
    /// Returns the catalogue that is embedded in the program.
    pub fn embedded() -> Catalogue {
        let files = embedded::EMBEDDED_FILES
            .iter()
            .map(|(path, content)| {
                let file = CatalogueFile::new(format!("catalogue/{path}"), content.to_string());
                (path.to_string(), Arc::new(file))
            })
            .collect();
        Catalogue { files }
    }

    /// Adds the `.toml` files of a user's folder to the catalogue. A file with the same folder and
    /// name replaces an entry, and any other file adds one.
    ///
    /// # Errors
    ///
    /// A folder or file that cannot be read, is not text, or is in a folder that the catalogue does
    /// not have.
    pub fn with_overlay(mut self, folder: &Path) -> Result<Catalogue, Errors> {
        let mut problems = Vec::new();
        self.add_overlay_folder(folder, "", 0, &mut problems);
        Errors::fail_if_any(problems).map(|()| self)
    }

    fn add_overlay_folder(
        &mut self,
        folder: &Path,
        below: &str,
        depth: usize,
        problems: &mut Vec<Problem>,
    ) {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                problems.push(Problem::error(format!(
                    "cannot read the catalogue folder {}: {error}",
                    folder.display()
                )));
                return;
            }
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        // The order of a folder's entries is the file system's; errors must
        // come out in the same order everywhere.
        paths.sort();
        for path in paths {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                problems.push(Problem::error(format!(
                    "{}: not a text name",
                    path.display()
                )));
                continue;
            };
            let relative = if below.is_empty() {
                name.to_string()
            } else {
                format!("{below}/{name}")
            };
            if path.is_dir() {
                let known = depth > 0 || Component::is_folder_name(name);
                if known && depth < FOLDER_DEPTH_MAX && (depth == 0 || below == "systems") {
                    self.add_overlay_folder(&path, &relative, depth + 1, problems);
                } else {
                    problems.push(unknown_folder(&path, name));
                }
            } else if depth > 0 && name.ends_with(".toml") {
                match read_file(&path) {
                    Ok(file) => {
                        self.files.insert(relative, Arc::new(file));
                    }
                    Err(problem) => problems.push(problem),
                }
            }
        }
    }

    /// Adds or replaces one entry, given its path below `catalogue/`.
    #[doc(hidden)]
    pub fn with_file(mut self, path: &str, text: &str) -> Catalogue {
        let file = CatalogueFile::new(path.to_string(), text.to_string());
        self.files.insert(path.to_string(), Arc::new(file));
        self
    }

    /// Returns the path and the text of every entry.
    pub fn file_texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.files.iter();
        files.map(|(path, file)| (path.as_str(), file.text.content()))
    }

    /// Returns the names of the entries of one kind of component, sorted.
    pub fn component_names(&self, component: Component) -> Vec<String> {
        let folder = format!("{}/", component.folder_name());
        let mut names: Vec<String> = self.names_in_folder(&folder).collect();
        names.sort();
        names
    }

    /// Returns the names of all systems, sorted, each followed by its variants as `NAME:VARIANT`.
    pub fn system_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .names_in_folder("systems/")
            .map(|name| name.replacen('/', ":", 1))
            .collect();
        names.sort();
        names
    }

    fn names_in_folder<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = String> + 'a {
        self.files.keys().filter_map(move |path| {
            let name = path.strip_prefix(folder)?.strip_suffix(".toml")?;
            Some(name.to_string())
        })
    }

    /// Returns the first sentence of an entry's description, for lists. `None` for an unknown name,
    /// or for a file that does not parse or has no description.
    pub fn description(&self, component: Component, name: &str) -> Option<String> {
        self.description_in_file(&component.file_path(name))
    }

    /// Returns the description of a system or variant (`NAME:VARIANT`), like
    /// [`Catalogue::description`].
    pub fn system_description(&self, name: &str) -> Option<String> {
        self.description_in_file(&format!("systems/{}.toml", name.replacen(':', "/", 1)))
    }

    fn description_in_file(&self, path: &str) -> Option<String> {
        let table = self.files.get(path)?.table().ok()?;
        table.text("description").map(str::to_string)
    }

    /// Resolves the system that `target` names (`NAME`, `NAME:VARIANT` or the path of a
    /// `FILE.toml`) and applies the settings. The result is ready for readers.
    ///
    /// # Errors
    ///
    /// An unknown name, a file that is not TOML, or an unknown component. [`ResolvedSystem::finish`]
    /// reports errors in single values.
    pub fn resolve(&self, target: &str, settings: &[Setting]) -> Result<ResolvedSystem, Errors> {
        resolution::resolve_system(self, target, settings)
    }

    /// Resolves a single component without a system around it, for display.
    ///
    /// # Errors
    ///
    /// An unknown name, or a file that is not TOML.
    pub fn component_entry(
        &self,
        component: Component,
        name: &str,
    ) -> Result<ResolvedSystem, Errors> {
        resolution::resolve_component(self, component, name)
    }

    /// Returns the published measurements and the sets of them that calibrate the models.
    ///
    /// # Errors
    ///
    /// A file of `published/` that is not TOML or has a value of a wrong type.
    pub fn published_values(&self) -> Result<PublishedValues, Errors> {
        let files = self
            .files
            .iter()
            .filter(|(path, _)| path.starts_with("published/"));
        PublishedValues::load(files.map(|(path, file)| (path.as_str(), &file.text)))
    }

    fn file(&self, path: &str) -> Option<&Arc<CatalogueFile>> {
        self.files.get(path)
    }
}

fn unknown_folder(path: &Path, name: &str) -> Problem {
    let folders = Component::folder_names();
    Problem::error(format!(
        "the catalogue has no folder `{name}`: {}",
        path.display()
    ))
    .help(names::suggest_names(name, folders.iter().copied()))
}

/// Reads a catalogue file from a user's folder.
fn read_file(path: &Path) -> Result<CatalogueFile, Problem> {
    let shown = path.display().to_string();
    // A FIFO is waited for without end, and a device may have no end.
    let is_special = |status: std::fs::Metadata| !status.is_file() && !status.is_dir();
    if path.metadata().is_ok_and(is_special) {
        return Err(Problem::error(format!("{shown}: not a regular file")));
    }
    let bytes = std::fs::read(path).map_err(|error| Problem::error(format!("{shown}: {error}")))?;
    match String::from_utf8(bytes) {
        Ok(content) => Ok(CatalogueFile::new(shown, content)),
        Err(error) => Err(Problem::error(format!(
            "{shown}: not a text file: the byte at offset {} is not UTF-8",
            error.utf8_error().valid_up_to()
        ))),
    }
}
