//! Read commands: cache hits, joins of a read-ahead, and misses.

use super::*;

impl Disk {
    /// Tests whether the buffer holds sectors of the medium or a read-ahead will reach them.
    pub(super) fn answers(&mut self, range: (u64, u64), now: Time) -> bool {
        self.note_progress(range, now);
        let held = self.segments.find(range);
        held.is_some_and(|found| found.until == range.1) || self.joins(range)
    }

    /// Updates the segment that a read-ahead fills, if a request starts in its range.
    #[inline(always)]
    pub(super) fn note_progress(&mut self, (first, _): (u64, u64), now: Time) {
        if self.whole.is_some() {
            self.note_whole(now);
        }
        let Some(ahead) = &mut self.ahead else { return };
        let (segment_first, _) = self.segments.run(ahead.segment);
        if (segment_first..=ahead.limit).contains(&first) {
            let came_to = ahead.progress(&mut self.mechanism, now);
            self.segments.extend(ahead.segment, came_to);
            if ahead.is_over(now) {
                let (limit, ends) = (ahead.limit, ahead.rest(&mut self.mechanism));
                self.ahead = None;
                self.end_ahead(limit, ends);
            }
        }
    }

    /// Tests whether the current read-ahead has read the first sector, or will reach it.
    fn joins(&self, (first, _): (u64, u64)) -> bool {
        self.ahead.as_ref().is_some_and(|ahead| {
            let (segment_first, _) = self.segments.run(ahead.segment);
            (segment_first..=ahead.limit).contains(&first)
        })
    }

    #[inline(always)]
    pub(super) fn read(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = extent(request.sector, request.end());
        let range = self.medium_range(of);
        if self.has_written(of) {
            self.cross_from_buffer(now, requests, id);
            return;
        }
        self.note_progress(range, now);
        let found = self.segments.find(range);
        if let Some(found) = found.filter(|found| found.until == range.1) {
            self.segments.read(found.segment, range.1);
            self.cross_from_buffer(now, requests, id);
            self.read_further(now, found.segment, range);
            return;
        }
        if self.joins(range) {
            self.join(now, requests, id, range);
            return;
        }
        let held = found.map_or(0, |found| found.until - range.0);
        self.enqueue(now, requests, (id, held), (now, now));
    }

    fn cross_from_buffer(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        self.observe_answer(Answer::Buffer);
        let request = &mut requests[id];
        let crossing = self.link.cross(now, request.sectors);
        request.mark(Stage::BusWait, moment(crossing.begins));
        request.mark(Stage::CacheHit, moment(crossing.ends));
        self.finish(crossing.ends, requests, id);
    }

    /// Serves a read from the read-ahead in progress, which continues at least to the end of the
    /// read.
    fn join(&mut self, now: Time, requests: &mut Requests, id: RequestId, range: (u64, u64)) {
        let Some(mut ahead) = self.ahead.take() else {
            return;
        };
        self.observe_answer(Answer::ReadAhead);
        let (segment_first, _) = self.segments.run(ahead.segment);
        let cache = &self.specification.read_cache;
        let limit = cache.ahead_until(self.mechanism.layout(), range, segment_first);
        let limit = match cache.read_ahead_after_hit {
            true => self.ahead_until(range.1, limit),
            false => range.1,
        };
        let first = match self.is_behind(range.0) {
            true => self.first_of(now, &mut ahead, range),
            false => (now, Time::ZERO),
        };
        let passed = ahead.join(&mut self.mechanism, (range.1, limit)).max(now);
        self.segments.read(ahead.segment, range.0);
        self.ahead = Some(ahead);
        let request = &mut requests[id];
        let passing = Passage {
            first: first.0,
            last: passed,
            whole_by: first.1,
        };
        let crossing = self
            .link
            .cross_while_read((now, now), passing, request.sectors);
        request.mark(Stage::MediaTransfer, moment(passed));
        request.mark(Stage::BusTransfer, moment(crossing.ends));
        self.last_passed = (range.1, passed);
        self.finish(crossing.ends, requests, id);
    }

    /// Tests whether late data delay the link for good: the link is slower than the platter, or
    /// stays reserved during the transfer.
    fn is_behind(&self, sector: u64) -> bool {
        let link_ns = self.link.sector_ns() * self.per_medium.get() as f64;
        let arc = || self.mechanism.layout().locate(sector).arc;
        self.link.is_kept() || link_ns > self.mechanism.spindle().turning(arc()).0 as f64
    }

    /// Returns the time at which the first sector of a range passes in a read-ahead, and the
    /// earliest end of its transfer. For that end, the link starts with each track's sectors when
    /// the track's first sector has passed.
    #[cold]
    fn first_of(&mut self, now: Time, ahead: &mut Ahead, (first, end): (u64, u64)) -> (Time, Time) {
        let sector_ns = self.link.sector_ns() * self.per_medium.get() as f64;
        let passed = ahead.passed(&mut self.mechanism, first);
        let (mut at, mut whole_by) = (first, Time::ZERO);
        loop {
            at += u64::from(self.mechanism.layout().run(at).sectors);
            if at >= end {
                return (passed.unwrap_or(now).max(now), whole_by);
            }
            if let Some(there) = ahead.passed(&mut self.mechanism, at) {
                let others = ((end - at - 1) as f64 * sector_ns + 0.5) as u64;
                whole_by = whole_by.max(there.max(now) + Time(others));
            }
        }
    }

    /// Extends the read-ahead behind a read hit, or starts a new one if the actuator is idle.
    fn read_further(&mut self, now: Time, segment: usize, range: (u64, u64)) {
        if !self.specification.read_cache.read_ahead_after_hit {
            return;
        }
        let (segment_first, segment_end) = self.segments.run(segment);
        let cache = &self.specification.read_cache;
        let limit = cache.ahead_until(self.mechanism.layout(), range, segment_first);
        let limit = self.ahead_until(range.1, limit);
        let idle = self.is_idle();
        match &mut self.ahead {
            Some(ahead) if ahead.segment == segment && limit > ahead.limit => {
                ahead.join(&mut self.mechanism, (range.1, limit));
            }
            None if idle && limit > segment_end => {
                let from = self.arm.stopped(now).at;
                self.begin_ahead(from, segment, ((segment_end, limit), None), 0);
            }
            Some(_) | None => {}
        }
    }
}
