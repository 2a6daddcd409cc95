//! Garbage collection as a process: choose a victim, copy what is valid, erase.

use rand_core::Rng as _;

use crate::ftl::{Ftl, Placement, State, Superblock};
use crate::specification::Policy;
use crate::traffic::Cause;

/// The greatest share of the writes that a victim makes room for which may pay for nothing.
const MOST_UNPAID: f64 = 0.75;

/// A superblock that is being emptied.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Collection {
    pub(crate) superblock: u32,
    cause: Cause,
    /// The frontier that takes its copies.
    pub(crate) frontier: usize,
    /// Units of the victim that were looked at.
    looked_at: u32,
    /// Copies handed out and not yet programmed.
    under_way: u32,
    /// Those of them that have a place.
    placed: u32,
    /// Copies that one host write pays for.
    copies_per_write: f64,
}

/// A valid unit of the victim, to be read and then placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Copy {
    /// The logical unit.
    pub logical: u32,
    /// Where it is read.
    pub from: u32,
}

impl Copy {
    /// The logical unit of a copy of a unit without address.
    pub const ANONYMOUS: u32 = u32::MAX;
}

/// What a copy came to when it was programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// The map now gives the new place.
    Switched,
    /// The unit was overwritten or trimmed meanwhile: dead on arrival.
    Dead,
}

/// What is next in a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// No victim was chosen.
    Idle,
    /// There are units to copy.
    Copies,
    /// Copies are under way. When the device has read and placed them all, and none is
    /// being programmed, their last program unit is filled in part: it is to be
    /// [padded](Ftl::pad_writer). Where power cuts count, also: a unit of the victim was
    /// overwritten by one that is still to be programmed, is so itself, or was trimmed and
    /// that is to be [journalled](Ftl::begin_journal).
    Waiting,
    /// This superblock is to be erased.
    Erase(u32),
}

impl Ftl {
    /// Whether collection should go on in the background: few superblocks are free, or the
    /// cache of one bit a cell could have one that needs but an erase.
    pub fn wants_collection(&self) -> bool {
        self.are_too_few_free() || self.wants_erase()
    }

    fn are_too_few_free(&self) -> bool {
        self.free_superblocks() < self.specification.soft_free
    }

    /// Whether the host should wait for collection: very few superblocks are free.
    pub fn must_collect(&self) -> bool {
        self.free_superblocks() < self.specification.hard_free
    }

    /// Copies that the host's writes have paid for: a paced drive makes no more.
    pub fn copies_due(&self) -> u32 {
        self.tokens as u32
    }

    /// Chooses a victim; gives its superblock and why, or none when there is nothing to
    /// collect or a collection is under way.
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

    /// A closed superblock with no valid unit.
    fn empty(&self) -> Option<u32> {
        let is_empty = |block: &Superblock| block.state == State::Closed && block.valid == 0;
        let index = self.superblocks.iter().position(is_empty)?;
        Some(index as u32)
    }

    /// Begins to write a closed superblock anew; false when it is not closed, or a
    /// collection is under way.
    pub fn begin_refresh(&mut self, superblock: u32) -> bool {
        let closed = self.superblocks[superblock as usize].state == State::Closed;
        if self.collection.is_some() || !closed {
            return false;
        }
        self.begin(superblock, Cause::Refresh);
        true
    }

    /// Counts a read of a superblock; gives the reads since its erase.
    pub fn count_read(&mut self, superblock: u32) -> u32 {
        let block = &mut self.superblocks[superblock as usize];
        block.reads = block.reads.saturating_add(1);
        block.reads
    }

    /// Makes a superblock the collection's.
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

    /// Copies that a host write pays for: x / (1 - x), x the valid share of the victim, since
    /// that many writes fill what is won. Writes that came while the victim before this one
    /// was erased, when there was nothing to copy, are spread over those that come now: were
    /// they to pay for copies then, the next write would wait for them all.
    fn copies_per_write(&self, superblock: u32, cause: Cause) -> f64 {
        let units = f64::from(self.data_units);
        let valid = f64::from(self.superblocks[superblock as usize].valid);
        if matches!(cause, Cause::WearLevelling | Cause::Refresh) {
            // Nothing is won: it is to be done before a superblock more is written.
            return valid / units;
        }
        let won = units - valid;
        let left = won - f64::from(self.unpaid).min(won * MOST_UNPAID);
        // A victim with no invalid unit would ask for endless copies per write.
        valid / left.max(1.0)
    }

    /// A host write pays for copies, and for up to twice as many as free superblocks fall
    /// from the soft threshold to the hard one.
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

    /// The least erased closed superblock, when erase counts are too far apart.
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

    /// Where data of `stream` is moved to. An open superblock that hardly anything is
    /// moved to falls behind in erases too: wear levelling fills it first.
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

    /// Copies that may still need a place; 0 when all have one.
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

    /// What the collection's next step is.
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

    /// Adds to `copies` the next valid units of the victim, at most `most`. Each is to
    /// be read, then [placed](Self::place_copy), programmed and [told](Self::copied).
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

    /// A unit of a victim was given a place that the collection may have passed.
    pub(crate) fn collect_also(&mut self, copy: Copy) {
        let (superblock, offset) = self.division.superblock(copy.from);
        let passed = (self.collection.as_ref())
            .is_some_and(|it| it.superblock == superblock && offset < it.looked_at);
        if passed {
            self.located.push(copy);
        }
    }

    /// The place where a copy that was read is to be programmed; none if the unit was
    /// overwritten meanwhile, and the copy is at its end.
    ///
    /// # Panics
    /// If no collection is under way, or no superblock is left to move data to, which
    /// the specification's checks rule out.
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

    /// A copy has been programmed at its place: the map is switched to it, unless the
    /// unit was overwritten meanwhile.
    ///
    /// # Panics
    /// If no collection is under way, or the copy was not placed there.
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

    /// The victim has been erased: it is free, and the collection ends.
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
    /// Nothing is programmed from this unit on in its superblock.
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

/// A number in 0 .. `bound`, each as likely (to 2^-32).
pub(crate) fn below(random: &mut rand_pcg::Pcg64Mcg, bound: u32) -> u32 {
    ((u64::from(random.next_u64() as u32) * u64::from(bound)) >> 32) as u32
}
