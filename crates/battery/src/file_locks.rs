//! Locks of files that workers take for an I/O.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks of the files of a drive, by their paths.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    holders: Mutex<BTreeMap<String, Holders>>,
    freed: Condvar,
}

/// Workers that hold the lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holders {
    /// One alone.
    Alone,
    /// So many, who let others of their kind in.
    Shared(u32),
}

/// Lock of a file, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct FileGuard {
    locks: Arc<FileLocks>,
    path: String,
}

impl FileLocks {
    /// Takes the lock of a file, if nobody has it but those who share it as well.
    pub(crate) fn try_lock(self: &Arc<Self>, path: &str, shares: bool) -> Option<FileGuard> {
        let mut holders = self.lock();
        let held = match (holders.get(path), shares) {
            (None, true) => Holders::Shared(1),
            (None, false) => Holders::Alone,
            (Some(Holders::Shared(count)), true) => Holders::Shared(count + 1),
            (Some(_), _) => return None,
        };
        holders.insert(path.to_owned(), held);
        Some(FileGuard {
            locks: Arc::clone(self),
            path: path.to_owned(),
        })
    }

    /// Waits on real storage until a lock is freed, at most so long.
    pub(crate) fn wait(&self, at_most: Duration) {
        let holders = self.lock();
        drop(self.freed.wait_timeout(holders, at_most));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Holders>> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        let mut holders = self.locks.lock();
        match holders.get_mut(&self.path) {
            Some(Holders::Shared(count)) if *count > 1 => *count -= 1,
            _ => {
                holders.remove(&self.path);
            }
        }
        self.locks.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_out_all_but_those_who_share_it() {
        let locks = Arc::new(FileLocks::default());
        let (one, two) = (locks.try_lock("a", true), locks.try_lock("a", true));
        assert!(one.is_some() && two.is_some());
        assert!(locks.try_lock("a", false).is_none());
        drop(one);
        assert!(locks.try_lock("a", false).is_none());
        drop(two);
        let alone = locks.try_lock("a", false);
        assert!(alone.is_some());
        assert!(locks.try_lock("a", true).is_none());
        assert!(locks.try_lock("b", false).is_some());
        drop(alone);
        assert!(locks.try_lock("a", true).is_some());
    }
}
