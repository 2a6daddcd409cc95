//! Page reads of a flash drive: one operation per page, from the queue of its die to the host.

use super::super::agenda::Event;
use super::super::link::Toward;
use super::super::places::Place;
use super::*;
use diskperf_ftl::UnitCopy;

/// Origin of a page read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Reader {
    /// Page read for a host command.
    Host(RequestId),
    /// Read of a map page, for a command that waits for it, or in the background.
    Map(Option<RequestId>),
    /// Read for garbage collection. The operation holds the copies.
    #[default]
    Collection,
    /// Read without a reader: under a counterfactual assumption, its data bypassed the die or
    /// channel, which it still occupies for as long as before.
    Passed,
}

impl Reader {
    /// Tests whether the read has the precedence of a host read.
    pub(super) fn is_host(self) -> bool {
        matches!(self, Self::Host(_) | Self::Map(Some(_)) | Self::Passed)
    }
}

/// Page read in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadOp {
    pub(super) reader: Reader,
    pub(super) die: u32,
    pub(super) plane: u32,
    /// Number of the page, from word line and page within it.
    pub(super) page: u64,
    /// Number of requested mapping units on the page.
    pub(super) units: u32,
    /// Copies that a read for garbage collection serves.
    pub(super) copies: Vec<UnitCopy>,
    /// Sensing time, and additional time of read retries.
    sense: Time,
    again: Time,
    queued: Time,
    begun: Time,
    pub(super) is_sensed: bool,
    /// Whether the read bypasses all other work of its die, under a counterfactual assumption.
    beside: bool,
    /// Time at which the page was sensed.
    pub(super) sensed: Time,
    /// Work that occupied the die while the read waited, with its end times.
    kept: Vec<(DieBusy, Time)>,
}

impl Flash {
    /// Looks up the mapping units of a read in the buffer and in the map, and queues page reads for
    /// the rest.
    pub(super) fn read(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        let (first, units) = (request.sector as u32, request.sectors);
        let (mut hits, mut last) = (0, None);
        let mut left = 0;
        for logical in first..first + units {
            if self.buffer.has(logical) {
                hits += 1;
                continue;
            }
            // What was never written is zeroes, which are nowhere.
            let Some(place) = self.locate(logical) else {
                hits += 1;
                self.unwritten_reads += 1;
                continue;
            };
            match self.same_page(last, place) {
                Some(op) => self.ops[op].units += 1,
                None => {
                    let op = self.new_read(now, Reader::Host(id), place);
                    left += 1;
                    last = Some((op, place));
                    self.dies[place.die as usize].reads.push_back(op);
                    if !self.touched.contains(&place.die) {
                        self.touched.push(place.die);
                    }
                }
            }
        }
        self.commands[id.place()].left = left;
        if hits > 0 || left == 0 {
            self.answer_hits(now, requests, (id, hits));
        }
        // The dies are seen to when all is in their queues: pages of several planes are
        // sensed together.
        let touched = std::mem::take(&mut self.touched);
        for die in &touched {
            self.stop_for_reads(now, *die);
            self.serve(now, *die);
        }
        self.touched = touched;
        self.touched.clear();
    }

    /// Returns the last page read if a mapping unit at `place` is on the same page. Units of the
    /// preconditioning without an address share a page only up to its size.
    pub(super) fn same_page(&self, last: Option<(u32, Place)>, place: Place) -> Option<u32> {
        let page_units = self.specification.geometry.page_units();
        let (op, of) = last?;
        (of == place && self.ops[op].units < page_units).then_some(op)
    }

    /// Transfers mapping units that need no die (buffered or never written) over the link.
    fn answer_hits(&mut self, now: Time, requests: &mut Requests, (id, hits): (RequestId, u32)) {
        let bytes = u64::from(hits) * u64::from(UNIT_BYTES);
        let overhead = self.link_overhead(true);
        let crossing = self
            .link
            .cross(now, Toward::Host, (now, bytes, overhead))
            .supposing(self.what_if, now);
        let command = &mut self.commands[id.place()];
        command.last = crossing.ends;
        command.spans.extend([
            (Stage::BusWait, crossing.begins),
            (Stage::CacheHit, crossing.ends),
        ]);
        if command.left == 0 {
            self.answered(requests, id);
        }
    }

    /// Creates a page read of one mapping unit.
    pub(super) fn new_read(&mut self, now: Time, reader: Reader, place: Place) -> u32 {
        let sense = self.sensing(place);
        let again = self.again(sense);
        let pages = u64::from(self.specification.geometry.pages_per_word_line);
        let number = self.ops.take();
        let op = &mut self.ops[number];
        op.copies.clear();
        op.kept.clear();
        op.reader = reader;
        (op.die, op.plane) = (place.die, place.plane);
        op.page = u64::from(place.word_line) * pages + u64::from(place.page);
        op.units = 1;
        (op.sense, op.again) = (sense, again);
        (op.queued, op.is_sensed, op.beside) = (now, false, false);
        number
    }

    fn sensing(&self, place: Place) -> Time {
        let times = &self.specification.times;
        let read = match &self.specification.cache {
            Some(cache) if place.cached => cache.read,
            Some(_) | None => times.read[place.page as usize],
        };
        self.specification.channel.command + read
    }

    /// Draws the additional time of read retries until the errors can be corrected.
    fn again(&mut self, sense: Time) -> Time {
        let share = self.specification.retry_share;
        let mut again = Time::ZERO;
        while share > 0.0 && self.retries.draw_share() < share {
            again += sense + self.specification.decode;
        }
        again
    }

    /// Starts to sense a page on its plane.
    pub(super) fn sense(&mut self, now: Time, number: u32) {
        let op = &mut self.ops[number];
        let die = &mut self.dies[op.die as usize];
        op.begun = now;
        if op.reader.is_host() {
            die.waited(op.queued, now, &mut op.kept);
        }
        if !op.beside {
            die.reading += 1;
            die.reading_own += u32::from(!op.reader.is_host());
            let plane = &mut die.planes[op.plane as usize];
            assert!(plane.sensing.is_none(), "a plane senses one page at a time");
            plane.sensing = Some(number);
            die.sensing += 1;
        }
        let ends = now + op.sense + op.again;
        self.agenda.note(ends, Event::Sensed(number));
    }

    /// Senses a page for the host beside the die's other work, under a counterfactual assumption.
    /// The die still performs the original read.
    pub(super) fn pass(&mut self, now: Time, number: u32) {
        if self.ops[number].reader == Reader::Passed {
            return;
        }
        let beside = self.beside(number);
        self.sense(now, beside);
    }

    /// Handles the end of sensing: moves the page to the register, if that is free, and queues it
    /// for the channel.
    pub(super) fn sensed(&mut self, now: Time, number: u32) {
        let op = &mut self.ops[number];
        (op.is_sensed, op.sensed) = (true, now);
        let (die, plane) = (op.die, op.plane);
        if op.beside {
            self.queue_read(now, number);
            return;
        }
        if op.reader == Reader::Passed {
            let of = &mut self.dies[die as usize];
            of.planes[plane as usize].sensing = None;
            of.sensing -= 1;
            of.reading -= 1;
            self.ops.give_back(number);
        }
        self.fill_register(now, die, plane);
        self.serve(now, die);
    }

    /// Moves a sensed page into its plane's register, if that is free.
    pub(super) fn fill_register(&mut self, now: Time, die: u32, plane: u32) {
        let of = &mut self.dies[die as usize].planes[plane as usize];
        let Some(number) = of.sensing else { return };
        let op = &self.ops[number];
        if !op.is_sensed {
            return;
        }
        if let Some(held) = of.held {
            if op.reader.is_host() && !self.ops[held].reader.is_host() {
                let channel = self.places.channel(die);
                self.channels[channel as usize].hurry(held);
                self.start_channel(now, channel);
            }
            return;
        }
        (of.sensing, of.held) = (None, Some(number));
        self.dies[die as usize].sensing -= 1;
        self.queue_read(now, number);
    }

    fn queue_read(&mut self, now: Time, number: u32) {
        let op = &self.ops[number];
        let is_host = op.reader.is_host();
        let takes = self.transfer_times[op.units as usize];
        let channel = self.places.channel(op.die);
        let crosses_beside = self.what_if.passes == Some(Stage::ChannelWait)
            && matches!(op.reader, Reader::Host(_))
            && self.channels[channel as usize].carries().is_some();
        if crosses_beside {
            let beside = self.beside(number);
            self.agenda.note(now + takes, Event::Crossed(beside));
        }
        self.channels[channel as usize].queue_read((number, takes), is_host);
        self.start_channel(now, channel);
    }

    /// Splits a host read into a copy that bypasses the die or channel and the original, which
    /// keeps these busy without a reader. Returns the index of the copy.
    fn beside(&mut self, number: u32) -> u32 {
        let beside = self.ops.take();
        self.ops[beside] = ReadOp {
            beside: true,
            ..self.ops[number].clone()
        };
        self.ops[number].reader = Reader::Passed;
        beside
    }

    /// Handles the end of a page transfer that bypassed its channel's queue.
    pub(super) fn crossed(&mut self, now: Time, requests: &mut Requests, number: u32) {
        let takes = self.transfer_times[self.ops[number].units as usize];
        self.read_transferred(now, requests, (number, now - takes));
    }

    /// Handles the end of a page transfer that began on its channel at time `from`.
    pub(super) fn read_transferred(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (number, from): (u32, Time),
    ) {
        let op = &self.ops[number];
        let (die, plane, reader, beside) = (op.die, op.plane, op.reader, op.beside);
        if !beside {
            let of = &mut self.dies[die as usize];
            of.reading -= 1;
            of.reading_own -= u32::from(!reader.is_host());
            of.planes[plane as usize].held = None;
        }
        match reader {
            Reader::Host(id) => self.deliver(now, requests, (number, id, from)),
            Reader::Map(Some(id)) => self.map_page_read(now, requests, id),
            Reader::Map(None) => {}
            Reader::Collection => self.copies_read(number),
            // It crossed beside this.
            Reader::Passed => {}
        }
        self.ops.give_back(number);
        if beside {
            return;
        }
        self.fill_register(now, die, plane);
        self.serve(now, die);
    }

    /// Notes the arrival of a map page. After the last missing page, the host read continues.
    fn map_page_read(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let command = &mut self.commands[id.place()];
        command.left -= 1;
        if command.left == 0 {
            book(&mut requests[id], Stage::MapMiss, now);
            self.read(now, requests, id);
        }
    }

    /// Transfers mapping units of a page over the link to the host.
    fn deliver(
        &mut self,
        now: Time,
        requests: &mut Requests,
        (number, id, from): (u32, RequestId, Time),
    ) {
        let op = &self.ops[number];
        let ready = now + self.specification.decode;
        let bytes = u64::from(op.units) * u64::from(UNIT_BYTES);
        let is_first = self.commands[id.place()].last == Time::ZERO;
        let overhead = self.link_overhead(is_first);
        let crossing = self
            .link
            .cross(now, Toward::Host, (ready, bytes, overhead))
            .supposing(self.what_if, ready);
        let waits = op.kept.iter();
        let waits = waits.map(|(busy, until)| (Stage::DieWait(*busy), *until));
        let spans = waits.chain([
            (Stage::FlashRead, op.begun + op.sense),
            (Stage::ReadRetry, op.begun + op.sense + op.again),
            (Stage::ChannelWait, from),
            (Stage::ChannelTransfer, now),
            (Stage::Decode, ready),
            (Stage::BusWait, crossing.begins),
            (Stage::BusTransfer, crossing.ends),
        ]);
        let command = &mut self.commands[id.place()];
        command.left -= 1;
        if crossing.ends < command.last {
            if command.left == 0 {
                self.answered(requests, id);
            }
            return;
        }
        command.last = crossing.ends;
        if command.left > 0 {
            command.spans.clear();
            command.spans.extend(spans);
            return;
        }
        let request = &mut requests[id];
        spans.for_each(|(stage, until)| book(request, stage, until));
        self.finish(crossing.ends, requests, id);
    }

    /// Finishes a read whose data are all at the host. The part that ended last determines its
    /// stages.
    fn answered(&mut self, requests: &mut Requests, id: RequestId) {
        let command = &self.commands[id.place()];
        for (stage, until) in &command.spans {
            book(&mut requests[id], *stage, *until);
        }
        let last = command.last;
        self.finish(last, requests, id);
    }
}
