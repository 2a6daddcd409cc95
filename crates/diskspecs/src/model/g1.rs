//! Reader of the layout `dm_layout_g1`.

use diskperf_diagnostics::{Problem, SourceSpan};

use super::{DriveBounds, TrackSkews};
use crate::keys::{ImportFindings, KeyReader, to_unsigned};
use crate::layout::{
    CylinderMapping, FaultySector, SparingScheme, TrackZone, ZoneError, ZonedLayout,
};
use crate::text::{ParameterBlock, ValueKind};

/// Limit for the number of unused or spare sectors of a zone; with that many, no block would
/// remain.
const SECTORS_MAX: u64 = 1 << 60;

pub(super) fn parse_zoned_layout(
    block: &ParameterBlock,
    bounds: &DriveBounds,
    findings: &ImportFindings,
) -> Option<ZonedLayout> {
    let keys = KeyReader::new(block, findings);
    let mapping = keys.read_count("LBN-to-PBN mapping scheme");
    let mapping = mapping.map(|number| match number {
        0 => CylinderMapping::Ascending,
        1 => CylinderMapping::SerpentineByZone,
        _ => CylinderMapping::SerpentineByCylinder,
    });
    let sparing = keys.read_count("Sparing scheme used");
    let sparing = sparing.and_then(SparingScheme::from_number);
    let range = match sparing {
        Some(SparingScheme::RangeEnd) => {
            Some(keys.read_count_or_zero("Rangesize for sparing").max(1))
        }
        _ => {
            keys.ignore_keys(&["Rangesize for sparing"], "of sparing scheme 8 alone");
            Some(1)
        }
    };
    let zones = parse_zones(&keys, bounds, sparing);
    let (places, zones) = zones?;
    let (sparing, range) = (sparing?, range?);
    let sparing = match sparing == SparingScheme::RangeEnd && is_without_range(&keys, range, &zones)
    {
        true => SparingScheme::None,
        false => sparing,
    };
    let layout = ZonedLayout::new(bounds.surface_count, mapping?, sparing, range, zones);
    match layout {
        Ok(layout) => Some(layout),
        Err(ZoneError {
            zone,
            reason: why,
            faulty_sector: of,
        }) => {
            let problem = Problem::error(format!("zone {zone} cannot be"));
            findings.report_error(problem.at(places[zone].fault_span(of), why));
            None
        }
    }
}

/// Reports whether no zone is long enough for a range of cylinders with spares, and none has slips
/// or defects. In that case the layout has no spares, and a warning says so.
fn is_without_range(keys: &KeyReader<'_>, range: u32, zones: &[TrackZone]) -> bool {
    let is_less = |zone: &TrackZone| {
        let cylinders = u64::from(zone.last_cylinder) + 1;
        let is_short = cylinders < u64::from(zone.first_cylinder) + u64::from(range);
        is_short && zone.slips.is_empty() && zone.defects.is_empty()
    };
    let has_none = zones.iter().all(is_less);
    if let (true, Some(entry)) = (has_none, keys.find("Rangesize for sparing")) {
        let title = "no zone has a complete range of cylinders for spares";
        let warning = Problem::warning(title).at(&entry.value.span, "the drive has no spares");
        keys.findings.report_warning(warning);
    }
    has_none
}

fn parse_zones(
    keys: &KeyReader<'_>,
    bounds: &DriveBounds,
    sparing: Option<SparingScheme>,
) -> Option<(Vec<ZoneSpans>, Vec<TrackZone>)> {
    let (entry, values) = keys.read_list("Zones")?;
    if values.is_empty() {
        let problem = Problem::error("the drive has no zones");
        let problem = problem.at(&entry.value.span, "the list is empty");
        keys.findings
            .report_error(problem.help("list a `dm_layout_g1_zone { .. }` for each zone"));
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
                keys.findings.report_error(problem.at(&value.span, label));
                return None;
            }
        };
        let parsed = parse_zone(block, bounds, sparing, keys.findings)?;
        places.push(ZoneSpans {
            zone_span: value.span.clone(),
            slips: parsed.slips,
            defects: parsed.defects,
        });
        zones.push(parsed.zone);
    }
    Some((places, zones))
}

struct ZoneSpans {
    zone_span: SourceSpan,
    slips: SpannedNumbers,
    defects: SpannedNumbers,
}

impl ZoneSpans {
    /// Returns the place of a wrong slip or defect, or of the zone.
    fn fault_span(&self, faulty: Option<FaultySector>) -> &SourceSpan {
        let place = match faulty {
            None => None,
            Some(FaultySector::SlippedSector(slip)) => {
                let found = self.slips.iter().rfind(|(number, _)| *number == slip);
                found.map(|(_, place)| place)
            }
            Some(FaultySector::RemappedDefect(bad, instead)) => {
                let mut pairs = self.defects.chunks_exact(2);
                let found = pairs.rfind(|pair| (pair[0].0, pair[1].0) == (bad, instead));
                found.map(|pair| &pair[0].1)
            }
        };
        place.unwrap_or(&self.zone_span)
    }
}

/// Zone, with the spans of its slips and defects.
struct ParsedZone {
    zone: TrackZone,
    slips: SpannedNumbers,
    defects: SpannedNumbers,
}

fn parse_zone(
    block: &ParameterBlock,
    bounds: &DriveBounds,
    sparing: Option<SparingScheme>,
    findings: &ImportFindings,
) -> Option<ParsedZone> {
    let keys = KeyReader::new(block, findings);
    let most = u64::from(ZonedLayout::CYLINDERS_MAX) - 1;
    let first_cylinder = keys.read_count_at_most("First cylinder number", most);
    let last_cylinder = keys.read_count_at_most("Last cylinder number", most);
    let sectors = u64::from(ZonedLayout::TRACK_SECTORS_MAX);
    let sectors = keys.read_count_at_most("Blocks per track", sectors);
    let dead_sectors = keys.read_count("Empty space at zone front");
    let spares = keys.read_count("Number of spares");
    if let Some(last) = last_cylinder {
        check_last_cylinder(&keys, bounds, last);
    }
    let slips = parse_numbers(&keys, "slips");
    let defects = parse_numbers(&keys, "defects");
    if sparing == Some(SparingScheme::None) {
        let why = "sparing scheme 0 has no spares, slips or defects";
        keys.ignore_keys(&["Number of spares", "slips", "defects"], why);
    }
    let skews =
        TrackSkews::parse_skews(&keys, "Offset of first block", sectors.unwrap_or(1) as u32);
    let (defects, skews, mut slips) = (defects?, skews?, slips?);
    if !defects.len().is_multiple_of(2) {
        let entry = keys.require("defects")?;
        keys.reject_value(entry, "pairs: a defect and its replacement");
        return None;
    }
    if let Some(late) = slips.windows(2).find(|pair| pair[0].0 > pair[1].0) {
        let warning = Problem::warning("the slips of a zone do not ascend");
        findings.report_warning(warning.at(&late[1].1, "they are sorted"));
        slips.sort_by_key(|(slip, _)| *slip);
    }
    let zone = TrackZone {
        first_cylinder: first_cylinder? as u32,
        last_cylinder: last_cylinder? as u32,
        sectors_per_track: sectors? as u32,
        start_angle: skews.start_angle,
        track_skew: skews.track_skew,
        cylinder_skew: skews.cylinder_skew,
        unused_sectors: dead_sectors?.min(SECTORS_MAX),
        spare_count: spares?.min(SECTORS_MAX),
        slips: slips.iter().map(|(slip, _)| *slip).collect(),
        defects: defects
            .chunks_exact(2)
            .map(|pair| (pair[0].0, pair[1].0))
            .collect(),
    };
    Some(ParsedZone {
        zone,
        slips,
        defects,
    })
}

/// Warns if zones extend beyond the cylinders of the drive, which DiskSim accepts. Files extracted
/// from drives often have one cylinder too few, because they count from 0.
fn check_last_cylinder(keys: &KeyReader<'_>, bounds: &DriveBounds, last: u64) {
    let cylinders = u64::from(bounds.cylinder_count);
    let Some(entry) = keys.find("Last cylinder number") else {
        return;
    };
    if last >= cylinders {
        let more = match last - cylinders {
            0 => "one cylinder more".to_owned(),
            more => format!("{} cylinders more", more + 1),
        };
        let title = format!("the zones have {more} than the drive's {cylinders}");
        let warning = Problem::warning(title).at(&entry.value.span, "the zone is used");
        keys.findings.report_warning(warning);
    }
}

type SpannedNumbers = Vec<(u64, SourceSpan)>;

fn parse_numbers(keys: &KeyReader<'_>, key: &str) -> Option<SpannedNumbers> {
    let (_, values) = keys.read_optional_list(key)?;
    let mut numbers = Vec::with_capacity(values.len());
    for value in values {
        match to_unsigned(value) {
            Some(number) => numbers.push((number, value.span.clone())),
            None => {
                let title = format!("{} is not a sector", value.describe());
                let problem = Problem::error(title).at(&value.span, "a whole number");
                keys.findings.report_error(problem);
                return None;
            }
        }
    }
    Some(numbers)
}
