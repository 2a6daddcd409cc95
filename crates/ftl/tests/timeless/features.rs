//! What a layer does beside mapping and collecting: caches, refresh, streams, next free
//! dies, and how each is accounted for.

use crate::support::{self, SEED, below, random};
use diskperf_ftl::{
    CollectionStep, DataSeparation, DieAllocation, Features, Ftl, Geometry, Lookup, MapCache,
    MapCacheCounts, PreconditionState, SlcCache, Specification, UntimedFtl, VictimPolicy, Writer,
};

/// 100 superblocks of 4 dies with 2 programs of 24 units.
fn specification() -> Specification {
    Specification {
        geometry: Geometry {
            superblock_count: 100,
            die_count: 4,
            units_per_program: 24,
            rows_per_superblock: 2,
        },
        logical_units: 80 * 192,
        policy: VictimPolicy::Greedy,
        separation: DataSeparation::MovedApart,
        stream_count: 1,
        soft_free_superblocks: 5,
        hard_free_superblocks: 3,
        wear_threshold_erases: None,
        seed: SEED,
    }
}

fn with_cache(bits: u32) -> Features {
    Features {
        slc_cache: Some(SlcCache {
            bits_per_cell: bits,
            fixed_superblocks: 4,
            dynamic_superblocks: 60,
        }),
        ..Features::default()
    }
}

/// The cache has its own superblocks, and of the unmapped units a third (a quarter).
#[test]
pub(crate) fn the_cache_shrinks_as_the_drive_fills() {
    for bits in [3, 4] {
        for (filled_superblocks, lent) in [(0, 60), (40, 40), (72, 8), (80, 0)] {
            let filled = filled_superblocks * 192;
            let ftl = Ftl::new_preconditioned_with_features(
                specification(),
                with_cache(bits),
                PreconditionState::Sequential,
                filled,
            )
            .unwrap();
            let should_be = u64::from((4 + lent) * 192 / bits);
            assert_eq!(
                ftl.cache_capacity_units(),
                should_be,
                "{filled_superblocks} full"
            );
        }
    }
}

/// Writes fill the cache, then go past it; folded, it takes as much again.
#[test]
pub(crate) fn a_folded_cache_takes_a_whole_burst_again() {
    let mut drive = UntimedFtl::new(Ftl::with_features(specification(), with_cache(3)).unwrap());
    let room = drive.ftl().cache_capacity_units();
    let burst = 5000;
    for _ in 0..3 {
        let before = *drive.ftl().traffic();
        let mut cached = 0;
        for logical in 0..burst {
            drive.write(logical, 0);
            let physical = drive.ftl().read(logical).unwrap();
            cached += u64::from(drive.ftl().is_slc_superblock(physical / 192));
        }
        assert_eq!(cached, room);
        while drive.fold_cache_superblock() {}
        drive.ftl().check_invariants().unwrap();
        // In order: each unit of the host once, what was in the cache once more, no other.
        let traffic = drive.ftl().traffic().traffic_since(&before);
        assert_eq!(
            (traffic.host_units, traffic.folding_units),
            (u64::from(burst), room)
        );
        assert_eq!(
            traffic.programmed_units(),
            traffic.host_units + traffic.folding_units
        );
        assert_eq!(drive.ftl().foldable_superblocks(), 0);
        (0..burst).for_each(|logical| assert!(drive.trim(logical)));
    }
}

#[test]
fn what_is_overwritten_in_the_cache_is_not_folded() {
    let ftl = Ftl::with_features(specification(), with_cache(3)).unwrap();
    let mut drive = UntimedFtl::new(ftl);
    for logical in (0..4).flat_map(|_| 0..64) {
        drive.write(logical, 0);
    }
    while drive.fold_cache_superblock() {}
    // The last superblock of 64 units is that of the last round.
    assert_eq!(drive.ftl().traffic().folding_units, 64);
    assert_eq!(drive.ftl().traffic().host_units, 256);
}

#[test]
fn a_refresh_moves_what_is_valid_and_is_counted_apart() {
    let mut drive = UntimedFtl::new(
        Ftl::new_preconditioned(specification(), PreconditionState::Sequential).unwrap(),
    );
    for logical in 0..92 {
        drive.trim(logical);
    }
    assert!(!drive.refresh_superblock(99), "a superblock that is free");
    assert!(drive.refresh_superblock(0));
    let traffic = drive.ftl().traffic();
    assert_eq!((traffic.refresh_units, traffic.erase_count), (100, 1));
    assert_eq!(traffic.programmed_units(), 100);
    let mut ftl = Ftl::new_preconditioned(specification(), PreconditionState::Sequential).unwrap();
    assert_eq!(
        (1..4).map(|_| ftl.count_read(7)).collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

/// Map pages and journal are programmed beside the host's data, and collected as it is.
#[test]
fn what_the_layer_writes_for_itself_is_counted_apart() {
    let features = Features {
        system_units: 16,
        ..Features::default()
    };
    let filled = specification().logical_units;
    let ftl = Ftl::new_preconditioned_with_features(
        specification(),
        features,
        PreconditionState::Sequential,
        filled,
    )
    .unwrap();
    let mut drive = UntimedFtl::new(ftl);
    let mut random = random();
    for write in 0..50_000 {
        drive.write(below(&mut random, filled), 0);
        if write % 10 == 0 {
            drive.write_system(write / 10 % 16);
        }
    }
    drive.ftl().check_invariants().unwrap();
    let traffic = drive.ftl().traffic();
    assert_eq!((traffic.host_units, traffic.map_units), (50_000, 5000));
    assert_eq!(drive.ftl().mapped_host_units(), u64::from(filled));
    let sum = traffic.host_units + traffic.map_units + traffic.collection_units;
    assert_eq!(traffic.programmed_units(), sum);
    assert!(drive.ftl().read_system(15).is_some());
}

/// 64 MiB of map pages are the entries of 64 GiB: of 128 GiB half the look-ups miss.
#[test]
pub(crate) fn a_map_cache_hits_by_what_it_covers() {
    const ROOM: u32 = 16_384;
    const ENTRIES: u32 = 1024;
    let mut random = random();
    for (space, should_be) in [(1, 0.0), (2, 0.5), (4, 0.75)] {
        let units = space * ROOM * ENTRIES;
        let mut cache = MapCache::new(ROOM, ENTRIES, units);
        for page in 0..units / ENTRIES {
            cache.look_up_entry(page * ENTRIES, false);
        }
        let before = cache.counts().miss_count;
        for _ in 0..200_000 {
            cache.look_up_entry(below(&mut random, units), false);
        }
        let counts = cache.counts();
        let is = (counts.miss_count - before) as f64 / 200_000.0;
        assert!(
            (is - should_be).abs() < 0.01,
            "{is:.3} miss of {space} times"
        );
        assert_eq!(counts.written_back_count, 0);
    }
    // In order a page misses once.
    let mut cache = MapCache::new(ROOM, ENTRIES, 4 * ROOM * ENTRIES);
    for unit in 0..100 * ENTRIES {
        cache.look_up_entry(unit, false);
    }
    let counts = MapCacheCounts {
        hit_count: 100 * 1023,
        miss_count: 100,
        written_back_count: 0,
    };
    assert_eq!(cache.counts(), counts);
}

#[test]
fn a_changed_map_page_is_written_before_it_makes_room() {
    let mut cache = MapCache::new(2, 4, 16);
    assert_eq!(
        cache.look_up_entry(0, true),
        Lookup::Miss { written_back: None }
    );
    assert_eq!(
        cache.look_up_entry(4, true),
        Lookup::Miss { written_back: None }
    );
    assert_eq!(cache.look_up_entry(1, false), Lookup::Hit);
    assert_eq!(cache.dirty_pages().collect::<Vec<_>>(), [0, 1]);
    // The page of units 4 to 7 was used before that of 0 to 3.
    let written_back = Some(1);
    assert_eq!(cache.look_up_entry(8, false), Lookup::Miss { written_back });
    cache.mark_written(0);
    let written_back = None;
    assert_eq!(
        cache.look_up_entry(12, false),
        Lookup::Miss { written_back }
    );
    let counts = MapCacheCounts {
        hit_count: 1,
        miss_count: 4,
        written_back_count: 1,
    };
    assert_eq!(cache.counts(), counts);
}

/// Each of two streams fills superblocks of its own, and so does what is moved of each.
#[test]
fn streams_share_no_superblock() {
    let specification = Specification {
        separation: DataSeparation::ByStream,
        stream_count: 2,
        logical_units: 70 * 192,
        ..specification()
    };
    let mut drive = UntimedFtl::new(Ftl::new_unwritten(specification).unwrap());
    let stream_of = |logical: u32| logical % 2;
    for logical in 0..specification.logical_units {
        drive.write(logical, stream_of(logical));
    }
    let mut random = random();
    for _ in 0..100_000 {
        let logical = below(&mut random, specification.logical_units);
        drive.write(logical, stream_of(logical));
    }
    let mut stream_in = vec![None; 100];
    for logical in 0..specification.logical_units {
        let superblock = drive.ftl().read(logical).unwrap() / 192;
        let stream = stream_in[superblock as usize].get_or_insert(stream_of(logical));
        assert_eq!(*stream, stream_of(logical));
    }
    assert!(drive.ftl().traffic().collection_units > 0);
}

/// The die that the device prefers takes the next program, while it has rows left.
#[test]
fn the_next_free_die_takes_the_next_program() {
    let features = Features {
        allocation: DieAllocation::PreferredDie,
        ..Features::default()
    };
    let mut ftl = Ftl::with_features(specification(), features).unwrap();
    let mut dies = Vec::new();
    for logical in 0..192 {
        if logical % 24 == 0 {
            ftl.prefer_die(2);
        }
        let placement = ftl.write(logical, 0).unwrap();
        if placement.completes_program {
            dies.push((placement.die, placement.row));
        }
    }
    let in_turn = [(0, 0), (1, 0), (3, 0), (0, 1), (1, 1), (3, 1)];
    assert_eq!(dies, [&[(2, 0), (2, 1)][..], &in_turn].concat());
    assert_eq!(ftl.dies_with_rows_left(Writer::Host(0)).count(), 4);
    ftl.check_invariants().unwrap();
}

/// What is written in one stream lies on all dies alike, in the order of the dies; what was
/// written again at random does not.
#[test]
pub(crate) fn a_sequential_read_loads_all_dies() {
    let mut drive = UntimedFtl::new(
        Ftl::new_preconditioned(specification(), PreconditionState::Sequential).unwrap(),
    );
    let die = |drive: &UntimedFtl, logical: u32| drive.ftl().read(logical).unwrap() / 24 % 4;
    let units = specification().logical_units;
    let mut loads = [0; 4];
    for logical in 0..units {
        assert_eq!(die(&drive, logical), logical / 24 % 4);
        loads[die(&drive, logical) as usize] += 1;
    }
    assert_eq!(loads, [units / 4; 4]);
    let mut random = random();
    for _ in 0..units * 4 {
        drive.write(below(&mut random, units), 0);
    }
    let together = (1..units)
        .filter(|&logical| die(&drive, logical) == die(&drive, logical - 1))
        .count();
    let share = together as f64 / f64::from(units);
    assert!(
        (share - 0.25).abs() < 0.03,
        "{share:.3} of neighbours share a die"
    );
}

/// A unit's place, and so its page type and die, is the same until it moves.
#[test]
pub(crate) fn a_unit_keeps_its_place_until_it_moves() {
    let features = Features {
        anonymous_precondition: true,
        ..Features::default()
    };
    let filled = specification().logical_units;
    let mut ftl = Ftl::new_preconditioned_with_features(
        specification(),
        features,
        PreconditionState::Random,
        filled,
    )
    .unwrap();
    let mut thirds = [0u32; 3];
    for logical in 0..filled {
        let place = ftl.locate(logical).unwrap();
        assert_eq!(ftl.locate(logical), Some(place));
        thirds[(place % 24 / 8) as usize] += 1;
    }
    ftl.check_invariants().unwrap();
    for third in thirds {
        let share = f64::from(third) / f64::from(filled);
        assert!((share - 1.0 / 3.0).abs() < 0.02, "{thirds:?}");
    }
}

#[test]
pub(crate) fn what_is_not_mapped_has_no_place() {
    let filled = specification().logical_units / 2;
    for past in [
        PreconditionState::Fresh,
        PreconditionState::Sequential,
        PreconditionState::Random,
    ] {
        for anonymous in [false, true] {
            let features = Features {
                anonymous_precondition: anonymous,
                ..Features::default()
            };
            let mut ftl =
                Ftl::new_preconditioned_with_features(specification(), features, past, filled)
                    .unwrap();
            assert_eq!(ftl.locate(filled), None);
            assert_eq!(ftl.locate(0).is_some(), past != PreconditionState::Fresh);
            ftl.trim(0);
            assert_eq!(ftl.locate(0), None);
            ftl.check_invariants().unwrap();
        }
    }
}

/// All that was ever programmed is in place or was erased.
#[test]
pub(crate) fn erases_account_for_what_was_programmed() {
    let specification = Specification {
        wear_threshold_erases: Some(10),
        ..specification()
    };
    let mut drive = UntimedFtl::new(Ftl::new_unwritten(specification).unwrap());
    let mut random = random();
    for logical in 0..specification.logical_units {
        drive.write(logical, 0);
    }
    for write in 0..100_000u32 {
        drive.write(below(&mut random, specification.logical_units / 8), 0);
        if write % 1000 == 0 {
            drive.pad_program(0);
        }
    }
    let (ftl, traffic) = (drive.ftl(), drive.ftl().traffic());
    assert!(
        traffic.padding_units > 0
            && traffic.wear_levelling_units > 0
            && traffic.collection_units > 0
    );
    let erased = traffic.erase_count * 192;
    assert_eq!(traffic.programmed_units() - erased, ftl.placed_units());
    let causes = traffic.host_units
        + traffic.collection_units
        + traffic.wear_levelling_units
        + traffic.padding_units;
    assert_eq!(
        traffic.write_amplification(),
        causes as f64 / traffic.host_units as f64
    );
}

/// Of 16 program units of a row one is parity: a fifteenth more is programmed, a sixteenth
/// of the drive has no data, and amplification is that of the spare that is left.
#[test]
pub(crate) fn parity_takes_one_program_of_each_stripe() {
    for allocation in [DieAllocation::RoundRobin, DieAllocation::PreferredDie] {
        let features = Features {
            parity_stripe_programs: Some(16),
            allocation,
            ..Features::default()
        };
        let mut specification = support::drive(
            (2000, 64),
            0.10,
            VictimPolicy::Greedy,
            (DataSeparation::MovedApart, 1),
        );
        specification.geometry = Geometry {
            die_count: 16,
            units_per_program: 4,
            rows_per_superblock: 1,
            ..specification.geometry
        };
        specification.logical_units = specification.logical_units / 16 * 15;
        let filled = specification.logical_units;
        let ftl = Ftl::new_preconditioned_with_features(
            specification,
            features,
            PreconditionState::Random,
            filled,
        )
        .unwrap();
        let mut drive = UntimedFtl::new(ftl);
        let mut random = random();
        let draw = || (below(&mut random, filled), 0);
        let traffic = support::write(&mut drive, u64::from(filled), draw);
        let data = traffic.programmed_units() - traffic.parity_units;
        support::check(
            "parity",
            traffic.parity_units as f64 / data as f64,
            1.0 / 15.0,
            0.001,
        );
        let amplification = data as f64 / traffic.host_units as f64;
        let should_be = diskperf_ftl::analytic::greedy_write_amplification(0.10, 60);
        support::check("amplification", amplification, should_be, 0.015);
        drive.ftl().check_invariants().unwrap();
    }
}

/// Each program unit of a superblock is data or parity that is given once.
#[test]
fn parity_is_given_to_the_device_once() {
    for allocation in [DieAllocation::RoundRobin, DieAllocation::PreferredDie] {
        let features = Features {
            parity_stripe_programs: Some(2),
            allocation,
            ..Features::default()
        };
        let specification = Specification {
            logical_units: 40 * 192,
            ..specification()
        };
        let mut ftl = Ftl::with_features(specification, features).unwrap();
        let mut programs = Vec::new();
        for logical in 0..2 * 96 {
            let placement = ftl.write(logical, 0).unwrap();
            let parity = std::iter::from_fn(|| ftl.take_due_parity()).collect::<Vec<_>>();
            for it in std::iter::once(placement)
                .chain(parity)
                .filter(|it| it.completes_program)
            {
                programs.push((it.superblock, it.row, it.die));
            }
        }
        programs.sort_unstable();
        let all: Vec<_> = (0..2)
            .flat_map(|superblock| (0..2).map(move |row| (superblock, row)))
            .flat_map(|(superblock, row)| (0..4).map(move |die| (superblock, row, die)))
            .collect();
        assert_eq!(programs, all);
        assert_eq!(ftl.traffic().parity_units, ftl.traffic().host_units);
    }
}

/// A layer with an erase that is not due is wrong, in release too.
#[test]
#[should_panic(expected = "an erase that is not due")]
fn nothing_is_erased_while_it_has_valid_units() {
    let mut ftl = Ftl::new_preconditioned(specification(), PreconditionState::Sequential).unwrap();
    ftl.begin_collection().unwrap();
    assert_eq!(ftl.next_collection_step(), CollectionStep::CopyUnits);
    ftl.complete_erase();
}

/// Both ways to keep a random past: the same amplification and the same counts of valid
/// units, while more and more of it is touched.
#[test]
fn units_without_addresses_are_as_those_with() {
    let specification = support::drive(
        (2000, 64),
        0.10,
        VictimPolicy::Greedy,
        (DataSeparation::MovedApart, 1),
    );
    let filled = specification.logical_units;
    let run = |anonymous: bool| {
        let features = Features {
            anonymous_precondition: anonymous,
            ..Features::default()
        };
        let ftl = Ftl::new_preconditioned_with_features(
            specification,
            features,
            PreconditionState::Random,
            filled,
        )
        .unwrap();
        let mut drive = UntimedFtl::new(ftl);
        let mut random = random();
        let rounds: Vec<f64> = (0..6)
            .map(|_| {
                let writes = u64::from(filled / 2);
                let draw = || (below(&mut random, filled), 0);
                support::write(&mut drive, writes, draw).write_amplification()
            })
            .collect();
        let histogram = drive.ftl().closed_count_by_valid();
        let mean = (0u32..).zip(&histogram).map(|(k, n)| k * n).sum::<u32>();
        drive.ftl().check_invariants().unwrap();
        (
            rounds,
            f64::from(mean) / f64::from(histogram.iter().sum::<u32>()),
        )
    };
    let ((with, mean_with), (without, mean_without)) = (run(false), run(true));
    for (with, without) in with.iter().zip(&without) {
        support::check("a round", *without, *with, 0.01);
    }
    support::check("valid units", mean_without, mean_with, 0.002);
}
