//! Unix sockets that only their user can connect to, and that go at the end.

use crate::ServeError;
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Number of connections that may wait to be accepted. -1 is the limit of the kernel
/// (`net.core.somaxconn`), as for sockets of the standard library.
const BACKLOG: i32 = -1;

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
        let listener = bind_own(path).map_err(|error| {
            let remedy = match error.kind() {
                ErrorKind::AddrInUse => {
                    "it exists: name another path, or remove it if no server uses it"
                }
                ErrorKind::InvalidFilename => {
                    "the path is too long for a socket: name a shorter one"
                }
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

/// Listens at a new socket to which only this user connects, whatever the directory allows. The
/// socket has its mode before it has a name: the umask would be that of all threads.
fn bind_own(path: &Path) -> io::Result<UnixListener> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &address)?;
    if let Err(error) = listen(&socket, BACKLOG) {
        // The error that is returned is the first one.
        let _ = fs::remove_file(path);
        return Err(error.into());
    }
    Ok(socket.into())
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_is_its_users_alone_and_goes_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let (listener, file) = SocketFile::listen("--socket", &path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let stream = UnixStream::connect(&path).unwrap();
        listener.accept().unwrap();
        drop((stream, file));
        assert!(!path.exists());
    }

    #[test]
    fn a_path_that_is_taken_or_too_long_has_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("taken");
        fs::write(&taken, "mine").unwrap();
        let long = folder.path().join("x".repeat(108));
        let absent = folder.path().join("absent/socket");
        for (path, remedy) in [
            (&taken, "name another path"),
            (&long, "name a shorter one"),
            (&absent, "name a path in a directory that you may write"),
        ] {
            let error = SocketFile::listen("--socket", path).unwrap_err();
            assert!(error.to_string().contains(remedy), "{error}");
        }
        assert_eq!(fs::read(&taken).unwrap(), b"mine");
    }
}
