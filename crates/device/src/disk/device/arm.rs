//! Background work of the actuator: destage of the write-back cache, cleaning of bands, and
//! read-ahead. Pending commands book this time to its stages, and a recorder can list the work.

use super::super::layout::SectorPosition;
use super::super::mechanism::AccessTimes;
use super::*;
use crate::Request;
use diskperf_spans::Span;
use diskperf_spans::{ArmWork, TracedArm};

/// Current background work of the actuator, and the record of past work.
#[derive(Clone, Debug, Default)]
pub(super) struct BackgroundArm {
    /// First sector and start time of the current read-ahead.
    read_ahead_start: (u64, Time),
    work_start: Time,
    /// Spans that the current background work adds to each pending command.
    wait_spans: Vec<Span>,
    /// Seek, head switch and rotational latency in the last read-ahead that could not be
    /// interrupted.
    pub(super) ways: [Time; 3],
    /// Time at which the actuator becomes free after a read-ahead that stopped before its next
    /// command was chosen.
    stopped_read_ahead: Option<ArmAvailability>,
    /// Recorded background work; `None` unless recording is on.
    recorded: Option<Vec<TracedArm>>,
    /// Memory of the recorded work, in bytes. Kept as a sum, because callers poll it often.
    recorded_bytes: usize,
}

/// Time at which the actuator can accept a command, and the reason for the delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArmAvailability {
    pub(super) now: Time,
    pub(super) available_at: Time,
    pub(super) delay_reason: DelayReason,
}

/// Activity that keeps the actuator busy until it can accept a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DelayReason {
    /// The last sector of the read-ahead still passes the head.
    MediaTransfer,
    /// The arm moves to the next track of the read-ahead and has not reached its sectors.
    Seek,
    /// The read-ahead completes its part that cannot be interrupted. [`BackgroundArm::ways`] has the time of
    /// that part that is not media transfer.
    UninterruptibleReadAhead,
}

impl ArmAvailability {
    pub(super) fn available_now(now: Time) -> Self {
        Self {
            now,
            available_at: now,
            delay_reason: DelayReason::MediaTransfer,
        }
    }

    /// Books the time that a command waited for other commands and for the end of a read-ahead.
    #[inline(always)]
    pub(super) fn book_wait(self, request: &mut Request, begins: Time, arm: &BackgroundArm) {
        let reads_on = match self.delay_reason {
            DelayReason::Seek => Stage::Seek,
            DelayReason::MediaTransfer | DelayReason::UninterruptibleReadAhead => {
                Stage::MediaTransfer
            }
        };
        let marked = Time(request.spans.marked_until().0);
        request.book_stage(Stage::ControllerQueue, moment(self.now.max(marked)));
        let over = self.available_at.max(self.now).max(marked);
        if self.delay_reason == DelayReason::UninterruptibleReadAhead {
            arm.book_uninterruptible_ways(request, over);
        }
        request.book_stage(reads_on, moment(over));
        request.book_stage(Stage::ControllerQueue, moment(begins.max(marked)));
    }
}

impl BackgroundArm {
    /// Returns the time at which the actuator can accept a command when no read-ahead is active.
    #[inline]
    pub(super) fn availability(&mut self, now: Time) -> ArmAvailability {
        match self.stopped_read_ahead.take() {
            Some(free) if free.available_at > now => ArmAvailability { now, ..free },
            Some(_) | None => ArmAvailability::available_now(now),
        }
    }

    /// Books the seeks, head switches and latencies of an uninterruptible read-ahead to a command
    /// that waits for its end.
    #[cold]
    fn book_uninterruptible_ways(&self, request: &mut Request, over: Time) {
        let stages = [Stage::Seek, Stage::HeadSwitch, Stage::RotationalLatency];
        for (stage, takes) in stages.into_iter().zip(self.ways) {
            let until = Time(request.spans.marked_until().0) + takes;
            request.book_stage(stage, moment(until.min(over)));
        }
    }
}

impl Disk {
    /// Notes the start of background work: its stages for commands that wait, and its record. If
    /// the access `follows` the last sectors and has a long rotational latency, that latency counts
    /// as a missed revolution.
    pub(super) fn begin_background_work(
        &mut self,
        (work, from): (ArmWork, Time),
        (access, place): (&MediaAccess, impl FnOnce(&Self) -> SectorPosition),
        (parts, follows): (AccessTimes, bool),
    ) {
        let stages = self.stage_times(parts, follows);
        let ends = |at: &mut Time, (stage, takes): (Stage, Time)| {
            *at += takes;
            let until = moment(*at);
            Some(Span {
                stage,
                stage_end: until,
            })
            .filter(|_| takes > Time::ZERO)
        };
        let mut at = from;
        let spans: Vec<Span> = stages
            .iter()
            .filter_map(|one| ends(&mut at, *one))
            .collect();
        let own = match work {
            ArmWork::Cleaning => Stage::Cleaning,
            ArmWork::Destage | ArmWork::ReadAhead => Stage::Destage,
        };
        let to_others = |span: &Span| match span.stage {
            Stage::MissedRevolution(Deadline::ReadAhead) => *span,
            _ => Span {
                stage: own,
                ..*span
            },
        };
        self.background_arm.work_start = from;
        self.background_arm.wait_spans.clear();
        self.background_arm
            .wait_spans
            .extend(spans.iter().map(to_others));
        if self.background_arm.recorded.is_some() {
            let place = place(self);
            self.record_work(
                (work, from),
                (access.first_sector, access.sector_count),
                (place, spans),
            );
        }
    }

    /// Books background work that has ended to all commands that waited for it.
    pub(super) fn book_to_waiting_commands(&self, requests: &mut Requests) {
        let behind = self.continuing_commands.iter().map(|(_, queued)| queued);
        let queued = self.queued_commands.iter().chain(behind).map(|of| of.id);
        let for_arm = queued.chain(self.blocked_by_flush.iter().copied());
        let flushes = self.pending_flushes.iter().map(|flush| flush.id);
        let for_buffer = self.writes_awaiting_buffer.iter().copied().chain(flushes);
        let waiting = (for_arm.map(|id| (id, Stage::ControllerQueue)))
            .chain(for_buffer.map(|id| (id, Stage::Destage)));
        let begun = moment(self.background_arm.work_start);
        for (id, waits) in waiting {
            let spans = &mut requests[id].spans;
            let before = std::iter::once(Span {
                stage: waits,
                stage_end: begun,
            });
            for span in before.chain(self.background_arm.wait_spans.iter().copied()) {
                // It came meanwhile, or its firmware or link is at it until later.
                spans.mark_stage(span.stage, span.stage_end.max(spans.marked_until()));
            }
        }
    }

    /// Starts a read-ahead into a segment. `further` has its sectors and, if known, their position;
    /// `least` sectors are read without interruption.
    #[inline(always)]
    pub(super) fn begin_read_ahead(
        &mut self,
        now: Time,
        segment: usize,
        further: ((u64, u64), Option<SectorRun>),
        least: u64,
    ) {
        self.background_arm.read_ahead_start = (further.0.0, now);
        let ahead = self.read_ahead.insert(ReadAheadProgress::new(
            &self.mechanism,
            now,
            segment,
            further,
        ));
        if least > 0 {
            ahead.protect_sectors(&mut self.mechanism, least);
        }
    }

    /// Stops the read-ahead because its segment gets other data. The next command still waits for
    /// what the arm has begun.
    #[cold]
    pub(super) fn detach_segment(&mut self, now: Time) {
        let free = self.interrupt_read_ahead(now);
        self.idle_since = self.idle_since.max(free.available_at);
        self.background_arm.stopped_read_ahead = Some(free);
    }

    pub(super) fn end_read_ahead(&mut self, limit: u64, ends: Time) {
        self.idle_since = ends;
        self.stop_read_ahead_at((limit, ends));
    }

    /// Books and records a read-ahead that ended at a sector and time.
    #[inline(always)]
    pub(super) fn stop_read_ahead_at(&mut self, stopped: (u64, Time)) {
        self.busy_times.transfer_time += stopped.1 - self.background_arm.read_ahead_start.1;
        if self.background_arm.recorded.is_some() {
            self.record_read_ahead(stopped);
        }
    }

    #[cold]
    fn record_read_ahead(&mut self, (came_to, until): (u64, Time)) {
        let (first, from) = self.background_arm.read_ahead_start;
        if until == from {
            return;
        }
        let place = self.mechanism.layout().position_of(first);
        let stage = Stage::MediaTransfer;
        let until = moment(until);
        let sectors = came_to.saturating_sub(first) as u32;
        let spans = vec![Span {
            stage,
            stage_end: until,
        }];
        self.record_work((ArmWork::ReadAhead, from), (first, sectors), (place, spans));
    }

    fn record_work(
        &mut self,
        (work, from): (ArmWork, Time),
        (sector, sectors): (u64, u32),
        (place, spans): (SectorPosition, Vec<Span>),
    ) {
        let of = TracedArm {
            drive_index: 0,
            arm_work: work,
            sector: sector * self.medium_sectors.sectors_per_medium_sector(),
            sector_count: sectors
                .saturating_mul(self.medium_sectors.sectors_per_medium_sector() as u32),
            arm_position: to_disk_position(&place),
            work_start: moment(from),
            spans,
        };
        self.background_arm.recorded_bytes += of.memory_bytes();
        self.background_arm
            .recorded
            .get_or_insert_default()
            .push(of);
    }

    /// Starts to record background work of the actuator for [`Self::take_recorded`].
    pub fn start_recording(&mut self) {
        self.background_arm.recorded = Some(Vec::new());
    }

    /// Returns the actuator's background work since the last call, up to `now`, labelled with a
    /// drive number. Empty unless recording is on.
    pub fn take_recorded(&mut self, now: Time, number: u32) -> Vec<TracedArm> {
        if self.background_arm.recorded.is_none() {
            return Vec::new();
        }
        if let Some(mut ahead) = self.read_ahead {
            let came_to = ahead.advance_to(&mut self.mechanism, now);
            let until = ahead
                .time_at_sector(now)
                .max(self.background_arm.read_ahead_start.1);
            self.stop_read_ahead_at((came_to, until));
            self.background_arm.read_ahead_start = (came_to, until);
        }
        self.background_arm.recorded_bytes = 0;
        let mut taken = self
            .background_arm
            .recorded
            .replace(Vec::new())
            .unwrap_or_default();
        taken.iter_mut().for_each(|one| one.drive_index = number);
        taken
    }

    /// Returns the memory of the recorded background work, in bytes.
    pub fn recorded_bytes(&self) -> usize {
        self.background_arm.recorded_bytes
    }
}

/// Converts a position on the medium to its form in traces.
pub(super) fn to_disk_position(place: &SectorPosition) -> DiskPosition {
    let slots = place.sectors_per_track;
    DiskPosition {
        cylinder: place.cylinder,
        head: place.head,
        slot: (place.start_angle.to_revolutions() * f64::from(slots)) as u32 % slots,
        slots,
    }
}
