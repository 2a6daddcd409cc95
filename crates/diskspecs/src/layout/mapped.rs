//! Layout `dm_layout_g2`: a measured list of extents.

use super::{PhysicalSector, revolution_fraction};

/// Extent: contiguous blocks on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedExtent {
    /// First block of the extent.
    pub first_block: u64,
    /// Number of blocks in the extent; at least 1.
    pub block_count: u32,
    /// Cylinder of the extent.
    pub cylinder: u32,
    /// Head of the extent, which identifies the surface.
    pub head: u32,
    /// Physical sector of the extent's first block.
    pub sector: u32,
}

/// Cylinder, head and sector, in the order of the surface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SectorAddress {
    cylinder: u32,
    head: u32,
    sector: u32,
}

impl MappedExtent {
    fn address(&self) -> SectorAddress {
        SectorAddress {
            cylinder: self.cylinder,
            head: self.head,
            sector: self.sector,
        }
    }
}

/// Zone: range of cylinders with the same number of sectors on each track.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedTrackZone {
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
}

/// Layout as a list of extents, with zones that define track lengths and skews.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedLayout {
    surface_count: u32,
    zones: Vec<MappedTrackZone>,
    extents: Vec<MappedExtent>,
    /// Indices into `extents`, ordered by location.
    extents_by_location: Vec<u32>,
}

impl MappedLayout {
    /// Creates a layout from extents that cover all blocks from 0 without gaps, on tracks of
    /// ascending zones.
    ///
    /// # Errors
    ///
    /// First extent, counted from 0, that is outside the drive or contradicts another one, with the
    /// reason. The index is absent if the zones are wrong.
    pub fn new(
        surfaces: u32,
        zones: Vec<MappedTrackZone>,
        extents: Vec<MappedExtent>,
    ) -> Result<MappedLayout, (Option<usize>, String)> {
        let ascend = zones.is_sorted_by(|a, b| a.last_cylinder < b.first_cylinder)
            && zones
                .iter()
                .all(|zone| zone.first_cylinder <= zone.last_cylinder);
        if !ascend {
            return Err((None, "its zones do not ascend".to_owned()));
        }
        if zones.iter().any(|zone| zone.sectors_per_track == 0) {
            return Err((None, "a zone has no blocks on its tracks".to_owned()));
        }
        let mut layout = MappedLayout {
            surface_count: surfaces,
            zones,
            extents,
            extents_by_location: Vec::new(),
        };
        let mut next = 0;
        for (index, extent) in layout.extents.iter().enumerate() {
            let here = |why: String| (Some(index), why);
            if extent.first_block != next {
                let first = extent.first_block;
                return Err(here(format!("it begins at block {first}, not at {next}")));
            }
            layout.check_extent(extent).map_err(here)?;
            next += u64::from(extent.block_count);
        }
        layout.sort_by_location()?;
        Ok(layout)
    }

    fn check_extent(&self, extent: &MappedExtent) -> Result<(), String> {
        if extent.head >= self.surface_count {
            return Err(format!("there is no head {}", extent.head));
        }
        let zone = self.find_zone(extent.cylinder);
        let zone = zone.ok_or_else(|| format!("cylinder {} is in no zone", extent.cylinder))?;
        let end = u64::from(extent.sector) + u64::from(extent.block_count);
        if end > u64::from(zone.sectors_per_track) || extent.block_count == 0 {
            let per_track = zone.sectors_per_track;
            return Err(format!("it ends at sector {end} of a track of {per_track}"));
        }
        Ok(())
    }

    fn sort_by_location(&mut self) -> Result<(), (Option<usize>, String)> {
        let extents = &self.extents;
        let mut order: Vec<u32> = (0..extents.len() as u32).collect();
        order.sort_by_key(|&index| extents[index as usize].address());
        for pair in order.windows(2) {
            let (one, other) = (&extents[pair[0] as usize], &extents[pair[1] as usize]);
            let same_track = (one.cylinder, one.head) == (other.cylinder, other.head);
            if same_track && one.sector + one.block_count > other.sector {
                let why = format!("block {} is at the same place", one.first_block);
                return Err((Some(pair[1] as usize), why));
            }
        }
        self.extents_by_location = order;
        Ok(())
    }

    /// Returns the zones, outermost first.
    pub fn zones(&self) -> &[MappedTrackZone] {
        &self.zones
    }

    /// Returns the extents in ascending order of blocks.
    pub fn extents(&self) -> &[MappedExtent] {
        &self.extents
    }

    fn find_zone(&self, cylinder: u32) -> Option<&MappedTrackZone> {
        let index = self
            .zones
            .partition_point(|zone| zone.last_cylinder < cylinder);
        let zone = self.zones.get(index)?;
        (zone.first_cylinder <= cylinder).then_some(zone)
    }

    /// Returns the number of logical blocks.
    pub fn block_count(&self) -> u64 {
        let last = self.extents.last();
        last.map_or(0, |last| last.first_block + u64::from(last.block_count))
    }

    /// Returns the physical location of a logical block.
    pub fn locate_block(&self, block: u64) -> Option<PhysicalSector> {
        let index = self
            .extents
            .partition_point(|extent| extent.first_block <= block);
        let extent = &self.extents[index.checked_sub(1)?];
        let within = block - extent.first_block;
        if within >= u64::from(extent.block_count) {
            return None;
        }
        let zone = self.find_zone(extent.cylinder)?;
        let sector = extent.sector + within as u32;
        let cylinders = f64::from(extent.cylinder - zone.first_cylinder);
        let tracks = f64::from(extent.head) + f64::from(self.surface_count - 1) * cylinders;
        let angle = zone.start_angle
            + tracks * zone.track_skew
            + cylinders * zone.cylinder_skew
            + f64::from(sector) / f64::from(zone.sectors_per_track);
        Some(PhysicalSector {
            cylinder: extent.cylinder,
            head: extent.head,
            sector,
            sectors_per_track: zone.sectors_per_track,
            angle: revolution_fraction(angle),
        })
    }

    /// Returns the logical block at a physical location.
    pub fn find_block_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let address = SectorAddress {
            cylinder,
            head,
            sector,
        };
        let of = |index: &u32| &self.extents[*index as usize];
        let index = self
            .extents_by_location
            .partition_point(|index| of(index).address() <= address);
        let extent = of(self.extents_by_location.get(index.checked_sub(1)?)?);
        let same_track = (extent.cylinder, extent.head) == (cylinder, head);
        let within = sector - extent.sector.min(sector);
        let is_in = same_track && within < extent.block_count;
        is_in.then(|| extent.first_block + u64::from(within))
    }
}
