//! DiskSim block `dm_disk`: geometry and mechanics of a drive.

mod g1;
mod g2;
mod g4;

use diskperf_diagnostics::Problem;

use crate::files::Files;
use crate::keys::{Findings, Keys};
use crate::layout::{Layout, ZonedLayout};
use crate::mechanics::{self, Mechanics};
use crate::text::{Block, excerpt};

/// Geometry and mechanics of a drive as in the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name of the drive in the file.
    pub name: String,
    /// Number of blocks stated in the file (`Block count`). The sum of the layout takes precedence.
    pub declared_blocks: u64,
    /// Number of cylinders: the larger of `Number of cylinders` and the cylinders of the zones.
    pub cylinders: u32,
    /// Number of surfaces (`Number of data surfaces`).
    pub surfaces: u32,
    /// Mapping of blocks to physical locations.
    pub layout: Layout,
    /// Mechanics: actuator and spindle.
    pub mechanics: Mechanics,
}

struct DriveBounds {
    cylinders: u32,
    surfaces: u32,
}

pub(crate) fn read(block: &Block, files: &Files, findings: &Findings) -> Option<Model> {
    if block.kind.as_str() != "dm_disk" {
        let kind = excerpt(block.kind.as_str());
        let problem = Problem::error(format!("`{kind}` is not a drive model"));
        findings.error(problem.at(&block.kind, "expected `dm_disk`"));
        return None;
    }
    let keys = Keys::new(block, findings);
    let most = u64::from(ZonedLayout::CYLINDERS_MAX);
    let declared_blocks = keys.count("Block count");
    let cylinders = keys.count_limited("Number of cylinders", most);
    let surfaces = u64::from(ZonedLayout::SURFACES_MAX);
    let surfaces = keys.count_at_most("Number of data surfaces", surfaces);
    let mechanics = keys
        .block("Mechanical Model", "")
        .and_then(|(entry, block)| {
            let kind = block.kind.as_str();
            if kind != "dm_mech_g1" {
                let label = "only `dm_mech_g1` is supported";
                keys.refuse(entry, label);
                return None;
            }
            mechanics::read(block, files, findings)
        });
    let bounds = cylinders
        .zip(surfaces)
        .map(|(cylinders, surfaces)| DriveBounds {
            cylinders: cylinders as u32,
            surfaces: surfaces as u32,
        });
    let layout = keys.block("Layout Model", "").zip(bounds.as_ref());
    let layout = layout.and_then(|((entry, block), bounds)| match block.kind.as_str() {
        "dm_layout_g1" => g1::read(block, bounds, findings).map(Layout::Zoned),
        "dm_layout_g2" => g2::read(block, bounds, files, findings).map(Layout::Mapped),
        "dm_layout_g4" => g4::read(block, findings).map(Layout::Indexed),
        "dm_layout_g3" => {
            keys.refuse(
                entry,
                "`dm_layout_g3` is not supported, because no public program has it",
            );
            None
        }
        _ => {
            keys.refuse(
                entry,
                "of `dm_layout_g1`, `dm_layout_g2` and `dm_layout_g4`, none",
            );
            None
        }
    });
    let (bounds, layout) = (bounds?, layout?);
    let cylinders = match &layout {
        Layout::Zoned(layout) => last_cylinder(layout).map_or(0, |last| last + 1),
        Layout::Mapped(_) | Layout::Indexed(_) => 0,
    };
    let model = Model {
        name: block
            .name
            .as_ref()
            .map_or("", |name| name.as_str())
            .to_owned(),
        declared_blocks: declared_blocks?,
        cylinders: bounds.cylinders.max(cylinders),
        surfaces: bounds.surfaces,
        layout,
        mechanics: mechanics?,
    };
    check_count(&keys, &model);
    Some(model)
}

fn last_cylinder(layout: &ZonedLayout) -> Option<u32> {
    layout.zones().last().map(|zone| zone.last_cylinder)
}

fn check_count(keys: &Keys<'_>, model: &Model) {
    let blocks = model.layout.blocks();
    let Some(entry) = keys.find("Block count") else {
        return;
    };
    if blocks == 0 {
        let problem = Problem::error("the layout has no blocks");
        let label = "the zones contain none of these blocks";
        keys.findings.error(problem.at(&entry.value.place, label));
    } else if blocks != model.declared_blocks {
        let title = format!("the layout has {blocks} blocks, which diskperf uses");
        let warning = Problem::warning(title).at(&entry.value.place, "instead of this number");
        keys.findings.warning(warning);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkewUnits {
    Sectors,
    Revolutions,
}

impl SkewUnits {
    fn read(keys: &Keys<'_>) -> SkewUnits {
        let Some(entry) = keys.find("Skew units") else {
            return SkewUnits::Sectors;
        };
        match entry.value.place.as_str() {
            "sectors" => SkewUnits::Sectors,
            "revolutions" => SkewUnits::Revolutions,
            _ => {
                keys.refuse(entry, "neither `sectors` nor `revolutions`");
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

struct Skews {
    offset: f64,
    track: f64,
    cylinder: f64,
}

impl Skews {
    fn read(keys: &Keys<'_>, offset: &str, sectors_per_track: u32) -> Option<Skews> {
        let units = SkewUnits::read(keys);
        let skews = [offset, "Skew for track switch", "Skew for cylinder switch"];
        if keys.comes_after_any("Skew units", &skews)
            && let Some(entry) = keys.find("Skew units")
        {
            let title = "`Skew units` follows skews, which DiskSim therefore reads as sectors";
            let label = "diskperf uses this unit for all skews; write it before them";
            let warning = Problem::warning(title).at(&entry.value.place, label);
            keys.findings.warning(warning);
        }
        let turns = |value| units.to_revolutions(value, sectors_per_track);
        // DiskSim does without the others.
        let angle = |key: &str| keys.optional_real(key).map(turns);
        let offset = match offset {
            "Offset of first block" => keys.real(offset).map(turns),
            offset => angle(offset),
        };
        let track = angle("Skew for track switch");
        let cylinder = angle("Skew for cylinder switch");
        Some(Skews {
            offset: offset?,
            track: track?,
            cylinder: cylinder?,
        })
    }
}
