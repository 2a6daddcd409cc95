//! Work of the actuator: choice of its next command or destage, and the time components of each
//! access.

use super::super::cache::{ReadAhead, ReadAheadAfter};
use super::super::mechanism::Parts;
use super::super::queue::View;
use super::arm::Until;
use super::*;
use diskperf_spans::ArmWork;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidates {
    Commands,
    Buffer,
    Both,
}

#[derive(Clone, Copy, Debug)]
enum Chosen {
    Command(usize),
    Extent(usize),
}

impl Disk {
    /// Returns the time at which the drive starts to destage if no command arrives; `None` if no
    /// extent is pending.
    pub(super) fn destages_at(&self) -> Option<Time> {
        let written = self.written.as_ref()?;
        (!written.waiting().is_empty()).then(|| self.still_since + self.idle)
    }

    /// Gives the actuator its next work if it is free or only prefetches.
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

    /// Makes the actuator busy with some work until time `ends`.
    #[inline(always)]
    pub(super) fn begin_job(&mut self, ends: Time, what: Work) {
        self.job = Some(Job { ends, what });
    }

    /// Tests whether the actuator has no pending work, so that a new command can bypass the queue.
    #[inline]
    pub(super) fn has_nothing_to_do(&self) -> bool {
        let keeps_writes = self
            .written
            .as_ref()
            .is_some_and(|of| !of.waiting().is_empty());
        let has_commands = !(self.queue.is_empty() && self.behind.is_empty());
        self.job.is_none() && !has_commands && !keeps_writes && self.shingles.is_none()
    }

    /// Stops a read-ahead, and returns the time at which the actuator can accept a command.
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

    /// Starts a command on the actuator, which is free at the time that `free` states.
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

    /// Computes the end of the read-ahead if a destage waits for it, and ends the read-ahead if
    /// that time has come.
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

    /// Returns the first of the preceding sectors on the same track that passed during the
    /// rotational latency. Returns the sector itself if the read cache does not keep passing
    /// sectors.
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

    /// Tests whether the chosen work is a write that must wait for the cleaning of a band.
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

    /// Returns the maximum size of one destage, in host sectors.
    fn most_destaged(&self) -> u64 {
        let write = self.specification.write_cache.as_ref();
        write.map_or(1, |write| u64::from(write.most_destaged_sectors))
    }

    /// Tests whether a sector directly follows those transferred last, on the same track. If such a
    /// sector does not pass at once, its command came too late.
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

    /// Books the time components of an access to the stages of a request.
    #[inline(always)]
    pub(super) fn mark(&self, request: &mut crate::Request, parts: Parts, follows: bool) {
        let mut at = Time(request.spans.marked_until().0);
        for (stage, span) in self.stages(parts, follows) {
            at += span;
            request.mark(stage, moment(at));
        }
    }

    /// Turns the platter back to a sector that directly follows the last ones, under the
    /// counterfactual assumption that deadlines are met.
    #[inline(always)]
    pub(super) fn catch(&mut self, begins: Time, (sector, write): (u64, bool), follows: bool) {
        if follows && self.mechanism.supposes().deadlines_met {
            let place = self.mechanism.layout().locate(sector);
            // The arm rests on its track before it looks for the sector.
            let there = begins + self.mechanism.way_to(&place, write);
            self.mechanism.turn_back(there, place.start);
        }
    }

    /// Returns the stages of an access with their durations, in order of time.
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

    /// Ends the actuator's current work, and starts the next.
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

    /// Stores read sectors in the cache, and starts a read-ahead if no other command prevents it.
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

    /// Admits waiting writes to the write-back cache, oldest first, until one does not fit.
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
