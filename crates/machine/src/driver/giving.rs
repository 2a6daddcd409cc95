//! Giving a controller requests, drives in turn.

use crate::driver::DriverHost;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use std::cell::Cell;

/// The drives of a driver, each of which is looked at first once.
#[derive(Default)]
pub(crate) struct Turns {
    next: Cell<usize>,
}

impl Turns {
    /// The first that one of the drives has, from the one whose turn it is on; it is the
    /// turn of the drive behind that then.
    pub(crate) fn find<T>(
        &self,
        drives: usize,
        mut of: impl FnMut(usize) -> Option<T>,
    ) -> Option<T> {
        let next = self.next.get();
        let mut in_turn = (0..drives).map(|step| (next + step) % drives);
        let (drive, found) = in_turn.find_map(|drive| Some((drive, of(drive)?)))?;
        self.next.set((drive + 1) % drives);
        Some(found)
    }
}

/// Giving a controller as many requests as it takes, by one at a time.
#[derive(Default)]
pub(crate) struct Giving {
    starting: Cell<bool>,
}

impl Giving {
    /// Gives what `next` says, each at this cost, until it says nothing.
    ///
    /// # Panics
    ///
    /// When it is being done already.
    pub(crate) async fn all(
        &self,
        host: &impl DriverHost,
        cost: Time,
        next: impl Fn() -> Option<RequestId>,
        give: impl Fn(RequestId),
    ) {
        assert!(
            !self.starting.replace(true),
            "the level masks the interrupt"
        );
        while let Some(id) = next() {
            host.unqueue(id, cost).await;
            give(id);
        }
        self.starting.set(false);
    }
}
