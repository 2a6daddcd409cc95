//! Measurement of the catalogue's expected figures (`expected/`) on a single disk.

use super::serve_one;
use crate::disk::device::{Disk, DiskSpecification};
use crate::disk::spindle::RotationAngle;
use crate::{ClosedLoop, Command, Device, Drive, Operation};
use diskperf_catalogue::DiskFigure;
use diskperf_sim::{RandomStreams, Time};

/// Seed of the random positions for reads and writes.
pub const LOAD_SEED: u64 = 17;
const WRITE: Operation = Operation::Write { fua: false };
/// Size of a random or synchronous request, in bytes.
const BLOCK_BYTES: u32 = 4096;
/// Size of a sequential request, in bytes.
const STREAM_CALL_BYTES: u32 = 1 << 20;
/// Length of a sequential stream of reads, and of the writes that fill the buffer before a measured
/// stream, in MiB.
const STREAM_MEBIBYTES: u64 = 400;
const MB_PER_MEBIBYTE: f64 = 1.048_576;
const SYNCED_WRITE_COUNT: u64 = 3000;
/// Angle of the platters at time zero, in revolutions. The value is arbitrary.
const PHASE_REV: f64 = 0.4;

/// Measures a figure of a disk, in the figure's unit. At queue depths above 1 the age limit is off,
/// because the theory has none.
///
/// # Panics
///
/// When the specification is invalid, the disk is smaller than the data to be read, or a figure of
/// the media cache is measured on a disk without one.
pub fn measure_figure(specification: &DiskSpecification, figure: DiskFigure, depth: u32) -> f64 {
    let mut specification = specification.clone();
    if depth > 1 {
        specification.queue.age_limit_ms = None;
    }
    let mut drive = build_drive(&specification);
    let depth = u64::from(depth);
    match figure {
        DiskFigure::RandomReadMs => {
            measure_random_ms(&mut drive, (Operation::Read, LOAD_SEED), depth, (500, 8000))
        }
        DiskFigure::SequentialReadOuterMbPerS => measure_read_mb_per_s(&mut drive, 0),
        DiskFigure::SequentialReadInnerMbPerS => {
            let call = u64::from(bytes_to_sectors(&drive, STREAM_CALL_BYTES));
            let block = u64::from(bytes_to_sectors(&drive, BLOCK_BYTES));
            let end = drive.device().sectors() / block * block;
            measure_read_mb_per_s(&mut drive, end - call * (STREAM_MEBIBYTES + 1))
        }
        DiskFigure::SequentialWriteMbPerS => measure_write_mb_per_s(&mut drive),
        DiskFigure::AppendedSyncMs => measure_synced_ms(&mut drive, |number, _| number),
        DiskFigure::RandomSyncMs => measure_synced_ms(&mut drive, |_, place| place),
        DiskFigure::WriteAfterIdleMs => measure_after_idle_ms(&mut drive),
        DiskFigure::WriteMapFullMs => {
            let bands = specification.shingled.expect("a disk with a media cache");
            // The map, what the buffer takes, and one by one.
            let before = u64::from(bands.map_extents_max) + 2000;
            measure_random_ms(&mut drive, (WRITE, LOAD_SEED), 32, (before, 200))
        }
    }
}

/// Creates the idle disk on which figures are measured.
///
/// # Panics
///
/// When the specification is invalid.
pub fn build_drive(specification: &DiskSpecification) -> Drive {
    let disk = Disk::new(specification, RotationAngle::from_revolutions(PHASE_REV));
    let disk = disk.expect("a specification that was checked");
    Drive::new(Device::Disk(Box::new(disk)))
}

fn bytes_to_sectors(drive: &Drive, bytes: u32) -> u32 {
    (bytes / drive.device().sector_bytes()).max(1)
}

/// Measures the mean time between completions of random 4 KiB requests in a closed loop, in ms. The
/// first `before` completions are a warm-up.
///
/// # Panics
///
/// When the drive's queue is shallower than `depth`.
pub fn measure_random_ms(
    drive: &mut Drive,
    (operation, seed): (Operation, u64),
    depth: u64,
    (before, count): (u64, u64),
) -> f64 {
    let mut draws = RandomStreams::new(seed).named_stream("blocks");
    let sectors = bytes_to_sectors(drive, BLOCK_BYTES);
    let blocks = drive.device().sectors() / u64::from(sectors);
    let next = || Command {
        operation,
        sector: draws.draw_below(blocks) * u64::from(sectors),
        sectors,
    };
    let mut asked = ClosedLoop::start(drive, depth as u32, next).expect("a queue of that depth");
    let done = |asked: &mut ClosedLoop<_>, count| {
        asked.by_ref().take(count as usize).for_each(drop);
        asked.drive().now()
    };
    let begun = done(&mut asked, before);
    (done(&mut asked, count) - begun).as_millis() / count as f64
}

fn measure_read_mb_per_s(drive: &mut Drive, first: u64) -> f64 {
    let sectors = bytes_to_sectors(drive, STREAM_CALL_BYTES);
    serve_one(drive, Operation::Read, first, sectors);
    let begun = drive.now();
    for call in 1..=STREAM_MEBIBYTES {
        let sector = first + u64::from(sectors) * call;
        serve_one(drive, Operation::Read, sector, sectors);
    }
    STREAM_MEBIBYTES as f64 * MB_PER_MEBIBYTE / (drive.now() - begun).as_seconds()
}

fn measure_write_mb_per_s(drive: &mut Drive) -> f64 {
    let sectors = bytes_to_sectors(drive, STREAM_CALL_BYTES);
    let write = |drive: &mut Drive, calls: std::ops::Range<u64>| {
        calls.for_each(|call| serve_one(drive, WRITE, u64::from(sectors) * call, sectors));
        drive.now()
    };
    let begun = write(drive, 0..STREAM_MEBIBYTES);
    let ended = write(drive, STREAM_MEBIBYTES..3 * STREAM_MEBIBYTES);
    2.0 * STREAM_MEBIBYTES as f64 * MB_PER_MEBIBYTE / (ended - begun).as_seconds()
}

/// Measures the mean time of a 4 KiB write followed by a flush, in ms. `place` returns the block to
/// write, given the number of the write and a random block.
fn measure_synced_ms(drive: &mut Drive, place: impl Fn(u64, u64) -> u64) -> f64 {
    let mut draws = RandomStreams::new(LOAD_SEED).named_stream("synced");
    let sectors = bytes_to_sectors(drive, BLOCK_BYTES);
    let blocks = drive.device().sectors() / u64::from(sectors);
    for number in 0..SYNCED_WRITE_COUNT {
        let block = place(number, draws.draw_below(blocks));
        serve_one(drive, WRITE, block * u64::from(sectors), sectors);
        serve_one(drive, Operation::Flush, 0, 0);
    }
    drive.now().as_millis() / SYNCED_WRITE_COUNT as f64
}

fn measure_after_idle_ms(drive: &mut Drive) -> f64 {
    let mut draws = RandomStreams::new(LOAD_SEED).named_stream("synced");
    let sectors = bytes_to_sectors(drive, BLOCK_BYTES);
    let blocks = drive.device().sectors() / u64::from(sectors);
    measure_random_ms(drive, (Operation::Read, LOAD_SEED), 1, (1, 10));
    drive.next_completion();
    drive.run_for(Time::from_millis(1000));
    let begun = drive.now();
    for _ in 0..100 {
        serve_one(
            drive,
            WRITE,
            draws.draw_below(blocks) * u64::from(sectors),
            sectors,
        );
    }
    (drive.now() - begun).as_millis() / 100.0
}
