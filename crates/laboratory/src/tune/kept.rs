//! Points in the store, so that a search that was killed goes on where it was.

use crate::steady::{BRIEF_WAIT, LOCK_WAIT, SteadyStore};
use diskperf_analysis::tuning::Figures;
use diskperf_models::tune::PointMemory;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What is finished is committed when it is this much, or this old: a commit
/// waits for the disk, and a point may take a millisecond.
const BATCH: usize = 64;
const OLDEST: Duration = Duration::from_millis(250);

/// A store that did not take points is tried again after so long.
const RETRY: Duration = Duration::from_secs(2);

/// The points that the store has. What a store does not take is kept until it
/// does; the search goes on meanwhile.
pub struct Kept {
    /// Whether what is there is ignored.
    fresh: bool,
    state: Mutex<State>,
}

struct State {
    store: SteadyStore,
    /// Fingerprints and documents that are not committed yet.
    pending: Vec<(String, String)>,
    committed: Instant,
}

impl Kept {
    /// The points of the store at this path, or at its usual place; those that
    /// are there are ignored if they are to be made afresh.
    pub fn open(path: Option<&Path>, fresh: bool) -> Self {
        Self {
            fresh,
            state: Mutex::new(State {
                store: SteadyStore::open(path),
                pending: Vec::new(),
                committed: Instant::now(),
            }),
        }
    }

    /// Why the store does not keep everything at the moment, if it does not.
    pub fn failure(&self) -> Option<String> {
        self.state().store.failure().map(ToString::to_string)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PointMemory for Kept {
    fn find(&self, fingerprint: &str, programs: usize) -> Option<Vec<Figures>> {
        if self.fresh {
            return None;
        }
        let mut state = self.state();
        if state.store.failure().is_some() {
            return None;
        }
        let document = state
            .store
            .with(LOCK_WAIT, |store| store.point(fingerprint))??;
        // What cannot be read, or cannot be, is made again.
        let figures: Vec<Figures> = serde_json::from_str(&document).ok()?;
        let possible = figures.len() == programs && figures.iter().all(Figures::is_possible);
        possible.then_some(figures)
    }

    fn keep(&self, fingerprint: String, figures: &[Figures]) {
        let Ok(document) = serde_json::to_string(figures) else {
            return;
        };
        let mut state = self.state();
        state.pending.push((fingerprint, document));
        let age = state.committed.elapsed();
        match state.store.failure() {
            None if state.pending.len() >= BATCH || age >= OLDEST => state.commit(LOCK_WAIT),
            Some(_) if age >= RETRY => state.commit(BRIEF_WAIT),
            _ => {}
        }
    }

    fn flush(&self) {
        self.state().commit(LOCK_WAIT);
    }
}

impl State {
    fn commit(&mut self, lock_wait: Duration) {
        let pending = &self.pending;
        if !pending.is_empty()
            && self
                .store
                .with(lock_wait, |store| store.add_points(pending))
                .is_some()
        {
            self.pending.clear();
        }
        self.committed = Instant::now();
    }
}
