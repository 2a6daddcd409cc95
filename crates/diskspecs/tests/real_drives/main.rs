//! Four drives whose parameters and traces were published. They are not part of this
//! project: `DISKPERF_DRIVES` names the folder that has them, and without it these tests
//! say that they were skipped.

mod phase;

use diskperf_diskspecs::layout::{BlockLayout, CylinderMapping, SparingScheme};
use diskperf_diskspecs::{
    FastWriteSupport, ImportedSpecification, ReadAheadExtent, SpecificationFiles, SpecifiedDrive,
    import, trace,
};
use std::path::{Path, PathBuf};

/// The folder, unless there is none.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DISKPERF_DRIVES").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED {test}: DISKPERF_DRIVES names no folder of measured drives");
    }
    folder
}

pub(crate) fn imported(folder: &Path, file: &str) -> ImportedSpecification {
    let search = vec![folder.to_owned()];
    import(file, &SpecificationFiles::FileSystem { search })
        .unwrap_or_else(|errors| panic!("{errors}"))
}

pub(crate) fn drive(folder: &Path, name: &str) -> SpecifiedDrive {
    let mut drives = imported(folder, &format!("{name}.parv")).drives;
    assert_eq!(drives.len(), 1, "{name}");
    drives.remove(0)
}

pub(crate) fn requests(folder: &Path, name: &str) -> Vec<trace::ValidationRequest> {
    let name = format!("{name}.trace");
    let content = std::fs::read_to_string(folder.join(&name)).expect("a trace");
    trace::parse(&name, &content).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The drives' names, and what is known of them from elsewhere: blocks by the sum of
/// their zones, and a sector of a read to the host in milliseconds.
const DRIVES: [(&str, u64, f64); 4] = [
    ("hp_c2490a", 4_165_272, 0.14841),
    ("barracuda", 4_217_670, 0.134),
    ("cheetah4LP", 8_887_940, 0.106),
    ("atlas10k", 17_966_953, 0.099),
];

/// Every one of so many blocks is tried, and every place of so many cylinders.
const BLOCK_STEP: usize = 13;
const CYLINDER_STEP: usize = 17;

#[test]
fn the_sum_of_the_zones_is_the_drive() {
    let Some(folder) = folder("the_sum_of_the_zones_is_the_drive") else {
        return;
    };
    for (name, blocks, sector_ms) in DRIVES {
        let drive = drive(&folder, name);
        assert_eq!(drive.model.layout.block_count(), blocks, "{name}");
        assert_eq!(drive.read_sector_ms(), sector_ms, "{name}");
        assert_eq!(drive.model.layout.locate_block(blocks), None, "{name}");
    }
}

#[test]
fn blocks_map_to_places_and_back() {
    let Some(folder) = folder("blocks_map_to_places_and_back") else {
        return;
    };
    for (name, blocks, _) in DRIVES {
        let model = drive(&folder, name).model;
        for block in (0..blocks).step_by(BLOCK_STEP).chain([blocks - 1]) {
            let spot = model.layout.locate_block(block).expect("a place");
            let back = model
                .layout
                .find_block_at(spot.cylinder, spot.head, spot.sector);
            assert_eq!(back, Some(block), "{name} {spot:?}");
        }
        for cylinder in (0..model.cylinder_count).step_by(CYLINDER_STEP) {
            for head in 0..model.surface_count {
                // Beyond the end of the longest track.
                for sector in 0..400 {
                    let Some(block) = model.layout.find_block_at(cylinder, head, sector) else {
                        continue;
                    };
                    let spot = model.layout.locate_block(block).expect("a place");
                    let place = (spot.cylinder, spot.head, spot.sector);
                    assert_eq!(place, (cylinder, head, sector), "{name} {block}");
                }
            }
        }
    }
}

#[test]
fn values_are_those_of_the_files() {
    let Some(folder) = folder("values_are_those_of_the_files") else {
        return;
    };
    let old = drive(&folder, "hp_c2490a");
    let firmware = old.firmware.expect("its electronics");
    assert_eq!(old.model.mechanics.write_settle_ms, -0.642);
    assert_eq!(firmware.read_miss_ms.read, 3.616);
    assert_eq!(firmware.write_hit_ms.write, 0.823_910);
    assert_eq!(
        firmware.buffer.read_ahead_extent,
        ReadAheadExtent::SegmentSize
    );
    assert_eq!(firmware.buffer.fast_write, FastWriteSupport::None);
    assert!(firmware.holds_bus_during_read && !firmware.holds_bus_during_write);
    // The last zone ends one cylinder behind the drive's stated last.
    assert_eq!(old.model.cylinder_count, 2630);
    let jumping = drive(&folder, "barracuda").model;
    let seek = |distance| {
        jumping
            .mechanics
            .seek_curve
            .seek_ms(distance, jumping.cylinder_count)
    };
    assert_eq!((seek(25), seek(30)), (2.556, 3.549));
    let free = drive(&folder, "atlas10k");
    let cache = free.firmware.expect("its electronics").buffer;
    assert_eq!((cache.segments, cache.segment_blocks), (10, 374));
    assert_eq!(cache.read_ahead_extent, ReadAheadExtent::NextTrackEnd);
    assert!(cache.reads_blocks_while_waiting && cache.fast_write == FastWriteSupport::Mixed);
    let BlockLayout::Zoned(layout) = &free.model.layout else {
        panic!("atlas10k has zones");
    };
    assert_eq!(layout.zones().len(), 24);
    assert_eq!(layout.mapping(), CylinderMapping::SerpentineByZone);
    assert_eq!(layout.sparing(), SparingScheme::ZoneEnd);
    assert_eq!(layout.zones()[0].track_skew, 63.0 / 334.0);
}

#[test]
fn nothing_of_a_file_is_lost_in_silence() {
    let Some(folder) = folder("nothing_of_a_file_is_lost_in_silence") else {
        return;
    };
    let import = imported(&folder, "barracuda.parv");
    let has = |key: &str| import.ignored_keys.iter().any(|line| line.key == key);
    for key in [
        "Allow sneaky full read hits",
        "Percent error in rpms",
        "Single cylinder seek time",
        "disksim_stats Stats",
        "Probability of local access",
    ] {
        assert!(has(key), "{key}");
    }
    let titles: Vec<&str> = import
        .warnings
        .iter()
        .map(|warning| warning.title())
        .collect();
    assert_eq!(
        titles,
        ["the layout has 4217670 blocks, which diskperf uses"]
    );
}
