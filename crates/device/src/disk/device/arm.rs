//! What the arm does for no command: it writes what the buffer took, cleans bands, and
//! reads on. Commands that wait meanwhile book that, as it was, and those who want to see
//! it have it recorded.

use super::super::layout::Place;
use super::super::mechanism::Parts;
use super::*;
use crate::Request;
use diskperf_spans::Span;
use diskperf_spans::{ArmWork, TracedArm};

/// What the arm does for no command now, and did.
#[derive(Clone, Debug, Default)]
pub(super) struct Arm {
    /// Where reading on began, and when.
    ahead_from: (u64, Time),
    /// When its present work began.
    from: Time,
    /// What that is to a command that waits.
    waits: Vec<Span>,
    /// Of what it read on last in any case: seeks, changes of the head, and turns between
    /// tracks.
    pub(super) ways: [Time; 3],
    /// When it can be commanded that was stopped before anything was chosen for it.
    stopped: Option<Free>,
    /// What it did, where somebody wants to see that.
    recorded: Option<Vec<TracedArm>>,
    /// Memory of that: looked at with every tick of a clock, however much there is.
    recorded_bytes: usize,
}

/// When the arm can be commanded, and why not at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    pub(super) now: Time,
    pub(super) at: Time,
    pub(super) until: Until,
}

/// What the arm does until it can be commanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// A sector passes.
    Passed,
    /// It is on its way to the next track of what it read on, and not at its sectors.
    There,
    /// It reads on what it has to in any case: [`Arm::ways`] says what of that is no transfer.
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

    /// A command waited for others, and for the end of reading on.
    #[inline(always)]
    pub(super) fn mark_wait(self, request: &mut Request, begins: Time, arm: &Arm) {
        let reads_on = match self.until {
            Until::There => Stage::Seek,
            Until::Passed | Until::Committed => Stage::MediaTransfer,
        };
        let marked = Time(request.spans.marked().0);
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
    /// When it can be commanded, with nothing to read on.
    #[inline]
    pub(super) fn stopped(&mut self, now: Time) -> Free {
        match self.stopped.take() {
            Some(free) if free.at > now => Free { now, ..free },
            Some(_) | None => Free::at_once(now),
        }
    }

    /// Of what is read on until it is over, the ways to other tracks.
    #[cold]
    fn mark_ways(&self, request: &mut Request, over: Time) {
        let stages = [Stage::Seek, Stage::HeadSwitch, Stage::RotationalLatency];
        for (stage, takes) in stages.into_iter().zip(self.ways) {
            let until = Time(request.spans.marked().0) + takes;
            request.mark(stage, moment(until.min(over)));
        }
    }
}

impl Disk {
    /// The arm begins with work of its own, of sectors that are at a place. What `follows`
    /// the last sectors and does not pass at once came too late.
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
            Some(Span { stage, until }).filter(|_| takes > Time::ZERO)
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

    /// The arm is through with work of its own: what waited for it books it.
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
                until: begun,
            });
            for span in before.chain(self.arm.waits.iter().copied()) {
                // It came meanwhile, or its firmware or link is at it until later.
                spans.mark(span.stage, span.until.max(spans.marked()));
            }
        }
    }

    /// The arm reads on from now, into a segment; it may be known where the first sectors
    /// are, and so many are read in any case.
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

    /// Reading on is stopped, since its segment is for something else: what the arm has begun
    /// is still to be waited for by whatever comes next.
    #[cold]
    pub(super) fn leave_segment(&mut self, now: Time) {
        let free = self.stop_reading_on(now);
        self.still_since = self.still_since.max(free.at);
        self.arm.stopped = Some(free);
    }

    /// Reading on has come to its end by itself.
    pub(super) fn end_ahead(&mut self, limit: u64, ends: Time) {
        self.still_since = ends;
        self.read_on_until((limit, ends));
    }

    /// Reading on has come to a sector, and is over.
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
        let spans = vec![Span { stage, until }];
        self.record_work((ArmWork::ReadAhead, from), (first, sectors), (place, spans));
    }

    fn record_work(
        &mut self,
        (work, from): (ArmWork, Time),
        (sector, sectors): (u64, u32),
        (place, spans): (Place, Vec<Span>),
    ) {
        let of = TracedArm {
            drive: 0,
            work,
            sector: sector * self.per_medium.get(),
            sectors: sectors.saturating_mul(self.per_medium.get() as u32),
            position: position_of(&place),
            from: moment(from),
            spans,
        };
        self.arm.recorded_bytes += of.bytes();
        self.arm.recorded.get_or_insert_default().push(of);
    }

    /// Records what the arm does for no command, for [`Self::take_recorded`].
    pub fn record(&mut self) {
        self.arm.recorded = Some(Vec::new());
    }

    /// What the arm did for no command since this was asked last, up to now, as that of
    /// the drive of this number.
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
        taken.iter_mut().for_each(|one| one.drive = number);
        taken
    }

    /// Memory of what is recorded.
    pub fn recorded_bytes(&self) -> usize {
        self.arm.recorded_bytes
    }
}

/// A place as traces have it.
pub(super) fn position_of(place: &Place) -> DiskPosition {
    let slots = place.sectors_per_track;
    DiskPosition {
        cylinder: place.cylinder,
        head: place.head,
        slot: (place.start.revolutions() * f64::from(slots)) as u32 % slots,
        slots,
    }
}
