//! Write frontiers: open superblocks, and the place of the next mapping unit on their dies and
//! rows.

use crate::collection::Progress;
use crate::features::Allocation;
use crate::ftl::{Ftl, Placement, State};
use crate::specification::{Policy, Separation};
use crate::traffic::Cause;

/// Position of a write frontier whose dies do not take turns.
#[derive(Debug, Clone)]
pub(crate) struct Cursor {
    /// Next offset in the program unit that was begun; `None` if none was.
    begun: Option<u32>,
    /// Number of rows begun on each die.
    rows: Vec<u32>,
}

impl Cursor {
    pub(crate) fn new(dies: u32) -> Self {
        Self {
            begun: None,
            rows: vec![0; dies as usize],
        }
    }
}

/// Writer with its own open superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Host stream with this index (placement identifier).
    Host(u32),
    /// Copies of the garbage collection in progress.
    Copies,
    /// The translation layer itself, for map and journal.
    System,
    /// Writer of the SLC cache (one bit per cell).
    Cache,
}

impl Ftl {
    /// Sets the die for the next new program unit. Takes effect with
    /// [`Allocation::NextFree`](crate::Allocation::NextFree), if the open superblock has a row left
    /// on that die.
    ///
    /// # Panics
    /// If the drive has no such die.
    pub fn prefer_die(&mut self, die: u32) {
        assert!(die < self.specification.geometry.dies, "no die {die}");
        self.preferred = Some(die);
    }

    /// Iterates over the dies on which the writer's open superblock has rows left. These are all
    /// dies when the writer has no open superblock, or when dies take turns.
    pub fn dies_left(&self, writer: Writer) -> impl Iterator<Item = u32> + '_ {
        let geometry = self.specification.geometry;
        let cursor = self
            .frontier_of(writer)
            .and_then(|frontier| self.cursors.get(frontier));
        (0..geometry.dies)
            .filter(move |&die| cursor.is_none_or(|it| it.rows[die as usize] < geometry.rows))
    }

    /// Reports whether the writer has a partly filled program unit.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn has_begun(&self, writer: Writer) -> bool {
        let open = |frontier: usize| self.frontiers[frontier].map(|open| (frontier, open));
        (self.frontier_of(writer).and_then(open))
            .is_some_and(|(frontier, open)| self.is_filled_in_part(frontier, open))
    }

    /// Pads the writer's open program unit, so that it can be programmed now, and returns the last
    /// padded place. Returns `None` if no program unit was begun. Where host and copies share a
    /// superblock, also returns `None` while copies need all of its remaining space: they will fill
    /// the program unit.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn pad_writer(&mut self, writer: Writer) -> Option<Placement> {
        self.pad_frontier(self.frontier_of(writer)?)
    }

    pub(crate) fn pad_frontier(&mut self, frontier: usize) -> Option<Placement> {
        let mut last = None;
        while let Some(open) = self.frontiers[frontier] {
            if self.needs_all(open) || !self.is_filled_in_part(frontier, open) {
                break;
            }
            let stream = self.superblocks[open as usize].stream;
            last = self.place(frontier, stream, Cause::Padding);
            self.close_if_full(open);
        }
        last
    }

    fn frontier_of(&self, writer: Writer) -> Option<usize> {
        let streams = self.specification.streams;
        match writer {
            Writer::Host(stream) => {
                assert!(stream < streams, "stream {stream} is not open");
                Some(stream as usize)
            }
            Writer::Copies => self.collection.as_ref().map(|it| it.frontier),
            Writer::System => (self.features.system_units > 0).then(|| self.system_frontier()),
            Writer::Cache => self.features.cache.map(|_| self.cache_frontier()),
        }
    }

    pub(crate) fn system_frontier(&self) -> usize {
        (self.specification.streams + self.specification.moving_frontiers()) as usize
    }

    pub(crate) fn cache_frontier(&self) -> usize {
        self.frontiers.len() - 1
    }

    fn is_filled_in_part(&self, frontier: usize, open: u32) -> bool {
        match self.cursors.get(frontier) {
            Some(cursor) => cursor.begun.is_some(),
            None => !self.superblocks[open as usize]
                .written
                .is_multiple_of(self.program_units(open)),
        }
    }

    /// Returns the number of data units that a superblock holds.
    pub(crate) fn capacity(&self, superblock: u32) -> u32 {
        match self.bits(superblock) {
            1 => self.data_units,
            bits => self.data_units / bits,
        }
    }

    /// Returns the number of mapping units in one program of a superblock.
    pub(crate) fn program_units(&self, superblock: u32) -> u32 {
        let program_units = self.specification.geometry.program_units;
        match self.bits(superblock) {
            1 => program_units,
            bits => program_units / bits,
        }
    }

    fn bits(&self, superblock: u32) -> u32 {
        match (
            self.superblocks[superblock as usize].cached,
            self.features.cache,
        ) {
            (true, Some(cache)) => cache.bits,
            _ => 1,
        }
    }

    /// Returns the next place of a write frontier; `None` when no superblock is free for it.
    pub(crate) fn place(
        &mut self,
        frontier: usize,
        stream: u32,
        cause: Cause,
    ) -> Option<Placement> {
        let superblock = match self.frontiers[frontier] {
            Some(_) if self.is_reserved(cause) => return None,
            Some(open) => open,
            None => self.open(frontier, stream, cause)?,
        };
        let capacity = self.capacity(superblock);
        let block = &mut self.superblocks[superblock as usize];
        assert!(
            block.written < capacity && block.state == State::Open,
            "programs of {superblock} in order, once"
        );
        let in_turn = block.written;
        block.written += 1;
        if block.written == capacity {
            self.frontiers[frontier] = None;
        }
        let offset = match self.features.allocation {
            Allocation::InTurn => self.offset_of(superblock, in_turn),
            Allocation::NextFree => self.next_offset(frontier, superblock),
        };
        self.clock += 1;
        self.traffic.add(cause);
        let physical = superblock * self.units + offset;
        let block = &self.superblocks[superblock as usize];
        assert!(
            self.reverse[physical as usize] == 0 && !block.in_order,
            "unit {physical} programmed twice"
        );
        let placement = self.placement_at(superblock, offset);
        if self.features.allocation == Allocation::InTurn {
            self.owe_parity_behind(placement);
        }
        Some(placement)
    }

    /// Returns the number of free superblocks reserved for garbage collection.
    fn kept(&self) -> usize {
        self.specification.moving_frontiers().max(1) as usize
    }

    /// Tests whether a shared open superblock is reserved for copies, because no free superblock is
    /// left for them.
    fn is_reserved(&self, cause: Cause) -> bool {
        self.specification.separation == Separation::Mixed
            && cause == Cause::Host
            && self.free.len() < self.kept()
    }

    /// Tests whether copies need the rest of the last shared superblock, so that padding could
    /// leave too little space.
    fn needs_all(&self, open: u32) -> bool {
        let left = self.capacity(open) - self.superblocks[open as usize].written;
        let copies = self.copies_to_place();
        copies > 0 && self.is_reserved(Cause::Host) && copies + self.program_units(open) > left
    }

    /// Returns the next offset of a write frontier whose dies do not take turns.
    fn next_offset(&mut self, frontier: usize, superblock: u32) -> u32 {
        let geometry = self.specification.geometry;
        let program_units = self.program_units(superblock);
        let cursor = &mut self.cursors[frontier];
        let offset = match cursor.begun {
            Some(offset) => offset,
            None => {
                let has_row = |die: &u32| cursor.rows[*die as usize] < geometry.rows;
                let die = match self.preferred.take().filter(has_row) {
                    Some(die) => die,
                    None => (0..geometry.dies)
                        .min_by_key(|&die| cursor.rows[die as usize])
                        .expect("a superblock crosses a die at least"),
                };
                let row = cursor.rows[die as usize];
                cursor.rows[die as usize] += 1;
                self.skip_parity(frontier, superblock, die);
                (row * geometry.dies + die) * program_units
            }
        };
        let cursor = &mut self.cursors[frontier];
        cursor.begun = Some(offset + 1).filter(|next| !next.is_multiple_of(program_units));
        if self.frontiers[frontier].is_none() {
            cursor.rows.fill(0);
        }
        offset
    }

    /// Advances a die past its next row if that holds parity.
    fn skip_parity(&mut self, frontier: usize, superblock: u32, die: u32) {
        let row = self.cursors[frontier].rows[die as usize];
        if row < self.specification.geometry.rows && self.is_parity(row, die) {
            self.cursors[frontier].rows[die as usize] += 1;
            self.owe_parity(superblock, row, die);
        }
    }

    pub(crate) fn placement(&self, physical: u32) -> Placement {
        let (superblock, offset) = self.division.superblock(physical);
        self.placement_at(superblock, offset)
    }

    pub(crate) fn placement_at(&self, superblock: u32, offset: u32) -> Placement {
        let program_units = self.program_units(superblock);
        let (program, unit) = match self.superblocks[superblock as usize].cached {
            true => (offset / program_units, offset % program_units),
            false => self.division.program(offset),
        };
        let (row, die) = self.division.die(program);
        Placement {
            physical: superblock * self.units + offset,
            superblock,
            die,
            row,
            full: unit + 1 == program_units,
        }
    }

    /// Tests whether an offset of a superblock has been placed since the last erase.
    pub(crate) fn has_place(&self, superblock: u32, offset: u32) -> bool {
        let block = &self.superblocks[superblock as usize];
        let Some(number) = self.number_of(superblock, offset) else {
            return false;
        };
        if block.state != State::Open {
            return number < block.written;
        }
        let frontier = self.frontiers.iter().position(|&it| it == Some(superblock));
        let Some(cursor) = frontier.and_then(|frontier| self.cursors.get(frontier)) else {
            return number < block.written;
        };
        let placement = self.placement(superblock * self.units + offset);
        let program_units = self.program_units(superblock);
        let in_begun = (cursor.begun)
            .is_some_and(|next| next / program_units == offset / program_units && offset >= next);
        placement.row < cursor.rows[placement.die as usize] && !in_begun
    }

    /// Opens the free superblock with the lowest erase count; for static wear levelling, the one
    /// with the highest.
    pub(crate) fn open(&mut self, frontier: usize, stream: u32, cause: Cause) -> Option<u32> {
        if self.features.cache.is_some() && frontier == self.cache_frontier() {
            return self.open_cache(frontier, stream);
        }
        // The host leaves what collection needs to go on: superblocks, and, where its erase
        // waits for a journal, that.
        let waits = cause == Cause::Map && self.progress() == Progress::Waiting;
        if matches!(cause, Cause::Host | Cause::Padding | Cause::Map)
            && self.free.len() <= self.kept()
            && !waits
        {
            return None;
        }
        let (_, superblock) = match cause {
            Cause::WearLevelling => self.free.pop_last()?,
            _ => self.free.pop_first()?,
        };
        self.begin_superblock(superblock, frontier, stream);
        Some(superblock)
    }

    pub(crate) fn begin_superblock(&mut self, superblock: u32, frontier: usize, stream: u32) {
        let block = &mut self.superblocks[superblock as usize];
        block.state = State::Open;
        block.stream = stream;
        self.frontiers[frontier] = Some(superblock);
        if let Some(cursor) = self.cursors.get_mut(frontier) {
            cursor.rows.fill(0);
            for die in 0..self.specification.geometry.dies {
                self.skip_parity(frontier, superblock, die);
            }
        }
    }

    /// Closes a superblock when its last mapping unit is placed and no copy to it is in progress.
    pub(crate) fn close_if_full(&mut self, superblock: u32) {
        let capacity = self.capacity(superblock);
        let block = &mut self.superblocks[superblock as usize];
        if block.written < capacity || !matches!(block.state, State::Open | State::Closing) {
            return;
        }
        if block.pending > 0 {
            block.state = State::Closing;
            return;
        }
        block.closed_at = self.clock;
        if block.cached {
            block.state = State::Cached;
            self.cached.push_back(superblock);
            return;
        }
        block.state = State::Closed;
        let closed_at = block.closed_at;
        self.buckets.insert(superblock, block.valid);
        self.note_closing(superblock, closed_at);
    }

    fn note_closing(&mut self, superblock: u32, closed_at: u64) {
        if self.specification.policy == Policy::Fifo {
            self.closing_order.push_back((superblock, closed_at));
        }
    }
}
