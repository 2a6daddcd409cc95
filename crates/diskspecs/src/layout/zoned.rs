//! Layout `dm_layout_g1`: zones with skews, spares, slips and defects.

use super::sparing::{SpareDivision, SparingScheme, ZoneSectors, ZoneSize};
use super::{PhysicalSector, revolution_fraction};
use std::collections::BTreeMap;

/// Order of tracks in the mapping of blocks (DiskSim's `LBN-to-PBN mapping scheme`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CylinderMapping {
    /// Ascending order: blocks fill the heads of each cylinder from the first to the last (0).
    Ascending,
    /// Serpentine within each zone: heads ascend in its first cylinder and descend in every other
    /// one (1).
    SerpentineByZone,
    /// Serpentine over the drive: heads descend in odd cylinders (2).
    SerpentineByCylinder,
}

/// Reason why zones do not form a valid layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneError {
    /// Index of the invalid zone, counted from 0.
    pub zone: usize,
    /// Description of the problem with the zone.
    pub reason: String,
    /// Slip or defect that is wrong; `None` if the problem is with the zone itself.
    pub faulty_sector: Option<FaultySector>,
}

/// Invalid slip or defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultySector {
    /// Invalid slip; of two equal slips, the later one.
    SlippedSector(u64),
    /// Invalid defect: the bad sector and its replacement.
    RemappedDefect(u64, u64),
}

/// Reason why a zone is invalid, with the slip or defect concerned.
pub(super) type ZoneProblem = (String, Option<FaultySector>);

/// Zone: range of cylinders with the same number of sectors on each track.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrackZone {
    /// Outermost cylinder of the zone.
    pub first_cylinder: u32,
    /// Innermost cylinder of the zone, inclusive.
    pub last_cylinder: u32,
    /// Physical sectors on each track of the zone.
    pub sectors_per_track: u32,
    /// Angle of the zone's first sector, in revolutions.
    pub start_angle: f64,
    /// Skew from a track to the next one of the same cylinder, in revolutions.
    pub track_skew: f64,
    /// Skew from a cylinder's last track to the first track of the next cylinder, in revolutions.
    pub cylinder_skew: f64,
    /// Unused sectors before the zone's first block.
    pub unused_sectors: u64,
    /// Number of spares (`Number of spares`), in the unit of the sparing scheme.
    pub spare_count: u64,
    /// Slips: physical sectors of the zone (tracks with [`SparingScheme::Tracks`]) that hold no data;
    /// ascending and unique.
    pub slips: Vec<u64>,
    /// Defects: bad physical sectors (or tracks) of the zone, each with its replacement.
    pub defects: Vec<(u64, u64)>,
}

impl TrackZone {
    /// Returns the number of cylinders in the zone.
    pub fn cylinder_count(&self) -> u64 {
        u64::from(self.last_cylinder - self.first_cylinder) + 1
    }
}

#[derive(Clone, Debug, PartialEq)]
struct ZoneBlockMap {
    first_block: u64,
    block_count: u64,
    sectors: ZoneSectors,
    /// Replacement of each sector (or track) with a defect, and the reverse mapping.
    replacement_of_defect: BTreeMap<u64, u64>,
    defect_of_replacement: BTreeMap<u64, u64>,
}

/// Layout of zones with skews, spares, slips and defects.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonedLayout {
    surface_count: u32,
    mapping: CylinderMapping,
    sparing: SparingScheme,
    range_cylinders: u32,
    zones: Vec<TrackZone>,
    zone_maps: Vec<ZoneBlockMap>,
}

/// Location of a block in its zone, before skews are applied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ZoneLocation {
    /// Index of the zone.
    pub zone_index: usize,
    /// Cylinder, counted from the zone's first.
    pub cylinder: u32,
    /// Range of cylinders that share spares, counted from the zone's first; 0 if the scheme has no
    /// ranges.
    pub spare_range: u32,
    /// Index of the track on its cylinder, in the order of use.
    pub track_index: u32,
    /// Angle from the first sector of the track, in revolutions.
    pub track_angle: f64,
}

impl ZonedLayout {
    /// Maximum number of cylinders of a drive. More is not realistic and would overflow.
    pub const CYLINDERS_MAX: u32 = 100_000_000;
    /// Maximum number of surfaces of a drive.
    pub const SURFACES_MAX: u32 = 1024;
    /// Maximum number of sectors on a track.
    pub const TRACK_SECTORS_MAX: u32 = 1 << 20;

    /// Creates a layout from ascending zones that share no cylinder.
    ///
    /// # Errors
    ///
    /// First zone that contradicts itself or the one before it.
    pub fn new(
        surfaces: u32,
        mapping: CylinderMapping,
        sparing: SparingScheme,
        range_cylinders: u32,
        zones: Vec<TrackZone>,
    ) -> Result<ZonedLayout, ZoneError> {
        let mut blocks: Vec<ZoneBlockMap> = Vec::new();
        let mut last: Option<u32> = None;
        let mut first = 0;
        if surfaces == 0 || surfaces > Self::SURFACES_MAX {
            let why = format!("{surfaces} surfaces");
            return Err(ZoneError {
                zone: 0,
                reason: why,
                faulty_sector: None,
            });
        }
        for (index, zone) in zones.iter().enumerate() {
            let here = |(why, of): ZoneProblem| ZoneError {
                zone: index,
                reason: why,
                faulty_sector: of,
            };
            check_zone(zone, last).map_err(here)?;
            last = Some(zone.last_cylinder);
            let zone_size = ZoneSize {
                cylinder_count: zone.cylinder_count(),
                surface_count: surfaces.into(),
                sectors_per_track: zone.sectors_per_track.into(),
                range_cylinders: range_cylinders.into(),
            };
            let own = map_zone(zone, sparing, &zone_size, first).map_err(here)?;
            first += own.block_count;
            blocks.push(own);
        }
        Ok(ZonedLayout {
            surface_count: surfaces,
            mapping,
            sparing,
            range_cylinders,
            zones,
            zone_maps: blocks,
        })
    }

    /// Returns the zones, outermost first.
    pub fn zones(&self) -> &[TrackZone] {
        &self.zones
    }

    /// Returns the number of surfaces.
    pub fn surfaces(&self) -> u32 {
        self.surface_count
    }

    /// Returns the order of tracks in the mapping of blocks.
    pub fn mapping(&self) -> CylinderMapping {
        self.mapping
    }

    /// Returns the sparing scheme.
    pub fn sparing(&self) -> SparingScheme {
        self.sparing
    }

    /// Returns the number of cylinders that share spares with [`SparingScheme::RangeEnd`] (`Rangesize for
    /// sparing`).
    pub fn range_cylinders(&self) -> u32 {
        self.range_cylinders
    }

    /// Returns the first block of a zone and its number of blocks.
    pub fn zone_block_range(&self, zone: usize) -> Option<(u64, u64)> {
        let blocks = self.zone_maps.get(zone)?;
        Some((blocks.first_block, blocks.block_count))
    }

    /// Returns the number of logical blocks.
    pub fn block_count(&self) -> u64 {
        self.zone_maps
            .last()
            .map_or(0, |last| last.first_block + last.block_count)
    }

    /// Returns the physical location of a logical block.
    pub fn locate_block(&self, block: u64) -> Option<PhysicalSector> {
        let (zone, physical) = self.find_physical_sector(block)?;
        Some(self.to_physical_sector(zone, physical))
    }

    /// Returns the location of a block in its zone.
    pub fn locate_in_zone(&self, block: u64) -> Option<ZoneLocation> {
        let (index, physical) = self.find_physical_sector(block)?;
        let zone = &self.zones[index];
        let per_track = u64::from(zone.sectors_per_track);
        let track = physical / per_track;
        let blocks = &self.zone_maps[index];
        let pushed = blocks.sectors.slips_before_track(track * per_track);
        let cylinder = (track / u64::from(self.surface_count)) as u32;
        let range = match self.sparing {
            SparingScheme::RangeEnd => cylinder / self.range_cylinders.max(1),
            _ => 0,
        };
        Some(ZoneLocation {
            zone_index: index,
            cylinder,
            spare_range: range,
            track_index: (track % u64::from(self.surface_count)) as u32,
            track_angle: (physical % per_track + pushed) as f64 / per_track as f64,
        })
    }

    /// Returns the zone of a block and its physical sector in that zone.
    fn find_physical_sector(&self, block: u64) -> Option<(usize, u64)> {
        // Empty zones begin where the next one does; the last to begin there has it.
        let index = self
            .zone_maps
            .partition_point(|zone| zone.first_block <= block)
            .checked_sub(1)?;
        let (zone, blocks) = (&self.zones[index], &self.zone_maps[index]);
        if block - blocks.first_block >= blocks.block_count {
            return None;
        }
        let position = block - blocks.first_block + zone.unused_sectors;
        let per_track = u64::from(zone.sectors_per_track);
        let (unit, within) = match self.sparing.division() {
            SpareDivision::Tracks => (position / per_track, position % per_track),
            _ => (position, 0),
        };
        let physical = blocks.sectors.find_physical_sector(unit);
        let physical = blocks
            .replacement_of_defect
            .get(&physical)
            .copied()
            .unwrap_or(physical);
        let physical = match self.sparing.division() {
            SpareDivision::Tracks => physical * per_track + within,
            _ => physical,
        };
        Some((index, physical))
    }

    fn to_physical_sector(&self, index: usize, physical: u64) -> PhysicalSector {
        let zone = &self.zones[index];
        let per_track = u64::from(zone.sectors_per_track);
        let (track, sector) = (physical / per_track, physical % per_track);
        let (cylinder, track_index) = (
            track / u64::from(self.surface_count),
            track % u64::from(self.surface_count),
        );
        let tracks = track_index as f64 + f64::from(self.surface_count - 1) * cylinder as f64;
        let pushed = self.zone_maps[index]
            .sectors
            .slips_before_track(track * per_track);
        let angle = zone.start_angle
            + tracks * zone.track_skew
            + cylinder as f64 * zone.cylinder_skew
            + (sector + pushed) as f64 / per_track as f64;
        let absolute = zone.first_cylinder + cylinder as u32;
        PhysicalSector {
            cylinder: absolute,
            head: self.head_of_track(zone, absolute, track_index as u32),
            sector: sector as u32,
            sectors_per_track: zone.sectors_per_track,
            angle: revolution_fraction(angle),
        }
    }

    /// Converts between the order of use of a cylinder's tracks and their heads, in either
    /// direction.
    fn head_of_track(&self, zone: &TrackZone, cylinder: u32, track_index: u32) -> u32 {
        let descends = match self.mapping {
            CylinderMapping::Ascending => false,
            CylinderMapping::SerpentineByZone => (cylinder - zone.first_cylinder) % 2 == 1,
            CylinderMapping::SerpentineByCylinder => cylinder % 2 == 1,
        };
        if descends {
            self.surface_count - 1 - track_index
        } else {
            track_index
        }
    }

    /// Returns the logical block at a physical location.
    pub fn find_block_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let index = self
            .zones
            .partition_point(|zone| zone.last_cylinder < cylinder);
        let (zone, blocks) = (self.zones.get(index)?, &self.zone_maps[index]);
        let outside = cylinder < zone.first_cylinder
            || head >= self.surface_count
            || sector >= zone.sectors_per_track;
        if outside {
            return None;
        }
        let track_index = self.head_of_track(zone, cylinder, head);
        let per_track = u64::from(zone.sectors_per_track);
        let track = u64::from(cylinder - zone.first_cylinder) * u64::from(self.surface_count)
            + u64::from(track_index);
        let (unit, within) = match self.sparing.division() {
            SpareDivision::Tracks => (track, u64::from(sector)),
            _ => (track * per_track + u64::from(sector), 0),
        };
        let unit = match blocks.defect_of_replacement.get(&unit) {
            Some(&bad) => bad,
            None if blocks.replacement_of_defect.contains_key(&unit) => return None,
            None => unit,
        };
        let position = blocks.sectors.find_position(unit)?;
        let position = match self.sparing.division() {
            SpareDivision::Tracks => position * per_track + within,
            _ => position,
        };
        let block = position.checked_sub(zone.unused_sectors)?;
        (block < blocks.block_count).then_some(blocks.first_block + block)
    }
}

fn check_zone(zone: &TrackZone, last: Option<u32>) -> Result<(), ZoneProblem> {
    check_zone_bounds(zone, last).map_err(|why| (why, None))?;
    let pairs = zone.slips.windows(2);
    match pairs.map(|pair| (pair[0], pair[1])).find(|(a, b)| a >= b) {
        Some((_, b)) => Err((
            "its slips do not ascend".to_owned(),
            Some(FaultySector::SlippedSector(b)),
        )),
        None => Ok(()),
    }
}

fn check_zone_bounds(zone: &TrackZone, last: Option<u32>) -> Result<(), String> {
    let (from, to) = (zone.first_cylinder, zone.last_cylinder);
    if from > to {
        return Err(format!(
            "its first cylinder {from} is after its last cylinder {to}"
        ));
    }
    if to >= ZonedLayout::CYLINDERS_MAX {
        return Err(format!("cylinder {to} exceeds the limit of a drive"));
    }
    if last.is_some_and(|last| last >= from) {
        return Err(format!(
            "cylinder {from} is within or before an earlier zone"
        ));
    }
    if !(1..=ZonedLayout::TRACK_SECTORS_MAX).contains(&zone.sectors_per_track) {
        return Err(format!("{} blocks on a track", zone.sectors_per_track));
    }
    let angles = [zone.start_angle, zone.track_skew, zone.cylinder_skew];
    if angles.iter().any(|angle| !angle.is_finite()) {
        return Err("an angle is not a number".to_owned());
    }
    Ok(())
}

fn map_zone(
    zone: &TrackZone,
    sparing: SparingScheme,
    zone_size: &ZoneSize,
    first: u64,
) -> Result<ZoneBlockMap, ZoneProblem> {
    let sectors = ZoneSectors::new(sparing, zone_size, zone.spare_count, &zone.slips)?;
    let (data, per_track) = match sparing.division() {
        SpareDivision::Tracks => (
            sectors.data_sectors() * zone_size.sectors_per_track,
            zone_size.sectors_per_track,
        ),
        _ => (sectors.data_sectors(), 1),
    };
    let count = data.checked_sub(zone.unused_sectors).ok_or_else(|| {
        let dead = zone.unused_sectors;
        let why = format!("{dead} dead sectors exceed the {data} data sectors");
        (why, None)
    })?;
    let mut replacement_of_defect = BTreeMap::new();
    let mut defect_of_replacement = BTreeMap::new();
    let physical = zone_size.cylinder_count * zone_size.surface_count * zone_size.sectors_per_track
        / per_track;
    let defects: &[(u64, u64)] = match sparing {
        SparingScheme::None => &[],
        _ => &zone.defects,
    };
    for &(bad, instead) in defects.iter().filter(|(bad, instead)| bad != instead) {
        let of = Some(FaultySector::RemappedDefect(bad, instead));
        if bad >= physical || instead >= physical {
            let why = format!("defect {bad}, {instead} is outside the zone of {physical}");
            return Err((why, of));
        }
        let twice = replacement_of_defect.insert(bad, instead).is_some();
        if defect_of_replacement.insert(instead, bad).is_some() || twice {
            return Err((format!("defect {bad}, {instead} is listed twice"), of));
        }
    }
    let taken = |at: &&u64| {
        !replacement_of_defect.contains_key(at) && sectors.find_position(**at).is_some()
    };
    if let Some((taken, bad)) = defect_of_replacement.iter().find(|(at, _)| taken(at)) {
        let why = format!("{taken} replaces a defect, but already holds a block");
        return Err((why, Some(FaultySector::RemappedDefect(*bad, *taken))));
    }
    Ok(ZoneBlockMap {
        first_block: first,
        block_count: count,
        sectors,
        replacement_of_defect,
        defect_of_replacement,
    })
}
