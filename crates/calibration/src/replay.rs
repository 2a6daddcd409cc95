//! Replay of a trace on the modelled drive: in a closed loop, where each request is issued after
//! the trace's pause from the modelled completion before it, or at the measured issue times.

use crate::places::LocatedRequest;
use diskperf_device::disk::device::{AnswerSource, Disk, DiskSpecification, Observation};
use diskperf_device::disk::spindle::RotationAngle;
use diskperf_device::{Operation, Request, Requests};
use diskperf_diskspecs::phase::ThinkPosition;
use diskperf_diskspecs::trace;
use diskperf_sim::Time;

/// Replayed request with its modelled result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayedRequest {
    /// Modelled time from issue to completion, in microseconds.
    pub service_us: f64,
    /// Source of the answer: buffer or medium.
    pub cache_answer: AnswerSource,
    /// Whether the actuator was destaging writes when the drive started the request.
    pub has_waited_for_write: bool,
}

/// Simulated disk with its clock.
#[derive(Clone, Debug)]
pub(crate) struct SteppedReplay {
    pub(crate) disk: Disk,
    requests: Requests,
    pub(crate) now: Time,
}

/// Request served by the simulated disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedRequest {
    pub(crate) service_us: f64,
    pub(crate) observation: Observation,
}

pub(crate) fn time_from_us(us: f64) -> Time {
    Time((us.max(0.0) * 1e3 + 0.5) as u64)
}

pub(crate) fn us_from_time(time: Time) -> f64 {
    time.0 as f64 / 1e3
}

impl SteppedReplay {
    /// Creates an idle disk whose platters are at angle 0 at time 0. A closed loop soon turns in
    /// step with them, whatever the initial angle.
    ///
    /// # Panics
    ///
    /// If the specification contradicts itself.
    pub(crate) fn new(specification: &DiskSpecification) -> SteppedReplay {
        let disk = Disk::new(specification, RotationAngle::ZERO);
        let mut disk = disk.unwrap_or_else(|error| panic!("a fitted disk: {error}"));
        disk.start_observing();
        SteppedReplay {
            disk,
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    fn run_until(&mut self, until: Time) {
        while let Some(next) = self.disk.next_event().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.disk.advance(next, &mut self.requests);
        }
        self.now = self.now.max(until);
    }

    /// Issues a request at the given time, or right after the preceding completion if that is
    /// later, and runs until it is complete. A request longer than a command is split.
    pub(crate) fn serve(
        &mut self,
        issue: Time,
        request: &trace::ValidationRequest,
    ) -> ServedRequest {
        self.run_until(issue);
        let issue = self.now;
        let sector_bytes = self.disk.sector_bytes() as usize;
        let most = self.disk.request_bytes_max().unwrap_or(usize::MAX) / sector_bytes;
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        let mut seen = None;
        let (mut sector, mut left) = (request.first_block, request.block_count);
        while left > 0 {
            let sectors = left.min(most);
            let command = Request {
                operation: device_operation(request),
                sector,
                sectors,
                ..Request::default()
            };
            let id = self.requests.issue(command);
            self.disk.accept_request(self.now, &mut self.requests, id);
            while !self.disk.has_completed_requests() {
                let next = self.disk.next_event().expect("a command is in flight");
                self.now = self.now.max(next);
                self.disk.advance(next, &mut self.requests);
            }
            while let Some(done) = self.disk.take_completed_request() {
                self.requests.take_request(done);
            }
            seen = seen.or(self.disk.observation());
            (sector, left) = (sector + u64::from(sectors), left - sectors);
        }
        ServedRequest {
            service_us: us_from_time(self.now - issue),
            observation: seen.unwrap_or_default(),
        }
    }
}

fn device_operation(request: &trace::ValidationRequest) -> Operation {
    Operation::from_direction(request.operation == trace::ValidationOperation::Write)
}

/// Replays requests from the first one on. The first pause counts from time 0, and later ones from
/// modelled completions. Measured times are not used.
pub(crate) fn replay_requests(
    specification: &DiskSpecification,
    placed: &[LocatedRequest],
    think: ThinkPosition,
) -> Vec<ReplayedRequest> {
    let mut replayed = Vec::with_capacity(placed.len());
    replay_with_state(specification, placed, think, |served, _| {
        replayed.push(ReplayedRequest {
            service_us: served.service_us,
            cache_answer: served.observation.answer_source,
            has_waited_for_write: served.observation.was_arm_busy,
        });
    });
    replayed
}

/// Replays requests like [`replay_requests`] and passes each to `see`, with access to the device state
/// before the request.
pub(crate) fn replay_with_state(
    specification: &DiskSpecification,
    placed: &[LocatedRequest],
    think: ThinkPosition,
    mut see: impl FnMut(&ServedRequest, &mut dyn FnMut() -> SteppedReplay),
) {
    let mut stepped = SteppedReplay::new(specification);
    let mut before: Option<(usize, SteppedReplay)> = None;
    for (index, one) in placed.iter().enumerate() {
        let issue = stepped.now + time_from_us(think_before_us(one, think));
        let served = stepped.serve(issue, &one.request);
        // Few requests are looked at again: those before one are served once more for it,
        // from the last one on that was.
        let mut again = || {
            let (from, mut state) = before
                .take()
                .unwrap_or_else(|| (0, SteppedReplay::new(specification)));
            for earlier in &placed[from..index] {
                let issue = state.now + time_from_us(think_before_us(earlier, think));
                state.serve(issue, &earlier.request);
                state.now += time_from_us(think_after_us(earlier, think));
            }
            before = Some((index, state.clone()));
            state
        };
        see(&served, &mut again);
        stepped.now += time_from_us(think_after_us(one, think));
    }
}

/// Serves requests at their measured issue times and passes each to `see`.
pub(crate) fn replay_each(
    specification: &DiskSpecification,
    placed: &[LocatedRequest],
    think: ThinkPosition,
    mut see: impl FnMut(&LocatedRequest, &ServedRequest),
) {
    let mut stepped = SteppedReplay::new(specification);
    let mut now_us = 0.0;
    for one in placed {
        let issue_us = now_us + think_before_us(one, think);
        let served = stepped.serve(time_from_us(issue_us), &one.request);
        see(one, &served);
        now_us = issue_us + one.request.service_us + think_after_us(one, think);
    }
}

fn think_before_us(placed: &LocatedRequest, think: ThinkPosition) -> f64 {
    match think {
        ThinkPosition::BeforeRequest => placed.request.think_us,
        ThinkPosition::AfterRequest => 0.0,
    }
}

fn think_after_us(placed: &LocatedRequest, think: ThinkPosition) -> f64 {
    match think {
        ThinkPosition::BeforeRequest => 0.0,
        ThinkPosition::AfterRequest => placed.request.think_us,
    }
}
