//! The order in which sectors fill the tracks of a zone.

use super::specification::{Direction, TrackOrder};
use strength_reduce::{StrengthReducedU32, StrengthReducedU64};

/// The tracks of a zone, in the order in which sectors fill them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracks {
    pub(super) order: TrackOrder,
    pub(super) surfaces: u32,
    pub(super) first_cylinder: u32,
    pub(super) cylinders: u32,
    /// Tracks that are filled before the arm goes on for good: of a cylinder, or of a band.
    of_unit: StrengthReducedU64,
    /// The tracks of one surface in each band, and in the last, which may be narrower.
    widths: [StrengthReducedU32; 2],
    last_band: u32,
}

/// Where a track is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackPlace {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// How often, from the zone's first track on, a leg ended: a cylinder, or the tracks
    /// of one surface before the head changes.
    pub(super) legs: u32,
}

impl Tracks {
    /// Those of so many cylinders from one on.
    pub(super) fn new(
        order: TrackOrder,
        surfaces: u32,
        (first_cylinder, cylinders): (u32, u32),
    ) -> Self {
        let width = match order {
            TrackOrder::SeekFirst { tracks, .. } => tracks,
            TrackOrder::Cylinders | TrackOrder::Serpentine | TrackOrder::SerpentineByCylinder => 1,
        };
        let last_band = (cylinders - 1) / width;
        let widths = [width, cylinders - last_band * width];
        Self {
            order,
            surfaces,
            first_cylinder,
            cylinders,
            of_unit: StrengthReducedU64::new(u64::from(width) * u64::from(surfaces)),
            widths: widths.map(StrengthReducedU32::new),
            last_band,
        }
    }

    pub(super) fn count(&self) -> u64 {
        u64::from(self.cylinders) * u64::from(self.surfaces)
    }

    /// Where the track of this number is.
    #[inline]
    pub(super) fn place(&self, track: u64) -> TrackPlace {
        // A zone has fewer cylinders than 2^32.
        let (unit, inside_unit) = StrengthReducedU64::div_rem(track, self.of_unit);
        let TrackOrder::SeekFirst {
            tracks,
            inside,
            surfaces,
        } = self.order
        else {
            let (legs, head) = (unit as u32, inside_unit as u32);
            let cylinder = self.first_cylinder + legs;
            let head = self.head(cylinder, head);
            return TrackPlace {
                cylinder,
                head,
                legs,
            };
        };
        let band = unit as u32;
        let width = self.widths[usize::from(band == self.last_band)];
        let (leg, step) = StrengthReducedU32::div_rem(inside_unit as u32, width);
        let step = turned(inside, leg, width.get(), step);
        TrackPlace {
            cylinder: self.first_cylinder + band * tracks + step,
            head: turned(surfaces, band, self.surfaces, leg),
            legs: band * self.surfaces + leg,
        }
    }

    /// The number of a track of the zone.
    pub(super) fn number(&self, cylinder: u32, head: u32) -> u64 {
        let inner = cylinder - self.first_cylinder;
        let TrackOrder::SeekFirst {
            tracks,
            inside,
            surfaces,
        } = self.order
        else {
            let step = self.head(cylinder, head);
            return u64::from(inner) * u64::from(self.surfaces) + u64::from(step);
        };
        let band = inner / tracks;
        let width = tracks.min(self.cylinders - band * tracks);
        let leg = turned(surfaces, band, self.surfaces, head);
        let step = turned(inside, leg, width, inner % tracks);
        let before = u64::from(band) * u64::from(tracks) * u64::from(self.surfaces);
        before + u64::from(leg) * u64::from(width) + u64::from(step)
    }

    /// The head of a step within a cylinder, and the step of a head.
    #[inline]
    fn head(&self, cylinder: u32, step: u32) -> u32 {
        let descends = match self.order {
            TrackOrder::Serpentine => (cylinder - self.first_cylinder) % 2 == 1,
            TrackOrder::SerpentineByCylinder => cylinder % 2 == 1,
            TrackOrder::Cylinders | TrackOrder::SeekFirst { .. } => false,
        };
        match descends {
            true => self.surfaces - 1 - step,
            false => step,
        }
    }
}

/// A step of so many, from the other end every other time if it alternates; its own
/// inverse.
#[inline]
fn turned(direction: Direction, time: u32, of: u32, step: u32) -> u32 {
    match direction {
        Direction::Alternating if time % 2 == 1 => of - 1 - step,
        Direction::Alternating | Direction::Forward => step,
    }
}
