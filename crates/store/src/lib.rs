//! The result store: every run, its results and their repetitions, in one
//! SQLite file.
//!
//! A [`Store`] survives a kill at any moment: what a method has written is on
//! the disk when it returns. Several processes may use one store at once; a
//! reader never waits for a writer. A store that cannot be written can still
//! be read, where the system lets it be read at all.
//!
//! This crate knows nothing of how a run is made or judged. Nothing but a
//! laboratory compiles or links it.

mod documents;
mod error;
mod location;
mod open;
mod points;
mod read;
mod schema;
mod workspaces;
mod write;

pub use error::{StoreError, StoreErrorKind};
pub use read::RunHeading;
pub use workspaces::DeviceSetting;

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
            Ok((connection, path)) => Ok(Self { connection, path }),
            Err(kind) => Err(StoreError {
                path: path.to_owned(),
                kind,
            }),
        }
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
        let outcome = in_transaction(&mut self.connection, work);
        self.named(outcome)
    }

    /// Says of an error which store it befell.
    fn named<T>(&self, outcome: Result<T, StoreErrorKind>) -> Result<T, StoreError> {
        outcome.map_err(|kind| StoreError {
            path: self.path.clone(),
            kind,
        })
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
