//! Tasks: what has a program counter.

use std::future::Future;
use std::pin::Pin;

/// A task of one simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub(crate) u32);

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
