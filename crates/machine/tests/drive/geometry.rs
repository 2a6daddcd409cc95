//! Where sectors are. These fail when two sectors share a slot, when a spare
//! or a slipped slot is used, or when a skew is applied to the wrong side of
//! a track's end.

use diskperf_machine::hardware::mechanism::{
    Geometry, GeometryError, HeadGroups, Place, Revectored, Zone,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn plain(shape: (u32, u32, u32), spare: u32, interleave: u32) -> Geometry {
    Geometry::new(shape, (spare, interleave), 512).expect("a geometry")
}

fn at(place: Place) -> (u32, u32, u32) {
    (place.cylinder, place.head, place.slot)
}

#[test]
fn sectors_fill_track_head_cylinder() {
    let drive = plain((3, 4, 10), 0, 1);
    assert_eq!(at(drive.locate(0)), (0, 0, 0));
    assert_eq!(at(drive.locate(9)), (0, 0, 9));
    assert_eq!(at(drive.locate(10)), (0, 1, 0));
    assert_eq!(at(drive.locate(40)), (1, 0, 0));
    assert_eq!(at(drive.locate(119)), (2, 3, 9));
    assert_eq!(drive.sectors(), 120);
    assert_eq!(drive.capacity_bytes(), 120 * 512);
}

#[test]
#[should_panic(expected = "is not on the drive")]
fn there_is_nothing_behind_the_last_sector() {
    plain((3, 4, 10), 0, 1).locate(120);
}

#[test]
fn spares_turn_by_and_hold_nothing() {
    let drive = plain((2, 2, 51), 1, 1);
    assert_eq!(drive.sectors(), 2 * 2 * 51);
    assert_eq!(drive.slots(0), 52);
    let used: BTreeSet<u32> = (0..drive.sectors())
        .map(|sector| drive.locate(sector).slot)
        .collect();
    assert!(
        used.iter().copied().eq(0..51),
        "the last slot of each track stays free"
    );
}

#[test]
fn zones_have_their_own_tracks() {
    let zones = vec![Zone::new(0, 60, 2, 1), Zone::new(10, 40, 0, 3)];
    let drive = Geometry::zoned((30, 5), zones, 512).expect("a geometry");
    let first = 10 * 5 * 60;
    assert_eq!(drive.sectors(), first + 20 * 5 * 40);
    assert_eq!((drive.sectors_per_track(9), drive.slots(9)), (60, 62));
    assert_eq!((drive.sectors_per_track(10), drive.slots(10)), (40, 40));
    assert_eq!(at(drive.locate(first - 1)), (9, 4, 59));
    assert_eq!(at(drive.locate(first)), (10, 0, 0));
    assert_eq!(at(drive.locate(first + 1)), (10, 0, 3));
    assert_eq!(drive.locate(first).slots, 40);
    assert_eq!(drive.fewest_slots(), 40);
    for cylinder in 0..30 {
        let place = drive.locate(drive.first_sector(cylinder));
        assert_eq!(at(place), (cylinder, 0, 0));
    }
}

#[test]
fn interleaved_sectors_lie_apart() {
    let slots = |interleave, sectors| -> Vec<u32> {
        let drive = plain((1, 1, sectors), 0, interleave);
        (0..u64::from(sectors))
            .map(|sector| drive.locate(sector).slot)
            .collect()
    };
    assert_eq!(slots(1, 5), [0, 1, 2, 3, 4]);
    assert_eq!(slots(2, 5), [0, 2, 4, 1, 3]);
    assert_eq!(slots(3, 5), [0, 3, 1, 4, 2]);
    // Where the interleave divides the track, the next free slot follows.
    assert_eq!(slots(2, 6), [0, 2, 4, 1, 3, 5]);
}

#[test]
fn each_track_is_turned_against_the_one_before_it() {
    let (spt, heads, cylinders) = (20, 3, 4);
    let drive = plain((cylinders, heads, spt), 1, 1).skewed(5, 8);
    let starts: Vec<Place> = (0..u64::from(heads * cylinders))
        .map(|track| drive.locate(track * u64::from(spt)))
        .collect();
    assert_eq!(starts[0].slot, 0);
    for pair in starts.windows(2) {
        let turned = (pair[1].slot + 21 - pair[0].slot) % 21;
        let skew = if pair[0].cylinder == pair[1].cylinder {
            5
        } else {
            8
        };
        assert_eq!(turned, skew, "{pair:?}");
    }
}

#[test]
fn a_group_of_heads_is_turned_once_more() {
    let (spt, heads, cylinders) = (20, 5, 3);
    let groups = HeadGroups { heads: 2, skew: 7 };
    let drive = plain((cylinders, heads, spt), 1, 1)
        .skewed(5, 8)
        .with_head_groups(Some(groups));
    let starts: Vec<Place> = (0..u64::from(heads * cylinders))
        .map(|track| drive.locate(track * u64::from(spt)))
        .collect();
    for pair in starts.windows(2) {
        let turned = (pair[1].slot + 21 - pair[0].slot) % 21;
        let skew = if pair[0].cylinder != pair[1].cylinder {
            8
        } else if pair[1].head % 2 == 0 {
            5 + 7
        } else {
            5
        };
        assert_eq!(turned, skew, "{pair:?}");
    }
}

#[test]
fn sectors_slip_past_a_bad_one() {
    let whole = plain((2, 2, 10), 0, 1);
    let slipped = whole
        .clone()
        .slipping(vec![13, 4, 5])
        .expect("on the drive");
    assert_eq!(slipped.sectors(), whole.sectors() - 3);
    for (sector, physical) in [
        (0, 0),
        (3, 3),
        (4, 6),
        (9, 11),
        (10, 12),
        (11, 14),
        (36, 39),
    ] {
        assert_eq!(
            at(slipped.locate(sector)),
            at(whole.locate(physical)),
            "sector {sector}"
        );
    }
    assert_eq!(slipped.locate(2).contiguous, 2, "up to the bad ones");
    assert_eq!(whole.slipping(vec![40]), Err(GeometryError::Beyond(40)));
}

#[test]
fn a_revectored_sector_is_elsewhere_and_alone() {
    let whole = plain((4, 2, 10), 0, 1);
    let moved = whole
        .clone()
        .revectoring(vec![(15, 79)])
        .expect("on the drive");
    assert_eq!(at(moved.locate(15)), at(whole.locate(79)));
    assert_eq!(moved.locate(15).contiguous, 1);
    assert_eq!(moved.locate(12).contiguous, 3, "up to the one that moved");
    for sector in [14, 16] {
        assert_eq!(at(moved.locate(sector)), at(whole.locate(sector)));
    }
    for twice in [vec![(1, 79), (2, 79)], vec![(1, 79), (79, 70)]] {
        let refused = whole.clone().revectoring(twice);
        assert_eq!(refused, Err(GeometryError::Shared(79)));
    }
    assert_eq!(
        whole.revectoring(vec![(80, 1)]),
        Err(GeometryError::Beyond(80))
    );
}

#[test]
fn impossible_shapes_are_refused() {
    let new = |shape, other| Geometry::new(shape, other, 512).expect_err("no drive");
    assert_eq!(new((0, 1, 1), (0, 1)), GeometryError::Empty);
    assert_eq!(new((1, 0, 1), (0, 1)), GeometryError::Empty);
    assert_eq!(new((1, 1, 0), (0, 1)), GeometryError::Empty);
    assert_eq!(new((1, 1, 9), (0, 0)), GeometryError::Interleave);
    assert_eq!(new((1, 1, 9), (0, 10)), GeometryError::Interleave);
    for zones in [vec![(1, 9)], vec![(0, 9), (0, 8)], vec![(0, 9), (5, 8)]] {
        let zones = zones
            .into_iter()
            .map(|(first, spt)| Zone::new(first, spt, 0, 1))
            .collect();
        assert_eq!(
            Geometry::zoned((5, 1), zones, 512),
            Err(GeometryError::Zones)
        );
    }
}

/// A small drive with everything: zones, spares, interleave, skews, defects.
pub(crate) fn any_geometry() -> impl Strategy<Value = Geometry> {
    let zone = (1_u32..5, 1_u32..24, 0_u32..3, 1_u32..8);
    let bad = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (
        prop::collection::vec(zone, 1..4),
        1_u32..4,
        0_u32..30,
        0_u32..30,
        bad,
    )
        .prop_map(|(shapes, heads, track_skew, cylinder_skew, bad)| {
            let mut cylinders = 0;
            let mut zones = Vec::new();
            for (size, spt, spare, interleave) in shapes {
                zones.push(Zone::new(cylinders, spt, spare, interleave.min(spt)));
                cylinders += size;
            }
            let drive = Geometry::zoned((cylinders, heads), zones, 512).expect("a geometry");
            let sectors = drive.sectors() as usize;
            // At least one sector stays.
            let bad = bad.iter().map(|index| index.index(sectors) as u64);
            let bad: Vec<u64> = bad.take(sectors - 1).collect();
            drive
                .skewed(track_skew, cylinder_skew)
                .slipping(bad)
                .expect("on the drive")
        })
}

proptest! {
    /// Every sector has a slot, no two have the same, and each slot is on the
    /// drive: locate() takes the sectors one to one into the slots.
    #[test]
    fn every_sector_has_a_slot_of_its_own(drive in any_geometry()) {
        let mut seen = BTreeSet::new();
        for sector in 0..drive.sectors() {
            let place = drive.locate(sector);
            prop_assert!(place.cylinder < drive.cylinders() && place.head < drive.heads());
            prop_assert!(place.slot < place.slots);
            prop_assert_eq!(place.slots, drive.slots(place.cylinder));
            prop_assert!(seen.insert(at(place)), "sector {} shares {:?}", sector, place);
        }
        prop_assert_eq!(seen.len() as u64, drive.sectors());
    }

    /// The same of sectors and tracks that live elsewhere: what is not set
    /// aside for them has a slot of its own, and theirs are among what is.
    #[test]
    fn revectored_sectors_share_no_slot(
        drive in any_geometry(),
        bad in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        // Stand-ins are counted as if nothing slipped.
        let drive = drive.slipping(Vec::new()).expect("on the drive");
        let sectors = drive.sectors();
        prop_assume!(sectors >= 8);
        // The last quarter is set aside.
        let data = sectors - sectors / 4;
        let mut bad: Vec<u64> = bad.iter().map(|index| index.index(data as usize) as u64).collect();
        bad.sort_unstable();
        bad.dedup();
        bad.truncate((sectors - data) as usize);
        let moved: Vec<(u64, u64)> = bad.iter().copied().zip(data..).collect();
        let whole = drive.clone();
        let drive = drive.revectoring(moved.clone()).expect("on the drive");
        let mut seen = BTreeSet::new();
        for sector in 0..data {
            let place = drive.locate(sector);
            prop_assert!(seen.insert(at(place)), "sector {} shares {:?}", sector, place);
        }
        for (from, to) in moved {
            prop_assert_eq!(at(drive.locate(from)), at(whole.locate(to)));
        }
    }

    /// What is said to follow slot by slot does so, on one track.
    #[test]
    fn contiguous_sectors_follow_each_other(drive in any_geometry()) {
        for sector in 0..drive.sectors() {
            let place = drive.locate(sector);
            prop_assert!(place.contiguous >= 1);
            let last = (u64::from(place.contiguous) - 1).min(drive.sectors() - 1 - sector);
            for step in 1..=last {
                let next = drive.locate(sector + step);
                prop_assert_eq!((next.cylinder, next.head), (place.cylinder, place.head));
                prop_assert_eq!(next.slot, (place.slot + step as u32) % place.slots);
            }
        }
    }
}

/// The slots of a track as a formatter chooses them, one after the other.
fn formatted(sectors: u32, interleave: u32) -> Vec<u32> {
    let mut taken = vec![false; sectors as usize];
    let mut slot = 0;
    (0..sectors)
        .map(|_| {
            while taken[slot as usize] {
                slot = (slot + 1) % sectors;
            }
            taken[slot as usize] = true;
            let chosen = slot;
            slot = (slot + interleave) % sectors;
            chosen
        })
        .collect()
}

#[test]
fn slots_are_those_that_a_formatter_chooses() {
    for sectors in 1..=48 {
        for spare in [0, 3] {
            for interleave in 1..=sectors + spare {
                let drive = plain((1, 1, sectors), spare, interleave);
                let slots: Vec<u32> = (0..u64::from(sectors))
                    .map(|sector| drive.locate(sector).slot)
                    .collect();
                let expected = formatted(sectors, interleave);
                assert_eq!(slots, expected, "{sectors} + {spare}, {interleave}");
            }
        }
    }
}

/// Eight thousand bad tracks of a hundred thousand sectors: a table of the sectors
/// would take 13 GB, and a search through it hours.
#[test]
fn bad_tracks_are_kept_as_tracks() {
    let (sectors, tracks) = (100_000, 8_000);
    let whole = plain((20_000, 1, sectors as u32), 0, 1);
    let track = |number| Revectored {
        from: 2 * number * sectors,
        to: (2 * number + 1) * sectors,
        sectors,
    };
    let drive = whole
        .clone()
        .revectoring((0..tracks).map(track).collect())
        .expect("on the drive");
    let bad = 2 * 7_000 * sectors + 17;
    assert_eq!(at(drive.locate(bad)), at(whole.locate(bad + sectors)));
    assert_eq!(drive.locate(bad).contiguous, 1);
    assert_eq!(drive.stand_in_among(0..sectors), None);
    assert_eq!(drive.stand_in_among(0..sectors + 1), Some(sectors));
    let last = 2 * tracks * sectors;
    assert_eq!(drive.stand_in_among(last - 1..last + 1), Some(last - 1));
    assert_eq!(drive.stand_in_among(last..last + sectors), None);
}

#[test]
fn places_of_bad_sectors_do_not_contradict_each_other() {
    let whole = plain((10, 1, 10), 0, 1);
    let run = |from, to| Revectored {
        from,
        to,
        sectors: 10,
    };
    let refused = |runs: Vec<Revectored>| {
        let made = whole.clone().revectoring(runs);
        made.expect_err("they contradict each other")
    };
    assert_eq!(
        refused(vec![run(0, 80), (5, 95).into()]),
        GeometryError::Twice(5)
    );
    assert_eq!(
        refused(vec![run(0, 80), (20, 85).into()]),
        GeometryError::Shared(85)
    );
    assert_eq!(
        refused(vec![run(0, 80), (85, 30).into()]),
        GeometryError::Shared(85)
    );
    assert_eq!(refused(vec![run(0, 95)]), GeometryError::Beyond(100));
}

/// Sectors that stand in for others are numbered as if they were none, past those
/// that slip.
#[test]
fn stand_ins_are_counted_past_slipped_sectors() {
    let drive = plain((1, 1, 100), 0, 1)
        .slipping(vec![10, 20, 30])
        .expect("on the drive")
        .revectoring(vec![(5, 25), (6, 90)])
        .expect("on the drive");
    assert_eq!(drive.stand_in_among(0..100), Some(23));
    assert_eq!(drive.stand_in_among(24..100), Some(87));
    assert_eq!(drive.stand_in_among(23..24), Some(23));
    assert_eq!(drive.stand_in_among(24..87), None);
}
