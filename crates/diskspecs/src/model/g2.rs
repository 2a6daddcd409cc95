//! Reader of the layout `dm_layout_g2`: zones, and a map of extents in a separate file.

use diskperf_diagnostics::{Problem, SourceSpan, Text};
use std::sync::Arc;

use super::{DriveBounds, TrackSkews};
use crate::files::SpecificationFiles;
use crate::keys::{ImportFindings, KeyReader};
use crate::layout::{MappedExtent, MappedLayout, MappedTrackZone, ZonedLayout};
use crate::mechanics::read_named_file;
use crate::text::{ParameterBlock, ValueKind, shorten_text};

pub(super) fn parse_mapped_layout(
    block: &ParameterBlock,
    bounds: &DriveBounds,
    files: &SpecificationFiles,
    findings: &ImportFindings,
) -> Option<MappedLayout> {
    let keys = KeyReader::new(block, findings);
    let map = keys.read_word("Layout Map File");
    let map = map.and_then(|(entry, name)| read_named_file(&keys, entry, name, files));
    let zones = keys.read_list("Zones");
    let zones: Option<Vec<MappedTrackZone>> = zones.and_then(|(_, values)| {
        let zones = values.iter().map(|value| match &value.kind {
            ValueKind::Block(block) if block.kind.as_str() == "dm_layout_g2_zone" => {
                parse_zone(block, findings)
            }
            _ => {
                let title = format!("{} is not a zone", value.describe());
                let label = "expected `dm_layout_g2_zone { .. }`";
                findings.report_error(Problem::error(title).at(&value.span, label));
                None
            }
        });
        zones.collect()
    });
    let (path, content) = map?;
    let text = Arc::new(Text::new(path, content));
    let (extents, places) = match parse_extents(&text) {
        Ok(found) => found,
        Err(problem) => {
            findings.report_error(problem);
            return None;
        }
    };
    match MappedLayout::new(bounds.surface_count, zones?, extents) {
        Ok(layout) => Some(layout),
        Err((extent, why)) => {
            let place = extent.map_or(&block.kind, |extent| &places[extent]);
            findings.report_error(Problem::error("the map is invalid").at(place, why));
            None
        }
    }
}

fn parse_zone(block: &ParameterBlock, findings: &ImportFindings) -> Option<MappedTrackZone> {
    let keys = KeyReader::new(block, findings);
    let most = u64::from(ZonedLayout::CYLINDERS_MAX) - 1;
    let first_cylinder = keys.read_count_at_most("First cylinder number", most);
    let last_cylinder = keys.read_count_at_most("Last cylinder number", most);
    let sectors = u64::from(ZonedLayout::TRACK_SECTORS_MAX);
    let sectors = keys.read_count_at_most("Blocks per track", sectors);
    let skews = TrackSkews::parse_skews(&keys, "Zone Skew", sectors.unwrap_or(1) as u32);
    let skews = skews?;
    Some(MappedTrackZone {
        first_cylinder: first_cylinder? as u32,
        last_cylinder: last_cylinder? as u32,
        sectors_per_track: sectors? as u32,
        start_angle: skews.start_angle,
        track_skew: skews.track_skew,
        cylinder_skew: skews.cylinder_skew,
    })
}

/// Reads a map of extents, each with its place: two lines without meaning, one with the drive's
/// size, then `lbn L --> cyl C, head H, sect S, seqcnt K` for K + 1 blocks, and `Defect at ..`.
fn parse_extents(text: &Arc<Text>) -> Result<(Vec<MappedExtent>, Vec<SourceSpan>), Problem> {
    let (mut extents, mut places) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (number, line) in text.content().split_inclusive('\n').enumerate() {
        let place = SourceSpan::new(text, start..start + line.trim_end().len());
        start += line.len();
        let line = line.trim();
        if number < 3 || line.is_empty() || line.starts_with("Defect at") {
            continue;
        }
        let Some(extent) = parse_extent(line) else {
            let title = format!("`{}` is not an extent", shorten_text(line));
            let label = "not `lbn L --> cyl C, head H, sect S, seqcnt K`";
            return Err(Problem::error(title).at(&place, label));
        };
        extents.push(extent);
        places.push(place);
    }
    match extents.is_empty() {
        true => {
            Err(Problem::error("the map has no extents")
                .at(&SourceSpan::start(text), "in this file"))
        }
        false => Ok((extents, places)),
    }
}

fn parse_extent(line: &str) -> Option<MappedExtent> {
    let (block, place) = line.split_once("-->")?;
    let first_block = block.trim().strip_prefix("lbn")?.trim().parse().ok();
    let first_block = first_block.filter(|&block: &u64| block < 1 << 60)?;
    let mut fields = place.split(',').map(str::trim);
    let mut number = |name: &str| -> Option<u32> {
        let field = fields.next()?.strip_prefix(name)?.trim().parse().ok()?;
        (field < ZonedLayout::CYLINDERS_MAX).then_some(field)
    };
    let (cylinder, head) = (number("cyl")?, number("head")?);
    let (sector, more) = (number("sect")?, number("seqcnt")?);
    fields.next().is_none().then_some(MappedExtent {
        first_block,
        block_count: more + 1,
        cylinder,
        head,
        sector,
    })
}
