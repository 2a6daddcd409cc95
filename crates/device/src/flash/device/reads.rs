//! Reads: one operation for each page, from the queue of its die to the host.

use super::super::agenda::Event;
use super::super::link::Toward;
use super::super::places::Place;
use super::*;
use diskperf_ftl::Copy;

/// Whose a page read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) enum Reader {
    /// A command's.
    Host(RequestId),
    /// Of a page of the map, which a command waits for or nobody does.
    Map(Option<RequestId>),
    /// Of a collection: the copies are with the operation.
    #[default]
    Collection,
    /// Nobody's any more: somebody had it beside the die or the channel, as is supposed, and
    /// it takes that as long as before.
    Passed,
}

impl Reader {
    /// Whether somebody waits for it.
    pub(super) fn is_host(self) -> bool {
        matches!(self, Self::Host(_) | Self::Map(Some(_)) | Self::Passed)
    }
}

/// A page being read.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadOp {
    pub(super) reader: Reader,
    pub(super) die: u32,
    pub(super) plane: u32,
    /// Word line and page, as one number.
    pub(super) page: u64,
    /// Units that are wanted of it.
    pub(super) units: u32,
    /// Copies that they are, of a collection.
    pub(super) copies: Vec<Copy>,
    /// What sensing takes; and again, if it is done again.
    sense: Time,
    again: Time,
    queued: Time,
    begun: Time,
    pub(super) is_sensed: bool,
    /// Whether it is sensed beside all that its die does, as is supposed of it.
    beside: bool,
    /// When it was in its plane's register.
    pub(super) sensed: Time,
    /// What kept its die while it waited.
    kept: Vec<(DieBusy, Time)>,
}

impl Flash {
    /// A read looks for its units in the buffer and in the map.
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

    /// The last page read, if a unit at this place is of the same page. Units without addresses
    /// are somewhere: more of them than a page holds are another page.
    pub(super) fn same_page(&self, last: Option<(u32, Place)>, place: Place) -> Option<u32> {
        let page_units = self.specification.geometry.page_units();
        let (op, of) = last?;
        (of == place && self.ops[op].units < page_units).then_some(op)
    }

    /// Units that no die is needed for cross the link at once.
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

    /// A page read for `reader`, of one unit so far.
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

    /// What reading a page again takes until its errors can be corrected.
    fn again(&mut self, sense: Time) -> Time {
        let share = self.specification.retry_share;
        let mut again = Time::ZERO;
        while share > 0.0 && self.retries.share() < share {
            again += sense + self.specification.decode;
        }
        again
    }

    /// A plane begins to sense a page.
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

    /// What a host waits for is sensed beside what its die does; the die has it to do all
    /// the same, for nobody.
    pub(super) fn pass(&mut self, now: Time, number: u32) {
        if self.ops[number].reader == Reader::Passed {
            return;
        }
        let beside = self.beside(number);
        self.sense(now, beside);
    }

    /// A page is sensed: it goes into the register, if that is free, and to the channel.
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

    /// What a plane has sensed goes into its register, if that is free.
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

    /// A page that is sensed waits for its channel.
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

    /// A read for the host is taken out of the one that keeps a die or a channel busy, which
    /// is nobody's from here on.
    fn beside(&mut self, number: u32) -> u32 {
        let beside = self.ops.take();
        self.ops[beside] = ReadOp {
            beside: true,
            ..self.ops[number].clone()
        };
        self.ops[number].reader = Reader::Passed;
        beside
    }

    /// A page has crossed beside what its channel carried.
    pub(super) fn crossed(&mut self, now: Time, requests: &mut Requests, number: u32) {
        let takes = self.transfer_times[self.ops[number].units as usize];
        self.read_transferred(now, requests, (number, now - takes));
    }

    /// A page read has crossed the channel, on which it was from a moment on.
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

    /// A page of the map is there; with the last one, a read goes on.
    fn map_page_read(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let command = &mut self.commands[id.place()];
        command.left -= 1;
        if command.left == 0 {
            book(&mut requests[id], Stage::MapMiss, now);
            self.read(now, requests, id);
        }
    }

    /// Units of a page cross the link to the host.
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

    /// All of a read is with the host: its time is that of the last of it.
    fn answered(&mut self, requests: &mut Requests, id: RequestId) {
        let command = &self.commands[id.place()];
        for (stage, until) in &command.spans {
            book(&mut requests[id], *stage, *until);
        }
        let last = command.last;
        self.finish(last, requests, id);
    }
}
