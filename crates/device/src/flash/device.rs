//! Flash drive as a device: commands, and the operations that they cause.
//!
//! A command passes the controller. A read needs one operation per page, which waits at its die. A
//! write enters the buffer, from which full programs go to free dies. The agenda orders all events;
//! after each event, the drive starts what has become possible.

mod collection;
mod dies;
mod flushes;
mod map;
pub mod power;
mod programs;
mod reads;
mod recording;
mod writes;

use super::agenda::{Agenda, Event};
use super::buffer::Buffer;
use super::channel::{Channel, Load};
use super::contents::Contents;
use super::die::{Die, Free};
use super::link::Link;
use super::places::Places;
use super::pool::Pool;
use super::recorder::Recorder;
use super::specification::{
    FlashError, FlashSpecification, FlushOrder, InterfaceSpecification, UNIT_BYTES,
};
use crate::Busy;
use crate::WhatIf;
use crate::device::COMMAND_SECTORS_MAX;
use crate::{Operation, Request, RequestId, Requests, moment};
use collection::Collecting;
use diskperf_ftl::{CollectionStep, Ftl, Placement, PreconditionState, ProgrammedUnits};
use diskperf_sim::{RandomStream, Time};
use diskperf_spans::{DieBusy, FlashBusy, FlashTraffic, Nanoseconds, Position, Stage};
use flushes::Flushes;
use map::Map;
use programs::Program;
use reads::{ReadOp, Reader};
use std::collections::VecDeque;
use writes::Crowded;

/// Flash drive in virtual time.
#[derive(Clone, Debug)]
pub struct Flash {
    specification: FlashSpecification,
    ftl: Ftl,
    places: Places,
    agenda: Agenda,
    dies: Vec<Die>,
    channels: Vec<Channel>,
    /// Channel transfer time by number of mapping units of a page.
    transfer_times: Vec<Time>,
    link: Link,
    buffer: Buffer,
    ops: Pool<ReadOp>,
    programs: Pool<Program>,
    /// Commands in flight, by slot of their request.
    commands: Vec<Command>,
    under_way: u32,
    /// Time at which the controller has processed all commands so far.
    controller: Time,
    /// Total processing time of the controller so far, and the start of its current busy period.
    controller_work: Time,
    controller_since: Time,
    /// Writes that wait for buffer space, oldest first.
    crowded: VecDeque<Crowded>,
    collecting: Collecting,
    flushes: Flushes,
    /// First die in the round-robin search for the next program.
    turn: u32,
    /// Current superblock of each writer, and the word lines that it has used on each die.
    used: [(u32, Vec<u32>); 4],
    /// Readiness of each die to accept a program.
    free: Vec<Free>,
    /// Map cache; `None` if the entire map is in memory.
    map: Option<Map>,
    retries: RandomStream,
    done: VecDeque<RequestId>,
    busy: Busy,
    suspensions: u64,
    /// Number of mapping units that the host read and that were never written.
    unwritten_reads: u64,
    written_in_place: u64,
    /// Whether the last check found no internal work. Host reads alone do not change that.
    rests: bool,
    what_if: WhatIf,
    /// Data version of each physical unit; `None` unless power cuts are modelled.
    contents: Option<Box<Contents>>,
    recorder: Option<Box<Recorder>>,
    /// Scratch list of the dies that a read needs.
    touched: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Command {
    /// Number of outstanding page reads, or of mapping units still to be programmed.
    left: u32,
    /// End of the latest part of the command so far; `spans` has that part's time components.
    last: Time,
    spans: Vec<(Stage, Time)>,
    /// Number of the write's mapping units that have found buffer space.
    admitted: u32,
    /// Number of the write's mapping units that have arrived in the buffer.
    arrived: u32,
}

impl Flash {
    /// Creates an idle flash drive. `seed` determines the random choices of its preconditioning and
    /// of its translation layer.
    ///
    /// # Errors
    ///
    /// [`FlashError`] when the specification contradicts itself.
    pub fn new(
        specification: &FlashSpecification,
        (seed, retries): (u64, RandomStream),
    ) -> Result<Self, FlashError> {
        specification.check()?;
        let geometry = &specification.geometry;
        let layer = &specification.layer;
        let ftl = Ftl::new_preconditioned_with_features(
            specification.layer_specification(seed),
            specification.features(),
            layer.past,
            match layer.past {
                PreconditionState::Fresh => 0,
                _ => layer.filled,
            },
        )?;
        let dies = geometry.dies();
        // Without a buffer, what is on its way to dies has some room all the same.
        let staging = 2 * dies * geometry.program_units();
        let units = specification.buffer.map_or(staging, |buffer| buffer.units);
        Ok(Self {
            ftl,
            places: Places::new(geometry),
            agenda: Agenda::default(),
            dies: vec![Die::new(geometry.planes); dies as usize],
            channels: vec![Channel::default(); geometry.channels as usize],
            transfer_times: specification.transfer_times(),
            link: Link::new(&specification.interface.link),
            buffer: Buffer::new(units),
            ops: Pool::default(),
            programs: Pool::default(),
            commands: Vec::new(),
            under_way: 0,
            controller: Time::ZERO,
            controller_work: Time::ZERO,
            controller_since: Time::ZERO,
            crowded: VecDeque::new(),
            collecting: Collecting::default(),
            flushes: Flushes::default(),
            map: specification
                .map_cache_pages
                .filter(|pages| *pages < layer.logical_units.div_ceil(map::PAGE_UNITS))
                .map(|pages| Map::new(pages, layer.logical_units)),
            turn: 0,
            used: std::array::from_fn(|_| (u32::MAX, vec![0; dies as usize])),
            free: vec![Free::Now; dies as usize],
            retries,
            done: VecDeque::new(),
            busy: Busy::default(),
            suspensions: 0,
            unwritten_reads: 0,
            written_in_place: 0,
            rests: false,
            what_if: WhatIf::default(),
            contents: layer.power_cuts.then(|| {
                let units = geometry.blocks * specification.layer_superblock_units();
                Box::new(Contents::new(units))
            }),
            recorder: None,
            touched: Vec::new(),
            specification: specification.clone(),
        })
    }

    /// Returns the drive with a counterfactual assumption applied.
    pub fn supposing(self, what_if: WhatIf) -> Self {
        Self { what_if, ..self }
    }

    /// Changes the drive's times to those of another specification from now on. Buffer and map
    /// memory grow if the specification has more; the drive's contents and current work stay.
    ///
    /// # Panics
    ///
    /// When geometry or translation layer of the two drives differ.
    pub fn suppose(&mut self, specification: &FlashSpecification, what_if: WhatIf) {
        let (own, other) = (&self.specification, specification);
        assert!(
            own.geometry == other.geometry && own.layer == other.layer,
            "what is supposed is a drive of another shape"
        );
        if let Some(buffer) = specification.buffer {
            self.buffer.grow(buffer.units);
        }
        // One without a buffer has more room on the way to its dies, and none to keep data in.
        let buffer = own.buffer.and(specification.buffer);
        let whole = own.layer.logical_units.div_ceil(map::PAGE_UNITS);
        if specification
            .map_cache_pages
            .is_none_or(|pages| pages >= whole)
        {
            self.map = None;
        }
        self.transfer_times = specification.transfer_times();
        self.specification = FlashSpecification {
            buffer,
            ..specification.clone()
        };
        self.what_if = what_if;
    }

    /// Returns the sector size, which is the size of a mapping unit, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        UNIT_BYTES
    }

    /// Returns the number of sectors that the host sees.
    pub fn sectors(&self) -> u64 {
        u64::from(self.specification.layer.logical_units)
    }

    /// Returns the channel and die of a sector's data; `None` if it was never written.
    pub fn position(&self, sector: u64) -> Option<Position> {
        let place = self.locate(sector as u32)?;
        let channels = self.specification.geometry.channels;
        Some(Position::Flash {
            channel: place.die % channels,
            die: place.die / channels,
        })
    }

    /// Returns the physical place of a logical unit's data; `None` if it was never written.
    fn locate(&self, logical: u32) -> Option<super::places::Place> {
        if self.specification.in_place {
            return Some(self.places.in_place(logical));
        }
        if self.ftl.is_untouched(logical) {
            // Nothing of a past is in the cache of one bit a cell.
            return Some(self.places.of(self.ftl.draw_physical_unit(logical), false));
        }
        Some(self.place(self.ftl.read(logical)?))
    }

    fn place(&self, physical: u32) -> super::places::Place {
        let cached = self.ftl.is_slc_superblock(self.places.superblock(physical));
        self.places.of(physical, cached)
    }

    /// Returns the maximum transfer size of one command, in bytes.
    pub fn most_bytes(&self) -> Option<usize> {
        Some(COMMAND_SECTORS_MAX * self.sector_bytes() as usize)
    }

    /// Reports whether acknowledged writes may be in a buffer that a power cut loses.
    pub fn keeps_writes(&self) -> bool {
        self.specification
            .buffer
            .is_some_and(|buffer| !buffer.protected)
    }

    /// Returns the busy times and transfer counts of the drive so far.
    pub fn busy(&self) -> Busy {
        self.busy
    }

    /// Returns the counts of programmed mapping units and erases, by cause.
    pub fn traffic(&self) -> &ProgrammedUnits {
        self.ftl.traffic()
    }

    /// Returns all traffic counts of the drive, labelled with a drive number.
    pub fn counted(&self, drive: u32) -> FlashTraffic {
        let traffic = self.ftl.traffic();
        FlashTraffic {
            drive_index: drive,
            host_units: traffic.host_units + self.written_in_place,
            past_cache_units: traffic.past_cache_units,
            unwritten_read_units: self.unwritten_reads,
            collection_units: traffic.collection_units,
            folding_units: traffic.folding_units,
            wear_levelling_units: traffic.wear_levelling_units + traffic.refresh_units,
            map_units: traffic.map_units,
            padding_units: traffic.padding_units,
            erase_count: traffic.erase_count,
            suspension_count: self.suspensions,
        }
    }

    /// Returns the translation layer of the drive.
    pub fn ftl(&self) -> &Ftl {
        &self.ftl
    }

    /// Describes pending work of the drive and what it waits for, for diagnostics.
    pub fn waiting(&self) -> String {
        format!(
            "{} commands, {} writes without room, {} units in the buffer of which {} wait, {:?}, {:?}, \
             {} free superblocks, collection {:?} with {} copies due, programs of {} units, dies {:?}",
            self.under_way,
            self.crowded.len(),
            self.buffer.used(),
            self.buffer.waits(),
            self.flushes,
            self.collecting,
            self.ftl.free_superblocks(),
            self.ftl.next_collection_step(),
            self.ftl.copies_due(),
            self.specification.geometry.program_units(),
            self.free,
        )
    }

    /// Returns the number of programs and erases suspended for reads.
    pub fn suspensions(&self) -> u64 {
        self.suspensions
    }

    /// Returns the busy time of all dies together, by kind of work.
    pub fn dies_busy(&self) -> [Time; DieBusy::ALL.len()] {
        let mut sums = [Time::ZERO; DieBusy::ALL.len()];
        for die in &self.dies {
            for (sum, busy) in sums.iter_mut().zip(&die.busy) {
                *sum += *busy;
            }
        }
        sums
    }

    /// Returns the transfer time of all channels together.
    pub fn channels_busy(&self) -> Time {
        self.channels.iter().map(Channel::busy).sum()
    }

    /// Returns the busy times of the drive's parts (link, controller, channels, dies) up to `now`,
    /// labelled with a drive number.
    pub fn parts_busy(&self, drive: u32, now: Time) -> FlashBusy {
        let pending = match self.controller > now {
            true => self.controller - self.controller_since.max(now),
            false => Time::ZERO,
        };
        let mean = |sum: Time, parts: usize| moment(Time(sum.0 / parts.max(1) as u64));
        let dies = self.dies.iter().map(|die| die.busy_until(now)).sum();
        FlashBusy {
            drive_index: drive,
            link: self.link.busy(now).map(moment),
            controller_busy: moment(self.controller_work - pending),
            channels_busy: mean(self.channels_busy(), self.channels.len()),
            dies_busy: mean(dies, self.dies.len()),
        }
    }

    /// Reports whether the drive accepts another command: fewer are in flight than its queue depth
    /// allows.
    pub fn takes_requests(&self) -> bool {
        self.under_way < self.interface().queue_depth
    }

    /// Submits a command to the drive.
    ///
    /// # Panics
    ///
    /// When the drive's queue is full, or the drive has no such sectors.
    pub fn take(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(self.takes_requests(), "a command for a queue that is full");
        let request = &requests[id];
        assert!(request.end() <= self.sectors(), "sectors beyond the drive");
        self.under_way += 1;
        self.collecting.wake();
        if self.commands.len() <= id.place() {
            self.commands.resize(id.place() + 1, Command::default());
        }
        let command = &mut self.commands[id.place()];
        command.spans.clear();
        (command.left, command.last) = (0, Time::ZERO);
        (command.admitted, command.arrived) = (0, 0);
        if self.holds_back(id, requests[id].operation) {
            return;
        }
        self.decode(now, requests, id);
    }

    /// Returns the time of the next event in the drive if no command arrives; `None` without one.
    pub fn next_event(&self) -> Option<Time> {
        self.agenda.next()
    }

    /// Advances the drive to time `now`, and returns whether a command completed by then.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.done.len();
        while let Some((at, event)) = self.agenda.take(now) {
            self.rests &= self.is_of_a_read(&event, requests);
            match event {
                Event::Decoded(id) => self.decoded(at, requests, id),
                Event::Arrived { id, first, units } => {
                    self.arrived(at, requests, (id, first, units));
                }
                Event::Sensed(op) => self.sensed(at, op),
                Event::Crossed(op) => self.crossed(at, requests, op),
                Event::Array { die, generation } => self.array(at, requests, (die, generation)),
                Event::Transferred {
                    channel,
                    generation,
                } => self.transferred(at, requests, (channel, generation)),
                Event::Ended(id) => self.end(at, requests, id),
                Event::Idle { generation } => self.collecting.rest(generation),
            }
            // A command that is over makes nothing possible inside, but that nobody waits.
            if !matches!(event, Event::Ended(_)) || self.under_way == 0 {
                self.go_on(at, requests);
            }
            self.record_levels(at);
        }
        self.done.len() > before
    }

    /// Reports whether a completed command waits to be reaped.
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// Removes and returns the oldest completed command, if any.
    pub fn take_done(&mut self) -> Option<RequestId> {
        self.done.pop_front()
    }

    fn interface(&self) -> &InterfaceSpecification {
        &self.specification.interface
    }

    /// Tests whether something waits for a die, for buffer space, or for garbage collection.
    /// Without such work only reads are in progress, and these need no further decisions.
    fn has_work(&self) -> bool {
        !self.crowded.is_empty()
            || self.buffer.waits() > 0
            || self.collecting.has_work()
            || self.ftl.next_collection_step() != CollectionStep::Idle
            || self.ftl.wants_collection()
            || self.flushes.has_work()
            || self.journal_is_due()
            || self.map.as_ref().is_some_and(Map::has_work)
    }

    /// Tests whether an event belongs to a host read only, and so causes no internal work.
    fn is_of_a_read(&self, event: &Event, requests: &Requests) -> bool {
        match *event {
            Event::Decoded(id) | Event::Ended(id) => {
                requests[id].operation == Operation::Read && self.map.is_none()
            }
            Event::Sensed(op) => matches!(self.ops[op].reader, Reader::Host(_)),
            Event::Transferred { channel, .. } => match self.channels[channel as usize].carries() {
                Some(Load::Read(op)) => matches!(self.ops[op].reader, Reader::Host(_)),
                Some(Load::Program(_)) | None => false,
            },
            Event::Crossed(_)
            | Event::Arrived { .. }
            | Event::Array { .. }
            | Event::Idle { .. } => false,
        }
    }

    /// Starts the work that has become possible after an event.
    fn go_on(&mut self, now: Time, requests: &mut Requests) {
        if self.rests {
            debug_assert!(!self.has_work(), "a read for the host gave the drive work");
            return;
        }
        if !self.has_work() {
            self.rests = true;
            return;
        }
        self.admit(now, requests);
        if self.specification.in_place {
            self.end_flushes(now, requests);
            self.assign(now);
            return;
        }
        self.collect(now);
        self.end_flushes(now, requests);
        let held = self.holds_host();
        self.assign(now);
        if !held && self.holds_host() {
            // The host has opened the last superblock that it gets: copies go on unpaid.
            self.collect(now);
            self.assign(now);
        }
        self.erase_if_due(now);
    }

    /// Starts to process a command as soon as the controller has processed those before it. A long
    /// request counts as several commands.
    fn decode(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let interface = &self.specification.interface;
        let request = &mut requests[id];
        let commands = request.sectors.div_ceil(interface.most_units).max(1);
        let comes = now + interface.submission;
        let free = comes.max(self.controller);
        let begins = match self.what_if.passes {
            Some(Stage::ControllerQueue) => comes,
            _ => free,
        };
        let work = Time(interface.command.0 * u64::from(commands));
        if free > self.controller {
            self.controller_since = free;
        }
        self.controller_work += work;
        self.controller = free + work;
        let decoded = begins + interface.processing;
        request.mark(Stage::Command, moment(comes));
        request.mark(Stage::ControllerQueue, moment(begins));
        request.mark(Stage::Command, moment(decoded));
        let looked_up = match request.operation {
            Operation::Read => decoded + self.specification.map_lookup,
            _ => decoded,
        };
        request.mark(Stage::MapMiss, moment(looked_up));
        self.agenda.note(looked_up, Event::Decoded(id));
    }

    /// Continues with a command that the controller has processed, by kind of operation.
    fn decoded(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        match requests[id].operation {
            Operation::Read => {
                let units = (requests[id].sector as u32, requests[id].sectors);
                if !self.reads_map(now, id, units) {
                    self.read(now, requests, id);
                }
            }
            Operation::Write { .. } => self.crowded.push_back(self.crowding(now, id)),
            Operation::Flush => self.begin_flush(now, requests, id),
            Operation::Discard | Operation::WriteZeroes => self.trim(now, requests, id),
        }
    }

    /// Finishes a command at time `at`, except for the notification of the host.
    fn finish(&mut self, at: Time, requests: &mut Requests, id: RequestId) {
        let ends = at + self.interface().completion;
        requests[id].mark(Stage::Completion, moment(ends));
        self.agenda.note(ends, Event::Ended(id));
    }

    /// Completes a command: the host has been notified.
    fn end(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        self.busy.bytes += u64::from(request.sectors) * u64::from(UNIT_BYTES);
        self.busy.transfers += 1;
        self.under_way -= 1;
        self.done.push_back(id);
        self.release(now, requests);
        if self.under_way > 0 {
            return;
        }
        if let Some(cache) = &self.specification.cache {
            let generation = self.collecting.generation();
            self.agenda
                .note(now + cache.idle, Event::Idle { generation });
        }
    }

    /// Returns the command's own time on the link, in addition to its data. Only the first transfer
    /// of a command has it.
    fn link_overhead(&self, is_first: bool) -> Time {
        match is_first {
            true => self.interface().link.command,
            false => Time::ZERO,
        }
    }
}

/// Books time to a stage of a request up to `until`, unless it is already booked that far.
fn book(request: &mut Request, stage: Stage, until: Time) {
    let until: Nanoseconds = moment(until);
    if until > request.spans.marked_until() {
        request.mark(stage, until);
    }
}
