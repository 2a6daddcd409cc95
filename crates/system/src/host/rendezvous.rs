//! Meeting point of a run's workers: a barrier and notices between workers.

use super::clock::monotonic;
use crate::{Error, Result};
use diskperf_timeline::Nanoseconds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Reusable barrier for the workers of a run. A worker that fails breaks it for the others, and the
/// end of the run breaks it for all.
pub struct Rendezvous {
    workers: usize,
    state: Mutex<BarrierState>,
    changed: Condvar,
}

struct BarrierState {
    arrived_workers: usize,
    /// Number of completed meetings; a waiting worker waits for it to change.
    completed_meetings: u64,
    released_at: Nanoseconds,
    is_broken: bool,
    notices: u64,
}

/// Maximum time for a waiting worker to notice the end of the run.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

impl Rendezvous {
    /// Returns a barrier for this number of workers.
    pub fn new(workers: usize) -> Self {
        let state = BarrierState {
            arrived_workers: 0,
            completed_meetings: 0,
            released_at: Nanoseconds::ZERO,
            is_broken: false,
            notices: 0,
        };
        Self {
            workers,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Waits for all workers, and returns the same release time to each: the arrival of the last
    /// one.
    pub fn wait(&self, stop: &AtomicBool) -> Result<Nanoseconds> {
        let mut state = self.lock();
        state.arrived_workers += 1;
        if state.arrived_workers == self.workers && !state.is_broken {
            state.arrived_workers = 0;
            state.completed_meetings += 1;
            state.released_at = monotonic();
            self.changed.notify_all();
            return Ok(state.released_at);
        }
        let completed_meetings = state.completed_meetings;
        loop {
            if state.completed_meetings != completed_meetings {
                return Ok(state.released_at);
            }
            if state.is_broken {
                return Err(Error::PeerFailed);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            state = self
                .changed
                .wait_timeout(state, STOP_CHECK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Returns the number of notices given so far.
    pub fn notices(&self) -> u64 {
        self.lock().notices
    }

    /// Gives a notice, which wakes the workers that wait for one.
    pub fn give_notice(&self) {
        self.lock().notices += 1;
        self.changed.notify_all();
    }

    /// Waits until more notices than `seen` were given, or until a deadline if there is one, while
    /// `check_stop` returns no error.
    pub(super) fn await_notice(
        &self,
        (seen, until): (u64, Option<Nanoseconds>),
        check_stop: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock();
        loop {
            check_stop()?;
            let left = until.map(|until| until.since(monotonic()));
            if state.notices > seen || state.is_broken || left == Some(Nanoseconds::ZERO) {
                return Ok(());
            }
            let slice = left.map_or(STOP_CHECK_INTERVAL, |left| {
                Duration::from_nanos(left.0).min(STOP_CHECK_INTERVAL)
            });
            let waited = self.changed.wait_timeout(state, slice);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Breaks the barrier, since this worker has failed and will not arrive again.
    pub fn give_up(&self) {
        self.lock().is_broken = true;
        self.changed.notify_all();
    }

    /// Locks the state, even if a worker panicked with the lock: it left no partial change.
    fn lock(&self) -> MutexGuard<'_, BarrierState> {
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
        let released_at = meet(4, 100);
        assert!(released_at.iter().all(|moments| *moments == released_at[0]));
        assert!(released_at[0].is_sorted_by_key(|moment| moment.clone().unwrap()));
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
        let check_stop = || Ok(());
        let seen = rendezvous.notices();
        rendezvous.give_notice();
        assert_eq!(rendezvous.await_notice((seen, None), check_stop), Ok(()));
        let seen = rendezvous.notices();
        let soon = monotonic() + Nanoseconds::from_millis(5);
        assert_eq!(
            rendezvous.await_notice((seen, Some(soon)), check_stop),
            Ok(())
        );
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
