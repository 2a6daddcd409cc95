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

use super::agenda::{EventQueue, FlashEvent};
use super::buffer::FlashBuffer;
use super::channel::{FlashChannel, TransferPayload};
use super::contents::FlashContents;
use super::die::{FlashDie, LoadReadiness};
use super::link::FlashLink;
use super::places::FlashAddressMap;
use super::pool::SlotPool;
use super::recorder::FlashRecorder;
use super::specification::{
    FlashError, FlashFlushOrder, FlashGeometry, FlashSpecification, InterfaceSpecification,
    UNIT_BYTES,
};
use crate::BusyTimes;
use crate::WhatIf;
use crate::device::COMMAND_SECTORS_MAX;
use crate::{Operation, Request, RequestId, Requests, moment};
use collection::CollectionState;
use diskperf_ftl::{CollectionStep, Ftl, Placement, PreconditionState, ProgrammedUnits};
use diskperf_sim::{RandomStream, Time};
use diskperf_spans::{DieBusy, FlashBusy, FlashTraffic, Nanoseconds, Position, Stage};
use flushes::FlushState;
use map::MapReads;
use programs::PageProgram;
use reads::{ReadOperation, ReadOrigin};
use std::collections::VecDeque;
use writes::AwaitingWrite;

/// Flash drive in virtual time.
#[derive(Clone, Debug)]
pub struct Flash {
    specification: FlashSpecification,
    translation_layer: Ftl,
    address_map: FlashAddressMap,
    event_queue: EventQueue,
    dies: Vec<FlashDie>,
    channels: Vec<FlashChannel>,
    /// Channel transfer time by number of mapping units of a page.
    transfer_times_by_pages: Vec<Time>,
    link: FlashLink,
    buffer: FlashBuffer,
    read_operations: SlotPool<ReadOperation>,
    programs: SlotPool<PageProgram>,
    commands_by_slot: Vec<CommandProgress>,
    in_flight_count: u32,
    /// Time at which the controller has processed all commands so far.
    controller_free_at: Time,
    /// Total processing time of the controller so far, and the start of its current busy period.
    controller_busy_time: Time,
    controller_busy_since: Time,
    /// Writes that wait for buffer space, oldest first.
    writes_awaiting_buffer: VecDeque<AwaitingWrite>,
    collection: CollectionState,
    flushes: FlushState,
    /// First die in the round-robin search for the next program.
    next_die: u32,
    /// Current superblock of each writer, and the word lines that it has used on each die.
    used: [(u32, Vec<u32>); 4],
    die_readiness: Vec<LoadReadiness>,
    /// Map cache; `None` if the entire map is in memory.
    map_cache: Option<MapReads>,
    retry_stream: RandomStream,
    completed_requests: VecDeque<RequestId>,
    busy_times: BusyTimes,
    suspension_count: u64,
    /// Number of mapping units that the host read and that were never written.
    unwritten_read_count: u64,
    written_in_place_units: u64,
    /// Whether the last check found no internal work. Host reads alone do not change that.
    is_idle: bool,
    what_if: WhatIf,
    /// Data version of each physical unit; `None` unless power cuts are modelled.
    contents: Option<Box<FlashContents>>,
    recorder: Option<Box<FlashRecorder>>,
    /// Scratch list of the dies that a read needs.
    touched_dies: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct CommandProgress {
    /// Number of outstanding page reads, or of mapping units still to be programmed.
    units_left: u32,
    /// End of the latest part of the command so far; `spans` has that part's time components.
    last_unit_time: Time,
    stage_spans: Vec<(Stage, Time)>,
    /// Number of the write's mapping units that have found buffer space.
    admitted_units: u32,
    /// Number of the write's mapping units that have arrived in the buffer.
    arrived_units: u32,
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
        specification.validate()?;
        let geometry = &specification.geometry;
        let layer = &specification.translation;
        let ftl = Ftl::new_preconditioned_with_features(
            specification.translation_specification(seed),
            specification.translation_features(),
            layer.precondition,
            match layer.precondition {
                PreconditionState::Fresh => 0,
                _ => layer.filled_share,
            },
        )?;
        let dies = geometry.die_count();
        // Without a buffer, what is on its way to dies has some room all the same.
        let staging = 2 * dies * geometry.program_units();
        let units = specification
            .buffer
            .map_or(staging, |buffer| buffer.unit_count);
        Ok(Self {
            translation_layer: ftl,
            address_map: FlashAddressMap::new(geometry),
            event_queue: EventQueue::default(),
            dies: vec![FlashDie::new(geometry.planes_per_die); dies as usize],
            channels: vec![FlashChannel::default(); geometry.channel_count as usize],
            transfer_times_by_pages: specification.transfer_times(),
            link: FlashLink::new(&specification.interface.link),
            buffer: FlashBuffer::new(units),
            read_operations: SlotPool::default(),
            programs: SlotPool::default(),
            commands_by_slot: Vec::new(),
            in_flight_count: 0,
            controller_free_at: Time::ZERO,
            controller_busy_time: Time::ZERO,
            controller_busy_since: Time::ZERO,
            writes_awaiting_buffer: VecDeque::new(),
            collection: CollectionState::default(),
            flushes: FlushState::default(),
            map_cache: specification
                .map_cache_pages
                .filter(|pages| *pages < layer.logical_units.div_ceil(map::PAGE_UNITS))
                .map(|pages| MapReads::new(pages, layer.logical_units)),
            next_die: 0,
            used: std::array::from_fn(|_| (u32::MAX, vec![0; dies as usize])),
            die_readiness: vec![LoadReadiness::ReadyNow; dies as usize],
            retry_stream: retries,
            completed_requests: VecDeque::new(),
            busy_times: BusyTimes::default(),
            suspension_count: 0,
            unwritten_read_count: 0,
            written_in_place_units: 0,
            is_idle: false,
            what_if: WhatIf::default(),
            contents: layer.models_power_cuts.then(|| {
                let units = geometry.blocks_per_plane * specification.superblock_units();
                Box::new(FlashContents::new(units))
            }),
            recorder: None,
            touched_dies: Vec::new(),
            specification: specification.clone(),
        })
    }

    /// Returns the drive with a counterfactual assumption applied.
    pub fn with_what_if(self, what_if: WhatIf) -> Self {
        Self { what_if, ..self }
    }

    /// Changes the drive's times to those of another specification from now on. Buffer and map
    /// memory grow if the specification has more; the drive's contents and current work stay.
    ///
    /// # Panics
    ///
    /// When geometry or translation layer of the two drives differ.
    pub fn apply_what_if(&mut self, specification: &FlashSpecification, what_if: WhatIf) {
        let (own, other) = (&self.specification, specification);
        assert!(
            own.geometry == other.geometry && own.translation == other.translation,
            "what is supposed is a drive of another shape"
        );
        if let Some(buffer) = specification.buffer {
            self.buffer.enlarge(buffer.unit_count);
        }
        // One without a buffer has more room on the way to its dies, and none to keep data in.
        let buffer = own.buffer.and(specification.buffer);
        let whole = own.translation.logical_units.div_ceil(map::PAGE_UNITS);
        if specification
            .map_cache_pages
            .is_none_or(|pages| pages >= whole)
        {
            self.map_cache = None;
        }
        self.transfer_times_by_pages = specification.transfer_times();
        self.specification = FlashSpecification {
            buffer,
            ..specification.clone()
        };
        self.what_if = what_if;
    }

    /// Returns the geometry of the drive.
    pub fn geometry(&self) -> &FlashGeometry {
        &self.specification.geometry
    }

    /// Returns the sector size, which is the size of a mapping unit, in bytes.
    pub fn sector_bytes(&self) -> u32 {
        UNIT_BYTES
    }

    /// Returns the number of sectors that the host sees.
    pub fn sectors(&self) -> u64 {
        u64::from(self.specification.translation.logical_units)
    }

    /// Returns the channel and die of a sector's data; `None` if it was never written.
    pub fn position(&self, sector: u64) -> Option<Position> {
        let place = self.locate_logical(sector as u32)?;
        let channels = self.specification.geometry.channel_count;
        Some(Position::Flash {
            channel: place.die % channels,
            die: place.die / channels,
        })
    }

    /// Returns the physical place of a logical unit's data; `None` if it was never written.
    fn locate_logical(&self, logical: u32) -> Option<super::places::PagePosition> {
        if self.specification.writes_in_place {
            return Some(self.address_map.locate_in_place(logical));
        }
        if self.translation_layer.is_untouched(logical) {
            // Nothing of a past is in the cache of one bit a cell.
            return Some(
                self.address_map
                    .locate(self.translation_layer.draw_physical_unit(logical), false),
            );
        }
        Some(self.locate_physical(self.translation_layer.read(logical)?))
    }

    fn locate_physical(&self, physical: u32) -> super::places::PagePosition {
        let cached = self
            .translation_layer
            .is_slc_superblock(self.address_map.superblock_of(physical));
        self.address_map.locate(physical, cached)
    }

    /// Returns the maximum transfer size of one command, in bytes.
    pub fn request_bytes_max(&self) -> Option<usize> {
        Some(COMMAND_SECTORS_MAX * self.sector_bytes() as usize)
    }

    /// Reports whether acknowledged writes may be in a buffer that a power cut loses.
    pub fn has_volatile_cache(&self) -> bool {
        self.specification
            .buffer
            .is_some_and(|buffer| !buffer.is_power_protected)
    }

    /// Returns the busy times and transfer counts of the drive so far.
    pub fn busy_times(&self) -> BusyTimes {
        self.busy_times
    }

    /// Returns the counts of programmed mapping units and erases, by cause.
    pub fn traffic(&self) -> &ProgrammedUnits {
        self.translation_layer.traffic()
    }

    /// Returns all traffic counts of the drive, labelled with a drive number.
    pub fn flash_traffic(&self, drive: u32) -> FlashTraffic {
        let traffic = self.translation_layer.traffic();
        FlashTraffic {
            drive_index: drive,
            host_units: traffic.host_units + self.written_in_place_units,
            past_cache_units: traffic.past_cache_units,
            unwritten_read_units: self.unwritten_read_count,
            collection_units: traffic.collection_units,
            folding_units: traffic.folding_units,
            wear_levelling_units: traffic.wear_levelling_units + traffic.refresh_units,
            map_units: traffic.map_units,
            padding_units: traffic.padding_units,
            erase_count: traffic.erase_count,
            suspension_count: self.suspension_count,
        }
    }

    /// Returns the translation layer of the drive.
    pub fn translation_layer(&self) -> &Ftl {
        &self.translation_layer
    }

    /// Describes pending work of the drive and what it waits for, for diagnostics.
    pub fn describe_waiting(&self) -> String {
        format!(
            "{} commands, {} writes without room, {} units in the buffer of which {} wait, {:?}, {:?}, \
             {} free superblocks, collection {:?} with {} copies due, programs of {} units, dies {:?}",
            self.in_flight_count,
            self.writes_awaiting_buffer.len(),
            self.buffer.used_units(),
            self.buffer.waiting_count(),
            self.flushes,
            self.collection,
            self.translation_layer.free_superblocks(),
            self.translation_layer.next_collection_step(),
            self.translation_layer.copies_due(),
            self.specification.geometry.program_units(),
            self.die_readiness,
        )
    }

    /// Returns the number of programs and erases suspended for reads.
    pub fn suspension_count(&self) -> u64 {
        self.suspension_count
    }

    /// Returns the busy time of all dies together, by kind of work.
    pub fn die_busy_times(&self) -> [Time; DieBusy::ALL.len()] {
        let mut sums = [Time::ZERO; DieBusy::ALL.len()];
        for die in &self.dies {
            for (sum, busy) in sums.iter_mut().zip(&die.busy) {
                *sum += *busy;
            }
        }
        sums
    }

    /// Returns the transfer time of all channels together.
    pub fn channel_busy_time(&self) -> Time {
        self.channels.iter().map(FlashChannel::busy_time).sum()
    }

    /// Returns the busy times of the drive's parts (link, controller, channels, dies) up to `now`,
    /// labelled with a drive number.
    pub fn component_busy_times(&self, drive: u32, now: Time) -> FlashBusy {
        let pending = match self.controller_free_at > now {
            true => self.controller_free_at - self.controller_busy_since.max(now),
            false => Time::ZERO,
        };
        let mean = |sum: Time, parts: usize| moment(Time(sum.0 / parts.max(1) as u64));
        let dies = self.dies.iter().map(|die| die.own_work_end(now)).sum();
        FlashBusy {
            drive_index: drive,
            link: self.link.busy_times(now).map(moment),
            controller_busy: moment(self.controller_busy_time - pending),
            channels_busy: mean(self.channel_busy_time(), self.channels.len()),
            dies_busy: mean(dies, self.dies.len()),
        }
    }

    /// Reports whether the drive accepts another command: fewer are in flight than its queue depth
    /// allows.
    pub fn can_accept_request(&self) -> bool {
        self.in_flight_count < self.interface().queue_depth
    }

    /// Submits a command to the drive.
    ///
    /// # Panics
    ///
    /// When the drive's queue is full, or the drive has no such sectors.
    pub fn accept_request(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        assert!(
            self.can_accept_request(),
            "a command for a queue that is full"
        );
        let request = &requests[id];
        assert!(request.end() <= self.sectors(), "sectors beyond the drive");
        self.in_flight_count += 1;
        self.collection.wake();
        if self.commands_by_slot.len() <= id.slot() {
            self.commands_by_slot
                .resize(id.slot() + 1, CommandProgress::default());
        }
        let command = &mut self.commands_by_slot[id.slot()];
        command.stage_spans.clear();
        (command.units_left, command.last_unit_time) = (0, Time::ZERO);
        (command.admitted_units, command.arrived_units) = (0, 0);
        if self.block_if_draining(id, requests[id].operation) {
            return;
        }
        self.schedule_decoding(now, requests, id);
    }

    /// Returns the time of the next event in the drive if no command arrives; `None` without one.
    pub fn next_event(&self) -> Option<Time> {
        self.event_queue.next_time()
    }

    /// Advances the drive to time `now`, and returns whether a command completed by then.
    pub fn advance(&mut self, now: Time, requests: &mut Requests) -> bool {
        let before = self.completed_requests.len();
        while let Some((at, event)) = self.event_queue.take_due(now) {
            self.is_idle &= self.is_read_event(&event, requests);
            match event {
                FlashEvent::CommandDecoded(id) => self.dispatch_decoded(at, requests, id),
                FlashEvent::WriteDataArrived { id, first, units } => {
                    self.complete_arrival(at, requests, id, first, units);
                }
                FlashEvent::PageSensed(op) => self.complete_sensing(at, op),
                FlashEvent::PageCrossed(op) => self.complete_passed_transfer(at, requests, op),
                FlashEvent::ArrayDone { die, generation } => {
                    self.handle_array_event(at, requests, (die, generation))
                }
                FlashEvent::TransferEnded {
                    channel,
                    generation,
                } => self.handle_transfer_end(at, requests, (channel, generation)),
                FlashEvent::RequestEnded(id) => self.complete_request(at, requests, id),
                FlashEvent::IdleTimeReached { generation } => {
                    self.collection.begin_idle(generation)
                }
            }
            // A command that is over makes nothing possible inside, but that nobody waits.
            if !matches!(event, FlashEvent::RequestEnded(_)) || self.in_flight_count == 0 {
                self.continue_background_work(at, requests);
            }
            self.record_levels(at);
        }
        self.completed_requests.len() > before
    }

    /// Reports whether a completed command waits to be reaped.
    pub fn has_completed_requests(&self) -> bool {
        !self.completed_requests.is_empty()
    }

    /// Removes and returns the oldest completed command, if any.
    pub fn take_completed_request(&mut self) -> Option<RequestId> {
        self.completed_requests.pop_front()
    }

    fn interface(&self) -> &InterfaceSpecification {
        &self.specification.interface
    }

    /// Tests whether something waits for a die, for buffer space, or for garbage collection.
    /// Without such work only reads are in progress, and these need no further decisions.
    fn has_background_work(&self) -> bool {
        !self.writes_awaiting_buffer.is_empty()
            || self.buffer.waiting_count() > 0
            || self.collection.has_work()
            || self.translation_layer.next_collection_step() != CollectionStep::Idle
            || self.translation_layer.wants_collection()
            || self.flushes.has_work()
            || self.journal_is_due()
            || self.map_cache.as_ref().is_some_and(MapReads::has_work)
    }

    /// Tests whether an event belongs to a host read only, and so causes no internal work.
    fn is_read_event(&self, event: &FlashEvent, requests: &Requests) -> bool {
        match *event {
            FlashEvent::CommandDecoded(id) | FlashEvent::RequestEnded(id) => {
                requests[id].operation == Operation::Read && self.map_cache.is_none()
            }
            FlashEvent::PageSensed(op) => {
                matches!(self.read_operations[op].origin, ReadOrigin::Host(_))
            }
            FlashEvent::TransferEnded { channel, .. } => {
                match self.channels[channel as usize].current_payload() {
                    Some(TransferPayload::Read(op)) => {
                        matches!(self.read_operations[op].origin, ReadOrigin::Host(_))
                    }
                    Some(TransferPayload::Program(_)) | None => false,
                }
            }
            FlashEvent::PageCrossed(_)
            | FlashEvent::WriteDataArrived { .. }
            | FlashEvent::ArrayDone { .. }
            | FlashEvent::IdleTimeReached { .. } => false,
        }
    }

    /// Starts the work that has become possible after an event.
    fn continue_background_work(&mut self, now: Time, requests: &mut Requests) {
        if self.is_idle {
            debug_assert!(
                !self.has_background_work(),
                "a read for the host gave the drive work"
            );
            return;
        }
        if !self.has_background_work() {
            self.is_idle = true;
            return;
        }
        self.admit_writes(now, requests);
        if self.specification.writes_in_place {
            self.end_flushes(now, requests);
            self.assign_programs(now);
            return;
        }
        self.advance_collection(now);
        self.end_flushes(now, requests);
        let held = self.blocks_host();
        self.assign_programs(now);
        if !held && self.blocks_host() {
            // The host has opened the last superblock that it gets: copies go on unpaid.
            self.advance_collection(now);
            self.assign_programs(now);
        }
        self.start_due_erases(now);
    }

    /// Starts to process a command as soon as the controller has processed those before it. A long
    /// request counts as several commands.
    fn schedule_decoding(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let interface = &self.specification.interface;
        let request = &mut requests[id];
        let commands = request.sectors.div_ceil(interface.request_units_max).max(1);
        let comes = now + interface.submission_time;
        let free = comes.max(self.controller_free_at);
        let begins = match self.what_if.bypassed_stage {
            Some(Stage::ControllerQueue) => comes,
            _ => free,
        };
        let work = Time(interface.command_time.0 * u64::from(commands));
        if free > self.controller_free_at {
            self.controller_busy_since = free;
        }
        self.controller_busy_time += work;
        self.controller_free_at = free + work;
        let decoded = begins + interface.processing_time_per_unit;
        request.book_stage(Stage::Command, moment(comes));
        request.book_stage(Stage::ControllerQueue, moment(begins));
        request.book_stage(Stage::Command, moment(decoded));
        let looked_up = match request.operation {
            Operation::Read => decoded + self.specification.map_lookup_time,
            _ => decoded,
        };
        request.book_stage(Stage::MapMiss, moment(looked_up));
        self.event_queue
            .schedule(looked_up, FlashEvent::CommandDecoded(id));
    }

    /// Continues with a command that the controller has processed, by kind of operation.
    fn dispatch_decoded(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        match requests[id].operation {
            Operation::Read => {
                let units = (requests[id].sector as u32, requests[id].sectors);
                if !self.begin_map_read(now, id, units) {
                    self.begin_read(now, requests, id);
                }
            }
            Operation::Write { .. } => self
                .writes_awaiting_buffer
                .push_back(self.begin_wait(now, id)),
            Operation::Flush => self.begin_flush(now, requests, id),
            Operation::Discard | Operation::WriteZeroes => self.trim_sectors(now, requests, id),
        }
    }

    /// Finishes a command at time `at`, except for the notification of the host.
    fn schedule_completion(&mut self, at: Time, requests: &mut Requests, id: RequestId) {
        let ends = at + self.interface().completion_time;
        requests[id].book_stage(Stage::Completion, moment(ends));
        self.event_queue
            .schedule(ends, FlashEvent::RequestEnded(id));
    }

    /// Completes a command: the host has been notified.
    fn complete_request(&mut self, now: Time, requests: &mut Requests, id: RequestId) {
        let request = &requests[id];
        self.busy_times.transferred_bytes += u64::from(request.sectors) * u64::from(UNIT_BYTES);
        self.busy_times.transfer_count += 1;
        self.in_flight_count -= 1;
        self.completed_requests.push_back(id);
        self.release_blocked(now, requests);
        if self.in_flight_count > 0 {
            return;
        }
        if let Some(cache) = &self.specification.slc_cache {
            let generation = self.collection.generation();
            self.event_queue.schedule(
                now + cache.fold_idle_time,
                FlashEvent::IdleTimeReached { generation },
            );
        }
    }

    /// Returns the command's own time on the link, in addition to its data. Only the first transfer
    /// of a command has it.
    fn link_overhead(&self, is_first: bool) -> Time {
        match is_first {
            true => self.interface().link.command_overhead,
            false => Time::ZERO,
        }
    }
}

/// Books time to a stage of a request up to `until`, unless it is already booked that far.
fn book_stage(request: &mut Request, stage: Stage, until: Time) {
    let until: Nanoseconds = moment(until);
    if until > request.spans.marked_until() {
        request.book_stage(stage, until);
    }
}
