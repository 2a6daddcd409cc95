//! Garbage collection in steps: choose a victim, copy its valid mapping units, and erase it.

use rand_core::Rng as _;

use crate::ftl::{Ftl, Placement, SuperblockRecord, SuperblockState};
use crate::specification::VictimPolicy;
use crate::traffic::ProgramCause;

/// Maximum share of the writes for which a victim makes space that may pay for no copies.
const UNPAID_SHARE_MAX: f64 = 0.75;

/// Garbage collection of one victim superblock, in progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActiveCollection {
    pub(crate) victim: u32,
    cause: ProgramCause,
    /// Index of the write frontier that takes the copies.
    pub(crate) destination_frontier: usize,
    /// Number of mapping units of the victim that have been examined.
    examined_units: u32,
    /// Number of copies issued and not yet programmed.
    copies_in_flight: u32,
    placed_copies: u32,
    copies_per_write: f64,
}

/// Copy of a valid mapping unit of the victim, to be read and then placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitCopy {
    /// Logical unit to be copied; [`UnitCopy::NO_LOGICAL`] if it has no address.
    pub logical: u32,
    /// Physical unit from which the copy is read.
    pub source_physical: u32,
}

impl UnitCopy {
    /// Value of `logical` for a copy of a mapping unit without an address.
    pub const NO_LOGICAL: u32 = u32::MAX;
}

/// Outcome of a copy, when it has been programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyOutcome {
    /// The map now points to the new place.
    Switched,
    /// The copy is obsolete, because the mapping unit was overwritten or trimmed meanwhile.
    Obsolete,
}

/// Next step of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionStep {
    /// No garbage collection is in progress.
    Idle,
    /// Mapping units of the victim are to be copied.
    CopyUnits,
    /// All copies have been issued, and some are in progress. When the device has read and placed
    /// them all, and none is being programmed, their last program unit is partly filled and must be
    /// [padded](Ftl::pad_program_of_writer). If power cuts are modelled, the collection also waits in two
    /// other cases: a unit of the victim was overwritten and the new version, or the unit itself,
    /// is still to be programmed; or a unit was trimmed and the trim must be
    /// [journalled](Ftl::begin_journal).
    AwaitPrograms,
    /// The victim with this index is to be erased.
    EraseVictim(u32),
}

impl Ftl {
    /// Reports whether garbage collection should run in the background: few superblocks are free,
    /// or an erase alone would add space to the SLC cache.
    pub fn wants_collection(&self) -> bool {
        self.is_below_soft_threshold() || self.wants_erase_for_cache()
    }

    fn is_below_soft_threshold(&self) -> bool {
        self.free_superblocks() < self.specification.soft_free_superblocks
    }

    /// Reports whether the host must wait for garbage collection, because very few superblocks are
    /// free.
    pub fn must_host_wait(&self) -> bool {
        self.free_superblocks() < self.specification.hard_free_superblocks
    }

    /// Returns the number of copies that host writes have paid for. A paced drive makes no more
    /// than these.
    pub fn copies_due(&self) -> u32 {
        self.copies_paid as u32
    }

    /// Begins a garbage collection, and returns its victim and its cause. Returns `None` when there
    /// is nothing to collect, or when a collection is in progress.
    pub fn begin_collection(&mut self) -> Option<(u32, ProgramCause)> {
        if self.collection.is_some() {
            return None;
        }
        let (superblock, cause) = self.choose_victim()?;
        self.begin_collection_of(superblock, cause);
        Some((superblock, cause))
    }

    fn choose_victim(&mut self) -> Option<(u32, ProgramCause)> {
        if let Some(coldest) = self.wear_levelling_victim() {
            return Some((coldest, ProgramCause::WearLevelling));
        }
        if let Some(lent) = self.take_overdrawn_superblock() {
            return Some((lent, ProgramCause::Folding));
        }
        let victim = match !self.is_below_soft_threshold() && self.wants_erase_for_cache() {
            true => self.find_empty_closed(),
            false => self.choose_by_policy(),
        };
        Some((victim?, ProgramCause::GarbageCollection))
    }

    /// Returns a closed superblock without valid mapping units, if any.
    fn find_empty_closed(&self) -> Option<u32> {
        let is_empty = |block: &SuperblockRecord| {
            block.state == SuperblockState::Closed && block.valid_count == 0
        };
        let index = self.superblocks.iter().position(is_empty)?;
        Some(index as u32)
    }

    /// Begins to rewrite a closed superblock elsewhere (refresh). Returns `false` when the
    /// superblock is not closed, or when a collection is in progress.
    pub fn begin_refresh(&mut self, superblock: u32) -> bool {
        let closed = self.superblocks[superblock as usize].state == SuperblockState::Closed;
        if self.collection.is_some() || !closed {
            return false;
        }
        self.begin_collection_of(superblock, ProgramCause::Refresh);
        true
    }

    /// Counts a read of a superblock, and returns the number of its reads since the last erase.
    pub fn count_read(&mut self, superblock: u32) -> u32 {
        let block = &mut self.superblocks[superblock as usize];
        block.read_count = block.read_count.saturating_add(1);
        block.read_count
    }

    /// Makes a superblock the victim of a new collection.
    pub(crate) fn begin_collection_of(&mut self, superblock: u32, cause: ProgramCause) {
        let frontier =
            self.frontier_for_moved_data(self.superblocks[superblock as usize].stream, cause);
        let block = &mut self.superblocks[superblock as usize];
        if block.state == SuperblockState::Closed {
            self.closed_superblocks
                .remove(superblock, block.valid_count);
        }
        block.state = SuperblockState::Victim;
        let copies_per_write = self.copies_per_write(superblock, cause);
        self.unpaid_writes = 0;
        self.collection = Some(ActiveCollection {
            victim: superblock,
            cause,
            destination_frontier: frontier,
            examined_units: 0,
            copies_in_flight: 0,
            placed_copies: 0,
            copies_per_write,
        });
    }

    /// Returns the number of copies that each host write pays for: x / (1 - x), with x the victim's
    /// valid share, because that many writes fill the space won. Writes during the erase of the
    /// previous victim, when there was nothing to copy, are spread over later writes. Otherwise the
    /// next write would have to wait for all their copies.
    fn copies_per_write(&self, superblock: u32, cause: ProgramCause) -> f64 {
        let units = f64::from(self.superblock_data_units);
        let valid = f64::from(self.superblocks[superblock as usize].valid_count);
        if matches!(cause, ProgramCause::WearLevelling | ProgramCause::Refresh) {
            // Nothing is won: it is to be done before a superblock more is written.
            return valid / units;
        }
        let won = units - valid;
        let left = won - f64::from(self.unpaid_writes).min(won * UNPAID_SHARE_MAX);
        // A victim with no invalid unit would ask for endless copies per write.
        valid / left.max(1.0)
    }

    /// Makes a host write pay for copies. The price rises up to twofold as the number of free
    /// superblocks falls from the soft to the hard threshold.
    pub(crate) fn pay_for_copies(&mut self) {
        match &self.collection {
            Some(collection) if self.has_issued_all_copies(collection) => self.unpaid_writes += 1,
            Some(collection) => {
                let (soft, hard) = (
                    self.specification.soft_free_superblocks,
                    self.specification.hard_free_superblocks,
                );
                let short = soft.saturating_sub(self.free_superblocks());
                let haste = 1.0 + f64::from(short) / f64::from(soft - hard);
                self.copies_paid += collection.copies_per_write * haste;
            }
            // Enough is free: nothing is owed.
            None => self.unpaid_writes = 0,
        }
    }

    /// Returns the closed superblock with the lowest erase count if wear levelling is due.
    fn wear_levelling_victim(&self) -> Option<u32> {
        let threshold = self.specification.wear_threshold_erases?;
        if self.must_host_wait() || self.erase_count_spread() < threshold {
            return None;
        }
        let closed = (0..)
            .zip(&self.superblocks)
            .filter(|(_, block)| block.state == SuperblockState::Closed);
        closed
            .min_by_key(|(_, block)| block.erase_count)
            .map(|(index, _)| index)
    }

    /// Returns the write frontier for data moved out of a superblock of `stream`. Wear levelling
    /// first fills an open superblock whose erase count lags, as happens if few data are moved to
    /// it.
    fn frontier_for_moved_data(&self, stream: u32, cause: ProgramCause) -> usize {
        let threshold = self.specification.wear_threshold_erases.unwrap_or(u32::MAX);
        if cause != ProgramCause::WearLevelling {
            return self.frontier_of_moved_data(stream);
        }
        let most = self
            .superblocks
            .iter()
            .map(|block| block.erase_count)
            .max()
            .unwrap_or(0);
        let behind = |frontier: &usize| {
            self.open_superblocks[*frontier]
                .is_some_and(|open| most - self.superblocks[open as usize].erase_count >= threshold)
        };
        let moving = self.specification.stream_count as usize..self.system_frontier();
        moving.clone().find(behind).unwrap_or(moving.end - 1)
    }

    fn choose_by_policy(&mut self) -> Option<u32> {
        match self.specification.policy {
            VictimPolicy::Greedy => self.closed_with_fewest_valid(),
            VictimPolicy::RandomChoices(choices) => self.best_of_random_choices(choices),
            VictimPolicy::OldestFirst => self.oldest_closed(),
            VictimPolicy::CostBenefit => self.closed_with_greatest_benefit(),
        }
    }

    fn closed_with_fewest_valid(&mut self) -> Option<u32> {
        if self.closed_superblocks.has_lists() {
            return self.closed_superblocks.fewest_valid();
        }
        let closed = (0..)
            .zip(&self.superblocks)
            .filter(|(_, block)| block.state == SuperblockState::Closed);
        closed
            .min_by_key(|(_, block)| block.valid_count)
            .map(|(index, _)| index)
    }

    fn best_of_random_choices(&mut self, choices: u32) -> Option<u32> {
        // With none closed, drawing would never end.
        if self.closed_superblocks.is_empty() {
            return None;
        }
        let mut best: Option<u32> = None;
        for _ in 0..choices {
            let drawn = self.draw_closed();
            let valid = |index: u32| self.superblocks[index as usize].valid_count;
            if best.is_none_or(|best| valid(drawn) < valid(best)) {
                best = Some(drawn);
            }
        }
        best
    }

    fn draw_closed(&mut self) -> u32 {
        loop {
            let drawn = draw_below(&mut self.random, self.superblocks.len() as u32);
            if self.superblocks[drawn as usize].state == SuperblockState::Closed {
                return drawn;
            }
        }
    }

    fn oldest_closed(&mut self) -> Option<u32> {
        while let Some((superblock, closed_at)) = self.closed_fifo.pop_front() {
            let block = &self.superblocks[superblock as usize];
            // Wear levelling may have taken it, and it may have been closed again.
            if block.state == SuperblockState::Closed && block.closed_at_clock == closed_at {
                return Some(superblock);
            }
        }
        None
    }

    fn closed_with_greatest_benefit(&self) -> Option<u32> {
        let units = f64::from(self.superblock_data_units);
        let mut best = (f64::NEG_INFINITY, None);
        for (index, block) in self.superblocks.iter().enumerate() {
            if block.state == SuperblockState::Closed {
                let valid = f64::from(block.valid_count);
                // (1 - u) age / 2u; the greatest where nothing is valid.
                let age = (self.placed_clock - block.closed_at_clock) as f64;
                let benefit = match block.valid_count {
                    0 => f64::INFINITY,
                    _ => (units - valid) * age / (2.0 * valid),
                };
                if benefit > best.0 {
                    best = (benefit, Some(index as u32));
                }
            }
        }
        best.1
    }

    fn has_issued_all_copies(&self, collection: &ActiveCollection) -> bool {
        collection.examined_units == self.superblock_units
            && self.located_copies.is_empty()
            && self.remaining_untouched_copies(collection.victim) == 0
    }

    /// Returns an upper bound of the copies that still need a place; 0 when all are placed.
    pub(crate) fn unplaced_copies_max(&self) -> u32 {
        let Some(collection) = &self.collection else {
            return 0;
        };
        let all_placed = self.has_issued_all_copies(collection)
            && collection.placed_copies == collection.copies_in_flight;
        if all_placed {
            0
        } else {
            self.superblocks[collection.victim as usize].valid_count
        }
    }

    /// Returns the next step of the garbage collection.
    pub fn next_collection_step(&self) -> CollectionStep {
        let Some(collection) = &self.collection else {
            return CollectionStep::Idle;
        };
        let block = &self.superblocks[collection.victim as usize];
        let copies_wait = collection.copies_in_flight > 0 && self.has_issued_all_copies(collection);
        if copies_wait || block.valid_count == 0 && self.is_held(collection.victim) {
            CollectionStep::AwaitPrograms
        } else if block.valid_count == 0 && collection.copies_in_flight == 0 {
            CollectionStep::EraseVictim(collection.victim)
        } else {
            CollectionStep::CopyUnits
        }
    }

    /// Appends the next valid mapping units of the victim to `copies`, at most `most`. The device
    /// reads each copy, [places](Self::place_copy) it, programs it, and [reports](Self::complete_copy) it.
    pub fn next_copies(&mut self, most: u32, copies: &mut Vec<UnitCopy>) {
        let Some(mut collection) = self.collection else {
            return;
        };
        let first = copies.len();
        let mut found = 0;
        while found < most
            && let Some(copy) = self.located_copies.pop()
        {
            // The host may have written or trimmed it since.
            if self.effective_entry(copy.logical) == copy.source_physical + 1 {
                copies.push(copy);
                found += 1;
            }
        }
        while found < most && collection.examined_units < self.superblock_units {
            let offset = collection.examined_units;
            let word = self.valid_bitmap
                [(collection.victim * self.bitmap_words_per_superblock + offset / 64) as usize]
                >> (offset % 64);
            if word == 0 {
                collection.examined_units = ((offset / 64 + 1) * 64).min(self.superblock_units);
                continue;
            }
            let from = collection.victim * self.superblock_units + offset + word.trailing_zeros();
            copies.push(UnitCopy {
                logical: self.reverse_entry(from) - 1,
                source_physical: from,
            });
            collection.examined_units = offset + word.trailing_zeros() + 1;
            found += 1;
        }
        // Entries are far apart: looked at here, side by side, they come from memory together.
        for copy in &copies[first..] {
            assert_eq!(
                self.effective_entry(copy.logical),
                copy.source_physical + 1,
                "a valid unit is where the map says"
            );
        }
        found += self.issue_untouched_copies(collection.victim, most - found, copies);
        collection.copies_in_flight += found;
        self.copies_paid = (self.copies_paid - f64::from(found)).max(0.0);
        self.collection = Some(collection);
    }

    /// Adds a copy of a mapping unit that was located in the victim at an offset already examined.
    pub(crate) fn queue_located_copy(&mut self, copy: UnitCopy) {
        let (superblock, offset) = self.division.split_by_superblock(copy.source_physical);
        let passed = (self.collection.as_ref())
            .is_some_and(|it| it.victim == superblock && offset < it.examined_units);
        if passed {
            self.located_copies.push(copy);
        }
    }

    /// Returns the place at which a copy that was read is to be programmed. Returns `None` if the
    /// mapping unit was overwritten meanwhile, which ends the copy.
    ///
    /// # Panics
    /// If no collection is in progress, or no superblock is left for moved data, which the
    /// specification's checks rule out.
    pub fn place_copy(&mut self, copy: UnitCopy) -> Option<Placement> {
        let mut collection = self.collection.expect("copies belong to a collection");
        let anonymous = copy.logical == UnitCopy::NO_LOGICAL;
        if !anonymous && self.effective_entry(copy.logical) != copy.source_physical + 1 {
            collection.copies_in_flight -= 1;
            self.collection = Some(collection);
            return None;
        }
        let stream = self.superblocks[collection.victim as usize].stream;
        let placement = self
            .place_unit(collection.destination_frontier, stream, collection.cause)
            .expect("the reserve takes what is moved");
        collection.placed_copies += 1;
        self.collection = Some(collection);
        if !anonymous {
            self.reverse[placement.physical as usize] = copy.logical + 1;
        }
        self.superblocks[placement.superblock as usize].unprogrammed_copies += 1;
        Some(placement)
    }

    /// Completes a copy that has been programmed at its place. The map switches to the new place
    /// unless the mapping unit was overwritten meanwhile.
    ///
    /// # Panics
    /// If no collection is in progress, or the copy was not placed there.
    pub fn complete_copy(&mut self, copy: UnitCopy, placement: Placement) -> CopyOutcome {
        let collection = self
            .collection
            .as_mut()
            .expect("copies belong to a collection");
        collection.copies_in_flight -= 1;
        collection.placed_copies -= 1;
        let victim = collection.victim;
        self.superblocks[placement.superblock as usize].unprogrammed_copies -= 1;
        let copied = if copy.logical == UnitCopy::NO_LOGICAL {
            self.complete_untouched_copy(victim, placement)
        } else {
            self.switch_mapping_to_copy(copy, placement)
        };
        self.close_if_full(placement.superblock);
        copied
    }

    fn switch_mapping_to_copy(&mut self, copy: UnitCopy, placement: Placement) -> CopyOutcome {
        assert_eq!(
            self.reverse[placement.physical as usize],
            copy.logical + 1,
            "a copy at another's place"
        );
        self.complete_unit_program(placement.physical);
        if self.effective_entry(copy.logical) != copy.source_physical + 1 {
            return CopyOutcome::Obsolete;
        }
        self.record_change(copy.logical, placement.physical + 1);
        self.invalidate(copy.source_physical);
        self.switch_mapping(copy.logical, placement);
        CopyOutcome::Switched
    }

    /// Completes the erase of the victim, which is free now, and ends the collection.
    ///
    /// # Panics
    /// If the victim's erase was not due.
    pub fn complete_erase(&mut self) {
        let CollectionStep::EraseVictim(superblock) = self.next_collection_step() else {
            panic!(
                "an erase that is not due: {:?}",
                self.next_collection_step()
            );
        };
        let words = superblock as usize * self.bitmap_words_per_superblock as usize;
        let valid = &self.valid_bitmap[words..words + self.bitmap_words_per_superblock as usize];
        assert!(
            valid.iter().all(|&word| word == 0),
            "superblock {superblock} erased with valid units"
        );
        let first = superblock as usize * self.superblock_units as usize;
        self.clear_reverse_map(first, superblock);
        self.clear_programmed_units(superblock);
        let capacity = self.capacity_units(superblock);
        let block = &mut self.superblocks[superblock as usize];
        assert!(
            block.placed_count == capacity && block.unprogrammed_copies == 0,
            "superblock {superblock} erased while open"
        );
        block.state = SuperblockState::Free;
        block.placed_count = 0;
        block.erase_count += 1;
        block.read_count = 0;
        block.is_in_order = false;
        if block.is_slc {
            self.free_cache_superblock(superblock);
        } else {
            self.free_by_erase_count
                .insert((block.erase_count, superblock));
        }
        self.traffic.erase_count += 1;
        self.collection = None;
    }
}

impl Ftl {
    /// Clears the reverse map of an erased superblock, whose first physical unit is `first`.
    fn clear_reverse_map(&mut self, first: usize, superblock: u32) {
        let in_order = self.superblocks[superblock as usize].is_in_order;
        let units = &mut self.reverse[first..first + self.superblock_units as usize];
        if self.untouched.is_none() && !in_order {
            units.fill(0);
            return;
        }
        // Memory that was never touched stays so: it is read, not written.
        units
            .iter_mut()
            .filter(|unit| **unit != 0)
            .for_each(|unit| *unit = 0);
    }
}

/// Returns a uniform random number in 0 .. `bound` (uniform to 2^-32).
pub(crate) fn draw_below(random: &mut rand_pcg::Pcg64Mcg, bound: u32) -> u32 {
    ((u64::from(random.next_u64() as u32) * u64::from(bound)) >> 32) as u32
}
