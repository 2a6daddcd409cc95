//! Stored points of a search, so that a killed search can continue where it was.

use crate::steady::{LOCK_WAIT, LOCK_WAIT_BRIEF, SteadyStore};
use diskperf_analysis::tuning::ProgramFigures;
use diskperf_models::tune::PointMemory;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of finished points per commit. A commit waits for the disk, while a point may take a
/// millisecond.
const BATCH_POINTS: usize = 64;
const PENDING_AGE_MAX: Duration = Duration::from_millis(250);

const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Points that the store has. Points that the store refuses are kept in memory until it accepts
/// them; the search continues meanwhile.
pub struct PointStore {
    ignores_stored: bool,
    state: Mutex<PointStoreState>,
}

struct PointStoreState {
    store: SteadyStore,
    pending_points: Vec<(String, String)>,
    last_commit: Instant,
}

impl PointStore {
    /// Opens the points in the store at this path, or at its default place. If `fresh` is set,
    /// stored points are ignored.
    pub fn open(path: Option<&Path>, fresh: bool) -> Self {
        Self {
            ignores_stored: fresh,
            state: Mutex::new(PointStoreState {
                store: SteadyStore::open(path),
                pending_points: Vec::new(),
                last_commit: Instant::now(),
            }),
        }
    }

    /// Returns the reason why the store does not accept points at the moment; `None` if it does.
    pub fn failure(&self) -> Option<String> {
        self.lock_state().store.failure().map(ToString::to_string)
    }

    fn lock_state(&self) -> MutexGuard<'_, PointStoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PointMemory for PointStore {
    fn find_figures(&self, fingerprint: &str, programs: usize) -> Option<Vec<ProgramFigures>> {
        if self.ignores_stored {
            return None;
        }
        let mut state = self.lock_state();
        if state.store.failure().is_some() {
            return None;
        }
        let document = state
            .store
            .with_store(LOCK_WAIT, |store| store.read_point(fingerprint))??;
        // What cannot be read, or cannot be, is made again.
        let figures: Vec<ProgramFigures> = serde_json::from_str(&document).ok()?;
        let possible =
            figures.len() == programs && figures.iter().all(ProgramFigures::are_possible);
        possible.then_some(figures)
    }

    fn store_figures(&self, fingerprint: String, figures: &[ProgramFigures]) {
        let Ok(document) = serde_json::to_string(figures) else {
            return;
        };
        let mut state = self.lock_state();
        state.pending_points.push((fingerprint, document));
        let age = state.last_commit.elapsed();
        match state.store.failure() {
            None if state.pending_points.len() >= BATCH_POINTS || age >= PENDING_AGE_MAX => {
                state.commit_pending(LOCK_WAIT)
            }
            Some(_) if age >= RETRY_PAUSE => state.commit_pending(LOCK_WAIT_BRIEF),
            _ => {}
        }
    }

    fn flush_pending(&self) {
        self.lock_state().commit_pending(LOCK_WAIT);
    }
}

impl PointStoreState {
    fn commit_pending(&mut self, lock_wait: Duration) {
        let pending = &self.pending_points;
        if !pending.is_empty()
            && self
                .store
                .with_store(lock_wait, |store| store.add_points(pending))
                .is_some()
        {
            self.pending_points.clear();
        }
        self.last_commit = Instant::now();
    }
}
