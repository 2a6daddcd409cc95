//! Side file of a run that the store does not accept yet: in the format of `diskperf export`,
//! rewritten at each repetition.

use crate::runs;
use diskperf_timeline::Run;
use std::path::{Path, PathBuf};

/// Side file of one run that the store does not accept yet.
pub(super) struct SideFile {
    candidate_paths: Vec<PathBuf>,
    path: Option<PathBuf>,
    last_error: String,
}

impl SideFile {
    /// Chooses paths for the side file: beside the store or, if that cannot be written, in the
    /// current directory or the one for temporary files.
    pub(super) fn for_run(run: &Run, store: Option<&Path>) -> Self {
        let name = format!("diskperf-run-{}.json", run.run_id);
        let beside = store.and_then(Path::parent).map(Path::to_owned);
        let folders = beside
            .into_iter()
            .chain([PathBuf::from("."), std::env::temp_dir()]);
        Self {
            candidate_paths: folders.map(|folder| folder.join(&name)).collect(),
            path: None,
            last_error: String::new(),
        }
    }

    /// Returns the path of the side file, or the reason why it has none. The reason is empty while
    /// no write was tried.
    pub(super) fn path_or_error(&self) -> Result<&Path, &str> {
        match &self.path {
            Some(path) if self.last_error.is_empty() => Ok(path),
            _ => Err(&self.last_error),
        }
    }

    /// Writes the current state of the run. If no place accepts it, an earlier file stays as it
    /// was.
    pub(super) fn write(&mut self, run: &Run) {
        // The place that took it last is the first to be tried.
        let last = self.path.clone();
        let places = last.iter().chain(&self.candidate_paths);
        for path in places {
            match runs::export_to(path, std::slice::from_ref(run)) {
                Ok(()) => {
                    if let Some(old) = last.as_ref().filter(|old| *old != path) {
                        // It is an older state of what was just written.
                        let _ = std::fs::remove_file(old);
                    }
                    self.path = Some(path.clone());
                    self.last_error.clear();
                    return;
                }
                Err(error) => self.last_error = format!("{}: {error}", path.display()),
            }
        }
    }

    /// Removes the side file, because the store has the run.
    pub(super) fn remove(&mut self) {
        if let Some(path) = self.path.take() {
            // One that stays says nothing wrong.
            let _ = std::fs::remove_file(path);
        }
    }
}
