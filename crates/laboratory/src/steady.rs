//! A store that is tried again: a lock that was held too long, a full disk or a
//! file that was moved ends what is being written, and not the use of the store.

use crate::store_path;
use diskperf_store::{Store, StoreError, StoreErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a command waits for a store that another process has locked. Writers
/// hold the lock for milliseconds; one that holds it longer hangs.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// How long a store is waited for that was locked when it was last tried: a run
/// does not stand still at each repetition.
pub(crate) const BRIEF_WAIT: Duration = Duration::from_millis(100);

/// A store, whether or not it can be had at the moment.
pub(crate) struct SteadyStore {
    path: Option<PathBuf>,
    store: Option<Store>,
    failure: Option<StoreError>,
    /// Whether it was ever open. One that was is never made anew: what is not at
    /// its name was taken away.
    was_open: bool,
    /// The file that was opened last: its device and inode.
    file: Option<(u64, u64)>,
}

impl SteadyStore {
    /// The one at this path, or at its usual place.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let mut steady = Self::none();
        match store_path::named(path) {
            Ok(path) => {
                // Wherever the working directory is by then.
                steady.path = Some(std::path::absolute(&path).unwrap_or(path));
                steady.open_again(LOCK_WAIT);
            }
            Err(error) => steady.failure = Some(error),
        }
        steady
    }

    /// None at all: whatever is done with it is not done.
    pub(crate) fn none() -> Self {
        Self {
            path: None,
            store: None,
            failure: None,
            was_open: false,
            file: None,
        }
    }

    /// Where it is, if it has a place.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Why it was not to be had when it was last tried.
    pub(crate) fn failure(&self) -> Option<&StoreError> {
        self.failure.as_ref()
    }

    /// Whether the file at its name was found to be another one, or none.
    pub(crate) fn was_moved(&self) -> bool {
        self.failure
            .as_ref()
            .is_some_and(|error| matches!(error.kind, StoreErrorKind::Moved))
    }

    /// Which file was opened last: one that was moved and put back is the same.
    pub(crate) fn file(&self) -> Option<(u64, u64)> {
        self.file
    }

    /// Whether what was tried last failed for a reason that time alone may end.
    pub(crate) fn is_locked(&self) -> bool {
        self.failure
            .as_ref()
            .is_some_and(|error| matches!(error.kind, StoreErrorKind::Locked))
    }

    /// Does something with the store, and waits so long for a lock; nothing where
    /// that fails, which [`SteadyStore::failure`] then tells.
    pub(crate) fn with<T>(
        &mut self,
        lock_wait: Duration,
        act: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Option<T> {
        if self.store.is_none() && self.may_come_back() {
            self.open_again(lock_wait);
        }
        let store = self.store.as_mut()?;
        match store.set_lock_wait(lock_wait).and_then(|()| act(store)) {
            Ok(value) => {
                self.failure = None;
                Some(value)
            }
            Err(error) => {
                // Also of a store that is locked: a lock that could not be freed is
                // this connection's own.
                self.store = None;
                self.failure = Some(error);
                None
            }
        }
    }

    /// Whether there is any use in opening it again.
    fn may_come_back(&self) -> bool {
        let Some(failure) = &self.failure else {
            return true;
        };
        match &failure.kind {
            StoreErrorKind::NotAStore
            | StoreErrorKind::Newer { .. }
            | StoreErrorKind::Corrupt { .. }
            | StoreErrorKind::NoDataDirectory { .. } => false,
            StoreErrorKind::Moved
            | StoreErrorKind::Locked
            | StoreErrorKind::DiskFull
            | StoreErrorKind::NoMemory
            | StoreErrorKind::ReadOnly
            | StoreErrorKind::Unopenable { .. }
            | StoreErrorKind::SideFile { .. }
            | StoreErrorKind::UntrustedPath { .. }
            | StoreErrorKind::NoSuchRun { .. }
            | StoreErrorKind::NoLastRun
            | StoreErrorKind::Ambiguous { .. }
            | StoreErrorKind::RunExists { .. }
            | StoreErrorKind::ResultExists { .. }
            | StoreErrorKind::NoSuchResult { .. }
            | StoreErrorKind::Malformed { .. }
            | StoreErrorKind::NotStorable { .. }
            | StoreErrorKind::Failed(_) => true,
        }
    }

    fn open_again(&mut self, lock_wait: Duration) {
        let Some(path) = &self.path else { return };
        // What was taken away stays so until somebody puts it back.
        if self.was_open && !path.exists() {
            return;
        }
        match store_path::open(path, lock_wait) {
            Ok(store) => {
                self.store = Some(store);
                self.was_open = true;
                self.failure = None;
                let metadata = std::fs::metadata(path).ok();
                self.file = metadata.map(|of| (of.dev(), of.ino()));
            }
            Err(error) => self.failure = Some(error),
        }
    }
}
