//! Submission of queued requests to a controller, in turn over its drives.

use crate::driver::DriverHost;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use std::cell::Cell;

/// Round-robin choice among the drives of a driver.
#[derive(Default)]
pub(crate) struct RoundRobin {
    next_drive: Cell<usize>,
}

impl RoundRobin {
    /// Returns the first result of `of` over the drives, beginning with the drive whose turn it is.
    /// The turn then passes to the drive after the one chosen.
    pub(crate) fn find_next_drive<T>(
        &self,
        drives: usize,
        mut find: impl FnMut(usize) -> Option<T>,
    ) -> Option<T> {
        let next = self.next_drive.get();
        let mut in_turn = (0..drives).map(|step| (next + step) % drives);
        let (drive, result) = in_turn.find_map(|drive| Some((drive, find(drive)?)))?;
        self.next_drive.set((drive + 1) % drives);
        Some(result)
    }
}

/// Guard for the submission of requests to a controller, so that only one submission loop runs at a
/// time.
#[derive(Default)]
pub(crate) struct SubmissionGuard {
    is_submitting: Cell<bool>,
}

impl SubmissionGuard {
    /// Submits the requests that `next` returns until it returns None. Each costs the processor
    /// time `cost`.
    ///
    /// # Panics
    ///
    /// If a submission is already in progress.
    pub(crate) async fn submit_all(
        &self,
        host: &impl DriverHost,
        cost: Time,
        next: impl Fn() -> Option<RequestId>,
        submit: impl Fn(RequestId),
    ) {
        assert!(
            !self.is_submitting.replace(true),
            "the level masks the interrupt"
        );
        while let Some(id) = next() {
            host.start_queued_request(id, cost).await;
            submit(id);
        }
        self.is_submitting.set(false);
    }
}
