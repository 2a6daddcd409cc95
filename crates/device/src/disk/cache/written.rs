//! Write-back cache of a disk: sectors that the host has written and that are not yet on the
//! medium.

use super::super::layout::SectorPosition;
use super::super::queue::WaitingCommand;
use super::WriteCacheSpecification;
use diskperf_sim::Time;
use std::collections::BTreeMap;

/// Extent of contiguous sectors, as the host counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectorExtent {
    /// First sector of the extent.
    pub first_sector: u64,
    /// End of the extent (exclusive).
    pub end_sector: u64,
}

impl SectorExtent {
    /// Returns the number of sectors in the extent.
    pub fn sectors(self) -> u64 {
        self.end_sector - self.first_sector
    }

    /// Tests whether two extents have a sector in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.first_sector < other.end_sector && other.first_sector < self.end_sector
    }

    /// Tests whether this extent contains all sectors of the other one.
    pub fn covers(self, other: Self) -> bool {
        self.first_sector <= other.first_sector && other.end_sector <= self.end_sector
    }
}

/// Contents of the write-back cache: pending extents, which neither overlap nor touch, and the
/// extent that the drive destages now.
#[derive(Clone, Debug)]
pub struct WriteBackCache {
    sectors_max: u64,
    extents_max: usize,
    high_water_share: f64,
    accepts_appends_only: bool,
    holds_destaged_extent: bool,
    /// Pending extents by first sector: the end, and the sequence number of the oldest write.
    extent_by_first_sector: BTreeMap<u64, (u64, u64)>,
    /// Pending extents in the form in which scheduling policies read them, in no order.
    destage_candidates: Vec<WaitingCommand>,
    /// First host sector of each entry of `waiting`.
    candidate_first_sectors: Vec<u64>,
    sector_count: u64,
    destaging_extent: Option<SectorExtent>,
}

impl WriteBackCache {
    /// Creates an empty write-back cache.
    pub fn new(specification: &WriteCacheSpecification) -> Self {
        Self {
            sectors_max: specification.sectors_max,
            extents_max: specification.extents_max as usize,
            high_water_share: specification.high_water_share,
            accepts_appends_only: specification.accepts_appends_only,
            holds_destaged_extent: specification.holds_destaged_extent,
            extent_by_first_sector: BTreeMap::new(),
            destage_candidates: Vec::new(),
            candidate_first_sectors: Vec::new(),
            sector_count: 0,
            destaging_extent: None,
        }
    }

    /// Tests whether the cache holds no dirty sectors.
    pub fn is_empty(&self) -> bool {
        self.destage_candidates.is_empty() && self.destaging_extent.is_none()
    }

    /// Tests whether the cache has reached its high-water mark, from which destages compete with
    /// reads.
    pub fn is_above_high_water(&self) -> bool {
        let high = |held: u64, most: u64| held as f64 >= self.high_water_share * most as f64;
        high(self.sector_count, self.sectors_max)
            || high(
                self.destage_candidates.len() as u64,
                self.extents_max as u64,
            )
    }

    /// Returns the extents that wait for destage, in the form in which scheduling policies read
    /// them.
    pub fn destage_candidates(&self) -> &[WaitingCommand] {
        &self.destage_candidates
    }

    /// Iterates over the dirty extents: pending ones in ascending order, then the one that the
    /// drive destages now.
    pub fn extents(&self) -> impl Iterator<Item = SectorExtent> + '_ {
        let waiting = self.extent_by_first_sector.iter();
        let waiting = waiting.map(|(&first, &(end, _))| SectorExtent {
            first_sector: first,
            end_sector: end,
        });
        waiting.chain(self.destaging_extent)
    }

    /// Returns the sequence number of the oldest dirty extent; `None` if all data are on the
    /// medium. An extent whose destage has begun counts as older than all others and yields 0.
    pub fn oldest_first_sector(&self) -> Option<u64> {
        let waiting = self
            .destage_candidates
            .iter()
            .map(|of| of.sequence_number)
            .min();
        self.destaging_extent.map(|_| 0).or(waiting)
    }

    /// Tests whether a write of these sectors may complete before it reaches the medium.
    pub fn accepts(&self, extent: SectorExtent) -> bool {
        let goes_on = |of: SectorExtent| of.end_sector == extent.first_sector;
        let of_waiting = || {
            let before = self
                .extent_by_first_sector
                .range(..extent.first_sector)
                .next_back();
            before.is_some_and(|(_, (end, _))| *end == extent.first_sector)
        };
        // One that finds nothing there begins what others are appended to.
        let begins = || self.is_empty();
        !self.accepts_appends_only
            || begins()
            || self.destaging_extent.is_some_and(goes_on)
            || of_waiting()
    }

    /// Tests whether the cache has room for these sectors now. An empty cache accepts an extent of
    /// any size.
    pub fn has_room(&self, extent: SectorExtent) -> bool {
        if self.is_empty() {
            return true;
        }
        let continues = |of: SectorExtent| of.end_sector == extent.first_sector;
        let joins = || {
            self.touching_extent(extent).is_some() || self.destaging_extent.is_some_and(continues)
        };
        let held = self.holds_destaged_extent && self.destaging_extent.is_some();
        let extents = self.destage_candidates.len() + usize::from(held);
        self.sector_count + extent.sectors() <= self.sectors_max
            && (extents < self.extents_max || joins())
    }

    fn touching_extent(&self, extent: SectorExtent) -> Option<SectorExtent> {
        let (first, (end, _)) = self
            .extent_by_first_sector
            .range(..=extent.end_sector)
            .next_back()?;
        (*end >= extent.first_sector).then_some(SectorExtent {
            first_sector: *first,
            end_sector: *end,
        })
    }

    /// Adds sectors to the cache, with the arrival time and sequence number of their request.
    /// `locate` returns the position of a sector on the medium.
    pub fn add_write(
        &mut self,
        extent: SectorExtent,
        (came, number): (Time, u64),
        locate: impl Fn(u64) -> (u64, SectorPosition),
    ) {
        let mut all = extent;
        let (mut came, mut number) = (came, number);
        while let Some(other) = self.touching_extent(all) {
            let waited = self.remove_extent(other.first_sector);
            all.first_sector = all.first_sector.min(other.first_sector);
            all.end_sector = all.end_sector.max(other.end_sector);
            came = came.min(waited.arrival);
            number = number.min(waited.sequence_number);
        }
        self.insert_extent(all, (came, number), locate);
    }

    fn insert_extent(
        &mut self,
        extent: SectorExtent,
        (came, number): (Time, u64),
        locate: impl Fn(u64) -> (u64, SectorPosition),
    ) {
        let (sector, place) = locate(extent.first_sector);
        self.extent_by_first_sector
            .insert(extent.first_sector, (extent.end_sector, number));
        self.sector_count += extent.sectors();
        self.candidate_first_sectors.push(extent.first_sector);
        self.destage_candidates.push(WaitingCommand {
            sector,
            position: place,
            is_write: true,
            arrival: came,
            sequence_number: number,
        });
    }

    fn remove_extent(&mut self, first: u64) -> WaitingCommand {
        let (end, _) = self
            .extent_by_first_sector
            .remove(&first)
            .expect("an extent that is there");
        self.sector_count -= end - first;
        let index = self
            .candidate_first_sectors
            .iter()
            .position(|of| *of == first);
        let index = index.expect("each extent waits");
        self.candidate_first_sectors.swap_remove(index);
        self.destage_candidates.swap_remove(index)
    }

    /// Returns the extent that [`Self::begin_destage`] would destage.
    pub fn next_destage_extent(&self, index: usize, most_sectors: u64) -> SectorExtent {
        let first = self.candidate_first_sectors[index];
        let (end, _) = self.extent_by_first_sector[&first];
        SectorExtent {
            first_sector: first,
            end_sector: end.min(first + most_sectors),
        }
    }

    /// Returns the earliest time at which the arm starts to destage a pending extent. Where an extent
    /// is held until it is on the medium, its data cross the link first. Other caches overlap the
    /// two.
    pub fn earliest_destage_time(&self, index: usize) -> Time {
        match self.holds_destaged_extent {
            true => self.destage_candidates[index].arrival,
            false => Time::ZERO,
        }
    }

    /// Begins to destage a pending extent, up to `most_sectors` of it, and returns the part to be
    /// written.
    ///
    /// # Panics
    ///
    /// When another destage has not ended.
    pub fn begin_destage(
        &mut self,
        index: usize,
        most_sectors: u64,
        locate: impl Fn(u64) -> (u64, SectorPosition),
    ) -> SectorExtent {
        assert!(
            self.destaging_extent.is_none(),
            "one extent is written at a time"
        );
        let first = self.candidate_first_sectors[index];
        let (end, _) = self.extent_by_first_sector[&first];
        let extent = self.next_destage_extent(index, most_sectors);
        let of = self.remove_extent(first);
        if extent.end_sector < end {
            let rest = SectorExtent {
                first_sector: extent.end_sector,
                end_sector: end,
            };
            self.insert_extent(rest, (of.arrival, of.sequence_number), locate);
        }
        self.sector_count += extent.sectors();
        self.destaging_extent = Some(extent);
        extent
    }

    /// Ends the destage that [`Self::begin_destage`] began: its sectors are on the medium.
    ///
    /// # Panics
    ///
    /// When no destage has begun.
    pub fn end_destage(&mut self) {
        let extent = self
            .destaging_extent
            .take()
            .expect("an extent is on its way");
        self.sector_count -= extent.sectors();
    }

    /// Drops sectors from the pending extents, because a write bypasses the cache or the host
    /// discards them.
    pub fn discard(&mut self, extent: SectorExtent, locate: impl Fn(u64) -> (u64, SectorPosition)) {
        let inner = SectorExtent {
            first_sector: extent.first_sector,
            end_sector: extent.end_sector.saturating_sub(1),
        };
        while let Some(other) = self
            .touching_extent(inner)
            .filter(|other| other.overlaps(extent))
        {
            let of = self.remove_extent(other.first_sector);
            for (first, end) in [
                (other.first_sector, extent.first_sector),
                (extent.end_sector, other.end_sector),
            ] {
                if first < end {
                    self.insert_extent(
                        SectorExtent {
                            first_sector: first,
                            end_sector: end,
                        },
                        (of.arrival, of.sequence_number),
                        &locate,
                    );
                }
            }
        }
    }

    /// Tests whether the cache holds all of these sectors.
    #[inline]
    pub fn contains(&self, extent: SectorExtent) -> bool {
        let under_way = self.destaging_extent.is_some_and(|of| of.covers(extent));
        let waits = || {
            self.touching_extent(extent)
                .is_some_and(|of| of.covers(extent))
        };
        under_way || (!self.destage_candidates.is_empty() && waits())
    }
}
