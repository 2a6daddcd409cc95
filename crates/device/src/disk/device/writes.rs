//! Write commands: into the write-back cache, or directly to the medium.

use super::*;

impl Disk {
    /// Applies a write to the read cache, whose copy of these sectors is stale now.
    pub(super) fn drop_read(&mut self, now: Time, of: Extent) {
        let range = self.medium_range(of);
        self.note_progress(range, now);
        self.segments.write(range);
    }

    /// Stores written sectors in a read-cache segment. Stops the read-ahead if it fills that
    /// segment.
    #[cold]
    pub(super) fn keep_written(&mut self, now: Time, of: Extent) {
        let range = self.medium_range(of);
        let taken = self.segments.keeps_in(range);
        if taken.is_some() && taken == self.ahead.as_ref().map(|ahead| ahead.segment) {
            self.leave_segment(now);
        }
        self.segments.keep(range);
    }

    /// Accepts a write into the write-back cache, or queues it until there is space.
    pub(super) fn buffer(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = extent(request.sector, request.end());
        let written = self.written.as_ref().expect("a disk with a write cache");
        if !self.crowded.is_empty() || !written.has_room(of) {
            self.crowded.push_back(id);
            self.start(now, requests);
            return;
        }
        self.take_into_buffer(now, requests, id);
        self.start(now, requests);
    }

    /// Transfers a write into the write-back cache, and finishes the command.
    pub(super) fn take_into_buffer(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        self.observe_answer(Answer::WriteCache);
        let request = &mut requests[id];
        let crossing = self.link.cross_write(now, request.sectors);
        request.mark(Stage::Destage, moment(now));
        request.mark(Stage::BusWait, moment(crossing.begins));
        request.mark(Stage::BusTransfer, moment(crossing.ends));
        let of = extent(request.sector, request.end());
        let number = self.number();
        let (layout, per_medium) = (self.mechanism.layout(), self.per_medium);
        let locate = |sector: u64| {
            let on_medium = per_medium.down(sector);
            (on_medium, layout.locate(on_medium))
        };
        if let Some(written) = &mut self.written {
            written.write(of, (crossing.ends, number), locate);
        }
        self.finish(crossing.ends, requests, id);
    }

    /// Drops pending sectors from the write-back cache.
    pub(super) fn forget(&mut self, of: Extent) {
        let (layout, per_medium) = (self.mechanism.layout(), self.per_medium);
        let locate = |sector: u64| {
            let on_medium = per_medium.down(sector);
            (on_medium, layout.locate(on_medium))
        };
        if let Some(written) = &mut self.written {
            written.forget(of, locate);
        }
    }

    /// Queues a write that must reach the medium before it completes. The arm seeks while the data
    /// cross the link; the platter waits for the data until the link can stay ahead of it.
    pub(super) fn write_through(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let of = extent(request.sector, request.end());
        let crossing = self.link.cross_write(now, request.sectors);
        let place = self
            .mechanism
            .layout()
            .locate(self.per_medium.down(of.first));
        let on_medium = self.per_medium.up(of.sectors()).saturating_sub(1);
        let passing = self.mechanism.spindle().turning(
            place
                .arc
                .saturating_mul(on_medium.min(u64::from(place.sectors_per_track) - 1)),
        );
        let first = crossing.begins + self.link.crossing_of_write(1);
        let ready = first.max(Time(crossing.ends.0.saturating_sub(passing.0)));
        self.forget(of);
        self.enqueue(now, requests, (id, 0), (crossing.begins, ready));
    }

    /// Writes the sectors of a command to the medium.
    pub(super) fn write_now(&mut self, free: Free, requests: &mut Requests, queued: &Queued) {
        let request = &mut requests[queued.id];
        let of = extent(request.sector, request.end());
        let access = self.writing(of);
        let begins = free
            .at
            .max(self.begins_to_write(queued.ready, access.sector));
        let missed = self.follows(access.sector, queued.run.as_ref());
        self.catch(begins, (access.sector, true), missed);
        let observed = self
            .observed
            .is_some()
            .then(|| self.observed_access(begins, (&access, 0)));
        let parts = self.write_medium(begins, &access);
        if let Some(observed) = observed {
            let arrives = observed.arrives;
            self.observe_access(observed, arrives + parts.latency);
        }
        let ends = begins + parts.total();
        let request = &mut requests[queued.id];
        free.mark_wait(request, free.at, &self.arm);
        let marked = Time(request.spans.marked_until().0);
        let waits = queued.bus.min(begins).max(marked);
        request.mark(Stage::BusWait, moment(waits));
        request.mark(Stage::BusTransfer, moment(begins));
        self.mark(request, parts, missed);
        self.last_passed = (self.medium_range(of).1, ends);
        self.book(parts);
        self.finish(ends, requests, queued.id);
        self.begin_job(ends, Work::Write);
    }

    /// Returns the time at which the arm starts a write whose data are ready at `ready`: the seek
    /// overlaps the transfer over the link.
    fn begins_to_write(&self, ready: Time, sector: u64) -> Time {
        if self.shingles.is_some() {
            return ready;
        }
        let place = self.mechanism.layout().locate(sector);
        Time(
            ready
                .0
                .saturating_sub(self.mechanism.way_to(&place, true).0),
        )
    }

    /// Returns the access that writes an extent of host sectors. Medium sectors at its ends that it
    /// fills only in part are read first.
    pub(super) fn writing(&self, of: Extent) -> Access {
        let (first, end) = self.medium_range(of);
        Access {
            sector: first,
            sectors: (end - first) as u32,
            write: true,
            overhead: Time::ZERO,
            part_of_first: !self.per_medium.begins(of.first),
            part_of_last: !self.per_medium.begins(of.end),
        }
    }
}
