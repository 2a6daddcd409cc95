//! Write-back cache of a disk: sectors that the host has written and that are not yet on the
//! medium.

use super::super::layout::Place;
use super::super::queue::Waiting;
use super::WriteCacheSpecification;
use diskperf_sim::Time;
use std::collections::BTreeMap;

/// Extent of contiguous sectors, as the host counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// First sector of the extent.
    pub first: u64,
    /// End of the extent (exclusive).
    pub end: u64,
}

impl Extent {
    /// Returns the number of sectors in the extent.
    pub fn sectors(self) -> u64 {
        self.end - self.first
    }

    /// Tests whether two extents have a sector in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.first < other.end && other.first < self.end
    }

    /// Tests whether this extent contains all sectors of the other one.
    pub fn covers(self, other: Self) -> bool {
        self.first <= other.first && other.end <= self.end
    }
}

/// Contents of the write-back cache: pending extents, which neither overlap nor touch, and the
/// extent that the drive destages now.
#[derive(Clone, Debug)]
pub struct Written {
    most_sectors: u64,
    most_extents: usize,
    high_water_share: f64,
    appending_only: bool,
    /// Pending extents by first sector: the end, and the sequence number of the oldest write.
    extents: BTreeMap<u64, (u64, u64)>,
    /// Pending extents in the form in which scheduling policies read them, in no order.
    waiting: Vec<Waiting>,
    /// First host sector of each entry of `waiting`.
    firsts: Vec<u64>,
    sectors: u64,
    under_way: Option<Extent>,
}

impl Written {
    /// Creates an empty write-back cache.
    pub fn new(specification: &WriteCacheSpecification) -> Self {
        Self {
            most_sectors: specification.most_sectors,
            most_extents: specification.most_extents as usize,
            high_water_share: specification.high_water_share,
            appending_only: specification.appending_only,
            extents: BTreeMap::new(),
            waiting: Vec::new(),
            firsts: Vec::new(),
            sectors: 0,
            under_way: None,
        }
    }

    /// Tests whether the cache holds no dirty sectors.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_none()
    }

    /// Tests whether the cache has reached its high-water mark, from which destages compete with
    /// reads.
    pub fn is_high(&self) -> bool {
        let high = |held: u64, most: u64| held as f64 >= self.high_water_share * most as f64;
        high(self.sectors, self.most_sectors)
            || high(self.waiting.len() as u64, self.most_extents as u64)
    }

    /// Returns the extents that wait for destage, in the form in which scheduling policies read
    /// them.
    pub fn waiting(&self) -> &[Waiting] {
        &self.waiting
    }

    /// Iterates over the dirty extents: pending ones in ascending order, then the one that the
    /// drive destages now.
    pub fn extents(&self) -> impl Iterator<Item = Extent> + '_ {
        let waiting = self.extents.iter();
        let waiting = waiting.map(|(&first, &(end, _))| Extent { first, end });
        waiting.chain(self.under_way)
    }

    /// Returns the sequence number of the oldest dirty extent; `None` if all data are on the
    /// medium. An extent whose destage has begun counts as older than all others and yields 0.
    pub fn oldest(&self) -> Option<u64> {
        let waiting = self.waiting.iter().map(|of| of.number).min();
        self.under_way.map(|_| 0).or(waiting)
    }

    /// Tests whether a write of these sectors may complete before it reaches the medium.
    pub fn takes(&self, extent: Extent) -> bool {
        let goes_on = |of: Extent| of.end == extent.first;
        let of_waiting = || {
            let before = self.extents.range(..extent.first).next_back();
            before.is_some_and(|(_, (end, _))| *end == extent.first)
        };
        // One that finds nothing there begins what others are appended to.
        let begins = || self.is_empty();
        !self.appending_only || begins() || self.under_way.is_some_and(goes_on) || of_waiting()
    }

    /// Tests whether the cache has room for these sectors now. An empty cache accepts an extent of
    /// any size.
    pub fn has_room(&self, extent: Extent) -> bool {
        if self.is_empty() {
            return true;
        }
        let joins = || self.touching(extent).is_some();
        self.sectors + extent.sectors() <= self.most_sectors
            && (self.waiting.len() < self.most_extents || joins())
    }

    /// Returns a pending extent that overlaps or touches the given one.
    fn touching(&self, extent: Extent) -> Option<Extent> {
        let (first, (end, _)) = self.extents.range(..=extent.end).next_back()?;
        (*end >= extent.first).then_some(Extent {
            first: *first,
            end: *end,
        })
    }

    /// Adds sectors to the cache, with the arrival time and sequence number of their request.
    /// `locate` returns the position of a sector on the medium.
    pub fn write(
        &mut self,
        extent: Extent,
        (came, number): (Time, u64),
        locate: impl Fn(u64) -> (u64, Place),
    ) {
        let mut all = extent;
        let (mut came, mut number) = (came, number);
        while let Some(other) = self.touching(all) {
            let waited = self.remove(other.first);
            all.first = all.first.min(other.first);
            all.end = all.end.max(other.end);
            came = came.min(waited.came);
            number = number.min(waited.number);
        }
        self.insert(all, (came, number), locate);
    }

    fn insert(
        &mut self,
        extent: Extent,
        (came, number): (Time, u64),
        locate: impl Fn(u64) -> (u64, Place),
    ) {
        let (sector, place) = locate(extent.first);
        self.extents.insert(extent.first, (extent.end, number));
        self.sectors += extent.sectors();
        self.firsts.push(extent.first);
        self.waiting.push(Waiting {
            sector,
            place,
            write: true,
            came,
            number,
        });
    }

    fn remove(&mut self, first: u64) -> Waiting {
        let (end, _) = self
            .extents
            .remove(&first)
            .expect("an extent that is there");
        self.sectors -= end - first;
        let index = self.firsts.iter().position(|of| *of == first);
        let index = index.expect("each extent waits");
        self.firsts.swap_remove(index);
        self.waiting.swap_remove(index)
    }

    /// Returns the extent that [`Self::begin`] would destage.
    pub fn next(&self, index: usize, most_sectors: u64) -> Extent {
        let first = self.firsts[index];
        let (end, _) = self.extents[&first];
        Extent {
            first,
            end: end.min(first + most_sectors),
        }
    }

    /// Begins to destage a pending extent, up to `most_sectors` of it, and returns the part to be
    /// written.
    ///
    /// # Panics
    ///
    /// When another destage has not ended.
    pub fn begin(
        &mut self,
        index: usize,
        most_sectors: u64,
        locate: impl Fn(u64) -> (u64, Place),
    ) -> Extent {
        assert!(self.under_way.is_none(), "one extent is written at a time");
        let first = self.firsts[index];
        let (end, _) = self.extents[&first];
        let extent = self.next(index, most_sectors);
        let of = self.remove(first);
        if extent.end < end {
            let rest = Extent {
                first: extent.end,
                end,
            };
            self.insert(rest, (of.came, of.number), locate);
        }
        self.sectors += extent.sectors();
        self.under_way = Some(extent);
        extent
    }

    /// Ends the destage that [`Self::begin`] began: its sectors are on the medium.
    ///
    /// # Panics
    ///
    /// When no destage has begun.
    pub fn end(&mut self) {
        let extent = self.under_way.take().expect("an extent is on its way");
        self.sectors -= extent.sectors();
    }

    /// Drops sectors from the pending extents, because a write bypasses the cache or the host
    /// discards them.
    pub fn forget(&mut self, extent: Extent, locate: impl Fn(u64) -> (u64, Place)) {
        let inner = Extent {
            first: extent.first,
            end: extent.end.saturating_sub(1),
        };
        while let Some(other) = self.touching(inner).filter(|other| other.overlaps(extent)) {
            let of = self.remove(other.first);
            for (first, end) in [(other.first, extent.first), (extent.end, other.end)] {
                if first < end {
                    self.insert(Extent { first, end }, (of.came, of.number), &locate);
                }
            }
        }
    }

    /// Tests whether the cache holds all of these sectors.
    #[inline]
    pub fn has(&self, extent: Extent) -> bool {
        let under_way = self.under_way.is_some_and(|of| of.covers(extent));
        let waits = || self.touching(extent).is_some_and(|of| of.covers(extent));
        under_way || (!self.waiting.is_empty() && waits())
    }
}
