//! Contents of a drive, as its host may rely on them: written data, durable data, and data that a
//! power cut may still lose.
//!
//! [`Contents`] knows the rules of the interface, but no drive. The caller submits and completes
//! the same requests in it as in a [`Drive`](crate::Drive), or as in a real drive.
//!
//! - A read that begins now gets the newest completed write of its sector.
//! - A write in a volatile cache is durable when a flush completes that was submitted after
//!   the write had completed. Writes in flight at that time are not covered.
//! - A write with force unit access is durable when it completes. So is every write where
//!   the cache is protected or writes through.
//! - A power cut leaves in each sector its durable contents, those of any later completed
//!   write, or those of any write in flight. Sectors are independent, because caches
//!   destage in any order. A sector is never torn.
//! - Discards and write zeroes are writes of nothing.
//! - Writes of one sector that are in flight together have the order of their completion.

use crate::{Device, Operation, RequestId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Kind of write cache: whether a power cut can lose completed writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// A power cut loses writes until a flush or force unit access makes them durable.
    Volatile,
    /// A power cut loses no completed write: the cache is protected, or the drive has none.
    Durable,
}

/// Write, discard or write-zeroes request, in the history of a drive's contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Sequence number of the write in order of completion, from 1; 0 for a write in flight.
    pub number: u64,
    /// Range of sectors that the request writes.
    pub sectors: Range<u64>,
}

/// Contents of a drive, with a value of type `V` in each sector: its bytes, or a label for them.
///
/// ```
/// use diskperf_device::{Contents, Operation, RequestId, WriteCache};
/// let mut contents = Contents::new(WriteCache::Volatile);
/// let id = RequestId::first_of_slot(0);
/// contents.submit(id, Operation::Write { fua: false }, 8..10, |_| "new");
/// contents.complete(id);
/// assert_eq!((contents.read(8), contents.durable(8)), (Some(&"new"), None));
/// contents.submit(id, Operation::Flush, 0..0, |_| "");
/// contents.complete(id);
/// assert!(contents.is_durable(8));
/// contents.submit(id, Operation::Write { fua: false }, 9..10, |_| "newer");
/// contents.complete(id);
/// // A cache that destages nothing loses one write.
/// let lost = contents.power_cut(|_, _| false);
/// assert_eq!((lost.len(), contents.read(9)), (1, Some(&"new")));
/// ```
#[derive(Clone, Debug)]
pub struct Contents<V> {
    cache: WriteCache,
    sectors: BTreeMap<u64, SectorVersions<V>>,
    /// Changing requests in flight, by slot of their id.
    requests_in_flight: BTreeMap<usize, RequestInFlight<V>>,
    /// Completed writes that no flush covers yet, by sequence number.
    volatile: BTreeMap<u64, Range<u64>>,
    /// Number of writes completed so far.
    completed_write_count: u64,
}

#[derive(Clone, Debug)]
struct SectorVersions<V> {
    durable: Option<V>,
    /// Versions newer than the durable one, each with the sequence number of its write, in
    /// ascending order.
    volatile: Vec<(u64, Option<V>)>,
}

#[derive(Clone, Debug)]
enum RequestInFlight<V> {
    Write {
        sectors: Range<u64>,
        fua: bool,
        values: Vec<Option<V>>,
    },
    Flush {
        covers: u64,
    },
}

impl<V> SectorVersions<V> {
    /// Makes the newest version up to a sequence number durable, and drops older versions. Does
    /// nothing without such a version.
    fn make_durable_up_to(&mut self, up_to: u64) {
        let covered = self
            .volatile
            .partition_point(|(number, _)| *number <= up_to);
        if let Some((_, value)) = self.volatile.drain(..covered).next_back() {
            self.durable = value;
        }
    }

    fn newest_version(&self) -> Option<&V> {
        let volatile = self.volatile.last();
        volatile.map_or(&self.durable, |(_, value)| value).as_ref()
    }
}

impl<V: Clone> Contents<V> {
    /// Creates the contents of a drive on which nothing is written.
    pub fn new(cache: WriteCache) -> Self {
        Self {
            cache,
            sectors: BTreeMap::new(),
            requests_in_flight: BTreeMap::new(),
            volatile: BTreeMap::new(),
            completed_write_count: 0,
        }
    }

    /// Creates the contents of a drive on which nothing is written, with the kind of write cache
    /// that a device has.
    pub fn with_cache_of(device: &Device) -> Self {
        Self::new(match device.has_volatile_cache() {
            true => WriteCache::Volatile,
            false => WriteCache::Durable,
        })
    }

    /// Submits a request. `value` returns the new value of each sector of a write. Reads change
    /// nothing, and a flush covers all sectors.
    ///
    /// # Panics
    ///
    /// When a request with this id is in flight.
    pub fn submit(
        &mut self,
        id: RequestId,
        operation: Operation,
        sectors: Range<u64>,
        mut value: impl FnMut(u64) -> V,
    ) {
        let values: Vec<Option<V>> = match operation {
            Operation::Read => return,
            Operation::Flush => Vec::new(),
            Operation::Write { .. } => sectors.clone().map(|at| Some(value(at))).collect(),
            Operation::Discard | Operation::WriteZeroes => sectors.clone().map(|_| None).collect(),
        };
        let change = match operation {
            Operation::Flush => RequestInFlight::Flush {
                covers: self.completed_write_count,
            },
            _ => RequestInFlight::Write {
                sectors,
                fua: operation == Operation::Write { fua: true },
                values,
            },
        };
        let before = self.requests_in_flight.insert(id.slot(), change);
        assert!(before.is_none(), "request {id:?} is in flight");
    }

    /// Completes a request: applies its writes, or makes durable what its flush covers.
    pub fn complete(&mut self, id: RequestId) {
        match self.requests_in_flight.remove(&id.slot()) {
            // A read.
            None => {}
            Some(RequestInFlight::Flush { covers }) => self.complete_flush(covers),
            Some(RequestInFlight::Write {
                sectors,
                fua,
                values,
            }) => {
                self.completed_write_count += 1;
                let number = self.completed_write_count;
                let is_durable = fua || self.cache == WriteCache::Durable;
                for (sector, value) in sectors.clone().zip(values) {
                    let versions = self.versions_mut(sector);
                    versions.volatile.push((number, value));
                    if is_durable {
                        versions.make_durable_up_to(number);
                    }
                }
                if !is_durable && !sectors.is_empty() {
                    self.volatile.insert(number, sectors);
                }
            }
        }
    }

    fn versions_mut(&mut self, sector: u64) -> &mut SectorVersions<V> {
        self.sectors
            .entry(sector)
            .or_insert_with(|| SectorVersions {
                durable: None,
                volatile: Vec::new(),
            })
    }

    fn complete_flush(&mut self, covers: u64) {
        let later = self.volatile.split_off(&(covers + 1));
        for sectors in std::mem::replace(&mut self.volatile, later).into_values() {
            for sector in sectors {
                self.versions_mut(sector).make_durable_up_to(covers);
            }
        }
    }

    /// Returns the value that a read beginning now gets; `None` where nothing is written.
    pub fn read(&self, sector: u64) -> Option<&V> {
        self.sectors.get(&sector)?.newest_version()
    }

    /// Returns the durable value of a sector. A power cut leaves this value or a later one.
    pub fn durable(&self, sector: u64) -> Option<&V> {
        self.sectors.get(&sector)?.durable.as_ref()
    }

    /// Reports whether the newest completed value of a sector is durable. Writes in flight do not
    /// count.
    pub fn is_durable(&self, sector: u64) -> bool {
        let versions = self.sectors.get(&sector);
        versions.is_none_or(|versions| versions.volatile.is_empty())
    }

    /// Iterates over the completed writes that a power cut may lose, oldest first. Their ranges
    /// still include sectors that force unit access has made durable since.
    pub fn volatile(&self) -> impl Iterator<Item = Write> + '_ {
        let has_some = |number: u64, sectors: &Range<u64>| {
            sectors.clone().any(|sector| {
                let versions = self.sectors.get(&sector);
                versions.is_some_and(|of| of.volatile.iter().any(|(other, _)| *other == number))
            })
        };
        let writes = self.volatile.iter();
        writes
            .filter(move |(number, sectors)| has_some(**number, sectors))
            .map(|(number, sectors)| Write {
                number: *number,
                sectors: sectors.clone(),
            })
    }

    /// Iterates over the values that a sector may have after a power cut now: the durable value
    /// first, then later writes in order of completion, then writes in flight.
    pub fn possible(&self, sector: u64) -> impl Iterator<Item = Option<&V>> + '_ {
        let versions = self.sectors.get(&sector);
        let durable = versions.and_then(|versions| versions.durable.as_ref());
        let volatile = versions.into_iter().flat_map(|versions| &versions.volatile);
        let in_flight = self.requests_in_flight.values().filter_map(move |change| {
            let RequestInFlight::Write {
                sectors, values, ..
            } = change
            else {
                return None;
            };
            let place = sectors.contains(&sector).then(|| sector - sectors.start)?;
            Some(values[place as usize].as_ref())
        });
        let volatile = volatile.map(|(_, value)| value.as_ref());
        std::iter::once(durable).chain(volatile).chain(in_flight)
    }

    /// Cuts the power: requests in flight are forgotten, and the remaining contents are durable.
    /// For each write that is not durable and each of its sectors, `survives` decides whether the
    /// data are on the medium; the sector gets the latest surviving value. Writes come in order of
    /// completion, then those in flight with number 0.
    ///
    /// For a cache that destages in order, pass `|write, _| (1..=last).contains(&write.number)`.
    ///
    /// Returns the completed writes that lost the newest contents of a sector.
    pub fn power_cut(&mut self, mut survives: impl FnMut(&Write, u64) -> bool) -> Vec<Write> {
        let mut lost = Vec::new();
        let mut left: BTreeMap<u64, (u64, Option<V>)> = BTreeMap::new();
        let volatile = std::mem::take(&mut self.volatile);
        for (number, sectors) in &volatile {
            let write = Write {
                number: *number,
                sectors: sectors.clone(),
            };
            for sector in sectors.clone() {
                let versions = self.sectors.get(&sector);
                let versions = versions.into_iter().flat_map(|of| &of.volatile);
                let mut own = versions.filter(|(other, _)| other == number);
                if let Some((_, value)) = own.next()
                    && survives(&write, sector)
                {
                    left.insert(sector, (*number, value.clone()));
                }
            }
        }
        for (number, sectors) in volatile {
            let is_older = |sector: &u64| {
                let versions = self.sectors.get(sector);
                let newest = versions.and_then(|of| of.volatile.last());
                newest.is_some_and(|(newest, _)| *newest == number)
                    && left.get(sector).is_none_or(|(has, _)| *has < number)
            };
            if sectors.clone().any(|sector| is_older(&sector)) {
                lost.push(Write { number, sectors });
            }
        }
        for change in std::mem::take(&mut self.requests_in_flight).into_values() {
            let RequestInFlight::Write {
                sectors, values, ..
            } = change
            else {
                continue;
            };
            let write = Write { number: 0, sectors };
            for (sector, value) in write.sectors.clone().zip(values) {
                if survives(&write, sector) {
                    left.insert(sector, (0, value));
                }
            }
        }
        self.sectors.values_mut().for_each(|of| of.volatile.clear());
        for (sector, (_, value)) in left {
            self.versions_mut(sector).durable = value;
        }
        lost
    }
}

#[cfg(test)]
mod tests;
