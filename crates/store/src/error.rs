//! What can go wrong with a store, and what the user can do about it.

use rusqlite::{ErrorCode, ffi};
use std::path::PathBuf;

/// An operation on a store failed.
#[derive(Debug, thiserror::Error)]
#[error("the result store {} {kind}", path.display())]
pub struct StoreError {
    /// The store's file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: StoreErrorKind,
}

/// What is wrong with a store. The text of each continues a sentence that
/// begins with the store's name.
#[derive(Debug, thiserror::Error)]
pub enum StoreErrorKind {
    /// The file or its folder cannot be opened, read or created.
    #[error(
        "cannot be opened: {reason}; check the permissions of the file and of its folder, or name another file with --store FILE"
    )]
    Unopenable {
        /// The system's reason.
        reason: String,
    },
    /// A file that SQLite would take for the store's own, and that another user may
    /// have put there.
    #[error(
        "is not opened, because {} is {what} in a directory that others may write to, and SQLite would take it for a part of the store: remove that file, or name a store in a directory of your own with --store FILE",
        file.display()
    )]
    SideFile {
        /// The file beside the store.
        file: PathBuf,
        /// `a file of user 1000`.
        what: String,
    },
    /// Somebody else decides where its path leads.
    #[error("{problem} with --store FILE, or by XDG_DATA_HOME")]
    UntrustedPath {
        /// What is in the way; it ends in a remedy.
        problem: String,
    },
    /// A file of something else. It was not changed.
    #[error(
        "is a file of something else, and was left as it is: it is not a diskperf store; name another file with --store FILE"
    )]
    NotAStore,
    /// The file's structure is broken.
    #[error(
        "is damaged ({detail}): put a backup in its place, or move the file away (with its -wal and -shm, if there are any) and a new store will be made; `sqlite3 FILE .recover` may save runs from the old one"
    )]
    Corrupt {
        /// What SQLite says of it.
        detail: String,
    },
    /// Another process kept the store locked for longer than the lock wait.
    #[error(
        "is locked by another program: try again when that has ended, or name another file with --store FILE"
    )]
    Locked,
    /// The file at its name is another one, or none.
    #[error(
        "is not at its name any more: it was deleted, moved or replaced while it was in use; put it back, or name another file with --store FILE"
    )]
    Moved,
    /// A newer diskperf has changed the schema. Nothing was changed.
    #[error(
        "has schema version {found}, and this diskperf knows versions up to {known}: use the newer diskperf that wrote it, or name another file with --store FILE"
    )]
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// No space is left for it.
    #[error(
        "could not be written, because its disk is full: free some space, or name a file on another disk with --store FILE"
    )]
    DiskFull,
    /// No memory is left for it.
    #[error(
        "could not be used, because there is no memory for it: raise the limit of address space (`ulimit -v`), or free some"
    )]
    NoMemory,
    /// It can be read, but not written.
    #[error(
        "cannot be written, only read: give yourself write permission for the file and its folder, or name another file with --store FILE"
    )]
    ReadOnly,
    /// No run has this id, or an id that begins so.
    #[error("has no run `{run}`: `diskperf list runs` prints those that it has")]
    NoSuchRun {
        /// What was asked for.
        run: String,
    },
    /// `last` was asked for, and no run has a repetition.
    #[error("has no run with a finished repetition, so no `last`: make one with `diskperf run`")]
    NoLastRun,
    /// Several runs' ids begin so.
    #[error(
        "has {} runs whose id begins with `{prefix}`: write one of {}",
        candidates.len(),
        candidates.join(", ")
    )]
    Ambiguous {
        /// What was asked for.
        prefix: String,
        /// The ids that begin with it, in order.
        candidates: Vec<String>,
    },
    /// A run with this id is stored already.
    #[error("already has a run `{run}`, which was left as it is: it need not be stored again")]
    RunExists {
        /// The id.
        run: String,
    },
    /// The run has a result with this ordinal already.
    #[error("already has result {ordinal} of run `{run}`: give each result its own ordinal")]
    ResultExists {
        /// The run's id.
        run: String,
        /// The result's place in the order of running.
        ordinal: u32,
    },
    /// The run has no result with this ordinal.
    #[error("has no result {ordinal} of run `{run}`: begin the result before its repetitions")]
    NoSuchResult {
        /// The run's id.
        run: String,
        /// The result's place in the order of running.
        ordinal: u32,
    },
    /// What is stored is not what diskperf writes.
    #[error(
        "holds {place} in a form that this diskperf cannot read ({detail}): put a backup in its place, or read the row with `sqlite3 FILE`"
    )]
    Malformed {
        /// Which part of which run.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A value has no JSON form that reads back as the same value, as a float
    /// that is not a number. Nothing was stored.
    #[error(
        "cannot hold {place}: one of its figures is not a finite number; correct the program that made it"
    )]
    NotStorable {
        /// Which part of which run.
        place: String,
    },
    /// The environment does not say where a user's data belongs.
    #[error(
        "has no place, because no variable of the environment names the user's data directory: set XDG_DATA_HOME or {variable} to an absolute path, or name a file with --store FILE"
    )]
    NoDataDirectory {
        /// The system's own variable for it.
        variable: &'static str,
    },
    /// SQLite failed in a way that has no name above.
    #[error("failed: {0}; check its disk, or name another file with --store FILE")]
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for StoreErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error {
            E::SqliteFailure(failure, _) => Self::of_failure(failure, error),
            // The statements are all known to be right: where SQLite finds an
            // error in one, it is the tables that are not.
            E::SqlInputError { msg, .. } => Self::Corrupt { detail: msg },
            E::FromSqlConversionFailure(..)
            | E::IntegralValueOutOfRange(..)
            | E::InvalidColumnType(..)
            | E::Utf8Error(..) => Self::Malformed {
                place: "a column".to_owned(),
                detail: error.to_string(),
            },
            _ => Self::Failed(error),
        }
    }
}

impl StoreErrorKind {
    fn of_failure(failure: ffi::Error, error: rusqlite::Error) -> Self {
        let detail = error.to_string();
        match (failure.code, failure.extended_code) {
            (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown, _)
            | (_, ffi::SQLITE_IOERR_CORRUPTFS) => Self::Corrupt { detail },
            (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Self::Locked,
            // The shared index of the log could not be given its size.
            (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => Self::DiskFull,
            (ErrorCode::OutOfMemory, _)
            | (_, ffi::SQLITE_IOERR_NOMEM | ffi::SQLITE_IOERR_SHMMAP) => Self::NoMemory,
            (ErrorCode::ReadOnly, _) => Self::ReadOnly,
            (ErrorCode::TooBig, _) => Self::Malformed {
                place: "a column".to_owned(),
                detail: "it is longer than any that diskperf writes".to_owned(),
            },
            (ErrorCode::CannotOpen | ErrorCode::PermissionDenied, _) => {
                Self::Unopenable { reason: detail }
            }
            _ => Self::Failed(error),
        }
    }
}
