//! What a disk does of what is expected of it: the figures of `expected/` in the catalogue,
//! measured on the drive by itself.

mod host;

pub use host::Host;

use crate::hardware::Operation;
use diskperf_catalogue::DiskFigure;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::disk::spindle::Turn;
use diskperf_sim::{Streams, Time};

/// Of the places that are read and written.
pub const SEED: u64 = 17;
const WRITE: Operation = Operation::Write { fua: false };
/// Calls of a mebibyte, in blocks of 4 KiB.
const CALL_BLOCKS: u64 = 256;
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
    let mut host = Host::new(&specification, Turn::of_revolutions(PHASE_REV));
    let depth = u64::from(depth);
    match figure {
        DiskFigure::RandomReadMs => host.random_ms((Operation::Read, SEED), depth, (500, 8000)),
        DiskFigure::SequentialReadOuterMbPerS => read_mb_per_s(&mut host, 0),
        DiskFigure::SequentialReadInnerMbPerS => {
            let first = host.blocks() - CALL_BLOCKS * (MEBIBYTES + 1);
            read_mb_per_s(&mut host, first)
        }
        DiskFigure::SequentialWriteMbPerS => write_mb_per_s(&mut host),
        DiskFigure::AppendedSyncMs => synced_ms(&mut host, |number, _| number),
        DiskFigure::RandomSyncMs => synced_ms(&mut host, |_, place| place),
        DiskFigure::WriteAfterIdleMs => after_idle_ms(&mut host),
        DiskFigure::WriteMapFullMs => {
            let bands = specification.shingled.expect("a disk with a media cache");
            // The map, what the buffer takes, and one by one.
            let before = u64::from(bands.map_extents) + 2000;
            host.random_ms((WRITE, SEED), 32, (before, 200))
        }
    }
}

fn read_mb_per_s(host: &mut Host, first: u64) -> f64 {
    host.one(Operation::Read, first, CALL_BLOCKS);
    let begun = host.now();
    for call in 1..=MEBIBYTES {
        host.one(Operation::Read, first + CALL_BLOCKS * call, CALL_BLOCKS);
    }
    MEBIBYTES as f64 * MEBIBYTE_MB / (host.now() - begun).seconds()
}

fn write_mb_per_s(host: &mut Host) -> f64 {
    let write = |host: &mut Host, calls: std::ops::Range<u64>| {
        calls.for_each(|call| host.one(WRITE, CALL_BLOCKS * call, CALL_BLOCKS));
        host.now()
    };
    let begun = write(host, 0..MEBIBYTES);
    let ended = write(host, MEBIBYTES..3 * MEBIBYTES);
    2.0 * MEBIBYTES as f64 * MEBIBYTE_MB / (ended - begun).seconds()
}

/// Writes of a block, each followed by a flush; `place` has the number of the write and a
/// random block.
fn synced_ms(host: &mut Host, place: impl Fn(u64, u64) -> u64) -> f64 {
    let mut draws = Streams::new(SEED).stream("synced");
    let blocks = host.blocks();
    for number in 0..SYNCED {
        let block = place(number, draws.below(blocks));
        host.one(WRITE, block, 1);
        host.one(Operation::Flush, 0, 0);
    }
    host.now().millis() / SYNCED as f64
}

fn after_idle_ms(host: &mut Host) -> f64 {
    let mut draws = Streams::new(SEED).stream("synced");
    let blocks = host.blocks();
    host.random_ms((Operation::Read, SEED), 1, (1, 10));
    host.wait();
    host.pause(Time::from_millis(1000));
    let begun = host.now();
    for _ in 0..100 {
        host.one(WRITE, draws.below(blocks), 1);
    }
    (host.now() - begun).millis() / 100.0
}
