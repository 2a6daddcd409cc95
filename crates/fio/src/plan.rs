//! Planned files of a job and the number of its I/Os.

pub(crate) mod zones;

use std::collections::BTreeMap;

use crate::job::{
    Amount, Direction, IoEngine, JobDefinition, OffsetDistribution, PerDirection, ReadWriteMode,
    Verification, ZoneMode,
};
use crate::offsets::{FileRegion, SequentialOffsets, StridedOffsets};
use diskperf_diagnostics::Problem;

/// Maximum number of offsets that are enumerated to count I/Os, which covers a 256 GiB file in 4
/// KiB blocks.
const COUNTED_OFFSETS_MAX: u64 = 1 << 26;

/// File that one clone uses, with its region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Path of the file as the job gives it. A path without a leading `/` is relative to the
    /// working directory.
    pub path: String,
    /// Region of the file that the clone uses, and the required length of the file.
    pub region: FileRegion,
}

/// Size of an existing file when a clone is set up, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSize {
    /// Size that does not change, of a device or of a file that is only read.
    Fixed(u64),
    /// Size of a file that other clones or earlier sections lay out. The clone may extend it.
    DrawnPerFile(u64),
}

impl FileSize {
    /// Returns the size in bytes, whether or not it may change.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Fixed(bytes) | Self::DrawnPerFile(bytes) => bytes,
        }
    }

    /// Returns the size in bytes if it cannot change, otherwise `None`.
    pub fn fixed_bytes(self) -> Option<u64> {
        match self {
            Self::Fixed(bytes) => Some(bytes),
            Self::DrawnPerFile(_) => None,
        }
    }
}

/// Returns the number of planned files of all clones of a job. A shared file counts once for each
/// clone, because each clone plans its own region.
pub fn file_count(job: &JobDefinition) -> u64 {
    let of_clone = match job.files.names.len() {
        0 => u64::from(job.files.count),
        named => named as u64,
    };
    u64::from(job.order.clone_count) * of_clone
}

/// Returns the file paths of a clone, without access to the file system. The first clone is 0.
pub fn file_paths(job: &JobDefinition, clone: u32) -> Vec<String> {
    let directories = &job.files.directories;
    let directory = directories.get(clone as usize % directories.len().max(1));
    let placed = |name: String| match directory {
        Some(directory) => format!("{}/{name}", directory.trim_end_matches('/')),
        None => name,
    };
    if !job.files.names.is_empty() {
        return job.files.names.iter().cloned().map(placed).collect();
    }
    let named = |number: u32| {
        let name = job.files.name_format.replace("$jobname", &job.section);
        let name = name.replace("$jobnum", &clone.to_string());
        let name = name.replace("$filenum", &number.to_string());
        name.replace("$clientuid", "")
    };
    (0..job.files.count).map(named).map(placed).collect()
}

/// Returns the files of a clone, with the region of each file that the clone uses. `existing` holds
/// the sizes of existing files.
///
/// # Errors
///
/// A size depends on a missing file, a region is empty, or all regions together are smaller than a
/// block.
pub fn plan_files(
    job: &JobDefinition,
    clone: u32,
    existing: &BTreeMap<String, FileSize>,
) -> Result<Vec<PlannedFile>, Problem> {
    if job.engine.engine == IoEngine::Cpuio {
        return Ok(Vec::new());
    }
    let paths = file_paths(job, clone);
    let count = paths.len() as u64;
    let planned = |path: String| {
        let region = file_region(job, clone, count, &path, existing.get(&path).copied());
        let region = zones::round_to_zones(job, region?)?;
        Ok(PlannedFile { path, region })
    };
    let files: Vec<PlannedFile> = paths.into_iter().map(planned).collect::<Result<_, _>>()?;
    let lengths = files.iter().map(|file| file.region.used_bytes());
    let all = lengths.fold(0, u64::saturating_add);
    let all = job
        .target
        .size
        .and_then(Amount::bytes)
        .map_or(all, |size| size.min(all));
    let block = job.block_bytes_min();
    // As fio, a clone that begins behind the end of a device does nothing.
    let begins_behind = |file: &PlannedFile| file.region.offset_bytes >= file.region.file_bytes;
    if all < block && !files.iter().any(begins_behind) {
        let problem = Problem::error(format!("{all} bytes are less than a block"));
        let label = format!("a block is {block} bytes");
        return Err(problem
            .at(job.option_place("size"), label)
            .help("raise `size` or lower `bs`"));
    }
    for file in &files {
        check_zones_within(job, file.region)?;
    }
    Ok(files)
}

/// Returns the [files](plan_files()) of each clone.
///
/// # Errors
///
/// Like [`plan_files()`] for one clone.
pub fn plan_clone_files(
    job: &JobDefinition,
    existing: &BTreeMap<String, FileSize>,
) -> Result<Vec<Vec<PlannedFile>>, Problem> {
    let first = existing;
    let mut existing = existing.clone();
    let of_clone = |clone| {
        let files = plan_files(job, clone, &existing)?;
        // As in fio, what one clone appends or lays out is there for the next.
        let grows = job.files.is_appended || job.lays_out_files();
        for file in files.iter().filter(|_| grows) {
            let laid_out = FileSize::DrawnPerFile(file.region.file_bytes);
            let size = existing.entry(file.path.clone()).or_insert(laid_out);
            if let FileSize::DrawnPerFile(bytes) = size {
                *bytes = file.region.file_bytes.max(*bytes);
            }
        }
        Ok(files)
    };
    let clones: Vec<Vec<PlannedFile>> = (0..job.order.clone_count)
        .map(of_clone)
        .collect::<Result<_, _>>()?;
    let is_used = |file: &PlannedFile| file.region.used_bytes() > 0;
    match clones.iter().flatten().next() {
        Some(file) if !clones.iter().flatten().any(is_used) => {
            let there = first.get(&file.path).and_then(|size| size.fixed_bytes());
            let file_bytes = there.unwrap_or(file.region.file_bytes);
            Err(empty_region_problem(
                job,
                file.region.offset_bytes,
                file_bytes,
            ))
        }
        Some(_) | None => Ok(clones),
    }
}

fn empty_region_problem(job: &JobDefinition, offset_bytes: u64, file_bytes: u64) -> Problem {
    let label = format!("this begins at byte {offset_bytes} of {file_bytes}");
    Problem::error("the offset leaves no part of the file")
        .at(job.option_place("offset"), label)
        .help("lower the offset")
}

/// Rejects zones in bytes that extend beyond the used region of a file.
fn check_zones_within(job: &JobDefinition, region: FileRegion) -> Result<(), Problem> {
    for &direction in job.pattern.access.directions() {
        let OffsetDistribution::ZonedBytes(zones) = job.random.distribution.get(direction) else {
            continue;
        };
        let extents = zones.iter().map(|zone| zone.area_extent);
        let end = extents.fold(0, u64::saturating_add);
        if job.pattern.access.is_random() && end > region.used_bytes() {
            let label = format!("they end at byte {end} of {}", region.used_bytes());
            let problem = Problem::error("zones extend beyond the end of the file");
            return Err(problem
                .at(job.option_place("random_distribution"), label)
                .help("fio stops at the first I/O beyond it; use fewer zones, or raise `size`"));
        }
    }
    Ok(())
}

fn file_region(
    job: &JobDefinition,
    clone: u32,
    count: u64,
    path: &str,
    size: Option<FileSize>,
) -> Result<FileRegion, Problem> {
    let existing = size.and_then(FileSize::fixed_bytes);
    let share = match job.target.size {
        // Without rounding to blocks: 64k over 3 files is 21845 bytes each.
        Some(Amount::Bytes(bytes)) => Some(bytes / count),
        Some(Amount::Percent(_)) | None => None,
    };
    let fixed = job.files.size_bytes;
    if job.files.is_appended {
        return appended_region(job, size.map_or(0, FileSize::bytes), share);
    }
    let file = match (existing, fixed, share) {
        (Some(bytes), Some((low, high)), _) if (low..=high).contains(&bytes) => bytes,
        (_, Some(range), _) => draw_file_bytes(job, path, range),
        (Some(bytes), None, _) => bytes,
        (None, None, Some(bytes)) => bytes,
        (None, None, None) => {
            let label = match job.target.size {
                Some(_) => "this is a share of an existing file",
                None => "this job has no size",
            };
            return Err(Problem::error("a missing file has no size")
                .at(job.option_place("size"), label)
                .help("give a `size` or a `filesize` in bytes, or --size on the command line"));
        }
    };
    // To the null engine every file is there.
    let is_there = job.engine.engine == IoEngine::Null;
    let missing_bytes = if is_there { file } else { 0 };
    let offset_bytes = start_offset_bytes(job, clone, size.map_or(missing_bytes, FileSize::bytes));
    let left = file.saturating_sub(offset_bytes);
    let length_bytes = match (fixed, share, job.target.size) {
        (None, Some(share), _) => share,
        (_, _, Some(Amount::Percent(percent))) => {
            let part = Amount::Percent(percent).resolve_bytes(file).min(left);
            part - part % job.block_bytes_min()
        }
        _ => left,
    };
    let region = FileRegion {
        offset_bytes,
        length_bytes,
        // What is there stays as long as it is: fio too does nothing beyond the end of a
        // device.
        file_bytes: existing.unwrap_or(file.max(offset_bytes.saturating_add(length_bytes))),
    };
    let is_sized = share.is_some() && existing.is_some();
    if region.used_bytes() == 0 && !is_sized {
        return Err(empty_region_problem(
            job,
            offset_bytes,
            existing.unwrap_or(file),
        ));
    }
    Ok(region)
}

/// Draws a file size from a range, in whole blocks as in fio. The result is the same in each run.
fn draw_file_bytes(job: &JobDefinition, path: &str, (low, high): (u64, u64)) -> u64 {
    if low == high {
        return low;
    }
    // The 64 bits of FNV-1a, of which the upper ones are then spread over all (splitmix64).
    let bytes = path.bytes().chain(job.random.seed.to_le_bytes());
    let mixed = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let share = u128::from(mixed ^ (mixed >> 31));
    let more = (u128::from(high - low) * share) >> 64;
    let size = low + u64::try_from(more).expect("a part of 64 bits");
    (size - size % job.block_bytes_min()).max(1)
}

/// Returns the region after the current end of a file for `file_append`. As in fio, `offset` has no
/// effect.
fn appended_region(
    job: &JobDefinition,
    end_bytes: u64,
    share: Option<u64>,
) -> Result<FileRegion, Problem> {
    let until_size = |(low, _): (u64, u64)| low.saturating_sub(end_bytes);
    let length = job.files.size_bytes.map(until_size).or(share);
    let Some(length_bytes) = length.filter(|length| *length > 0) else {
        let title = "the job appends nothing";
        return Err(Problem::error(title)
            .at(
                job.option_place("file_append"),
                format!("the file ends at byte {end_bytes}"),
            )
            .help("give a `size` in bytes, or a `filesize` beyond the end"));
    };
    Ok(FileRegion {
        offset_bytes: end_bytes,
        length_bytes,
        file_bytes: end_bytes.saturating_add(length_bytes),
    })
}

/// Returns the start of a clone's region in a file of the given size at setup. As in fio, a missing
/// file has size 0. Percentages are rounded up to a block.
fn start_offset_bytes(job: &JobDefinition, clone: u32, file_bytes: u64) -> u64 {
    let target = &job.target;
    let increment = target.offset_increment.resolve_bytes(file_bytes);
    let offset = target.offset.resolve_bytes(file_bytes);
    let offset = offset.saturating_add(increment.saturating_mul(clone.into()));
    let shares = [target.offset, target.offset_increment];
    if shares.iter().all(|amount| amount.bytes().is_some()) {
        return offset;
    }
    let align = match target.offset_align_bytes {
        0 => job.block_bytes_min(),
        align => align,
    };
    offset.checked_next_multiple_of(align).unwrap_or(offset)
}

/// Number of I/Os of a clone, exact or by share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoCounts {
    /// Exact number of I/Os for each direction.
    Exact(PerDirection<u64>),
    /// Total of reads and writes in a random mix; the direction of each I/O is drawn with this
    /// percentage of reads.
    Mixed {
        /// Number of reads and writes together.
        total: u64,
        /// Share of reads, in percent.
        read_percent: u8,
    },
}

impl IoCounts {
    /// Returns the number of I/Os of all directions.
    pub fn total(&self) -> u64 {
        match self {
            IoCounts::Exact(each) => each.read + each.write + each.trim,
            IoCounts::Mixed { total, .. } => *total,
        }
    }
}

/// Returns the number of I/Os of a clone on these files, unless time ends the job first. Returns
/// `None` if the number cannot be predicted: a `time_based` job, several block sizes, random zones,
/// a `percentage_random` below 100, an `io_size` with `do_verify=0`, trims and writes that need not
/// form pairs, or more than 2^26 blocks with gaps between them.
pub fn predict_ios(job: &JobDefinition, files: &[PlannedFile]) -> Option<IoCounts> {
    let block = job
        .blocks
        .choice(job.pattern.access.first_direction())
        .single_bytes()?;
    let mut directions = job.pattern.access.directions().iter();
    let same =
        directions.all(|&direction| job.blocks.choice(direction).single_bytes() == Some(block));
    let is_drawn = |&direction: &Direction| *job.random.random_percent.get(direction) == 100;
    let mut directions = job.pattern.access.directions().iter();
    let may_go_on = job.pattern.access.is_random() && !directions.all(is_drawn);
    // Where another direction has smaller blocks, the map ends a file at a place that is drawn.
    let ends_by_chance =
        job.pattern.access.is_random() && job.has_random_map() && block != job.map_unit_bytes();
    // Which zone takes a write, and what of it can be read, is known as it is issued.
    if job.zones.mode == ZoneMode::WritePointers {
        return None;
    }
    let goes_on_behind = job.target.io_size.is_some() && !job.restarts_each_pass();
    if has_unpaired_trims(job, files) {
        return None;
    }
    if goes_on_behind
        || job.durations.is_time_based
        || !same
        || block == 0
        || may_go_on
        || ends_by_chance
    {
        return None;
    }
    total_ios(job, files, block).map(|total| split_by_direction(job, total))
}

/// Tests whether trims and writes need not form pairs, or whether their number changes from pass to
/// pass.
fn has_unpaired_trims(job: &JobDefinition, files: &[PlannedFile]) -> bool {
    let is_random = match job.pattern.access {
        ReadWriteMode::TrimWrite => false,
        ReadWriteMode::RandomTrimWrite => true,
        _ => return false,
    };
    let begins_later = files.iter().any(|file| file.region.offset_bytes > 0);
    let is_apart = is_random && (begins_later || !job.has_random_map());
    let grows = job.target.ios_max.is_some() && job.target.loops > 1;
    is_apart || grows || job.zones.mode == ZoneMode::Strided
}

fn split_by_direction(job: &JobDefinition, total: u64) -> IoCounts {
    let mut each = PerDirection::default();
    match job.pattern.access {
        ReadWriteMode::Mixed | ReadWriteMode::RandomMixed => {
            return IoCounts::Mixed {
                total,
                read_percent: job.pattern.read_percent,
            };
        }
        // Each block is trimmed, then written.
        ReadWriteMode::TrimWrite | ReadWriteMode::RandomTrimWrite => {
            (each.write, each.trim) = (total, total)
        }
        access => *each.get_mut(access.first_direction()) = total,
    }
    if job.verify.kind != Verification::None && job.verify.reads_back && each.write > 0 {
        each.read = each.write;
    }
    IoCounts::Exact(each)
}

/// Returns the total number of I/Os of all passes. As in fio's `keep_running`, passes repeat until
/// the requested amount is done.
fn total_ios(job: &JobDefinition, files: &[PlannedFile], block: u64) -> Option<u64> {
    let regions = files.iter().map(|file| file.region);
    let lengths: u64 = regions.clone().map(|region| region.length_bytes).sum();
    let size = job.target.size.and_then(Amount::bytes);
    let size = size.map_or(lengths, |size| size.min(lengths));
    let io_size = job.target.io_size.map(|amount| amount.resolve_bytes(size));
    let loops = u64::from(job.target.loops);
    let limit = io_size.unwrap_or(size);
    let most = limit.saturating_mul(loops).div_ceil(block);
    let pass = pass_bytes(job, regions, block)?.min(size.max(io_size.unwrap_or(0)).div_ceil(block));
    if pass > 0 && reads_back_writes(job) {
        return add_read_back_ios(job, pass, block, (limit, most));
    }
    let pass = job.target.ios_max.map_or(pass, |most| pass.min(most));
    if pass == 0 {
        return Some(0);
    }
    let looped = pass.saturating_mul(loops).min(most);
    if !job.repeats_passes() {
        return Some(looped);
    }
    // After the loops it goes on as long as a whole block is left.
    let mut done = looped;
    let most_ios = job.target.ios_max.unwrap_or(u64::MAX);
    while done < most
        && limit.saturating_sub(done.saturating_mul(block)) >= job.pass_remainder_bytes_min()
        && done < most_ios
    {
        let full = (limit / block - done) / pass;
        done = match full {
            0 => (done + pass).min(most),
            full => done + full * pass,
        };
    }
    Some(done.min(most_ios.max(looped)))
}

fn reads_back_writes(job: &JobDefinition) -> bool {
    let writes = job.pattern.access.includes(Direction::Write);
    writes && job.verify.kind != Verification::None && job.verify.reads_back
}

/// Returns the number of writes of passes that are read back. As in fio, reads for verification
/// count when fio decides whether another pass follows.
fn add_read_back_ios(
    job: &JobDefinition,
    pass: u64,
    block: u64,
    (limit, most): (u64, u64),
) -> Option<u64> {
    let limits_ios = job.target.io_size.is_some() || job.target.ios_max.is_some();
    if job.pattern.access.directions() != [Direction::Write] && limits_ios {
        return None;
    }
    let most_ios = job.target.ios_max.unwrap_or(u64::MAX);
    let most_ios = most_ios.saturating_mul(job.target.loops.into());
    let mut writes = 0u64;
    for number in 1..COUNTED_OFFSETS_MAX {
        let ios = writes.saturating_mul(2);
        writes += pass.min(most - writes).min(most_ios.saturating_sub(ios));
        let ios = writes.saturating_mul(2);
        let left = limit.saturating_sub(ios.saturating_mul(block));
        let goes_round = job.repeats_passes();
        let has_loops = number < job.target.loops.into();
        let follows =
            has_loops || (goes_round && left > 0 && left >= job.pass_remainder_bytes_min());
        if !follows || writes >= most || ios >= most_ios {
            return Some(writes);
        }
    }
    None
}

/// Returns the number of I/Os of one pass over the files, or `None` if it cannot be determined.
fn pass_bytes(
    job: &JobDefinition,
    regions: impl Iterator<Item = FileRegion>,
    block: u64,
) -> Option<u64> {
    let access = job.pattern.access;
    let strided = job.zones.mode == ZoneMode::Strided;
    if access.is_random() {
        let of_file = |region: FileRegion| region.blocks(block);
        return match (strided, job.has_random_map()) {
            (true, _) => None,
            (false, false) => Some(u64::MAX),
            (false, true) => Some(regions.map(of_file).fold(0, u64::saturating_add)),
        };
    }
    let both = if access == ReadWriteMode::Mixed { 2 } else { 1 };
    let of_file = |region: FileRegion| {
        // Which of the two comes to the end of a device first is drawn.
        if both == 2 && region.used_bytes() < region.length_bytes {
            return None;
        }
        let most = region.length_bytes.div_ceil(block);
        let skip = job.pattern.skip_bytes;
        let count = match (strided, skip) {
            (false, 0) => region.blocks(block),
            _ if most > COUNTED_OFFSETS_MAX => return None,
            (true, _) => StridedOffsets::new(region, block, job.zones)?
                .take(most as usize)
                .count() as u64,
            (false, skip) => SequentialOffsets::new(region, block, skip)
                .take(most as usize)
                .count() as u64,
        };
        Some(count.saturating_mul(both))
    };
    let mut all = 0u64;
    for region in regions {
        all = all.saturating_add(of_file(region)?);
    }
    Some(all)
}

#[cfg(test)]
mod tests;
