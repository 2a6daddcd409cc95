//! Sparing schemes: selection of the physical sectors of a zone that hold its blocks.

use super::zoned::{FaultySector, ZoneProblem};

/// Sparing scheme of a drive (DiskSim's `Sparing scheme mark_used`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SparingScheme {
    /// No sparing; slips and defects have no meaning (0).
    None,
    /// Spare tracks at the end of the zone; slips and defects are tracks (1).
    Tracks,
    /// Spare sectors at the end of each cylinder (2).
    CylinderEnd,
    /// Spare sectors at the end of each track (3).
    TrackEnd,
    /// Spare sectors at the end of each cylinder; slips shift all later blocks of the zone (4).
    CylinderEndSliding,
    /// Spare sectors at the start of each cylinder (5).
    CylinderFront,
    /// Spare sectors at the start of each cylinder; slips shift all later blocks of the zone (6).
    CylinderFrontSliding,
    /// Spare sectors at the end of the disk (7).
    DiskEnd,
    /// Spare sectors at the end of each range of cylinders (8).
    RangeEnd,
    /// Spare sectors at the end of the zone (9).
    ZoneEnd,
    /// Spare sectors at the end of the zone; slips shift all later blocks (10).
    ZoneEndSliding,
}

/// Division of a zone by a sparing scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpareDivision {
    /// Single unit: slips shift blocks within the zone.
    WholeZone,
    /// Single unit of whole tracks: slips and spares are tracks.
    Tracks,
    /// Several units with their own spares; slips shift blocks within each unit.
    SpareUnits,
    /// Several units with their own spares; slips shift blocks through the zone, across the spares.
    SlidingSpareUnits,
}

impl SparingScheme {
    /// Returns the sparing scheme for its number in a file.
    pub fn from_number(number: u64) -> Option<SparingScheme> {
        Some(match number {
            0 => SparingScheme::None,
            1 => SparingScheme::Tracks,
            2 => SparingScheme::CylinderEnd,
            3 => SparingScheme::TrackEnd,
            4 => SparingScheme::CylinderEndSliding,
            5 => SparingScheme::CylinderFront,
            6 => SparingScheme::CylinderFrontSliding,
            7 => SparingScheme::DiskEnd,
            8 => SparingScheme::RangeEnd,
            9 => SparingScheme::ZoneEnd,
            10 => SparingScheme::ZoneEndSliding,
            _ => return None,
        })
    }

    pub(super) fn division(self) -> SpareDivision {
        match self {
            SparingScheme::None
            | SparingScheme::DiskEnd
            | SparingScheme::ZoneEnd
            | SparingScheme::ZoneEndSliding => SpareDivision::WholeZone,
            SparingScheme::Tracks => SpareDivision::Tracks,
            SparingScheme::CylinderEnd
            | SparingScheme::CylinderFront
            | SparingScheme::TrackEnd
            | SparingScheme::RangeEnd => SpareDivision::SpareUnits,
            SparingScheme::CylinderEndSliding | SparingScheme::CylinderFrontSliding => {
                SpareDivision::SlidingSpareUnits
            }
        }
    }

    /// Tests whether spares are at the start of their unit.
    fn has_spares_first(self) -> bool {
        matches!(
            self,
            SparingScheme::CylinderFront | SparingScheme::CylinderFrontSliding
        )
    }

    /// Reports whether slips shift the angular origin of later tracks.
    pub(super) fn slips_shift_angle(self) -> bool {
        matches!(
            self,
            SparingScheme::CylinderEnd
                | SparingScheme::TrackEnd
                | SparingScheme::CylinderEndSliding
                | SparingScheme::CylinderFront
                | SparingScheme::CylinderFrontSliding
        )
    }
}

/// Physical sectors of a zone, numbered from its first one, and the sectors among them that hold
/// data.
///
/// Data positions count the sectors that are neither spare nor slipped; the dead sectors at the
/// start of a zone come first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ZoneSectors {
    sparing: SparingScheme,
    /// Size of the zone in sectors, or in tracks for [`SpareDivision::Tracks`].
    physical_count: u64,
    /// Size of a unit in sectors; the whole zone if it is a single unit.
    unit_sectors: u64,
    /// Number of whole units with spares at their end or start. The remainder is a unit without
    /// spares.
    unit_count: u64,
    spares_per_unit: u64,
    /// Slips of the zone as ascending physical sectors; data positions for [`SpareDivision::SlidingSpareUnits`].
    slip_positions: Vec<u64>,
    slipped_sectors: Vec<u64>,
    data_count: u64,
}

/// Size of a zone that a sparing scheme divides into units.
pub(super) struct ZoneSize {
    pub(super) cylinder_count: u64,
    pub(super) surface_count: u64,
    pub(super) sectors_per_track: u64,
    pub(super) range_cylinders: u64,
}

impl ZoneSectors {
    /// Divides a zone into units with spares.
    ///
    /// # Errors
    ///
    /// Reason why spares and slips do not fit into the zone.
    pub(super) fn new(
        sparing: SparingScheme,
        zone_size: &ZoneSize,
        spares: u64,
        slips: &[u64],
    ) -> Result<ZoneSectors, ZoneProblem> {
        let cylinder = zone_size.surface_count * zone_size.sectors_per_track;
        let all = zone_size.cylinder_count * cylinder;
        let (physical, unit) = match sparing {
            SparingScheme::Tracks => (
                zone_size.cylinder_count * zone_size.surface_count,
                zone_size.cylinder_count * zone_size.surface_count,
            ),
            SparingScheme::TrackEnd => (all, zone_size.sectors_per_track),
            SparingScheme::RangeEnd => (
                all,
                zone_size.range_cylinders.max(1).saturating_mul(cylinder),
            ),
            _ if sparing.division() == SpareDivision::WholeZone => (all, all),
            _ => (all, cylinder),
        };
        let slips = match sparing {
            SparingScheme::None => &[],
            _ => slips,
        };
        let spares = match sparing {
            SparingScheme::None | SparingScheme::DiskEnd => 0,
            _ => spares,
        };
        let units = physical / unit;
        if spares > unit {
            return Err((format!("{spares} spares do not fit into {unit}"), None));
        }
        if let Some(far) = slips.iter().find(|&&slip| slip >= physical) {
            let why = format!("slip {far} is outside the zone of {physical}");
            return Err((why, Some(FaultySector::SlippedSector(*far))));
        }
        let pushed = match sparing {
            SparingScheme::DiskEnd | SparingScheme::ZoneEndSliding => slips.len() as u64,
            _ => 0,
        };
        let mut sectors = ZoneSectors {
            sparing,
            physical_count: physical,
            unit_sectors: unit,
            unit_count: units,
            spares_per_unit: spares,
            slip_positions: slips.to_vec(),
            slipped_sectors: slips.to_vec(),
            data_count: (physical - units * spares).saturating_sub(pushed),
        };
        match sparing.division() {
            SpareDivision::SlidingSpareUnits => sectors.convert_slips_to_positions(),
            _ => sectors.check_slips_fit()?,
        }
        Ok(sectors)
    }

    /// Returns the number of data positions: sectors of the zone that are neither spare nor
    /// slipped.
    pub(super) fn data_sectors(&self) -> u64 {
        self.data_count
    }

    fn unit_data_sectors(&self) -> u64 {
        self.unit_sectors - self.spares_per_unit
    }

    /// Converts slips to data positions; slips among the spares have no effect.
    fn convert_slips_to_positions(&mut self) {
        let positions: Vec<u64> = self
            .slipped_sectors
            .iter()
            .filter_map(|&slip| self.find_sliding_position(slip))
            .collect();
        self.slipped_sectors = positions
            .iter()
            .map(|&at| self.find_sliding_sector(at))
            .collect();
        self.data_count = self.data_count.saturating_sub(positions.len() as u64);
        self.slip_positions = positions;
    }

    /// Returns the data position of a physical sector, whether or not it is slipped.
    fn find_sliding_position(&self, physical: u64) -> Option<u64> {
        let (unit, within) = (physical / self.unit_sectors, physical % self.unit_sectors);
        let front = if self.sparing.has_spares_first() {
            self.spares_per_unit
        } else {
            0
        };
        let within = within.checked_sub(front)?;
        (within < self.unit_data_sectors()).then(|| unit * self.unit_data_sectors() + within)
    }

    fn find_sliding_sector(&self, position: u64) -> u64 {
        let front = if self.sparing.has_spares_first() {
            self.spares_per_unit
        } else {
            0
        };
        let per = self.unit_data_sectors();
        position / per * self.unit_sectors + front + position % per
    }

    /// Checks that the data of each unit fit next to its slips.
    fn check_slips_fit(&self) -> Result<(), ZoneProblem> {
        let mut at = 0;
        while let Some(&slip) = self.slipped_sectors.get(at) {
            let unit = (slip / self.unit_sectors).min(self.unit_count);
            let (slips, length) = self.slips_of_unit(unit);
            let holes = slips.len() as u64;
            at += slips.len();
            let spares = if unit < self.unit_count {
                self.spares_per_unit
            } else {
                0
            };
            let data = (length - spares).min(self.data_count);
            let room = match self.sparing.has_spares_first() {
                true => holes <= spares,
                false => {
                    data == 0
                        || physical_after_slips(slips, unit * self.unit_sectors, data - 1) < length
                }
            };
            if !room {
                let why = format!("{holes} slips from {slip} on exceed {spares} spares");
                return Err((why, Some(FaultySector::SlippedSector(slip))));
            }
        }
        Ok(())
    }

    /// Returns the slips of a unit and its number of physical sectors.
    fn slips_of_unit(&self, unit: u64) -> (&[u64], u64) {
        let start = unit * self.unit_sectors;
        let end = (start + self.unit_sectors).min(self.physical_count);
        let from = self.slipped_sectors.partition_point(|&slip| slip < start);
        let to = self.slipped_sectors.partition_point(|&slip| slip < end);
        (&self.slipped_sectors[from..to], end - start)
    }

    /// Returns the physical sector (or track) of a data position.
    pub(super) fn find_physical_sector(&self, position: u64) -> u64 {
        match self.sparing.division() {
            SpareDivision::WholeZone | SpareDivision::Tracks => {
                physical_after_slips(&self.slip_positions, 0, position)
            }
            SpareDivision::SlidingSpareUnits => {
                self.find_sliding_sector(physical_after_slips(&self.slip_positions, 0, position))
            }
            SpareDivision::SpareUnits => {
                // A unit of spares alone holds nothing; then only what is left over does.
                let per = self.unit_data_sectors();
                let unit = position
                    .checked_div(per)
                    .unwrap_or(self.unit_count)
                    .min(self.unit_count);
                let within = position - unit * per;
                let (slips, _) = self.slips_of_unit(unit);
                let start = unit * self.unit_sectors;
                start
                    + physical_after_slips(slips, start, within + self.unit_data_start(unit, slips))
            }
        }
    }

    /// Returns the number of sectors that precede a unit's data and are not slipped.
    fn unit_data_start(&self, unit: u64, slips: &[u64]) -> u64 {
        match self.sparing.has_spares_first() && unit < self.unit_count {
            true => self.spares_per_unit - slips.len() as u64,
            false => 0,
        }
    }

    /// Returns the data position of a physical sector (or track); `None` if it is spare or slipped.
    pub(super) fn find_position(&self, physical: u64) -> Option<u64> {
        if physical >= self.physical_count || self.slipped_sectors.binary_search(&physical).is_ok()
        {
            return None;
        }
        let before = |slips: &[u64], at: u64| slips.partition_point(|&slip| slip < at) as u64;
        let position = match self.sparing.division() {
            SpareDivision::WholeZone | SpareDivision::Tracks => {
                physical - before(&self.slip_positions, physical)
            }
            SpareDivision::SlidingSpareUnits => {
                let position = self.find_sliding_position(physical)?;
                position - before(&self.slip_positions, position)
            }
            SpareDivision::SpareUnits => {
                let unit = (physical / self.unit_sectors).min(self.unit_count);
                let (slips, length) = self.slips_of_unit(unit);
                let within = physical - unit * self.unit_sectors - before(slips, physical);
                let within = within.checked_sub(self.unit_data_start(unit, slips))?;
                let spares = if unit < self.unit_count {
                    self.spares_per_unit
                } else {
                    0
                };
                (within < length - spares).then_some(unit * self.unit_data_sectors() + within)?
            }
        };
        (position < self.data_count).then_some(position)
    }

    /// Returns the number of slips before a track that shift its angular origin.
    pub(super) fn slips_before_track(&self, track_start: u64) -> u64 {
        if !self.sparing.slips_shift_angle() {
            return 0;
        }
        let from = match self.sparing.division() {
            SpareDivision::SpareUnits => track_start / self.unit_sectors * self.unit_sectors,
            _ => 0,
        };
        let before = |at: u64| self.slipped_sectors.partition_point(|&slip| slip < at) as u64;
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
