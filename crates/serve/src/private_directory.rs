//! A directory for a socket that nobody else can reach.

use crate::ServeError;
use std::env;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Names that are tried before giving up. Others are those of killed servers with the same
/// process id.
const NAMES_MAX: u32 = 1000;

/// A directory that only this user can enter. Dropping it removes it, once it is empty.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
}

impl PrivateDirectory {
    /// Makes one in the user's runtime directory (`XDG_RUNTIME_DIR`), or where there is none in
    /// the directory for temporary files.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub fn create() -> Result<Self, ServeError> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
        Self::create_in(&runtime.unwrap_or_else(env::temp_dir))
    }

    fn create_in(parent: &Path) -> Result<Self, ServeError> {
        let process = std::process::id();
        for number in 0..NAMES_MAX {
            let path = parent.join(format!("diskperf-serve-{process}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(ServeError::Request(format!(
                        "{}: cannot be made: {error}; name a socket with --socket",
                        path.display()
                    )));
                }
            }
        }
        Err(ServeError::Request(format!(
            "{}: has {NAMES_MAX} directories diskperf-serve-{process}-*: remove them, or name a socket with --socket",
            parent.display()
        )))
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What somebody else put into it is theirs.
        let _ = fs::remove_dir(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_private_directory_is_new_and_closed_to_others() {
        let parent = tempfile::tempdir().unwrap();
        let first = PrivateDirectory::create_in(parent.path()).unwrap();
        let second = PrivateDirectory::create_in(parent.path()).unwrap();
        assert_ne!(first.path(), second.path());
        let mode = fs::metadata(first.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        drop((first, second));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
