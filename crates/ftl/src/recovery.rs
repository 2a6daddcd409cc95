//! What a power cut leaves, and going on from there.
//!
//! Every programmed unit carries its logical unit and a sequence number beside its data,
//! and the journal says which changes of the map are durable. After a cut the open
//! superblocks are scanned: of each logical unit that changed since the last journal the
//! newest *programmed* version is found, or else the journalled one. An erase therefore
//! waits while the unit that a scan would find is in the victim.

use std::collections::BTreeMap;

use crate::ftl::{Ftl, Placement, State};
use crate::specification::Policy;

/// One change of a logical unit's place; 0: trimmed.
#[derive(Debug, Clone, Copy)]
struct Change {
    number: u64,
    /// Physical unit + 1.
    entry: u32,
}

/// A logical unit whose map entry is not all in the journal.
#[derive(Debug, Clone)]
struct Changed {
    /// The journalled entry.
    durable: u32,
    /// What came after it, in order.
    later: Vec<Change>,
}

/// What is not yet safe from a power cut.
#[derive(Debug, Clone)]
pub(crate) struct Unsafe {
    changed: BTreeMap<u32, Changed>,
    /// Changes so far.
    number: u64,
    /// A bit for each physical unit that was programmed.
    programmed: Vec<u64>,
    /// For each superblock, invalid units that a scan would find.
    held: Vec<u32>,
}

impl Unsafe {
    pub(crate) fn new(words: usize, superblocks: u32) -> Self {
        Self {
            changed: BTreeMap::new(),
            number: 0,
            programmed: vec![0; words],
            held: vec![0; superblocks as usize],
        }
    }
}

/// A journal that is being programmed: it holds all changes until it was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a journal is worth nothing until it is told that it was programmed"]
pub struct Journal {
    number: u64,
}

/// What came of a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Logical units whose newest version was lost: an older one is back.
    pub lost: u64,
    /// Logical units whose trim was lost.
    pub trims_lost: u64,
    /// Program units of open superblocks that were scanned.
    pub scanned: u64,
}

impl Ftl {
    /// Notes where a logical unit is to be from now on; before the map says so.
    pub(crate) fn change(&mut self, logical: u32, entry: u32) {
        if self.unsafe_changes.is_none() {
            return;
        }
        let now = self.entry(logical);
        self.with_hold(logical, entry, |changes| {
            changes.number += 1;
            let number = changes.number;
            let changed = changes.changed.entry(logical).or_insert_with(|| Changed {
                durable: now,
                later: Vec::new(),
            });
            changed.later.push(Change { number, entry });
        });
    }

    /// Changes what is noted of a logical unit whose entry is `entry` then, and counts
    /// again which superblock it holds.
    fn with_hold(&mut self, logical: u32, entry: u32, alter: impl FnOnce(&mut Unsafe)) {
        let before = self.holds(logical, self.entry(logical));
        let changes = self.unsafe_changes.as_mut().expect("power cuts count");
        alter(changes);
        let after = self.holds(logical, entry);
        let changes = self.unsafe_changes.as_mut().expect("power cuts count");
        if let Some(superblock) = before {
            changes.held[superblock as usize] -= 1;
        }
        if let Some(superblock) = after {
            changes.held[superblock as usize] += 1;
        }
    }

    /// The superblock that must not be erased, as recovery would find the logical unit
    /// there, though the map says `entry`. A trim too must be journalled before its unit is
    /// erased: an older version could come back instead.
    fn holds(&self, logical: u32, entry: u32) -> Option<u32> {
        let changes = self.unsafe_changes.as_ref()?;
        let found = self.found(changes, changes.changed.get(&logical)?);
        (found != 0 && found != entry).then(|| self.division.superblock(found - 1).0)
    }

    /// The entry that recovery would find: the newest that was programmed, or else the
    /// journalled one.
    fn found(&self, changes: &Unsafe, changed: &Changed) -> u32 {
        (changed.later.iter().rev())
            .map(|change| change.entry)
            .find(|&entry| entry != 0 && self.is_programmed(changes, entry))
            .unwrap_or(changed.durable)
    }

    fn is_programmed(&self, changes: &Unsafe, entry: u32) -> bool {
        let (word, bit) = self.bit(entry - 1);
        changes.programmed[word] & bit != 0
    }

    /// Whether a power cut now could need a unit of the superblock that is not valid, or
    /// programs of the superblock are under way.
    pub(crate) fn is_held(&self, superblock: u32) -> bool {
        let Some(changes) = &self.unsafe_changes else {
            return false;
        };
        let words = superblock as usize * self.words as usize;
        let programmed: u32 = (changes.programmed[words..words + self.words as usize].iter())
            .map(|word| word.count_ones())
            .sum();
        changes.held[superblock as usize] > 0 || programmed < self.capacity(superblock)
    }

    /// The device has programmed the program unit of a placement that the host or the
    /// layer itself wrote. Needed where power cuts count; nothing otherwise.
    pub fn programmed(&mut self, placement: Placement) {
        if self.unsafe_changes.is_none() {
            return;
        }
        let program_units = self.program_units(placement.superblock);
        let first = placement.physical - placement.physical % self.units % program_units;
        for physical in first..first + program_units {
            self.programmed_unit(physical);
        }
    }

    pub(crate) fn programmed_unit(&mut self, physical: u32) {
        let (word, bit) = self.bit(physical);
        match (
            self.owner(physical).checked_sub(1),
            &mut self.unsafe_changes,
        ) {
            (_, None) => {}
            (None, Some(changes)) => changes.programmed[word] |= bit,
            (Some(logical), Some(_)) => {
                let entry = self.entry(logical);
                self.with_hold(logical, entry, |changes| changes.programmed[word] |= bit);
            }
        }
    }

    pub(crate) fn forget_programs(&mut self, superblock: u32) {
        let words = superblock as usize * self.words as usize;
        if let Some(changes) = &mut self.unsafe_changes {
            changes.programmed[words..words + self.words as usize].fill(0);
        }
    }

    /// Begins a journal of what was programmed and trimmed so far. A flush without
    /// power-loss protection programs all that is buffered first, then a journal.
    ///
    /// # Panics
    /// If the drive's features leave power cuts out of account.
    pub fn begin_journal(&self) -> Journal {
        let changes = self.unsafe_changes.as_ref().expect("power cuts count");
        Journal {
            number: changes.number,
        }
    }

    /// A journal has been programmed: what it holds survives a power cut.
    ///
    /// # Panics
    /// If the drive's features leave power cuts out of account.
    pub fn journalled(&mut self, journal: Journal) {
        let changes = self.unsafe_changes.as_ref().expect("power cuts count");
        let logicals: Vec<u32> = changes.changed.keys().copied().collect();
        for logical in logicals {
            let changed = &changes_of(self).changed[&logical];
            let held = |change: &Change| {
                change.number <= journal.number
                    && (change.entry == 0 || self.is_programmed(changes_of(self), change.entry))
            };
            let Some(index) = changed.later.iter().rposition(held) else {
                continue;
            };
            self.with_hold(logical, self.entry(logical), |changes| {
                let changed = changes.changed.get_mut(&logical).expect("it was there");
                changed.durable = changed.later[index].entry;
                changed.later.drain(..=index);
                if changed.later.is_empty() {
                    changes.changed.remove(&logical);
                }
            });
        }
    }

    /// Logical units with changes that are in no journal.
    pub fn unjournalled(&self) -> usize {
        (self.unsafe_changes.as_ref()).map_or(0, |changes| changes.changed.len())
    }

    /// The power fails now and comes back. With `protection` what is buffered is still
    /// programmed; without, a scan of the open superblocks finds what was programmed. The
    /// collection under way is given up, and each program unit that was begun is left.
    ///
    /// # Panics
    /// Without protection, if the drive's features leave power cuts out of account.
    pub fn power_cut(&mut self, protection: bool) -> Recovered {
        let mut recovered = Recovered {
            scanned: self.scanned(),
            ..Recovered::default()
        };
        self.abandon_collection();
        if !protection {
            let changes = self.unsafe_changes.as_ref().expect("power cuts count");
            let found: Vec<(u32, u32)> = (changes.changed.iter())
                .map(|(&logical, changed)| (logical, self.found(changes, changed)))
                .collect();
            self.unsafe_changes = None;
            for (logical, entry) in found {
                self.bring_back(logical, entry, &mut recovered);
            }
        }
        self.leave_begun();
        self.settle();
        recovered
    }

    fn bring_back(&mut self, logical: u32, entry: u32, recovered: &mut Recovered) {
        let now = self.entry(logical);
        if now == entry {
            return;
        }
        match now {
            0 => recovered.trims_lost += 1,
            _ => recovered.lost += 1,
        }
        if let Some(physical) = now.checked_sub(1) {
            self.invalidate(physical);
        }
        self.map.set(logical, self.unmapped());
        if let Some(physical) = entry.checked_sub(1) {
            self.revalidate(logical, physical);
        }
        let system = u64::from(logical >= self.specification.logical_units);
        let (is, was) = (u64::from(entry != 0), u64::from(now != 0));
        self.mapped = self.mapped + is - was;
        self.system_mapped = self.system_mapped + is * system - was * system;
    }

    /// Program units begun in open superblocks.
    fn scanned(&self) -> u64 {
        (self.frontiers.iter().flatten())
            .map(|&open| {
                let written = self.superblocks[open as usize].written;
                u64::from(written.div_ceil(self.program_units(open)))
            })
            .sum()
    }

    fn abandon_collection(&mut self) {
        self.located.clear();
        self.forget_untouched_copies();
        if let Some(collection) = self.collection.take() {
            let superblock = collection.superblock;
            let block = &mut self.superblocks[superblock as usize];
            if block.cached {
                self.recache(superblock);
            } else {
                block.state = State::Closed;
                self.buckets.insert(superblock, block.valid);
                if self.specification.policy == Policy::Fifo {
                    self.closing_order.push_front((superblock, block.closed_at));
                }
            }
        }
        for superblock in 0..self.superblocks.len() as u32 {
            let block = &mut self.superblocks[superblock as usize];
            if block.pending > 0 {
                block.pending = 0;
                self.close_if_full(superblock);
            }
        }
    }

    /// No frontier goes on in a program unit that was begun.
    pub(crate) fn leave_begun(&mut self) {
        for frontier in 0..self.frontiers.len() {
            self.pad_frontier(frontier);
        }
    }

    /// What is in place now is as durable as it will be.
    pub(crate) fn settle(&mut self) {
        if !self.features.power_cuts {
            return;
        }
        let mut settled = Unsafe::new(self.valid.len(), self.superblocks.len() as u32);
        for (superblock, block) in (0..).zip(&self.superblocks) {
            if block.written == 0 {
                continue;
            }
            for offset in 0..self.units {
                if self.has_place(superblock, offset) {
                    let (word, bit) = self.bit(superblock * self.units + offset);
                    settled.programmed[word] |= bit;
                }
            }
        }
        self.unsafe_changes = Some(Box::new(settled));
    }
}

fn changes_of(ftl: &Ftl) -> &Unsafe {
    ftl.unsafe_changes.as_ref().expect("power cuts count")
}
