//! Storage of results while they are measured: in the store or, as long as the store refuses them,
//! in a file beside it. No measurement is lost because of the store.

mod side_file;

use crate::steady::{LOCK_WAIT, LOCK_WAIT_BRIEF, SteadyStore};
use diskperf_models::{Observer, ObserverEvent};
use diskperf_store::{Store, StoreError};
use diskperf_system::host::mounts::filesystem_type_of;
use diskperf_timeline::{ProgramResult, Repetition, Run};
use side_file::SideFile;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that a repetition waits for the store before it is also written to a file.
const SIDE_FILE_DELAY: Duration = Duration::from_millis(500);

/// Recorder of a run during its execution.
pub struct RunRecorder {
    store: SteadyStore,
    /// Current run, preceded by earlier runs that the store does not have.
    recorded_runs: Vec<RecordedRun>,
    pending_notes: Vec<WorkspaceNote>,
    messages: Vec<String>,
    /// Whether the store lacks something that it should have, and the user has been told.
    is_behind: bool,
    scope: RecordScope,
    command_line: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RecordScope {
    Nothing,
    /// Notes of files and devices that runs leave on a disk.
    Leftovers,
    /// Notes of leftovers for `diskperf clean`, and the runs themselves.
    Runs,
}

struct RecordedRun {
    run: Run,
    side_file: SideFile,
    is_stored: bool,
}

/// A note for `diskperf clean` of something that a run has on a disk while it lasts.
enum WorkspaceNote {
    Created {
        path: PathBuf,
        filesystem: Option<String>,
    },
    Removed(PathBuf),
}

impl WorkspaceNote {
    fn write(&self, store: &mut Store) -> Result<(), StoreError> {
        match self {
            Self::Created { path, filesystem } => store.note_workspace(path, filesystem.as_deref()),
            Self::Removed(path) => store.forget_workspace(path),
        }
    }
}

impl RunRecorder {
    /// Opens a recorder into the store at this path, or at its default place. If the store does not
    /// open, [`RunRecorder::store_failure`] returns the error. Later writes try the store again; meanwhile,
    /// the runs are saved as files.
    pub fn open(path: Option<&Path>) -> Self {
        let store = SteadyStore::open(path);
        Self {
            is_behind: store.failure().is_some(),
            store,
            recorded_runs: Vec::new(),
            pending_notes: Vec::new(),
            messages: Vec::new(),
            scope: RecordScope::Runs,
            command_line: Vec::new(),
        }
    }

    /// Sets the command line that makes the runs. It is shown with them.
    pub fn with_command_line(self, words: Vec<String>) -> Self {
        Self {
            command_line: words,
            ..self
        }
    }

    /// Command line that makes the runs; empty if there is none.
    pub(crate) fn command_line(&self) -> &[String] {
        &self.command_line
    }

    /// Creates a recorder that stores nothing, for modelled runs. These leave nothing behind and
    /// can be made again.
    pub fn without_store() -> Self {
        Self {
            store: SteadyStore::without_store(),
            recorded_runs: Vec::new(),
            pending_notes: Vec::new(),
            messages: Vec::new(),
            is_behind: false,
            scope: RecordScope::Nothing,
            command_line: Vec::new(),
        }
    }

    /// Creates a recorder that notes folders for `diskperf clean` and stores no runs. A search
    /// stores its points instead.
    pub fn open_for_leftovers(path: Option<&Path>) -> Self {
        Self {
            scope: RecordScope::Leftovers,
            // Whoever runs is told when there is something to note.
            is_behind: false,
            ..Self::open(path)
        }
    }

    /// Error that keeps the store from having all results; `None` if it has them.
    pub fn store_failure(&self) -> Option<&StoreError> {
        self.store.failure().filter(|_| self.is_behind)
    }

    /// Runs that the store does not have, each with its file or the reason why no file could be
    /// written.
    pub fn list_unstored(&self) -> impl Iterator<Item = (&Run, Result<&Path, &str>)> {
        let unstored = self.recorded_runs.iter().filter(|kept| !kept.is_stored);
        unstored.map(|kept| (&kept.run, kept.side_file.path_or_error()))
    }

    /// Reports new events of the store to an observer.
    pub(crate) fn report_messages(&mut self, observer: &mut dyn Observer) {
        for news in self.messages.drain(..) {
            observer.handle_event(ObserverEvent::Warning(&news));
        }
    }
}

impl RunRecorder {
    pub(crate) fn begin_run(&mut self, run: &Run) {
        if self.scope == RecordScope::Runs {
            self.recorded_runs.push(RecordedRun {
                run: run.clone(),
                side_file: SideFile::for_run(run, self.store.path()),
                is_stored: true,
            });
            self.write_to_store(|store, run| store.begin_run(run));
        }
    }

    pub(crate) fn begin_result(&mut self, result: &ProgramResult) {
        self.change_run(|run| run.results.push(result.clone()));
        self.write_to_store(|store, run| {
            let ordinal = run.results.len() as u32 - 1;
            store.begin_result(&run.run_id, ordinal, result)
        });
    }

    /// Adds a repetition to a result, given by its index in the order of starting.
    pub(crate) fn add_repetition(&mut self, ordinal: usize, repetition: &Repetition) {
        self.change_run(|run| run.results[ordinal].repetitions.push(repetition.clone()));
        self.write_to_store(|store, run| {
            store.add_repetition(&run.run_id, ordinal as u32, repetition)
        });
    }

    pub(crate) fn finish_result(&mut self, ordinal: usize, result: &ProgramResult) {
        self.change_run(|run| run.results[ordinal].clone_from(result));
        self.write_to_store(|store, run| store.update_result(&run.run_id, ordinal as u32, result));
    }

    /// Finishes a run. Parts that the store refuses now remain in a file.
    pub(crate) fn finish_run(&mut self, run: &Run) {
        debug_assert_eq!(run.check_run(), Ok(()), "what is measured can be read back");
        // What ends a run may come before its beginning was written down.
        if self
            .recorded_runs
            .last()
            .is_none_or(|kept| kept.run.run_id != run.run_id)
        {
            self.begin_run(run);
        }
        self.change_run(|kept| kept.clone_from(run));
        self.write_to_store(|store, run| store.finish_run(&run.run_id, &run.state, &run.notes));
        if self.is_behind {
            self.catch_up(LOCK_WAIT);
        }
        for kept in self.recorded_runs.iter_mut().filter(|kept| !kept.is_stored) {
            kept.side_file.write(&kept.run);
        }
        self.recorded_runs.retain(|kept| !kept.is_stored);
    }

    fn change_run(&mut self, change: impl FnOnce(&mut Run)) {
        if self.scope == RecordScope::Runs {
            let current = self.recorded_runs.last_mut();
            change(&mut current.expect("a run is begun before its parts").run);
        }
    }

    /// Writes a part of the current run. If the store does not accept it soon, the run goes to a
    /// file before the store is waited for.
    fn write_to_store(&mut self, act: impl FnOnce(&mut Store, &Run) -> Result<(), StoreError>) {
        if self.scope != RecordScope::Runs {
            return;
        }
        let current = self
            .recorded_runs
            .last_mut()
            .expect("a run is begun before its parts");
        if !self.is_behind {
            let run = &current.run;
            if self
                .store
                .with_store(SIDE_FILE_DELAY, |store| act(store, run))
                .is_some()
            {
                return;
            }
        }
        current.is_stored = false;
        if current
            .run
            .results
            .iter()
            .any(|result| !result.repetitions.is_empty())
        {
            let was_known = current.side_file.path_or_error().is_ok();
            current.side_file.write(&current.run);
            // What was said when the store was lost could not name it yet.
            if let (true, false, Ok(path)) =
                (self.is_behind, was_known, current.side_file.path_or_error())
            {
                self.messages.push(format!(
                    "run {} is kept in {}",
                    current.run.run_id,
                    path.display()
                ));
            }
        }
        let waited = self.is_behind || !self.store.is_locked();
        self.catch_up_or_fall_behind(if waited { LOCK_WAIT_BRIEF } else { LOCK_WAIT });
    }
}

impl RunRecorder {
    pub(crate) fn note_workspace(&mut self, path: &Path) {
        let place = path.parent();
        self.write_note(WorkspaceNote::Created {
            path: path.to_owned(),
            filesystem: place.and_then(|place| filesystem_type_of(place).ok()),
        });
    }

    pub(crate) fn forget_workspace(&mut self, path: &Path) {
        self.write_note(WorkspaceNote::Removed(path.to_owned()));
    }

    fn write_note(&mut self, note: WorkspaceNote) {
        if self.scope == RecordScope::Nothing {
            return;
        }
        let lock_wait = if self.is_behind {
            LOCK_WAIT_BRIEF
        } else {
            LOCK_WAIT
        };
        self.pending_notes.push(note);
        self.catch_up_or_fall_behind(lock_wait);
        if let Some(WorkspaceNote::Created { path, .. }) = self.pending_notes.last() {
            self.messages.push(format!(
                "the result store has no record of {}: if this run is killed, `diskperf clean --on {}` removes it",
                path.display(),
                path.parent().unwrap_or(path).display()
            ));
        }
    }
}

impl RunRecorder {
    fn catch_up_or_fall_behind(&mut self, lock_wait: Duration) {
        let (was_moved, was_behind) = (self.store.was_moved(), self.is_behind);
        let before = self.store.file_identity();
        match self.catch_up(lock_wait) {
            _ if was_behind => {}
            true if was_moved && self.store.file_identity() != before => self.report_moved(),
            true => {}
            false => {
                self.is_behind = true;
                self.report_behind();
            }
        }
    }

    fn catch_up(&mut self, lock_wait: Duration) -> bool {
        while let Some(note) = self.pending_notes.first() {
            if self
                .store
                .with_store(lock_wait, |store| note.write(store))
                .is_none()
            {
                return false;
            }
            self.pending_notes.remove(0);
        }
        for kept in self.recorded_runs.iter_mut().filter(|kept| !kept.is_stored) {
            let run = &kept.run;
            if self
                .store
                .with_store(lock_wait, |store| store.replace_run(run))
                .is_none()
            {
                return false;
            }
            kept.is_stored = true;
            kept.side_file.remove();
        }
        if std::mem::take(&mut self.is_behind) {
            self.report_caught_up();
        }
        true
    }

    fn report_behind(&mut self) {
        let Some(failure) = self.store.failure() else {
            return;
        };
        let mut news = failure.to_string();
        let mut kept = self.recorded_runs.iter().filter(|kept| !kept.is_stored);
        if let Some(RecordedRun {
            run,
            side_file: file,
            ..
        }) = kept.next()
        {
            news += &match file.path_or_error() {
                Ok(path) => format!(
                    "; until it takes results again, run {} is kept in {}",
                    run.run_id,
                    path.display()
                ),
                Err("") => format!(
                    "; until it takes results again, run {} is kept in a file",
                    run.run_id
                ),
                Err(why) => format!("; and run {} cannot be kept in a file: {why}", run.run_id),
            };
        }
        self.messages.push(news);
    }

    fn report_moved(&mut self) {
        if let Some(path) = self.store.path() {
            self.messages.push(format!(
                "the result store {} was replaced by another while it was in use: results go into the new store, and this run completely",
                path.display()
            ));
        }
    }

    fn report_caught_up(&mut self) {
        if let Some(path) = self.store.path() {
            let news = format!("the result store {} has everything again", path.display());
            self.messages.push(news);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diskperf_timeline::{CacheMode, Environment, MeasuredWorld, RunState};

    fn failed_run(id: &str) -> Run {
        Run {
            run_id: id.to_owned(),
            program_version: String::new(),
            suite_name: String::new(),
            target_label: String::new(),
            world: MeasuredWorld::Host,
            user_label: None,
            seed: 0,
            started_unix_ms: 0,
            command_line: Vec::new(),
            experiment: None,
            interleaved: None,
            cache_mode: CacheMode::Cold,
            drops_all_caches: false,
            state: RunState::Failed("no clock".to_owned()),
            environment: Environment::default(),
            model_information: None,
            overhead: None,
            results: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_run_that_failed_before_it_began_is_kept_as_that() {
        let folder = std::env::temp_dir().join(format!("diskperf-recorder-{}", std::process::id()));
        let path = folder.join("runs.sqlite");
        let mut recorder = RunRecorder::open(Some(&path));
        for id in ["aaaaaaaaaa", "bbbbbbbbbb"] {
            recorder.finish_run(&failed_run(id));
            assert!(recorder.store_failure().is_none());
            assert_eq!(recorder.list_unstored().count(), 0);
        }
        let store = Store::open(&path).unwrap();
        assert_eq!(
            store.load_run("aaaaaaaaaa").unwrap(),
            failed_run("aaaaaaaaaa")
        );
        assert_eq!(store.list_runs().unwrap().len(), 2);
        drop((store, recorder));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
