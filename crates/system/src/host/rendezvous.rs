//! Where the workers of a run meet, and wait for notices of each other.

use super::clock::monotonic;
use crate::{Error, Result};
use diskperf_timeline::Nanoseconds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A barrier that can be used again and again, that a worker which fails
/// breaks for the others, and that the end of the run breaks for all.
pub struct Rendezvous {
    workers: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    arrived: usize,
    /// Counts the meetings; a worker waits for this to move.
    meeting: u64,
    released: Nanoseconds,
    broken: bool,
    /// Notices that were given.
    notices: u64,
}

/// How long a waiting worker takes at most to notice that the run has ended.
const PATIENCE: Duration = Duration::from_millis(20);

impl Rendezvous {
    /// For this many workers.
    pub fn new(workers: usize) -> Self {
        let state = State {
            arrived: 0,
            meeting: 0,
            released: Nanoseconds::ZERO,
            broken: false,
            notices: 0,
        };
        Self {
            workers,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Waits for all workers; all get the moment at which the last one came.
    pub fn wait(&self, stop: &AtomicBool) -> Result<Nanoseconds> {
        let mut state = self.lock();
        state.arrived += 1;
        if state.arrived == self.workers && !state.broken {
            state.arrived = 0;
            state.meeting += 1;
            state.released = monotonic();
            self.changed.notify_all();
            return Ok(state.released);
        }
        let meeting = state.meeting;
        loop {
            if state.meeting != meeting {
                return Ok(state.released);
            }
            if state.broken {
                return Err(Error::PeerFailed);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            state = self
                .changed
                .wait_timeout(state, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Notices that were given so far.
    pub fn notices(&self) -> u64 {
        self.lock().notices
    }

    /// Wakes the workers that wait for a notice.
    pub fn give_notice(&self) {
        self.lock().notices += 1;
        self.changed.notify_all();
    }

    /// Waits until more notices than `seen` were given, at most until a moment, as long as
    /// `goes_on` returns no error.
    pub(super) fn await_notice(
        &self,
        (seen, until): (u64, Option<Nanoseconds>),
        goes_on: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock();
        loop {
            goes_on()?;
            let left = until.map(|until| until.since(monotonic()));
            if state.notices > seen || state.broken || left == Some(Nanoseconds::ZERO) {
                return Ok(());
            }
            let slice = left.map_or(PATIENCE, |left| Duration::from_nanos(left.0).min(PATIENCE));
            let waited = self.changed.wait_timeout(state, slice);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Says that a worker will not come any more.
    pub fn give_up(&self) {
        self.lock().broken = true;
        self.changed.notify_all();
    }

    /// A worker that panicked while it held the lock had not changed anything
    /// by halves.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn meet(workers: usize, rounds: usize) -> Vec<Vec<Result<Nanoseconds>>> {
        let rendezvous = Arc::new(Rendezvous::new(workers));
        let threads: Vec<_> = (0..workers)
            .map(|_| {
                let rendezvous = Arc::clone(&rendezvous);
                std::thread::spawn(move || {
                    let stop = AtomicBool::new(false);
                    (0..rounds).map(|_| rendezvous.wait(&stop)).collect()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    }

    #[test]
    fn all_are_released_at_the_same_moment() {
        let released = meet(4, 100);
        assert!(released.iter().all(|moments| *moments == released[0]));
        assert!(released[0].is_sorted_by_key(|moment| moment.clone().unwrap()));
    }

    #[test]
    fn a_failed_worker_breaks_it_for_the_others() {
        let rendezvous = Rendezvous::new(2);
        rendezvous.give_up();
        assert_eq!(
            rendezvous.wait(&AtomicBool::new(false)),
            Err(Error::PeerFailed)
        );
    }

    #[test]
    fn a_notice_is_not_missed_by_who_saw_fewer_and_a_wait_ends_at_its_moment() {
        let rendezvous = Arc::new(Rendezvous::new(2));
        let goes_on = || Ok(());
        let seen = rendezvous.notices();
        rendezvous.give_notice();
        assert_eq!(rendezvous.await_notice((seen, None), goes_on), Ok(()));
        let seen = rendezvous.notices();
        let soon = monotonic() + Nanoseconds::from_millis(5);
        assert_eq!(rendezvous.await_notice((seen, Some(soon)), goes_on), Ok(()));
        assert!(monotonic() >= soon);
        let ended = || Err(Error::Interrupted);
        let stopped = rendezvous.await_notice((seen, None), ended);
        assert_eq!(stopped, Err(Error::Interrupted));
        let other = Arc::clone(&rendezvous);
        let waiter = std::thread::spawn(move || other.await_notice((seen, None), || Ok(())));
        rendezvous.give_notice();
        assert_eq!(waiter.join().unwrap(), Ok(()));
    }

    #[test]
    fn the_end_of_the_run_breaks_it_for_all() {
        assert_eq!(
            Rendezvous::new(2).wait(&AtomicBool::new(true)),
            Err(Error::Interrupted)
        );
    }
}
