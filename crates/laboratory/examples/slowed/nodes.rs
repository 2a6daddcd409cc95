//! The files and folders that the kernel knows, each by a descriptor of its place.

use fuser::{FileAttr, FileType, INodeNo};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, openat, statat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A descriptor of a place, which neither renaming nor unlinking takes away.
pub(crate) type Place = Arc<OwnedFd>;

struct Node {
    place: Place,
    lookups: u64,
}

/// The places by number.
pub(crate) struct Nodes {
    known: Mutex<HashMap<u64, Node>>,
}

impl Nodes {
    /// Of a folder, which is the root.
    pub(crate) fn new(root: OwnedFd) -> Self {
        let place = Arc::new(root);
        let root = Node { place, lookups: 1 };
        Self {
            known: Mutex::new(HashMap::from([(INodeNo::ROOT.0, root)])),
        }
    }

    /// Where it is.
    pub(crate) fn place(&self, number: INodeNo) -> io::Result<Place> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let node = known.get(&number.0);
        let place = node.map(|node| node.place.clone());
        Ok(place.ok_or(rustix::io::Errno::STALE)?)
    }

    /// The entry of a folder, which the kernel then knows.
    pub(crate) fn entry(&self, parent: INodeNo, name: &OsStr) -> io::Result<FileAttr> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let place = openat(&self.place(parent)?, name, flags, Mode::empty())?;
        let attributes = attributes(&place)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let node = known.entry(attributes.ino.0).or_insert_with(|| Node {
            place: Arc::new(place),
            lookups: 0,
        });
        node.lookups += 1;
        Ok(attributes)
    }

    /// The kernel forgets so many of its lookups.
    pub(crate) fn forget(&self, number: INodeNo, lookups: u64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(node) = known.get_mut(&number.0) {
            node.lookups = node.lookups.saturating_sub(lookups);
            if node.lookups == 0 {
                known.remove(&number.0);
            }
        }
    }
}

/// Its name for calls that take one.
pub(crate) fn path(place: &Place) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

/// What is known of it.
pub(crate) fn attributes(place: &OwnedFd) -> io::Result<FileAttr> {
    let stat = statat(place, "", AtFlags::EMPTY_PATH)?;
    let at = |seconds: i64, nanoseconds: u64| -> SystemTime {
        UNIX_EPOCH + Duration::new(seconds.max(0) as u64, nanoseconds as u32)
    };
    Ok(FileAttr {
        ino: INodeNo(stat.st_ino),
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        atime: at(stat.st_atime, stat.st_atime_nsec),
        mtime: at(stat.st_mtime, stat.st_mtime_nsec),
        ctime: at(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(&stat),
        perm: (stat.st_mode & 0o7777) as u16,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: stat.st_rdev as u32,
        blksize: stat.st_blksize as u32,
        flags: 0,
    })
}

fn kind(stat: &Stat) -> FileType {
    match rustix::fs::FileType::from_raw_mode(stat.st_mode) {
        rustix::fs::FileType::Directory => FileType::Directory,
        rustix::fs::FileType::Symlink => FileType::Symlink,
        _ => FileType::RegularFile,
    }
}
