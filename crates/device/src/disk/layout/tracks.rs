//! The order in which sectors fill the tracks of a zone.

use super::specification::{HeadDirection, TrackOrder};
use strength_reduce::{StrengthReducedU32, StrengthReducedU64};

/// Tracks of a zone, in the order in which sectors fill them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ZoneTracks {
    pub(super) track_order: TrackOrder,
    pub(super) surface_count: u32,
    pub(super) first_cylinder: u32,
    pub(super) cylinder_count: u32,
    /// Number of tracks in one cylinder, or in one band of cylinders if filled seek-first.
    tracks_per_unit: StrengthReducedU64,
    /// Tracks per surface in each band, and in the last band, which may be narrower.
    widths: [StrengthReducedU32; 2],
    last_band_cylinders: u32,
}

/// Cylinder and head of a track, and its place in the fill order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrackPosition {
    pub(super) cylinder: u32,
    pub(super) head: u32,
    /// Number of legs completed since the zone's first track. A leg is a cylinder, or the tracks of
    /// one surface up to the head switch.
    pub(super) cylinder_legs: u32,
}

impl ZoneTracks {
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
            track_order: order,
            surface_count: surfaces,
            first_cylinder,
            cylinder_count: cylinders,
            tracks_per_unit: StrengthReducedU64::new(u64::from(width) * u64::from(surfaces)),
            widths: widths.map(StrengthReducedU32::new),
            last_band_cylinders: last_band,
        }
    }

    pub(super) fn track_count(&self) -> u64 {
        u64::from(self.cylinder_count) * u64::from(self.surface_count)
    }

    #[inline]
    pub(super) fn position_of(&self, track: u64) -> TrackPosition {
        // A zone has fewer cylinders than 2^32.
        let (unit, inside_unit) = StrengthReducedU64::div_rem(track, self.tracks_per_unit);
        let TrackOrder::SeekFirst {
            tracks,
            inside,
            surfaces,
        } = self.track_order
        else {
            let (legs, head) = (unit as u32, inside_unit as u32);
            let cylinder = self.first_cylinder + legs;
            let head = self.head_of_step(cylinder, head);
            return TrackPosition {
                cylinder,
                head,
                cylinder_legs: legs,
            };
        };
        let band = unit as u32;
        let width = self.widths[usize::from(band == self.last_band_cylinders)];
        let (leg, step) = StrengthReducedU32::div_rem(inside_unit as u32, width);
        let step = turned_step(inside, leg, width.get(), step);
        TrackPosition {
            cylinder: self.first_cylinder + band * tracks + step,
            head: turned_step(surfaces, band, self.surface_count, leg),
            cylinder_legs: band * self.surface_count + leg,
        }
    }

    pub(super) fn track_number(&self, cylinder: u32, head: u32) -> u64 {
        let inner = cylinder - self.first_cylinder;
        let TrackOrder::SeekFirst {
            tracks,
            inside,
            surfaces,
        } = self.track_order
        else {
            let step = self.head_of_step(cylinder, head);
            return u64::from(inner) * u64::from(self.surface_count) + u64::from(step);
        };
        let band = inner / tracks;
        let width = tracks.min(self.cylinder_count - band * tracks);
        let leg = turned_step(surfaces, band, self.surface_count, head);
        let step = turned_step(inside, leg, width, inner % tracks);
        let before = u64::from(band) * u64::from(tracks) * u64::from(self.surface_count);
        before + u64::from(leg) * u64::from(width) + u64::from(step)
    }

    /// Converts a step within a cylinder to its head. The same function converts a head to its
    /// step.
    #[inline]
    fn head_of_step(&self, cylinder: u32, step: u32) -> u32 {
        let descends = match self.track_order {
            TrackOrder::Serpentine => (cylinder - self.first_cylinder) % 2 == 1,
            TrackOrder::SerpentineByCylinder => cylinder % 2 == 1,
            TrackOrder::Cylinders | TrackOrder::SeekFirst { .. } => false,
        };
        match descends {
            true => self.surface_count - 1 - step,
            false => step,
        }
    }
}

/// Mirrors a step on every other pass if the direction alternates. The function is its own inverse.
#[inline]
fn turned_step(direction: HeadDirection, time: u32, of: u32, step: u32) -> u32 {
    match direction {
        HeadDirection::Alternating if time % 2 == 1 => of - 1 - step,
        HeadDirection::Alternating | HeadDirection::Forward => step,
    }
}
