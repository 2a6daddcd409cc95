//! Layout of measured extents, each at a known position. DiskSim's `g2` and `g4` layouts convert to
//! this form.

use super::specification::{ExtentSpecification, LayoutError, LayoutSpecification};
use super::{SECTORS_PER_TRACK_MAX, SectorPosition, SectorRun, check_range};
use crate::disk::spindle::RotationAngle;

/// Measured extents of a disk, which cover all its sectors.
#[derive(Clone, Debug)]
pub(super) struct ExtentMap {
    /// Extents in ascending order of their first sector.
    extents: Vec<MappedExtent>,
    /// Indices into `extents`, ordered by physical position.
    indices_by_position: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct MappedExtent {
    first_sector: u64,
    sector_count: u32,
    position: SectorPosition,
}

/// Physical address of a sector. Addresses sort by cylinder, head and sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SectorAddress {
    cylinder: u32,
    head: u32,
    sector: u32,
}

impl MappedExtent {
    fn address(&self) -> SectorAddress {
        SectorAddress {
            cylinder: self.position.cylinder,
            head: self.position.head,
            sector: self.position.sector,
        }
    }
}

impl ExtentMap {
    /// Creates the layout from the extents of a specification.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] when an extent is not on the disk, or two overlap.
    pub(super) fn new(of: &LayoutSpecification) -> Result<Self, LayoutError> {
        let mut extents = Vec::with_capacity(of.extents.len());
        let mut first = 0;
        for (number, extent) in of.extents.iter().enumerate() {
            check_extent(
                (number, extent),
                (of.cylinder_count, of.surface_count),
                first,
            )?;
            extents.push(MappedExtent {
                first_sector: first,
                sector_count: extent.sector_count,
                position: position_of(extent),
            });
            first += u64::from(extent.sector_count);
        }
        let mut by_place: Vec<u32> = (0..extents.len() as u32).collect();
        by_place.sort_by_key(|number| extents[*number as usize].address());
        for pair in by_place.windows(2) {
            let (one, other): (&MappedExtent, &MappedExtent) =
                (&extents[pair[0] as usize], &extents[pair[1] as usize]);
            let ends = one.position.sector + one.sector_count;
            if one.position.is_on_same_track(&other.position) && ends > other.position.sector {
                let number = pair[1] as usize;
                return Err(LayoutError::InvalidExtent { number });
            }
        }
        Ok(Self {
            extents,
            indices_by_position: by_place,
        })
    }

    /// Returns the number of sectors in all extents.
    pub(super) fn sectors(&self) -> u64 {
        let last = self.extents.last();
        last.map_or(0, |last| last.first_sector + u64::from(last.sector_count))
    }

    /// Returns the position of a sector, and the number of sectors that follow it side by side.
    pub(super) fn run_at(&self, sector: u64) -> SectorRun {
        let number = self.extents.partition_point(|of| of.first_sector <= sector) - 1;
        let extent = &self.extents[number];
        let within = (sector - extent.first_sector) as u32;
        SectorRun {
            position: SectorPosition {
                sector: extent.position.sector + within,
                start_angle: extent.position.end_angle(within),
                ..extent.position
            },
            sector_count: extent.sector_count - within,
            sectors_before: within,
        }
    }

    /// Returns the logical sector at a physical position; `None` where no extent lies.
    pub(super) fn sector_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let of = |number: &u32| &self.extents[*number as usize];
        let address = SectorAddress {
            cylinder,
            head,
            sector,
        };
        let behind = self
            .indices_by_position
            .partition_point(|number| of(number).address() <= address);
        let extent = of(self.indices_by_position.get(behind.checked_sub(1)?)?);
        let within = sector - extent.position.sector.min(sector);
        let is_in = (extent.position.cylinder, extent.position.head) == (cylinder, head)
            && within < extent.sector_count;
        is_in.then(|| extent.first_sector + u64::from(within))
    }
}

fn check_extent(
    (number, of): (usize, &ExtentSpecification),
    (cylinders, surfaces): (u32, u32),
    first: u64,
) -> Result<(), LayoutError> {
    let key = format!("extent {number}: `sectors_per_track`");
    check_range(&key, of.sectors_per_track, SECTORS_PER_TRACK_MAX)?;
    let ends = u64::from(of.first_slot) + u64::from(of.sector_count);
    let is_there = of.cylinder < cylinders
        && of.head < surfaces
        && of.sector_count > 0
        && ends <= u64::from(of.sectors_per_track)
        && of.first_sector == first
        && of.start_rev.is_finite();
    match is_there {
        true => Ok(()),
        false => Err(LayoutError::InvalidExtent { number }),
    }
}

fn position_of(of: &ExtentSpecification) -> SectorPosition {
    SectorPosition {
        cylinder: of.cylinder,
        head: of.head,
        sector: of.first_slot,
        sectors_per_track: of.sectors_per_track,
        start_angle: RotationAngle::from_revolutions(of.start_rev),
        sector_angle: u64::MAX / u64::from(of.sectors_per_track),
    }
}
