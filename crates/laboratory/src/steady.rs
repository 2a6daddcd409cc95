//! Access to a store that survives failures. A lock that is held too long, a full disk or a moved
//! file fails the current write, but the store is tried again later.

use crate::store_path;
use diskperf_store::{Store, StoreError, StoreErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time that a command waits for a store locked by another process. Writers hold the lock
/// for milliseconds; a process that holds it longer hangs.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Maximum wait for a store that was locked at the last attempt, so that a run does not stop at
/// each repetition.
pub(crate) const LOCK_WAIT_BRIEF: Duration = Duration::from_millis(100);

/// Store of results that may be unavailable at times, and is then tried again.
pub(crate) struct SteadyStore {
    path: Option<PathBuf>,
    store: Option<Store>,
    last_failure: Option<StoreError>,
    /// Whether the store was ever open. Such a store is never recreated: if its file is missing,
    /// somebody removed it.
    has_been_open: bool,
    /// Device and inode of the file that was opened last.
    file_identity: Option<(u64, u64)>,
}

impl SteadyStore {
    /// Opens the store of results at this path, or at its default place.
    pub(crate) fn open(path: Option<&Path>) -> Self {
        let mut steady = Self::without_store();
        match store_path::resolve_path(path) {
            Ok(path) => {
                // Wherever the working directory is by then.
                steady.path = Some(std::path::absolute(&path).unwrap_or(path));
                steady.reopen(LOCK_WAIT);
            }
            Err(error) => steady.last_failure = Some(error),
        }
        steady
    }

    /// Creates a placeholder without a store, which ignores all operations.
    pub(crate) fn without_store() -> Self {
        Self {
            path: None,
            store: None,
            last_failure: None,
            has_been_open: false,
            file_identity: None,
        }
    }

    /// Path of the store, if it has one.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Error of the last attempt to use the store.
    pub(crate) fn failure(&self) -> Option<&StoreError> {
        self.last_failure.as_ref()
    }

    /// Reports whether the file at the store's path was replaced or removed.
    pub(crate) fn was_moved(&self) -> bool {
        self.last_failure
            .as_ref()
            .is_some_and(|error| matches!(error.kind, StoreErrorKind::Moved))
    }

    /// Device and inode of the file that was opened last. A file that was moved and put back is the
    /// same.
    pub(crate) fn file_identity(&self) -> Option<(u64, u64)> {
        self.file_identity
    }

    /// Reports whether the last attempt failed because of a lock, which time alone may end.
    pub(crate) fn is_locked(&self) -> bool {
        self.last_failure
            .as_ref()
            .is_some_and(|error| matches!(error.kind, StoreErrorKind::Locked))
    }

    /// Runs `act` on the store and waits up to `lock_wait` for a lock. Returns `None` on a failure,
    /// which [`SteadyStore::last_failure`] then returns.
    pub(crate) fn with_store<T>(
        &mut self,
        lock_wait: Duration,
        act: impl FnOnce(&mut Store) -> Result<T, StoreError>,
    ) -> Option<T> {
        if self.store.is_none() && self.may_reopen() {
            self.reopen(lock_wait);
        }
        let store = self.store.as_mut()?;
        match store.set_lock_wait(lock_wait).and_then(|()| act(store)) {
            Ok(value) => {
                self.last_failure = None;
                Some(value)
            }
            Err(error) => {
                // Also of a store that is locked: a lock that could not be freed is
                // this connection's own.
                self.store = None;
                self.last_failure = Some(error);
                None
            }
        }
    }

    fn may_reopen(&self) -> bool {
        let Some(failure) = &self.last_failure else {
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
            | StoreErrorKind::CannotOpen { .. }
            | StoreErrorKind::SideFile { .. }
            | StoreErrorKind::UntrustedPath { .. }
            | StoreErrorKind::NoSuchRun { .. }
            | StoreErrorKind::NoLastRun
            | StoreErrorKind::Ambiguous { .. }
            | StoreErrorKind::RunExists { .. }
            | StoreErrorKind::ResultExists { .. }
            | StoreErrorKind::NoSuchResult { .. }
            | StoreErrorKind::Malformed { .. }
            | StoreErrorKind::ValueNotStorable { .. }
            | StoreErrorKind::Failed(_) => true,
        }
    }

    fn reopen(&mut self, lock_wait: Duration) {
        let Some(path) = &self.path else { return };
        // What was taken away stays so until somebody puts it back.
        if self.has_been_open && !path.exists() {
            return;
        }
        match store_path::open_store(path, lock_wait) {
            Ok(store) => {
                self.store = Some(store);
                self.has_been_open = true;
                self.last_failure = None;
                let metadata = std::fs::metadata(path).ok();
                self.file_identity = metadata.map(|of| (of.dev(), of.ino()));
            }
            Err(error) => self.last_failure = Some(error),
        }
    }
}
