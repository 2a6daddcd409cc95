//! Stored points of a search, so that a killed search can continue where it was.

use crate::steady::{BRIEF_WAIT, LOCK_WAIT, SteadyStore};
use diskperf_analysis::tuning::ProgramFigures;
use diskperf_models::tune::PointMemory;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of finished points per commit. A commit waits for the disk, while a point may take a
/// millisecond.
const BATCH: usize = 64;
const OLDEST: Duration = Duration::from_millis(250);

const RETRY: Duration = Duration::from_secs(2);

/// Points that the store has. Points that the store refuses are kept in memory until it accepts
/// them; the search continues meanwhile.
pub struct Kept {
    /// Whether points in the store are ignored and measured afresh.
    fresh: bool,
    state: Mutex<State>,
}

struct State {
    store: SteadyStore,
    pending: Vec<(String, String)>,
    committed: Instant,
}

impl Kept {
    /// Opens the points in the store at this path, or at its default place. If `fresh` is set,
    /// stored points are ignored.
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

    /// Returns the reason why the store does not accept points at the moment; `None` if it does.
    pub fn failure(&self) -> Option<String> {
        self.state().store.failure().map(ToString::to_string)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PointMemory for Kept {
    fn find(&self, fingerprint: &str, programs: usize) -> Option<Vec<ProgramFigures>> {
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
        let figures: Vec<ProgramFigures> = serde_json::from_str(&document).ok()?;
        let possible =
            figures.len() == programs && figures.iter().all(ProgramFigures::are_possible);
        possible.then_some(figures)
    }

    fn keep(&self, fingerprint: String, figures: &[ProgramFigures]) {
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
