//! Write buffer of a flash drive: mapping units that wait for a program or are being programmed.

use crate::RequestId;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Mapping unit in the write buffer that waits for its program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) logical: u32,
    /// Version of the mapping unit's data, as [`Contents`](super::contents::Contents) counts
    /// writes.
    pub(super) version: u64,
    epoch: u64,
    /// Write that completes only when the mapping unit is programmed (write-through or FUA).
    pub(super) owner: Option<RequestId>,
}

/// Versions of a mapping unit in the write buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Versions {
    /// Whether a version waits that a later write may replace.
    waits: bool,
    epoch: u64,
    version: u64,
    /// Number of waiting versions that have an owner.
    owned: u32,
    programming: u32,
}

impl Versions {
    fn is_empty(&self) -> bool {
        !self.waits && self.owned == 0 && self.programming == 0
    }
}

/// Write buffer of a flash drive.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    units: u32,
    used: u32,
    held: HashMap<u32, Versions, BuildHasherDefault<Spread>>,
    waiting: VecDeque<Waiting>,
    /// Mapping units that are programmed ahead of the others.
    urgent: VecDeque<Waiting>,
    /// Number of mapping units in both queues that wait and have not been dropped.
    waits: u32,
    /// Number of mapping units at the front of `waiting` that a flush waits for.
    wanted: usize,
    /// Number of mapping units that arrived before each unfinished flush, and after the last flush.
    epochs: VecDeque<u32>,
    first_epoch: u64,
}

impl Buffer {
    pub(super) fn new(units: u32) -> Self {
        Self {
            units,
            used: 0,
            held: HashMap::default(),
            waiting: VecDeque::new(),
            urgent: VecDeque::new(),
            waits: 0,
            wanted: 0,
            epochs: VecDeque::from([0]),
            first_epoch: 0,
        }
    }

    /// Raises the capacity to `units`, if it is lower.
    pub(super) fn grow(&mut self, units: u32) {
        self.units = self.units.max(units);
    }

    /// Returns the free space of the write buffer, in mapping units.
    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.units - self.used
    }

    /// Returns the number of mapping units in the buffer or in transfer to it.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn reserve(&mut self, units: u32) {
        assert!(units <= self.room(), "a buffer that is full");
        self.used += units;
    }

    /// Tests whether the buffer holds the newest data of a logical unit.
    #[inline]
    pub(super) fn has(&self, logical: u32) -> bool {
        !self.held.is_empty() && self.held.contains_key(&logical)
    }

    /// Inserts a mapping unit for which space was reserved, and returns whether it replaced a
    /// waiting version. A unit with an owner replaces nothing; it is programmed ahead of the
    /// others.
    pub(super) fn insert(
        &mut self,
        (logical, version): (u32, u64),
        owner: Option<RequestId>,
    ) -> bool {
        let mut replaced = self.held.get_mut(&logical).filter(|of| of.waits);
        if let (None, Some(replaced)) = (owner, &mut replaced) {
            replaced.version = version;
            self.used -= 1;
            return true;
        }
        // What takes the place of data that a flush waits for is waited for as they were.
        let newest = self.first_epoch + self.epochs.len() as u64 - 1;
        let epoch = replaced.map_or(newest, |of| of.epoch);
        self.epochs[(epoch - self.first_epoch) as usize] += 1;
        if owner.is_some() {
            self.forget(logical);
        }
        let waiting = Waiting {
            logical,
            version,
            epoch,
            owner,
        };
        let versions = self.held.entry(logical).or_default();
        match owner {
            Some(_) => {
                versions.owned += 1;
                self.urgent.push_back(waiting);
            }
            None => {
                (versions.waits, versions.epoch) = (true, epoch);
                versions.version = version;
                self.waiting.push_back(waiting);
            }
        }
        self.waits += 1;
        false
    }

    /// Returns the number of mapping units that wait for a program.
    #[inline]
    pub(super) fn waits(&self) -> u32 {
        self.waits
    }

    /// Tests whether some waiting mapping units must be programmed even if they do not fill a
    /// program.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.waits > 0 && (self.wanted > 0 || !self.urgent.is_empty())
    }

    /// Returns the next waiting mapping unit, and marks it as being programmed.
    pub(super) fn next(&mut self) -> Option<Waiting> {
        let next = match self.urgent.pop_front() {
            Some(next) => {
                self.held.get_mut(&next.logical).expect("it waits").owned -= 1;
                next
            }
            None => self.next_of_waiting()?,
        };
        let versions = self.held.get_mut(&next.logical).expect("it waits");
        versions.programming += 1;
        self.waits -= 1;
        Some(next)
    }

    fn next_of_waiting(&mut self) -> Option<Waiting> {
        loop {
            let mut next = self.waiting.pop_front()?;
            self.wanted = self.wanted.saturating_sub(1);
            let versions = self.held.get_mut(&next.logical);
            // It may have been forgotten since.
            if let Some(versions) = versions.filter(|of| of.waits && of.epoch == next.epoch) {
                versions.waits = false;
                next.version = versions.version;
                return Some(next);
            }
        }
    }

    /// Returns the newest waiting version of a logical unit, if any.
    pub(super) fn waiting_version(&self, logical: u32) -> Option<u64> {
        let of = self.held.get(&logical)?;
        let owned = (of.owned > 0).then(|| {
            let of_unit = |unit: &&Waiting| unit.logical == logical;
            self.urgent.iter().rev().find(of_unit)
        });
        let owned = owned.flatten().map(|unit| unit.version);
        owned.max(of.waits.then_some(of.version))
    }

    /// Applies a power cut: programs are aborted and owners are forgotten. Waiting mapping units
    /// survive only in a `protected` buffer.
    pub(super) fn lose_power(&mut self, protected: bool) {
        let mut kept = Self::new(self.units);
        while protected && let Some(unit) = self.next() {
            kept.reserve(1);
            kept.insert((unit.logical, unit.version), None);
        }
        *self = kept;
    }

    /// Removes a mapping unit that has been programmed.
    pub(super) fn programmed(&mut self, unit: Waiting) {
        self.used -= 1;
        self.leave_epoch(unit.epoch);
        let versions = self.held.get_mut(&unit.logical).expect("it was programmed");
        versions.programming -= 1;
        if versions.is_empty() {
            self.held.remove(&unit.logical);
        }
    }

    /// Drops the waiting version of a logical unit, because a newer write replaces it or the host
    /// trims it.
    pub(super) fn forget(&mut self, logical: u32) {
        let Some(versions) = self.held.get_mut(&logical).filter(|of| of.waits) else {
            return;
        };
        versions.waits = false;
        let (epoch, empty) = (versions.epoch, versions.is_empty());
        if empty {
            self.held.remove(&logical);
        }
        self.used -= 1;
        self.waits -= 1;
        self.leave_epoch(epoch);
    }

    fn leave_epoch(&mut self, epoch: u64) {
        self.epochs[(epoch - self.first_epoch) as usize] -= 1;
        while self.epochs.len() > 1 && self.epochs[0] == 0 {
            self.epochs.pop_front();
            self.first_epoch += 1;
        }
    }

    /// Marks all waiting mapping units as wanted by a flush, and returns an epoch number for
    /// [`Self::has_flushed`].
    pub(super) fn flush(&mut self) -> u64 {
        let epoch = self.first_epoch + self.epochs.len() as u64 - 1;
        self.wanted = self.waiting.len();
        self.epochs.push_back(0);
        while self.epochs.len() > 1 && self.epochs[0] == 0 {
            self.epochs.pop_front();
            self.first_epoch += 1;
        }
        epoch
    }

    /// Tests whether all mapping units that arrived before a flush have been programmed.
    pub(super) fn has_flushed(&self, epoch: u64) -> bool {
        epoch < self.first_epoch
    }
}

/// Hash function that spreads unit numbers over a table.
#[derive(Clone, Copy, Debug, Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        // The golden ratio spreads neighbours; the table goes by the upper bits and the
        // lowest.
        let spread = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = spread ^ spread >> 32;
    }
}
