//! The disk as a device: firmware that takes commands, a buffer, a link, and the arm,
//! which does one thing at a time.
//!
//! A command is decoded ([`super::overheads`]), answered from the buffer or queued for the
//! arm, and its data cross the link. When the arm is free it gets what the policy chooses
//! among the commands that wait and, when there is reason to, what waits in the buffer to
//! be written; with neither, it reads on behind the last read.

mod ahead;
mod arm;
mod flushes;
mod media;
mod observed;
mod per_medium;
mod queued;
mod reads;
mod shingles;
mod specification;
mod state;
mod whole;
mod writes;

pub use observed::{Answer, Observation, ObservedAccess};
pub use shingles::MediaCacheState;
pub use specification::{DiskError, DiskSpecification, FlushOrder};

use super::cache::{Extent, Segments, Written};
use super::layout::Run;
use super::link::{Link, Passage};
use super::mechanism::{Access, Mechanism};
use super::overheads::{Before, CommandKind, Overheads};
use super::queue::{QueueSpecification, Waiting};
use super::spindle::Turn;
use crate::Busy;
use crate::WhatIf;
use crate::device::MOST_COMMAND_SECTORS;
use crate::{Operation, RequestId, Requests, moment};
use ahead::Ahead;
use arm::{Arm, Free};
use diskperf_sim::Time;
use diskperf_spans::DiskPosition;
use diskperf_spans::{Deadline, Stage};
use per_medium::PerMedium;
use queued::Queued;
use shingles::Shingles;
use std::collections::VecDeque;
use whole::Whole;

/// A disk.
#[derive(Clone, Debug)]
pub struct Disk {
    specification: DiskSpecification,
    order: QueueSpecification,
    overheads: Overheads,
    mechanism: Mechanism,
    segments: Segments,
    written: Option<Written>,
    idle: Time,
    link: Link,
    shingles: Option<Box<Shingles>>,
    /// Sectors of the host on one of the medium.
    per_medium: PerMedium,
    /// When something happens next, if no command comes; never, if nothing does.
    next: Time,
    /// Commands that were taken and are not done.
    under_way: usize,
    /// The number that the next command or extent has.
    next_number: u64,
    /// When the firmware has decoded all commands so far.
    decoded: Time,
    /// Commands that go on then, in order.
    coming: VecDeque<(Time, RequestId)>,
    /// Commands for the arm, as policies see them, in no order, and their ids.
    queue: Vec<Waiting>,
    queued: Vec<Queued>,
    /// Commands for the sectors behind those of one that waits, as they came: the arm gets
    /// them once it has that one.
    behind: Vec<(Waiting, Queued)>,
    /// Writes that find no room in the buffer, in order.
    crowded: VecDeque<RequestId>,
    flushes: VecDeque<Flush>,
    /// Commands behind a flush that drains.
    held: VecDeque<RequestId>,
    job: Option<Job>,
    ahead: Option<Ahead>,
    /// What of a track lies before the sectors that were read of it.
    whole: Option<Whole>,
    /// Since when the arm has had nothing to do.
    still_since: Time,
    rising: bool,
    /// The sector behind the last that passed for a command, and when it had.
    last_passed: (u64, Time),
    /// Where the sectors are that follow those of the last read side by side, if that is known.
    next_run: Option<Run>,
    /// Commands that are done then, in order.
    ending: VecDeque<(Time, RequestId)>,
    done: VecDeque<RequestId>,
    after_write: bool,
    /// Whether the last command that came was a write, and the sector of the host behind it:
    /// kept where overheads go by that.
    last_asked: (bool, u64),
    busy: Busy,
    /// Room for choices between commands and extents.
    choice: Vec<Waiting>,
    /// What the arm does for no command.
    arm: Arm,
    /// Circumstances of the last command, where somebody asked for them.
    observed: Option<Observation>,
}

/// What the arm does, until some moment.
#[derive(Clone, Copy, Debug)]
struct Job {
    ends: Time,
    what: Work,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    /// Sectors of the medium for a command; `first` may be before what was asked for.
    Read { first: u64, asked: (u64, u64) },
    /// Of a command, which is written through.
    Write,
    /// Of the buffer.
    Destage,
    /// A step of a band that is written anew.
    Clean { takes: Time },
}

/// A flush.
#[derive(Clone, Copy, Debug)]
struct Flush {
    id: RequestId,
    /// What has this number or a later one is no concern of its.
    before: u64,
}

impl Disk {
    /// An idle disk, whose platters are at this angle at time zero.
    ///
    /// # Errors
    ///
    /// [`DiskError`] when the specification contradicts itself.
    pub fn new(specification: &DiskSpecification, phase: Turn) -> Result<Self, DiskError> {
        specification.check()?;
        let mechanism = Mechanism::new(&specification.mechanism, phase)?;
        let write = specification.write_cache.as_ref();
        let shingles = specification.shingled.as_ref();
        let sectors = mechanism.layout().sectors();
        let shingles = shingles
            .map(|of| Shingles::new(of, specification, sectors).map(Box::new))
            .transpose()?;
        Ok(Self {
            shingles,
            order: specification.queue,
            overheads: Overheads::new(&specification.overheads),
            segments: Segments::new(&specification.read_cache),
            written: write.map(Written::new),
            idle: Time(write.map_or(0.0, |write| write.idle_ms * 1e6 + 0.5) as u64),
            link: Link::new(&specification.link, specification.sector_bytes),
            per_medium: PerMedium::new(specification.sectors_per_medium_sector),
            next: Time::NEVER,
            under_way: 0,
            next_number: 1,
            decoded: Time::ZERO,
            coming: VecDeque::new(),
            queue: Vec::new(),
            queued: Vec::new(),
            behind: Vec::new(),
            crowded: VecDeque::new(),
            flushes: VecDeque::new(),
            held: VecDeque::new(),
            job: None,
            ahead: None,
            whole: None,
            still_since: Time::ZERO,
            rising: true,
            last_passed: (u64::MAX, Time::ZERO),
            next_run: None,
            ending: VecDeque::new(),
            done: VecDeque::new(),
            after_write: false,
            last_asked: (false, u64::MAX),
            busy: Busy::default(),
            choice: Vec::new(),
            arm: Arm::default(),
            observed: None,
            mechanism,
            specification: specification.clone(),
        })
    }

    /// The same disk, with something supposed of it.
    #[must_use]
    pub fn supposing(mut self, what_if: WhatIf) -> Self {
        self.mechanism = self.mechanism.supposing(what_if);
        if let Some(shingles) = &mut self.shingles {
            shingles.suppose(what_if);
        }
        self
    }

    /// Bytes of a sector, as the host counts them.
    pub fn sector_bytes(&self) -> u32 {
        self.specification.sector_bytes
    }

    /// Sectors, as the host counts them.
    pub fn sectors(&self) -> u64 {
        self.mechanism.layout().sectors() * self.per_medium.get()
    }

    /// Arm and platters.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Has it turn as another spindle does, from now on.
    pub fn set_spindle(&mut self, spindle: super::spindle::Spindle) {
        self.mechanism.set_spindle(spindle);
    }

    /// Where a sector is, or is to be when the media cache is cleaned: where the cache has it
    /// depends on what was written before, and is not of the drive.
    pub fn position(&self, sector: u64) -> DiskPosition {
        arm::position_of(&self.mechanism.layout().locate(self.per_medium.down(sector)))
    }

    /// The most bytes that one command moves.
    pub fn most_bytes(&self) -> Option<usize> {
        Some(MOST_COMMAND_SECTORS * self.sector_bytes() as usize)
    }

    /// Whether it takes writes into its buffer.
    pub fn keeps_writes(&self) -> bool {
        self.written.is_some()
    }

    /// What it has done so far.
    pub fn busy(&self) -> Busy {
        self.busy
    }

    /// Whether it takes another command.
    pub fn takes_requests(&self) -> bool {
        self.under_way < self.specification.queue_depth as usize
    }

    /// Takes a command.
    ///
    /// # Panics
    ///
    /// When it takes none now.
    pub fn take(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(self.takes_requests(), "a command for a queue that is full");
        self.under_way += 1;
        self.begin(now, requests, id);
        self.next = self.next_moment();
    }

    #[inline(always)]
    fn begin(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let drains = self.specification.flush == FlushOrder::Drains;
        if drains && !(self.flushes.is_empty() && self.held.is_empty()) {
            self.held.push_back(id);
            return;
        }
        if requests[id].operation == Operation::Flush {
            let before = self.next_number;
            self.flushes.push_back(Flush { id, before });
            if drains {
                self.drain(now, requests);
                return;
            }
        }
        self.decode(now, requests, id);
    }

    /// When something happens in it next, if nobody gives it a command.
    pub fn next_event(&self) -> Option<Time> {
        Some(self.next).filter(|at| *at < Time::NEVER)
    }

    /// The same, worked out; never, if nothing happens.
    #[inline(always)]
    fn next_moment(&self) -> Time {
        let front =
            |queue: &VecDeque<(Time, RequestId)>| queue.front().map_or(Time::NEVER, |of| of.0);
        let arm = match (&self.job, &self.ahead) {
            (Some(job), _) => job.ends,
            (None, Some(ahead)) => ahead.ends,
            (None, None) => {
                let next = earlier(self.destages_at(), self.cleans_at());
                next.unwrap_or(Time::NEVER)
            }
        };
        front(&self.coming).min(front(&self.ending)).min(arm)
    }

    /// Does what it had to do up to now; whether a command is done by that.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.done.len();
        while self.next <= now && self.next < Time::NEVER {
            let at = self.next;
            if let Some(id) = take_due(&mut self.coming, at) {
                self.decoded(at, requests, id);
            } else if let Some(id) = take_due(&mut self.ending, at) {
                self.end(at, requests, id);
            } else if let Some(job) = self.job.take_if(|job| job.ends <= at) {
                self.end_job(job, requests);
            } else {
                if let Some(ahead) = self.ahead.take_if(|ahead| ahead.ends <= at) {
                    self.segments.extend(ahead.segment, ahead.limit);
                    self.end_ahead(ahead.limit, at);
                }
                self.start(at, requests);
            }
            self.next = self.next_moment();
        }
        self.done.len() > before
    }

    /// Whether a command is done that was not taken off.
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// The next command that is done, once.
    pub fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    /// The firmware works on a command when it is through with those before.
    fn decode(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        if self.observed.is_some() {
            self.observe_decoding(now);
        }
        let request = &mut requests[id];
        let kind = match request.operation {
            Operation::Read => {
                let extent = extent(request.sector, request.end());
                let range = self.medium_range(extent);
                match self.has_written(extent) || self.answers(range, now) {
                    true => CommandKind::ReadHit,
                    false => CommandKind::ReadMiss,
                }
            }
            _ => CommandKind::Write,
        };
        let sectors = match request.operation {
            Operation::Write { .. } => self.overheads.write_sectors(request.sectors),
            _ => Time::ZERO,
        };
        let before = match (self.overheads.go_by_state(), self.after_write) {
            (true, _) => {
                let moves = matches!(request.operation, Operation::Read | Operation::Write { .. });
                let asked = moves.then_some((request.sector, request.end()));
                self.before(now, kind, asked)
            }
            (false, false) => Before::Read,
            (false, true) => Before::Write,
        };
        let begins = now.max(self.decoded);
        self.decoded = begins + self.overheads.command(kind, before) + sectors;
        request.mark(Stage::ControllerQueue, moment(begins));
        request.mark(Stage::Command, moment(self.decoded));
        self.coming.push_back((self.decoded, id));
    }

    fn has_written(&self, of: Extent) -> bool {
        let hits = self.specification.write_cache.as_ref();
        let hits = hits.is_some_and(|write| write.read_hits);
        hits && self.written.as_ref().is_some_and(|written| written.has(of))
    }

    /// A command is decoded: it is answered, or goes on.
    fn decoded(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = extent(request.sector, request.end());
        match request.operation {
            Operation::Read => self.read(now, requests, id),
            Operation::Flush => self.flush(now, requests),
            Operation::Discard => {
                self.forget(of);
                self.forget_shingled(of);
                self.finish(now, requests, id);
            }
            Operation::Write { fua } => {
                self.drop_read(now, of);
                if self.specification.read_cache.keep_written {
                    self.keep_written(now, of);
                }
                let is_early = |written: &Written| written.takes(of);
                match fua || !self.written.as_ref().is_some_and(is_early) {
                    true => self.write_through(now, requests, id),
                    false => self.buffer(now, requests, id),
                }
            }
            Operation::WriteZeroes => {
                self.drop_read(now, of);
                self.forget(of);
                self.enqueue(now, requests, (id, 0), (now, now));
            }
        }
    }

    /// The sectors of the medium that these sectors of the host are on.
    fn medium_range(&self, of: Extent) -> (u64, u64) {
        (self.per_medium.down(of.first), self.per_medium.up(of.end))
    }

    fn is_idle(&self) -> bool {
        self.job.is_none() && self.queue.is_empty() && self.flushes.is_empty()
    }

    /// A command is done at a moment, but for telling the host.
    #[inline(always)]
    fn finish(&mut self, at: Time, requests: &mut Requests, id: RequestId) {
        let request = &mut requests[id];
        let write = request.operation != Operation::Read;
        let ends = at + self.overheads.completion(write);
        request.mark(Stage::Completion, moment(ends));
        match self.ending.back() {
            Some((last, _)) if *last > ends => {
                let place = self.ending.partition_point(|(other, _)| *other <= ends);
                self.ending.insert(place, (ends, id));
            }
            _ => self.ending.push_back((ends, id)),
        }
    }

    /// The host knows that a command is done.
    #[inline(always)]
    fn end(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        self.after_write = request.operation != Operation::Read;
        self.busy.bytes += u64::from(request.sectors) * u64::from(self.sector_bytes());
        self.busy.transfers += 1;
        self.under_way -= 1;
        self.done.push_back(id);
        if self.specification.flush == FlushOrder::Drains {
            self.release(now, requests);
        }
    }
}

/// The earlier of two moments that may not come.
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    [one, other].into_iter().flatten().min()
}

/// The first of a queue, if its moment has come.
#[inline]
fn take_due(queue: &mut VecDeque<(Time, RequestId)>, at: Time) -> Option<RequestId> {
    let (due, id) = *queue.front()?;
    (due <= at).then(|| {
        queue.pop_front();
        id
    })
}

fn extent(first: u64, end: u64) -> Extent {
    Extent { first, end }
}
