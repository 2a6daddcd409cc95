//! What is read.

use super::*;
use diskperf_diskspecs::layout::BlockLayout;
use diskperf_diskspecs::{DataPath, SeekCurve, trace};

fn taken(file: &str, piece: &str, by: &str) -> ImportedSpecification {
    changed(file, piece, by).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_drive_has_the_values_of_its_files() {
    let import = import("small.parv", &SpecificationFiles::Memory(small())).expect("a drive");
    assert_eq!(import.drives.len(), 1);
    let drive = &import.drives[0];
    let DataPath { bus, controller } = drive.data_path.expect("a topology");
    assert_eq!((bus.read_block_ms, bus.write_block_ms), (0.05, 0.06));
    assert_eq!(controller.delay_scale, 2.0);
    assert_eq!(drive.read_sector_ms(), 0.05);
    let firmware = drive.firmware.expect("electronics");
    assert_eq!(firmware.buffer.segment_blocks, 32);
    assert_eq!(
        (firmware.write_miss_ms.read, firmware.write_miss_ms.write),
        (0.7, 0.8)
    );
    assert_eq!(drive.model.mechanics.write_settle_ms, -0.25);
    // Skews in sectors are cut to whole ones.
    let BlockLayout::Zoned(layout) = &drive.model.layout else {
        panic!("it has zones");
    };
    assert_eq!(
        (layout.block_count(), layout.zones()[0].track_skew),
        (76, 0.2)
    );
    let why = |key: &str| {
        let line = import.ignored_keys.iter().find(|line| line.key == key);
        line.unwrap_or_else(|| panic!("{key} is lost")).reason
    };
    assert_eq!(why("disksim_stats Stats"), "affects only DiskSim's output");
    assert_eq!(why("Init Seed"), "a trace or a program generates the load");
    assert_eq!(why("Minimum seek delay"), "DiskSim does not use it");
    assert!(import.warnings.is_empty(), "{:?}", import.warnings);
}

#[test]
fn the_first_definition_holds() {
    let twice = "Head switch time = 0.5, Head switch time = 0.7";
    let import = taken("small.model", "Head switch time = 0.5", twice);
    assert_eq!(import.drives[0].model.mechanics.head_switch_ms, 0.5);
    assert_eq!(import.warnings.len(), 1);
    let place = import.warnings[0].span().expect("a place").to_string();
    assert_eq!(place, "small.model:10:31");
}

#[test]
fn a_missing_key_of_the_electronics_is_said() {
    let import = taken("small.diskspecs", "Per-request overhead time = 0.1,", "");
    let firmware = import.drives[0].firmware.expect("electronics");
    assert_eq!(firmware.request_overhead_ms, 0.0);
    let title = import.warnings[0].title();
    assert_eq!(
        title,
        "disksim_disk SMALL has no `Per-request overhead time`"
    );
}

#[test]
fn keys_that_stand_in_comments_are_told_of() {
    let old = "# HPL seek equation values = [\n#  1.0, 2.0 ],\n# the end of it\n  # as = before\n";
    let import = taken(
        "small.model",
        "Head switch time = 0.5,",
        &format!("Head switch time = 0.5, # Add. write settling delay = 0.1,\n{old}"),
    );
    let commented: Vec<(&str, usize)> = import
        .ignored_keys
        .iter()
        .filter(|line| line.reason == "it is in a comment")
        .map(|line| (line.key.as_str(), line.span.line_number()))
        .collect();
    assert_eq!(
        commented,
        [
            ("Add. write settling delay", 10),
            ("HPL seek equation values", 11)
        ]
    );
    assert_eq!(import.drives[0].model.mechanics.write_settle_ms, -0.25);
}

#[test]
fn skews_may_be_revolutions() {
    let angles = "Skew units = revolutions, Skew for track switch = 0.29, #";
    let import = taken(
        "small.model",
        "Skew for track switch = 2.9,",
        &format!("{angles}\n"),
    );
    let spot = import.drives[0]
        .model
        .layout
        .locate_block(10)
        .expect("a place");
    assert_eq!(spot.angle, 0.29);
}

#[test]
fn seeks_are_those_of_their_curves() {
    let cylinders = 200;
    let curve = diskperf_diskspecs::SeekTable::parse("s", "1, 1\n10, 3\n100, 8\n");
    let table = SeekCurve::Table(curve.expect("a curve"));
    let times = [0, 4, 190].map(|distance| table.seek_ms(distance, cylinders));
    assert_eq!((times[0], times[2]), (0.0, 13.0));
    assert!((times[1] - 5.0 / 3.0).abs() < 1e-12);
    let hpl = |first_ten_ms| SeekCurve::HplFormula {
        values: [600.0, 1.5, 0.25, 4.0, 0.003, -1.0],
        first_ten_ms,
    };
    // The mean over uniform pairs, in closed form by the length of the stroke.
    assert!((mean(&hpl(None), 2000) - 6.301_58).abs() < 2e-3);
    assert_eq!(hpl(Some([9.0; 10])).seek_ms(10, 2000), 9.0);
    let (single_ms, average_ms, full_ms) = (1.0, 8.5, 17.0);
    let points = SeekCurve::ThreePoints {
        single_ms,
        average_ms,
        full_ms,
    };
    let c = 10_000;
    assert!(
        (mean(&points, c) - average_ms).abs() < 2e-2,
        "{}",
        mean(&points, c)
    );
    assert!((points.seek_ms(c, c) - full_ms).abs() < 2e-3);
}

/// Over distinct pairs of cylinders.
fn mean(seek: &SeekCurve, cylinders: u32) -> f64 {
    let c = f64::from(cylinders);
    let distances = 1..cylinders;
    let weighted =
        distances.map(|d| 2.0 * (c - f64::from(d)) / (c * (c - 1.0)) * seek.seek_ms(d, cylinders));
    weighted.sum()
}

#[test]
fn a_trace_is_read_line_by_line() {
    let text = "R Hit    2992396   4  13670.00000  35942.00000\nW Miss 7 1 0.5 0\n";
    let requests = trace::parse("t.trace", text).expect("a trace");
    assert_eq!(requests.len(), 2);
    assert_eq!(
        (requests[0].first_block, requests[0].service_us),
        (2_992_396, 13_670.0)
    );
    assert_eq!(requests[1].operation, trace::ValidationOperation::Write);
}

/// DiskSim reads the second column as a word and does nothing with it.
#[test]
fn the_second_column_of_a_trace_is_any_word() {
    let parsed = |word: &str| trace::parse("t.trace", &format!("R {word} 7 1 0.5 0\n"));
    let expected = parsed("Hit").expect("a trace");
    for word in [
        "Miss", "hit", "Maybe", "Unknown", "-", "0", "H/M", "größe", "R",
    ] {
        let found = parsed(word).unwrap_or_else(|errors| panic!("{word}: {errors}"));
        assert_eq!(found, expected, "{word}");
    }
}

pub(crate) const MAPPED: &str =
    "dm_layout_g2 { Layout Map File = small.map, Zones = [ dm_layout_g2_zone {
    First cylinder number = 0, Last cylinder number = 3, First LBN = 0, Last LBN = 39,
    Blocks per track = 10, Zone Skew = 0, Skew for track switch = 2,
    Skew for cylinder switch = 3 } ] }";
pub(crate) const MAP: &str = "layout of a drive\n\n4 cylinders, 0 rot, 2 heads\n\
    lbn 0 --> cyl 0, head 0, sect 0, seqcnt 9\nlbn 10 --> cyl 0, head 1, sect 1, seqcnt 8\n\
    lbn 19 --> cyl 1, head 0, sect 0, seqcnt 9\nlbn 29 --> cyl 1, head 1, sect 0, seqcnt 9\n\
    Defect at cyl 0, head 1, sect 0\n";
pub(crate) const INDEXED: &str = "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [
    [ [ 0, 0, 0.0, 10, 1, 0.15, 20, 2, TRACK, 0, 0 ], [ 20, 1, 0.0, 10, -1, 0.15, 20, 2, TRACK, 0, 1 ] ],
    [ 0, 0, 0.0, 40, 2, 0.5, 80, 4, IDX, 0 ] ], Slips = [ 5, 1 ],
    Remaps = [ 12, 1, 4, 0, 3, 10 ] }";

/// The small drive with another layout.
pub(crate) fn with_layout(layout: &str) -> Result<ImportedSpecification, Errors> {
    let mut files = small();
    let model = files.get_mut("small.model").expect("a file");
    let start = model.find("dm_layout_g1 {").expect("a layout");
    let end = model.rfind('}').expect("an end");
    model.replace_range(start..end, layout);
    files.insert("small.map".to_owned(), MAP.to_owned());
    import("small.parv", &SpecificationFiles::Memory(files))
}

#[test]
fn maps_and_patterns_are_layouts_too() {
    let mapped = with_layout(MAPPED).unwrap_or_else(|errors| panic!("{errors}"));
    let layout = &mapped.drives[0].model.layout;
    assert_eq!(layout.block_count(), 39);
    let spot = layout.locate_block(10).expect("a place");
    assert_eq!((spot.head, spot.sector), (1, 1));
    assert!((spot.angle - 0.3).abs() < 1e-12);
    let indexed = with_layout(INDEXED).unwrap_or_else(|errors| panic!("{errors}"));
    let layout = &indexed.drives[0].model.layout;
    assert_eq!(layout.block_count(), 79);
    let place = |block| {
        layout
            .locate_block(block)
            .map(|spot| (spot.cylinder, spot.head, spot.sector))
    };
    let wanted = [(0, 0, 4), (0, 0, 6), (4, 0, 3), (3, 1, 1)];
    assert_eq!([4, 5, 12, 60].map(place), wanted.map(Some));
}

/// A file, a piece of it, what DiskSim takes as well in its place, and the key that is told to
/// have no effect, or what is warned of.
const VALID: &[(&str, &str, &str, &str)] = &[
    (
        "small.model",
        "Last cylinder number = 3",
        "Last cylinder number = 9",
        "6 cylinders more than the drive's 4",
    ),
    (
        "small.model",
        "Number of spares = 1",
        "Number of spares = -1",
        "`Number of spares = -1` is below 0",
    ),
    ("small.model", "slips = [],", "", "no `slips`"),
    ("small.model", "Percent error in rpms = 0.0", "", ""),
    (
        "small.parv",
        "Use queueing in subsystem = 1",
        "Use of queues = 1",
        "Use of queues",
    ),
    (
        "small.parv",
        "disksim_stats Stats",
        "disksim_disk OTHER { Model = dm_disk { } } disksim_stats Stats",
        "disksim_disk OTHER",
    ),
    (
        "small.model",
        "Access time type = trackSwitchPlusRotation",
        "Access time type = constant, Constant access time = 3.5",
        "`constant` are not modelled",
    ),
    (
        "small.diskspecs",
        "Disconnect write if seek = 0",
        "Disconnect write if seek = 1",
        "Disconnect write if seek",
    ),
    (
        "small.diskspecs",
        "Allow write prebuffering = 0",
        "Allow write prebuffering = 1",
        "Allow write prebuffering",
    ),
    (
        "small.diskspecs",
        "Read directly to buffer = 1",
        "Read directly to buffer = 0",
        "Read directly to buffer",
    ),
    (
        "small.diskspecs",
        "Scheduling timeout scheme = 0",
        "Scheduling timeout scheme = 1",
        "Scheduling timeout scheme",
    ),
    (
        "small.diskspecs",
        "Overlapping request scheme = 0",
        "Overlapping request scheme = 2",
        "Overlapping request scheme",
    ),
    (
        "small.diskspecs",
        "Immediate buffer read = 0",
        "Immediate buffer read = 2",
        "",
    ),
    (
        "small.diskspecs",
        "Read-ahead over requested = 1",
        "Read-ahead over requested = -1",
        "",
    ),
    (
        "small.diskspecs",
        "Scheduling policy = 1",
        "Scheduling policy = 28",
        "",
    ),
    (
        "small.parv",
        "disksim_stats Stats",
        "disksim_simpledisk Stats",
        "disksim_simpledisk",
    ),
    (
        "small.parv",
        "disksim_stats Stats",
        "disksim_cachemem Stats",
        "disksim_cachemem",
    ),
    (
        "small.parv",
        "Constant access time = 0.0",
        "Constant access time = 1.5",
        "Constant access time",
    ),
    (
        "small.parv",
        "disksim_ctlr CTLR0 { type = 1",
        "disksim_ctlr CTLR0 { Max per-disk pending count = 4, Cache = disksim_cachemem C { Cache size = 4 }, Scheduler = disksim_ioqueue { Scheduling policy = 3 }, type = 3",
        "the controller's cache is not modelled",
    ),
];

#[test]
fn what_disksim_takes_is_taken_and_what_is_not_modelled_is_told() {
    for (file, piece, by, told) in VALID {
        let what = format!("{file}: {piece} -> {by}");
        let found = changed(file, piece, by);
        let found = found.unwrap_or_else(|errors| panic!("{what}: {}", errors.render(false)));
        let mut all: Vec<String> = found.warnings.iter().map(ToString::to_string).collect();
        let lines = found.ignored_keys.iter();
        all.extend(lines.map(|line| format!("{}: {}", line.block, line.key)));
        assert!(
            all.iter().any(|line| line.contains(told)),
            "{what}: {all:?}"
        );
    }
}

/// Two surfaces, four cylinders, ten sectors a track: the second surface is filled backwards.
#[test]
fn a_run_of_negative_cylinders_goes_back() {
    let layout = "dm_layout_g4 { TP = [0, 9, 10], IDX = [
        [0, 0, 0.0, 10, 1, 0.0, 20, 2, TRACK, 0, 0,  20, 1, 0.0, 10, 1, 0.0, 20, -2, TRACK, 0, 1],
        [0, 0, 0.0, 40, 2, 0.0, 80, 4, IDX, 0] ], Slips = [], Remaps = [] }";
    let found = with_layout(layout).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
    let layout = &found.drives[0].model.layout;
    let tracks = [
        (0, 0),
        (1, 0),
        (1, 1),
        (0, 1),
        (2, 0),
        (3, 0),
        (3, 1),
        (2, 1),
    ];
    for (number, track) in (0..).zip(tracks) {
        for sector in 0..10 {
            let block = 10 * number + u64::from(sector);
            let spot = layout.locate_block(block).expect("a place");
            let found = (spot.cylinder, spot.head, spot.sector);
            assert_eq!(found, (track.0, track.1, sector), "block {block}");
            assert_eq!(layout.find_block_at(track.0, track.1, sector), Some(block));
        }
    }
    assert_eq!(layout.block_count(), 80);
}

#[test]
fn units_behind_skews_are_said() {
    let skew = "Offset of first block = 0.0,";
    let before = taken(
        "small.model",
        skew,
        &format!("Skew units = sectors, {skew}"),
    );
    assert!(before.warnings.is_empty(), "{:?}", before.warnings);
    let behind = taken(
        "small.model",
        skew,
        &format!("{skew} Skew units = sectors,"),
    );
    assert_eq!(behind.drives, before.drives);
    let title = "`Skew units` follows skews, which DiskSim therefore reads as sectors";
    assert_eq!(behind.warnings[0].title(), title);
}

/// Comments of old files are in encodings of their time.
#[test]
fn a_comment_may_be_of_any_encoding() {
    let folder = std::env::temp_dir().join(format!("diskspecs-latin-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in small() {
        let mut bytes = b"# Gr\xf6\xdfe\n".to_vec();
        bytes.extend(text.bytes());
        std::fs::write(folder.join(name), bytes).expect("a file");
    }
    let path = folder.join("small.parv").to_string_lossy().into_owned();
    let found = import(
        &path,
        &SpecificationFiles::FileSystem { search: Vec::new() },
    );
    std::fs::remove_dir_all(&folder).expect("the folder");
    let found = found.unwrap_or_else(|errors| panic!("{errors}"));
    let plain = import("small.parv", &SpecificationFiles::Memory(small())).expect("a drive");
    assert_eq!(found.drives, plain.drives);
}
