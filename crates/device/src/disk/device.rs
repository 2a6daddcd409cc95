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

pub use observed::{AnswerSource, Observation, ObservedAccess};
pub use shingles::MediaCacheState;
pub use specification::{DiskError, DiskSpecification, FlushOrder};

use super::cache::{SectorExtent, SegmentCache, WriteBackCache};
use super::layout::SectorRun;
use super::link::{DiskLink, MediaPassage};
use super::mechanism::{Mechanism, MediaAccess};
use super::overheads::{CommandOverheads, OverheadKind, PrecedingState};
use super::queue::{QueueSpecification, WaitingCommand};
use super::spindle::RotationAngle;
use crate::BusyTimes;
use crate::WhatIf;
use crate::device::COMMAND_SECTORS_MAX;
use crate::{Operation, RequestId, Requests, moment};
use ahead::ReadAheadProgress;
use arm::{ArmAvailability, BackgroundArm};
use diskperf_sim::Time;
use diskperf_spans::DiskPosition;
use diskperf_spans::{Deadline, Stage};
use per_medium::MediumSectors;
use queued::QueuedCommand;
use shingles::ShingledMedia;
use std::collections::VecDeque;
use whole::FullTrackRead;

/// Disk drive in virtual time.
#[derive(Clone, Debug)]
pub struct Disk {
    specification: DiskSpecification,
    queue_policy: QueueSpecification,
    overheads: CommandOverheads,
    mechanism: Mechanism,
    read_segments: SegmentCache,
    write_back_cache: Option<WriteBackCache>,
    destage_idle_time: Time,
    link: DiskLink,
    shingles: Option<Box<ShingledMedia>>,
    medium_sectors: MediumSectors,
    /// Time of the next event in the drive if no command arrives; [`Time::NEVER`] without one.
    next_event_time: Time,
    /// Number of commands in flight in the drive.
    in_flight_count: usize,
    /// Sequence number of the next command or cached extent.
    next_sequence_number: u64,
    /// Time at which the firmware has decoded all commands so far.
    decoding_end: Time,
    decoding: VecDeque<(Time, RequestId)>,
    /// Commands pending for the actuator, in the form in which policies read them, in no order.
    /// `queued` has the other data of the same commands.
    queued_views: Vec<WaitingCommand>,
    queued_commands: Vec<QueuedCommand>,
    /// Commands that continue the sectors of a pending command, oldest first. Each enters the
    /// actuator's queue when its predecessor is served.
    continuing_commands: Vec<(WaitingCommand, QueuedCommand)>,
    /// Writes that wait for space in the write-back cache, oldest first.
    writes_awaiting_buffer: VecDeque<RequestId>,
    pending_flushes: VecDeque<PendingFlush>,
    /// Commands blocked by a flush that drains the queue.
    blocked_by_flush: VecDeque<RequestId>,
    media_job: Option<MediaJob>,
    read_ahead: Option<ReadAheadProgress>,
    /// Leading part of the track that a full-track read has still to cover.
    full_track_read: Option<FullTrackRead>,
    /// Start of the current idle period of the actuator.
    idle_since: Time,
    moving_inward: bool,
    /// End (exclusive) of the sectors last transferred for a command, and the time at which the
    /// transfer ended.
    last_transfer: (u64, Time),
    /// Position of the sectors that follow the last read on its track, if known.
    next_sectors_run: Option<SectorRun>,
    /// Completed commands whose status is still on its way to the host, by completion time.
    awaiting_status: VecDeque<(Time, RequestId)>,
    completed_requests: VecDeque<RequestId>,
    follows_write: bool,
    /// Direction (`true` for a write) and end sector of the last command, for overheads that depend
    /// on them.
    last_command_end: (bool, u64),
    busy_times: BusyTimes,
    /// Scratch buffer for choices between commands and cached extents.
    candidate_scratch: Vec<WaitingCommand>,
    background_arm: BackgroundArm,
    /// Circumstances of the last command; `None` unless [`Disk::start_observing`] was called.
    observation: Option<Observation>,
}

#[derive(Clone, Copy, Debug)]
struct MediaJob {
    end: Time,
    work: MediaWork,
}

#[derive(Clone, Copy, Debug)]
enum MediaWork {
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
struct PendingFlush {
    id: RequestId,
    /// Sequence number from which on writes are newer than the flush and do not delay it.
    first_newer_write: u64,
}

impl Disk {
    /// Creates an idle disk whose platters are at angle `phase` at time zero.
    ///
    /// # Errors
    ///
    /// [`DiskError`] when the specification contradicts itself.
    pub fn new(specification: &DiskSpecification, phase: RotationAngle) -> Result<Self, DiskError> {
        specification.validate()?;
        let mechanism = Mechanism::new(&specification.mechanism, phase)?;
        let write = specification.write_cache.as_ref();
        let shingles = specification.shingled.as_ref();
        let sectors = mechanism.layout().sectors();
        let shingles = shingles
            .map(|of| ShingledMedia::new(of, specification, sectors).map(Box::new))
            .transpose()?;
        Ok(Self {
            shingles,
            queue_policy: specification.queue,
            overheads: CommandOverheads::new(&specification.overheads),
            read_segments: SegmentCache::new(&specification.read_cache),
            write_back_cache: write.map(WriteBackCache::new),
            destage_idle_time: Time(
                write.map_or(0.0, |write| write.destage_idle_ms * 1e6 + 0.5) as u64
            ),
            link: DiskLink::new(&specification.link, specification.sector_bytes),
            medium_sectors: MediumSectors::new(specification.sectors_per_medium_sector),
            next_event_time: Time::NEVER,
            in_flight_count: 0,
            next_sequence_number: 1,
            decoding_end: Time::ZERO,
            decoding: VecDeque::new(),
            queued_views: Vec::new(),
            queued_commands: Vec::new(),
            continuing_commands: Vec::new(),
            writes_awaiting_buffer: VecDeque::new(),
            pending_flushes: VecDeque::new(),
            blocked_by_flush: VecDeque::new(),
            media_job: None,
            read_ahead: None,
            full_track_read: None,
            idle_since: Time::ZERO,
            moving_inward: true,
            last_transfer: (u64::MAX, Time::ZERO),
            next_sectors_run: None,
            awaiting_status: VecDeque::new(),
            completed_requests: VecDeque::new(),
            follows_write: false,
            last_command_end: (false, u64::MAX),
            busy_times: BusyTimes::default(),
            candidate_scratch: Vec::new(),
            background_arm: BackgroundArm::default(),
            observation: None,
            mechanism,
            specification: specification.clone(),
        })
    }

    /// Returns the disk with a counterfactual assumption applied to its mechanism.
    #[must_use]
    pub fn with_what_if(mut self, what_if: WhatIf) -> Self {
        self.mechanism = self.mechanism.with_what_if(what_if);
        if let Some(shingles) = &mut self.shingles {
            shingles.set_what_if(what_if);
        }
        self
    }

    /// Returns the sector size that the host sees, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.specification.sector_bytes
    }

    /// Returns the capacity in sectors, as the host counts them.
    pub fn sectors(&self) -> u64 {
        self.mechanism.layout().sectors() * self.medium_sectors.sectors_per_medium_sector()
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
        arm::to_disk_position(
            &self
                .mechanism
                .layout()
                .position_of(self.medium_sectors.round_down(sector)),
        )
    }

    /// Returns the maximum transfer size of one command, in bytes.
    pub fn request_bytes_max(&self) -> Option<usize> {
        Some(COMMAND_SECTORS_MAX * self.sector_bytes() as usize)
    }

    /// Reports whether the disk has a write-back cache.
    pub fn has_volatile_cache(&self) -> bool {
        self.write_back_cache.is_some()
    }

    /// Returns the busy times and transfer counts of the disk so far.
    pub fn busy_times(&self) -> BusyTimes {
        self.busy_times
    }

    /// Reports whether the disk accepts another command: fewer are in flight than its queue depth
    /// allows.
    pub fn can_accept_request(&self) -> bool {
        self.in_flight_count < self.specification.queue_depth as usize
    }

    /// Submits a command to the disk.
    ///
    /// # Panics
    ///
    /// When the disk's queue is full.
    pub fn accept_request(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(
            self.can_accept_request(),
            "a command for a queue that is full"
        );
        self.in_flight_count += 1;
        self.begin_decoding(now, requests, id);
        self.next_event_time = self.find_next_event_time();
    }

    #[inline(always)]
    fn begin_decoding(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let drains = self.specification.flush_order == FlushOrder::DrainsQueue;
        if drains && !(self.pending_flushes.is_empty() && self.blocked_by_flush.is_empty()) {
            self.blocked_by_flush.push_back(id);
            return;
        }
        if requests[id].operation == Operation::Flush {
            let before = self.next_sequence_number;
            self.pending_flushes.push_back(PendingFlush {
                id,
                first_newer_write: before,
            });
            if drains {
                self.start_drained_flush(now, requests);
                return;
            }
        }
        self.schedule_decoding(now, requests, id);
    }

    /// Returns the time of the next event in the disk if no command arrives; `None` without one.
    pub fn next_event(&self) -> Option<Time> {
        Some(self.next_event_time).filter(|at| *at < Time::NEVER)
    }

    /// Computes the time of the next event in the disk; [`Time::NEVER`] without one.
    #[inline(always)]
    fn find_next_event_time(&self) -> Time {
        let front =
            |queue: &VecDeque<(Time, RequestId)>| queue.front().map_or(Time::NEVER, |of| of.0);
        let arm = match (&self.media_job, &self.read_ahead) {
            (Some(job), _) => job.end,
            (None, Some(ahead)) => ahead.limit_time,
            (None, None) => {
                let next = earlier_time(self.destage_time(), self.cleaning_due_time());
                next.unwrap_or(Time::NEVER)
            }
        };
        front(&self.decoding)
            .min(front(&self.awaiting_status))
            .min(arm)
    }

    /// Advances the disk to time `now`, and returns whether a command completed by then.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.completed_requests.len();
        while self.next_event_time <= now && self.next_event_time < Time::NEVER {
            let at = self.next_event_time;
            if let Some(id) = take_due_request(&mut self.decoding, at) {
                self.dispatch_decoded(at, requests, id);
            } else if let Some(id) = take_due_request(&mut self.awaiting_status, at) {
                self.complete_request(at, requests, id);
            } else if let Some(job) = self.media_job.take_if(|job| job.end <= at) {
                self.complete_media_job(job, requests);
            } else {
                if let Some(ahead) = self.read_ahead.take_if(|ahead| ahead.limit_time <= at) {
                    self.read_segments
                        .extend_segment(ahead.segment_index, ahead.limit_sector);
                    self.end_read_ahead(ahead.limit_sector, at);
                }
                self.start_media_work(at, requests);
            }
            self.next_event_time = self.find_next_event_time();
        }
        self.completed_requests.len() > before
    }

    /// Reports whether a completed command waits to be reaped.
    pub fn has_completed_requests(&self) -> bool {
        !self.completed_requests.is_empty()
    }

    /// Removes and returns the oldest completed command, if any.
    pub fn take_completed_request(&mut self) -> Option<RequestId> {
        self.completed_requests.pop_front()
    }

    /// Starts to decode a command as soon as the firmware has decoded those before it and, if it
    /// waits with writes for the arm, the arm is idle.
    fn schedule_decoding(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        if self.observation.is_some() {
            self.note_decoding(now);
        }
        let write = self.specification.write_cache.as_ref();
        let waits = write.is_some_and(|write| write.repeats_overhead_after_wait);
        if waits && matches!(requests[id].operation, Operation::Write { .. }) {
            self.decode_when_idle(now, requests, id);
        } else {
            self.decode(now, requests, id);
        }
    }

    /// Decodes a command from time `from` on, or after those before it.
    #[inline(always)]
    pub(super) fn decode(&mut self, from: Time, requests: &mut Requests, id: RequestId) {
        let begins = from.max(self.decoding_end);
        self.decoding_end = begins + self.command_overhead(from, &requests[id]);
        let request = &mut requests[id];
        request.book_stage(Stage::ControllerQueue, moment(begins));
        request.book_stage(Stage::Command, moment(self.decoding_end));
        self.decoding.push_back((self.decoding_end, id));
    }

    /// Returns the overhead of a command that the firmware decodes from `now` on.
    fn command_overhead(&mut self, now: Time, request: &crate::Request) -> Time {
        let kind = match request.operation {
            Operation::Read => {
                let extent = sector_extent(request.sector, request.end());
                let range = self.to_medium_range(extent);
                match self.is_in_write_cache(extent) || self.is_answered_by_buffer(range, now) {
                    true => OverheadKind::ReadHit,
                    false => OverheadKind::ReadMiss,
                }
            }
            _ => OverheadKind::Write,
        };
        let sectors = match request.operation {
            Operation::Write { .. } => self.overheads.write_sectors_time(request.sectors),
            _ => Time::ZERO,
        };
        let before = match (self.overheads.depend_on_state(), self.follows_write) {
            (true, _) => {
                let moves = matches!(request.operation, Operation::Read | Operation::Write { .. });
                let asked = moves.then_some((request.sector, request.end()));
                self.preceding_state(now, kind, asked)
            }
            (false, false) => PrecedingState::AfterRead,
            (false, true) => PrecedingState::AfterWrite,
        };
        self.overheads.command_overhead(kind, before) + sectors
    }

    fn is_in_write_cache(&self, of: SectorExtent) -> bool {
        let hits = self.specification.write_cache.as_ref();
        let hits = hits.is_some_and(|write| write.serves_reads);
        hits && self
            .write_back_cache
            .as_ref()
            .is_some_and(|written| written.contains(of))
    }

    /// Continues with a decoded command: answers it from the buffer, or queues it for the actuator.
    fn dispatch_decoded(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = sector_extent(request.sector, request.end());
        match request.operation {
            Operation::Read => self.serve_read(now, requests, id),
            Operation::Flush => self.accept_flush(now, requests),
            Operation::Discard => {
                self.discard_sectors(of);
                self.discard_shingled(of);
                self.schedule_completion(now, requests, id);
            }
            Operation::Write { fua } => {
                self.discard_read_sectors(now, of);
                if self.specification.read_cache.keeps_written_sectors {
                    self.keep_written_sectors(now, of);
                }
                let is_early = |written: &WriteBackCache| written.accepts(of);
                match fua || !self.write_back_cache.as_ref().is_some_and(is_early) {
                    true => self.write_through(now, requests, id),
                    false => self.buffer_write(now, requests, id),
                }
            }
            Operation::WriteZeroes => {
                self.discard_read_sectors(now, of);
                self.discard_sectors(of);
                self.enqueue(now, requests, (id, 0), (now, now));
            }
        }
    }

    /// Returns the medium sectors (first, end) that hold an extent of host sectors.
    fn to_medium_range(&self, of: SectorExtent) -> (u64, u64) {
        (
            self.medium_sectors.round_down(of.first_sector),
            self.medium_sectors.round_up(of.end_sector),
        )
    }

    fn is_idle(&self) -> bool {
        self.media_job.is_none() && self.queued_views.is_empty() && self.pending_flushes.is_empty()
    }

    /// Finishes a command at time `at`, except for the firmware's completion overhead.
    #[inline(always)]
    fn schedule_completion(&mut self, at: Time, requests: &mut Requests, id: RequestId) {
        let request = &mut requests[id];
        let write = request.operation != Operation::Read;
        let ends = at + self.overheads.completion_time(write);
        request.book_stage(Stage::Completion, moment(ends));
        match self.awaiting_status.back() {
            Some((last, _)) if *last > ends => {
                let place = self
                    .awaiting_status
                    .partition_point(|(other, _)| *other <= ends);
                self.awaiting_status.insert(place, (ends, id));
            }
            _ => self.awaiting_status.push_back((ends, id)),
        }
    }

    /// Completes a command: its status has reached the host.
    #[inline(always)]
    fn complete_request(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        self.follows_write = request.operation != Operation::Read;
        self.busy_times.transferred_bytes +=
            u64::from(request.sectors) * u64::from(self.sector_bytes());
        self.busy_times.transfer_count += 1;
        self.in_flight_count -= 1;
        self.completed_requests.push_back(id);
        if self.specification.flush_order == FlushOrder::DrainsQueue {
            self.release_flushed(now, requests);
        }
    }
}

fn earlier_time(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    [one, other].into_iter().flatten().min()
}

/// Pops the first entry of a queue if its time has come.
#[inline]
fn take_due_request(queue: &mut VecDeque<(Time, RequestId)>, at: Time) -> Option<RequestId> {
    let (due, id) = *queue.front()?;
    (due <= at).then(|| {
        queue.pop_front();
        id
    })
}

fn sector_extent(first: u64, end: u64) -> SectorExtent {
    SectorExtent {
        first_sector: first,
        end_sector: end,
    }
}
