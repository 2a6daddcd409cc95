//! Where sectors are. These fail when two sectors share a slot, when a spare
//! or a slipped slot is used, or when a skew is applied to the wrong side of
//! a track's end.

use super::{built, format, plain, zones};
use diskperf_device::disk::layout::{LayoutError, SectorPosition};
use diskperf_machine::hardware::mechanism::{
    DiskFormat, DiskGeometry, GeometryError, HeadGroups, RevectoredExtent,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn refused(format: &DiskFormat) -> GeometryError {
    DiskGeometry::new(format).expect_err("no drive")
}

fn at(place: SectorPosition) -> (u32, u32, u32) {
    (place.cylinder, place.head, place.sector)
}

#[test]
fn sectors_fill_track_head_cylinder() {
    let drive = plain((3, 4, 10), 0, 1);
    assert_eq!(at(drive.locate_sector(0)), (0, 0, 0));
    assert_eq!(at(drive.locate_sector(9)), (0, 0, 9));
    assert_eq!(at(drive.locate_sector(10)), (0, 1, 0));
    assert_eq!(at(drive.locate_sector(40)), (1, 0, 0));
    assert_eq!(at(drive.locate_sector(119)), (2, 3, 9));
    assert_eq!(drive.sector_count(), 120);
    assert_eq!(drive.capacity_bytes(), 120 * 512);
}

#[test]
#[should_panic(expected = "sector 120 of a disk of 120")]
fn there_is_nothing_behind_the_last_sector() {
    plain((3, 4, 10), 0, 1).locate_sector(120);
}

#[test]
fn spares_turn_by_and_hold_nothing() {
    let drive = plain((2, 2, 51), 1, 1);
    assert_eq!(drive.sector_count(), 2 * 2 * 51);
    assert_eq!(drive.slots_per_track(0), 52);
    let used: BTreeSet<u32> = (0..drive.sector_count())
        .map(|sector| drive.locate_sector(sector).sector)
        .collect();
    assert!(
        used.iter().copied().eq(0..51),
        "the last slot of each track stays free"
    );
}

#[test]
fn zones_have_their_own_tracks() {
    let drive = built(&DiskFormat {
        zones: zones(&[(0, 60), (10, 40)]),
        ..format((30, 5, 60), 2, 3)
    });
    let first = 10 * 5 * 60;
    assert_eq!(drive.sector_count(), first + 20 * 5 * 40);
    assert_eq!(
        (drive.sectors_per_track(9), drive.slots_per_track(9)),
        (60, 62)
    );
    assert_eq!(
        (drive.sectors_per_track(10), drive.slots_per_track(10)),
        (40, 42)
    );
    assert_eq!(at(drive.locate_sector(first - 1)), (9, 4, 59));
    assert_eq!(at(drive.locate_sector(first)), (10, 0, 0));
    assert_eq!(at(drive.locate_sector(first + 1)), (10, 0, 3));
    assert_eq!(drive.locate_sector(first).sectors_per_track, 42);
    assert_eq!(drive.slots_per_track_min(), 42);
    for cylinder in 0..30 {
        let place = drive.locate_sector(drive.first_sector(cylinder));
        assert_eq!(at(place), (cylinder, 0, 0));
    }
}

#[test]
fn interleaved_sectors_lie_apart() {
    let slots = |interleave, sectors| -> Vec<u32> {
        let drive = plain((1, 1, sectors), 0, interleave);
        (0..u64::from(sectors))
            .map(|sector| drive.locate_sector(sector).sector)
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
    let drive = built(&DiskFormat {
        track_skew_slots: 5,
        cylinder_skew_slots: 8,
        ..format((cylinders, heads, spt), 1, 1)
    });
    let starts: Vec<SectorPosition> = (0..u64::from(heads * cylinders))
        .map(|track| drive.locate_sector(track * u64::from(spt)))
        .collect();
    assert_eq!(starts[0].sector, 0);
    for pair in starts.windows(2) {
        let turned = (pair[1].sector + 21 - pair[0].sector) % 21;
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
    let groups = HeadGroups {
        heads_per_group: 2,
        skew_slots: 7,
    };
    let drive = built(&DiskFormat {
        track_skew_slots: 5,
        cylinder_skew_slots: 8,
        head_groups: Some(groups),
        ..format((cylinders, heads, spt), 1, 1)
    });
    let starts: Vec<SectorPosition> = (0..u64::from(heads * cylinders))
        .map(|track| drive.locate_sector(track * u64::from(spt)))
        .collect();
    for pair in starts.windows(2) {
        let turned = (pair[1].sector + 21 - pair[0].sector) % 21;
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
    let slipping = |slipped| DiskFormat {
        slipped_sectors: slipped,
        ..format((2, 2, 10), 0, 1)
    };
    let slipped = built(&slipping(vec![13, 4, 5]));
    assert_eq!(slipped.sector_count(), whole.sector_count() - 3);
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
            at(slipped.locate_sector(sector)),
            at(whole.locate_sector(physical)),
            "sector {sector}"
        );
    }
    assert_eq!(
        slipped.run_from_sector(2).sector_count,
        2,
        "up to the bad ones"
    );
    let beyond = refused(&slipping(vec![40]));
    assert_eq!(beyond, GeometryError::SlippedBeyondEnd(40));
    let none_left = refused(&slipping((0..40).collect()));
    assert_eq!(none_left.catalogue_key(), "slipped_sectors");
}

#[test]
fn a_revectored_sector_is_elsewhere_and_alone() {
    let whole = plain((4, 2, 10), 0, 1);
    let revectoring = |runs: &[(u64, u64)]| DiskFormat {
        revectored_extents: runs.iter().map(|run| (*run).into()).collect(),
        ..format((4, 2, 10), 0, 1)
    };
    let moved = built(&revectoring(&[(15, 79)]));
    assert_eq!(at(moved.locate_sector(15)), at(whole.locate_sector(79)));
    assert_eq!(moved.run_from_sector(15).sector_count, 1);
    assert_eq!(
        moved.run_from_sector(12).sector_count,
        3,
        "up to the one that moved"
    );
    for sector in [14, 16] {
        assert_eq!(
            at(moved.locate_sector(sector)),
            at(whole.locate_sector(sector))
        );
    }
    for twice in [[(1, 79), (2, 79)], [(1, 79), (79, 70)]] {
        let shared = refused(&revectoring(&twice));
        assert_eq!(shared, GeometryError::ReplacementConflict(79));
    }
    let beyond = refused(&revectoring(&[(80, 1)]));
    assert_eq!(beyond, GeometryError::RevectoredBeyondEnd(80));
}

#[test]
fn impossible_shapes_are_refused() {
    for (shape, key) in [
        ((0, 1, 1), "`cylinders`"),
        ((1, 0, 1), "`surfaces`"),
        ((1, 1, 0), "an interleave"),
    ] {
        let refused = refused(&format(shape, 0, 1)).to_string();
        assert!(refused.starts_with(key), "{refused}");
    }
    for interleave in [0, 10] {
        let refused = refused(&format((1, 1, 9), 0, interleave));
        assert_eq!(refused, GeometryError::InvalidInterleave);
    }
    for wrong in [&[(1, 9)][..], &[(0, 9), (0, 8)], &[(0, 9), (5, 8)], &[]] {
        let refused = refused(&DiskFormat {
            zones: zones(wrong),
            ..format((5, 1, 9), 0, 1)
        });
        assert_eq!(refused.catalogue_key(), "zones", "{wrong:?}: {refused}");
    }
    let order = refused(&DiskFormat {
        zones: zones(&[(0, 9), (5, 8)]),
        ..format((5, 1, 9), 0, 1)
    });
    assert!(
        matches!(
            order,
            GeometryError::InvalidLayout(LayoutError::ZonesOutOfOrder { zone: 1, .. })
        ),
        "{order}"
    );
}

/// A small drive with everything: zones, spares, interleave, skews, slipped sectors.
pub(crate) fn any_format() -> impl Strategy<Value = DiskFormat> {
    let zone = (1_u32..5, 1_u32..24);
    let bad = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (
        prop::collection::vec(zone, 1..4),
        (1_u32..4, 0_u32..3, 1_u32..8),
        (0_u32..30, 0_u32..30, 0_u32..30),
        bad,
    )
        .prop_map(|(shapes, (heads, spare, interleave), skews, bad)| {
            let (mut cylinders, mut sectors) = (0, 0);
            let mut of_zones = Vec::new();
            for (size, spt) in &shapes {
                of_zones.push((cylinders, *spt));
                cylinders += size;
                sectors += (size * heads * spt) as usize;
            }
            let least = shapes.iter().map(|(_, spt)| *spt).min();
            let slots = least.expect("a zone") + spare;
            // At least one sector stays in each zone.
            let slipped = bad.iter().map(|index| index.index(sectors) as u64);
            let slipped = slipped.filter(|_| least > Some(4)).collect();
            let (track_skew, cylinder_skew, skew) = skews;
            DiskFormat {
                zones: zones(&of_zones),
                track_skew_slots: track_skew,
                cylinder_skew_slots: cylinder_skew,
                head_groups: (skew % 2 == 0).then_some(HeadGroups {
                    heads_per_group: 1,
                    skew_slots: skew,
                }),
                slipped_sectors: slipped,
                ..format((cylinders, heads, 1), spare, interleave.min(slots))
            }
        })
}

/// The drive of one of these.
pub(crate) fn any_geometry() -> impl Strategy<Value = DiskGeometry> {
    any_format().prop_map(|format| built(&format))
}

/// The slot of a sector, from what a format says: each sector is looked for from the first
/// on.
fn by_hand(format: &DiskFormat, sector: u64) -> (u32, u32, u32) {
    let mut left = sector;
    let mut physical = 0;
    for (index, zone) in format.zones.iter().enumerate() {
        let next = format.zones.get(index + 1);
        let end = next.map_or(format.cylinders, |next| next.first_cylinder);
        let slots_of = formatted(zone.sectors_per_track, format.interleave_step);
        let slots = zone.sectors_per_track + format.spare_slots_per_track;
        for (cylinder, head) in (zone.first_cylinder..end)
            .flat_map(|cylinder| (0..format.heads).map(move |head| (cylinder, head)))
        {
            for slot in &slots_of {
                let slips = format.slipped_sectors.contains(&physical);
                physical += 1;
                if slips {
                    continue;
                }
                if left == 0 {
                    let groups = format
                        .head_groups
                        .map_or((1, 0), |of| (of.heads_per_group, of.skew_slots));
                    let turned = format.track_skew_slots * (cylinder * (format.heads - 1) + head)
                        + format.cylinder_skew_slots * cylinder
                        + groups.1 * (cylinder * ((format.heads - 1) / groups.0) + head / groups.0);
                    return (cylinder, head, (slot + turned) % slots);
                }
                left -= 1;
            }
        }
    }
    panic!("sector {sector} is on no track")
}

proptest! {
    #[test]
    fn sectors_are_where_the_format_says(format in any_format()) {
        let drive = built(&format);
        for sector in 0..drive.sector_count() {
            let expected = by_hand(&format, sector);
            prop_assert_eq!(at(drive.locate_sector(sector)), expected, "sector {}", sector);
        }
    }

    /// Every sector has a slot, no two have the same, and each slot is on the
    /// drive: locate() takes the sectors one to one into the slots.
    #[test]
    fn every_sector_has_a_slot_of_its_own(drive in any_geometry()) {
        let mut seen = BTreeSet::new();
        for sector in 0..drive.sector_count() {
            let place = drive.locate_sector(sector);
            prop_assert!(place.cylinder < drive.cylinders() && place.head < drive.heads());
            prop_assert!(place.sector < place.sectors_per_track);
            prop_assert_eq!(place.sectors_per_track, drive.slots_per_track(place.cylinder));
            prop_assert!(seen.insert(at(place)), "sector {} shares {:?}", sector, place);
        }
        prop_assert_eq!(seen.len() as u64, drive.sector_count());
    }

    /// The same of sectors and tracks that live elsewhere: what is not set
    /// aside for them has a slot of its own, and theirs are among what is.
    #[test]
    fn revectored_sectors_share_no_slot(
        format in any_format(),
        bad in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        // Stand-ins are counted as if nothing slipped.
        let format = DiskFormat { slipped_sectors: Vec::new(), ..format };
        let whole = built(&format);
        let sectors = whole.sector_count();
        prop_assume!(sectors >= 8);
        // The last quarter is set aside.
        let data = sectors - sectors / 4;
        let mut bad: Vec<u64> = bad.iter().map(|index| index.index(data as usize) as u64).collect();
        bad.sort_unstable();
        bad.dedup();
        bad.truncate((sectors - data) as usize);
        let moved: Vec<(u64, u64)> = bad.iter().copied().zip(data..).collect();
        let revectored = moved.iter().map(|run| (*run).into()).collect();
        let drive = built(&DiskFormat { revectored_extents: revectored, ..format });
        let mut seen = BTreeSet::new();
        for sector in 0..data {
            let place = drive.locate_sector(sector);
            prop_assert!(seen.insert(at(place)), "sector {} shares {:?}", sector, place);
        }
        for (from, to) in moved {
            prop_assert_eq!(at(drive.locate_sector(from)), at(whole.locate_sector(to)));
        }
    }

    /// What is said to follow slot by slot does so, on one track.
    #[test]
    fn contiguous_sectors_follow_each_other(drive in any_geometry()) {
        for sector in 0..drive.sector_count() {
            let run = drive.run_from_sector(sector);
            let place = run.position;
            prop_assert!(run.sector_count >= 1);
            for step in 1..run.sector_count {
                let next = drive.locate_sector(sector + u64::from(step));
                prop_assert_eq!((next.cylinder, next.head), (place.cylinder, place.head));
                prop_assert_eq!(next.sector, (place.sector + step) % place.sectors_per_track);
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
                    .map(|sector| drive.locate_sector(sector).sector)
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
    let of = format((20_000, 1, sectors as u32), 0, 1);
    let whole = built(&of);
    let track = |number| RevectoredExtent {
        first_bad_sector: 2 * number * sectors,
        first_replacement_sector: (2 * number + 1) * sectors,
        sector_count: sectors,
    };
    let drive = built(&DiskFormat {
        revectored_extents: (0..tracks).map(track).collect(),
        ..of
    });
    let bad = 2 * 7_000 * sectors + 17;
    assert_eq!(
        at(drive.locate_sector(bad)),
        at(whole.locate_sector(bad + sectors))
    );
    assert_eq!(drive.run_from_sector(bad).sector_count, 1);
    assert_eq!(drive.first_replacement_in(0..sectors), None);
    assert_eq!(drive.first_replacement_in(0..sectors + 1), Some(sectors));
    let last = 2 * tracks * sectors;
    assert_eq!(
        drive.first_replacement_in(last - 1..last + 1),
        Some(last - 1)
    );
    assert_eq!(drive.first_replacement_in(last..last + sectors), None);
}

#[test]
fn places_of_bad_sectors_do_not_contradict_each_other() {
    let run = |from, to| RevectoredExtent {
        first_bad_sector: from,
        first_replacement_sector: to,
        sector_count: 10,
    };
    let refused = |revectored| {
        refused(&DiskFormat {
            revectored_extents: revectored,
            ..format((10, 1, 10), 0, 1)
        })
    };
    assert_eq!(
        refused(vec![run(0, 80), (5, 95).into()]),
        GeometryError::RevectoredTwice(5)
    );
    assert_eq!(
        refused(vec![run(0, 80), (20, 85).into()]),
        GeometryError::ReplacementConflict(85)
    );
    assert_eq!(
        refused(vec![run(0, 80), (85, 30).into()]),
        GeometryError::ReplacementConflict(85)
    );
    assert_eq!(
        refused(vec![run(0, 95)]),
        GeometryError::RevectoredBeyondEnd(100)
    );
}

/// Sectors that stand in for others are numbered as if they were none, past those
/// that slip.
#[test]
fn stand_ins_are_counted_past_slipped_sectors() {
    let of = |revectored: &[(u64, u64)]| DiskFormat {
        slipped_sectors: vec![30, 10, 20],
        revectored_extents: revectored.iter().map(|run| (*run).into()).collect(),
        ..format((1, 1, 100), 0, 1)
    };
    // A slipped sector is as bad as the one whose data it would have.
    assert_eq!(
        refused(&of(&[(5, 20)])),
        GeometryError::ReplacementConflict(20)
    );
    let drive = built(&of(&[(5, 25), (6, 90)]));
    let places = [5, 6].map(|bad| at(drive.locate_sector(bad)));
    assert_eq!(places, [(0, 0, 25), (0, 0, 90)]);
    assert_eq!(drive.first_replacement_in(0..100), Some(23));
    assert_eq!(drive.first_replacement_in(24..100), Some(87));
    assert_eq!(drive.first_replacement_in(23..24), Some(23));
    assert_eq!(drive.first_replacement_in(24..87), None);
}
