//! Test of a store's disk for free space, for errors that do not mention a full disk.

use crate::error::StoreErrorKind;
use rusqlite::{Error, ErrorCode};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Maximum bytes that one write of the store needs: pages of its log and of the index of the log.
const WRITE_BYTES_MAX: usize = 128 << 10;

/// Converts an error into [`StoreErrorKind::DiskFull`] if a full disk seems to be its cause, and
/// returns any other error unchanged. SQLite reports some failed calls only as "disk I/O error" or
/// "unable to open database file".
pub(crate) fn disk_full_or(kind: StoreErrorKind, store: &Path) -> StoreErrorKind {
    let may_be_full = match &kind {
        StoreErrorKind::CannotOpen { .. } | StoreErrorKind::ReadOnly => true,
        StoreErrorKind::Failed(Error::SqliteFailure(failure, _)) => {
            failure.code == ErrorCode::SystemIoFailure
        }
        _ => false,
    };
    match may_be_full && is_disk_full(store) {
        true => StoreErrorKind::DiskFull,
        false => kind,
    }
}

/// Reports whether a file cannot be created beside the store for lack of space.
fn is_disk_full(store: &Path) -> bool {
    let name = format!("-room-{}", std::process::id());
    let probe = crate::open::with_suffix(store, &name);
    let written = File::create_new(&probe).and_then(|mut file| {
        let written = file.write_all(&vec![1; WRITE_BYTES_MAX]);
        let synced = written.and_then(|()| file.sync_all());
        // What was made can be removed.
        fs::remove_file(&probe).and(synced)
    });
    written.is_err_and(|error| is_space_error(&error))
}

fn is_space_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}
