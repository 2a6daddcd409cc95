//! Submission of queued requests to a controller, in turn over its drives.

use crate::driver::DriverHost;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use std::cell::Cell;

/// Round-robin choice among the drives of a driver.
#[derive(Default)]
pub(crate) struct Turns {
    next: Cell<usize>,
}

impl Turns {
    /// Returns the first result of `of` over the drives, beginning with the drive whose turn it is.
    /// The turn then passes to the drive after the one chosen.
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

/// Guard for the submission of requests to a controller, so that only one submission loop runs at a
/// time.
#[derive(Default)]
pub(crate) struct Giving {
    starting: Cell<bool>,
}

impl Giving {
    /// Submits the requests that `next` returns until it returns None. Each costs the processor
    /// time `cost`.
    ///
    /// # Panics
    ///
    /// If a submission is already in progress.
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
