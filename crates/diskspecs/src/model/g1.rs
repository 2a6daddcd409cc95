//! Reader of the layout `dm_layout_g1`.

use diskperf_diagnostics::{Problem, SourceSpan};

use super::{DriveBounds, Skews};
use crate::keys::{Findings, Keys, to_natural};
use crate::layout::{FaultySector, Mapping, Sparing, Zone, ZoneError, ZonedLayout};
use crate::text::{Block, ValueKind};

/// Limit for the number of unused or spare sectors of a zone; with that many, no block would
/// remain.
const SECTORS_MAX: u64 = 1 << 60;

pub(super) fn read(
    block: &Block,
    bounds: &DriveBounds,
    findings: &Findings,
) -> Option<ZonedLayout> {
    let keys = Keys::new(block, findings);
    let mapping = keys.count("LBN-to-PBN mapping scheme");
    let mapping = mapping.map(|number| match number {
        0 => Mapping::Ascending,
        1 => Mapping::SerpentineByZone,
        _ => Mapping::SerpentineByCylinder,
    });
    let sparing = keys.count("Sparing scheme used");
    let sparing = sparing.and_then(Sparing::from_number);
    let range = match sparing {
        Some(Sparing::RangeEnd) => Some(keys.count_or_zero("Rangesize for sparing").max(1)),
        _ => {
            keys.ignore(&["Rangesize for sparing"], "of sparing scheme 8 alone");
            Some(1)
        }
    };
    let zones = parse_zones(&keys, bounds, sparing);
    let (places, zones) = zones?;
    let (sparing, range) = (sparing?, range?);
    let sparing = match sparing == Sparing::RangeEnd && has_no_range(&keys, range, &zones) {
        true => Sparing::None,
        false => sparing,
    };
    let layout = ZonedLayout::new(bounds.surfaces, mapping?, sparing, range, zones);
    match layout {
        Ok(layout) => Some(layout),
        Err(ZoneError { zone, why, of }) => {
            let problem = Problem::error(format!("zone {zone} cannot be"));
            findings.error(problem.at(places[zone].place_of_fault(of), why));
            None
        }
    }
}

/// Reports whether no zone is long enough for a range of cylinders with spares, and none has slips
/// or defects. In that case the layout has no spares, and a warning says so.
fn has_no_range(keys: &Keys<'_>, range: u32, zones: &[Zone]) -> bool {
    let is_less = |zone: &Zone| {
        let cylinders = u64::from(zone.last_cylinder) + 1;
        let is_short = cylinders < u64::from(zone.first_cylinder) + u64::from(range);
        is_short && zone.slips.is_empty() && zone.defects.is_empty()
    };
    let has_none = zones.iter().all(is_less);
    if let (true, Some(entry)) = (has_none, keys.find("Rangesize for sparing")) {
        let title = "no zone has a complete range of cylinders for spares";
        let warning = Problem::warning(title).at(&entry.value.place, "the drive has no spares");
        keys.findings.warning(warning);
    }
    has_none
}

fn parse_zones(
    keys: &Keys<'_>,
    bounds: &DriveBounds,
    sparing: Option<Sparing>,
) -> Option<(Vec<ZonePlaces>, Vec<Zone>)> {
    let (entry, values) = keys.list("Zones")?;
    if values.is_empty() {
        let problem = Problem::error("the drive has no zones");
        let problem = problem.at(&entry.value.place, "the list is empty");
        keys.findings
            .error(problem.help("list a `dm_layout_g1_zone { .. }` for each zone"));
        return None;
    }
    let (mut places, mut zones) = (Vec::new(), Vec::new());
    for value in values {
        let block = match &value.kind {
            ValueKind::Block(block) if block.kind.as_str() == "dm_layout_g1_zone" => block,
            _ => {
                let title = format!("{} is not a zone", value.describe());
                let problem = Problem::error(title);
                let label = "expected `dm_layout_g1_zone { .. }`";
                keys.findings.error(problem.at(&value.place, label));
                return None;
            }
        };
        let (slips, defects, zone) = parse_zone(block, bounds, sparing, keys.findings)?;
        places.push(ZonePlaces {
            zone: value.place.clone(),
            slips,
            defects,
        });
        zones.push(zone);
    }
    Some((places, zones))
}

struct ZonePlaces {
    zone: SourceSpan,
    slips: PlacedNumbers,
    defects: PlacedNumbers,
}

impl ZonePlaces {
    /// Returns the place of a wrong slip or defect, or of the zone.
    fn place_of_fault(&self, faulty: Option<FaultySector>) -> &SourceSpan {
        let place = match faulty {
            None => None,
            Some(FaultySector::Slip(slip)) => {
                let found = self.slips.iter().rfind(|(number, _)| *number == slip);
                found.map(|(_, place)| place)
            }
            Some(FaultySector::Defect(bad, instead)) => {
                let mut pairs = self.defects.chunks_exact(2);
                let found = pairs.rfind(|pair| (pair[0].0, pair[1].0) == (bad, instead));
                found.map(|pair| &pair[0].1)
            }
        };
        place.unwrap_or(&self.zone)
    }
}

fn parse_zone(
    block: &Block,
    bounds: &DriveBounds,
    sparing: Option<Sparing>,
    findings: &Findings,
) -> Option<(PlacedNumbers, PlacedNumbers, Zone)> {
    let keys = Keys::new(block, findings);
    let most = u64::from(ZonedLayout::CYLINDERS_MAX) - 1;
    let first_cylinder = keys.count_at_most("First cylinder number", most);
    let last_cylinder = keys.count_at_most("Last cylinder number", most);
    let sectors = u64::from(ZonedLayout::TRACK_SECTORS_MAX);
    let sectors = keys.count_at_most("Blocks per track", sectors);
    let dead_sectors = keys.count("Empty space at zone front");
    let spares = keys.count("Number of spares");
    if let Some(last) = last_cylinder {
        check_last_cylinder(&keys, bounds, last);
    }
    let slips = parse_numbers(&keys, "slips");
    let defects = parse_numbers(&keys, "defects");
    if sparing == Some(Sparing::None) {
        let why = "sparing scheme 0 has no spares, slips or defects";
        keys.ignore(&["Number of spares", "slips", "defects"], why);
    }
    let skews = Skews::read(&keys, "Offset of first block", sectors.unwrap_or(1) as u32);
    let (defects, skews, mut slips) = (defects?, skews?, slips?);
    if !defects.len().is_multiple_of(2) {
        let entry = keys.require("defects")?;
        keys.refuse(entry, "pairs: a defect and its replacement");
        return None;
    }
    if let Some(late) = slips.windows(2).find(|pair| pair[0].0 > pair[1].0) {
        let warning = Problem::warning("the slips of a zone do not ascend");
        findings.warning(warning.at(&late[1].1, "they are sorted"));
        slips.sort_by_key(|(slip, _)| *slip);
    }
    let zone = Zone {
        first_cylinder: first_cylinder? as u32,
        last_cylinder: last_cylinder? as u32,
        sectors_per_track: sectors? as u32,
        offset: skews.offset,
        track_skew: skews.track,
        cylinder_skew: skews.cylinder,
        dead_sectors: dead_sectors?.min(SECTORS_MAX),
        spares: spares?.min(SECTORS_MAX),
        slips: slips.iter().map(|(slip, _)| *slip).collect(),
        defects: defects
            .chunks_exact(2)
            .map(|pair| (pair[0].0, pair[1].0))
            .collect(),
    };
    Some((slips, defects, zone))
}

/// Warns if zones extend beyond the cylinders of the drive, which DiskSim accepts. Files extracted
/// from drives often have one cylinder too few, because they count from 0.
fn check_last_cylinder(keys: &Keys<'_>, bounds: &DriveBounds, last: u64) {
    let cylinders = u64::from(bounds.cylinders);
    let Some(entry) = keys.find("Last cylinder number") else {
        return;
    };
    if last >= cylinders {
        let more = match last - cylinders {
            0 => "one cylinder more".to_owned(),
            more => format!("{} cylinders more", more + 1),
        };
        let title = format!("the zones have {more} than the drive's {cylinders}");
        let warning = Problem::warning(title).at(&entry.value.place, "the zone is used");
        keys.findings.warning(warning);
    }
}

type PlacedNumbers = Vec<(u64, SourceSpan)>;

fn parse_numbers(keys: &Keys<'_>, key: &str) -> Option<PlacedNumbers> {
    let (_, values) = keys.list_or_empty(key)?;
    let mut numbers = Vec::with_capacity(values.len());
    for value in values {
        match to_natural(value) {
            Some(number) => numbers.push((number, value.place.clone())),
            None => {
                let title = format!("{} is not a sector", value.describe());
                let problem = Problem::error(title).at(&value.place, "a whole number");
                keys.findings.error(problem);
                return None;
            }
        }
    }
    Some(numbers)
}
