//! Meeting point of a run's workers: a barrier and notices between workers.

use super::clock::monotonic_now;
use crate::{Error, Result};
use diskperf_timeline::Nanoseconds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Reusable barrier for the workers of a run. A worker that fails breaks it for the others, and the
/// end of the run breaks it for all.
pub struct HostRendezvous {
    worker_count: usize,
    state: Mutex<BarrierState>,
    state_changed: Condvar,
}

struct BarrierState {
    arrived_worker_count: usize,
    /// Number of completed meetings; a waiting worker waits for it to change.
    completed_meeting_count: u64,
    release_time: Nanoseconds,
    is_broken: bool,
    notice_count: u64,
}

/// Maximum time for a waiting worker to notice the end of the run.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(20);

impl HostRendezvous {
    /// Returns a barrier for this number of workers.
    pub fn new(workers: usize) -> Self {
        let state = BarrierState {
            arrived_worker_count: 0,
            completed_meeting_count: 0,
            release_time: Nanoseconds::ZERO,
            is_broken: false,
            notice_count: 0,
        };
        Self {
            worker_count: workers,
            state: Mutex::new(state),
            state_changed: Condvar::new(),
        }
    }

    /// Waits for all workers, and returns the same release time to each: the arrival of the last
    /// one.
    pub fn wait_for_all_workers(&self, stop: &AtomicBool) -> Result<Nanoseconds> {
        let mut state = self.lock_state();
        state.arrived_worker_count += 1;
        if state.arrived_worker_count == self.worker_count && !state.is_broken {
            state.arrived_worker_count = 0;
            state.completed_meeting_count += 1;
            state.release_time = monotonic_now();
            self.state_changed.notify_all();
            return Ok(state.release_time);
        }
        let completed_meetings = state.completed_meeting_count;
        loop {
            if state.completed_meeting_count != completed_meetings {
                return Ok(state.release_time);
            }
            if state.is_broken {
                return Err(Error::OtherWorkerFailed);
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            state = self
                .state_changed
                .wait_timeout(state, STOP_CHECK_INTERVAL)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Returns the number of notices given so far.
    pub fn notice_count(&self) -> u64 {
        self.lock_state().notice_count
    }

    /// Gives a notice, which wakes the workers that wait for one.
    pub fn give_notice(&self) {
        self.lock_state().notice_count += 1;
        self.state_changed.notify_all();
    }

    /// Waits until more notices than `seen` were given, or until a deadline if there is one, while
    /// `check_stop` returns no error.
    pub(super) fn await_notice(
        &self,
        (seen, until): (u64, Option<Nanoseconds>),
        check_stop: impl Fn() -> Result<()>,
    ) -> Result<()> {
        let mut state = self.lock_state();
        loop {
            check_stop()?;
            let left = until.map(|until| until.since(monotonic_now()));
            if state.notice_count > seen || state.is_broken || left == Some(Nanoseconds::ZERO) {
                return Ok(());
            }
            let slice = left.map_or(STOP_CHECK_INTERVAL, |left| {
                Duration::from_nanos(left.0).min(STOP_CHECK_INTERVAL)
            });
            let waited = self.state_changed.wait_timeout(state, slice);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Breaks the barrier, since this worker has failed and will not arrive again.
    pub fn break_barrier(&self) {
        self.lock_state().is_broken = true;
        self.state_changed.notify_all();
    }

    /// Locks the state, even if a worker panicked with the lock: it left no partial change.
    fn lock_state(&self) -> MutexGuard<'_, BarrierState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn meet(workers: usize, rounds: usize) -> Vec<Vec<Result<Nanoseconds>>> {
        let rendezvous = Arc::new(HostRendezvous::new(workers));
        let threads: Vec<_> = (0..workers)
            .map(|_| {
                let rendezvous = Arc::clone(&rendezvous);
                std::thread::spawn(move || {
                    let stop = AtomicBool::new(false);
                    (0..rounds)
                        .map(|_| rendezvous.wait_for_all_workers(&stop))
                        .collect()
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
        let rendezvous = HostRendezvous::new(2);
        rendezvous.break_barrier();
        assert_eq!(
            rendezvous.wait_for_all_workers(&AtomicBool::new(false)),
            Err(Error::OtherWorkerFailed)
        );
    }

    #[test]
    fn a_notice_is_not_missed_by_who_saw_fewer_and_a_wait_ends_at_its_moment() {
        let rendezvous = Arc::new(HostRendezvous::new(2));
        let check_stop = || Ok(());
        let seen = rendezvous.notice_count();
        rendezvous.give_notice();
        assert_eq!(rendezvous.await_notice((seen, None), check_stop), Ok(()));
        let seen = rendezvous.notice_count();
        let soon = monotonic_now() + Nanoseconds::from_millis(5);
        assert_eq!(
            rendezvous.await_notice((seen, Some(soon)), check_stop),
            Ok(())
        );
        assert!(monotonic_now() >= soon);
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
            HostRendezvous::new(2).wait_for_all_workers(&AtomicBool::new(true)),
            Err(Error::Interrupted)
        );
    }
}
