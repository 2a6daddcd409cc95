//! Sequential-write zones (`zonemode=zbd`): the part of a file that they leave to a job.

use crate::job::{Direction, JobDefinition, ReadWriteMode, Verification, ZoneMode};
use crate::offsets::FileRegion;
use diskperf_diagnostics::Problem;

/// Rejects zone sizes that are inconsistent for every file.
pub(crate) fn report_contradictions(
    job: &JobDefinition,
    refuse: &mut impl FnMut(&str, &str, &str, &str),
) {
    let (pointers, zone_bytes) = (&job.write_pointers, job.zones.size_bytes);
    if zone_bytes == 0 {
        let (title, label) = ("zonemode=zbd without a zonesize", "the zones have no size");
        let help = "add `zonesize=`, such as `zonesize=256m`, the size of most zoned disks";
        return refuse("zonemode", title, label, help);
    }
    if pointers.capacity_bytes > zone_bytes {
        let label = format!("a zone is {zone_bytes} bytes");
        let title = "zonecapacity exceeds the zone size";
        refuse("zonecapacity", title, &label, "lower it");
    }
    if !job.zones.skip_bytes.is_multiple_of(zone_bytes) {
        let label = format!("a zone is {zone_bytes} bytes");
        let title = "zoneskip must be a multiple of the zone size";
        refuse("zoneskip", title, &label, "make it a multiple of zonesize");
    }
    check_block_sizes(job, refuse);
}

fn check_block_sizes(job: &JobDefinition, refuse: &mut impl FnMut(&str, &str, &str, &str)) {
    let zone_bytes = job.zones.size_bytes;
    let bounds = |direction| job.blocks.choice(direction).bounds_bytes();
    let access = job.pattern.access;
    let writable_bytes = match job.write_pointers.capacity_bytes {
        0 => zone_bytes,
        bytes => bytes.min(zone_bytes),
    };
    let (smallest, largest) = bounds(Direction::Write);
    if access.includes(Direction::Write) && (largest > zone_bytes || smallest > writable_bytes) {
        let label = format!("the zone capacity is {writable_bytes} bytes");
        let help = "lower `bs`, or raise `zonesize`";
        refuse("bs", "a write is longer than its zone", &label, help);
    }
    if access.includes(Direction::Trim) && bounds(Direction::Trim) != (zone_bytes, zone_bytes) {
        let label = format!("a zone is {zone_bytes} bytes");
        let help = "set the trim block size, the third value of `bs=`, to zonesize";
        refuse("bs", "a trim must cover exactly one zone", &label, help);
    }
    let is_verified = job.verify.kind != Verification::None;
    let divides = |&direction: &Direction| {
        let block_bytes = *job.blocks.fixed_bytes.get(direction);
        zone_bytes.is_multiple_of(block_bytes.max(1))
    };
    if is_verified && !Direction::ALL.iter().all(divides) {
        let label = format!("a zone is {zone_bytes} bytes");
        let help = "use a block size that divides the zone size";
        refuse(
            "bs",
            "verified blocks do not divide the zone size",
            &label,
            help,
        );
    }
    if is_verified && job.write_pointers.reset_rate > 0.0 {
        let label = "a reset zone has no data to verify";
        let title = "zone_reset_frequency with verify";
        refuse("zone_reset_frequency", title, label, "remove one of them");
    }
}

/// Returns the part of a region that consists of whole zones. As in fio, sequential reads keep the
/// whole region.
pub(super) fn round_to_zones(
    job: &JobDefinition,
    region: FileRegion,
) -> Result<FileRegion, Problem> {
    if job.zones.mode != ZoneMode::WritePointers {
        return Ok(region);
    }
    let zone_bytes = job.zones.size_bytes.max(1);
    if region.file_bytes < zone_bytes {
        let title = format!("a file of {} bytes has no zone", region.file_bytes);
        let label = format!("a zone is {zone_bytes} bytes");
        let problem = Problem::error(title).at(job.option_place("zonesize"), label);
        return Err(problem.help("lower `zonesize`, or use a larger file"));
    }
    if job.pattern.access == ReadWriteMode::Read {
        return Ok(region);
    }
    let start_bytes = region.offset_bytes.next_multiple_of(zone_bytes);
    let all_bytes = region.file_bytes.next_multiple_of(zone_bytes);
    let end_bytes = region.offset_bytes.saturating_add(region.length_bytes);
    let end_bytes = match end_bytes > region.file_bytes {
        true => all_bytes,
        false => end_bytes - end_bytes % zone_bytes,
    };
    if end_bytes <= start_bytes {
        let label = format!("a zone is {zone_bytes} bytes");
        let problem = Problem::error("the job's region contains no whole zone");
        return Err(problem
            .at(job.option_place("size"), label)
            .help("raise `size`, or lower `zonesize`"));
    }
    Ok(FileRegion {
        offset_bytes: start_bytes,
        length_bytes: end_bytes - start_bytes,
        ..region
    })
}
