//! Work in pieces that do not depend on each other, whoever does them and how many at once.

use crate::error::LaboratoryError;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whoever does pieces of work.
pub trait Crew: fmt::Debug + Send + Sync {
    /// Does each piece once, by its number below `count`, in any order and several at a time.
    ///
    /// # Panics
    ///
    /// What one of the pieces panics with.
    fn each(&self, count: usize, piece: &(dyn Fn(usize) + Sync));
}

/// One piece after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Crew for Alone {
    fn each(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(piece);
    }
}

/// Returns what comes of each piece, in the order of the numbers, whoever did which.
///
/// # Panics
///
/// What one of the pieces panics with.
pub fn results<T: Send>(
    crew: &dyn Crew,
    count: usize,
    piece: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let slots: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    crew.each(count, &|number| {
        let result = piece(number);
        *lock(&slots[number]) = Some(result);
    });
    let take = |slot: Mutex<Option<T>>| {
        let result = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.expect("all pieces were done")
    };
    slots.into_iter().map(take).collect()
}

/// A crew whose work the user can watch and end.
#[derive(Clone, Copy)]
pub struct Watched<'a> {
    /// Whoever does the pieces.
    pub crew: &'a dyn Crew,
    /// Set when the user ends it.
    pub stop: &'a Arc<AtomicBool>,
    /// Called with how many pieces are done, and of how many.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
}

impl Watched<'_> {
    /// Returns what comes of each piece, in the order of the numbers.
    ///
    /// # Errors
    ///
    /// The first, in the order of the numbers.
    pub fn each<T: Send>(
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

/// What a mutex guards, whatever became of who had it.
pub fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}
