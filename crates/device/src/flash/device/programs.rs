//! Page programs of a flash drive: data from the buffer, garbage collection, journal or map, and
//! the choice of a die.

use super::super::buffer::Waiting;
use super::super::die::Work;
use super::*;
use diskperf_ftl::{UnitCopy, Writer};

/// Rows of word lines that a die may run ahead of the slowest die in an open superblock. Parity
/// spans a row of all dies, and controllers keep the parity of few rows. No vendor states the
/// number. Values from 4 to 16 change random-write rates of the catalogue's drives by less than 2
/// %.
const ROWS_AHEAD: u32 = 6;

/// Origin of a page program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Author {
    #[default]
    Host,
    Collection,
    Journal,
    Map,
}

/// Page program, from its placement to its end.
#[derive(Clone, Debug, Default)]
pub(super) struct Program {
    author: Author,
    die: u32,
    /// Mapping units from the write buffer that the program stores.
    units: Vec<Waiting>,
    copies: Vec<(UnitCopy, Placement)>,
    /// Placement of the last mapping unit of the program.
    placement: Option<Placement>,
    /// Start of the data transfer, and start of the array operation.
    loads: Time,
    begun: Time,
}

impl Program {
    pub(super) fn is_of_host(&self) -> bool {
        self.author == Author::Host
    }
}

/// Returns the index of a writer in per-writer tables.
fn place_of(writer: Writer) -> usize {
    match writer {
        Writer::Host(_) => 0,
        Writer::MovedData => 1,
        Writer::LayerOwn => 2,
        Writer::SlcCache => 3,
    }
}

impl Flash {
    /// Assigns page programs (copies, journal, map, host data) to free dies.
    pub(super) fn assign(&mut self, now: Time) {
        if self.specification.in_place {
            while self.assign_in_place(now) {}
            return;
        }
        while self.assign_copies(now)
            || self.assign_journal(now)
            || self.assign_map(now)
            || self.assign_host(now)
        {}
    }

    /// Returns the next free die with an unused word line for a writer, if any.
    pub(super) fn free_die(&mut self, writer: Writer) -> Option<u32> {
        let dies = self.dies.len() as u32;
        if self.free.iter().all(|free| *free == Free::No) {
            return None;
        }
        // The one that has fallen behind, so that all have word lines left until the end;
        // and none that is too far ahead.
        let used = &self.used[place_of(writer)].1;
        let behind = |die: &u32| {
            let in_turn = (die + dies - self.turn) % dies;
            (
                self.free[*die as usize] != Free::Now,
                used[*die as usize],
                in_turn,
            )
        };
        let least = self
            .ftl
            .dies_with_rows_left(writer)
            .map(|die| used[die as usize])
            .min()?;
        let free = |die: &u32| {
            self.free[*die as usize] != Free::No && used[*die as usize] <= least + ROWS_AHEAD
        };
        let die = self
            .ftl
            .dies_with_rows_left(writer)
            .filter(free)
            .min_by_key(behind)?;
        self.turn = (die + 1) % dies;
        Some(die)
    }

    /// Queues a program of the next buffered mapping unit on its fixed die (in-place media), and
    /// returns whether there was one.
    fn assign_in_place(&mut self, now: Time) -> bool {
        let Some(unit) = self.buffer.next() else {
            return false;
        };
        let place = self.places.in_place(unit.logical);
        let number = self.new_program(Author::Host, place.die);
        let program = &mut self.programs[number];
        program.units.push(unit);
        program.placement = Some(Placement {
            physical: unit.logical,
            superblock: 0,
            die: place.die,
            row: place.word_line,
            completes_program: true,
        });
        self.put(now, number, None);
        true
    }

    /// Queues a program of host data if enough are buffered or some are urgent, and returns whether
    /// it did.
    fn assign_host(&mut self, now: Time) -> bool {
        let writer = self.ftl.next_writer(0);
        let program_units = self.units_by(writer == Writer::SlcCache);
        let through = self.specification.buffer.is_none();
        let waits = self.buffer.waits();
        let enough = waits >= program_units || self.buffer.is_urgent() || through && waits > 0;
        if !enough || self.holds_host() || self.collection_is_behind() {
            return false;
        }
        let Some(die) = self.free_die(writer) else {
            return false;
        };
        let number = self.new_program(Author::Host, die);
        self.ftl.prefer_die(die);
        while let Some(unit) = self.buffer.next() {
            let placed = self.ftl.write(unit.logical, 0);
            let placement = placed.expect("a superblock was free for the host");
            if let Some(contents) = &mut self.contents {
                contents.place(placement.physical, unit.version);
            }
            let program = &mut self.programs[number];
            program.units.push(unit);
            program.placement = Some(placement);
            if placement.completes_program {
                break;
            }
        }
        let padded = self.ftl.pad_program_of_writer(writer);
        self.put(now, number, padded);
        true
    }

    pub(super) fn new_program(&mut self, author: Author, die: u32) -> u32 {
        let number = self.programs.take();
        let program = &mut self.programs[number];
        program.units.clear();
        program.copies.clear();
        (program.author, program.die, program.placement) = (author, die, None);
        number
    }

    /// Queues a complete program on its die.
    pub(super) fn put(&mut self, now: Time, number: u32, padded: Option<Placement>) {
        let program = &mut self.programs[number];
        program.placement = padded.or(program.placement);
        let placement = program.placement.expect("a program of some unit");
        assert!(placement.completes_program, "a program is whole");
        assert_eq!(
            placement.die, program.die,
            "the die that was preferred for {:?}",
            program.author
        );
        let writer = match program.author {
            Author::Host if self.ftl.is_slc_superblock(placement.superblock) => Writer::SlcCache,
            Author::Host => Writer::Host(0),
            Author::Collection => Writer::MovedData,
            Author::Journal | Author::Map => Writer::LayerOwn,
        };
        let (superblock, used) = &mut self.used[place_of(writer)];
        if *superblock != placement.superblock {
            *superblock = placement.superblock;
            used.fill(0);
        }
        used[placement.die as usize] = placement.row + 1;
        let die = &mut self.dies[placement.die as usize];
        match program.author {
            // Somebody waits for it.
            Author::Journal => die.programs.push_front(number),
            Author::Host | Author::Collection | Author::Map => die.programs.push_back(number),
        }
        self.free[placement.die as usize] = Free::No;
        self.serve(now, placement.die);
    }

    /// Adds a copy of garbage collection to a program.
    pub(super) fn add_copy(&mut self, number: u32, (copy, placement): (UnitCopy, Placement)) {
        if let Some(contents) = &mut self.contents {
            contents.copy(copy.source_physical, placement.physical);
        }
        let program = &mut self.programs[number];
        program.copies.push((copy, placement));
        program.placement = Some(placement);
    }

    /// Returns the number of copies in a program.
    pub(super) fn copies_of(&self, number: u32) -> u32 {
        self.programs[number].copies.len() as u32
    }

    /// Drops a page program that got no mapping unit.
    pub(super) fn forget_program(&mut self, number: u32) {
        self.programs.give_back(number);
    }

    /// Returns the number of mapping units in a program of the SLC cache (`cached`) or of the main
    /// area.
    pub(super) fn units_by(&self, cached: bool) -> u32 {
        let geometry = &self.specification.geometry;
        match cached {
            true => geometry.program_units() / geometry.pages_per_word_line,
            false => geometry.program_units(),
        }
    }

    /// Starts the transfer of the next program's data to a die.
    pub(super) fn load(&mut self, now: Time, die: u32) {
        let of = &mut self.dies[die as usize];
        let number = of.programs.pop_front().expect("a program that waits");
        of.loading = Some(number);
        self.programs[number].loads = now;
        let placement = self.programs[number].placement.expect("it is placed");
        let page_units = self.specification.geometry.page_units();
        let cached = self.ftl.is_slc_superblock(placement.superblock);
        let pages = self.units_by(cached) / page_units;
        let page = self.transfer_times[page_units as usize];
        let channel = self.places.channel(die);
        self.channels[channel as usize].queue_program(number, (page, pages));
        self.start_channel(now, channel);
    }

    /// Handles the arrival of a program's data in the register of its die.
    pub(super) fn loaded(&mut self, now: Time, number: u32) {
        let die = self.programs[number].die;
        let of = &mut self.dies[die as usize];
        assert_eq!(of.loading.take(), Some(number), "what was being loaded");
        of.loaded = Some(number);
        self.serve(now, die);
    }

    /// Starts the array operation of a program.
    pub(super) fn start_program(&mut self, now: Time, die: u32, number: u32) {
        let program = &mut self.programs[number];
        program.begun = now;
        let cause = match program.author {
            Author::Host => DieBusy::Program,
            Author::Collection | Author::Journal | Author::Map => DieBusy::Collection,
        };
        let (author, placement) = (program.author, program.placement);
        let superblock = placement.expect("it was placed").superblock;
        let journal = &self.specification.journal;
        let takes = match (author, &self.specification.cache) {
            (Author::Journal, _) => Time(journal.program.0 * u64::from(journal.programs)),
            (Author::Map, _) => journal.program,
            (_, Some(cache)) if self.ftl.is_slc_superblock(superblock) => cache.program,
            (Author::Host | Author::Collection, _) => self.specification.times.program,
        };
        let takes = self.specification.channel.command + takes;
        self.start_array(now, die, (Work::Program(number), cause, takes));
    }

    /// Ends a program: its data are durable, and their buffer space is free.
    pub(super) fn programmed(&mut self, now: Time, requests: &mut Requests, number: u32) {
        let program = &mut self.programs[number];
        let (author, loads, begun) = (program.author, program.loads, program.begun);
        let placement = program.placement.expect("it was placed");
        let units = std::mem::take(&mut program.units);
        let copies = std::mem::take(&mut program.copies);
        // What is written in place changes no map.
        if !self.specification.in_place {
            self.flushes.count(units.len() + copies.len());
        }
        for unit in &units {
            self.buffer.programmed(*unit);
            if let Some(owner) = unit.owner {
                self.owned_programmed(now, requests, (owner, loads, begun));
            }
        }
        for (copy, placement) in &copies {
            self.ftl.complete_copy(*copy, *placement);
        }
        match self.specification.in_place {
            true => self.written_in_place += units.len() as u64,
            false => {
                self.ftl.complete_program(placement);
                self.note_programmed(placement);
            }
        }
        self.collecting.programmed(copies.len());
        let program = &mut self.programs[number];
        (program.units, program.copies) = (units, copies);
        self.programs.give_back(number);
        if author == Author::Journal {
            self.journalled(now, requests);
        }
    }
}
