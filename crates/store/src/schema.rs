//! Schema of the store, and its migration from version to version.
//!
//! The store has one row for each run, result and repetition. The column `document` of a row is its
//! complete JSON, without the rows below it. diskperf reads back this column only. The other
//! columns repeat values for queries in the sqlite3 shell. An integer of 2^63 or more appears there
//! as 2^63 - 1.
//!
//! `runs`: one suite or program on one target.
//!
//! | column | |
//! |---|---|
//! | `id` | ten hexadecimal digits |
//! | `started_unix_ms` | milliseconds of Unix time |
//! | `version` | version of the diskperf that made the run |
//! | `suite`, `target`, `label` | `label` may be NULL |
//! | `world` | `host` or `model` |
//! | `cache` | `cold`, `warm` or `direct` |
//! | `state`, `error` | `running` (or killed), `finished`, `interrupted`, `failed`; `error` only with the last |
//!
//! `results`: one program within a run; `ordinal` is its position in the order of execution.
//!
//! | column | |
//! |---|---|
//! | `run_id`, `ordinal` | |
//! | `program`, `title` | `seqread`; `seqread layer=direct call_bytes=512` |
//! | `drives` | number of drives that ran the program at the same time |
//! | `filesystem` | `ext4/4096`, or a device's name |
//! | `size_bytes` | bytes that each worker's program moves |
//! | `cache` | as in `runs`, for this program |
//!
//! `repetitions`: `number` counts from 0, including discarded repetitions.
//!
//! | column | |
//! |---|---|
//! | `run_id`, `ordinal`, `number` | |
//! | `discarded` | 0 or 1 |
//! | `elapsed_ns`, `durable_ns` | `durable_ns` is NULL if nothing was written |
//! | `kb_per_s`, `durable_kb_per_s` | KB of 1024 bytes, the sum over the drives |
//! | `cpu_percent` | CPU time in percent of elapsed time, the sum over the drives |
//! | `payload_bytes` | bytes that count for `kb_per_s` |
//!
//! `workspaces`: folders that runs made and have not removed yet. `path` holds the bytes of the
//! path, which need not be UTF-8. `filesystem` identifies the file system of the folder, and is
//! NULL for a folder that an older version made.
//!
//! `points`: outcomes of single combinations in a search for better settings, so that a killed
//! search can continue.
//!
//! | column | |
//! |---|---|
//! | `fingerprint` | fingerprint of the model and of everything that makes up the point |
//! | `document` | outcome of the point |
//!
//! A query returns the mean KB/s of each program:
//!
//! ```sql
//! SELECT runs.id, title, round(avg(kb_per_s)) FROM runs
//! JOIN results ON run_id = id JOIN repetitions USING (run_id, ordinal)
//! WHERE NOT discarded GROUP BY 1, ordinal ORDER BY started_unix_ms;
//! ```

use crate::error::StoreErrorKind;
use rusqlite::{Connection, Transaction, TransactionBehavior};

/// SQLite application id of a store, `dskp`, which distinguishes it from other SQLite files.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"dskp");

/// Migration steps from each schema version to the next. The first step makes version 1 of an empty
/// file. A released step is never changed. A change of the tables is a new step, and so is a change
/// of the documents that makes older ones unreadable.
const SCHEMA_STEPS: &[&str] = &[
    RUNS_SCHEMA,
    WORKSPACES_SCHEMA,
    POINTS_SCHEMA,
    DEVICE_SETTINGS_SCHEMA,
    FILESYSTEMS_SCHEMA,
];

const fn newest_version() -> i64 {
    SCHEMA_STEPS.len() as i64
}

const RUNS_SCHEMA: &str = "
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

const WORKSPACES_SCHEMA: &str = "
CREATE TABLE workspaces (
    path BLOB NOT NULL PRIMARY KEY
) STRICT;
";

const POINTS_SCHEMA: &str = "
CREATE TABLE points (
    fingerprint TEXT NOT NULL PRIMARY KEY,
    document    TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

const DEVICE_SETTINGS_SCHEMA: &str = "
CREATE TABLE device_settings (
    path  BLOB NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    owner TEXT NOT NULL
) STRICT;
";

/// Migration step that removes the table of device settings and adds the file system of workspaces.
/// Device settings are now recorded outside of the stores, where the user of any store finds them.
/// Settings that a killed search of an older version changed are restored by a reboot.
const FILESYSTEMS_SCHEMA: &str = "
DROP TABLE device_settings;
ALTER TABLE workspaces ADD COLUMN filesystem TEXT;
";

/// Identity of an SQLite file for this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseIdentity {
    /// A file to which nothing was written.
    EmptyDatabase,
    StoreVersion(i64),
    /// A file of another application.
    ForeignDatabase,
}

impl DatabaseIdentity {
    /// Reads the marks that identify a file, and writes nothing.
    ///
    /// It needs a transaction, because another process may be creating the store. If the marks were
    /// read separately, some could be those of the empty file.
    pub(crate) fn read_from(transaction: &Transaction<'_>) -> rusqlite::Result<Self> {
        let integer = |sql| transaction.query_row(sql, [], |row| row.get::<_, i64>(0));
        let application = integer("PRAGMA application_id")?;
        let version = integer("PRAGMA user_version")?;
        Ok(if application == i64::from(APPLICATION_ID) && version > 0 {
            Self::StoreVersion(version)
        } else if application == 0
            && version == 0
            && integer("SELECT count(*) FROM sqlite_schema")? == 0
        {
            Self::EmptyDatabase
        } else {
            Self::ForeignDatabase
        })
    }

    /// Returns the migration steps that the file still needs.
    ///
    /// # Errors
    ///
    /// Returns [`StoreErrorKind::NotAStore`] or [`StoreErrorKind::Newer`].
    pub(crate) fn list_missing_steps(self) -> Result<&'static [&'static str], StoreErrorKind> {
        let found = match self {
            Self::EmptyDatabase => 0,
            Self::StoreVersion(version) => version,
            Self::ForeignDatabase => return Err(StoreErrorKind::NotAStore),
        };
        usize::try_from(found)
            .ok()
            .and_then(|done| SCHEMA_STEPS.get(done..))
            .ok_or(StoreErrorKind::Newer {
                found,
                known: newest_version(),
            })
    }
}

/// Migrates the file to the newest schema version, or leaves it untouched.
///
/// All steps are one transaction, which also determines the missing steps. If two processes create
/// one store, the second thus finds the work done.
pub(crate) fn migrate(connection: &mut Connection) -> Result<(), StoreErrorKind> {
    let identity = DatabaseIdentity::read_from(&connection.unchecked_transaction()?)?;
    if identity.list_missing_steps()?.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let steps = DatabaseIdentity::read_from(&transaction)?.list_missing_steps()?;
    apply_steps(&transaction, steps)?;
    transaction.commit()?;
    Ok(())
}

/// Runs migration steps. The last one must lead to the newest version.
fn apply_steps(transaction: &Transaction<'_>, steps: &[&str]) -> rusqlite::Result<()> {
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", newest_version())
}
