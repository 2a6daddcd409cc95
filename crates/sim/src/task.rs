//! Tasks: what has a program counter.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;

/// A task of one simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(NonZeroU32);

impl TaskId {
    /// The task at this place among all.
    pub(crate) fn of_place(place: usize) -> Self {
        let number = u32::try_from(place + 1).expect("fewer than 2^32 tasks");
        Self(NonZeroU32::new(number).expect("places are counted from 1"))
    }

    /// Its place among all.
    #[inline]
    pub(crate) fn place(self) -> usize {
        self.0.get() as usize - 1
    }
}

pub(crate) struct Slot {
    /// Taken out while it is polled; gone for good when the task has ended.
    pub(crate) future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    pub(crate) name: String,
    pub(crate) waiting_for: &'static str,
    /// Woken, and not yet told.
    pub(crate) woken: bool,
    /// Already among the tasks that are ready to be polled.
    pub(crate) queued: bool,
    /// The simulation runs until every foreground task has ended.
    pub(crate) foreground: bool,
    pub(crate) ended: bool,
}
