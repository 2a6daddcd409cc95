//! Files that SQLite keeps beside a store, in directories where other users may have placed them.
//!
//! SQLite accepts a rollback journal or a write-ahead log by its name alone. A user who can place
//! one beside a store determines the contents of the store.

use crate::error::StoreErrorKind;
use std::path::Path;

#[cfg(unix)]
const SUFFIXES: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Checks that the files beside a store belong to this user, to root or to the store's owner.
/// Directories in which no other user may place files are not checked.
///
/// # Errors
///
/// Returns [`StoreErrorKind::SideFile`] for the first file that may come from another user.
#[cfg(unix)]
pub(crate) fn require_trusted(store: &Path) -> Result<(), StoreErrorKind> {
    if !may_others_write_beside(store) {
        return Ok(());
    }
    SUFFIXES
        .iter()
        .try_for_each(|suffix| require_trusted_file(store, suffix))
}

/// Creates an empty rollback journal if none exists, so that no other user can place one there
/// between the check and the opening. Only directories in which other users may place files need
/// it. SQLite ignores an empty journal.
///
/// # Errors
///
/// Fails if another user has placed one before.
#[cfg(unix)]
pub(crate) fn create_journal_placeholder(store: &Path) -> Result<(), StoreErrorKind> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
    let Ok(of_store) = std::fs::metadata(store) else {
        return Ok(());
    };
    if !may_others_write_beside(store) {
        return Ok(());
    }
    let journal = crate::open::with_suffix(store, SUFFIXES[0]);
    let mut options = std::fs::OpenOptions::new();
    let made = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(journal);
    match made {
        Ok(file) => {
            // Whoever may read the store must be able to see that it is empty.
            // Only root can give it to the store's owner.
            let _ = fchown(&file, Some(of_store.uid()), Some(of_store.gid()));
            file.set_permissions(of_store.permissions())
                .map_err(crate::open::to_open_error)
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            require_trusted_file(store, SUFFIXES[0])
        }
        // Where this user cannot make files SQLite cannot replay a journal.
        Err(_) => Ok(()),
    }
}

#[cfg(unix)]
fn may_others_write_beside(store: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Some(Ok(directory)) = store.parent().map(std::fs::metadata) else {
        return false;
    };
    let others = directory.mode() & 0o002 != 0;
    // The members of a group who may not remove each other's files.
    let group = directory.mode() & 0o1020 == 0o1020;
    others || group || !is_trusted_owner(directory.uid())
}

/// Reports whether a user is root or the user of this process. The owner of the process's directory
/// in `/proc` is the user of the process.
#[cfg(unix)]
fn is_trusted_owner(owner: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let this_user = || std::fs::metadata("/proc/self").map(|own| own.uid());
    owner == 0 || this_user().is_ok_and(|user| user == owner)
}

#[cfg(unix)]
fn require_trusted_file(store: &Path, suffix: &str) -> Result<(), StoreErrorKind> {
    use std::os::unix::fs::MetadataExt;
    let file = crate::open::with_suffix(store, suffix);
    let metadata = match file.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(crate::open::to_open_error(error)),
    };
    let owner = metadata.uid();
    let of_store = std::fs::metadata(store).map(|store| store.uid()).ok();
    let what = if !is_trusted_owner(owner) && Some(owner) != of_store {
        format!("a file of user {owner}")
    } else if !metadata.is_file() {
        "no regular file".to_owned()
    } else if metadata.nlink() > 1 {
        "a file with several hard links".to_owned()
    } else {
        return Ok(());
    };
    Err(StoreErrorKind::SideFile { file, what })
}

/// Accepts all files: on other systems, permissions alone do not make a directory shared.
#[cfg(not(unix))]
pub(crate) fn require_trusted(_store: &Path) -> Result<(), StoreErrorKind> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn create_journal_placeholder(_store: &Path) -> Result<(), StoreErrorKind> {
    Ok(())
}
