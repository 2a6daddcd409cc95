//! Process that keeps the private mounts of a process which serves files itself.
//!
//! The last process of a mount namespace unmounts its file systems when it ends. If it also serves
//! the disk beneath one of them by FUSE, it waits for an answer of its own and never ends. The
//! keeper ends after it: the kernel has closed the server's files by then, and refuses what the
//! unmount still writes.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Process that stays in this process's mount namespace until this process has ended, or until the
/// keeper is dropped.
#[derive(Debug)]
pub struct MountKeeper {
    child: Child,
}

impl MountKeeper {
    /// Starts the keeper in the mount namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// The program `cat` cannot be started.
    pub fn start() -> io::Result<Self> {
        let child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A signal to the group of the server does not end it first.
            .process_group(0)
            .spawn()?;
        Ok(Self { child })
    }
}

impl Drop for MountKeeper {
    fn drop(&mut self) {
        // The end of its input ends it; nobody is left to report to.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
