//! Layout of measured extents, each at a known position. DiskSim's `g2` and `g4` layouts convert to
//! this form.

use super::specification::{ExtentSpecification, LayoutError, LayoutSpecification};
use super::{Place, Run, SECTORS_PER_TRACK_MAX, within};
use crate::disk::spindle::Turn;

/// Measured extents of a disk, which cover all its sectors.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    /// Extents in ascending order of their first sector.
    extents: Vec<Extent>,
    /// Indices into `extents`, ordered by physical position.
    by_place: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Extent {
    first: u64,
    sectors: u32,
    place: Place,
}

impl Extent {
    fn order(&self) -> (u32, u32, u32) {
        (self.place.cylinder, self.place.head, self.place.sector)
    }
}

impl Extents {
    /// Creates the layout from the extents of a specification.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] when an extent is not on the disk, or two overlap.
    pub(super) fn new(of: &LayoutSpecification) -> Result<Self, LayoutError> {
        let mut extents = Vec::with_capacity(of.extents.len());
        let mut first = 0;
        for (number, extent) in of.extents.iter().enumerate() {
            check((number, extent), (of.cylinders, of.surfaces), first)?;
            extents.push(Extent {
                first,
                sectors: extent.sectors,
                place: place(extent),
            });
            first += u64::from(extent.sectors);
        }
        let mut by_place: Vec<u32> = (0..extents.len() as u32).collect();
        by_place.sort_by_key(|number| extents[*number as usize].order());
        for pair in by_place.windows(2) {
            let (one, other): (&Extent, &Extent) =
                (&extents[pair[0] as usize], &extents[pair[1] as usize]);
            let ends = one.place.sector + one.sectors;
            if one.place.same_track(&other.place) && ends > other.place.sector {
                let number = pair[1] as usize;
                return Err(LayoutError::Extent { number });
            }
        }
        Ok(Self { extents, by_place })
    }

    /// Returns the number of sectors in all extents.
    pub(super) fn sectors(&self) -> u64 {
        let last = self.extents.last();
        last.map_or(0, |last| last.first + u64::from(last.sectors))
    }

    /// Returns the position of a sector, and the number of sectors that follow it side by side.
    pub(super) fn run(&self, sector: u64) -> Run {
        let number = self.extents.partition_point(|of| of.first <= sector) - 1;
        let extent = &self.extents[number];
        let within = (sector - extent.first) as u32;
        Run {
            place: Place {
                sector: extent.place.sector + within,
                start: extent.place.end(within),
                ..extent.place
            },
            sectors: extent.sectors - within,
            before: within,
        }
    }

    /// Returns the logical sector at a physical position; `None` where no extent lies.
    pub(super) fn find(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let of = |number: &u32| &self.extents[*number as usize];
        let place = (cylinder, head, sector);
        let behind = self
            .by_place
            .partition_point(|number| of(number).order() <= place);
        let extent = of(self.by_place.get(behind.checked_sub(1)?)?);
        let within = sector - extent.place.sector.min(sector);
        let is_in = (extent.place.cylinder, extent.place.head) == (cylinder, head)
            && within < extent.sectors;
        is_in.then(|| extent.first + u64::from(within))
    }
}

fn check(
    (number, of): (usize, &ExtentSpecification),
    (cylinders, surfaces): (u32, u32),
    first: u64,
) -> Result<(), LayoutError> {
    let key = format!("extent {number}: `sectors_per_track`");
    within(&key, of.sectors_per_track, SECTORS_PER_TRACK_MAX)?;
    let ends = u64::from(of.first_slot) + u64::from(of.sectors);
    let is_there = of.cylinder < cylinders
        && of.head < surfaces
        && of.sectors > 0
        && ends <= u64::from(of.sectors_per_track)
        && of.first_sector == first
        && of.start_rev.is_finite();
    match is_there {
        true => Ok(()),
        false => Err(LayoutError::Extent { number }),
    }
}

fn place(of: &ExtentSpecification) -> Place {
    Place {
        cylinder: of.cylinder,
        head: of.head,
        sector: of.first_slot,
        sectors_per_track: of.sectors_per_track,
        start: Turn::of_revolutions(of.start_rev),
        arc: u64::MAX / u64::from(of.sectors_per_track),
    }
}
