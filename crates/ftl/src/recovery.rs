//! Power cuts of a translation layer, and the recovery from them.
//!
//! Each programmed unit carries its logical unit and a sequence number beside its data, and the
//! journal records which changes of the map are durable. After a power cut, recovery scans the open
//! superblocks. For each logical unit changed since the last journal it finds the newest
//! *programmed* version, or else the journalled one. An erase therefore waits while the victim
//! holds a unit that a scan would find.

use std::collections::BTreeMap;

use crate::ftl::{Ftl, Placement, SuperblockState};
use crate::specification::VictimPolicy;

/// Change of a logical unit's place; entry 0 is a trim.
#[derive(Debug, Clone, Copy)]
struct MapChange {
    change_number: u64,
    /// Physical unit + 1 of the new place.
    entry: u32,
}

/// Logical unit with changes that are not yet in the journal.
#[derive(Debug, Clone)]
struct UnitChanges {
    /// Map entry that the journal holds.
    durable_entry: u32,
    /// Changes after the journalled entry, in order.
    later_changes: Vec<MapChange>,
}

/// Changes that a power cut could still lose.
#[derive(Debug, Clone)]
pub(crate) struct UndurableChanges {
    units_changed: BTreeMap<u32, UnitChanges>,
    /// Number of map changes so far.
    last_change_number: u64,
    /// Bitmap of the physical units that are programmed.
    programmed_bitmap: Vec<u64>,
    /// Number of invalid mapping units in each superblock that a recovery scan would need.
    held_units_by_superblock: Vec<u32>,
}

impl UndurableChanges {
    pub(crate) fn new(words: usize, superblocks: u32) -> Self {
        Self {
            units_changed: BTreeMap::new(),
            last_change_number: 0,
            programmed_bitmap: vec![0; words],
            held_units_by_superblock: vec![0; superblocks as usize],
        }
    }
}

/// Journal whose program is in progress. It holds all changes up to its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a journal is worth nothing until it is told that it was programmed"]
pub struct JournalWrite {
    change_number: u64,
}

/// Loss and scan effort of a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PowerCutRecovery {
    /// Number of logical units whose newest version was lost, so that an older one is back.
    pub lost_writes: u64,
    /// Number of logical units whose trim was lost.
    pub lost_trims: u64,
    /// Number of program units of open superblocks that were scanned.
    pub scanned_units: u64,
}

impl Ftl {
    /// Notes a change of a logical unit's place, before the map is updated.
    pub(crate) fn record_change(&mut self, logical: u32, entry: u32) {
        if self.undurable_changes.is_none() {
            return;
        }
        let now = self.effective_entry(logical);
        self.update_hold(logical, entry, |changes| {
            changes.last_change_number += 1;
            let number = changes.last_change_number;
            let changed = changes
                .units_changed
                .entry(logical)
                .or_insert_with(|| UnitChanges {
                    durable_entry: now,
                    later_changes: Vec::new(),
                });
            changed.later_changes.push(MapChange {
                change_number: number,
                entry,
            });
        });
    }

    /// Alters the record of a logical unit, whose map entry will be `entry`, and updates the counts
    /// of units that recovery needs.
    fn update_hold(&mut self, logical: u32, entry: u32, alter: impl FnOnce(&mut UndurableChanges)) {
        let before = self.superblock_held_by(logical, self.effective_entry(logical));
        let changes = self.undurable_changes.as_mut().expect("power cuts count");
        alter(changes);
        let after = self.superblock_held_by(logical, entry);
        let changes = self.undurable_changes.as_mut().expect("power cuts count");
        if let Some(superblock) = before {
            changes.held_units_by_superblock[superblock as usize] -= 1;
        }
        if let Some(superblock) = after {
            changes.held_units_by_superblock[superblock as usize] += 1;
        }
    }

    /// Returns the superblock that must not be erased because recovery would find the logical unit
    /// there, although the map says `entry`. A trim too must be journalled before its unit is
    /// erased; otherwise an older version could come back.
    fn superblock_held_by(&self, logical: u32, entry: u32) -> Option<u32> {
        let changes = self.undurable_changes.as_ref()?;
        let found = self.entry_after_power_cut(changes, changes.units_changed.get(&logical)?);
        (found != 0 && found != entry).then(|| self.division.split_by_superblock(found - 1).0)
    }

    /// Returns the map entry that recovery would find: the newest programmed version, or else the
    /// journalled one.
    fn entry_after_power_cut(&self, changes: &UndurableChanges, changed: &UnitChanges) -> u32 {
        (changed.later_changes.iter().rev())
            .map(|change| change.entry)
            .find(|&entry| entry != 0 && self.is_programmed(changes, entry))
            .unwrap_or(changed.durable_entry)
    }

    fn is_programmed(&self, changes: &UndurableChanges, entry: u32) -> bool {
        let (word, bit) = self.valid_bit(entry - 1);
        changes.programmed_bitmap[word] & bit != 0
    }

    /// Tests whether recovery from a power cut now could need an invalid mapping unit of the
    /// superblock, or whether programs of the superblock are in progress.
    pub(crate) fn is_held(&self, superblock: u32) -> bool {
        let Some(changes) = &self.undurable_changes else {
            return false;
        };
        let words = superblock as usize * self.bitmap_words_per_superblock as usize;
        let programmed: u32 = (changes.programmed_bitmap
            [words..words + self.bitmap_words_per_superblock as usize]
            .iter())
        .map(|word| word.count_ones())
        .sum();
        changes.held_units_by_superblock[superblock as usize] > 0
            || programmed < self.capacity_units(superblock)
    }

    /// Reports that the device has programmed the program unit of a placement, for host data or the
    /// layer's own. Required if power cuts are modelled; otherwise without effect.
    pub fn complete_program(&mut self, placement: Placement) {
        if self.undurable_changes.is_none() {
            return;
        }
        let program_units = self.program_units(placement.superblock);
        let first = placement.physical - placement.physical % self.superblock_units % program_units;
        for physical in first..first + program_units {
            self.complete_unit_program(physical);
        }
    }

    pub(crate) fn complete_unit_program(&mut self, physical: u32) {
        let (word, bit) = self.valid_bit(physical);
        match (
            self.reverse_entry(physical).checked_sub(1),
            &mut self.undurable_changes,
        ) {
            (_, None) => {}
            (None, Some(changes)) => changes.programmed_bitmap[word] |= bit,
            (Some(logical), Some(_)) => {
                let entry = self.effective_entry(logical);
                self.update_hold(logical, entry, |changes| {
                    changes.programmed_bitmap[word] |= bit
                });
            }
        }
    }

    pub(crate) fn clear_programmed_units(&mut self, superblock: u32) {
        let words = superblock as usize * self.bitmap_words_per_superblock as usize;
        if let Some(changes) = &mut self.undurable_changes {
            changes.programmed_bitmap[words..words + self.bitmap_words_per_superblock as usize]
                .fill(0);
        }
    }

    /// Begins a journal of all programs and trims so far. A flush without power-loss protection
    /// first programs all buffered data, then a journal.
    ///
    /// # Panics
    /// If the drive's features do not model power cuts.
    pub fn begin_journal(&self) -> JournalWrite {
        let changes = self.undurable_changes.as_ref().expect("power cuts count");
        JournalWrite {
            change_number: changes.last_change_number,
        }
    }

    /// Completes a journal that has been programmed. Its changes survive a power cut from now on.
    ///
    /// # Panics
    /// If the drive's features do not model power cuts.
    pub fn complete_journal(&mut self, journal: JournalWrite) {
        let changes = self.undurable_changes.as_ref().expect("power cuts count");
        let logicals: Vec<u32> = changes.units_changed.keys().copied().collect();
        for logical in logicals {
            let changed = &undurable_changes_of(self).units_changed[&logical];
            let held = |change: &MapChange| {
                change.change_number <= journal.change_number
                    && (change.entry == 0
                        || self.is_programmed(undurable_changes_of(self), change.entry))
            };
            let Some(index) = changed.later_changes.iter().rposition(held) else {
                continue;
            };
            self.update_hold(logical, self.effective_entry(logical), |changes| {
                let changed = changes
                    .units_changed
                    .get_mut(&logical)
                    .expect("it was there");
                changed.durable_entry = changed.later_changes[index].entry;
                changed.later_changes.drain(..=index);
                if changed.later_changes.is_empty() {
                    changes.units_changed.remove(&logical);
                }
            });
        }
    }

    /// Returns the number of logical units with changes that are in no journal.
    pub fn unjournalled_unit_count(&self) -> usize {
        (self.undurable_changes.as_ref()).map_or(0, |changes| changes.units_changed.len())
    }

    /// Cuts the power and restores it. With `protection`, buffered data are still programmed;
    /// without, a scan of the open superblocks finds what was programmed. The garbage collection in
    /// progress is abandoned, and partly filled program units are closed.
    ///
    /// # Panics
    /// Without protection, if the drive's features do not model power cuts.
    pub fn recover_from_power_cut(&mut self, protection: bool) -> PowerCutRecovery {
        let mut recovered = PowerCutRecovery {
            scanned_units: self.units_to_scan(),
            ..PowerCutRecovery::default()
        };
        self.abandon_collection();
        if !protection {
            let changes = self.undurable_changes.as_ref().expect("power cuts count");
            let found: Vec<(u32, u32)> = (changes.units_changed.iter())
                .map(|(&logical, changed)| (logical, self.entry_after_power_cut(changes, changed)))
                .collect();
            self.undurable_changes = None;
            for (logical, entry) in found {
                self.restore_entry(logical, entry, &mut recovered);
            }
        }
        self.close_partial_programs();
        self.settle_preconditioning();
        recovered
    }

    fn restore_entry(&mut self, logical: u32, entry: u32, recovered: &mut PowerCutRecovery) {
        let now = self.effective_entry(logical);
        if now == entry {
            return;
        }
        match now {
            0 => recovered.lost_trims += 1,
            _ => recovered.lost_writes += 1,
        }
        if let Some(physical) = now.checked_sub(1) {
            self.invalidate(physical);
        }
        self.map.set(logical, self.unmapped_entry());
        if let Some(physical) = entry.checked_sub(1) {
            self.revalidate(logical, physical);
        }
        let system = u64::from(logical >= self.specification.logical_units);
        let (is, was) = (u64::from(entry != 0), u64::from(now != 0));
        self.mapped_count = self.mapped_count + is - was;
        self.system_mapped_count = self.system_mapped_count + is * system - was * system;
    }

    /// Returns the number of program units begun in open superblocks, which recovery scans.
    fn units_to_scan(&self) -> u64 {
        (self.open_superblocks.iter().flatten())
            .map(|&open| {
                let written = self.superblocks[open as usize].placed_count;
                u64::from(written.div_ceil(self.program_units(open)))
            })
            .sum()
    }

    fn abandon_collection(&mut self) {
        self.located_copies.clear();
        self.discard_untouched_copies();
        if let Some(collection) = self.collection.take() {
            let superblock = collection.victim;
            let block = &mut self.superblocks[superblock as usize];
            if block.is_slc {
                self.return_to_cache(superblock);
            } else {
                block.state = SuperblockState::Closed;
                self.closed_superblocks
                    .insert(superblock, block.valid_count);
                if self.specification.policy == VictimPolicy::OldestFirst {
                    self.closed_fifo
                        .push_front((superblock, block.closed_at_clock));
                }
            }
        }
        for superblock in 0..self.superblocks.len() as u32 {
            let block = &mut self.superblocks[superblock as usize];
            if block.unprogrammed_copies > 0 {
                block.unprogrammed_copies = 0;
                self.close_if_full(superblock);
            }
        }
    }

    /// Pads the begun program unit of each write frontier, so that no frontier continues in it.
    pub(crate) fn close_partial_programs(&mut self) {
        for frontier in 0..self.open_superblocks.len() {
            self.pad_program_of_frontier(frontier);
        }
    }

    /// Marks all placed mapping units as programmed and durable.
    pub(crate) fn settle_preconditioning(&mut self) {
        if !self.features.tracks_power_cuts {
            return;
        }
        let mut settled =
            UndurableChanges::new(self.valid_bitmap.len(), self.superblocks.len() as u32);
        for (superblock, block) in (0..).zip(&self.superblocks) {
            if block.placed_count == 0 {
                continue;
            }
            for offset in 0..self.superblock_units {
                if self.is_unit_placed(superblock, offset) {
                    let (word, bit) = self.valid_bit(superblock * self.superblock_units + offset);
                    settled.programmed_bitmap[word] |= bit;
                }
            }
        }
        self.undurable_changes = Some(Box::new(settled));
    }
}

fn undurable_changes_of(ftl: &Ftl) -> &UndurableChanges {
    ftl.undurable_changes.as_ref().expect("power cuts count")
}
