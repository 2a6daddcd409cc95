//! Page programs of a flash drive: data from the buffer, garbage collection, journal or map, and
//! the choice of a die.

use super::super::buffer::BufferedUnit;
use super::super::die::ArrayWork;
use super::*;
use diskperf_ftl::{UnitCopy, Writer};

/// Rows of word lines that a die may run ahead of the slowest die in an open superblock. Parity
/// spans a row of all dies, and controllers keep the parity of few rows. No vendor states the
/// number. Values from 4 to 16 change random-write rates of the catalogue's drives by less than 2
/// %.
const ROWS_AHEAD_MAX: u32 = 6;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ProgramOrigin {
    #[default]
    Host,
    GarbageCollection,
    Journal,
    MapPage,
}

#[derive(Clone, Debug, Default)]
pub(super) struct PageProgram {
    origin: ProgramOrigin,
    die: u32,
    buffered_units: Vec<BufferedUnit>,
    copies: Vec<(UnitCopy, Placement)>,
    /// Placement of the last mapping unit of the program.
    placement: Option<Placement>,
    /// Start of the data transfer, and start of the array operation.
    load_time: Time,
    program_start: Time,
}

impl PageProgram {
    pub(super) fn is_host_program(&self) -> bool {
        self.origin == ProgramOrigin::Host
    }
}

fn index_of_writer(writer: Writer) -> usize {
    match writer {
        Writer::Host(_) => 0,
        Writer::MovedData => 1,
        Writer::LayerOwn => 2,
        Writer::SlcCache => 3,
    }
}

impl Flash {
    /// Assigns page programs (copies, journal, map, host data) to free dies.
    pub(super) fn assign_programs(&mut self, now: Time) {
        if self.specification.writes_in_place {
            while self.assign_in_place_program(now) {}
            return;
        }
        while self.assign_copy_program(now)
            || self.assign_journal(now)
            || self.assign_map_program(now)
            || self.assign_host_program(now)
        {}
    }

    /// Returns the next free die with an unused word line for a writer, if any.
    pub(super) fn find_free_die(&mut self, writer: Writer) -> Option<u32> {
        let dies = self.dies.len() as u32;
        if self
            .die_readiness
            .iter()
            .all(|free| *free == LoadReadiness::NotReady)
        {
            return None;
        }
        // The one that has fallen behind, so that all have word lines left until the end;
        // and none that is too far ahead.
        let used = &self.used[index_of_writer(writer)].1;
        let behind = |die: &u32| {
            let in_turn = (die + dies - self.next_die) % dies;
            (
                self.die_readiness[*die as usize] != LoadReadiness::ReadyNow,
                used[*die as usize],
                in_turn,
            )
        };
        let least = self
            .translation_layer
            .dies_with_rows_left(writer)
            .map(|die| used[die as usize])
            .min()?;
        let free = |die: &u32| {
            self.die_readiness[*die as usize] != LoadReadiness::NotReady
                && used[*die as usize] <= least + ROWS_AHEAD_MAX
        };
        let die = self
            .translation_layer
            .dies_with_rows_left(writer)
            .filter(free)
            .min_by_key(behind)?;
        self.next_die = (die + 1) % dies;
        Some(die)
    }

    /// Queues a program of the next buffered mapping unit on its fixed die (in-place media), and
    /// returns whether there was one.
    fn assign_in_place_program(&mut self, now: Time) -> bool {
        let Some(unit) = self.buffer.take_next_unit() else {
            return false;
        };
        let place = self.address_map.locate_in_place(unit.logical_unit);
        let number = self.new_program(ProgramOrigin::Host, place.die);
        let program = &mut self.programs[number];
        program.buffered_units.push(unit);
        program.placement = Some(Placement {
            physical: unit.logical_unit,
            superblock: 0,
            die: place.die,
            row: place.word_line,
            completes_program: true,
        });
        self.queue_program(now, number, None);
        true
    }

    /// Queues a program of host data if enough are buffered or some are urgent, and returns whether
    /// it did.
    fn assign_host_program(&mut self, now: Time) -> bool {
        let writer = self.translation_layer.next_writer(0);
        let program_units = self.units_per_program(writer == Writer::SlcCache);
        let through = self.specification.buffer.is_none();
        let waits = self.buffer.waiting_count();
        let enough =
            waits >= program_units || self.buffer.has_urgent_units() || through && waits > 0;
        if !enough || self.blocks_host() || self.collection_is_behind() {
            return false;
        }
        let Some(die) = self.find_free_die(writer) else {
            return false;
        };
        let number = self.new_program(ProgramOrigin::Host, die);
        self.translation_layer.prefer_die(die);
        while let Some(unit) = self.buffer.take_next_unit() {
            let placed = self.translation_layer.write(unit.logical_unit, 0);
            let placement = placed.expect("a superblock was free for the host");
            if let Some(contents) = &mut self.contents {
                contents.set_version(placement.physical, unit.version);
            }
            let program = &mut self.programs[number];
            program.buffered_units.push(unit);
            program.placement = Some(placement);
            if placement.completes_program {
                break;
            }
        }
        let padded = self.translation_layer.pad_program_of_writer(writer);
        self.queue_program(now, number, padded);
        true
    }

    pub(super) fn new_program(&mut self, author: ProgramOrigin, die: u32) -> u32 {
        let number = self.programs.take_slot();
        let program = &mut self.programs[number];
        program.buffered_units.clear();
        program.copies.clear();
        (program.origin, program.die, program.placement) = (author, die, None);
        number
    }

    pub(super) fn queue_program(&mut self, now: Time, number: u32, padded: Option<Placement>) {
        let program = &mut self.programs[number];
        program.placement = padded.or(program.placement);
        let placement = program.placement.expect("a program of some unit");
        assert!(placement.completes_program, "a program is whole");
        assert_eq!(
            placement.die, program.die,
            "the die that was preferred for {:?}",
            program.origin
        );
        let writer = match program.origin {
            ProgramOrigin::Host
                if self
                    .translation_layer
                    .is_slc_superblock(placement.superblock) =>
            {
                Writer::SlcCache
            }
            ProgramOrigin::Host => Writer::Host(0),
            ProgramOrigin::GarbageCollection => Writer::MovedData,
            ProgramOrigin::Journal | ProgramOrigin::MapPage => Writer::LayerOwn,
        };
        let (superblock, used) = &mut self.used[index_of_writer(writer)];
        if *superblock != placement.superblock {
            *superblock = placement.superblock;
            used.fill(0);
        }
        used[placement.die as usize] = placement.row + 1;
        let die = &mut self.dies[placement.die as usize];
        match program.origin {
            // Somebody waits for it.
            ProgramOrigin::Journal => die.queued_programs.push_front(number),
            ProgramOrigin::Host | ProgramOrigin::GarbageCollection | ProgramOrigin::MapPage => {
                die.queued_programs.push_back(number)
            }
        }
        self.die_readiness[placement.die as usize] = LoadReadiness::NotReady;
        self.start_die_work(now, placement.die);
    }

    pub(super) fn add_copy(&mut self, number: u32, (copy, placement): (UnitCopy, Placement)) {
        if let Some(contents) = &mut self.contents {
            contents.copy_version(copy.source_physical, placement.physical);
        }
        let program = &mut self.programs[number];
        program.copies.push((copy, placement));
        program.placement = Some(placement);
    }

    pub(super) fn copy_count(&self, number: u32) -> u32 {
        self.programs[number].copies.len() as u32
    }

    /// Drops a page program that got no mapping unit.
    pub(super) fn release_program(&mut self, number: u32) {
        self.programs.release_slot(number);
    }

    /// Returns the number of mapping units in a program of the SLC cache (`cached`) or of the main
    /// area.
    pub(super) fn units_per_program(&self, cached: bool) -> u32 {
        let geometry = &self.specification.geometry;
        match cached {
            true => geometry.program_units() / geometry.pages_per_word_line,
            false => geometry.program_units(),
        }
    }

    /// Starts the transfer of the next program's data to a die.
    pub(super) fn load_program(&mut self, now: Time, die: u32) {
        let of = &mut self.dies[die as usize];
        let number = of
            .queued_programs
            .pop_front()
            .expect("a program that waits");
        of.loading_program = Some(number);
        self.programs[number].load_time = now;
        let placement = self.programs[number].placement.expect("it is placed");
        let page_units = self.specification.geometry.page_units();
        let cached = self
            .translation_layer
            .is_slc_superblock(placement.superblock);
        let pages = self.units_per_program(cached) / page_units;
        let page = self.transfer_times_by_pages[page_units as usize];
        let channel = self.address_map.channel_of_die(die);
        self.channels[channel as usize].queue_program(number, (page, pages));
        self.start_channel(now, channel);
    }

    /// Handles the arrival of a program's data in the register of its die.
    pub(super) fn complete_load(&mut self, now: Time, number: u32) {
        let die = self.programs[number].die;
        let of = &mut self.dies[die as usize];
        assert_eq!(
            of.loading_program.take(),
            Some(number),
            "what was being loaded"
        );
        of.loaded_program = Some(number);
        self.start_die_work(now, die);
    }

    /// Starts the array operation of a program.
    pub(super) fn start_program(&mut self, now: Time, die: u32, number: u32) {
        let program = &mut self.programs[number];
        program.program_start = now;
        let cause = match program.origin {
            ProgramOrigin::Host => DieBusy::Program,
            ProgramOrigin::GarbageCollection | ProgramOrigin::Journal | ProgramOrigin::MapPage => {
                DieBusy::Collection
            }
        };
        let (author, placement) = (program.origin, program.placement);
        let superblock = placement.expect("it was placed").superblock;
        let journal = &self.specification.journal;
        let takes = match (author, &self.specification.slc_cache) {
            (ProgramOrigin::Journal, _) => {
                Time(journal.program_time.0 * u64::from(journal.programs_per_flush))
            }
            (ProgramOrigin::MapPage, _) => journal.program_time,
            (_, Some(cache)) if self.translation_layer.is_slc_superblock(superblock) => {
                cache.program_time
            }
            (ProgramOrigin::Host | ProgramOrigin::GarbageCollection, _) => {
                self.specification.times.program_time
            }
        };
        let takes = self.specification.channel.command_time + takes;
        self.start_array(now, die, ArrayWork::Program(number), cause, takes);
    }

    /// Ends a program: its data are durable, and their buffer space is free.
    pub(super) fn complete_program(&mut self, now: Time, requests: &mut Requests, number: u32) {
        let program = &mut self.programs[number];
        let (author, loads, begun) = (program.origin, program.load_time, program.program_start);
        let placement = program.placement.expect("it was placed");
        let units = std::mem::take(&mut program.buffered_units);
        let copies = std::mem::take(&mut program.copies);
        // What is written in place changes no map.
        if !self.specification.writes_in_place {
            self.flushes.count_map_changes(units.len() + copies.len());
        }
        for unit in &units {
            self.buffer.complete_program(*unit);
            if let Some(owner) = unit.owner_request {
                self.complete_owned_units(now, requests, owner, loads, begun);
            }
        }
        for (copy, placement) in &copies {
            self.translation_layer.complete_copy(*copy, *placement);
        }
        match self.specification.writes_in_place {
            true => self.written_in_place_units += units.len() as u64,
            false => {
                self.translation_layer.complete_program(placement);
                self.note_programmed_units(placement);
            }
        }
        self.collection.complete_copies(copies.len());
        let program = &mut self.programs[number];
        (program.buffered_units, program.copies) = (units, copies);
        self.programs.release_slot(number);
        if author == ProgramOrigin::Journal {
            self.complete_journal_program(now, requests);
        }
    }
}
