//! Points in the store, so that a search that was killed goes on where it was.

use crate::recorder::LOCK_WAIT;
use diskperf_analysis::tuning::Figures;
use diskperf_store::{Store, StoreError};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is finished is committed when it is this much, or this old: a commit
/// waits for the disk, and a point may take a millisecond.
const BATCH: usize = 64;
const OLDEST: Duration = Duration::from_millis(250);

/// The points that the store has. A store that fails ends its use and not the
/// search.
pub struct Kept {
    /// Whether what is there is ignored.
    fresh: bool,
    state: Mutex<State>,
}

struct State {
    store: Option<Store>,
    failure: Option<StoreError>,
    /// Fingerprints and documents that are not committed yet.
    pending: Vec<(String, String)>,
    committed: Instant,
}

impl Kept {
    /// The points of the store at this path, or at its usual place; those that
    /// are there are ignored if they are to be made afresh.
    pub fn open(path: Option<&Path>, fresh: bool) -> Self {
        let path = path.map_or_else(Store::default_path, |path| Ok(path.to_owned()));
        let opened = path.and_then(|path| Store::open_with_lock_wait(&path, LOCK_WAIT));
        let (store, failure) = match opened {
            Ok(store) => (Some(store), None),
            Err(error) => (None, Some(error)),
        };
        Self {
            fresh,
            state: Mutex::new(State {
                store,
                failure,
                pending: Vec::new(),
                committed: Instant::now(),
            }),
        }
    }

    /// Why the store could not keep everything, if it could not.
    pub fn failure(&self) -> Option<String> {
        self.state().failure.as_ref().map(ToString::to_string)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a point came to, if that is known.
    pub(super) fn find(&self, fingerprint: &str) -> Option<Vec<Figures>> {
        if self.fresh {
            return None;
        }
        let mut state = self.state();
        match state.store.as_ref()?.point(fingerprint) {
            // What cannot be read is made again.
            Ok(document) => serde_json::from_str(&document?).ok(),
            Err(error) => {
                state.fail(error);
                None
            }
        }
    }

    /// Keeps what a point came to.
    pub(super) fn keep(&self, fingerprint: String, figures: &[Figures]) {
        let Ok(document) = serde_json::to_string(figures) else {
            return;
        };
        let mut state = self.state();
        state.pending.push((fingerprint, document));
        if state.pending.len() >= BATCH || state.committed.elapsed() >= OLDEST {
            state.commit();
        }
    }

    /// Commits what is left.
    pub(super) fn flush(&self) {
        self.state().commit();
    }
}

impl State {
    fn commit(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.committed = Instant::now();
        if pending.is_empty() {
            return;
        }
        if let Some(store) = &mut self.store
            && let Err(error) = store.add_points(&pending)
        {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: StoreError) {
        self.failure = Some(error);
        self.store = None;
    }
}
