//! The part of the rule that explains a request of io_uring, of which many are in flight.

use crate::activities::Period;
use crate::chain::Purpose;
use crate::history::RingRequestLife;
use crate::requests::{BioLife, RequestIndex};
use crate::rule::{Explained, Explainer};
use diskperf_spans::Stage;

impl<'h> Explainer<'h> {
    pub(crate) fn explain_ring_request(&mut self, request: &RingRequestLife, period: Period) {
        let whole = Explained {
            period,
            purpose: None,
        };
        self.path.push(request.thread);
        if let (Some(queued), worker) = (request.queued_async_at, request.worker) {
            let submitting = whole.within(period.start, queued);
            self.book(submitting, Stage::SystemCall, Purpose::Call);
            // A worker that serves many requests without a sleep shows none of them: the time
            // among the workers is one stage.
            let Some((worker, started_at)) = worker else {
                let rest = whole.within(queued, period.end);
                self.book(rest, Stage::WorkQueueWait, Purpose::Call);
                return;
            };
            let waiting = whole.within(queued, started_at);
            self.book(waiting, Stage::WorkQueueWait, Purpose::Call);
            self.path = vec![worker];
            let returned = request.returned_at.unwrap_or(period.end);
            let serving = whole.within(waiting.period.end, returned).period;
            self.explain_own_time(worker, serving);
            // The submitter completes what the worker hands back.
            self.path = vec![request.thread];
            let completing = whole.within(serving.end, period.end);
            self.explain_own_time(request.thread, completing.period);
            return;
        }
        let last = self.find_last_request(request);
        let Some((bio, last)) = last else {
            self.explain_own_time(request.thread, period);
            return;
        };
        let submitting = whole.within(period.start, bio.queued_at);
        // A throttled bio arrives later, by another task.
        match self.is_throttled(bio) {
            true => self.book(submitting, Stage::CgroupThrottle, Purpose::Call),
            false => self.book(submitting, Stage::SystemCall, Purpose::Call),
        }
        self.explain_request(last, whole.within(bio.queued_at, period.end));
    }

    /// Returns the request among those of a ring's request that completes last, with its bio.
    fn find_last_request(&self, request: &RingRequestLife) -> Option<(&'h BioLife, RequestIndex)> {
        let history = self.history;
        let carried = request.bios.iter().filter_map(|bio| {
            let bio = &history.bios[*bio];
            Some((bio, bio.request?))
        });
        carried.max_by_key(|(_, carrier)| history.requests[carrier.0].last_completion())
    }
}
