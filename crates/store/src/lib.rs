//! Result store: all runs, their results and their repetitions, in one SQLite file.
//!
//! A [`Store`] survives a kill at any moment: the data that a method has written is on the disk
//! when the method returns. Several processes may use one store at the same time, and a reader
//! never waits for a writer. A store that cannot be written can still be read, if the system
//! permits reading at all. A file that is deleted, moved or replaced while it is in use accepts no
//! more data, and its methods return an error.
//!
//! The contents of a store may come from anyone. A row that is not a valid run is reported alone
//! and does not affect other rows.
//!
//! This crate knows nothing of how a run is made or judged. Only laboratories compile or link it.

mod documents;
mod error;
mod identity;
mod location;
mod open;
mod points;
mod read;
mod schema;
mod side_files;
mod space;
mod workspaces;
mod write;

pub use error::{StoreError, StoreErrorKind};
pub use read::{DamagedRun, RunHeading};
pub use workspaces::NotedWorkspace;

use identity::FileIdentity;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default time for which a call waits until another process's write ends. A write takes
/// milliseconds. Only a hanging disk or a lock that is never released takes longer than this.
const DEFAULT_LOCK_WAIT: Duration = Duration::from_secs(30);

/// Result store that this process has open.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Identity of the open file. `None` on systems where an open file keeps its name.
    file_identity: Option<FileIdentity>,
    /// Path of SQLite's write-ahead log, and the identity of the log file once it was seen.
    log_identity: (PathBuf, Option<FileIdentity>),
    /// Whether the store is read-only because its disk was full when it was opened.
    is_disk_full: bool,
}

impl Store {
    /// Opens the store at `path`. Creates the store and its parent folders if they do not exist. An
    /// empty file is a new store.
    ///
    /// # Errors
    ///
    /// Fails if the file is not a store of diskperf ([`StoreErrorKind::NotAStore`]), is of a newer
    /// diskperf ([`StoreErrorKind::Newer`]), is damaged, locked for longer than 30 s or not
    /// accessible, or if there is no space to create it. Every error leaves the file as it was.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with_lock_wait(path, DEFAULT_LOCK_WAIT)
    }

    /// Opens the store like [`Store::open`], with a maximum wait of `lock_wait` for a lock in this
    /// and all later calls (at most a day).
    ///
    /// # Errors
    ///
    /// As for [`Store::open`].
    pub fn open_with_lock_wait(path: &Path, lock_wait: Duration) -> Result<Self, StoreError> {
        match open::open(path, lock_wait) {
            Ok(opened) => Ok(Self::from_opened(opened)),
            Err(kind) => Err(StoreError {
                path: path.to_owned(),
                kind,
            }),
        }
    }

    fn from_opened(opened: open::OpenedStore) -> Self {
        let open::OpenedStore {
            connection,
            path,
            is_disk_full: is_full,
        } = opened;
        // SQLite has its log beside the file itself.
        let log = open::with_suffix(&open::resolve_links(&path), "-wal");
        Self {
            file_identity: FileIdentity::of_path(&path),
            log_identity: (log.clone(), FileIdentity::of_path(&log)),
            connection,
            path,
            is_disk_full: is_full,
        }
    }

    /// Sets the maximum wait of later calls for a lock.
    ///
    /// # Errors
    ///
    /// Does not fail for an open store.
    pub fn set_lock_wait(&self, lock_wait: Duration) -> Result<(), StoreError> {
        let set = self
            .connection
            .busy_timeout(open::limit_lock_wait(lock_wait));
        self.with_store_path(set.map_err(StoreErrorKind::from))
    }

    /// Checks whether [`Store::open`] would refuse the file at `path`, because it is clearly not a
    /// store or a newer one. Nothing is created or changed.
    ///
    /// # Errors
    ///
    /// As for the errors of [`Store::open`] that concern the file itself.
    pub fn check(path: &Path) -> Result<(), StoreError> {
        open::check(path).map_err(|kind| StoreError {
            path: path.to_owned(),
            kind,
        })
    }

    /// Returns the default path of the store: `$XDG_DATA_HOME/diskperf/runs.sqlite`, or without
    /// that variable `diskperf/runs.sqlite` in the system's directory for user data, which on Linux
    /// is `$HOME/.local/share`.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NoDataDirectory`] if the environment names neither directory.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        location::default_path(|name| std::env::var_os(name))
    }

    /// Returns the files of the store at `path`: the store itself, and the files that SQLite keeps
    /// beside it while it is in use.
    pub fn files_of(path: &Path) -> [PathBuf; 4] {
        let real = open::resolve_links(path);
        ["", "-journal", "-wal", "-shm"].map(|suffix| open::with_suffix(&real, suffix))
    }

    /// Returns the absolute path of the store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` on one snapshot of the store.
    fn read_snapshot<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreErrorKind>,
    ) -> Result<T, StoreError> {
        self.with_store_path(run_in_snapshot(&self.connection, work))
    }

    /// Runs `work` in one transaction: either all of its changes are on the disk when this returns,
    /// or none of them is in the store.
    fn write_transaction<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, StoreErrorKind>,
    ) -> Result<T, StoreError> {
        let outcome = self.check_files_unmoved().and_then(|()| {
            let value = run_in_transaction(&mut self.connection, work)?;
            // What went into a file that lost its name meanwhile is not stored.
            self.check_files_unmoved()?;
            Ok(value)
        });
        self.with_store_path(outcome)
    }

    /// Checks that the open file is still the one at the store's path, and that its log is the one
    /// beside it.
    fn check_files_unmoved(&mut self) -> Result<(), StoreErrorKind> {
        let (log, known) = &mut self.log_identity;
        let now = FileIdentity::of_path(log);
        // The log is made by the first write, and stays until all have closed.
        let same_log = known.is_none() || now == *known;
        *known = known.or(now);
        if same_log && FileIdentity::of_path(&self.path) == self.file_identity {
            return Ok(());
        }
        // To close it would remove the log at the old name, which may be that of
        // another store by now.
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Err(StoreErrorKind::Moved)
    }

    fn with_store_path<T>(&self, outcome: Result<T, StoreErrorKind>) -> Result<T, StoreError> {
        outcome.map_err(|kind| StoreError {
            path: self.path.clone(),
            kind: match kind {
                StoreErrorKind::ReadOnly if self.is_disk_full => StoreErrorKind::DiskFull,
                kind => space::disk_full_or(kind, &self.path),
            },
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It is about closing a file that was moved; there is nothing to do about
        // one that cannot even be told that.
        let _ = self.check_files_unmoved();
    }
}

fn run_in_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreErrorKind>,
) -> Result<T, StoreErrorKind> {
    let snapshot = connection.unchecked_transaction()?;
    work(&snapshot)
}

fn run_in_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreErrorKind>,
) -> Result<T, StoreErrorKind> {
    // IMMEDIATE, because a transaction that turns from reading to writing
    // cannot wait for its turn: SQLite refuses it at once.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let value = work(&transaction)?;
    transaction.commit()?;
    Ok(value)
}
