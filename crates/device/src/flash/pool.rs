//! Pool of reusable slots for short-lived items, which keep their allocated memory.

use std::ops::{Index, IndexMut};

#[derive(Clone, Debug, Default)]
pub(super) struct Pool<T> {
    items: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Pool<T> {
    /// Returns a free slot. Its item is as the last user left it.
    #[inline]
    pub(super) fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.items.push(T::default());
            (self.items.len() - 1) as u32
        })
    }

    #[inline]
    pub(super) fn give_back(&mut self, place: u32) {
        self.free.push(place);
    }
}

impl<T> Index<u32> for Pool<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        &self.items[place as usize]
    }
}

impl<T> IndexMut<u32> for Pool<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }
}
