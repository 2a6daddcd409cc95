//! The order in which sectors fill the tracks of a zone.

use super::specification::{Direction, TrackOrder};

/// The tracks of a zone, in the order in which sectors fill them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracks {
    pub(super) order: TrackOrder,
    pub(super) surfaces: u32,
    pub(super) first_cylinder: u32,
    pub(super) cylinders: u32,
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
    pub(super) fn count(&self) -> u64 {
        u64::from(self.cylinders) * u64::from(self.surfaces)
    }

    /// Where the track of this number is.
    #[inline]
    pub(super) fn place(&self, track: u64) -> TrackPlace {
        let TrackOrder::SeekFirst {
            tracks,
            inside,
            surfaces,
        } = self.order
        else {
            // A zone has fewer cylinders than 2^32.
            let surfaces = u64::from(self.surfaces);
            let (legs, head) = ((track / surfaces) as u32, (track % surfaces) as u32);
            let cylinder = self.first_cylinder + legs;
            let head = self.head(cylinder, head);
            return TrackPlace {
                cylinder,
                head,
                legs,
            };
        };
        let of_band = u64::from(tracks) * u64::from(self.surfaces);
        let band = (track / of_band) as u32;
        let width = tracks.min(self.cylinders - band * tracks);
        let inside_band = (track % of_band) as u32;
        let (leg, step) = (inside_band / width, inside_band % width);
        let step = turned(inside, leg, width, step);
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
