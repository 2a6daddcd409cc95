//! Pool of reusable slots for short-lived items, which keep their allocated memory.

use std::ops::{Index, IndexMut};

#[derive(Clone, Debug, Default)]
pub(super) struct SlotPool<T> {
    items: Vec<T>,
    free_slots: Vec<u32>,
}

impl<T: Default> SlotPool<T> {
    /// Returns a free slot. Its item is as the last user left it.
    #[inline]
    pub(super) fn take_slot(&mut self) -> u32 {
        self.free_slots.pop().unwrap_or_else(|| {
            self.items.push(T::default());
            (self.items.len() - 1) as u32
        })
    }

    #[inline]
    pub(super) fn release_slot(&mut self, place: u32) {
        self.free_slots.push(place);
    }
}

impl<T> Index<u32> for SlotPool<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        &self.items[place as usize]
    }
}

impl<T> IndexMut<u32> for SlotPool<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.items[place as usize]
    }
}
