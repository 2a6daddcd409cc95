//! File locks that workers hold for the time of an I/O. Waiting workers get a lock in the order of
//! their requests.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks of the files of a drive, by their paths.
#[derive(Debug, Default)]
pub(crate) struct FileLocks {
    lock_table: Mutex<LockTable>,
}

#[derive(Debug, Default)]
struct LockTable {
    lock_by_path: BTreeMap<String, FileLock>,
    /// Ticket of the next worker that waits for a lock.
    ticket_next: u64,
}

#[derive(Debug, Default)]
struct FileLock {
    holders: Option<LockHolders>,
    /// Tickets of the workers that wait, oldest first.
    waiting_tickets: VecDeque<u64>,
}

/// Workers that hold the lock of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LockHolders {
    ExclusiveHolder,
    SharedHolders(u32),
}

/// Position of a worker in the queue for a file lock. Dropping it leaves the queue.
#[derive(Debug)]
pub(crate) struct LockWait {
    file_locks: Arc<FileLocks>,
    path: String,
    ticket: u64,
}

/// File lock that a worker holds. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct FileGuard {
    file_locks: Arc<FileLocks>,
    path: String,
}

impl FileLocks {
    /// Adds a worker to the end of the queue for the lock of a file.
    pub(crate) fn join_queue(self: &Arc<Self>, path: &str) -> LockWait {
        let mut state = self.lock_table();
        let ticket = state.ticket_next;
        state.ticket_next += 1;
        let lock = state.lock_by_path.entry(path.to_owned()).or_default();
        lock.waiting_tickets.push_back(ticket);
        LockWait {
            file_locks: Arc::clone(self),
            path: path.to_owned(),
            ticket,
        }
    }

    fn lock_table(&self) -> MutexGuard<'_, LockTable> {
        self.lock_table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl LockWait {
    /// Takes the file lock if this worker is first in the queue and the lock is free. Also takes it
    /// if the worker shares the lock and all holders share it. Returns `None` if the worker must
    /// continue to wait.
    pub(crate) fn try_lock(&self, shares: bool) -> Option<FileGuard> {
        let mut state = self.file_locks.lock_table();
        let lock = state.lock_by_path.get_mut(&self.path)?;
        let held = match (lock.holders, shares) {
            _ if lock.waiting_tickets.front() != Some(&self.ticket) => return None,
            (None, true) => LockHolders::SharedHolders(1),
            (None, false) => LockHolders::ExclusiveHolder,
            (Some(LockHolders::SharedHolders(count)), true) => {
                LockHolders::SharedHolders(count + 1)
            }
            (Some(_), _) => return None,
        };
        lock.holders = Some(held);
        lock.waiting_tickets.pop_front();
        Some(FileGuard {
            file_locks: Arc::clone(&self.file_locks),
            path: self.path.clone(),
        })
    }
}

impl Drop for LockWait {
    fn drop(&mut self) {
        let mut state = self.file_locks.lock_table();
        if let Some(lock) = state.lock_by_path.get_mut(&self.path) {
            lock.waiting_tickets.retain(|ticket| *ticket != self.ticket);
        }
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        let mut state = self.file_locks.lock_table();
        if let Some(lock) = state.lock_by_path.get_mut(&self.path) {
            lock.holders = match lock.holders {
                Some(LockHolders::SharedHolders(count)) if count > 1 => {
                    Some(LockHolders::SharedHolders(count - 1))
                }
                _ => None,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_keeps_out_all_but_those_who_share_it() {
        let locks = Arc::new(FileLocks::default());
        let try_lock = |path: &str, shares| locks.join_queue(path).try_lock(shares);
        let (one, two) = (try_lock("a", true), try_lock("a", true));
        assert!(one.is_some() && two.is_some());
        assert!(try_lock("a", false).is_none());
        drop(one);
        assert!(try_lock("a", false).is_none());
        drop(two);
        let alone = try_lock("a", false);
        assert!(alone.is_some());
        assert!(try_lock("a", true).is_none());
        assert!(try_lock("b", false).is_some());
        drop(alone);
        assert!(try_lock("a", true).is_some());
    }

    #[test]
    fn those_that_wait_have_the_lock_in_their_order() {
        let locks = Arc::new(FileLocks::default());
        let held = locks.join_queue("a").try_lock(false);
        let [first, second, third] = [0, 1, 2].map(|_| locks.join_queue("a"));
        drop(held);
        // Whoever had it last asks again behind them.
        let again = locks.join_queue("a");
        assert!(second.try_lock(false).is_none() && again.try_lock(false).is_none());
        let held = first.try_lock(false);
        assert!(held.is_some());
        drop(held);
        // One that gives up lets the next one go first.
        drop(second);
        assert!(again.try_lock(false).is_none());
        assert!(third.try_lock(false).is_some());
        assert!(again.try_lock(false).is_some());
    }
}
