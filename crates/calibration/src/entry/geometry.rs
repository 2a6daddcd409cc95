//! Geometry and seek times of a catalogue entry.

use super::{EntryWriter, ZONE_COLUMNS};
use diskperf_diskspecs::layout::{
    BlockLayout, CylinderMapping, PhysicalSector, SparingScheme, TrackZone, ZonedLayout,
};
use diskperf_diskspecs::{SeekCurve, SpecifiedDrive};

/// Size of a DiskSim block, in bytes.
pub const BLOCK_BYTES: u64 = 512;
const EXTENTS_MAX: usize = 1_000_000;

/// Writes geometry and mechanics, and notes differences from the files. Returns the number of zones
/// or extents.
pub(super) fn write_geometry(
    entry: &mut EntryWriter,
    drive: &SpecifiedDrive,
    differs: &mut Vec<String>,
) -> Result<usize, String> {
    let model = &drive.model;
    entry.write_integer("sector_bytes", BLOCK_BYTES);
    entry.write_integer("medium_sector_bytes", BLOCK_BYTES);
    entry.write_integer("heads", u64::from(model.surface_count));
    let zones = match &model.layout {
        BlockLayout::Zoned(layout) => {
            entry.write_integer("cylinders", u64::from(model.cylinder_count));
            write_zones(entry, layout, &zone_rows(layout));
            layout.zones().len()
        }
        BlockLayout::Mapped(_) | BlockLayout::Indexed(_) => {
            let rows = extent_rows(&model.layout)?;
            // What replaces a bad sector may lie behind all others.
            let last = rows.iter().map(|row| row[2] as u64 + 1).max();
            let stated = u64::from(model.cylinder_count);
            let cylinders = stated.max(last.unwrap_or(1));
            if cylinders > stated {
                differs.push(format!(
                    "Number of cylinders: the files say {stated}, and have sectors on cylinder {}; the modelled drive has {cylinders}",
                    cylinders - 1
                ));
            }
            entry.write_integer("cylinders", cylinders);
            entry.write_rows(
                "extent_table",
                "first sector, sectors, cylinder, head, first slot, sectors per track, start in revolutions",
                &rows,
            );
            rows.len()
        }
    };
    entry.blank_line();
    write_seek(entry, &model.mechanics.seek_curve);
    entry.write_number("head_switch_ms", model.mechanics.head_switch_ms);
    entry.write_number("write_settle_ms", model.mechanics.write_settle_ms);
    entry.write_number("spindle_rpm", model.mechanics.rotation_rpm);
    Ok(zones)
}

fn zone_rows(layout: &ZonedLayout) -> Vec<Vec<f64>> {
    let row = |zone: &TrackZone| {
        vec![
            f64::from(zone.first_cylinder),
            f64::from(zone.last_cylinder),
            f64::from(zone.sectors_per_track),
            zone.start_angle,
            zone.track_skew,
            zone.cylinder_skew,
            0.0,
            zone.unused_sectors as f64,
            spares_per_unit(layout, zone),
        ]
    };
    layout.zones().iter().map(row).collect()
}

/// Returns the spare sectors of a zone; a layout without a sparing scheme has none.
fn spares_per_unit(layout: &ZonedLayout, zone: &TrackZone) -> f64 {
    match layout.sparing() {
        SparingScheme::None => 0.0,
        _ => zone.spare_count as f64,
    }
}

/// Writes the zones with their spares and defects.
fn write_zones(entry: &mut EntryWriter, layout: &ZonedLayout, rows: &[Vec<f64>]) {
    entry.write_word(
        "track_order",
        match layout.mapping() {
            CylinderMapping::Ascending => "cylinders",
            CylinderMapping::SerpentineByZone => "serpentine",
            CylinderMapping::SerpentineByCylinder => "serpentine_by_cylinder",
        },
    );
    entry.write_word("sparing", sparing_name(layout.sparing()));
    if layout.sparing() == SparingScheme::RangeEnd {
        let cylinders = u64::from(layout.range_cylinders());
        entry.write_integer("sparing_range_cylinders", cylinders);
    }
    entry.write_rows("zone_table", ZONE_COLUMNS, rows);
    if layout.sparing() == SparingScheme::None {
        return;
    }
    let numbered = || layout.zones().iter().enumerate();
    let slips: Vec<Vec<f64>> = numbered()
        .flat_map(|(number, zone)| zone.slips.iter().map(move |slip| (number, *slip)))
        .map(|(number, slip)| vec![number as f64, slip as f64])
        .collect();
    entry.write_rows("slip_table", "zone, slip", &slips);
    let defects: Vec<Vec<f64>> = numbered()
        .flat_map(|(number, zone)| zone.defects.iter().map(move |pair| (number, *pair)))
        .map(|(number, (bad, other))| vec![number as f64, bad as f64, other as f64])
        .collect();
    entry.write_rows("defect_table", "zone, defect, replacement", &defects);
}

fn sparing_name(of: SparingScheme) -> &'static str {
    match of {
        SparingScheme::None => "none",
        SparingScheme::Tracks => "tracks",
        SparingScheme::CylinderEnd => "cylinder_end",
        SparingScheme::TrackEnd => "track_end",
        SparingScheme::CylinderEndSliding => "cylinder_end_slipping",
        SparingScheme::CylinderFront => "cylinder_front",
        SparingScheme::CylinderFrontSliding => "cylinder_front_slipping",
        SparingScheme::DiskEnd => "slipping",
        SparingScheme::RangeEnd => "range",
        SparingScheme::ZoneEnd => "zone",
        SparingScheme::ZoneEndSliding => "zone_slipping",
    }
}

/// Returns the extents of neighbouring sectors of a layout without zones.
fn extent_rows(layout: &BlockLayout) -> Result<Vec<Vec<f64>>, String> {
    let (blocks, mut rows, mut block) = (layout.block_count(), Vec::new(), 0);
    while block < blocks {
        let spot = layout.locate_block(block).ok_or("a block has no place")?;
        let run = run_length(layout, block, &spot);
        if rows.len() == EXTENTS_MAX {
            return Err(format!(
                "its layout has more than {EXTENTS_MAX} extents, which exceeds the limit of a catalogue entry"
            ));
        }
        rows.push(vec![
            block as f64,
            run as f64,
            f64::from(spot.cylinder),
            f64::from(spot.head),
            f64::from(spot.sector),
            f64::from(spot.sectors_per_track),
            spot.angle,
        ]);
        block += run;
    }
    Ok(rows)
}

/// Returns the number of contiguous blocks on one track from this block on. It checks block by
/// block, because any block in between may be relocated.
fn run_length(layout: &BlockLayout, block: u64, first: &PhysicalSector) -> u64 {
    let most = u64::from(first.sectors_per_track - first.sector);
    let goes_on = |blocks: &u64| {
        layout.locate_block(block + blocks).is_some_and(|spot| {
            (spot.cylinder, spot.head) == (first.cylinder, first.head)
                && u64::from(spot.sector) == u64::from(first.sector) + blocks
        })
    };
    1 + (1..most).take_while(goes_on).count() as u64
}

fn write_seek(entry: &mut EntryWriter, seek: &SeekCurve) {
    match seek {
        SeekCurve::Constant { time_ms } => entry.write_number("seek_constant_ms", *time_ms),
        SeekCurve::ThreePoints {
            single_ms,
            average_ms,
            full_ms,
        } => {
            entry.write_number("seek_minimum_ms", *single_ms);
            entry.write_number("seek_average_ms", *average_ms);
            entry.write_number("seek_maximum_ms", *full_ms);
        }
        SeekCurve::HplFormula {
            values,
            first_ten_ms: None,
        } => {
            let columns = "V1 to V6 of Hewlett-Packard's equation";
            entry.write_rows("seek_hpl", columns, &[values.to_vec()]);
        }
        SeekCurve::HplFormula {
            values: [v1, ..],
            first_ten_ms: Some(_),
        } => {
            // The root bends between all distances up to where the line begins.
            let last = (*v1).clamp(11.0, 100_000.0) as u32 + 1;
            let distances = (1..=last).chain([last + 1]);
            let rows: Vec<Vec<f64>> = distances
                .map(|distance| vec![f64::from(distance), seek.seek_ms(distance, u32::MAX)])
                .collect();
            entry.write_rows("seek_table", "cylinders, ms", &rows);
        }
        SeekCurve::Table(table) => {
            let points = table.points().iter();
            let rows: Vec<Vec<f64>> = points
                .map(|(cylinders, ms)| vec![f64::from(*cylinders), *ms])
                .collect();
            entry.write_rows("seek_table", "cylinders, ms", &rows);
        }
    }
}
