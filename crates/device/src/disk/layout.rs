//! Where the sectors of a disk are: from the number of a logical block to cylinder, head,
//! sector and angle, and back.
//!
//! The layout is DiskSim's `g1` with all its sparing schemes, and the seek-first
//! serpentines of later disks.

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

/// Where a sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The cylinder, from 0 at the outside.
    pub cylinder: u32,
    /// The head, from 0.
    pub head: u32,
    /// Its number among all sectors of the track, those that hold nothing included.
    pub sector: u32,
    /// Sectors of the track.
    pub sectors_per_track: u32,
    /// The angle at which it begins.
    pub start: Turn,
    /// How far the disk turns while it passes.
    pub arc: u64,
}

impl Place {
    /// Whether both are on one track.
    #[inline]
    pub fn same_track(&self, other: &Self) -> bool {
        (self.cylinder, self.head) == (other.cylinder, other.head)
    }

    /// The angle at which so many sectors from this one on have passed.
    #[inline]
    pub fn end(&self, sectors: u32) -> Turn {
        self.start + Turn(self.arc * u64::from(sectors))
    }
}

/// Place of a sector in its zone before any skew: what skews are fitted by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InZone {
    /// Number of the zone.
    pub zone: usize,
    /// Cylinder, counted from the zone's first.
    pub cylinder: u32,
    /// Range of cylinders that share spares, counted from the zone's first; 0 without ranges.
    pub range: u32,
    /// Track of the cylinder, in the order in which sectors fill them.
    pub order: u32,
    /// Angle from the start of the track, in revolutions.
    pub within: f64,
}

/// A sector, and how many follow it side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first one.
    pub place: Place,
    /// How many logical blocks from it on lie side by side on its track, itself included.
    pub sectors: u32,
    /// How many logical blocks are known to lie side by side before it on its track; there
    /// may be more.
    pub before: u32,
}

impl Run {
    /// What is left of it behind so many sectors; nothing behind all of them.
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

/// Where all sectors of a disk are.
#[derive(Clone, Debug)]
pub struct Layout {
    sectors_at: SectorsAt,
    surfaces: u32,
    cylinders: u32,
    sectors: u64,
}

/// What says where sectors are.
#[derive(Clone, Debug)]
enum SectorsAt {
    /// At least one, from the outermost inwards.
    Zones(Zones),
    /// As they were measured.
    Extents(Extents),
}

/// Zones, and beside each other where they begin: that is looked up for each request.
#[derive(Clone, Debug)]
struct Zones {
    /// The first sectors of all but the first one.
    begins: Box<[u64]>,
    zones: Vec<Zone>,
    /// How many of `begins` lie before each stretch of 2^`shift` sectors: in most stretches
    /// no zone begins, and there is nothing to search.
    before: Box<[u32]>,
    shift: u32,
}

/// Stretches per zone.
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

    /// The number of the zone that has a sector.
    #[inline]
    fn number(&self, sector: u64) -> usize {
        let stretch = (sector >> self.shift) as usize;
        let (from, to) = (self.before[stretch], self.before[stretch + 1]);
        let begins = &self.begins[from as usize..to as usize];
        from as usize + begins.partition_point(|first| *first <= sector)
    }

    /// The zone that has a sector.
    #[inline]
    fn of(&self, sector: u64) -> &Zone {
        &self.zones[self.number(sector)]
    }
}

/// The most cylinders of a disk: thirty times those of any disk so far.
pub const MOST_CYLINDERS: u32 = 1 << 24;
/// The most surfaces of a disk.
pub const MOST_SURFACES: u32 = 256;
/// The most sectors of a track.
pub const MOST_SECTORS_PER_TRACK: u32 = 1 << 20;

impl Layout {
    /// The layout that a specification describes.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] when it contradicts itself, or when one place would hold two
    /// sectors.
    pub fn new(specification: &LayoutSpecification) -> Result<Self, LayoutError> {
        let of = specification;
        within("`surfaces`", of.surfaces, MOST_SURFACES)?;
        within("`cylinders`", of.cylinders, MOST_CYLINDERS)?;
        if let Sparing::Range { cylinders } = of.sparing {
            within("`cylinders` of a range of spares", cylinders, of.cylinders)?;
        }
        if let TrackOrder::SeekFirst { tracks, .. } = of.order {
            within("`tracks` of a surface", tracks, MOST_CYLINDERS)?;
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

    /// Sectors that hosts see.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders that the arm can go to.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Surfaces, each with its head.
    pub fn surfaces(&self) -> u32 {
        self.surfaces
    }

    /// Zones; one where the sectors are as they were measured.
    pub fn zones(&self) -> usize {
        match &self.sectors_at {
            SectorsAt::Zones(zones) => zones.zones.len(),
            SectorsAt::Extents(_) => 1,
        }
    }

    /// The zone, from 0 at the outside, that a sector is in.
    ///
    /// # Panics
    ///
    /// When there is no such sector.
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

    /// The first sector of a zone.
    ///
    /// # Panics
    ///
    /// When there is no such zone.
    pub fn first_of_zone(&self, zone: usize) -> u64 {
        match &self.sectors_at {
            SectorsAt::Zones(zones) => zones.zones[zone].first(),
            SectorsAt::Extents(_) => 0,
        }
    }

    /// Where a sector is, and how many follow it there.
    ///
    /// # Panics
    ///
    /// When there is no such sector.
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

    /// Where a sector is.
    ///
    /// # Panics
    ///
    /// When there is no such sector.
    #[inline]
    pub fn locate(&self, sector: u64) -> Place {
        self.run(sector).place
    }

    /// Where a sector is in its zone; `None` of a layout without zones, and of bands of tracks.
    ///
    /// # Panics
    ///
    /// When there is no such sector.
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

    /// The sector that is at a place; none where nothing is held.
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

    /// Whether so many sectors before this one lie before it on its track, one beside the
    /// other; `run` is where it is itself.
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

    /// The sector after the last one that follows this one on its track: where a drive
    /// that reads to the end of the track stops. What stands in for a defect elsewhere ends
    /// it too.
    ///
    /// # Panics
    ///
    /// When there is no such sector.
    pub fn end_of_track(&self, sector: u64) -> u64 {
        let track = self.locate(sector);
        self.end_of(sector, |place| place.same_track(&track))
    }

    /// The same for its cylinder.
    ///
    /// # Panics
    ///
    /// When there is no such sector.
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

/// The zones of a specification, and the sectors that they have room for.
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

/// Whether a number from 1 up is what a disk may have.
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
