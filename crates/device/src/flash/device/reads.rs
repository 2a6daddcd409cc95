//! Page reads of a flash drive: one operation per page, from the queue of its die to the host.

use super::super::agenda::FlashEvent;
use super::super::link::TransferDirection;
use super::super::places::PagePosition;
use super::*;
use diskperf_ftl::UnitCopy;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum ReadOrigin {
    /// Page read for a host command.
    Host(RequestId),
    /// Read of a map page, for a command that waits for it, or in the background.
    Map(Option<RequestId>),
    /// Read for garbage collection. The operation holds the copies.
    #[default]
    GarbageCollection,
    /// Read without a reader: under a counterfactual assumption, its data bypassed the die or
    /// channel, which it still occupies for as long as before.
    Bypassed,
}

impl ReadOrigin {
    /// Tests whether the read has the precedence of a host read.
    pub(super) fn is_host(self) -> bool {
        matches!(self, Self::Host(_) | Self::Map(Some(_)) | Self::Bypassed)
    }
}

/// Page read in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadOperation {
    pub(super) origin: ReadOrigin,
    pub(super) die: u32,
    pub(super) plane: u32,
    /// Number of the page, from word line and page within it.
    pub(super) page_number: u64,
    /// Number of requested mapping units on the page.
    pub(super) unit_count: u32,
    /// Copies that a read for garbage collection serves.
    pub(super) copies: Vec<UnitCopy>,
    /// Sensing time, and additional time of read retries.
    sense_time: Time,
    retry_time: Time,
    queued_at: Time,
    sense_start: Time,
    pub(super) is_sensed: bool,
    /// Whether the read bypasses all other work of its die, under a counterfactual assumption.
    is_beside_other_plane: bool,
    /// Time at which the page was sensed.
    pub(super) sense_end: Time,
    /// Work that occupied the die while the read waited, with its end times.
    wait_causes: Vec<(DieBusy, Time)>,
}

impl Flash {
    /// Looks up the mapping units of a read in the buffer and in the map, and queues page reads for
    /// the rest.
    pub(super) fn begin_read(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let (first, units) = (request.sector as u32, request.sectors);
        let (mut hits, mut last) = (0, None);
        let mut left = 0;
        for logical in first..first + units {
            if self.buffer.contains(logical) {
                hits += 1;
                continue;
            }
            // What was never written is zeroes, which are nowhere.
            let Some(place) = self.locate_logical(logical) else {
                hits += 1;
                self.unwritten_read_count += 1;
                continue;
            };
            match self.continues_page(last, place) {
                Some(op) => self.read_operations[op].unit_count += 1,
                None => {
                    let op = self.create_read(now, ReadOrigin::Host(id), place);
                    left += 1;
                    last = Some((op, place));
                    self.dies[place.die as usize].host_reads.push_back(op);
                    if !self.touched_dies.contains(&place.die) {
                        self.touched_dies.push(place.die);
                    }
                }
            }
        }
        self.commands_by_slot[id.slot()].units_left = left;
        if hits > 0 || left == 0 {
            self.answer_from_buffer(now, requests, (id, hits));
        }
        // The dies are seen to when all is in their queues: pages of several planes are
        // sensed together.
        let touched = std::mem::take(&mut self.touched_dies);
        for die in &touched {
            self.suspend_for_reads(now, *die);
            self.start_die_work(now, *die);
        }
        self.touched_dies = touched;
        self.touched_dies.clear();
    }

    /// Returns the last page read if a mapping unit at `place` is on the same page. Units of the
    /// preconditioning without an address share a page only up to its size.
    pub(super) fn continues_page(
        &self,
        last: Option<(u32, PagePosition)>,
        place: PagePosition,
    ) -> Option<u32> {
        let page_units = self.specification.geometry.page_units();
        let (op, of) = last?;
        (of == place && self.read_operations[op].unit_count < page_units).then_some(op)
    }

    /// Transfers mapping units that need no die (buffered or never written) over the link.
    fn answer_from_buffer(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (id, hits): (RequestId, u32),
    ) {
        let bytes = u64::from(hits) * u64::from(UNIT_BYTES);
        let overhead = self.link_overhead(true);
        let crossing = self
            .link
            .transfer(now, TransferDirection::ToHost, now, bytes, overhead)
            .with_what_if(self.what_if, now);
        let command = &mut self.commands_by_slot[id.slot()];
        command.last_unit_time = crossing.end;
        command.stage_spans.extend([
            (Stage::BusWait, crossing.start),
            (Stage::CacheHit, crossing.end),
        ]);
        if command.units_left == 0 {
            self.complete_answered(requests, id);
        }
    }

    /// Creates a page read of one mapping unit.
    pub(super) fn create_read(
        &mut self,
        now: Time,
        reader: ReadOrigin,
        place: PagePosition,
    ) -> u32 {
        let sense = self.sense_time_of(place);
        let again = self.draw_retry_time(sense);
        let pages = u64::from(self.specification.geometry.pages_per_word_line);
        let number = self.read_operations.take_slot();
        let op = &mut self.read_operations[number];
        op.copies.clear();
        op.wait_causes.clear();
        op.origin = reader;
        (op.die, op.plane) = (place.die, place.plane);
        op.page_number = u64::from(place.word_line) * pages + u64::from(place.page_in_plane);
        op.unit_count = 1;
        (op.sense_time, op.retry_time) = (sense, again);
        (op.queued_at, op.is_sensed, op.is_beside_other_plane) = (now, false, false);
        number
    }

    fn sense_time_of(&self, place: PagePosition) -> Time {
        let times = &self.specification.times;
        let read = match &self.specification.slc_cache {
            Some(cache) if place.is_in_slc_cache => cache.read_time,
            Some(_) | None => times.read_time_by_page[place.page_in_plane as usize],
        };
        self.specification.channel.command_time + read
    }

    /// Draws the additional time of read retries until the errors can be corrected.
    fn draw_retry_time(&mut self, sense: Time) -> Time {
        let share = self.specification.retry_share;
        let mut again = Time::ZERO;
        while share > 0.0 && self.retry_stream.draw_share() < share {
            again += sense + self.specification.decode_time;
        }
        again
    }

    /// Starts to sense a page on its plane.
    pub(super) fn begin_sensing(&mut self, now: Time, number: u32) {
        let op = &mut self.read_operations[number];
        let die = &mut self.dies[op.die as usize];
        op.sense_start = now;
        if op.origin.is_host() {
            die.add_wait_causes(op.queued_at, now, &mut op.wait_causes);
        }
        if !op.is_beside_other_plane {
            die.reads_in_progress += 1;
            die.own_reads_in_progress += u32::from(!op.origin.is_host());
            let plane = &mut die.planes[op.plane as usize];
            assert!(
                plane.sensing_read.is_none(),
                "a plane senses one page at a time"
            );
            plane.sensing_read = Some(number);
            die.sensing_planes += 1;
        }
        let ends = now + op.sense_time + op.retry_time;
        self.event_queue
            .schedule(ends, FlashEvent::PageSensed(number));
    }

    /// Senses a page for the host beside the die's other work, under a counterfactual assumption.
    /// The die still performs the original read.
    pub(super) fn complete_passed_read(&mut self, now: Time, number: u32) {
        if self.read_operations[number].origin == ReadOrigin::Bypassed {
            return;
        }
        let beside = self.count_beside(number);
        self.begin_sensing(now, beside);
    }

    /// Handles the end of sensing: moves the page to the register, if that is free, and queues it
    /// for the channel.
    pub(super) fn complete_sensing(&mut self, now: Time, number: u32) {
        let op = &mut self.read_operations[number];
        (op.is_sensed, op.sense_end) = (true, now);
        let (die, plane) = (op.die, op.plane);
        if op.is_beside_other_plane {
            self.queue_read_transfer(now, number);
            return;
        }
        if op.origin == ReadOrigin::Bypassed {
            let of = &mut self.dies[die as usize];
            of.planes[plane as usize].sensing_read = None;
            of.sensing_planes -= 1;
            of.reads_in_progress -= 1;
            self.read_operations.release_slot(number);
        }
        self.fill_register(now, die, plane);
        self.start_die_work(now, die);
    }

    /// Moves a sensed page into its plane's register, if that is free.
    pub(super) fn fill_register(&mut self, now: Time, die: u32, plane: u32) {
        let of = &mut self.dies[die as usize].planes[plane as usize];
        let Some(number) = of.sensing_read else {
            return;
        };
        let op = &self.read_operations[number];
        if !op.is_sensed {
            return;
        }
        if let Some(held) = of.register_read {
            if op.origin.is_host() && !self.read_operations[held].origin.is_host() {
                let channel = self.address_map.channel_of_die(die);
                self.channels[channel as usize].move_read_forward(held);
                self.start_channel(now, channel);
            }
            return;
        }
        (of.sensing_read, of.register_read) = (None, Some(number));
        self.dies[die as usize].sensing_planes -= 1;
        self.queue_read_transfer(now, number);
    }

    fn queue_read_transfer(&mut self, now: Time, number: u32) {
        let op = &self.read_operations[number];
        let is_host = op.origin.is_host();
        let takes = self.transfer_times_by_pages[op.unit_count as usize];
        let channel = self.address_map.channel_of_die(op.die);
        let crosses_beside = self.what_if.bypassed_stage == Some(Stage::ChannelWait)
            && matches!(op.origin, ReadOrigin::Host(_))
            && self.channels[channel as usize].current_payload().is_some();
        if crosses_beside {
            let beside = self.count_beside(number);
            self.event_queue
                .schedule(now + takes, FlashEvent::PageCrossed(beside));
        }
        self.channels[channel as usize].queue_read((number, takes), is_host);
        self.start_channel(now, channel);
    }

    /// Splits a host read into a copy that bypasses the die or channel and the original, which
    /// keeps these busy without a reader. Returns the index of the copy.
    fn count_beside(&mut self, number: u32) -> u32 {
        let beside = self.read_operations.take_slot();
        self.read_operations[beside] = ReadOperation {
            is_beside_other_plane: true,
            ..self.read_operations[number].clone()
        };
        self.read_operations[number].origin = ReadOrigin::Bypassed;
        beside
    }

    /// Handles the end of a page transfer that bypassed its channel's queue.
    pub(super) fn complete_passed_transfer(
        &mut self,
        now: Time,
        requests: &mut Requests,
        number: u32,
    ) {
        let takes = self.transfer_times_by_pages[self.read_operations[number].unit_count as usize];
        self.complete_read_transfer(now, requests, (number, now - takes));
    }

    /// Handles the end of a page transfer that began on its channel at time `from`.
    pub(super) fn complete_read_transfer(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (number, from): (u32, Time),
    ) {
        let op = &self.read_operations[number];
        let (die, plane, reader, beside) = (op.die, op.plane, op.origin, op.is_beside_other_plane);
        if !beside {
            let of = &mut self.dies[die as usize];
            of.reads_in_progress -= 1;
            of.own_reads_in_progress -= u32::from(!reader.is_host());
            of.planes[plane as usize].register_read = None;
        }
        match reader {
            ReadOrigin::Host(id) => self.deliver_units(now, requests, id, number, from),
            ReadOrigin::Map(Some(id)) => self.complete_map_read(now, requests, id),
            ReadOrigin::Map(None) => {}
            ReadOrigin::GarbageCollection => self.complete_copy_read(number),
            // It crossed beside this.
            ReadOrigin::Bypassed => {}
        }
        self.read_operations.release_slot(number);
        if beside {
            return;
        }
        self.fill_register(now, die, plane);
        self.start_die_work(now, die);
    }

    /// Notes the arrival of a map page. After the last missing page, the host read continues.
    fn complete_map_read(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let command = &mut self.commands_by_slot[id.slot()];
        command.units_left -= 1;
        if command.units_left == 0 {
            book_stage(&mut requests[id], Stage::MapMiss, now);
            self.begin_read(now, requests, id);
        }
    }

    /// Transfers mapping units of a page over the link to the host.
    fn deliver_units(
        &mut self,
        now: Time,
        requests: &mut Requests,
        id: RequestId,
        read_operation: u32,
        transfer_start: Time,
    ) {
        let op = &self.read_operations[read_operation];
        let ready = now + self.specification.decode_time;
        let bytes = u64::from(op.unit_count) * u64::from(UNIT_BYTES);
        let is_first = self.commands_by_slot[id.slot()].last_unit_time == Time::ZERO;
        let overhead = self.link_overhead(is_first);
        let crossing = self
            .link
            .transfer(now, TransferDirection::ToHost, ready, bytes, overhead)
            .with_what_if(self.what_if, ready);
        let waits = op.wait_causes.iter();
        let waits = waits.map(|(busy, until)| (Stage::DieWait(*busy), *until));
        let spans = waits.chain([
            (Stage::FlashRead, op.sense_start + op.sense_time),
            (
                Stage::ReadRetry,
                op.sense_start + op.sense_time + op.retry_time,
            ),
            (Stage::ChannelWait, transfer_start),
            (Stage::ChannelTransfer, now),
            (Stage::Decode, ready),
            (Stage::BusWait, crossing.start),
            (Stage::BusTransfer, crossing.end),
        ]);
        let command = &mut self.commands_by_slot[id.slot()];
        command.units_left -= 1;
        if crossing.end < command.last_unit_time {
            if command.units_left == 0 {
                self.complete_answered(requests, id);
            }
            return;
        }
        command.last_unit_time = crossing.end;
        if command.units_left > 0 {
            command.stage_spans.clear();
            command.stage_spans.extend(spans);
            return;
        }
        let request = &mut requests[id];
        spans.for_each(|(stage, until)| book_stage(request, stage, until));
        self.schedule_completion(crossing.end, requests, id);
    }

    /// Finishes a read whose data are all at the host. The part that ended last determines its
    /// stages.
    fn complete_answered(&mut self, requests: &mut Requests, id: RequestId) {
        let command = &self.commands_by_slot[id.slot()];
        for (stage, until) in &command.stage_spans {
            book_stage(&mut requests[id], *stage, *until);
        }
        let last = command.last_unit_time;
        self.schedule_completion(last, requests, id);
    }
}
