//! Power cuts of a translation layer, and the recovery from them.
//!
//! Each programmed unit carries its logical unit and a sequence number beside its data, and the
//! journal records which changes of the map are durable. After a power cut, recovery scans the open
//! superblocks. For each logical unit changed since the last journal it finds the newest
//! *programmed* version, or else the journalled one. An erase therefore waits while the victim
//! holds a unit that a scan would find.

use std::collections::BTreeMap;

use crate::ftl::{Ftl, Placement, State};
use crate::specification::Policy;

/// Change of a logical unit's place; entry 0 is a trim.
#[derive(Debug, Clone, Copy)]
struct Change {
    number: u64,
    /// Physical unit + 1 of the new place.
    entry: u32,
}

/// Logical unit with changes that are not yet in the journal.
#[derive(Debug, Clone)]
struct Changed {
    /// Map entry that the journal holds.
    durable: u32,
    /// Changes after the journalled entry, in order.
    later: Vec<Change>,
}

/// Changes that a power cut could still lose.
#[derive(Debug, Clone)]
pub(crate) struct Unsafe {
    changed: BTreeMap<u32, Changed>,
    /// Number of map changes so far.
    number: u64,
    /// Bitmap of the physical units that are programmed.
    programmed: Vec<u64>,
    /// Number of invalid mapping units in each superblock that a recovery scan would need.
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

/// Journal whose program is in progress. It holds all changes up to its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a journal is worth nothing until it is told that it was programmed"]
pub struct Journal {
    number: u64,
}

/// Loss and scan effort of a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Number of logical units whose newest version was lost, so that an older one is back.
    pub lost: u64,
    /// Number of logical units whose trim was lost.
    pub trims_lost: u64,
    /// Number of program units of open superblocks that were scanned.
    pub scanned: u64,
}

impl Ftl {
    /// Notes a change of a logical unit's place, before the map is updated.
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

    /// Alters the record of a logical unit, whose map entry will be `entry`, and updates the counts
    /// of units that recovery needs.
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

    /// Returns the superblock that must not be erased because recovery would find the logical unit
    /// there, although the map says `entry`. A trim too must be journalled before its unit is
    /// erased; otherwise an older version could come back.
    fn holds(&self, logical: u32, entry: u32) -> Option<u32> {
        let changes = self.unsafe_changes.as_ref()?;
        let found = self.found(changes, changes.changed.get(&logical)?);
        (found != 0 && found != entry).then(|| self.division.superblock(found - 1).0)
    }

    /// Returns the map entry that recovery would find: the newest programmed version, or else the
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

    /// Tests whether recovery from a power cut now could need an invalid mapping unit of the
    /// superblock, or whether programs of the superblock are in progress.
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

    /// Reports that the device has programmed the program unit of a placement, for host data or the
    /// layer's own. Required if power cuts are modelled; otherwise without effect.
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

    /// Begins a journal of all programs and trims so far. A flush without power-loss protection
    /// first programs all buffered data, then a journal.
    ///
    /// # Panics
    /// If the drive's features do not model power cuts.
    pub fn begin_journal(&self) -> Journal {
        let changes = self.unsafe_changes.as_ref().expect("power cuts count");
        Journal {
            number: changes.number,
        }
    }

    /// Completes a journal that has been programmed. Its changes survive a power cut from now on.
    ///
    /// # Panics
    /// If the drive's features do not model power cuts.
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

    /// Returns the number of logical units with changes that are in no journal.
    pub fn unjournalled(&self) -> usize {
        (self.unsafe_changes.as_ref()).map_or(0, |changes| changes.changed.len())
    }

    /// Cuts the power and restores it. With `protection`, buffered data are still programmed;
    /// without, a scan of the open superblocks finds what was programmed. The garbage collection in
    /// progress is abandoned, and partly filled program units are closed.
    ///
    /// # Panics
    /// Without protection, if the drive's features do not model power cuts.
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

    /// Returns the number of program units begun in open superblocks, which recovery scans.
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

    /// Pads the begun program unit of each write frontier, so that no frontier continues in it.
    pub(crate) fn leave_begun(&mut self) {
        for frontier in 0..self.frontiers.len() {
            self.pad_frontier(frontier);
        }
    }

    /// Marks all placed mapping units as programmed and durable.
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
