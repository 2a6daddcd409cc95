//! DiskSim block `dm_disk`: geometry and mechanics of a drive.

mod g1;
mod g2;
mod g4;

use diskperf_diagnostics::Problem;

use crate::files::SpecificationFiles;
use crate::keys::{ImportFindings, KeyReader};
use crate::layout::{BlockLayout, ZonedLayout};
use crate::mechanics::{self, Mechanics};
use crate::text::{ParameterBlock, shorten_text};

/// Geometry and mechanics of a drive as in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveModel {
    /// Name of the drive in the file.
    pub name: String,
    /// Number of blocks stated in the file (`Block count`). The sum of the layout takes precedence.
    pub declared_block_count: u64,
    /// Number of cylinders: the larger of `Number of cylinders` and the cylinders of the zones.
    pub cylinder_count: u32,
    /// Number of surfaces (`Number of data surfaces`).
    pub surface_count: u32,
    /// Mapping of blocks to physical locations.
    pub layout: BlockLayout,
    /// Mechanics: actuator and spindle.
    pub mechanics: Mechanics,
}

struct DriveBounds {
    cylinder_count: u32,
    surface_count: u32,
}

pub(crate) fn parse_model(
    block: &ParameterBlock,
    files: &SpecificationFiles,
    findings: &ImportFindings,
) -> Option<DriveModel> {
    if block.kind.as_str() != "dm_disk" {
        let kind = shorten_text(block.kind.as_str());
        let problem = Problem::error(format!("`{kind}` is not a drive model"));
        findings.report_error(problem.at(&block.kind, "expected `dm_disk`"));
        return None;
    }
    let keys = KeyReader::new(block, findings);
    let most = u64::from(ZonedLayout::CYLINDERS_MAX);
    let declared_blocks = keys.read_count("Block count");
    let cylinders = keys.read_limited_count("Number of cylinders", most);
    let surfaces = u64::from(ZonedLayout::SURFACES_MAX);
    let surfaces = keys.read_count_at_most("Number of data surfaces", surfaces);
    let mechanics = keys
        .read_block("Mechanical Model", "")
        .and_then(|(entry, block)| {
            let kind = block.kind.as_str();
            if kind != "dm_mech_g1" {
                let label = "only `dm_mech_g1` is supported";
                keys.reject_value(entry, label);
                return None;
            }
            mechanics::parse_mechanics(block, files, findings)
        });
    let bounds = cylinders
        .zip(surfaces)
        .map(|(cylinders, surfaces)| DriveBounds {
            cylinder_count: cylinders as u32,
            surface_count: surfaces as u32,
        });
    let layout = keys.read_block("Layout Model", "").zip(bounds.as_ref());
    let layout = layout.and_then(|((entry, block), bounds)| match block.kind.as_str() {
        "dm_layout_g1" => g1::parse_zoned_layout(block, bounds, findings).map(BlockLayout::Zoned),
        "dm_layout_g2" => {
            g2::parse_mapped_layout(block, bounds, files, findings).map(BlockLayout::Mapped)
        }
        "dm_layout_g4" => g4::parse_indexed_layout(block, findings).map(BlockLayout::Indexed),
        "dm_layout_g3" => {
            keys.reject_value(
                entry,
                "`dm_layout_g3` is not supported, because no public program has it",
            );
            None
        }
        _ => {
            keys.reject_value(
                entry,
                "of `dm_layout_g1`, `dm_layout_g2` and `dm_layout_g4`, none",
            );
            None
        }
    });
    let (bounds, layout) = (bounds?, layout?);
    let cylinders = match &layout {
        BlockLayout::Zoned(layout) => last_cylinder(layout).map_or(0, |last| last + 1),
        BlockLayout::Mapped(_) | BlockLayout::Indexed(_) => 0,
    };
    let model = DriveModel {
        name: block
            .name
            .as_ref()
            .map_or("", |name| name.as_str())
            .to_owned(),
        declared_block_count: declared_blocks?,
        cylinder_count: bounds.cylinder_count.max(cylinders),
        surface_count: bounds.surface_count,
        layout,
        mechanics: mechanics?,
    };
    check_block_count(&keys, &model);
    Some(model)
}

fn last_cylinder(layout: &ZonedLayout) -> Option<u32> {
    layout.zones().last().map(|zone| zone.last_cylinder)
}

fn check_block_count(keys: &KeyReader<'_>, model: &DriveModel) {
    let blocks = model.layout.block_count();
    let Some(entry) = keys.find("Block count") else {
        return;
    };
    if blocks == 0 {
        let problem = Problem::error("the layout has no blocks");
        let label = "the zones contain none of these blocks";
        keys.findings
            .report_error(problem.at(&entry.value.span, label));
    } else if blocks != model.declared_block_count {
        let title = format!("the layout has {blocks} blocks, which diskperf uses");
        let warning = Problem::warning(title).at(&entry.value.span, "instead of this number");
        keys.findings.report_warning(warning);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkewUnits {
    Sectors,
    Revolutions,
}

impl SkewUnits {
    fn from_block(keys: &KeyReader<'_>) -> SkewUnits {
        let Some(entry) = keys.find("Skew units") else {
            return SkewUnits::Sectors;
        };
        match entry.value.span.as_str() {
            "sectors" => SkewUnits::Sectors,
            "revolutions" => SkewUnits::Revolutions,
            _ => {
                keys.reject_value(entry, "neither `sectors` nor `revolutions`");
                SkewUnits::Sectors
            }
        }
    }

    /// Converts an angle to revolutions. Sectors are truncated to whole ones, as in DiskSim.
    fn to_revolutions(self, value: f64, sectors_per_track: u32) -> f64 {
        let turns = match self {
            SkewUnits::Sectors => value.trunc() / f64::from(sectors_per_track),
            SkewUnits::Revolutions => value,
        };
        // An angle and any whole number of turns are the same.
        match turns.abs() > REVOLUTIONS_MAX {
            true => turns.rem_euclid(1.0),
            false => turns,
        }
    }
}

/// Largest angle kept as written, in revolutions. Larger angles are reduced to one revolution.
const REVOLUTIONS_MAX: f64 = 1e6;

struct TrackSkews {
    start_angle: f64,
    track_skew: f64,
    cylinder_skew: f64,
}

impl TrackSkews {
    fn parse_skews(
        keys: &KeyReader<'_>,
        offset: &str,
        sectors_per_track: u32,
    ) -> Option<TrackSkews> {
        let units = SkewUnits::from_block(keys);
        let skews = [offset, "Skew for track switch", "Skew for cylinder switch"];
        if keys.is_after_any("Skew units", &skews)
            && let Some(entry) = keys.find("Skew units")
        {
            let title = "`Skew units` follows skews, which DiskSim therefore reads as sectors";
            let label = "diskperf uses this unit for all skews; write it before them";
            let warning = Problem::warning(title).at(&entry.value.span, label);
            keys.findings.report_warning(warning);
        }
        let turns = |value| units.to_revolutions(value, sectors_per_track);
        // DiskSim does without the others.
        let angle = |key: &str| keys.read_optional_number(key).map(turns);
        let offset = match offset {
            "Offset of first block" => keys.read_number(offset).map(turns),
            offset => angle(offset),
        };
        let track = angle("Skew for track switch");
        let cylinder = angle("Skew for cylinder switch");
        Some(TrackSkews {
            start_angle: offset?,
            track_skew: track?,
            cylinder_skew: cylinder?,
        })
    }
}
