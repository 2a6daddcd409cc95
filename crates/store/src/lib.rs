//! The result store: every run, its results and their repetitions, in one
//! SQLite file.
//!
//! A [`Store`] survives a kill at any moment: what a method has written is on
//! the disk when it returns. Several processes may use one store at once; a
//! reader never waits for a writer. A store that cannot be written can still
//! be read, where the system lets it be read at all. A file that is deleted,
//! moved or replaced while it is in use takes nothing more, and says so.
//!
//! What a store holds may have been written by anybody: a row that is no run is
//! told by itself, and takes no other with it.
//!
//! This crate knows nothing of how a run is made or judged. Nothing but a
//! laboratory compiles or links it.

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

/// How long a call waits for another process's write to end. A write lasts
/// milliseconds; only a disk that hangs or a lock that nobody releases
/// outlasts this.
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// An open result store.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// The file that is open; none where names of open files do not change.
    file: Option<FileIdentity>,
    /// Where the write-ahead log is, and which file it is once it was seen.
    log: (PathBuf, Option<FileIdentity>),
    /// Whether it can only be read because its disk was full when it was opened.
    is_full: bool,
}

impl Store {
    /// Opens the store at `path`; creates it, and the folders above it, if it
    /// is not there. An empty file is a new store.
    ///
    /// # Errors
    ///
    /// Every error leaves the file as it was: not a store of diskperf
    /// ([`StoreErrorKind::NotAStore`]), of a newer diskperf
    /// ([`StoreErrorKind::Newer`]), damaged, locked for longer than 30 s, not
    /// accessible, or no space to create it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with_lock_wait(path, LOCK_WAIT)
    }

    /// [`Store::open`], where this and every later call waits no longer than
    /// `lock_wait` for a lock (at most a day).
    ///
    /// # Errors
    ///
    /// Those of [`Store::open`].
    pub fn open_with_lock_wait(path: &Path, lock_wait: Duration) -> Result<Self, StoreError> {
        match open::open(path, lock_wait) {
            Ok(opened) => Ok(Self::opened(opened)),
            Err(kind) => Err(StoreError {
                path: path.to_owned(),
                kind,
            }),
        }
    }

    fn opened(opened: open::Opened) -> Self {
        let open::Opened {
            connection,
            path,
            is_full,
        } = opened;
        // SQLite has its log beside the file itself.
        let log = open::with_suffix(&open::real_path(&path), "-wal");
        Self {
            file: FileIdentity::at(&path),
            log: (log.clone(), FileIdentity::at(&log)),
            connection,
            path,
            is_full,
        }
    }

    /// Lets every later call wait no longer than this for a lock.
    ///
    /// # Errors
    ///
    /// None that a store which is open has.
    pub fn set_lock_wait(&self, lock_wait: Duration) -> Result<(), StoreError> {
        let set = self.connection.busy_timeout(open::bounded(lock_wait));
        self.named(set.map_err(StoreErrorKind::from))
    }

    /// Whether [`Store::open`] would refuse what is at `path`: what is plainly no
    /// store, or a newer one. Nothing is made or changed.
    ///
    /// # Errors
    ///
    /// Those of [`Store::open`] that concern the file itself.
    pub fn check(path: &Path) -> Result<(), StoreError> {
        open::check(path).map_err(|kind| StoreError {
            path: path.to_owned(),
            kind,
        })
    }

    /// Where the store is when nobody names another file:
    /// `$XDG_DATA_HOME/diskperf/runs.sqlite`, and without that variable the
    /// system's own place for a user's data, which on Linux is
    /// `$HOME/.local/share`.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NoDataDirectory`] where the environment names neither.
    pub fn default_path() -> Result<PathBuf, StoreError> {
        location::default_path(|name| std::env::var_os(name))
    }

    /// The files of the store at `path`: the store itself, and what SQLite keeps
    /// beside it while it is in use.
    pub fn files_of(path: &Path) -> [PathBuf; 4] {
        let real = open::real_path(path);
        ["", "-journal", "-wal", "-shm"].map(|suffix| open::with_suffix(&real, suffix))
    }

    /// The store's file, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Does `work` on one snapshot of the store.
    fn reading<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreErrorKind>,
    ) -> Result<T, StoreError> {
        self.named(in_snapshot(&self.connection, work))
    }

    /// Does `work` in one transaction: all of it is on the disk when this
    /// returns, or nothing of it is in the store.
    fn writing<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, StoreErrorKind>,
    ) -> Result<T, StoreError> {
        let outcome = self.in_place().and_then(|()| {
            let value = in_transaction(&mut self.connection, work)?;
            // What went into a file that lost its name meanwhile is not stored.
            self.in_place()?;
            Ok(value)
        });
        self.named(outcome)
    }

    /// Makes sure that the open file is the one at the store's name, and its log
    /// the one beside it.
    fn in_place(&mut self) -> Result<(), StoreErrorKind> {
        let (log, known) = &mut self.log;
        let now = FileIdentity::at(log);
        // The log is made by the first write, and stays until all have closed.
        let same_log = known.is_none() || now == *known;
        *known = known.or(now);
        if same_log && FileIdentity::at(&self.path) == self.file {
            return Ok(());
        }
        // To close it would remove the log at the old name, which may be that of
        // another store by now.
        self.connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        Err(StoreErrorKind::Moved)
    }

    /// Says of an error which store it befell.
    fn named<T>(&self, outcome: Result<T, StoreErrorKind>) -> Result<T, StoreError> {
        outcome.map_err(|kind| StoreError {
            path: self.path.clone(),
            kind: match kind {
                StoreErrorKind::ReadOnly if self.is_full => StoreErrorKind::DiskFull,
                kind => space::full_or(kind, &self.path),
            },
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It is about closing a file that was moved; there is nothing to do about
        // one that cannot even be told that.
        let _ = self.in_place();
    }
}

fn in_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreErrorKind>,
) -> Result<T, StoreErrorKind> {
    let snapshot = connection.unchecked_transaction()?;
    work(&snapshot)
}

fn in_transaction<T>(
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
