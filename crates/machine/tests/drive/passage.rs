//! Transfers. These fail when a part of a transfer is lost, counted twice or
//! put in the wrong place, and when a sector that follows at once is missed.

use super::geometry::any_geometry;
use super::{EAGLE_RPM, assert_near, built, drive, eagle, format, mechanics, plain};
use diskperf_device::BusyTimes;
use diskperf_machine::hardware::mechanism::{
    DiskFormat, DiskGeometry, Mechanics, Mechanism, TransferTimes,
};
use diskperf_sim::Time;
use proptest::prelude::*;

/// Revolutions, as a number to compare with.
fn revolutions(drive: &Mechanism, span: Time) -> f64 {
    span.0 as f64 / drive.spindle().revolution_time().0 as f64
}

#[track_caller]
fn assert_revolutions(drive: &Mechanism, span: Time, expected: f64) {
    let turned = revolutions(drive, span);
    assert!(
        (turned - expected).abs() < 1e-5,
        "{turned} and not {expected} revolutions"
    );
}

#[test]
fn a_transfer_is_way_latency_and_media() {
    let mut eagle = drive(eagle(), EAGLE_RPM);
    let per_cylinder = 20 * 48;
    // Commanded at a whole number of revolutions, 100 cylinders away.
    let now = Time(eagle.spindle().revolution_time().0 * 3);
    let seek = eagle.seek_to_cylinder(100, false).seek_time;
    let mut other = drive(super::eagle(), EAGLE_RPM);
    let passage = other.transfer_sectors(now, 100 * per_cylinder + 10, 16, false);
    assert_eq!(passage.move_to_track.seek_time, seek);
    let slot = passage.media_transfer_time.0 as f64 / 16.0;
    assert_revolutions(&other, passage.media_transfer_time, 16.0 / 48.0);
    let waited = (passage.rotational_latency.0 + seek.0) as f64 / slot;
    assert!(
        (waited % 48.0 - 10.0).abs() < 1e-3,
        "it starts at slot 10, not {waited}"
    );
    assert!(revolutions(&other, passage.rotational_latency) < 1.0);
    assert_eq!(
        passage.track_switch_moves.total_time() + passage.track_switch_rotational_latency,
        Time::ZERO
    );
    assert_eq!(other.last_transfer_end(), Some(now + passage.total_time()));
    assert_eq!(
        other.slot_under_head(now + passage.total_time() + Time(1)),
        26
    );
}

/// The table of the facts: whole tracks of the ST251, 8.5 KB each, on a
/// controller that loses nothing.
#[test]
fn an_interleave_of_n_reads_a_track_in_n_revolutions() {
    for (interleave, printed) in [(2, 254.0), (3, 170.0), (4, 128.0), (5, 102.0), (6, 85.0)] {
        let mut st251 = drive(mechanics(plain((820, 6, 17), 0, interleave)), 3600.0);
        let one = st251.transfer_sectors(Time::ZERO, 0, 17, false);
        let slots = f64::from(16 * interleave + 1);
        assert_revolutions(&st251, one.media_transfer_time, slots / 17.0);
        // Until the same sector comes by again.
        let again = st251.transfer_sectors(one.total_time(), 0, 17, false);
        assert_revolutions(
            &st251,
            one.media_transfer_time + again.rotational_latency,
            f64::from(interleave),
        );
        let seconds = (one.media_transfer_time + again.rotational_latency).as_seconds();
        let kb_per_s = 8.5 / seconds;
        assert!(
            (kb_per_s - printed).abs() < 1.5,
            "{kb_per_s} of {printed} KB/s"
        );
    }
}

#[test]
fn tracks_in_a_row_lose_only_what_their_heads_need() {
    let skewed = |slots: u32| {
        built(&DiskFormat {
            track_skew_slots: slots,
            cylinder_skew_slots: slots,
            ..format((10, 5, 40), 2, 1)
        })
    };
    let tracks = 5;
    let whole = |geometry: DiskGeometry, head_switch_ms: u64| {
        let head_switch = Time::from_millis(head_switch_ms);
        let mut one = drive(
            Mechanics {
                head_switch_time: head_switch,
                ..mechanics(geometry)
            },
            3600.0,
        );
        let passage = one.transfer_sectors(Time::ZERO, 0, tracks * 40, false);
        assert_eq!(
            passage.track_switch_moves.head_switch_time.0,
            head_switch.0 * u64::from(tracks - 1)
        );
        revolutions(&one, passage.total_time())
    };
    let close = |turned: f64, expected: f64| {
        assert!(
            (turned - expected).abs() < 1e-5,
            "{turned} and not {expected} revolutions"
        );
    };
    // From the first slot to the last data slot of the last track.
    let last = 40.0 / 42.0;
    close(whole(skewed(0), 0), 4.0 + last);
    // Two spare slots are 0.79 ms: a switch of 1 ms misses the next track's
    // start, by less than a revolution, which it costs all of.
    close(whole(skewed(0), 1), 4.0 * 2.0 + last);
    // Three slots of skew are enough for it, and cost no more than they are.
    close(whole(skewed(3), 1), 4.0 * 45.0 / 42.0 + last);
    // One slot more is lost at each end; none more than needed is missed.
    close(whole(skewed(4), 1), 4.0 * 46.0 / 42.0 + last);
}

#[test]
fn a_cylinder_skew_hides_the_seek() {
    let read = |cylinder_skew: u32| {
        let geometry = built(&DiskFormat {
            cylinder_skew_slots: cylinder_skew,
            ..format((10, 2, 69), 0, 1)
        });
        let mut one = drive(mechanics(geometry), 3600.0);
        // From the second track of cylinder 0 on to cylinder 1.
        let passage = one.transfer_sectors(Time::ZERO, 69, 2 * 69, false);
        assert_eq!(passage.track_switch_moves.seek_time, Time::from_millis(5));
        revolutions(
            &one,
            passage.media_transfer_time
                + passage.track_switch_moves.total_time()
                + passage.track_switch_rotational_latency,
        )
    };
    // 5 ms of 16.67 are 20.7 of 69 slots.
    for (skew, lost) in [(0, 69.0), (20, 69.0 + 20.0), (21, 21.0), (30, 30.0)] {
        let turned = read(skew);
        let expected = (2.0 * 69.0 + lost) / 69.0;
        assert!(
            (turned - expected).abs() < 1e-5,
            "skew {skew}: {turned}, {expected}"
        );
    }
}

#[test]
fn a_slipped_sector_costs_a_slot_and_a_revectored_one_revolutions() {
    let transfer = |geometry: DiskGeometry| {
        let mut one = drive(mechanics(geometry), 3600.0);
        let passage = one.transfer_sectors(Time::ZERO, 2, 16, false);
        (revolutions(&one, passage.total_time()), passage)
    };
    let (whole, _) = transfer(plain((100, 4, 50), 0, 1));
    let slipped = built(&DiskFormat {
        slipped_sectors: vec![7],
        ..format((100, 4, 50), 0, 1)
    });
    let (turned, passage) = transfer(slipped);
    assert!(
        (turned - whole - 1.0 / 50.0).abs() < 1e-6,
        "{turned}, {whole}"
    );
    assert_eq!(passage.track_switch_moves.total_time(), Time::ZERO);
    // Its replacement is at the end of the drive: there and back.
    let end = 100 * 4 * 50 - 1;
    let moved = built(&DiskFormat {
        revectored_extents: vec![(7, end).into()],
        ..format((100, 4, 50), 0, 1)
    });
    let (turned, passage) = transfer(moved);
    assert_eq!(passage.track_switch_moves.seek_time, Time::from_millis(70));
    let lost = turned - whole;
    assert!(
        lost > 4.0,
        "{lost}: two seeks of 35 ms alone are 4.2 revolutions"
    );
    assert!(
        (lost - lost.round()).abs() < 1e-5,
        "{lost}: it ends at the same slot"
    );
}

#[test]
fn each_part_of_the_way_is_where_it_belongs() {
    let slow = Mechanics {
        settle_time: Time::from_millis(2),
        write_settle_time: Time::from_millis(1),
        head_switch_time: Time(300_000),
        ..eagle()
    };
    let mut one = drive(slow, EAGLE_RPM);
    let seek = one.seek_to_cylinder(1, false);
    let parts = [
        seek.seek_time,
        seek.settle_time,
        seek.write_settle_time,
        seek.head_switch_time,
    ];
    assert_eq!(parts, [5, 2, 0, 0].map(Time::from_millis));
    assert_eq!(
        one.seek_to_cylinder(1, true).total_time(),
        Time::ZERO,
        "it is there already"
    );
    let seek = one.seek_to_cylinder(0, true);
    assert_eq!(
        seek.total_time(),
        Time::from_millis(8),
        "a write waits longer"
    );
    let switch = one
        .transfer_sectors(Time::from_millis(100), 48, 1, true)
        .move_to_track;
    assert_eq!(
        switch.total_time(),
        Time(300_000),
        "another head of the cylinder"
    );
    let stay = one
        .transfer_sectors(Time::from_millis(200), 50, 1, true)
        .move_to_track;
    assert_eq!(stay.total_time(), Time::ZERO);
    let both = one
        .transfer_sectors(Time::from_millis(300), 20 * 48 + 1, 1, true)
        .move_to_track;
    assert_eq!(
        both.total_time(),
        Time::from_millis(8),
        "the head changes while the arm moves"
    );
    let positioning = [7, 0, 8, 0, 0, 8]
        .map(Time::from_millis)
        .into_iter()
        .sum::<Time>();
    assert_eq!(
        one.busy_times().positioning_time,
        positioning + Time(300_000)
    );
}

#[test]
fn a_transfer_that_is_cut_short_is_busy_for_less() {
    let mut one = drive(eagle(), EAGLE_RPM);
    let passage = one.transfer_sectors(Time::ZERO, 0, 16, true);
    let first = passage.media_transfer_time.0 / 16;
    let cut = Time(passage.time_to_first_sector().0 + first);
    one.truncate_last_transfer(cut);
    assert_eq!(one.last_transfer_end(), Some(cut));
    assert_near(one.busy_times().transfer_time, Time(first), 1);
    assert_eq!(one.busy_times().transferred_bytes, 512);
}

/// Cut before it gets to the next cylinder, a transfer has not been there.
#[test]
fn a_transfer_that_is_cut_short_has_gone_no_further() {
    let last_track = 20 * 48 - 8;
    for sectors_before_the_cut in [3, 8, 11] {
        let mut one = drive(eagle(), EAGLE_RPM);
        let passage = one.transfer_sectors(Time::ZERO, last_track, 16, true);
        let mut other = drive(eagle(), EAGLE_RPM);
        let part = other.transfer_sectors(Time::ZERO, last_track, sectors_before_the_cut, true);
        let cut = part.total_time() + Time(1000);
        assert!(cut < passage.total_time());
        one.truncate_last_transfer(cut);
        assert_eq!(one.cylinder(), other.cylinder());
        let (busy, expected) = (one.busy_times(), other.busy_times());
        assert_eq!(busy.positioning_time, expected.positioning_time);
        assert_eq!(busy.transferred_bytes, expected.transferred_bytes);
        let all = |busy: BusyTimes| {
            busy.positioning_time + busy.rotational_latency_time + busy.transfer_time
        };
        assert_eq!(all(busy), cut, "busy up to the cut, and no longer");
    }
}

/// A transfer reckoned sector by sector, by exact fractions of a revolution:
/// where it stands, how far it has to turn to the next sector, and that a
/// head that rests nowhere loses nothing.
fn by_hand(drive: &mut Mechanism, now: Time, sector: u64, count: u32) -> (f64, u32) {
    let period = 60e9 / EAGLE_RPM;
    let turn = |at: f64, slot: u32, slots: u32| {
        let target = f64::from(slot) / f64::from(slots);
        (target - at / period).rem_euclid(1.0)
    };
    let mut at = now.0 as f64;
    let mut roundings = 2;
    let mut cylinder = None;
    for step in 0..u64::from(count) {
        let place = drive.geometry().locate_sector(sector + step);
        at += drive.seek_to_cylinder(place.cylinder, false).total_time().0 as f64;
        let mut wait = turn(at, place.sector, place.sectors_per_track);
        // The sector at hand, up to the error of the fractions; heads of one
        // cylinder switch in no time here.
        if cylinder == Some(place.cylinder) && wait > 1.0 - 1e-6 {
            wait = 0.0;
        }
        cylinder = Some(place.cylinder);
        roundings += 3;
        at += (wait + 1.0 / f64::from(place.sectors_per_track)) * period;
    }
    (at - now.0 as f64, roundings)
}

fn parts(passage: &TransferTimes) -> [Time; 10] {
    let (to, on) = (passage.move_to_track, passage.track_switch_moves);
    let latency = [
        passage.rotational_latency,
        passage.track_switch_rotational_latency,
    ];
    let moves = [
        to.seek_time,
        to.settle_time,
        to.write_settle_time,
        to.head_switch_time,
    ];
    let more = [
        on.seek_time,
        on.settle_time,
        on.write_settle_time,
        on.head_switch_time,
    ];
    let [a, b, c, d] = moves;
    let [e, f, g, h] = more;
    let [i, j] = latency;
    [a, b, c, d, e, f, g, h, i, j]
}

proptest! {
    #[test]
    fn a_transfer_is_the_sum_of_its_parts(
        geometry in any_geometry(),
        now in 0_u64..1_000_000_000,
        (from, span) in any::<(prop::sample::Index, prop::sample::Index)>(),
        write in any::<bool>(),
    ) {
        let sectors = geometry.sector_count() as usize;
        let from = from.index(sectors);
        let count = 1 + span.index(sectors - from) as u32;
        let mechanics = Mechanics {
            settle_time: Time(700_001),
            write_settle_time: Time(300_001),
            head_switch_time: Time(400_001),
            ..mechanics(geometry)
        };
        let mut one = drive(mechanics, EAGLE_RPM);
        let place = one.geometry().locate_sector(from as u64);
        let passage = one.transfer_sectors(Time(now), from as u64, count, write);
        let sum = parts(&passage).into_iter().sum::<Time>() + passage.media_transfer_time;
        prop_assert_eq!(sum, passage.total_time());
        let busy = one.busy_times();
        prop_assert_eq!(busy.positioning_time + busy.rotational_latency_time + busy.transfer_time, sum);
        // Each of its sectors passes under the heads, on tracks that may
        // differ; no part is less than the fastest.
        let times = (0..one.geometry().cylinders()).map(|cylinder| one.time_of_slots(cylinder, count));
        let media = times.min().expect("a cylinder");
        // But for the two nanoseconds in which a sector is still caught.
        prop_assert!(passage.media_transfer_time + Time(2) >= media, "{:?} for {:?}", passage.media_transfer_time, media);
        prop_assert!(passage.rotational_latency <= one.spindle().revolution_time());
        // It ends where its last sector ends.
        let last = one.geometry().locate_sector(from as u64 + u64::from(count) - 1);
        prop_assert_eq!(one.cylinder(), last.cylinder);
        let end = one.time_until_slot(Time(now) + passage.total_time(), (last.sector + 1) % last.sectors_per_track);
        let late = one.spindle().revolution_time().0 - end.0;
        prop_assert!(end.0 < 64 || late < 64 + 3 * u64::from(count), "{} ns off its slot", end.0);
        // And starts where its first one starts.
        let starts = Time(now) + passage.time_to_first_sector();
        one.seek_to_cylinder(place.cylinder, false);
        prop_assert_eq!(one.slot_under_head(starts + Time(1)), place.sector);
    }

    #[test]
    fn a_transfer_is_as_long_as_its_sectors_one_by_one(
        geometry in any_geometry(),
        now in 0_u64..1_000_000_000,
        (from, span) in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let sectors = geometry.sector_count() as usize;
        let from = from.index(sectors);
        let count = 1 + span.index((sectors - from).min(60)) as u32;
        let mut one = drive(mechanics(geometry.clone()), EAGLE_RPM);
        let mut other = drive(mechanics(geometry), EAGLE_RPM);
        let passage = one.transfer_sectors(Time(now), from as u64, count, false);
        let (expected, roundings) = by_hand(&mut other, Time(now), from as u64, count);
        let off = (passage.total_time().0 as f64 - expected).abs();
        // A revolution more or less shows; what rounding may do does not.
        prop_assert!(off <= f64::from(roundings), "{} ns off after {} sectors", off, count);
    }
}

#[test]
fn media_rate_is_what_the_data_sheets_print() {
    // Sectors on a track, slots, rpm, KB/s of the facts' table.
    for (spt, spare, speed, printed) in [
        (48, 0, EAGLE_RPM, 1584.0),
        (51, 0, 3600.0, 1530.0),
        (32, 0, 3600.0, 960.0),
        (22, 0, 3600.0, 660.0),
        (17, 0, 3600.0, 510.0),
    ] {
        let mut one = drive(mechanics(plain((10, 2, spt), spare, 1)), speed);
        let passage = one.transfer_sectors(Time::ZERO, 0, spt, false);
        let kb_per_s = f64::from(spt) / 2.0 / passage.media_transfer_time.as_seconds();
        assert!(
            (kb_per_s - printed).abs() < 1.0,
            "{kb_per_s} of {printed} KB/s"
        );
    }
}

#[test]
fn sectors_pass_one_by_one() {
    let mut one = drive(eagle(), EAGLE_RPM);
    let sixteen = one
        .transfer_sectors(Time::ZERO, 0, 16, false)
        .media_transfer_time;
    let single = one.time_of_slots(0, 1);
    assert_near(sixteen, Time(single.0 * 16), 16);
    // Over the end of a track, where nothing is lost without skew.
    let passage = one.transfer_sectors(Time::from_millis(500), 40, 16, false);
    assert_near(
        passage.media_transfer_time + passage.track_switch_rotational_latency,
        sixteen,
        4,
    );
}
