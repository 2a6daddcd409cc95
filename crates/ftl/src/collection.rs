//! Garbage collection in steps: choose a victim, copy its valid mapping units, and erase it.

use rand_core::Rng as _;

use crate::ftl::{Ftl, Placement, State, Superblock};
use crate::specification::Policy;
use crate::traffic::Cause;

/// Maximum share of the writes for which a victim makes space that may pay for no copies.
const UNPAID_SHARE_MAX: f64 = 0.75;

/// Garbage collection of one victim superblock, in progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collection {
    pub(crate) superblock: u32,
    cause: Cause,
    /// Index of the write frontier that takes the copies.
    pub(crate) frontier: usize,
    /// Number of mapping units of the victim that have been examined.
    looked_at: u32,
    /// Number of copies issued and not yet programmed.
    under_way: u32,
    /// Number of copies in progress that have been placed.
    placed: u32,
    copies_per_write: f64,
}

/// Copy of a valid mapping unit of the victim, to be read and then placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// Logical unit to be copied; [`Copy::ANONYMOUS`] if it has no address.
    pub logical: u32,
    /// Physical unit from which the copy is read.
    pub from: u32,
}

impl Copy {
    /// Value of `logical` for a copy of a mapping unit without an address.
    pub const ANONYMOUS: u32 = u32::MAX;
}

/// Outcome of a copy, when it has been programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The map now points to the new place.
    Switched,
    /// The copy is obsolete, because the mapping unit was overwritten or trimmed meanwhile.
    Dead,
}

/// Next step of a garbage collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No garbage collection is in progress.
    Idle,
    /// Mapping units of the victim are to be copied.
    Copies,
    /// All copies have been issued, and some are in progress. When the device has read and placed
    /// them all, and none is being programmed, their last program unit is partly filled and must be
    /// [padded](Ftl::pad_writer). If power cuts are modelled, the collection also waits in two
    /// other cases: a unit of the victim was overwritten and the new version, or the unit itself,
    /// is still to be programmed; or a unit was trimmed and the trim must be
    /// [journalled](Ftl::begin_journal).
    Waiting,
    /// The victim with this index is to be erased.
    Erase(u32),
}

impl Ftl {
    /// Reports whether garbage collection should run in the background: few superblocks are free,
    /// or an erase alone would add space to the SLC cache.
    pub fn wants_collection(&self) -> bool {
        self.are_too_few_free() || self.wants_erase()
    }

    fn are_too_few_free(&self) -> bool {
        self.free_superblocks() < self.specification.soft_free
    }

    /// Reports whether the host must wait for garbage collection, because very few superblocks are
    /// free.
    pub fn must_collect(&self) -> bool {
        self.free_superblocks() < self.specification.hard_free
    }

    /// Returns the number of copies that host writes have paid for. A paced drive makes no more
    /// than these.
    pub fn copies_due(&self) -> u32 {
        self.tokens as u32
    }

    /// Begins a garbage collection, and returns its victim and its cause. Returns `None` when there
    /// is nothing to collect, or when a collection is in progress.
    pub fn begin_collection(&mut self) -> Option<(u32, Cause)> {
        if self.collection.is_some() {
            return None;
        }
        let (superblock, cause) = self.victim()?;
        self.begin(superblock, cause);
        Some((superblock, cause))
    }

    fn victim(&mut self) -> Option<(u32, Cause)> {
        if let Some(coldest) = self.worn_apart() {
            return Some((coldest, Cause::WearLevelling));
        }
        if let Some(lent) = self.overdrawn() {
            return Some((lent, Cause::Folding));
        }
        let victim = match !self.are_too_few_free() && self.wants_erase() {
            true => self.empty(),
            false => self.choose(),
        };
        Some((victim?, Cause::Collection))
    }

    /// Returns a closed superblock without valid mapping units, if any.
    fn empty(&self) -> Option<u32> {
        let is_empty = |block: &Superblock| block.state == State::Closed && block.valid == 0;
        let index = self.superblocks.iter().position(is_empty)?;
        Some(index as u32)
    }

    /// Begins to rewrite a closed superblock elsewhere (refresh). Returns `false` when the
    /// superblock is not closed, or when a collection is in progress.
    pub fn begin_refresh(&mut self, superblock: u32) -> bool {
        let closed = self.superblocks[superblock as usize].state == State::Closed;
        if self.collection.is_some() || !closed {
            return false;
        }
        self.begin(superblock, Cause::Refresh);
        true
    }

    /// Counts a read of a superblock, and returns the number of its reads since the last erase.
    pub fn count_read(&mut self, superblock: u32) -> u32 {
        let block = &mut self.superblocks[superblock as usize];
        block.reads = block.reads.saturating_add(1);
        block.reads
    }

    /// Makes a superblock the victim of a new collection.
    pub(crate) fn begin(&mut self, superblock: u32, cause: Cause) {
        let frontier = self.destination(self.superblocks[superblock as usize].stream, cause);
        let block = &mut self.superblocks[superblock as usize];
        if block.state == State::Closed {
            self.buckets.remove(superblock, block.valid);
        }
        block.state = State::Victim;
        let copies_per_write = self.copies_per_write(superblock, cause);
        self.unpaid = 0;
        self.collection = Some(Collection {
            superblock,
            cause,
            frontier,
            looked_at: 0,
            under_way: 0,
            placed: 0,
            copies_per_write,
        });
    }

    /// Returns the number of copies that each host write pays for: x / (1 - x), with x the victim's
    /// valid share, because that many writes fill the space won. Writes during the erase of the
    /// previous victim, when there was nothing to copy, are spread over later writes. Otherwise the
    /// next write would have to wait for all their copies.
    fn copies_per_write(&self, superblock: u32, cause: Cause) -> f64 {
        let units = f64::from(self.data_units);
        let valid = f64::from(self.superblocks[superblock as usize].valid);
        if matches!(cause, Cause::WearLevelling | Cause::Refresh) {
            // Nothing is won: it is to be done before a superblock more is written.
            return valid / units;
        }
        let won = units - valid;
        let left = won - f64::from(self.unpaid).min(won * UNPAID_SHARE_MAX);
        // A victim with no invalid unit would ask for endless copies per write.
        valid / left.max(1.0)
    }

    /// Makes a host write pay for copies. The price rises up to twofold as the number of free
    /// superblocks falls from the soft to the hard threshold.
    pub(crate) fn pay_for_copies(&mut self) {
        match &self.collection {
            Some(collection) if self.has_handed_out_all(collection) => self.unpaid += 1,
            Some(collection) => {
                let (soft, hard) = (self.specification.soft_free, self.specification.hard_free);
                let short = soft.saturating_sub(self.free_superblocks());
                let haste = 1.0 + f64::from(short) / f64::from(soft - hard);
                self.tokens += collection.copies_per_write * haste;
            }
            // Enough is free: nothing is owed.
            None => self.unpaid = 0,
        }
    }

    /// Returns the closed superblock with the lowest erase count if wear levelling is due.
    fn worn_apart(&self) -> Option<u32> {
        let threshold = self.specification.wear_threshold?;
        if self.must_collect() || self.wear_spread() < threshold {
            return None;
        }
        let closed = (0..)
            .zip(&self.superblocks)
            .filter(|(_, block)| block.state == State::Closed);
        closed
            .min_by_key(|(_, block)| block.erases)
            .map(|(index, _)| index)
    }

    /// Returns the write frontier for data moved out of a superblock of `stream`. Wear levelling
    /// first fills an open superblock whose erase count lags, as happens if few data are moved to
    /// it.
    fn destination(&self, stream: u32, cause: Cause) -> usize {
        let threshold = self.specification.wear_threshold.unwrap_or(u32::MAX);
        if cause != Cause::WearLevelling {
            return self.moving_frontier(stream);
        }
        let most = self
            .superblocks
            .iter()
            .map(|block| block.erases)
            .max()
            .unwrap_or(0);
        let behind = |frontier: &usize| {
            self.frontiers[*frontier]
                .is_some_and(|open| most - self.superblocks[open as usize].erases >= threshold)
        };
        let moving = self.specification.streams as usize..self.system_frontier();
        moving.clone().find(behind).unwrap_or(moving.end - 1)
    }

    fn choose(&mut self) -> Option<u32> {
        match self.specification.policy {
            Policy::Greedy => self.fewest(),
            Policy::Choices(choices) => self.best_of(choices),
            Policy::Fifo => self.first_closed(),
            Policy::CostBenefit => self.greatest_benefit(),
        }
    }

    fn fewest(&mut self) -> Option<u32> {
        if self.buckets.has_lists() {
            return self.buckets.fewest();
        }
        let closed = (0..)
            .zip(&self.superblocks)
            .filter(|(_, block)| block.state == State::Closed);
        closed
            .min_by_key(|(_, block)| block.valid)
            .map(|(index, _)| index)
    }

    fn best_of(&mut self, choices: u32) -> Option<u32> {
        // With none closed, drawing would never end.
        if self.buckets.is_empty() {
            return None;
        }
        let mut best: Option<u32> = None;
        for _ in 0..choices {
            let drawn = self.any_closed();
            let valid = |index: u32| self.superblocks[index as usize].valid;
            if best.is_none_or(|best| valid(drawn) < valid(best)) {
                best = Some(drawn);
            }
        }
        best
    }

    fn any_closed(&mut self) -> u32 {
        loop {
            let drawn = below(&mut self.random, self.superblocks.len() as u32);
            if self.superblocks[drawn as usize].state == State::Closed {
                return drawn;
            }
        }
    }

    fn first_closed(&mut self) -> Option<u32> {
        while let Some((superblock, closed_at)) = self.closing_order.pop_front() {
            let block = &self.superblocks[superblock as usize];
            // Wear levelling may have taken it, and it may have been closed again.
            if block.state == State::Closed && block.closed_at == closed_at {
                return Some(superblock);
            }
        }
        None
    }

    fn greatest_benefit(&self) -> Option<u32> {
        let units = f64::from(self.data_units);
        let mut best = (f64::NEG_INFINITY, None);
        for (index, block) in self.superblocks.iter().enumerate() {
            if block.state == State::Closed {
                let valid = f64::from(block.valid);
                // (1 - u) age / 2u; the greatest where nothing is valid.
                let age = (self.clock - block.closed_at) as f64;
                let benefit = match block.valid {
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

    fn has_handed_out_all(&self, collection: &Collection) -> bool {
        collection.looked_at == self.units
            && self.located.is_empty()
            && self.untouched_copies_left(collection.superblock) == 0
    }

    /// Returns an upper bound of the copies that still need a place; 0 when all are placed.
    pub(crate) fn copies_to_place(&self) -> u32 {
        let Some(collection) = &self.collection else {
            return 0;
        };
        let all_placed =
            self.has_handed_out_all(collection) && collection.placed == collection.under_way;
        if all_placed {
            0
        } else {
            self.superblocks[collection.superblock as usize].valid
        }
    }

    /// Returns the next step of the garbage collection.
    pub fn progress(&self) -> Progress {
        let Some(collection) = &self.collection else {
            return Progress::Idle;
        };
        let block = &self.superblocks[collection.superblock as usize];
        let copies_wait = collection.under_way > 0 && self.has_handed_out_all(collection);
        if copies_wait || block.valid == 0 && self.is_held(collection.superblock) {
            Progress::Waiting
        } else if block.valid == 0 && collection.under_way == 0 {
            Progress::Erase(collection.superblock)
        } else {
            Progress::Copies
        }
    }

    /// Appends the next valid mapping units of the victim to `copies`, at most `most`. The device
    /// reads each copy, [places](Self::place_copy) it, programs it, and [reports](Self::copied) it.
    pub fn next_copies(&mut self, most: u32, copies: &mut Vec<Copy>) {
        let Some(mut collection) = self.collection else {
            return;
        };
        let first = copies.len();
        let mut found = 0;
        while found < most
            && let Some(copy) = self.located.pop()
        {
            // The host may have written or trimmed it since.
            if self.entry(copy.logical) == copy.from + 1 {
                copies.push(copy);
                found += 1;
            }
        }
        while found < most && collection.looked_at < self.units {
            let offset = collection.looked_at;
            let word = self.valid[(collection.superblock * self.words + offset / 64) as usize]
                >> (offset % 64);
            if word == 0 {
                collection.looked_at = ((offset / 64 + 1) * 64).min(self.units);
                continue;
            }
            let from = collection.superblock * self.units + offset + word.trailing_zeros();
            copies.push(Copy {
                logical: self.owner(from) - 1,
                from,
            });
            collection.looked_at = offset + word.trailing_zeros() + 1;
            found += 1;
        }
        // Entries are far apart: looked at here, side by side, they come from memory together.
        for copy in &copies[first..] {
            assert_eq!(
                self.entry(copy.logical),
                copy.from + 1,
                "a valid unit is where the map says"
            );
        }
        found += self.untouched_copies(collection.superblock, most - found, copies);
        collection.under_way += found;
        self.tokens = (self.tokens - f64::from(found)).max(0.0);
        self.collection = Some(collection);
    }

    /// Adds a copy of a mapping unit that was located in the victim at an offset already examined.
    pub(crate) fn collect_also(&mut self, copy: Copy) {
        let (superblock, offset) = self.division.superblock(copy.from);
        let passed = (self.collection.as_ref())
            .is_some_and(|it| it.superblock == superblock && offset < it.looked_at);
        if passed {
            self.located.push(copy);
        }
    }

    /// Returns the place at which a copy that was read is to be programmed. Returns `None` if the
    /// mapping unit was overwritten meanwhile, which ends the copy.
    ///
    /// # Panics
    /// If no collection is in progress, or no superblock is left for moved data, which the
    /// specification's checks rule out.
    pub fn place_copy(&mut self, copy: Copy) -> Option<Placement> {
        let mut collection = self.collection.expect("copies belong to a collection");
        let anonymous = copy.logical == Copy::ANONYMOUS;
        if !anonymous && self.entry(copy.logical) != copy.from + 1 {
            collection.under_way -= 1;
            self.collection = Some(collection);
            return None;
        }
        let stream = self.superblocks[collection.superblock as usize].stream;
        let placement = self
            .place(collection.frontier, stream, collection.cause)
            .expect("the reserve takes what is moved");
        collection.placed += 1;
        self.collection = Some(collection);
        if !anonymous {
            self.reverse[placement.physical as usize] = copy.logical + 1;
        }
        self.superblocks[placement.superblock as usize].pending += 1;
        Some(placement)
    }

    /// Completes a copy that has been programmed at its place. The map switches to the new place
    /// unless the mapping unit was overwritten meanwhile.
    ///
    /// # Panics
    /// If no collection is in progress, or the copy was not placed there.
    pub fn copied(&mut self, copy: Copy, placement: Placement) -> Copied {
        let collection = self
            .collection
            .as_mut()
            .expect("copies belong to a collection");
        collection.under_way -= 1;
        collection.placed -= 1;
        let victim = collection.superblock;
        self.superblocks[placement.superblock as usize].pending -= 1;
        let copied = if copy.logical == Copy::ANONYMOUS {
            self.untouched_copied(victim, placement)
        } else {
            self.switch_copy(copy, placement)
        };
        self.close_if_full(placement.superblock);
        copied
    }

    fn switch_copy(&mut self, copy: Copy, placement: Placement) -> Copied {
        assert_eq!(
            self.reverse[placement.physical as usize],
            copy.logical + 1,
            "a copy at another's place"
        );
        self.programmed_unit(placement.physical);
        if self.entry(copy.logical) != copy.from + 1 {
            return Copied::Dead;
        }
        self.change(copy.logical, placement.physical + 1);
        self.invalidate(copy.from);
        self.switch(copy.logical, placement);
        Copied::Switched
    }

    /// Completes the erase of the victim, which is free now, and ends the collection.
    ///
    /// # Panics
    /// If the victim's erase was not due.
    pub fn erased(&mut self) {
        let Progress::Erase(superblock) = self.progress() else {
            panic!("an erase that is not due: {:?}", self.progress());
        };
        let words = superblock as usize * self.words as usize;
        let valid = &self.valid[words..words + self.words as usize];
        assert!(
            valid.iter().all(|&word| word == 0),
            "superblock {superblock} erased with valid units"
        );
        let first = superblock as usize * self.units as usize;
        self.forget_units(first, superblock);
        self.forget_programs(superblock);
        let capacity = self.capacity(superblock);
        let block = &mut self.superblocks[superblock as usize];
        assert!(
            block.written == capacity && block.pending == 0,
            "superblock {superblock} erased while open"
        );
        block.state = State::Free;
        block.written = 0;
        block.erases += 1;
        block.reads = 0;
        block.in_order = false;
        if block.cached {
            self.free_cache(superblock);
        } else {
            self.free.insert((block.erases, superblock));
        }
        self.traffic.erases += 1;
        self.collection = None;
    }
}

impl Ftl {
    /// Clears the reverse map of an erased superblock, whose first physical unit is `first`.
    fn forget_units(&mut self, first: usize, superblock: u32) {
        let in_order = self.superblocks[superblock as usize].in_order;
        let units = &mut self.reverse[first..first + self.units as usize];
        if self.anonymous.is_none() && !in_order {
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
pub(crate) fn below(random: &mut rand_pcg::Pcg64Mcg, bound: u32) -> u32 {
    ((u64::from(random.next_u64() as u32) * u64::from(bound)) >> 32) as u32
}
