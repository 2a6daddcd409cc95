//! The schema, and its way from version to version.
//!
//! One row for each run, result and repetition. The column `document` of a
//! row is its complete JSON, without the rows below it, and is what diskperf
//! reads back; the other columns repeat what one would ask for with the
//! sqlite3 shell. An integer of 2^63 or more stands there as 2^63 - 1.
//!
//! `runs`: one suite or program on one target.
//!
//! | column | |
//! |---|---|
//! | `id` | ten hexadecimal digits |
//! | `started_unix_ms` | milliseconds of Unix time |
//! | `version` | of the diskperf that made it |
//! | `suite`, `target`, `label` | `label` may be NULL |
//! | `world` | `host` or `model` |
//! | `cache` | `cold`, `warm` or `direct` |
//! | `state`, `error` | `running` (or killed), `finished`, `interrupted`, `failed`; `error` only with the last |
//!
//! `results`: one program within a run; `ordinal` is its place in the order of
//! running.
//!
//! | column | |
//! |---|---|
//! | `run_id`, `ordinal` | |
//! | `program`, `title` | `seqread`; `seqread layer=direct call_bytes=512` |
//! | `drives` | that ran it at once |
//! | `filesystem` | `ext4/4096`, or a device's name |
//! | `size_bytes` | that each worker's program moves |
//! | `cache` | as in `runs`, of this program |
//!
//! `repetitions`: `number` counts from 0, the discarded ones included.
//!
//! | column | |
//! |---|---|
//! | `run_id`, `ordinal`, `number` | |
//! | `discarded` | 0 or 1 |
//! | `elapsed_ns`, `durable_ns` | `durable_ns` is NULL where nothing was written |
//! | `kb_per_s`, `durable_kb_per_s` | KB of 1024 bytes, the sum over the drives |
//! | `cpu_percent` | of elapsed time, the sum over the drives |
//! | `payload_bytes` | that count for `kb_per_s` |
//!
//! `workspaces`: folders that runs made and have not removed yet. `path` holds
//! the bytes of the path, which need not be UTF-8; `filesystem` is what tells the
//! file system that it is on, and NULL of a folder that an older version made.
//!
//! `points`: what single combinations of a search for better settings did, so
//! that a search that was killed goes on where it was.
//!
//! | column | |
//! |---|---|
//! | `fingerprint` | of the model and all that the point is made of |
//! | `document` | what came of it |
//!
//! The mean KB/s of each program is then a query away:
//!
//! ```sql
//! SELECT runs.id, title, round(avg(kb_per_s)) FROM runs
//! JOIN results ON run_id = id JOIN repetitions USING (run_id, ordinal)
//! WHERE NOT discarded GROUP BY 1, ordinal ORDER BY started_unix_ms;
//! ```

use crate::error::StoreErrorKind;
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// `dskp`: what tells a store from any other SQLite file.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"dskp");

/// The steps from each schema version to the next; the first makes version 1
/// of an empty file. A step that was released is never changed: a change of
/// the tables is a new step, and so is a change of the documents' form that
/// leaves older ones unreadable.
const MIGRATIONS: &[&str] = &[RUNS, WORKSPACES, POINTS, DEVICE_SETTINGS, FILESYSTEMS];

/// The schema version that all steps lead to.
const fn newest() -> i64 {
    MIGRATIONS.len() as i64
}

const RUNS: &str = "
CREATE TABLE runs (
    id              TEXT    NOT NULL PRIMARY KEY,
    started_unix_ms INTEGER NOT NULL,
    version         TEXT    NOT NULL,
    suite           TEXT    NOT NULL,
    target          TEXT    NOT NULL,
    world           TEXT    NOT NULL,
    label           TEXT,
    cache           TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    error           TEXT,
    document        TEXT    NOT NULL
) STRICT;
CREATE INDEX runs_by_start ON runs (started_unix_ms);
CREATE TABLE results (
    run_id          TEXT    NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    ordinal         INTEGER NOT NULL,
    program         TEXT    NOT NULL,
    title           TEXT    NOT NULL,
    drives          INTEGER NOT NULL,
    filesystem      TEXT    NOT NULL,
    size_bytes      INTEGER NOT NULL,
    cache           TEXT    NOT NULL,
    document        TEXT    NOT NULL,
    PRIMARY KEY (run_id, ordinal)
) STRICT;
CREATE TABLE repetitions (
    run_id           TEXT    NOT NULL,
    ordinal          INTEGER NOT NULL,
    number           INTEGER NOT NULL,
    discarded        INTEGER NOT NULL,
    elapsed_ns       INTEGER NOT NULL,
    durable_ns       INTEGER,
    kb_per_s         REAL    NOT NULL,
    durable_kb_per_s REAL,
    cpu_percent      REAL    NOT NULL,
    payload_bytes    INTEGER NOT NULL,
    document         TEXT    NOT NULL,
    PRIMARY KEY (run_id, ordinal, number),
    FOREIGN KEY (run_id, ordinal) REFERENCES results (run_id, ordinal) ON DELETE CASCADE
) STRICT;
";

const WORKSPACES: &str = "
CREATE TABLE workspaces (
    path BLOB NOT NULL PRIMARY KEY
) STRICT;
";

const POINTS: &str = "
CREATE TABLE points (
    fingerprint TEXT NOT NULL PRIMARY KEY,
    document    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

const DEVICE_SETTINGS: &str = "
CREATE TABLE device_settings (
    path  BLOB NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    owner TEXT NOT NULL
) STRICT;
";

/// The settings of devices are noted where every store's user finds them, and not
/// in a store. (What a killed search of an older version left changed is as it was
/// after a reboot.)
const FILESYSTEMS: &str = "
DROP TABLE device_settings;
ALTER TABLE workspaces ADD COLUMN filesystem TEXT;
";

/// What an SQLite file is to this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Nothing has been written to it.
    Empty,
    /// A store of this schema version.
    Store(i64),
    /// Another application's.
    Foreign,
}

impl Identity {
    /// Reads what says whose a file is; writes nothing.
    ///
    /// In a transaction, because another process may be creating the store:
    /// read one by one, the marks could be partly those of the empty file.
    pub(crate) fn of(transaction: &Transaction<'_>) -> rusqlite::Result<Self> {
        let integer = |sql| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        let application = integer("PRAGMA application_id")?;
        let version = integer("PRAGMA user_version")?;
        Ok(if application == i64::from(APPLICATION_ID) && version > 0 {
            Self::Store(version)
        } else if application == 0
            && version == 0
            && integer("SELECT count(*) FROM sqlite_schema")? == 0
        {
            Self::Empty
        } else {
            Self::Foreign
        })
    }

    /// The schema steps that the file still needs.
    ///
    /// # Errors
    ///
    /// [`StoreErrorKind::NotAStore`] and [`StoreErrorKind::Newer`].
    pub(crate) fn missing_steps(self) -> Result<&'static [&'static str], StoreErrorKind> {
        let found = match self {
            Self::Empty => 0,
            Self::Store(version) => version,
            Self::Foreign => return Err(StoreErrorKind::NotAStore),
        };
        usize::try_from(found)
            .ok()
            .and_then(|done| MIGRATIONS.get(done..))
            .ok_or(StoreErrorKind::Newer {
                found,
                known: newest(),
            })
    }
}

/// Brings the file to the newest schema version, or leaves it untouched.
///
/// All steps are one transaction, and what is missing is asked for inside it:
/// of two processes that create one store, the second finds the work done.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreErrorKind> {
    let identity = Identity::of(&connection.unchecked_transaction()?)?;
    if identity.missing_steps()?.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let steps = Identity::of(&transaction)?.missing_steps()?;
    apply(&transaction, steps)?;
    transaction.commit()?;
    Ok(())
}

/// Runs `steps`, the last of which leads to the newest version.
fn apply(transaction: &Transaction<'_>, steps: &[&str]) -> rusqlite::Result<()> {
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest())
}
