//! The buffer against the cases of DiskSim's keys, by hand. These fail when a segment
//! keeps more than it has room for, gives up another one than the one unused for longest,
//! or answers for sectors that were written since; and when what waits to be written is
//! counted twice or lost.

use super::one_zone;
use diskperf_device::disk::cache::{
    KeepAfterRead, KeepAfterWrite, LimitReference, ReadAheadScope, ReadAheadTrigger,
    ReadCacheSpecification, SectorExtent, SegmentCache, SegmentHit, WriteBackCache,
    WriteCacheSpecification,
};
use diskperf_device::disk::layout::Layout;
use diskperf_sim::{RandomStreams, Time};
use std::collections::BTreeSet;

pub(super) fn segments(segments: u32, segment_sectors: u32) -> ReadCacheSpecification {
    ReadCacheSpecification {
        resumes_after_hit: true,
        uses_partial_hits: true,
        joins_unread_sectors: true,
        keeps_written_sectors: false,
        segments,
        segment_sectors,
        read_ahead_scope: ReadAheadScope::Limit,
        read_ahead_trigger: ReadAheadTrigger::AnyRead,
        limit_reference: LimitReference::RequestEnd,
        read_ahead_sectors_max: None,
        read_ahead_sectors_min: 0,
        keeps_passing_sectors: false,
        keep_after_read: KeepAfterRead::WholeSegment,
        keep_after_write: KeepAfterWrite::DropsOverlapping,
    }
}

#[test]
fn the_segment_unused_for_longest_is_given_up() {
    let mut cache = SegmentCache::new(&segments(2, 100));
    let (one, _) = cache.keep_range((0, 10)).expect("a segment");
    let (two, _) = cache.keep_range((1000, 1010)).expect("a segment");
    assert_ne!(one, two);
    cache.drop_read_sectors(one, 10);
    assert_eq!(cache.keep_range((2000, 2010)), Some((two, false)));
    assert!(cache.find_segment((0, 10)).is_some() && cache.find_segment((1000, 1010)).is_none());
    // What goes on stays in its segment, and its first sectors make room.
    assert_eq!(cache.keep_range((10, 105)), Some((one, true)));
    assert_eq!(cache.sector_range(one), (5, 105));
    let found = cache.find_segment((50, 200)).expect("a part");
    assert_eq!(
        found,
        SegmentHit {
            segment_index: one,
            end_sector: 105
        }
    );
    assert_eq!(
        SegmentCache::new(&segments(0, 100)).keep_range((0, 1)),
        None
    );
}

#[test]
fn reads_and_writes_leave_what_they_are_to_leave() {
    for (after_write, left) in [
        (KeepAfterWrite::DropsOverlapping, [false, true]),
        (KeepAfterWrite::DropsAll, [false, false]),
        (KeepAfterWrite::Updates, [true, true]),
    ] {
        let mut cache = SegmentCache::new(&ReadCacheSpecification {
            keep_after_write: after_write,
            ..segments(4, 100)
        });
        cache.keep_range((0, 50));
        cache.keep_range((500, 550));
        cache.apply_write((49, 60));
        let found = [(0, 50), (500, 550)].map(|run| cache.find_segment(run).is_some());
        assert_eq!(found, left, "{after_write:?}");
    }
    let after_read = KeepAfterRead::ReadAheadOnly;
    let mut cache = SegmentCache::new(&ReadCacheSpecification {
        keep_after_read: after_read,
        ..segments(4, 100)
    });
    let (segment, _) = cache.keep_range((0, 50)).expect("a segment");
    cache.drop_read_sectors(segment, 20);
    assert!(cache.find_segment((10, 20)).is_none() && cache.find_segment((20, 50)).is_some());
}

#[test]
fn reading_on_ends_where_its_mode_says() {
    let layout = Layout::new(&one_zone((10, 2, 100))).expect("a layout");
    let until = |read_ahead, range, segment_first| {
        let of = ReadCacheSpecification {
            read_ahead_scope: read_ahead,
            ..segments(1, 64)
        };
        of.read_ahead_end(&layout, range, segment_first)
    };
    assert_eq!(until(ReadAheadScope::None, (20, 30), 20), 30);
    assert_eq!(until(ReadAheadScope::TrackEnd, (50, 60), 50), 100);
    assert_eq!(
        until(ReadAheadScope::TrackEnd, (0, 10), 0),
        74,
        "the limit is nearer"
    );
    assert_eq!(until(ReadAheadScope::CylinderEnd, (150, 160), 150), 200);
    assert_eq!(until(ReadAheadScope::Limit, (150, 160), 150), 224);
    assert_eq!(
        until(ReadAheadScope::Limit, (1980, 1990), 1980),
        2000,
        "the disk ends"
    );
    assert_eq!(until(ReadAheadScope::NextTrackEnd, (120, 130), 120), 200);
    assert_eq!(until(ReadAheadScope::NextTrackEnd, (120, 130), 90), 300);
    assert_eq!(until(ReadAheadScope::NextTrackEnd, (190, 200), 190), 400);
    let from_start = ReadCacheSpecification {
        limit_reference: LimitReference::RequestStart,
        read_ahead_sectors_max: Some(30),
        ..segments(1, 64)
    };
    assert_eq!(from_start.read_ahead_end(&layout, (150, 160), 150), 180);
}

/// Room for 300 sectors in 12 extents.
fn write_cache(appending_only: bool) -> WriteCacheSpecification {
    WriteCacheSpecification {
        sectors_max: 300,
        extents_max: 12,
        high_water_share: 0.5,
        destage_idle_ms: 0.0,
        destage_sectors_max: 16,
        serves_reads: true,
        accepts_appends_only: appending_only,
        holds_destaged_extent: false,
        repeats_overhead_after_wait: false,
    }
}

/// Against a set of sectors: nothing is lost, counted twice, or there twice.
#[test]
fn what_waits_is_what_was_written_and_not_put_away() {
    let seed = 11;
    println!("seed {seed}");
    let mut draws = RandomStreams::new(seed).named_stream("extents");
    let layout = Layout::new(&one_zone((10, 2, 100))).expect("a layout");
    let mut written = WriteBackCache::new(&write_cache(false));
    let locate = |sector: u64| (sector, layout.position_of(sector));
    let mut sectors = BTreeSet::new();
    let mut refused = 0;
    for number in 1..20_000_u64 {
        let first = draws.draw_below(1900);
        let of = SectorExtent {
            first_sector: first,
            end_sector: first + 1 + draws.draw_below(40),
        };
        match draws.draw_below(4) {
            0 | 1 if written.has_room(of) => {
                written.add_write(of, (Time(number), number), locate);
                sectors.extend(of.first_sector..of.end_sector);
            }
            0 | 1 => refused += 1,
            2 if !written.destage_candidates().is_empty() => {
                let index = draws.draw_below(written.destage_candidates().len() as u64) as usize;
                let begun = written.begin_destage(index, 16, locate);
                assert!(begun.sectors() <= 16 && written.contains(begun));
                assert!(
                    (begun.first_sector..begun.end_sector).all(|sector| sectors.remove(&sector))
                );
                written.end_destage();
            }
            2 => {}
            _ => {
                written.discard(of, locate);
                sectors.retain(|sector| !(of.first_sector..of.end_sector).contains(sector));
            }
        }
        let all = (of.first_sector..of.end_sector).all(|sector| sectors.contains(&sector));
        assert_eq!(written.contains(of), all, "{of:?}");
        assert_eq!(written.is_empty(), sectors.is_empty());
        assert!(sectors.len() <= 300 && written.destage_candidates().len() <= 24);
    }
    assert!(refused > 100, "room was never short");
    let mut left = sectors.len();
    while !written.destage_candidates().is_empty() {
        left -= written.begin_destage(0, u64::MAX >> 1, locate).sectors() as usize;
        written.end_destage();
    }
    assert_eq!(left, 0);
}

/// `Fast write level` 1: what finds nothing waiting begins a run, and only what goes on with
/// it is early as well.
#[test]
fn a_cache_of_appended_writes_takes_the_first_one_too() {
    let layout = Layout::new(&one_zone((10, 2, 100))).expect("a layout");
    let mut written = WriteBackCache::new(&write_cache(true));
    let locate = |sector: u64| (sector, layout.position_of(sector));
    let of = |first: u64, end: u64| SectorExtent {
        first_sector: first,
        end_sector: end,
    };
    assert!(written.accepts(of(500, 508)), "nothing waits");
    written.add_write(of(500, 508), (Time(1), 1), locate);
    assert!(written.accepts(of(508, 516)), "it goes on");
    assert!(!written.accepts(of(600, 608)), "it is elsewhere");
    written.begin_destage(0, 16, locate);
    assert!(written.accepts(of(508, 516)) && !written.accepts(of(600, 608)));
    written.end_destage();
    assert!(written.accepts(of(600, 608)), "all is on the medium");
}
