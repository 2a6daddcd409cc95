//! File system of the seventh edition as described in the catalogue.

use super::DriveSpecification;
use crate::kernel::v7::{BLOCK_BYTES, V7Parameters, file_capacity_bytes};
use diskperf_catalogue::{Component, Reader, ResolvedSystem};

/// Maximum number of blocks per cylinder that mkfs can order (MAXFN).
const CYLINDER_BLOCKS_MAX: u64 = 500;

/// Reads the parameters of mkfs, and validates them against every drive. None if programs use the
/// raw drives.
pub(super) fn read_filesystem(
    system: &ResolvedSystem,
    drives: &[DriveSpecification],
) -> Option<V7Parameters> {
    let mut reader = system.reader(Component::Filesystem, None);
    let kinds = [("v7", true), ("none", false)];
    if !reader.choice("kind", &kinds, "kind of file system, if any") {
        for key in ["gap_blocks", "cylinder_gap_sectors", "blocks_per_cylinder"] {
            reader.optional_integer(
                key,
                0..=u64::MAX,
                "parameter of a file system, unused without one",
            );
        }
        reader.finish();
        return None;
    }
    let blocks_per_cylinder = reader.integer(
        "blocks_per_cylinder",
        1..=CYLINDER_BLOCKS_MAX,
        "blocks per cylinder, as given to mkfs",
    );
    let gap_blocks = reader.integer(
        "gap_blocks",
        0..=CYLINDER_BLOCKS_MAX,
        "distance between consecutive blocks of a file (mkfs's gap, if that is a distance)",
    );
    let cylinder_gap_sectors = reader.integer(
        "cylinder_gap_sectors",
        0..=CYLINDER_BLOCKS_MAX,
        "skew of each cylinder, in sectors (mkfs's gap, if that is a delay)",
    );
    for (key, gap) in [
        ("gap_blocks", gap_blocks),
        ("cylinder_gap_sectors", cylinder_gap_sectors),
    ] {
        if gap >= blocks_per_cylinder {
            let message = format!("{gap} is no less than the {blocks_per_cylinder} of a cylinder");
            let allowed = format!("0 to {}", blocks_per_cylinder - 1);
            reader.fail_with_choices(key, &message, &allowed);
        }
    }
    let parameters = V7Parameters {
        gap_blocks: gap_blocks as u32,
        cylinder_gap_sectors: cylinder_gap_sectors as u32,
        blocks_per_cylinder: blocks_per_cylinder as u32,
    };
    check_drives(&mut reader, drives, parameters);
    reader.finish();
    Some(parameters)
}

fn check_drives(reader: &mut Reader<'_>, drives: &[DriveSpecification], parameters: V7Parameters) {
    for partition in drives.iter().flat_map(|drive| &drive.partitions) {
        let sector_bytes = partition.disk_label.sector_bytes as usize;
        if sector_bytes != BLOCK_BYTES {
            let message = format!("its blocks are sectors of {BLOCK_BYTES} bytes");
            reader.fail("kind", &message);
            return;
        }
        if let Err(error) = file_capacity_bytes(partition.size_bytes(), parameters) {
            reader.fail("kind", &error.to_string());
            return;
        }
    }
}
