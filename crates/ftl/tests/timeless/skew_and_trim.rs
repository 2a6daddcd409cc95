//! Hot and cold writes, trims and writes in order, against the formulas and tables.

use crate::support::{self, below, check, random, share};
use diskperf_ftl::{
    DataSeparation, Ftl, PreconditionState, Specification, UntimedFtl, VictimPolicy, analytic,
};

const UNITS: u32 = 64;
const CLOSED: u32 = 2000;

fn drive(
    spare: f64,
    policy: VictimPolicy,
    separation: DataSeparation,
    streams: u32,
) -> Specification {
    support::drive((CLOSED, UNITS), spare, policy, (separation, streams))
}

/// Share `writes` of the writes goes to the first `space` of the units, to a stream of
/// their own if the drive has two.
fn hot_and_cold(specification: Specification, writes: f64, space: f64) -> f64 {
    written(specification, (writes, space), (4, 3))
}

/// As [`hot_and_cold`], with the space written so often before and while it is counted.
fn written(
    specification: Specification,
    (writes, space): (f64, f64),
    (unseen, counted): (u64, u64),
) -> f64 {
    let mut random = random();
    let units = specification.logical_units;
    let hot_units = (space * f64::from(units)) as u32;
    let stream = |hot: bool| u32::from(!hot && specification.stream_count == 2);
    let mut drive = UntimedFtl::new(Ftl::new_unwritten(specification).unwrap());
    // In an order that does not part hot and cold: 7919 is prime, and no divisor.
    for index in 0..u64::from(units) {
        let logical = (index * 7919 % u64::from(units)) as u32;
        drive.write(logical, stream(logical < hot_units));
    }
    let mut draw = || {
        let hot = share(&mut random) < writes;
        let logical = match hot {
            true => below(&mut random, hot_units),
            false => hot_units + below(&mut random, units - hot_units),
        };
        (logical, stream(hot))
    };
    support::write(&mut drive, unseen * u64::from(units), &mut draw);
    let traffic = support::write(&mut drive, counted * u64::from(units), &mut draw);
    drive.ftl().check_invariants().unwrap();
    traffic.write_amplification()
}

/// Of 4000 superblocks in all, 3 of them free, as those of the table. Spare, share of writes,
/// share of space; FIFO mixed, greedy mixed, greedy apart,
/// greedy by stream, and pools with the best split.
#[rustfmt::skip]
const HOT_COLD: [(f64, f64, f64, [f64; 5]); 4] = [
    (0.10, 0.8, 0.2, [5.54, 5.23, 5.18, 4.85, 3.57]),
    (0.10, 0.9, 0.1, [6.17, 5.96, 5.57, 4.82, 2.34]),
    (0.20, 0.8, 0.2, [3.03, 2.96, 2.86, 2.61, 2.00]),
    (0.20, 0.9, 0.1, [3.53, 3.49, 3.10, 2.60, 1.48]),
];

#[test]
pub(crate) fn hot_and_cold_writes_amplify_as_the_table_says() {
    let columns = [
        (VictimPolicy::OldestFirst, DataSeparation::Mixed, 1),
        (VictimPolicy::Greedy, DataSeparation::Mixed, 1),
        (VictimPolicy::Greedy, DataSeparation::MovedApart, 1),
        (VictimPolicy::Greedy, DataSeparation::ByStream, 2),
    ];
    for (spare, writes, space, row) in HOT_COLD {
        let mut worse = f64::INFINITY;
        for ((policy, separation, streams), should_be) in columns.into_iter().zip(row) {
            let drive = support::published((4000, UNITS), spare, policy, (separation, streams));
            let is = hot_and_cold(drive, writes, space);
            let name = format!("{policy:?} {separation:?} {writes}/{space} at {spare}");
            check(&name, is, should_be, 0.02);
            assert!(is < worse, "{name}: {is:.4} is no better than {worse:.4}");
            worse = is;
        }
        let formula = analytic::hot_cold_fifo_write_amplification(spare, writes, space);
        check("FIFO by formula", formula, row[0], 0.005);
        check(
            "pools by formula",
            analytic::hot_cold_separated_write_amplification(spare, writes, space),
            row[4],
            0.005,
        );
        assert!(row[4] < worse, "the best split is better than any");
    }
}

/// Cost-benefit, and greedy beside it, at 0.10 with 90 % of the writes to 10 % of the space.
///
/// The table's 5.27 apart and 4.71 by stream cannot be of cost-benefit as it is defined:
/// with two pools its victims' benefits are equal, which makes 2.33 by formula.
#[test]
fn cost_benefit_amplifies_as_the_table_says() {
    let by_formula = analytic::hot_cold_cost_benefit_write_amplification(0.10, 0.9, 0.1);
    let best = analytic::hot_cold_separated_write_amplification(0.10, 0.9, 0.1);
    assert!((best..1.01 * best).contains(&by_formula), "{by_formula:.4}");
    let columns = [
        (DataSeparation::Mixed, 1, Some(6.04), 6.14),
        (DataSeparation::MovedApart, 1, None, 5.67),
        (DataSeparation::ByStream, 2, Some(by_formula), 4.93),
    ];
    let mut worse = f64::INFINITY;
    for (separation, streams, should_be, greedy) in columns {
        let measured = |policy| {
            let drive = support::published((800, UNITS), 0.10, policy, (separation, streams));
            // Cost-benefit leaves cold data alone for long.
            written(drive, (0.9, 0.1), (12, 12))
        };
        check(
            &format!("Greedy {separation:?}"),
            measured(VictimPolicy::Greedy),
            greedy,
            0.02,
        );
        let is = measured(VictimPolicy::CostBenefit);
        if let Some(should_be) = should_be {
            check(&format!("CostBenefit {separation:?}"), is, should_be, 0.02);
        }
        assert!(
            is < worse.min(greedy),
            "{separation:?}: {is:.4}, {worse:.4}"
        );
        worse = is;
    }
}

/// A share of the requests trims random mapped units, the others write random ones.
#[test]
fn trims_among_writes_are_spare() {
    for (trims, should_be) in [(0.05, 3.58), (0.1, 2.69), (0.2, 1.75)] {
        let formula = analytic::fifo_write_amplification(analytic::spare_with_trims(0.10, trims));
        check("trims by formula", formula, should_be, 0.005);
        let specification = drive(
            0.10,
            VictimPolicy::OldestFirst,
            DataSeparation::MovedApart,
            1,
        );
        let space = specification.logical_units;
        let mut drive = UntimedFtl::new(
            Ftl::new_preconditioned(specification, PreconditionState::Random).unwrap(),
        );
        let mut random = random();
        let mut before = *drive.ftl().traffic();
        for request in 0..u64::from(space) * 8 {
            if request == u64::from(space) * 4 {
                before = *drive.ftl().traffic();
            }
            if share(&mut random) < trims {
                while !drive.trim(below(&mut random, space)) {}
            } else {
                drive.write(below(&mut random, space), 0);
            }
        }
        let is = drive
            .ftl()
            .traffic()
            .traffic_since(&before)
            .write_amplification();
        check(&format!("{trims} trims"), is, should_be, 0.02);
    }
}

/// A share of the space unmapped at random, and never written again.
#[test]
pub(crate) fn what_is_trimmed_is_spare() {
    for (spare, trimmed, should_be) in [
        (0.07, 0.1, 3.26),
        (0.07, 0.2, 2.16),
        (0.07, 0.5, 1.20),
        (0.10, 0.1, 2.82),
        (0.10, 0.3, 1.58),
        (0.10, 0.5, 1.18),
    ] {
        let formula =
            analytic::fifo_write_amplification(analytic::spare_after_trim(spare, trimmed));
        check("trim by formula", formula, should_be, 0.005);
        let specification = drive(
            spare,
            VictimPolicy::OldestFirst,
            DataSeparation::MovedApart,
            1,
        );
        let mut drive = UntimedFtl::new(
            Ftl::new_preconditioned(specification, PreconditionState::Random).unwrap(),
        );
        let mut random = random();
        let mut left: Vec<u32> = (0..specification.logical_units).collect();
        for _ in 0..(trimmed * f64::from(specification.logical_units)) as u32 {
            let index = below(&mut random, left.len() as u32);
            assert!(drive.trim(left.swap_remove(index as usize)));
        }
        let mut before = *drive.ftl().traffic();
        for write in 0..left.len() * 6 {
            if write == left.len() * 4 {
                before = *drive.ftl().traffic();
            }
            drive.write(left[below(&mut random, left.len() as u32) as usize], 0);
        }
        drive.ftl().check_invariants().unwrap();
        let is = drive
            .ftl()
            .traffic()
            .traffic_since(&before)
            .write_amplification();
        check(
            &format!("{trimmed} trimmed at {spare}"),
            is,
            should_be,
            0.02,
        );
    }
}

#[test]
pub(crate) fn writes_in_order_are_never_copied() {
    for policy in [
        VictimPolicy::Greedy,
        VictimPolicy::OldestFirst,
        VictimPolicy::CostBenefit,
    ] {
        let specification = drive(0.10, policy, DataSeparation::MovedApart, 1);
        let mut drive = UntimedFtl::new(
            Ftl::new_preconditioned(specification, PreconditionState::Sequential).unwrap(),
        );
        for logical in (0..3).flat_map(|_| 0..specification.logical_units) {
            drive.write(logical, 0);
        }
        let traffic = drive.ftl().traffic();
        assert_eq!(traffic.programmed_units(), traffic.host_units, "{policy:?}");
        drive.ftl().check_invariants().unwrap();
    }
}

#[test]
pub(crate) fn after_all_is_trimmed_a_fill_costs_nothing() {
    let specification = drive(0.10, VictimPolicy::Greedy, DataSeparation::MovedApart, 1);
    let mut drive =
        UntimedFtl::new(Ftl::new_preconditioned(specification, PreconditionState::Random).unwrap());
    for logical in 0..specification.logical_units {
        assert!(drive.trim(logical));
        assert!(!drive.trim(logical));
    }
    let mut random = random();
    for _ in 0..specification.logical_units / 2 {
        drive.write(below(&mut random, specification.logical_units), 0);
    }
    assert_eq!(drive.ftl().traffic().write_amplification(), 1.0);
}
