//! What holds at every step: conservation, copies that race with writes, pacing, wear,
//! and the specifications that are refused.

use crate::support::{SEED, random};
use diskperf_ftl::{
    CollectionStep, CopyOutcome, DataSeparation, Ftl, Geometry, ImpossibleSpecification,
    PreconditionState, ProgramCause, Specification, UnitCopy, UntimedFtl, VictimPolicy,
};
use rand_core::Rng as _;

fn small() -> Specification {
    Specification {
        geometry: Geometry {
            superblock_count: 40,
            die_count: 2,
            units_per_program: 3,
            rows_per_superblock: 4,
        },
        logical_units: 660,
        policy: VictimPolicy::Greedy,
        separation: DataSeparation::MovedApart,
        stream_count: 1,
        soft_free_superblocks: 4,
        hard_free_superblocks: 3,
        wear_threshold_erases: None,
        seed: SEED,
    }
}

#[test]
pub(crate) fn units_go_die_by_die_and_row_by_row() {
    let mut ftl = Ftl::new_unwritten(small()).unwrap();
    for logical in 0..24 {
        let place = ftl.write(logical, 0).unwrap();
        let is = (place.die, place.row, place.completes_program);
        assert_eq!(is, (logical / 3 % 2, logical / 6, logical % 3 == 2));
    }
    ftl.write(24, 0).unwrap();
    assert!(ftl.pad_program(0).unwrap().completes_program);
    assert_eq!(ftl.pad_program(0), None);
    assert_eq!(ftl.traffic().padding_units, 2);
}

/// A collection with all its copies placed and none programmed yet.
fn copies_under_way() -> (Ftl, Vec<UnitCopy>) {
    let mut ftl = Ftl::new_unwritten(small()).unwrap();
    for logical in (0..48).chain(0..4) {
        ftl.write(logical, 0).unwrap();
    }
    let (_, cause) = ftl.begin_collection().unwrap();
    assert_eq!(cause, ProgramCause::GarbageCollection);
    let mut copies = Vec::new();
    ftl.next_copies(100, &mut copies);
    assert_eq!(copies.len(), 20);
    (ftl, copies)
}

#[test]
pub(crate) fn a_unit_is_read_at_its_old_place_until_the_map_is_switched() {
    let (mut ftl, copies) = copies_under_way();
    let copy = copies[0];
    let placement = ftl.place_copy(copy).unwrap();
    assert_eq!(ftl.read(copy.logical), Some(copy.source_physical));
    assert_eq!(ftl.complete_copy(copy, placement), CopyOutcome::Switched);
    assert_eq!(ftl.read(copy.logical), Some(placement.physical));
    ftl.check_invariants().unwrap();
}

#[test]
pub(crate) fn a_copy_of_what_was_overwritten_is_dead() {
    let (mut ftl, copies) = copies_under_way();
    let placement = ftl.place_copy(copies[0]).unwrap();
    let newer = ftl.write(copies[0].logical, 0).unwrap();
    assert_eq!(
        ftl.complete_copy(copies[0], placement),
        CopyOutcome::Obsolete
    );
    assert_eq!(ftl.read(copies[0].logical), Some(newer.physical));
    assert!(ftl.trim(copies[1].logical));
    assert_eq!(ftl.place_copy(copies[1]), None);
    for &copy in &copies[2..] {
        assert_eq!(ftl.next_collection_step(), CollectionStep::AwaitPrograms);
        let placement = ftl.place_copy(copy).unwrap();
        ftl.complete_copy(copy, placement);
        ftl.check_invariants().unwrap();
    }
    assert!(matches!(
        ftl.next_collection_step(),
        CollectionStep::EraseVictim(_)
    ));
    ftl.complete_erase();
    ftl.check_invariants().unwrap();
}

#[test]
pub(crate) fn laws_hold_after_every_request_of_every_policy() {
    for policy in [
        VictimPolicy::Greedy,
        VictimPolicy::RandomChoices(3),
        VictimPolicy::OldestFirst,
        VictimPolicy::CostBenefit,
    ] {
        for separation in [
            DataSeparation::Mixed,
            DataSeparation::MovedApart,
            DataSeparation::ByStream,
        ] {
            let specification = Specification {
                policy,
                separation,
                ..small()
            };
            let mut drive = UntimedFtl::new(Ftl::new_unwritten(specification).unwrap());
            let mut random = random();
            for _ in 0..5000 {
                let logical = (random.next_u64() % 660) as u32;
                match random.next_u64() % 8 {
                    0 => drop(drive.trim(logical)),
                    1..=3 => drive.write(logical, 0),
                    _ => drive.write_paced(logical, 0),
                }
                drive.ftl().check_invariants().unwrap_or_else(|broken| {
                    panic!("{policy:?} {separation:?} seed {SEED}: {broken}")
                });
                assert!(drive.ftl().free_superblocks() > 0);
            }
        }
    }
}

#[test]
pub(crate) fn paced_copies_keep_superblocks_free() {
    let specification = Specification {
        geometry: Geometry {
            superblock_count: 1010,
            die_count: 4,
            units_per_program: 8,
            rows_per_superblock: 8,
        },
        logical_units: 230_400,
        soft_free_superblocks: 8,
        hard_free_superblocks: 3,
        ..small()
    };
    let mut drive =
        UntimedFtl::new(Ftl::new_preconditioned(specification, PreconditionState::Random).unwrap());
    let mut random = random();
    let (mut most, mut fewest_free) = (0, u32::MAX);
    for _ in 0..specification.logical_units {
        let before = drive.ftl().traffic().collection_units;
        drive.write_paced((random.next_u64() % 230_400) as u32, 0);
        most = most.max(drive.ftl().traffic().collection_units - before);
        fewest_free = fewest_free.min(drive.ftl().free_superblocks());
    }
    println!("at most {most} copies for one write, {fewest_free} free, seed {SEED}");
    assert!(
        fewest_free >= specification.hard_free_superblocks,
        "{fewest_free} superblocks free"
    );
    assert!(most < 256 / 10, "{most} copies for one write");
}

#[test]
pub(crate) fn static_wear_levelling_moves_what_is_never_written() {
    let threshold = 10;
    for (wear_threshold, levelled) in [(Some(threshold), true), (None, false)] {
        let specification = Specification {
            wear_threshold_erases: wear_threshold,
            ..small()
        };
        let mut drive = UntimedFtl::new(
            Ftl::new_preconditioned(specification, PreconditionState::Sequential).unwrap(),
        );
        let mut random = random();
        let mut spread = 0;
        for _ in 0..60_000 {
            drive.write((random.next_u64() % 66) as u32, 0);
            spread = spread.max(drive.ftl().erase_count_spread());
        }
        drive.ftl().check_invariants().unwrap();
        println!(
            "spread {spread} with {wear_threshold:?}: {:?}",
            drive.ftl().traffic()
        );
        assert_eq!(spread <= threshold + 1, levelled);
        assert_eq!(drive.ftl().traffic().wear_levelling_units > 0, levelled);
    }
}

/// Superblocks with k valid units are c/k of all: k w_k is level above the victims' k.
#[test]
pub(crate) fn valid_counts_are_spread_as_one_over_k() {
    let specification = Specification {
        geometry: Geometry {
            superblock_count: 20_005,
            die_count: 1,
            units_per_program: 1,
            rows_per_superblock: 16,
        },
        logical_units: 272_000,
        ..small()
    };
    let state = diskperf_ftl::analytic::solve_greedy_steady_state(0.15, 16);
    let mut drive = UntimedFtl::new(
        Ftl::new_preconditioned(specification, PreconditionState::Sequential).unwrap(),
    );
    let mut random = random();
    for _ in 0..specification.logical_units * 6 {
        drive.write((random.next_u64() % 272_000) as u32, 0);
    }
    let histogram = drive.ftl().closed_count_by_valid();
    let closed = f64::from(histogram.iter().sum::<u32>());
    let (mut chi_square, mut counts) = (0.0, 0.0);
    for k in state.victim_valid + 1..=16 {
        let should_be = closed * state.share_constant / f64::from(k);
        chi_square += (f64::from(histogram[k as usize]) - should_be).powi(2) / should_be;
        counts += 1.0;
    }
    println!("chi-square {chi_square:.1} of {counts} counts: {histogram:?}, seed {SEED}");
    // Four standard deviations above the mean of the distribution.
    assert!(
        chi_square < counts + 4.0 * f64::sqrt(2.0 * counts),
        "{chi_square}"
    );
    let lower: u32 = histogram[..state.victim_valid as usize].iter().sum();
    assert!(
        f64::from(lower) < 0.01 * closed,
        "{lower} superblocks below the victims"
    );
}

#[test]
pub(crate) fn impossible_specifications_are_refused_with_the_reason() {
    let geometry = small().geometry;
    let with = |superblocks, dies| Geometry {
        superblock_count: superblocks,
        die_count: dies,
        ..geometry
    };
    let logical = |logical_units| Specification {
        logical_units,
        ..small()
    };
    for (specification, should_be) in [
        (
            Specification {
                geometry: with(0, 2),
                ..small()
            },
            ImpossibleSpecification::ZeroParameter("superblocks"),
        ),
        (
            Specification {
                geometry: with(40, 0),
                ..small()
            },
            ImpossibleSpecification::ZeroParameter("dies"),
        ),
        (
            logical(0),
            ImpossibleSpecification::ZeroParameter("logical units (an over-provisioning of 1)"),
        ),
        (
            Specification {
                policy: VictimPolicy::RandomChoices(0),
                ..small()
            },
            ImpossibleSpecification::ZeroParameter("choices"),
        ),
        (
            logical(960),
            ImpossibleSpecification::NoOverProvisioning {
                logical: 960,
                physical: 960,
            },
        ),
        (
            Specification {
                geometry: with(1 << 31, 2),
                ..small()
            },
            ImpossibleSpecification::TooManyUnits(24 << 31),
        ),
        (
            logical(830),
            ImpossibleSpecification::Deadlock {
                free: 4,
                open: 2,
                closed: 816,
                logical: 830,
            },
        ),
        (
            Specification {
                hard_free_superblocks: 1,
                ..small()
            },
            ImpossibleSpecification::HardThresholdTooLow { hard: 1, needed: 2 },
        ),
        (
            Specification {
                soft_free_superblocks: 3,
                ..small()
            },
            ImpossibleSpecification::SoftThresholdBelowHard { soft: 3, hard: 3 },
        ),
    ] {
        assert_eq!(Ftl::new_unwritten(specification).unwrap_err(), should_be);
    }
}
