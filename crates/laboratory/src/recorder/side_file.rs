//! The file that a run is in while its store does not take it: one of
//! `diskperf export`, written anew at each repetition.

use crate::runs;
use diskperf_timeline::Run;
use std::path::{Path, PathBuf};

/// The file of one run.
pub(super) struct SideFile {
    /// Where it may be, in the order of trying.
    places: Vec<PathBuf>,
    /// Where it is.
    path: Option<PathBuf>,
    /// Why it could not be written when it was last tried.
    error: String,
}

impl SideFile {
    /// Beside the store, or where that cannot be written, in the current
    /// directory or the one for temporary files.
    pub(super) fn of(run: &Run, store: Option<&Path>) -> Self {
        let name = format!("diskperf-run-{}.json", run.id);
        let beside = store.and_then(Path::parent).map(Path::to_owned);
        let folders = beside
            .into_iter()
            .chain([PathBuf::from("."), std::env::temp_dir()]);
        Self {
            places: folders.map(|folder| folder.join(&name)).collect(),
            path: None,
            error: String::new(),
        }
    }

    /// Where it is; why it is nowhere, which is empty while nobody has tried.
    pub(super) fn place(&self) -> Result<&Path, &str> {
        match &self.path {
            Some(path) if self.error.is_empty() => Ok(path),
            _ => Err(&self.error),
        }
    }

    /// Writes the run as it is now. A file that was written before stays as it
    /// was where no place takes it any more.
    pub(super) fn write(&mut self, run: &Run) {
        // The place that took it last is the first to be tried.
        let last = self.path.clone();
        let places = last.iter().chain(&self.places);
        for path in places {
            match runs::export_to(path, std::slice::from_ref(run)) {
                Ok(()) => {
                    if let Some(old) = last.as_ref().filter(|old| *old != path) {
                        // It is an older state of what was just written.
                        let _ = std::fs::remove_file(old);
                    }
                    self.path = Some(path.clone());
                    self.error.clear();
                    return;
                }
                Err(error) => self.error = format!("{}: {error}", path.display()),
            }
        }
    }

    /// Removes it: the store has the run.
    pub(super) fn remove(&mut self) {
        if let Some(path) = self.path.take() {
            // One that stays says nothing wrong.
            let _ = std::fs::remove_file(path);
        }
    }
}
