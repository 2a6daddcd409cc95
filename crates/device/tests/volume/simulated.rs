//! The volume as a device: stages of requests, first touch, and volumes on one instance.

use super::*;
use diskperf_device::specification::{BuildDevice, Unit};
use diskperf_device::volume::FirstTouch;
use diskperf_device::{ClosedLoop, Command, Device, Drive, Operation};
use diskperf_sim::{RandomStreams, Time};
use diskperf_spans::Stage;

fn drive(of: &VolumeSpecification) -> Drive {
    let device = of.build(&RandomStreams::new(3), Unit::default());
    Drive::new(Device::Volume(Box::new(device)))
}

#[test]
fn the_wait_for_a_limit_is_booked_to_it() {
    let mut of = VolumeSpecification::unlimited(1 << 20, Time(1_000_000));
    of.limits = vec![
        limit(VolumeLimit::VolumeRequests, 1000, None),
        limit(VolumeLimit::InstanceBytes, 100 * 4096, None),
    ];
    let mut drive = drive(&of);
    let mut place = 0;
    let next = || {
        place += 1;
        Command {
            operation: Operation::Read,
            sector: place * 7919 % (1 << 20),
            sectors: 1,
        }
    };
    let reads = ClosedLoop::start(&mut drive, 4, next).expect("room in the queue");
    let last = reads.take(100).last().expect("100 reads").expect("a read");
    assert_eq!(last.latency(), Time::from_millis(40));
    assert_eq!(
        last.time_in(Stage::RateLimit(VolumeLimit::InstanceBytes)),
        Time::from_millis(39)
    );
    assert_eq!(last.time_in(Stage::Command), Time::from_millis(1));
}

#[test]
fn flushes_and_discards_are_free_and_writes_are_durable() {
    let mut of = VolumeSpecification::unlimited(1 << 20, Time(1_000_000));
    of.limits = vec![limit(VolumeLimit::VolumeRequests, 1, None)];
    let mut drive = drive(&of);
    for (operation, ms) in [
        (Operation::Write { fua: false }, 1),
        (Operation::Flush, 1),
        (Operation::Discard, 1),
        (Operation::Write { fua: true }, 998),
    ] {
        let served = drive.serve(operation, 0, 1).expect("an idle volume");
        assert_eq!(served.latency(), Time::from_millis(ms), "{operation:?}");
    }
    assert!(!drive.device().has_volatile_cache());
}

#[test]
fn only_the_first_read_of_a_block_of_a_snapshot_is_slow() {
    let mut of = VolumeSpecification::unlimited(1 << 14, Time(500_000));
    of.first_touch = Some(FirstTouch {
        block_bytes: 512 * KIB,
        fetch_min: Time::from_millis(5),
        fetch_max: Time::from_millis(50),
    });
    let mut drive = drive(&of);
    drive
        .serve(Operation::Write { fua: false }, 0, 1)
        .expect("idle");
    let mut pass = || -> Vec<Time> {
        let blocks = (0..128).map(|block| block * 128);
        let read = |sector| {
            drive
                .serve(Operation::Read, sector, 1)
                .expect("idle")
                .latency()
        };
        blocks.map(read).collect()
    };
    let (first, second) = (pass(), pass());
    assert_eq!(first[0], Time(500_000), "a written block is there");
    assert!(
        first[1..].iter().all(|time| *time >= Time::from_millis(5)),
        "{first:?}"
    );
    assert!(
        second.iter().all(|time| *time == Time(500_000)),
        "{second:?}"
    );
}
