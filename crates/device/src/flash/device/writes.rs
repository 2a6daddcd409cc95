//! Write commands of a flash drive: over the link into the buffer, as space permits.

use super::super::agenda::FlashEvent;
use super::super::link::TransferDirection;
use super::*;

/// Write that waits for buffer space.
#[derive(Clone, Copy, Debug)]
pub(super) struct AwaitingWrite {
    id: RequestId,
    /// Total time for which garbage collection had blocked the host when the write arrived.
    host_blocked_before: Time,
}

impl Flash {
    pub(super) fn begin_wait(&self, now: Time, id: RequestId) -> AwaitingWrite {
        let held = self.collection.host_blocked_time(now);
        AwaitingWrite {
            id,
            host_blocked_before: held,
        }
    }

    /// Admits waiting writes to the buffer as far as there is space, oldest first.
    pub(super) fn admit_writes(&mut self, now: Time, requests: &mut Requests) {
        while let Some(AwaitingWrite {
            id,
            host_blocked_before: held,
        }) = self.writes_awaiting_buffer.front().copied()
        {
            let request = &mut requests[id];
            let admitted = self.commands_by_slot[id.slot()].admitted_units;
            let units = self.buffer.free_units().min(request.sectors - admitted);
            if units == 0 && request.sectors > 0 {
                return;
            }
            self.buffer.reserve_units(units);
            let bytes = u64::from(units) * u64::from(UNIT_BYTES);
            let overhead = self.link_overhead(admitted == 0);
            let crossing = self
                .link
                .transfer(now, TransferDirection::ToDrive, now, bytes, overhead)
                .with_what_if(self.what_if, now);
            // The end of the wait is what the host was held back for.
            let held = self.collection.host_blocked_time(now) - held;
            book_stage(
                request,
                Stage::BufferFull,
                Time(now.0.saturating_sub(held.0)),
            );
            book_stage(request, Stage::Collection, now);
            book_stage(request, Stage::BusWait, crossing.start);
            book_stage(request, Stage::BusTransfer, crossing.end);
            let first = admitted;
            self.event_queue.schedule(
                crossing.end,
                FlashEvent::WriteDataArrived { id, first, units },
            );
            let admitted = admitted + units;
            self.commands_by_slot[id.slot()].admitted_units = admitted;
            if admitted < request.sectors {
                if let Some(front) = self.writes_awaiting_buffer.front_mut() {
                    front.host_blocked_before = self.collection.host_blocked_time(now);
                }
                return;
            }
            self.writes_awaiting_buffer.pop_front();
        }
    }

    /// Handles the arrival of a write's mapping units in the buffer. The write is then complete
    /// unless it must reach the medium.
    pub(super) fn complete_arrival(
        &mut self,
        now: Time,
        requests: &mut Requests,
        id: RequestId,
        first: u32,
        units: u32,
    ) {
        let request = &requests[id];
        let sector = request.sector as u32 + first;
        let through = self.is_write_through(request);
        let owner = through.then_some(id);
        for logical in sector..sector + units {
            let version = (self.contents.as_mut()).map_or(0, |of| of.next_version());
            self.buffer.insert_unit((logical, version), owner);
        }
        self.mark_map_changed(now, (sector, units));
        let command = &mut self.commands_by_slot[id.slot()];
        command.arrived_units += units;
        command.units_left += if through { units } else { 0 };
        if command.arrived_units == request.sectors && !through {
            self.schedule_completion(now, requests, id);
        }
    }

    /// Tests whether a write completes only when its data are programmed.
    fn is_write_through(&self, request: &Request) -> bool {
        let fua = request.operation == Operation::Write { fua: true };
        match self.specification.buffer {
            None => true,
            Some(buffer) => fua && !buffer.is_power_protected,
        }
    }

    /// Notes that a mapping unit of a write that must reach the medium has been programmed. After
    /// the last unit, the command is finished or goes on to the journal.
    pub(super) fn complete_owned_units(
        &mut self,
        now: Time,
        requests: &mut Requests,
        id: RequestId,
        load_time: Time,
        program_start: Time,
    ) {
        let request = &mut requests[id];
        let command = &mut self.commands_by_slot[id.slot()];
        command.units_left -= 1;
        if command.units_left > 0 || command.arrived_units < request.sectors {
            return;
        }
        book_stage(request, Stage::Destage, load_time);
        book_stage(request, Stage::ChannelTransfer, program_start);
        book_stage(request, Stage::FlashProgram, now);
        match self.specification.buffer.is_some() {
            true => self.join_journal(now, requests, id),
            false => self.schedule_completion(now, requests, id),
        }
    }

    /// Trims logical units, and drops them from the buffer.
    pub(super) fn trim_sectors(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let (first, units) = (request.sector as u32, request.sectors);
        let mut trimmed = 0;
        for logical in first..first + units {
            self.buffer.discard_unit(logical);
            let mapped =
                !self.specification.writes_in_place && self.translation_layer.trim(logical);
            trimmed += usize::from(mapped);
        }
        self.flushes.count_map_changes(trimmed);
        let pages = u64::from(units.div_ceil(super::map::PAGE_UNITS));
        let ends = now + Time(self.specification.trim_page_time.0 * pages);
        requests[id].book_stage(Stage::Command, moment(ends));
        self.schedule_completion(ends, requests, id);
    }
}
