//! Drive for a caller's own event loop: a device, its requests in flight, and its current time.

mod closed_loop;

pub use closed_loop::{ClosedLoop, Command};

use crate::flash::device::power::Recovery;
use crate::{Device, Operation, Request, RequestId, Requests, moment};
use diskperf_sim::Time;
use diskperf_spans::{Span, Stage, StageInterval, TracedArm, TracedFlash, stage_intervals};
use std::fmt;

/// Drive for a caller's own event loop: a device with its requests in flight.
///
/// ```text
/// submit .. submit      run_until(next_due)      completions
/// ```
#[derive(Clone, Debug)]
pub struct Drive {
    device: Device,
    requests: Requests,
    now: Time,
}

/// Reason why a drive rejects a request. A rejected request has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The drive's queue is full, until a request completes.
    QueueFull,
    /// The read, write, discard or write-zeroes request has no sectors.
    Empty,
    /// The request's range ends beyond the last sector.
    BeyondEnd {
        /// Number of sectors of the drive.
        sectors: u64,
    },
    /// The request is larger than one command may be.
    TooLong {
        /// Maximum transfer size of one command, in bytes.
        bytes: usize,
    },
}

/// Completed request, with the times of its stages.
#[derive(Clone, Debug)]
pub struct Completion {
    /// Id of the request, as [`Drive::submit`] returned it.
    pub id: RequestId,
    /// Operation of the completed request.
    pub operation: Operation,
    /// First sector of the completed request.
    pub sector: u64,
    /// Number of sectors of the completed request.
    pub sectors: u32,
    /// Time at which the request was submitted.
    pub submitted: Time,
    /// Time at which the request completed.
    pub completed: Time,
    spans: diskperf_spans::RequestTimeline,
}

impl Completion {
    /// Returns the response time: from submission to completion.
    pub fn latency(&self) -> Time {
        self.completed - self.submitted
    }

    /// Returns the stages of the response time, each with its end, without gaps.
    pub fn spans(&self) -> &[Span] {
        self.spans.spans()
    }

    /// Iterates over the stages of the response time with their starts and ends, in order.
    pub fn stage_intervals(&self) -> impl Iterator<Item = StageInterval> + '_ {
        stage_intervals(self.spans.issued_at(), self.spans())
    }

    /// Iterates over the stages of the response time with their durations, in order.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, Time)> + '_ {
        self.stage_intervals()
            .map(|interval| (interval.stage, Time(interval.duration().0)))
    }

    /// Returns the total time that the request spent in a stage.
    pub fn time_in(&self, stage: Stage) -> Time {
        let of_stage = self.stages().filter(|(other, _)| *other == stage);
        of_stage.map(|(_, time)| time).sum()
    }
}

impl Drive {
    /// Creates an idle drive at time zero.
    pub fn new(device: Device) -> Self {
        Self {
            device,
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    /// Returns the device model inside the drive.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Starts to record background work of a disk's actuator, or all work of a flash drive.
    /// [`Self::recorded_arm`] and [`Self::recorded_flash`] return it.
    pub fn record(&mut self) {
        self.device.start_recording();
    }

    /// Returns the background work of a disk's actuator since recording began or since the last
    /// call. Empty for other devices.
    pub fn recorded_arm(&mut self) -> Vec<TracedArm> {
        self.device.take_recorded_arm(self.now, 0)
    }

    /// Returns the work of a flash drive since recording began or since the last call. `None` for
    /// other devices, and if recording is off.
    pub fn recorded_flash(&mut self) -> Option<TracedFlash> {
        self.device.take_recorded_flash(self.now, 0)
    }

    /// Returns the current time of the drive. All events due by then have happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of requests that were submitted and not reaped.
    pub fn under_way(&self) -> usize {
        self.requests.under_way()
    }

    /// Submits a request at the current time. A flush covers the whole drive and ignores its range.
    ///
    /// # Errors
    ///
    /// [`Refusal`] when the drive rejects the request, which then has no effect.
    pub fn submit(
        &mut self,
        operation: Operation,
        sector: u64,
        sectors: u32,
    ) -> Result<RequestId, Refusal> {
        let (sector, sectors) = match operation {
            Operation::Flush => (0, 0),
            _ => (sector, sectors),
        };
        self.check(operation, (sector, sectors))?;
        let mut request = Request {
            operation,
            sector,
            sectors,
            ..Request::default()
        };
        request.spans.begin_at(moment(self.now));
        let id = self.requests.issue(request);
        self.device.accept_request(self.now, &mut self.requests, id);
        Ok(id)
    }

    fn check(&self, operation: Operation, (sector, sectors): (u64, u32)) -> Result<(), Refusal> {
        let of = self.device.sectors();
        if operation != Operation::Flush && sectors == 0 {
            return Err(Refusal::Empty);
        }
        if sector
            .checked_add(sectors.into())
            .is_none_or(|end| end > of)
        {
            return Err(Refusal::BeyondEnd { sectors: of });
        }
        let bytes = u64::from(sectors) * u64::from(self.device.sector_bytes());
        let moves = matches!(operation, Operation::Read | Operation::Write { .. });
        if let Some(most) = self.device.request_bytes_max().filter(|_| moves)
            && bytes > most as u64
        {
            return Err(Refusal::TooLong { bytes: most });
        }
        match self.device.can_accept_request() {
            true => Ok(()),
            false => Err(Refusal::QueueFull),
        }
    }

    /// Returns the time of the next event in the drive if nothing more is submitted; `None` without
    /// one.
    pub fn next_due(&self) -> Option<Time> {
        self.device.next_event()
    }

    /// Runs the drive up to a time, which becomes its current time. Does nothing if that time is
    /// past.
    pub fn run_until(&mut self, until: Time) {
        while let Some(next) = self.next_due().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.device.advance(next, &mut self.requests);
        }
        self.now = self.now.max(until);
    }

    /// Runs the drive for a duration from its current time on.
    pub fn run_for(&mut self, time: Time) {
        self.run_until(self.now + time);
    }

    /// Runs the drive to its next event, and returns whether there was one.
    pub fn step(&mut self) -> bool {
        let next = self.next_due();
        if let Some(next) = next {
            self.run_until(next);
        }
        next.is_some()
    }

    /// Cuts the power of a flash drive and restores it at the same time. Requests in flight are
    /// forgotten. `None` for other devices, which do not model power cuts.
    ///
    /// # Panics
    ///
    /// When the specification of the flash drive does not model power cuts.
    pub fn power_cut(&mut self) -> Option<Recovery> {
        let recovery = self.device.flash_mut()?.power_cut(self.now);
        self.requests = Requests::default();
        Some(recovery)
    }

    /// Reaps the requests that have completed by now, in order of completion.
    pub fn completions(&mut self) -> impl Iterator<Item = Completion> + '_ {
        std::iter::from_fn(|| self.take_completion())
    }

    /// Runs the drive until a request completes, and reaps it; `None` when none is in flight.
    pub fn next_completion(&mut self) -> Option<Completion> {
        while !self.device.has_completed_requests() {
            if self.under_way() == 0 || !self.step() {
                return None;
            }
        }
        self.take_completion()
    }

    /// Submits a request, and runs the drive until it completes.
    ///
    /// # Errors
    ///
    /// [`Refusal`] when the drive rejects the request, which then has no effect.
    ///
    /// # Panics
    ///
    /// When another request is in flight.
    pub fn serve(
        &mut self,
        operation: Operation,
        sector: u64,
        sectors: u32,
    ) -> Result<Completion, Refusal> {
        assert!(self.under_way() == 0, "another request is under way");
        self.submit(operation, sector, sectors)?;
        Ok(self.next_completion().expect("a request is under way"))
    }

    fn take_completion(&mut self) -> Option<Completion> {
        let id = self.device.take_completed_request()?;
        let request = self.requests.take_request(id);
        Some(Completion {
            id,
            operation: request.operation,
            sector: request.sector,
            sectors: request.sectors,
            submitted: Time(request.spans.issued_at().0),
            completed: Time(request.spans.marked_until().0),
            spans: request.spans,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueFull => formatter.write_str("the queue is full: reap a completion first"),
            Self::Empty => formatter.write_str("the request has no sectors"),
            Self::BeyondEnd { sectors } => {
                write!(
                    formatter,
                    "the range ends beyond the last of the {sectors} sectors"
                )
            }
            Self::TooLong { bytes } => {
                write!(formatter, "one command transfers at most {bytes} bytes")
            }
        }
    }
}

impl std::error::Error for Refusal {}
