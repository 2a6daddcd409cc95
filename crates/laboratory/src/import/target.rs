//! Destination of imported entries. Either all of them are written or none.

use crate::output::Output;
use diskperf_models::LaboratoryError;
use diskperf_system::host::output_file;
use std::collections::BTreeMap;
use std::path::Path;

/// A directory that receives entries of a catalogue.
#[derive(Debug)]
pub(super) struct ImportTarget<'a> {
    destination: &'a Path,
    replaces_existing: bool,
    files: BTreeMap<String, String>,
}

impl<'a> ImportTarget<'a> {
    pub(super) fn new(to: &'a Path, replace: bool) -> Self {
        Self {
            destination: to,
            replaces_existing: replace,
            files: BTreeMap::new(),
        }
    }

    /// Adds a file. Returns its path, including that of the directory.
    pub(super) fn add_file(&mut self, path: String, text: String) -> Result<String, String> {
        let whole = self.destination.join(&path);
        if !self.replaces_existing && whole.symlink_metadata().is_ok() {
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
    pub(super) fn write_files(self) -> Result<(), LaboratoryError> {
        let mut outputs = Vec::new();
        for (path, text) in &self.files {
            let path = self.destination.join(path);
            let folder = path.parent().unwrap_or(self.destination);
            output_file::make_folder(folder).map_err(crate::output::output_error)?;
            outputs.push((Output::open(&path)?, text));
        }
        for (output, text) in outputs {
            output.write(text.as_bytes())?;
        }
        Ok(())
    }
}
