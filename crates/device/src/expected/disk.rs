//! What a disk does of what is expected of it: the figures of `expected/` in the catalogue,
//! measured on the drive by itself.

use super::one;
use crate::disk::device::{Disk, DiskSpecification};
use crate::disk::spindle::Turn;
use crate::{ClosedLoop, Command, Device, Drive, Operation};
use diskperf_catalogue::DiskFigure;
use diskperf_sim::{Streams, Time};

/// Of the places that are read and written.
pub const SEED: u64 = 17;
const WRITE: Operation = Operation::Write { fua: false };
/// Of a random request and of a synced one.
const BLOCK_BYTES: u32 = 4096;
/// Of a sequential one.
const CALL_BYTES: u32 = 1 << 20;
/// Mebibytes of a stream, and of what fills a buffer before one of writes.
const MEBIBYTES: u64 = 400;
const MEBIBYTE_MB: f64 = 1.048_576;
const SYNCED: u64 = 3000;
/// Any one does.
const PHASE_REV: f64 = 0.4;

/// A figure of a disk, in its own unit. Deep queues are without age limit: theory has none.
///
/// # Panics
///
/// When the specification was not checked, the disk is smaller than what is read of it, or
/// has no media cache where its map is to be filled.
pub fn measured(specification: &DiskSpecification, figure: DiskFigure, depth: u32) -> f64 {
    let mut specification = specification.clone();
    if depth > 1 {
        specification.queue.age_limit_ms = None;
    }
    let mut drive = drive(&specification);
    let depth = u64::from(depth);
    match figure {
        DiskFigure::RandomReadMs => {
            random_ms(&mut drive, (Operation::Read, SEED), depth, (500, 8000))
        }
        DiskFigure::SequentialReadOuterMbPerS => read_mb_per_s(&mut drive, 0),
        DiskFigure::SequentialReadInnerMbPerS => {
            let call = u64::from(sectors_of(&drive, CALL_BYTES));
            let block = u64::from(sectors_of(&drive, BLOCK_BYTES));
            let end = drive.device().sectors() / block * block;
            read_mb_per_s(&mut drive, end - call * (MEBIBYTES + 1))
        }
        DiskFigure::SequentialWriteMbPerS => write_mb_per_s(&mut drive),
        DiskFigure::AppendedSyncMs => synced_ms(&mut drive, |number, _| number),
        DiskFigure::RandomSyncMs => synced_ms(&mut drive, |_, place| place),
        DiskFigure::WriteAfterIdleMs => after_idle_ms(&mut drive),
        DiskFigure::WriteMapFullMs => {
            let bands = specification.shingled.expect("a disk with a media cache");
            // The map, what the buffer takes, and one by one.
            let before = u64::from(bands.map_extents) + 2000;
            random_ms(&mut drive, (WRITE, SEED), 32, (before, 200))
        }
    }
}

/// The disk, idle, as figures are measured with it.
///
/// # Panics
///
/// When the specification was not checked.
pub fn drive(specification: &DiskSpecification) -> Drive {
    let disk = Disk::new(specification, Turn::of_revolutions(PHASE_REV));
    let disk = disk.expect("a specification that was checked");
    Drive::new(Device::Disk(Box::new(disk)))
}

/// Sectors of so many bytes, at least one.
fn sectors_of(drive: &Drive, bytes: u32) -> u32 {
    (bytes / drive.device().sector_bytes()).max(1)
}

/// Mean time between completions of 4 KiB at random, in ms, once `before` are done.
///
/// # Panics
///
/// When the queue of the drive is not so deep.
pub fn random_ms(
    drive: &mut Drive,
    (operation, seed): (Operation, u64),
    depth: u64,
    (before, count): (u64, u64),
) -> f64 {
    let mut draws = Streams::new(seed).stream("blocks");
    let sectors = sectors_of(drive, BLOCK_BYTES);
    let blocks = drive.device().sectors() / u64::from(sectors);
    let next = || Command {
        operation,
        sector: draws.below(blocks) * u64::from(sectors),
        sectors,
    };
    let mut asked = ClosedLoop::start(drive, depth as u32, next).expect("a queue of that depth");
    let done = |asked: &mut ClosedLoop<_>, count| {
        asked.by_ref().take(count as usize).for_each(drop);
        asked.drive().now()
    };
    let begun = done(&mut asked, before);
    (done(&mut asked, count) - begun).millis() / count as f64
}

fn read_mb_per_s(drive: &mut Drive, first: u64) -> f64 {
    let sectors = sectors_of(drive, CALL_BYTES);
    one(drive, Operation::Read, first, sectors);
    let begun = drive.now();
    for call in 1..=MEBIBYTES {
        let sector = first + u64::from(sectors) * call;
        one(drive, Operation::Read, sector, sectors);
    }
    MEBIBYTES as f64 * MEBIBYTE_MB / (drive.now() - begun).seconds()
}

fn write_mb_per_s(drive: &mut Drive) -> f64 {
    let sectors = sectors_of(drive, CALL_BYTES);
    let write = |drive: &mut Drive, calls: std::ops::Range<u64>| {
        calls.for_each(|call| one(drive, WRITE, u64::from(sectors) * call, sectors));
        drive.now()
    };
    let begun = write(drive, 0..MEBIBYTES);
    let ended = write(drive, MEBIBYTES..3 * MEBIBYTES);
    2.0 * MEBIBYTES as f64 * MEBIBYTE_MB / (ended - begun).seconds()
}

/// Writes of a block, each followed by a flush; `place` has the number of the write and a
/// random block.
fn synced_ms(drive: &mut Drive, place: impl Fn(u64, u64) -> u64) -> f64 {
    let mut draws = Streams::new(SEED).stream("synced");
    let sectors = sectors_of(drive, BLOCK_BYTES);
    let blocks = drive.device().sectors() / u64::from(sectors);
    for number in 0..SYNCED {
        let block = place(number, draws.below(blocks));
        one(drive, WRITE, block * u64::from(sectors), sectors);
        one(drive, Operation::Flush, 0, 0);
    }
    drive.now().millis() / SYNCED as f64
}

fn after_idle_ms(drive: &mut Drive) -> f64 {
    let mut draws = Streams::new(SEED).stream("synced");
    let sectors = sectors_of(drive, BLOCK_BYTES);
    let blocks = drive.device().sectors() / u64::from(sectors);
    random_ms(drive, (Operation::Read, SEED), 1, (1, 10));
    drive.next_completion();
    drive.run_for(Time::from_millis(1000));
    let begun = drive.now();
    for _ in 0..100 {
        one(
            drive,
            WRITE,
            draws.below(blocks) * u64::from(sectors),
            sectors,
        );
    }
    (drive.now() - begun).millis() / 100.0
}
