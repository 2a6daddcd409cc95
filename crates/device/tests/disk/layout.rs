//! Where sectors are. These fail when two sectors share a place, when a spare or a slipped
//! sector holds data, or when a scheme takes away more or less than it says.

use super::one_zone;
use diskperf_device::disk::layout::{
    DataSheet, HeadDirection, HeadGroups, Layout, LayoutError, LayoutSpecification, SectorPosition,
    Sparing, TrackOrder, ZoneSpecification,
};
use diskperf_sim::{RandomStream, RandomStreams};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Four cylinders, two surfaces, ten sectors, skews of two and three sectors.
fn small(sparing: Sparing, change: impl FnOnce(&mut ZoneSpecification)) -> LayoutSpecification {
    let mut layout = one_zone((4, 2, 10));
    layout.sparing = sparing;
    layout.zones[0].track_skew_rev = 0.2;
    layout.zones[0].cylinder_skew_rev = 0.3;
    change(&mut layout.zones[0]);
    layout
}

fn layout(specification: &LayoutSpecification) -> Layout {
    Layout::new(specification).expect("a sound layout")
}

fn angle(place: SectorPosition) -> f64 {
    (place.start_angle.to_revolutions() * 1e6).round() / 1e6 % 1.0
}

fn at(place: SectorPosition) -> (u32, u32, u32) {
    (place.cylinder, place.head, place.sector)
}

/// The number of a place among all sectors of a zone of `small`.
fn physical(place: SectorPosition) -> u32 {
    (place.cylinder * 2 + place.head) * 10 + place.sector
}

#[test]
fn skews_turn_each_track_against_the_one_before_it() {
    let expected = [
        (0, 0.0),
        (9, 0.9),
        (10, 0.2),
        (20, 0.5),
        (30, 0.7),
        (40, 0.0),
    ];
    for order in [TrackOrder::Cylinders, TrackOrder::Serpentine] {
        let mut of = small(Sparing::None, |_| ());
        of.track_order = order;
        let layout = layout(&of);
        for (sector, turned) in expected {
            assert_eq!(angle(layout.position_of(sector)), turned, "sector {sector}");
        }
        let heads = [20, 30].map(|sector| layout.position_of(sector).head);
        let descends = order == TrackOrder::Serpentine;
        assert_eq!(heads, if descends { [1, 0] } else { [0, 1] });
    }
}

#[test]
fn schemes_take_away_their_spares() {
    let range = Sparing::Range { cylinders: 2 };
    for (sparing, spares, dead, sectors) in [
        (Sparing::None, 0, 0, 80),
        (Sparing::Tracks, 1, 0, 70),
        (Sparing::CylinderEnd, 1, 0, 76),
        (Sparing::TrackEnd, 1, 0, 72),
        (Sparing::CylinderFront, 1, 0, 76),
        (range, 3, 0, 74),
        (Sparing::Zone, 1, 0, 79),
        (Sparing::Zone, 1, 5, 74),
    ] {
        let of = small(sparing, |zone| {
            (zone.spare_sectors, zone.dead_sectors) = (spares, dead);
        });
        assert_eq!(layout(&of).sectors(), sectors, "{sparing:?}");
    }
    for (sparing, spares, sectors) in [
        (Sparing::Slipping, 0, 78),
        (Sparing::CylinderEndSlipping, 1, 74),
        (Sparing::CylinderFrontSlipping, 1, 74),
        (Sparing::ZoneSlipping, 3, 75),
    ] {
        let of = small(sparing, |zone| {
            (zone.spare_sectors, zone.slipped_sectors) = (spares, vec![5, 6]);
        });
        assert_eq!(layout(&of).sectors(), sectors, "{sparing:?}");
    }
}

#[test]
fn spares_end_their_units() {
    let first_of = |sparing, spares, cylinder| {
        let layout = layout(&small(sparing, |zone| zone.spare_sectors = spares));
        (0..layout.sectors()).find(|sector| layout.position_of(*sector).cylinder == cylinder)
    };
    assert_eq!(first_of(Sparing::None, 0, 1), Some(20));
    assert_eq!(first_of(Sparing::CylinderEnd, 1, 1), Some(19));
    assert_eq!(first_of(Sparing::TrackEnd, 1, 1), Some(18));
    assert_eq!(first_of(Sparing::Range { cylinders: 2 }, 3, 2), Some(37));
    let front = layout(&small(Sparing::CylinderFront, |zone| {
        zone.spare_sectors = 1
    }));
    assert_eq!(at(front.position_of(0)), (0, 0, 1));
    assert_eq!(at(front.position_of(19)), (1, 0, 1));
}

#[test]
fn slips_push_and_defects_move() {
    let slipped = small(Sparing::Zone, |zone| {
        (zone.spare_sectors, zone.slipped_sectors) = (2, vec![5, 6]);
    });
    let slipped = layout(&slipped);
    let places = [4, 5, 6, 77].map(|sector| physical(slipped.position_of(sector)));
    assert_eq!(places, [4, 7, 8, 79]);
    assert_eq!(slipped.run_at(3).sector_count, 2, "a slip ends a run");
    let moved = small(Sparing::Zone, |zone| {
        (zone.spare_sectors, zone.remapped_defects) = (1, vec![(5, 79), (11, 11)]);
    });
    let moved = layout(&moved);
    let places = [4, 5, 6, 11].map(|sector| physical(moved.position_of(sector)));
    assert_eq!(places, [4, 79, 6, 11]);
    assert_eq!(moved.sector_at(0, 0, 5), None, "a defect holds nothing");
    assert_eq!(moved.sector_at(3, 1, 9), Some(5));
}

#[test]
fn spare_tracks_slip_by_tracks() {
    let of = small(Sparing::Tracks, |zone| {
        (zone.spare_sectors, zone.slipped_sectors) = (2, vec![1]);
        zone.remapped_defects = vec![(0, 7)];
        zone.dead_sectors = 2;
    });
    let layout = layout(&of);
    assert_eq!(layout.sectors(), 58);
    assert_eq!(
        at(layout.position_of(0)),
        (3, 1, 2),
        "track 7 stands in for track 0"
    );
    assert_eq!(at(layout.position_of(8)), (1, 0, 0), "track 1 is slipped");
}

#[test]
fn slips_in_a_cylinder_turn_the_tracks_behind_them() {
    let of = small(Sparing::CylinderEnd, |zone| {
        (zone.spare_sectors, zone.slipped_sectors) = (1, vec![5]);
    });
    let layout = layout(&of);
    // Sector 9 is the tenth that is not slipped: the first of the second track, whose
    // skew of two is one more.
    assert_eq!(at(layout.position_of(9)), (0, 1, 0));
    assert_eq!(angle(layout.position_of(9)), 0.3);
    assert_eq!(
        angle(layout.position_of(19)),
        0.5,
        "the next cylinder is not turned"
    );
}

#[test]
fn ranges_may_be_turned_once_more() {
    let of = small(Sparing::Range { cylinders: 2 }, |zone| {
        zone.spare_sectors = 3;
        zone.range_skew_rev = 0.25;
    });
    let layout = layout(&of);
    assert_eq!(angle(layout.position_of(20)), 0.5);
    assert_eq!(
        angle(layout.position_of(37)),
        0.25,
        "(2 + 3) per cylinder, twice"
    );
}

#[test]
fn seek_first_tracks_stay_on_their_surface() {
    let mut of = one_zone((5, 2, 10));
    of.zones[0].track_skew_rev = 0.2;
    of.zones[0].cylinder_skew_rev = 0.5;
    let tracks = |inside, surfaces| {
        let of = LayoutSpecification {
            track_order: TrackOrder::SeekFirst {
                tracks: 3,
                inside,
                surfaces,
            },
            ..of.clone()
        };
        let layout = layout(&of);
        let place = |track: u64| layout.position_of(track * 10);
        assert_eq!(angle(place(2)), 0.4);
        assert_eq!(angle(place(3)), 0.9, "a change of the head");
        let places = (0..10).map(place).map(|place| (place.cylinder, place.head));
        places.collect::<Vec<_>>()
    };
    let (forward, alternating) = (HeadDirection::Forward, HeadDirection::Alternating);
    let band = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)];
    let last = [(3, 0), (4, 0), (3, 1), (4, 1)];
    assert_eq!(tracks(forward, forward), [&band[..], &last[..]].concat());
    assert_eq!(
        tracks(alternating, alternating),
        [
            [(0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1)].as_slice(),
            &[(3, 1), (4, 1), (4, 0), (3, 0)]
        ]
        .concat()
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let refused = |of: LayoutSpecification| Layout::new(&of).expect_err("refused");
    let full = small(Sparing::CylinderEnd, |zone| zone.spare_sectors = 20);
    assert!(matches!(
        refused(full),
        LayoutError::ZoneFull { taken: 80, .. }
    ));
    let slips = small(Sparing::CylinderEnd, |zone| {
        (zone.spare_sectors, zone.slipped_sectors) = (1, vec![5, 7]);
    });
    let error = refused(slips);
    assert!(matches!(error, LayoutError::TooManySlips { .. }), "{error}");
    for defects in [vec![(5, 6)], vec![(5, 79), (6, 79)], vec![(5, 800)]] {
        let of = small(Sparing::Zone, |zone| {
            (zone.spare_sectors, zone.remapped_defects) = (1, defects)
        });
        let error = refused(of);
        assert!(
            matches!(error, LayoutError::InvalidReplacement { .. }),
            "{error}"
        );
    }
    let mut zones = one_zone((4, 2, 10));
    zones.zones.push(zones.zones[0].clone());
    let error = refused(zones).to_string();
    assert!(error.contains("zone 1 has cylinders 0 to 3"), "{error}");
    let mut none = one_zone((4, 2, 10));
    none.zones[0].sectors_per_track = 0;
    let error = refused(none).to_string();
    assert!(
        error.contains("zone 0: `sectors_per_track` is 0"),
        "{error}"
    );
}

/// 4.2 of the facts: `sata-7200`.
#[test]
fn a_data_sheet_makes_a_disk() {
    let sheet = DataSheet {
        capacity_bytes: 8_000_000_000_000,
        sector_bytes: 4096,
        head_count: 12,
        outer_track_bytes: 2.2e6,
        inner_to_outer_ratio: 0.48,
        zone_count: 24,
        tracks_per_band: 200,
        track_skew_rev: 0.15,
        head_skew_rev: 0.25,
    };
    let of = sheet.build_layout().expect("a disk");
    let tracks = 2.0 * 8e12 / (12.0 * 2.2e6 * 1.48);
    super::assert_close(f64::from(of.cylinder_count), tracks, 1e-3);
    let layout = layout(&of);
    assert_eq!(layout.sectors(), 8_000_000_000_000 / 4096);
    let per_track = |sector| f64::from(layout.position_of(sector).sectors_per_track);
    let outer = 2.2e6 / 4096.0;
    // The rate over the share of sectors is a root: R0 sqrt(1 - y (1 - rho^2)).
    for share in [0.25, 0.5, 0.75] {
        let sector = (layout.sectors() as f64 * share) as u64;
        let expected = (1.0 - share * (1.0 - 0.48_f64.powi(2))).sqrt();
        super::assert_close(per_track(sector) / outer, expected, 0.025);
    }
    let error = DataSheet {
        head_count: 0,
        ..sheet
    }
    .build_layout()
    .expect_err("none");
    assert_eq!(error.to_string(), "`heads` is 0, and must be at least 1");
}

/// Cylinders, heads, heads of a group, sectors, unused ones: the skews of tracks, cylinders
/// and groups are 1, 3 and 5 sectors.
#[test]
fn groups_of_heads_turn_once_more_and_unused_sectors_pass() {
    for (heads, group, unused) in [(5, 2, 0), (5, 2, 2), (4, 4, 1), (6, 1, 0), (1, 1, 3)] {
        let slots = 10 + unused;
        let rev = |sectors: u32| f64::from(sectors) / f64::from(slots);
        let mut of = one_zone((3, heads, 10));
        let zone = &mut of.zones[0];
        (zone.track_skew_rev, zone.cylinder_skew_rev) = (rev(1), rev(3));
        zone.unused_sectors_per_track = unused;
        let skew_rev = rev(5);
        zone.head_groups = Some(HeadGroups {
            heads_per_group: group,
            skew_rev,
        });
        let layout = layout(&of);
        let mut turned = 0;
        for track in 0..3 * heads {
            let place = layout.position_of(u64::from(track) * 10 + 9);
            assert_eq!((place.sector, place.sectors_per_track), (9, slots));
            assert_eq!(place.sector_angle, u64::MAX / u64::from(slots));
            let start = rev((turned + 9) % slots);
            let apart = (place.start_angle.to_revolutions() - start).abs();
            assert!(apart.min(1.0 - apart) < 1e-9, "track {track} of {of:?}");
            turned += match (track + 1) % heads {
                0 => 3,
                head if head % group == 0 => 1 + 5,
                _ => 1,
            };
        }
    }
    let of = small(Sparing::None, |zone| {
        let (heads, skew_rev) = (3, 0.1);
        zone.head_groups = Some(HeadGroups {
            heads_per_group: heads,
            skew_rev,
        });
    });
    let refused = Layout::new(&of).expect_err("two heads").to_string();
    assert!(
        refused.contains("`heads` of a group of heads is 3"),
        "{refused}"
    );
}

/// A random disk: of any order and scheme, with gaps between its zones, dead sectors,
/// slips and defects.
fn random_disk(draws: &mut RandomStream) -> LayoutSpecification {
    let surfaces = 1 + draws.draw_below(4) as u32;
    let direction = [HeadDirection::Forward, HeadDirection::Alternating];
    let mut pick = |of| draws.draw_below(of) as usize;
    let orders = [
        TrackOrder::Cylinders,
        TrackOrder::Serpentine,
        TrackOrder::SerpentineByCylinder,
        TrackOrder::SeekFirst {
            tracks: 1 + pick(4) as u32,
            inside: direction[pick(2)],
            surfaces: direction[pick(2)],
        },
    ];
    let order = orders[pick(4)];
    let seek_first = matches!(order, TrackOrder::SeekFirst { .. });
    let sparing = loop {
        let range = 1 + pick(3) as u32;
        let sparing = Sparing::from_disksim(pick(11) as u32, range).expect("a scheme");
        let by_tracks = [0, 1, 3, 7, 9, 10].map(|number| Sparing::from_disksim(number, 1));
        if !seek_first || by_tracks.contains(&Some(sparing)) {
            break sparing;
        }
    };
    let mut zones = Vec::new();
    let mut cylinder = 0;
    for _ in 0..1 + draws.draw_below(3) {
        cylinder += draws.draw_below(2) as u32;
        let zone = random_zone(draws, sparing, (cylinder, surfaces));
        cylinder = zone.last_cylinder + 1;
        zones.push(zone);
    }
    LayoutSpecification {
        surface_count: surfaces,
        cylinder_count: cylinder + draws.draw_below(2) as u32,
        track_order: order,
        sparing,
        zones,
        extents: Vec::new(),
        sector_count: None,
    }
}

fn random_zone(
    draws: &mut RandomStream,
    sparing: Sparing,
    (first_cylinder, surfaces): (u32, u32),
) -> ZoneSpecification {
    let cylinders = 3 + draws.draw_below(5) as u32;
    let sectors_per_track = 4 + draws.draw_below(9) as u32;
    let tracks = sparing == Sparing::Tracks;
    let counted = cylinders * surfaces * if tracks { 1 } else { sectors_per_track };
    let spares = draws.draw_below(3);
    let slips: BTreeSet<u64> = match sparing {
        Sparing::None => BTreeSet::new(),
        _ => (0..draws.draw_below(spares + 1))
            .map(|_| draws.draw_below(counted.into()))
            .collect(),
    };
    let defects = (0..draws.draw_below(2)).map(|_| {
        let defect = draws.draw_below(counted.into());
        (
            defect,
            u64::from(counted) - 1 - draws.draw_below(spares + 1),
        )
    });
    let defects = defects.collect();
    ZoneSpecification {
        first_cylinder,
        last_cylinder: first_cylinder + cylinders - 1,
        sectors_per_track,
        origin_rev: draws.draw_share(),
        track_skew_rev: draws.draw_share(),
        cylinder_skew_rev: draws.draw_share(),
        range_skew_rev: draws.draw_share(),
        dead_sectors: draws.draw_below(4),
        spare_sectors: spares,
        slipped_sectors: slips.into_iter().collect(),
        remapped_defects: defects,
        unused_sectors_per_track: draws.draw_below(3) as u32,
        head_groups: (draws.draw_below(2) == 1).then(|| HeadGroups {
            heads_per_group: 1 + draws.draw_below(surfaces.into()) as u32,
            skew_rev: draws.draw_share(),
        }),
    }
}

/// A sound random disk: without the defects that do not fit, and without the slips if
/// that is not enough.
fn sound_disk(seed: u64) -> (LayoutSpecification, Layout) {
    let mut of = random_disk(&mut RandomStreams::new(seed).named_stream("disk"));
    for attempt in 0..3 {
        match Layout::new(&of) {
            Ok(layout) => return (of, layout),
            Err(_) => of.zones.iter_mut().for_each(|zone| match attempt {
                0 => zone.remapped_defects.clear(),
                _ => zone.slipped_sectors.clear(),
            }),
        }
    }
    panic!("seed {seed}: {:?}", Layout::new(&of).map(|_| of));
}

/// The physical sector of the zone's logical block `inside`, as the facts' section 1.2
/// says in words.
fn walked(of: &LayoutSpecification, zone: &ZoneSpecification, inside: u64) -> u64 {
    let per_track = u64::from(zone.sectors_per_track);
    let cylinder = u64::from(of.surface_count) * per_track;
    let unit = match of.sparing {
        Sparing::CylinderEnd => Some(cylinder),
        Sparing::TrackEnd => Some(per_track),
        Sparing::Range { cylinders } => Some(cylinder * u64::from(cylinders)),
        _ => None,
    };
    let grain = if of.sparing == Sparing::Tracks {
        per_track
    } else {
        1
    };
    let logical = inside + zone.dead_sectors;
    let (before, mut at) = match unit {
        Some(unit) => (
            logical / (unit - zone.spare_sectors) * unit,
            logical % (unit - zone.spare_sectors),
        ),
        None => (0, logical),
    };
    let mut count = 0;
    for slip in zone
        .slipped_sectors
        .iter()
        .filter(|slip| **slip * grain >= before)
    {
        if slip * grain - before <= at + count * grain {
            count += 1;
        }
    }
    at += count * grain + before;
    let defect = zone
        .remapped_defects
        .iter()
        .find(|defect| defect.0 == at / grain);
    defect.map_or(at, |defect| defect.1 * grain + at % grain)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sector_has_one_place_and_no_place_two_sectors(seed: u64) {
        let (of, layout) = sound_disk(seed);
        let mut places = BTreeSet::new();
        for sector in 0..layout.sectors() {
            let run = layout.run_at(sector);
            let place = at(run.position);
            prop_assert!(places.insert(place), "{place:?} twice: {of:?}");
            prop_assert_eq!(layout.sector_at(place.0, place.1, place.2), Some(sector), "{:?}", of);
            for further in 1..run.sector_count {
                let next = layout.position_of(sector + u64::from(further));
                prop_assert!(next.is_on_same_track(&run.position), "{of:?}");
                prop_assert_eq!(next.sector, run.position.sector + further);
                prop_assert_eq!(next.start_angle, run.position.end_angle(further));
            }
            for back in 1..=run.sectors_before {
                let earlier = layout.position_of(sector - u64::from(back));
                prop_assert!(earlier.is_on_same_track(&run.position), "{of:?}");
                prop_assert_eq!(earlier.sector, run.position.sector - back, "{:?}", of);
            }
            let end = layout.track_end(sector);
            let leaves = end == layout.sectors()
                || !layout.position_of(end).is_on_same_track(&run.position);
            prop_assert!(end > sector && leaves);
        }
        for cylinder in 0..of.cylinder_count {
            for head in 0..of.surface_count {
                for sector in 0..16 {
                    let held = layout.sector_at(cylinder, head, sector).is_some();
                    prop_assert_eq!(held, places.contains(&(cylinder, head, sector)), "{:?}", of);
                }
            }
        }
    }

    #[test]
    fn sectors_are_where_the_rule_in_words_puts_them(seed: u64) {
        let (of, layout) = sound_disk(seed);
        let walks = [0, 1, 2, 3, 7, 9, 10].iter().any(|number| {
            Sparing::from_disksim(*number, 1) == Some(of.sparing)
        }) || matches!(of.sparing, Sparing::Range { .. });
        let plain = of.track_order == TrackOrder::Cylinders;
        for sector in (0..layout.sectors()).filter(|_| walks && plain) {
            let number = layout.zone_of_sector(sector);
            let zone = &of.zones[number];
            let place = layout.position_of(sector);
            let inner = u64::from(place.cylinder - zone.first_cylinder);
            let track = inner * u64::from(of.surface_count) + u64::from(place.head);
            let physical = track * u64::from(zone.sectors_per_track) + u64::from(place.sector);
            let inside = sector - layout.first_sector_of_zone(number);
            prop_assert_eq!(physical, walked(&of, zone, inside), "sector {} of {:?}", sector, of);
        }
    }
}
