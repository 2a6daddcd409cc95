//! Write commands: into the write-back cache, or directly to the medium.

use super::*;

impl Disk {
    /// Applies a write to the read cache, whose copy of these sectors is stale now.
    pub(super) fn discard_read_sectors(&mut self, now: Time, of: SectorExtent) {
        let range = self.to_medium_range(of);
        self.note_read_ahead_progress(range, now);
        self.read_segments.apply_write(range);
    }

    /// Stores written sectors in a read-cache segment. Stops the read-ahead if it fills that
    /// segment.
    #[cold]
    pub(super) fn keep_written_sectors(&mut self, now: Time, of: SectorExtent) {
        let range = self.to_medium_range(of);
        let taken = self.read_segments.segment_holding(range);
        if taken.is_some() && taken == self.read_ahead.as_ref().map(|ahead| ahead.segment_index) {
            self.detach_segment(now);
        }
        self.read_segments.keep_range(range);
    }

    /// Decodes a write when the arm is idle: stops the read-ahead and waits for its seek or sector.
    /// Queues a write that finds no space.
    #[cold]
    pub(super) fn decode_when_idle(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = sector_extent(request.sector, request.end());
        let written = self.write_back_cache.as_ref();
        if !self.writes_awaiting_buffer.is_empty() || written.is_some_and(|one| !one.has_room(of)) {
            self.writes_awaiting_buffer.push_back(id);
            self.start_media_work(now, requests);
            return;
        }
        if self.read_ahead.is_some() {
            self.detach_segment(now);
            self.note_wait_for_arm(now);
        }
        self.decode(now.max(self.idle_since), requests, id);
    }

    /// Accepts a write into the write-back cache, or queues it until there is space.
    pub(super) fn buffer_write(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = sector_extent(request.sector, request.end());
        let written = self
            .write_back_cache
            .as_ref()
            .expect("a disk with a write cache");
        if !self.writes_awaiting_buffer.is_empty() || !written.has_room(of) {
            self.writes_awaiting_buffer.push_back(id);
            self.start_media_work(now, requests);
            return;
        }
        self.transfer_into_buffer(now, requests, id);
        self.start_media_work(now, requests);
    }

    /// Transfers a write into the write-back cache, and finishes the command.
    pub(super) fn transfer_into_buffer(
        &mut self,
        now: Time,
        requests: &mut Requests,
        id: RequestId,
    ) {
        self.note_answer(AnswerSource::WriteCache);
        let request = &mut requests[id];
        let crossing = self.link.transfer_write(now, request.sectors);
        request.book_stage(Stage::Destage, moment(now));
        request.book_stage(Stage::BusWait, moment(crossing.start));
        request.book_stage(Stage::BusTransfer, moment(crossing.end));
        let of = sector_extent(request.sector, request.end());
        let number = self.take_sequence_number();
        let (layout, per_medium) = (self.mechanism.layout(), self.medium_sectors);
        let locate = |sector: u64| {
            let on_medium = per_medium.round_down(sector);
            (on_medium, layout.position_of(on_medium))
        };
        if let Some(written) = &mut self.write_back_cache {
            written.add_write(of, (crossing.end, number), locate);
        }
        self.schedule_completion(crossing.end, requests, id);
    }

    /// Drops pending sectors from the write-back cache.
    pub(super) fn discard_sectors(&mut self, of: SectorExtent) {
        let (layout, per_medium) = (self.mechanism.layout(), self.medium_sectors);
        let locate = |sector: u64| {
            let on_medium = per_medium.round_down(sector);
            (on_medium, layout.position_of(on_medium))
        };
        if let Some(written) = &mut self.write_back_cache {
            written.discard(of, locate);
        }
    }

    /// Queues a write that must reach the medium before it completes. The arm seeks while the data
    /// cross the link; the platter waits for the data until the link can stay ahead of it.
    pub(super) fn write_through(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = sector_extent(request.sector, request.end());
        let crossing = self.link.transfer_write(now, request.sectors);
        let run = self
            .mechanism
            .layout()
            .run_at(self.medium_sectors.round_down(of.first_sector));
        let place = run.position;
        let passing = |sectors: u64| {
            let others = sectors.min(u64::from(place.sectors_per_track) - 1);
            let angle = place.sector_angle.saturating_mul(others);
            self.mechanism.spindle().turning_time(angle)
        };
        let crossed = |sectors: u64| {
            let sectors = sectors.min(u64::from(request.sectors));
            crossing.start + self.link.write_transfer_time(sectors as u32)
        };
        let before_end = |time: Time| Time(crossing.end.0.saturating_sub(time.0));
        let on_medium = self.medium_sectors.round_up(of.sectors());
        let on_track = on_medium.min(run.sector_count.into());
        // A write that may start at any sector of a track needs all of them there. Those of other
        // tracks cross while these pass.
        let ready = match self.specification.mechanism.zero_latency_writes {
            true => crossed(on_track * self.medium_sectors.sectors_per_medium_sector())
                .max(before_end(passing(on_track))),
            false => crossed(1).max(before_end(passing(on_medium.saturating_sub(1)))),
        };
        self.discard_sectors(of);
        self.enqueue(now, requests, (id, 0), (crossing.start, ready));
    }

    /// Writes the sectors of a command to the medium.
    pub(super) fn start_write(
        &mut self,
        free: ArmAvailability,
        requests: &mut Requests,
        queued: &QueuedCommand,
    ) {
        let request = &mut requests[queued.id];
        let of = sector_extent(request.sector, request.end());
        let access = self.write_access(of);
        let begins = free
            .available_at
            .max(self.earliest_write_time(queued.ready_at, access.first_sector));
        let missed = self.follows_last_sectors(access.first_sector, queued.first_run.as_ref());
        self.classify_latency(begins, (access.first_sector, true), missed);
        let observed = self
            .observation
            .is_some()
            .then(|| self.build_access(begins, (&access, 0)));
        let parts = self.write_medium(begins, &access);
        if let Some(observed) = observed {
            let arrives = observed.arrival;
            self.note_access(observed, arrives + parts.rotational_latency);
        }
        let ends = begins + parts.total();
        let request = &mut requests[queued.id];
        free.book_wait(request, free.available_at, &self.background_arm);
        let marked = Time(request.spans.marked_until().0);
        let waits = queued.bus_end.min(begins).max(marked);
        request.book_stage(Stage::BusWait, moment(waits));
        request.book_stage(Stage::BusTransfer, moment(begins));
        self.book_parts(request, parts, missed);
        self.last_transfer = (self.to_medium_range(of).1, ends);
        self.add_busy_times(parts);
        self.schedule_completion(ends, requests, queued.id);
        self.begin_media_job(ends, MediaWork::Write);
    }

    /// Returns the time at which the arm starts a write whose data are ready at `ready`: the seek
    /// overlaps the transfer over the link.
    fn earliest_write_time(&self, ready: Time, sector: u64) -> Time {
        if self.shingles.is_some() {
            return ready;
        }
        let place = self.mechanism.layout().position_of(sector);
        Time(
            ready
                .0
                .saturating_sub(self.mechanism.arm_move_time(&place, true).0),
        )
    }

    /// Returns the access that writes an extent of host sectors. Medium sectors at its ends that it
    /// fills only in part are read first.
    pub(super) fn write_access(&self, of: SectorExtent) -> MediaAccess {
        let (first, end) = self.to_medium_range(of);
        MediaAccess {
            first_sector: first,
            sector_count: (end - first) as u32,
            is_write: true,
            overhead: Time::ZERO,
            is_first_partial: !self.medium_sectors.is_boundary(of.first_sector),
            is_last_partial: !self.medium_sectors.is_boundary(of.end_sector),
        }
    }
}
