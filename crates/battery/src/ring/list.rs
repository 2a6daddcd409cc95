//! Requests that are issued in order, until all of them are complete.

use super::{IoRing, RequestSource, RingStep};
use crate::program::ProgramError;
use crate::worker::Worker;
use diskperf_system::Submission;
use diskperf_timeline::Nanoseconds;

/// Source of the steps that each put a request into a slot. `None` ends them.
struct RequestList<Next>(Next);

impl<Next: FnMut(&mut IoRing<'_>) -> Option<RingStep>> RequestSource for RequestList<Next> {
    fn next_step(&mut self, ring: &mut IoRing<'_>) -> Result<RingStep, ProgramError> {
        let step = match ring.slots.is_full() {
            true => None,
            false => (self.0)(ring),
        };
        Ok(step.unwrap_or_else(|| RingStep::drain_step(&ring.slots)))
    }
}

impl IoRing<'_> {
    /// Issues requests to the file with this index in order, and waits for all of them. Nothing
    /// else may be in flight.
    pub(crate) async fn issue_all(
        &mut self,
        file: usize,
        requests: &[Submission],
    ) -> Result<(), ProgramError> {
        let mut requests = requests.iter();
        let put = |_: &mut IoRing<'_>| Some(RingStep::PutRequest(file, *requests.next()?));
        self.run_source(&mut RequestList(put)).await
    }

    /// Reads the written blocks back from storage if they are verified, past the page cache or with
    /// the page cache dropped. The time does not count in the measurements. Nothing else may be in
    /// flight.
    pub(crate) async fn read_back(&mut self, worker: &Worker) -> Result<(), ProgramError> {
        if self.verifier.is_none() {
            return Ok(());
        }
        self.target_system.end_timed_part().await?;
        self.think_time = Nanoseconds::ZERO;
        let shown = self
            .verifier
            .as_ref()
            .map(|one| one.begin_read_back(self.target_system));
        if !worker.direct_io {
            for (_, path) in &self.open_files {
                self.target_system.drop_cached_pages(path).await?;
            }
        }
        let read = |ring: &mut IoRing<'_>| {
            let verifier = ring.verifier.as_mut()?;
            let unread = verifier.next_unread();
            if let Some(shown) = shown {
                shown.show_remaining(ring.target_system, verifier);
            }
            unread.map(RingStep::ReadBack)
        };
        let mut outcome = self.run_source(&mut RequestList(read)).await;
        if let Some(verifier) = &mut self.verifier {
            outcome = outcome.and_then(|()| verifier.evaluate_differences());
            self.target_system.count_verified(verifier.take_verified());
        }
        outcome
    }
}
