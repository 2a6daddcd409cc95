//! A drive in an event loop of one's own: a device, the requests that are under way in it,
//! and its moment.

mod closed_loop;

pub use closed_loop::{ClosedLoop, Command};

use crate::flash::device::power::Recovery;
use crate::{Device, Operation, Request, RequestId, Requests, moment};
use diskperf_sim::Time;
use diskperf_spans::{Span, Stage, TracedArm, TracedFlash, with_starts};
use std::fmt;

/// A device with its requests.
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

/// Why a drive refuses a request. The request had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its queue is full: a completion makes room.
    QueueFull,
    /// A read, write, discard or write zeroes of no sectors.
    Empty,
    /// The range ends behind the last sector.
    BeyondEnd {
        /// How many sectors the drive has.
        sectors: u64,
    },
    /// One command moves no more bytes.
    TooLong {
        /// The most that one moves.
        bytes: usize,
    },
}

/// A request that is done.
#[derive(Clone, Debug)]
pub struct Completion {
    /// As [`Drive::submit`] returned it.
    pub id: RequestId,
    /// What was done.
    pub operation: Operation,
    /// The first sector.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
    /// When it was submitted.
    pub submitted: Time,
    /// When it was done.
    pub completed: Time,
    spans: diskperf_spans::Request,
}

impl Completion {
    /// From its submission until it was done.
    pub fn latency(&self) -> Time {
        self.completed - self.submitted
    }

    /// Stages that the latency went to, each with its end; they leave no gap.
    pub fn spans(&self) -> &[Span] {
        self.spans.spans()
    }

    /// Stages that the latency went to, each with its duration, in order.
    pub fn stages(&self) -> impl Iterator<Item = (Stage, Time)> + '_ {
        with_starts(self.spans.issued(), self.spans())
            .map(|(stage, from, until)| (stage, Time(until.0 - from.0)))
    }

    /// Time that the request spent in a stage.
    pub fn time_in(&self, stage: Stage) -> Time {
        let of_stage = self.stages().filter(|(other, _)| *other == stage);
        of_stage.map(|(_, time)| time).sum()
    }
}

impl Drive {
    /// An idle drive, at time zero.
    pub fn new(device: Device) -> Self {
        Self {
            device,
            requests: Requests::default(),
            now: Time::ZERO,
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Records from now on what arms of disks do for no request, and what flash drives do.
    /// [`Self::recorded_arm`] and [`Self::recorded_flash`] return it.
    pub fn record(&mut self) {
        self.device.record();
    }

    /// Work of a disk's arm for no request, since recording began or since the last call.
    /// Empty for other devices.
    pub fn recorded_arm(&mut self) -> Vec<TracedArm> {
        self.device.recorded_arm(self.now, 0)
    }

    /// Work of a flash drive, since recording began or since the last call. `None` for other
    /// devices, and for a drive that does not record.
    pub fn recorded_flash(&mut self) -> Option<TracedFlash> {
        self.device.recorded_flash(self.now, 0)
    }

    /// Present moment of the drive: all that is due before it has happened.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many requests were submitted whose completions were not taken.
    pub fn under_way(&self) -> usize {
        self.requests.under_way()
    }

    /// Submits a request now. A flush is of the whole drive: its range counts for nothing.
    ///
    /// # Errors
    ///
    /// [`Refusal`], without any effect.
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
        request.spans.issue(moment(self.now));
        let id = self.requests.issue(request);
        self.device.take(self.now, &mut self.requests, id);
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
        if let Some(most) = self.device.most_bytes().filter(|_| moves)
            && bytes > most as u64
        {
            return Err(Refusal::TooLong { bytes: most });
        }
        match self.device.takes_requests() {
            true => Ok(()),
            false => Err(Refusal::QueueFull),
        }
    }

    /// When something happens in it next, if nothing more is submitted.
    pub fn next_due(&self) -> Option<Time> {
        self.device.next_event()
    }

    /// Does all that happens up to a moment, which is its own from then on; nothing where
    /// that is past.
    pub fn run_until(&mut self, until: Time) {
        while let Some(next) = self.next_due().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.device.advance(next, &mut self.requests);
        }
        self.now = self.now.max(until);
    }

    /// Does all that happens in a time from now on.
    pub fn run_for(&mut self, time: Time) {
        self.run_until(self.now + time);
    }

    /// Goes on to the next moment at which something happens; whether there is one.
    pub fn step(&mut self) -> bool {
        let next = self.next_due();
        if let Some(next) = next {
            self.run_until(next);
        }
        next.is_some()
    }

    /// The power of a flash drive fails now and is back at once: requests that are under way
    /// are forgotten. `None` for other devices, which have no model of it.
    ///
    /// # Panics
    ///
    /// When its specification leaves power cuts out of account.
    pub fn power_cut(&mut self) -> Option<Recovery> {
        let recovery = self.device.flash_mut()?.power_cut(self.now);
        self.requests = Requests::default();
        Some(recovery)
    }

    /// What is done by now and was not taken, in the order in which it was done.
    pub fn completions(&mut self) -> impl Iterator<Item = Completion> + '_ {
        std::iter::from_fn(|| self.take_completion())
    }

    /// Runs until a request is done; `None` when none is under way.
    pub fn next_completion(&mut self) -> Option<Completion> {
        while !self.device.has_done() {
            if self.under_way() == 0 || !self.step() {
                return None;
            }
        }
        self.take_completion()
    }

    /// Submits a request and runs until it is done.
    ///
    /// # Errors
    ///
    /// [`Refusal`], without any effect.
    ///
    /// # Panics
    ///
    /// When another request is under way.
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
        let id = self.device.take_done()?;
        let request = self.requests.take(id);
        Some(Completion {
            id,
            operation: request.operation,
            sector: request.sector,
            sectors: request.sectors,
            submitted: Time(request.spans.issued().0),
            completed: Time(request.spans.marked().0),
            spans: request.spans,
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueFull => formatter.write_str("the queue is full: take a completion first"),
            Self::Empty => formatter.write_str("a request of no sectors"),
            Self::BeyondEnd { sectors } => {
                write!(
                    formatter,
                    "the range ends behind the last of {sectors} sectors"
                )
            }
            Self::TooLong { bytes } => write!(formatter, "one command moves at most {bytes} bytes"),
        }
    }
}

impl std::error::Error for Refusal {}
