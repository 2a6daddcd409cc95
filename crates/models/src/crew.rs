//! Execution of independent pieces of work, in any order and number of threads.

use crate::error::LaboratoryError;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Executor of independent pieces of work.
pub trait Crew: fmt::Debug + Send + Sync {
    /// Executes each piece once, by its index below `count`, in any order and possibly in parallel.
    ///
    /// # Panics
    ///
    /// Panics if one of the pieces panics.
    fn run_each(&self, count: usize, piece: &(dyn Fn(usize) + Sync));
}

/// Executor that runs one piece after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleThread;

impl Crew for SingleThread {
    fn run_each(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(piece);
    }
}

/// Executes all pieces and returns their results in the order of the indices.
///
/// # Panics
///
/// Panics if one of the pieces panics.
pub fn results<T: Send>(
    crew: &dyn Crew,
    count: usize,
    piece: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    crew.run_each(count, &|number| {
        let result = piece(number);
        *lock_slot(&slots[number]) = Some(result);
    });
    let take = |slot: Mutex<Option<T>>| {
        let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.expect("all pieces were done")
    };
    slots.into_iter().map(take).collect()
}

/// Executor whose progress the user can watch and whose work the user can end.
#[derive(Clone, Copy)]
pub struct WatchedCrew<'a> {
    /// Executor that runs the pieces of work.
    pub crew: &'a dyn Crew,
    /// Flag that is set when the user ends the work.
    pub stop: &'a Arc<AtomicBool>,
    /// Callback that receives the number of finished pieces and their total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl WatchedCrew<'_> {
    /// Executes all pieces and returns their results in the order of the indices.
    ///
    /// # Errors
    ///
    /// Returns the first error, in the order of the indices.
    pub fn run_each<T: Send>(
        &self,
        count: usize,
        piece: impl Fn(usize) -> Result<T, LaboratoryError> + Sync,
    ) -> Result<Vec<T>, LaboratoryError> {
        let done = AtomicUsize::new(0);
        let results = results(self.crew, count, |number| {
            let result = match self.stop.load(Ordering::Relaxed) {
                true => Err(LaboratoryError::Interrupted),
                false => piece(number),
            };
            (self.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, count);
            result
        });
        results.into_iter().collect()
    }
}

/// Locks a mutex and returns its content, even if a previous holder panicked.
pub fn lock_slot<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
