//! The buffer of writes: what waits for a program, and what is being programmed.

use crate::RequestId;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A unit that waits for its program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) logical: u32,
    /// Which write's data it has, as [`Contents`](super::contents::Contents) counts them.
    pub(super) version: u64,
    epoch: u64,
    /// The write that is done only when the unit is programmed.
    pub(super) owner: Option<RequestId>,
}

/// Versions of a unit that are here.
#[derive(Clone, Copy, Debug, Default)]
struct Versions {
    /// One waits that a later one replaces.
    waits: bool,
    epoch: u64,
    /// Of what waits.
    version: u64,
    /// Those that wait and have owners.
    owned: u32,
    programming: u32,
}

impl Versions {
    fn is_empty(&self) -> bool {
        !self.waits && self.owned == 0 && self.programming == 0
    }
}

/// The buffer.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    units: u32,
    used: u32,
    held: HashMap<u32, Versions, BuildHasherDefault<Spread>>,
    waiting: VecDeque<Waiting>,
    /// What is programmed before the rest.
    urgent: VecDeque<Waiting>,
    /// Units that wait: of those above, what was not forgotten.
    waits: u32,
    /// Of `waiting`, those at its front that a flush wants programmed.
    wanted: usize,
    /// For each flush not over, units of before it; and of after the last one.
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

    /// Has room for so many units, if that is more than it has.
    pub(super) fn grow(&mut self, units: u32) {
        self.units = self.units.max(units);
    }

    /// Units that find room.
    #[inline]
    pub(super) fn room(&self) -> u32 {
        self.units - self.used
    }

    /// Units in it, and on their way to it.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    pub(super) fn reserve(&mut self, units: u32) {
        assert!(units <= self.room(), "a buffer that is full");
        self.used += units;
    }

    /// Whether it has the newest data of a unit.
    #[inline]
    pub(super) fn has(&self, logical: u32) -> bool {
        !self.held.is_empty() && self.held.contains_key(&logical)
    }

    /// A unit has come for which room was reserved; whether it took the place of one that
    /// waited. One with an owner is programmed before the rest, and by itself.
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

    /// Units that wait.
    #[inline]
    pub(super) fn waits(&self) -> u32 {
        self.waits
    }

    /// Whether some of them are to be programmed without more beside them.
    #[inline]
    pub(super) fn is_urgent(&self) -> bool {
        self.waits > 0 && (self.wanted > 0 || !self.urgent.is_empty())
    }

    /// The next unit that waits: it is being programmed from now on.
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

    /// The newest data of a unit that wait, if some do.
    pub(super) fn waiting_version(&self, logical: u32) -> Option<u64> {
        let of = self.held.get(&logical)?;
        let owned = (of.owned > 0).then(|| {
            let of_unit = |unit: &&Waiting| unit.logical == logical;
            self.urgent.iter().rev().find(of_unit)
        });
        let owned = owned.flatten().map(|unit| unit.version);
        owned.max(of.waits.then_some(of.version))
    }

    /// The power fails: nothing is being programmed any more, nobody waits, and nothing is
    /// here but what waited, if the buffer is `protected`.
    pub(super) fn lose_power(&mut self, protected: bool) {
        let mut kept = Self::new(self.units);
        while protected && let Some(unit) = self.next() {
            kept.reserve(1);
            kept.insert((unit.logical, unit.version), None);
        }
        *self = kept;
    }

    /// A unit has been programmed.
    pub(super) fn programmed(&mut self, unit: Waiting) {
        self.used -= 1;
        self.leave_epoch(unit.epoch);
        let versions = self.held.get_mut(&unit.logical).expect("it was programmed");
        versions.programming -= 1;
        if versions.is_empty() {
            self.held.remove(&unit.logical);
        }
    }

    /// A unit that waits, and is no longer mapped, needs no program.
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

    /// A flush wants all that is here programmed; gives what tells when that is so.
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

    /// Whether all of before a flush has been programmed.
    pub(super) fn has_flushed(&self, epoch: u64) -> bool {
        epoch < self.first_epoch
    }
}

/// Spreads numbers of units over a table.
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
