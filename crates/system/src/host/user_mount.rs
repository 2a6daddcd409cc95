//! Mount by FUSE of an ordinary user, which the program `fusermount3` makes.
//!
//! fusermount3 has the rights that a mount needs, opens /dev/fuse itself, and sends the descriptor
//! over a socket. It stays, and tries to unmount when this process was killed, which closes the
//! socket and the descriptor. Where it cannot, the user unmounts by `fusermount3 -u`.

use super::device::tool::combine_output;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = "fusermount3";

/// Environment variable with the descriptor of the socket.
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";

/// Reason why an ordinary user cannot mount by FUSE.
#[derive(Debug, thiserror::Error)]
pub enum UserMountError {
    /// fusermount3 that is not installed.
    #[error("`fusermount3` is not installed: on Debian, run `apt-get install fuse3`")]
    Missing,
    /// fusermount3 that refuses to mount or unmount.
    #[error(
        "`fusermount3` refuses {directory}: {message}: see that /dev/fuse is there (`modprobe fuse`) and open to all users (`chmod 666 /dev/fuse`), and that fusermount3 is setuid root"
    )]
    Refused {
        /// Directory of the mount.
        directory: PathBuf,
        /// Message that fusermount3 printed.
        message: String,
    },
    /// Failure of the operating system.
    #[error("cannot mount or unmount {directory}: {source}")]
    Failed {
        /// Directory of the mount.
        directory: PathBuf,
        /// Error that the operating system returned.
        source: io::Error,
    },
}

/// Mount that ends with this value.
#[derive(Debug)]
pub struct UserMount {
    directory: PathBuf,
    /// Socket whose end shows fusermount3 that nobody serves the file system any more.
    socket: Option<UnixStream>,
    child: Child,
}

impl UserMount {
    /// Mounts a FUSE file system on a directory. Returns the mount, and the descriptor by which
    /// the file system is served.
    ///
    /// # Errors
    ///
    /// fusermount3 is missing or refuses.
    pub fn mount(directory: &Path, source: &str) -> Result<(Self, OwnedFd), UserMountError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => UserMountError::Missing,
            _ => UserMountError::Failed {
                directory: directory.to_owned(),
                source: error,
            },
        };
        let (socket, other_end) = UnixStream::pair().map_err(failed)?;
        let mut command = Command::new(PROGRAM);
        command
            .args(["-o", &format!("auto_unmount,fsname={source}"), "--"])
            .arg(directory)
            .env(SOCKET_VARIABLE, "0")
            .stdin(OwnedFd::from(other_end))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A signal to this process's group must not leave the mount without its end.
            .process_group(0);
        let mut child = command.spawn().map_err(failed)?;
        // The command has the other end of the socket, whose end tells that fusermount3 failed.
        drop(command);
        match receive_descriptor(&socket) {
            Ok(Some(descriptor)) => {
                let mount = Self {
                    directory: directory.to_owned(),
                    socket: Some(socket),
                    child,
                };
                Ok((mount, descriptor))
            }
            received => {
                let mut message = String::new();
                if let Some(stderr) = &mut child.stderr {
                    let _ = stderr.read_to_string(&mut message);
                }
                let _ = child.wait();
                received.map_err(failed)?;
                Err(UserMountError::Refused {
                    directory: directory.to_owned(),
                    message: message.trim().to_owned(),
                })
            }
        }
    }

    /// Unmounts the directory. Processes that still use it keep the file system, without a place.
    ///
    /// # Errors
    ///
    /// fusermount3 refuses.
    pub fn unmount(mut self) -> Result<(), UserMountError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), UserMountError> {
        let Some(socket) = self.socket.take() else {
            return Ok(());
        };
        let unmounted = unmount_of_user(&self.directory);
        drop(socket);
        let _ = self.child.wait();
        unmounted
    }
}

impl Drop for UserMount {
    fn drop(&mut self) {
        // Nobody is left to report to.
        let _ = self.end();
    }
}

/// Unmounts a FUSE file system of this user. Processes that still use it keep it, without a place.
///
/// # Errors
///
/// fusermount3 is missing, or refuses because the mount is another user's or none.
pub fn unmount_of_user(directory: &Path) -> Result<(), UserMountError> {
    let mut command = Command::new(PROGRAM);
    command.args(["-u", "-z", "--"]).arg(directory);
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(UserMountError::Refused {
            directory: directory.to_owned(),
            message: combine_output(&output),
        }),
        Err(source) => Err(UserMountError::Failed {
            directory: directory.to_owned(),
            source,
        }),
    }
}

/// Receives the descriptor that fusermount3 sends; `None` if it ends without one.
fn receive_descriptor(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    loop {
        let mut parts = [IoSliceMut::new(&mut byte)];
        match recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    let mut descriptors = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(descriptors.next())
}
