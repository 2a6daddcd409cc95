//! Reader of measured disks, as `diskperf import` writes them: zones or extents, skews and defects,
//! and tables of seek times.

use super::TIME_MS_MAX;
use crate::disk::layout::{
    CYLINDERS_MAX, ExtentSpecification, LayoutSpecification, SECTORS_PER_TRACK_MAX, SURFACES_MAX,
    Sparing, TrackOrder, ZoneSpecification,
};
use crate::disk::seek::SeekSpecification;
use diskperf_catalogue::Reader;
use std::ops::RangeInclusive;

/// Key of the table of zones, which replaces data-sheet values.
pub(super) const ZONE_TABLE_KEY: &str = "zone_table";
pub(super) const EXTENT_TABLE_KEY: &str = "extent_table";

pub(super) const WRITE_SEEK_TABLE_KEY: &str = "write_seek_table";

pub(super) fn has_measured_layout(reader: &Reader<'_>) -> bool {
    reader.is_readable(ZONE_TABLE_KEY) || reader.is_readable(EXTENT_TABLE_KEY)
}

type TableColumns = Vec<(&'static str, RangeInclusive<f64>)>;

const CYLINDER_RANGE: RangeInclusive<f64> = 0.0..=(CYLINDERS_MAX - 1) as f64;
const SECTORS_PER_TRACK_RANGE: RangeInclusive<f64> = 1.0..=SECTORS_PER_TRACK_MAX as f64;
const ANGLE_REV_RANGE: RangeInclusive<f64> = -1e6..=1e6;
const SECTOR_RANGE: RangeInclusive<f64> = 0.0..=1e15;

fn list_zone_columns() -> TableColumns {
    vec![
        ("first cylinder", CYLINDER_RANGE),
        ("last cylinder", CYLINDER_RANGE),
        ("sectors per track", SECTORS_PER_TRACK_RANGE),
        ("origin in revolutions", ANGLE_REV_RANGE),
        ("track skew in revolutions", ANGLE_REV_RANGE),
        ("cylinder skew in revolutions", ANGLE_REV_RANGE),
        ("range skew in revolutions", ANGLE_REV_RANGE),
        ("dead sectors", SECTOR_RANGE),
        ("spares", SECTOR_RANGE),
    ]
}

fn list_extent_columns() -> TableColumns {
    vec![
        ("first sector", SECTOR_RANGE),
        ("sectors", SECTORS_PER_TRACK_RANGE),
        ("cylinder", CYLINDER_RANGE),
        ("head", 0.0..=f64::from(SURFACES_MAX - 1)),
        ("first slot", 0.0..=f64::from(SECTORS_PER_TRACK_MAX - 1)),
        ("sectors per track", SECTORS_PER_TRACK_RANGE),
        ("start in revolutions", ANGLE_REV_RANGE),
    ]
}

/// Reads a measured sector layout from an entry of the catalogue.
pub(super) fn read_layout(reader: &mut Reader<'_>) -> LayoutSpecification {
    let heads = 1..=u64::from(SURFACES_MAX);
    let surfaces = reader.integer("heads", heads, "heads, one per recording surface") as u32;
    let zones = reader.rows(
        ZONE_TABLE_KEY,
        &list_zone_columns(),
        "recording zones, from the outermost inward",
    );
    let extents = reader.rows(
        EXTENT_TABLE_KEY,
        &list_extent_columns(),
        "extents of consecutive sectors on a track, in order of their first sector",
    );
    let last = zones.iter().map(|row| row[1]);
    let last = last.chain(extents.iter().map(|row| row[2]));
    let least = last.fold(0.0, f64::max) as u64 + 1;
    let cylinders = reader.optional_integer(
        "cylinders",
        least..=u64::from(CYLINDERS_MAX),
        "cylinders that the arm can reach; those of the table if absent",
    );
    let mut zones: Vec<ZoneSpecification> = zones.iter().map(|row| parse_zone(row)).collect();
    read_defects(reader, &mut zones);
    let layout = LayoutSpecification {
        surface_count: surfaces,
        cylinder_count: cylinders.unwrap_or(least) as u32,
        track_order: read_order(reader),
        sparing: read_sparing(reader),
        zones,
        extents: extents.iter().map(|row| parse_extent(row)).collect(),
        sector_count: reader.optional_integer(
            "medium_sectors",
            1..=1 << 48,
            "sectors that hosts can address; all sectors of the table if absent",
        ),
    };
    match crate::disk::layout::Layout::new(&layout) {
        Ok(_) => layout,
        Err(error) => {
            let key = match layout.extents.is_empty() {
                true => ZONE_TABLE_KEY,
                false => EXTENT_TABLE_KEY,
            };
            reader.fail(key, &error.to_string());
            super::placeholder_layout()
        }
    }
}

fn parse_zone(row: &[f64]) -> ZoneSpecification {
    ZoneSpecification {
        first_cylinder: row[0] as u32,
        last_cylinder: row[1] as u32,
        sectors_per_track: row[2] as u32,
        origin_rev: row[3],
        track_skew_rev: row[4],
        cylinder_skew_rev: row[5],
        range_skew_rev: row[6],
        dead_sectors: row[7] as u64,
        spare_sectors: row[8] as u64,
        ..ZoneSpecification::default()
    }
}

fn parse_extent(row: &[f64]) -> ExtentSpecification {
    ExtentSpecification {
        first_sector: row[0] as u64,
        sector_count: row[1] as u32,
        cylinder: row[2] as u32,
        head: row[3] as u32,
        first_slot: row[4] as u32,
        sectors_per_track: row[5] as u32,
        start_rev: row[6],
    }
}

fn read_defects(reader: &mut Reader<'_>, zones: &mut [ZoneSpecification]) {
    const ZONES_MAX: f64 = 1e6;
    let slips = reader.rows(
        "slip_table",
        &[("zone", 0.0..=ZONES_MAX), ("slip", SECTOR_RANGE)],
        "slipped sectors, or slipped tracks where spares are tracks, each with the number of its zone",
    );
    let defects = reader.rows(
        "defect_table",
        &[
            ("zone", 0.0..=ZONES_MAX),
            ("defect", SECTOR_RANGE),
            ("replacement", SECTOR_RANGE),
        ],
        "defective sectors, or tracks where spares are tracks, each with the number of its zone and its replacement",
    );
    let there = zones.len();
    let lost = |rows: &[Vec<f64>]| rows.iter().any(|row| row[0] as usize >= there);
    for (key, rows) in [("slip_table", &slips), ("defect_table", &defects)] {
        if lost(rows) {
            let allowed = format!("zones from 0 to {}", there.saturating_sub(1));
            reader.fail_with_choices(key, "a row names a zone that does not exist", &allowed);
            return;
        }
    }
    for row in slips {
        zones[row[0] as usize].slipped_sectors.push(row[1] as u64);
    }
    for row in defects {
        let defects = &mut zones[row[0] as usize].remapped_defects;
        defects.push((row[1] as u64, row[2] as u64));
    }
}

fn read_order(reader: &mut Reader<'_>) -> TrackOrder {
    if !reader.is_readable("track_order") {
        return TrackOrder::Cylinders;
    }
    let orders = [
        ("cylinders", TrackOrder::Cylinders),
        ("serpentine", TrackOrder::Serpentine),
        ("serpentine_by_cylinder", TrackOrder::SerpentineByCylinder),
    ];
    reader.choice(
        "track_order",
        &orders,
        "order in which sectors fill the tracks",
    )
}

/// Names of sparing schemes. The scheme `range` needs the number of cylinders in addition.
const SPARING_NAMES: [(&str, Sparing); 11] = [
    ("none", Sparing::None),
    ("tracks", Sparing::Tracks),
    ("cylinder_end", Sparing::CylinderEnd),
    ("track_end", Sparing::TrackEnd),
    ("cylinder_end_slipping", Sparing::CylinderEndSlipping),
    ("cylinder_front", Sparing::CylinderFront),
    ("cylinder_front_slipping", Sparing::CylinderFrontSlipping),
    ("slipping", Sparing::Slipping),
    ("range", Sparing::Range { cylinders: 1 }),
    ("zone", Sparing::Zone),
    ("zone_slipping", Sparing::ZoneSlipping),
];

fn read_sparing(reader: &mut Reader<'_>) -> Sparing {
    if !reader.is_readable("sparing") {
        return Sparing::None;
    }
    match reader.choice(
        "sparing",
        &SPARING_NAMES,
        "sparing scheme: location of the spare sectors",
    ) {
        Sparing::Range { .. } => Sparing::Range {
            cylinders: reader.integer(
                "sparing_range_cylinders",
                1..=u64::from(CYLINDERS_MAX),
                "cylinders that share their spare sectors",
            ) as u32,
        },
        other => other,
    }
}

/// Reads the seek times of writes, if they differ from those of reads.
pub(super) fn read_write_seek(reader: &mut Reader<'_>) -> Option<SeekSpecification> {
    let doc = "measured seek times of writes, without settle time, by ascending distance; as for reads if absent";
    let key = WRITE_SEEK_TABLE_KEY;
    reader
        .is_readable(key)
        .then(|| read_table(reader, key, doc))
}

fn read_table(reader: &mut Reader<'_>, key: &str, doc: &str) -> SeekSpecification {
    let columns = [
        ("cylinders", 1.0..=f64::from(CYLINDERS_MAX)),
        ("ms", 0.0..=TIME_MS_MAX),
    ];
    let rows = reader.rows(key, &columns, doc);
    let points = rows.iter().map(|row| (row[0] as u32, row[1]));
    SeekSpecification::Table {
        points: points.collect(),
    }
}

/// Reads seek times in another form than the three data-sheet times; `None` if the entry has none.
pub(super) fn read_seek(reader: &mut Reader<'_>) -> Option<SeekSpecification> {
    let time = -TIME_MS_MAX..=TIME_MS_MAX;
    if reader.is_readable("seek_table") {
        let doc = "measured seek times, by ascending distance; interpolated linearly";
        return Some(read_table(reader, "seek_table", doc));
    }
    if reader.is_readable("seek_constant_ms") {
        let time_ms = reader.number(
            "seek_constant_ms",
            0.0..=TIME_MS_MAX,
            "seek time at every distance",
        );
        return Some(SeekSpecification::Constant { time_ms });
    }
    if !reader.is_readable("seek_hpl") {
        return None;
    }
    let columns = [
        ("line from cylinders", 0.0..=f64::from(CYLINDERS_MAX)),
        ("root constant in ms", time.clone()),
        ("root factor in ms", time.clone()),
        ("line constant in ms", time.clone()),
        ("line factor in ms", time.clone()),
        ("single cylinder in ms, or -1", time),
    ];
    let doc = "Hewlett-Packard's seek equation (Ruemmler and Wilkes 1994), V1 to V6, as one row";
    let rows = reader.rows("seek_hpl", &columns, doc);
    let [row] = rows.as_slice() else {
        reader.fail_with_choices(
            "seek_hpl",
            "the equation must be one row",
            "[[V1, V2, V3, V4, V5, V6]]",
        );
        return None;
    };
    Some(SeekSpecification::Hpl {
        line_from_cylinders: row[0] as u32,
        root_constant_ms: row[1],
        root_factor_ms: row[2],
        line_constant_ms: row[3],
        line_factor_ms: row[4],
        single_cylinder_ms: (row[5] != -1.0).then_some(row[5]),
    })
}
