//! Zone of a disk: conversion between its logical blocks and its physical sectors.
//!
//! Physical sectors are numbered in the order of the zone's tracks. Spares lie in *units*: the
//! zone, its cylinders, its tracks, or ranges of cylinders. Logical blocks fill the sectors of each
//! unit except the spares, and skip slips. The block of a defective sector lies where the
//! specification says.

use super::slips::Slips;
use super::specification::{LayoutError, LayoutSpecification, Sparing, ZoneSpecification};
use super::tracks::{TrackPlace, Tracks};
use super::{InZone, Place, Run, SECTORS_PER_TRACK_MAX, TrackOrder, within};
use crate::disk::spindle::Turn;
use strength_reduce::StrengthReducedU64;

/// Zone of a disk, with its spares, slips, defects and skews.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    tracks: Tracks,
    per_track: StrengthReducedU64,
    /// First logical block of the zone.
    first: u64,
    /// Number of logical blocks in the zone.
    sectors: u64,
    dead: u64,
    units: Units,
    /// Slips, numbered by physical sector. Where slips shift sectors over the spares of cylinders,
    /// the numbers leave out spares.
    slips: Slips,
    /// Pairs of defective and replacement sector, ordered by the former. `moved_here` has the
    /// inverse pairs, ordered by the latter.
    moved: Vec<(u64, u64)>,
    moved_here: Vec<(u64, u64)>,
    angles: Angles,
}

/// Units of the zone that each have their own spares.
#[derive(Clone, Copy, Debug)]
struct Units {
    /// Number of physical sectors in each unit of the sparing scheme. The last unit may be shorter,
    /// and then has no spares.
    sectors: u64,
    /// Number of logical blocks in each unit of the sparing scheme.
    logical: StrengthReducedU64,
    /// Number of spares at the front of each unit of the sparing scheme.
    front: u64,
    /// Whether slips shift sectors across the ends of units.
    slipping: bool,
}

/// Start angles of the zone's tracks, from the skews.
#[derive(Clone, Debug)]
struct Angles {
    origin: Turn,
    track_skew: Turn,
    leg_skew: Turn,
    /// Additional skew of each range of cylinders, and the cylinders per range.
    range: Option<(Turn, u32)>,
    /// Skew between groups of heads, heads per group, and group changes per cylinder.
    groups: Option<(Turn, u32, u32)>,
    /// Angle of one sector, in parts of 2^64 of a revolution.
    arc: u64,
    /// Number of sectors in a full revolution, including unused ones.
    sectors: u32,
    /// Slips that rotate the later tracks of their cylinder.
    pushing: Slips,
}

impl Zone {
    /// Creates the zone with a given index, whose first logical block is `first`.
    pub(super) fn new(
        of: &LayoutSpecification,
        number: usize,
        first: u64,
    ) -> Result<Self, LayoutError> {
        let zone = &of.zones[number];
        let key = format!("zone {number}: `sectors_per_track`");
        within(&key, zone.sectors_per_track, SECTORS_PER_TRACK_MAX)?;
        let unused = zone.unused_sectors_per_track;
        let all = zone.sectors_per_track.saturating_add(unused);
        within(&key, all, SECTORS_PER_TRACK_MAX)?;
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
        let tracks = Tracks::new(of.order, of.surfaces, (zone.first_cylinder, cylinders));
        let angles = Angles::new(of, zone, number)?;
        let plan = Plan::new(of.sparing, zone, &tracks);
        let sectors = plan.sectors(zone).ok_or_else(|| LayoutError::Full {
            zone: number,
            room: plan.room,
            taken: plan.taken(zone),
        })?;
        let slips = plan.slips(zone, number)?;
        let mut built = Self {
            tracks,
            per_track: StrengthReducedU64::new(u64::from(zone.sectors_per_track)),
            first,
            sectors,
            dead: zone.dead_sectors,
            units: plan.units,
            slips,
            moved: Vec::new(),
            moved_here: Vec::new(),
            angles,
        };
        built.move_defects(zone, number, plan.grain)?;
        Ok(built)
    }

    /// Assigns the defective sectors to the replacements that the specification names.
    fn move_defects(
        &mut self,
        zone: &ZoneSpecification,
        number: usize,
        grain: u64,
    ) -> Result<(), LayoutError> {
        let room = self.room();
        for &(defect, replacement) in &zone.defects {
            let inside = defect < room / grain;
            if !inside {
                return Err(LayoutError::Defect {
                    zone: number,
                    defect,
                });
            }
            if defect == replacement {
                continue;
            }
            let spare = |sector: u64| sector < room && self.unmoved(sector).is_none();
            let from = replacement.saturating_mul(grain);
            if !(from..from.saturating_add(grain)).all(spare) {
                return Err(LayoutError::Replacement {
                    zone: number,
                    defect,
                    replacement,
                });
            }
            let sectors = (0..grain).map(|at| (defect * grain + at, from + at));
            self.moved.extend(sectors);
        }
        self.moved.sort_unstable();
        self.moved_here = self
            .moved
            .iter()
            .map(|(one, other)| (*other, *one))
            .collect();
        self.moved_here.sort_unstable();
        let twice = |pairs: &[(u64, u64)]| {
            let pair = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
            Some((pair[1].0 / grain, pair[1].1 / grain))
        };
        if let Some((defect, _)) = twice(&self.moved) {
            return Err(LayoutError::Defect {
                zone: number,
                defect,
            });
        }
        match twice(&self.moved_here) {
            None => Ok(()),
            Some((replacement, defect)) => Err(LayoutError::Replacement {
                zone: number,
                defect,
                replacement,
            }),
        }
    }

    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of logical blocks in the zone.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn has_cylinder(&self, cylinder: u32) -> bool {
        let first = self.tracks.first_cylinder;
        (first..first + self.tracks.cylinders).contains(&cylinder)
    }

    /// Returns the number of physical sectors in the zone.
    fn room(&self) -> u64 {
        self.tracks.count() * self.per_track.get()
    }

    /// Returns the position of a logical block of the zone, and the number of blocks that follow it
    /// side by side.
    #[inline]
    pub(super) fn run(&self, sector: u64) -> Run {
        let inside = sector - self.first;
        let (mut physical, mut contiguous) = self.physical(inside + self.dead);
        let before = match self.is_plain() {
            true => inside.min(self.units.logical.get() - contiguous),
            false => 0,
        };
        contiguous = contiguous.min(self.sectors - inside);
        if !self.moved.is_empty() {
            let next = self.moved.partition_point(|moved| moved.0 < physical);
            match self.moved.get(next) {
                Some((defect, instead)) if *defect == physical => {
                    (physical, contiguous) = (*instead, 1);
                }
                Some((defect, _)) => contiguous = contiguous.min(defect - physical),
                None => {}
            }
        }
        let (track, on_track) = StrengthReducedU64::div_rem(physical, self.per_track);
        contiguous = contiguous.min(self.per_track.get() - on_track);
        let place = self.tracks.place(track);
        let start = self.start(track, place);
        Run {
            place: Place {
                cylinder: place.cylinder,
                head: place.head,
                sector: on_track as u32,
                sectors_per_track: self.angles.sectors,
                start: start + Turn(self.angles.arc * on_track),
                arc: self.angles.arc,
            },
            sectors: contiguous as u32,
            before: before.min(on_track) as u32,
        }
    }

    /// Tests whether the zone has no slips and no remapped defects, so that the blocks of a unit
    /// lie side by side.
    #[inline]
    fn is_plain(&self) -> bool {
        self.slips.is_empty() && self.moved.is_empty()
    }

    /// Returns the physical sector of a logical sector without regard to defects, and the number of
    /// contiguous sectors from there. Logical numbers include the dead sectors.
    #[inline]
    fn physical(&self, logical: u64) -> (u64, u64) {
        let units = &self.units;
        if self.slips.is_empty() {
            let (unit, inside) = StrengthReducedU64::div_rem(logical, units.logical);
            let physical = unit * units.sectors + units.front + inside;
            return (physical, units.logical.get() - inside);
        }
        if units.slipping {
            let (pushed, next) = self.slips.place((0, u64::MAX), logical);
            let (unit, inside) = StrengthReducedU64::div_rem(pushed, units.logical);
            let physical = unit * units.sectors + units.front + inside;
            let left = units.logical.get() - inside;
            return (physical, next.map_or(left, |next| left.min(next - pushed)));
        }
        let (unit, inside) = StrengthReducedU64::div_rem(logical, units.logical);
        let range = self.unit(unit);
        let front = self.front(range);
        let (physical, next) = self.slips.place(range, front + inside);
        let left = units.logical.get() - inside;
        (
            physical,
            next.map_or(left, |next| left.min(next - physical)),
        )
    }

    fn unit(&self, unit: u64) -> (u64, u64) {
        let from = unit * self.units.sectors;
        (from, (from + self.units.sectors).min(self.room()))
    }

    /// Returns the number of unused spares at the front of a unit. Slips use up spares.
    fn front(&self, unit: (u64, u64)) -> u64 {
        match self.units.front {
            0 => 0,
            spares => spares - self.slips.count(unit),
        }
    }

    /// Returns the logical sector (counting dead sectors) of a physical sector, without regard to
    /// defects.
    fn logical(&self, physical: u64) -> Option<u64> {
        let units = &self.units;
        let unit = physical / units.sectors;
        let logical = units.logical.get();
        if units.slipping {
            let inside = (physical % units.sectors).checked_sub(units.front)?;
            let pushed = unit * logical + inside;
            return (inside < logical)
                .then(|| self.slips.rank((0, u64::MAX), pushed))
                .flatten();
        }
        let range = self.unit(unit);
        let inside = self.slips.rank(range, physical)?;
        let inside = inside.checked_sub(self.front(range))?;
        (inside < logical).then_some(unit * logical + inside)
    }

    /// Returns the logical block of a physical sector, without regard to defects.
    fn unmoved(&self, physical: u64) -> Option<u64> {
        let inside = self.logical(physical)?.checked_sub(self.dead)?;
        (inside < self.sectors).then_some(self.first + inside)
    }

    /// Returns the logical block at a physical position in the zone; `None` where no data are
    /// stored.
    pub(super) fn find(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let per_track = self.per_track.get();
        if u64::from(sector) >= per_track {
            return None;
        }
        let physical = self.tracks.number(cylinder, head) * per_track + u64::from(sector);
        if let Ok(at) = self
            .moved_here
            .binary_search_by_key(&physical, |pair| pair.0)
        {
            return self.unmoved(self.moved_here[at].1);
        }
        match self.moved.binary_search_by_key(&physical, |pair| pair.0) {
            Ok(_) => None,
            Err(_) => self.unmoved(physical),
        }
    }

    /// Returns the position of a sector in its zone before skews rotate the tracks; `None` under
    /// [`TrackOrder::SeekFirst`].
    pub(super) fn in_zone(&self, zone: usize, place: &Place) -> Option<InZone> {
        if matches!(self.tracks.order, TrackOrder::SeekFirst { .. }) {
            return None;
        }
        let track = self.tracks.number(place.cylinder, place.head);
        let surfaces = u64::from(self.tracks.surfaces);
        let cylinder = (track / surfaces) as u32;
        let sector = u64::from(place.sector) + self.pushed(track, cylinder);
        Some(InZone {
            zone,
            cylinder,
            range: match self.angles.range {
                Some((_, cylinders)) => cylinder / cylinders,
                None => 0,
            },
            order: (track % surfaces) as u32,
            within: sector as f64 / self.per_track.get() as f64,
        })
    }

    /// Counts the slips that rotate a track. `cylinder` counts from the zone's first one.
    fn pushed(&self, track: u64, cylinder: u32) -> u64 {
        let per_track = self.per_track.get();
        let from = u64::from(cylinder) * u64::from(self.tracks.surfaces) * per_track;
        self.angles.pushing.count((from, track * per_track))
    }

    #[inline]
    fn start(&self, track: u64, place: TrackPlace) -> Turn {
        let angles = &self.angles;
        let legs = u64::from(place.legs);
        let mut start =
            angles.origin + angles.track_skew.times(track - legs) + angles.leg_skew.times(legs);
        if let Some((skew, cylinders)) = angles.range {
            start = start + skew.times(legs / u64::from(cylinders));
        }
        if let Some((skew, heads, changes)) = angles.groups {
            let cylinder = u64::from(place.cylinder - self.tracks.first_cylinder);
            let of_head = u64::from(place.head / heads);
            start = start + skew.times(cylinder * u64::from(changes) + of_head);
        }
        if !angles.pushing.is_empty() {
            start = start + Turn(angles.arc).times(self.pushed(track, legs as u32));
        }
        start
    }
}

impl Angles {
    fn new(
        of: &LayoutSpecification,
        zone: &ZoneSpecification,
        number: usize,
    ) -> Result<Self, LayoutError> {
        let turn = |key, revolutions: f64| match revolutions.is_finite() {
            true => Ok(Turn::of_revolutions(revolutions)),
            false => Err(LayoutError::Angle { zone: number, key }),
        };
        let range_skew = turn("range_skew_rev", zone.range_skew_rev)?;
        let range = match of.sparing {
            Sparing::Range { cylinders } => Some((range_skew, cylinders)),
            _ => None,
        };
        let pushing = match of.sparing {
            Sparing::CylinderEnd
            | Sparing::CylinderEndSlipping
            | Sparing::CylinderFront
            | Sparing::CylinderFrontSlipping => {
                Slips::new(zone.slips.iter().map(|slip| (*slip, 1)), 1)
            }
            _ => Slips::default(),
        };
        let groups = zone.head_groups.filter(|groups| groups.skew_rev != 0.0);
        let groups = groups.map(|groups| {
            within("`heads` of a group of heads", groups.heads, of.surfaces)?;
            let changes = (of.surfaces - 1) / groups.heads;
            Ok((turn("skew_rev", groups.skew_rev)?, groups.heads, changes))
        });
        let sectors = zone.sectors_per_track + zone.unused_sectors_per_track;
        Ok(Self {
            origin: turn("origin_rev", zone.origin_rev)?,
            track_skew: turn("track_skew_rev", zone.track_skew_rev)?,
            leg_skew: turn("cylinder_skew_rev", zone.cylinder_skew_rev)?,
            range,
            groups: groups.transpose()?,
            arc: u64::MAX / u64::from(sectors),
            sectors,
            pushing,
        })
    }
}

/// Division of a zone by a sparing scheme.
struct Plan {
    room: u64,
    units: Units,
    /// Spares of each complete unit, in sectors.
    spares: u64,
    whole_units: u64,
    /// Sectors per slip or defect: one, or a whole track.
    grain: u64,
    /// Sectors lost at the end of the zone because slips shift the others.
    pushed_out: u64,
}

impl Plan {
    fn new(sparing: Sparing, zone: &ZoneSpecification, tracks: &Tracks) -> Self {
        let per_track = u64::from(zone.sectors_per_track);
        let room = tracks.count() * per_track;
        let cylinder = u64::from(tracks.surfaces) * per_track;
        let slips = zone.slips.len() as u64;
        let grain = match sparing {
            Sparing::Tracks => per_track,
            _ => 1,
        };
        let spares = zone.spares.saturating_mul(grain);
        let (sectors, spares, pushed_out) = match sparing {
            Sparing::None => (room, 0, 0),
            Sparing::Slipping => (room, slips, 0),
            Sparing::Tracks | Sparing::Zone => (room, spares, 0),
            Sparing::ZoneSlipping => (room, spares.saturating_add(slips), 0),
            Sparing::CylinderEnd | Sparing::CylinderFront => (cylinder, spares, 0),
            Sparing::CylinderEndSlipping | Sparing::CylinderFrontSlipping => {
                (cylinder, spares, slips)
            }
            Sparing::TrackEnd => (per_track, spares, 0),
            Sparing::Range { cylinders } => (cylinder * u64::from(cylinders), spares, 0),
        };
        let front = match sparing {
            Sparing::CylinderFront | Sparing::CylinderFrontSlipping => spares,
            _ => 0,
        };
        Self {
            room,
            units: Units {
                sectors,
                // A unit of spares only leaves nothing, which the caller finds.
                logical: StrengthReducedU64::new(sectors.saturating_sub(spares).max(1)),
                front,
                slipping: pushed_out > 0,
            },
            spares,
            whole_units: room / sectors,
            grain,
            pushed_out,
        }
    }

    /// Returns the number of sectors of the zone that hold no logical block.
    fn taken(&self, zone: &ZoneSpecification) -> u64 {
        self.spares
            .saturating_mul(self.whole_units)
            .saturating_add(zone.dead_sectors)
            .saturating_add(self.pushed_out)
    }

    /// Returns the number of logical blocks in the zone; `None` if none fits.
    fn sectors(&self, zone: &ZoneSpecification) -> Option<u64> {
        let left = self.room.checked_sub(self.taken(zone))?;
        let of_unit = self.units.sectors.checked_sub(self.spares)?;
        (left > 0 && of_unit > 0).then_some(left)
    }

    /// Returns the slips in the numbering that the zone uses for lookups.
    fn slips(&self, zone: &ZoneSpecification, number: usize) -> Result<Slips, LayoutError> {
        let mut least = 0;
        for &slip in &zone.slips {
            if slip < least || slip >= self.room / self.grain {
                return Err(LayoutError::Slip { zone: number, slip });
            }
            least = slip + 1;
        }
        let Units {
            sectors: of_unit,
            logical,
            front,
            slipping,
        } = self.units;
        if slipping {
            // Numbered without the spares; a spare that is slipped pushes nothing.
            let pushing = zone.slips.iter().filter_map(|slip| {
                let inside = (slip % of_unit).checked_sub(front)?;
                (inside < logical.get()).then_some((slip / of_unit * logical.get() + inside, 1))
            });
            return Ok(Slips::new(pushing, u64::MAX));
        }
        let runs = zone
            .slips
            .iter()
            .map(|slip| (slip * self.grain, self.grain));
        let slips = Slips::new(runs, of_unit);
        for slip in slips.firsts() {
            let unit = slip / of_unit;
            let spares = match unit < self.whole_units {
                true => self.spares,
                false => 0,
            };
            let from = unit * of_unit;
            if slips.count((from, from + of_unit)) > spares {
                return Err(LayoutError::TooManySlips { zone: number, slip });
            }
        }
        Ok(slips)
    }
}
