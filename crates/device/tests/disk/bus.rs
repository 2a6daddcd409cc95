//! A SCSI bus between host and disk: kept, left, and come back to.

use super::assert_close;
use super::device::{Bench, FUA, READ, specification};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::disk::link::{DiskLink, DiskLinkSpecification, MediaPassage, ReadDelivery};
use diskperf_sim::Time;
use diskperf_spans::Stage;

/// A bus that carries a sector of 512 bytes in 0.1 ms, and to which a drive comes back in
/// half a millisecond.
fn bus(delivery: ReadDelivery) -> DiskLinkSpecification {
    DiskLinkSpecification {
        bytes_per_s: 5.12e6,
        write_bytes_per_s: None,
        overhead_ms: 0.0,
        reconnect_ms: 0.5,
        disconnects_for_writes: false,
        read_delivery: delivery,
    }
}

fn ms(time: f64) -> Time {
    Time((time * 1e6) as u64)
}

fn passing(first: f64, last: f64) -> MediaPassage {
    MediaPassage {
        first_sector_passed: ms(first),
        last_sector_passed: ms(last),
        complete_by: Time::ZERO,
    }
}

/// A drive comes back when its share of the sectors has passed, however late a slow bus then
/// is through with those of the last track.
#[test]
fn a_share_is_of_what_passes_under_the_head() {
    let mut link = DiskLink::new(&bus(ReadDelivery::Reconnected { share: 0.5 }), 512);
    let late = MediaPassage {
        complete_by: ms(12.0),
        ..passing(5.0, 6.8)
    };
    let read = link.transfer_while_reading((Time::ZERO, Time::ZERO), late, 10);
    assert_eq!((read.start, read.end), (ms(5.8), ms(12.1)));
}

const LEFT: ReadDelivery = ReadDelivery::Reconnected { share: 0.0 };

/// Ten sectors whose first has passed at 5 ms and whose last has at 6.8, for a command of 0:
/// when these end, and when a sector ends that wants to cross at a moment meanwhile.
fn beside(delivery: ReadDelivery, at: f64) -> (Time, Time) {
    let mut link = DiskLink::new(&bus(delivery), 512);
    let read = link.transfer_while_reading((Time::ZERO, Time::ZERO), passing(5.0, 6.8), 10);
    (read.end, link.transfer_read(ms(at), 1).end)
}

#[test]
fn a_bus_that_is_kept_carries_nothing_else() {
    // The platter is slower than the bus: the last sector crosses when it has passed.
    assert_eq!(
        beside(ReadDelivery::HeldUntilComplete, 1.0),
        (ms(6.9), ms(7.0))
    );
    assert_eq!(beside(LEFT, 1.0), (ms(6.9), ms(1.1)));
}

/// A drive that has come back waits for the platter with the bus; frames of SATA do not.
#[test]
fn a_bus_that_was_come_back_to_is_kept_to_the_end() {
    assert_eq!(beside(LEFT, 5.2).1, ms(7.0));
    assert_eq!(beside(ReadDelivery::WhileReading, 5.2).1, ms(5.3));
    let half = ReadDelivery::Reconnected { share: 0.5 };
    // Five sectors of ten have passed at 5.8 ms, and all need 1.5 with the way back.
    assert_eq!(beside(half, 5.2), (ms(7.3), ms(5.3)));
    assert_eq!(beside(half, 5.9).1, ms(7.4));
}

/// Where the bus is slower than the platter, what it costs to come back is in the way.
#[test]
fn to_come_back_costs_its_overhead() {
    let ends = |delivery| {
        let mut link = DiskLink::new(&bus(delivery), 512);
        let read = link.transfer_while_reading((Time::ZERO, Time::ZERO), passing(5.0, 5.1), 10);
        read.end
    };
    assert_eq!(ends(ReadDelivery::HeldUntilComplete), ms(6.0));
    assert_eq!(ends(LEFT), ms(6.5));
    assert_eq!(ends(ReadDelivery::Reconnected { share: 1.0 }), ms(6.6));
    let write = |holds_writes| {
        let of = DiskLinkSpecification {
            disconnects_for_writes: holds_writes,
            ..bus(LEFT)
        };
        DiskLink::new(&of, 512).transfer_write(Time::ZERO, 10).end
    };
    assert_eq!((write(true), write(false)), (ms(1.0), ms(1.5)));
}

#[test]
fn what_is_written_may_cross_at_another_rate() {
    let of = DiskLinkSpecification {
        write_bytes_per_s: Some(10.24e6),
        disconnects_for_writes: true,
        ..bus(LEFT)
    };
    let mut link = DiskLink::new(&of, 512);
    assert_eq!(link.transfer_write(Time::ZERO, 10).end, ms(0.5));
    assert_eq!(link.transfer_read(ms(1.0), 10).end, ms(2.0));
}

fn on(delivery: ReadDelivery) -> DiskSpecification {
    DiskSpecification {
        link: bus(delivery),
        ..specification()
    }
}

/// While the arm is on its way for one command, the buffer answers another: it has the bus
/// if that was left.
#[test]
fn a_hit_waits_for_a_bus_that_is_kept() {
    let hit = |delivery| {
        let mut bench = Bench::new(&on(delivery));
        bench.one(READ, 1000, 8);
        bench.ask(READ, 60_000, 8);
        bench.pause(Time(200_000));
        bench.ask(READ, 1000, 8);
        let done = [bench.wait(), bench.wait()];
        let hit = done.into_iter().find(|of| of.sector == 1000);
        hit.expect("it is done").stage(Stage::BusWait)
    };
    assert_eq!(hit(LEFT), 0);
    assert!(
        hit(ReadDelivery::HeldUntilComplete) > 1_000_000,
        "{}",
        hit(ReadDelivery::HeldUntilComplete)
    );
}

/// The second of two tracks gives a slow bus nothing before its first sector has passed.
#[test]
fn a_read_over_two_tracks_waits_for_the_second_ones_data() {
    let mut bench = Bench::new(&on(ReadDelivery::WhileReading));
    let per_track = u64::from(specification().mechanism.layout.zones[0].sectors_per_track);
    let took = |bench: &mut Bench, from: u64| {
        let done = bench.one(READ, from, 20);
        done.took.0
            - done.stage(Stage::Command)
            - done.stage(Stage::Seek)
            - done.stage(Stage::RotationalLatency)
    };
    let on_one = took(&mut bench, 20 * per_track + 100);
    let across = took(&mut bench, 40 * per_track - 2);
    // Two sectors of 20 have crossed while the platter turned to the second track.
    assert!(across > on_one - 200_000, "{across} {on_one}");
}

/// The arm is on its way while the data of a write cross: only what takes longer than that
/// is waited for.
#[test]
fn a_write_moves_the_arm_while_its_data_cross() {
    let mut bench = Bench::new(&on(ReadDelivery::WhileReading));
    bench.one(READ, 100, 1);
    let written = bench.one(FUA, 60_000, 8);
    // 0.8 ms of data and 0.5 to come back, beside a way of 2 ms.
    assert_eq!(written.stage(Stage::BusTransfer), 0);
    assert_close(written.stage(Stage::Seek) as f64, 2e6, 1e-6);
    let much = bench.one(FUA, 100, 400);
    assert!(much.stage(Stage::BusTransfer) > 10_000_000, "{much:?}");
}

/// How long a read from the buffer waits for the bus that asks for it a fifth of a
/// millisecond after another command.
fn hit_beside(bench: &mut Bench, (sector, sectors): (u64, u32)) -> u64 {
    bench.ask(READ, sector, sectors);
    bench.pause(Time(200_000));
    bench.ask(READ, 1000, 8);
    let done = [bench.wait(), bench.wait()];
    let hit = done.into_iter().find(|of| of.sector == 1000);
    hit.expect("it is done").stage(Stage::BusWait)
}

/// A read that is for sectors which are being read on comes back to the bus for the first of
/// them, and not before.
#[test]
fn a_read_of_what_is_read_on_leaves_the_bus_until_then() {
    let waits = |delivery| {
        let mut bench = Bench::new(&on(delivery));
        bench.one(READ, 1000, 8);
        hit_beside(&mut bench, (1600, 8))
    };
    assert_eq!(waits(LEFT), 0);
    assert_eq!(waits(ReadDelivery::WhileReading), 0);
    assert!(waits(ReadDelivery::HeldUntilComplete) > 2_000_000);
}

/// A bus is kept from when the arm goes to a command, not while it has to do something else.
#[test]
fn a_bus_is_not_kept_before_the_arm_is_on_its_way() {
    let mut of = on(ReadDelivery::HeldUntilComplete);
    of.read_cache.read_ahead_sectors_min = 800;
    let mut bench = Bench::new(&of);
    bench.one(READ, 1000, 8);
    assert_eq!(hit_beside(&mut bench, (60_000, 8)), 0);
}

/// A write that goes through to the medium books that it waits for the bus.
#[test]
fn a_write_waits_for_the_bus() {
    let mut bench = Bench::new(&on(ReadDelivery::WhileReading));
    bench.one(READ, 1000, 200);
    bench.pause(Time(50_000_000));
    bench.ask(READ, 1000, 200);
    bench.pause(Time(200_000));
    bench.ask(FUA, 60_000, 8);
    let done = [bench.wait(), bench.wait()];
    let written = done.into_iter().find(|of| of.sector == 60_000);
    let written = written.expect("it is done");
    assert!(written.stage(Stage::BusWait) > 15_000_000, "{written:?}");
    assert!(written.stage(Stage::BusTransfer) < 1_000_000, "{written:?}");
}
