//! Destination of imported entries. Either all of them are written or none.

use crate::output::Output;
use diskperf_models::LaboratoryError;
use diskperf_system::host::output_file;
use std::collections::BTreeMap;
use std::path::Path;

/// A directory that receives entries of a catalogue.
#[derive(Debug)]
pub(super) struct Target<'a> {
    to: &'a Path,
    replace: bool,
    files: BTreeMap<String, String>,
}

impl<'a> Target<'a> {
    pub(super) fn new(to: &'a Path, replace: bool) -> Self {
        Self {
            to,
            replace,
            files: BTreeMap::new(),
        }
    }

    /// Adds a file. Returns its path, including that of the directory.
    pub(super) fn add(&mut self, path: String, text: String) -> Result<String, String> {
        let whole = self.to.join(&path);
        if !self.replace && whole.symlink_metadata().is_ok() {
            return Err(format!(
                "{} is there already: --replace writes it anew, or give another directory",
                whole.display()
            ));
        }
        if self.files.insert(path, text).is_some() {
            return Err(format!(
                "two drives would both be {}: import them into two directories",
                whole.display()
            ));
        }
        Ok(whole.display().to_string())
    }

    /// Writes all files. Nothing is written unless every file can be.
    pub(super) fn write(self) -> Result<(), LaboratoryError> {
        let mut outputs = Vec::new();
        for (path, text) in &self.files {
            let path = self.to.join(path);
            let folder = path.parent().unwrap_or(self.to);
            output_file::make_folder(folder).map_err(crate::output::failed)?;
            outputs.push((Output::open(&path)?, text));
        }
        for (output, text) in outputs {
            output.write(text.as_bytes())?;
        }
        Ok(())
    }
}
