//! Errors of a result store, with their remedies.

use rusqlite::{ErrorCode, ffi};
use std::path::PathBuf;

/// Failure of an operation on a result store.
#[derive(Debug, thiserror::Error)]
#[error("the result store {} {kind}", path.display())]
pub struct StoreError {
    /// Path of the store's file.
    pub path: PathBuf,
    /// Kind of the failure.
    pub kind: StoreErrorKind,
}

/// Kind of a store failure. Its text continues a sentence that begins with the store's name.
#[derive(Debug, thiserror::Error)]
pub enum StoreErrorKind {
    /// The store's file or its folder cannot be opened, read or created.
    #[error(
        "cannot be opened: {reason}; check the permissions of the file and of its directory, or \
         name another file with --store FILE"
    )]
    CannotOpen {
        /// Reason that the operating system gives.
        reason: String,
    },
    /// A file beside the store may come from another user, and SQLite would take it for a part of
    /// the store.
    #[error(
        "is not opened, because {} is {what} in a directory that other users can write to, and \
         SQLite would use it as part of the store: remove that file, or name a store in a \
         directory of your own with --store FILE",
        file.display()
    )]
    SideFile {
        /// Path of the file beside the store.
        file: PathBuf,
        /// Description of the file, such as `a file of user 1000`.
        what: String,
    },
    /// Another user controls where the store's path leads.
    #[error("{problem} with --store FILE, or by XDG_DATA_HOME")]
    UntrustedPath {
        /// Description of the obstacle. It ends with a remedy.
        problem: String,
    },
    /// The file is not a diskperf store. It was not changed.
    #[error("is not a diskperf store and was not changed; name another file with --store FILE")]
    NotAStore,
    /// The structure of the store's file is damaged.
    #[error(
        "is damaged ({detail}): replace it with a backup, or move the file away (with its -wal \
         and -shm files, if any), and diskperf creates a new store; `sqlite3 FILE .recover` may \
         recover runs of the old one"
    )]
    Corrupt {
        /// Description of the damage by SQLite.
        detail: String,
    },
    /// Another process kept the store locked for longer than the lock wait.
    #[error(
        "is locked by another program: try again when that program has ended, or name another \
         file with --store FILE"
    )]
    Locked,
    /// The store's file was deleted, moved or replaced while it was in use.
    #[error(
        "was deleted, moved or replaced during its use: put it back, or name another file with \
         --store FILE"
    )]
    Moved,
    /// A newer diskperf has changed the schema. Nothing was changed.
    #[error(
        "has schema version {found}, and this diskperf supports versions up to {known}: use the \
         newer diskperf that wrote it, or name another file with --store FILE"
    )]
    Newer {
        /// Schema version of the file.
        found: i64,
        /// Newest schema version that this program knows.
        known: i64,
    },
    /// The store's disk is full.
    #[error(
        "could not be written, because its disk is full: free some space, or name a file on another disk with --store FILE"
    )]
    DiskFull,
    /// There is not enough memory to use the store.
    #[error(
        "could not be used, because memory ran out: raise the limit of the address space (`ulimit \
         -v`), or free memory"
    )]
    NoMemory,
    /// The store can be read, but not written.
    #[error(
        "cannot be written: give yourself write permission for the file and its directory, or \
         name another file with --store FILE"
    )]
    ReadOnly,
    /// No run has this id, or an id that begins with it.
    #[error("has no run `{run}`: `diskperf list runs` prints the runs that it has")]
    NoSuchRun {
        /// Id or beginning of an id that was requested.
        run: String,
    },
    /// The run `last` was requested, but no run has a repetition.
    #[error("has no run with a finished repetition, so no `last`: make one with `diskperf run`")]
    NoLastRun,
    /// The ids of several runs begin with the requested text.
    #[error(
        "has {} runs whose id begins with `{prefix}`: give one of {}",
        candidates.len(),
        candidates.join(", ")
    )]
    Ambiguous {
        /// Beginning of an id that was requested.
        prefix: String,
        /// Ids that begin with the requested text, in order.
        candidates: Vec<String>,
    },
    /// A run with this id is stored already.
    #[error("already has a run `{run}`, which was not changed: it need not be stored again")]
    RunExists {
        /// Id of the run.
        run: String,
    },
    /// The run already has a result with this ordinal.
    #[error("already has result {ordinal} of run `{run}`: give each result its own ordinal")]
    ResultExists {
        /// Id of the run.
        run: String,
        /// Position of the result in the order of execution.
        ordinal: u32,
    },
    /// The run has no result with this ordinal.
    #[error("has no result {ordinal} of run `{run}`: begin the result before its repetitions")]
    NoSuchResult {
        /// Id of the run.
        run: String,
        /// Position of the result in the order of execution.
        ordinal: u32,
    },
    /// A stored value is not one that diskperf writes.
    #[error(
        "has {place} in a format that this diskperf cannot read ({detail}): replace the store \
         with a backup, or read the row with `sqlite3 FILE`"
    )]
    Malformed {
        /// Name of the row, as a part of a run.
        place: String,
        /// Description of the invalid value.
        detail: String,
    },
    /// A value has no JSON representation that reads back as the same value, such as a float that
    /// is not a number. Nothing was stored.
    #[error(
        "cannot store {place}: one of its numbers is not finite; correct the program that made it"
    )]
    ValueNotStorable {
        /// Name of the row, as a part of a run.
        place: String,
    },
    /// No environment variable names the user's data directory.
    #[error(
        "has no path, because no environment variable names the user's data directory: set \
         XDG_DATA_HOME or {variable} to an absolute path, or name a file with --store FILE"
    )]
    NoDataDirectory {
        /// Environment variable with which the operating system names that directory.
        variable: &'static str,
    },
    /// SQLite failed in a way that no other variant covers.
    #[error("failed: {0}; check its disk, or name another file with --store FILE")]
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for StoreErrorKind {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error {
            E::SqliteFailure(failure, _) => Self::from_sqlite_failure(failure, error),
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
    fn from_sqlite_failure(failure: ffi::Error, error: rusqlite::Error) -> Self {
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
                Self::CannotOpen { reason: detail }
            }
            _ => Self::Failed(error),
        }
    }
}
