//! Private directories of servers that were killed.

use super::{DRIVE, LOCK, PREFIX, SOCKET, runtime_directory};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::{Pid, geteuid, test_kill_process};
use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Private directory of a server that was killed, with its socket.
#[derive(Debug)]
pub struct AbandonedDirectory {
    path: PathBuf,
    /// The locked file of the dead server, now locked by this process.
    _lock: Option<File>,
}

/// Finds this user's private directories whose servers are dead. They are looked for where servers
/// of this user make them.
///
/// # Errors
///
/// A directory that cannot be listed.
pub fn abandoned_directories() -> io::Result<Vec<AbandonedDirectory>> {
    let parents: BTreeSet<_> = runtime_directory()
        .into_iter()
        .chain([env::temp_dir()])
        .collect();
    let mut found = Vec::new();
    for parent in parents {
        found.extend(abandoned_in(&parent)?);
    }
    Ok(found)
}

fn abandoned_in(parent: &Path) -> io::Result<Vec<AbandonedDirectory>> {
    let entries = match fs::read_dir(parent) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            let text = format!("{}: {error}", parent.display());
            return Err(io::Error::new(error.kind(), text));
        }
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    let candidates = names.filter_map(|name| {
        let pid = process_of_name(&name)?;
        AbandonedDirectory::examine(parent.join(name), pid)
    });
    Ok(candidates.collect())
}

/// Returns the process id in the name of a private directory; `None` for other names.
fn process_of_name(name: &str) -> Option<Pid> {
    let (process, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    Pid::from_raw(process.parse().ok()?)
}

fn is_alive(pid: Pid) -> bool {
    test_kill_process(pid) != Err(Errno::SRCH)
}

impl AbandonedDirectory {
    /// Returns a directory if it is this user's and its server is dead.
    fn examine(path: PathBuf, pid: Pid) -> Option<Self> {
        let metadata = fs::symlink_metadata(&path).ok()?;
        // Nobody else can enter a directory that a server made.
        let is_own = metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        if !metadata.is_dir() || !is_own {
            return None;
        }
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
            .open(path.join(LOCK));
        let lock = match opened {
            Ok(lock) => lock,
            // The server was killed before it made the file, or when it had removed it.
            Err(error) if error.kind() == ErrorKind::NotFound && !is_alive(pid) => {
                return Some(Self { path, _lock: None });
            }
            Err(_) => return None,
        };
        flock(&lock, FlockOperation::NonBlockingLockExclusive).ok()?;
        // Without its text the file is about to be locked by its server.
        let is_marked = lock.metadata().is_ok_and(|metadata| metadata.len() > 0);
        (is_marked || !is_alive(pid)).then_some(Self {
            path,
            _lock: Some(lock),
        })
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the directory with the socket or the unmounted file in it. Other files in it are left alone, and so is the
    /// directory then.
    ///
    /// # Errors
    ///
    /// A file or the directory cannot be removed.
    pub fn remove(self) -> io::Result<()> {
        for name in [SOCKET, DRIVE, LOCK] {
            match fs::remove_file(self.path.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PrivateDirectory;
    use super::*;
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt;
    use std::process::Command;

    /// Process id of a process that has ended.
    fn dead_pid() -> u32 {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    fn paths(parent: &Path) -> Vec<PathBuf> {
        let found = abandoned_in(parent).unwrap();
        let mut paths: Vec<_> = found.iter().map(|of| of.path().to_owned()).collect();
        paths.sort();
        paths
    }

    #[test]
    fn a_directory_is_abandoned_when_its_server_is_dead() {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path();
        let alive = PrivateDirectory::create_in(parent).unwrap();
        let make = |name: &str, mode| {
            let path = parent.join(name);
            DirBuilder::new().mode(mode).create(&path).unwrap();
            path
        };
        let (own, dead) = (std::process::id(), dead_pid());
        let marked = make(&format!("diskperf-serve-{own}-7"), 0o700);
        fs::write(marked.join(LOCK), "x").unwrap();
        fs::write(marked.join(SOCKET), "").unwrap();
        let unmarked = make(&format!("diskperf-serve-{dead}-0"), 0o700);
        // Not locked yet, of nobody, open to others, and of other names.
        make(&format!("diskperf-serve-{own}-8"), 0o700);
        let early = make(&format!("diskperf-serve-{own}-9"), 0o700);
        fs::write(early.join(LOCK), "").unwrap();
        for (name, mode) in [
            (format!("diskperf-serve-{dead}-1"), 0o755),
            (format!("diskperf-serve-{dead}-x"), 0o700),
            ("diskperf-serve-0-0".to_owned(), 0o700),
            ("diskperf-serve".to_owned(), 0o700),
        ] {
            make(&name, mode);
        }
        let mut expected = [marked.clone(), unmarked];
        expected.sort();
        assert_eq!(paths(parent), expected);
        for abandoned in abandoned_in(parent).unwrap() {
            abandoned.remove().unwrap();
        }
        assert!(paths(parent).is_empty());
        assert!(alive.path().exists() && !marked.exists());
    }

    #[test]
    fn files_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder
            .path()
            .join(format!("diskperf-serve-{}-0", dead_pid()));
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        fs::write(path.join("mine"), "mine").unwrap();
        let abandoned = abandoned_in(folder.path()).unwrap().remove(0);
        assert!(abandoned.remove().is_err());
        assert!(path.join("mine").exists());
    }
}
