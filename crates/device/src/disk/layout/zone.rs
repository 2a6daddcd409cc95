//! Zone of a disk: conversion between its logical blocks and its physical sectors.
//!
//! Physical sectors are numbered in the order of the zone's tracks. Spares lie in *units*: the
//! zone, its cylinders, its tracks, or ranges of cylinders. Logical blocks fill the sectors of each
//! unit except the spares, and skip slips. The block of a defective sector lies where the
//! specification says.

use super::slips::SlipList;
use super::specification::{LayoutError, LayoutSpecification, Sparing, ZoneSpecification};
use super::tracks::{TrackPosition, ZoneTracks};
use super::{
    SECTORS_PER_TRACK_MAX, SectorPosition, SectorRun, TrackOrder, ZonePosition, check_range,
};
use crate::disk::spindle::RotationAngle;
use strength_reduce::StrengthReducedU64;

/// Zone of a disk, with its spares, slips, defects and skews.
#[derive(Clone, Debug)]
pub(super) struct LayoutZone {
    tracks: ZoneTracks,
    sectors_per_track: StrengthReducedU64,
    first_sector: u64,
    /// Number of logical blocks in the zone.
    sector_count: u64,
    dead_sectors: u64,
    sparing_units: SparingUnits,
    /// Slips, numbered by physical sector. Where slips shift sectors over the spares of cylinders,
    /// the numbers leave out spares.
    slip_list: SlipList,
    /// Pairs of defective and replacement sector, ordered by the former. `moved_to` has the
    /// inverse pairs, ordered by the latter.
    moved_from: Vec<(u64, u64)>,
    moved_to: Vec<(u64, u64)>,
    track_angles: TrackAngles,
}

#[derive(Clone, Copy, Debug)]
struct SparingUnits {
    /// Number of physical sectors in each unit of the sparing scheme. The last unit may be shorter,
    /// and then has no spares.
    unit_sectors: u64,
    /// Number of logical blocks in each unit of the sparing scheme.
    logical_sectors: StrengthReducedU64,
    front_spares: u64,
    /// Whether slips shift sectors across the ends of units.
    slips_defects: bool,
}

#[derive(Clone, Debug)]
struct TrackAngles {
    origin_angle: RotationAngle,
    track_skew: RotationAngle,
    cylinder_skew: RotationAngle,
    range_skew: Option<(RotationAngle, u32)>,
    /// Skew between groups of heads, heads per group, and group changes per cylinder.
    head_group_skew: Option<(RotationAngle, u32, u32)>,
    /// Angle of one sector, in parts of 2^64 of a revolution.
    sector_angle: u64,
    /// Number of sectors in a full revolution, including unused ones.
    slots_per_track: u32,
    rotating_slips: SlipList,
}

impl LayoutZone {
    /// Creates the zone with a given index, whose first logical block is `first`.
    pub(super) fn new(
        of: &LayoutSpecification,
        number: usize,
        first: u64,
    ) -> Result<Self, LayoutError> {
        let zone = &of.zones[number];
        let key = format!("zone {number}: `sectors_per_track`");
        check_range(&key, zone.sectors_per_track, SECTORS_PER_TRACK_MAX)?;
        let unused = zone.unused_sectors_per_track;
        let all = zone.sectors_per_track.saturating_add(unused);
        check_range(&key, all, SECTORS_PER_TRACK_MAX)?;
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
        let tracks = ZoneTracks::new(
            of.track_order,
            of.surface_count,
            (zone.first_cylinder, cylinders),
        );
        let angles = TrackAngles::new(of, zone, number)?;
        let plan = SparingPlan::new(of.sparing, zone, &tracks);
        let sectors = plan
            .usable_sectors(zone)
            .ok_or_else(|| LayoutError::ZoneFull {
                zone: number,
                room: plan.physical_sectors,
                taken: plan.sectors_taken(zone),
            })?;
        let slips = plan.build_slips(zone, number)?;
        let mut built = Self {
            tracks,
            sectors_per_track: StrengthReducedU64::new(u64::from(zone.sectors_per_track)),
            first_sector: first,
            sector_count: sectors,
            dead_sectors: zone.dead_sectors,
            sparing_units: plan.sparing_units,
            slip_list: slips,
            moved_from: Vec::new(),
            moved_to: Vec::new(),
            track_angles: angles,
        };
        built.move_defects(zone, number, plan.sectors_per_defect)?;
        Ok(built)
    }

    /// Assigns the defective sectors to the replacements that the specification names.
    fn move_defects(
        &mut self,
        zone: &ZoneSpecification,
        number: usize,
        grain: u64,
    ) -> Result<(), LayoutError> {
        let room = self.physical_sectors();
        for &(defect, replacement) in &zone.remapped_defects {
            let inside = defect < room / grain;
            if !inside {
                return Err(LayoutError::InvalidDefect {
                    zone: number,
                    defect,
                });
            }
            if defect == replacement {
                continue;
            }
            let spare = |sector: u64| sector < room && self.original_sector(sector).is_none();
            let from = replacement.saturating_mul(grain);
            if !(from..from.saturating_add(grain)).all(spare) {
                return Err(LayoutError::InvalidReplacement {
                    zone: number,
                    defect,
                    replacement,
                });
            }
            let sectors = (0..grain).map(|at| (defect * grain + at, from + at));
            self.moved_from.extend(sectors);
        }
        self.moved_from.sort_unstable();
        self.moved_to = self
            .moved_from
            .iter()
            .map(|(one, other)| (*other, *one))
            .collect();
        self.moved_to.sort_unstable();
        let twice = |pairs: &[(u64, u64)]| {
            let pair = pairs.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
            Some((pair[1].0 / grain, pair[1].1 / grain))
        };
        if let Some((defect, _)) = twice(&self.moved_from) {
            return Err(LayoutError::InvalidDefect {
                zone: number,
                defect,
            });
        }
        match twice(&self.moved_to) {
            None => Ok(()),
            Some((replacement, defect)) => Err(LayoutError::InvalidReplacement {
                zone: number,
                defect,
                replacement,
            }),
        }
    }

    #[inline]
    pub(super) fn first_sector(&self) -> u64 {
        self.first_sector
    }

    /// Returns the number of logical blocks in the zone.
    pub(super) fn sector_count(&self) -> u64 {
        self.sector_count
    }

    pub(super) fn has_cylinder(&self, cylinder: u32) -> bool {
        let first = self.tracks.first_cylinder;
        (first..first + self.tracks.cylinder_count).contains(&cylinder)
    }

    /// Returns the number of physical sectors in the zone.
    fn physical_sectors(&self) -> u64 {
        self.tracks.track_count() * self.sectors_per_track.get()
    }

    /// Returns the position of a logical block of the zone, and the number of blocks that follow it
    /// side by side.
    #[inline]
    pub(super) fn run_at(&self, sector: u64) -> SectorRun {
        let inside = sector - self.first_sector;
        let (mut physical, mut contiguous) = self.to_physical(inside + self.dead_sectors);
        let before = match self.has_no_spares_or_defects() {
            true => inside.min(self.sparing_units.logical_sectors.get() - contiguous),
            false => 0,
        };
        contiguous = contiguous.min(self.sector_count - inside);
        if !self.moved_from.is_empty() {
            let next = self.moved_from.partition_point(|moved| moved.0 < physical);
            match self.moved_from.get(next) {
                Some((defect, instead)) if *defect == physical => {
                    (physical, contiguous) = (*instead, 1);
                }
                Some((defect, _)) => contiguous = contiguous.min(defect - physical),
                None => {}
            }
        }
        let (track, on_track) = StrengthReducedU64::div_rem(physical, self.sectors_per_track);
        contiguous = contiguous.min(self.sectors_per_track.get() - on_track);
        let place = self.tracks.position_of(track);
        let start = self.start_angle(track, place);
        SectorRun {
            position: SectorPosition {
                cylinder: place.cylinder,
                head: place.head,
                sector: on_track as u32,
                sectors_per_track: self.track_angles.slots_per_track,
                start_angle: start + RotationAngle(self.track_angles.sector_angle * on_track),
                sector_angle: self.track_angles.sector_angle,
            },
            sector_count: contiguous as u32,
            sectors_before: before.min(on_track) as u32,
        }
    }

    /// Tests whether the zone has no slips and no remapped defects, so that the blocks of a unit
    /// lie side by side.
    #[inline]
    fn has_no_spares_or_defects(&self) -> bool {
        self.slip_list.is_empty() && self.moved_from.is_empty()
    }

    /// Returns the physical sector of a logical sector without regard to defects, and the number of
    /// contiguous sectors from there. Logical numbers include the dead sectors.
    #[inline]
    fn to_physical(&self, logical: u64) -> (u64, u64) {
        let units = &self.sparing_units;
        if self.slip_list.is_empty() {
            let (unit, inside) = StrengthReducedU64::div_rem(logical, units.logical_sectors);
            let physical = unit * units.unit_sectors + units.front_spares + inside;
            return (physical, units.logical_sectors.get() - inside);
        }
        if units.slips_defects {
            let (pushed, next) = self.slip_list.position_of_rank((0, u64::MAX), logical);
            let (unit, inside) = StrengthReducedU64::div_rem(pushed, units.logical_sectors);
            let physical = unit * units.unit_sectors + units.front_spares + inside;
            let left = units.logical_sectors.get() - inside;
            return (physical, next.map_or(left, |next| left.min(next - pushed)));
        }
        let (unit, inside) = StrengthReducedU64::div_rem(logical, units.logical_sectors);
        let range = self.physical_unit(unit);
        let front = self.front_spares_of(range);
        let (physical, next) = self.slip_list.position_of_rank(range, front + inside);
        let left = units.logical_sectors.get() - inside;
        (
            physical,
            next.map_or(left, |next| left.min(next - physical)),
        )
    }

    fn physical_unit(&self, unit: u64) -> (u64, u64) {
        let from = unit * self.sparing_units.unit_sectors;
        (
            from,
            (from + self.sparing_units.unit_sectors).min(self.physical_sectors()),
        )
    }

    /// Returns the number of unused spares at the front of a unit. Slips use up spares.
    fn front_spares_of(&self, unit: (u64, u64)) -> u64 {
        match self.sparing_units.front_spares {
            0 => 0,
            spares => spares - self.slip_list.slipped_count(unit),
        }
    }

    /// Returns the logical sector (counting dead sectors) of a physical sector, without regard to
    /// defects.
    fn to_logical(&self, physical: u64) -> Option<u64> {
        let units = &self.sparing_units;
        let unit = physical / units.unit_sectors;
        let logical = units.logical_sectors.get();
        if units.slips_defects {
            let inside = (physical % units.unit_sectors).checked_sub(units.front_spares)?;
            let pushed = unit * logical + inside;
            return (inside < logical)
                .then(|| self.slip_list.rank_of_sector((0, u64::MAX), pushed))
                .flatten();
        }
        let range = self.physical_unit(unit);
        let inside = self.slip_list.rank_of_sector(range, physical)?;
        let inside = inside.checked_sub(self.front_spares_of(range))?;
        (inside < logical).then_some(unit * logical + inside)
    }

    /// Returns the logical block of a physical sector, without regard to defects.
    fn original_sector(&self, physical: u64) -> Option<u64> {
        let inside = self.to_logical(physical)?.checked_sub(self.dead_sectors)?;
        (inside < self.sector_count).then_some(self.first_sector + inside)
    }

    /// Returns the logical block at a physical position in the zone; `None` where no data are
    /// stored.
    pub(super) fn sector_at(&self, cylinder: u32, head: u32, sector: u32) -> Option<u64> {
        let per_track = self.sectors_per_track.get();
        if u64::from(sector) >= per_track {
            return None;
        }
        let physical = self.tracks.track_number(cylinder, head) * per_track + u64::from(sector);
        if let Ok(at) = self.moved_to.binary_search_by_key(&physical, |pair| pair.0) {
            return self.original_sector(self.moved_to[at].1);
        }
        match self
            .moved_from
            .binary_search_by_key(&physical, |pair| pair.0)
        {
            Ok(_) => None,
            Err(_) => self.original_sector(physical),
        }
    }

    /// Returns the position of a sector in its zone before skews rotate the tracks; `None` under
    /// [`TrackOrder::SeekFirst`].
    pub(super) fn zone_position(
        &self,
        zone: usize,
        place: &SectorPosition,
    ) -> Option<ZonePosition> {
        if matches!(self.tracks.track_order, TrackOrder::SeekFirst { .. }) {
            return None;
        }
        let track = self.tracks.track_number(place.cylinder, place.head);
        let surfaces = u64::from(self.tracks.surface_count);
        let cylinder = (track / surfaces) as u32;
        let sector = u64::from(place.sector) + self.sectors_pushed(track, cylinder);
        Some(ZonePosition {
            zone_index: zone,
            cylinder_in_zone: cylinder,
            range_index: match self.track_angles.range_skew {
                Some((_, cylinders)) => cylinder / cylinders,
                None => 0,
            },
            track_in_range: (track % surfaces) as u32,
            angle_in_zone: sector as f64 / self.sectors_per_track.get() as f64,
        })
    }

    /// Counts the slips that rotate a track. `cylinder` counts from the zone's first one.
    fn sectors_pushed(&self, track: u64, cylinder: u32) -> u64 {
        let per_track = self.sectors_per_track.get();
        let from = u64::from(cylinder) * u64::from(self.tracks.surface_count) * per_track;
        self.track_angles
            .rotating_slips
            .slipped_count((from, track * per_track))
    }

    #[inline]
    fn start_angle(&self, track: u64, place: TrackPosition) -> RotationAngle {
        let angles = &self.track_angles;
        let legs = u64::from(place.cylinder_legs);
        let mut start = angles.origin_angle
            + angles.track_skew.times(track - legs)
            + angles.cylinder_skew.times(legs);
        if let Some((skew, cylinders)) = angles.range_skew {
            start = start + skew.times(legs / u64::from(cylinders));
        }
        if let Some((skew, heads, changes)) = angles.head_group_skew {
            let cylinder = u64::from(place.cylinder - self.tracks.first_cylinder);
            let of_head = u64::from(place.head / heads);
            start = start + skew.times(cylinder * u64::from(changes) + of_head);
        }
        if !angles.rotating_slips.is_empty() {
            start = start
                + RotationAngle(angles.sector_angle).times(self.sectors_pushed(track, legs as u32));
        }
        start
    }
}

impl TrackAngles {
    fn new(
        of: &LayoutSpecification,
        zone: &ZoneSpecification,
        number: usize,
    ) -> Result<Self, LayoutError> {
        let turn = |key, revolutions: f64| match revolutions.is_finite() {
            true => Ok(RotationAngle::from_revolutions(revolutions)),
            false => Err(LayoutError::AngleOutOfRange { zone: number, key }),
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
                SlipList::new(zone.slipped_sectors.iter().map(|slip| (*slip, 1)), 1)
            }
            _ => SlipList::default(),
        };
        let groups = zone.head_groups.filter(|groups| groups.skew_rev != 0.0);
        let groups = groups.map(|groups| {
            check_range(
                "`heads` of a group of heads",
                groups.heads_per_group,
                of.surface_count,
            )?;
            let changes = (of.surface_count - 1) / groups.heads_per_group;
            Ok((
                turn("skew_rev", groups.skew_rev)?,
                groups.heads_per_group,
                changes,
            ))
        });
        let sectors = zone.sectors_per_track + zone.unused_sectors_per_track;
        Ok(Self {
            origin_angle: turn("origin_rev", zone.origin_rev)?,
            track_skew: turn("track_skew_rev", zone.track_skew_rev)?,
            cylinder_skew: turn("cylinder_skew_rev", zone.cylinder_skew_rev)?,
            range_skew: range,
            head_group_skew: groups.transpose()?,
            sector_angle: u64::MAX / u64::from(sectors),
            slots_per_track: sectors,
            rotating_slips: pushing,
        })
    }
}

struct SparingPlan {
    physical_sectors: u64,
    sparing_units: SparingUnits,
    /// Spares of each complete unit, in sectors.
    unit_spares: u64,
    complete_units: u64,
    /// Sectors per slip or defect: one, or a whole track.
    sectors_per_defect: u64,
    /// Sectors lost at the end of the zone because slips shift the others.
    sectors_pushed_out: u64,
}

impl SparingPlan {
    fn new(sparing: Sparing, zone: &ZoneSpecification, tracks: &ZoneTracks) -> Self {
        let per_track = u64::from(zone.sectors_per_track);
        let room = tracks.track_count() * per_track;
        let cylinder = u64::from(tracks.surface_count) * per_track;
        let slips = zone.slipped_sectors.len() as u64;
        let grain = match sparing {
            Sparing::Tracks => per_track,
            _ => 1,
        };
        let spares = zone.spare_sectors.saturating_mul(grain);
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
            physical_sectors: room,
            sparing_units: SparingUnits {
                unit_sectors: sectors,
                // A unit of spares only leaves nothing, which the caller finds.
                logical_sectors: StrengthReducedU64::new(sectors.saturating_sub(spares).max(1)),
                front_spares: front,
                slips_defects: pushed_out > 0,
            },
            unit_spares: spares,
            complete_units: room / sectors,
            sectors_per_defect: grain,
            sectors_pushed_out: pushed_out,
        }
    }

    /// Returns the number of sectors of the zone that hold no logical block.
    fn sectors_taken(&self, zone: &ZoneSpecification) -> u64 {
        self.unit_spares
            .saturating_mul(self.complete_units)
            .saturating_add(zone.dead_sectors)
            .saturating_add(self.sectors_pushed_out)
    }

    /// Returns the number of logical blocks in the zone; `None` if none fits.
    fn usable_sectors(&self, zone: &ZoneSpecification) -> Option<u64> {
        let left = self
            .physical_sectors
            .checked_sub(self.sectors_taken(zone))?;
        let of_unit = self
            .sparing_units
            .unit_sectors
            .checked_sub(self.unit_spares)?;
        (left > 0 && of_unit > 0).then_some(left)
    }

    fn build_slips(
        &self,
        zone: &ZoneSpecification,
        number: usize,
    ) -> Result<SlipList, LayoutError> {
        let mut least = 0;
        for &slip in &zone.slipped_sectors {
            if slip < least || slip >= self.physical_sectors / self.sectors_per_defect {
                return Err(LayoutError::InvalidSlip { zone: number, slip });
            }
            least = slip + 1;
        }
        let SparingUnits {
            unit_sectors: of_unit,
            logical_sectors: logical,
            front_spares: front,
            slips_defects: slipping,
        } = self.sparing_units;
        if slipping {
            // Numbered without the spares; a spare that is slipped pushes nothing.
            let pushing = zone.slipped_sectors.iter().filter_map(|slip| {
                let inside = (slip % of_unit).checked_sub(front)?;
                (inside < logical.get()).then_some((slip / of_unit * logical.get() + inside, 1))
            });
            return Ok(SlipList::new(pushing, u64::MAX));
        }
        let runs = zone
            .slipped_sectors
            .iter()
            .map(|slip| (slip * self.sectors_per_defect, self.sectors_per_defect));
        let slips = SlipList::new(runs, of_unit);
        for slip in slips.first_sectors() {
            let unit = slip / of_unit;
            let spares = match unit < self.complete_units {
                true => self.unit_spares,
                false => 0,
            };
            let from = unit * of_unit;
            if slips.slipped_count((from, from + of_unit)) > spares {
                return Err(LayoutError::TooManySlips { zone: number, slip });
            }
        }
        Ok(slips)
    }
}
