//! Sequential-write zones (`zonemode=zbd`): the part of a file that they leave to a job.

use crate::job::{Access, Direction, Job, Verification, ZoneMode};
use crate::offsets::Region;
use diskperf_diagnostics::Problem;

/// Rejects zone sizes that are inconsistent for every file.
pub(crate) fn report_contradictions(job: &Job, refuse: &mut impl FnMut(&str, &str, &str, &str)) {
    let (pointers, zone_bytes) = (&job.write_pointers, job.zones.size_bytes);
    if zone_bytes == 0 {
        let (title, label) = ("zonemode=zbd without a zonesize", "how long is a zone?");
        let help = "add `zonesize=`, as `zonesize=256m` of most zoned disks";
        return refuse("zonemode", title, label, help);
    }
    if pointers.capacity_bytes > zone_bytes {
        let label = format!("a zone is {zone_bytes} bytes");
        let title = "a zone has no room for its zonecapacity";
        refuse("zonecapacity", title, &label, "lower it");
    }
    if !job.zones.skip_bytes.is_multiple_of(zone_bytes) {
        let label = format!("a zone is {zone_bytes} bytes");
        let title = "zoneskip is a number of whole zones";
        refuse("zoneskip", title, &label, "make it a multiple of zonesize");
    }
    check_block_sizes(job, refuse);
}

fn check_block_sizes(job: &Job, refuse: &mut impl FnMut(&str, &str, &str, &str)) {
    let zone_bytes = job.zones.size_bytes;
    let bounds = |direction| job.blocks.sizes(direction).bounds();
    let access = job.pattern.access;
    let writable_bytes = match job.write_pointers.capacity_bytes {
        0 => zone_bytes,
        bytes => bytes.min(zone_bytes),
    };
    let (smallest, largest) = bounds(Direction::Write);
    if access.does(Direction::Write) && (largest > zone_bytes || smallest > writable_bytes) {
        let label = format!("a zone takes {writable_bytes} bytes");
        let help = "lower `bs`, or raise `zonesize`";
        refuse("bs", "a write is longer than its zone", &label, help);
    }
    if access.does(Direction::Trim) && bounds(Direction::Trim) != (zone_bytes, zone_bytes) {
        let label = format!("a zone is {zone_bytes} bytes");
        let help = "give trims the zonesize as their block, the third value of `bs=`";
        refuse("bs", "a trim is of one whole zone", &label, help);
    }
    let is_verified = job.verify.kind != Verification::None;
    let divides = |&direction: &Direction| {
        let block_bytes = *job.blocks.bytes.get(direction);
        zone_bytes.is_multiple_of(block_bytes.max(1))
    };
    if is_verified && !Direction::ALL.iter().all(divides) {
        let label = format!("a zone is {zone_bytes} bytes");
        let help = "give blocks of which a zone holds a whole number";
        refuse("bs", "verified blocks do not fill a zone", &label, help);
    }
    if is_verified && job.write_pointers.reset_frequency > 0.0 {
        let label = "a zone that is reset has nothing to verify";
        let title = "zone_reset_frequency with verify";
        refuse("zone_reset_frequency", title, label, "remove one of them");
    }
}

/// Returns the part of a region that consists of whole zones. As in fio, sequential reads keep the
/// whole region.
pub(super) fn round_to_zones(job: &Job, region: Region) -> Result<Region, Problem> {
    if job.zones.mode != ZoneMode::WritePointers {
        return Ok(region);
    }
    let zone_bytes = job.zones.size_bytes.max(1);
    if region.file_bytes < zone_bytes {
        let title = format!("a file of {} bytes has no zone", region.file_bytes);
        let label = format!("a zone is {zone_bytes} bytes");
        let problem = Problem::error(title).at(job.place_of("zonesize"), label);
        return Err(problem.help("lower `zonesize`, or give a longer file"));
    }
    if job.pattern.access == Access::Read {
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
        let problem = Problem::error("the job has no whole zone");
        return Err(problem
            .at(job.place_of("size"), label)
            .help("raise `size`, or lower `zonesize`"));
    }
    Ok(Region {
        offset_bytes: start_bytes,
        length_bytes: end_bytes - start_bytes,
        ..region
    })
}
