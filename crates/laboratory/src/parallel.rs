//! Work on several threads whose results do not depend on how many.

use crate::error::LaboratoryError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Does something for each number below `count`, on so many threads, or on fewer
/// where the system does not let so many be; the results in the order of the
/// numbers, whoever did which.
///
/// # Panics
///
/// What one of the threads panics with.
pub(crate) fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let some = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(result) = results.get(number) else {
                break;
            };
            let done = work(number);
            *lock(result) = Some(done);
        }
    };
    std::thread::scope(|scope| {
        let helpers = (1..threads.min(count)).map(|_| Builder::new().spawn_scoped(scope, some));
        let helpers: Vec<_> = helpers.map_while(Result::ok).collect();
        some();
        for helper in helpers {
            helper
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let take = |slot: Mutex<Option<T>>| {
        let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.expect("all work was done")
    };
    results.into_iter().map(take).collect()
}

/// Threads whose work the user can watch and end.
#[derive(Clone, Copy)]
pub(crate) struct Threads<'a> {
    /// Pieces of work at a time.
    pub(crate) most: usize,
    /// Set when the user ends it.
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// Told how many pieces are done, and of how many.
    pub(crate) progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Threads<'_> {
    /// Does something for each number below `count`; what comes of it, in the
    /// order of the numbers, whoever did which.
    ///
    /// # Errors
    ///
    /// The first, in the order of the numbers.
    pub(crate) fn each<T: Send>(
        &self,
        count: usize,
        work: impl Fn(usize) -> Result<T, LaboratoryError> + Sync,
    ) -> Result<Vec<T>, LaboratoryError> {
        let done = AtomicUsize::new(0);
        let results = in_parallel(self.most, count, |number| {
            let result = if self.stop.load(Ordering::Relaxed) {
                Err(LaboratoryError::Interrupted)
            } else {
                work(number)
            };
            (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, count);
            result
        });
        results.into_iter().collect()
    }
}

/// What a mutex guards, whatever became of who had it.
pub(crate) fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
