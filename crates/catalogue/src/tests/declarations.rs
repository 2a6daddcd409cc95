//! Reads whole systems and single entries, as the machine does: drives, drivers
//! and file systems by declarations like the machine's, with ranges and cross
//! checks; the others by whatever their files hold, for which keys they have is
//! the machine's business.

use super::super::shape::ValueKind;
use super::super::value::ValueContent;
use super::super::{Catalogue, Component, Errors, Parameter, Reader, ResolvedSystem, Setting};
use std::collections::BTreeMap;

/// Resolves a system and reads all of it.
pub(super) fn read(
    catalogue: &Catalogue,
    target: &str,
    settings: &[Setting],
) -> Result<Vec<Parameter>, Errors> {
    let system = catalogue.resolve(target, settings)?;
    let own = |component, drive: &u32| system.has_own_component(component, *drive);
    if system.is_rig() {
        for number in 1..=system.drive_count() {
            let mut reader = system.reader(Component::Drive, Some(number));
            drive(&system, number, &mut reader);
            reader.finish();
        }
        return system.finish();
    }
    for component in [
        Component::Bus,
        Component::Host,
        Component::Kernel,
        Component::Controller,
    ] {
        let drives = (1..=system.drive_count()).filter(|drive| own(component, drive));
        for drive in [None].into_iter().chain(drives.map(Some)) {
            let mut reader = system.reader(component, drive);
            as_written(&system, (component, drive), &mut reader, |_| true);
            reader.finish();
        }
    }
    let mut revolutions_per_s = 60;
    for number in 1..=system.drive_count() {
        let mut reader = system.reader(Component::Drive, Some(number));
        let geometry = drive(&system, number, &mut reader);
        reader.finish();
        revolutions_per_s = geometry.label_rpm / 60;
        let of = Some(number).filter(|drive| own(Component::Driver, drive));
        let mut reader = system.reader(Component::Driver, of);
        driver(&system, of, &mut reader, &geometry);
        reader.finish();
        if own(Component::Filesystem, &number) {
            let mut reader = system.reader(Component::Filesystem, Some(number));
            filesystem(&mut reader, revolutions_per_s);
            reader.finish();
        }
    }
    let mut reader = system.reader(Component::Filesystem, None);
    filesystem(&mut reader, revolutions_per_s);
    reader.finish();
    system.finish()
}

/// Reads a single entry.
pub(super) fn read_entry(
    system: ResolvedSystem,
    component: Component,
) -> Result<Vec<Parameter>, Errors> {
    let number = (component == Component::Drive).then_some(1);
    let mut reader = system.reader(component, number);
    match component {
        Component::Filesystem => filesystem(&mut reader, 60),
        Component::Drive => {
            drive(&system, 1, &mut reader);
        }
        Component::Driver => driver(&system, None, &mut reader, &Geometry::of_type("rm05")),
        Component::Host | Component::Bus | Component::Kernel | Component::Controller => {
            as_written(&system, (component, None), &mut reader, |_| true);
        }
    }
    reader.finish();
    system.finish()
}

/// What other components need to know of a drive.
pub(super) struct Geometry {
    pub(super) cylinders: u64,
    pub(super) heads: u64,
    pub(super) sectors_per_track: u64,
    pub(super) sector_bytes: u64,
    pub(super) spindle_rpm: f64,
    pub(super) seek_ns: [u64; 3],
    pub(super) label_rpm: u64,
    pub(super) driver_type: String,
}

impl Geometry {
    fn of_type(driver_type: &str) -> Geometry {
        Geometry {
            cylinders: 823,
            heads: 19,
            sectors_per_track: 50,
            sector_bytes: 512,
            spindle_rpm: 3600.0,
            seek_ns: [0; 3],
            label_rpm: 3600,
            driver_type: driver_type.to_string(),
        }
    }
}

/// A disk with firmware.
fn disk(reader: &mut Reader<'_>) -> Geometry {
    for key in [
        "capacity_bytes",
        "sector_bytes",
        "medium_sector_bytes",
        "link_bytes_per_s",
        "segment_bytes",
        "read_ahead_bytes",
        "write_cache_bytes",
        "destage_bytes",
        "heads",
        "recording_zones",
        "tracks_per_band",
        "queue_depth",
        "cache_segments",
        "write_cache_extents",
    ] {
        reader.integer(key, 1..=u64::MAX, "how much or how many");
    }
    if reader.is_readable("band_bytes") {
        for key in [
            "band_bytes",
            "media_cache_bytes",
            "media_cache_extents",
            "band_stream_bytes",
            "clean_step_bytes",
        ] {
            reader.integer(key, 1..=u64::MAX, "shingled tracks");
        }
        reader.milliseconds("clean_idle_ms", 0.0..=1e6, "shingled tracks");
    }
    reader.number("outer_track_bytes", 1.0..=1e9, "data of a track");
    for key in [
        "inner_rate_share",
        "track_skew_share",
        "head_skew_share",
        "write_cache_high_share",
    ] {
        reader.number(key, 0.0..=1.0, "a share");
    }
    for key in [
        "seek_minimum_ms",
        "seek_average_ms",
        "seek_maximum_ms",
        "head_switch_ms",
        "write_settle_ms",
        "age_limit_ms",
        "read_hit_ms",
        "read_miss_ms",
        "write_ms",
        "read_completion_ms",
        "write_completion_ms",
        "link_overhead_ms",
        "destage_idle_ms",
    ] {
        reader.milliseconds(key, 0.0..=1e6, "a time");
    }
    reader.number("spindle_rpm", 60.0..=100_000.0, "speed of rotation");
    for key in ["v_scan_share", "aged_sptf_ms_per_s"] {
        reader.optional_number(key, 0.0..=1e9, "what a policy goes by");
    }
    for key in ["queue_policy", "read_ahead", "read_ahead_after", "flush"] {
        reader.text(key, "how it does something");
    }
    for key in [
        "zero_latency_reads",
        "zero_latency_writes",
        "keep_passing_sectors",
        "write_cache",
    ] {
        reader.flag(key, "whether it does something");
    }
    Geometry::of_type("")
}

pub(super) fn drive(system: &ResolvedSystem, number: u32, reader: &mut Reader<'_>) -> Geometry {
    let kind = reader.optional_text("kind", "what it is");
    if kind.as_deref() == Some("drive") {
        return disk(reader);
    }
    if kind.as_deref() == Some("flash") {
        let part = (Component::Drive, Some(number));
        as_written(system, part, reader, |key| key != "kind");
        return Geometry::of_type("");
    }
    if kind.as_deref() == Some("volume") {
        for (choice, group) in [("tier", "tiers"), ("instance", "instances")] {
            if let Some(name) = reader.optional_text(choice, "a case") {
                reader.select(group, &name);
            }
        }
        let in_cases = [
            "iops",
            "bytes_per_s",
            "burst_iops",
            "burst_bytes_per_s",
            "burst_credits_s",
            "instance_iops",
            "instance_bytes_per_s",
            "instance_burst_iops",
            "instance_burst_bytes_per_s",
            "instance_credits_s",
        ];
        for key in in_cases {
            reader.optional_number(key, 0.0..=1e12, "a limit of a size or an instance");
        }
        reader.integer("size_gib", 1..=65_536, "size of the volume");
        let part = (Component::Drive, Some(number));
        let others = ["kind", "tier", "tiers", "instance", "instances", "size_gib"];
        as_written(system, part, reader, |key| {
            !others.contains(&key) && !in_cases.contains(&key)
        });
        return Geometry::of_type("");
    }
    if kind.as_deref() == Some("fixed") {
        reader.integer("sectors", 1..=u64::MAX, "how many it has");
        reader.integer("sector_bytes", 128..=65_536, "data of a sector");
        reader.text("service", "how the times of service spread");
        reader.milliseconds("service_ms", 0.0..=1000.0, "mean time of service");
        reader.integer("servers", 1..=4096, "requests that it works on at once");
        reader.integer("queue_depth", 1..=65_536, "requests that it takes");
        return Geometry::of_type("");
    }
    let mut seek = |key: &str, doc: &str| reader.milliseconds(key, 0.0..=1000.0, doc);
    let seek_ns = [
        seek("seek_minimum_ms", "seek to the next cylinder"),
        seek(
            "seek_average_ms",
            "mean seek over random pairs of cylinders",
        ),
        seek("seek_maximum_ms", "seek over the whole stroke"),
    ];
    let geometry = Geometry {
        cylinders: reader.integer("cylinders", 1..=100_000, "cylinders under the heads"),
        heads: reader.integer("heads", 1..=1000, "tracks of a cylinder"),
        sectors_per_track: reader.integer("sectors_per_track", 1..=10_000, "data sectors"),
        sector_bytes: reader.integer("sector_bytes", 128..=65_536, "data of a sector"),
        spindle_rpm: reader.number("spindle_rpm", 60.0..=100_000.0, "speed of rotation"),
        seek_ns,
        label_rpm: reader.integer("label_rpm", 60..=100_000, "the speed in the label"),
        driver_type: reader.text("driver_type", "what the driver takes it for"),
    };
    reader.milliseconds("settle_ms", 0.0..=1000.0, "settle after a seek");
    reader.milliseconds(
        "write_settle_ms",
        0.0..=1000.0,
        "further settle before a write",
    );
    reader.milliseconds("head_switch_ms", 0.0..=1000.0, "switch to another head");
    let sectors = geometry.sectors_per_track;
    let interleave = reader.integer("interleave", 1..=10_000, "slots from sector to sector");
    reader.integer("track_skew_sectors", 0..=10_000, "skew from track to track");
    reader.integer(
        "cylinder_skew_sectors",
        0..=10_000,
        "skew from cylinder to cylinder",
    );
    reader.integer("spare_sectors_per_track", 0..=10_000, "slots without data");
    for (key, doc) in [
        ("head_group_heads", "heads that settle together"),
        ("head_group_skew_sectors", "skew from group to group"),
        ("track_bytes", "unformatted"),
        ("id_preamble_bytes", "gap 1"),
        ("data_preamble_bytes", "gap 2"),
        ("recovery_bytes", "gap behind the data"),
        ("header_bytes", "header, marks and check bytes"),
    ] {
        reader.optional_integer(key, 0..=10_000_000, doc);
    }
    reader.optional_number(
        "index_gap_share",
        0.0..=0.5,
        "from the last slot to the index",
    );
    reader.integers(
        "slipped_sectors",
        0..=u64::from(u32::MAX),
        "addresses slipped over",
    );
    reader.integers(
        "revectored_sectors",
        0..=u64::from(u32::MAX),
        "addresses moved away",
    );
    reader.integers(
        "revectored_tracks",
        0..=u64::from(u32::MAX),
        "tracks moved away",
    );
    reader.pairs(
        "zones",
        [0..=100_000, 1..=10_000],
        "[first cylinder, sectors per track]",
    );
    reader.integer(
        "partition_start_cylinder",
        0..=100_000,
        "where the file system starts",
    );
    reader.pairs(
        "partitions",
        [0..=100_000, 1..=u64::MAX],
        "[first cylinder, sectors] of several",
    );
    let capacity = geometry.cylinders * geometry.heads * sectors;
    let partition = reader.integer("partition_sectors", 1..=u64::MAX, "its size");
    if interleave > sectors {
        reader.fail_with_choices(
            "interleave",
            "more than the sectors of a track",
            &format!("from 1 to {sectors}"),
        );
    }
    if partition > capacity {
        reader.fail("partition_sectors", "more than the drive has");
    }
    geometry
}

/// Declares each key of a component's files by the value that it has there.
fn as_written(
    system: &ResolvedSystem,
    part: (Component, Option<u32>),
    reader: &mut Reader<'_>,
    wanted: impl Fn(&str) -> bool,
) {
    let mut shapes = BTreeMap::new();
    let files = system.system_parts[&part]
        .layers
        .iter()
        .filter(|layer| layer.is_file || part.0 == Component::Drive);
    for (key, entry) in files.flat_map(|layer| &layer.table.entries) {
        let about = ["description", "source", "extends"].contains(&key.as_str());
        if about || key.ends_with("_source") || !wanted(key) {
            continue;
        }
        let shape = match &entry.value.value_content {
            ValueContent::Integer(_) | ValueContent::Float(_) => ValueKind::Number(0.0..=1e15),
            ValueContent::Boolean(_) => ValueKind::Boolean,
            ValueContent::List(_) => ValueKind::Integers(0..=u64::MAX),
            _ => ValueKind::Text,
        };
        shapes.insert(key.clone(), shape);
    }
    for (key, shape) in shapes {
        match shape {
            ValueKind::Number(range) => {
                reader.number(&key, range, "a number");
            }
            ValueKind::Integers(range) => {
                reader.integers(&key, range, "numbers");
            }
            ValueKind::Boolean => {
                reader.flag(&key, "a flag");
            }
            _ if key == "disksort" => {
                let sorters = [("1983", 0), ("reads-first", 1), ("first-come", 2)];
                reader.choice(&key, &sorters, "order of a drive's queue");
            }
            _ => {
                reader.text(&key, "text");
            }
        }
    }
}

/// The driver's numbers for one type of drive. What its routines cost is as
/// written.
fn driver(
    system: &ResolvedSystem,
    number: Option<u32>,
    reader: &mut Reader<'_>,
    geometry: &Geometry,
) {
    reader.select("type", &geometry.driver_type);
    as_written(system, (Component::Driver, number), reader, |key| {
        ["commands", "scan_from", "_ms", "_us", "_bytes"]
            .iter()
            .any(|unit| key.ends_with(unit))
    });
    let tests = [("none", 0), ("1981", 1981), ("1984", 1984), ("1987", 1987)];
    let is_of = |name: &str| reader.component_name().starts_with(name);
    let (is_hp, is_up) = (is_of("hp"), is_of("up"));
    if is_hp {
        reader.choice("position_test", &tests, "when a search is left out");
    }
    if is_hp || is_up {
        let lead = reader.integer("search_lead_sectors", 0..=10_000, "search this much ahead");
        if lead >= geometry.sectors_per_track {
            let allowed = format!("from 0 to {}", geometry.sectors_per_track - 1);
            reader.fail_with_choices("search_lead_sectors", "longer than a track", &allowed);
        }
        for key in [
            "position_window_sectors",
            "minimum_distance_sectors",
            "maximum_distance_sectors",
        ] {
            reader.optional_integer(key, 0..=10_000, "bound of the position test");
        }
    }
}

fn filesystem(reader: &mut Reader<'_>, revolutions_per_s: u64) {
    let kinds = [
        ("ffs", "ffs"),
        ("minix", "minix"),
        ("v7", "v7"),
        ("none", "none"),
    ];
    match reader.choice("kind", &kinds, "which, if any") {
        "ffs" => {}
        "minix" => {
            reader.integer("bytes_per_inode", 1024..=1 << 30, "data for each inode");
            return;
        }
        "v7" => {
            let blocks = reader.integer("blocks_per_cylinder", 1..=500, "of a cylinder");
            reader.integer("gap_blocks", 0..=blocks - 1, "between two blocks");
            reader.integer(
                "cylinder_gap_sectors",
                0..=blocks - 1,
                "later each cylinder",
            );
            return;
        }
        _ => return,
    }
    let block_bytes = reader.integer("block_bytes", 4096..=65_536, "size of a block");
    let fragment_bytes = reader.integer("fragment_bytes", 512..=65_536, "size of a fragment");
    let rotdelay_ns = reader.milliseconds("rotdelay_ms", 0.0..=1000.0, "between two blocks");
    reader.integer("maxcontig", 1..=1024, "blocks without a gap");
    reader.integer(
        "blocks_per_section",
        1..=1 << 20,
        "blocks of a file in one group",
    );
    reader.integer("cylinders_per_group", 1..=32, "cylinders of a group");
    reader.integer("minfree_percent", 0..=99, "kept free");
    reader.integer("bytes_per_inode", 512..=1 << 30, "data for each inode");
    if !block_bytes.is_multiple_of(fragment_bytes) || block_bytes / fragment_bytes > 8 {
        reader.fail("fragment_bytes", "a block must hold 1, 2, 4 or 8 fragments");
    }
    if rotdelay_ns * revolutions_per_s > 1_000_000_000 {
        reader.fail_with_choices(
            "rotdelay_ms",
            "longer than a revolution",
            &format!("below {} ms", 1000 / revolutions_per_s),
        );
    }
}
