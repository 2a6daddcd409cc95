//! Storage of results while they are measured: in the store or, as long as the store refuses them,
//! in a file beside it. No measurement is lost because of the store.

mod side_file;

use crate::steady::{BRIEF_WAIT, LOCK_WAIT, SteadyStore};
use diskperf_models::{Event, Observer};
use diskperf_store::{Store, StoreError};
use diskperf_system::host::mounts::filesystem_type_of;
use diskperf_timeline::{ProgramResult, Repetition, Run};
use side_file::SideFile;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time that a repetition waits for the store before it is also written to a file.
const FILE_AFTER: Duration = Duration::from_millis(500);

/// Recorder of a run during its execution.
pub struct Recorder {
    store: SteadyStore,
    /// Current run, preceded by earlier runs that the store does not have.
    runs: Vec<Kept>,
    notes: Vec<Note>,
    news: Vec<String>,
    /// Whether the store lacks something that it should have, and the user has been told.
    behind: bool,
    keeps: Keeps,
    command_line: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Nothing,
    /// Notes of files and devices that runs leave on a disk.
    Leftovers,
    /// Notes of leftovers for `diskperf clean`, and the runs themselves.
    Runs,
}

struct Kept {
    run: Run,
    file: SideFile,
    stored: bool,
}

/// A note for `diskperf clean` of something that a run has on a disk while it lasts.
enum Note {
    Workspace {
        path: PathBuf,
        filesystem: Option<String>,
    },
    WorkspaceGone(PathBuf),
}

impl Note {
    fn write(&self, store: &mut Store) -> Result<(), StoreError> {
        match self {
            Self::Workspace { path, filesystem } => {
                store.note_workspace(path, filesystem.as_deref())
            }
            Self::WorkspaceGone(path) => store.forget_workspace(path),
        }
    }
}

impl Recorder {
    /// Opens a recorder into the store at this path, or at its default place. If the store does not
    /// open, [`Recorder::failure`] returns the error. Later writes try the store again; meanwhile,
    /// the runs are saved as files.
    pub fn open(path: Option<&Path>) -> Self {
        let store = SteadyStore::open(path);
        Self {
            behind: store.failure().is_some(),
            store,
            runs: Vec::new(),
            notes: Vec::new(),
            news: Vec::new(),
            keeps: Keeps::Runs,
            command_line: Vec::new(),
        }
    }

    /// Sets the command line that makes the runs. It is shown with them.
    pub fn of_command(self, words: Vec<String>) -> Self {
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
    pub fn of_nothing() -> Self {
        Self {
            store: SteadyStore::none(),
            runs: Vec::new(),
            notes: Vec::new(),
            news: Vec::new(),
            behind: false,
            keeps: Keeps::Nothing,
            command_line: Vec::new(),
        }
    }

    /// Creates a recorder that notes folders for `diskperf clean` and stores no runs. A search
    /// stores its points instead.
    pub fn of_leftovers(path: Option<&Path>) -> Self {
        Self {
            keeps: Keeps::Leftovers,
            // Whoever runs is told when there is something to note.
            behind: false,
            ..Self::open(path)
        }
    }

    /// Error that keeps the store from having all results; `None` if it has them.
    pub fn failure(&self) -> Option<&StoreError> {
        self.store.failure().filter(|_| self.behind)
    }

    /// Runs that the store does not have, each with its file or the reason why no file could be
    /// written.
    pub fn unstored(&self) -> impl Iterator<Item = (&Run, Result<&Path, &str>)> {
        let unstored = self.runs.iter().filter(|kept| !kept.stored);
        unstored.map(|kept| (&kept.run, kept.file.place()))
    }

    /// Reports new events of the store to an observer.
    pub(crate) fn tell(&mut self, observer: &mut dyn Observer) {
        for news in self.news.drain(..) {
            observer.event(Event::Warning(&news));
        }
    }
}

impl Recorder {
    pub(crate) fn begin_run(&mut self, run: &Run) {
        if self.keeps == Keeps::Runs {
            self.runs.push(Kept {
                run: run.clone(),
                file: SideFile::of(run, self.store.path()),
                stored: true,
            });
            self.write(|store, run| store.begin_run(run));
        }
    }

    pub(crate) fn begin_result(&mut self, result: &ProgramResult) {
        self.change(|run| run.results.push(result.clone()));
        self.write(|store, run| {
            let ordinal = run.results.len() as u32 - 1;
            store.begin_result(&run.run_id, ordinal, result)
        });
    }

    /// Adds a repetition to a result, given by its index in the order of starting.
    pub(crate) fn add_repetition(&mut self, ordinal: usize, repetition: &Repetition) {
        self.change(|run| run.results[ordinal].repetitions.push(repetition.clone()));
        self.write(|store, run| store.add_repetition(&run.run_id, ordinal as u32, repetition));
    }

    pub(crate) fn finish_result(&mut self, ordinal: usize, result: &ProgramResult) {
        self.change(|run| run.results[ordinal].clone_from(result));
        self.write(|store, run| store.update_result(&run.run_id, ordinal as u32, result));
    }

    /// Finishes a run. Parts that the store refuses now remain in a file.
    pub(crate) fn finish_run(&mut self, run: &Run) {
        debug_assert_eq!(run.check_run(), Ok(()), "what is measured can be read back");
        // What ends a run may come before its beginning was written down.
        if self
            .runs
            .last()
            .is_none_or(|kept| kept.run.run_id != run.run_id)
        {
            self.begin_run(run);
        }
        self.change(|kept| kept.clone_from(run));
        self.write(|store, run| store.finish_run(&run.run_id, &run.state, &run.notes));
        if self.behind {
            self.catch_up(LOCK_WAIT);
        }
        for kept in self.runs.iter_mut().filter(|kept| !kept.stored) {
            kept.file.write(&kept.run);
        }
        self.runs.retain(|kept| !kept.stored);
    }

    fn change(&mut self, change: impl FnOnce(&mut Run)) {
        if self.keeps == Keeps::Runs {
            let current = self.runs.last_mut();
            change(&mut current.expect("a run is begun before its parts").run);
        }
    }

    /// Writes a part of the current run. If the store does not accept it soon, the run goes to a
    /// file before the store is waited for.
    fn write(&mut self, act: impl FnOnce(&mut Store, &Run) -> Result<(), StoreError>) {
        if self.keeps != Keeps::Runs {
            return;
        }
        let current = self
            .runs
            .last_mut()
            .expect("a run is begun before its parts");
        if !self.behind {
            let run = &current.run;
            if self
                .store
                .with(FILE_AFTER, |store| act(store, run))
                .is_some()
            {
                return;
            }
        }
        current.stored = false;
        if current
            .run
            .results
            .iter()
            .any(|result| !result.repetitions.is_empty())
        {
            let was_known = current.file.place().is_ok();
            current.file.write(&current.run);
            // What was said when the store was lost could not name it yet.
            if let (true, false, Ok(path)) = (self.behind, was_known, current.file.place()) {
                self.news.push(format!(
                    "run {} is kept in {}",
                    current.run.run_id,
                    path.display()
                ));
            }
        }
        let waited = self.behind || !self.store.is_locked();
        self.fall_behind_unless_caught_up(if waited { BRIEF_WAIT } else { LOCK_WAIT });
    }
}

impl Recorder {
    pub(crate) fn note_workspace(&mut self, path: &Path) {
        let place = path.parent();
        self.note(Note::Workspace {
            path: path.to_owned(),
            filesystem: place.and_then(|place| filesystem_type_of(place).ok()),
        });
    }

    pub(crate) fn forget_workspace(&mut self, path: &Path) {
        self.note(Note::WorkspaceGone(path.to_owned()));
    }

    fn note(&mut self, note: Note) {
        if self.keeps == Keeps::Nothing {
            return;
        }
        let lock_wait = if self.behind { BRIEF_WAIT } else { LOCK_WAIT };
        self.notes.push(note);
        self.fall_behind_unless_caught_up(lock_wait);
        if let Some(Note::Workspace { path, .. }) = self.notes.last() {
            self.news.push(format!(
                "the result store has no record of {}: if this run is killed, `diskperf clean --on {}` removes it",
                path.display(),
                path.parent().unwrap_or(path).display()
            ));
        }
    }
}

impl Recorder {
    fn fall_behind_unless_caught_up(&mut self, lock_wait: Duration) {
        let (was_moved, was_behind) = (self.store.was_moved(), self.behind);
        let before = self.store.file();
        match self.catch_up(lock_wait) {
            _ if was_behind => {}
            true if was_moved && self.store.file() != before => self.say_moved(),
            true => {}
            false => {
                self.behind = true;
                self.say_behind();
            }
        }
    }

    fn catch_up(&mut self, lock_wait: Duration) -> bool {
        while let Some(note) = self.notes.first() {
            if self
                .store
                .with(lock_wait, |store| note.write(store))
                .is_none()
            {
                return false;
            }
            self.notes.remove(0);
        }
        for kept in self.runs.iter_mut().filter(|kept| !kept.stored) {
            let run = &kept.run;
            if self
                .store
                .with(lock_wait, |store| store.replace_run(run))
                .is_none()
            {
                return false;
            }
            kept.stored = true;
            kept.file.remove();
        }
        if std::mem::take(&mut self.behind) {
            self.say_caught_up();
        }
        true
    }

    fn say_behind(&mut self) {
        let Some(failure) = self.store.failure() else {
            return;
        };
        let mut news = failure.to_string();
        let mut kept = self.runs.iter().filter(|kept| !kept.stored);
        if let Some(Kept { run, file, .. }) = kept.next() {
            news += &match file.place() {
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
        self.news.push(news);
    }

    fn say_moved(&mut self) {
        if let Some(path) = self.store.path() {
            self.news.push(format!(
                "the result store {} was replaced by another while it was in use: results go into the new store, and this run completely",
                path.display()
            ));
        }
    }

    fn say_caught_up(&mut self) {
        if let Some(path) = self.store.path() {
            let news = format!("the result store {} has everything again", path.display());
            self.news.push(news);
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
        let mut recorder = Recorder::open(Some(&path));
        for id in ["aaaaaaaaaa", "bbbbbbbbbb"] {
            recorder.finish_run(&failed_run(id));
            assert!(recorder.failure().is_none());
            assert_eq!(recorder.unstored().count(), 0);
        }
        let store = Store::open(&path).unwrap();
        assert_eq!(store.load("aaaaaaaaaa").unwrap(), failed_run("aaaaaaaaaa"));
        assert_eq!(store.list().unwrap().len(), 2);
        drop((store, recorder));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
