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

pub use sheet::{DataSheet, SheetError};
pub use specification::{
    Direction, ExtentSpecification, HeadGroups, LayoutError, LayoutSpecification, Sparing,
    TrackOrder, ZoneSpecification,
};

use super::spindle::Turn;
use extents::Extents;
use zone::Zone;

/// Physical position of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cylinder, counted from 0 at the outer edge.
    pub cylinder: u32,
    /// Head that reads the sector, counted from 0.
    pub head: u32,
    /// Number of the sector on its track, counting also sectors that hold no data.
    pub sector: u32,
    /// Number of sectors on the track that holds the sector.
    pub sectors_per_track: u32,
    /// Angle at which the sector begins.
    pub start: Turn,
    /// Angle that one sector covers, in parts of 2^64 of a revolution.
    pub arc: u64,
}

impl Place {
    /// Tests whether two positions are on the same track.
    #[inline]
    pub fn same_track(&self, other: &Self) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }

    /// Returns the angle at which this sector and those behind it, `sectors` in all, have passed.
    #[inline]
    pub fn end(&self, sectors: u32) -> Turn {
        self.start + Turn(self.arc * u64::from(sectors))
    }
}

/// Position of a sector in its zone before any skew. Fits of skews start from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InZone {
    /// Index of the zone that contains the sector, from 0.
    pub zone: usize,
    /// Cylinder, counted from the zone's first one.
    pub cylinder: u32,
    /// Range of cylinders that share spares, counted from the zone's first range; 0 without ranges.
    pub range: u32,
    /// Track of the cylinder, numbered in the order in which sectors fill the tracks.
    pub order: u32,
    /// Angle of the sector from the start of its track, in revolutions.
    pub within: f64,
}

/// Run of contiguous sectors on one track, from a given sector on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Position of the first sector of the run.
    pub place: Place,
    /// Number of logical blocks that lie side by side on the track from this sector on, including
    /// it.
    pub sectors: u32,
    /// Number of logical blocks known to lie side by side directly before this sector on its track.
    /// The true number may be larger.
    pub before: u32,
}

impl Run {
    /// Returns the rest of the run behind its first `sectors` sectors; `None` if nothing is left.
    #[inline]
    #[must_use]
    pub fn behind(&self, sectors: u32) -> Option<Self> {
        let left = self.sectors.checked_sub(sectors).filter(|left| *left > 0)?;
        Some(Self {
            place: Place {
                sector: self.place.sector + sectors,
                start: self.place.end(sectors),
                ..self.place
            },
            sectors: left,
            before: self.before + sectors,
        })
    }
}

/// Sector layout of a disk.
#[derive(Clone, Debug)]
pub struct Layout {
    sectors_at: SectorsAt,
    surfaces: u32,
    cylinders: u32,
    sectors: u64,
}

#[derive(Clone, Debug)]
enum SectorsAt {
    /// Zones from the outer edge inwards, at least one.
    Zones(Zones),
    Extents(Extents),
}

/// Zones with an index of their first sectors, because each request looks up its zone.
#[derive(Clone, Debug)]
struct Zones {
    /// First sectors of all zones but the first.
    begins: Box<[u64]>,
    zones: Vec<Zone>,
    /// Number of zone starts before each interval of 2^`shift` sectors. No zone starts in most
    /// intervals, so their lookup needs no search.
    before: Box<[u32]>,
    shift: u32,
}

/// Minimum number of lookup intervals per zone.
const STRETCHES: u64 = 16;

impl Zones {
    fn new(zones: Vec<Zone>) -> Self {
        let begins: Box<[u64]> = zones.iter().skip(1).map(Zone::first).collect();
        let sectors = zones.last().map_or(0, |last| last.first() + last.sectors());
        let stretch = sectors / (STRETCHES * zones.len().max(1) as u64) + 1;
        let shift = stretch.ilog2();
        let before = (0..=(sectors >> shift) + 1)
            .map(|at| begins.partition_point(|first| *first < at << shift) as u32)
            .collect();
        Self {
            begins,
            zones,
            before,
            shift,
        }
    }

    /// Returns the index of the zone that contains a sector.
    #[inline]
    fn number(&self, sector: u64) -> usize {
        let stretch = (sector >> self.shift) as usize;
        let (from, to) = (self.before[stretch], self.before[stretch + 1]);
        let begins = &self.begins[from as usize..to as usize];
        from as usize + begins.partition_point(|first| *first <= sector)
    }

    #[inline]
    fn of(&self, sector: u64) -> &Zone {
        &self.zones[self.number(sector)]
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
        within("`surfaces`", of.surfaces, SURFACES_MAX)?;
        within("`cylinders`", of.cylinders, CYLINDERS_MAX)?;
        if let Sparing::Range { cylinders } = of.sparing {
            within("`cylinders` of a range of spares", cylinders, of.cylinders)?;
        }
        if let TrackOrder::SeekFirst { tracks, .. } = of.order {
            within("`tracks` of a surface", tracks, CYLINDERS_MAX)?;
            if of.sparing.by_cylinders() {
                return Err(LayoutError::SeekFirstSparing);
            }
        }
        let (sectors_at, room) = match (of.zones.is_empty(), of.extents.is_empty()) {
            (true, true) => return Err(LayoutError::NoZones),
            (false, false) => return Err(LayoutError::ZonesAndExtents),
            (false, true) => zones(of)?,
            (true, false) => {
                let extents = Extents::new(of)?;
                let room = extents.sectors();
                (SectorsAt::Extents(extents), room)
            }
        };
        let asked = of.sectors.unwrap_or(room);
        if asked > room {
            return Err(LayoutError::Sectors { room, asked });
        }
        Ok(Self {
            sectors_at,
            surfaces: of.surfaces,
            cylinders: of.cylinders,
            sectors: asked,
        })
    }

    /// Returns the number of sectors that hosts see.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the number of cylinders that the arm can reach.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Returns the number of surfaces, each with its own head.
    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// Returns the number of zones; 1 for a layout of measured extents.
    pub fn zones(&self) -> usize {
        match &self.sectors_at {
            SectorsAt::Zones(zones) => zones.zones.len(),
            SectorsAt::Extents(_) => 1,
        }
    }

    /// Returns the index of the zone that contains a sector, from 0 at the outer edge.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    #[inline]
    pub fn zone(&self, sector: u64) -> usize {
        assert!(
            sector < self.sectors,
            "sector {sector} of a disk of {}",
            self.sectors
        );
        match &self.sectors_at {
            SectorsAt::Zones(zones) => zones.number(sector),
            SectorsAt::Extents(_) => 0,
        }
    }

    /// Returns the first sector of a zone.
    ///
    /// # Panics
    ///
    /// When the disk has no such zone.
    pub fn first_of_zone(&self, zone: usize) -> u64 {
        match &self.sectors_at {
            SectorsAt::Zones(zones) => zones.zones[zone].first(),
            SectorsAt::Extents(_) => 0,
        }
    }

    /// Returns the position of a sector, and the number of sectors that follow it side by side.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    #[inline(always)]
    pub fn run(&self, sector: u64) -> Run {
        assert!(
            sector < self.sectors,
            "sector {sector} of a disk of {}",
            self.sectors
        );
        let mut run = match &self.sectors_at {
            SectorsAt::Zones(zones) => zones.of(sector).run(sector),
            SectorsAt::Extents(extents) => extents.run(sector),
        };
        let left = self.sectors - sector;
        if u64::from(run.sectors) > left {
            run.sectors = left as u32;
        }
        run
    }

    /// Returns the physical position of a logical sector.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    #[inline]
    pub fn locate(&self, sector: u64) -> Place {
        self.run(sector).place
    }

    /// Returns the position of a sector in its zone before skews. Returns `None` for a layout
    /// without zones, and for bands of tracks ([`TrackOrder::SeekFirst`]).
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    pub fn in_zone(&self, sector: u64) -> Option<InZone> {
        let place = self.locate(sector);
        match &self.sectors_at {
            SectorsAt::Zones(zones) => {
                let number = zones.number(sector);
                zones.zones[number].in_zone(number, &place)
            }
            SectorsAt::Extents(_) => None,
        }
    }

    /// Returns the logical sector at a physical position; `None` where no data are stored.
    pub fn find(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let found = match &self.sectors_at {
            SectorsAt::Zones(zones) => zones
                .zones
                .iter()
                .find(|zone| zone.has_cylinder(cylinder))
                .filter(|_| head < self.surfaces)?
                .find(cylinder, head, sector),
            SectorsAt::Extents(extents) => extents.find(cylinder, head, sector),
        };
        found.filter(|sector| *sector < self.sectors)
    }

    /// Tests whether the `sectors` sectors before a given one lie directly before it on its track,
    /// side by side. `run` is the position of the given sector.
    #[inline]
    pub fn has_before(&self, sector: u64, run: &Run, sectors: u32) -> bool {
        let place = &run.place;
        if sectors <= run.before {
            return true;
        }
        sectors <= place.sector
            && u64::from(sectors) <= sector
            && self.find(place.cylinder, place.head, place.sector - sectors)
                == Some(sector - u64::from(sectors))
    }

    /// Returns the end (exclusive) of the sectors that follow a given one on its track. A drive
    /// that reads to the end of the track stops there. A sector remapped to another track also ends
    /// the range.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    pub fn end_of_track(&self, sector: u64) -> u64 {
        let track = self.locate(sector);
        self.end_of(sector, |place| place.same_track(&track))
    }

    /// Returns the end (exclusive) of the sectors that follow a given one on its cylinder.
    ///
    /// # Panics
    ///
    /// When the disk has no such sector.
    pub fn end_of_cylinder(&self, sector: u64) -> u64 {
        let cylinder = self.locate(sector).cylinder;
        self.end_of(sector, |place| place.cylinder == cylinder)
    }

    fn end_of(&self, sector: u64, belongs: impl Fn(&Place) -> bool) -> u64 {
        let mut at = sector;
        while at < self.sectors {
            let run = self.run(at);
            if !belongs(&run.place) {
                break;
            }
            at += u64::from(run.sectors);
        }
        at
    }
}

/// Builds the zones of a specification, and returns them with the number of their logical sectors.
fn zones(of: &LayoutSpecification) -> Result<(SectorsAt, u64), LayoutError> {
    let mut zones: Vec<Zone> = Vec::with_capacity(of.zones.len());
    let (mut room, mut next_cylinder) = (0, 0);
    for (number, zone) in of.zones.iter().enumerate() {
        let (first, last) = (zone.first_cylinder, zone.last_cylinder);
        if first < next_cylinder || last < first || last >= of.cylinders {
            return Err(LayoutError::Order {
                zone: number,
                first,
                last,
            });
        }
        next_cylinder = last + 1;
        let zone = Zone::new(of, number, room)?;
        room += zone.sectors();
        zones.push(zone);
    }
    Ok((SectorsAt::Zones(Zones::new(zones)), room))
}

fn within(what: &str, value: u32, most: u32) -> Result<(), LayoutError> {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(LayoutError::Range {
            what: what.to_owned(),
            value: u64::from(value),
            least: 1,
            most: u64::from(most),
        }),
    }
}
