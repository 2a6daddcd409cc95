//! Disk as a device: firmware that accepts commands, a buffer, a link, and an actuator, which does
//! one thing at a time.
//!
//! The firmware decodes a command ([`super::overheads`]), and answers it from the buffer or queues
//! it for the actuator; its data then cross the link. A free actuator gets the request that the
//! policy chooses among pending commands and, when necessary, dirty extents of the write-back
//! cache. With neither, it prefetches behind the last read.

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
use crate::device::COMMAND_SECTORS_MAX;
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

/// Disk drive in virtual time.
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
    per_medium: PerMedium,
    /// Time of the next event in the drive if no command arrives; [`Time::NEVER`] without one.
    next: Time,
    /// Number of commands in flight in the drive.
    under_way: usize,
    /// Sequence number of the next command or cached extent.
    next_number: u64,
    /// Time at which the firmware has decoded all commands so far.
    decoded: Time,
    /// Commands in decoding, with the end of their decoding, in order.
    coming: VecDeque<(Time, RequestId)>,
    /// Commands pending for the actuator, in the form in which policies read them, in no order.
    /// `queued` has the other data of the same commands.
    queue: Vec<Waiting>,
    queued: Vec<Queued>,
    /// Commands that continue the sectors of a pending command, oldest first. Each enters the
    /// actuator's queue when its predecessor is served.
    behind: Vec<(Waiting, Queued)>,
    /// Writes that wait for space in the write-back cache, oldest first.
    crowded: VecDeque<RequestId>,
    flushes: VecDeque<Flush>,
    /// Commands blocked by a flush that drains the queue.
    held: VecDeque<RequestId>,
    job: Option<Job>,
    ahead: Option<Ahead>,
    /// Leading part of the track that a full-track read has still to cover.
    whole: Option<Whole>,
    /// Start of the current idle period of the actuator.
    still_since: Time,
    rising: bool,
    /// End (exclusive) of the sectors last transferred for a command, and the time at which the
    /// transfer ended.
    last_passed: (u64, Time),
    /// Position of the sectors that follow the last read on its track, if known.
    next_run: Option<Run>,
    /// Completed commands whose status is still on its way to the host, by completion time.
    ending: VecDeque<(Time, RequestId)>,
    done: VecDeque<RequestId>,
    after_write: bool,
    /// Direction (`true` for a write) and end sector of the last command, for overheads that depend
    /// on them.
    last_asked: (bool, u64),
    busy: Busy,
    /// Scratch buffer for choices between commands and cached extents.
    choice: Vec<Waiting>,
    arm: Arm,
    /// Circumstances of the last command; `None` unless [`Disk::observe`] was called.
    observed: Option<Observation>,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    ends: Time,
    what: Work,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    /// Read of medium sectors for a command. `first` may lie before the requested sectors.
    Read {
        first: u64,
        asked: (u64, u64),
    },
    /// Write of a command that bypasses the write-back cache.
    Write,
    Destage,
    Clean {
        takes: Time,
    },
}

#[derive(Clone, Copy, Debug)]
struct Flush {
    id: RequestId,
    /// Sequence number from which on writes are newer than the flush and do not delay it.
    before: u64,
}

impl Disk {
    /// Creates an idle disk whose platters are at angle `phase` at time zero.
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

    /// Returns the disk with a counterfactual assumption applied to its mechanism.
    #[must_use]
    pub fn supposing(mut self, what_if: WhatIf) -> Self {
        self.mechanism = self.mechanism.supposing(what_if);
        if let Some(shingles) = &mut self.shingles {
            shingles.suppose(what_if);
        }
        self
    }

    /// Returns the sector size that the host sees, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.specification.sector_bytes
    }

    /// Returns the capacity in sectors, as the host counts them.
    pub fn sectors(&self) -> u64 {
        self.mechanism.layout().sectors() * self.per_medium.get()
    }

    /// Returns the actuator and the platters.
    pub fn mechanism(&self) -> &Mechanism {
        &self.mechanism
    }

    /// Replaces the disk's spindle from now on.
    pub fn set_spindle(&mut self, spindle: super::spindle::Spindle) {
        self.mechanism.set_spindle(spindle);
    }

    /// Returns the native position of a host sector on the medium. On a shingled disk this is its
    /// place in the band, even while the media cache holds the sector: that place depends on
    /// earlier writes and is not a property of the drive.
    pub fn position(&self, sector: u64) -> DiskPosition {
        arm::position_of(&self.mechanism.layout().locate(self.per_medium.down(sector)))
    }

    /// Returns the maximum transfer size of one command, in bytes.
    pub fn most_bytes(&self) -> Option<usize> {
        Some(COMMAND_SECTORS_MAX * self.sector_bytes() as usize)
    }

    /// Reports whether the disk has a write-back cache.
    pub fn keeps_writes(&self) -> bool {
        self.written.is_some()
    }

    /// Returns the busy times and transfer counts of the disk so far.
    pub fn busy(&self) -> Busy {
        self.busy
    }

    /// Reports whether the disk accepts another command: fewer are in flight than its queue depth
    /// allows.
    pub fn takes_requests(&self) -> bool {
        self.under_way < self.specification.queue_depth as usize
    }

    /// Submits a command to the disk.
    ///
    /// # Panics
    ///
    /// When the disk's queue is full.
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

    /// Returns the time of the next event in the disk if no command arrives; `None` without one.
    pub fn next_event(&self) -> Option<Time> {
        Some(self.next).filter(|at| *at < Time::NEVER)
    }

    /// Computes the time of the next event in the disk; [`Time::NEVER`] without one.
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

    /// Advances the disk to time `now`, and returns whether a command completed by then.
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

    /// Reports whether a completed command waits to be reaped.
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Removes and returns the oldest completed command, if any.
    pub fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    /// Starts to decode a command as soon as the firmware has decoded those before it.
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

    /// Continues with a decoded command: answers it from the buffer, or queues it for the actuator.
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

    /// Returns the medium sectors (first, end) that hold an extent of host sectors.
    fn medium_range(&self, of: Extent) -> (u64, u64) {
        (self.per_medium.down(of.first), self.per_medium.up(of.end))
    }

    fn is_idle(&self) -> bool {
        self.job.is_none() && self.queue.is_empty() && self.flushes.is_empty()
    }

    /// Finishes a command at time `at`, except for the firmware's completion overhead.
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

    /// Completes a command: its status has reached the host.
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

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    [one, other].into_iter().flatten().min()
}

/// Pops the first entry of a queue if its time has come.
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
