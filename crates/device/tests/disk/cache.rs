//! The buffer against the cases of DiskSim's keys, by hand. These fail when a segment
//! keeps more than it has room for, gives up another one than the one unused for longest,
//! or answers for sectors that were written since; and when what waits to be written is
//! counted twice or lost.

use super::one_zone;
use diskperf_device::disk::cache::{
    AfterRead, AfterWrite, Extent, Found, LimitFrom, ReadAhead, ReadAheadAfter,
    ReadCacheSpecification, Segments, WriteCacheSpecification, Written,
};
use diskperf_device::disk::layout::Layout;
use diskperf_sim::{RandomStreams, Time};
use std::collections::BTreeSet;

pub(super) fn segments(segments: u32, segment_sectors: u32) -> ReadCacheSpecification {
    ReadCacheSpecification {
        read_ahead_after_hit: true,
        keep_written: false,
        segments,
        segment_sectors,
        read_ahead: ReadAhead::Limit,
        read_ahead_after: ReadAheadAfter::AnyRead,
        limit_from: LimitFrom::RequestEnd,
        most_ahead_sectors: None,
        least_ahead_sectors: 0,
        keep_passing_sectors: false,
        after_read: AfterRead::All,
        after_write: AfterWrite::DropsOverlapping,
    }
}

#[test]
fn the_segment_unused_for_longest_is_given_up() {
    let mut cache = Segments::new(&segments(2, 100));
    let (one, _) = cache.keep((0, 10)).expect("a segment");
    let (two, _) = cache.keep((1000, 1010)).expect("a segment");
    assert_ne!(one, two);
    cache.read(one, 10);
    assert_eq!(cache.keep((2000, 2010)), Some((two, false)));
    assert!(cache.find((0, 10)).is_some() && cache.find((1000, 1010)).is_none());
    // What goes on stays in its segment, and its first sectors make room.
    assert_eq!(cache.keep((10, 105)), Some((one, true)));
    assert_eq!(cache.run(one), (5, 105));
    let found = cache.find((50, 200)).expect("a part");
    assert_eq!(
        found,
        Found {
            segment: one,
            until: 105
        }
    );
    assert_eq!(Segments::new(&segments(0, 100)).keep((0, 1)), None);
}

#[test]
fn reads_and_writes_leave_what_they_are_to_leave() {
    for (after_write, left) in [
        (AfterWrite::DropsOverlapping, [false, true]),
        (AfterWrite::DropsAll, [false, false]),
        (AfterWrite::Updates, [true, true]),
    ] {
        let mut cache = Segments::new(&ReadCacheSpecification {
            after_write,
            ..segments(4, 100)
        });
        cache.keep((0, 50));
        cache.keep((500, 550));
        cache.write((49, 60));
        let found = [(0, 50), (500, 550)].map(|run| cache.find(run).is_some());
        assert_eq!(found, left, "{after_write:?}");
    }
    let after_read = AfterRead::Ahead;
    let mut cache = Segments::new(&ReadCacheSpecification {
        after_read,
        ..segments(4, 100)
    });
    let (segment, _) = cache.keep((0, 50)).expect("a segment");
    cache.read(segment, 20);
    assert!(cache.find((10, 20)).is_none() && cache.find((20, 50)).is_some());
}

#[test]
fn reading_on_ends_where_its_mode_says() {
    let layout = Layout::new(&one_zone((10, 2, 100))).expect("a layout");
    let until = |read_ahead, range, segment_first| {
        let of = ReadCacheSpecification {
            read_ahead,
            ..segments(1, 64)
        };
        of.ahead_until(&layout, range, segment_first)
    };
    assert_eq!(until(ReadAhead::None, (20, 30), 20), 30);
    assert_eq!(until(ReadAhead::TrackEnd, (50, 60), 50), 100);
    assert_eq!(
        until(ReadAhead::TrackEnd, (0, 10), 0),
        74,
        "the limit is nearer"
    );
    assert_eq!(until(ReadAhead::CylinderEnd, (150, 160), 150), 200);
    assert_eq!(until(ReadAhead::Limit, (150, 160), 150), 224);
    assert_eq!(
        until(ReadAhead::Limit, (1980, 1990), 1980),
        2000,
        "the disk ends"
    );
    assert_eq!(until(ReadAhead::NextTrackEnd, (120, 130), 120), 200);
    assert_eq!(until(ReadAhead::NextTrackEnd, (120, 130), 90), 300);
    assert_eq!(until(ReadAhead::NextTrackEnd, (190, 200), 190), 400);
    let from_start = ReadCacheSpecification {
        limit_from: LimitFrom::RequestStart,
        most_ahead_sectors: Some(30),
        ..segments(1, 64)
    };
    assert_eq!(from_start.ahead_until(&layout, (150, 160), 150), 180);
}

/// Room for 300 sectors in 12 extents.
fn write_cache(appending_only: bool) -> WriteCacheSpecification {
    WriteCacheSpecification {
        most_sectors: 300,
        most_extents: 12,
        high_water_share: 0.5,
        idle_ms: 0.0,
        most_destaged_sectors: 16,
        read_hits: true,
        appending_only,
    }
}

/// Against a set of sectors: nothing is lost, counted twice, or there twice.
#[test]
fn what_waits_is_what_was_written_and_not_put_away() {
    let seed = 11;
    println!("seed {seed}");
    let mut draws = RandomStreams::new(seed).named_stream("extents");
    let layout = Layout::new(&one_zone((10, 2, 100))).expect("a layout");
    let mut written = Written::new(&write_cache(false));
    let locate = |sector: u64| (sector, layout.locate(sector));
    let mut sectors = BTreeSet::new();
    let mut refused = 0;
    for number in 1..20_000_u64 {
        let first = draws.draw_below(1900);
        let of = Extent {
            first,
            end: first + 1 + draws.draw_below(40),
        };
        match draws.draw_below(4) {
            0 | 1 if written.has_room(of) => {
                written.write(of, (Time(number), number), locate);
                sectors.extend(of.first..of.end);
            }
            0 | 1 => refused += 1,
            2 if !written.waiting().is_empty() => {
                let index = draws.draw_below(written.waiting().len() as u64) as usize;
                let begun = written.begin(index, 16, locate);
                assert!(begun.sectors() <= 16 && written.has(begun));
                assert!((begun.first..begun.end).all(|sector| sectors.remove(&sector)));
                written.end();
            }
            2 => {}
            _ => {
                written.forget(of, locate);
                sectors.retain(|sector| !(of.first..of.end).contains(sector));
            }
        }
        let all = (of.first..of.end).all(|sector| sectors.contains(&sector));
        assert_eq!(written.has(of), all, "{of:?}");
        assert_eq!(written.is_empty(), sectors.is_empty());
        assert!(sectors.len() <= 300 && written.waiting().len() <= 24);
    }
    assert!(refused > 100, "room was never short");
    let mut left = sectors.len();
    while !written.waiting().is_empty() {
        left -= written.begin(0, u64::MAX >> 1, locate).sectors() as usize;
        written.end();
    }
    assert_eq!(left, 0);
}

/// `Fast write level` 1: what finds nothing waiting begins a run, and only what goes on with
/// it is early as well.
#[test]
fn a_cache_of_appended_writes_takes_the_first_one_too() {
    let layout = Layout::new(&one_zone((10, 2, 100))).expect("a layout");
    let mut written = Written::new(&write_cache(true));
    let locate = |sector: u64| (sector, layout.locate(sector));
    let of = |first: u64, end: u64| Extent { first, end };
    assert!(written.takes(of(500, 508)), "nothing waits");
    written.write(of(500, 508), (Time(1), 1), locate);
    assert!(written.takes(of(508, 516)), "it goes on");
    assert!(!written.takes(of(600, 608)), "it is elsewhere");
    written.begin(0, 16, locate);
    assert!(written.takes(of(508, 516)) && !written.takes(of(600, 608)));
    written.end();
    assert!(written.takes(of(600, 608)), "all is on the medium");
}
