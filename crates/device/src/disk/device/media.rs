//! What the arm is given to do, and where the time of it goes.

use super::super::cache::{ReadAhead, ReadAheadAfter};
use super::super::mechanism::Parts;
use super::super::queue::View;
use super::arm::Until;
use super::*;
use diskperf_spans::ArmWork;

/// What the arm may be given next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidates {
    Commands,
    Buffer,
    Both,
}

/// What it is given: a place among the commands, or in the buffer.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    Command(usize),
    Extent(usize),
}

impl Disk {
    /// When the arm begins with what waits in the buffer, if nothing else comes.
    pub(super) fn destages_at(&self) -> Option<Time> {
        let written = self.written.as_ref()?;
        (!written.waiting().is_empty()).then(|| self.still_since + self.idle)
    }

    /// Gives the arm something to do, if it is free or only reads on.
    pub(super) fn start(&mut self, now: Time, requests: &mut Requests) {
        if self.job.is_some() {
            return;
        }
        self.watch(now);
        let Some(candidates) = self.candidates(now) else {
            if self.cleans_at().is_some_and(|at| at <= now) {
                self.clean_now(now, false);
            }
            return;
        };
        let free = self.stop_reading_on(now);
        match self.choose(free.at, candidates) {
            chosen if self.waits_for_room(chosen, requests) => self.clean_now(free.at, true),
            Chosen::Command(index) => {
                let of = self.queue.swap_remove(index);
                let queued = self.queued.swap_remove(index);
                self.free_behind(of.write, queued.end);
                self.command_now(free, requests, (of.sector, &queued))
            }
            Chosen::Extent(index) => self.destage_now(free.at, index),
        }
    }

    /// The arm is busy until then.
    #[inline(always)]
    pub(super) fn begin_job(&mut self, ends: Time, what: Work) {
        self.job = Some(Job { ends, what });
    }

    /// The arm has nothing to choose from: it gets a command that comes at once.
    #[inline]
    pub(super) fn has_nothing_to_do(&self) -> bool {
        let keeps_writes = self
            .written
            .as_ref()
            .is_some_and(|of| !of.waiting().is_empty());
        let has_commands = !(self.queue.is_empty() && self.behind.is_empty());
        self.job.is_none() && !has_commands && !keeps_writes && self.shingles.is_none()
    }

    /// When the arm can be commanded.
    #[inline(always)]
    pub(super) fn stop_reading_on(&mut self, now: Time) -> Free {
        if self.whole.is_some() {
            self.note_whole(now);
            self.whole = None;
        }
        let Some(ahead) = &mut self.ahead else {
            return self.arm.stopped(now);
        };
        let segment = ahead.segment;
        let committed = ahead.is_committed(now);
        if committed {
            let parts = ahead.rest_of_committed(&mut self.mechanism, now);
            self.arm.ways = [parts.seek, parts.head_switch, parts.latency];
        }
        let (stopped, moves) = ahead.stop(&mut self.mechanism, now);
        self.ahead = None;
        self.segments.extend(segment, stopped.0);
        self.read_on_until(stopped);
        Free {
            now,
            at: stopped.1.max(now),
            until: match (committed, moves) {
                (true, _) => Until::Committed,
                (false, true) => Until::There,
                (false, false) => Until::Passed,
            },
        }
    }

    /// The arm, which is free by then, has a command.
    #[inline(always)]
    pub(super) fn command_now(
        &mut self,
        free: Free,
        requests: &mut Requests,
        (sector, queued): (u64, &Queued),
    ) {
        match requests[queued.id].operation {
            Operation::Read => self.read_now(free, requests, (sector, queued)),
            _ => self.write_now(free, requests, queued),
        }
    }

    /// What waits in the buffer has to know when reading on ends.
    fn watch(&mut self, now: Time) {
        let waits = self
            .written
            .as_ref()
            .is_some_and(|of| !of.waiting().is_empty());
        let Some(ahead) = self.ahead.as_mut().filter(|_| waits) else {
            return;
        };
        ahead.watch(&mut self.mechanism);
        if ahead.ends <= now {
            let (limit, ends) = (ahead.limit, ahead.ends);
            self.segments.extend(ahead.segment, limit);
            self.ahead = None;
            self.end_ahead(limit, ends);
        }
    }

    #[inline(always)]
    fn candidates(&self, now: Time) -> Option<Candidates> {
        let extents = self.written.as_ref().filter(|of| !of.waiting().is_empty());
        let urgent = extents.is_some_and(Written::is_high)
            || !self.crowded.is_empty()
            || !self.flushes.is_empty();
        match (self.queue.is_empty(), extents.is_some()) {
            (false, true) if urgent => Some(Candidates::Both),
            (false, _) => Some(Candidates::Commands),
            (true, true) => {
                let still = self.ahead.is_none() && now >= self.still_since + self.idle;
                (urgent || still).then_some(Candidates::Buffer)
            }
            (true, false) => None,
        }
    }

    /// What the policy chooses.
    #[inline(always)]
    fn choose(&mut self, now: Time, candidates: Candidates) -> Chosen {
        let mut choice = std::mem::take(&mut self.choice);
        choice.clear();
        let extents = self.written.as_ref().map_or(&[][..], Written::waiting);
        let from = match candidates {
            Candidates::Commands => &self.queue[..],
            Candidates::Buffer => extents,
            Candidates::Both => {
                choice.extend_from_slice(&self.queue);
                // Nobody waits for these.
                let of_now = |of: &Waiting| Waiting { came: now, ..*of };
                choice.extend(extents.iter().map(of_now));
                &choice[..]
            }
        };
        let order = match candidates {
            Candidates::Buffer => QueueSpecification {
                age_limit_ms: None,
                ..self.order
            },
            Candidates::Commands | Candidates::Both => self.order,
        };
        let chosen = match from {
            [_] => None,
            _ => {
                let layout = self.mechanism.layout();
                let of_cylinders = self.order.distance == super::super::queue::Distance::Cylinder;
                let view = View {
                    now,
                    at: match of_cylinders {
                        true => u64::from(self.mechanism.cylinder()),
                        false => self.last_passed.0.min(layout.sectors()),
                    },
                    stroke: match of_cylinders {
                        true => u64::from(layout.cylinders()),
                        false => layout.sectors(),
                    },
                    rising: self.rising,
                };
                let positioning =
                    |of: &Waiting| self.mechanism.positioning(now, &of.place, of.write);
                order.choose(&view, from, positioning)
            }
        };
        let index = chosen.map_or(0, |choice| choice.index);
        self.rising = chosen.map_or(self.rising, |choice| choice.rising);
        self.choice = choice;
        match candidates {
            Candidates::Buffer => Chosen::Extent(index),
            _ if index < self.queue.len() => Chosen::Command(index),
            _ => Chosen::Extent(index - self.queue.len()),
        }
    }

    /// Sectors of the medium pass for a read, and cross the link while they do.
    #[inline(always)]
    fn read_now(&mut self, free: Free, requests: &mut Requests, (sector, queued): (u64, &Queued)) {
        let request = &mut requests[queued.id];
        let begins = free.at.max(queued.ready);
        let end = self.per_medium.up(request.end());
        let access = Access {
            sector,
            sectors: (end - sector) as u32,
            ..Access::default()
        };
        let mut first_at = None;
        // What is on another track begins to cross when its first sector has passed: until
        // then a slow link has nothing to carry.
        let (mut left, mut whole_by) = (access.sectors, Time::ZERO);
        let (link_ns, per_medium) = (self.link.sector_ns(), self.per_medium.get());
        let run = queued.run.as_ref();
        let missed = self.follows(sector, run);
        self.catch(begins, (sector, false), missed);
        let observed = self
            .observed
            .is_some()
            .then(|| self.observed_access(begins, (&access, queued.held)));
        let mut first_passes = begins;
        let parts = self.read_medium(begins, &access, run, |passing| {
            let each = match passing.sectors {
                1 => (passing.ends - passing.begins).0,
                sectors => (passing.ends - passing.begins).0 / u64::from(sectors),
            };
            match first_at {
                None => {
                    first_at = Some(passing.begins + Time(each));
                    first_passes = passing.begins;
                }
                Some(_) => {
                    let there = passing.begins + Time(each);
                    let sector_ns = link_ns * per_medium as f64;
                    let others = (f64::from(left - 1) * sector_ns + 0.5) as u64;
                    whole_by = whole_by.max(there + Time(others));
                }
            }
            left -= passing.sectors;
        });
        if let Some(observed) = observed {
            self.observe_access(observed, first_passes);
        }
        let ends = begins + parts.total();
        let request = &mut requests[queued.id];
        free.mark_wait(request, begins, &self.arm);
        self.mark(request, parts, missed);
        let there = match queued.held {
            0 => first_at.unwrap_or(ends),
            _ => queued.ready,
        };
        let passing = Passage {
            first: there,
            last: ends,
            whole_by,
        };
        let crossing = self
            .link
            .cross_while_read((free.now, begins), passing, request.sectors);
        request.mark(Stage::BusTransfer, moment(crossing.ends));
        let asked = (sector - queued.held, end);
        let first = self.passed_before(sector, run, parts.latency);
        self.next_run = run.and_then(|run| run.behind(access.sectors));
        self.last_passed = (end, ends);
        self.book(parts);
        self.finish(crossing.ends, requests, queued.id);
        self.begin_job(ends, Work::Read { first, asked });
    }

    /// The first of the sectors before this one, on its track, that passed while it was
    /// waited for, where these are kept.
    #[inline(always)]
    fn passed_before(&self, sector: u64, run: Option<&Run>, latency: Time) -> u64 {
        // What the media cache has of a track is not what passes there, and has no `run`.
        let keeps = self.specification.read_cache.keep_passing_sectors;
        let Some(run) = run.filter(|_| keeps) else {
            return sector;
        };
        let place = &run.place;
        let each = self.mechanism.spindle().turning(place.arc).0.max(1);
        let count = (latency.0 / each).min(u64::from(place.sector)).min(sector);
        let layout = self.mechanism.layout();
        match layout.has_before(sector, run, count as u32) {
            true => sector - count,
            false => sector,
        }
    }

    /// Sectors of the buffer are written.
    fn destage_now(&mut self, now: Time, index: usize) {
        let most = self.most_destaged();
        let (layout, per_medium) = (self.mechanism.layout(), self.per_medium);
        let locate = |sector: u64| {
            let on_medium = per_medium.down(sector);
            (on_medium, layout.locate(on_medium))
        };
        let written = self.written.as_mut().expect("a disk with a write cache");
        let of = written.begin(index, most, locate);
        let access = self.writing(of);
        let follows = self.follows(access.sector, None);
        self.catch(now, (access.sector, true), follows);
        let parts = self.write_medium(now, &access);
        let ends = now + parts.total();
        let place = |disk: &Self| disk.place_of(access.sector);
        self.works((ArmWork::Destage, now), (&access, place), (parts, follows));
        self.last_passed = (self.medium_range(of).1, ends);
        self.book(parts);
        self.begin_job(ends, Work::Destage);
    }

    /// Whether what was chosen is written, and has to wait until a band is cleaned.
    fn waits_for_room(&self, chosen: Chosen, requests: &Requests) -> bool {
        if self.shingles.is_none() {
            return false;
        }
        let of = match chosen {
            Chosen::Command(index) => {
                let request = &requests[self.queued[index].id];
                match self.queue[index].write {
                    true => self.medium_range(extent(request.sector, request.end())),
                    false => return false,
                }
            }
            Chosen::Extent(index) => {
                let written = self.written.as_ref().expect("a disk with a write cache");
                let most = self.most_destaged();
                self.medium_range(written.next(index, most))
            }
        };
        self.must_clean(of)
    }

    /// The most sectors, as the host counts them, that are written of the buffer at once.
    fn most_destaged(&self) -> u64 {
        let write = self.specification.write_cache.as_ref();
        write.map_or(1, |write| u64::from(write.most_destaged_sectors))
    }

    /// Whether sectors follow those that passed last: if they do not pass at once, they
    /// were asked for too late.
    #[inline(always)]
    pub(super) fn follows(&self, sector: u64, run: Option<&Run>) -> bool {
        if sector != self.last_passed.0 {
            return false;
        }
        let at = (self.mechanism.cylinder(), self.mechanism.head());
        let place = match run {
            Some(run) => run.place,
            None => self.mechanism.layout().locate(sector),
        };
        (place.cylinder, place.head) == at
    }

    /// Books where the time of an access went.
    #[inline(always)]
    pub(super) fn mark(&self, request: &mut crate::Request, parts: Parts, follows: bool) {
        let mut at = Time(request.spans.marked().0);
        for (stage, span) in self.stages(parts, follows) {
            at += span;
            request.mark(stage, moment(at));
        }
    }

    /// Supposed that deadlines are met, what follows the last sectors is not too late.
    #[inline(always)]
    pub(super) fn catch(&mut self, begins: Time, (sector, write): (u64, bool), follows: bool) {
        if follows && self.mechanism.supposes().deadlines_met {
            let place = self.mechanism.layout().locate(sector);
            // The arm rests on its track before it looks for the sector.
            let there = begins + self.mechanism.way_to(&place, write);
            self.mechanism.turn_back(there, place.start);
        }
    }

    /// The stages of an access, in order.
    #[inline(always)]
    pub(super) fn stages(&self, parts: Parts, follows: bool) -> [(Stage, Time); 7] {
        let half = Time(self.mechanism.spindle().period().0 / 2);
        let latency = match follows && parts.latency > half {
            true => Stage::MissedRevolution(Deadline::ReadAhead),
            false => Stage::RotationalLatency,
        };
        [
            (Stage::Command, parts.overhead),
            (Stage::Seek, parts.seek),
            (Stage::HeadSwitch, parts.head_switch),
            (Stage::WriteSettle, parts.settle),
            (latency, parts.latency),
            (Stage::MediaTransfer, parts.transfer),
            (
                Stage::MissedRevolution(Deadline::PartOfSector),
                parts.rewrite,
            ),
        ]
    }

    pub(super) fn book(&mut self, parts: Parts) {
        self.busy.positioning += parts.seek + parts.head_switch + parts.settle;
        self.busy.latency += parts.latency + parts.rewrite;
        self.busy.transfer += parts.transfer;
    }

    /// The arm is done with something.
    #[inline(always)]
    pub(super) fn end_job(&mut self, job: Job, requests: &mut Requests) {
        let now = job.ends;
        // Cleaning goes on until a command comes.
        if !matches!(job.what, Work::Clean { .. }) {
            self.still_since = now;
        }
        match job.what {
            Work::Read { first, asked } => self.keep_read(now, first, asked),
            Work::Write => {}
            Work::Clean { takes } => {
                self.mark_waiting(requests);
                self.end_clean(takes);
            }
            Work::Destage => {
                self.mark_waiting(requests);
                self.written
                    .as_mut()
                    .expect("a disk with a write cache")
                    .end();
                self.admit(now, requests);
            }
        }
        if !self.flushes.is_empty() {
            self.flush(now, requests);
        } else if !self.has_nothing_to_do() {
            self.start(now, requests);
        }
    }

    /// Keeps what was read, and reads on if nothing else is to be done.
    #[inline(always)]
    fn keep_read(&mut self, now: Time, first: u64, asked: (u64, u64)) {
        let Some((segment, sequential)) = self.segments.keep(asked) else {
            return;
        };
        self.segments.extend_front(segment, first);
        self.segments.read(segment, asked.1);
        let cache = &self.specification.read_cache;
        let wanted = match cache.read_ahead_after {
            ReadAheadAfter::AnyRead => true,
            ReadAheadAfter::SequentialRead => sequential,
        };
        let least = u64::from(cache.least_ahead_sectors);
        let (segment_first, _) = self.segments.run(segment);
        let limit = cache.ahead_until(self.mechanism.layout(), asked, segment_first);
        let limit = self.ahead_until(asked.1, limit);
        let others = !self.queue.is_empty() && least == 0;
        let whole = cache.read_ahead == ReadAhead::WholeTrack;
        if wanted && limit > asked.1 && !others {
            let run = self.next_run;
            self.begin_ahead(now, segment, ((asked.1, limit), run), least);
        }
        if whole && wanted && !others {
            self.whole = self.whole_track(now, segment, asked);
        }
    }

    /// Writes that waited for room come into the buffer as far as there is some.
    fn admit(&mut self, now: Time, requests: &mut Requests) {
        while let Some(id) = self.crowded.front().copied() {
            let request = &requests[id];
            let of = extent(request.sector, request.end());
            let written = self.written.as_ref().expect("a disk with a write cache");
            if !written.has_room(of) {
                break;
            }
            self.crowded.pop_front();
            self.take_into_buffer(now, requests, id);
        }
    }
}
