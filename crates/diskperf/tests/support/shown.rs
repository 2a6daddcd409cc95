//! Directories that a process shows on another, as a file system.

use super::machine::{Undo, retry, run};
use super::{User, entries};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The directory `behind` of a user's home, shown on the target until this goes.
pub(crate) struct Shown {
    _unmount: Undo,
    server: Child,
    behind: PathBuf,
}

impl Shown {
    /// By bindfs.
    pub(crate) fn by_bindfs(user: &User) -> Self {
        Self::by(user, |behind, target| {
            let mut command = Command::new("bindfs");
            command.arg("-f").args([behind, target]);
            command
        })
    }

    /// By a command that stays in the foreground, for the directory and for the target.
    pub(crate) fn by(user: &User, command: impl FnOnce(&Path, &Path) -> Command) -> Self {
        let behind = user.file("behind");
        std::fs::create_dir_all(&behind).unwrap();
        let target = user.target();
        let mut command = command(&behind, &target);
        let server = command.stdin(Stdio::null()).spawn().unwrap();
        let unmount = Undo::by(&["umount", "--lazy", text(&target)]);
        wait_until_shown(&target);
        Self {
            _unmount: unmount,
            server,
            behind,
        }
    }

    /// Kills the process, with the file system mounted.
    pub(crate) fn kill(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }

    #[track_caller]
    pub(crate) fn expect_nothing_behind(&self) {
        assert_eq!(entries(&self.behind), [""; 0]);
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Waits until a file system that a process serves is mounted there.
pub(crate) fn wait_until_shown(target: &Path) {
    let target = text(target);
    retry(|| match run("stat", &["-f", "-c", "%T", target]).trim() {
        "fuseblk" | "fuse" => Ok(()),
        other => Err(format!("{target} is on {other}")),
    });
}

fn text(path: &Path) -> &str {
    path.to_str().expect("scratch paths are text")
}
