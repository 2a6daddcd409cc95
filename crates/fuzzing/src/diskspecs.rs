//! Fuzz targets for DiskSim's parameter files with their included files, and for validation traces.

use diskperf_diskspecs::layout::BlockLayout;
use diskperf_diskspecs::phase::{self, PhaseAssumptions};
use diskperf_diskspecs::{SeekTable, SpecificationFiles, SpecifiedDrive, import, trace};

use super::{FuzzBody, FuzzTarget, to_byte_inputs, to_text};

const MODEL_FILE: &str = include_str!("../../diskspecs/tests/data/small.model");
const ELECTRONICS_FILE: &str = include_str!("../../diskspecs/tests/data/small.diskspecs");
const RUN_FILE: &str = include_str!("../../diskspecs/tests/data/small.parv");
const COMPLETE_FILE: &str = include_str!("../../diskspecs/tests/data/whole.parv");
const SEEK_FILE: &str = include_str!("../../diskspecs/tests/data/small.seek");

pub(super) const DRIVE: FuzzTarget = FuzzTarget {
    name: "drive_file",
    make_body: make_drive_body,
    make_seeds: || {
        to_byte_inputs([
            MODEL_FILE,
            ELECTRONICS_FILE,
            RUN_FILE,
            COMPLETE_FILE,
            SEEK_FILE,
            "dm_disk D { Block count = 80, Number of cylinders = 4, Number of data surfaces = 2,
             Layout Model = dm_layout_g4 { TP = [ 0, 9, 10 ], IDX = [ [ 0, 0, 0.0, 10, 1, 0.15,
             40, 4, TRACK, 0, 0, 40, 3, 0.0, 10, -1, 0.15, 40, 4, TRACK, 0, 1 ] ],
             Slips = [ 5, 1 ], Remaps = [ 12, 1, 4, 0, 3, 10 ] }, Mechanical Model = dm_mech_g1 {
             Access time type = trackSwitchPlusRotation, Seek type = constant,
             Constant seek time = 2.5, Head switch time = 0.5, Add. write settling delay = 0.0,
             Rotation speed (in rpms) = 6000 } }",
            "an\nold\nmap\nlbn 0 --> cyl 0, head 0, sect 0, seqcnt 9\n",
        ])
    },
    keywords: &[
        "source ",
        "small.model",
        "any",
        "dm_layout_g1_zone {",
        "dm_layout_g2 {",
        "Layout Map File = any",
        "dm_layout_g4 {",
        "Sparing scheme used = ",
        "Skew units = revolutions,",
        "slips = [",
        "defects = [",
        "Number of spares = ",
        "Segment size (in blks) = ",
        "Rangesize for sparing = ",
        "disksim_synthgen {",
        "Read-ahead over requested = -1",
        "2147483647",
        "TRACK",
        "IDX",
        "topology ",
        "instantiate [",
        " .. ",
        "{",
        "}",
        "[",
        "]",
        ",",
        "=",
        "#",
        "0x",
        "-1",
        "1.0e308",
    ],
};

pub(super) const TRACE: FuzzTarget = FuzzTarget {
    name: "drive_trace",
    make_body: make_trace_body,
    make_seeds: || {
        to_byte_inputs([
            "R Hit    29   4  13670.00000  35942.00000\nW Hit    33   8   1971.00000  29108.00000\n",
            "R Miss 1 14 12434.375000 27307.318970\n",
        ])
    },
    keywords: &["R ", "W ", "Hit ", "Miss ", ".5", "1e12", "-", "nan", "\n"],
};

/// Returns the files of the drive in `small.parv`, with one of them replaced.
fn specification_files(name: &str, content: String) -> SpecificationFiles {
    let parts = [
        ("small.model", MODEL_FILE),
        ("small.diskspecs", ELECTRONICS_FILE),
        ("small.parv", RUN_FILE),
        ("small.seek", SEEK_FILE),
    ];
    let parts = parts.map(|(name, content)| (name.to_owned(), content.to_owned()));
    let mut files = std::collections::BTreeMap::from(parts);
    files.insert(name.to_owned(), content);
    SpecificationFiles::Memory(files)
}

/// Creates a parser call that reads the input as each kind of drive file and maps blocks of the
/// resulting drives.
fn make_drive_body() -> FuzzBody {
    Box::new(|bytes| {
        let content = to_text(bytes);
        if let Ok(table) = SeekTable::parse("any", &content) {
            assert!(table.seek_ms(u32::MAX) >= 0.0);
        }
        for (name, first) in [("any", "any"), ("small.model", "small.parv")] {
            match import(first, &specification_files(name, content.clone())) {
                Ok(import) => {
                    for warning in &import.warnings {
                        warning.render(false);
                    }
                    import.drives.iter().take(4).for_each(check_block_mapping);
                }
                Err(errors) => assert!(!errors.render(false).is_empty()),
            }
        }
    })
}

fn check_block_mapping(drive: &SpecifiedDrive) {
    let layout = &drive.model.layout;
    let last = layout.block_count() - 1;
    for block in [0, 1, last / 3, last / 2, last] {
        let Some(spot) = layout.locate_block(block) else {
            assert!(block > last, "block {block} has no place");
            continue;
        };
        assert!((0.0..1.0).contains(&spot.angle), "{spot:?}");
        let back = layout.find_block_at(spot.cylinder, spot.head, spot.sector);
        // A tree of patterns may put two blocks at one place, which nobody can see at once.
        let is_tree = matches!(layout, BlockLayout::Indexed(_));
        assert!(is_tree || back == Some(block), "{block}: {spot:?} {back:?}");
    }
    let seek = &drive.model.mechanics.seek_curve;
    assert!(!seek.seek_ms(1, drive.model.cylinder_count).is_nan());
}

/// Creates a parser call that reads the input as a trace and searches for the rotational phase of a
/// small drive.
fn make_trace_body() -> FuzzBody {
    let drives = import("small.parv", &specification_files("any", String::new())).expect("a drive");
    let layout = drives.drives[0].model.layout.clone();
    Box::new(move |bytes| {
        let assumed = PhaseAssumptions {
            period_us: 10_000.0,
            transfer_us: 50.0,
            has_write_through: true,
        };
        match trace::parse("any", &to_text(bytes)) {
            Ok(requests) => drop(phase::find_phase(&layout, &requests, &assumed)),
            Err(errors) => assert!(!errors.render(false).is_empty()),
        }
    })
}
