//! Read commands: cache hits, joins of a read-ahead, and misses.

use super::*;

impl Disk {
    /// Tests whether the buffer holds sectors of the medium or a read-ahead will reach them.
    pub(super) fn is_answered_by_buffer(&mut self, range: (u64, u64), now: Time) -> bool {
        self.note_read_ahead_progress(range, now);
        let held = self.read_segments.find_segment(range);
        held.is_some_and(|found| found.end_sector == range.1) || self.joins_read_ahead(range)
    }

    /// Updates the segment that a read-ahead fills, if a request starts in its range.
    #[inline(always)]
    pub(super) fn note_read_ahead_progress(&mut self, (first, _): (u64, u64), now: Time) {
        if self.full_track_read.is_some() {
            self.note_full_track_read(now);
        }
        let Some(ahead) = &mut self.read_ahead else {
            return;
        };
        let (segment_first, _) = self.read_segments.sector_range(ahead.segment_index);
        if (segment_first..=ahead.limit_sector).contains(&first) {
            let came_to = ahead.advance_to(&mut self.mechanism, now);
            self.read_segments
                .extend_segment(ahead.segment_index, came_to);
            if ahead.has_reached_limit(now) {
                let (limit, ends) = (ahead.limit_sector, ahead.finish(&mut self.mechanism));
                self.read_ahead = None;
                self.end_read_ahead(limit, ends);
            }
        }
    }

    /// Tests whether a read waits for the current read-ahead, which has read the first sector or
    /// reaches it next or later.
    fn joins_read_ahead(&self, (first, _): (u64, u64)) -> bool {
        self.read_ahead.as_ref().is_some_and(|ahead| {
            let (segment_first, read_end) = self.read_segments.sector_range(ahead.segment_index);
            let last = match self.specification.read_cache.joins_unread_sectors {
                true => ahead.limit_sector,
                false => read_end,
            };
            (segment_first..=last).contains(&first)
        })
    }

    #[inline(always)]
    pub(super) fn serve_read(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = sector_extent(request.sector, request.end());
        let range = self.to_medium_range(of);
        if self.is_in_write_cache(of) {
            self.transfer_from_buffer(now, requests, id);
            return;
        }
        self.note_read_ahead_progress(range, now);
        let found = self.read_segments.find_segment(range);
        if let Some(found) = found.filter(|found| found.end_sector == range.1) {
            self.read_segments
                .drop_read_sectors(found.segment_index, range.1);
            self.transfer_from_buffer(now, requests, id);
            self.resume_read_ahead(now, found.segment_index, range);
            return;
        }
        if self.joins_read_ahead(range) {
            self.join_read_ahead(now, requests, id, range);
            return;
        }
        let held = found.filter(|_| self.specification.read_cache.uses_partial_hits);
        let held = held.map_or(0, |found| found.end_sector - range.0);
        self.enqueue(now, requests, (id, held), (now, now));
    }

    fn transfer_from_buffer(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        self.note_answer(AnswerSource::Buffer);
        let request = &mut requests[id];
        let crossing = self.link.transfer_read(now, request.sectors);
        request.book_stage(Stage::BusWait, moment(crossing.start));
        request.book_stage(Stage::CacheHit, moment(crossing.end));
        self.schedule_completion(crossing.end, requests, id);
    }

    /// Serves a read from the read-ahead in progress, which continues at least to the end of the
    /// read.
    fn join_read_ahead(
        &mut self,
        now: Time,
        requests: &mut Requests,
        id: RequestId,
        range: (u64, u64),
    ) {
        let Some(mut ahead) = self.read_ahead.take() else {
            return;
        };
        self.note_answer(AnswerSource::ReadAhead);
        let (segment_first, _) = self.read_segments.sector_range(ahead.segment_index);
        let cache = &self.specification.read_cache;
        let limit = cache.read_ahead_end(self.mechanism.layout(), range, segment_first);
        let limit = match cache.resumes_after_hit {
            true => self.shingled_read_ahead_end(range.1, limit),
            false => range.1,
        };
        let first = match self.is_behind_read_ahead(range.0) {
            true => self.first_sector_times(now, &mut ahead, range),
            false => (now, Time::ZERO),
        };
        let passed = ahead
            .join_request(&mut self.mechanism, (range.1, limit))
            .max(now);
        self.read_segments
            .drop_read_sectors(ahead.segment_index, range.0);
        self.read_ahead = Some(ahead);
        let request = &mut requests[id];
        let passing = MediaPassage {
            first_sector_passed: first.0,
            last_sector_passed: passed,
            complete_by: first.1,
        };
        let crossing = self
            .link
            .transfer_while_reading((now, now), passing, request.sectors);
        request.book_stage(Stage::MediaTransfer, moment(passed));
        request.book_stage(Stage::BusTransfer, moment(crossing.end));
        self.last_transfer = (range.1, passed);
        self.schedule_completion(crossing.end, requests, id);
    }

    /// Tests whether late data delay the link for good: the link is slower than the platter, or
    /// stays reserved during the transfer.
    fn is_behind_read_ahead(&self, sector: u64) -> bool {
        let link_ns =
            self.link.read_sector_ns() * self.medium_sectors.sectors_per_medium_sector() as f64;
        let arc = || self.mechanism.layout().position_of(sector).sector_angle;
        self.link.is_held_while_reading()
            || link_ns > self.mechanism.spindle().turning_time(arc()).0 as f64
    }

    /// Returns the time at which the first sector of a range passes in a read-ahead, and the
    /// earliest end of its transfer. For that end, the link starts with each track's sectors when
    /// the track's first sector has passed.
    #[cold]
    fn first_sector_times(
        &mut self,
        now: Time,
        ahead: &mut ReadAheadProgress,
        (first, end): (u64, u64),
    ) -> (Time, Time) {
        let sector_ns =
            self.link.read_sector_ns() * self.medium_sectors.sectors_per_medium_sector() as f64;
        let passed = ahead.passing_time(&mut self.mechanism, first);
        let (mut at, mut whole_by) = (first, Time::ZERO);
        loop {
            at += u64::from(self.mechanism.layout().run_at(at).sector_count);
            if at >= end {
                return (passed.unwrap_or(now).max(now), whole_by);
            }
            if let Some(there) = ahead.passing_time(&mut self.mechanism, at) {
                let others = ((end - at - 1) as f64 * sector_ns + 0.5) as u64;
                whole_by = whole_by.max(there.max(now) + Time(others));
            }
        }
    }

    /// Extends the read-ahead behind a read hit, or starts a new one if the actuator is idle.
    fn resume_read_ahead(&mut self, now: Time, segment: usize, range: (u64, u64)) {
        if !self.specification.read_cache.resumes_after_hit {
            return;
        }
        let (segment_first, segment_end) = self.read_segments.sector_range(segment);
        let cache = &self.specification.read_cache;
        let limit = cache.read_ahead_end(self.mechanism.layout(), range, segment_first);
        let limit = self.shingled_read_ahead_end(range.1, limit);
        let idle = self.is_idle();
        match &mut self.read_ahead {
            Some(ahead) if ahead.segment_index == segment && limit > ahead.limit_sector => {
                ahead.join_request(&mut self.mechanism, (range.1, limit));
            }
            None if idle && limit > segment_end => {
                let from = self.background_arm.availability(now).available_at;
                self.begin_read_ahead(from, segment, ((segment_end, limit), None), 0);
            }
            Some(_) | None => {}
        }
    }
}
