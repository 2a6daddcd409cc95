//! Writes: into the buffer, or past it.

use super::*;

impl Disk {
    /// A write comes into the buffer, or waits for room there.
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

    /// A write comes into the buffer.
    pub(super) fn take_into_buffer(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
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

    /// Sectors that wait to be written are of no use any more.
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

    /// A write goes to the medium before it is done. The arm is on its way while the data
    /// cross the link; the platter waits for them until the link stays ahead of it.
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
        self.enqueue(now, requests, (id, 0, ready));
    }
}
