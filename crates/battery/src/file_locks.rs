//! Locks of files that workers take for an I/O, one after the other as they come.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locks of the files of a drive, by their paths.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    locks: Mutex<BTreeMap<String, FileLock>>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct FileLock {
    holders: Holders,
    /// Tickets of those that wait, the first to come first.
    waiting: VecDeque<u64>,
    /// Tickets that were given out.
    tickets: u64,
}

/// Workers that hold a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Holders {
    #[default]
    None,
    /// One alone.
    Alone,
    /// So many, who let others of their kind in.
    Shared(u32),
}

/// Place of a worker among those that wait for the lock of a file.
#[derive(Debug)]
pub(crate) struct Ticket {
    locks: Arc<FileLocks>,
    path: String,
    number: u64,
    /// Whether it lets others of its kind in.
    shares: bool,
}

/// Lock of a file, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct FileGuard {
    locks: Arc<FileLocks>,
    path: String,
}

impl FileLocks {
    /// Joins those that wait for the lock of a file.
    pub(crate) fn join(self: &Arc<Self>, path: &str, shares: bool) -> Ticket {
        let mut locks = self.locks();
        let lock = locks.entry(path.to_owned()).or_default();
        let number = lock.tickets;
        lock.tickets += 1;
        lock.waiting.push_back(number);
        Ticket {
            locks: Arc::clone(self),
            path: path.to_owned(),
            number,
            shares,
        }
    }

    fn locks(&self) -> MutexGuard<'_, BTreeMap<String, FileLock>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the lock of a file, and wakes those that wait.
    fn change(&self, path: &str, change: impl FnOnce(&mut FileLock)) {
        if let Some(lock) = self.locks().get_mut(path) {
            change(lock);
        }
        self.changed.notify_all();
    }
}

impl Ticket {
    /// Takes the lock, if nobody came before and nobody has it but those who share it too.
    pub(crate) fn try_lock(&self) -> Option<FileGuard> {
        let mut locks = self.locks.locks();
        let lock = locks.get_mut(&self.path)?;
        if lock.waiting.front() != Some(&self.number) {
            return None;
        }
        lock.holders = match (lock.holders, self.shares) {
            (Holders::None, true) => Holders::Shared(1),
            (Holders::None, false) => Holders::Alone,
            (Holders::Shared(count), true) => Holders::Shared(count + 1),
            (Holders::Alone | Holders::Shared(_), _) => return None,
        };
        Some(FileGuard {
            locks: Arc::clone(&self.locks),
            path: self.path.clone(),
        })
    }

    /// Whether nobody came before.
    pub(crate) fn is_first(&self) -> bool {
        let locks = self.locks.locks();
        let lock = locks.get(&self.path);
        lock.is_some_and(|lock| lock.waiting.front() == Some(&self.number))
    }

    /// Waits on real storage until a lock has changed, at most so long.
    pub(crate) fn wait(&self, at_most: Duration) {
        let locks = self.locks.locks();
        let has_turn = locks.get(&self.path).is_some_and(|lock| {
            lock.waiting.front() == Some(&self.number) && lock.holders == Holders::None
        });
        if !has_turn {
            drop(self.locks.changed.wait_timeout(locks, at_most));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let number = self.number;
        let leave = |lock: &mut FileLock| lock.waiting.retain(|waiting| *waiting != number);
        self.locks.change(&self.path, leave);
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        self.locks.change(&self.path, |lock| {
            lock.holders = match lock.holders {
                Holders::Shared(count) if count > 1 => Holders::Shared(count - 1),
                Holders::None | Holders::Alone | Holders::Shared(_) => Holders::None,
            };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a lock without a wait.
    fn taken(locks: &Arc<FileLocks>, path: &str, shares: bool) -> Option<FileGuard> {
        locks.join(path, shares).try_lock()
    }

    #[test]
    fn a_lock_keeps_out_all_but_those_who_share_it() {
        let locks = Arc::new(FileLocks::default());
        let (one, two) = (taken(&locks, "a", true), taken(&locks, "a", true));
        assert!(one.is_some() && two.is_some());
        assert!(taken(&locks, "a", false).is_none());
        drop(one);
        assert!(taken(&locks, "a", false).is_none());
        drop(two);
        let alone = taken(&locks, "a", false);
        assert!(alone.is_some());
        assert!(taken(&locks, "a", true).is_none());
        assert!(taken(&locks, "b", false).is_some());
        drop(alone);
        assert!(taken(&locks, "a", true).is_some());
    }

    #[test]
    fn those_that_wait_have_their_turn_as_they_came() {
        let locks = Arc::new(FileLocks::default());
        let holder = taken(&locks, "a", false);
        let [first, second, third] = [false, true, true].map(|shares| locks.join("a", shares));
        assert!(first.is_first() && !second.is_first());
        drop(holder);
        assert!(second.try_lock().is_none());
        let guard = first.try_lock();
        assert!(guard.is_some());
        drop((first, guard));
        // One that gives up lets the next one go.
        drop(second);
        assert!(third.is_first() && third.try_lock().is_some());
    }
}
