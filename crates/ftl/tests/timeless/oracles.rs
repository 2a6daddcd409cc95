//! Write amplification of the model against the published formulas and tables.

use crate::support::{self, below, check, random};
use diskperf_ftl::{
    DataSeparation, Ftl, Geometry, PreconditionState, Specification, UntimedFtl, VictimPolicy,
    analytic,
};

fn drive(closed: u32, units: u32, spare: f64, policy: VictimPolicy) -> Specification {
    support::drive(
        (closed, units),
        spare,
        policy,
        (DataSeparation::MovedApart, 1),
    )
}

/// Write amplification over `counted` times the space, after `unseen` times.
fn measured(specification: Specification, unseen: f64, counted: f64) -> f64 {
    let ftl = Ftl::new_preconditioned(specification, PreconditionState::Random).unwrap();
    ftl.check_invariants().unwrap();
    let mut drive = UntimedFtl::new(ftl);
    let mut random = random();
    let space = specification.logical_units;
    let mut write = |times: f64| {
        let writes = (times * f64::from(space)) as u64;
        support::write(&mut drive, writes, || (below(&mut random, space), 0))
    };
    write(unseen);
    let amplification = write(counted).write_amplification();
    drive.ftl().check_invariants().unwrap();
    amplification
}

/// Spare, then FIFO, greedy with 16, 64, 256 units, 2, 3 and 10 choices of 64 units.
#[rustfmt::skip]
const TABLE: [(f64, [f64; 7]); 5] = [
    (0.07, [7.32, 5.15, 6.62, 7.12, 9.64, 8.30, 6.89]),
    (0.10, [5.18, 3.98, 4.82, 5.08, 6.85, 5.95, 5.00]),
    (0.15, [3.52, 2.97, 3.35, 3.48, 4.65, 4.07, 3.46]),
    (0.20, [2.69, 2.36, 2.60, 2.67, 3.53, 3.11, 2.68]),
    (0.28, [1.99, 1.81, 1.94, 1.98, 2.57, 2.29, 1.99]),
];
const COLUMNS: [(VictimPolicy, u32, f64); 7] = [
    (VictimPolicy::OldestFirst, 256, 0.015),
    (VictimPolicy::Greedy, 16, 0.015),
    (VictimPolicy::Greedy, 64, 0.015),
    (VictimPolicy::Greedy, 256, 0.015),
    (VictimPolicy::RandomChoices(2), 64, 0.03),
    (VictimPolicy::RandomChoices(3), 64, 0.03),
    (VictimPolicy::RandomChoices(10), 64, 0.03),
];

#[test]
fn formulas_give_the_published_table() {
    for (spare, row) in TABLE {
        for ((policy, units, _), should_be) in COLUMNS.into_iter().zip(row) {
            let is = match policy {
                VictimPolicy::OldestFirst => analytic::fifo_write_amplification(spare),
                VictimPolicy::RandomChoices(choices) => {
                    analytic::choices_write_amplification(spare, units, choices)
                }
                _ => analytic::greedy_write_amplification(spare, units),
            };
            check(
                &format!("{policy:?} {units} at {spare}"),
                is,
                should_be,
                0.002,
            );
        }
    }
    for (units, spare, should_be) in [
        (2, 0.5, 1.0),
        (4, 0.5, 24.0 / 23.0),
        (4, 0.25, 1.6),
        (8, 0.5, 1.1359),
        (8, 0.25, 1.8241),
    ] {
        check(
            &format!("greedy {units}"),
            analytic::greedy_write_amplification(spare, units),
            should_be,
            5e-5,
        );
    }
    check(
        "two choices of 4",
        analytic::choices_write_amplification(0.5, 4, 2),
        1.4501,
        5e-5,
    );
}

#[test]
fn uniform_writes_amplify_as_the_table_says() {
    for (spare, row) in TABLE {
        for ((policy, units, tolerance), should_be) in COLUMNS.into_iter().zip(row) {
            let closed = (256_000 / units).max(2000);
            let is = measured(drive(closed, units, spare, policy), 0.3, 0.7);
            check(
                &format!("{policy:?} {units} at {spare}"),
                is,
                should_be,
                tolerance,
            );
        }
    }
}

/// Free superblocks are no spare: 3 of 4000 at 0.10 are worth 0.04.
#[test]
pub(crate) fn the_reserve_is_no_spare() {
    for (policy, units, should_be) in [
        (VictimPolicy::OldestFirst, 256, 5.18),
        (VictimPolicy::Greedy, 64, 4.82),
        (VictimPolicy::RandomChoices(1), 64, 10.0),
    ] {
        let is = measured(drive(4000, units, 0.10, policy), 0.5, 1.0);
        check(&format!("{policy:?} {units}"), is, should_be, 0.01);
    }
    let small = drive(4000, 64, 0.10, VictimPolicy::Greedy);
    let reserve_in_spare = Specification {
        geometry: Geometry {
            superblock_count: 4001,
            ..small.geometry
        },
        soft_free_superblocks: 4,
        hard_free_superblocks: 3,
        ..small
    };
    // 3 are free when collection ends, and two open ones are half full.
    check(
        "reserve of 4000",
        measured(reserve_in_spare, 0.5, 1.0),
        4.86,
        0.01,
    );
}

/// Blocks so small that a count is exact, with a hundred thousand of them.
#[test]
pub(crate) fn small_blocks_amplify_as_the_exact_cases() {
    for (policy, units, spare, should_be) in [
        (VictimPolicy::Greedy, 2, 0.5, 1.0),
        (VictimPolicy::Greedy, 4, 0.5, 24.0 / 23.0),
        (VictimPolicy::Greedy, 4, 0.25, 1.6),
        (VictimPolicy::Greedy, 8, 0.5, 1.1359),
        (VictimPolicy::Greedy, 8, 0.25, 1.8241),
        (VictimPolicy::RandomChoices(2), 4, 0.5, 1.4501),
    ] {
        let is = measured(drive(100_000, units, spare, policy), 4.0, 2.0);
        check(
            &format!("{policy:?} {units} at {spare}"),
            is,
            should_be,
            0.01,
        );
    }
}

/// Dies, and whether all is read between writes, are nothing to amplification. Programs of
/// several units are, for a moment: the past leaves none of them begun.
#[test]
pub(crate) fn amplification_does_not_hang_on_dies() {
    let one = drive(2000, 64, 0.10, VictimPolicy::Greedy);
    let with = |dies, program_units| Specification {
        geometry: Geometry {
            die_count: dies,
            units_per_program: program_units,
            rows_per_superblock: 64 / dies / program_units,
            ..one.geometry
        },
        ..one
    };
    let should_be = measured(one, 0.2, 0.5);
    for dies in [2, 8, 64] {
        assert_eq!(measured(with(dies, 1), 0.2, 0.5), should_be);
    }
    let is = measured(with(8, 4), 0.2, 0.5);
    check("programs of 4 units on 8 dies", is, should_be, 0.01);
}
