//! Write frontiers: open superblocks, and the place of the next mapping unit on their dies and
//! rows.

use crate::collection::CollectionStep;
use crate::features::DieAllocation;
use crate::ftl::{Ftl, Placement, SuperblockState};
use crate::specification::{DataSeparation, VictimPolicy};
use crate::traffic::ProgramCause;

/// Position of a write frontier whose dies do not take turns.
#[derive(Debug, Clone)]
pub(crate) struct FrontierCursor {
    /// Next offset in the program unit that was begun; `None` if none was.
    program_in_progress: Option<u32>,
    rows_used_by_die: Vec<u32>,
}

impl FrontierCursor {
    pub(crate) fn new(dies: u32) -> Self {
        Self {
            program_in_progress: None,
            rows_used_by_die: vec![0; dies as usize],
        }
    }
}

/// Writer with its own open superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// Host stream with this index (placement identifier).
    Host(u32),
    /// Copies of the garbage collection in progress.
    MovedData,
    /// The translation layer itself, for map and journal.
    LayerOwn,
    /// Writer of the SLC cache (one bit per cell).
    SlcCache,
}

impl Ftl {
    /// Sets the die for the next new program unit. Takes effect with
    /// [`DieAllocation::PreferredDie`](crate::DieAllocation::PreferredDie), if the open superblock has a row left
    /// on that die.
    ///
    /// # Panics
    /// If the drive has no such die.
    pub fn prefer_die(&mut self, die: u32) {
        assert!(die < self.specification.geometry.die_count, "no die {die}");
        self.preferred_die = Some(die);
    }

    /// Iterates over the dies on which the writer's open superblock has rows left. These are all
    /// dies when the writer has no open superblock, or when dies take turns.
    pub fn dies_with_rows_left(&self, writer: Writer) -> impl Iterator<Item = u32> + '_ {
        let geometry = self.specification.geometry;
        let cursor = self
            .frontier_of_writer(writer)
            .and_then(|frontier| self.cursors.get(frontier));
        (0..geometry.die_count).filter(move |&die| {
            cursor.is_none_or(|it| it.rows_used_by_die[die as usize] < geometry.rows_per_superblock)
        })
    }

    /// Reports whether the writer has a partly filled program unit.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn has_partial_program(&self, writer: Writer) -> bool {
        let open = |frontier: usize| self.open_superblocks[frontier].map(|open| (frontier, open));
        (self.frontier_of_writer(writer).and_then(open))
            .is_some_and(|(frontier, open)| self.is_program_partial(frontier, open))
    }

    /// Pads the writer's open program unit, so that it can be programmed now, and returns the last
    /// padded place. Returns `None` if no program unit was begun. Where host and copies share a
    /// superblock, also returns `None` while copies need all of its remaining space: they will fill
    /// the program unit.
    ///
    /// # Panics
    /// If the drive has no such stream.
    pub fn pad_program_of_writer(&mut self, writer: Writer) -> Option<Placement> {
        self.pad_program_of_frontier(self.frontier_of_writer(writer)?)
    }

    pub(crate) fn pad_program_of_frontier(&mut self, frontier: usize) -> Option<Placement> {
        let mut last = None;
        while let Some(open) = self.open_superblocks[frontier] {
            if self.needs_all_dies(open) || !self.is_program_partial(frontier, open) {
                break;
            }
            let stream = self.superblocks[open as usize].stream;
            last = self.place_unit(frontier, stream, ProgramCause::Padding);
            self.close_if_full(open);
        }
        last
    }

    fn frontier_of_writer(&self, writer: Writer) -> Option<usize> {
        let streams = self.specification.stream_count;
        match writer {
            Writer::Host(stream) => {
                assert!(stream < streams, "stream {stream} is not open");
                Some(stream as usize)
            }
            Writer::MovedData => self.collection.as_ref().map(|it| it.destination_frontier),
            Writer::LayerOwn => (self.features.system_units > 0).then(|| self.system_frontier()),
            Writer::SlcCache => self.features.slc_cache.map(|_| self.cache_frontier()),
        }
    }

    pub(crate) fn system_frontier(&self) -> usize {
        (self.specification.stream_count + self.specification.moved_data_frontiers()) as usize
    }

    pub(crate) fn cache_frontier(&self) -> usize {
        self.open_superblocks.len() - 1
    }

    fn is_program_partial(&self, frontier: usize, open: u32) -> bool {
        match self.cursors.get(frontier) {
            Some(cursor) => cursor.program_in_progress.is_some(),
            None => !self.superblocks[open as usize]
                .placed_count
                .is_multiple_of(self.program_units(open)),
        }
    }

    /// Returns the number of data units that a superblock holds.
    pub(crate) fn capacity_units(&self, superblock: u32) -> u32 {
        match self.bits_per_cell(superblock) {
            1 => self.superblock_data_units,
            bits => self.superblock_data_units / bits,
        }
    }

    pub(crate) fn program_units(&self, superblock: u32) -> u32 {
        let program_units = self.specification.geometry.units_per_program;
        match self.bits_per_cell(superblock) {
            1 => program_units,
            bits => program_units / bits,
        }
    }

    fn bits_per_cell(&self, superblock: u32) -> u32 {
        match (
            self.superblocks[superblock as usize].is_slc,
            self.features.slc_cache,
        ) {
            (true, Some(cache)) => cache.bits_per_cell,
            _ => 1,
        }
    }

    /// Returns the next place of a write frontier; `None` when no superblock is free for it.
    pub(crate) fn place_unit(
        &mut self,
        frontier: usize,
        stream: u32,
        cause: ProgramCause,
    ) -> Option<Placement> {
        let superblock = match self.open_superblocks[frontier] {
            Some(_) if self.may_not_use_reserve(cause) => return None,
            Some(open) => open,
            None => self.open_superblock(frontier, stream, cause)?,
        };
        let capacity = self.capacity_units(superblock);
        let block = &mut self.superblocks[superblock as usize];
        assert!(
            block.placed_count < capacity && block.state == SuperblockState::Open,
            "programs of {superblock} in order, once"
        );
        let in_turn = block.placed_count;
        block.placed_count += 1;
        if block.placed_count == capacity {
            self.open_superblocks[frontier] = None;
        }
        let offset = match self.features.allocation {
            DieAllocation::RoundRobin => self.offset_of_data_unit(superblock, in_turn),
            DieAllocation::PreferredDie => self.next_offset(frontier, superblock),
        };
        self.placed_clock += 1;
        self.traffic.count_unit(cause);
        let physical = superblock * self.superblock_units + offset;
        let block = &self.superblocks[superblock as usize];
        assert!(
            self.reverse[physical as usize] == 0 && !block.is_in_order,
            "unit {physical} programmed twice"
        );
        let placement = self.placement_at(superblock, offset);
        if self.features.allocation == DieAllocation::RoundRobin {
            self.queue_parity_after(placement);
        }
        Some(placement)
    }

    /// Returns the number of free superblocks reserved for garbage collection.
    fn reserved_superblock_count(&self) -> usize {
        self.specification.moved_data_frontiers().max(1) as usize
    }

    /// Tests whether a shared open superblock is reserved for copies, because no free superblock is
    /// left for them.
    fn may_not_use_reserve(&self, cause: ProgramCause) -> bool {
        self.specification.separation == DataSeparation::Mixed
            && cause == ProgramCause::Host
            && self.free_by_erase_count.len() < self.reserved_superblock_count()
    }

    /// Tests whether copies need the rest of the last shared superblock, so that padding could
    /// leave too little space.
    fn needs_all_dies(&self, open: u32) -> bool {
        let left = self.capacity_units(open) - self.superblocks[open as usize].placed_count;
        let copies = self.unplaced_copies_max();
        copies > 0
            && self.may_not_use_reserve(ProgramCause::Host)
            && copies + self.program_units(open) > left
    }

    /// Returns the next offset of a write frontier whose dies do not take turns.
    fn next_offset(&mut self, frontier: usize, superblock: u32) -> u32 {
        let geometry = self.specification.geometry;
        let program_units = self.program_units(superblock);
        let cursor = &mut self.cursors[frontier];
        let offset = match cursor.program_in_progress {
            Some(offset) => offset,
            None => {
                let has_row = |die: &u32| {
                    cursor.rows_used_by_die[*die as usize] < geometry.rows_per_superblock
                };
                let die = match self.preferred_die.take().filter(has_row) {
                    Some(die) => die,
                    None => (0..geometry.die_count)
                        .min_by_key(|&die| cursor.rows_used_by_die[die as usize])
                        .expect("a superblock crosses a die at least"),
                };
                let row = cursor.rows_used_by_die[die as usize];
                cursor.rows_used_by_die[die as usize] += 1;
                self.skip_parity(frontier, superblock, die);
                (row * geometry.die_count + die) * program_units
            }
        };
        let cursor = &mut self.cursors[frontier];
        cursor.program_in_progress =
            Some(offset + 1).filter(|next| !next.is_multiple_of(program_units));
        if self.open_superblocks[frontier].is_none() {
            cursor.rows_used_by_die.fill(0);
        }
        offset
    }

    /// Advances a die past its next row if that holds parity.
    fn skip_parity(&mut self, frontier: usize, superblock: u32, die: u32) {
        let row = self.cursors[frontier].rows_used_by_die[die as usize];
        if row < self.specification.geometry.rows_per_superblock && self.is_parity_program(row, die)
        {
            self.cursors[frontier].rows_used_by_die[die as usize] += 1;
            self.queue_parity(superblock, row, die);
        }
    }

    pub(crate) fn placement_of_physical(&self, physical: u32) -> Placement {
        let (superblock, offset) = self.division.split_by_superblock(physical);
        self.placement_at(superblock, offset)
    }

    pub(crate) fn placement_at(&self, superblock: u32, offset: u32) -> Placement {
        let program_units = self.program_units(superblock);
        let (program, unit) = match self.superblocks[superblock as usize].is_slc {
            true => (offset / program_units, offset % program_units),
            false => self.division.split_by_program(offset),
        };
        let (row, die) = self.division.split_by_die(program);
        Placement {
            physical: superblock * self.superblock_units + offset,
            superblock,
            die,
            row,
            completes_program: unit + 1 == program_units,
        }
    }

    /// Tests whether an offset of a superblock has been placed since the last erase.
    pub(crate) fn is_unit_placed(&self, superblock: u32, offset: u32) -> bool {
        let block = &self.superblocks[superblock as usize];
        let Some(number) = self.data_unit_at_offset(superblock, offset) else {
            return false;
        };
        if block.state != SuperblockState::Open {
            return number < block.placed_count;
        }
        let frontier = self
            .open_superblocks
            .iter()
            .position(|&it| it == Some(superblock));
        let Some(cursor) = frontier.and_then(|frontier| self.cursors.get(frontier)) else {
            return number < block.placed_count;
        };
        let placement = self.placement_of_physical(superblock * self.superblock_units + offset);
        let program_units = self.program_units(superblock);
        let in_begun = (cursor.program_in_progress)
            .is_some_and(|next| next / program_units == offset / program_units && offset >= next);
        placement.row < cursor.rows_used_by_die[placement.die as usize] && !in_begun
    }

    /// Opens the free superblock with the lowest erase count; for static wear levelling, the one
    /// with the highest.
    pub(crate) fn open_superblock(
        &mut self,
        frontier: usize,
        stream: u32,
        cause: ProgramCause,
    ) -> Option<u32> {
        if self.features.slc_cache.is_some() && frontier == self.cache_frontier() {
            return self.open_cache_superblock(frontier, stream);
        }
        // The host leaves what collection needs to go on: superblocks, and, where its erase
        // waits for a journal, that.
        let waits = cause == ProgramCause::MapUpdate
            && self.next_collection_step() == CollectionStep::AwaitPrograms;
        if matches!(
            cause,
            ProgramCause::Host | ProgramCause::Padding | ProgramCause::MapUpdate
        ) && self.free_by_erase_count.len() <= self.reserved_superblock_count()
            && !waits
        {
            return None;
        }
        let (_, superblock) = match cause {
            ProgramCause::WearLevelling => self.free_by_erase_count.pop_last()?,
            _ => self.free_by_erase_count.pop_first()?,
        };
        self.begin_superblock(superblock, frontier, stream);
        Some(superblock)
    }

    pub(crate) fn begin_superblock(&mut self, superblock: u32, frontier: usize, stream: u32) {
        let block = &mut self.superblocks[superblock as usize];
        block.state = SuperblockState::Open;
        block.stream = stream;
        self.open_superblocks[frontier] = Some(superblock);
        if let Some(cursor) = self.cursors.get_mut(frontier) {
            cursor.rows_used_by_die.fill(0);
            for die in 0..self.specification.geometry.die_count {
                self.skip_parity(frontier, superblock, die);
            }
        }
    }

    /// Closes a superblock when its last mapping unit is placed and no copy to it is in progress.
    pub(crate) fn close_if_full(&mut self, superblock: u32) {
        let capacity = self.capacity_units(superblock);
        let block = &mut self.superblocks[superblock as usize];
        if block.placed_count < capacity
            || !matches!(
                block.state,
                SuperblockState::Open | SuperblockState::Closing
            )
        {
            return;
        }
        if block.unprogrammed_copies > 0 {
            block.state = SuperblockState::Closing;
            return;
        }
        block.closed_at_clock = self.placed_clock;
        if block.is_slc {
            block.state = SuperblockState::Cached;
            self.full_cache_superblocks.push_back(superblock);
            return;
        }
        block.state = SuperblockState::Closed;
        let closed_at = block.closed_at_clock;
        self.closed_superblocks
            .insert(superblock, block.valid_count);
        self.record_closing(superblock, closed_at);
    }

    fn record_closing(&mut self, superblock: u32, closed_at: u64) {
        if self.specification.policy == VictimPolicy::OldestFirst {
            self.closed_fifo.push_back((superblock, closed_at));
        }
    }
}
