//! Background work of the actuator: destage of the write-back cache, cleaning of bands, and
//! read-ahead. Pending commands book this time to its stages, and a recorder can list the work.

use super::super::layout::Place;
use super::super::mechanism::Parts;
use super::*;
use crate::Request;
use diskperf_spans::Span;
use diskperf_spans::{ArmWork, TracedArm};

/// Current background work of the actuator, and the record of past work.
#[derive(Clone, Debug, Default)]
pub(super) struct Arm {
    /// First sector and start time of the current read-ahead.
    ahead_from: (u64, Time),
    /// Start of the current background work.
    from: Time,
    /// Spans that the current background work adds to each pending command.
    waits: Vec<Span>,
    /// Seek, head switch and rotational latency in the last read-ahead that could not be
    /// interrupted.
    pub(super) ways: [Time; 3],
    /// Time at which the actuator becomes free after a read-ahead that stopped before its next
    /// command was chosen.
    stopped: Option<Free>,
    /// Recorded background work; `None` unless recording is on.
    recorded: Option<Vec<TracedArm>>,
    /// Memory of the recorded work, in bytes. Kept as a sum, because callers poll it often.
    recorded_bytes: usize,
}

/// Time at which the actuator can accept a command, and the reason for the delay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    pub(super) now: Time,
    pub(super) at: Time,
    pub(super) until: Until,
}

/// Activity that keeps the actuator busy until it can accept a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// The last sector of the read-ahead still passes the head.
    Passed,
    /// The arm moves to the next track of the read-ahead and has not reached its sectors.
    There,
    /// The read-ahead completes its part that cannot be interrupted. [`Arm::ways`] has the time of
    /// that part that is not media transfer.
    Committed,
}

impl Free {
    pub(super) fn at_once(now: Time) -> Self {
        Self {
            now,
            at: now,
            until: Until::Passed,
        }
    }

    /// Books the time that a command waited for other commands and for the end of a read-ahead.
    #[inline(always)]
    pub(super) fn mark_wait(self, request: &mut Request, begins: Time, arm: &Arm) {
        let reads_on = match self.until {
            Until::There => Stage::Seek,
            Until::Passed | Until::Committed => Stage::MediaTransfer,
        };
        let marked = Time(request.spans.marked_until().0);
        request.mark(Stage::ControllerQueue, moment(self.now.max(marked)));
        let over = self.at.max(self.now).max(marked);
        if self.until == Until::Committed {
            arm.mark_ways(request, over);
        }
        request.mark(reads_on, moment(over));
        request.mark(Stage::ControllerQueue, moment(begins.max(marked)));
    }
}

impl Arm {
    /// Returns the time at which the actuator can accept a command when no read-ahead is active.
    #[inline]
    pub(super) fn stopped(&mut self, now: Time) -> Free {
        match self.stopped.take() {
            Some(free) if free.at > now => Free { now, ..free },
            Some(_) | None => Free::at_once(now),
        }
    }

    /// Books the seeks, head switches and latencies of an uninterruptible read-ahead to a command
    /// that waits for its end.
    #[cold]
    fn mark_ways(&self, request: &mut Request, over: Time) {
        let stages = [Stage::Seek, Stage::HeadSwitch, Stage::RotationalLatency];
        for (stage, takes) in stages.into_iter().zip(self.ways) {
            let until = Time(request.spans.marked_until().0) + takes;
            request.mark(stage, moment(until.min(over)));
        }
    }
}

impl Disk {
    /// Notes the start of background work: its stages for commands that wait, and its record. If
    /// the access `follows` the last sectors and has a long rotational latency, that latency counts
    /// as a missed revolution.
    pub(super) fn works(
        &mut self,
        (work, from): (ArmWork, Time),
        (access, place): (&Access, impl FnOnce(&Self) -> Place),
        (parts, follows): (Parts, bool),
    ) {
        let stages = self.stages(parts, follows);
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
        self.arm.from = from;
        self.arm.waits.clear();
        self.arm.waits.extend(spans.iter().map(to_others));
        if self.arm.recorded.is_some() {
            let place = place(self);
            self.record_work(
                (work, from),
                (access.sector, access.sectors),
                (place, spans),
            );
        }
    }

    /// Books background work that has ended to all commands that waited for it.
    pub(super) fn mark_waiting(&self, requests: &mut Requests) {
        let behind = self.behind.iter().map(|(_, queued)| queued);
        let queued = self.queued.iter().chain(behind).map(|of| of.id);
        let for_arm = queued.chain(self.held.iter().copied());
        let flushes = self.flushes.iter().map(|flush| flush.id);
        let for_buffer = self.crowded.iter().copied().chain(flushes);
        let waiting = (for_arm.map(|id| (id, Stage::ControllerQueue)))
            .chain(for_buffer.map(|id| (id, Stage::Destage)));
        let begun = moment(self.arm.from);
        for (id, waits) in waiting {
            let spans = &mut requests[id].spans;
            let before = std::iter::once(Span {
                stage: waits,
                stage_end: begun,
            });
            for span in before.chain(self.arm.waits.iter().copied()) {
                // It came meanwhile, or its firmware or link is at it until later.
                spans.mark_stage(span.stage, span.stage_end.max(spans.marked_until()));
            }
        }
    }

    /// Starts a read-ahead into a segment. `further` has its sectors and, if known, their position;
    /// `least` sectors are read without interruption.
    #[inline(always)]
    pub(super) fn begin_ahead(
        &mut self,
        now: Time,
        segment: usize,
        further: ((u64, u64), Option<Run>),
        least: u64,
    ) {
        self.arm.ahead_from = (further.0.0, now);
        let ahead = self
            .ahead
            .insert(Ahead::new(&self.mechanism, now, segment, further));
        if least > 0 {
            ahead.commit(&mut self.mechanism, least);
        }
    }

    /// Stops the read-ahead because its segment gets other data. The next command still waits for
    /// what the arm has begun.
    #[cold]
    pub(super) fn leave_segment(&mut self, now: Time) {
        let free = self.stop_reading_on(now);
        self.still_since = self.still_since.max(free.at);
        self.arm.stopped = Some(free);
    }

    /// Ends a read-ahead that has reached its limit.
    pub(super) fn end_ahead(&mut self, limit: u64, ends: Time) {
        self.still_since = ends;
        self.read_on_until((limit, ends));
    }

    /// Books and records a read-ahead that ended at a sector and time.
    #[inline(always)]
    pub(super) fn read_on_until(&mut self, stopped: (u64, Time)) {
        self.busy.transfer += stopped.1 - self.arm.ahead_from.1;
        if self.arm.recorded.is_some() {
            self.record_ahead(stopped);
        }
    }

    #[cold]
    fn record_ahead(&mut self, (came_to, until): (u64, Time)) {
        let (first, from) = self.arm.ahead_from;
        if until == from {
            return;
        }
        let place = self.mechanism.layout().locate(first);
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
        (place, spans): (Place, Vec<Span>),
    ) {
        let of = TracedArm {
            drive_index: 0,
            arm_work: work,
            sector: sector * self.per_medium.get(),
            sector_count: sectors.saturating_mul(self.per_medium.get() as u32),
            arm_position: position_of(&place),
            work_start: moment(from),
            spans,
        };
        self.arm.recorded_bytes += of.memory_bytes();
        self.arm.recorded.get_or_insert_default().push(of);
    }

    /// Starts to record background work of the actuator for [`Self::take_recorded`].
    pub fn record(&mut self) {
        self.arm.recorded = Some(Vec::new());
    }

    /// Returns the actuator's background work since the last call, up to `now`, labelled with a
    /// drive number. Empty unless recording is on.
    pub fn take_recorded(&mut self, now: Time, number: u32) -> Vec<TracedArm> {
        if self.arm.recorded.is_none() {
            return Vec::new();
        }
        if let Some(mut ahead) = self.ahead {
            let came_to = ahead.progress(&mut self.mechanism, now);
            let until = ahead.came_by(now).max(self.arm.ahead_from.1);
            self.read_on_until((came_to, until));
            self.arm.ahead_from = (came_to, until);
        }
        self.arm.recorded_bytes = 0;
        let mut taken = self.arm.recorded.replace(Vec::new()).unwrap_or_default();
        taken.iter_mut().for_each(|one| one.drive_index = number);
        taken
    }

    /// Returns the memory of the recorded background work, in bytes.
    pub fn recorded_bytes(&self) -> usize {
        self.arm.recorded_bytes
    }
}

/// Converts a position on the medium to its form in traces.
pub(super) fn position_of(place: &Place) -> DiskPosition {
    let slots = place.sectors_per_track;
    DiskPosition {
        cylinder: place.cylinder,
        head: place.head,
        slot: (place.start.revolutions() * f64::from(slots)) as u32 % slots,
        slots,
    }
}
