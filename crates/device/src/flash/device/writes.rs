//! Write commands of a flash drive: over the link into the buffer, as space permits.

use super::super::agenda::Event;
use super::super::link::Toward;
use super::*;

/// Write that waits for buffer space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crowded {
    id: RequestId,
    /// Total time for which garbage collection had blocked the host when the write arrived.
    held: Time,
}

impl Flash {
    pub(super) fn crowding(&self, now: Time, id: RequestId) -> Crowded {
        let held = self.collecting.held(now);
        Crowded { id, held }
    }

    /// Admits waiting writes to the buffer as far as there is space, oldest first.
    pub(super) fn admit(&mut self, now: Time, requests: &mut Requests) {
        while let Some(Crowded { id, held }) = self.crowded.front().copied() {
            let request = &mut requests[id];
            let admitted = self.commands[id.place()].admitted;
            let units = self.buffer.room().min(request.sectors - admitted);
            if units == 0 && request.sectors > 0 {
                return;
            }
            self.buffer.reserve(units);
            let bytes = u64::from(units) * u64::from(UNIT_BYTES);
            let overhead = self.link_overhead(admitted == 0);
            let crossing = self
                .link
                .cross(now, Toward::Drive, (now, bytes, overhead))
                .supposing(self.what_if, now);
            // The end of the wait is what the host was held back for.
            let held = self.collecting.held(now) - held;
            book(
                request,
                Stage::BufferFull,
                Time(now.0.saturating_sub(held.0)),
            );
            book(request, Stage::Collection, now);
            book(request, Stage::BusWait, crossing.begins);
            book(request, Stage::BusTransfer, crossing.ends);
            let first = admitted;
            self.agenda
                .note(crossing.ends, Event::Arrived { id, first, units });
            let admitted = admitted + units;
            self.commands[id.place()].admitted = admitted;
            if admitted < request.sectors {
                if let Some(front) = self.crowded.front_mut() {
                    front.held = self.collecting.held(now);
                }
                return;
            }
            self.crowded.pop_front();
        }
    }

    /// Handles the arrival of a write's mapping units in the buffer. The write is then complete
    /// unless it must reach the medium.
    pub(super) fn arrived(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (id, first, units): (RequestId, u32, u32),
    ) {
        let request = &requests[id];
        let sector = request.sector as u32 + first;
        let through = self.writes_through(request);
        let owner = through.then_some(id);
        for logical in sector..sector + units {
            let version = (self.contents.as_mut()).map_or(0, |of| of.next_version());
            self.buffer.insert((logical, version), owner);
        }
        self.change_map(now, (sector, units));
        let command = &mut self.commands[id.place()];
        command.arrived += units;
        command.left += if through { units } else { 0 };
        if command.arrived == request.sectors && !through {
            self.finish(now, requests, id);
        }
    }

    /// Tests whether a write completes only when its data are programmed.
    fn writes_through(&self, request: &Request) -> bool {
        let fua = request.operation == Operation::Write { fua: true };
        match self.specification.buffer {
            None => true,
            Some(buffer) => fua && !buffer.protected,
        }
    }

    /// Notes that a mapping unit of a write that must reach the medium has been programmed. After
    /// the last unit, the command is finished or goes on to the journal.
    pub(super) fn owned_programmed(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (id, loads, begun): (RequestId, Time, Time),
    ) {
        let request = &mut requests[id];
        let command = &mut self.commands[id.place()];
        command.left -= 1;
        if command.left > 0 || command.arrived < request.sectors {
            return;
        }
        book(request, Stage::Destage, loads);
        book(request, Stage::ChannelTransfer, begun);
        book(request, Stage::FlashProgram, now);
        match self.specification.buffer.is_some() {
            true => self.join_journal(now, requests, id),
            false => self.finish(now, requests, id),
        }
    }

    /// Trims logical units, and drops them from the buffer.
    pub(super) fn trim(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let (first, units) = (request.sector as u32, request.sectors);
        let mut trimmed = 0;
        for logical in first..first + units {
            self.buffer.forget(logical);
            let mapped = !self.specification.in_place && self.ftl.trim(logical);
            trimmed += usize::from(mapped);
        }
        self.flushes.count(trimmed);
        let pages = u64::from(units.div_ceil(super::map::PAGE_UNITS));
        let ends = now + Time(self.specification.trim_page.0 * pages);
        requests[id].mark(Stage::Command, moment(ends));
        self.finish(ends, requests, id);
    }
}
