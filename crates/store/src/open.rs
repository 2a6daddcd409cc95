//! Opening of a store, while other processes may have it open, and refusal of files that are not
//! stores.

use crate::error::StoreErrorKind;
use crate::schema::{self, DatabaseIdentity};
use crate::{side_files, space};
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags};
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum lock wait. SQLite counts it in a 32-bit number of milliseconds.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Maximum length of a column that is read or written, in bytes. A document of all measurements of
/// one repetition has some 100 KB, and one of the whole catalogue has 1 MB.
const COLUMN_BYTES_MAX: i32 = 64 << 20;

/// Pause between attempts to turn on the write-ahead log.
const RETRY_PAUSE: Duration = Duration::from_millis(2);

/// Opened store: its database connection and its state.
pub(crate) struct OpenedStore {
    pub(crate) connection: Connection,
    /// Absolute path of the store's file.
    pub(crate) path: PathBuf,
    /// Whether the store is read-only because its disk is full.
    pub(crate) is_disk_full: bool,
}

/// Opens the store at `path`, and creates it if it does not exist.
pub(crate) fn open(path: &Path, lock_wait: Duration) -> Result<OpenedStore, StoreErrorKind> {
    // An absolute path is never one of SQLite's special names (`:memory:`,
    // and the empty name of a file that is deleted when it is closed).
    let path = std::path::absolute(path).map_err(to_open_error)?;
    refuse_foreign_or_newer(&path)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(to_open_error)?;
    }
    // Side files lie beside the file itself, whatever links lead there.
    let real = resolve_links(&path);
    side_files::create_journal_placeholder(&real)?;
    let lock_wait = limit_lock_wait(lock_wait);
    let (connection, is_full) = match open_for_writing(&real, lock_wait) {
        Ok(connection) => (connection, false),
        Err(kind) => match space::disk_full_or(kind, &real) {
            StoreErrorKind::DiskFull => (open_without_space(&real, lock_wait)?, true),
            StoreErrorKind::CannotOpen { .. } | StoreErrorKind::ReadOnly => {
                (open_for_reading(&real)?, false)
            }
            kind => return Err(kind),
        },
    };
    Ok(OpenedStore {
        connection,
        path,
        is_disk_full: is_full,
    })
}

/// Returns the file to which a path leads, with all links resolved. The file need not exist yet.
pub(crate) fn resolve_links(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name(), path.read_link()) {
        // A link to a file that will be made. One to itself was refused before.
        (Some(folder), _, Ok(target)) => match folder.join(target) {
            target if target.symlink_metadata().is_err() => resolve_links(&target),
            target => target,
        },
        (Some(folder), Some(name), Err(_)) => folder.join(name),
        _ => path.to_owned(),
    }
}

pub(crate) fn limit_lock_wait(lock_wait: Duration) -> Duration {
    lock_wait.min(LOCK_WAIT_MAX)
}

/// Refuses a file that [`open`] would refuse, without opening it for writing.
pub(crate) fn check(path: &Path) -> Result<(), StoreErrorKind> {
    refuse_foreign_or_newer(&std::path::absolute(path).map_err(to_open_error)?)
}

pub(crate) fn to_open_error(error: io::Error) -> StoreErrorKind {
    StoreErrorKind::CannotOpen {
        reason: error.to_string(),
    }
}

/// Refuses another application's file or a newer store before an ordinary connection can touch it.
/// Such a connection may roll back a journal or leave files beside the database.
fn refuse_foreign_or_newer(path: &Path) -> Result<(), StoreErrorKind> {
    side_files::require_trusted(&resolve_links(path))?;
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            return Err(StoreErrorKind::CannotOpen {
                reason: "it is a directory".to_owned(),
            });
        }
        Ok(metadata) if !metadata.is_file() => {
            return Err(StoreErrorKind::CannotOpen {
                reason: "it is not a regular file".to_owned(),
            });
        }
        // SQLite takes a file of one byte for an empty one.
        Ok(metadata) if metadata.len() == 1 => return Err(StoreErrorKind::NotAStore),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(to_open_error(error)),
    }
    match open_immutable(path).and_then(|connection| identify(&connection)) {
        Ok(identity) => identity.list_missing_steps().map(drop),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            match is_interrupted_creation(&resolve_links(path)) {
                true => Ok(()),
                false => Err(StoreErrorKind::NotAStore),
            }
        }
        // Without its log a store that is in use may look damaged; only a
        // connection that heeds the log can tell.
        Err(_) => Ok(()),
    }
}

/// Reports whether a power cut interrupted the creation of a database. Its first page did not reach
/// the disk, later ones may have, and its journal restores an empty database, which loses nothing.
fn is_interrupted_creation(path: &Path) -> bool {
    /// Length of the header of a database, in bytes.
    const HEADER_BYTES: usize = 100;
    /// First bytes of a rollback journal.
    const JOURNAL_MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    /// Place of the number of pages before the transaction in a journal's header.
    const PAGES_BEFORE: Range<usize> = 16..20;
    fn read_start<const N: usize>(path: &Path) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        fs::File::open(path)?.read_exact(&mut bytes)?;
        Ok(bytes)
    }
    let header = read_start::<HEADER_BYTES>(path);
    let journal = read_start::<{ PAGES_BEFORE.end }>(&with_suffix(path, "-journal"));
    let is_lost = header.is_ok_and(|header| header.iter().all(|byte| *byte == 0));
    is_lost
        && journal.is_ok_and(|journal| {
            journal.starts_with(&JOURNAL_MAGIC) && journal[PAGES_BEFORE] == [0; 4]
        })
}

fn identify(connection: &Connection) -> rusqlite::Result<DatabaseIdentity> {
    DatabaseIdentity::read_from(&connection.unchecked_transaction()?)
}

/// Opens an ordinary connection to a store, which is created or migrated to the newest schema if
/// necessary.
fn open_for_writing(path: &Path, lock_wait: Duration) -> Result<Connection, StoreErrorKind> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(lock_wait)?;
    protect_connection(&connection)?;
    // The last connection to close moves the log into the file, which must
    // not happen to a file that is refused.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // A log that was put there since the check shows itself to the first read,
    // whatever comes of that, and before anything is written.
    let _ = identify(&connection);
    side_files::require_trusted(path)?;
    // A commit returns only when it is on the disk.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // The schema comes before the log: so the file itself, and not the log
    // alone, always says whose it is.
    schema::migrate(&mut connection)?;
    if !connection.is_readonly(MAIN_DB)? {
        use_write_ahead_log(&connection, lock_wait)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    }
    Ok(connection)
}

/// Protects a connection against contents that no store has: no trigger or view runs, and columns
/// have a maximum length.
fn protect_connection(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, COLUMN_BYTES_MAX)?;
    Ok(())
}

/// Turns on the write-ahead log, so that readers and a writer can work at the same time. On a file
/// system without shared memory, SQLite keeps its rollback journal, which is as safe.
fn use_write_ahead_log(connection: &Connection, lock_wait: Duration) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        match mode {
            // SQLite does not wait for this lock by itself.
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < lock_wait =>
            {
                thread::sleep(RETRY_PAUSE);
            }
            outcome => return outcome,
        }
    }
}

/// Opens a connection to a store on read-only media or in a folder without write permission, where
/// SQLite cannot place the files that coordinate readers and writers. All committed data must be in
/// the store's file itself.
fn open_for_reading(path: &Path) -> Result<Connection, StoreErrorKind> {
    let metadata = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(StoreErrorKind::CannotOpen {
                reason: "it does not exist and cannot be created".to_owned(),
            });
        }
        outcome => outcome.map_err(to_open_error)?,
    };
    if has_write_ahead_log(path) {
        return Err(StoreErrorKind::CannotOpen {
            reason: format!(
                "its latest writes are in {}, which cannot be read without write permission",
                with_suffix(path, "-wal").display()
            ),
        });
    }
    if metadata.len() == 0 {
        return Err(StoreErrorKind::ReadOnly);
    }
    let connection = open_immutable(path).map_err(|error| StoreErrorKind::CannotOpen {
        reason: match error.sqlite_error_code() {
            Some(ErrorCode::CannotOpen) => "permission denied".to_owned(),
            _ => error.to_string(),
        },
    })?;
    if identify(&connection)?.list_missing_steps()?.is_empty() {
        Ok(connection)
    } else {
        Err(StoreErrorKind::ReadOnly)
    }
}

/// Opens a connection to a store whose disk has no room for the files that coordinate readers and
/// writers. If the store has a log, the connection uses the store exclusively, with the index of
/// the log in memory.
fn open_without_space(path: &Path, lock_wait: Duration) -> Result<Connection, StoreErrorKind> {
    if !has_write_ahead_log(path) {
        return open_for_reading(path).map_err(|_| StoreErrorKind::DiskFull);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(lock_wait)?;
    protect_connection(&connection)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    match identify(&connection)?.list_missing_steps()?.is_empty() {
        true => Ok(connection),
        false => Err(StoreErrorKind::DiskFull),
    }
}

/// Reports whether a store's log holds its last writes.
fn has_write_ahead_log(path: &Path) -> bool {
    fs::metadata(with_suffix(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0)
}

/// Opens a connection that takes no lock, ignores the log, and creates no file.
fn open_immutable(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file_uri(path) + "?immutable=1", flags)?;
    protect_connection(&connection)?;
    Ok(connection)
}

/// Returns an absolute path as a `file:` URI. Every byte that could have another meaning is
/// escaped.
fn file_uri(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    if !path.has_root() || cfg!(windows) {
        uri.push('/');
    }
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\\' if cfg!(windows) => uri.push('/'),
            b'/' | b':' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
