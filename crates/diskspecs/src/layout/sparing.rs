//! Sparing schemes: selection of the physical sectors of a zone that hold its blocks.

use super::zoned::{FaultySector, ZoneRefusal};

/// Sparing scheme of a drive (DiskSim's `Sparing scheme mark_used`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sparing {
    /// No sparing; slips and defects have no meaning (0).
    None,
    /// Spare tracks at the end of the zone; slips and defects are tracks (1).
    Tracks,
    /// Spare sectors at the end of each cylinder (2).
    CylinderEnd,
    /// Spare sectors at the end of each track (3).
    TrackEnd,
    /// Spare sectors at the end of each cylinder; slips shift all later blocks of the zone (4).
    CylinderEndSlipOn,
    /// Spare sectors at the start of each cylinder (5).
    CylinderFront,
    /// Spare sectors at the start of each cylinder; slips shift all later blocks of the zone (6).
    CylinderFrontSlipOn,
    /// Spare sectors at the end of the disk (7).
    DiskEnd,
    /// Spare sectors at the end of each range of cylinders (8).
    RangeEnd,
    /// Spare sectors at the end of the zone (9).
    ZoneEnd,
    /// Spare sectors at the end of the zone; slips shift all later blocks (10).
    ZoneEndSlipOn,
}

/// Division of a zone by a sparing scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// Single unit: slips shift blocks within the zone.
    WholeZone,
    /// Single unit of whole tracks: slips and spares are tracks.
    Tracks,
    /// Several units with their own spares; slips shift blocks within each unit.
    Units,
    /// Several units with their own spares; slips shift blocks through the zone, across the spares.
    UnitsSlidingSlips,
}

impl Sparing {
    /// Returns the sparing scheme for its number in a file.
    pub fn from_number(number: u64) -> Option<Sparing> {
        Some(match number {
            0 => Sparing::None,
            1 => Sparing::Tracks,
            2 => Sparing::CylinderEnd,
            3 => Sparing::TrackEnd,
            4 => Sparing::CylinderEndSlipOn,
            5 => Sparing::CylinderFront,
            6 => Sparing::CylinderFrontSlipOn,
            7 => Sparing::DiskEnd,
            8 => Sparing::RangeEnd,
            9 => Sparing::ZoneEnd,
            10 => Sparing::ZoneEndSlipOn,
            _ => return None,
        })
    }

    pub(super) fn division(self) -> Division {
        match self {
            Sparing::None | Sparing::DiskEnd | Sparing::ZoneEnd | Sparing::ZoneEndSlipOn => {
                Division::WholeZone
            }
            Sparing::Tracks => Division::Tracks,
            Sparing::CylinderEnd
            | Sparing::CylinderFront
            | Sparing::TrackEnd
            | Sparing::RangeEnd => Division::Units,
            Sparing::CylinderEndSlipOn | Sparing::CylinderFrontSlipOn => {
                Division::UnitsSlidingSlips
            }
        }
    }

    /// Tests whether spares are at the start of their unit.
    fn is_spare_first(self) -> bool {
        matches!(self, Sparing::CylinderFront | Sparing::CylinderFrontSlipOn)
    }

    /// Reports whether slips shift the angular origin of later tracks.
    pub(super) fn slips_shift_angle(self) -> bool {
        matches!(
            self,
            Sparing::CylinderEnd
                | Sparing::TrackEnd
                | Sparing::CylinderEndSlipOn
                | Sparing::CylinderFront
                | Sparing::CylinderFrontSlipOn
        )
    }
}

/// Physical sectors of a zone, numbered from its first one, and the sectors among them that hold
/// data.
///
/// Data positions count the sectors that are neither spare nor slipped; the dead sectors at the
/// start of a zone come first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sectors {
    sparing: Sparing,
    /// Size of the zone in sectors, or in tracks for [`Division::Tracks`].
    physical: u64,
    /// Size of a unit in sectors; the whole zone if it is a single unit.
    unit: u64,
    /// Number of whole units with spares at their end or start. The remainder is a unit without
    /// spares.
    units: u64,
    spares: u64,
    /// Slips of the zone as ascending physical sectors; data positions for [`Division::UnitsSlidingSlips`].
    slips: Vec<u64>,
    slipped: Vec<u64>,
    data: u64,
}

/// Size of a zone that a sparing scheme divides into units.
pub(super) struct ZoneSize {
    pub(super) cylinders: u64,
    pub(super) surfaces: u64,
    pub(super) sectors_per_track: u64,
    pub(super) range_cylinders: u64,
}

impl Sectors {
    /// Divides a zone into units with spares.
    ///
    /// # Errors
    ///
    /// Reason why spares and slips do not fit into the zone.
    pub(super) fn new(
        sparing: Sparing,
        zone_size: &ZoneSize,
        spares: u64,
        slips: &[u64],
    ) -> Result<Sectors, ZoneRefusal> {
        let cylinder = zone_size.surfaces * zone_size.sectors_per_track;
        let all = zone_size.cylinders * cylinder;
        let (physical, unit) = match sparing {
            Sparing::Tracks => (
                zone_size.cylinders * zone_size.surfaces,
                zone_size.cylinders * zone_size.surfaces,
            ),
            Sparing::TrackEnd => (all, zone_size.sectors_per_track),
            Sparing::RangeEnd => (
                all,
                zone_size.range_cylinders.max(1).saturating_mul(cylinder),
            ),
            _ if sparing.division() == Division::WholeZone => (all, all),
            _ => (all, cylinder),
        };
        let slips = match sparing {
            Sparing::None => &[],
            _ => slips,
        };
        let spares = match sparing {
            Sparing::None | Sparing::DiskEnd => 0,
            _ => spares,
        };
        let units = physical / unit;
        if spares > unit {
            return Err((format!("{spares} spares do not go into {unit}"), None));
        }
        if let Some(far) = slips.iter().find(|&&slip| slip >= physical) {
            let why = format!("the slip {far} is beyond the zone's {physical}");
            return Err((why, Some(FaultySector::Slip(*far))));
        }
        let pushed = match sparing {
            Sparing::DiskEnd | Sparing::ZoneEndSlipOn => slips.len() as u64,
            _ => 0,
        };
        let mut sectors = Sectors {
            sparing,
            physical,
            unit,
            units,
            spares,
            slips: slips.to_vec(),
            slipped: slips.to_vec(),
            data: (physical - units * spares).saturating_sub(pushed),
        };
        match sparing.division() {
            Division::UnitsSlidingSlips => sectors.convert_slips_to_positions(),
            _ => sectors.check_slips_fit()?,
        }
        Ok(sectors)
    }

    /// Returns the number of data positions: sectors of the zone that are neither spare nor
    /// slipped.
    pub(super) fn data(&self) -> u64 {
        self.data
    }

    fn unit_data(&self) -> u64 {
        self.unit - self.spares
    }

    /// Converts slips to data positions; slips among the spares have no effect.
    fn convert_slips_to_positions(&mut self) {
        let positions: Vec<u64> = self
            .slipped
            .iter()
            .filter_map(|&slip| self.sliding_position(slip))
            .collect();
        self.slipped = positions
            .iter()
            .map(|&at| self.sliding_physical(at))
            .collect();
        self.data = self.data.saturating_sub(positions.len() as u64);
        self.slips = positions;
    }

    /// Returns the data position of a physical sector, whether or not it is slipped.
    fn sliding_position(&self, physical: u64) -> Option<u64> {
        let (unit, within) = (physical / self.unit, physical % self.unit);
        let front = if self.sparing.is_spare_first() {
            self.spares
        } else {
            0
        };
        let within = within.checked_sub(front)?;
        (within < self.unit_data()).then(|| unit * self.unit_data() + within)
    }

    fn sliding_physical(&self, position: u64) -> u64 {
        let front = if self.sparing.is_spare_first() {
            self.spares
        } else {
            0
        };
        let per = self.unit_data();
        position / per * self.unit + front + position % per
    }

    /// Checks that the data of each unit fit next to its slips.
    fn check_slips_fit(&self) -> Result<(), ZoneRefusal> {
        let mut at = 0;
        while let Some(&slip) = self.slipped.get(at) {
            let unit = (slip / self.unit).min(self.units);
            let (slips, length) = self.unit_slips(unit);
            let holes = slips.len() as u64;
            at += slips.len();
            let spares = if unit < self.units { self.spares } else { 0 };
            let data = (length - spares).min(self.data);
            let room = match self.sparing.is_spare_first() {
                true => holes <= spares,
                false => {
                    data == 0 || physical_after_slips(slips, unit * self.unit, data - 1) < length
                }
            };
            if !room {
                let why = format!("{holes} slips from {slip} on are more than {spares} spares");
                return Err((why, Some(FaultySector::Slip(slip))));
            }
        }
        Ok(())
    }

    /// Returns the slips of a unit and its number of physical sectors.
    fn unit_slips(&self, unit: u64) -> (&[u64], u64) {
        let start = unit * self.unit;
        let end = (start + self.unit).min(self.physical);
        let from = self.slipped.partition_point(|&slip| slip < start);
        let to = self.slipped.partition_point(|&slip| slip < end);
        (&self.slipped[from..to], end - start)
    }

    /// Returns the physical sector (or track) of a data position.
    pub(super) fn physical_sector(&self, position: u64) -> u64 {
        match self.sparing.division() {
            Division::WholeZone | Division::Tracks => {
                physical_after_slips(&self.slips, 0, position)
            }
            Division::UnitsSlidingSlips => {
                self.sliding_physical(physical_after_slips(&self.slips, 0, position))
            }
            Division::Units => {
                // A unit of spares alone holds nothing; then only what is left over does.
                let per = self.unit_data();
                let unit = position
                    .checked_div(per)
                    .unwrap_or(self.units)
                    .min(self.units);
                let within = position - unit * per;
                let (slips, _) = self.unit_slips(unit);
                let start = unit * self.unit;
                start + physical_after_slips(slips, start, within + self.data_start(unit, slips))
            }
        }
    }

    /// Returns the number of sectors that precede a unit's data and are not slipped.
    fn data_start(&self, unit: u64, slips: &[u64]) -> u64 {
        match self.sparing.is_spare_first() && unit < self.units {
            true => self.spares - slips.len() as u64,
            false => 0,
        }
    }

    /// Returns the data position of a physical sector (or track); `None` if it is spare or slipped.
    pub(super) fn position(&self, physical: u64) -> Option<u64> {
        if physical >= self.physical || self.slipped.binary_search(&physical).is_ok() {
            return None;
        }
        let before = |slips: &[u64], at: u64| slips.partition_point(|&slip| slip < at) as u64;
        let position = match self.sparing.division() {
            Division::WholeZone | Division::Tracks => physical - before(&self.slips, physical),
            Division::UnitsSlidingSlips => {
                let position = self.sliding_position(physical)?;
                position - before(&self.slips, position)
            }
            Division::Units => {
                let unit = (physical / self.unit).min(self.units);
                let (slips, length) = self.unit_slips(unit);
                let within = physical - unit * self.unit - before(slips, physical);
                let within = within.checked_sub(self.data_start(unit, slips))?;
                let spares = if unit < self.units { self.spares } else { 0 };
                (within < length - spares).then_some(unit * self.unit_data() + within)?
            }
        };
        (position < self.data).then_some(position)
    }

    /// Returns the number of slips before a track that shift its angular origin.
    pub(super) fn slips_before_track(&self, track_start: u64) -> u64 {
        if !self.sparing.slips_shift_angle() {
            return 0;
        }
        let from = match self.sparing.division() {
            Division::Units => track_start / self.unit * self.unit,
            _ => 0,
        };
        let before = |at: u64| self.slipped.partition_point(|&slip| slip < at) as u64;
        before(track_start) - before(from)
    }
}

/// Returns the physical number of a data position counted from a start, after skipping slips.
fn physical_after_slips(slips: &[u64], start: u64, position: u64) -> u64 {
    // The slips ascend, so those that are passed are the first ones.
    let (mut low, mut high) = (0, slips.len());
    while low < high {
        let middle = (low + high) / 2;
        match slips[middle] - start <= position + middle as u64 {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    position + low as u64
}
