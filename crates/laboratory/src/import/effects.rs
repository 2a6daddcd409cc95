//! Tests that every DiskSim key listed as used changes the imported entry, and that no other key
//! does.

use super::check::check_entries;
use super::{describe_substitute, format_rig_system};
use diskperf_calibration::entry::DriveEntry;
use diskperf_diskspecs::table::{
    BLOCK_TABLES, IntegerMax, KeyEffect, LegalValues, SpecificationKey,
};
use diskperf_diskspecs::{Errors, KeySpans, SpecificationFiles, import};
use std::collections::{BTreeMap, BTreeSet};

const PARTS: [(&str, &str); 4] = [
    (
        "whole.parv",
        include_str!("../../../diskspecs/tests/data/whole.parv"),
    ),
    (
        "small.diskspecs",
        include_str!("../../../diskspecs/tests/data/small.diskspecs"),
    ),
    (
        "small.model",
        include_str!("../../../diskspecs/tests/data/small.model"),
    ),
    (
        "small.seek",
        include_str!("../../../diskspecs/tests/data/small.seek"),
    ),
];

/// Replacements in the text of the files: old text and new text.
type Changes<'a> = &'a [(&'a str, &'a str)];

struct Case {
    key: &'static str,
    context: Changes<'static>,
    change: (&'static str, &'static str),
}

const fn case(key: &'static str, change: (&'static str, &'static str)) -> Case {
    within(key, &[], change)
}

const fn within(
    key: &'static str,
    context: Changes<'static>,
    change: (&'static str, &'static str),
) -> Case {
    Case {
        key,
        context,
        change,
    }
}

const CURVE: Changes<'static> = &[(
    "Seek type = extracted",
    "Seek type = curve, Single cylinder seek time = 1.0, Average seek time = 5.0, Full strobe seek time = 9.0",
)];
const HPL: Changes<'static> = &[(
    "Seek type = extracted",
    "Seek type = hplplus10, HPL seek equation values = [ 2, 1.0, 0.1, 1.0, 0.1, -1 ], First ten seek times = [ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 ]",
)];
const MAPPED: Changes<'static> = &[
    (
        "dm_layout_g1 {",
        "dm_layout_g2 { Layout Map File = small.map,",
    ),
    ("LBN-to-PBN mapping scheme = 0,", ""),
    ("Sparing scheme used = 2,", ""),
    ("dm_layout_g1_zone", "dm_layout_g2_zone"),
    ("Offset of first block = 0.0,", "Zone Skew = 0.0,"),
    ("Empty space at zone front = 0,", ""),
    ("Number of spares = 1,", ""),
    ("slips = [],", ""),
    ("defects = []", "First LBN = 0, Last LBN = 39"),
    ("per cylinder = 20", "per cylinder = 1"),
];
const MAP: &str = "map\nof\nall\nlbn 0 --> cyl 0, head 0, sect 0, seqcnt 9\n\
    lbn 10 --> cyl 1, head 1, sect 0, seqcnt 9\nlbn 20 --> cyl 2, head 0, sect 0, seqcnt 9\n\
    lbn 30 --> cyl 3, head 0, sect 0, seqcnt 9\n";
const OTHER_MAP: &str = "map\nof\nall\nlbn 0 --> cyl 0, head 0, sect 0, seqcnt 8\n\
    lbn 9 --> cyl 1, head 1, sect 0, seqcnt 8\nlbn 18 --> cyl 2, head 0, sect 0, seqcnt 9\n\
    lbn 28 --> cyl 3, head 0, sect 0, seqcnt 9\n";
/// Replaces the layout by an indexed one and comments out the rest of the model.
const INDEXED: Changes<'static> = &[
    (
        "dm_layout_g1 {",
        "dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [ [ 0, 0, 0.0, 10, 1, 0.15, 40, 4, TRACK, 0, 0 ] ], Slips = [ 5, 1 ], Remaps = [ 12, 1, 4, 0, 3, 10 ] } } #",
    ),
    ("per cylinder = 20", "per cylinder = 1"),
];
const RANGE: Changes<'static> = &[(
    "Sparing scheme used = 2",
    "Sparing scheme used = 8, Rangesize for sparing = 1",
)];
/// Makes writes complete on the medium instead of the buffer.
const WRITE_THROUGH: Changes<'static> = &[("Fast write level = 1", "Fast write level = 0")];
/// Makes the bus and the controller at least as fast as the drive.
const FAST_BUS: Changes<'static> = &[
    (
        "Read block transfer time = 0.05",
        "Read block transfer time = 0",
    ),
    (
        "Write block transfer time = 0.06",
        "Write block transfer time = 0",
    ),
];
const SLOW_CONTROLLER: Changes<'static> = &[
    (
        "Read block transfer time = 0.05",
        "Read block transfer time = 0",
    ),
    (
        "Write block transfer time = 0.06",
        "Write block transfer time = 0",
    ),
    (
        "Bulk sector transfer time = 0.02",
        "Bulk sector transfer time = 0.4",
    ),
];

#[rustfmt::skip]
const CASES: &[Case] = &[
    case("Model", ("small.model,", "other.model,")),
    case("Scheduler", ("Scheduling policy = 1", "Scheduling policy = 7")),
    case("Max queue length", ("Max queue length = 1", "Max queue length = 8")),
    within("Bulk sector transfer time", FAST_BUS, ("Bulk sector transfer time = 0.03", "Bulk sector transfer time = 0.3")),
    case("Segment size (in blks)", ("Segment size (in blks) = 0x20", "Segment size (in blks) = 30")),
    case("Number of buffer segments", ("buffer segments = 2", "buffer segments = 3")),
    case("Per-request overhead time", ("overhead time = 0.1", "overhead time = 0.2")),
    case("Time scale for overheads", ("for overheads = 1.0", "for overheads = 2.0")),
    case("Hold bus entire read xfer", ("read xfer = 0", "read xfer = 1")),
    case("Hold bus entire write xfer", ("write xfer = 1", "write xfer = 0")),
    case("Allow read hits on write data", ("hits on write data = 1", "hits on write data = 0")),
    case("Never disconnect", ("Never disconnect = 0", "Never disconnect = 1")),
    within("Maximum number of write segments", &[("buffer segments = 2", "buffer segments = 3")], ("write segments = 1", "write segments = 2")),
    case("Use separate write segment", ("separate write segment = 0", "separate write segment = 1")),
    case("High (read) water mark", ("water mark = 0.5", "water mark = 0.75")),
    case("Set watermark by reqsize", ("by reqsize = 1", "by reqsize = 0")),
    case("Enable caching in buffer", ("caching in buffer = 1", "caching in buffer = 0")),
    case("Buffer continuous read", ("continuous read = 4", "continuous read = 2")),
    case("Minimum read-ahead (blks)", ("Minimum read-ahead (blks) = 0", "Minimum read-ahead (blks) = 4")),
    case("Maximum read-ahead (blks)", ("Maximum read-ahead (blks) = 8", "Maximum read-ahead (blks) = 16")),
    within("Read-ahead over requested", &[("Maximum read-ahead (blks) = 8", "Maximum read-ahead (blks) = 0")], ("over requested = 1", "over requested = 0")),
    case("Read-ahead on idle hit", ("on idle hit = 0", "on idle hit = 1")),
    case("Read any free blocks", ("free blocks = 0", "free blocks = 1")),
    case("Fast write level", ("write level = 1", "write level = 2")),
    case("Read hit over. after read", ("Read hit over. after read = 0.1", "Read hit over. after read = 0.15")),
    case("Read hit over. after write", ("Read hit over. after write = 0.2", "Read hit over. after write = 0.15")),
    case("Read miss over. after read", ("Read miss over. after read = 0.3", "Read miss over. after read = 0.15")),
    case("Read miss over. after write", ("Read miss over. after write = 0.4", "Read miss over. after write = 0.15")),
    case("Write hit over. after read", ("Write hit over. after read = 0.5", "Write hit over. after read = 0.15")),
    case("Write hit over. after write", ("Write hit over. after write = 0.6", "Write hit over. after write = 0.15")),
    within("Write miss over. after read", WRITE_THROUGH, ("Write miss over. after read = 0.7", "Write miss over. after read = 0.15")),
    within("Write miss over. after write", WRITE_THROUGH, ("Write miss over. after write = 0.8", "Write miss over. after write = 0.15")),
    case("Read completion overhead", ("Read completion overhead = 0.0", "Read completion overhead = 0.1")),
    case("Write completion overhead", ("Write completion overhead = 0.0", "Write completion overhead = 0.1")),
    case("Data preparation overhead", ("preparation overhead = 0.0", "preparation overhead = 0.1")),
    case("First reselect overhead", ("First reselect overhead = 0.0", "First reselect overhead = 0.1")),
    case("Immediate buffer read", ("Immediate buffer read = 0", "Immediate buffer read = 1")),
    case("Immediate buffer write", ("Immediate buffer write = 0", "Immediate buffer write = 2")),
    case("Scheduling policy", ("Scheduling policy = 1", "Scheduling policy = 8")),
    within("Timeout time/weight", &[("Scheduling policy = 1", "Scheduling policy = 14")], ("time/weight = 0", "time/weight = 9")),
    case("Number of data surfaces", ("data surfaces = 2", "data surfaces = 3")),
    case("Number of cylinders", ("cylinders = 4", "cylinders = 5")),
    case("Mechanical Model", ("Mechanical Model = dm_mech_g1 {", "Mechanical Model = dm_mech_g1 { Head switch time = 0.9,")),
    case("Layout Model", ("Layout Model = dm_layout_g1 {", "Layout Model = dm_layout_g1 { Sparing scheme used = 3,")),
    case("Seek type", ("Seek type = extracted", "Seek type = constant, Constant seek time = 2")),
    within("Average seek time", CURVE, ("Average seek time = 5.0", "Average seek time = 4.5")),
    within("Constant seek time", &[("Seek type = extracted", "Seek type = constant, Constant seek time = 2")], ("Constant seek time = 2", "Constant seek time = 3")),
    within("Single cylinder seek time", CURVE, ("Single cylinder seek time = 1.0", "Single cylinder seek time = 1.5")),
    within("Full strobe seek time", CURVE, ("Full strobe seek time = 9.0", "Full strobe seek time = 9.5")),
    case("Full seek curve", ("small.seek", "other.seek")),
    case("Add. write settling delay", ("settling delay = -0.25", "settling delay = 0.25")),
    case("Head switch time", ("Head switch time = 0.5", "Head switch time = 0.6")),
    case("Rotation speed (in rpms)", ("= 6000", "= 7200")),
    within("First ten seek times", HPL, ("[ 1, 2, 3,", "[ 1, 2, 4,")),
    within("HPL seek equation values", HPL, ("0.1, 1.0, 0.1, -1 ]", "0.1, 2.0, 0.1, -1 ]")),
    case("LBN-to-PBN mapping scheme", ("mapping scheme = 0", "mapping scheme = 1")),
    case("Sparing scheme used", ("Sparing scheme used = 2", "Sparing scheme used = 5")),
    within("Rangesize for sparing", RANGE, ("Rangesize for sparing = 1", "Rangesize for sparing = 2")),
    case("Zones", ("defects = []\n         }", "defects = [] }, dm_layout_g1_zone { First cylinder number = 4, Last cylinder number = 4, Blocks per track = 12, Offset of first block = 0, Empty space at zone front = 0, Number of spares = 0, slips = [], defects = [] }")),
    case("First cylinder number", ("First cylinder number = 0", "First cylinder number = 1")),
    case("Last cylinder number", ("Last cylinder number = 3", "Last cylinder number = 2")),
    case("Blocks per track", ("Blocks per track = 10", "Blocks per track = 11")),
    case("Offset of first block", ("Offset of first block = 0.0", "Offset of first block = 1.0")),
    case("Skew units", ("Blocks per track = 10,", "Blocks per track = 10, Skew units = revolutions,")),
    case("Empty space at zone front", ("at zone front = 0", "at zone front = 1")),
    case("Skew for track switch", ("track switch = 2.9", "track switch = 4")),
    case("Skew for cylinder switch", ("cylinder switch = 3", "cylinder switch = 4")),
    case("Number of spares", ("Number of spares = 1", "Number of spares = 2")),
    case("slips", ("slips = []", "slips = [ 3 ]")),
    case("defects", ("defects = []", "defects = [ 3, 19 ]")),
    within("Layout Map File", MAPPED, ("small.map", "other.map")),
    within("Zone Skew", MAPPED, ("Zone Skew = 0.0", "Zone Skew = 1.0")),
    within("TP", INDEXED, ("TP = [ 0, 9, 10 ]", "TP = [ 0, 9, 12 ]")),
    within("IDX", INDEXED, ("0.15, 40", "0.25, 40")),
    within("Slips", INDEXED, ("Slips = [ 5, 1 ]", "Slips = [ 6, 1 ]")),
    within("Remaps", INDEXED, ("Remaps = [ 12, 1,", "Remaps = [ 13, 1,")),
    case("Arbitration time", ("Arbitration time = 0.01", "Arbitration time = 0.02")),
    case("Read block transfer time", ("Read block transfer time = 0.05", "Read block transfer time = 0.5")),
    case("Write block transfer time", ("Write block transfer time = 0.06", "Write block transfer time = 0.6")),
    within("Scale for delays", SLOW_CONTROLLER, ("Scale for delays = 2.0", "Scale for delays = 3.0")),
];

fn files(changes: Changes<'_>) -> SpecificationFiles {
    let mut files: BTreeMap<String, String> = PARTS
        .map(|(name, text)| (name.to_owned(), text.to_owned()))
        .into();
    for (piece, by) in changes {
        let mut texts = files.values_mut();
        let text = texts.find(|text| text.contains(piece));
        let text = text.unwrap_or_else(|| panic!("no file has {piece}"));
        *text = text.replacen(piece, by, 1);
        if let Some(at) = by.rfind("} } #").filter(|_| by.starts_with("dm_layout_g4")) {
            let end = text.find(by).expect("the change") + at + "} }".len();
            text.truncate(end);
        }
    }
    let other = files["small.model"].replacen("= 6000", "= 5400", 1);
    let rest = [
        ("other.model", other.as_str()),
        ("other.seek", "1, 1.0\n3, 2.0\n"),
        ("small.map", MAP),
        ("other.map", OTHER_MAP),
    ];
    files.extend(rest.map(|(name, text)| (name.to_owned(), text.to_owned())));
    SpecificationFiles::Memory(files)
}

fn imported(changes: Changes<'_>) -> Result<(String, Vec<String>), Errors> {
    let found = import("whole.parv", &files(changes))?;
    let drive = &found.drives[0];
    let entry = DriveEntry::new(drive, "a file").expect("few runs");
    let acting = found.ignored_keys.iter().filter_map(describe_substitute);
    Ok((
        entry.text,
        entry.differences.into_iter().chain(acting).collect(),
    ))
}

fn imported_or_panic(what: &str, changes: Changes<'_>) -> (String, Vec<String>) {
    let found = imported(changes);
    found.unwrap_or_else(|errors| panic!("{what}: {}", errors.render(false)))
}

#[test]
fn every_key_that_is_used_changes_the_entry() {
    let keys = BLOCK_TABLES.iter().flat_map(|block| block.keys);
    let used = keys.filter(|key| key.effect == KeyEffect::Used);
    let used: BTreeSet<&str> = used.map(|key| key.name).collect();
    let tried: BTreeSet<&str> = CASES.iter().map(|case| case.key).collect();
    assert_eq!(used, tried);
    for case in CASES {
        let (before, _) = imported_or_panic(case.key, case.context);
        let mut changes = case.context.to_vec();
        changes.push(case.change);
        let (after, _) = imported_or_panic(case.key, &changes);
        assert_ne!(before, after, "{}: {:?}", case.key, case.change);
    }
}

/// Tests a key whose value the modelled drive replaces: `import` names each replaced value.
#[test]
fn a_key_without_effect_leaves_the_entry_as_it_is() {
    let (entry, said) = imported_or_panic("the files", &[]);
    // Of a name that is in two blocks, the first one is changed.
    let is_used = |name: &str| CASES.iter().any(|case| case.key == name);
    let mut tried = 0;
    for block in BLOCK_TABLES {
        for key in block.keys.iter().filter(|key| !is_used(key.name)) {
            // Numbers of the fixtures alone have another value near.
            let numbers = ["0", "1", "0.0", "1.0", "20", "42"];
            let is_number = |value: &&str| {
                let line = format!("{} = {value}", key.name);
                let ends = |rest: &str| rest.starts_with([',', '\n', ' ']);
                PARTS.iter().any(|(_, text)| {
                    let mut found = text.match_indices(&line);
                    found.any(|(at, _)| ends(&text[at + line.len()..]))
                })
            };
            let Some(value) = numbers.iter().find(|value| is_number(value)) else {
                continue;
            };
            let other = if value.starts_with('1') { "0" } else { "1" };
            let change = (
                format!("{} = {value}", key.name),
                format!("{} = {other}", key.name),
            );
            let modelled = match key.effect {
                KeyEffect::Used | KeyEffect::Ignored(_) => None,
                KeyEffect::Substituted(modelled, _) => Some(modelled),
            };
            let Ok((after, now)) = imported(&[(&change.0, &change.1)]) else {
                continue;
            };
            assert_eq!(after, entry, "{change:?}");
            let is_said = modelled.is_some_and(|modelled| other.parse() != Ok(modelled));
            let has = |all: &[String]| all.iter().any(|line| line.starts_with(key.name));
            let expected = is_said || (modelled.is_none() && has(&said));
            assert_eq!(has(&now), expected, "{change:?}: {now:?}");
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried} keys");
}

/// Returns the smallest and largest values of a number in use, as far as the other keys permit.
fn extremes(key: &SpecificationKey) -> Vec<String> {
    let any = i64::from(i32::MAX);
    let numbers = |min: f64, max: f64| vec![format!("{min:?}"), format!("{max:?}")];
    match key.legal_values {
        LegalValues::Integer { min, max } => {
            let max = match max {
                IntegerMax::None => any,
                IntegerMax::Value(max) => max,
                IntegerMax::DiskSectors | IntegerMax::OtherKey(_) => return Vec::new(),
            };
            vec![min.unwrap_or(-any).to_string(), max.to_string()]
        }
        LegalValues::Number { min, max, .. } => {
            numbers(min.unwrap_or(f64::MIN), max.unwrap_or(f64::MAX))
        }
        LegalValues::Word | LegalValues::List | LegalValues::Block => Vec::new(),
    }
}

/// Keys whose extreme values are not tested: geometry that would leave no sectors or need more
/// surfaces than exist, actuator times where another time is shorter, and cylinders that the
/// fixture's actuator would need seconds to cross.
const NOT_FREE: [&str; 11] = [
    "Number of data surfaces",
    "First cylinder number",
    "Last cylinder number",
    "Blocks per track",
    "Empty space at zone front",
    "Number of spares",
    "Average seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Number of cylinders",
    "Sparing scheme used",
];

#[test]
fn a_drive_of_the_smallest_and_the_largest_values_is_built() {
    // Of a name that is in two blocks, the first one is changed.
    let mut keys: BTreeMap<&str, &SpecificationKey> = BTreeMap::new();
    for key in BLOCK_TABLES.iter().flat_map(|block| block.keys) {
        keys.entry(key.name).or_insert(key);
    }
    let mut built = 0;
    for case in CASES.iter().filter(|case| !NOT_FREE.contains(&case.key)) {
        let Some((before, _)) = case.change.1.rsplit_once(' ') else {
            continue;
        };
        for value in extremes(keys[case.key]) {
            let by = format!("{before} {value}");
            let mut changes = case.context.to_vec();
            changes.push((case.change.0, &by));
            let (entry, _) = imported_or_panic(&by, &changes);
            let entries = [
                ("drives/one.toml".to_owned(), entry),
                (
                    "systems/bare-one.toml".to_owned(),
                    format_rig_system("one", "a test"),
                ),
            ];
            let checked = check_entries("bare-one", "one", &entries, &KeySpans::new());
            checked.unwrap_or_else(|errors| panic!("{}: {by}: {errors}", case.key));
            built += 1;
        }
    }
    assert!(built > 90, "{built} drives");
}

/// Checks that values that DiskSim accepts and a modelled drive does not are replaced by the
/// nearest possible ones, with a note.
#[test]
fn a_value_beyond_the_model_becomes_the_nearest() {
    const BEYOND: &[(&str, &str, &str)] = &[
        ("= 6000", "= 1", "spindle_rpm = 60.0"),
        ("= 6000", "= 2147483647", "spindle_rpm = 30000.0"),
        ("= -0.25", "= -1.0e300", "write_settle_ms = -1000.0"),
        (
            "switch time = 0.5",
            "switch time = 5000",
            "head_switch_ms = 1000.0",
        ),
        (
            "queue length = 1",
            "queue length = 2147483647",
            "queue_depth = 65536",
        ),
        (
            "buffer segments = 2",
            "buffer segments = 2147483647",
            "cache_segments = 65536",
        ),
        (
            "miss over. after read = 0.3",
            "miss over. after read = 1.0e308",
            "read_miss_ms = 1000.0",
        ),
        (
            "for overheads = 1.0",
            "for overheads = 1.0e308",
            "read_hit_ms = 1000.0",
        ),
        (
            "reselect overhead = 0.0",
            "reselect overhead = 5.0e3",
            "link_reconnect_ms = 1000.0",
        ),
    ];
    for (piece, by, line) in BEYOND {
        let (entry, said) = imported_or_panic(by, &[(piece, by)]);
        assert!(entry.lines().any(|one| one == *line), "{by}: {entry}");
        let (key, _) = line.split_once(' ').expect("a key");
        assert!(said.iter().any(|one| one.contains(key)), "{by}: {said:?}");
    }
}
