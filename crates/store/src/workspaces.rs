//! Record of the folders that runs made, so that the folders of killed runs can be found.

use crate::Store;
use crate::error::StoreError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Record of a folder that a run was about to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedWorkspace {
    /// Path of the folder.
    pub path: PathBuf,
    /// Identification of the folder's file system, as text of the caller that recorded it. `None`
    /// for a folder that an older version recorded.
    pub filesystem: Option<String>,
}

impl Store {
    /// Records that a run is about to make the folder `path`, an absolute path, on a file system.
    /// The record is on the disk when this returns. A path is recorded only once.
    ///
    /// # Errors
    ///
    /// Fails like any write.
    pub fn note_workspace(
        &mut self,
        path: &Path,
        filesystem: Option<&str>,
    ) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            connection.execute(
                "INSERT INTO workspaces (path, filesystem) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                rusqlite::params![path_to_bytes(path), filesystem],
            )?;
            Ok(())
        })
    }

    /// Removes the record of a folder that was removed. A folder that was never recorded is not an
    /// error.
    ///
    /// # Errors
    ///
    /// Fails like any write.
    pub fn forget_workspace(&mut self, path: &Path) -> Result<(), StoreError> {
        self.write_transaction(|connection| {
            connection.execute(
                "DELETE FROM workspaces WHERE path = ?1",
                [path_to_bytes(path)],
            )?;
            Ok(())
        })
    }

    /// Returns the recorded folders in the order of recording: those of runs in progress and of
    /// killed runs.
    ///
    /// # Errors
    ///
    /// As for [`Store::list`].
    pub fn list_workspaces(&self) -> Result<Vec<NotedWorkspace>, StoreError> {
        self.read_snapshot(|connection| {
            let mut statement =
                connection.prepare("SELECT path, filesystem FROM workspaces ORDER BY rowid")?;
            let noted = statement.query_map([], |row| {
                Ok(NotedWorkspace {
                    path: row.get(0).map(path_from_bytes)?,
                    filesystem: row.get(1)?,
                })
            })?;
            Ok(noted.collect::<Result<_, _>>()?)
        })
    }
}

/// Returns the bytes of a path, which are UTF-8 if the path is text.
#[cfg(unix)]
fn path_to_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(unix)]
fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns the bytes of a path as UTF-8. On other systems, a path is text except for names that no
/// ordinary program can make.
#[cfg(not(unix))]
fn path_to_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(not(unix))]
fn path_from_bytes(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from(String::from_utf8_lossy(&bytes).into_owned()))
}
