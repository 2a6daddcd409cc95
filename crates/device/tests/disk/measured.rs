//! What a trace shows of a drive, and a data sheet does not: an arm with directions, what
//! was before a command, whole tracks in the buffer.

use super::cache::segments;
use super::device::{Bench, FUA, READ, WRITE, specification, write_cache};
use super::{assert_close, built, one_zone, plain};
use diskperf_catalogue::{Catalogue, Setting};
use diskperf_device::DeviceSpecification;
use diskperf_device::disk::cache::{
    KeepAfterWrite, ReadAheadScope, ReadCacheSpecification, WriteCacheSpecification,
};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_device::disk::link::ReadDelivery;
use diskperf_device::disk::mechanism::{MechanismSpecification, MediaAccess};
use diskperf_device::disk::overheads::{OverheadByState, OverheadSpecification};
use diskperf_device::disk::seek::SeekSpecification;
use diskperf_sim::Time;
use diskperf_spans::{Deadline, Stage};

fn directed() -> MechanismSpecification {
    MechanismSpecification {
        write_seek: Some(SeekSpecification::Table {
            points: vec![(1, 3.0), (100, 3.0)],
        }),
        inward_ms: [0.25, -0.5],
        same_track_ms: [0.1, 0.2],
        write_settle_ms: 0.5,
        ..plain(one_zone((200, 2, 1000)))
    }
}

#[test]
fn an_arm_has_directions_and_writes_their_own_times() {
    let mut arm = built(&directed());
    let at = |cylinder: u64| arm.layout().position_of(cylinder * 2000);
    let (outer, middle, inner) = (at(10), at(50), at(90));
    arm.place_arm(50, 0);
    let ms = |time: Time| time.0 as f64 / 1e6;
    let ways = |write| [outer, middle, inner].map(|place| ms(arm.arm_move_time(&place, write)));
    assert_eq!(ways(false), [2.0, 0.1, 2.25]);
    // With what writes settle for.
    assert_eq!(ways(true), [3.5, 0.2, 3.0]);
    // Half of all ways go inwards.
    assert_eq!(ms(arm.seek_curve().average_time()), 2.125);
}

/// The rest on a track is before a command, and not between sectors that pass one after
/// the other: there it would cost a revolution.
#[test]
fn what_goes_on_does_not_rest_on_its_track() {
    let mut arm = built(&directed());
    let access = MediaAccess {
        first_sector: 10,
        sector_count: 5,
        ..MediaAccess::default()
    };
    let parts = arm.access_media(Time::ZERO, &access, |_| ());
    assert_eq!(parts.seek_time, Time(100_000));
    let ends = parts.total();
    let (_, until) = arm.read_ahead(ends, (15, 115), Time::NEVER);
    let parts = arm.read_ahead_times(ends, (15, 115));
    assert_eq!(
        (parts.total(), parts.rotational_latency),
        (until - ends, Time::ZERO)
    );
    // Over two tracks without skew.
    let parts = arm.read_ahead_times(ends, (15, 1015));
    assert_eq!(
        parts.total(),
        arm.read_ahead(ends, (15, 1015), Time::NEVER).1 - ends
    );
}

fn by_state() -> DiskSpecification {
    let after = |ms: f64| OverheadByState {
        after_read_ms: ms,
        after_write_ms: ms + 0.01,
        sequential_ms: Some(ms + 0.02),
        reading_ahead_ms: Some(ms + 0.03),
    };
    DiskSpecification {
        overheads: OverheadSpecification {
            read_hit_ms: after(1.0),
            read_miss_ms: after(2.0),
            write_ms: after(3.0),
            write_sector_ms: 0.001,
            ..OverheadSpecification::default()
        },
        write_cache: Some(write_cache()),
        ..specification()
    }
}

/// Each command by what was before it: in us, that of the firmware.
#[test]
fn overheads_go_by_what_was_before() {
    let mut bench = Bench::new(&by_state());
    for (operation, sector, rests, takes_us) in [
        (READ, 5000, false, 2000),
        // The arm reads on.
        (READ, 5008, false, 1030),
        (READ, 90_000, false, 2030),
        (WRITE, 300_000, false, 3038),
        (WRITE, 300_008, true, 3028),
        (WRITE, 200_000, true, 3018),
        (READ, 200_000, false, 1010),
    ] {
        if rests {
            bench.pause(LONG);
        }
        let done = bench.one(operation, sector, 8);
        assert_eq!(done.stage(Stage::Command) / 1000, takes_us, "{sector}");
    }
}

fn caching(cache: ReadCacheSpecification) -> DiskSpecification {
    DiskSpecification {
        read_cache: cache,
        write_cache: Some(write_cache()),
        ..specification()
    }
}

/// Whether the buffer answers a read.
fn hits(bench: &mut Bench, sector: u64) -> bool {
    bench.one(READ, sector, 8).stage(Stage::CacheHit) > 0
}

const LONG: Time = Time(100_000_000);

#[test]
fn a_whole_track_is_there_after_a_revolution() {
    let whole = |read_ahead, wait| {
        let mut bench = Bench::new(&caching(ReadCacheSpecification {
            read_ahead_scope: read_ahead,
            ..segments(4, 2000)
        }));
        bench.one(READ, 5500, 8);
        bench.pause(wait);
        (hits(&mut bench, 5000), hits(&mut bench, 5900))
    };
    assert_eq!(whole(ReadAheadScope::WholeTrack, LONG), (true, true));
    assert_eq!(whole(ReadAheadScope::TrackEnd, LONG), (false, true));
    // The platter has not turned once.
    assert!(!whole(ReadAheadScope::WholeTrack, Time(1_000_000)).0);
}

#[test]
fn what_was_written_can_be_kept_to_be_read() {
    let read_again = |keep_written| {
        let mut bench = Bench::new(&caching(ReadCacheSpecification {
            keeps_written_sectors: keep_written,
            keep_after_write: KeepAfterWrite::DropsAll,
            ..segments(1, 2000)
        }));
        bench.one(READ, 90_000, 8);
        bench.one(WRITE, 5000, 8);
        // It is on the medium.
        bench.pause(LONG);
        let written = hits(&mut bench, 5000);
        (written, hits(&mut bench, 90_000))
    };
    assert_eq!(read_again(true), (true, false));
    assert_eq!(read_again(false), (false, false));
}

/// A write drops the segment that the arm reads into: what it still read there is not a
/// segment of sectors that nobody read.
#[test]
fn a_dropped_segment_is_not_filled_any_more() {
    let mut bench = Bench::new(&caching(segments(1, 2000)));
    bench.one(READ, 90_000, 8);
    bench.pause(Time(1_000_000));
    bench.one(WRITE, 90_004, 1);
    bench.pause(LONG);
    assert!(!hits(&mut bench, 89_000), "nobody has read it");
}

#[test]
fn reading_on_behind_a_hit_can_be_left_out() {
    let goes_on = |read_ahead_after_hit| {
        let mut bench = Bench::new(&caching(ReadCacheSpecification {
            read_ahead_sectors_max: Some(16),
            resumes_after_hit: read_ahead_after_hit,
            ..segments(4, 2000)
        }));
        bench.one(READ, 5000, 8);
        bench.pause(LONG);
        assert!(hits(&mut bench, 5008));
        bench.pause(LONG);
        hits(&mut bench, 5024)
    };
    assert!(goes_on(true) && !goes_on(false));
}

/// The read-ahead is right behind sector 5008 when the second read comes.
#[test]
fn a_read_ahead_can_be_left_for_sectors_that_it_has_not_come_to() {
    let waits_for_platter = |joins_unread_sectors, sector| {
        let mut bench = Bench::new(&caching(ReadCacheSpecification {
            joins_unread_sectors,
            ..segments(4, 2000)
        }));
        bench.one(READ, 5000, 8);
        bench.one(READ, sector, 8).stage(Stage::RotationalLatency) > 0
    };
    assert!(waits_for_platter(false, 5500) && !waits_for_platter(true, 5500));
    assert!(!waits_for_platter(false, 5008) && !waits_for_platter(true, 5008));
}

/// Sectors 5000 to 5007 are in the buffer, and 5008 comes right after them.
#[test]
fn sectors_in_the_buffer_can_be_read_again_with_those_behind_them() {
    let transfer = |uses_partial_hits| {
        let mut bench = Bench::new(&caching(ReadCacheSpecification {
            read_ahead_scope: ReadAheadScope::None,
            uses_partial_hits,
            ..segments(4, 2000)
        }));
        bench.one(READ, 5000, 8);
        bench.pause(LONG);
        bench.one(READ, 5000, 16).stage(Stage::MediaTransfer) as f64
    };
    assert_close(transfer(false), 2.0 * transfer(true), 1e-4);
}

/// A command that waits for sectors which are read in any case books the ways between their
/// tracks, and not all of it as a transfer.
#[test]
fn what_is_read_on_in_any_case_is_booked_by_its_parts() {
    let mut of = caching(ReadCacheSpecification {
        read_ahead_sectors_min: 1500,
        ..segments(4, 2000)
    });
    of.mechanism.head_switch_ms = 1.0;
    let mut bench = Bench::new(&of);
    bench.one(READ, 5990, 8);
    let after = bench.one(READ, 90_000, 8);
    let period = of.mechanism.period_ns as u64;
    assert!(after.stage(Stage::HeadSwitch) >= 1_000_000, "{after:?}");
    let turned = after.stage(Stage::RotationalLatency)
        + after.stage(Stage::MissedRevolution(Deadline::ReadAhead));
    // The next track's first sector has gone by during the switch.
    assert!(turned > period / 2, "{after:?}");
    assert!(after.stage(Stage::MediaTransfer) < 2 * period, "{after:?}");
}

/// Each time that may be left out, alone: it is that of its own commands, and of no others.
#[test]
fn each_time_of_the_firmware_is_for_its_own_commands() {
    #[derive(Clone, Copy, PartialEq, Debug)]
    enum Own {
        None,
        Sequential(usize),
        ReadingAhead(usize),
    }
    use Own::{None, ReadingAhead, Sequential};
    const SET_US: u64 = 7000;
    let keys = (0..3).flat_map(|kind| [Sequential(kind), ReadingAhead(kind)]);
    for key in std::iter::once(None).chain(keys) {
        let after = |kind: usize| {
            let ms = (kind + 1) as f64;
            let own = |of: Own| (key == of).then_some(SET_US as f64 / 1e3);
            OverheadByState {
                after_read_ms: ms,
                after_write_ms: ms + 0.01,
                sequential_ms: own(Sequential(kind)),
                reading_ahead_ms: own(ReadingAhead(kind)),
            }
        };
        let mut bench = Bench::new(&DiskSpecification {
            overheads: OverheadSpecification {
                read_hit_ms: after(0),
                read_miss_ms: after(1),
                write_ms: after(2),
                ..OverheadSpecification::default()
            },
            // The arm is still for longer before it writes what the buffer took.
            write_cache: Some(WriteCacheSpecification {
                destage_idle_ms: 50.0,
                ..write_cache()
            }),
            ..by_state()
        });
        for (operation, sector, rests, plain_us, own) in [
            (READ, 5000, false, 2000, [None, None]),
            (READ, 5008, false, 1000, [Sequential(0), ReadingAhead(0)]),
            (WRITE, 300_000, false, 3000, [ReadingAhead(2), None]),
            // It still reads on.
            (READ, 90_000, false, 2010, [ReadingAhead(1), None]),
            (READ, 90_000, true, 1000, [None, None]),
            (WRITE, 300_100, true, 3000, [None, None]),
            (WRITE, 300_108, false, 3010, [Sequential(2), None]),
            (READ, 150_000, true, 2010, [None, None]),
        ] {
            if rests {
                bench.pause(Time(20_000_000));
            }
            let takes_us = match key != None && own.contains(&key) {
                true => SET_US,
                false => plain_us,
            };
            let done = bench.one(operation, sector, 8);
            let took = done.stage(Stage::Command) / 1000;
            assert_eq!(took, takes_us, "{key:?} {operation:?} {sector}");
        }
    }
}

/// A write whose sectors are kept stops reading ahead only where it needs the segment that is
/// filled; and what has to be read in any case is waited for all the same, once.
#[test]
fn a_write_that_is_kept_leaves_the_arm_what_it_does() {
    let of = |keep_written, count| ReadCacheSpecification {
        keeps_written_sectors: keep_written,
        read_ahead_sectors_min: 800,
        read_ahead_sectors_max: Some(1000),
        ..segments(count, 2000)
    };
    for count in [1, 4] {
        let took = |keep_written| {
            let mut bench = Bench::new(&DiskSpecification {
                read_cache: of(keep_written, count),
                ..specification()
            });
            bench.one(READ, 5000, 8);
            let took = bench.one(FUA, 90_000, 8).took;
            assert!(bench.busy_ns() <= bench.now().0, "{keep_written} {count}");
            took
        };
        assert_eq!(took(true), took(false), "{count} segments");
    }
    let mut bench = Bench::new(&caching(of(true, 4)));
    bench.one(READ, 5000, 8);
    bench.one(WRITE, 90_000, 8);
    bench.pause(LONG);
    assert!(hits(&mut bench, 5900), "it was read on to there");
}

/// Sectors that were read ahead, and not yet counted, are as old as others once they are
/// written.
#[test]
fn a_write_drops_what_was_read_ahead_so_far() {
    let mut bench = Bench::new(&DiskSpecification {
        write_cache: Some(WriteCacheSpecification {
            serves_reads: false,
            ..write_cache()
        }),
        ..specification()
    });
    bench.one(READ, 5000, 8);
    bench.pause(Time(3_000_000));
    bench.one(WRITE, 5100, 8);
    assert!(!hits(&mut bench, 5100));
}

/// What contradicts itself is named by its own key.
#[test]
fn errors_have_their_own_key() {
    let refusal = |key: &str, text: &str| {
        let setting = [Setting::new(&format!("drive.{key}"), text)];
        let resolved = Catalogue::embedded().resolve("bare-sata-7200", &setting);
        let read = resolved.and_then(DeviceSpecification::from_rig);
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    for (key, text) in [
        ("write_seek_table", "[[5, 1.0], [3, 1.0]]"),
        ("seek_inward_ms", "2000.0"),
        ("write_same_track_ms", "2000.0"),
        ("read_hit_sequential_ms", "2000.0"),
        ("link_reconnect_ms", "2000.0"),
    ] {
        let found = refusal(key, text);
        assert!(found.contains(&format!("`{key}`")), "{key}: {found}");
    }
    let mut of = specification();
    of.link.read_delivery = ReadDelivery::Reconnected { share: 1.5 };
    assert!(of.validate().is_err());
}
