//! The folders that runs made, so that those of killed runs can be found.

use crate::Store;
use crate::error::StoreError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A folder that a run was about to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotedWorkspace {
    /// Its path.
    pub path: PathBuf,
    /// What tells its file system from others, in the words of whoever noted
    /// it; `None` of one that an older version noted.
    pub filesystem: Option<String>,
}

impl Store {
    /// Notes that a run is about to make the folder `path`, an absolute path,
    /// on a file system. It is on the disk when this returns; a path is noted
    /// once.
    ///
    /// # Errors
    ///
    /// Those of any write.
    pub fn note_workspace(
        &mut self,
        path: &Path,
        filesystem: Option<&str>,
    ) -> Result<(), StoreError> {
        self.writing(|connection| {
            connection.execute(
                "INSERT INTO workspaces (path, filesystem) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                rusqlite::params![path_bytes(path), filesystem],
            )?;
            Ok(())
        })
    }

    /// Forgets a folder that was removed; one that was never noted is no error.
    ///
    /// # Errors
    ///
    /// Those of any write.
    pub fn forget_workspace(&mut self, path: &Path) -> Result<(), StoreError> {
        self.writing(|connection| {
            connection.execute("DELETE FROM workspaces WHERE path = ?1", [path_bytes(path)])?;
            Ok(())
        })
    }

    /// The folders that were noted and not forgotten, in the order of noting:
    /// those of runs under way, and of killed ones.
    ///
    /// # Errors
    ///
    /// Those of [`Store::list`].
    pub fn workspaces(&self) -> Result<Vec<NotedWorkspace>, StoreError> {
        self.reading(|connection| {
            let mut statement =
                connection.prepare("SELECT path, filesystem FROM workspaces ORDER BY rowid")?;
            let noted = statement.query_map([], |row| {
                Ok(NotedWorkspace {
                    path: row.get(0).map(path_of_bytes)?,
                    filesystem: row.get(1)?,
                })
            })?;
            Ok(noted.collect::<Result<_, _>>()?)
        })
    }
}

/// A path's bytes, UTF-8 where it is text.
#[cfg(unix)]
fn path_bytes(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(unix)]
fn path_of_bytes(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(bytes))
}

/// Elsewhere a path is text, save for names that no ordinary program can make.
#[cfg(not(unix))]
fn path_bytes(path: &Path) -> Vec<u8> {
    path.to_string_lossy().into_owned().into_bytes()
}

#[cfg(not(unix))]
fn path_of_bytes(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from(String::from_utf8_lossy(&bytes).into_owned()))
}
