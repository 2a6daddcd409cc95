//! Order of data and medium: writes that wait for the write cache, and sectors that a zero-latency
//! access reaches out of order.

use super::device::{Bench, READ, WRITE, specification, write_cache};
use super::{assert_close, one_zone, plain};
use diskperf_device::disk::cache::WriteCacheSpecification;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_sim::Time;

/// Service time of a write of 8 sectors without any wait: overhead and link.
const UNDELAYED: Time = Time(100_000 + 8 * 5120);
const REVOLUTION_NS: f64 = 60e9 / 7200.0;

fn with_write_cache(of: WriteCacheSpecification) -> DiskSpecification {
    DiskSpecification {
        write_cache: Some(of),
        ..specification()
    }
}

/// Returns the service time of a write of 8 sectors right after another one of sectors 0 to 7.
fn second_write(of: WriteCacheSpecification, sector: u64) -> Time {
    let mut on = Bench::new(&with_write_cache(of));
    assert_eq!(on.one(WRITE, 0, 8).took, UNDELAYED);
    on.one(WRITE, sector, 8).took
}

#[test]
fn a_write_waits_for_an_extent_that_is_held_until_it_is_on_the_medium() {
    let one_extent = |holds_destaged_extent| WriteCacheSpecification {
        extents_max: 1,
        holds_destaged_extent,
        ..write_cache()
    };
    let waited = second_write(one_extent(true), 300_000);
    assert!(waited > UNDELAYED + Time::from_millis(1), "{waited:?}");
    // One that continues the extent does not wait.
    assert_eq!(second_write(one_extent(true), 8), UNDELAYED);
    // Neither does one where a destage that has begun leaves room, or with a second extent.
    assert_eq!(second_write(one_extent(false), 300_000), UNDELAYED);
    let two_extents = WriteCacheSpecification {
        extents_max: 2,
        ..one_extent(true)
    };
    assert_eq!(second_write(two_extents, 300_000), UNDELAYED);
}

#[test]
fn the_overhead_of_a_write_that_waited_can_come_after_the_wait() {
    let took = |repeats_overhead_after_wait| {
        let of = WriteCacheSpecification {
            extents_max: 1,
            holds_destaged_extent: true,
            repeats_overhead_after_wait,
            ..write_cache()
        };
        second_write(of, 300_000)
    };
    assert_eq!(took(true), took(false) + Time(100_000));
}

/// A track has ten sectors, and the write comes when the first one has crossed the link. The sector
/// behind it is being read.
#[test]
fn the_overhead_of_a_write_can_come_after_the_last_sector_of_a_read_ahead() {
    let took = |repeats_overhead_after_wait| {
        let mut of = with_write_cache(WriteCacheSpecification {
            repeats_overhead_after_wait,
            ..write_cache()
        });
        of.mechanism = plain(one_zone((200, 2, 10)));
        let mut on = Bench::new(&of);
        on.one(READ, 0, 1);
        on.one(WRITE, 3000, 8).took
    };
    assert_eq!(took(false), UNDELAYED);
    let rest_of_sector = REVOLUTION_NS / 10.0 - 5120.0;
    let expected = UNDELAYED.0 as f64 + rest_of_sector;
    assert_close(took(true).0 as f64, expected, 1e-5);
}

/// The second write waits for the destage of the first one, which reaches the medium only after
/// its data have crossed a slow link: at most a revolution later.
#[test]
fn a_destage_starts_when_its_data_are_there() {
    let mut of = with_write_cache(WriteCacheSpecification {
        extents_max: 1,
        holds_destaged_extent: true,
        ..write_cache()
    });
    // A revolution and a half for 1000 sectors, which pass in one revolution.
    of.link.bytes_per_s = 1000.0 * 512.0 / (1.5 * REVOLUTION_NS / 1e9);
    let mut on = Bench::new(&of);
    let first = on.one(WRITE, 0, 1000).took;
    let second = on.one(WRITE, 300_000, 8).took;
    assert_close(first.0 as f64, 100_000.0 + 1.5 * REVOLUTION_NS, 1e-4);
    assert!(second.0 as f64 >= REVOLUTION_NS, "{second:?}");
}

#[test]
fn a_write_that_starts_at_any_sector_waits_for_all_of_them() {
    let mut of = specification();
    of.link.bytes_per_s = 50e6;
    let took = |zero_latency_writes| {
        let mut of = of.clone();
        of.mechanism.zero_latency_writes = zero_latency_writes;
        Bench::new(&of).one(WRITE, 0, 1000).took.0 as f64
    };
    // A full track: all of the link, then one revolution from whichever sector comes first.
    let all_crossed = 100_000.0 + 1000.0 * 10_240.0;
    assert_close(took(true), all_crossed + REVOLUTION_NS, 2e-3);
    // Without zero latency the platter follows close behind the link, or a revolution later.
    assert!(took(false) < all_crossed + REVOLUTION_NS);
}

/// Ten sectors on the first track and ten on the next one. The platter may begin before all of them
/// have crossed the slow link.
#[test]
fn a_zero_latency_write_over_two_tracks_ends_after_its_data_have_crossed() {
    let mut of = specification();
    of.mechanism.zero_latency_writes = true;
    let all_crossed = 20.0 * REVOLUTION_NS;
    of.link.bytes_per_s = 20.0 * 512.0 * 1e9 / all_crossed;
    let took = Bench::new(&of).one(WRITE, 990, 20).took.0 as f64;
    assert!(took >= all_crossed, "{took}");
    assert!(took < all_crossed + 2.0 * REVOLUTION_NS, "{took}");
}

/// The platter starts at 0.3 of a revolution, so a full-track read lands 0.312 into the track. The
/// other 0.688 pass first, and cross the link behind the sectors that pass last.
#[test]
fn sectors_that_passed_early_cross_the_link_last() {
    let mut of = specification();
    of.mechanism.zero_latency_reads = true;
    let read = Bench::new(&of).one(READ, 0, 1000);
    let early_sectors = 688.0;
    let expected = 100_000.0 + REVOLUTION_NS + early_sectors * 5120.0;
    assert_close(read.took.0 as f64, expected, 2e-3);
}
