//! Where a drive's sectors are.

use super::rotation::Slots;
use std::ops::Range;

/// A disk's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    cylinders: u32,
    heads: u32,
    /// The heads, to divide by.
    per_cylinder: Slots,
    sector_bytes: u32,
    zones: Vec<Zone>,
    track_skew: u32,
    cylinder_skew: u32,
    head_groups: Option<HeadGroups>,
    /// Physical slots that hold no data, ascending: logical sectors slip past
    /// them. Counted from the first slot of the drive's first data track.
    slipped: Vec<u64>,
    /// Logical sectors whose data lives elsewhere, with where, ascending.
    revectored: Vec<Revectored>,
}

/// Bad sectors that follow each other, and where their data is instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revectored {
    /// The first bad one.
    pub from: u64,
    /// The first of those that have their data.
    pub to: u64,
    /// How many.
    pub sectors: u64,
}

impl From<(u64, u64)> for Revectored {
    fn from((from, to): (u64, u64)) -> Self {
        let sectors = 1;
        Self { from, to, sectors }
    }
}

impl Revectored {
    fn bad(&self) -> Range<u64> {
        self.from..self.from + self.sectors
    }

    fn instead(&self) -> Range<u64> {
        self.to..self.to + self.sectors
    }
}

/// Cylinders with tracks of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    /// The first of them.
    pub first_cylinder: u32,
    /// Data sectors on a track.
    pub sectors_per_track: u32,
    /// Spare sectors on a track, which turn by unused.
    pub spare_sectors: u32,
    /// Sectors that follow each other lie this many slots apart.
    pub interleave: u32,
    /// The first logical sector of the zone.
    first_sector: u64,
    /// Sectors laid out before the next one meets the first and moves on by a slot.
    per_round: Slots,
    /// Its slots and its data sectors, to divide by.
    division: Slots,
    per_track: Slots,
}

/// Where a logical sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its cylinder.
    pub cylinder: u32,
    /// Its head.
    pub head: u32,
    /// Its slot, as turned by the skews.
    pub slot: u32,
    /// How many slots its track has.
    pub slots: u32,
    /// How many sectors from it on follow each other slot by slot.
    pub contiguous: u32,
}

/// What a geometry cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GeometryError {
    /// No surface, no track, or no sector.
    #[error("a drive needs at least one cylinder, one head and one sector on a track")]
    Empty,
    /// An interleave of zero, or beyond the track.
    #[error("an interleave is between 1 and the sectors on a track")]
    Interleave,
    /// Zones that do not ascend from cylinder 0.
    #[error("zones start at cylinder 0, ascend, and lie on the drive")]
    Zones,
    /// A slipped or revectored sector beyond the drive.
    #[error("sector {0} is beyond the end of the drive")]
    Beyond(u64),
    /// Data of two sectors, or of a bad one, would lie at the same place.
    #[error("sector {0} would hold the data of two others, or is bad itself")]
    Shared(u64),
    /// A bad sector with two places for its data.
    #[error("the data of sector {0} are to be in two places")]
    Twice(u64),
}

/// Heads that settle together, and what a step to the next group turns a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadGroups {
    /// Heads of a group; the last has what is left.
    pub heads: u32,
    /// Slots from a group to the next.
    pub skew: u32,
}

impl HeadGroups {
    /// Slots that the steps up to a track have turned it.
    fn turns(self, heads: u32, (cylinder, head): (u32, u32)) -> u64 {
        let steps = u64::from((heads - 1) / self.heads);
        u64::from(self.skew) * (u64::from(cylinder) * steps + u64::from(head / self.heads))
    }
}

impl Geometry {
    /// A drive of one zone; no skew, no defect.
    ///
    /// # Errors
    ///
    /// [`GeometryError`] for what cannot be built.
    pub fn new(
        (cylinders, heads, sectors_per_track): (u32, u32, u32),
        (spare_sectors, interleave): (u32, u32),
        sector_bytes: u32,
    ) -> Result<Self, GeometryError> {
        let zone = Zone::new(0, sectors_per_track, spare_sectors, interleave);
        Self::zoned((cylinders, heads), vec![zone], sector_bytes)
    }

    /// A drive of several zones; no skew, no defect.
    ///
    /// # Errors
    ///
    /// [`GeometryError`] for what cannot be built.
    pub fn zoned(
        (cylinders, heads): (u32, u32),
        mut zones: Vec<Zone>,
        sector_bytes: u32,
    ) -> Result<Self, GeometryError> {
        let empty = zones.is_empty() || zones.iter().any(|zone| zone.sectors_per_track == 0);
        if cylinders == 0 || heads == 0 || sector_bytes == 0 || empty {
            return Err(GeometryError::Empty);
        }
        if zones[0].first_cylinder != 0
            || !zones.is_sorted_by(|one, next| one.first_cylinder < next.first_cylinder)
            || zones[zones.len() - 1].first_cylinder >= cylinders
        {
            return Err(GeometryError::Zones);
        }
        let mut first_sector = 0;
        for index in 0..zones.len() {
            let next = zones
                .get(index + 1)
                .map_or(cylinders, |zone| zone.first_cylinder);
            let zone = &mut zones[index];
            if zone.interleave == 0 || zone.interleave > zone.slots() {
                return Err(GeometryError::Interleave);
            }
            zone.first_sector = first_sector;
            let tracks = u64::from(next - zone.first_cylinder) * u64::from(heads);
            first_sector += tracks * u64::from(zone.sectors_per_track);
        }
        Ok(Self {
            cylinders,
            heads,
            per_cylinder: Slots::new(heads),
            sector_bytes,
            zones,
            track_skew: 0,
            cylinder_skew: 0,
            head_groups: None,
            slipped: Vec::new(),
            revectored: Vec::new(),
        })
    }

    /// With each track turned against the one before it, and each cylinder
    /// once more, in slots.
    pub fn skewed(mut self, track_skew: u32, cylinder_skew: u32) -> Self {
        self.track_skew = track_skew;
        self.cylinder_skew = cylinder_skew;
        self
    }

    /// With each group of heads turned against the one before it once more, for
    /// drives on which another group has to settle.
    pub fn with_head_groups(mut self, groups: Option<HeadGroups>) -> Self {
        self.head_groups = groups;
        self
    }

    /// With a gap on each track between its last slot and the index, as long
    /// as this share of a revolution.
    pub fn with_index_gap(mut self, share: f64) -> Self {
        for zone in &mut self.zones {
            zone.division = zone.division.with_index_gap(share);
        }
        self
    }

    /// With physical sectors that logical ones slip past, which shortens the
    /// drive.
    ///
    /// # Errors
    ///
    /// [`GeometryError::Beyond`] for a sector that is not on the drive.
    pub fn slipping(mut self, mut sectors: Vec<u64>) -> Result<Self, GeometryError> {
        sectors.sort_unstable();
        sectors.dedup();
        if let Some(beyond) = sectors.iter().find(|sector| **sector >= self.raw_sectors()) {
            return Err(GeometryError::Beyond(*beyond));
        }
        self.slipped = sectors;
        Ok(self)
    }

    /// With logical sectors that live at other physical ones.
    ///
    /// # Errors
    ///
    /// [`GeometryError::Beyond`] for a sector that is not on the drive,
    /// [`GeometryError::Shared`] and [`GeometryError::Twice`] for places that
    /// contradict each other.
    pub fn revectoring<R: Into<Revectored>>(
        mut self,
        sectors: Vec<R>,
    ) -> Result<Self, GeometryError> {
        let mut moved: Vec<Revectored> = sectors.into_iter().map(Into::into).collect();
        moved.sort_unstable();
        let end = self.raw_sectors();
        let mut all = moved.iter().flat_map(|run| [run.bad(), run.instead()]);
        if let Some(beyond) = all.find(|sectors| sectors.end > end) {
            return Err(GeometryError::Beyond(beyond.start.max(end)));
        }
        let bad: Vec<Range<u64>> = moved.iter().map(Revectored::bad).collect();
        let mut instead: Vec<Range<u64>> = moved.iter().map(Revectored::instead).collect();
        instead.sort_unstable_by_key(|sectors| sectors.start);
        if let Some(shared) = shared_within(&instead) {
            return Err(GeometryError::Shared(shared));
        }
        if let Some(twice) = shared_within(&bad) {
            return Err(GeometryError::Twice(twice));
        }
        if let Some(shared) = shared_between(&bad, &instead) {
            return Err(GeometryError::Shared(shared));
        }
        self.revectored = moved;
        Ok(self)
    }

    /// The first of these logical sectors that holds the data of a bad one, by the
    /// number that it would have by itself: no data of its own may be on it.
    pub fn stand_in_among(&self, sectors: Range<u64>) -> Option<u64> {
        let own_number = |at: u64| at - self.slipped.partition_point(|bad| *bad < at) as u64;
        let of_run = |run: &Revectored| {
            // Own numbers ascend with the places.
            let (mut low, mut high) = (run.to, run.instead().end);
            while low < high {
                let middle = low + (high - low) / 2;
                match own_number(middle) < sectors.start {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            let first = (low < run.instead().end).then(|| own_number(low));
            first.filter(|sector| sectors.contains(sector))
        };
        self.revectored.iter().filter_map(of_run).min()
    }

    /// Cylinders.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Heads, which are the tracks of a cylinder.
    pub fn heads(&self) -> u32 {
        self.heads
    }

    /// Bytes in a sector.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Data sectors on a track of a cylinder.
    pub fn sectors_per_track(&self, cylinder: u32) -> u32 {
        self.zone_of_cylinder(cylinder).sectors_per_track
    }

    /// Slots that turn by on a track of a cylinder, spares included.
    #[inline]
    pub fn slots(&self, cylinder: u32) -> u32 {
        self.zone_of_cylinder(cylinder).slots()
    }

    /// The same, for the arithmetic of angles.
    #[inline]
    pub fn division(&self, cylinder: u32) -> Slots {
        self.zone_of_cylinder(cylinder).division
    }

    /// The fewest slots that a track has.
    pub fn fewest_slots(&self) -> u32 {
        let slots = self.zones.iter().map(Zone::slots);
        slots.min().expect("a drive has a zone")
    }

    /// The number that the first sector of a cylinder has where none before it is bad.
    pub fn first_sector(&self, cylinder: u32) -> u64 {
        let zone = self.zone_of_cylinder(cylinder);
        let tracks = u64::from(cylinder - zone.first_cylinder) * u64::from(self.heads);
        zone.first_sector + tracks * u64::from(zone.sectors_per_track)
    }

    /// Logical sectors.
    pub fn sectors(&self) -> u64 {
        self.raw_sectors() - self.slipped.len() as u64
    }

    /// Logical bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.sectors() * u64::from(self.sector_bytes)
    }

    fn raw_sectors(&self) -> u64 {
        let last = self.zones.last().expect("a drive has a zone");
        let tracks = u64::from(self.cylinders - last.first_cylinder) * u64::from(self.heads);
        last.first_sector + tracks * u64::from(last.sectors_per_track)
    }

    fn zone_of_cylinder(&self, cylinder: u32) -> &Zone {
        if let [zone] = &self.zones[..] {
            return zone;
        }
        let after = self
            .zones
            .partition_point(|zone| zone.first_cylinder <= cylinder);
        &self.zones[after - 1]
    }

    /// Where a logical sector is.
    ///
    /// # Panics
    ///
    /// When it is not on the drive.
    #[inline]
    pub fn locate(&self, sector: u64) -> Place {
        if self.slipped.is_empty() && self.revectored.is_empty() {
            return self.locate_physical(sector);
        }
        self.locate_around_defects(sector)
    }

    fn locate_around_defects(&self, sector: u64) -> Place {
        let next_moved = self.revectored.partition_point(|run| run.from <= sector);
        let before = next_moved.checked_sub(1).map(|run| self.revectored[run]);
        if let Some(run) = before.filter(|run| run.bad().contains(&sector)) {
            let mut place = self.locate_physical(run.to + (sector - run.from));
            place.contiguous = 1;
            return place;
        }
        // Each slipped slot at or before the sector moves it by one.
        let mut physical = sector;
        let mut passed = 0;
        loop {
            let bad = self.slipped.partition_point(|slot| *slot <= physical) as u64;
            if bad == passed {
                break;
            }
            physical = sector + bad;
            passed = bad;
        }
        let mut place = self.locate_physical(physical);
        let next_slipped = self.slipped.get(passed as usize);
        let limits = [
            next_slipped.map(|slot| slot - physical),
            self.revectored.get(next_moved).map(|run| run.from - sector),
        ];
        for limit in limits.into_iter().flatten() {
            place.contiguous = place
                .contiguous
                .min(u32::try_from(limit).unwrap_or(u32::MAX));
        }
        place
    }

    #[inline]
    fn locate_physical(&self, sector: u64) -> Place {
        let zone = match &self.zones[..] {
            [zone] => zone,
            zones => &zones[zones.partition_point(|zone| zone.first_sector <= sector) - 1],
        };
        let (track, on_track) = zone.per_track.divide(sector - zone.first_sector);
        let (cylinder, head) = self.per_cylinder.divide(track);
        let cylinder = zone.first_cylinder + cylinder as u32;
        assert!(
            cylinder < self.cylinders,
            "sector {sector} is not on the drive"
        );
        let slots = zone.slots();
        let mut slot = zone.slot_of(on_track);
        let of_groups = self
            .head_groups
            .map_or(0, |groups| groups.turns(self.heads, (cylinder, head)));
        if u64::from(self.track_skew | self.cylinder_skew) | of_groups != 0 {
            let turns = u64::from(self.track_skew)
                * (u64::from(cylinder) * u64::from(self.heads - 1) + u64::from(head))
                + u64::from(self.cylinder_skew) * u64::from(cylinder)
                + of_groups;
            slot = ((u64::from(slot) + turns) % u64::from(slots)) as u32;
        }
        Place {
            cylinder,
            head,
            slot,
            slots,
            contiguous: if zone.interleave == 1 && zone.division.has_index_gap() {
                // A run ends at the index: behind the last slot is the gap.
                (zone.sectors_per_track - on_track).min(slots - slot)
            } else if zone.interleave == 1 {
                zone.sectors_per_track - on_track
            } else {
                1
            },
        }
    }
}

impl Zone {
    /// Cylinders from `first_cylinder` on.
    pub fn new(
        first_cylinder: u32,
        sectors_per_track: u32,
        spare_sectors: u32,
        interleave: u32,
    ) -> Self {
        Self {
            first_cylinder,
            sectors_per_track,
            spare_sectors,
            interleave,
            first_sector: 0,
            per_round: Slots::new(sectors_per_round(sectors_per_track, interleave)),
            division: Slots::new((sectors_per_track + spare_sectors).max(1)),
            per_track: Slots::new(sectors_per_track.max(1)),
        }
    }

    fn slots(&self) -> u32 {
        self.sectors_per_track + self.spare_sectors
    }

    /// The slot of a sector of a track: each lies `interleave` slots after the one
    /// before it, or in the next free slot after that, which it is when as many have
    /// been laid out as a round has.
    #[inline]
    fn slot_of(&self, on_track: u32) -> u32 {
        if self.interleave == 1 {
            return on_track;
        }
        let (rounds, step) = self.per_round.divide(u64::from(on_track));
        let slots = u64::from(step) * u64::from(self.interleave);
        self.per_track.divide(slots).1 + rounds as u32
    }
}

/// How many steps of `interleave` lead from a slot of a track back to it.
fn sectors_per_round(sectors: u32, interleave: u32) -> u32 {
    let sectors = sectors.max(1);
    let (mut common, mut rest) = (sectors, interleave % sectors);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    sectors / common
}

/// The first sector that two of these have; they ascend.
fn shared_within(ascending: &[Range<u64>]) -> Option<u64> {
    let mut pairs = ascending.windows(2);
    let shared = pairs.find(|pair| pair[0].end > pair[1].start);
    shared.map(|pair| pair[1].start)
}

/// A sector that one of these has and one of the others; these ascend, and no two of
/// them share one.
fn shared_between(ascending: &[Range<u64>], others: &[Range<u64>]) -> Option<u64> {
    others.iter().find_map(|other| {
        let before = ascending.partition_point(|one| one.start < other.end);
        let last = &ascending[before.checked_sub(1)?];
        (last.end > other.start).then(|| last.start.max(other.start))
    })
}
