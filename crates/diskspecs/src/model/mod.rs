//! `dm_disk`: a drive's geometry and mechanics.

mod g1;
mod g2;
mod g4;

use diskperf_diagnostics::Problem;

use crate::files::Files;
use crate::keys::{Findings, Keys};
use crate::layout::{Layout, ZonedLayout};
use crate::mechanics::{self, Mechanics};
use crate::text::{Block, excerpt};

/// A drive's geometry and mechanics, as the file has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// What the file calls it.
    pub name: String,
    /// `Block count`; the layout's own sum is what holds.
    pub stated_blocks: u64,
    /// `Number of cylinders`, or those of the zones where these have more.
    pub cylinders: u32,
    /// `Number of data surfaces`.
    pub surfaces: u32,
    /// Where its blocks lie.
    pub layout: Layout,
    /// The arm and the spindle.
    pub mechanics: Mechanics,
}

/// What a layout must fit into.
struct Bounds {
    cylinders: u32,
    surfaces: u32,
}

pub(crate) fn read(block: &Block, files: &Files, findings: &Findings) -> Option<Model> {
    if block.kind.written() != "dm_disk" {
        let kind = excerpt(block.kind.written());
        let problem = Problem::error(format!("`{kind}` is not a model of a drive"));
        findings.error(problem.at(&block.kind, "here belongs `dm_disk`"));
        return None;
    }
    let keys = Keys::new(block, findings);
    let most = u64::from(ZonedLayout::MOST_CYLINDERS);
    let stated_blocks = keys.count("Block count");
    let cylinders = keys.count_limited("Number of cylinders", most);
    let surfaces = u64::from(ZonedLayout::MOST_SURFACES);
    let surfaces = keys.count_up_to("Number of data surfaces", surfaces);
    let mechanics = keys
        .block("Mechanical Model", "")
        .and_then(|(entry, block)| {
            let kind = block.kind.written();
            if kind != "dm_mech_g1" {
                let label = "only `dm_mech_g1` is known";
                keys.refuse(entry, label);
                return None;
            }
            mechanics::read(block, files, findings)
        });
    let bounds = cylinders.zip(surfaces).map(|(cylinders, surfaces)| Bounds {
        cylinders: cylinders as u32,
        surfaces: surfaces as u32,
    });
    let layout = keys.block("Layout Model", "").zip(bounds.as_ref());
    let layout = layout.and_then(|((entry, block), bounds)| match block.kind.written() {
        "dm_layout_g1" => g1::read(block, bounds, findings).map(Layout::Zoned),
        "dm_layout_g2" => g2::read(block, bounds, files, findings).map(Layout::Mapped),
        "dm_layout_g4" => g4::read(block, findings).map(Layout::Indexed),
        "dm_layout_g3" => {
            keys.refuse(
                entry,
                "no public program has `dm_layout_g3`, so nobody can read it",
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
            .map_or("", |name| name.written())
            .to_owned(),
        stated_blocks: stated_blocks?,
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
        let problem = Problem::error("the layout holds no block");
        let label = "the zones leave nothing of this";
        keys.findings.error(problem.at(&entry.value.place, label));
    } else if blocks != model.stated_blocks {
        let title = format!("the layout has {blocks} blocks, which is what holds");
        let warning = Problem::warning(title).at(&entry.value.place, "and not this");
        keys.findings.warning(warning);
    }
}

/// How a zone's angles are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkewUnits {
    Sectors,
    Revolutions,
}

impl SkewUnits {
    /// `Skew units` of a zone.
    fn read(keys: &Keys<'_>) -> SkewUnits {
        let Some(entry) = keys.find("Skew units") else {
            return SkewUnits::Sectors;
        };
        match entry.value.place.written() {
            "sectors" => SkewUnits::Sectors,
            "revolutions" => SkewUnits::Revolutions,
            _ => {
                keys.refuse(entry, "neither `sectors` nor `revolutions`");
                SkewUnits::Sectors
            }
        }
    }

    /// In revolutions; sectors are cut to whole ones, as DiskSim does.
    fn turns(self, value: f64, sectors_per_track: u32) -> f64 {
        let turns = match self {
            SkewUnits::Sectors => value.trunc() / f64::from(sectors_per_track),
            SkewUnits::Revolutions => value,
        };
        // An angle and any whole number of turns are the same.
        match turns.abs() > TURNS_MAX {
            true => turns.rem_euclid(1.0),
            false => turns,
        }
    }
}

/// Turns that an angle keeps as the file has it.
const TURNS_MAX: f64 = 1e6;

/// The skews of a zone, in revolutions.
struct Skews {
    offset: f64,
    track: f64,
    cylinder: f64,
}

impl Skews {
    fn read(keys: &Keys<'_>, offset: &str, sectors_per_track: u32) -> Option<Skews> {
        let units = SkewUnits::read(keys);
        let skews = [offset, "Skew for track switch", "Skew for cylinder switch"];
        if keys.stands_behind("Skew units", &skews)
            && let Some(entry) = keys.find("Skew units")
        {
            let title = "`Skew units` stands behind skews, which DiskSim reads as sectors";
            let label = "this unit is taken for all skews: write it before them";
            let warning = Problem::warning(title).at(&entry.value.place, label);
            keys.findings.warning(warning);
        }
        let turns = |value| units.turns(value, sectors_per_track);
        // DiskSim does without the others.
        let angle = |key: &str| keys.real_if_there(key).map(turns);
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
