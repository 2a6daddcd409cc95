//! Write buffer of a flash drive: mapping units that wait for a program or are being programmed.

use crate::RequestId;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// Mapping unit in the write buffer that waits for its program.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferedUnit {
    pub(super) logical_unit: u32,
    /// Version of the mapping unit's data, as [`FlashContents`](super::contents::Contents) counts
    /// writes.
    pub(super) version: u64,
    epoch: u64,
    /// Write that completes only when the mapping unit is programmed (write-through or FUA).
    pub(super) owner_request: Option<RequestId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct UnitVersions {
    /// Whether a version waits that a later write may replace.
    has_replaceable: bool,
    epoch: u64,
    version: u64,
    /// Number of waiting versions that have an owner.
    owned_count: u32,
    programming_count: u32,
}

impl UnitVersions {
    fn is_empty(&self) -> bool {
        !self.has_replaceable && self.owned_count == 0 && self.programming_count == 0
    }
}

#[derive(Clone, Debug)]
pub(super) struct FlashBuffer {
    unit_count: u32,
    used_units: u32,
    versions_by_unit: HashMap<u32, UnitVersions, BuildHasherDefault<UnitHasher>>,
    waiting_units: VecDeque<BufferedUnit>,
    /// Mapping units that are programmed ahead of the others.
    urgent_units: VecDeque<BufferedUnit>,
    /// Number of mapping units in both queues that wait and have not been dropped.
    waiting_count: u32,
    /// Number of mapping units at the front of `waiting` that a flush waits for.
    flush_wanted_count: usize,
    /// Number of mapping units that arrived before each unfinished flush, and after the last flush.
    units_by_epoch: VecDeque<u32>,
    first_epoch: u64,
}

impl FlashBuffer {
    pub(super) fn new(units: u32) -> Self {
        Self {
            unit_count: units,
            used_units: 0,
            versions_by_unit: HashMap::default(),
            waiting_units: VecDeque::new(),
            urgent_units: VecDeque::new(),
            waiting_count: 0,
            flush_wanted_count: 0,
            units_by_epoch: VecDeque::from([0]),
            first_epoch: 0,
        }
    }

    /// Raises the capacity to `units`, if it is lower.
    pub(super) fn enlarge(&mut self, units: u32) {
        self.unit_count = self.unit_count.max(units);
    }

    #[inline]
    pub(super) fn free_units(&self) -> u32 {
        self.unit_count - self.used_units
    }

    pub(super) fn used_units(&self) -> u32 {
        self.used_units
    }

    pub(super) fn reserve_units(&mut self, units: u32) {
        assert!(units <= self.free_units(), "a buffer that is full");
        self.used_units += units;
    }

    /// Tests whether the buffer holds the newest data of a logical unit.
    #[inline]
    pub(super) fn contains(&self, logical: u32) -> bool {
        !self.versions_by_unit.is_empty() && self.versions_by_unit.contains_key(&logical)
    }

    /// Inserts a mapping unit for which space was reserved, and returns whether it replaced a
    /// waiting version. A unit with an owner replaces nothing; it is programmed ahead of the
    /// others.
    pub(super) fn insert_unit(
        &mut self,
        (logical, version): (u32, u64),
        owner: Option<RequestId>,
    ) -> bool {
        let mut replaced = self
            .versions_by_unit
            .get_mut(&logical)
            .filter(|of| of.has_replaceable);
        if let (None, Some(replaced)) = (owner, &mut replaced) {
            replaced.version = version;
            self.used_units -= 1;
            return true;
        }
        // What takes the place of data that a flush waits for is waited for as they were.
        let newest = self.first_epoch + self.units_by_epoch.len() as u64 - 1;
        let epoch = replaced.map_or(newest, |of| of.epoch);
        self.units_by_epoch[(epoch - self.first_epoch) as usize] += 1;
        if owner.is_some() {
            self.discard_unit(logical);
        }
        let waiting = BufferedUnit {
            logical_unit: logical,
            version,
            epoch,
            owner_request: owner,
        };
        let versions = self.versions_by_unit.entry(logical).or_default();
        match owner {
            Some(_) => {
                versions.owned_count += 1;
                self.urgent_units.push_back(waiting);
            }
            None => {
                (versions.has_replaceable, versions.epoch) = (true, epoch);
                versions.version = version;
                self.waiting_units.push_back(waiting);
            }
        }
        self.waiting_count += 1;
        false
    }

    /// Returns the number of mapping units that wait for a program.
    #[inline]
    pub(super) fn waiting_count(&self) -> u32 {
        self.waiting_count
    }

    /// Tests whether some waiting mapping units must be programmed even if they do not fill a
    /// program.
    #[inline]
    pub(super) fn has_urgent_units(&self) -> bool {
        self.waiting_count > 0 && (self.flush_wanted_count > 0 || !self.urgent_units.is_empty())
    }

    /// Returns the next waiting mapping unit, and marks it as being programmed.
    pub(super) fn take_next_unit(&mut self) -> Option<BufferedUnit> {
        let next = match self.urgent_units.pop_front() {
            Some(next) => {
                self.versions_by_unit
                    .get_mut(&next.logical_unit)
                    .expect("it waits")
                    .owned_count -= 1;
                next
            }
            None => self.take_waiting_unit()?,
        };
        let versions = self
            .versions_by_unit
            .get_mut(&next.logical_unit)
            .expect("it waits");
        versions.programming_count += 1;
        self.waiting_count -= 1;
        Some(next)
    }

    fn take_waiting_unit(&mut self) -> Option<BufferedUnit> {
        loop {
            let mut next = self.waiting_units.pop_front()?;
            self.flush_wanted_count = self.flush_wanted_count.saturating_sub(1);
            let versions = self.versions_by_unit.get_mut(&next.logical_unit);
            // It may have been forgotten since.
            if let Some(versions) =
                versions.filter(|of| of.has_replaceable && of.epoch == next.epoch)
            {
                versions.has_replaceable = false;
                next.version = versions.version;
                return Some(next);
            }
        }
    }

    pub(super) fn waiting_version(&self, logical: u32) -> Option<u64> {
        let of = self.versions_by_unit.get(&logical)?;
        let owned = (of.owned_count > 0).then(|| {
            let of_unit = |unit: &&BufferedUnit| unit.logical_unit == logical;
            self.urgent_units.iter().rev().find(of_unit)
        });
        let owned = owned.flatten().map(|unit| unit.version);
        owned.max(of.has_replaceable.then_some(of.version))
    }

    /// Applies a power cut: programs are aborted and owners are forgotten. Waiting mapping units
    /// survive only in a `protected` buffer.
    pub(super) fn lose_power(&mut self, protected: bool) {
        let mut kept = Self::new(self.unit_count);
        while protected && let Some(unit) = self.take_next_unit() {
            kept.reserve_units(1);
            kept.insert_unit((unit.logical_unit, unit.version), None);
        }
        *self = kept;
    }

    /// Removes a mapping unit that has been programmed.
    pub(super) fn complete_program(&mut self, unit: BufferedUnit) {
        self.used_units -= 1;
        self.leave_epoch(unit.epoch);
        let versions = self
            .versions_by_unit
            .get_mut(&unit.logical_unit)
            .expect("it was programmed");
        versions.programming_count -= 1;
        if versions.is_empty() {
            self.versions_by_unit.remove(&unit.logical_unit);
        }
    }

    /// Drops the waiting version of a logical unit, because a newer write replaces it or the host
    /// trims it.
    pub(super) fn discard_unit(&mut self, logical: u32) {
        let Some(versions) = self
            .versions_by_unit
            .get_mut(&logical)
            .filter(|of| of.has_replaceable)
        else {
            return;
        };
        versions.has_replaceable = false;
        let (epoch, empty) = (versions.epoch, versions.is_empty());
        if empty {
            self.versions_by_unit.remove(&logical);
        }
        self.used_units -= 1;
        self.waiting_count -= 1;
        self.leave_epoch(epoch);
    }

    fn leave_epoch(&mut self, epoch: u64) {
        self.units_by_epoch[(epoch - self.first_epoch) as usize] -= 1;
        while self.units_by_epoch.len() > 1 && self.units_by_epoch[0] == 0 {
            self.units_by_epoch.pop_front();
            self.first_epoch += 1;
        }
    }

    /// Marks all waiting mapping units as wanted by a flush, and returns an epoch number for
    /// [`Self::is_flushed`].
    pub(super) fn begin_flush(&mut self) -> u64 {
        let epoch = self.first_epoch + self.units_by_epoch.len() as u64 - 1;
        self.flush_wanted_count = self.waiting_units.len();
        self.units_by_epoch.push_back(0);
        while self.units_by_epoch.len() > 1 && self.units_by_epoch[0] == 0 {
            self.units_by_epoch.pop_front();
            self.first_epoch += 1;
        }
        epoch
    }

    /// Tests whether all mapping units that arrived before a flush have been programmed.
    pub(super) fn is_flushed(&self, epoch: u64) -> bool {
        epoch < self.first_epoch
    }
}

/// Hash function that spreads unit numbers over a table.
#[derive(Clone, Copy, Debug, Default)]
struct UnitHasher(u64);

impl Hasher for UnitHasher {
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
