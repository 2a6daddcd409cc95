//! Mounts by FUSE that a killed process of this user has left.

use super::mounts::{Mount, Mounts};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Longest wait for the answer of a server.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(1);

/// Finds the places of this user's FUSE mounts from `source` that no process serves any more, the
/// latest mount first, which is the order to unmount in.
///
/// # Errors
///
/// The mounts cannot be read.
pub fn find_dead_mounts(source: &str) -> io::Result<Vec<PathBuf>> {
    let user = format!("user_id={}", geteuid().as_raw());
    let mounts = Mounts::read_mounts()?;
    let own = mounts
        .iter()
        .rev()
        .filter(|mount| is_own(mount, source, &user));
    let dead = own.filter(|mount| is_dead(&mount.mount_point));
    Ok(dead.map(|mount| mount.mount_point.clone()).collect())
}

fn is_own(mount: &Mount, source: &str, user: &str) -> bool {
    mount.mount_source == Path::new(source)
        && (mount.filesystem_type == "fuse" || mount.filesystem_type.starts_with("fuse."))
        && mount
            .superblock_options
            .split(',')
            .any(|option| option == user)
}

/// Whether no process serves a mount. The kernel may keep attributes, so the server is asked. One
/// that does not answer, as a stopped one, is alive.
fn is_dead(path: &Path) -> bool {
    let (sender, answer) = mpsc::channel();
    let path = path.to_owned();
    let ask = move || {
        let asked = statx(CWD, &path, AtFlags::STATX_FORCE_SYNC, StatxFlags::SIZE);
        // Nobody waits any more after a late answer.
        let _ = sender.send(matches!(asked, Err(Errno::NOTCONN)));
    };
    // A thread that waits for a stopped server ends with this process.
    let started = thread::Builder::new().name("mount".to_owned()).spawn(ask);
    started.is_ok() && answer.recv_timeout(ANSWER_TIME_MAX) == Ok(true)
}

/// Removes the file that a mount was on, if it is this user's and empty, as its process made it.
///
/// # Errors
///
/// The file cannot be examined or removed.
pub fn remove_mount_point_file(path: &Path) -> io::Result<()> {
    let file = fs::symlink_metadata(path)?;
    let is_as_made = file.is_file() && file.len() == 0 && file.uid() == geteuid().as_raw();
    match is_as_made {
        true => fs::remove_file(path),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_known_by_its_source_type_and_user() {
        for (line, expected) in [
            (
                "36 35 0:61 / /m rw - fuse own rw,user_id=7,group_id=0",
                true,
            ),
            ("36 35 0:61 / /m rw - fuse.x own rw,user_id=7", true),
            ("36 35 0:61 / /m rw - fuse own rw,user_id=70", false),
            ("36 35 0:61 / /m rw - fuse other rw,user_id=7", false),
            ("36 35 0:61 / /m rw - tmpfs own rw,user_id=7", false),
        ] {
            let mounts = Mounts::parse_mounts(line.as_bytes()).unwrap();
            let found = mounts.iter().any(|mount| is_own(mount, "own", "user_id=7"));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_file_with_contents_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (empty, full) = (folder.path().join("empty"), folder.path().join("full"));
        fs::write(&empty, "").unwrap();
        fs::write(&full, "mine").unwrap();
        assert!(!is_dead(&full));
        for path in [&empty, &full] {
            remove_mount_point_file(path).unwrap();
        }
        assert!(!empty.exists() && full.exists());
    }
}
