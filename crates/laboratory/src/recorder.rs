//! Keeps what was measured: in the store, or, where the store fails, in a
//! file beside it. A measurement is never lost to its store.

use crate::runs;
use diskperf_store::{Store, StoreError};
use diskperf_timeline::{ProgramResult, Repetition, Run};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a command waits for a store that another process has locked. Writers
/// hold the lock for milliseconds; one that holds it longer hangs.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Writes a run down while it is made.
pub struct Recorder {
    store: Option<Store>,
    store_path: Option<PathBuf>,
    failure: Option<StoreError>,
    saved: Vec<PathBuf>,
    /// Whether runs are kept, and not only what they leave on a disk.
    keeps_runs: bool,
}

impl Recorder {
    /// Into the store at this path, or at its usual place. A store that does
    /// not open is a failure that [`Recorder::failure`] tells, and the runs
    /// are saved as files.
    pub fn open(path: Option<&Path>) -> Self {
        let path = path.map_or_else(Store::default_path, |path| Ok(path.to_owned()));
        let store_path = path.as_ref().ok().cloned();
        let (store, failure) =
            match path.and_then(|path| Store::open_with_lock_wait(&path, LOCK_WAIT)) {
                Ok(store) => (Some(store), None),
                Err(error) => (None, Some(error)),
            };
        Self {
            store,
            store_path,
            failure,
            saved: Vec::new(),
            keeps_runs: true,
        }
    }

    /// One that keeps nothing: for modelled runs, which leave nothing behind and
    /// can be made again.
    pub fn of_nothing() -> Self {
        Self {
            store: None,
            store_path: None,
            failure: None,
            saved: Vec::new(),
            keeps_runs: false,
        }
    }

    /// One that notes folders and settings for `diskperf clean`, and keeps no
    /// runs: those of a search are its points.
    pub fn of_leftovers(path: Option<&Path>) -> Self {
        Self {
            keeps_runs: false,
            ..Self::open(path)
        }
    }

    /// Keeps a part of a run.
    fn with_run(&mut self, act: impl FnOnce(&mut Store) -> Result<(), StoreError>) {
        if self.keeps_runs {
            self.with_store(act);
        }
    }

    pub(crate) fn note_device_setting(&mut self, path: &Path, value: &str, owner: &str) {
        self.with_store(|store| store.note_device_setting(path, value, owner));
    }

    pub(crate) fn forget_device_setting(&mut self, path: &Path) {
        self.with_store(|store| store.forget_device_setting(path));
    }

    /// Why the store could not keep everything, if it could not.
    pub fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// The files that runs were saved in because the store failed.
    pub fn saved(&self) -> &[PathBuf] {
        &self.saved
    }

    /// Does something with the store; the first failure ends its use.
    fn with_store(&mut self, act: impl FnOnce(&mut Store) -> Result<(), StoreError>) {
        if let Some(store) = &mut self.store
            && let Err(error) = act(store)
        {
            self.failure = Some(error);
            self.store = None;
        }
    }

    pub(crate) fn begin_run(&mut self, run: &Run) {
        self.with_run(|store| store.begin_run(run));
    }

    pub(crate) fn begin_result(&mut self, run: &Run, result: &ProgramResult) {
        let ordinal = run.results.len() as u32;
        self.with_run(|store| store.begin_result(&run.id, ordinal, result));
    }

    pub(crate) fn add_repetition(&mut self, run: &Run, repetition: &Repetition) {
        let ordinal = run.results.len() as u32;
        self.with_run(|store| store.add_repetition(&run.id, ordinal, repetition));
    }

    pub(crate) fn finish_result(&mut self, run: &Run, result: &ProgramResult) {
        let ordinal = run.results.len() as u32;
        self.with_run(|store| store.update_result(&run.id, ordinal, result));
    }

    /// Ends a run; saves it as a file where the store has failed.
    pub(crate) fn finish_run(&mut self, run: &Run) {
        self.with_run(|store| store.finish_run(&run.id, &run.state, &run.notes));
        if self.failure.is_some() && self.keeps_runs {
            self.save(run);
        }
    }

    /// Beside the store, or where that cannot be written, in the current
    /// directory or the one for temporary files.
    fn save(&mut self, run: &Run) {
        let name = format!("diskperf-run-{}.json", run.id);
        let beside = self
            .store_path
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned);
        let places = beside
            .into_iter()
            .chain([PathBuf::from("."), std::env::temp_dir()]);
        for place in places {
            let path = place.join(&name);
            if runs::export_to(&path, std::slice::from_ref(run)).is_ok() {
                self.saved.push(path);
                return;
            }
        }
    }

    pub(crate) fn note_workspace(&mut self, path: &Path) {
        self.with_store(|store| store.note_workspace(path));
    }

    pub(crate) fn forget_workspace(&mut self, path: &Path) {
        self.with_store(|store| store.forget_workspace(path));
    }
}
