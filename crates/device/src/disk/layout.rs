//! Sector layout of a disk: conversion between logical block numbers and cylinder, head, sector and
//! angle.
//!
//! The layout is DiskSim's `g1` with all its sparing schemes, and the seek-first serpentines of
//! later disks.

mod extents;
mod sheet;
mod slips;
mod specification;
mod tracks;
mod zone;

pub use sheet::{DataSheet, DataSheetError};
pub use specification::{
    ExtentSpecification, HeadDirection, HeadGroups, LayoutError, LayoutSpecification, Sparing,
    TrackOrder, ZoneSpecification,
};

use super::spindle::RotationAngle;
use extents::ExtentMap;
use zone::LayoutZone;

/// Physical position of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorPosition {
    /// Cylinder, counted from 0 at the outer edge.
    pub cylinder: u32,
    /// Head that reads the sector, counted from 0.
    pub head: u32,
    /// Number of the sector on its track, counting also sectors that hold no data.
    pub sector: u32,
    /// Number of sectors on the track that holds the sector.
    pub sectors_per_track: u32,
    /// Angle at which the sector begins.
    pub start_angle: RotationAngle,
    /// Angle that one sector covers, in parts of 2^64 of a revolution.
    pub sector_angle: u64,
}

impl SectorPosition {
    /// Tests whether two positions are on the same track.
    #[inline]
    pub fn is_on_same_track(&self, other: &Self) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }

    /// Returns the angle at which this sector and those behind it, `sectors` in all, have passed.
    #[inline]
    pub fn end_angle(&self, sectors: u32) -> RotationAngle {
        self.start_angle + RotationAngle(self.sector_angle * u64::from(sectors))
    }
}

/// Position of a sector in its zone before any skew. Fits of skews start from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZonePosition {
    /// Index of the zone that contains the sector, from 0.
    pub zone_index: usize,
    /// Cylinder, counted from the zone's first one.
    pub cylinder_in_zone: u32,
    /// Range of cylinders that share spares, counted from the zone's first range; 0 without ranges.
    pub range_index: u32,
    /// Track of the cylinder, numbered in the order in which sectors fill the tracks.
    pub track_in_range: u32,
    /// Angle of the sector from the start of its track, in revolutions.
    pub angle_in_zone: f64,
}

/// Run of contiguous sectors on one track, from a given sector on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectorRun {
    /// Position of the first sector of the run.
    pub position: SectorPosition,
    /// Number of logical blocks that lie side by side on the track from this sector on, including
    /// it.
    pub sector_count: u32,
    /// Number of logical blocks known to lie side by side directly before this sector on its track.
    /// The true number may be larger.
    pub sectors_before: u32,
}

impl SectorRun {
    /// Returns the rest of the run behind its first `sectors` sectors; `None` if nothing is left.
    #[inline]
    #[must_use]
    pub fn run_after(&self, sectors: u32) -> Option<Self> {
        let left = self
            .sector_count
            .checked_sub(sectors)
            .filter(|left| *left > 0)?;
        Some(Self {
            position: SectorPosition {
                sector: self.position.sector + sectors,
                start_angle: self.position.end_angle(sectors),
                ..self.position
            },
            sector_count: left,
            sectors_before: self.sectors_before + sectors,
        })
    }
}

/// Sector layout of a disk.
#[derive(Clone, Debug)]
pub struct Layout {
    sector_map: SectorMap,
    surface_count: u32,
    cylinder_count: u32,
    sector_count: u64,
}

#[derive(Clone, Debug)]
enum SectorMap {
    /// Zones from the outer edge inwards, at least one.
    Zones(ZoneMap),
    Extents(ExtentMap),
}

/// Zones with an index of their first sectors, because each request looks up its zone.
#[derive(Clone, Debug)]
struct ZoneMap {
    /// First sectors of all zones but the first.
    first_sectors: Box<[u64]>,
    zones: Vec<LayoutZone>,
    /// Number of zone starts before each interval of 2^`shift` sectors. No zone starts in most
    /// intervals, so their lookup needs no search.
    zone_before_stretch: Box<[u32]>,
    stretch_shift: u32,
}

/// Minimum number of lookup intervals per zone.
const STRETCHES_PER_ZONE: u64 = 16;

impl ZoneMap {
    fn new(zones: Vec<LayoutZone>) -> Self {
        let begins: Box<[u64]> = zones.iter().skip(1).map(LayoutZone::first_sector).collect();
        let sectors = zones
            .last()
            .map_or(0, |last| last.first_sector() + last.sector_count());
        let stretch = sectors / (STRETCHES_PER_ZONE * zones.len().max(1) as u64) + 1;
        let shift = stretch.ilog2();
        let before = (0..=(sectors >> shift) + 1)
            .map(|at| begins.partition_point(|first| *first < at << shift) as u32)
            .collect();
        Self {
            first_sectors: begins,
            zones,
            zone_before_stretch: before,
            stretch_shift: shift,
        }
    }

    #[inline]
    fn zone_index(&self, sector: u64) -> usize {
        let stretch = (sector >> self.stretch_shift) as usize;
        let (from, to) = (
            self.zone_before_stretch[stretch],
            self.zone_before_stretch[stretch + 1],
        );
        let begins = &self.first_sectors[from as usize..to as usize];
        from as usize + begins.partition_point(|first| *first <= sector)
    }

    #[inline]
    fn zone_of(&self, sector: u64) -> &LayoutZone {
        &self.zones[self.zone_index(sector)]
    }
}

/// Maximum number of cylinders of a disk: thirty times that of any disk so far.
pub const CYLINDERS_MAX: u32 = 1 << 24;
/// Maximum number of surfaces of a disk.
pub const SURFACES_MAX: u32 = 256;
/// Maximum number of sectors on a track.
pub const SECTORS_PER_TRACK_MAX: u32 = 1 << 20;

impl Layout {
    /// Creates the sector layout that a specification describes.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] when the specification contradicts itself, or two sectors would share a
    /// position.
    pub fn new(specification: &LayoutSpecification) -> Result<Self, LayoutError> {
        let of = specification;
        check_range("`surfaces`", of.surface_count, SURFACES_MAX)?;
        check_range("`cylinders`", of.cylinder_count, CYLINDERS_MAX)?;
        if let Sparing::Range { cylinders } = of.sparing {
            check_range(
                "`cylinders` of a range of spares",
                cylinders,
                of.cylinder_count,
            )?;
        }
        if let TrackOrder::SeekFirst { tracks, .. } = of.track_order {
            check_range("`tracks` of a surface", tracks, CYLINDERS_MAX)?;
            if of.sparing.counts_in_cylinders() {
                return Err(LayoutError::SeekFirstSparing);
            }
        }
        let (sectors_at, room) = match (of.zones.is_empty(), of.extents.is_empty()) {
            (true, true) => return Err(LayoutError::NoZones),
            (false, false) => return Err(LayoutError::ZonesAndExtents),
            (false, true) => build_sector_map(of)?,
            (true, false) => {
                let extents = ExtentMap::new(of)?;
                let room = extents.sectors();
                (SectorMap::Extents(extents), room)
            }
        };
        let asked = of.sector_count.unwrap_or(room);
        if asked > room {
            return Err(LayoutError::TooFewSectors { room, asked });
        }
        Ok(Self {
            sector_map: sectors_at,
            surface_count: of.surface_count,
            cylinder_count: of.cylinder_count,
            sector_count: asked,
        })
    }

    /// Returns the number of sectors that hosts see.
    pub fn sectors(&self) -> u64 {
        self.sector_count
    }

    /// Returns the number of cylinders that the arm can reach.
    pub fn cylinder_count(&self) -> u32 {
        self.cylinder_count
    }

    /// Returns the number of surfaces, each with its own head.
    pub fn surface_count(&self) -> u32 {
        self.surface_count
    }

    /// Returns the number of zones; 1 for a layout of measured extents.
    pub fn zone_count(&self) -> usize {
        match &self.sector_map {
            SectorMap::Zones(zones) => zones.zones.len(),
            SectorMap::Extents(_) => 1,
        }
    }

    /// Returns the index of the zone that contains a sector, from 0 at the outer edge.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    #[inline]
    pub fn zone_of_sector(&self, sector: u64) -> usize {
        assert!(
            sector < self.sector_count,
            "sector {sector} of a disk of {}",
            self.sector_count
        );
        match &self.sector_map {
            SectorMap::Zones(zones) => zones.zone_index(sector),
            SectorMap::Extents(_) => 0,
        }
    }

    /// Returns the first sector of a zone.
    ///
    /// # Panics
    ///
    /// When the disk has no such zone.
    pub fn first_sector_of_zone(&self, zone: usize) -> u64 {
        match &self.sector_map {
            SectorMap::Zones(zones) => zones.zones[zone].first_sector(),
            SectorMap::Extents(_) => 0,
        }
    }

    /// Returns the position of a sector, and the number of sectors that follow it side by side.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    #[inline(always)]
    pub fn run_at(&self, sector: u64) -> SectorRun {
        assert!(
            sector < self.sector_count,
            "sector {sector} of a disk of {}",
            self.sector_count
        );
        let mut run = match &self.sector_map {
            SectorMap::Zones(zones) => zones.zone_of(sector).run_at(sector),
            SectorMap::Extents(extents) => extents.run_at(sector),
        };
        let left = self.sector_count - sector;
        if u64::from(run.sector_count) > left {
            run.sector_count = left as u32;
        }
        run
    }

    /// Returns the physical position of a logical sector.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    #[inline]
    pub fn position_of(&self, sector: u64) -> SectorPosition {
        self.run_at(sector).position
    }

    /// Returns the position of a sector in its zone before skews. Returns `None` for a layout
    /// without zones, and for bands of tracks ([`TrackOrder::SeekFirst`]).
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    pub fn zone_position_of(&self, sector: u64) -> Option<ZonePosition> {
        let place = self.position_of(sector);
        match &self.sector_map {
            SectorMap::Zones(zones) => {
                let number = zones.zone_index(sector);
                zones.zones[number].zone_position(number, &place)
            }
            SectorMap::Extents(_) => None,
        }
    }

    /// Returns the logical sector at a physical position; `None` where no data are stored.
    pub fn sector_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let found = match &self.sector_map {
            SectorMap::Zones(zones) => zones
                .zones
                .iter()
                .find(|zone| zone.has_cylinder(cylinder))
                .filter(|_| head < self.surface_count)?
                .sector_at(cylinder, head, sector),
            SectorMap::Extents(extents) => extents.sector_at(cylinder, head, sector),
        };
        found.filter(|sector| *sector < self.sector_count)
    }

    /// Tests whether the `sectors` sectors before a given one lie directly before it on its track,
    /// side by side. `run` is the position of the given sector.
    #[inline]
    pub fn is_in_run_before(&self, sector: u64, run: &SectorRun, sectors: u32) -> bool {
        let place = &run.position;
        if sectors <= run.sectors_before {
            return true;
        }
        sectors <= place.sector
            && u64::from(sectors) <= sector
            && self.sector_at(place.cylinder, place.head, place.sector - sectors)
                == Some(sector - u64::from(sectors))
    }

    /// Returns the end (exclusive) of the sectors that follow a given one on its track. A drive
    /// that reads to the end of the track stops there. A sector remapped to another track also ends
    /// the range.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    pub fn track_end(&self, sector: u64) -> u64 {
        let track = self.position_of(sector);
        self.end_of_region(sector, |place| place.is_on_same_track(&track))
    }

    /// Returns the end (exclusive) of the sectors that follow a given one on its cylinder.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    pub fn cylinder_end(&self, sector: u64) -> u64 {
        let cylinder = self.position_of(sector).cylinder;
        self.end_of_region(sector, |place| place.cylinder == cylinder)
    }

    fn end_of_region(&self, sector: u64, belongs: impl Fn(&SectorPosition) -> bool) -> u64 {
        let mut at = sector;
        while at < self.sector_count {
            let run = self.run_at(at);
            if !belongs(&run.position) {
                break;
            }
            at += u64::from(run.sector_count);
        }
        at
    }
}

/// Builds the zones of a specification, and returns them with the number of their logical sectors.
fn build_sector_map(of: &LayoutSpecification) -> Result<(SectorMap, u64), LayoutError> {
    let mut zones: Vec<LayoutZone> = Vec::with_capacity(of.zones.len());
    let (mut room, mut next_cylinder) = (0, 0);
    for (number, zone) in of.zones.iter().enumerate() {
        let (first, last) = (zone.first_cylinder, zone.last_cylinder);
        if first < next_cylinder || last < first || last >= of.cylinder_count {
            return Err(LayoutError::ZonesOutOfOrder {
                zone: number,
                first,
                last,
            });
        }
        next_cylinder = last + 1;
        let zone = LayoutZone::new(of, number, room)?;
        room += zone.sector_count();
        zones.push(zone);
    }
    Ok((SectorMap::Zones(ZoneMap::new(zones)), room))
}

fn check_range(what: &str, value: u32, most: u32) -> Result<(), LayoutError> {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(LayoutError::OutOfRange {
            what: what.to_owned(),
            value: u64::from(value),
            least: 1,
            most: u64::from(most),
        }),
    }
}
