//! Tasks: simulated software with a program counter.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::Pin;

/// Identifier of a task in its simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(NonZeroU32);

impl TaskId {
    /// Returns the identifier of the task at the given index of the task table.
    pub(crate) fn from_index(index: usize) -> Self {
        let number = u32::try_from(index + 1).expect("fewer than 2^32 tasks");
        Self(NonZeroU32::new(number).expect("places are counted from 1"))
    }

    /// Returns the index of the task in the task table.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

pub(crate) struct TaskSlot {
    /// Future of the task. None while it is polled, and after the task has ended.
    pub(crate) future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    pub(crate) name: String,
    pub(crate) wait_reason: &'static str,
    /// Whether the task has been woken and has not yet been polled since.
    pub(crate) was_woken: bool,
    /// Whether the task is already in the ready queue.
    pub(crate) is_ready: bool,
    /// Whether the task is a foreground task. The simulation runs until every foreground task has
    /// ended.
    pub(crate) is_foreground: bool,
    pub(crate) has_ended: bool,
}
