//! Unix sockets that only their user can connect to, and that go at the end.

use crate::ServeError;
use rustix::fs::Mode;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// File of a socket. Dropping it removes the file, unless another one has taken its place.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Inode of the socket; none if it was removed at once.
    inode: Option<u64>,
}

impl SocketFile {
    /// Listens at a new socket, which an option names.
    ///
    /// # Errors
    ///
    /// A path that is taken, or at which no socket can be made.
    pub(crate) fn listen(option: &str, path: &Path) -> Result<(UnixListener, Self), ServeError> {
        // Only this user connects, whatever the directory allows.
        let before = rustix::process::umask(Mode::from_raw_mode(0o177));
        let bound = UnixListener::bind(path);
        rustix::process::umask(before);
        let listener = bound.map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::AddrInUse => {
                    "it exists: name another path, or remove it if no server uses it"
                }
                ErrorKind::InvalidInput => "the path is too long for a socket: name a shorter one",
                _ => "name a path in a directory that you may write",
            };
            let path = path.display();
            ServeError::Request(format!("{option} {path}: cannot listen: {error}; {remedy}"))
        })?;
        let inode = fs::symlink_metadata(path).map(|metadata| metadata.ino());
        let file = Self {
            path: path.to_owned(),
            inode: inode.ok(),
        };
        match listener.set_nonblocking(true) {
            Ok(()) => Ok((listener, file)),
            Err(error) => Err(ServeError::Work(format!("{}: {error}", path.display()))),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let now = fs::symlink_metadata(&self.path).map(|now| now.ino());
        if self.inode.is_some() && now.ok() == self.inode {
            // Whoever removed it meanwhile wanted the same.
            let _ = fs::remove_file(&self.path);
        }
    }
}
