//! The order in which sectors fill the tracks of a zone.

use super::specification::{Direction, TrackOrder};
use strength_reduce::{StrengthReducedU32, StrengthReducedU64};

/// Tracks of a zone, in the order in which sectors fill them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracks {
    pub(super) order: TrackOrder,
    pub(super) surfaces: u32,
    pub(super) first_cylinder: u32,
    pub(super) cylinders: u32,
    /// Number of tracks in one cylinder, or in one band of cylinders if filled seek-first.
    of_unit: StrengthReducedU64,
    /// Tracks per surface in each band, and in the last band, which may be narrower.
    widths: [StrengthReducedU32; 2],
    last_band: u32,
}

/// Cylinder and head of a track, and its place in the fill order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackPlace {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// Number of legs completed since the zone's first track. A leg is a cylinder, or the tracks of
    /// one surface up to the head switch.
    pub(super) legs: u32,
}

impl Tracks {
    /// Creates the track order for a range of cylinders.
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

    /// Returns the position of the track with a given number in fill order.
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

    /// Returns the number of a track of the zone in fill order.
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

    /// Converts a step within a cylinder to its head. The same function converts a head to its
    /// step.
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

/// Mirrors a step on every other pass if the direction alternates. The function is its own inverse.
#[inline]
fn turned(direction: Direction, time: u32, of: u32, step: u32) -> u32 {
    match direction {
        Direction::Alternating if time % 2 == 1 => of - 1 - step,
        Direction::Alternating | Direction::Forward => step,
    }
}
