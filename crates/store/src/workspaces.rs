//! The folders that runs made, so that those of killed runs can be found.

use crate::Store;
use crate::error::StoreError;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

impl Store {
    /// Notes that a run is about to make the folder `path`, an absolute path.
    /// It is on the disk when this returns; a path is noted once.
    ///
    /// # Errors
    ///
    /// Those of any write.
    pub fn note_workspace(&mut self, path: &Path) -> Result<(), StoreError> {
        self.writing(|connection| {
            connection.execute(
                "INSERT INTO workspaces VALUES (?1) ON CONFLICT DO NOTHING",
                [path_bytes(path)],
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
    pub fn workspaces(&self) -> Result<Vec<PathBuf>, StoreError> {
        self.reading(|connection| {
            let mut statement = connection.prepare("SELECT path FROM workspaces ORDER BY rowid")?;
            let paths = statement.query_map([], |row| row.get(0).map(path_of_bytes))?;
            Ok(paths.collect::<Result<_, _>>()?)
        })
    }
}

/// What a file of sysfs held before a run changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSetting {
    /// The file.
    pub path: PathBuf,
    /// What it held.
    pub value: String,
    /// The process that changed it, in the words of whoever noted it.
    pub owner: String,
}

impl Store {
    /// Notes what a file of sysfs holds, before it is changed. What was noted
    /// first stays: it is what the machine had.
    ///
    /// # Errors
    ///
    /// Those of any write.
    pub fn note_device_setting(
        &mut self,
        path: &Path,
        value: &str,
        owner: &str,
    ) -> Result<(), StoreError> {
        self.writing(|connection| {
            connection.execute(
                "INSERT INTO device_settings VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
                rusqlite::params![path_bytes(path), value, owner],
            )?;
            Ok(())
        })
    }

    /// Forgets a file that was put back; one that was never noted is no error.
    ///
    /// # Errors
    ///
    /// Those of any write.
    pub fn forget_device_setting(&mut self, path: &Path) -> Result<(), StoreError> {
        self.writing(|connection| {
            let path = path_bytes(path);
            connection.execute("DELETE FROM device_settings WHERE path = ?1", [path])?;
            Ok(())
        })
    }

    /// The files that were noted and not forgotten.
    ///
    /// # Errors
    ///
    /// Those of [`Store::list`].
    pub fn device_settings(&self) -> Result<Vec<DeviceSetting>, StoreError> {
        self.reading(|connection| {
            let mut statement = connection
                .prepare("SELECT path, value, owner FROM device_settings ORDER BY rowid")?;
            let settings = statement.query_map([], |row| {
                Ok(DeviceSetting {
                    path: row.get(0).map(path_of_bytes)?,
                    value: row.get(1)?,
                    owner: row.get(2)?,
                })
            })?;
            Ok(settings.collect::<Result<_, _>>()?)
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
